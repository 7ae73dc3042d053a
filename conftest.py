"""What all tests share."""

from __future__ import annotations

import os

import jax
import pytest


@pytest.fixture(scope="session", autouse=True)
def _programs_are_compiled_once(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Compiling is most of what the tests cost; many of them, in all test processes, ask for the same programs."""
    base = tmp_path_factory.getbasetemp()
    shared = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "compiled"
    jax.config.update("jax_compilation_cache_dir", str(shared))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)
