"""Sums of signs, exactly and at any size: binomials in log space, and alternating sums without cancellation.

T is a sum of N independent fair signs, c = (N - T)/2 of which are -1. A slab is a range of T between two ends that are
not lattice points; it is given by the range of c inside, ``first..last``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.special  # pyright: ignore[reportMissingTypeStubs]
from numpy.typing import ArrayLike

from paritylab.aliases import Floats

special: Any = scipy.special

STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188)


def probability(count: ArrayLike, c: ArrayLike) -> Floats:
    """P[c of ``count`` fair signs are -1] = C(count, c) 2^-count; 0 where c is out of range.

    By Loader's saddle-point form: a difference of log-Gammas would have lost seven digits at count = 10^8.

    >>> probability(4, [0, 2, 5])
    array([0.0625, 0.375 , 0.    ])
    """
    n, c = np.broadcast_arrays(np.asarray(count, float), np.asarray(c, float))
    inside = (c > 0) & (c < n)
    k, total = np.where(inside, c, 1.0), np.where(inside, n, 2.0)
    tilt = (2 * k - total) / total
    exponent = _stirling(total) - _stirling(k) - _stirling(total - k) - total / 2 * _entropy(tilt)
    middle = np.exp(exponent) * np.sqrt(total / (2 * np.pi * k * (total - k)))
    ends = np.where((c == 0) | (c == n), np.exp2(-n), 0.0)
    return np.where(inside, middle, ends)


def _stirling(x: Floats) -> Floats:
    """log x! less Stirling's (x + 1/2) log x - x + log(2 pi)/2."""
    large = np.maximum(x, 16.0)
    series = sum(a / large ** (2 * i + 1) for i, a in enumerate(STIRLING))
    return np.where(x >= 16, series, special.gammaln(x + 1) - (x + 0.5) * np.log(x) + x - np.log(2 * np.pi) / 2)


def _entropy(tilt: Floats) -> Floats:
    """(1 + t) log(1 + t) + (1 - t) log(1 - t), accurate for small t."""
    square = np.minimum(np.abs(tilt), 0.1) ** 2
    series = square * sum(square**j / ((j + 1) * (2 * j + 1)) for j in range(8))
    safe = np.where(np.abs(tilt) < 1, tilt, 0.0)
    full = (1 + safe) * np.log1p(safe) + (1 - safe) * np.log1p(-safe)
    return np.where(np.abs(tilt) < 0.1, series, full)


def at_most(count: ArrayLike, c: ArrayLike) -> Floats:
    """P[at most c of ``count`` fair signs are -1].

    >>> at_most(4, [-1, 1, 4])
    array([0.    , 0.3125, 1.    ])
    """
    n, c = np.broadcast_arrays(np.asarray(count, float), np.asarray(c, float))
    inside = (c >= 0) & (c < n)
    k = np.where(inside, c, 0.0)
    return np.where(inside, special.betainc(np.maximum(n - k, 1), k + 1, 0.5), (c >= n).astype(float))


def alternating(count: ArrayLike, degree: int, c: ArrayLike) -> Floats:
    """E[chi 1(c signs are -1)], chi the product of ``degree`` of the signs.

    2^-count [z^c] (1 - z)^degree (1 + z)^(count-degree): the probability times a Krawtchouk polynomial, which comes by
    its three-term recurrence.

    >>> alternating(3, 2, [0, 1, 2, 3]) * 8
    array([ 1., -1., -1.,  1.])
    """
    n, c = np.broadcast_arrays(np.asarray(count, float), np.asarray(c, float))
    before, value = np.zeros_like(n), np.ones_like(n)
    for r in range(degree):
        left = np.maximum(n - r, 1)
        before, value = value, ((n - 2 * c) * value - r * before) / left
    return np.where(n >= degree, probability(n, c) * value, 0.0)


def slab(count: ArrayLike, low: ArrayLike, high: ArrayLike) -> tuple[Floats, Floats]:
    """The first and last c with low < T < high, cut to -1 <= last and first <= count + 1."""
    n = np.asarray(count, float)
    last = np.clip(np.ceil((n - np.asarray(low, float)) / 2) - 1, -1, n)
    first = np.clip(np.floor((n - np.asarray(high, float)) / 2) + 1, 0, n + 1)
    return first, last


def slab_probability(count: ArrayLike, low: ArrayLike, high: ArrayLike) -> Floats:
    """P[low < T < high].

    >>> float(slab_probability(4, -1, 3))
    0.625
    """
    first, last = slab(count, low, high)
    return np.maximum(at_most(count, last) - at_most(count, first - 1), 0.0)


def slab_coefficient(count: ArrayLike, degree: int, low: ArrayLike, high: ArrayLike) -> Floats:
    """E[chi 1(low < T < high)], chi the product of ``degree`` >= 1 of the signs: two terms, one for each end.

    >>> float(slab_coefficient(3, 1, 0, 9).round(12))
    0.25
    """
    first, last = slab(count, low, high)
    below = np.asarray(count, float) - 1
    return (alternating(below, degree - 1, last) - alternating(below, degree - 1, first - 1)) / 2


def ramp_coefficient(count: ArrayLike, degree: int, low: ArrayLike, high: ArrayLike) -> Floats:
    """E[chi clip(T - low, 0, high - low)] for ``degree`` >= 2, summed by parts twice.

    >>> float(ramp_coefficient(2, 2, -1, 9))
    0.25
    """
    n, low, high = (np.asarray(value, float) for value in (count, low, high))
    first, last = slab(n, low, high)
    some = first <= last
    width = high - low
    inner = 2 * (alternating(n - 2, degree - 2, last - 1) - alternating(n - 2, degree - 2, first - 1)) / 4
    rise = np.where(some, n - 2 * last - low, width)
    with np.errstate(invalid="ignore"):
        fall = np.where(first > 0, np.where(some, high - (n - 2 * first), 0.0), 0.0)
    ends = rise * alternating(n - 1, degree - 1, last) + fall * alternating(n - 1, degree - 1, first - 1)
    return np.where(some, inner + ends / 2, rise * alternating(n - 1, degree - 1, last) / 2)


def ramp_mean(count: ArrayLike, low: ArrayLike, high: ArrayLike) -> Floats:
    """E clip(T - low, 0, high - low), by sum_{c <= C} (N - 2c) C(N, c) = (N - C) C(N, C).

    >>> float(ramp_mean(2, -1, 9))
    1.25
    """
    n, low, high = (np.asarray(value, float) for value in (count, low, high))
    first, last = slab(n, low, high)
    inside = slab_probability(n, low, high)
    moment = (n - last) * probability(n, last) - (n - first + 1) * probability(n, first - 1)
    above = at_most(n, first - 1)
    with np.errstate(invalid="ignore"):
        full = np.where(above > 0, (high - low) * above, 0.0)
    return np.where(first <= last, moment - low * inside, 0.0) + full
