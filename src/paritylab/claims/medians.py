"""Medians of times of runs that may not have been solved: how they grow, how they compare, how they are drawn."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from paritylab import plots
from paritylab.aliases import Floats, Interval
from paritylab.storage.records import SOLVED, Records


def samples(records: Records, batch: int = 1) -> Floats:
    """Samples until solved, which with a batch of 1 are steps; ``inf`` for a run that was not."""
    return np.where(records.status == SOLVED, records.t_c * float(batch), np.inf)


def ratio_of_medians(one: Floats, other: Floats) -> float:
    """NaN where neither is reached."""
    with np.errstate(invalid="ignore"):
        return float(np.median(one) / np.median(other))


def slope(sizes: Sequence[float], values: Sequence[Floats]) -> float:
    """The slope of log median on log size; NaN where a median is not known.

    >>> slope([2, 4], [np.array([4.0]), np.array([16.0])])
    2.0
    """
    return float(_slopes(sizes, np.array([[np.median(each) for each in values]]))[0])


def exponent(sizes: Sequence[float], values: Sequence[Floats], divisors: Floats | None = None,
             resamples: int = 2000) -> tuple[float, Interval]:
    """The slope of log median(values / divisor) on log size, and its 95 % interval, bootstrapped over runs.

    >>> exponent([2, 4], [np.array([4.0]), np.array([16.0])])
    (2.0, (2.0, 2.0))
    """
    generator = np.random.default_rng(0)
    drawn = [np.median(generator.choice(each, (resamples, len(each))), axis=1) for each in values]
    medians = np.stack([np.append(np.median(each), more) for each, more in zip(values, drawn, strict=True)], axis=1)
    slopes = _slopes(sizes, medians / (1.0 if divisors is None else divisors))
    if not np.isfinite(slopes[0]):
        return math.nan, (-math.inf, math.inf)
    undefined = ~np.isfinite(slopes[1:])
    low = np.quantile(np.where(undefined, -np.inf, slopes[1:]), 0.025, method="lower")
    high = np.quantile(np.where(undefined, np.inf, slopes[1:]), 0.975, method="higher")
    return float(slopes[0]), (float(low), float(high))


def _slopes(sizes: Sequence[float], medians: Floats) -> Floats:
    """Of each row of medians; NaN where one is not finite."""
    x = np.log(np.asarray(sizes, float))
    x -= x.mean()
    with np.errstate(invalid="ignore"):
        slopes = np.log(medians) @ x / (x @ x)
    return np.where(np.isfinite(slopes), slopes, np.nan).round(12)


def spread(sizes: Sequence[float], values: Sequence[Floats]) -> plots.Series:
    """Medians, with the middle half of the runs."""
    low, middle, high = (np.array([np.quantile(each, q, method="lower") for each in values]) for q in (0.25, 0.5, 0.75))
    return plots.Series(sizes, middle, low, high)
