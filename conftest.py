"""What all tests share."""

from __future__ import annotations

import functools
import gc
import os
from collections.abc import Iterator
from pathlib import Path

import jax
import pytest

MOST_BYTES = 10**9
"""What a test process may keep from one module to the next: JAX never forgets a compiled program by itself."""


@pytest.fixture(scope="session", autouse=True)
def _programs_are_compiled_once(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Compiling is most of what the tests cost; many of them, in all test processes, ask for the same programs."""
    base = tmp_path_factory.getbasetemp()
    shared = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "compiled"
    jax.config.update("jax_compilation_cache_dir", str(shared))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)


@pytest.fixture(scope="module", autouse=True)
def _programs_are_forgotten() -> Iterator[None]:
    yield
    statm = Path("/proc/self/statm")
    if statm.exists() and int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") > MOST_BYTES:
        from paritylab.engines import curves, jax_engine, starts

        for module in (curves, jax_engine, starts):
            for cached in vars(module).values():
                if isinstance(cached, functools._lru_cache_wrapper):
                    cached.cache_clear()
        jax.clear_caches()
        gc.collect()
