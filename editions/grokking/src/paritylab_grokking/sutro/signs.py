"""Descent along the sign of the gradient against plain SGD, on the (20, 5) parity."""

from __future__ import annotations

from typing import Any

import numpy as np

from paritylab import SGD, Result, SignSGD, plots
from paritylab.aliases import Floats
from paritylab.claims import Findings, Lab, Trial, at_least, between, claim, size
from paritylab.claims.intervals import estimate, share
from paritylab.claims.medians import ratio_of_medians
from paritylab.claims.published import tail
from paritylab_grokking.sutro.common import INSIDE, passes, published, setup

SAMPLE = 5000
RULES = {"sgd": SGD(0.1, weight_decay=0.01, skip_satisfied=True),
         "sign": SignSGD(0.01, weight_decay=0.01, decay_form="decoupled", skip_satisfied=True)}
NAMES = {"sgd": "SGD", "sign": "sign descent"}
ACCURACIES = (0.9, 1.0)


@claim(
    "sutro.sign-sgd",
    where="findings, sign gradient",
    kind="empirical",
    title="Sign descent halves the passes on (20,5)",
    statement="""On the (20, 5) parity with 5000 examples, descent along the sign of the gradient reaches 90 % test
    accuracy in half the passes of plain SGD; both solve it in every run.""",
    published="Passes to 90 %: SGD 13, 15, 14; sign 7, 8, 7. To 100 %: 26, 35, 24 and 12, 12, 14",
)
class Signs(Trial):
    """Passes until 90 % and all of 500 test inputs are right, width 500."""

    runs = size(quick=4, full=100)
    passes = size(quick=30, full=500)

    sooner = between("median passes to 90 %, SGD / sign descent", 1.4, 2.8, claimed=2.0)
    solved = at_least("share of runs of {rule} that have all test inputs right within 500 passes", 0.95,
                      only=("standard", "full"))
    inside = at_least("smaller share of runs of {rule} on one side of the published {theirs:g} passes to 90 %", INSIDE)

    def work(self, lab: Lab) -> list[Result]:
        return lab.sweep([setup(20, 5, SAMPLE, 500, rule, self.passes, accuracy, tested=500)
                          for rule in RULES.values() for accuracy in ACCURACIES], self.runs)

    def times(self, got: list[Result]) -> dict[tuple[str, float], Floats]:
        """By rule and accuracy."""
        cases = [(rule, accuracy) for rule in RULES for accuracy in ACCURACIES]
        return {case: passes(result, SAMPLE) for case, result in zip(cases, got, strict=True)}

    def judge(self, got: list[Result]) -> Findings:
        times = self.times(got)
        checks = [self.sooner(*estimate(ratio_of_medians, times["sgd", 0.9], times["sign", 0.9], rng=self.rng(0)))]
        if self.size != "quick":
            checks += [self.solved(*share(np.isfinite(times[rule, 1.0])), rule=NAMES[rule]) for rule in RULES]
        checks += [self.inside(*tail(times[rule, 0.9], theirs), rule=NAMES[rule], theirs=theirs)
                   for rule in RULES for theirs in np.unique(published("sign gradient", f"{rule} k=5"))]
        rows: list[dict[str, Any]] = [
            {"rule": NAMES[rule], "run": run, **{f"passes to {accuracy:.0%}": _finite(times[rule, accuracy][run])
                                                 for accuracy in ACCURACIES}}
            for rule in RULES for run in range(self.runs)]
        numbers = {f"median passes to {accuracy:.0%}, {NAMES[rule]}": float(np.median(each))
                   for (rule, accuracy), each in times.items()}
        return Findings(checks, rows, numbers)

    def draw(self, got: list[Result]) -> plots.Figure:
        return solved_by_pass(self.times(got))


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


@plots.styled
def solved_by_pass(times: dict[tuple[str, float], Floats]) -> plots.Figure:
    """The share of runs that are there after so many passes, and the published ones as marks on the axis."""
    figure = plots.blank(2.3)
    axes = figure.add_subplot(xlabel="passes", ylabel="share of runs", ylim=(-0.02, 1.02))
    for (rule, accuracy), each in times.items():
        colour = plots.COLOURS[list(RULES).index(rule)]
        x = np.sort(each[np.isfinite(each)])
        y = np.arange(1, len(x) + 1) / len(each)
        axes.step([0, *x], [0, *y], where="post", color=colour, linestyle="solid" if accuracy < 1 else "dashed",
                  label=f"{NAMES[rule]}, {accuracy:.0%} right")
        if accuracy < 1:
            single = published("sign gradient", f"{rule} k=5")
            axes.plot(single, [0.5] * len(single), color=colour, marker="x", markersize=5, linestyle="none",
                      label=f"{NAMES[rule]}, published")
    axes.set_xlim(0, None)
    plots.legend_above(figure, axes, most=2)
    return figure
