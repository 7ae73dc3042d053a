"""What many Runs did: survival curves and histograms of samples."""

# matplotlib leaves its keyword arguments untyped.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.transforms import ScaledTranslation
from numpy.typing import NDArray

from paritylab.aliases import Floats
from paritylab.errors import require
from paritylab.palette import COLOURS, GREY
from paritylab.plots.style import LINES, blank, canvas, explain, readable_log, say, short, styled
from paritylab.statistics import Survival, still_training, survival
from paritylab.storage.records import SOLVED, Records

LINE = 8.5
"""Points between two lines of the counts below a survival curve."""


@styled
def survival_plot(
    samples: Mapping[str, Records],
    level: float = 0.95,
    *,
    counts: bool = False,
    ax: Axes | None = None,
    column: str = "single",
) -> Figure:
    """The fraction of runs still unsolved against steps, with confidence bands.

    A cross on a curve marks the steps at which runs were given up without being solved.

    Args:
        samples: Records by the label of their curve.
        level: of the bands, which hold at each step by itself.
        counts: whether to say below the axis how many runs were still training.
        ax: axes to draw in, instead of those of a new figure.
        column: how wide a new figure is, ``"single"`` or ``"double"``.

    >>> records = Records([0, 1], [0, 1], [10, -1], [10, 20], [1, 0.5], [0, 1])
    >>> survival_plot({"width 10": records}).axes[0].get_ylabel()
    'fraction unsolved'
    """
    told = len(samples) if counts else 0
    figure, axes = canvas(ax, 2.3 + 0.15 * (len(samples) // 3) + (0.2 + LINE / 72 * told if told else 0), column)
    draw_survival(axes, samples, level, counts)
    if not any(map(len, samples.values())):
        return say(figure, axes, "no runs")
    if len(samples) <= 2:
        axes.legend(loc="lower left")
    else:  # beside the curves there is no room left
        explain(figure, axes, ax is None, "lower left")
    return figure


def draw_survival(axes: Axes, samples: Mapping[str, Records], level: float, counts: bool) -> dict[str, Survival]:
    """The curves, without a legend; one without runs keeps its colour for others in its place."""
    curves = {label: survival(records, level) for label, records in samples.items() if len(records)}
    axes.set(xscale="log", xlabel="steps", ylabel="fraction unsolved", ylim=(0, 1.03))
    if not curves:
        return curves
    start = _left_end([curve.steps for curve in curves.values()])
    for label, colour, line in zip(samples, cycle(COLOURS), cycle(LINES), strict=False):
        if label not in curves:
            continue
        curve = curves[label]
        shown = _spread(curve.steps)
        steps = np.append(0.5, curve.steps[shown])  # from the left, wherever the axis begins
        unsolved, high = (np.append(1.0, y[shown]) for y in (curve.unsolved, curve.high))
        low = np.append(((1 - level) / 2) ** (1 / len(samples[label])), curve.low[shown])
        axes.step(steps, unsolved, where="post", color=colour, linestyle=line, label=label)
        axes.fill_between(steps, low, high, step="post", color=colour, alpha=0.2, linewidth=0)
        given_up = curve.censored > 0
        axes.plot(curve.steps[given_up], curve.unsolved[given_up], "+", color=colour, markersize=6, zorder=3)
    last = max(10 * start, *(float(curve.steps[-1]) for curve in curves.values()))
    axes.set_xlim(start, last * (last / start) ** 0.05)
    readable_log(axes)
    if counts:
        _draw_counts(axes, list(samples.values()))
    return curves


def _draw_counts(axes: Axes, samples: Sequence[Records]) -> None:
    """Below the axis, at its labels: how many runs of each curve were still training."""
    left, right = axes.get_xlim()
    steps = [tick for tick in axes.get_xticks() if left <= tick <= right]
    across, figure = axes.get_xaxis_transform(), axes.figure

    def lowered(transform: Any, line: float) -> Any:
        return transform + ScaledTranslation(0, -(31 + LINE * line) / 72, figure.dpi_scale_trans)

    axes.text(0.5, 0, "still training", transform=lowered(axes.transAxes, 0), fontsize=7, ha="center", va="center",
              color=GREY)
    for line, (records, colour, dashes) in enumerate(zip(samples, cycle(COLOURS), cycle(LINES), strict=False), 1):
        axes.add_line(Line2D([-0.14, -0.05], [0, 0], transform=lowered(axes.transAxes, line), color=colour,
                             linestyle=dashes, clip_on=False))
        for step, runs in zip(steps, still_training(records, steps), strict=True):
            axes.text(step, 0, short(runs), transform=lowered(across, line), fontsize=7, ha="center", va="center")


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
        heights, _ = np.histogram(times, edges)
        unsolved = f"{label} ({100 * (1 - len(times) / runs):.3g} % unsolved)"
        axes.stairs(heights / runs, edges, color=colour, linestyle=line, linewidth=1.2, label=unsolved)
    if reference is not None:
        unsolved = (1 - 1 / reference) ** np.maximum(edges - spacing / 2, 0)
        centres = (edges[:-1] + edges[1:]) / 2
        label = f"geometric, mean {reference:.6g}"
        axes.plot(centres, -np.diff(unsolved), color=GREY, linestyle="dotted", label=label)
    axes.set_xlim(left=0)
    axes.set_ylim(bottom=0)
    axes.legend(loc="upper right")
    return figure


def _left_end(curves: Sequence[Floats]) -> float:
    """Where a log axis should begin: left of the first step, and a decade long at least."""
    first, last = min(steps[0] for steps in curves), max(steps[-1] for steps in curves)
    return float(max(0.8, min(0.8 * first, 0.1 * last)))


def _spread(steps: Floats, most: int = 500) -> NDArray[np.int64]:
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
