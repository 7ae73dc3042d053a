"""Engines: train many Runs at once. ``train`` is the one way in."""

from __future__ import annotations

import queue
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from paritylab.engines import backend, loop, registry, warps
from paritylab.engines.interface import Pool
from paritylab.engines.registry import AUTO, named, names
from paritylab.engines.registry import EngineNotice as EngineNotice
from paritylab.engines.registry import engines as registered
from paritylab.engines.room import require_room_for
from paritylab.engines.work import Job as Job
from paritylab.engines.work import Outcomes, Queue
from paritylab.errors import CellFailed, InvalidInput, in_a_line, require
from paritylab.later import jax
from paritylab.memory import TooLarge
from paritylab.setups.setup import Setup
from paritylab.storage.records import Records

Keep = Callable[[int, Outcomes], object]
AT_ONCE = 16
"""Programs that are trained side by side on each GPU."""


def choose(setup: Setup, engine: str = "auto", curves: bool = False) -> str:
    """The engine that will train this Setup: the one asked for, or the fastest of those that can.

    Training ``curves`` are not recorded by every engine.

    >>> from paritylab.setups.problems import Parity
    >>> choose(Setup(Parity(n=30, k=3)), "jax")
    'jax'
    """
    if engine == AUTO:
        return _fastest(setup, curves)
    found = named(engine)
    require(not curves or found.records_curves, f"engine {engine!r} records no curves; use 'jax' or 'auto'")
    if absence := found.absence():
        there = [name for name in names() if name == AUTO or named(name).absence() is None]
        raise InvalidInput(f"{absence}; allowed here: {', '.join(there)}")
    if why_not := found.refusal(setup):
        raise InvalidInput(f"engine {engine!r} cannot train this: {why_not}; use 'jax' or 'auto'")
    return found.name


def _fastest(setup: Setup, curves: bool) -> str:
    for name, engine in registered().items():
        if not engine.first_choice() or (curves and not engine.records_curves) or engine.refusal(setup):
            continue
        if absence := engine.absence():
            warnings.warn(f"{absence}; using 'jax', about ten times slower here", EngineNotice, stacklevel=3)
            continue
        return name
    raise InvalidInput("no engine can train this")  # not reached: 'jax' refuses nothing


def on_gpu() -> bool:
    """Whether networks that are too large for a CPU, or too many, can be trained here."""
    return warps.available() or not backend.is_cpu()


def at_once() -> int:
    """How many programs should be trained side by side here."""
    return AT_ONCE * max(1, warps.gpus()) if on_gpu() else 1


def label(engine: str) -> str:
    """The name under which an engine's Records are kept: another device rounds differently.

    >>> label("lanes")
    'lanes_2'
    """
    return registry.label(named(engine))


def compiles(engine: str) -> bool:
    """Whether an engine compiles a program before it trains."""
    return getattr(named(engine), "compiles", False)


def known(engine: str) -> str:
    """The name under which its curves and params are kept, of any device, with the version of its arithmetic.

    >>> known("jax")
    'jax_2'
    """
    return registry.known(named(engine))


def choices(setups: Sequence[Setup], engine: str = "auto") -> list[tuple[str, str]]:
    """For each Setup the engine that will train it, and the name of its Records."""
    chosen = [choose(setup, engine) for setup in setups]
    return [(name, label(name)) for name in chosen]


def make_pool(queue: Queue, engine: str, threads: int | None = None, slots: int | None = None, **options: Any) -> Pool:
    """Slots for the runs of a queue, on a chosen engine."""
    program, found = queue.jobs[0].setup.program, named(engine)
    require_room_for(found, program, len(queue), threads)
    return found.pool(program, len(queue), threads, slots, **options)


def train(
    jobs: Sequence[Job],
    engine: str = "auto",
    threads: int | None = None,
    slots: int | None = None,
    keep: Keep | None = None,
) -> Iterator[list[tuple[int, Records]]]:
    """Train all runs of jobs that share one program; yields, a few times a second, what has ended since.

    Each item is a list of (job number, Records). Closing the iterator ends the training. ``keep`` is told of each job
    number the Outcomes too, with final params, before they are yielded.
    """
    queue = Queue(jobs)
    if len(queue) == 0:
        return
    options = {} if keep is None else {"keep_params": True}
    pool = make_pool(queue, choose(jobs[0].setup, engine), threads, slots, **options)
    for outcomes in loop.train(queue, pool):
        parts = queue.split(outcomes)
        if keep is not None:
            for i, part in parts:
                keep(i, part)
        yield [(i, part.records) for i, part in parts]


def together(jobs: Sequence[Job]) -> list[list[int]]:
    """The positions of jobs with runs to do, those that share a program side by side."""
    groups: dict[Setup, list[int]] = {}
    for i, job in enumerate(jobs):
        if len(job.runs):
            groups.setdefault(job.setup.program, []).append(i)
    return list(groups.values())


def attempt(
    jobs: Sequence[Job], engine: str = "auto", threads: int | None = None, keep: Keep | None = None
) -> Iterator[Sequence[tuple[int, Records | CellFailed]]]:
    """As :func:`train`; if the jobs cannot be trained, each has that as its last item, in place of an exception.

    With an engine that trains programs side by side the jobs may be of several, and ``keep`` is called in threads.
    """
    if engine != AUTO and named(engine).side_by_side and len(groups := together(jobs)) > 1:
        yield from _side_by_side(jobs, groups, engine, keep)
        return
    setup = jobs[0].setup
    try:
        yield from train(jobs, engine, threads) if keep is None else train(jobs, engine, threads, keep=keep)
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
    jobs: Sequence[Job], groups: Sequence[list[int]], engine: str, keep: Keep | None
) -> Iterator[Sequence[tuple[int, Records | CellFailed]]]:
    """Train programs in threads, several at a time: a small one leaves most of a GPU idle, and compiling takes long."""
    found: queue.SimpleQueue[Any] = queue.SimpleQueue()
    stopped = threading.Event()

    def work(group: list[int]) -> None:
        def keep_mine(i: int, part: Outcomes) -> None:
            assert keep is not None
            keep(group[i], part)

        try:
            for ended in attempt([jobs[i] for i in group], engine, keep=keep_mine if keep else None):
                found.put([(group[i], records) for i, records in ended])
                if stopped.is_set():
                    return
            found.put(None)
        except BaseException as error:  # for whoever asked
            found.put(error)

    with ThreadPoolExecutor(AT_ONCE * max(1, warps.gpus())) as threads:
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


def final_params(
    jobs: Sequence[Job], engine: str = "auto", show: Callable[[int], object] = lambda steps: None, **options: Any
) -> tuple[Records, Any]:
    """Train all runs and return their Records and final params, in order of jobs and runs.

    ``show`` is told, a few times a second, the updates done so far.
    """
    queue = Queue(jobs)
    pool = make_pool(queue, choose(jobs[0].setup, engine), keep_params=True, **options)
    parts: list[Outcomes] = []
    for part in loop.train(queue, pool):
        show(pool.model_steps)
        if len(part.records):
            parts.append(part)
    records = Records.concatenate([part.records for part in parts])
    order = records.run.argsort()
    params = jax.tree.map(lambda *leaves: np.concatenate(leaves)[order], *(p.params for p in parts))
    return queue.named(records.take(order)), params
