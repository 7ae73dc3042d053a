"""Training the disjoint-PolyNet: on the population and on single examples (Figure 5), at adaptive rates (Theorem 8)."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import numpy as np
from scipy import stats

from paritylab import SGD, DisjointPolyNet, Learner, Parity, Protocol, Setup
from paritylab.claims.lab import Lab
from paritylab.claims.registry import reproduces
from paritylab.claims.verdicts import Check, Outcome, at_least, significant
from paritylab.papers.barak2022 import disjoint_figures as figures
from paritylab.papers.barak2022.common import Floats, bootstrap, median
from paritylab.setups.inits import custom
from paritylab.statistics import solved_fraction
from paritylab.theory import adaptive_sgd, flow

LEVELS = (0.49, 0.48, 0.46, 0.43, 0.4, 0.35, 0.3, 0.25, 0.2, 0.15, 0.1, 0.05, 0.02, 1e-2, 1e-3)


@reproduces("barak2022.fig5-left")
def descent_on_the_population(lab: Lab) -> Outcome:
    """When descent on the exact gradient first has errors below 0.49 and below 1e-3, from Gaussian weights."""
    rate, seeds = 1e-4, 40
    found: dict[int, Floats] = {}
    for block in (10, 100):
        starts = gaussian_starts(lab.rng(5, block), seeds, 3, block)
        kept = lab.kept_old("descent", {"block": block, "rate": rate, "seeds": seeds}, partial(descended, starts, rate))
        found[block] = kept["times"]
    plateaus = {block: times[:, 0] / times[:, -1] for block, times in found.items()}
    medians = {block: median(plateau) for block, plateau in plateaus.items()}
    interval = bootstrap(median, plateaus[100], rng=lab.rng(6))
    test = stats.mannwhitneyu(plateaus[100], plateaus[10], alternative="greater")
    checks = [
        at_least("median T49/T0, n' = 100", medians[100], 0.65, interval),
        significant("p-value of T49/T0 larger at n' = 100 than at 10 (Mann-Whitney)", test.pvalue, 1e-3),
    ]
    data = [{"block": block, "seed": seed, "level": level, "steps": float(steps)} for block, times in found.items()
            for seed, row in enumerate(times) for level, steps in zip(LEVELS, row, strict=True)]
    numbers = {f"median T49/T0, n' = {block}": value for block, value in medians.items()}
    return Outcome(checks, data, figures.descent(found, LEVELS), numbers)


@reproduces("barak2022.fig5-right")
def single_examples(lab: Lab) -> Outcome:
    """Error curves of online SGD with one example a step and a constant rate, from Gaussian weights."""
    block = 10
    steps = lab.pick("steps", quick=100_000, full=1_000_000)
    learner = Learner(DisjointPolyNet(3), custom(jax.random.normal, scale=lambda fan_in, fan_out: 1.0), "correlation",
                      SGD(1e-4), batch=1)
    setup = Setup(Parity(3 * block, support=range(0, 3 * block, block)), learner, Protocol(fresh=True))
    curves = lab.curves(setup, steps, every=1000, runs=20, weights=True)
    positive = np.asarray(curves.weights[0]["w"])[:, 0, 0].prod(-1) > 0
    error = 1 - curves.accuracy
    leaves, ends = (first_below(curves.steps, error, level) for level in (0.45, 0.05))
    solved = np.any(error <= 0.05, axis=1)
    plateau = np.where(np.isfinite(ends), leaves / np.where(np.isfinite(ends), ends, 1.0), 0.0)
    kept = plateau[positive]
    checks = [
        share("share of runs with prod v(0) > 0 that reach error <= 0.05", solved[positive], 0.7),
        at_least("their median (first error < 0.45) / (first error < 0.05), 0 where not reached", median(kept), 0.3,
                 bootstrap(median, kept, rng=lab.rng(7))),
    ]
    numbers = {"runs with prod v(0) > 0": float(positive.sum()),
               "share of the others that reach it": float(solved[~positive].mean())}
    data = [{"run": run, "positive": bool(positive[run]), "steps": int(curves.steps[i]), "error": float(error[run, i])}
            for run, i in zip(*np.nonzero(np.isfinite(error)), strict=True)]
    return Outcome(checks, data, figures.runs(curves.steps, error, positive), numbers)


@reproduces("barak2022.thm8-adaptive-sgd")
def adaptive_rates(lab: Lab) -> Outcome:
    """Errors after the theorem's number of steps at its adaptive rates, from random signs, and irrelevant weights."""
    pairs = lab.pick("n', k", quick=[[2, 2], [3, 2], [5, 2], [2, 3]], full=[[2, 2], [3, 2], [5, 2], [2, 3], [3, 3]])
    batches = lab.pick("batch", quick=[1], full=[1, 8])
    seeds = 50
    data: list[dict[str, Any]] = []
    checks: list[Check] = []
    others: list[bool] = []
    for batch in batches:
        for block, k in pairs:
            key = {"block": block, "k": k, "batch": batch, "seeds": seeds}
            found = lab.kept_old("adaptive-sgd", key, partial(trained, block, k, seeds, batch, lab.seed))
            promising, solved = found["promising"], found["error"] <= 0.05
            name = f"n' = {block}, k = {k}, B = {batch}"
            checks.append(share(f"share of starts with prod v > 0 at error <= 0.05, {name}", solved[promising], 0.9))
            checks.append(share(f"share of these with irrelevant weights <= 3/2, {name}",
                                found["largest"][promising] <= 1.5, 0.9))
            others += solved[~promising].tolist()
            data += [{"block": block, "k": k, "batch": batch, "seed": seed, "positive": bool(promising[seed]),
                      "error": float(found["error"][seed]), "largest irrelevant": float(found["largest"][seed]),
                      "steps": adaptive_sgd.horizon(block, k)} for seed in range(seeds)]
    numbers = {"share of the other starts at error <= 0.05": float(np.mean(others))}
    return Outcome(checks, data, figures.adaptive(data), numbers)


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


def share(name: str, flags: np.ndarray, bound: float) -> Check:
    """At least this share of the flags is set, with its Wilson interval."""
    value, interval = solved_fraction(~np.asarray(flags, bool))
    return at_least(name, value, bound, interval)


def descended(starts: Floats, rate: float) -> dict[str, Floats]:
    return {"times": flow.descent_times(starts, rate, LEVELS, most_steps=10**7)}


def trained(block: int, k: int, nets: int, batch: int, seed: int) -> dict[str, np.ndarray]:
    found = adaptive_sgd.train(block, k, nets, batch, seed=seed)
    return {"promising": found.promising, "error": found.error, "largest": found.largest_irrelevant}
