"""What several claims share: the paper's protocol, and statistics of runs that may not have been solved."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from paritylab.claims.verdicts import Check, Interval, at_least
from paritylab.records import SOLVED, Records
from paritylab.setup import Protocol
from paritylab.statistics import solved_fraction

Floats = NDArray[np.float64]

FIXED_8192 = Protocol()
"""One sample of 8192 inputs, drawn before training and checked every 10 steps; at most 10^5 steps."""


def times(records: Records) -> Floats:
    """Convergence times, ``inf`` for a run that was not solved."""
    return np.where(records.status == SOLVED, records.t_c, np.inf)


def median(values: Floats) -> float:
    return float(np.median(values)) if len(values) else math.nan


def converging(name: str, records: Records, bound: float) -> Check:
    """At least this share of the runs is solved."""
    share, interval = solved_fraction(records.status)
    return at_least(f"share of runs solved, {name}", share, bound, interval)


def bootstrap(
    statistic: Callable[..., float], *samples: Floats, rng: np.random.Generator, resamples: int = 2000
) -> Interval:
    """The 95 % percentile interval of a statistic of independent samples; an undefined resample counts at both ends.

    >>> low, high = bootstrap(median, np.arange(99.0), rng=np.random.default_rng(0))
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
