"""What bias buys: the first gradient of a ReLU neuron on a sparse parity whose inputs are +1 with probability p.

y is the product of k of n inputs, g_j = E y x_j 1[w.x + b > 0]. Without bias a relevant g_j is of order n^(-(k-1)/2).
With mean mu = 2p - 1 the parity has parts of every degree below k, and a relevant g_j is of order mu^(k-1), whatever
n. The irrelevant inputs share a drift, mu E y 1[w.x + b > 0], which says nothing about the target.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from paritylab.aliases import Floats
from paritylab.errors import require, unknown
from paritylab.measures.population import unit_gradient
from paritylab.measures.product import chances
from paritylab.measures.targets import polynomial

STARTS = ("signs", "majority")
MOST_INPUTS = 4000
NEGLIGIBLE = 1e-20
"""Starts of smaller probability are left out."""


@dataclass(frozen=True)
class BiasGap:
    """Gradients of one neuron, over random starts. Those marked rms are roots of mean squares over starts and inputs.

    With m the mean of the irrelevant g_i at a start, the ``signal`` is what sets a relevant input apart. A batch of B
    estimates g_j with variance V/B, V = ``variance`` of one example. After T steps the relevant weights are T signal
    ahead and the noise is sqrt(T V/B), both times the learning rate. So, up to one constant c,

        T = c V / (B signal^2)     where noise decides,
        T = c / (lr signal)        where batches are large and weights must only travel.

    The first is ``steps``.
    """

    relevant: float
    """rms of g_j over the inputs of the parity."""
    irrelevant: float
    """rms of g_i over the others."""
    signal: float
    """rms of g_j - m over the inputs of the parity."""
    spread: float
    """rms of g_i - m over the others."""
    gap: float
    """The mean of max |g_j| - max |g_i|, Gamma of ``measures.gap``."""
    positive: float
    """The probability that it is above 0."""
    variance: float
    """The mean variance of y x_j 1[w.x + b > 0] over examples, for relevant j: P(w.x + b > 0) - g_j^2."""
    irrelevant_variance: float
    """The same for the others."""

    def steps(self, batch: int = 1) -> float:
        """V / (B signal^2): steps until the signal is as large as the noise, up to one constant.

        >>> fair, biased = bias_gap(101, 4).steps(32), bias_gap(101, 4, 0.75).steps(32)
        >>> round(fair), round(biased, 1)
        (96702, 5.7)
        """
        return self.variance / (batch * self.signal**2) if self.signal else math.inf


def bias_gap(n: int, k: int, p: float = 0.5, bias: float = 0.0, start: str = "signs") -> BiasGap:
    """Exact to rounding (about 1e-15 of the largest), for weights that are ``signs``, all equally likely, or all +1.

    Args:
        n: the number of inputs.
        k: how many of them the parity has.
        p: the probability that an input is +1.
        bias: b of the neuron.
        start: ``signs``, over which everything is averaged, or ``majority``, all weights +1.

    By symmetry a start is told by its -1 among the k and among the n - k, and each of the two groups has two values
    of g at most. At p = 1/2, odd n and even k all starts have the gap of ``theory.majority``. A tie counts as not
    above 0. Without bias of inputs or neuron the step has odd degrees only: odd k then see ties at most.

    >>> bias_gap(5, 2).gap, round(bias_gap(101, 4, 0.75).signal, 4), round(leading_signal(4, 0.75), 4)
    (0.125, 0.052, 0.0505)
    """
    require(1 <= k < n <= MOST_INPUTS, f"a gap needs k from 1 to n - 1, and n up to {MOST_INPUTS}, not k = {k} of {n}")
    require(0 < p < 1, f"a probability of +1 must lie above 0 and below 1, not {p}")
    require(math.isfinite(bias), f"a bias must be finite, not {bias}")
    if start not in STARTS:
        raise unknown("start", start, STARTS)
    return _summary(_sign_starts(n, k, p, bias, start))


def gap_at(weights: ArrayLike, k: int, p: ArrayLike = 0.5, bias: ArrayLike = 0.0) -> BiasGap:
    """The same at given weights (draws, n), of any kind, for the parity of the first k inputs.

    Exact where ``measures.population.unit_gradient`` is; p may be one for each input.

    >>> gap_at([[1, 1, 1, 1, 1], [9, 1, 1, 1, 1]], 2).gap
    0.3125
    """
    w = np.atleast_2d(np.asarray(weights, np.float64))
    n = w.shape[-1]
    require(w.ndim == 2 and 1 <= k < n, f"a gap needs weights (draws, n) and k from 1 to n - 1, not k = {k} of {n}")
    law, b = chances(p, n), np.broadcast_to(np.asarray(bias, np.float64), len(w))
    gradient = unit_gradient(w, polynomial([(1.0, range(k))]), law, b).weights
    above = unit_gradient(w, [(1.0, ())], law, b).bias
    once = np.ones(n)
    return _summary(Start(1 / len(w), above[i], g[:k], once[:k], g[k:], once[k:]) for i, g in enumerate(gradient))


def leading_signal(k: int, p: float) -> float:
    """The limit of ``signal`` for many inputs, random signs and b = 0: |mu|^(k-1) (1 - mu^2) rms P(w.x > 0).

    A relevant input sees E y x_j = mu^(k-1), an irrelevant one mu^(k+1), times P(w.x > 0), which for random signs is
    Phi(mu G / sigma) with G normal: its mean square is 1/4 + arcsin(mu^2) / (2 pi). The rest is of relative order
    1/(mu^2 n), so that bias counts from |mu| of about 1/sqrt(n) on.

    >>> round(leading_signal(3, 0.75), 5), leading_signal(3, 0.5)
    (0.10101, 0.0)
    """
    mean = 2 * p - 1
    return abs(mean) ** (k - 1) * (1 - mean**2) * math.sqrt(0.25 + math.asin(mean**2) / (2 * math.pi))


# --- starts -------------------------------------------------------------------------------------------------------


class Start(NamedTuple):
    """A start's probability, P(w.x + b > 0), and the values of g in both groups with their multiplicities."""

    chance: float
    above: float
    relevant: Floats
    relevant_counts: Floats
    others: Floats
    other_counts: Floats


