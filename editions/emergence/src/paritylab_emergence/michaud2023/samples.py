"""A fixed sample of D examples: the smallest mean loss along a run, and how many subtasks are ever learned."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from paritylab import Setup, plots
from paritylab.claims import Check, Findings, Lab, at_least, at_most, between, claim, holds, size
from paritylab.engines.curves import Curves
from paritylab_emergence.fits import Exponent, exponent
from paritylab_emergence.logits import BIT
from paritylab_emergence.michaud2023.common import Row, mean_bits, published, subtask_bits, theory, zipf
from paritylab_emergence.michaud2023.figures import exponents
from paritylab_emergence.michaud2023.scaling import ALPHAS, Sweep, by_alpha

SIZES = np.geomspace(1e4, 5e6, 25).round().astype(int).tolist()
MORE = [3000, 5000, 8000, 13_000, 22_000, 36_000, 60_000, 100_000]
BELOW = 0.95
"""A fit begins with the first sample whose loss is below so many bits."""
LEARNED = 0.1
"""Nats below which a subtask counts as learned in these figures."""
FEWER = """Of the 15 published alphas the eight with a count of subtasks are tried."""


class Fixed(Sweep):
    """Networks on a fixed sample, in reshuffled passes, with the losses of all subtasks along the way."""

    alphas = size(quick=[0.2, 0.8], standard=[0.2, 0.4, 0.6, 0.8], full=ALPHAS)
    samples = size(quick=[3000, 10_000, 30_000, 100_000], standard=MORE, full=SIZES, label="D")
    subtasks = size(quick=60, standard=60, full=500)
    task_bits = size(quick=30, standard=30, full=100, label="task bits")
    k = size(quick=2, standard=2, full=3)
    width = size(quick=100, standard=100, full=500)
    batch = size(quick=2000, standard=2000, full=20_000, label="largest batch")
    steps = size(quick=2000, standard=2000, full=100_000)
    every = size(quick=50, standard=50, full=500, label="steps from check to check")

    def setups(self, alpha: float) -> list[Setup]:
        return [zipf(self.subtasks, self.task_bits, self.k, alpha, self.width, min(sample, self.batch), seed=0,
                     sample=sample) for sample in self.samples]

    def work(self, lab: Lab) -> list[Curves]:
        setups = [setup for alpha in self.alphas for setup in self.setups(alpha)]
        return lab.curves_each(setups, self.steps, self.every, runs=1)

    def rows(self, got: list[Curves]) -> list[Row]:
        """The smallest mean loss of each run, and the subtasks whose own loss was ever small."""
        found: list[Row] = []
        for alpha, each in by_alpha(got, self.alphas):
            for sample, setup, curves in zip(self.samples, self.setups(alpha), each, strict=True):
                loss = mean_bits(setup, curves)
                learned = subtask_bits(curves).min(axis=0) < LEARNED / BIT
                found.append({"alpha": alpha, "D": sample, "loss in bits": float(loss.min()),
                              "at step": int(curves.steps[loss.argmin()]), "subtasks learned": int(learned.sum())})
        return found

    def note(self) -> str:
        return f"{FEWER} {super().note()}" if self.size == "full" else super().note()


def of(rows: Sequence[Row], alpha: float) -> list[Row]:
    return [row for row in rows if row["alpha"] == alpha]


@claim(
    "michaud2023.alpha-D",
    where="Appendix B, scaling for varying alpha (data)",
    kind="empirical",
    title="Data exponents are nearly flat in alpha",
    statement="""With early stopping on a fixed sample of D examples, the loss falls as a power of D whose exponent
    hardly depends on alpha: far above alpha/(alpha+1) for small alpha, below it for large.""",
    published="""alpha_D = 0.275, 0.274, 0.297, 0.308, 0.335, 0.357, 0.373, 0.404 at alpha = 0.1, 0.2, ..., 0.8,
    standard errors 0.003 to 0.014""",
)
class AlphaD(Fixed):
    """Least squares of the log of the smallest loss on log D, from the first D with a loss below 0.95 bits."""

    above = at_least("alpha_D - alpha/(alpha+1), alpha = {alpha} (two standard errors)", 0, only=("full",))
    below = at_most("alpha_D - alpha/(alpha+1), alpha = {alpha} (two standard errors)", 0, only=("full",))
    rise = between("alpha_D at 0.8 less at 0.1", 0.07, 0.19, only=("full",))
    falls = between("alpha_D, alpha = {alpha}", 0.15, 0.7, only=("quick", "standard"))

    def judge(self, got: list[Curves]) -> Findings:
        rows = self.rows(got)
        found = self._exponents(rows)
        checks: list[Check] = []
        if self.size == "full":
            sides = [(self.above, (0.1, 0.2, 0.3)), (self.below, (0.6, 0.7, 0.8))]
            for rule, alpha in [(rule, alpha) for rule, some in sides for alpha in some]:
                excess = found[alpha].less(theory("D", alpha))
                reach = 2 * excess.error
                checks.append(rule(excess.value, (excess.value - reach, excess.value + reach), alpha=alpha))
            checks.append(self.rise(*found[0.8].minus(found[0.1]).estimate))
        else:
            checks = [self.falls(*each.estimate, alpha=alpha) for alpha, each in found.items()]
        return Findings(checks, rows, {f"alpha_D at {alpha}": each.value for alpha, each in found.items()}, self.note())

    def _exponents(self, rows: list[Row]) -> dict[float, Exponent]:
        return {alpha: _from_first(of(rows, alpha)) for alpha in self.alphas}

    def draw(self, got: list[Curves]) -> plots.Figure:
        return exponents("D", self._exponents(self.rows(got)), self.size != "full")


def _from_first(rows: Sequence[Row]) -> Exponent:
    """The fit from the first sample on with a loss below 0.95 bits.

    >>> losses = [1.0, 0.9, 0.45, 0.225]
    >>> round(_from_first([{"D": 2**i, "loss in bits": loss} for i, loss in enumerate(losses)]).value, 6)
    1.0
    """
    used = list(itertools.dropwhile(lambda row: row["loss in bits"] >= BELOW, rows))
    fit = exponent([row["D"] for row in used], [row["loss in bits"] for row in used])
    return fit._replace(value=-fit.value)


@claim(
    "michaud2023.learned-count",
    where="Appendix B, number of subtasks learned (sparse-parity-data-scaling-dependence-n)",
    kind="empirical",
    title="Subtasks learned grow as D^(1/(alpha+1))",
    statement="""Counting every subtask that is learned at any time of the run, also after the early-stopping point,
    their number grows as D^(1/(alpha+1)), as a threshold of examples per subtask predicts.""",
    published="""exponents 0.878, 0.765, 0.739, 0.678, 0.677, 0.650, 0.617, 0.578 for alpha = 0.1 to 0.8 (standard
    errors 0.02 to 0.035) against 1/(alpha+1) = 0.909 to 0.556""",
)
class LearnedCount(Fixed):
    """Least squares of the log of the number of subtasks learned on log D, over samples with at least one."""

    agree = at_most("distance from the published exponent in joint standard errors, alpha = {alpha}", 2.576,
                    exact=True, only=("full",))
    near = at_most("|exponent - 1/(alpha+1)|, alpha = {alpha}", 0.1, exact=True, only=("full",))
    flatter = at_most("exponent at the largest alpha less at the smallest", 0, only=("full",))
    grows = holds("subtasks learned never fall as D grows, and are more in the end, alpha = {alpha}", exact=True,
                  only=("quick", "standard"))

    def judge(self, got: list[Curves]) -> Findings:
        rows = self.rows(got)
        found = self._exponents(rows)
        checks: list[Check] = []
        for alpha, each in found.items():
            if self.size == "full":
                checks += [self.agree(each.apart(published("n")[alpha]), alpha=alpha),
                           self.near(abs(each.less(theory("n", alpha)).value), alpha=alpha)]
            else:
                counts = [row["subtasks learned"] for row in of(rows, alpha)]
                checks.append(self.grows(bool(np.all(np.diff(counts) >= 0) and counts[-1] > counts[0]), alpha=alpha))
        if self.size == "full":
            checks.append(self.flatter(*found[self.alphas[-1]].minus(found[self.alphas[0]]).estimate))
        numbers = {f"exponent at {alpha}": each.value for alpha, each in found.items()}
        return Findings(checks, rows, numbers, self.note())

    def _exponents(self, rows: list[Row]) -> dict[float, Exponent]:
        found: dict[float, Exponent] = {}
        for alpha in self.alphas:
            some = [row for row in of(rows, alpha) if row["subtasks learned"]]
            found[alpha] = exponent([row["D"] for row in some], [row["subtasks learned"] for row in some])
        return found

    def draw(self, got: list[Curves]) -> plots.Figure:
        return exponents("n", self._exponents(self.rows(got)), self.size != "full")
