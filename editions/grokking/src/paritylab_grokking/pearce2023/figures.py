"""The map of outcomes, and counts along one axis of it."""

# matplotlib leaves its keyword arguments untyped.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from paritylab import plots
from paritylab_grokking.pearce2023.common import EACH
from paritylab_grokking.pearce2023.outcomes import DIRECT, GROK, MEMORISE, NO_FIT, OUTCOMES, Cell, Networks

LOOKS: Mapping[str, tuple[str, str]] = {MEMORISE: ("#f0b37e", "////"), GROK: ("#0072b2", ""), DIRECT: ("#000000", ""),
                                        NO_FIT: ("#ffffff", "")}
"""Colour and hatch: told apart without colours by light and dark."""
WORDS: Mapping[str, str] = {MEMORISE: "memorise", GROK: "grok", DIRECT: "generalise directly", NO_FIT: "do not fit"}
MARKS: Mapping[str, tuple[str, str]] = {MEMORISE: ("s", "dashed"), GROK: ("o", "solid"), DIRECT: ("D", "dashdot"),
                                        NO_FIT: ("^", "dotted")}


@plots.styled
def draw_map(ours: Networks, published: Networks) -> Figure:
    """A panel for each sample size, published above ours: of each cell a bar with the share of every outcome."""
    decays, widths, samples = (sorted({cell[i] for cell in ours.cells}) for i in range(3))
    figure = plots.blank(0.75 + 0.29 * 2 * max(4, len(widths)), "double")
    grid = figure.subplots(2, len(samples), sharex=True, sharey=True, squeeze=False)
    for row, (networks, whose) in enumerate(((published, "published"), (ours, "here"))):
        for axes, sample in zip(grid[row], samples, strict=True):
            for i, decay in enumerate(decays):
                for j, width in enumerate(widths):
                    _bar(axes, i, j, networks, (float(decay), int(width), int(sample)))
            axes.set(xlim=(-0.55, len(decays) - 0.45), ylim=(-0.55, len(widths) - 0.45))
            axes.spines[:].set_visible(False)
            axes.tick_params(length=0)
            axes.set_xticks(range(len(decays)), [f"{decay:g}" for decay in decays])
            axes.set_yticks(range(len(widths)), [str(width) for width in widths])
            if row == 0:
                axes.set_title(f"{sample} examples")
        runs = sorted({len(found) for cell, found in networks.cells.items() if cell in ours.cells})
        grid[row][0].set_ylabel(f"{whose},\n{runs[-1]} runs a cell")
    figure.supxlabel("weight decay", fontsize=8)
    figure.supylabel("width", fontsize=8)
    handles = [Patch(facecolor=colour, hatch=hatch, edgecolor="black", linewidth=0.5, label=WORDS[name])
               for name, (colour, hatch) in LOOKS.items()]
    figure.legend(handles=handles, loc="outside upper center", ncols=len(handles))
    return figure


def _bar(axes: Axes, x: int, y: int, networks: Networks, cell: Cell) -> None:
    """The shares of outcomes in a cell, from left to right."""
    shares: Mapping[str, float] = dict(zip(OUTCOMES, networks.shares(cell).tolist(), strict=True))
    width, height, left = 0.9, 0.8, x - 0.45
    for name, (colour, hatch) in LOOKS.items():
        if shares[name]:
            axes.add_patch(Rectangle((left, y - height / 2), width * shares[name], height, facecolor=colour,
                                     hatch=hatch, edgecolor="black", linewidth=0.3))
            left += width * shares[name]


@plots.styled
def draw_counts(rows: Sequence[Mapping[str, Any]], axis: str) -> Figure:
    """Networks of 225 with each outcome along an axis: points with intervals are ours, crosses the published ones."""
    figure = plots.blank(2.5)
    values = list(dict.fromkeys(row[axis] for row in rows))
    axes = figure.add_subplot(xlabel="examples" if axis == "sample" else axis, ylabel=f"networks of {EACH}")
    x = np.arange(len(values))
    for name, colour in zip(LOOKS, plots.COLOURS, strict=False):
        own = [row for row in rows if row["outcome"] == name]
        y, low, high, theirs = (np.array([row[key] for row in own]) for key in ("of 225", "low", "high", "published"))
        marker, line = MARKS[name]
        axes.errorbar(x, y, [y - low, high - y], marker=marker, markersize=3.5, color=colour, linestyle=line,
                      elinewidth=0.8, capsize=1.5, label=WORDS[name])
        axes.plot(x, theirs, "x", color=colour, markersize=5, markeredgewidth=0.9)
    axes.plot([], [], "x", color=plots.GREY, label="published")
    axes.set_xticks(x, [f"{value:g}" for value in values])
    figure.legend(*axes.get_legend_handles_labels(), loc="outside upper center", ncols=3)
    return figure
