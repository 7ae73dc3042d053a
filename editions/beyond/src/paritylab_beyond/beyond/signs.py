"""Are signs special? Discrete laws with and without an exponential rate, by width."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import cycle
from typing import Any

import numpy as np
from abbe2024.training import difference, final, trained
from matplotlib.ticker import NullFormatter

from paritylab import Curves, alignment_rate, plots
from paritylab.aliases import Floats
from paritylab.claims import Findings, Lab, Trial, at_least, at_most, claim, holds, size
from paritylab.claims.intervals import mean, share
from paritylab.measures.alignment.laws import law
from paritylab_beyond.beyond.growth import LEARNT, MOVED, Cell, growth, moved_alignments

NAMES = {
    "rademacher": "{±1}",
    "discrete:-3,-1,1,3": "{±1,±3}",
    "discrete:-5,-3,-1,1,3,5": "{±1,±3,±5}",
    "discrete:-1.41421,-1,1,1.41421": "{±1,±√2}",
    "discrete:-2,-1,1,2": "{±1,±2}",
}
ODD = ("rademacher", "discrete:-3,-1,1,3", "discrete:-5,-3,-1,1,3,5")
"""Odd multiples of one constant, by variance."""
DECAYING = "discrete:-2,-1,1,2"
Case = tuple[int, str, int]
Got = tuple[list[Curves], list[dict[str, Floats]]]


@claim(
    "beyond.signs-special",
    where="after Abbe et al. (2024), Section 6",
    kind="empirical",
    title="Which discrete starts learn the full parity, and with which width",
    statement="""Signs are one of many: networks learn the full parity from the discrete laws whose alignment does not
