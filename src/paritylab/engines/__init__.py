"""Engines: train many Runs at once. ``train`` is the one way in."""

from __future__ import annotations

import os
import queue
import re
import threading
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax
import numpy as np

from paritylab.engines import lanes, loop, warps
from paritylab.engines.jax_engine import JaxPool, default_slots
from paritylab.engines.room import require_room_for
from paritylab.engines.work import Job as Job
from paritylab.engines.work import Outcomes, Queue
from paritylab.errors import CellFailed, InvalidInput, in_a_line, require, unknown
from paritylab.memory import TooLarge
from paritylab.setups.setup import Setup
from paritylab.storage.records import Records

ENGINES = ("auto", "jax", "lanes", "warps")
AT_ONCE = 16
"""Programs that are trained side by side on a GPU."""


class EngineNotice(UserWarning):
    """Something about the choice of engine that a user would want to know."""


def choose(setup: Setup, engine: str = "auto", curves: bool = False) -> str:
    """The engine that will train this Setup: the one asked for, or the fastest of those that can.

    Training ``curves`` are not recorded by every engine.

    >>> from paritylab.setups.problems import Parity
    >>> choose(Setup(Parity(n=30, k=3)), "jax")
    'jax'
    """
    if engine not in ENGINES:
        raise unknown("engine", engine, ENGINES)
    if engine == "jax":
        return engine
    if engine == "warps":
        require(not curves, "engine 'warps' records no curves; use 'jax' or 'auto'")
        _require_warps(setup)
        return engine
    if engine == "auto" and not curves and warps.available() and warps.refusal(setup) is None:
        return "warps"
    why_not = lanes.refusal(setup)
    if engine == "auto" and (why_not or jax.default_backend() != "cpu"):
        return "jax"
    if lanes.kernel() is None:
        missing = "the native engine 'lanes' is not installed (it takes GCC 12 or Clang, and no Windows)"
        if engine == "lanes":
            raise InvalidInput(f"{missing}; allowed here: auto, jax")
        warnings.warn(f"{missing}; using 'jax', about ten times slower here", EngineNotice, stacklevel=2)
        return "jax"
    if why_not:
        raise InvalidInput(f"engine 'lanes' cannot train this: {why_not}; use 'jax' or 'auto'")
    return "lanes"


def _require_warps(setup: Setup) -> None:
    if not warps.available():
        raise InvalidInput("engine 'warps' needs an NVIDIA GPU and CuPy (pip install 'paritylab[gpu]'); use 'auto'")
    if why_not := warps.refusal(setup):
        raise InvalidInput(f"engine 'warps' cannot train this: {why_not}; use 'jax' or 'auto'")


def on_gpu() -> bool:
    """Whether networks that are too large for a CPU, or too many, can be trained here."""
    return warps.available() or jax.default_backend() != "cpu"


def label(engine: str) -> str:
    """The name under which an engine's Records are kept: another device rounds differently.

    >>> label("lanes")
    'lanes'
    """
    if engine == "warps":
        return warps.label()
    if engine != "jax" or jax.default_backend() == "cpu":
        return engine
    return "jax_" + re.sub(r"\W+", "_", jax.devices()[0].device_kind)


def choices(setups: Sequence[Setup], engine: str = "auto") -> list[tuple[str, str]]:
    """For each Setup the engine that will train it, and the name of its Records."""
    chosen = [choose(setup, engine) for setup in setups]
    return [(name, label(name)) for name in chosen]


def make_pool(queue: Queue, engine: str, threads: int | None = None, slots: int | None = None, **options: Any) -> Any:
    """Slots for the runs of a queue, on a chosen engine ('jax', 'lanes' or 'warps')."""
    program = queue.jobs[0].setup.program
    require_room_for(program, engine, len(queue), threads)
    if engine == "jax":
        return JaxPool(program, slots or default_slots(program, len(queue)), **options)
    if engine == "warps":
        return warps.WarpsPool(program, slots or len(queue), **options)
    return lanes.LanesPool(program, threads or os.cpu_count() or 1, **options)


