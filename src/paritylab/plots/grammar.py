"""Figures by the names of parameters: what is against what, and what the curves are.

Every function here takes Results (of ``pl.sweep``), or what :func:`paritylab.statistics.results.samples` finds in a
store; ``by`` is the parameter that curves differ in, and ``facet`` the one that panels do. Runs of Setups that differ
in a parameter that the figure does not name are never one sample, unless ``pool`` says so. ``ax`` draws into axes of
yours, ``column`` is ``"single"`` or ``"double"``. A figure carries the numbers it shows (:func:`paritylab.plots.data`),
and :func:`paritylab.plots.save` writes them beside it.
"""

# matplotlib leaves its keyword arguments untyped.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from paritylab.errors import require, unknown
from paritylab.plots import words
from paritylab.plots.bands import QUANTILES, bands_plot, quantiles
from paritylab.plots.files import note
from paritylab.plots.maps import heat_plot
from paritylab.plots.pairs import pairs_plot
from paritylab.plots.panels import composed
from paritylab.plots.samples import LINE, draw_survival
from paritylab.plots.series import Band, Beyond, Series, draw_series
from paritylab.plots.sources import (
    Source,
    along,
    apart,
    check_numbers,
    fitted,
    found_in,
    names_of,
    percentile_of,
    repeated,
    several,
    table_of,
    values_of,
    wide_axes,
)
from paritylab.plots.style import own_ticks, say, styled
from paritylab.statistics import still_training
from paritylab.statistics.groups import chosen, mixed, told_apart
from paritylab.statistics.tables import percentile_name, summaries
from paritylab.storage.gathered import Gathered, as_arrays
from paritylab.storage.records import Records


@styled
def survival(
    results: Source,
    by: str | None = None,
    *,
    facet: str | None = None,
    level: float = 0.95,
    counts: bool = False,
    pool: bool = False,
    title: str | None = None,
    ax: Axes | None = None,
    column: str | None = None,
) -> Figure:
    """The fraction of runs still unsolved against steps: Kaplan-Meier curves with pointwise bands.

    A cross marks steps at which runs were given up unsolved; ``counts`` says below the axis how many runs were still
    training.
    """
    found = found_in(results)
    values = values_of(found, by)
    rows = 0.2 + LINE / 72 * len(values) if counts else 0

    def draw(axes: Axes, part: Gathered, facets: dict[str, Any]) -> None:
        runs = apart(told_apart(part, names_of(by), pool), by, values)
        named = {words.curve(by, value): records for value, records in runs.items()}
        curves = draw_survival(axes, named, level, counts)
        if not curves:
            say(axes.figure, axes, "no runs")  # pyright: ignore
        for value, records in runs.items():
            if curve := curves.get(words.curve(by, value)):
                note(axes, pl.DataFrame({
                    **repeated(facets | ({} if by is None else {by: value}), len(curve.steps)), "step": curve.steps,
                    "unsolved": curve.unsolved, "low": curve.low, "high": curve.high, "given_up": curve.censored,
                    "still_training": still_training(records, curve.steps)}))

    return composed(found, facet, ax, column, 2.2 + rows, draw, title, len(values) > 1)


@styled
def scaling(
    results: Source,
    x: str,
    y: str = "median",
    by: str | None = None,
    *,
    facet: str | None = None,
    level: float = 0.95,
    pool: bool = False,
    log: str = "xy",
    xlabel: str | None = None,
    ylabel: str | None = None,
    title: str | None = None,
    ax: Axes | None = None,
    column: str | None = None,
) -> Figure:
    """A percentile of the steps to convergence against a parameter, with the power law fitted to it.

    ``y`` is ``median``, ``p10`` or another percentile. Bars are exact intervals of the percentile; the band is the
    bootstrapped interval of the law, and the legend has the exponent with its own. Points that were not reached
    go beyond the axis, with an arrow, and the law is fitted to the others.
    """
    found, q = found_in(results), percentile_of(y)
    y = percentile_name(q)
    values = values_of(found, by)
    check_numbers(found, x)

    def draw(axes: Axes, part: Gathered, facets: dict[str, Any]) -> Beyond:
        pooled = told_apart(part, [*names_of(by), x], pool)
        table = summaries(pooled, [q], level)
        series: dict[str, Series] = {}
        fits: dict[str, Band] = {}
        for value in values:
            of = np.ones(table.height, bool) if by is None else table[by].eq_missing(value).to_numpy()
            rows = table.filter(of)
            fit, band, numbers = fitted(rows, chosen(pooled, of), x, y, q, level)
            label = words.curve(by, value) if by is not None else words.axis(y)
            if fit is not None and band is not None:
                low, high = fit.power.exponent_interval
                reached = "" if fit.points == rows.height else f" ({fit.points} of {rows.height} points)"
                name = x if x in words.LETTERS else rf"\mathrm{{{x.replace('_', chr(92) + ' ')}}}"
                law = f"$\\propto {name}^{{{fit.power.exponent:.2f}}}$ [{low:.2f}, {high:.2f}]{reached}"
                label = law if by is None else f"{label}: {law}"
                fits[label] = band
            ends = (x, y, f"{y}_low", f"{y}_high")
            series[label] = Series(*(rows[name].cast(float).to_numpy() for name in ends))
            panel = (pl.lit(each).alias(name) for name, each in facets.items())
            note(axes, rows.select(*panel, *names_of(by), *ends, "runs", "solved").hstack(numbers))
        axes.set(xlabel=xlabel or words.axis(x), ylabel=ylabel or words.axis(y))
        beyond = draw_series(axes, series, log, fits, {})
        own_ticks(axes, found.series[x].drop_nulls().to_list())
        return beyond

    return composed(found, facet, ax, column, 2.4 + 0.14 * len(values), draw, title, True, shared=False)


