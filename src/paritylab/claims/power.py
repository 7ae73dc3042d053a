"""How many runs would decide a check that straddles its bound, and how many one at the claimed effect takes.

All of it rests on one fact: an interval shrinks with the root of the number of runs.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING

from paritylab.later import stats

if TYPE_CHECKING:
    from paritylab.aliases import Interval

POWER = 0.8
"""The chance of a decision that is asked for."""


def times_to_decide(effect: float, bounds: Interval, value: float, interval: Interval) -> float | None:
    """How many times as many runs decide with 80 % power if the true value is ``effect``; None where none do.

    A share of 0.25 [0.1, 0.4] where at least 0.2 is asked takes eighteen times as many:

    >>> round(times_to_decide(0.25, (0.2, math.inf), 0.25, (0.1, 0.4)))
    18
    """
    if not all(map(math.isfinite, (effect, value, *interval))):
        return None
    inside = bounds[0] <= effect <= bounds[1]
    needed = [_times(abs(effect - bound), interval, value, above=(bound < effect)) for bound in bounds
              if math.isfinite(bound) and (inside or (bound > effect) == (bounds[0] > effect))]
    if not needed or None in needed:
        return None
    return max(each for each in needed if each is not None)


def _times(distance: float, interval: Interval, value: float, above: bool) -> float | None:
    half = value - interval[0] if above else interval[1] - value
    return None if distance == 0 else _reach() * (half / distance) ** 2


@functools.cache
def _reach() -> float:
    """How many times as many runs an estimate takes whose interval reaches just to its bound."""
    return (1 + float(stats.norm.ppf(POWER)) / float(stats.norm.ppf(0.975))) ** 2


def times_to_significance(p_value: float, level: float) -> float | None:
    """How many times as many runs bring a p-value (two-sided) below a level with 80 % power at the effect measured.

    >>> round(times_to_significance(0.05, 0.05), 1), round(times_to_significance(0.3, 0.01))
    (2.0, 11)
    """
    if not 0 < p_value < 1:
        return 0.0 if p_value == 0 else None
    reached, asked = (float(stats.norm.isf(p / 2)) for p in (p_value, level))
    return ((asked + float(stats.norm.ppf(POWER))) / reached) ** 2 if reached > 0 else None
