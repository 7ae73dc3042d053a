"""The mean loss as a power of parameters and of steps, for several alpha (Appendix B)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from paritylab import Setup, plots
from paritylab.claims import Check, Findings, Lab, Trial, at_least, at_most, claim, size
from paritylab.engines.curves import Curves
from paritylab_emergence.fits import Exponent, exponent
from paritylab_emergence.michaud2023.common import Row, mean_bits, published, theory, zipf
from paritylab_emergence.michaud2023.figures import exponents
from paritylab_emergence.michaud2023.times import SMALLER, STRATIFIED

ALPHAS = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8]
WIDTHS = [9, 11, 14, 17, 20, 24, 29, 35, 41, 50, 59, 71, 85, 102, 122, 146, 175, 209, 250, 300]


class Sweep(Trial):
    """Networks on subtasks of Zipf's frequencies with several alpha."""

    as_published: tuple[str, ...] = ("full",)
    """Sizes with the published problem; others have a smaller one."""

    def note(self) -> str:
        return STRATIFIED if self.size in self.as_published else f"{SMALLER} {STRATIFIED}"


def by_alpha(found: Sequence[Curves], alphas: Sequence[float]) -> list[tuple[float, list[Curves]]]:
    """Each alpha with its own of what was recorded for one after the other, equally much for each."""
    each = len(found) // len(alphas)
    return [(alpha, list(found[i * each : (i + 1) * each])) for i, alpha in enumerate(alphas)]


@claim(
    "michaud2023.alpha-N",
    where="Appendix B, scaling for varying alpha (parameters)",
    kind="empirical",
    title="Width exponents cross the predicted line",
    statement="""Final loss falls as a power of the number of parameters; the exponent rises with alpha but more slowly
    than the predicted alpha_N = alpha: above it for small alpha, below it for large.""",
    published="""alpha_N = 0.229, 0.283, 0.339, 0.378, 0.454, 0.503, 0.571, 0.608 for alpha = 0.1 to 0.8, standard
    errors 0.010 to 0.021""",
)
class AlphaN(Sweep):
    """Least squares of the log of the final loss on the log of the number of parameters."""

    alphas = size(quick=[0.2, 0.8], full=ALPHAS)
    widths = size(quick=[8, 16, 32, 64], standard=[8, 16, 32, 64], full=WIDTHS)
    subtasks = size(quick=60, standard=60, full=500)
    task_bits = size(quick=40, standard=40, full=100, label="task bits")
    batch = size(quick=1000, standard=1000, full=20_000)
    steps = size(quick=4000, standard=4000, full=100_000)
    seeds = size(quick=2, standard=3, full=3)

    agree = at_least("alphas of eight whose exponent is within 2.576 joint standard errors of the published", 7,
                     exact=True, only=("full",))
    above = at_least("alpha_N - alpha, alpha = {alpha}", 0, only=("full",))
    below = at_most("alpha_N - alpha, alpha = {alpha}", 0, only=("full",))
    falls = at_least("alpha_N, alpha = {alpha}", 0, only=("quick", "standard"))
    steeper = at_least("alpha_N at the largest alpha less at the smallest", 0, only=("quick", "standard"))

    def setups(self, alpha: float) -> list[tuple[int, int, Setup]]:
        """Of each width and seed."""
        return [(width, seed, zipf(self.subtasks, self.task_bits, 3, alpha, width, self.batch, seed))
                for width, seed in itertools.product(self.widths, range(self.seeds))]

    def work(self, lab: Lab) -> list[Curves]:
        asked = [(setup, [seed]) for alpha in self.alphas for _, seed, setup in self.setups(alpha)]
        return lab.curves_each([setup for setup, _ in asked], [self.steps], runs=[runs for _, runs in asked])

    def judge(self, got: list[Curves]) -> Findings:
        rows = self._rows(got)
        found = self._exponents(rows)
        if self.size == "full":
            theirs = published("N")
            checks: list[Check] = [self.agree(sum(each.agrees(theirs[alpha]) for alpha, each in found.items()))]
            checks += [self.above(*found[alpha].less(alpha).estimate, alpha=alpha) for alpha in (0.1, 0.2)]
            checks += [self.below(*found[alpha].less(alpha).estimate, alpha=alpha) for alpha in (0.6, 0.7, 0.8)]
        else:
            checks = [self.falls(*each.estimate, alpha=alpha) for alpha, each in found.items()]
            checks.append(self.steeper(*found[self.alphas[-1]].minus(found[self.alphas[0]]).estimate))
        return Findings(checks, rows, {f"alpha_N at {alpha}": each.value for alpha, each in found.items()}, self.note())

    def _rows(self, got: list[Curves]) -> list[Row]:
        return [{"alpha": alpha, "width": width, "seed": seed, "parameters": self.parameters_of(width),
                 "loss in bits": float(mean_bits(setup, curves)[-1])}
                for alpha, each in by_alpha(got, self.alphas)
                for (width, seed, setup), curves in zip(self.setups(alpha), each, strict=True)]

    def parameters_of(self, width: int) -> int:
        """Weights and biases of a network with two logits."""
        return (self.subtasks + self.task_bits + 3) * width + 2

    def _exponents(self, rows: list[Row]) -> dict[float, Exponent]:
        found: dict[float, Exponent] = {}
        for alpha in self.alphas:
            here = [row for row in rows if row["alpha"] == alpha]
            fit = exponent([row["parameters"] for row in here], [row["loss in bits"] for row in here])
            found[alpha] = fit._replace(value=-fit.value)
        return found

    def draw(self, got: list[Curves]) -> plots.Figure:
        return exponents("N", self._exponents(self._rows(got)), self.size != "full")