def _summary(starts: Iterator[Start]) -> BiasGap:
    total = np.zeros(8)
    for start in starts:
        own, k = start.relevant, start.relevant_counts.sum()
        others, rest = start.others, start.other_counts.sum()
        here, there = start.relevant_counts / k, start.other_counts / rest
        mean = there @ others
        gap = np.abs(own[here > 0]).max() - np.abs(others[there > 0]).max()
        squares = here @ own**2, there @ others**2
        total += start.chance * np.array([
            *squares, here @ (own - mean) ** 2, there @ (others - mean) ** 2, gap, gap > 1e-14,
            start.above - squares[0], start.above - squares[1]])
    return BiasGap(*np.sqrt(total[:4]).tolist(), *total[4:].tolist())


def _sign_starts(n: int, k: int, p: float, bias: float, start: str) -> Iterator[Start]:
    rest = n - k
    plus, minus = _binomials(rest, p), _binomials(rest, 1 - p)
    for i in range(rest + 1) if start == "signs" else (0,):
        chance = math.comb(rest, i) / 2**rest if start == "signs" else 1.0
        if chance < NEGLIGIBLE:
            continue
        law = np.convolve(plus[rest - i], minus[i])
        # Without one irrelevant input of weight +1, and of weight -1.
        less = [np.convolve(plus[rest - i - 1], minus[i]) if i < rest else None,
                np.convolve(plus[rest - i], minus[i - 1]) if i > 0 else None]
        for r in range(k + 1) if start == "signs" else (0,):
            weight = chance * (math.comb(k, r) / 2**k if start == "signs" else 1.0)
            yield _start(k, r, i, p, bias, law, less, weight)


def _start(
    k: int, r: int, i: int, p: float, bias: float, law: Floats, less: list[Floats | None], chance: float
) -> Start:
    """The start with r of k relevant and i of the other weights -1."""
    rest = len(law) - 1
    c = 2.0 * np.arange(k + 1) - k + bias  # the relevant part of w.x + b
    plain, signed = ([1 - p, p], [p, 1 - p]), ([-(1 - p), p], [p, -(1 - p)])  # for w = +1, -1, by w x = -1, +1
    whole = _product(signed, k - r, r)
    tail = _tail(law, c)
    above = _product(plain, k - r, r) @ tail
    own = [np.convolve(_product(signed, k - r - 1, r), plain[0]) @ tail if r < k else 0.0,
           np.convolve(_product(signed, k - r, r - 1), plain[1]) @ tail if r > 0 else 0.0]
    others = np.zeros(2)
    if less[0] is not None:
        others[0] = whole @ (p * _tail(less[0], c + 1) - (1 - p) * _tail(less[0], c - 1))
    if less[1] is not None:
        others[1] = whole @ (p * _tail(less[1], c - 1) - (1 - p) * _tail(less[1], c + 1))
    return Start(chance, float(above), np.array(own), np.array([k - r, r], float), others,
                 np.array([rest - i, i], float))


def _product(factors: tuple[list[float], list[float]], first: int, second: int) -> Floats:
    """The coefficients of a product of so many of either factor."""
    found = np.ones(1)
    for factor, count in zip(factors, (first, second), strict=True):
        for _ in range(count):
            found = np.convolve(found, factor)
    return found


def _tail(law: Floats, c: Floats) -> Floats:
    """P(sum + c > 0) for a sum of signs, given the law of how many are +1."""
    count = len(law) - 1
    above = np.append(np.cumsum(law[::-1])[::-1], 0.0)
    least = np.floor((count - c) / 2 + 1e-9).astype(int) + 1
    return above[np.clip(least, 0, count + 1)]


def _binomials(most: int, p: float) -> list[Floats]:
    """The laws of how many of 0, ..., most inputs are there, each with chance p."""
    laws: list[Floats] = [np.ones(1)]
    for _ in range(most):
        laws.append(np.convolve(laws[-1], [1 - p, p]))
    return laws
