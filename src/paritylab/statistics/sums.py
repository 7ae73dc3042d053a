"""A sample of which only the sum is known, compared with another one that is known value by value."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike

from paritylab.aliases import Floats

GLANCE, MOST_NUMBERS = 2000, 2 * 10**7
"""Draws that decide most comparisons; random numbers that the others may take."""
UNLIKELY = 10
"""Fewer of the first draws than these, on either side, ask for more draws."""


def p_value_of_sum(total: float, values: ArrayLike, most: float, seed: int = 0) -> float:
    """Of as many values with this total having the distribution of ``values``; all are from 0 to ``most``.

    It holds for any distribution. If the two samples have the same one, every order of their values is equally likely,
    so how many of one fall into each gap between those of the other comes from Pólya's urn. Each lies between the ends
    of its gap, and so does the sum. With values that are alike in pairs it errs high.

    >>> values = [440, 450, 460, 520, 610, 380, 400, 470, 490, 550]
    >>> p_value_of_sum(4800, values, 10_000), p_value_of_sum(100_000, values, 10_000) < 1e-4
    (1.0, True)
    """
    ends = np.concatenate([[0.0], np.sort(np.asarray(values, np.float64)), [most]])
    random = np.random.default_rng(seed)
    count = above = below = 0
    for low, high in _sums(ends, random):
        count += len(low)
        above += int(np.sum(high >= total))
        below += int(np.sum(low <= total))
        if min(above, below) >= UNLIKELY:
            break
    return min(1.0, 2 * (1 + min(above, below)) / (1 + count))


def _sums(ends: Floats, random: np.random.Generator) -> Iterator[tuple[Floats, Floats]]:
    """Least and largest sums of a sample drawn from the urn, many at a time."""
    gaps = len(ends) - 1
    for _ in range(max(1, MOST_NUMBERS // (GLANCE * gaps))):
        counts = random.multinomial(gaps - 1, random.dirichlet(np.ones(gaps), GLANCE))
        yield counts @ ends[:-1], counts @ ends[1:]
