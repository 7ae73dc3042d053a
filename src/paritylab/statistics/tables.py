"""Summaries of many samples at once: the numbers of :func:`paritylab.statistics.summary`, to the last digit.

Where all runs of a sample have one horizon, which order statistics its percentiles and their intervals are depends on
the number of runs alone. So the times of all samples are sorted at once, and the same places read off all samples of
one size. Samples whose horizons differ are summarised one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from paritylab.statistics.fractions import share_interval
from paritylab.statistics.percentiles import check_percentile, interpolate, percentiles, position, ranks
from paritylab.storage.gathered import Gathered, as_arrays
from paritylab.storage.records import CENSORED, SOLVED, STATUSES

PERCENTILES = (10.0, 50.0, 90.0)
SAFE = 2**31 - 1
"""Times below it, and so many samples at most, are sorted as one whole number each."""


def percentile_name(q: float) -> str:
    """What a percentile is called.

    >>> percentile_name(10), percentile_name(50), percentile_name(2.5)
    ('p10', 'median', 'p2.5')
    """
    return "median" if q == 50 else f"p{q:g}"


def summaries(gathered: Gathered, qs: Sequence[float] = PERCENTILES, level: float = 0.95) -> pl.DataFrame:
    """One row for each series: its key and its summary. A percentile of ``inf`` is not reached.

    An interval has two columns: that of ``p10`` is from ``p10_low`` to ``p10_high``.
    """
    for q in qs:
        check_percentile(q)
    _, status, t_c, steps, *_ = as_arrays(gathered.records)
    runs = gathered.series["count"].to_numpy()
    columns: dict[str, Any] = {"runs": runs}
    if len(runs):
        columns |= _columns(runs, status, t_c, steps, qs, level)
    else:
        names = [name for q in qs for name in _names(percentile_name(q))]
        every = (*STATUSES, *_names("solved_fraction"), *names, "fastest", "min_horizon", "max_horizon")
        columns |= dict.fromkeys(every, runs)
    whole = ("runs", *STATUSES, "min_horizon", "max_horizon")
    kinds = {name: pl.Int64() if name in whole else pl.Float64() for name in columns}
    return gathered.series.drop("count").hstack(pl.DataFrame(columns, schema=kinds))


def _columns(
    runs: np.ndarray, status: np.ndarray, t_c: np.ndarray, steps: np.ndarray, qs: Sequence[float], level: float
) -> dict[str, np.ndarray]:
    ends = np.cumsum(runs)
    starts = ends - runs
    places = np.repeat(np.arange(len(runs)), runs)
    counts = np.bincount(places * len(STATUSES) + status, minlength=len(runs) * len(STATUSES)).reshape(len(runs), -1)
    columns: dict[str, np.ndarray] = {name: counts[:, i] for i, name in enumerate(STATUSES)}
    solved = counts[:, SOLVED]
    columns |= zip(_names("solved_fraction"), _shares(solved, runs, level), strict=True)
    last = np.maximum.reduceat(steps, starts)
    first = np.minimum(np.minimum.reduceat(np.where(status == CENSORED, steps, np.iinfo(np.int64).max), starts), last)
    times = _sorted(places, np.where(status == SOLVED, t_c, -1), len(runs))
    for q in qs:
        columns |= zip(_names(percentile_name(q)), _percentile(times, starts, runs, q, level), strict=True)
    columns |= {"fastest": times[starts], "min_horizon": first, "max_horizon": last}
    for i in np.flatnonzero((counts[:, CENSORED] > 0) & (first < last)):
        mine = slice(starts[i], ends[i])
        for q, (value, interval) in zip(qs, percentiles(t_c[mine], status[mine], qs, steps[mine], level), strict=True):
            for name, number in zip(_names(percentile_name(q)), (value, *interval), strict=True):
                columns[name][i] = number
    return columns


def _names(name: str) -> tuple[str, str, str]:
    stem = "solved" if name == "solved_fraction" else name
    return name, f"{stem}_low", f"{stem}_high"


def _sorted(places: np.ndarray, t_c: np.ndarray, samples: int) -> np.ndarray:
    """The times of each sample in increasing order, those that are -1 last and infinite."""
    if t_c.max(initial=0) < SAFE and samples < SAFE:
        t_c = np.sort(places * 2**31 + np.where(t_c < 0, SAFE, t_c)) & SAFE
        return np.where(t_c == SAFE, np.inf, t_c)
    times = np.where(t_c < 0, np.inf, t_c)
    return times[np.lexsort((times, places))]


def _shares(solved: np.ndarray, runs: np.ndarray, level: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Fractions and their intervals; few pairs of numbers are different where many samples have equal sizes."""
    pairs, which = np.unique(np.stack([solved, runs]), axis=1, return_inverse=True)
    intervals = np.array([share_interval(int(count), int(total), level) for count, total in pairs.T]).reshape(-1, 2)
    return solved / runs, *intervals[which.ravel()].T


def _percentile(
    times: np.ndarray, starts: np.ndarray, runs: np.ndarray, q: float, level: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """As ``percentile_of`` and ``percentile_interval_of``, for samples that each have one horizon."""
    value, low, high = (np.empty(len(runs)) for _ in range(3))
    order = np.argsort(runs, kind="stable")
    sizes, cuts = np.unique(runs[order], return_index=True)
    for size, mine in zip(sizes.tolist(), np.split(order, cuts[1:]), strict=True):
        at = starts[mine]
        index, fraction = position(size, q)
        value[mine] = interpolate(times[at + index], times[at + min(index + 1, size - 1)], fraction)
        first, last = ranks(size, q, level)
        low[mine] = times[at + first - 1] if first > 0 else 0.0
        high[mine] = times[at + last - 1] if last <= size else np.inf
    return value, np.minimum(low, value), np.maximum(high, value)
