"""Two learners on the same runs: which is faster, by how much, and how many runs would tell.

Runs with one number share their seed: inputs, labels and, where shapes agree, the start. What makes a run easy or hard
for one learner may do so for the other, so runs are compared in pairs. All runs are followed to one horizon, and a run
that was not solved by then is later than all that were:

- *Which is faster*: the paired Prentice-Wilcoxon test. Each time has its rank among those of both learners, unsolved
  runs sharing the last ones; the differences of ranks within pairs have fair signs if the learners are alike, whatever
  the law of times and however pairs depend. Unlike a test on ratios of times it needs no run to be solved, and unlike
  the log-rank test of two samples (:func:`paritylab.statistics.compare`) it uses the pairs. Up to 16 pairs that differ
  all signs are tried, beyond the normal law is close.
- *By how much*: the median over pairs of the ratio of times. Where one run of a pair is not solved the ratio is bounded
  by the horizon, where both are not it is unknown; the interval, between order statistics, holds for all it may be.
- *Which solves more*: the exact McNemar test on the pairs of which one run was solved, and the difference of the shares
  with Agresti and Min's interval.

How often each was faster, which needs no test, is counted by :func:`paritylab.statistics.pairs`.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from paritylab.aliases import Floats, Interval
from paritylab.errors import require
from paritylab.later import special
from paritylab.statistics.binomial import deviate
from paritylab.statistics.percentiles import interpolate, position, ranks, tail_of
from paritylab.storage.records import CENSORED, SOLVED, Records

EXACT = 16
"""The most differences of which all signs are tried."""
POWER = 0.9
"""The chance to decide that so many runs as are ``needed`` have."""


@dataclass(frozen=True)
class Paired:
    """What pairs of runs say of a first and a second learner.

    ``ratio`` is the median of the first's time over the second's: below 1 the first is faster. It is ``nan`` where too
    many runs were not solved to know it; its interval holds all the same. ``p_value`` is that of the paired
    Prentice-Wilcoxon test, ``solved_p_value`` that of McNemar's. ``needed`` pairs, these among them, would decide which
    is faster with a chance of 90 %, if the difference is the one that was seen; if it is as large as it may be,
    ``needed_at_least``.
    """

    pairs: int
    horizon: int
    both: int
    first_alone: int
    second_alone: int
    neither: int
    ratio: float
    ratio_interval: Interval
    statistic: float
    """Positive: the first is faster."""
    p_value: float
    solved_difference: float
    solved_interval: Interval
    solved_p_value: float
    needed: float
    needed_at_least: float
    level: float

    @property
    def decided(self) -> bool:
        """Whether the test tells which is faster."""
        return self.p_value <= 1 - self.level

    @property
    def more(self) -> float:
        """How many more runs would decide it; ``inf`` where no difference was seen."""
        return 0 if self.decided else max(1, self.needed - self.pairs)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain JSON values; what is not known, or without end, is None."""

        def plain(value: Any) -> Any:
            if isinstance(value, tuple):
                return [plain(part) for part in value]  # pyright: ignore[reportUnknownVariableType]
            return None if isinstance(value, float) and not math.isfinite(value) else value

        return {name: plain(value) for name, value in (asdict(self) | {"decided": self.decided,
                                                                       "more": self.more}).items()}


def paired(first: Records, second: Records, horizon: int | None = None, level: float = 0.95) -> Paired:
    """Compare two learners on the runs that both have.

    ``horizon`` is the step to which all runs were followed; unless said, the first at which one was given up. Times
    beyond it count as not solved.

    >>> fast = Records(range(20), [0] * 20, range(10, 210, 10), range(10, 210, 10), [1] * 20, [0] * 20)
    >>> slow = Records(range(20), [0] * 20, range(20, 420, 20), range(20, 420, 20), [1] * 20, [0] * 20)
    >>> found = paired(fast, slow)
    >>> found.ratio, found.ratio_interval, found.decided
    (0.5, (0.5, 0.5), True)
    """
    tail_of(level)
    first, second = _together(first, second)
    found = [int(each.steps[each.status == CENSORED].min(initial=np.iinfo(np.int64).max)) for each in (first, second)]
    last = max((int(each.steps.max(initial=0)) for each in (first, second)), default=0)
    horizon = min([*found, last]) if horizon is None else min([*found, horizon])
    a, b = (_times(each, horizon) for each in (first, second))
    solved = np.isfinite(a), np.isfinite(b)
    differences = _differences(a, b)
    statistic, p_value = _signs_test(differences)
    alone = int((solved[0] & ~solved[1]).sum()), int((solved[1] & ~solved[0]).sum())
    needed, at_least = _needed(differences, level)
    ratio, interval = _ratio(a, b, horizon, level)
    difference, solved_interval = _share_difference(*alone, len(a), level)
    return Paired(
        pairs=len(a), horizon=horizon, both=int((solved[0] & solved[1]).sum()), first_alone=alone[0],
        second_alone=alone[1], neither=int((~solved[0] & ~solved[1]).sum()), ratio=ratio, ratio_interval=interval,
        statistic=statistic, p_value=p_value, solved_difference=difference, solved_interval=solved_interval,
        solved_p_value=min(1.0, 2 * float(special.bdtr(min(alone), sum(alone), 0.5))) if sum(alone) else 1.0,
        needed=needed, needed_at_least=at_least, level=level,
    )


