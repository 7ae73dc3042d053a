"""Training the disjoint-PolyNet: on the population and on single examples (Figure 5), at adaptive rates (Theorem 8)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from scipy import stats

from barak2022 import disjoint_figures as figures
from barak2022.common import median
from barak2022.theory import adaptive_sgd, flow
from paritylab import SGD, DisjointPolyNet, Learner, Parity, Protocol, Setup
from paritylab.aliases import Arrays, Floats
from paritylab.claims import (
    Check,
    Findings,
    Lab,
    Trial,
    at_least,
    claim,
    computation,
    rng,
    significant,
    size,
)
from paritylab.claims.intervals import bootstrap
from paritylab.claims.rules import Bounds
from paritylab.engines.curves import Curves
from paritylab.setups.inits import custom
from paritylab.statistics import solved_fraction

LEVELS = (0.49, 0.48, 0.46, 0.43, 0.4, 0.35, 0.3, 0.25, 0.2, 0.15, 0.1, 0.05, 0.02, 1e-2, 1e-3)


@claim(
    "barak2022.fig5-left",
    where="Figure 5 (left); Appendix B.3.1",
    kind="empirical",
    title="Disjoint-PolyNet, population gradient descent shows a plateau then a drop",
    statement="""Small-step descent on the exact population gradient of the correlation loss keeps the disjoint-PolyNet
    near chance for most of the time and then reaches zero error quickly.""",
    published="""'the phase of learning with near-trivial accuracy is much longer than the subsequent period until
    perfect accuracy' (Appendix B.3.1).""",
)
class Fig5Left(Trial):
    """When descent on the exact gradient first has errors below 0.49 and below 1e-3, from Gaussian weights."""

    plateau = at_least("median T49/T0, n' = 100", 0.65)
    longer = significant("p-value of T49/T0 larger at n' = 100 than at 10 (Mann-Whitney)", 1e-3)

    blocks = (10, 100)

    def work(self, lab: Lab) -> list[Arrays]:
        return lab.compute_each(descended, [{"block": block, "rate": 1e-4, "seeds": 40} for block in self.blocks])

    def times(self, got: list[Arrays]) -> dict[int, Floats]:
        return {block: arrays["times"] for block, arrays in zip(self.blocks, got, strict=True)}

    def judge(self, got: list[Arrays]) -> Findings:
        found = self.times(got)
        plateaus = {block: times[:, 0] / times[:, -1] for block, times in found.items()}
        medians = {block: median(plateau) for block, plateau in plateaus.items()}
        test = stats.mannwhitneyu(plateaus[100], plateaus[10], alternative="greater")
        checks = [self.plateau(medians[100], bootstrap(median, plateaus[100], rng=self.rng(6))),
                  self.longer(test.pvalue)]
        rows = [{"block": block, "seed": seed, "level": level, "steps": float(steps)}
                for block, times in found.items() for seed, row in enumerate(times)
                for level, steps in zip(LEVELS, row, strict=True)]
        return Findings(checks, rows, {f"median T49/T0, n' = {block}": value for block, value in medians.items()})

    def draw(self, got: list[Arrays]) -> Any:
        return figures.descent(self.times(got), LEVELS)


@computation
def descended(seed: int, block: int, rate: float, seeds: int) -> dict[str, Any]:
    starts = gaussian_starts(rng(seed, 5, block), seeds, 3, block)
    return {"times": flow.descent_times(starts, rate, LEVELS, most_steps=10**7)}


@claim(
    "barak2022.fig5-right",
    where="Figure 5 (right); Appendix B.3.2",
    kind="empirical",
    title="Disjoint-PolyNet, batch-1 SGD at constant rate",
    statement="""Online SGD with a single example per step and constant learning rate also solves the disjoint parity
    after a plateau.""",
    published="""'a run of SGD with batch size 1 [...] with a constant learning rate schedule' (Figure 5, caption); the
    curve has no numbers in the text.""",
)
class Fig5Right(Trial):
    """Error curves of online SGD with one example a step and a constant rate, from Gaussian weights."""

    steps = size(quick=100_000, full=1_000_000)

    reach = at_least("share of runs with prod v(0) > 0 that reach error <= 0.05", 0.7)
    plateau = at_least("their median (first error < 0.45) / (first error < 0.05), 0 where not reached", 0.3)

    def work(self, lab: Lab) -> Curves:
        block = 10
        learner = Learner(DisjointPolyNet(3), custom(jax.random.normal, scale=lambda fan_in, fan_out: 1.0),
                          "correlation", SGD(1e-4), batch=1)
        setup = Setup(Parity(3 * block, support=range(0, 3 * block, block)), learner, Protocol(fresh=True))
        return lab.curves(setup, self.steps, every=1000, runs=20, weights=True)

    def judge(self, got: Curves) -> Findings:
        positive, error = starts_positive(got), 1 - got.accuracy
        leaves, ends = (first_below(got.steps, error, level) for level in (0.45, 0.05))
        solved = np.any(error <= 0.05, axis=1)
        plateau = np.where(np.isfinite(ends), leaves / np.where(np.isfinite(ends), ends, 1.0), 0.0)
        kept = plateau[positive]
        checks = [wilson_share(self.reach, solved[positive]),
                  self.plateau(median(kept), bootstrap(median, kept, rng=self.rng(7)))]
        numbers = {"runs with prod v(0) > 0": float(positive.sum()),
                   "share of the others that reach it": float(solved[~positive].mean())}
        rows = [{"run": run, "positive": bool(positive[run]), "steps": int(got.steps[i]), "error": float(error[run, i])}
                for run, i in zip(*np.nonzero(np.isfinite(error)), strict=True)]
        return Findings(checks, rows, numbers)

    def draw(self, got: Curves) -> Any:
        return figures.runs(got.steps, 1 - got.accuracy, starts_positive(got))


