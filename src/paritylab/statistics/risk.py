"""Who is at risk at each step: what curves and percentiles are made of where runs were not all followed equally long.

A censored run is at risk (it might be solved) up to the step at which it was given up. A diverged run can never be
solved: it stays at risk for good, but among runs that are given up early it may not count for more than those, so it
stays with the chance that a run would still be followed (Fine and Gray's weights). The curve of the fraction unsolved
is then that of Kaplan and Meier where no run diverged, that of Aalen and Johansen where some did, and the plain
fraction where all runs have one horizon.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from paritylab.aliases import Floats, Interval
from paritylab.later import special
from paritylab.storage.records import CENSORED, DIVERGED, SOLVED


class Risk(NamedTuple):
    """Runs solved at each of ``steps`` (increasing), at risk there, and left after it.

    Arrays may have leading axes, one entry for each of several samples.
    """

    steps: Floats
    solved: Floats
    at_risk: Floats
    left: Floats

    @classmethod
    def of_counts(cls, steps: Floats, solved: Floats, censored: Floats, diverged: Floats) -> Risk:
        """From the runs that were solved, or given up, at each step, or diverged since the step before."""
        training = np.cumsum((solved + censored + diverged)[..., ::-1], axis=-1)[..., ::-1]
        staying = training - solved - diverged
        censored = np.array(censored, np.float64)
        censored[..., -1:] = 0  # unsolved at the largest horizon of all is unsolved for good
        followed = np.cumprod(1 - _ratio(censored, staying), axis=-1, dtype=np.float64)
        before = _shifted(followed, 1.0)
        parted = np.cumsum(_ratio(diverged, before), axis=-1)
        at_risk = training + before * _shifted(parted, 0.0)
        return cls(steps, solved, at_risk, staying - censored + followed * parted)

    @property
    def unsolved(self) -> Floats:
        """The fraction of runs not solved by each step."""
        return np.cumprod(1 - _ratio(self.solved, self.at_risk), axis=-1, dtype=np.float64)

    def percentile(self, q: float) -> Any:
        """The first step by which ``q`` % of the runs are solved (a run at least); ``inf`` where there is none."""
        reached = (self.unsolved <= 1 - q / 100 + 1e-12) & (self.solved > 0)
        return np.where(reached.any(axis=-1), self.steps[reached.argmax(axis=-1)], np.inf)

    def interval(self, q: float, tail: float) -> Interval:
        """The steps between which the percentile lies, each end wrong with probability ``tail`` at most, or nearly so.

        The beta product procedure of Fay, Brittain and Proschan (2013): between two solved runs the true fraction
        unsolved shrinks by a beta variable, and the product of those up to a step is taken for a beta variable with the
        same two moments. Without early censoring it is one, and the interval that of order statistics.
        """
        if len(self.steps) == 0:
            return 0.0, math.inf
        d, y = self.solved, self.at_risk
        mean = np.cumprod((y - d + 1) / (y + 1), dtype=np.float64)
        spread = np.cumsum(np.log1p(d / ((y - d + 1) * (y + 2))))
        # Before the first step all runs are left; after a step, the next to be solved bounds what is known from below.
        left = np.append(y[0], self.left)
        below = np.append(1.0, mean) * left / (left + 1)
        wider = np.append(0.0, spread) + np.log1p(_ratio(np.ones_like(left), left * (left + 2)))
        share = 1 - q / 100
        low = _first(np.append(0.0, self.steps), _below(share, below, wider) >= tail)
        high = _first(self.steps, (_below(share, mean, spread) >= 1 - tail) & (np.cumsum(d) > 0))
        return low, high


def horizons_differ(status: ArrayLike, steps: ArrayLike) -> bool:
    """Whether a run was given up before another one ended, so that it might have been solved before that.

    >>> horizons_differ([0, 1, 1], [70, 100, 100]), horizons_differ([0, 1], [170, 100])
    (False, True)
    """
    censored = np.asarray(steps)[np.asarray(status) == CENSORED]
    return len(censored) > 0 and bool(censored.min() < np.asarray(steps).max())


def event_steps(t_c: ArrayLike, status: ArrayLike, steps: ArrayLike) -> Floats:
    """The steps at which runs were solved or given up; diverged runs count as given up at the largest horizon."""
    times, status, ends = (np.asarray(column) for column in (t_c, status, steps))
    last = ends.max(initial=0) if (status == DIVERGED).any() else []
    return np.unique(np.concatenate([times[status == SOLVED], ends[status == CENSORED], np.ravel(last)])).astype(float)


def risk(t_c: ArrayLike, status: ArrayLike, steps: ArrayLike, grid: Floats | None = None) -> Risk:
    """Who is at risk when, at the steps of ``grid``; at those at which something happened unless said."""
    grid = event_steps(t_c, status, steps) if grid is None else grid
    return Risk.of_counts(grid, *counts(t_c, status, steps, grid))


def counts(t_c: ArrayLike, status: ArrayLike, steps: ArrayLike, grid: Floats) -> Floats:
    """How many runs were solved, censored and diverged at each step of ``grid`` (diverged: since the step before)."""
    kinds = np.asarray(status)
    ends = np.where(kinds == SOLVED, t_c, steps)
    places = np.searchsorted(grid, ends)
    return np.stack([np.bincount(places[kinds == kind], minlength=len(grid)) for kind in (SOLVED, CENSORED, DIVERGED)]
                    ).astype(np.float64)


def _ratio(part: Floats, whole: Floats) -> Floats:
    """part / whole, 0 where there is nothing."""
    return np.divide(part, whole, out=np.zeros(np.broadcast_shapes(part.shape, whole.shape)), where=whole > 0)


def _shifted(values: Floats, first: float) -> Floats:
    return np.concatenate([np.full_like(values[..., :1], first), values[..., :-1]], axis=-1)


def _below(share: float, mean: Floats, spread: Floats) -> Floats:
    """P(W <= share) for beta variables W of these means and log(E W^2 / (E W)^2), or W = 0 or 1 if that is the mean."""
    inside = (mean > 0) & (mean < 1)
    middle, spread = np.where(inside, mean, 0.5), np.where(inside, spread, 0.1)
    both = (1 - middle) / (middle * np.expm1(spread)) - 1
    return np.where(inside, special.betainc(middle * both, (1 - middle) * both, share), mean <= share)


def _first(steps: Floats, where: NDArray[np.bool_]) -> float:
    return float(steps[where.argmax()]) if where.any() else math.inf
