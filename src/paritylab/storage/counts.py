"""Counts: how many runs were solved at each step. What is kept of runs when there are too many Records to keep."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from paritylab.errors import InvalidInput, require
from paritylab.setups.setup import Setup
from paritylab.storage.kept import load_arrays, save_arrays
from paritylab.storage.records import CENSORED, DIVERGED, SOLVED, Records

NUMBERS = ("censored", "diverged", "steps")


@dataclass(frozen=True)
class Counts:
    """``solved`` runs at each of the steps ``t_c``, which increase; ``steps`` updates in all.

    All runs have one step limit, that of their Setup: those that are not solved by then count as infinite.

    >>> records = Records([0, 1, 2, 3], [0, 0, 1, 0], [20, 10, -1, 20], [20, 10, 50, 20], [1] * 4, [0] * 4)
    >>> counts = Counts.of(records)
    >>> counts.t_c.tolist(), counts.solved.tolist(), counts.censored, counts.runs
    ([10, 20], [1, 2], 1, 4)
    """

    t_c: np.ndarray
    solved: np.ndarray
    censored: int = 0
    diverged: int = 0
    steps: int = 0

    @property
    def runs(self) -> int:
        return int(self.solved.sum()) + self.censored + self.diverged

    @classmethod
    def of(cls, records: Records) -> Counts:
        t_c, solved = np.unique(records.t_c[records.status == SOLVED], return_counts=True)
        censored, diverged = (int(np.sum(records.status == status)) for status in (CENSORED, DIVERGED))
        return cls(t_c, solved, censored, diverged, int(records.steps.sum()))

    @classmethod
    def sum(cls, parts: Iterable[Counts]) -> Counts:
        """The counts of disjoint runs together."""
        parts = [cls(np.empty(0, np.int64), np.empty(0, np.int64)), *parts]
        t_c, where = np.unique(np.concatenate([part.t_c for part in parts]), return_inverse=True)
        solved = np.bincount(where, np.concatenate([part.solved for part in parts]), len(t_c)).astype(np.int64)
        return cls(t_c, solved, *(sum(getattr(part, name) for part in parts) for name in NUMBERS))

    def times(self) -> np.ndarray:
        """Every solved run's t_c in increasing order, closed by one ``inf`` for those unsolved."""
        return np.append(np.repeat(self.t_c.astype(float), self.solved), np.inf)


@dataclass(frozen=True)
class CountTask:
    """Runs ``first`` .. ``first + runs - 1`` of a Setup, to be counted."""

    setup: Setup
    seed: int
    first: int
    runs: int

    @property
    def name(self) -> str:
        return f"counts-{self.setup.id}-{self.seed}-{self.first}-{self.runs}"

    def path(self, directory: Path) -> Path:
        """The file that keeps its counts."""
        return directory / f"{self.name}.npz"


@dataclass(frozen=True)
class Counted:
    """A task that was done: by which engine, and from when to when (seconds since 1970)."""

    task: CountTask
    counts: Counts
    engine: str
    began: float
    ended: float

    def save(self, directory: Path) -> None:
        """Keep it as the file that its task names."""
        task, counts = self.task, self.counts
        arrays: dict[str, Any] = {
            "setup": task.setup.to_json(), "seed": task.seed, "first": task.first, "runs": task.runs,
            "engine": self.engine, "began": self.began, "ended": self.ended, "t_c": counts.t_c, "solved": counts.solved,
            **{name: getattr(counts, name) for name in NUMBERS},
        }
        save_arrays(task.path(directory), {name: np.asarray(value) for name, value in arrays.items()})

    @classmethod
    def load(cls, path: Path) -> Counted:
        """What ``save`` wrote; InvalidInput if it is damaged."""
        file = load_arrays(path)
        try:
            task = CountTask(Setup.from_json(str(file["setup"])), *(int(file[n]) for n in ("seed", "first", "runs")))
            counts = Counts(file["t_c"], file["solved"], *(int(file[name]) for name in NUMBERS))
            require(task.path(path.parent) == path and counts.runs == task.runs, "they are those of other runs")
            return cls(task, counts, str(file["engine"]), float(file["began"]), float(file["ended"]))
        except (ValueError, KeyError, TypeError) as error:
            raise InvalidInput(f"{path} does not hold counts: {error}") from error


def wall_seconds(counted: Sequence[Counted]) -> float:
    """How long something was under way: tasks done at the same time count once.

    >>> task = Counts(np.array([]), np.array([]))
    >>> wall_seconds([Counted(None, task, "", *times) for times in ((0, 3), (2, 4), (9, 10))])
    5.0
    """
    total, until = 0.0, -np.inf
    for began, ended in sorted((each.began, each.ended) for each in counted):
        total += max(0.0, ended - max(began, until))
        until = max(until, ended)
    return float(total)
