"""Sweeps: Setups in, Results out. Runs already in the store are not repeated; what ends is stored as it comes."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from paritylab import engines
from paritylab.callbacks import Callback, Heard, heard
from paritylab.engines import lanes
from paritylab.errors import CellFailed, require, whole
from paritylab.memory import Part, require_room
from paritylab.progress import COMPILING, Bar
from paritylab.running import crews
from paritylab.running.cost import estimate
from paritylab.running.interfaces import RecordStore, Trainer, check_store
from paritylab.running.known import look_up
from paritylab.running.result import Result as Result
from paritylab.running.results import Results
from paritylab.setups import identity
from paritylab.setups.problems import AnyProblem
from paritylab.setups.setup import Learner, Protocol, Setup
from paritylab.storage.kept import NETWORKS
from paritylab.storage.records import SOLVED, Records
from paritylab.storage.status import Announcement
from paritylab.trained import regenerating
from paritylab.trained.kept import Keeper, KeptNetworks

FLUSH_SECONDS = 2.0
FLUSH_RECORDS = 100_000
FLUSHES = 64
"""After so many the store is compacted: it never has many more blocks."""
RUN_BYTES = 265
"""What a run takes at the peak of a sweep; 82 of them are its Record, and stay (docs/explanation/reliability.md)."""


@dataclass
class _Collector:
    """The new Records of one job, and which of them are on disk."""

    job: engines.Job
    label: str
    failure: str | None
    parts: list[Records] = field(default_factory=list[Records])
    pending: list[Records] = field(default_factory=list[Records])

    def add(self, records: Records | CellFailed) -> None:
        if isinstance(records, CellFailed):
            self.failure = str(records)
            return
        self.parts.append(records)
        self.pending.append(records)

    def waiting(self) -> tuple[str, str, str, int, Records]:
        """What is to be stored."""
        setup = self.job.setup
        return setup.id, setup.to_json(), self.label, self.job.seed, Records.concatenate(self.pending)


def sweep(
    setups: Sequence[Setup],
    runs: int | range = 1000,
    *,
    seed: int = 0,
    engine: str = "auto",
    threads: int | None = None,
    store: RecordStore | None = None,
    progress: bool | None = None,
    any_engine: bool = False,
    any_arithmetic: bool = False,
    keep: str | None = None,
    callbacks: Sequence[Callback] = (),
) -> Results:
    """Measure several Setups; those with one program (say, a grid of learning rates) train together.

    Args:
        setups: what to measure, such as ``pl.grid(...)``; Results come back in this order, and ``to_frame()`` is a
            table of them.
        runs: how many runs of each, or their numbers.
        seed: the root of all random numbers.
        engine: ``auto``, ``jax``, ``lanes`` or ``warps``.
        threads: cores for the native engine; all of them unless said.
        store: where Records are kept and looked up; None keeps nothing.
        progress: a bar on standard error; by default only on a terminal.
        any_engine: take another engine's records of a Setup where the store holds all runs asked for.
        any_arithmetic: use stored runs of earlier versions of the engine's arithmetic too, and do not train them again.
        keep: ``weights`` keeps the networks at the end of their runs, beside the records, for :meth:`Result.networks`.
        callbacks: those who are told how it goes on, such as ``[pl.callbacks.TensorBoard("logs")]``.
    """
    wanted = run_numbers(runs, len(setups))
    numbers = np.arange(wanted.start, wanted.stop, wanted.step, dtype=np.int64)
    seed = whole("seed", seed)
    require(0 <= seed < 2**32, f"seed must be in 0..2^32-1, not {seed}")
    check_store(store)
    setups = identity.traced(setups)
    kept, trainer = _keeping(keep, store), crews.trainer()
    if keep is not None:
        require(trainer is engines, "keep='weights' is for networks that are trained here, not by a crew")
        kept.expect(setups, len(numbers))
        trainer = Keeper(kept)
    chosen = _choices(trainer, setups, engine)
    known = look_up(store, setups, [label for _, label in chosen], seed, wanted, any_engine, any_arithmetic)
    missing = [numbers[:0] if len(have.records) == len(numbers) else np.setdiff1d(numbers, have.records.run)
               for have in known]
    failures = _failures(setups, missing)
    if len(setups) == 1 and failures[0]:
        raise CellFailed(failures[0])
    missing = [left[:0] if failure else left for left, failure in zip(missing, failures, strict=True)]
    work = [_Collector(engines.Job(setup, seed, left), have.label, failure)
            for setup, left, have, failure in zip(setups, missing, known, failures, strict=True)]
    start = time.perf_counter()
    title = "training" if len(setups) == 1 else f"training {len(setups)} setups"
    root = None if store is None else store.root
    busy = root is not None and any(len(each.job.runs) for each in work)
    told = [_told(each.job, each.label, wanted) for each in work] if busy else []
    left = sum(len(each.job.runs) for each in work)
    with heard(callbacks, setups, left) as listeners:
        with Bar(title, left, progress) as bar, Announcement(root, told) as announcement:
            if said := estimate([each.job for each in work if len(each.job.runs)]):
                bar.announce(said)
            counter = _Counter(bar, announcement, listeners)
            for group in _groups([each.job for each in work], [name for name, _ in chosen], crews.current() is None):
                announcement.train(group)
                members = {i: work[i] for i in group}
                if engines.compiles(chosen[group[0]][0]):
                    bar.wait(COMPILING)
                _train(members, trainer, chosen[group[0]][0], threads, store, counter)
        seconds = time.perf_counter() - start
        if store is not None and any(each.parts for each in work):
            store.compact()
        results = Results()
        for each, have in zip(work, known, strict=True):
            if each.failure is not None and len(work) > 1:
                warnings.warn(each.failure, CellFailed, stacklevel=2)
            records = have.records  # the store sorts
            if each.parts:
                records = Records.concatenate([records, *each.parts]).ordered()
            results.append(Result(each.job.setup, each.label, seed, records, seconds, len(have.records), each.failure,
                                  kept, have.earlier))
            if keep is not None and len(records):
                regenerating.complete(results[-1].measured, threads, progress)
        if len(results) == 1 and results[0].failure:
            raise CellFailed(results[0].failure)
        listeners.outcome = results
    return results


def run_numbers(runs: int | range, setups: int = 1) -> range:
    """The numbers of the runs that a user asks for, all or by how many; refused if the Records would not fit."""
    wanted = runs if isinstance(runs, range) else range(whole("runs", runs))
    require(isinstance(runs, range) or wanted.stop >= 0, f"runs must be at least 0, not {runs}")
    require(not wanted[2**32 :], f"runs must be at most 2^32, not {runs}")
    require(len(wanted) == 0 or min(wanted[0], wanted[-1]) >= 0, "run numbers must be at least 0")
    each = "runs" if setups == 1 else f"runs of each of {setups} Setups"
    require_room("this sweep", {each: Part(len(wanted), RUN_BYTES * setups)})
    return wanted


def measure(
    problem: AnyProblem,
    learner: Learner | None = None,
    protocol: Protocol | None = None,
    runs: int | range = 1000,
    *,
    seed: int = 0,
    engine: str = "auto",
    threads: int | None = None,
    store: RecordStore | None = None,
    progress: bool | None = None,
    any_arithmetic: bool = False,
    keep: str | None = None,
    callbacks: Sequence[Callback] = (),
) -> Result:
    """Train many networks on a problem and report how long they took.

    Args:
        problem: what is learned, such as ``Parity(n=30, k=3)``.
        learner: what learns and how; a ReLU network of width 10 and SGD unless said.
        protocol: how a run is judged, and when it is given up.
        runs: how many networks, or the numbers of the runs.
        seed: the root of all random numbers.
        engine: ``auto`` (the fastest that can), ``jax``, ``lanes`` or ``warps``.
        threads: cores for the native engine; all of them unless said.
        store: where Records are kept and looked up; None keeps nothing.
        progress: a bar on standard error; by default only on a terminal.
        any_arithmetic: use stored runs of earlier versions of the engine's arithmetic too, and do not train them again.
        keep: ``weights`` keeps the networks at the end of their runs, beside the records, for :meth:`Result.networks`.
        callbacks: those who are told how it goes on, such as ``[pl.callbacks.TensorBoard("logs")]``.

    >>> from paritylab import Parity, Protocol
    >>> result = measure(Parity(n=8, k=2), protocol=Protocol(eval_size=128), runs=20, engine="jax")
    >>> result.summary.solved
    20
    """
    setup = Setup(problem, learner or Learner(), protocol or Protocol())
    return sweep([setup], runs, seed=seed, engine=engine, threads=threads, store=store, progress=progress,
                 any_arithmetic=any_arithmetic, keep=keep, callbacks=callbacks)[0]


def _keeping(keep: str | None, store: RecordStore | None) -> KeptNetworks:
    """Where networks are kept: in a folder of the store, or with the Result."""
    require(keep in (None, "weights"), f"keep must be 'weights' or None, not {keep!r}")
    return KeptNetworks(None if store is None or store.root is None else store.root / NETWORKS)


def _choices(trainer: Trainer, setups: Sequence[Setup], engine: str) -> list[tuple[str, str]]:
    """The engine of each Setup and the name of its Records; what fails need not be sent anywhere."""
    chosen = iter(trainer.choices([setup for setup in setups if not setup.failure], engine))
    return [engines.choices([setup], engine)[0] if setup.failure else next(chosen) for setup in setups]


def _failures(setups: Sequence[Setup], missing: Sequence[np.ndarray]) -> list[str | None]:
    """What is wrong with the functions of each Setup that has runs to do; all others are tried, or refused."""
    tried = {setup.program: setup for setup, left in zip(setups, missing, strict=True)
             if len(left) and not setup.functions}
    crews.in_parts(_checked, list(tried.values()))
    return [setup.failure or None if len(left) else None for setup, left in zip(setups, missing, strict=True)]


def _checked(setups: Sequence[Setup]) -> list[None]:
    return [None if lanes.fits(setup) else setup.check() for setup in setups]


def _told(job: engines.Job, engine: str, runs: range) -> dict[str, Any]:
    """A job for those who look on."""
    return {"setup_id": job.setup.id, "setup": job.setup.to_json(), "engine": engine, "seed": job.seed,
            "first": min(runs[:1], default=0), "runs": len(runs), "known": len(runs) - len(job.runs)}


def _groups(jobs: Sequence[engines.Job], chosen: Sequence[str], here: bool) -> Iterable[list[int]]:
    """Positions of the jobs that are trained at a time: one program each, unless several can be side by side."""
    for engine in sorted(set(chosen)):
        mine = [i for i, (job, name) in enumerate(zip(jobs, chosen, strict=True)) if name == engine and len(job.runs)]
        if here and not engines.named(engine).side_by_side:
            yield from ([mine[i] for i in group] for group in engines.together([jobs[i] for i in mine]))
        elif mine:
            yield mine


@dataclass
class _Counter:
    """What the bar, those who look on and callbacks are told of a sweep."""

    bar: Bar
    announcement: Announcement
    listeners: Heard
    done: int = 0
    solved: int = 0
    steps: int = 0
    start: float = field(default_factory=time.perf_counter)

    def add(self, position: int, setup: Setup, records: Records) -> None:
        self.listeners.tell("on_records", setup, records)
        solved = int(np.sum(records.status == SOLVED))
        self.announcement.count(position, len(records), solved)
        self.done += len(records)
        self.solved += solved
        self.steps += int(records.steps.sum())

    def show(self, now: float) -> None:
        self.bar.show(self.done, f"solved {self.solved}, {self.steps / (now - self.start):.2g} model-steps/s")


def _train(
    work: dict[int, _Collector],
    trainer: Trainer,
    engine: str,
    threads: int | None,
    store: RecordStore | None,
    counter: _Counter,
) -> None:
    """Train one group; its Records reach the store every few seconds, and whatever happens at the end."""
    flushed, waiting, positions, flushes = time.perf_counter(), 0, list(work), 0

    def flush() -> None:
        pending = [each for each in work.values() if each.pending]
        if store is not None and pending:
            store.extend([each.waiting() for each in pending])
        for each in pending:
            each.pending.clear()

    try:
        for ended in trainer.attempt([each.job for each in work.values()], engine, threads):
            for index, records in ended:
                work[positions[index]].add(records)
                if isinstance(records, Records):
                    counter.add(positions[index], work[positions[index]].job.setup, records)
                    waiting += len(records)
            now = time.perf_counter()
            counter.show(now)
            if now - flushed > FLUSH_SECONDS or waiting > FLUSH_RECORDS:
                flush()
                counter.announcement.tell()
                flushed, waiting, flushes = now, 0, flushes + 1
                if store is not None and flushes % FLUSHES == 0:
                    store.compact()
    finally:
        flush()
