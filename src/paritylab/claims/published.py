"""What was measured here beside what was published: tables that a paper keeps, and how counts and numbers agree.

A published count is compared by Fisher's exact test, a number that one published run gave by its place among ours.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import ArrayLike

from paritylab.claims.intervals import LEVEL, Estimate, proportion, smallest
from paritylab.later import stats

if TYPE_CHECKING:
    import polars

Count = tuple[int, int]
"""How many of how many."""


def table(module: str, name: str) -> polars.DataFrame:
    """A table of a paper: ``data/NAME.csv`` beside one of its modules, which says ``table(__file__, NAME)``."""
    import polars as pl

    return pl.read_csv(Path(module).parent / "data" / f"{name}.csv")


def fisher(ours: Count, theirs: Count, alternative: Literal["two-sided", "less", "greater"] = "two-sided") -> float:
    """The p-value of Fisher's exact test of two shares; ``less``: whether ours is the smaller one.

    >>> round(fisher((27, 40), (19, 40)), 2), fisher((123, 200), (0, 5)) < 0.01 < fisher((122, 200), (0, 5))
    (0.11, True)
    """
    rows = [[count, total - count] for count, total in (ours, theirs)]
    return float(stats.fisher_exact(rows, alternative=alternative).pvalue)  # pyright: ignore[reportAttributeAccessIssue]


def tail(values: ArrayLike, published: float, level: float = LEVEL) -> Estimate:
    """The share of values up to a published number, or of those from it on, whichever is smaller, with its interval.

    The number lies between two quantiles, those of q and of 1 - q, where this is at least q. The larger share is above
    a half, so the smaller one alone decides, and its interval holds with 95 % (unless said).

    >>> value, (low, high) = tail(np.arange(200), 1)
    >>> value, round(low, 4), round(high, 3)
    (0.01, 0.0012, 0.036)
    """
    ours = np.asarray(values, float)
    sides = ours <= published, ours >= published
    return smallest([proportion(int(np.sum(side)), ours.size, level) for side in sides])
