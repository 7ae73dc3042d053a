"""Low-degree Fourier estimation: the largest of all estimated coefficients of degree at most k."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from paritylab.baselines.search import Found, exhaustive
from paritylab.baselines.sources import Examples, Guess
from paritylab.errors import require


def largest(x: ArrayLike, y: ArrayLike, degree: int) -> Found:
    """The largest |mean(y chi_T)| over all supports T of at most ``degree`` members, and the next one.

    >>> x = np.random.default_rng(0).choice([-1, 1], (200, 12))
    >>> largest(x, -x[:, [3, 8]].prod(1), degree=3)[:2]
    ([3, 8], 1.0)
    """
    signs, labels = np.asarray(x), np.asarray(y)
    require(0 <= degree <= signs.shape[1], f"the degree must be from 0 to {signs.shape[1]}, not {degree}")
    best = Found([], abs(float(labels.mean())), -1.0)
    for size in range(1, degree + 1):
        found = exhaustive(signs, labels, size, absolute=True)
        if found.correlation > best.correlation:
            best = found._replace(runner_up=max(found.runner_up, best.correlation))
        else:
            best = best._replace(runner_up=max(best.runner_up, found.correlation))
    return best


def find(examples: Examples) -> Guess:
    """The support of the largest coefficient, if it is the only one and at least half of 1 - 2 noise."""
    found = largest(examples.x, examples.y, examples.k)
    if found.correlation <= found.runner_up:
        return Guess(note="two coefficients are equally large")
    if found.correlation < (1 - 2 * examples.noise) / 2:
        return Guess(note="no coefficient stands out")
    return Guess(tuple(found.support))
