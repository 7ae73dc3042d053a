"""Theorem 1 of daniely2020 for random embeddings, and with errors: Forster's bound on sets of parities."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from paritylab import plots
from paritylab.aliases import Arrays
from paritylab.claims import Findings, Lab, Trial, at_least, at_most, claim, computation, rng, size
from paritylab.plots import Series
from paritylab_beyond.beyond.theory.sign_rank import dimension_with_errors, forster, parities, random_dimension


@claim(
    "beyond.sign-rank",
    where="daniely2020, Theorem 1, for random embeddings",
    kind="theory",
    title="A random embedding needs dimension P^(1/3) for P parities; with a share eps of errors 1/(1/sqrt(P) + 2 eps)",
    statement="""If each of P parities is realised with probability 1/N at least by a random embedding of dimension N,
    some embedding realises P/N of them, whose columns are orthogonal, so N >= sqrt(P/N): N >= P^(1/3), which is
    C(n, k)^(1/3) = 2^Omega(k) for n >= 2k. If a share eps of all signs may be wrong, N >= 1/(1/sqrt(P) + 2 eps): an
    exponential bound needs an exponentially small eps.""",
    published="N = 2^Omega(k), by reference",
)
class SignRank(Trial):
    """Norms of random sets of parities by computation; embeddings whose errors are counted, against the bound."""

    n = size(quick=[6, 8, 10], full=[6, 7, 8, 9, 10, 11])
    sets = size(quick=5, full=20, label="random sets of parities")
    bits = size(quick=5, full=6, label="n of the embeddings")
    dimensions = size(quick=[2, 4, 8, 16], full=[2, 4, 8, 16, 32], label="N of the embeddings")

    orthogonal = at_most("largest |Forster's bound - sqrt(size)| over random sets of P/N parities of 3 bits, n = {n}",
                         1e-6, exact=True)
    exponential = at_least("ln(C(2k, k)^(1/3)) / k, the least over k = 3 to 31", 0.3, exact=True)
    above = at_least("N / bound at its share of errors, random features, N = {dimension}", 1.0, exact=True)

    def work(self, lab: Lab) -> tuple[list[Arrays], list[Arrays]]:
        return (lab.compute_each(random_sets, [{"n": n, "sets": self.sets} for n in self.n]),
                lab.compute_each(embedded, [{"n": self.bits, "dimension": each} for each in self.dimensions]))

    def judge(self, got: tuple[list[Arrays], list[Arrays]]) -> Findings:
        checks, rows, numbers = [], [], {}
        for n, arrays in zip(self.n, got[0], strict=True):
            apart = np.abs(arrays["bound"] - np.sqrt(arrays["size"]))
            checks.append(self.orthogonal(float(apart.max()), n=n))
            rows += [{"n": n, "set": i, "size": int(arrays["size"]), "bound": float(value)}
                     for i, value in enumerate(arrays["bound"])]
        rates = [math.log(math.comb(2 * k, k)) / (3 * k) for k in range(3, 32)]
        checks.append(self.exponential(min(rates)))
        for dimension, arrays in zip(self.dimensions, got[1], strict=True):
            eps = float(arrays["eps"])
            bound = dimension_with_errors(math.sqrt(2**self.bits), eps)
            checks.append(self.above(dimension / bound, dimension=dimension))
            rows.append({"n": self.bits, "N": dimension, "eps": eps, "bound": bound})
        for n, k in ((20, 3), (101, 5), (1001, 7)):
            numbers[f"dimension of a random embedding, at least, n = {n}, k = {k}"] = random_dimension(math.comb(n, k))
        return Findings(checks, rows, numbers)

    def draw(self, got: tuple[list[Arrays], list[Arrays]]) -> plots.Figure:
        eps = np.geomspace(1e-3, 0.5, 50)
        law = [dimension_with_errors(math.sqrt(2**self.bits), each) for each in eps]
        series = {"random features, fitted": Series([float(arrays["eps"]) for arrays in got[1]], self.dimensions)}
        return plots.scaling_plot(series, f"share of wrong signs, all parities of {self.bits} bits", "dimension N",
                                  {"least dimension": (eps, law)})


@computation
def random_sets(seed: int, n: int, sets: int) -> dict[str, Any]:
    """Forster's bounds of random sets of P/N parities of 3 bits, N the least dimension of a random embedding."""
    matrix, generator = parities(n, [3]), rng(seed, 51, n)
    count = matrix.shape[1]
    size = math.ceil(count / random_dimension(count))
    chosen = [generator.choice(count, size, replace=False) for _ in range(sets)]
    return {"size": size, "bound": [forster(matrix[:, columns]) for columns in chosen]}


@computation
def embedded(seed: int, n: int, dimension: int) -> dict[str, Any]:
    """The share of wrong signs of least-squares fits to all parities on random ReLU features of this dimension."""
    matrix, generator = parities(n, list(range(n + 1))), rng(seed, 52, n, dimension)
    inputs = parities(n, [1])
    features = np.maximum(inputs @ generator.standard_normal((n, dimension)) + generator.standard_normal(dimension), 0)
    fitted = features @ np.linalg.lstsq(features, matrix, rcond=None)[0]
    return {"eps": np.mean(fitted * matrix <= 0)}
