"""Records: how Runs ended, as columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from paritylab.notebooks import table
from paritylab.storage.kept import digest_of_arrays

STATUSES = ("solved", "censored", "diverged")
SOLVED, CENSORED, DIVERGED = range(3)
SHOWN = 5
"""So many Records are written out in a notebook."""


@dataclass(frozen=True)
class Records:
    """The outcomes of many Runs of one Setup, one row each.

    ``status`` indexes :data:`STATUSES`; ``t_c`` is the number of steps to convergence, -1 for a run that was not
    solved; ``steps`` is the number of updates done when the run ended; ``accuracy`` and ``loss`` were measured
    then, on the run's evaluation sample.
    """

    run: np.ndarray
    status: np.ndarray
    t_c: np.ndarray
    steps: np.ndarray
    accuracy: np.ndarray
    loss: np.ndarray

    def __post_init__(self) -> None:
        for name, dtype in zip(COLUMNS, DTYPES, strict=True):
            object.__setattr__(self, name, np.asarray(getattr(self, name), dtype))
        if len({len(getattr(self, name)) for name in COLUMNS}) != 1:
            raise ValueError("the columns of Records must have equal lengths")

    def __len__(self) -> int:
        return len(self.run)

    @classmethod
    def empty(cls) -> Records:
        return cls(*(np.empty(0) for _ in COLUMNS))

    @classmethod
    def of_arrays(cls, columns: Sequence[np.ndarray]) -> Records:
        """The same of arrays that are as they should be: what takes 5 µs otherwise takes one."""
        made = object.__new__(cls)
        made.__dict__.update(zip(COLUMNS, columns, strict=True))
        return made

    @classmethod
    def concatenate(cls, parts: Sequence[Records]) -> Records:
        parts = [part for part in parts if len(part)]
        if len(parts) < 2:
            return parts[0] if parts else cls.empty()
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in COLUMNS))

    def ordered(self) -> Records:
        """The same by increasing run."""
        return self if len(self) < 2 else self.take(np.argsort(self.run))

    def take(self, which: np.ndarray) -> Records:
        """The rows that ``which`` (indices or a mask) selects."""
        return Records(*(getattr(self, name)[which] for name in COLUMNS))

    def _repr_html_(self) -> str:
        """For notebooks: how many ended how, and the first of them."""
        ended = np.bincount(self.status, minlength=len(STATUSES))
        counts = [f"{count} {name}" for name, count in zip(STATUSES, ended, strict=True)]
        some = zip(*(getattr(self, name)[:SHOWN].tolist() for name in COLUMNS), strict=True)
        rows: list[tuple[object, ...]] = [
            (run, STATUSES[status], t_c if status == SOLVED else None, *rest) for run, status, t_c, *rest in some]
        if len(self) > SHOWN:
            rows.append(("…",) * len(COLUMNS))
        return table(COLUMNS, rows, f"{len(self)} Records: {', '.join(counts)}")

    @property
    def digest(self) -> str:
        """A digest of their values, in the order of run numbers: the same wherever and however they are kept.

        >>> halves = Records([1], [1], [-1], [500], [0.5], [1]), Records([0], [0], [120], [120], [1], [0])
        >>> Records.concatenate(halves).digest == Records.concatenate(halves[::-1]).digest
        True
        """
        ordered = self.take(np.argsort(self.run, kind="stable"))
        return digest_of_arrays({name: getattr(ordered, name) for name in COLUMNS})


COLUMNS = tuple(field.name for field in fields(Records))
DTYPES = (np.int64, np.int8, np.int64, np.int64, np.float32, np.float32)
