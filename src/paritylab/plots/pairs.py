"""Two learners on the same runs."""

# matplotlib leaves its keyword arguments untyped.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import math

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from paritylab.palette import COLOURS, GREY
from paritylab.plots.style import canvas, readable_log, say, short, styled
from paritylab.statistics import Paired, paired
from paritylab.storage.records import SOLVED, Records

BEYOND = 1.35
"""Where runs that were not solved are drawn, times the last step of any."""


@styled
def pairs_plot(
    first: Records,
    second: Records,
    labels: tuple[str, str],
    level: float = 0.95,
    *,
    ax: Axes | None = None,
    column: str = "single",
) -> Figure:
    """Steps to convergence of two learners on the same runs, against each other; a larger disc is several runs.

    Above the diagonal the first was faster. A run that one of them did not solve lies beyond the dotted line, as an
    open triangle.

    Args:
        first: Records of one learner.
        second: those of the other, of the same runs in the same order.
        labels: what they are called.
        level: of the interval of the median ratio of their steps, which the title has.
        ax: axes to draw in, instead of those of a new figure.
        column: how wide a new figure is, ``"single"`` or ``"double"``.

    >>> records = Records([0, 1], [0, 1], [10, -1], [10, 20], [1, 0.5], [0, 1])
    >>> pairs_plot(records, records, ("A", "B")).axes[0].get_xlabel()
    'steps, A'
    """
    figure, axes = canvas(ax, 2.9, column)
    axes.set(xlabel=f"steps, {labels[0]}", ylabel=f"steps, {labels[1]}")
    if not len(first):
        return say(figure, axes, "no runs")
    solved = [each.status == SOLVED for each in (first, second)]
    times = [np.maximum(each.t_c, 1) for each in (first, second)]
    known = np.concatenate([time[mine] for time, mine in zip(times, solved, strict=True)])
    if not len(known):
        return say(figure, axes, "no run was solved")
    last = max(float(known.max()), *(float(each.steps.max()) for each in (first, second)))
    edge, beyond = last * BEYOND**0.5, last * BEYOND
    places = np.stack([np.where(mine, time, beyond) for time, mine in zip(times, solved, strict=True)], axis=1)
    at, runs = np.unique(places[solved[0] | solved[1]], axis=0, return_counts=True)
    both = (at < edge).all(axis=1)
    for size in np.unique(diameters := np.round(6 * runs**0.25) / 2):  # in few sizes, which makes small files
        mine = diameters == size
        axes.plot(*at[both & mine].T, "o", color=COLOURS[0], alpha=0.55, markersize=size, markeredgewidth=0)
        axes.plot(*at[~both & mine].T, "^", color=COLOURS[1], markerfacecolor="none", markersize=1.2 * size,
                  markeredgewidth=0.8, zorder=3)
    axes.set(xscale="log", yscale="log")
    low = 0.8 * float(known.min())
    axes.plot([low, last], [low, last], color=GREY, linewidth=0.8)
    if (at[:, 0] > edge).any():
        axes.axvline(edge, color=GREY, linewidth=0.8, linestyle="dotted")
        axes.text(beyond, 0.99, "not solved", transform=axes.get_xaxis_transform(), rotation=90, ha="center", va="top",
                  fontsize=7, color=COLOURS[1])
    if (at[:, 1] > edge).any():
        axes.axhline(edge, color=GREY, linewidth=0.8, linestyle="dotted")
        axes.text(0.01, beyond, "not solved", transform=axes.get_yaxis_transform(), va="center", fontsize=7,
                  color=COLOURS[1])
    top = beyond * 1.1 if (~both).any() else 1.2 * float(known.max())
    axes.set(xlim=(low, top), ylim=(low, top))
    readable_log(axes)
    axes.set_title(_told(paired(first, second, level=level)), fontsize=7)
    return figure


def _told(found: Paired) -> str:
    """What the pairs say, in a line."""
    low, high = (short(end) for end in found.ratio_interval)
    ratio = "ratio of steps in" if math.isnan(found.ratio) else f"median ratio of steps {short(found.ratio)}"
    chance = "$p < 0.001$" if found.p_value < 0.001 else f"$p = {found.p_value:.2g}$"
    return f"{ratio} [{low}, {high}], {chance}, {found.pairs} pairs"
