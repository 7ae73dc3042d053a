"""Figures of the claims."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes

from paritylab import plots
from paritylab.aliases import Floats
from paritylab.plots.style import own_ticks
from paritylab_emergence.liu2025.common import LEARNED, Accuracies


def draw_accuracies(axes: Axes, found: Accuracies, labels: Sequence[str], theirs: Sequence[float]) -> None:
    """The median accuracy of each output with the middle 95 % of runs, and a cross at each published time."""
    for j, (label, single) in enumerate(zip(labels, theirs, strict=True)):
        low, middle, high = np.quantile(found.values[..., j], [0.025, 0.5, 0.975], axis=0)
        axes.fill_between(found.steps, low, high, color=plots.COLOURS[j], alpha=0.2, linewidth=0)
        axes.plot(found.steps, middle, color=plots.COLOURS[j], linestyle=plots.LINES[j], label=label)
        if single <= found.steps[-1]:
            axes.plot([single], [LEARNED], color=plots.COLOURS[j], marker="x", markersize=6)
    axes.set(xlim=(0, found.steps[-1]), ylim=(0.45, 1.02), ylabel="accuracy")


@plots.styled
def accuracies(panels: Mapping[str, tuple[Accuracies, Sequence[str], Sequence[float]]]) -> plots.Figure:
    """A panel for each case."""
    figure = plots.blank(1.5 * len(panels) + 0.5)
    every = figure.subplots(len(panels), 1, squeeze=False)[:, 0]
    for axes, (title, (found, labels, theirs)) in zip(every, panels.items(), strict=True):
        draw_accuracies(axes, found, labels, theirs)
        if len(panels) > 1:
            axes.set_title(title, fontsize=7)
        axes.legend(loc="lower right", fontsize=6)
    every[-1].set_xlabel("steps (crosses: 99 % in the published run)")
    return figure


@plots.styled
def by_share(shares: Sequence[float], times: Sequence[Floats], theirs: Sequence[float]) -> plots.Figure:
    """Times to 75 % against how rare the task is: medians with the middle 95 % of runs, and the published runs."""
    figure = plots.blank(2.3)
    axes = figure.add_subplot(xlabel="1 / share of examples in which task 2 counts", ylabel="steps to 75 %",
                              xscale="log", yscale="log")
    rarity = 1 / np.array(shares)
    low, middle, high = (np.array([np.quantile(each, q, method="lower") for each in times])
                         for q in (0.025, 0.5, 0.975))
    axes.errorbar(rarity, middle, [middle - low, np.where(np.isfinite(high), high, middle) - middle], capsize=2,
                  color=plots.COLOURS[0], fmt="o-", markersize=3.5, label=f"task 2, {len(times[0])} runs each")
    axes.plot(rarity * 1.05, theirs, color=plots.COLOURS[1], marker="x", linestyle="none", label="published runs")
    axes.plot(rarity, middle[0] * rarity, color=plots.GREY, linestyle="dashed", label="as long as it is rare")
    axes.set_ylim(100, 1000)
    own_ticks(axes, rarity.tolist())
    axes.set_yticks([100, 200, 500, 1000], ["100", "200", "500", "1000"])
    axes.minorticks_off()
    plots.legend_above(figure, axes, most=2)
    return figure
