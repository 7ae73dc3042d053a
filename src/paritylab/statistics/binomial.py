"""The two functions of every summary's intervals. SciPy has both; importing it takes longer than reading a store."""

from __future__ import annotations

import bisect
import functools
import math
from statistics import NormalDist

ENOUGH = 1e-17
"""Part of a sum below which terms no longer count."""
ROUNDING = 1e-12
"""Relative, of a sum of a few terms."""


def deviate(tail: float) -> float:
    """Where the upper tail of the standard normal distribution begins.

    >>> round(deviate(0.025), 6)
    1.959964
    """
    return -NormalDist().inv_cdf(tail)


@functools.lru_cache(maxsize=4096)
def quantile(runs: int, chance: float, level: float) -> int:
    """The least count that a binomial distribution does not exceed with probability ``level``.

    >>> quantile(100, 0.5, 0.025), quantile(100, 0.5, 0.975)
    (40, 60)
    """
    reached = level * (1 - ROUNDING)  # chances of 1/2 and levels of 1/4 can be equal
    return bisect.bisect_left(range(runs + 1), reached, hi=runs, key=lambda k: at_most(k, runs, chance))


def at_most(k: int, runs: int, chance: float) -> float:
    """The probability of at most ``k`` successes among this many runs, each with this chance.

    The terms of the shorter tail, from its largest on.
    """
    if chance in (0.0, 1.0) or k in (-1, runs):
        return float(k >= chance * runs)
    if k > chance * runs:
        return 1 - at_most(runs - k - 1, runs, 1 - chance)
    ways = math.lgamma(runs + 1) - math.lgamma(k + 1) - math.lgamma(runs - k + 1)
    term = math.exp(ways + k * math.log(chance) + (runs - k) * math.log1p(-chance))
    total, odds = 0.0, (1 - chance) / chance
    while k >= 0 and term > ENOUGH * total:
        total += term
        term *= k * odds / (runs - k + 1)
        k -= 1
    return total
