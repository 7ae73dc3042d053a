"""Fresh samples at 20 bits: almost-full parities, and the summary's first experiments."""

from __future__ import annotations

from typing import Any

import numpy as np

from abbe2024.training import DEEP, SHALLOW, accuracy_plot, final, law, named, rows, trained
from paritylab import Curves, alignment
from paritylab.claims import Findings, Lab, Trial, at_least, at_most, between, claim, size
from paritylab.claims.intervals import mean, share

D = 20
Case = tuple[tuple[int, ...], int, str]


@claim(
    "abbe2024.almost-full",
    where="Abstract; Section 1",
    kind="empirical",
    title="Almost-full parities with Rademacher weights",
    statement="""Parities over d-1 or d-2 coordinates remain learnable from Rademacher starts and unlearnable from
    Gaussian ones.""",
    published=""""almost-full parities" can be learned from Rademacher weights to "perfect accuracy" and not from
    Gaussian ones (Section 1). (Computed here: above 0.99 for |S|=19 after about 4000 steps, later for |S|=18.)""",
)
class AlmostFull(Trial):
    """Parities of all but one or two of 20 bits."""

    degree = size(quick=[19], full=[19, 18])
    depths = size(quick=[list(SHALLOW)], full=[list(SHALLOW), list(DEEP)], label="widths")
    steps = size(quick=6000, full=20_000)
    laws = ("rademacher", "gaussian")
    runs = size(quick=5, full=20)
    signs = at_least("mean accuracy, Rademacher, {network}", 0.9, part="{network}")
    gaussian = at_most("mean accuracy, Gaussian, {network}", 0.55, part="{network}")

    @property
    def cases(self) -> list[Case]:
        return [(tuple(widths), k, each) for widths in self.depths for k in self.degree for each in self.laws]

    def work(self, lab: Lab) -> list[Curves]:
        setups = [trained(each, D, widths, degree=k) for widths, k, each in self.cases]
        return lab.curves_each(setups, self.steps, 500, self.runs)

    def judge(self, got: list[Curves]) -> Findings:
        every = dict(zip(self.cases, got, strict=True))
        checks, numbers = [], {}
        for (widths, degree, init), curves in every.items():
            rule = self.signs if init == "rademacher" else self.gaussian
            checks.append(rule(*mean(final(curves)), network=kind(widths, degree)))
        for widths in map(tuple, self.depths):
            times = {}
            for degree in self.degree:
                signs, name = every[widths, degree, "rademacher"], kind(widths, degree)
                reached = signs.first(0.75)
                times[degree] = float(np.median(np.where(reached < 0, np.inf, reached)))
                numbers[f"median steps to accuracy 0.75, Rademacher, {name}"] = times[degree]
                numbers[f"mean accuracy, Rademacher, {name}"] = mean(final(signs))[0]
            if len(self.degree) > 1:
                numbers[f"ratio of these times, degree 18 to 19, {len(widths) + 1} layers"] = times[18] / times[19]
        for degree in self.degree:
            numbers[f"share of neurons whose alignment is not 0, degree {degree}"] = moving_neurons(D, degree)
        data = [row for (widths, degree, each), curves in every.items()
                for row in rows({each: curves}, widths=str(widths), degree=degree)]
        return Findings(checks, data, numbers)

    def draw(self, got: list[Curves]) -> Any:
        return accuracy_plot({f"{named(each)}, {kind(widths, degree)}": curves
                              for (widths, degree, each), curves in zip(self.cases, got, strict=True)})


def kind(widths: tuple[int, ...], degree: int) -> str:
    return f"{len(widths) + 1} layers, degree {degree}"


def moving_neurons(d: int, degree: int) -> float:
    """The share of the first layer's neurons for which E chi_S(x) relu(w.x + b) is not 0.

    Weights and bias are signs at one scale, so up to its sign this expectation takes two values, at b = 1 and b = -1.
    """
    values = [alignment("rademacher", d, degree=degree, unit="relu", bias=bias).value for bias in (-1, 1)]
    return float(np.mean(np.array(values) > 0))


