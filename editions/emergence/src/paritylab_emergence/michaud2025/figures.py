"""Figures of michaud2025: shares with intervals beside the published, and when tasks are learned."""

# matplotlib leaves its keyword arguments untyped.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Mapping
from itertools import cycle

import numpy as np

from paritylab.aliases import Floats
from paritylab.claims.intervals import proportion
from paritylab.claims.published import Count
from paritylab.plots import COLOURS, GREY, LINES, Figure, blank, legend_above, readable_log, styled


@styled
def shares(ours: Mapping[str, Count], published: Mapping[str, Count], smaller: bool) -> Figure:
    """Shares of runs that converged, with Clopper-Pearson intervals, beside the published counts."""
    figure = blank(2.5)
    axes = figure.add_subplot()
    size = "here, smaller problem" if smaller else "here"
    for name, found, offset, colour, marker in ((size, ours, -0.12, COLOURS[0], "o"),
                                                ("published", published, 0.12, COLOURS[1], "s")):
        for place, label in enumerate(ours):
            value, (low, high) = proportion(*found[label])
            axes.errorbar(place + offset, value, [[value - low], [high - value]], marker=marker, color=colour,
                          markersize=4, elinewidth=0.8, capsize=2, linestyle="none", label=name if not place else None)
            count, total = found[label]
            axes.annotate(f"{count}/{total}", (place + offset, value), xytext=(4 if offset > 0 else -4, 0),
                          textcoords="offset points", ha="left" if offset > 0 else "right", va="center", color=colour,
                          fontsize=6.5)
    axes.set_xticks(range(len(ours)), list(ours))
    axes.set(xlim=(-0.5, len(ours) - 0.5), ylim=(-0.03, 1.03), ylabel="share of runs that converged")
    axes.xaxis.set_tick_params(which="minor", bottom=False)
    legend_above(figure, axes)
    return figure


@styled
def arrivals(
    times: Mapping[str, Floats], end: float, ylabel: str, bounds: Mapping[str, float] | None = None
) -> Figure:
    """The share of runs that have learned each task, against examples up to the end; an infinite time is never."""
    figure = blank(2.4 + 0.08 * len(times))
    axes = figure.add_subplot()
    for (label, each), colour, line in zip(times.items(), cycle(COLOURS), cycle(LINES), strict=False):
        known = np.sort(each[np.isfinite(each)])
        x, y = [end / 100, *known, end], np.array([*range(len(known) + 1), len(known)]) / len(each)
        axes.step(x, y, where="post", color=colour, linestyle=line, label=label)
    for label, bound in (bounds or {}).items():
        axes.axvline(bound, color=GREY, linewidth=0.8, linestyle="--", label=label)
    axes.set(xlabel="examples", ylabel=ylabel, xlim=(end / 100, end), ylim=(-0.02, 1.03), xscale="log")
    readable_log(axes)
    legend_above(figure, axes)
    return figure
