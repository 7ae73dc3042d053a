"""Sweeps: Setups in, Results out. Runs already in the store are not repeated; what ends is stored as it comes."""

from __future__ import annotations

import json
import operator
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from paritylab import crews, engines, statistics
from paritylab.errors import require
from paritylab.progress import Bar
from paritylab.records import SOLVED, Records
from paritylab.setup import Learner, Protocol, Setup
from paritylab.status import Announcement

if TYPE_CHECKING:
    from paritylab.store import Store

FLUSH_SECONDS = 2.0
FLUSH_RECORDS = 100_000


@dataclass(frozen=True)
class Result:
    """The Records of some runs of one Setup, and what they say."""

    setup: Setup
    engine: str
    seed: int
    records: Records
    seconds: float
    """Wall time of the sweep that completed these records; what came from the store cost nothing."""
    reused: int = 0
    """How many of the records came from the store."""

    @property
    def summary(self) -> statistics.Summary:
        return statistics.summary(self.records)

    @property
    def model_steps(self) -> int:
        """Updates that went into these records."""
        return int(self.records.steps.sum())

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain JSON values."""
        return {
            "setup_id": self.setup.id,
            "engine": self.engine,
            "seed": self.seed,
            "lr": self.setup.learner.optimiser.lr,
            **self.summary.to_dict(),
            "seconds": round(self.seconds, 3),
            "model_steps": self.model_steps,
        }

    def __str__(self) -> str:
        return str(self.summary)

    def plot(self) -> Any:
        """The survival curve: the fraction of runs not solved yet, against steps (a matplotlib Figure)."""
        from paritylab import plots

        problem = self.setup.problem
        return plots.survival_plot({f"n={problem.n}, k={problem.k}": self.records})


@dataclass
class _Collector:
    """The new Records of one job, and which of them are on disk."""

    job: engines.Job
    parts: list[Records] = field(default_factory=list)
    pending: list[Records] = field(default_factory=list)

    def add(self, records: Records) -> None:
        self.parts.append(records)
        self.pending.append(records)

    def flush(self, store: Store | None, engine: str) -> None:
        if store is not None and self.pending:
            setup, label = self.job.setup, engines.label(engine)
            store.append(setup.id, setup.to_json(), label, self.job.seed, Records.concatenate(self.pending))
        self.pending.clear()


def sweep(
    setups: Sequence[Setup],
    runs: int | range = 1000,
    seed: int = 0,
    engine: str = "auto",
    threads: int | None = None,
    store: Store | None = None,
    progress: bool | None = None,
    any_engine: bool = False,
) -> list[Result]:
    """Measure several Setups; those with one program (say, a grid of learning rates) train together.

    Args:
        setups: what to measure; Results come back in this order.
        runs: how many runs of each, or their numbers.
        seed: the root of all random numbers.
        engine: ``auto``, ``jax`` or ``lanes``.
        threads: cores for the native engine; all of them unless said.
        store: where Records are kept and looked up; None keeps nothing.
        progress: a bar on standard error; by default only on a terminal.
        any_engine: take another engine's records of a Setup where the store holds all runs asked for.
    """
    wanted = runs if isinstance(runs, range) else range(operator.index(runs))
    require(isinstance(runs, range) or runs >= 0, f"runs must be at least 0, not {runs}")
    require(len(wanted) <= 2**32, f"runs must be at most 2^32, not {len(wanted)}")
    require(len(wanted) == 0 or min(wanted) >= 0, "run numbers must be at least 0")
    numbers = np.asarray(wanted, np.int64)
    require(0 <= seed < 2**32, f"seed must be in 0..2^32-1, not {seed}")
    for setup in setups:
        setup.check()
    chosen = [engines.choose(setup, engine) for setup in setups]
    labels = [engines.label(name) for name in chosen]
    known = [_stored(store, setup, name, seed, numbers) for setup, name in zip(setups, labels, strict=True)]
    if store is not None and any_engine:
        for i, setup in enumerate(setups):
            labels[i], known[i] = _completest(store, setup, seed, numbers, labels[i], known[i])
    jobs = [
        engines.Job(setup, seed, np.setdiff1d(numbers, have.run)) for setup, have in zip(setups, known, strict=True)
    ]
    start = time.perf_counter()
    new: list[Records] = [Records.empty()] * len(jobs)
    title = "training" if len(setups) == 1 else f"training {len(setups)} setups"
    root = getattr(store, "root", None)  # a race's ledger has none
    busy = root is not None and any(len(job.runs) for job in jobs)
    told = [_told(job, name, wanted) for job, name in zip(jobs, labels, strict=True)] if busy else []
    with Bar(title, sum(len(job.runs) for job in jobs), progress) as bar, Announcement(root, told) as announcement:
        for group in _groups(jobs, chosen):
            announcement.train(group)
            members = [jobs[i] for i in group]
            for i, records in zip(group, _train(members, chosen[group[0]], threads, store, bar, new), strict=True):
                new[i] = records
    seconds = time.perf_counter() - start
    if store is not None:
        for job, name in zip(jobs, labels, strict=True):
            store.compact(job.setup.id, name, seed)
    results = []
    for setup, name, have, more in zip(setups, labels, known, new, strict=True):
        records = Records.concatenate([have, more])
        results.append(Result(setup, name, seed, records.take(np.argsort(records.run)), seconds, len(have)))
    return results


def measure(
    problem: Any,
    learner: Learner | None = None,
    protocol: Protocol | None = None,
    runs: int | range = 1000,
    **options: Any,
) -> Result:
    """Train many networks on a problem and report how long they took; ``options`` as in :func:`sweep`.

    >>> from paritylab import Parity, Protocol
    >>> result = measure(Parity(n=8, k=2), protocol=Protocol(eval_size=128), runs=20, engine="jax")
    >>> result.summary.solved
    20
    """
    setup = Setup(problem, learner or Learner(), protocol or Protocol())
    return sweep([setup], runs, **options)[0]


def _told(job: engines.Job, engine: str, runs: range) -> dict[str, Any]:
    """A job for those who look on."""
    return {"setup_id": job.setup.id, "setup": json.loads(job.setup.to_json()), "engine": engine, "seed": job.seed,
            "first": min(runs, default=0), "runs": len(runs)}  # fmt: skip


def _stored(store: Store | None, setup: Setup, engine: str, seed: int, numbers: np.ndarray) -> Records:
    if store is None:
        return Records.empty()
    records = store.records(setup.id, engine, seed)
    return records.take(np.isin(records.run, numbers))


def _completest(
    store: Store, setup: Setup, seed: int, numbers: np.ndarray, label: str, have: Records
) -> tuple[str, Records]:
    """The label and Records of an engine that has done all the runs, if there is one."""
    for other in store.engines(setup.id, seed):
        if len(have) < len(numbers) == len(records := _stored(store, setup, other, seed, numbers)):
            return other, records
    return label, have


def _groups(jobs: Sequence[engines.Job], chosen: Sequence[str]) -> Iterable[list[int]]:
    """Positions of the jobs that train together: one engine, one program."""
    groups: dict[Any, list[int]] = {}
    for i, (job, engine) in enumerate(zip(jobs, chosen, strict=True)):
        if len(job.runs):
            groups.setdefault((engine, job.setup.program), []).append(i)
    return groups.values()


def _train(
    jobs: Sequence[engines.Job],
    engine: str,
    threads: int | None,
    store: Store | None,
    bar: Bar,
    before: Sequence[Records],
) -> list[Records]:
    """Train one group; its Records reach the store every few seconds, and whatever happens at the end."""
    collectors = [_Collector(job) for job in jobs]
    done = sum(len(records) for records in before)
    solved = sum(int(np.sum(records.status == SOLVED)) for records in before)
    steps, start, flushed = 0, time.perf_counter(), time.perf_counter()
    try:
        helped = crews.current()
        for ended in (helped or engines).train(jobs, engine, threads):
            for index, records in ended:
                collectors[index].add(records)
                done += len(records)
                solved += int(np.sum(records.status == SOLVED))
                steps += int(records.steps.sum())
            now = time.perf_counter()
            bar.show(done, f"solved {solved}, {steps / (now - start):.2g} model-steps/s")
            waiting = sum(len(part) for collector in collectors for part in collector.pending)
            if now - flushed > FLUSH_SECONDS or waiting > FLUSH_RECORDS:
                for collector in collectors:
                    collector.flush(store, engine)
                flushed = now
    finally:
        for collector in collectors:
            collector.flush(store, engine)
    return [Records.concatenate(collector.parts) for collector in collectors]
