"""The fused GPU engine: a warp, a block or a lane trains a network from its first step to its last, all on the chip.

The kernels (``kernels/*.cuh``, CUDA C++) are compiled for each program when it is first trained. They draw the inputs,
labels and noise of the other engines, bit for bit, and follow the same rules for updates, checks and screening.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from paritylab.engines import lanes
from paritylab.engines.configuration import Configuration
from paritylab.engines.interface import Pool
from paritylab.engines.warps import device
from paritylab.engines.warps.plan import H200, LEAST_CAPABILITY, MOST_EXAMPLES, MOST_INPUTS, Trace, in_passes, kernel_of
from paritylab.engines.warps.pool import WarpsPool as WarpsPool
from paritylab.engines.warps.spread import SpreadPool
from paritylab.engines.warps.tracer import WarpsTracer
from paritylab.engines.work import Queue
from paritylab.memory import Part
from paritylab.setups.problems import Outputs
from paritylab.setups.setup import Setup

__all__ = ["WarpsEngine", "WarpsPool", "absence", "available", "gpus", "label", "refusal"]


def absence() -> str | None:
    """Why there is no GPU to train on, or None if there is one."""
    gpu = device.current()
    if gpu is None:
        found = device.search()
        why = f": {found}" if isinstance(found, str) else ""
        return f"engine 'warps' needs an NVIDIA GPU and CuPy (pip install 'paritylab[gpu]'){why}"
    if gpu.chip.capability < LEAST_CAPABILITY:
        least, found = (".".join(map(str, each)) for each in (LEAST_CAPABILITY, gpu.chip.capability))
        return f"engine 'warps' needs a GPU of compute capability {least} or more, not {gpu.name} with {found}"
    return None


def available() -> bool:
    """Whether there is a GPU that the kernels run on, and CuPy to use it with."""
    return absence() is None


def gpus() -> int:
    """How many train."""
    return len(device.alike()) if available() else 0


def label() -> str:
    """The name under which this engine's Records are kept: another GPU may round differently."""
    gpu = device.current()
    return "warps_" + re.sub(r"\W+", "_", gpu.name if gpu else "none")


def refusal(setup: Setup) -> str | None:
    """Why the kernels cannot train this Setup, or None if they can."""
    if isinstance(getattr(setup.problem, "target", None), Outputs):
        return "it has no Outputs"
    if why := lanes.refusal(setup):
        return why
    network, n = setup.learner.network, setup.problem.n
    if setup.learner.optimiser.skip_satisfied:
        return "it has no skip_satisfied"
    if n > MOST_INPUTS:
        return f"it has at most {MOST_INPUTS} inputs, not {n}"
    configuration = Configuration.of(setup.program)
    if configuration.head_bias != configuration.bias:
        return "its MLPs have biases in all layers or in none"
    if in_passes(configuration):
        if configuration.sample > MOST_EXAMPLES:
            return f"it goes in passes through samples of at most {MOST_EXAMPLES} examples"
        if configuration.sample < configuration.batch and not configuration.short_last:
            return "it has no batches larger than the sample"
    gpu = device.current()
    if kernel_of(configuration, gpu.chip if gpu else H200) is None:
        return f"{type(network).__name__} at n = {n}, batch {setup.learner.batch} does not fit on the chip"
    return None


class WarpsEngine:
    """The engine as others see it."""

    name = "warps"
    arithmetic = 2
    """Version of its sums: one more where a change moves the last bits of records (engines/arithmetic.py)."""
    compiles = True
    side_by_side = True
    records_curves = True

    def absence(self) -> str | None:
        return absence()

    def refusal(self, setup: Setup) -> str | None:
        return refusal(setup)

    def first_choice(self) -> bool:
        return available()

    def label(self) -> str:
        return label()

    def parts(self, program: Setup, runs: int, threads: int | None) -> dict[str, Part]:
        return {}

    def pool(
        self, program: Setup, runs: int, threads: int | None = None, slots: int | None = None,
        keep_params: bool = False, **options: Any,
    ) -> Pool:
        devices = device.alike()
        if len(devices) > 1:
            return SpreadPool(program, slots or runs, keep_params, devices, **options)
        return WarpsPool(program, slots or runs, keep_params, **options)

    def tracer(
        self, queue: Queue, points: np.ndarray, train: bool, keep_params: bool, threads: int | None,
        stop: float | None = None,
    ) -> WarpsTracer:
        return WarpsTracer(queue.jobs[0].setup.program, len(queue), Trace(points, train, stop), keep_params)
