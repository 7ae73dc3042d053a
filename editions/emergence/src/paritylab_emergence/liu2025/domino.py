"""Two independent parities, one of them rare (Figure 2, top left and bottom)."""

from __future__ import annotations

import math

import numpy as np

from paritylab import Curves, plots
from paritylab.claims import Findings, Lab, at_least, between, claim, size
from paritylab.claims.intervals import Estimate, estimate, share, together
from paritylab.claims.medians import exponent, ratio_of_medians
from paritylab.claims.published import tail
from paritylab_emergence.liu2025 import figures
from paritylab_emergence.liu2025.common import EVERY, INSIDE, Accuracies, Skills, finite, published, setup

PAIRS = ((0, 1), (2, 3))
RARE = 0.1
FIGURE = "2 top, case 1"


@claim(
    "liu2025.domino",
    where="Figure 2 (top left); introduction of the released code",
    kind="empirical",
    title="A task ten times rarer takes only twice as long",
    statement="""Of two independent 2-bit parities learned by one network with Adam, the one present in a tenth of the
    data is learned right after the frequent one, after about twice its time instead of ten times.""",
    published="t_1 = 194, t_2 = 411 in one run (read from the released figure, plus or minus 3): a ratio of 2.1",
)
class Domino(Skills):
    """First steps with 99 % of the sample right, and their ratio."""

    sample = size(quick=3000, full=10_000)
    runs = size(quick=20, standard=200, full=1000)
    steps = size(quick=700, full=1000)

    ratio = between("median t_2 / t_1", 1.5, 4, claimed=2.1)
    most = at_least("share of runs with t_2 / t_1 below 5", 0.95)
    inside = at_least("smaller share of runs on one side of the published {what} = {theirs:.3g}", INSIDE)

    def work(self, lab: Lab) -> list[Curves]:
        return self.record(lab, setup(PAIRS, self.sample, (1.0, RARE)), self.steps, self.runs)

    def judge(self, got: list[Curves]) -> Findings:
        times = Accuracies.of(got).times()
        first, second = times.T
        with np.errstate(invalid="ignore"):
            ratio = np.where(np.isfinite(first), second / first, np.inf)
        theirs = {"t_1": published(FIGURE, 1), "t_2": published(FIGURE, 2)}
        theirs["t_2 / t_1"] = theirs["t_2"] / theirs["t_1"]
        ours = dict(zip(theirs, (first, second, ratio), strict=True))
        checks = [self.ratio(*estimate(np.median, ratio, rng=self.rng(0))), self.most(*share(ratio < 5)),
                  *(self.inside(*tail(ours[what], value), what=what, theirs=value) for what, value in theirs.items())]
        rows = [{"run": run, "t_1": finite(a), "t_2": finite(b)} for run, (a, b) in enumerate(times)]
        return Findings(checks, rows, {f"median {what}": finite(np.median(each)) for what, each in ours.items()}, EVERY)

    def draw(self, got: list[Curves]) -> plots.Figure:
        theirs = [published(FIGURE, 1), published(FIGURE, 2)]
        labels = ["task 1, in all examples", "task 2, in a tenth"]
        return figures.accuracies({"": (Accuracies.of(got), labels, theirs)})


@claim(
    "liu2025.frequency",
    where="Figure 2 (bottom)",
    kind="empirical",
    title="Learning time grows slowly with rarity",
    statement="""As the second task is made rarer, from always present to one in twenty, its learning time little more
    than doubles.""",
    published="""t_2 = 188, 206, 278, 335, 413 (plus or minus 9) with shares 1, 0.5, 0.2, 0.1, 0.05, one run each: a
    power 0.27 of 1/p""",
)
class Frequency(Skills):
    """First steps with 75 % of the sample right: the printed panels are too small for 99 %."""

    sample = size(quick=3000, full=10_000)
    shares = size(quick=[1.0, 0.1], full=[1.0, 0.5, 0.2, 0.1, 0.05])
    runs = size(quick=10, standard=40, full=200)
    steps = size(quick=700, full=1000)
    accuracy = 0.75

    slope = between("log-log slope of median t_2 on 1/p", 0.15, 0.5, only=("standard", "full"), claimed=0.27)
    inside = at_least("shares p, of five, with the published t_2 between our 0.5 % and 99.5 % quantiles", 4,
                      only=("standard", "full"))
    slower = between("median t_2 with p = 0.1 / with p = 1", 1.4, 4, only=("quick",))

    def work(self, lab: Lab) -> list[list[Curves]]:
        return [self.record(lab, setup(PAIRS, self.sample, (1.0, p)), self.steps, self.runs) for p in self.shares]

    def times(self, got: list[list[Curves]]) -> list[np.ndarray]:
        """Of task 2, for each share."""
        return [Accuracies.of(each).times(self.accuracy)[:, 1] for each in got]

    def judge(self, got: list[list[Curves]]) -> Findings:
        times, theirs = self.times(got), self.theirs
        if self.size == "quick":
            checks = [self.slower(*estimate(ratio_of_medians, times[-1], times[0], rng=self.rng(0)))]
        else:
            places = [tail(each, value, together(len(times))) for each, value in zip(times, theirs, strict=True)]
            checks = [self.slope(*exponent([1 / p for p in self.shares], times)), self.inside(*_inside(places))]
        rows = [{"share": p, "run": run, "t_2": finite(value), "published": single}
                for p, each, single in zip(self.shares, times, theirs, strict=True) for run, value in enumerate(each)]
        numbers = {f"median t_2, p = {p:g}": finite(np.median(each))
                   for p, each in zip(self.shares, times, strict=True)}
        return Findings(checks, rows, numbers, EVERY)

    @property
    def theirs(self) -> list[float]:
        return [published("2 bottom", 2, p, accuracy=75) for p in self.shares]

    def draw(self, got: list[list[Curves]]) -> plots.Figure:
        return figures.by_share(self.shares, self.times(got), self.theirs)


def _inside(places: list[Estimate]) -> tuple[float, tuple[float, float]]:
    """How many lie inside, with how many at least and at most, where each interval is right.

    >>> _inside([(0.3, (0.2, 0.4)), (0.01, (0.001, 0.03)), (0.0, (0.0, 0.001))])
    (2.0, (1.0, 2.0))
    """
    value, low, high = (math.fsum(end >= INSIDE for end in ends)
                        for ends in zip(*((value, *interval) for value, interval in places), strict=True))
    return value, (low, high)
