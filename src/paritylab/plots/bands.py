"""What runs did along the way: medians and bands of quantiles."""

# matplotlib leaves its keyword arguments untyped.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from paritylab.aliases import Floats
from paritylab.errors import require
from paritylab.palette import COLOURS
from paritylab.plots.style import LINES, canvas, explain, readable_log, say, styled
from paritylab.statistics.percentiles import check_percentile, interpolate, position

QUANTILES = (10.0, 90.0), (25.0, 75.0)


def quantiles(values: Floats, qs: Sequence[float], rising: bool) -> Floats:
    """Percentiles over runs, the first axis, at each point: (qs, points).

    A run that diverged is nan from there on. It is not left out: it counts as worse than every other, below all where
    a higher value is better (``rising``) and above all elsewhere.

    >>> quantiles(np.array([[0.5, 1.0], [0.5, np.nan], [0.5, 0.8]]), [50], rising=True)
    array([[0.5, 0.8]])
    """
    for q in qs:
        check_percentile(q)
    sign = -1 if rising else 1
    ordered = np.sort(np.where(np.isnan(values), np.inf, sign * values), axis=0)
    found = []
    for q in qs:
        index, fraction = position(len(ordered), 100 - q if rising else q)
        found.append(sign * interpolate(ordered[index], ordered[min(index + 1, len(ordered) - 1)], fraction))
    return np.asarray(found)


@styled
def bands_plot(
    curves: Mapping[str, tuple[ArrayLike, ArrayLike]],
    ylabel: str,
    xlabel: str = "steps",
    bands: Sequence[tuple[float, float]] = QUANTILES,
    log: str = "",
    *,
    rising: bool = True,
    ax: Axes | None = None,
    column: str = "single",
) -> Figure:
    """The median over runs at each step, and between which quantiles how many of them are.

    Args:
        curves: by label: steps (points,), and values (runs, points).
        ylabel: of the axis.
        xlabel: of the axis.
        bands: pairs of percentiles, the widest first.
        log: the axes that are logarithmic.
        rising: whether a higher value is better; a run that diverged counts as worse than every other.
        ax: axes to draw in, instead of those of a new figure.
        column: how wide a new figure is, ``"single"`` or ``"double"``.

    >>> bands_plot({"ten runs": ([0, 1], np.ones((10, 2)))}, "accuracy").axes[0].get_xlabel()
    'steps'
    """
    require(all(low < high for low, high in bands), "a band goes from a lower to a higher percentile")
    figure, axes = canvas(ax, 2.3 + 0.08 * len(curves), column)
    axes.set(xlabel=xlabel, ylabel=ylabel)
    shown = {label: (np.asarray(steps, float), np.asarray(values, float)) for label, (steps, values) in curves.items()}
    shown = {label: both for label, both in shown.items() if both[1].size}
    if not shown:
        return say(figure, axes, "no runs")
    for name, scale in (("x", axes.set_xscale), ("y", axes.set_yscale)):
        if name in log:
            scale("log")
    for (label, (steps, values)), colour, line in zip(shown.items(), cycle(COLOURS), cycle(LINES), strict=False):
        for low, high in bands:
            ends = quantiles(values, (low, high), rising)
            axes.fill_between(steps, *np.where(np.isfinite(ends), ends, np.nan), color=colour, alpha=0.18, linewidth=0)
        middle = quantiles(values, (50,), rising)[0]
        axes.plot(steps, np.where(np.isfinite(middle), middle, np.nan), color=colour, linestyle=line, label=label)
    axes.margins(x=0.02)
    readable_log(axes)
    if len(shown) > 1:
        explain(figure, axes, ax is None)
    return figure
