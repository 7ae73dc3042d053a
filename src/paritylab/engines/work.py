"""What engines are given and what they give back: Jobs in, Rows through the slots, Outcomes out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from paritylab import rng
from paritylab.errors import require
from paritylab.later import jax
from paritylab.setups.setup import Setup
from paritylab.storage.records import Records


@dataclass(frozen=True)
class Job:
    """Some Runs, by number, of one Setup and seed; each has the Setup's step limit unless it has one of its own."""

    setup: Setup
    seed: int
    runs: np.ndarray
    limits: np.ndarray | None = None

    def __post_init__(self) -> None:
        if len(self.runs):  # what is trained are the functions as they are now
            object.__setattr__(self, "setup", self.setup.now())
        require(0 <= self.seed < 2**32, f"seed must be in 0..2^32-1, not {self.seed}")


@dataclass(frozen=True)
class Rows:
    """Runs about to be trained, as columns: what each run carries by itself."""

    tag: np.ndarray
    key: np.ndarray
    lr: np.ndarray
    noise: np.ndarray
    flip: np.ndarray
    mask: np.ndarray
    max_steps: np.ndarray

    def __len__(self) -> int:
        return len(self.tag)


@dataclass(frozen=True)
class Outcomes:
    """Runs that ended: their tags, their Records (``run`` holds the tag) and, if kept, their final params."""

    records: Records
    params: Any = None


class Queue:
    """The runs still to be started. A run's tag is its position over all jobs."""

    def __init__(self, jobs: Sequence[Job]) -> None:
        require(len({job.setup.program for job in jobs}) <= 1, "jobs that train together must share one program")
        self.jobs = list(jobs)
        self._job = np.repeat(np.arange(len(jobs)), [len(job.runs) for job in jobs])
        self._run = np.concatenate([np.asarray(job.runs, np.int64) for job in jobs])
        self._waiting = np.arange(len(self._run))
        setups = [job.setup for job in jobs]
        self._per_job = {
            "lr": np.array([s.learner.optimiser.lr for s in setups], np.float32),
            "noise": np.array([s.learner.optimiser.noise for s in setups], np.float32),
            "flip": np.array([s.problem.flip for s in setups], np.uint32),
        }
        limits = [np.full(len(job.runs), job.setup.protocol.max_steps) if job.limits is None else job.limits
                  for job in jobs]
        self._max_steps = np.concatenate([np.asarray(each, np.int64) for each in limits])
        self._seed = np.array([job.seed for job in jobs], np.int64)

    def __len__(self) -> int:
        return len(self._waiting)

    def take(self, count: int) -> Rows:
        """The next ``count`` runs, or what is left."""
        tags, self._waiting = self._waiting[:count], self._waiting[count:]
        job = self._job[tags]
        key = rng.run_keys(self._seed[job], self._run[tags])
        mask = np.zeros((len(tags), self.jobs[0].setup.problem.words), np.uint32)
        for i in np.unique(job):
            mask[job == i] = self.jobs[i].setup.problem.masks(key[job == i])
        carried = {name: values[job] for name, values in self._per_job.items()}
        return Rows(tag=tags, key=key, mask=mask, max_steps=self._max_steps[tags], **carried)

    def named(self, records: Records) -> Records:
        """Records with run numbers in place of tags."""
        return replace(records, run=self._run[records.run])

    def split(self, outcomes: Outcomes) -> list[tuple[int, Outcomes]]:
        """Outcomes as (job number, Outcomes with run numbers), one item for each job that has any."""
        job = self._job[outcomes.records.run]
        parts = [(int(i), job == i) for i in np.flatnonzero(np.bincount(job))]
        return [(i, Outcomes(self.named(outcomes.records.take(mine)), _taken(outcomes.params, mine)))
                for i, mine in parts]


def _taken(params: Any, mine: np.ndarray) -> Any:
    return None if params is None else jax.tree.map(lambda leaf: np.asarray(leaf)[mine], params)