@styled
def heat(
    results: Source,
    x: str,
    y: str,
    value: str = "median",
    *,
    show: str = "value",
    level: float = 0.95,
    pool: bool = False,
    log: bool | None = None,
    xlabel: str | None = None,
    ylabel: str | None = None,
    title: str | None = None,
    ax: Axes | None = None,
    column: str | None = None,
) -> Figure:
    """A statistic over two parameters, a cell for each pair of values.

    A hatched cell was not reached, a triangle marks an interval without an upper end, an empty cell was not measured;
    ``show="interval"`` writes the interval into each cell.
    """
    require(x != y, "the two parameters of a map must differ")
    table = table_of(told_apart(found_in(results), [y, x], pool), [value], level)
    xs, ys = (table[name].unique().sort(nulls_last=True).to_list() for name in (x, y))
    stem = "solved" if value == "solved_fraction" else value
    names = [value, *(each for each in (f"{stem}_low", f"{stem}_high") if each in table.columns)]
    cells = {name: np.full((len(ys), len(xs)), np.nan) for name in names}
    for row in table.iter_rows(named=True):
        for name in names:
            cells[name][ys.index(row[y]), xs.index(row[x])] = row[name]
    figure = heat_plot(
        cells[value], xs, ys, xlabel or words.axis(x), ylabel or words.axis(y), words.axis(value),
        cells.get(f"{stem}_low"), cells.get(f"{stem}_high"), show=show, log=log, ax=ax, column=column or "single")
    axes = figure.axes[0] if ax is None else ax
    axes.set_title(title or "")
    note(axes, table.select(y, x, *dict.fromkeys(["runs", "solved", *names])))
    return figure


@styled
def compare(
    results: Source,
    by: str,
    *,
    level: float = 0.95,
    title: str | None = None,
    ax: Axes | None = None,
    column: str | None = None,
) -> Figure:
    """Two learners on the same runs: their steps to convergence against each other, and by how much they differ.

    ``by`` is a parameter with two values. Runs are the same where seed, number and all else that differs within a
    value are.
    """
    found = found_in(results)
    values = values_of(found, by)
    require(len(values) == 2, f"two values of {by} are needed, not {len(values)}; choose them with a condition")
    parts = [chosen(found, found.series[by].eq_missing(value).to_numpy()) for value in values]
    keys = list(dict.fromkeys(["seed", *(name for part in parts for name in mixed(part.series, []))]))
    plain = {name: f"of_{name}" for name in keys}
    tables = [Gathered(part.series.select(pl.col(name).alias(new) for name, new in plain.items()).hstack(
        part.series.select("count")), part.records).rows(*plain.values()) for part in parts]
    on = [*plain.values(), "run"]
    for table, value in zip(tables, values, strict=True):
        require(not table.select(on).is_duplicated().any(), f"a run of {words.curve(by, value)} is there several times")
    both = tables[0].join(tables[1], on=on, how="inner", suffix="_second", nulls_equal=True).sort(on)
    require(both.height > 0, f"{words.curve(by, values[0])} and {words.curve(by, values[1])} have no run in common")
    place = pl.int_range(pl.len()).alias("run")
    first = both.select(place, "status", "t_c", "steps", "accuracy", "loss")
    second = both.select(place, *(pl.col(f"{name}_second").alias(name) for name in first.columns[1:]))
    labels = words.curve(by, values[0]), words.curve(by, values[1])
    mine, theirs = (Records.of_arrays(as_arrays(each)) for each in (first, second))
    figure = pairs_plot(mine, theirs, labels, level, ax=ax, column=column or "single")
    axes = figure.axes[0] if ax is None else ax
    if title:
        axes.set_title(title)
    shown = {f"{name}_{place}": both[f"{name}{suffix}"] for name in ("status", "t_c", "steps")
             for place, suffix in ((1, ""), (2, "_second"))}
    note(axes, both.select(pl.col(new).alias(name) for name, new in plain.items()).with_columns(
        both["run"], first=pl.lit(str(values[0])), second=pl.lit(str(values[1])), **shown))
    return figure


