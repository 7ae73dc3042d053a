"""Double precision, in a package that trains in single."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any


def double() -> AbstractContextManager[Any]:
    """Within, what JAX computes in this thread may be in double precision."""
    import jax
    import jax.experimental

    experimental: Any = jax.experimental
    enable: Any = jax.enable_x64 if hasattr(jax, "enable_x64") else experimental.enable_x64  # so before JAX 0.8
    return enable(True)
