"""A 4-bit parity beside its two halves, and beside two others (Figure 2, top right; Figure 16)."""

from __future__ import annotations

import numpy as np

from paritylab import Curves, plots
from paritylab.aliases import Floats
from paritylab.claims import Findings, Lab, at_least, at_most, claim, size
from paritylab.claims.intervals import estimate, share
from paritylab.claims.medians import ratio_of_medians
from paritylab.claims.published import tail
from paritylab_emergence.liu2025 import figures
from paritylab_emergence.liu2025.common import EVERY, INSIDE, Accuracies, Skills, finite, published, setup

HALVES = ((2, 3), (0, 1))
SHARED, OTHERS = (0, 1, 2, 3), (4, 5, 6, 7)
LABELS = ("two bits", "two more", "all four")
OTHER_LABELS = (*LABELS[:2], "four others")
SOON = 700
"""At this step accuracies tell the two cases apart in quick trials."""


class Composite(Skills):
    """A trial on two 2-bit parities and a 4-bit one."""

    sample = size(quick=3000, full=8000)
    shared_steps = size(quick=800, full=1000, label="steps with shared bits")

    def shared(self, lab: Lab, runs: int) -> list[Curves]:
        return self.record(lab, setup([*HALVES, SHARED], self.sample), self.shared_steps, runs)


@claim(
    "liu2025.composite",
    where="Figure 2 (top right); Figure 16 (top)",
    kind="empirical",
    title="A 4-bit parity waits for its two halves",
    statement="""Learned together with its two 2-bit halves, a 4-bit parity starts to improve only when both are nearly
    learned.""",
    published="t = 282, 306 and 576 (plus or minus 3), one run",
)
class Waiting(Composite):
    """First steps with 99 % of the sample right, and the whole when the slower half has 90 %."""

    runs = size(quick=10, standard=200, full=500)

    waits = at_least("share of runs in which the 4-bit parity is last, and below 0.7 when the slower half reaches 0.9",
                     0.95)
    inside = at_least("smaller share of runs on one side of the published t_{task} = {theirs:g}", INSIDE)

    def work(self, lab: Lab) -> list[Curves]:
        return self.shared(lab, self.runs)

    def judge(self, got: list[Curves]) -> Findings:
        found = Accuracies.of(got)
        times, then = found.times(), whole_when_halves(found)
        last = times[:, 2] > times[:, :2].max(axis=1)
        theirs = self.theirs
        checks = [self.waits(*share(last & (then < 0.7))),
                  *(self.inside(*tail(times[:, task], value), task=task + 1, theirs=value)
                    for task, value in enumerate(theirs))]
        rows = [{"run": run, **{f"t_{task + 1}": finite(each) for task, each in enumerate(times[run])},
                 "accuracy of the whole then": finite(then[run])} for run in range(len(times))]
        numbers = {f"median t_{task + 1}": finite(np.median(times[:, task])) for task in range(3)}
        return Findings(checks, rows, numbers, EVERY)

    @property
    def theirs(self) -> list[float]:
        return [published("2 top, case 2", task) for task in (1, 2, 3)]

    def draw(self, got: list[Curves]) -> plots.Figure:
        return figures.accuracies({"": (Accuracies.of(got), LABELS, self.theirs)})


@claim(
    "liu2025.unrelated",
    where="Figure 16 (bottom left)",
    kind="empirical",
    title="Without its halves the same parity takes four times as long",
    statement="""If the 4-bit parity is on four other bits, so that the two 2-bit tasks are no steps towards it, it
    takes several times longer.""",
    published="t_3 = 2431 (plus or minus 6) against 576 with shared bits, one run each",
)
class Unrelated(Composite):
    """The 4-bit parity on bits 5 to 8, beside that on bits 1 to 4."""

    runs = size(quick=6, standard=60, full=200)
    steps = size(quick=2000, full=3000, label="steps with other bits")

    later = at_least("median t_3 / that with shared bits (runs not done count as later)", 2.5,
                     only=("standard", "full"), claimed=2431 / 576)
    inside = at_least("smaller share of runs on one side of the published t_3 = 2431", INSIDE,
                      only=("standard", "full"))
    apart = at_most(f"median accuracy of output 3 at step {SOON}, other bits", 0.8, only=("quick",))
    together = at_least(f"median accuracy of output 3 at step {SOON}, shared bits", 0.95, only=("quick",))

    def work(self, lab: Lab) -> tuple[list[Curves], list[Curves]]:
        other = self.record(lab, setup([*HALVES, OTHERS], self.sample), self.steps, self.runs)
        return other, self.shared(lab, self.runs)

    def judge(self, got: tuple[list[Curves], list[Curves]]) -> Findings:
        other, shared = (Accuracies.of(each) for each in got)
        times = [each.times()[:, 2] for each in (other, shared)]
        if self.size == "quick":
            checks = [rule(*estimate(np.median, each.at(SOON)[:, 2], rng=self.rng(i)))
                      for i, (rule, each) in enumerate(((self.apart, other), (self.together, shared)))]
        else:
            checks = [self.later(*estimate(ratio_of_medians, *times, rng=self.rng(0))),
                      self.inside(*tail(times[0], published("16 bottom", 3)))]
        rows = [{"run": run, "t_3, other bits": finite(times[0][run]), "t_3, shared bits": finite(times[1][run])}
                for run in range(self.runs)]
        numbers = {"median t_3, other bits": finite(np.median(times[0])),
                   "median t_3, shared bits": finite(np.median(times[1]))}
        return Findings(checks, rows, numbers, EVERY)

    def draw(self, got: tuple[list[Curves], list[Curves]]) -> plots.Figure:
        other, shared = (Accuracies.of(each) for each in got)
        theirs = [[published(figure, task) for task in (1, 2, 3)] for figure in ("2 top, case 2", "16 bottom")]
        return figures.accuracies({"the 4-bit parity of the same four bits": (shared, LABELS, theirs[0]),
                                   "the 4-bit parity of four other bits": (other, OTHER_LABELS, theirs[1])})


def whole_when_halves(found: Accuracies, threshold: float = 0.9) -> Floats:
    """The accuracy of the third output when the slower of the first two reaches this one; NaN where it does not."""
    there = np.min(found.values[..., :2], axis=2) >= threshold
    first = there.argmax(axis=1)
    return np.where(there.any(axis=1), found.values[np.arange(len(first)), first, 2], np.nan)
