"""Figures for one column of a paper: what many Runs did, what one Run did, and tables by the names of their columns.

Every function returns a new matplotlib ``Figure`` and leaves matplotlib's global state alone; :func:`save`
writes it. Colours are those of Okabe and Ito, told apart in grey by line style.
"""

# matplotlib leaves its keyword arguments untyped.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import io
import math
import os
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec, TypeVar

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter
from numpy.typing import ArrayLike, NDArray

from paritylab.aliases import Floats
from paritylab.errors import require, unknown
from paritylab.statistics import survival
from paritylab.storage.files import write_atomically
from paritylab.storage.records import SOLVED, Records

if TYPE_CHECKING:
    import polars as pl

WIDTH = 3.4
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#000000", "#CC79A7", "#56B4E9", "#E69F00")
LINES = ("solid", "dashed", "dashdot", "dotted", (0, (6, 1, 1, 1, 1, 1)))
GREY = "#666666"
MOST_SHAPES = 500
MOST_CURVES = 12
FORMATS = ("png", "svg", "pdf")

_STYLE: Any = {
    "font.size": 8,
    "axes.labelsize": 8,
    "axes.titlesize": 8,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7,
    "legend.frameon": False,
    "legend.handlelength": 2.4,
    "legend.labelspacing": 0.3,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "lines.linewidth": 1.2,
    "pdf.fonttype": 42,
    "svg.fonttype": "none",
    "svg.hashsalt": "paritylab",
}

P = ParamSpec("P")
R = TypeVar("R")


def styled(function: Callable[P, R]) -> Callable[P, R]:
    """Draw in the style of all figures here; every function that makes a figure wears this."""

    @wraps(function)
    def drawn(*args: P.args, **kwargs: P.kwargs) -> R:
        with mpl.rc_context(_STYLE):
            return function(*args, **kwargs)

    return drawn


