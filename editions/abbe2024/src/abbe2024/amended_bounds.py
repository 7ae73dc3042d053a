"""Theorems 7 and 8 by amended rules: bounds with intervals, and the separation that Theorem 4's start makes."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from abbe2024.bounds import (
    LEFT_OUT,
    RATES,
    TAU,
    Kept,
    Thm7Bound,
    Thm8,
    interval,
    largest_alignment,
)
from abbe2024.theory.high_degree import accuracy_bound, recommended_bias
from abbe2024.theory.noisy_gd import accuracies, draw_networks, gradient
from paritylab import plots
from paritylab.aliases import Floats
from paritylab.claims import Findings, Lab, amends, at_least, at_most, computation, rng, size
from paritylab.claims.intervals import bootstrap, mean

SEPARATED = ("rademacher", "gaussian")


@computation
def first_step(seed: int, d: int, init: str, draws: int) -> dict[str, Any]:
    """Accuracies after one noisy step on the output layer from Theorem 4's start, whose weights may be Gaussian.

    Width d^4, recommended biases, output weights 0, noise 0.5/d^2; only the output layer is trained.
    """
    found = []
    for draw in range(draws):
        generator = rng(seed, 74, d, draw)
        start = draw_networks(d, d**4, 1, init, recommended_bias(d), 0, 1.0, generator)
        noise = 0.5 / d**2 * generator.standard_normal(start.v.shape)
        found.append(float(accuracies(start._replace(v=-(gradient(start).v + noise)))[0]))
    return {"accuracies": found}


@amends(
    "abbe2024.thm7-bound",
    date="2026-11-16",
    kind="misreading",
    where="Theorem 7; Section 3",
    quote="""Noisy-GD for correlation loss [...] can learn the full parity function in poly(d) steps if the network is
    initialized with Rademacher weights. However, using Gaussian initialization while leaving all other aspects of the
    algorithm unchanged requires exponential time to learn.""",
    change="""The control is Theorem 4's setting (width d^4, its biases, output weights 0, one step on the output layer,
    noise 0.5/d^2) with signs and with Gaussian weights, instead of signs in a network of 50 units with random
    biases, of which no theorem speaks. The accuracy of each configuration has an interval, which must end below the
    bound. Fewer d, and T = 100 up to d = 14.""",
    known="""With seed 0 no configuration was above its bound. In a trial with few draws Theorem 4's start gave 1.0 from
    signs at d = 8 to 14, and 0.65, 0.56, 0.53, 0.53, 0.514 and 0.509 from Gaussian weights at d = 8 to 14.""",
)
class Thm7BoundAmended(Thm7Bound):
    """Accuracies of Gaussian starts below the bound; after one step from signs all inputs are right, else few."""

    draws = size(quick=50, full=200)
    d = size(quick=[10, 13, 19], full=[8, 9, 10, 12, 14, 17, 21])
    many = size(quick=10, full=14, label="largest d at T = 100")
    signs = size([10], label="d of the signs")
    separated = size(quick=[8], full=[8, 10, 12], label="d of the separation")
    starts = size(quick=5, full=20, label="starts of the separation")

    learned = chance = None
    below = at_most("mean accuracy - bound, largest upper end over d, gamma, tau and T", 0.0, part="the bound")
    right = at_least("mean accuracy after one step of Theorem 4 from signs, d = {d}", 0.99, part="the separation")
    wrong = at_most("the same from Gaussian weights, d = {d}", 0.6, part="the separation", only=("standard", "full"))

    def work(self, lab: Lab) -> Any:
        steps = [{"d": d, "init": each, "draws": self.starts} for d, each in self.pairs]
        return *super().work(lab), lab.compute_each(first_step, steps)

    @property
    def pairs(self) -> list[tuple[int, str]]:
        return list(itertools.product(self.separated, SEPARATED))

    def judge(self, got: Any) -> Findings:
        every = self.rows(got[:2])
        rows = [row for row in every if row["start"] == "gaussian"]
        worst = max(rows, key=lambda row: interval(row)[1] - row["bound"])
        ends = tuple(end - worst["bound"] for end in interval(worst))
        checks = [self.below(worst["accuracy"] - worst["bound"], (ends[0], ends[1]))]
        separated = {pair: arrays["accuracies"] for pair, arrays in zip(self.pairs, got[2], strict=True)}
        for (d, init), found in separated.items():
            if init == "rademacher":
                checks.append(self.right(*mean(found), d=d))
            elif d == max(self.separated) and self.size != "quick":
                checks.append(self.wrong(*mean(found), d=d))
        numbers = {"configurations": len(rows),
                   "of these with a bound below 1": sum(row["bound"] < 1 for row in rows),
                   "smallest bound": min(row["bound"] for row in rows)}
        numbers |= {f"mean accuracy after one step, {init}, d = {d}": float(np.mean(found))
                    for (d, init), found in separated.items()}
        return Findings(checks, every, numbers,
                        "eps is the largest exact alignment at nine lambda^2 from 0 to T gamma^2 tau^2")

    def draw(self, got: Any) -> plots.Figure:
        return super().draw(got[:2])


@amends(
    "abbe2024.thm8",
    date="2026-11-16",
    kind="misreading",
    where="Theorem 8, Equation (8)",
    quote="""after T steps of the noisy GD algorithm with correlation loss, Pr[sign(NN^T(x; theta)) = f(x)] <= 1/2 +
    exp(-Omega(d)).""",
    change="""The theorem says how the excess over 1/2 falls with d, not that it is below 0.03 at d = 12. At rate 1,
    where there is an excess, the slope of its logarithm on d must be negative; at rate 0.1 accuracy must be at most
    0.53, as before, at the largest d. The control from signs, of which the theorem does not speak, is left to Theorem
    7's. 60 starts instead of 20, d from 8 to 14.""",
    known="""20 starts of seed 0 at rate 1 and a = 0 had excesses of 0.067, 0.059, 0.034 and 0.024 at d = 10, 12, 14 and
    16; at rate 0.1 at most 0.002.""",
)
class Thm8Amended(Thm8):
    """The fall of the excess with d at rate 1, and accuracy at rate 0.1."""

    d = size(quick=[8, 10], full=[8, 10, 12, 14])
    seeds = size(quick=10, full=60)

    least = most = control = no_rise = None
    falls = at_most("slope of ln(accuracy - 1/2) on d, a = {a}, gamma = 1", 0.0, part="rate 1: the excess falls with d")
    chance = at_most("mean accuracy, a = {a}, gamma = 0.1, d = {d}", 0.53, part="rate 0.1: at chance",
                     only=("standard", "full"))

    def judge(self, got: Kept) -> Findings:
        found = {(case["d"], case["a"], case["rate"], case["start"]): arrays["accuracies"]
                 for case, arrays in zip(self.cases(), got, strict=True)}
        checks, last = [], self.d[-1]
        for place, a in enumerate(LEFT_OUT):
            every = [found[d, a, RATES[1], "gaussian"] for d in self.d]
            checks.append(self.falls(self.slope(*every), bootstrap(self.slope, *every, rng=self.rng(8, place)), a=a))
            if self.size != "quick":
                checks.append(self.chance(*mean(found[last, a, RATES[0], "gaussian"]), a=a, d=last))
        numbers = {f"Theorem 7's bound, d = {d}, a = 0, gamma = 1": accuracy_bound(
            [largest_alignment(d, self.width, self.steps * TAU**2)] * self.steps, TAU) for d in self.d}
        numbers |= {f"mean accuracy, {start}, a = {a}, gamma = {rate:g}, d = {d}": float(np.mean(each))
                    for (d, a, rate, start), each in found.items()}
        return Findings(checks, self.rows(got), numbers,
                        "b ~ N(0, 1); the bound that the theorem's proof gives is above 1 at these sizes")

    def slope(self, *accuracies: Floats) -> float:
        """Of the logarithm of the mean excess on d; undefined where there is none."""
        excess = [float(np.mean(each)) - 0.5 for each in accuracies]
        return float(np.polyfit(self.d, np.log(excess), 1)[0]) if min(excess) > 0 else math.nan
