"""GPUs, as far as pools need them; tests have another Device that emulates one."""

from __future__ import annotations

import collections
import functools
import importlib
import importlib.util
import os
import threading
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from paritylab.engines.warps.plan import Chip, Plan
from paritylab.errors import in_a_line

START_THREADS = 256
Launch = Callable[..., None]


class Kernels(NamedTuple):
    """What a plan is compiled to. ``launch(blocks, *arguments)`` starts a kernel; arguments are device arrays and whole
    numbers. ``most`` is how many blocks of ``train`` run at once, ``facts`` is for benchmarks."""

    train: Launch
    start: Launch
    most: int
    facts: dict[str, int]


class Device(Protocol):
    """Arrays that are indexed as NumPy's, and kernels."""

    name: str
    chip: Chip

    def use(self) -> None:
        """Make it the one that this thread works with; without, that is the first."""
        ...

    def array(self, values: np.ndarray) -> Any:
        """A copy on the device."""
        ...

    def zeros(self, shape: tuple[int, ...], dtype: Any) -> Any: ...

    def numpy(self, array: Any) -> np.ndarray:
        """A copy of a device array on the host; waits for what was launched."""
        ...

    def address(self, array: Any) -> int: ...

    def kernels(self, plan: Plan) -> Kernels:
        """A compiled plan."""
        ...


def current() -> Device | None:
    """The first GPU, or None where there is none or CuPy is not installed."""
    found = search()
    return None if isinstance(found, str) else found[0]


def alike() -> tuple[Device, ...]:
    """The first GPU and all others of its kind: another kind may round differently."""
    first, found = current(), search()
    if first is None:
        return ()
    if isinstance(found, str) or first not in found:
        return (first,)
    return tuple(each for each in found if (each.name, each.chip) == (first.name, first.chip))


@functools.cache
def search() -> tuple[Device, ...] | str:
    """Every GPU that is visible (CUDA_VISIBLE_DEVICES says which), or what keeps them from being used."""
    os.environ.setdefault("CUPY_CUDA_PER_THREAD_DEFAULT_STREAM", "1")  # threads train side by side; read on import
    spec = importlib.util.find_spec("cupy")
    if spec is None or spec.origin is None:  # a folder of that name is not CuPy
        return "CuPy is not installed"
    try:
        cupy = importlib.import_module("cupy")
        found = tuple(Gpu(cupy, number) for number in range(cupy.cuda.runtime.getDeviceCount()))
        return found or "CuPy finds no GPU"
    except Exception as error:  # CuPy has its own for a missing driver, and it differs between versions
        return f"CuPy finds no GPU: {in_a_line(error)}"


class Gpu:
    """One NVIDIA GPU, by CuPy; kernels are compiled when first used."""

    def __init__(self, cupy: Any, number: int) -> None:
        self._cupy = cupy
        self._number = number
        properties = cupy.cuda.runtime.getDeviceProperties(number)
        self.name = properties["name"].decode()
        self.chip = Chip(
            capability=(properties["major"], properties["minor"]),
            processors=properties["multiProcessorCount"],
            shared=properties["sharedMemPerBlockOptin"],
            memory=properties["totalGlobalMem"],
        )
        self._modules: dict[str, Any] = {}
        self._locks: collections.defaultdict[str, threading.Lock] = collections.defaultdict(threading.Lock)

    def use(self) -> None:
        self._cupy.cuda.Device(self._number).use()

    def array(self, values: np.ndarray) -> Any:
        return self._cupy.asarray(values)

    def zeros(self, shape: tuple[int, ...], dtype: Any) -> Any:
        return self._cupy.zeros(shape, dtype)

    def numpy(self, array: Any) -> np.ndarray:
        return self._cupy.asnumpy(array)

    def address(self, array: Any) -> int:
        return array.data.ptr

    def kernels(self, plan: Plan) -> Kernels:
        self.use()  # a thread that has launched nothing yet has no context
        train = self._module(plan.source).get_function("train")
        start = self._module(plan.start_source).get_function("start")
        if plan.shared > 48 * 1024:
            train.max_dynamic_shared_size_bytes = plan.shared
        driver = importlib.import_module("cupy.cuda").driver
        blocks = driver.occupancyMaxActiveBlocksPerMultiprocessor(train.kernel.ptr, plan.threads, plan.shared)

        def launch(function: Any, threads: int, shared: int) -> Launch:
            def launch(blocks: int, *arguments: Any) -> None:
                given = tuple(np.int32(a) if isinstance(a, int) else a for a in arguments)
                function((blocks,), (threads,), given, shared_mem=shared)

            return launch

        facts = {"registers": train.num_regs, "spilled bytes": train.local_size_bytes, "blocks": blocks}
        most = max(1, blocks) * self.chip.processors
        return Kernels(launch(train, plan.threads, plan.shared), launch(start, START_THREADS, 0), most, facts)

    def _module(self, source: str) -> Any:
        with self._locks[source]:  # threads that want the same wait for the first
            if source not in self._modules:
                module = self._cupy.RawModule(code=source, options=("--std=c++17",))
                module.compile()
                self._modules[source] = module
            return self._modules[source]
