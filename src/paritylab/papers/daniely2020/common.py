"""What several claims share: the practical schedule of Theorem 2, and the errors along it."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from paritylab import SGD, LeakyParity, Learner, Protocol, Setup
from paritylab.claims.intervals import proportion
from paritylab.claims.lab import Lab
from paritylab.claims.verdicts import Check, at_least
from paritylab.theory.leaky import Floats, Leaky
from paritylab.theory.leaky_network import LeakyNet, pattern_errors

POINTS = 10
"""Errors are measured at so many equal distances along a run, and at its start."""


def practical(n: int, k: int, pairs: int, leak: float = 0.5, rate: float = 0.1, frozen: bool = False) -> Setup:
    """The exact first step on D_A, then SGD with batches of 256 on both layers; or frozen random units from u = 0."""
    rates = {"hidden": 0.0, "output": 1.0} if frozen else None
    learner = Learner(LeakyNet(pairs, k, leak, stepped=not frozen), optimiser=SGD(rate, rates=rates), batch=256)
    return Setup(LeakyParity(n, k, leak=leak), learner, Protocol(eval_size=1024))


def trained(lab: Lab, setup: Setup, steps: int, seeds: int) -> list[dict[str, Any]]:
    """Errors on D_A and its uniform half along each run, over all patterns on A with 2000 completions each."""
    curves = lab.curves(setup, steps, steps // POINTS, seeds, weights=True)
    problem = setup.problem
    sizes = Leaky(problem.n, problem.degree, problem.leak)
    rows = []
    for seed in range(seeds):
        for point, step in enumerate(curves.steps):
            params = jax.tree.map(lambda leaf, seed=seed, point=point: leaf[seed, point], curves.weights)
            error, uniform = pattern_errors(params, sizes, lab.rng(2, problem.n, problem.degree, seed))
            rows.append({"n": problem.n, "k": problem.degree, "leak": problem.leak, "seed": seed, "step": int(step),
                         "error": float(error), "uniform error": float(uniform)})
    return rows


def best(rows: list[dict[str, Any]], name: str = "error") -> Floats:
    """The smallest error of each seed along its run: the theorem is about the best iterate."""
    seeds = sorted({row["seed"] for row in rows})
    return np.array([min(row[name] for row in rows if row["seed"] == seed) for seed in seeds])


def share(name: str, flags: Any, bound: float) -> Check:
    """At least this share of the flags is set, with its Clopper-Pearson interval."""
    value, interval = proportion(int(np.sum(flags)), len(flags))
    return at_least(name, value, bound, interval)
