"""Percentiles of convergence times, unsolved runs counting as infinite, with intervals.

Where all runs have one horizon, percentiles and the ends of their intervals are order statistics; where horizons
differ they are read off the curve of the fraction unsolved, see :mod:`paritylab.statistics.risk`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from paritylab.errors import require
from paritylab.statistics.binomial import quantile
from paritylab.statistics.risk import Floats as Floats
from paritylab.statistics.risk import Interval as Interval
from paritylab.statistics.risk import horizons_differ, risk
from paritylab.storage.records import SOLVED


def percentile(t_c: ArrayLike, status: ArrayLike, q: float, steps: ArrayLike | None = None) -> float:
    """The ``q``-th percentile of the convergence time over all runs; ``inf`` when it is not reached.

    Interpolates linearly between order statistics as NumPy does, an unsolved run counting as ``inf``. Where runs may
    have been given up at different ``steps``, give these: where they differ, the percentile is the first step by which
    ``q`` % of the runs are solved on the Kaplan-Meier curve. Without them all runs are taken to have one horizon.

    >>> percentile([100, 300, -1, -1], [0, 0, 1, 2], 10)
    160.0
    >>> percentile([100, 300, -1, -1], [0, 0, 1, 2], 50)
    inf
    >>> percentile([100, 300, -1, -1], [0, 0, 1, 1], 50, steps=[100, 300, 200, 50])
    300.0
    """
    return percentiles(t_c, status, [q], steps)[0][0]


def percentile_interval(
    t_c: ArrayLike, status: ArrayLike, q: float, level: float = 0.95, steps: ArrayLike | None = None
) -> Interval:
    """A confidence interval for the ``q``-th percentile; ``steps`` as in :func:`percentile`.

    With one horizon it runs between two order statistics of the sample. The ranks come from the binomial law of the
    number of runs below the true percentile, so the coverage is at least ``level`` for every sample size and every law
    of t_c, ties and unsolved runs included. Where horizons differ, the beta product procedure takes the place of the
    binomial law, to which it reduces. Where the sample is too small to bound the percentile, the lower end is 0 and the
    upper end ``inf``.

    >>> percentile_interval(range(1, 101), [0] * 100, 50)
    (40.0, 61.0)
    >>> percentile_interval([100, 300, -1], [0, 0, 1], 50)
    (0.0, inf)
    """
    return percentiles(t_c, status, [q], steps, level)[0][1]


def percentiles(
    t_c: ArrayLike, status: ArrayLike, qs: Sequence[float], steps: ArrayLike | None = None, level: float = 0.95
) -> list[tuple[float, Interval]]:
    """Several percentiles of one sample, each with its interval."""
    tail = tail_of(level)
    for q in qs:
        check_percentile(q)
    if steps is None or not horizons_differ(status, steps):
        times, runs = order(t_c, status)
        return [(percentile_of(times, runs, q), percentile_interval_of(times, runs, q, level)) for q in qs]
    followed = risk(t_c, status, steps)
    values = [float(followed.percentile(q)) for q in qs]
    return [(value, holding(value, followed.interval(q, tail))) for q, value in zip(qs, values, strict=True)]


def order(t_c: ArrayLike, status: ArrayLike) -> tuple[Floats, int]:
    """The solved times in increasing order, closed by one ``inf`` that stands for every unsolved run."""
    solved = np.asarray(status) == SOLVED
    return np.append(np.sort(np.asarray(t_c)[solved]), np.inf), len(solved)


def check_percentile(q: float) -> None:
    require(0 <= q <= 100, f"a percentile must be between 0 and 100, not {q:g}")


def time_at(times: Floats, index: Any) -> Any:
    return times[np.minimum(index, len(times) - 1)]


def position(runs: int, q: float) -> tuple[int, float]:
    # Multiplying first keeps whole positions whole, so that no rounding error touches an unsolved run.
    position = q * (runs - 1) / 100
    return math.floor(position), position - math.floor(position)


def interpolate(low: Any, high: Any, fraction: float) -> Any:
    if fraction == 0:
        return low
    with np.errstate(invalid="ignore"):
        return np.where(np.isinf(high), np.inf, low + fraction * (high - low))


def percentile_of(times: Floats, runs: int, q: float) -> float:
    index, fraction = position(runs, q)
    if runs == 0:
        return math.inf
    return float(interpolate(time_at(times, index), time_at(times, index + 1), fraction))


def percentile_interval_of(times: Floats, runs: int, q: float, level: float) -> Interval:
    first, last = ranks(runs, q, level)
    low = float(time_at(times, first - 1)) if first > 0 else 0.0
    high = float(time_at(times, last - 1)) if last <= runs else math.inf
    # With few runs and an extreme q the interpolated percentile can lie beyond the bounding order statistic.
    return holding(percentile_of(times, runs, q), (low, high))


def ranks(runs: int, q: float, level: float) -> tuple[int, int]:
    """Between which order statistics the true percentile lies: the quantiles of how many of the runs are below it.

    >>> ranks(100, 50, 0.95)
    (40, 61)
    """
    tail = tail_of(level)
    return quantile(runs, q / 100, tail), quantile(runs, q / 100, 1 - tail) + 1


def holding(value: float, interval: Interval) -> Interval:
    """The interval, stretched to hold a value."""
    return min(interval[0], value), max(interval[1], value)


def tail_of(level: float) -> float:
    require(0 < level < 1, f"a confidence level must be between 0 and 1, not {level:g}")
    return (1 - level) / 2
