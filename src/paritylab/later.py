"""Libraries that take long to import, imported when something of them is first used.

What the store knows, and what is only listed, takes neither JAX nor SciPy's distributions.
"""

from __future__ import annotations

import functools
import importlib
import types
from typing import TYPE_CHECKING, Any

from paritylab import compilation_cache

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
            return getattr(_loaded(self.__name__), name)

    @functools.cache
    def _loaded(name: str) -> types.ModuleType:
        if name.partition(".")[0] == "jax":
            compilation_cache.switch_on()
        return importlib.import_module(name)

    jax, jnp, core, random = map(_Later, ("jax", "jax.numpy", "jax.extend.core", "jax.extend.random"))
    np, special, stats = map(_Later, ("numpy", "scipy.special", "scipy.stats"))
