"""What several claims share: the practical schedule of Theorem 2, and the errors along it."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from daniely2020.theory.leaky import Leaky
from daniely2020.theory.leaky.network import LeakyNet, pattern_errors
from paritylab import SGD, LeakyParity, Learner, Protocol, Setup
from paritylab.aliases import Floats
from paritylab.claims import Lab, Trial, rng
from paritylab.engines.curves import Curves

POINTS = 10
"""Errors are measured at so many equal distances along a run, and at its start."""
Row = dict[str, Any]


class Exact(Trial):
    """A trial that has nothing trained and takes no time."""

    def work(self, lab: Lab) -> None:
        return None


def practical(n: int, k: int, pairs: int, leak: float = 0.5, rate: float = 0.1, frozen: bool = False) -> Setup:
    """The exact first step on D_A, then SGD with batches of 256 on both layers; or frozen random units from u = 0."""
    rates = {"hidden": 0.0, "output": 1.0} if frozen else None
    learner = Learner(LeakyNet(pairs, k, leak, stepped=not frozen), optimiser=SGD(rate, rates=rates), batch=256)
    return Setup(LeakyParity(n, k, leak=leak), learner, Protocol(eval_size=1024))


@dataclass(frozen=True)
class Trained:
    """Training curves of Setups, with weights."""

    setups: Sequence[Setup]
    curves: Sequence[Curves]
    seed: int

    @functools.cached_property
    def rows(self) -> list[list[Row]]:
        """For each Setup its errors on D_A and its uniform half along each run.

        They are over all patterns on A with 2000 completions each.
        """
        return [self._errors(setup, curves) for setup, curves in zip(self.setups, self.curves, strict=True)]

    def _errors(self, setup: Setup, curves: Curves) -> list[Row]:
        problem = setup.problem
        assert isinstance(problem, LeakyParity)
        sizes = Leaky(problem.n, problem.degree, problem.leak)
        rows: list[Row] = []
        for seed in range(len(curves.accuracy)):
            for point, step in enumerate(curves.steps):
                params = jax.tree.map(lambda leaf, seed=seed, point=point: leaf[seed, point], curves.weights)
                error, uniform = pattern_errors(params, sizes, rng(self.seed, 2, problem.n, problem.degree, seed))
                rows.append({"n": problem.n, "k": problem.degree, "leak": problem.leak, "seed": seed,
                             "step": int(step), "error": float(error), "uniform error": float(uniform)})
        return rows


def train(lab: Lab, setups: Sequence[Setup], steps: int, seeds: int) -> Trained:
    """Runs of these Setups, recorded alike."""
    return Trained(setups, lab.curves_each(setups, steps, steps // POINTS, seeds, weights=True), lab.seed)


def best(rows: list[Row], name: str = "error") -> Floats:
    """The smallest error of each seed along its run: the theorem is about the best iterate."""
    seeds = sorted({row["seed"] for row in rows})
    return np.array([min(row[name] for row in rows if row["seed"] == seed) for seed in seeds])