class TwentyBits(Trial):
    """A two-layer network on the parity of 20 bits, from one law."""

    steps = size(quick=6000, full=20_000)
    runs = size(quick=5, full=10)
    lr = size(quick=[0.01], full=[0.01, 0.05])

    init: str

    def work(self, lab: Lab) -> list[Curves]:
        return lab.curves_each([trained(self.init, D, SHALLOW, lr=lr) for lr in self.lr], self.steps, 200, self.runs)

    def by_rate(self, got: list[Curves]) -> dict[str, Curves]:
        return {f"rate {lr:g}": curves for lr, curves in zip(self.lr, got, strict=True)}

    def numbers(self, got: list[Curves]) -> dict[str, float | None]:
        return {f"mean accuracy, {name}": mean(final(curves))[0] for name, curves in self.by_rate(got).items()}

    def draw(self, got: list[Curves]) -> Any:
        return accuracy_plot(self.by_rate(got))


class Wider(TwentyBits):
    """The same with 1,024 units, and enough runs for intervals."""

    width = size(1024)
    runs = size(quick=5, full=40)

    def work(self, lab: Lab) -> list[Curves]:
        setups = [trained(self.init, D, (self.width,), lr=lr) for lr in self.lr]
        return lab.curves_each(setups, self.steps, 200, self.runs)


@claim(
    "abbe2024.summary-exp1",
    where="summary note, first experiments 1",
    kind="empirical",
    title="d=20 full parity, Rademacher, two-layer network",
    statement="""A two-layer ReLU network with Rademacher weights learns the 20-bit full parity to perfect
    accuracy.""",
    published=""""verify perfect accuracy is achieved" (summary note; no width, rate or number of steps)""",
)
class SummaryExp1(Wider):
    """Rademacher weights: a two-layer network learns the 20-bit parity."""

    init = "rademacher"
    accuracy = at_least("mean accuracy, rate {lr:g}", 0.995, part="rate {lr:g}")
    solved = at_least("share of runs that are right on all 10^4 inputs at some check, rate {lr:g}", 0.9,
                      part="rate {lr:g}")

    def judge(self, got: list[Curves]) -> Findings:
        checks = []
        for lr, curves in zip(self.lr, got, strict=True):
            perfect = (curves.accuracy >= 1).any(axis=1)
            checks += [self.accuracy(*mean(final(curves)), lr=lr), self.solved(*share(perfect), lr=lr)]
        return Findings(checks, rows(self.by_rate(got)), self.numbers(got))


@claim(
    "abbe2024.summary-exp2",
    where="summary note, first experiments 2",
    kind="empirical",
    title="Same with Gaussian weights fails",
    statement="Replacing the weight law by a Gaussian leaves accuracy at chance.",
    published=""""verify the network fails to learn beyond random guessing" (summary note)""",
)
class SummaryExp2(Wider):
    """Gaussian weights: the same network stays at chance."""

    init = "gaussian"
    chance = between("mean accuracy over the last 10 checks, rate {lr:g}", 0.48, 0.52, part="rate {lr:g}")

    def judge(self, got: list[Curves]) -> Findings:
        checks = [self.chance(*mean(curves.accuracy[:, -10:].mean(axis=1)), lr=lr)
                  for lr, curves in zip(self.lr, got, strict=True)]
        return Findings(checks, rows(self.by_rate(got)), self.numbers(got))


@claim(
    "abbe2024.summary-exp3",
    where="summary note, first experiments 3",
    kind="empirical",
    title="Perturbed Rademacher at sigma=0.1, d=20",
    statement="A small Gaussian perturbation still allows learning at this dimension.",
    published=""""test whether learning succeeds or fails" (summary note)""",
)
class SummaryExp3(Wider):
    """A small Gaussian perturbation still allows learning at 20 bits."""

    init = law(0.1)
    accuracy = at_least("mean accuracy, sigma = 0.1, rate {lr:g}", 0.9, part="rate {lr:g}")

    def judge(self, got: list[Curves]) -> Findings:
        checks = [self.accuracy(*mean(final(curves)), lr=lr) for lr, curves in zip(self.lr, got, strict=True)]
        return Findings(checks, rows(self.by_rate(got)), self.numbers(got))
