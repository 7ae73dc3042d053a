"""A Device that runs CUDA kernels on the CPU (see ``emulator.h``) and notices what a GPU may not."""

from __future__ import annotations

import ctypes
import hashlib
import subprocess
import threading
import weakref
from pathlib import Path
from typing import Any

import numpy as np

from paritylab.engines.warps.device import Kernels
from paritylab.engines.warps.plan import H200

HERE = Path(__file__).parent
GUARD = 64  # bytes before and after every array
PATTERN = 0xFF  # NaN as a float, -1 as a whole number

MAIN = """
namespace { const Table* given_rows; const int* given_order; int given_count, given_microseconds, given_quota; }
extern "C" const char* emulate(int blocks, int threads, float* shared, const Table* rows, const int* order, int count,
                               int microseconds, int quota) {
    given_rows = rows, given_order = order, given_count = count, given_microseconds = microseconds, given_quota = quota;
    return emulator::launch(blocks, threads, shared,
                            [] { train(given_rows, given_order, given_count, given_microseconds, given_quota); });
}
"""
MAIN_START = """
namespace { const Table* given_rows; const u32* given_entries; int given_count; }
extern "C" const char* emulate_start(int blocks, int threads, float* shared, const Table* rows, const u32* entries,
                                     int count) {
    given_rows = rows, given_entries = entries, given_count = count;
    return emulator::launch(blocks, threads, shared, [] { start(given_rows, given_entries, given_count); });
}
"""


def build(source: str, folder: Path, *options: str) -> ctypes.CDLL:
    """A shared library of a kernel's source and the emulator."""
    text = f'#include "{HERE / "emulator.h"}"\n#line 1 "kernel"\n{source}'
    path = folder / hashlib.sha256((text + " ".join(options)).encode()).hexdigest()[:16]
    if not path.with_suffix(".so").exists():  # by another device
        path.with_suffix(".cpp").write_text(text)
        command = ["c++", "-std=c++17", "-O1", "-w", "-fPIC", "-shared", "-fno-strict-aliasing", "-ffp-contract=off"]
        files = [str(path.with_suffix(".cpp")), "-o", str(path.with_suffix(".so"))]
        subprocess.run([*command, *options, *files], check=True)
    return ctypes.CDLL(str(path.with_suffix(".so")))


class Array(np.ndarray):
    """An array on the device; ``guarded`` is its memory."""

    guarded: Guarded | None = None


class Guarded:
    """A block of memory between two guards."""

    def __init__(self, size: int) -> None:
        self.memory = np.full(size + 2 * GUARD, PATTERN, np.uint8)
        self.inside = self.memory[GUARD : GUARD + size]

    def whole(self) -> bool:
        return bool(np.all(self.memory[:GUARD] == PATTERN) and np.all(self.memory[-GUARD:] == PATTERN))


class Emulator:
    """The Device; it compiles into ``folder`` and claims to run ``blocks`` blocks at once. Of several a
    thread may work with one at a time, by their numbers, as on GPUs."""

    name = "emulated GPU"
    chip = H200

    _used = threading.local()
    _lock = threading.RLock()  # of everything: a fiber is one thread's, and a library all devices'

    def __init__(self, folder: Path, blocks: int = 2, number: int = 0) -> None:
        self.blocks = blocks
        self.number = number
        self._folder = folder
        self._kernels: dict[str, ctypes.CDLL] = {}
        self._memory: weakref.WeakSet[Guarded] = weakref.WeakSet()

    def use(self) -> None:
        self._used.number = self.number

    def _require_current(self) -> None:
        assert getattr(self._used, "number", 0) == self.number, "this thread works with another device"

    def array(self, values: np.ndarray) -> Array:
        self._require_current()
        values = np.ascontiguousarray(values)
        guarded = Guarded(values.nbytes)
        with self._lock:
            self._memory.add(guarded)
        array = guarded.inside.view(values.dtype).reshape(values.shape).view(Array)
        array.guarded = guarded
        array[...] = values
        return array

    def zeros(self, shape: tuple[int, ...], dtype: Any) -> Array:
        return self.array(np.zeros(shape, dtype))

    def numpy(self, array: np.ndarray) -> np.ndarray:
        self._require_current()
        return np.array(array)

    def address(self, array: np.ndarray) -> int:
        return array.ctypes.data

    def library(self, source: str) -> ctypes.CDLL:
        with self._lock:
            if source not in self._kernels:
                self._kernels[source] = build(source, self._folder)
            return self._kernels[source]

    def kernels(self, plan: Any) -> Kernels:
        train = self._launch(self.library(plan.source + MAIN).emulate, plan.threads, plan.shared)
        start = self._launch(self.library(plan.start_source + MAIN_START).emulate_start, 32, 0)
        return Kernels(train, lambda blocks, *arguments: start(2, *arguments), self.blocks, {})

    def _launch(self, emulate: Any, threads: int, bytes_shared: int) -> Any:
        emulate.restype = ctypes.c_char_p
        shared = Guarded(max(bytes_shared, 4))

        def launch(blocks: int, *arguments: Any) -> None:
            self._require_current()
            assert all(a.guarded in self._memory for a in arguments if not isinstance(a, int)), "another device's array"
            given = [a if isinstance(a, int) else ctypes.c_void_p(a.ctypes.data) for a in (shared.inside, *arguments)]
            with self._lock:
                shared.inside[:] = PATTERN
                failure = emulate(blocks, threads, *given)
                assert failure is None, failure.decode()
                assert shared.whole(), "shared memory was written beyond its end"
                assert all(guarded.whole() for guarded in self._memory), "an array was written beyond its end"

        return launch