decay exponentially, c = 0, once they are wide enough, and the width grows with the variance in units of the lattice.
From {±1,±2}, c > 0, they do not.""",
    published="a statement of our own; it corrects one of ours, that {±1,±3} trains far worse than signs",
)
class SignsSpecial(Trial):
    """Final accuracy of two-layer networks by law, width and dimension: hinge, SGD at 0.01, batches of 64."""

    laws = size(quick=["rademacher", "discrete:-3,-1,1,3", DECAYING], full=list(NAMES))
    d = size(quick=[20], full=[40, 50])
    widths = size(quick=[64, 1024], full=[512, 1024, 2048, 4096, 8192])
    moved = size(quick=[0.0, 0.1], full=list(MOVED), label="movements")
    steps = size(quick=6000, full=50_000)
    runs = size(quick=2, full=5)

    learns = at_least("accuracy from {law} at the largest width, d = {d}", LEARNT, only=("full",))
    fails = at_most("accuracy from {law} at the largest width, d = {d}", 0.6, only=("full",))
    wider = holds("d = {d}: least widths with accuracy 0.75 from odd lattices by variance, {widths}", "rising",
                  only=("full",))
    foretold = at_least("share of cells that reach 0.75 or not as the model of growth says", 0.8, only=("full",))
    by_width = at_least("accuracy from {law} at the largest width less that at the smallest, d = {d}", 0.15)

    @property
    def cases(self) -> list[Case]:
        return [(d, each, width) for d in self.d for each in self.laws for width in self.widths]

    def work(self, lab: Lab) -> Got:
        setups = [trained(each, d, (width,)) for d, each, width in self.cases]
        asked = [{"law": each, "d": d, "moved": self.moved} for d in self.d for each in self.laws]
        return (lab.curves_each(setups, self.steps, self.steps // 10, self.runs),
                lab.compute_each(moved_alignments, asked))

    def predicted(self, got: Got) -> dict[Case, float]:
        """Steps to accuracy 0.75 by the model of growth."""
        keys = [(d, each) for d in self.d for each in self.laws]
        tables = dict(zip(keys, got[1], strict=True))
        cells = [Cell(each, d, width) for d, each, width in self.cases]
        found = growth(cells, [tables[cell.d, cell.law] for cell in cells], 10 * self.steps).first()
        return dict(zip(self.cases, found.tolist(), strict=True))

    def judge(self, got: Got) -> Findings:
        reached, predicted = dict(zip(self.cases, map(final, got[0]), strict=True)), self.predicted(got)
        first, last = self.widths[0], self.widths[-1]
        checks = []
        for d in self.d:
            if len(self.laws) == len(NAMES):
                checks += [self.learns(*mean(reached[d, each, last]), law=NAMES[each], d=d)
                           for each in self.laws if each != DECAYING]
                least = [self.least(reached, d, each) for each in ODD]
                rising = least[0] < least[1] < least[2] or (least[0] < least[1] and np.isinf(least[2]))
                widths = ", ".join(f"{width:g}" for width in least)
                checks.append(self.wider(bool(rising), least[1], d=d, widths=widths))
            three = ODD[1]
            gain = difference(reached[d, three, last], reached[d, three, first])
            checks.append(self.by_width(*gain, law=NAMES[three], d=d))
        if len(self.laws) == len(NAMES):
            right = [(values.mean() >= LEARNT) == (predicted[case] <= self.steps) for case, values in reached.items()]
            checks.append(self.foretold(*share(right)))
            checks.append(self.fails(*mean(reached[self.d[-1], DECAYING, last]), law=NAMES[DECAYING], d=self.d[-1]))
        numbers = {f"least width with accuracy {LEARNT}, {NAMES[each]}, d = {d}": self.least(reached, d, each)
                   for d in self.d for each in self.laws}
        numbers |= {f"rate c, {NAMES[each]}": alignment_rate(each).rate for each in self.laws}
        return Findings(checks, self.rows(reached, predicted), numbers)

    def least(self, reached: Mapping[Case, np.ndarray], d: int, each: str) -> float:
        """The least width from which on the mean accuracy is at least 0.75; infinite if it never is."""
        found = np.inf
        for width in reversed(self.widths):
            if reached[d, each, width].mean() < LEARNT:
                break
            found = width
        return float(found)

    def rows(self, reached: Mapping[Case, np.ndarray], predicted: Mapping[Case, float]) -> list[dict[str, Any]]:
        return [{"d": d, "law": each, "variance": law(each).second_moment, "width": width, "run": run,
                 "accuracy": float(value), "predicted_steps": predicted[d, each, width]}
                for (d, each, width), values in reached.items() for run, value in enumerate(values)]

    def draw(self, got: Got) -> plots.Figure:
        return width_plot(dict(zip(self.cases, map(final, got[0]), strict=True)))


@plots.styled
def width_plot(reached: Mapping[Case, np.ndarray]) -> plots.Figure:
    """Mean accuracy with its interval against the width; a panel for each d, a line for each law."""
    dimensions, laws = list(dict.fromkeys(d for d, _, _ in reached)), list(dict.fromkeys(law for _, law, _ in reached))
    figure = plots.blank(0.8 + 1.7 * len(dimensions))
    panels = figure.subplots(len(dimensions), 1, sharex=True, squeeze=False)[:, 0]
    for axes, d in zip(panels, dimensions, strict=True):
        for each, colour, line in zip(laws, cycle(plots.COLOURS), cycle(plots.LINES), strict=False):
            widths = [width for case_d, law, width in reached if (case_d, law) == (d, each)]
            ends = np.array([[m, *interval] for m, interval in (mean(reached[d, each, width]) for width in widths)]).T
            axes.errorbar(widths, ends[0], np.clip(np.abs(ends[1:] - ends[0]), 0, 0.5), color=colour, linestyle=line,
                          marker="o", markersize=3, elinewidth=0.8, label=NAMES[each] if axes is panels[0] else None)
        axes.axhline(0.5, color=plots.GREY, linewidth=0.6)
        axes.set(xscale="log", ylabel=f"accuracy, d = {d}", ylim=(0.45, 1.03))
    panels[-1].set_xlabel("width")
    every = sorted({case[2] for case in reached})
    panels[-1].set_xticks(every, [str(width) for width in every])
    panels[-1].xaxis.set_minor_formatter(NullFormatter())
    plots.legend_above(figure, panels[0])
    return figure
