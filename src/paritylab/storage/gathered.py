"""Records of many series at once: whose they are in one table; all of them, series after series, in another."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from paritylab.errors import require
from paritylab.storage.records import COLUMNS, SOLVED, STATUSES, Records

RECORD = pl.Schema(
    {
        "run": pl.Int64(),
        "status": pl.Enum(STATUSES),
        "t_c": pl.Int64(),
        "steps": pl.Int64(),
        "accuracy": pl.Float32(),
        "loss": pl.Float32(),
    }
)
KEY = pl.Schema({"setup_id": pl.String(), "engine": pl.String(), "seed": pl.Int64()})

Key = tuple[str, str, int]
"""A Setup's id, an engine and a seed: what a series of runs has in common."""


class Differ(Exception):
    """One run has two different records."""

    def __init__(self, key: Key, run: int) -> None:
        super().__init__(key, run)
        self.key, self.run = key, run


@dataclass(frozen=True)
class Wanted:
    """Which records are asked for; None stands for all."""

    setup_ids: Collection[str] | None = None
    engines: Collection[str] | None = None
    seed: int | None = None
    runs: range | None = None

    def series(self, key: Key) -> bool:
        """Whether records of a series are asked for."""
        return ((self.setup_ids is None or key[0] in self.setup_ids)
                and (self.engines is None or key[1] in self.engines) and self.seed in (None, key[2]))

    @property
    def where(self) -> pl.Expr:
        """The same, of rows with the columns of a key."""
        conditions = [pl.lit(True)]
        if self.setup_ids is not None:
            conditions.append(pl.col("setup_id").is_in(list(self.setup_ids)))
        if self.engines is not None:
            conditions.append(pl.col("engine").is_in(list(self.engines)))
        if self.seed is not None:
            conditions.append(pl.col("seed") == self.seed)
        return pl.all_horizontal(conditions)

    @property
    def within(self) -> pl.Expr:
        """Which runs are."""
        if self.runs is None:
            return pl.lit(True)
        runs = self.runs if self.runs.step > 0 else self.runs[::-1]
        run = pl.col("run")
        return run.is_between(runs.start, runs.stop, closed="left") & ((run - runs.start) % runs.step == 0)


@dataclass(frozen=True)
class Gathered:
    """``series`` has the columns of a key and ``count``: how many rows of ``records`` are its, in this order."""

    series: pl.DataFrame
    records: pl.DataFrame

    @classmethod
    def empty(cls) -> Gathered:
        return cls(pl.DataFrame(schema=KEY | {"count": pl.Int64()}), pl.DataFrame(schema=RECORD))

    @classmethod
    def of(cls, key: Key, records: pl.DataFrame) -> Gathered:
        """Records of one series."""
        row = dict(zip(KEY, key, strict=True))
        return cls(pl.DataFrame([row | {"count": records.height}], schema=KEY | {"count": pl.Int64()}), records)

    @classmethod
    def of_rows(cls, rows: pl.DataFrame) -> Gathered:
        """Rows with the columns of a key, those of a series beside each other."""
        new = pl.any_horizontal(pl.col(name) != pl.col(name).shift() for name in KEY)
        starts = rows.lazy().select(new.fill_null(True).arg_true()).collect().to_series()
        counts = np.diff(starts.to_numpy(), append=rows.height)
        series = rows.select(*KEY)[starts].with_columns(pl.Series("count", counts, pl.Int64()))
        return cls(series, rows.drop(*KEY))

    @property
    def ends(self) -> np.ndarray:
        return np.cumsum(self.series["count"].to_numpy())

    def places(self) -> np.ndarray:
        """For each record the row of its series."""
        return np.repeat(np.arange(self.series.height, dtype=np.int32), self.series["count"].to_numpy())

    def rows(self, *names: str) -> pl.DataFrame:
        """One row for each record, with these columns of its series (those of its key unless said) in front."""
        whose = self.series.select(*(names or KEY))
        if whose.height == 1:
            return self.records.select(*(pl.lit(value, whose.schema[name]).alias(name)
                                         for name, value in whose.row(0, named=True).items()), pl.all())
        return whose[self.places()].hstack(self.records)

    def only(self, wanted: Wanted) -> Gathered:
        """What is asked for."""
        made = self
        if wanted.setup_ids is not None or wanted.engines is not None or wanted.seed is not None:
            chosen = self.series.select(wanted.where).to_series().to_numpy()
            if not chosen.all():
                mask = np.repeat(chosen, self.series["count"].to_numpy())
                made = Gathered(self.series.filter(chosen), self.records.filter(mask))
        if wanted.runs is None:
            return made
        mask = made.records.select(wanted.within).to_series()
        if mask.all():
            return made
        counts = np.bincount(made.places()[mask.to_numpy()], minlength=made.series.height)
        series = made.series.with_columns(pl.Series("count", counts, pl.Int64()))
        return Gathered(series.filter(pl.col("count") > 0), made.records.filter(mask))

    def split(self) -> Iterator[tuple[Key, Records]]:
        """Each series by itself."""
        columns = as_arrays(self.records)
        start = 0
        for *key, count in self.series.iter_rows():
            yield tuple(key), Records.of_arrays([column[start : start + count] for column in columns])
            start += count