@claim(
    "michaud2023.alpha-S",
    where="Appendix B, scaling for varying alpha (steps)",
    kind="empirical",
    title="Step exponents lie above the prediction for every alpha",
    statement="""The exponent of the mean loss in training steps is above alpha/(alpha+1) at every alpha studied.""",
    published="""alpha_S = 0.228, 0.267, 0.307, 0.346, 0.376, 0.422, 0.468, 0.482 for alpha = 0.1 to 0.8, against
    alpha/(alpha+1) = 0.091 to 0.444; two or three runs each, which differ by 0.01 to 0.05""",
)
class AlphaS(Sweep):
    """Least squares of log mean loss on log step; the error is the spread of seeds, pooled over alpha."""

    alphas = size(quick=[0.2, 0.6], full=ALPHAS)
    subtasks = size(quick=100, full=500)
    task_bits = size(quick=40, full=100, label="task bits")
    width = size(quick=100, full=300)
    batch = size(quick=2000, full=20_000)
    steps = size(quick=4000, full=14_500)
    first = size(quick=100, full=500, label="steps from check to check")
    seeds = size(quick=2, standard=3, full=8)

    agree = at_least("alphas of eight whose exponent is within 2.576 joint standard errors of the published", 7,
                     exact=True, only=("standard", "full"))
    surely = at_least("alpha_S - alpha/(alpha+1), alpha = {alpha} (99 % interval)", 0, only=("standard", "full"))
    above = at_least("alpha_S - alpha/(alpha+1), alpha = {alpha}", 0)

    as_published = ("standard", "full")
    between_seeds, seeds_published, certain = 0.03, 3, 0.5

    def setups(self, alpha: float) -> list[Setup]:
        return [zipf(self.subtasks, self.task_bits, 3, alpha, self.width, self.batch, seed)
                for seed in range(self.seeds)]

    def work(self, lab: Lab) -> list[Curves]:
        steps = list(range(self.first, self.steps + 1, self.first))
        setups = [setup for alpha in self.alphas for setup in self.setups(alpha)]
        return lab.curves_each(setups, steps, runs=[[seed] for _ in self.alphas for seed in range(self.seeds)])

    def judge(self, got: list[Curves]) -> Findings:
        found = self._exponents(got)
        checks: list[Check] = []
        if self.size != "quick":
            error = self.between_seeds / math.sqrt(self.seeds_published)
            theirs = {alpha: each._replace(error=error) for alpha, each in published("S").items()}
            checks.append(self.agree(sum(each.agrees(theirs[alpha]) for alpha, each in found.items())))
        for alpha, each in found.items():
            excess = each.less(theory("S", alpha))
            if self.size != "quick" and alpha <= self.certain:
                checks.append(self.surely(excess.value, excess.interval(0.99), alpha=alpha))
            else:
                checks.append(self.above(*excess.estimate, alpha=alpha))
        rows: list[Row] = [{"alpha": alpha, "seed": seed, "step": int(step), "loss in bits": float(loss)}
                           for alpha, each in by_alpha(got, self.alphas)
                           for seed, (setup, curves) in enumerate(zip(self.setups(alpha), each, strict=True))
                           for step, loss in zip(curves.steps, mean_bits(setup, curves), strict=True)]
        return Findings(checks, rows, {f"alpha_S at {alpha}": each.value for alpha, each in found.items()}, self.note())

    def _exponents(self, got: list[Curves]) -> dict[float, Exponent]:
        """The mean over seeds, which is the fit to all of them together, and its error."""
        slopes = np.array([[-exponent(curves.steps, mean_bits(setup, curves)).value
                            for setup, curves in zip(self.setups(alpha), each, strict=True)]
                           for alpha, each in by_alpha(got, self.alphas)])
        freedom = slopes.size - len(slopes)
        spread = math.sqrt(float(np.sum((slopes - slopes.mean(axis=1, keepdims=True)) ** 2)) / max(freedom, 1))
        error = spread / math.sqrt(self.seeds)
        return {alpha: Exponent(float(each.mean()), error, freedom)
                for alpha, each in zip(self.alphas, slopes, strict=True)}

    def draw(self, got: list[Curves]) -> plots.Figure:
        return exponents("S", self._exponents(got), self.size == "quick")
