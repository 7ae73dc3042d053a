"""What a learner made of a Problem: one Record, whatever the learner."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from paritylab.records import CENSORED, SOLVED, Records

if TYPE_CHECKING:
    import polars


@dataclass(frozen=True)
class Record:
    """How one run of a learner on a parity ended.

    ``status`` is ``solved``, ``failed``, or ``refused`` where the learner itself says that it cannot (``note`` says
    why). ``samples`` counts what the learner had been given by then, labelled examples or membership queries
    (``unit``); it is what the learner needed only if the status is ``solved``. ``support`` is what was found, None
    for a learner that predicts without naming one; ``accuracy`` is that of its predictions on clean inputs;
    ``seconds`` is the time of the attempt that ``samples`` counts, None where it was not measured.
    """

    learner: str
    n: int
    k: int
    noise: float
    run: int
    status: str
    samples: int
    unit: str
    seconds: float | None
    support: tuple[int, ...] | None
    accuracy: float
    note: str = ""

    @property
    def solved(self) -> bool:
        return self.status == "solved"

    def to_dict(self) -> dict[str, Any]:
        """The record as plain values, the support as text such as ``0 1 2``."""
        support = None if self.support is None else " ".join(map(str, self.support))
        return asdict(self) | {"support": support}

    @classmethod
    def from_dict(cls, row: dict[str, Any]) -> Record:
        """The inverse of :meth:`to_dict`."""
        fields, support = dict(row), row["support"]
        fields["support"] = None if support is None else tuple(map(int, support.split()))
        return cls(**fields)


def as_records(rows: Sequence[Record]) -> Records:
    """The same as Records of networks, samples in place of steps, so that all of ``pl.statistics`` applies.

    Whatever was not solved is censored at the samples it was given.

    >>> rows = [Record("exhaustive", 9, 2, 0.0, run, status, 16, "examples", 0.1, None, 0.5)
    ...         for run, status in enumerate(["solved", "failed"])]
    >>> as_records(rows).t_c
    array([16, -1])
    """
    solved = np.array([row.solved for row in rows], bool)
    samples = np.array([row.samples for row in rows], np.int64)
    return Records(
        run=np.array([row.run for row in rows]),
        status=np.where(solved, SOLVED, CENSORED),
        t_c=np.where(solved, samples, -1),
        steps=samples,
        accuracy=np.array([row.accuracy for row in rows]),
        loss=np.full(len(rows), np.nan),
    )


def frame(rows: Iterable[Record]) -> polars.DataFrame:
    """One row for each Record."""
    import polars as pl

    kinds: dict[str, Any] = {"int": pl.Int64(), "float": pl.Float64(), "float | None": pl.Float64(), "str": pl.String()}
    schema = {field.name: kinds.get(str(field.type), pl.String()) for field in fields(Record)}
    return pl.DataFrame([row.to_dict() for row in rows], schema)