@styled
def curves(
    recorded: Any | Mapping[str, Any],
    y: str = "accuracy",
    *,
    bands: Sequence[tuple[float, float]] = QUANTILES,
    log: str = "",
    ylabel: str | None = None,
    title: str | None = None,
    ax: Axes | None = None,
    column: str | None = None,
) -> Figure:
    """Medians over runs along training, with bands of quantiles: of :class:`~paritylab.Curves`, or of several by label.

    ``y`` is ``accuracy``, ``loss``, ``train_accuracy``, ``train_loss`` or the name of a metric of one number. A run
    that diverged counts as worse than all others from there on.
    """
    every: Mapping[str, Any] = recorded if isinstance(recorded, Mapping) else {"all": recorded}
    drawn = {label: (each.steps, along(each, y)) for label, each in every.items()}
    rising = "accuracy" in y
    figure = bands_plot(drawn, ylabel or words.axis(y), bands=bands, log=log, rising=rising, ax=ax,
                        column=column or "single")
    axes = figure.axes[0] if ax is None else ax
    axes.set_title(title or "")
    qs = sorted({50.0, *(q for band in bands for q in band)})
    for label, (steps, values) in drawn.items():
        found = quantiles(values, qs, rising)
        note(axes, pl.DataFrame({
            **repeated({"curve": label}, len(steps)), "step": steps, "runs": len(values),
            "diverged": np.isnan(values).sum(axis=0),
            **{percentile_name(q): row for q, row in zip(qs, found, strict=True)}}))
    return figure


@styled
def lines(
    table: pl.DataFrame | pl.LazyFrame | Source,
    x: str,
    y: str = "median",
    by: str | None = None,
    *,
    facet: str | None = None,
    level: float = 0.95,
    pool: bool = False,
    log: str | None = None,
    xlabel: str | None = None,
    ylabel: str | None = None,
    title: str | None = None,
    ax: Axes | None = None,
    column: str | None = None,
) -> Figure:
    """One column of a table against another, a curve for each value of a third.

    Where the table has an interval of ``y`` (``median_low`` and ``median_high``), it is drawn. An infinite value was
    not reached: it goes beyond the axis, with an arrow.

    Args:
        table: Results, or a table such as ``results.to_frame()`` or :func:`paritylab.statistics.results.answer`.
        x: a column of numbers.
        y: a column of numbers.
        by: a column whose values are the curves; one curve unless said.
        facet: a column whose values are panels; one panel unless said.
        level: of intervals of Results; a table has its own.
        pool: whether runs of Results that differ in another parameter are one sample.
        log: the axes that are logarithmic, ``""``, ``"x"``, ``"y"`` or ``"xy"``; else those above 0.
        xlabel: instead of the column's name.
        ylabel: instead of the column's name.
        title: above the figure.
        ax: axes to draw in, instead of those of a new figure.
        column: how wide a new figure is, ``"single"`` or ``"double"``.

    >>> table = pl.DataFrame({"n": [20, 30, 20, 30], "k": [2, 2, 3, 3], "median": [100.0, 220.0, 300.0, float("inf")]})
    >>> [text.get_text() for text in lines(table, "n", by="k").legends[0].get_texts()]
    ['$k = 2$', '$k = 3$']
    """
    if not isinstance(table, (pl.DataFrame, pl.LazyFrame)):
        found = found_in(table)
        check_numbers(found, x)
        table = table_of(told_apart(found, [*names_of(facet), *names_of(by), x], pool), [y], level)
    table = table.lazy().collect()
    for name in (x, y, *names_of(by), *names_of(facet)):
        if name not in table.columns:
            raise unknown("column", name, table.columns)
    for name in (x, y):
        require(table.schema[name].is_numeric(), f"{name} is not a column of numbers")
    values = several(by, [None] if by is None else table[by].unique().sort(nulls_last=True).to_list())
    stem = "solved" if y == "solved_fraction" else y
    names = [name for name in (x, y, f"{stem}_low", f"{stem}_high") if name in table.columns]
    wide = wide_axes(table, x, y) if log is None else log
    whole = table

    def draw(axes: Axes, part: pl.DataFrame, facets: dict[str, Any]) -> Beyond:
        series: dict[str, Series] = {}
        for value in values:
            rows = (part if by is None else part.filter(pl.col(by).eq_missing(pl.lit(value)))).sort(x)
            require(rows[x].n_unique() == rows.height,
                    f"several rows have one {x}{'' if by is None else f' and {by}'}: choose some, or group them before")
            series[y if by is None else words.curve(by, value)] = Series(
                *(rows[name].cast(float).to_numpy() for name in names))
            note(axes, rows.select(*names_of(facet), *names_of(by), *names))
        axes.set(xlabel=xlabel or words.axis(x), ylabel=ylabel or words.axis(y))
        beyond = draw_series(axes, series, wide, {}, {})
        own_ticks(axes, whole[x].drop_nulls().to_list())
        return beyond

    return composed(whole, facet, ax, column, 2.4 + 0.08 * len(values), draw, title, len(values) > 1)
