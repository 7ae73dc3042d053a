"""The fraction of runs that are solved, by some step or at all, and how two samples compare."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from paritylab.aliases import Floats, Interval
from paritylab.later import special, stats
from paritylab.statistics.binomial import deviate
from paritylab.statistics.percentiles import tail_of
from paritylab.statistics.risk import event_steps, risk
from paritylab.storage.records import CENSORED, SOLVED, Records


def solved_fraction(status: ArrayLike, level: float = 0.95) -> tuple[float, Interval]:
    """The fraction of runs that were solved, and its Wilson interval (of no runs: ``nan`` and (0, 1)).

    >>> fraction, (low, high) = solved_fraction([0] * 9 + [1])
    >>> fraction, round(low, 3), round(high, 3)
    (0.9, 0.596, 0.982)
    """
    flags = np.asarray(status) == SOLVED
    solved, runs = int(flags.sum()), len(flags)
    return solved / runs if runs else math.nan, share_interval(solved, runs, level)


def share_interval(count: int, total: int, level: float = 0.95) -> Interval:
    """The Wilson interval of a proportion; (0, 1) of nothing.

    >>> share_interval(0, 0), round(share_interval(9, 10)[0], 3)
    ((0.0, 1.0), 0.596)
    """
    z = deviate(tail_of(level))
    if total == 0:
        return 0.0, 1.0
    middle = (count + z * z / 2) / (total + z * z)
    half = z / (total + z * z) * math.sqrt(count * (total - count) / total + z * z / 4)
    return 0.0 if count == 0 else middle - half, 1.0 if count == total else middle + half


@dataclass(frozen=True)
class Survival:
    """The fraction still unsolved after ``steps`` (increasing), with a pointwise confidence band.

    ``censored`` counts the censored runs that were given up at each of these steps (diverged runs not
    included).
    """

    steps: Floats
    unsolved: Floats
    low: Floats
    high: Floats
    censored: NDArray[np.int64]


def survival(records: Records, level: float = 0.95) -> Survival:
    """The Kaplan-Meier curve of the convergence time, with its log-log Greenwood band.

    Diverged runs stay unsolved; see :mod:`paritylab.statistics.risk` for what that means among censored ones. Where the
    band is undefined: before the first solved run the lower end is the exact binomial one, and once everything is
    solved the upper end stays where it last was, which can only be too wide.

    >>> survival(Records([0, 1], [0, 1], [10, -1], [10, 20], [1, 0.5], [0, 1])).unsolved
    array([0.5, 0.5])
    """
    tail = tail_of(level)
    steps, solved, at_risk, _ = curve = risk(records.t_c, records.status, records.steps)
    unsolved = curve.unsolved
    with np.errstate(divide="ignore", invalid="ignore"):
        error = np.sqrt(np.cumsum(solved / (at_risk * (at_risk - solved))))
        power = np.exp(deviate(tail) * error / np.log(unsolved))
        low, high = unsolved ** (1 / power), unsolved**power
        low = np.where(unsolved == 1, tail ** (1 / at_risk), low)
    high = np.where(unsolved == 1, 1.0, high)
    if len(steps) and unsolved[-1] == 0:
        low[-1], high[-1] = 0.0, high[-2] if len(steps) > 1 else 1.0
    given_up = np.searchsorted(steps, records.steps[records.status == CENSORED])
    return Survival(steps, unsolved, low, high, np.bincount(given_up, minlength=len(steps)))


def still_training(records: Records, steps: ArrayLike) -> NDArray[np.int64]:
    """How many runs were neither solved, nor diverged, nor given up before each of these steps.

    >>> still_training(Records([0, 1], [0, 1], [10, -1], [10, 20], [1, 0.5], [0, 1]), [5, 10, 15, 30]).tolist()
    [2, 2, 1, 0]
    """
    ends = np.sort(np.where(records.status == SOLVED, records.t_c, records.steps))
    return len(ends) - np.searchsorted(ends, np.asarray(steps, np.float64), side="left")


def horizon_of(*samples: Records) -> int:
    return max((int(records.steps.max()) for records in samples if len(records)), default=0)


class Comparison(NamedTuple):
    """The log-rank statistic (positive: the first sample solves faster) and its two-sided p-value."""

    statistic: float
    p_value: float


def compare_accuracy(first: Records, second: Records) -> float:
    """The p-value of two samples' final accuracies having the same distribution (Kolmogorov-Smirnov; diverged runs,
    which have none, left out)."""
    mine, theirs = (records.accuracy[~np.isnan(records.accuracy)] for records in (first, second))
    tested: Any = stats.ks_2samp(mine, theirs) if len(mine) and len(theirs) else None
    return 1.0 if tested is None else float(tested.pvalue)


def compare(first: Records, second: Records) -> Comparison:
    """Test whether two samples have the same law of convergence times (log-rank, censoring respected).

    Most powerful where one sample is faster at all times; curves that cross can escape it. Diverged runs count as
    unsolved for as long as runs of their sample are followed. Where there is nothing to tell apart (nothing was solved,
    or everything at the same step), the p-value is 1.

    >>> fast = Records(range(9), [0] * 9, range(1, 10), range(1, 10), [1] * 9, [0] * 9)
    >>> slow = Records(range(9), [0] * 9, range(21, 30), range(21, 30), [1] * 9, [0] * 9)
    >>> compare(fast, slow).p_value < 1e-4
    True
    """
    columns = [(records.t_c, records.status, records.steps) for records in (first, second)]
    grid = np.union1d(*(event_steps(*each) for each in columns))
    mine, theirs = (risk(*each, grid) for each in columns)
    solved, at_risk = mine.solved + theirs.solved, mine.at_risk + theirs.at_risk
    some = (solved > 0) & (at_risk > 1)
    share, solved, at_risk = mine.at_risk[some] / at_risk[some], solved[some], at_risk[some]
    variance = float(np.sum(solved * share * (1 - share) * (at_risk - solved) / (at_risk - 1)))
    if variance <= 0:
        return Comparison(0.0, 1.0)
    statistic = float(np.sum(mine.solved[some] - solved * share)) / math.sqrt(variance)
    return Comparison(statistic, float(2 * special.ndtr(-abs(statistic))))
