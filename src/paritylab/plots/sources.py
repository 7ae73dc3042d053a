"""What figures are drawn of, read by the names of parameters and statistics."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import polars as pl

from paritylab.errors import InvalidInput, require, unknown
from paritylab.plots.series import Band
from paritylab.plots.style import spread_out
from paritylab.statistics import ScalingFit, power_law_band, power_law_fit_runs
from paritylab.statistics.groups import samples, told_apart
from paritylab.statistics.tables import PERCENTILES, summaries
from paritylab.storage.gathered import Gathered
from paritylab.storage.records import Records

MOST_CURVES = 12
SERIES = ("accuracy", "loss", "train_accuracy", "train_loss")
"""What is recorded along training, besides metrics of the user's own."""


class HasSamples(Protocol):
    """Results, and whatever else has Records with parameters beside them."""

    def samples(self) -> Gathered: ...


Source = Gathered | HasSamples


def found_in(results: Source) -> Gathered:
    found = results if isinstance(results, Gathered) else results.samples()
    require(found.series.height > 0, "there are no results to draw")
    return found


def names_of(name: str | None) -> list[str]:
    return [] if name is None else [name]


def values_of(found: Gathered, by: str | None) -> list[Any]:
    """The values of a parameter, which are the curves."""
    if by is None:
        return [None]
    if by not in found.series.columns:
        told_apart(found, [by])  # says what is allowed
    return several(by, found.series[by].unique().sort(nulls_last=True).to_list())


def several(by: str | None, values: list[Any]) -> list[Any]:
    require(0 < len(values) <= MOST_CURVES, f"a figure has 1 to {MOST_CURVES} curves; {by} has {len(values)} values")
    return values


def apart(pooled: Gathered, by: str | None, values: list[Any]) -> dict[Any, Records]:
    """The Records of each curve."""
    found = {None if by is None else row[by]: records for row, records in samples(pooled)}
    return {value: found.get(value, Records.empty()) for value in values}


def check_numbers(found: Gathered, name: str) -> None:
    if name not in found.series.columns:
        told_apart(found, [name])
    require(found.series.schema[name].is_numeric(), f"{name} is not a parameter of numbers")


def repeated(values: Mapping[str, Any], rows: int) -> dict[str, Any]:
    return {name: [value] * rows for name, value in values.items()}


def percentile_of(name: str) -> float:
    """Which percentile a name is."""
    if name == "median":
        return 50.0
    found = re.fullmatch(r"p(\d+(?:\.\d+)?)", name)
    if not found or not 0 <= float(found[1]) <= 100:
        raise InvalidInput(f"a law is fitted to percentiles: median, p10, p25 and so on, not {name!r}")
    return float(found[1])


def table_of(pooled: Gathered, asked: Sequence[str], level: float) -> pl.DataFrame:
    """Summaries that have the statistics asked for."""
    qs = {*PERCENTILES, *(float(name[1:]) for name in asked if re.fullmatch(r"p\d+(\.\d+)?", name))}
    table = summaries(pooled, sorted(qs), level)
    for name in asked:
        if name not in table.columns:
            raise unknown("statistic", name, [each for each in table.columns if each not in pooled.series.columns])
    return table


def fitted(
    rows: pl.DataFrame, pooled: Gathered, x: str, y: str, q: float, level: float
) -> tuple[ScalingFit | None, Band | None, pl.DataFrame]:
    """The law through the points that were reached, if there are three; its band, and its numbers at every point."""
    at, values = rows[x].cast(float).to_numpy(), rows[y].to_numpy()
    reached = np.isfinite(values) & (values > 0) & (at > 0)
    names = ("law", "law_low", "law_high", "exponent", "exponent_low", "exponent_high", "prefactor")
    if reached.sum() < 3:
        return None, None, pl.DataFrame({name: [None] * rows.height for name in names},
                                        schema=dict.fromkeys(names, pl.Float64()))
    runs = [records for (_, records), mine in zip(samples(pooled), reached, strict=True) if mine]
    fit = power_law_fit_runs(at[reached], runs, q, level)
    grid = np.geomspace(at[reached].min(), at[reached].max(), 60)
    band = Band(grid, fit.power(grid), *power_law_band(at[reached], runs, grid, q, level))
    ends = power_law_band(at[reached], runs, np.where(at > 0, at, np.nan), q, level)
    told = (fit.power(np.where(at > 0, at, np.nan)), *ends, fit.power.exponent, *fit.power.exponent_interval,
            fit.power.prefactor)
    columns = {name: np.broadcast_to(value, rows.height) for name, value in zip(names, told, strict=True)}
    return fit, band, pl.DataFrame(columns)


def along(recorded: Any, name: str) -> np.ndarray:
    """What was recorded under a name, (runs, points)."""
    metrics = recorded.metrics or {}
    known = [each for each in SERIES if getattr(recorded, each) is not None]
    if name not in (*known, *metrics):
        raise unknown("recorded series", name, [*known, *metrics])
    values = np.asarray(metrics[name] if name in metrics else getattr(recorded, name), np.float64)
    require(values.ndim == 2, f"{name} has several numbers at each point; a curve needs one")
    return values


def wide_axes(table: pl.DataFrame, *names: str) -> str:
    """The axes whose values are all above 0 and span more than a factor of three; fractions are linear."""
    columns = [table[name].cast(float).drop_nulls().to_numpy() for name in names]
    return "".join(axis for axis, name, values in zip("xy", names, columns, strict=True)
                   if not name.endswith("fraction") and spread_out(values[np.isfinite(values)].tolist()))