def merged(parts: Sequence[Gathered]) -> Gathered:
    """All parts as one, sorted by series and run; a run that is in several parts must be the same everywhere."""
    parts = [part for part in parts if part.series.height]
    if not parts:
        return Gathered.empty()
    series, records = pl.concat([part.series for part in parts]), pl.concat([part.records for part in parts])
    keys = series.select(*KEY).unique().sort(*KEY)
    alone = keys.height == 1
    if alone:
        places = np.zeros(0, np.int32)
    else:
        numbered = keys.with_row_index("place")
        place = series.join(numbered, on=list(KEY), how="left", maintain_order="left")["place"].to_numpy()
        places = np.repeat(place.astype(np.int32), series["count"].to_numpy())
    if not _rising(records["run"].to_numpy(), places):
        records, places = _sorted(keys, records, places)
    counts = [records.height] if alone else np.bincount(places, minlength=keys.height)
    return Gathered(keys.with_columns(pl.Series("count", counts, pl.Int64())), records)


def _rising(run: np.ndarray, places: np.ndarray) -> bool:
    """Whether records are sorted by series and run, and no run comes twice."""
    rising = run[1:] > run[:-1]
    if len(places):
        rising = (places[1:] > places[:-1]) | (rising & (places[1:] == places[:-1]))
    return bool(rising.all())


def _sorted(keys: pl.DataFrame, records: pl.DataFrame, places: np.ndarray) -> tuple[pl.DataFrame, np.ndarray]:
    order = ["place", "run"] if len(places) else ["run"]
    ordered = records.with_columns(pl.Series("place", places)) if len(places) else records
    ordered = ordered.sort(*order, maintain_order=True)
    repeats = pl.all_horizontal(pl.col(name) == pl.col(name).shift() for name in order)
    differs = pl.any_horizontal(pl.col(name).ne_missing(pl.col(name).shift()) for name in RECORD)
    conflicts = ordered.filter(repeats & differs)
    if conflicts.height:
        key = keys.row(conflicts["place"][0] if len(places) else 0)
        raise Differ(key, conflicts["run"][0])
    once = ordered.filter(repeats.fill_null(False).not_())
    return (once.drop("place"), once["place"].to_numpy()) if len(places) else (once, places)


def to_frame(records: Records) -> pl.DataFrame:
    """Records as a frame, one row for each run; ``t_c`` is null where a run was not solved."""
    require(bool(((records.status >= 0) & (records.status < len(STATUSES))).all()), "records have an unknown status")
    require(bool(((records.t_c >= 0) == (records.status == SOLVED)).all()),
            "records must have a t_c where they are solved, and -1 elsewhere")
    require(bool((records.run >= 0).all()), "run numbers must be at least 0")
    columns = {name: getattr(records, name) for name in RECORD}
    columns["status"] = pl.Series(STATUSES, dtype=RECORD["status"]).gather(records.status)
    return pl.DataFrame(columns, schema=RECORD).with_columns(t_c=pl.when(pl.col("t_c") >= 0).then("t_c"))


def as_arrays(frame: pl.DataFrame) -> list[np.ndarray]:
    """The columns of Records."""
    status = pl.col("status").to_physical().cast(pl.Int8)
    plain = frame.select(*COLUMNS).with_columns(pl.col("t_c").fill_null(-1), status)
    return [plain[name].to_numpy() for name in COLUMNS]
