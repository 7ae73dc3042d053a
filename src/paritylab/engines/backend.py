"""Where JAX computes; it is loaded and asked only if something here may have it compute elsewhere than on the CPU."""

from __future__ import annotations

import functools
import importlib.util
import os
import sys
from importlib import metadata

from paritylab.later import jax

PLUGINS, TPU = "jax_plugins", "libtpu"
VARIABLES = ("JAX_PLATFORMS", "JAX_PLATFORM_NAME", "PJRT_NAMES_AND_LIBRARY_PATHS", "TPU_LIBRARY_PATH")


def is_cpu() -> bool:
    """Whether JAX computes on the CPU.

    >>> is_cpu() == (jax.default_backend() == "cpu")
    True
    """
    return ("jax" not in sys.modules and _has_cpu_alone()) or jax.default_backend() == "cpu"


@functools.cache
def _has_cpu_alone() -> bool:
    """Whether nothing is here by which JAX finds other devices."""
    told = any(os.environ.get(name, "") not in ("", "cpu") for name in VARIABLES)
    installed = any(importlib.util.find_spec(name) for name in (PLUGINS, TPU))
    return not (told or installed or metadata.entry_points(group=PLUGINS))
