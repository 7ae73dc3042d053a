"""What engines are given and what they give back: Jobs in, Rows through the slots, Outcomes out."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import jax
import numpy as np

from paritylab import rng
from paritylab.errors import require
from paritylab.records import Records
from paritylab.setup import Setup


@dataclass(frozen=True)
class Job:
    """Some Runs, by number, of one Setup and seed."""

    setup: Setup
    seed: int
    runs: np.ndarray


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


ROW_FIELDS = tuple(f.name for f in fields(Rows))


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
            "mask": np.stack([s.problem.mask for s in setups]),
            "max_steps": np.array([s.protocol.max_steps for s in setups], np.int64),
        }
        self._seed = np.array([job.seed for job in jobs], np.int64)

    def __len__(self) -> int:
        return len(self._waiting)

    def take(self, count: int) -> Rows:
        """The next ``count`` runs, or what is left."""
        tags, self._waiting = self._waiting[:count], self._waiting[count:]
        job = self._job[tags]
        key = rng.run_keys(self._seed[job], self._run[tags])
        return Rows(tag=tags, key=key, **{name: values[job] for name, values in self._per_job.items()})

    def split(self, outcomes: Outcomes) -> list[tuple[int, Records]]:
        """Outcomes as (job number, Records with run numbers), one item for each job that has any."""
        records = outcomes.records
        job = self._job[records.run]
        parts = []
        for index in np.unique(job):
            part = records.take(job == index)
            parts.append((int(index), Records(self._run[part.run], *(getattr(part, f) for f in REST))))
        return parts


START_CHUNK = 4096
REST = tuple(f.name for f in fields(Records))[1:]


@functools.lru_cache(maxsize=64)
def starter(program: Setup) -> Any:
    """The compiled function from run keys (count, 2) to initial params with a leading axis of runs."""

    def start(key: Any) -> Any:
        return program.params(rng.stream(key, rng.INIT))

    return jax.jit(jax.vmap(start))


def initial_params(program: Setup, keys: np.ndarray) -> Any:
    """Initial params of the runs with these keys, as NumPy arrays: the same for every engine."""
    count = len(keys)
    chunk = min(START_CHUNK, 1 << max(count - 1, 0).bit_length())  # few distinct shapes, so few compilations
    padded = np.resize(keys, (-(-count // chunk) * chunk, 2))
    parts = [starter(program)(padded[i : i + chunk]) for i in range(0, len(padded), chunk)]
    return jax.tree.map(lambda *leaves: np.concatenate([np.asarray(leaf) for leaf in leaves])[:count], *parts)