def train(
    jobs: Sequence[Job],
    engine: str = "auto",
    threads: int | None = None,
    slots: int | None = None,
) -> Iterator[list[tuple[int, Records]]]:
    """Train all runs of jobs that share one program; yields, a few times a second, what has ended since.

    Each item is a list of (job number, Records). Closing the iterator ends the training.
    """
    queue = Queue(jobs)
    if len(queue) == 0:
        return
    pool = make_pool(queue, choose(jobs[0].setup, engine), threads, slots)
    for outcomes in loop.train(queue, pool):
        yield queue.split(outcomes)


def together(jobs: Sequence[Job]) -> list[list[int]]:
    """The positions of jobs with runs to do, those that share a program side by side."""
    groups: dict[Setup, list[int]] = {}
    for i, job in enumerate(jobs):
        if len(job.runs):
            groups.setdefault(job.setup.program, []).append(i)
    return list(groups.values())


def attempt(
    jobs: Sequence[Job], engine: str = "auto", threads: int | None = None
) -> Iterator[Sequence[tuple[int, Records | CellFailed]]]:
    """As :func:`train`; if the jobs cannot be trained, each has that as its last item, in place of an exception.

    On a GPU with ``warps`` the jobs may be of several programs.
    """
    if engine == "warps" and len(groups := together(jobs)) > 1:
        yield from _side_by_side(jobs, groups)
        return
    setup = jobs[0].setup
    try:
        yield from train(jobs, engine, threads)
    except Exception as error:
        if isinstance(error, TooLarge):
            why = str(error)
        elif isinstance(error, MemoryError) or "RESOURCE_EXHAUSTED" in str(error):
            network, n, batch = type(setup.learner.network).__name__, setup.problem.n, setup.learner.batch
            why = f"{network} at n = {n}, batch {batch} needs more memory than there is; use a smaller network or batch"
        elif setup.functions and not isinstance(error, InvalidInput):
            why = f"{' or '.join(setup.functions)} failed: {in_a_line(error)}"
        else:
            raise
        yield [(i, CellFailed(why)) for i in range(len(jobs))]


def _side_by_side(
    jobs: Sequence[Job], groups: Sequence[list[int]]
) -> Iterator[Sequence[tuple[int, Records | CellFailed]]]:
    """Train programs in threads, several at a time: a small one leaves most of a GPU idle, and compiling takes long."""
    found: queue.SimpleQueue[Any] = queue.SimpleQueue()
    stopped = threading.Event()

    def work(group: list[int]) -> None:
        try:
            for ended in attempt([jobs[i] for i in group], "warps"):
                found.put([(group[i], records) for i, records in ended])
                if stopped.is_set():
                    return
            found.put(None)
        except BaseException as error:  # for whoever asked
            found.put(error)

    with ThreadPoolExecutor(AT_ONCE) as threads:
        try:
            for group in groups:
                threads.submit(work, group)
            left = len(groups)
            while left:
                item = found.get()
                if isinstance(item, BaseException):
                    raise item
                if item is None:
                    left -= 1
                else:
                    yield item
        finally:
            stopped.set()
            threads.shutdown(cancel_futures=True)


def final_params(jobs: Sequence[Job], engine: str = "auto", **options: Any) -> tuple[Records, Any]:
    """Train all runs and return their Records and final params, in order of jobs and runs."""
    queue = Queue(jobs)
    pool = make_pool(queue, choose(jobs[0].setup, engine), keep_params=True, **options)
    parts: list[Outcomes] = [part for part in loop.train(queue, pool) if len(part.records)]
    records = Records.concatenate([part.records for part in parts])
    order = records.run.argsort()
    params = jax.tree.map(lambda *leaves: np.concatenate(leaves)[order], *(p.params for p in parts))
    return queue.named(records.take(order)), params
