"""Runs of several Setups that have some parameters in common, as one sample: what figures are drawn of.

A sample here is a row of :class:`~paritylab.storage.gathered.Gathered` whose ``series`` has the parameters of the Setup
beside the key.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import polars as pl

from paritylab.errors import InvalidInput, unknown
from paritylab.storage.gathered import Gathered, as_arrays
from paritylab.storage.records import Records

NOT_PARAMETERS = ("setup_id", "family", "seed", "count")
LIMITS = ("max_steps",)
"""Runs that were followed differently long are one sample: the statistics know."""


def reordered(found: Gathered, order: np.ndarray) -> Gathered:
    """The same series in another order."""
    counts = found.series["count"].to_numpy()
    starts = np.cumsum(counts) - counts
    shift = np.repeat(starts[order] - (np.cumsum(counts[order]) - counts[order]), counts[order])
    return Gathered(found.series[order], found.records[shift + np.arange(len(shift))])


def chosen(found: Gathered, which: np.ndarray) -> Gathered:
    """Some of the series."""
    if which.all():
        return found
    mask = np.repeat(which, found.series["count"].to_numpy())
    return Gathered(found.series.filter(which), found.records.filter(mask))


def pooled(found: Gathered, names: Sequence[str]) -> Gathered:
    """The runs of series that have these columns in common as one, sorted by them."""
    some = Gathered(found.series.select(*names, "count"), found.records)
    if not names:
        return Gathered(some.series.select(pl.col("count").sum()), some.records)
    order = some.series.with_row_index("place").sort(*names, nulls_last=True, maintain_order=True)["place"].to_numpy()
    some = reordered(some, order)
    groups = some.series.group_by(*names, maintain_order=True).agg(pl.col("count").sum())
    return Gathered(groups, some.records)


def told_apart(found: Gathered, names: Sequence[str], pool: bool = False) -> Gathered:
    """The same, refused where runs of different Setups would become one sample unasked; ``pool`` asks for it.

    Seeds and step limits may differ.
    """
    for name in names:
        if name not in found.series.columns:
            raise unknown("parameter", name, [each for each in found.series.columns if each not in NOT_PARAMETERS])
    differ = [] if pool else mixed(found.series, names)
    if differ:
        of = f"one {' and '.join(names)}" if names else "no parameter of their own in the figure"
        raise InvalidInput(f"several Setups have {of} and differ in {', '.join(differ)}: choose one with a condition,"
                           f" draw by it, or pool them")
    return pooled(found, names)


def mixed(series: pl.DataFrame, names: Sequence[str]) -> list[str]:
    """The parameters that differ among series that have these ones in common."""
    others = [name for name in series.columns if name not in (*names, *NOT_PARAMETERS, *LIMITS)]
    if series.height < 2 or not others:
        return []
    table = series.select(pl.col(others).n_unique()) if not names else (
        series.group_by(*names).agg(pl.col(others).n_unique()).select(pl.col(others).max()))
    return [name for name, values in table.row(0, named=True).items() if values > 1]


def samples(found: Gathered) -> Iterator[tuple[dict[str, Any], Records]]:
    """Each series by itself: its columns, and its records."""
    columns = as_arrays(found.records)
    start = 0
    for row in found.series.iter_rows(named=True):
        count = row.pop("count")
        yield row, Records.of_arrays([column[start : start + count] for column in columns])
        start += count
