"""The features of Theorem 10 of Barak et al. and how they make a parity (Lemma 4 and Claim 5, corrected).

With z the sum of the k relevant inputs, the number of -1 among them is j = (k - z)/2, and chi = (-1)^j.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from paritylab.aliases import Floats
from paritylab.errors import require


def feature_sum(k: int, biases: ArrayLike, coefficients: ArrayLike) -> Floats:
    """sum_i c_i relu(z/(2k) + b_i) at z = k, k - 2, ..., -k.

    >>> feature_sum(2, *parity_features(2))
    array([ 2., -2.,  2.])
    >>> feature_sum(2, *printed_features(2, offset=0))
    array([ 2., -2.,  0.])
    """
    z = k - 2 * np.arange(k + 1)
    features = np.maximum(z[:, None] / (2 * k) + np.asarray(biases, np.float64), 0.0)
    return features @ np.asarray(coefficients, np.float64)


def parity_features(k: int) -> tuple[Floats, Floats]:
    """k + 1 biases -1/2 + i/k and coefficients (8k, -8k, ..., 8k, -6k, 2k) whose features sum to 2 chi, for even k."""
    _check(k)
    i = np.arange(1, k + 2)
    coefficients = 8.0 * k * (-1.0) ** (i + 1)
    coefficients[-2:] = -6 * k, 2 * k
    return -0.5 + i / k, coefficients


def printed_features(k: int, offset: int) -> tuple[Floats, Floats]:
    """The k biases -1/2 + (i + offset)/k, with offset 1 (Lemma 3) or 0 (Lemma 4), and the coefficients of Claim 5."""
    _check(k)
    i = np.arange(1, k + 1)
    coefficients = 8.0 * k * (-1.0) ** (i + 1)
    coefficients[-2:] = 6 * k, -2 * k
    return -0.5 + (i + offset) / k, coefficients


def coverage(k: int, width: int, biases: int | None = None) -> float:
    """P(for each of so many bias values some pair of ``width``/2 has that bias and agrees on the support).

    A mirrored pair agrees (one of its two neurons is good) with probability 2^(1-k) and has a given bias with 1/(2k-1),
    independently of the others; the rest is inclusion and exclusion. ``biases``: k unless given.

    >>> round(coverage(2, width_needed(2, 0.1)), 3), round(coverage(2, width_needed(2, 0.1, printed=True)), 3)
    (0.911, 0.783)
    """
    _check(k)
    values = k if biases is None else biases
    require(0 <= values <= 2 * k - 1, f"there are {2 * k - 1} biases, not {values}")
    hit = 2.0 ** (1 - k) / (2 * k - 1)
    terms = [(-1) ** j * math.comb(values, j) * (1 - j * hit) ** (width // 2) for j in range(values + 1)]
    return math.fsum(terms)


def width_needed(k: int, failure: float, printed: bool = False) -> int:
    """An even width that covers k bias values but for probability ``failure``, by the union bound of Lemma 4.

    The lemma's k 2^k log(k/failure) (``printed``) takes a pair to be good with probability 2^(1-k)/k; it is
    2^(1-k)/(2k-1), which asks for nearly twice the width.
    """
    _check(k)
    require(0 < failure < 1, f"a probability of failure must be between 0 and 1, not {failure:g}")
    if printed:
        return 2 * math.ceil(k * 2**k * math.log(k / failure) / 2)
    return 2 * math.ceil(-math.log(k / failure) / math.log1p(-(2.0 ** (1 - k)) / (2 * k - 1)))


def _check(k: int) -> None:
    require(k >= 2 and k % 2 == 0, f"this needs an even k, not {k}")
