"""Guessing supports in random order takes half of all of them, on average."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from paritylab.claims import Findings, Lab, Trial, between, claim, computation, rng, size


@claim(
    "me2025.guessing",
    where="Proposition 1",
    kind="exact",
    title="Random guesses find the support after half of all supports",
    statement="Trying the supports of size k in random order takes (C(n, k) + 1) / 2 guesses on average.",
    published="(C(n, k) + 1) / 2",
)
class Guessing(Trial):
    """Means of simulated searches over what the formula says."""

    n = size(quick=[8, 10], full=[8, 10, 12])
    searches = size(quick=2000, full=20_000)

    ratio = between("simulated / predicted mean, n = {n}", 0.95, 1.05)

    def work(self, lab: Lab) -> list[dict[str, Any]]:
        return lab.compute_each(guesses, [{"n": n, "k": 3, "searches": self.searches} for n in self.n])

    def judge(self, got: list[dict[str, Any]]) -> Findings:
        checks, rows = [], []
        for n, found in zip(self.n, got, strict=True):
            values, predicted = found["guesses"], (math.comb(n, 3) + 1) / 2
            half = 1.96 * values.std() / math.sqrt(len(values)) / predicted
            ratio = values.mean() / predicted
            checks.append(self.ratio(ratio, (ratio - half, ratio + half), n=n))
            rows.append({"n": n, "mean": float(values.mean()), "predicted": predicted})
        return Findings(checks, rows)


@computation
def guesses(seed: int, n: int, k: int, searches: int) -> dict[str, Any]:
    """How many guesses each search took."""
    generator, supports = rng(seed, n, k), math.comb(n, k)
    return {"guesses": np.array([int(np.flatnonzero(generator.permutation(supports) == 0)[0]) + 1
                                 for _ in range(searches)])}