def _together(first: Records, second: Records) -> tuple[Records, Records]:
    """The runs that both have, in one order."""
    runs, mine, theirs = np.intersect1d(first.run, second.run, return_indices=True)
    require(len(runs) > 0, "runs that are compared in pairs must have the same numbers")
    return first.take(mine), second.take(theirs)


def _times(records: Records, horizon: int) -> Floats:
    """When each run was solved; ``inf`` if not by the horizon."""
    return np.where((records.status == SOLVED) & (records.t_c <= horizon), records.t_c.astype(float), np.inf)


def _differences(a: Floats, b: Floats) -> Floats:
    """Of the ranks of both times among all, from 0 to 1; equal times share theirs. Positive: the first is earlier."""
    _, which, counts = np.unique(np.concatenate([a, b]), return_inverse=True, return_counts=True)
    rank = ((np.cumsum(counts) - counts + np.cumsum(counts) + 1) / 2)[which.ravel()] / (2 * len(a))
    return rank[len(a) :] - rank[: len(a)]


def _signs_test(differences: Floats) -> tuple[float, float]:
    """The sum of differences over its deviation if all signs are fair, and the two-sided p-value."""
    some = differences[differences != 0]
    if len(some) == 0:
        return 0.0, 1.0
    total, deviation = float(some.sum()), math.sqrt(float((some**2).sum()))
    if len(some) > EXACT:
        return total / deviation, float(2 * special.ndtr(-abs(total) / deviation))
    sums = np.zeros(1)
    for size in np.abs(some):
        sums = np.concatenate([sums + size, sums - size])
    return total / deviation, float(np.mean(np.abs(sums) >= abs(total) - 1e-9))


def _needed(differences: Floats, level: float) -> tuple[float, float]:
    """The pairs it takes for a test at this level to decide with the wanted chance: as seen, and at best."""
    mean, deviation = abs(float(differences.mean())), float(differences.std())
    root = math.sqrt(mean**2 + deviation**2)
    z, z_power = deviate(tail_of(level)), -deviate(POWER)
    largest = mean + z * deviation / math.sqrt(len(differences))

    def pairs(mean: float) -> float:
        return math.inf if mean == 0 else float(math.ceil(((z * root + z_power * deviation) / mean) ** 2))

    return pairs(mean), pairs(largest)


def _ratio(a: Floats, b: Floats, horizon: int, level: float) -> tuple[float, Interval]:
    """The median of a / b, and its interval, for all that the times of unsolved runs may be."""
    low = np.where(np.isfinite(b), np.minimum(a, horizon) / np.where(np.isfinite(b), b, 1), 0.0)
    high = np.where(np.isfinite(a), a / np.minimum(b, horizon), np.inf)
    low, high = np.sort(low), np.sort(high)
    first, last = ranks(len(a), 50, level)
    index, fraction = position(len(a), 50)
    bounds = [float(interpolate(each[index], each[min(index + 1, len(a) - 1)], fraction)) for each in (low, high)]
    ends = float(low[first - 1]) if first > 0 else 0.0, float(high[last - 1]) if last <= len(a) else math.inf
    return bounds[0] if bounds[0] == bounds[1] else math.nan, ends


def _share_difference(first: int, second: int, pairs: int, level: float) -> tuple[float, Interval]:
    """Of the shares that two learners solved, and the interval of Agresti and Min (half a pair more of each kind)."""
    total = pairs + 2
    p, q = (first + 0.5) / total, (second + 0.5) / total
    half = deviate(tail_of(level)) * math.sqrt(max(0.0, p + q - (p - q) ** 2) / total)
    return (first - second) / pairs, (max(-1.0, p - q - half), min(1.0, p - q + half))
