"""Depth against activation on the leaky parity: what quadratic networks of each depth can represent, and learn."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from daniely2020.contrast import predicted

from paritylab import MLP, SGD, LeakyParity, Learner, Protocol, Setup, plots
from paritylab.aliases import Floats
from paritylab.claims import Findings, Lab, Trial, at_least, at_most, claim, holds, size
from paritylab.claims.intervals import estimate, share
from paritylab.engines.curves import Curves
from paritylab_beyond.beyond.theory.threshold_degree import best_polynomial, errors, fewest_errors

NETWORKS: dict[str, tuple[MLP, int | None]] = {
    "depth 2, z^2": (MLP(100, "power:2"), 2), "depth 3, z^2": (MLP((10, 10), "power:2"), 4),
    "depth 2, ReLU": (MLP(100), None), "depth 3, ReLU": (MLP((32, 32)), None)}
"""Networks, and the degrees of the polynomials that they are."""
LEAK = 0.5


@claim(
    "beyond.depth",
    where="daniely2020, Section 5: distributions learnable at depth three but not at depth two",
    kind="empirical",
    title="With z^2 units depth three learns the leaky parity and depth two cannot; with ReLUs both learn it",
    statement="""A network of z^2 units with L - 1 hidden layers is a polynomial of degree 2^(L-1), whose sign errs on
    at least sum_{i <= m} C(k, i) of the 2^k patterns, m = floor((k - 2^(L-1) - 1)/2). So at depth 2 no training
    learns a k >= 3 parity, leaky or not; at depth 3 k = 3 is learned. Depth-2 ReLU networks learn the same data: the
    separation is one of activations, and the question for ReLUs stays open.""",
    published="asked for, with gradient descent; no answer",
)
class Depth(Trial):
    """The bound and a polynomial that attains it, by enumeration; then networks trained on the leaky parity of 3."""

    n = size(quick=[20], full=[20, 40])
    runs = size(quick=4, full=20)
    steps = size(quick=10_000, full=30_000)
    k, rate = 3, 0.03

    attained = holds("an explicit polynomial of degree {degree} errs on {errors} of {inputs} patterns, k = {k}",
                     "as many as the bound", exact=True)
    unrepresentable = at_most("highest accuracy along any run, depth 2, z^2, n = {n}",
                              "the bound + 4 standard errors of the test", exact=True)
    learned = at_least("share of runs that reach 99 %, {network}, n = {n}", 0.8, only=("full",))
    reached = at_least("median best accuracy, {network}, n = {n}", 0.99)

    @property
    def points(self) -> list[tuple[int, str]]:
        return list(itertools.product(self.n, NETWORKS))

    def work(self, lab: Lab) -> list[Curves]:
        protocol = Protocol(max_steps=self.steps, eval_size=10_000)
        setups = [Setup(LeakyParity(n, self.k, leak=LEAK), Learner(NETWORKS[name][0], optimiser=SGD(self.rate)),
                        protocol) for n, name in self.points]
        return lab.curves_each(setups, self.steps, self.steps // 20, self.runs)

    def judge(self, got: list[Curves]) -> Findings:
        checks, rows = [], []
        for k, degree in itertools.product((3, 5, 7, 9), (2, 4, 8)):
            if degree < k:
                found, bound = errors(k, best_polynomial(k, degree)), fewest_errors(k, degree)
                checks.append(self.attained(found == bound, found, k=k, degree=degree, errors=bound, inputs=2**k))
        highest = ceiling(self.k, 2)
        for place, ((n, name), curves) in enumerate(zip(self.points, got, strict=True)):
            best = np.max(predicted(curves.accuracy), axis=1)
            if NETWORKS[name][1] == 2:
                spread = float(np.sqrt(highest * (1 - highest) / 10_000))
                checks.append(self.unrepresentable(float(best.max()), high=highest + 4 * spread, n=n))
            else:
                middle = estimate(lambda values: float(np.median(values)), best, rng=self.rng(place))
                checks.append(self.reached(*middle, network=name, n=n))
                if self.size == "full":
                    checks.append(self.learned(*share(best >= 0.99), network=name, n=n))
            rows += [{"n": n, "network": name, "run": run, "best accuracy": float(value)}
                     for run, value in enumerate(best)]
        numbers = {f"highest accuracy of a polynomial of degree {degree} on D_A, k = {k}": ceiling(k, degree)
                   for k, degree in ((3, 2), (5, 2), (5, 4), (7, 4))}
        return Findings(checks, rows, numbers)

    def draw(self, got: list[Curves]) -> plots.Figure:
        shown = {f"{name.replace('z^2', '$z^2$')}, n = {n}": np.max(predicted(curves.accuracy), axis=1)
                 for (n, name), curves in zip(self.points, got, strict=True)}
        return draw_best(shown, ceiling(self.k, 2))


def ceiling(k: int, degree: int) -> float:
    """An upper bound on the accuracy on D_A of the sign of a polynomial: all its errors on the uniform half.

    >>> ceiling(3, 2), ceiling(5, 2), ceiling(3, 4)
    (0.9375, 0.90625, 1.0)
    """
    return 1 - (1 - LEAK) * fewest_errors(k, degree) / 2**k


@plots.styled
def draw_best(shown: dict[str, Floats], bound: float) -> plots.Figure:
    """A circle for each run's best accuracy, beside the bound of depth-2 networks of z^2 units."""
    figure = plots.blank(0.8 + 0.19 * len(shown))
    axes: Any = figure.add_subplot(xlabel="best accuracy on $D_A$, k = 3", ylim=(len(shown) - 0.5, -0.5),
                                   xlim=(0.45, 1.02))
    axes.set_yticks(range(len(shown)), list(shown))
    for place, values in enumerate(shown.values()):
        axes.plot(values, np.full(len(values), place), "o", fillstyle="none", markersize=4, color=plots.COLOURS[0])
    axes.axvline(bound, color=plots.COLOURS[1], linestyle="dashed", linewidth=0.8, label="most of any quadratic")
    plots.legend_above(figure, axes)
    return figure
