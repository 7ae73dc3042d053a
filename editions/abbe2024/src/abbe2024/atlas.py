"""The initialisation atlas: does the exact alignment of a law foretell what a network that starts from it learns?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np

from abbe2024.training import DEEP, SHALLOW, final, named, ranks_agree, trained
from paritylab import Curves, alignment, alignment_rate, plots
from paritylab.claims import Findings, Lab, Trial, size
from paritylab.claims.intervals import mean
from paritylab.measures.alignment import alignments

LAWS = (
    "rademacher",
    "discrete:-3,-1,1,3",
    "discrete:-5,-3,-1,1,3,5",
    "perturbed-rademacher:0.05",
    "perturbed-rademacher:0.1",
    "perturbed-rademacher:0.2",
    "perturbed-rademacher:0.5",
    "perturbed-rademacher:1",
    "uniform-perturbed:0.1",
    "uniform-perturbed:0.3",
    "uniform-perturbed:1",
    "sparse-rademacher:0.2",
    "sparse-rademacher:0.3333333333333333",
    "sparse-rademacher:0.5",
    "discrete:-2,-1,1,2",
    "gaussian",
)
NETWORKS = {"two layers": SHALLOW, "four layers": DEEP}
SHIPPED = Path(__file__).with_name("data") / "atlas.csv"
"""The atlas that the package ships, as the program wrote it."""
LEARNT = 0.51
"""An accuracy whose interval is above this is printed in bold."""


class Atlas(Trial):
    """One row for each law, dimension and network: alignment, rate, and accuracy with its interval; it claims nothing.

    The alignment is that of one ReLU neuron whose bias follows the law of its weights, as in the network, on the
    parity of all d bits.
    """

    d = size(quick=[10, 20], full=[10, 20, 30, 50, 100])
    networks = size(quick=["two layers"], standard=["two layers"], full=list(NETWORKS))
    steps = size(quick=5000, full=50_000)
    runs = size(quick=3, full=5)

    def cases(self) -> list[tuple[str, int, str]]:
        """Network, dimension and law."""
        return [(name, d, each) for name in self.networks for d in self.d for each in LAWS]

    def work(self, lab: Lab) -> list[Curves]:
        setups = [trained(each, d, NETWORKS[name]) for name, d, each in self.cases()]
        return lab.curves_each(setups, self.steps, self.steps // 10, self.runs)

    def judge(self, got: list[Curves]) -> Findings:
        accuracies = [mean(final(curves)) for curves in got]
        points = [(d, each) for d in self.d for each in LAWS]
        asked = [{"init": each, "d": d, "unit": "relu", "bias": each} for d, each in points]
        exact = dict(zip(points, (found.log for found in alignments(asked)), strict=True))
        return Findings([], [
            {"init": each, "d": d, "network": name, "log10_alignment": exact[d, each] / np.log(10),
             "rate": alignment_rate(each).rate, "accuracy": centre, "low": low, "high": high, "runs": self.runs,
             "steps": self.steps}
            for (name, d, each), (centre, (low, high)) in zip(self.cases(), accuracies, strict=True)])


def atlas(lab: Lab) -> list[dict[str, Any]]:
    """The rows of the atlas at the Lab's size."""
    trial = Atlas(lab.size, lab.seed)
    return [dict(row) for row in trial.judge(trial.work(lab)).data]


def neuron_alignment(each: str, d: int) -> float:
    """The natural logarithm of E (E_x chi(x) relu(w.x + b))^2, weights and bias drawn from one law."""
    return alignment(each, d, unit="relu", bias=each).log


def agreement(rows: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """For each network and dimension, Spearman's correlation of alignment and accuracy over the laws."""
    found = {}
    for name, d in dict.fromkeys((row["network"], row["d"]) for row in rows):
        chosen = [row for row in rows if (row["network"], row["d"]) == (name, d)]
        values = [np.array([row[column] for row in chosen]) for column in ("log10_alignment", "accuracy")]
        if np.ptp(values[1]) > 0:
            found[f"{name}, d = {d}"] = ranks_agree(*values)
    return found


@plots.styled
def atlas_plot(rows: Sequence[Mapping[str, Any]]) -> plots.Figure:
    """Accuracy against exact alignment: a panel for each network, a colour for each dimension."""
    names = list(dict.fromkeys(row["network"] for row in rows))
    dimensions = list(dict.fromkeys(row["d"] for row in rows))
    figure = plots.blank(0.7 + 1.8 * len(names))
    for axes, name in zip(figure.subplots(len(names), 1, sharex=True, squeeze=False)[:, 0], names, strict=True):
        for d, colour, mark in zip(dimensions, cycle(plots.COLOURS), cycle("os^vD"), strict=False):
            chosen = [row for row in rows if row["d"] == d and row["network"] == name]
            x = [row["log10_alignment"] for row in chosen]
            y = np.array([[row["accuracy"], row["low"], row["high"]] for row in chosen]).T
            axes.errorbar(x, y[0], np.clip(np.abs(y[1:] - y[0]), 0, 0.5), fmt=mark, markersize=3, color=colour,
                          fillstyle="none", elinewidth=0.6, label=f"d = {d}" if name == names[0] else None)
        axes.axhline(0.5, color=plots.GREY, linewidth=0.6)
        axes.set(ylabel=f"accuracy, {name}", ylim=(0.45, 1.03))
    figure.axes[-1].set_xlabel("log10 of the exact alignment of a neuron")
    plots.legend_above(figure, figure.axes[0])
    return figure


def table(rows: Sequence[Mapping[str, Any]], network: str) -> str:
    """Laws by dimension as a Markdown table: log10 of the alignment, then accuracy."""
    dimensions = list(dict.fromkeys(row["d"] for row in rows))
    heads = " | ".join(f"d = {d}" for d in dimensions)
    lines = [f"| law | rate c | {heads} |", "|---" * (2 + len(dimensions)) + "|"]
    cells = {(row["init"], row["d"]): row for row in rows if row["network"] == network}
    for each in dict.fromkeys(row["init"] for row in rows):
        shown = " | ".join(_cell(cells[each, d]) for d in dimensions)
        lines.append(f"| {named(each)} | {cells[each, dimensions[0]]['rate']:.3f} | {shown} |")
    return "\n".join(lines)


def _cell(row: Mapping[str, Any]) -> str:
    accuracy = f"{row['accuracy']:.3f}"
    return f"{row['log10_alignment']:.1f}: " + (f"**{accuracy}**" if row["low"] > LEARNT else accuracy)