@styled
def survival_plot(samples: Mapping[str, Records], level: float = 0.95) -> Figure:
    """The fraction of runs still unsolved against steps, with confidence bands.

    A cross on a curve marks the steps at which runs were given up without being solved.

    >>> records = Records([0, 1], [0, 1], [10, -1], [10, 20], [1, 0.5], [0, 1])
    >>> survival_plot({"width 10": records}).axes[0].get_ylabel()
    'fraction unsolved'
    """
    figure = blank(2.3 + 0.15 * (len(samples) // 3))
    axes = figure.add_subplot(xscale="log", xlabel="steps", ylabel="fraction unsolved", ylim=(0, 1.03))
    curves = {label: survival(records, level) for label, records in samples.items() if len(records)}
    if not curves:
        return say(figure, axes, "no runs")
    start = _left_end([curve.steps for curve in curves.values()])
    for (label, curve), colour, line in zip(curves.items(), cycle(COLOURS), cycle(LINES), strict=False):
        shown = _spread(curve.steps)
        steps = np.append(start, curve.steps[shown])
        unsolved, high = (np.append(1.0, y[shown]) for y in (curve.unsolved, curve.high))
        low = np.append(((1 - level) / 2) ** (1 / len(samples[label])), curve.low[shown])
        axes.step(steps, unsolved, where="post", color=colour, linestyle=line, label=label)
        axes.fill_between(steps, low, high, step="post", color=colour, alpha=0.2, linewidth=0)
        given_up = curve.censored > 0
        axes.plot(curve.steps[given_up], curve.unsolved[given_up], "+", color=colour, markersize=6, zorder=3)
    axes.set_xlim(left=start)
    readable_log(axes)
    if len(curves) <= 2:
        axes.legend(loc="lower left")
    else:  # beside the curves there is no room left
        legend_above(figure, axes)
    return figure


@styled
def histogram_plot(samples: Mapping[str, Records], reference: float | None = None, bins: int = 40) -> Figure:
    """The fraction of runs solved in each interval of steps; the legend says how many were not solved.

    ``reference`` is the mean (in steps) of a geometric law to draw beside them: the law of a search without
    memory, observed at the same steps as the runs.

    >>> records = Records([0, 1], [0, 1], [10, -1], [10, 20], [1, 0.5], [0, 1])
    >>> histogram_plot({"width 10": records}).axes[0].get_legend().get_texts()[0].get_text()
    'width 10 (50 % unsolved)'
    """
    require(bins >= 1, f"a histogram needs at least one bin, not {bins}")
    require(reference is None or reference >= 1, "a geometric law has a mean of at least 1 step")
    figure = blank(2.3)
    axes = figure.add_subplot(xlabel="steps to convergence", ylabel="fraction of runs")
    present = {label: records for label, records in samples.items() if len(records)}
    solved = {label: records.t_c[records.status == SOLVED] for label, records in present.items()}
    if sum(len(times) for times in solved.values()) == 0:
        return say(figure, axes, "no run was solved" if present else "no runs")
    edges, spacing = _edges(np.concatenate(list(solved.values())), bins)
    for (label, times), colour, line in zip(solved.items(), cycle(COLOURS), cycle(LINES), strict=False):
        runs = len(present[label])
        counts, _ = np.histogram(times, edges)
        unsolved = f"{label} ({100 * (1 - len(times) / runs):.3g} % unsolved)"
        axes.stairs(counts / runs, edges, color=colour, linestyle=line, linewidth=1.2, label=unsolved)
    if reference is not None:
        unsolved = (1 - 1 / reference) ** np.maximum(edges - spacing / 2, 0)
        centres = (edges[:-1] + edges[1:]) / 2
        label = f"geometric, mean {reference:.6g}"
        axes.plot(centres, -np.diff(unsolved), color=GREY, linestyle="dotted", label=label)
    axes.set_xlim(left=0)
    axes.set_ylim(bottom=0)
    axes.legend(loc="upper right")
    return figure


@styled
def training_curve_plot(
    steps: ArrayLike, loss: ArrayLike, accuracy: ArrayLike, t_c: int | None = None, title: str | None = None
) -> Figure:
    """Error and loss of one Run over time; ``t_c`` marks its convergence.

    >>> [axes.get_ylabel() for axes in training_curve_plot([0, 10], [1, 0], [0.5, 1], t_c=10).axes]
    ['error', 'loss']
    """
    figure = blank(2.6)
    above = figure.add_subplot(2, 1, 1, ylabel="error")
    below = figure.add_subplot(2, 1, 2, ylabel="loss", xlabel="steps", sharex=above)
    above.plot(np.asarray(steps), 1 - np.asarray(accuracy), color=COLOURS[0])
    below.plot(np.asarray(steps), np.asarray(loss), color=COLOURS[1])
    above.tick_params(labelbottom=False)
    above.set_ylim(bottom=0)
    if not np.any(np.asarray(loss) < 0):
        below.set_ylim(bottom=0)
    for axes in (above, below):
        axes.margins(x=0.02)
        if t_c is not None:
            axes.axvline(t_c, color=GREY, linestyle="dotted", linewidth=0.8)
    if t_c is not None:
        above.annotate(f"$t_c$ = {t_c}", (t_c, 1), (0, 2), xycoords=("data", "axes fraction"),
                       textcoords="offset points", ha="center", va="bottom", fontsize=7)
    if title is not None:
        figure.suptitle(title, fontsize=8)
    figure.align_ylabels()
    return figure


class Series(NamedTuple):
    """Points of one curve, with intervals where they are known."""

    x: ArrayLike
    y: ArrayLike
    low: ArrayLike | None = None
    high: ArrayLike | None = None


@styled
def scaling_plot(
    series: Mapping[str, Series],
    xlabel: str,
    ylabel: str,
    laws: Mapping[str, tuple[ArrayLike, ArrayLike]] | None = None,
    log: str = "xy",
    title: str | None = None,
) -> Figure:
    """Curves with error bars, on log axes unless said; ``laws`` are drawn as thin grey lines beside them.

    A curve breaks where a value is not known. An infinite one, and an interval without an upper end, goes beyond the
    axis, with an arrow.

    >>> scaling_plot({"k = 2": Series([10, 20], [100, 220])}, "n", "steps").axes[0].get_xscale()
    'log'
    """
    figure = blank(2.4 + 0.08 * (len(series) + len(laws or {})))
    axes = figure.add_subplot(xlabel=xlabel, ylabel=ylabel, title=title or "")
    for name, scale in (("x", axes.set_xscale), ("y", axes.set_yscale)):
        if name in log:
            scale("log")
    beyond: list[tuple[Floats, Floats, str]] = []
    for place, ((label, curve), colour, line, marker) in enumerate(
            zip(series.items(), cycle(COLOURS), cycle(LINES), cycle("osD^v*P"), strict=False)):
        x, y = np.asarray(curve.x, float), np.asarray(curve.y, float)
        # A curve that lies on an earlier one leaves the rims of its markers in view.
        axes.plot(x, np.where(np.isfinite(y), y, np.nan), marker=marker, markersize=max(2.4, 4 - 0.5 * place),
                  color=colour, linestyle=line, label=label)
        open_ended = np.isposinf(y)
        if curve.low is not None and curve.high is not None:
            low, high = np.asarray(curve.low, float), np.asarray(curve.high, float)
            shown = np.isfinite(y)
            reach = np.stack([y[shown] - low[shown], high[shown] - y[shown]])
            reach = np.nan_to_num(reach, nan=0.0, posinf=0.0).clip(0)
            axes.errorbar(x[shown], y[shown], reach, fmt="none", ecolor=colour, elinewidth=0.8, capsize=1.5)
            open_ended |= np.isposinf(high)
            y = np.where(np.isposinf(y), low, y)
        beyond.append((x[open_ended], y[open_ended], colour))
    for (label, (x, y)), line in zip((laws or {}).items(), cycle(LINES[1:]), strict=False):
        axes.plot(np.asarray(x), np.asarray(y), color=GREY, linestyle=line, linewidth=0.8, label=label)
    _draw_beyond(axes, beyond)
    readable_log(axes)
    if len(series) + len(laws or {}) > 1:
        legend_above(figure, axes)
    return figure


def lines(
    table: pl.DataFrame | pl.LazyFrame,
    x: str,
    y: str = "median",
    by: str | None = None,
    *,
    log: str | None = None,
    xlabel: str | None = None,
    ylabel: str | None = None,
    title: str | None = None,
) -> Figure:
    """One column of a table against another, a curve for each value of a third.

    Where the table has an interval of ``y`` (``median_low`` and ``median_high``), it is drawn. An infinite value was
    not reached: it goes beyond the axis, with an arrow.

    Args:
        table: such as ``results.to_frame()`` or :func:`paritylab.statistics.results.answer`.
        x: a column of numbers.
        y: a column of numbers.
        by: a column whose values are the curves; one curve unless said.
        log: the axes that are logarithmic, ``""``, ``"x"``, ``"y"`` or ``"xy"``; else those above 0.
        xlabel: instead of the column's name.
        ylabel: instead of the column's name.
        title: above the figure.

    >>> import polars as pl
    >>> table = pl.DataFrame({"n": [20, 30, 20, 30], "k": [2, 2, 3, 3], "median": [100.0, 220.0, 300.0, float("inf")]})
    >>> [text.get_text() for text in lines(table, "n", by="k").legends[0].get_texts()]
    ['k = 2', 'k = 3']
    """
    table = table.lazy().collect()
    for name in (x, y, *([by] if by is not None else [])):
        if name not in table.columns:
            raise unknown("column", name, table.columns)
    for name in (x, y):
        require(table.schema[name].is_numeric(), f"{name} is not a column of numbers")
    parts: dict[Any, pl.DataFrame] = {None: table}
    if by is not None:
        parts = {key[0]: part for key, part in table.sort(by, nulls_last=True).group_by(by, maintain_order=True)}
    require(0 < len(parts) <= MOST_CURVES, f"a figure has 1 to {MOST_CURVES} curves; {by} has {len(parts)} values")
    curves: dict[str, Series] = {}
    for value, part in parts.items():
        require(part[x].n_unique() == part.height,
                f"several rows have one {x}{'' if by is None else f' and {by}'}: choose some, or group them before")
        ordered = part.sort(x)
        names = [name for name in (x, y, f"{y}_low", f"{y}_high") if name in table.columns]
        columns = [ordered[name].cast(float).to_numpy() for name in names]
        curves[y if by is None else f"{by} = {_shown(value)}"] = Series(*columns)
    return scaling_plot(curves, xlabel or x, ylabel or y, log=_log(table, x, y) if log is None else log, title=title)


def _log(table: pl.DataFrame, *names: str) -> str:
    """The axes whose values are all above 0 and span more than a factor of three."""
    wide = ""
    for axis, name in zip("xy", names, strict=True):
        values = table[name].cast(float).drop_nulls().to_numpy()
        values = values[np.isfinite(values)]
        wide += axis * bool(len(values) and values.min() > 0 and values.max() > 3 * values.min())
    return wide


def _shown(value: Any) -> str:
    return "none" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


@styled
def save(figure: Figure, path: str | os.PathLike[str]) -> list[Path]:
    """Write ``path``.png (300 dpi), ``path``.svg and ``path``.pdf, each whole or not at all."""
    _flatten(figure)
    stem = Path(path)
    stem.parent.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    for suffix in FORMATS:
        buffer = io.BytesIO()
        # No date in the file, so that the same figure gives the same bytes.
        undated = {} if suffix == "png" else {"Date" if suffix == "svg" else "CreationDate": None}
        figure.savefig(buffer, format=suffix, dpi=300, metadata=undated)
        target = stem.with_name(f"{stem.name}.{suffix}")
        write_atomically(target, buffer.getvalue())
        written.append(target)
    return written


def _flatten(figure: Figure) -> None:
    """Draw clouds of many points as a picture: as shapes they would take megabytes in the SVG."""
    for axes in figure.axes:
        for line in axes.lines:
            many = line.get_linestyle() == "None" and len(np.atleast_1d(line.get_xdata())) > MOST_SHAPES
            line.set_rasterized(bool(line.get_rasterized()) or many)
        for cloud in axes.collections:
            cloud.set_rasterized(len(np.asarray(cloud.get_offsets())) > MOST_SHAPES)


def blank(height: float) -> Figure:
    """An empty figure, one column wide."""
    return Figure(figsize=(WIDTH, height), layout="constrained")


def readable_log(axes: Axes) -> None:
    """Label 1, 2, 5 times powers of ten in plain numbers on log axes that span less than two decades."""
    for axis, limits in ((axes.xaxis, axes.get_xlim()), (axes.yaxis, axes.get_ylim())):
        if axis.get_scale() != "log":
            continue
        axis.set_minor_formatter(NullFormatter())
        if limits[0] > 0 and limits[1] / limits[0] < 100:
            axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def legend_above(figure: Figure, axes: Axes) -> None:
    """All labels above the axes, in as many columns as fit."""
    handles, labels = axes.get_legend_handles_labels()
    for columns in (3, 2, 1):
        legend = figure.legend(handles, labels, loc="outside upper center", ncols=columns, columnspacing=1.2)
        if columns == 1 or legend.get_window_extent().width <= 0.98 * figure.bbox.width:
            return
        legend.remove()


def _draw_beyond(axes: Axes, points: Sequence[tuple[Floats, Floats, str]]) -> None:
    """Lines from what is known to the upper end of the axis, with an arrow there."""
    top = axes.get_ylim()[1]
    for x, y, colour in points:
        known = np.isfinite(y)
        axes.vlines(x[known], y[known], top, colors=colour, linewidth=0.8)
        axes.plot(x, np.ones(len(x)), "^", transform=axes.get_xaxis_transform(), color=colour, markersize=3.5,
                  clip_on=False)
    axes.set_ylim(top=top)


def say(figure: Figure, axes: Axes, text: str) -> Figure:
    axes.text(0.5, 0.5, text, transform=axes.transAxes, ha="center", color=GREY)
    axes.set(xticks=[], yticks=[])
    axes.minorticks_off()
    return figure


def _left_end(curves: Sequence[Floats]) -> float:
    """Where a log axis should begin: left of the first step, and a decade long at least."""
    first, last = min(steps[0] for steps in curves), max(steps[-1] for steps in curves)
    return float(max(0.8, min(0.8 * first, 0.1 * last)))


def _spread(steps: Floats, most: int = 1000) -> NDArray[np.int64]:
    """Indices of at most ``most`` steps, spread evenly on a log axis, so that many runs make a small file."""
    places = np.log(np.maximum(steps, 1))
    grid = np.linspace(float(places[0]), float(places[-1]), most)
    return np.unique(np.searchsorted(places, grid, side="right") - 1)


def _edges(times: NDArray[np.int64], bins: int) -> tuple[Floats, int]:
    """Edges of bins that hold equally many of the steps at which runs are evaluated; the spacing of these.

    Edges lie half a spacing off these steps, so that no bin gathers one step more than its neighbour.
    """
    spacing = max(int(np.gcd.reduce(times)), 1)
    first, last = int(times.min()) // spacing, int(times.max()) // spacing
    width = math.ceil((last - first + 1) / bins)
    count = math.ceil((last - first + 1) / width)
    return spacing * (first - 0.5 + width * np.arange(count + 1, dtype=np.float64)), spacing
