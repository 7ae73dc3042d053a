"""Points with error bars, laws beside them, and what one Run did along the way."""

# matplotlib leaves its keyword arguments untyped.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Mapping
from itertools import cycle
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from paritylab.aliases import Floats
from paritylab.palette import COLOURS, GREY
from paritylab.plots.style import LINES, MARKERS, blank, canvas, explain, readable_log, styled


class Series(NamedTuple):
    """Points of one curve, with intervals where they are known."""

    x: ArrayLike
    y: ArrayLike
    low: ArrayLike | None = None
    high: ArrayLike | None = None


class Band(NamedTuple):
    """A fitted law along ``x``, with the interval of the law at each."""

    x: Floats
    y: Floats
    low: Floats
    high: Floats


Beyond = list[tuple[Floats, Floats, str]]
"""Of each curve: where, and from which value on, it goes beyond the axis, and its colour."""
MANY, APART = 40, 0.06
"""A line of more points than this has markers so far apart only, as a share of the diagonal."""


@styled
def scaling_plot(
    series: Mapping[str, Series],
    xlabel: str,
    ylabel: str,
    laws: Mapping[str, tuple[ArrayLike, ArrayLike]] | None = None,
    log: str = "xy",
    title: str | None = None,
    *,
    fits: Mapping[str, Band] | None = None,
    ax: Axes | None = None,
    column: str = "single",
) -> Figure:
    """Curves with error bars, on log axes unless said.

    A curve breaks where a value is not known. An infinite one, and an interval without an upper end, goes beyond the
    axis, with an arrow.

    Args:
        series: points by the label of their curve.
        xlabel: of the axis.
        ylabel: of the axis.
        laws: drawn as thin grey lines beside the curves.
        log: the axes that are logarithmic, ``""``, ``"x"``, ``"y"`` or ``"xy"``.
        title: above the figure.
        fits: by the labels of ``series``: laws that take the place of the line from point to point, with their bands.
        ax: axes to draw in, instead of those of a new figure.
        column: how wide a new figure is, ``"single"`` or ``"double"``.

    >>> scaling_plot({"k = 2": Series([10, 20], [100, 220])}, "n", "steps").axes[0].get_xscale()
    'log'
    """
    figure, axes = canvas(ax, 2.4 + 0.08 * (len(series) + len(laws or {})), column)
    axes.set(xlabel=xlabel, ylabel=ylabel, title=title or "")
    draw_beyond(axes, draw_series(axes, series, log, fits or {}, laws or {}))
    if len(series) + len(laws or {}) > 1 or fits:
        explain(figure, axes, ax is None)
    return figure


def draw_series(
    axes: Axes,
    series: Mapping[str, Series],
    log: str,
    fits: Mapping[str, Band],
    laws: Mapping[str, tuple[ArrayLike, ArrayLike]],
) -> Beyond:
    """The curves, without a legend; what goes beyond the axis is still to be drawn."""
    for name, scale in (("x", axes.set_xscale), ("y", axes.set_yscale)):
        if name in log:
            scale("log")
    beyond: Beyond = []
    for place, ((label, curve), colour, line, marker) in enumerate(
            zip(series.items(), cycle(COLOURS), cycle(LINES), cycle(MARKERS), strict=False)):
        x, y = np.asarray(curve.x, float), np.asarray(curve.y, float)
        fit = fits.get(label)
        if fit is not None:
            axes.fill_between(fit.x, fit.low, fit.high, color=colour, alpha=0.2, linewidth=0)
            axes.plot(fit.x, fit.y, color=colour, linestyle=line)
        # A curve that lies on an earlier one leaves the rims of its markers in view.
        (points,) = axes.plot(x, np.where(np.isfinite(y), y, np.nan), marker=marker, color=colour, linestyle=line,
                              markersize=max(2.4, 4 - 0.5 * place), label=label,
                              markevery=APART if len(x) > MANY and curve.low is None else None)
        if fit is not None:  # the law is the line, also in a legend
            points.set(linestyle="none", label="")
            axes.plot([], [], marker=marker, markersize=4, color=colour, linestyle=line, label=label)
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
    for (label, (x, y)), line in zip(laws.items(), cycle(LINES[1:]), strict=False):
        axes.plot(np.asarray(x), np.asarray(y), color=GREY, linestyle=line, linewidth=0.8, label=label)
    _make_room(axes, series, laws)
    return beyond


def _make_room(axes: Axes, series: Mapping[str, Series], laws: Mapping[str, tuple[ArrayLike, ArrayLike]]) -> None:
    """Limits where points leave matplotlib without: none that is known, or one at a power of ten of a log axis."""
    both = [np.broadcast_arrays(*(np.asarray(each, float) for each in (curve.x, curve.y))) for curve in series.values()]
    both += [np.broadcast_arrays(*(np.asarray(each, float) for each in law)) for law in laws.values()]
    x, y = (np.concatenate([pair[side] for pair in both]) if both else np.zeros(0) for side in (0, 1))
    known = np.isfinite(y)
    if both and not known.any():
        axes.text(0.5, 0.5, "not reached", transform=axes.transAxes, ha="center", color=GREY)
        axes.set_autoscaley_on(False)
        axes.set(ylim=(1, 10), yticks=[])
        axes.minorticks_off()
        known = np.isfinite(x)
    for values, scale, hold, limit in ((x[known], axes.get_xscale(), axes.set_autoscalex_on, axes.set_xlim),
                                       (y[known], axes.get_yscale(), axes.set_autoscaley_on, axes.set_ylim)):
        if scale == "log" and len(values) and 0 < values.min() == values.max() < np.inf:
            hold(False)
            limit(values[0] / 2, values[0] * 2)


def draw_beyond(axes: Axes, points: Beyond) -> None:
    """Lines from what is known to the upper end of the axis, with an arrow there."""
    top = axes.get_ylim()[1]
    for x, y, colour in points:
        if not len(x):  # an empty line lies in the figure's corner, and would ask for room up to there
            continue
        known = np.isfinite(y)
        axes.vlines(x[known], y[known], top, colors=colour, linewidth=0.8)
        axes.plot(x, np.ones(len(x)), "^", transform=axes.get_xaxis_transform(), color=colour, markersize=3.5,
                  clip_on=False)
    axes.set_ylim(top=top)
    readable_log(axes)


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
