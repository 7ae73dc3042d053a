"""Weight decay on a finite sample: too little or too much, and the parity is not learned in time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from paritylab import SGD, Result, plots
from paritylab.aliases import Floats
from paritylab.claims import Check, Findings, Lab, Trial, at_least, between, claim, size
from paritylab.claims.intervals import Estimate, largest, mean, proportion, smallest, together
from paritylab.claims.published import Count, fisher
from paritylab_grokking.sutro.common import passes, published, setup

INSIDE = (0.01, 0.05)
SAMPLE = 1000


@claim(
    "sutro.decay-window",
    where="findings, weight-decay sweep",
    kind="empirical",
    title="A window of weight decay",
    statement="""On the (20, 3) parity with 1000 examples only weight decays of 0.01 and 0.05 reach perfect test
    accuracy within 200 passes; 0.001 and 0.1 or more never do.""",
    published="""Solved 0, 5, 5, 0, 0, 0, 0 of 5 with decays of 0.001, 0.01, 0.05, 0.1, 0.5, 1 and 2; mean passes 39.0
    (28 to 49) at 0.01 and 45.8 (33 to 67) at 0.05""",
)
class DecayWindow(Trial):
    """Passes until 200 test inputs are right, width 200, rate 0.1; no update where every margin is satisfied."""

    decays = size(quick=[0.001, 0.01, 0.05, 0.1], full=[0.001, 0.01, 0.05, 0.1, 0.5, 1.0, 2.0], label="decay")
    runs = size(quick=10, full=200)
    passes = size(200)

    agrees = at_least("Fisher's p of the share solved against the published count, decay {decay:g}", 0.01, exact=True)
    window = at_least("smallest share solved with decay 0.01 or 0.05 less the largest with another", 0.5)
    soon = between("mean passes until solved, decay 0.01", 39.0 - 3 * 3.4, 39.0 + 3 * 3.4)
    late = between("mean passes until solved, decay 0.05", 45.8 - 3 * 5.8, 45.8 + 3 * 5.8)

    def work(self, lab: Lab) -> list[Result]:
        return lab.sweep([setup(20, 3, SAMPLE, 200, optimiser(decay), self.passes, 1.0) for decay in self.decays],
                         self.runs)

    def judge(self, got: list[Result]) -> Findings:
        times = self.times(got)
        solved = {decay: (int(np.isfinite(each).sum()), len(each)) for decay, each in times.items()}
        checks: list[Check] = [self.agrees(fisher(count, _counted(published("weight decay", str(decay)))), decay=decay)
                               for decay, count in solved.items()]
        checks += [self.window(*_gap([solved[decay] for decay in self.decays if decay in INSIDE],
                                     [solved[decay] for decay in self.decays if decay not in INSIDE])),
                   self.soon(*self.mean(times[0.01])), self.late(*self.mean(times[0.05]))]
        return Findings(checks, [_row(decay, each) for decay, each in times.items()])

    def times(self, got: list[Result]) -> dict[float, Floats]:
        return {decay: passes(result, SAMPLE) for decay, result in zip(self.decays, got, strict=True)}

    def mean(self, times: Floats) -> tuple[float | None, Any]:
        """Of all runs, with what is known of those that were not solved: they take at least all passes."""
        value, (low, high) = mean(np.minimum(times, self.passes))
        return value, (low, high if np.isfinite(times).all() else math.inf)

    def draw(self, got: list[Result]) -> plots.Figure:
        return window(self.times(got), self.passes)


def optimiser(decay: float) -> SGD:
    return SGD(0.1, weight_decay=decay, skip_satisfied=True)


def _counted(times: Floats) -> Count:
    return int(np.isfinite(times).sum()), len(times)


def _gap(inside: Sequence[Count], outside: Sequence[Count]) -> Estimate:
    """By how much the smallest share of some exceeds the largest of others; all intervals hold together."""
    level = together(len(inside) + len(outside))
    (least, (low, high)), (most, (bottom, top)) = (
        chosen([proportion(*count, level=level) for count in counts])
        for chosen, counts in ((smallest, inside), (largest, outside)))
    return least - most, (low - top, high - bottom)


def _row(decay: float, times: Floats) -> dict[str, Any]:
    theirs, solved = published("weight decay", str(decay)), np.isfinite(times)
    share, (low, high) = proportion(int(solved.sum()), len(times))
    return {"decay": decay, "runs": len(times), "solved": int(solved.sum()), "share": share, "low": low, "high": high,
            "mean passes of solved runs": float(times[solved].mean()) if solved.any() else None,
            "published: solved": int(np.isfinite(theirs).sum()), "published: runs": len(theirs)}


@plots.styled
def window(times: dict[float, Floats], most: int) -> plots.Figure:
    """Shares solved, and passes of those that are, by decay; published runs beside them."""
    figure = plots.blank(3.0)
    above, below = figure.subplots(2, 1, sharex=True)
    decays = list(times)
    found = [proportion(int(np.isfinite(each).sum()), len(each)) for each in times.values()]
    theirs = [published("weight decay", str(decay)) for decay in decays]
    value, ends = np.array([each[0] for each in found]), np.array([each[1] for each in found])
    runs = len(next(iter(times.values())))
    above.errorbar(decays, value, np.abs(ends.T - value), color=plots.COLOURS[0], fmt="o-", markersize=3.5, capsize=2,
                   label=f"here, {runs} runs each")
    above.plot(decays, [np.isfinite(each).mean() for each in theirs], color=plots.COLOURS[1], marker="s",
               markersize=3.5, linestyle="none", label="published, 5 runs each")
    for decay, each, single in zip(decays, times.values(), theirs, strict=True):
        solved = each[np.isfinite(each)]
        if len(solved):
            low, middle, high = np.quantile(solved, [0.025, 0.5, 0.975])
            below.errorbar([decay], [middle], [[middle - low], [high - middle]], color=plots.COLOURS[0], fmt="o",
                           markersize=3.5, capsize=2)
        below.plot([decay * 1.12] * len(single), single, color=plots.COLOURS[1], marker="s", markersize=2.5,
                   linestyle="none")
    above.set(ylabel="share solved", ylim=(-0.05, 1.05))
    below.set(xscale="log", xlabel="weight decay", ylabel="passes until solved", ylim=(0, most))
    plots.legend_above(figure, above)
    return figure
