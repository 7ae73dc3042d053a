"""Simulated Records, and bounds for what is counted in simulations."""

from __future__ import annotations

import numpy as np
from scipy import stats

from paritylab.storage.records import CENSORED, DIVERGED, SOLVED, Records

FALSE_ALARM = 1e-6


def sample(times: np.ndarray, horizon: int, diverged: np.ndarray | None = None) -> Records:
    """Records of runs that would be solved at ``times``, given ``horizon`` steps (or one horizon each)."""
    horizons = np.broadcast_to(horizon, times.shape)
    status = np.where(times <= horizons, SOLVED, CENSORED)
    if diverged is not None:
        status = np.where(diverged, DIVERGED, status)
    solved = status == SOLVED
    steps = np.where(solved, times, np.where(status == DIVERGED, np.minimum(horizons, 7), horizons))
    return Records(np.arange(len(times)), status, np.where(solved, times, -1), steps, solved, ~solved)


def at_least(hits: int, trials: int, nominal: float) -> bool:
    """Whether ``hits`` is compatible with a coverage of at least ``nominal``."""
    return bool(stats.binom.cdf(hits, trials, nominal) > FALSE_ALARM)


def at_most(hits: int, trials: int, nominal: float) -> bool:
    return bool(stats.binom.sf(hits - 1, trials, nominal) > FALSE_ALARM)
