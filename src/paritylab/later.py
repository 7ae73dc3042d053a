"""Libraries that take long to import, imported when something of them is first used.

What the store knows, and what is only listed, takes neither JAX nor SciPy's distributions.
"""

from __future__ import annotations

import importlib
import types
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import jax as jax
    import jax.numpy as jnp
    import numpy as np
    from jax.extend import core as core
    from jax.extend import random as random
    from scipy import stats as stats

    special: Any  # SciPy has no types
else:

    class _Later(types.ModuleType):
        """A module by its name."""

        def __getattr__(self, name: str) -> Any:
            return getattr(importlib.import_module(self.__name__), name)

    jax, jnp, core, random = map(_Later, ("jax", "jax.numpy", "jax.extend.core", "jax.extend.random"))
    np, special, stats = map(_Later, ("numpy", "scipy.special", "scipy.stats"))
