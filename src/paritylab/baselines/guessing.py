"""Search over supports as a learner: all of them, or random ones until one fits."""

from __future__ import annotations

import math

import numpy as np

from paritylab.baselines.search import exhaustive
from paritylab.baselines.sources import Examples, Guess

PATIENCE = 20
"""Random guesses are given up after this many times C(n, k): the support is missed with probability e^-20."""
GUESSES_AT_ONCE = 2**21
"""Guesses times examples that are tried at a time."""


def find_exhaustive(examples: Examples) -> Guess:
    """The support of size k that most labels agree with, if there is only one."""
    if examples.k == 0:
        return Guess(())
    found = exhaustive(examples.x, examples.y, examples.k)
    if found.correlation <= found.runner_up:
        return Guess(note="several supports fit equally well")
    return Guess(tuple(found.support))


def find_random(examples: Examples) -> Guess:
    """The first of random supports of size k whose correlation with the labels is at least half of 1 - 2 noise."""
    m, n = examples.x.shape
    k, generator = examples.k, examples.generator
    columns, labels = np.ascontiguousarray(examples.x.T), examples.y.astype(np.int32)
    least = m * (1 - 2 * examples.noise) / 2 if examples.noise else m
    supports = math.comb(n, k)
    at_once = max(1, min(GUESSES_AT_ONCE // m, supports))
    for _ in range(math.ceil(PATIENCE * supports / at_once)):
        guesses = distinct(generator, at_once, n, k)
        products = np.ones((at_once, m), np.int8)
        for member in guesses.T:
            products *= columns[member]
        fits = np.flatnonzero(products @ labels >= least)
        if len(fits):
            return Guess(tuple(sorted(guesses[fits[0]].tolist())))
    return Guess(note="no guess fits")


def distinct(generator: np.random.Generator, count: int, n: int, k: int) -> np.ndarray:
    """``count`` uniform draws of k different numbers below n: (count, k).

    >>> distinct(np.random.default_rng(0), 2, 3, 3).sum(axis=1)
    array([3, 3])
    """
    drawn = np.empty((count, k), np.int64)
    for place in range(k):  # the place-th number is uniform among those not drawn yet: skip over them in order
        value = generator.integers(0, n - place, count)
        for taken in np.sort(drawn[:, :place], axis=1).T:
            value += value >= taken
        drawn[:, place] = value
    return drawn
