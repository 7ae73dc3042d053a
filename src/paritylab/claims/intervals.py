"""Intervals that claims of several papers state: of a proportion, of a mean over seeds, of any statistic of samples."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from paritylab.aliases import Floats, Interval


def proportion(count: int, total: int) -> tuple[float, Interval]:
    """A proportion and its Clopper-Pearson interval.

    >>> share, (low, high) = proportion(9, 10)
    >>> share, round(low, 3), round(high, 3)
    (0.9, 0.555, 0.997)
    """
    interval = stats.binomtest(count, total).proportion_ci(method="exact")
    return count / total, (float(interval.low), float(interval.high))


def share(flags: ArrayLike) -> tuple[float, Interval]:
    """The share of flags that are set, and its Clopper-Pearson interval.

    >>> value, (low, high) = share([True] * 9 + [False])
    >>> value, round(low, 3), round(high, 3)
    (0.9, 0.555, 0.997)
    """
    return proportion(int(np.sum(flags)), np.size(flags))


def mean(values: ArrayLike) -> tuple[float, Interval]:
    """The mean over seeds and its 95 % Student-t interval, which is infinite for a single value.

    >>> value, (low, high) = mean([0.4, 0.5, 0.6])
    >>> round(value, 9), round(low, 3), round(high, 3)
    (0.5, 0.252, 0.748)
    """
    array = np.asarray(values, float)
    centre = float(np.mean(array))
    if len(array) < 2:
        return centre, (-math.inf, math.inf)
    half = float(stats.t.ppf(0.975, len(array) - 1) * np.std(array, ddof=1) / math.sqrt(len(array)))
    return centre, (centre - half, centre + half)


def bootstrap(
    statistic: Callable[..., float], *samples: Floats, rng: np.random.Generator, resamples: int = 2000
) -> Interval:
    """The 95 % percentile interval of a statistic of independent samples; an undefined resample counts at both ends.

    >>> low, high = bootstrap(np.median, np.arange(99.0), rng=np.random.default_rng(0))
    >>> 35 < low < 49 < high < 63
    True
    """
    if not all(len(sample) for sample in samples):
        return -math.inf, math.inf
    with np.errstate(invalid="ignore", divide="ignore"):
        values = np.array([statistic(*(rng.choice(s, len(s)) for s in samples)) for _ in range(resamples)])
    undefined = np.isnan(values)
    low = np.quantile(np.where(undefined, -np.inf, values), 0.025, method="lower")
    high = np.quantile(np.where(undefined, np.inf, values), 0.975, method="higher")
    return float(low), float(high)


def estimate(statistic: Callable[..., float], *samples: Floats, rng: np.random.Generator) -> tuple[float, Interval]:
    """A statistic of independent samples, and its bootstrap interval.

    >>> value, (low, high) = estimate(lambda a, b: np.mean(a) - np.mean(b), np.arange(9.0), np.arange(9.0) - 8,
    ...                               rng=np.random.default_rng(0))
    >>> value, 4 < low < 8 < high < 12
    (8.0, True)
    """
    return float(statistic(*samples)), bootstrap(statistic, *samples, rng=rng)