def starts_positive(curves: Curves) -> np.ndarray:
    """Whether the relevant weights of each run start with a positive product."""
    return np.asarray(curves.weights[0]["w"])[:, 0, 0].prod(-1) > 0


@dataclass(frozen=True)
class Adaptive:
    """Networks that were trained at adaptive rates."""

    batch: int
    block: int
    k: int
    promising: np.ndarray
    error: Floats
    largest: Floats
    """Of its irrelevant weights, on the way."""

    @property
    def solved(self) -> np.ndarray:
        return self.error <= 0.05

    @property
    def rows(self) -> list[dict[str, Any]]:
        return [{"block": self.block, "k": self.k, "batch": self.batch, "seed": seed,
                 "positive": bool(self.promising[seed]), "error": float(self.error[seed]),
                 "largest irrelevant": float(self.largest[seed]), "steps": adaptive_sgd.horizon(self.block, self.k)}
                for seed in range(len(self.error))]


@claim(
    "barak2022.thm8-adaptive-sgd",
    where="Theorem 8 / Theorem 13",
    kind="theory",
    title="Adaptive-rate SGD solves the disjoint parity at any batch size",
    statement="""With lr eta_i = 1/(2 sqrt(2 T log(2nT/delta)) prod_{l != i} ||w_l||_1) the disjoint-PolyNet reaches
    error epsilon within T of order (3n'-2)^(2k-1) steps up to logs, for B >= 1.""",
    published="""error <= epsilon with probability 1/2 over starts and 1 - delta over samples (Theorem 13); |w_ij| <=
    3/2 for irrelevant j (Claim 14).""",
)
class Thm8AdaptiveSgd(Trial):
    """Errors after the theorem's number of steps at its adaptive rates, from random signs, and irrelevant weights."""

    pairs = size(quick=[[2, 2], [3, 2], [5, 2], [2, 3]], full=[[2, 2], [3, 2], [5, 2], [2, 3], [3, 3]], label="n', k")
    batch = size(quick=[1], full=[1, 8])
    small_error = at_least("share of starts with prod v > 0 at error <= 0.05, n' = {block}, k = {k}, B = {batch}", 0.9)
    bounded = at_least("share of these with irrelevant weights <= 3/2, n' = {block}, k = {k}, B = {batch}", 0.9)
    starts = size(quick=50, full=100)

    @property
    def cells(self) -> list[dict[str, int]]:
        return [{"block": block, "k": k, "batch": batch} for batch in self.batch for block, k in self.pairs]

    def work(self, lab: Lab) -> list[Arrays]:
        return lab.compute_each(trained, [cell | {"seeds": self.starts} for cell in self.cells])

    def found(self, got: list[Arrays]) -> Iterator[Adaptive]:
        for cell, arrays in zip(self.cells, got, strict=True):
            yield Adaptive(**cell, promising=arrays["promising"], error=arrays["error"], largest=arrays["largest"])

    def judge(self, got: list[Arrays]) -> Findings:
        checks: list[Check] = []
        rows: list[dict[str, Any]] = []
        others: list[bool] = []
        for each, cell in zip(self.found(got), self.cells, strict=True):
            checks += [wilson_share(self.small_error, each.solved[each.promising], **cell),
                       wilson_share(self.bounded, each.largest[each.promising] <= 1.5, **cell)]
            others += each.solved[~each.promising].tolist()
            rows += each.rows
        return Findings(checks, rows, {"share of the other starts at error <= 0.05": float(np.mean(others))})

    def draw(self, got: list[Arrays]) -> Any:
        return figures.adaptive([row for each in self.found(got) for row in each.rows])


@computation
def trained(seed: int, block: int, k: int, batch: int, seeds: int) -> dict[str, Any]:
    found = adaptive_sgd.train(block, k, seeds, batch, seed=seed)
    return {"promising": found.promising, "error": found.error, "largest": found.largest_irrelevant}


# --- parts ------------------------------------------------------------------------------------------------------


def positive(weights: Floats) -> Floats:
    """Weights (..., k, n') with a positive product of relevant ones: the first changes sign if need be.

    For a symmetric law this is the law given a positive product.
    """
    weights = weights.copy()
    weights[..., 0, 0] *= np.sign(weights[..., 0].prod(-1))
    return weights


def gaussian_starts(rng: np.random.Generator, draws: int, k: int, block: int) -> Floats:
    return positive(rng.standard_normal((draws, k, block)))


def first_below(steps: np.ndarray, error: Floats, level: float) -> Floats:
    """The first of these steps with an error below ``level`` for each run; inf where there is none."""
    below = error < level
    return np.where(below.any(axis=1), steps[below.argmax(axis=1)], np.inf)


def wilson_share(rule: Bounds, flags: np.ndarray, **fields: Any) -> Check:
    """A rule on the share of flags that are set, with its Wilson interval."""
    return rule(*solved_fraction(~np.asarray(flags, bool)), **fields)
