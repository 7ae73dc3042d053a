"""What several claims share: straight lines through logarithms, proportions, and figures of how something decays."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import cycle
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from paritylab import plots
from paritylab.plots import Series


class Fit(NamedTuple):
    """A straight line by least squares: its slope and the share of the variance it explains."""

    slope: float
    r2: float


def fit(x: ArrayLike, y: ArrayLike) -> Fit:
    """
    >>> fit([1, 2, 3], [1, -1, -3])
    Fit(slope=-2.0, r2=1.0)
    """
    line: Any = stats.linregress(np.asarray(x, float), np.asarray(y, float))
    return Fit(round(float(line.slope), 12), round(float(line.rvalue) ** 2, 12))


@plots.styled
def decay_plot(
    curves: Mapping[str, tuple[ArrayLike, ArrayLike]],
    ylabel: str,
    laws: Mapping[str, tuple[ArrayLike, ArrayLike]] | None = None,
    points: Mapping[str, Series] | None = None,
    paper: tuple[float, float] | None = None,
    log: str = "xy",
    floor: float | None = None,
) -> plots.Figure:
    """Exact curves against d, points with intervals (in the colour of the curve of their name, if there is one), thin
    grey laws, the paper's d shaded.
    """
    points, laws = points or {}, laws or {}
    names = list(dict.fromkeys([*curves, *points]))
    colours = dict(zip(names, cycle(plots.COLOURS), strict=False))
    figure = plots.blank(2.5 + 0.08 * (len(names) + len(laws)))
    axes = figure.add_subplot(xlabel="input dimension d", ylabel=ylabel)
    for axis, scale in (("x", axes.set_xscale), ("y", axes.set_yscale)):
        if axis in log:
            scale("log")
    for (label, (x, y)), line in zip(curves.items(), cycle(plots.LINES), strict=False):
        axes.plot(np.asarray(x), np.asarray(y), color=colours[label], linestyle=line, label=label)
    for (label, series), marker in zip(points.items(), cycle("osD^v*P"), strict=False):
        y = np.asarray(series.y, float)
        low, high = (y if end is None else np.asarray(end, float) for end in (series.low, series.high))
        axes.errorbar(np.asarray(series.x), y, np.stack([y - low, high - y]), fmt=marker, markersize=3,
                      fillstyle="none", color=colours[label], elinewidth=0.8, capsize=1.5,
                      label=None if label in curves else label)
    for (label, (x, y)), line in zip(laws.items(), cycle(plots.LINES[1:]), strict=False):
        axes.plot(np.asarray(x), np.asarray(y), color=plots.GREY, linestyle=line, linewidth=0.8, label=label)
    if floor is not None:
        axes.set_ylim(bottom=floor)
    if paper is not None:
        axes.axvspan(*paper, color=plots.GREY, alpha=0.12, linewidth=0, label="d of the paper")
    plots.readable_log(axes)
    plots.legend_above(figure, axes)
    return figure
