"""Weighted examples as one vote for each distinct input, and how likely chance alone explains them as well."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.special  # pyright: ignore[reportMissingTypeStubs]

from paritylab.aliases import Floats
from paritylab.baselines import gf2
from paritylab.baselines.packed import Bits

special: Any = scipy.special
MOST_REPEATS = 4


class Votes(NamedTuple):
    """Distinct inputs ``x`` (m, n), in an order of their own; what is for label 1 at each, less what is for 0; whether
    some input has both labels. How rows were ordered, or whether one was repeated or weighed double, is no part of it.
    """

    x: Bits
    net: Floats
    contradicted: bool

    @property
    def labels(self) -> Bits:
        """Of each input, by majority."""
        return self.net > 0

    def decided(self) -> Votes:
        """Without inputs whose votes are even."""
        some = self.net != 0
        return self._replace(x=self.x[some], net=self.net[some])

    def units(self) -> tuple[Bits, Bits]:
        """Inputs and labels in which an input occurs as often as its votes say, or in about that proportion."""
        sizes = np.abs(self.net)
        if np.all(sizes == sizes[:1]):
            return self.x, self.labels
        times = sizes / sizes.min()
        most = MOST_REPEATS * len(sizes) + 1024
        if times.sum() > most:
            times *= most / times.sum()
        repeats = np.rint(times).astype(np.intp)
        return np.repeat(self.x, repeats, axis=0), np.repeat(self.labels, repeats)


def count(x: Bits, y: Bits, weight: Floats) -> Votes:
    """The votes of examples x (m, n) and y (m,), each with a positive weight.

    >>> votes = count(np.array([[0, 1], [1, 1], [0, 1]], bool), np.array([1, 0, 1], bool), np.ones(3))
    >>> votes.net.tolist(), votes.contradicted
    ([2.0, -1.0], False)
    """
    words = gf2.pack(x) if x.shape[1] else np.zeros((len(x), 1), np.uint64)
    whole = words[:, 0] if words.shape[1] == 1 else words.view(np.dtype((np.void, words.shape[1] * 8)))[:, 0]
    _, first, group = np.unique(whole, return_index=True, return_inverse=True)
    ones, zeros = (np.bincount(group, np.where(y == label, weight, 0.0)).astype(float) for label in (True, False))
    return Votes(x[first], ones - zeros, bool(np.any((ones > 0) & (zeros > 0))))


def parity(x: Bits, support: Sequence[int], negated: bool = False) -> Bits:
    return (x[:, list(support)].sum(axis=1) + negated) % 2 == 1


def log_chance(values: Bits, labels: Bits) -> float:
    """The logarithm of how likely labels in random order agree, or disagree, with ``values`` in as many places.

    The law is hypergeometric: how many labels there are of each kind, and how many values, says nothing of a parity.

    >>> round(math.exp(log_chance(np.arange(20) < 10, np.arange(20) < 10)), 8)  # 2 of the C(20, 10) arrangements
    1.083e-05
    """
    m, a, b, both = len(labels), int(values.sum()), int(labels.sum()), int((values & labels).sum())
    least, most = max(0, a + b - m), min(a, b)
    agree = m - a - b + 2 * both
    tail = np.arange(both, most + 1) if 2 * agree >= m else np.arange(least, both + 1)
    logs = _log_choose(a, tail) + _log_choose(m - a, b - tail) - _log_choose(m, np.array(b))
    return min(0.0, math.log(2) + float(special.logsumexp(logs)))


def _log_choose(n: int, k: Any) -> Any:
    return special.gammaln(n + 1) - special.gammaln(k + 1) - special.gammaln(n - k + 1)


def most_errors(rows: int, log_supports: float, alarm: float) -> int:
    """The most errors with which a parity of balanced labels is told from chance, at this rate of false alarms; -1
    where rows are too few to tell any.

    >>> most_errors(100, math.log(1000), 0.01), most_errors(10, math.log(1000), 0.01)
    (27, -1)
    """
    errors = np.arange(0, rows // 2 + 1)
    with np.errstate(divide="ignore"):
        logs = np.log(special.bdtr(errors, rows, 0.5)) + math.log(2) + log_supports
    return int(np.searchsorted(logs, math.log(alarm), side="right")) - 1
