"""What all tests share."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import gc
import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import jax
import pytest

hypothesis.settings.register_profile("tests", deadline=None)  # tests are never timed
hypothesis.settings.load_profile("tests")

# Modules for PyTorch and ONNX, and their tests, where these are installed (the group networks).
if importlib.util.find_spec("torch") is None or importlib.util.find_spec("onnx") is None:
    collect_ignore_glob = ["src/paritylab/trained/torch_*", "src/paritylab/trained/onnx_*", "tests/test_from_torch.py"]

os.environ["PARITYLAB_CACHE"] = "off"  # until the tests have a folder: nothing of theirs goes to the user's

MOST_BYTES = 10**9
"""What a test process may take from one module to the next: JAX never forgets a compiled program by itself."""


def pytest_collection_finish() -> None:
    """Modules and tests stay to the end: looking through them for garbage again and again is a tenth of the work."""
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def _programs_are_compiled_once(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Compiling is most of what the tests cost; many of them, in all test processes, ask for the same programs.

    The smallest too: JAX compiles every single operation, in 40 ms, and reads it from the disk in 10.
    """
    base = tmp_path_factory.getbasetemp()
    shared = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "compiled"
    os.environ["PARITYLAB_CACHE"] = str(shared)  # for the processes that tests start
    jax.config.update("jax_compilation_cache_dir", str(shared))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)


@pytest.fixture(scope="session")
def _bytes_after_forgetting() -> list[int]:
    return [0]


@pytest.fixture(scope="module", autouse=True)
def _programs_are_forgotten(_bytes_after_forgetting: list[int]) -> Iterator[None]:
    """Not all that a process took can be given back: what counts is what came since."""
    yield
    if _resident() - _bytes_after_forgetting[0] > MOST_BYTES:
        from paritylab.engines import jax_engine, recorder, starts

        for module in (jax_engine, recorder, starts):
            for cached in vars(module).values():
                if isinstance(cached, functools._lru_cache_wrapper):
                    cached.cache_clear()
        jax.clear_caches()
        gc.collect()
        with contextlib.suppress(AttributeError):  # glibc has it
            ctypes.CDLL(None).malloc_trim(0)
        _bytes_after_forgetting[0] = _resident()


def _resident() -> int:
    """Bytes of memory that this process has; 0 where nothing says so."""
    statm = Path("/proc/self/statm")
    return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") if statm.exists() else 0
