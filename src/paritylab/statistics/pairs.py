"""Two learners on the same runs: which was faster on each."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from paritylab.aliases import Floats, Interval
from paritylab.errors import require
from paritylab.statistics.fractions import share_interval
from paritylab.storage.records import DIVERGED, SOLVED, Records


@dataclass(frozen=True)
class Pairs:
    """How many runs the first learner solved before the second, the second before the first, and both at one step.

    ``undecided`` are pairs of which nobody knows: neither was solved, or one was given up before the other was solved.
    """

    first: int
    second: int
    ties: int
    undecided: int

    @property
    def share(self) -> float:
        """Of the pairs that one of them won, the first's; ``nan`` where there is none."""
        return self.first / (self.first + self.second) if self.first + self.second else math.nan

    def interval(self, level: float = 0.95) -> Interval:
        """The Wilson interval of the share: where one half is outside, the sign test tells the learners apart."""
        return share_interval(self.first, self.first + self.second, level)


def pairs(first: Records, second: Records) -> Pairs:
    """Compare two samples run by run; the i-th record of one is that of the same run as the i-th of the other.

    A diverged run is never solved. A censored one is not solved up to the step at which it was given up, which decides
    where the other was solved by then.

    >>> first = Records(range(4), [0, 0, 1, 0], [10, 20, -1, 30], [10, 20, 50, 30], [1] * 4, [0] * 4)
    >>> second = Records(range(4), [0, 1, 1, 0], [20, -1, -1, 30], [20, 50, 50, 30], [1] * 4, [0] * 4)
    >>> pairs(first, second)
    Pairs(first=2, second=0, ties=1, undecided=1)
    """
    require(np.array_equal(first.run, second.run), "pairs need the same runs in the same order")
    (mine, known), (theirs, told) = _times(first), _times(second)
    faster = (mine < theirs) & (mine <= told)
    slower = (theirs < mine) & (theirs <= known)
    ties = np.isfinite(mine) & (mine == theirs)
    decided = faster | slower | ties
    return Pairs(int(faster.sum()), int(slower.sum()), int(ties.sum()), int((~decided).sum()))


def _times(records: Records) -> tuple[Floats, Floats]:
    """When each run was solved (``inf``: not), and up to which step that is known."""
    solved = records.status == SOLVED
    known = np.where(solved | (records.status == DIVERGED), np.inf, records.steps)
    return np.where(solved, records.t_c, np.inf), known
