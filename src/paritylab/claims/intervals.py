"""Intervals that claims of several papers state: of a proportion, of a mean over seeds, of any statistic of samples.

Noise has one direction in some statistics: it raises a maximum, lowers a minimum and bends what is straight.
Resampling adds it a second time, so that percentiles of resampled values can exclude the very estimate. Such
statistics have intervals of their own here: :func:`largest` and :func:`smallest` of several estimates, :func:`below`
for what noise only lowers, and :func:`share_of_cases` where cases are counted whose values are estimates.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from paritylab.aliases import Floats, Interval
from paritylab.later import stats
from paritylab.statistics.percentiles import ranks

Estimate = tuple[float, Interval]
"""A value and its interval."""
LEVEL = 0.95


def proportion(count: int, total: int, level: float = LEVEL) -> Estimate:
    """A proportion and its Clopper-Pearson interval (95 % unless said).

    >>> share, (low, high) = proportion(9, 10)
    >>> share, round(low, 3), round(high, 3)
    (0.9, 0.555, 0.997)
    """
    interval = stats.binomtest(count, total).proportion_ci(level, method="exact")
    return count / total, (float(interval.low), float(interval.high))


def share(flags: ArrayLike) -> Estimate:
    """The share of flags that are set, and its Clopper-Pearson interval.

    >>> value, (low, high) = share([True] * 9 + [False])
    >>> value, round(low, 3), round(high, 3)
    (0.9, 0.555, 0.997)
    """
    return proportion(int(np.sum(flags)), np.size(flags))


def mean(values: ArrayLike, level: float = LEVEL) -> Estimate:
    """The mean over seeds and its Student-t interval (95 % unless said), which is infinite for a single value.

    >>> value, (low, high) = mean([0.4, 0.5, 0.6])
    >>> round(value, 9), round(low, 3), round(high, 3)
    (0.5, 0.252, 0.748)
    """
    array = np.asarray(values, float)
    centre = float(np.mean(array))
    if len(array) < 2:
        return centre, (-math.inf, math.inf)
    half = float(stats.t.ppf((1 + level) / 2, len(array) - 1) * np.std(array, ddof=1) / math.sqrt(len(array)))
    return centre, (centre - half, centre + half)


def median(values: ArrayLike) -> Estimate:
    """The median over runs, and the 95 % interval between two of their values that the binomial law gives.

    It holds for every law of the values and any number of runs: below six runs it is infinite. A value that is not
    known (NaN) makes the median unknown, and counts at both ends.

    >>> median(range(1, 101)), median([1, 3, 4])
    ((50.5, (40.0, 61.0)), (3.0, (-inf, inf)))
    """
    array = np.asarray(values, float)
    low, high = ranks(len(array), 50, LEVEL)
    unknown = np.isnan(array)
    lows, highs = (np.sort(np.where(unknown, end, array)) for end in (-np.inf, np.inf))
    ends = lows[low - 1] if low > 0 else -np.inf, highs[high - 1] if high <= len(array) else np.inf
    with np.errstate(invalid="ignore"):
        return float(np.median(array)), (float(ends[0]), float(ends[1]))


def bootstrap(
    statistic: Callable[..., float], *samples: Floats, rng: np.random.Generator, resamples: int = 2000,
    level: float = LEVEL,
) -> Interval:
    """The percentile interval of a statistic of independent samples; an undefined resample counts at both ends.

    It is for statistics that noise moves both ways alike, such as medians, ratios and slopes.

    >>> low, high = bootstrap(np.median, np.arange(99.0), rng=np.random.default_rng(0))
    >>> 35 < low < 49 < high < 63
    True
    """
    if not all(len(sample) for sample in samples):
        return -math.inf, math.inf
    with np.errstate(invalid="ignore", divide="ignore"):
        values = np.array([statistic(*(rng.choice(s, len(s)) for s in samples)) for _ in range(resamples)])
    undefined = np.isnan(values)
    low = np.quantile(np.where(undefined, -np.inf, values), (1 - level) / 2, method="lower")
    high = np.quantile(np.where(undefined, np.inf, values), (1 + level) / 2, method="higher")
    return float(low), float(high)


def estimate(statistic: Callable[..., float], *samples: Floats, rng: np.random.Generator) -> Estimate:
    """A statistic of independent samples, and its bootstrap interval.

    >>> value, (low, high) = estimate(lambda a, b: np.mean(a) - np.mean(b), np.arange(9.0), np.arange(9.0) - 8,
    ...                               rng=np.random.default_rng(0))
    >>> value, 4 < low < 8 < high < 12
    (8.0, True)
    """
    return float(statistic(*samples)), bootstrap(statistic, *samples, rng=rng)


def jackknife(statistic: Callable[[Floats], float], sample: Floats, level: float = LEVEL) -> Estimate:
    """A smooth statistic of few runs (the sample's first axis), with the jackknife's error and Student's t.

    A bootstrap of two or three runs is far too narrow; of a mean this is exactly :func:`mean`. One run has an infinite
    interval, and so has a statistic that is undefined without one of the runs.

    >>> value, (low, high) = jackknife(np.mean, np.array([0.4, 0.5, 0.6]))
    >>> round(value, 9), round(low, 3), round(high, 3)
    (0.5, 0.252, 0.748)
    """
    value, count = float(statistic(sample)), len(sample)
    if math.isnan(value) or count < 2:
        return value, (-math.inf, math.inf)
    without = np.array([statistic(np.delete(sample, i, axis=0)) for i in range(count)])
    if not np.isfinite(without).all():
        return value, (-math.inf, math.inf)
    error = math.sqrt((count - 1) * float(np.var(without)))
    half = float(stats.t.ppf((1 + level) / 2, count - 1)) * error
    return value, (value - half, value + half)


# --- what noise moves one way -----------------------------------------------------------------------------------------


def together(count: int) -> float:
    """The level at which each of so many intervals is stated, that all of them hold with 95 % (Bonferroni).

    >>> round(together(5), 3)
    0.99
    """
    return 1 - (1 - LEVEL) / count


def contrast(samples: Sequence[Floats], weights: Sequence[float], level: float = LEVEL) -> Estimate:
    """A weighted sum of the means of independent samples, and its Welch interval.

    >>> value, (low, high) = contrast([np.array([1.0, 2.0, 3.0]), np.array([0.0, 1.0, 2.0])], [1, -1])
    >>> value, round(low, 2), round(high, 2)
    (1.0, -1.27, 3.27)
    """
    value = float(sum(weight * np.mean(each) for weight, each in zip(weights, samples, strict=True)))
    parts = [weight**2 * float(np.var(each, ddof=1)) / len(each) for weight, each in zip(weights, samples, strict=True)]
    if not (variance := sum(parts)):
        return value, (value, value)
    freedom = variance**2 / sum(part**2 / (len(each) - 1) for part, each in zip(parts, samples, strict=True))
    half = float(stats.t.ppf((1 + level) / 2, freedom)) * math.sqrt(variance)
    return value, (value - half, value + half)


def distance(signed: Estimate) -> Estimate:
    """The absolute value of an estimate.

    >>> distance((-0.2, (-0.5, 0.1))), distance((-2.0, (-3.0, -1.0)))
    ((0.2, (0.0, 0.5)), (2.0, (1.0, 3.0)))
    """
    value, (low, high) = signed
    return abs(value), (max(low, -high, 0.0), max(-low, high))


def largest(estimates: Sequence[Estimate]) -> Estimate:
    """The largest of several values (NaN if one is): its interval is right wherever all of theirs are, and holds it.

    State theirs at the level ``together(len(estimates))``.

    >>> largest([(1.0, (0.5, 1.5)), (0.9, (0.1, 1.7))])
    (1.0, (0.5, 1.7))
    """
    values, lows, highs = zip(*((value, *interval) for value, interval in estimates), strict=True)
    return float(np.max(values)), (float(np.max(lows)), float(np.max(highs)))


def smallest(estimates: Sequence[Estimate]) -> Estimate:
    """The smallest of several values, likewise.

    >>> smallest([(1.0, (0.5, 1.5)), (0.9, (0.1, 1.7))])
    (0.9, (0.1, 1.5))
    """
    values, lows, highs = zip(*((value, *interval) for value, interval in estimates), strict=True)
    return float(np.min(values)), (float(np.min(lows)), float(np.min(highs)))


def below(value: float, resampled: Floats, most: float = math.inf) -> Estimate:
    """A statistic that noise only lowers, at most ``most``, with an interval from resampled values.

    These lie below the estimate about as far as it lies below the truth. Their lower end is therefore on the safe side,
    and the upper one is as far above the estimate as the lower one is below. An undefined resample counts at both ends.

    >>> below(0.9, np.linspace(0.7, 0.88, 1000), most=1.0)
    (0.9, (0.7043..., 1.0))
    """
    if math.isnan(value):
        return value, (-math.inf, most)
    low = float(np.quantile(np.where(np.isnan(resampled), -np.inf, resampled), (1 - LEVEL) / 2, method="lower"))
    return value, (min(low, value), min(2 * value - min(low, value), most))


def share_of_cases(within: int, inside: int, outside: int, total: int, wrong: tuple[float, float]) -> Estimate:
    """The share of fixed cases whose true value lies within a bound, if each value is an estimate.

    By their estimates ``within`` of ``total`` cases lie there; of so many one is sure that they are ``inside`` or
    ``outside``, wrongly with chances of at most ``wrong`` for a case, independently. If T cases are outside, more than
    the 97.5 % quantile of a binomial of T are taken for inside with a chance of 2.5 % only: which bounds T.

    >>> share_of_cases(within=100, inside=100, outside=0, total=100, wrong=(0.05, 0.05))
    (1.0, (0.99, 1.0))
    >>> share_of_cases(within=98, inside=90, outside=1, total=100, wrong=(0.05, 0.05))
    (0.98, (0.88, 1.0))
    """
    def most(missed: int, chance: float) -> int:
        """The most cases of a kind of which no more than so many were not taken for the other kind."""
        counts = np.arange(total + 1)
        return int(counts[counts - stats.binom.ppf((1 + LEVEL) / 2, counts, chance) <= missed].max())

    low = 1 - most(total - inside, wrong[0]) / total
    return within / total, (low, most(total - outside, wrong[1]) / total)
