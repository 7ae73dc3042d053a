"""Intervals of means and shares, many at a time: all of them hold together with the level that is asked for."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.special  # pyright: ignore[reportMissingTypeStubs]
from numpy.typing import ArrayLike

from paritylab.aliases import Floats
from paritylab.errors import require

special: Any = scipy.special  # SciPy has no types
LEVEL = 0.95


class Ends(NamedTuple):
    """Both ends of intervals."""

    low: Floats
    high: Floats


def tail(level: float, together: int) -> float:
    """The chance left to each end of so many intervals (Bonferroni).

    >>> round(tail(0.95, 5), 4)
    0.005
    """
    require(0 < level < 1, f"a level must be between 0 and 1, not {level:g}")
    return (1 - level) / (2 * together)


def of_means(means: ArrayLike, variances: ArrayLike, count: int, level: float, together: int) -> Ends:
    """Student-t intervals of the means of ``count`` draws with these variances."""
    half = special.stdtrit(count - 1, 1 - tail(level, together)) * np.sqrt(np.asarray(variances) / count)
    return Ends(np.asarray(means) - half, np.asarray(means) + half)


def of_shares(counts: ArrayLike, total: int, level: float, together: int) -> Ends:
    """Clopper-Pearson intervals of shares.

    >>> low, high = of_shares([9], 10, 0.95, 1)
    >>> low.round(3), high.round(3)
    (array([0.555]), array([0.997]))
    """
    hits, chance = np.asarray(counts, float), tail(level, together)
    with np.errstate(invalid="ignore"):
        low = np.where(hits > 0, special.betaincinv(np.maximum(hits, 1), total - hits + 1, chance), 0.0)
        high = np.where(hits < total, special.betaincinv(hits + 1, np.maximum(total - hits, 1), 1 - chance), 1.0)
    return Ends(low, high)


def of_quantiles(ordered: Floats, levels: ArrayLike, level: float, together: int) -> Ends:
    """Intervals of quantiles from an ordered sample, by the binomial law of how many lie below; any distribution.

    An end that no sample of this size can tell is the sample's own extreme where the quantile is 0 or 1, and infinite
    elsewhere.

    >>> of_quantiles(np.arange(100.0), [0.5], 0.95, 1)
    Ends(low=array([39.]), high=array([60.]))
    """
    shares, chance, count = np.asarray(levels, float), tail(level, together), len(ordered)
    below = _binomial_quantile(chance, count, shares) - 1
    above = _binomial_quantile(1 - chance, count, shares)
    low = np.where(below >= 0, ordered[np.clip(below, 0, count - 1)], -np.inf)
    high = np.where(above < count, ordered[np.clip(above, 0, count - 1)], np.inf)
    return Ends(low, high)


def _binomial_quantile(chance: float, count: int, shares: Floats) -> Any:
    """The least k with P(Binomial(count, share) <= k) >= chance."""
    from scipy import stats

    return stats.binom.ppf(chance, count, shares).astype(int)
