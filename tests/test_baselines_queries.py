"""Goldreich-Levin against the whole Walsh-Hadamard spectrum."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from paritylab.errors import InvalidInput
from paritylab.measures.heavy import bucket_weights, characters, heavy

N = 8
CUBE = np.array(list(itertools.product([1, -1], repeat=N)), np.int8)
SUPPORTS = np.array(list(itertools.product([False, True], repeat=N)))


def spectrum(values):
    """All coefficients, by the definition."""
    sizes = values @ characters(CUBE, SUPPORTS) / len(CUBE)
    return {tuple(np.flatnonzero(members).tolist()): float(c) for members, c in zip(SUPPORTS, sizes, strict=True)}


def table(values):
    """A function from signs to the values of a table over the cube."""
    return lambda x: values[(x < 0) @ (1 << np.arange(N)[::-1])]


def functions():
    generator = np.random.default_rng(0)
    yield CUBE[:, [1, 4, 6]].prod(axis=1).astype(float)
    yield np.where(CUBE[:, :5].sum(axis=1) > 0, 1.0, -1.0)
    yield np.sign(CUBE[:, [0, 3]].prod(axis=1) + 0.9 * CUBE[:, [2, 5, 7]].prod(axis=1) + CUBE[:, 6] + 0.1)
    for bias in (0.6, 0.8):
        flips = np.where(generator.random(len(CUBE)) < bias, 1.0, -1.0)
        yield CUBE[:, [2, 3, 5, 7]].prod(axis=1) * flips


@pytest.mark.parametrize("values", list(functions()), ids=["parity", "majority", "mixed", "weak 60 %", "strong 80 %"])
@pytest.mark.parametrize("degree", [None, 3])
def test_all_large_coefficients_are_listed_and_no_small_ones(values, degree):
    # 2e4 queries a split tell weights to 1e-3 and coefficients to 0.007, against margins of 0.018 and 0.03 and more
    threshold = 0.19
    exact = {T: c for T, c in spectrum(values).items() if degree is None or len(T) <= degree}
    found = heavy(table(values), N, threshold, 9 * 20_000, np.random.default_rng(1), degree)
    assert set(found) >= {T for T, c in exact.items() if abs(c) >= 1.15 * threshold}
    assert all(abs(exact[T]) >= 0.8 * threshold / math.sqrt(2) for T in found)
    assert all(abs(found[T] - exact[T]) < 0.05 for T in found)
    assert list(found) == sorted(found, key=lambda T: -abs(found[T]))


def test_weights_of_buckets_are_sums_of_squares_of_coefficients():
    values = np.random.default_rng(2).choice([-1.0, 1.0], len(CUBE))
    values[CUBE[:, [1, 6]].prod(axis=1) < 0] *= -1
    inputs = np.array([6, 1, 3])
    members = np.array(list(itertools.product([False, True], repeat=3)))
    exact = np.array([
        sum(c**2 for T, c in spectrum(values).items() if set(T) & set(inputs.tolist()) == set(inputs[row].tolist()))
        for row in members
    ])
    draws = [bucket_weights(table(values), N, inputs, members, 400, np.random.default_rng(seed)) for seed in range(200)]
    error = np.std(draws, axis=0) / math.sqrt(len(draws))
    assert np.all(np.abs(np.mean(draws, axis=0) - exact) < 6 * error)  # below 1e-7
    assert exact.sum() == pytest.approx(1)


def test_mistakes_are_named():
    for threshold, queries in ((0.0, 1000), (1.5, 1000), (0.5, 10)):
        with pytest.raises(InvalidInput):
            heavy(table(np.ones(len(CUBE))), N, threshold, queries, np.random.default_rng(0))
