"""Measured values beside published ones."""

# matplotlib leaves its keyword arguments untyped.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple, TypeGuard

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from paritylab.aliases import Interval
from paritylab.plots import COLOURS, blank, readable_log, say, styled


class Compared(NamedTuple):
    """A row of :func:`comparison_plot`; None (or ``inf``): the value was not reached, or not published."""

    label: str
    measured: float | None
    interval: Interval | None
    published: float | None


@styled
def comparison_plot(
    rows: Sequence[Compared | tuple[str, float | None, Interval | None, float | None]],
    quantity: str = "steps",
) -> Figure:
    """Measured values with their intervals beside published ones, on a log axis, first row on top.

    An arrow ends an interval that goes on beyond the axis.

    >>> comparison_plot([("n=30, k=3", 330, (310, 340), 320)]).axes[0].get_xlabel()
    'steps'
    """
    compared = [Compared(*row) for row in rows]
    figure = blank(0.75 + 0.22 * max(3, len(compared)))
    axes = figure.add_subplot(xscale="log", xlabel=quantity, ylim=(len(compared) - 0.4, -0.6))
    values = [
        x for row in compared for x in (row.measured, row.published, *(row.interval or ())) if _drawable(x)
    ]
    if not values:
        return say(figure, axes, "no values")
    left, right = 0.7 * min(values), 1.4 * max(values)
    axes.set_xlim(left, right)
    axes.set_yticks(range(len(compared)), [row.label for row in compared])
    axes.tick_params(axis="y", length=0, pad=6)
    axes.spines["left"].set_visible(False)
    for place, row in enumerate(compared):
        if row.interval is not None:
            _draw_interval(axes, place, row.interval)
        if not _drawable(row.measured):
            axes.annotate("not reached", (1, place), (6, 0), xycoords=("axes fraction", "data"),
                          textcoords="offset points", color=COLOURS[0], va="center", fontsize=7)
    for marker, colour, size, label in (("o", COLOURS[0], 4, "measured"), ("D", COLOURS[1], 6, "published")):
        points = [(x, place) for place, row in enumerate(compared) if _drawable(x := getattr(row, label))]
        fill = colour if label == "measured" else "none"
        axes.plot([x for x, _ in points], [place for _, place in points], marker, color=colour, markerfacecolor=fill,
                  markersize=size, label=label)
    readable_log(axes)
    figure.legend(*axes.get_legend_handles_labels(), loc="outside upper center", ncols=2, handletextpad=0.2)
    return figure


def _drawable(value: float | None) -> TypeGuard[float]:
    return value is not None and math.isfinite(value) and value > 0


def _draw_interval(axes: Axes, place: int, interval: Interval) -> None:
    limits = axes.get_xlim()
    inside = [min(max(end, limits[0]), limits[1]) for end in interval]
    axes.plot(inside, [place, place], color=COLOURS[0], linewidth=1.2, solid_capstyle="butt")
    for end, shown, marker in zip(interval, inside, ("<", ">"), strict=True):
        style = "|" if end == shown else marker
        axes.plot([shown], [place], style, color=COLOURS[0], markersize=4, clip_on=False)
