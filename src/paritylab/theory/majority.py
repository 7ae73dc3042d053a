"""The majority function's Fourier weights, and the gradients they give at sign weights (Barak et al., B.1)."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike

from paritylab.aliases import Floats
from paritylab.errors import require
from paritylab.measures.fourier import majority_coefficient, majority_fraction


def level_weight(n: int, k: int) -> float:
    """C(n, k) xi_k^2, the majority's weight at degree k: of order k^(-3/2) for odd k, where Lemma 1 prints k^(-2/3).

    >>> round(level_weight(1001, 3) * 3**1.5, 4), round((2 / math.pi) ** 1.5, 4)
    (0.5522, 0.5079)
    """
    return float(math.comb(n, k) * majority_fraction(n, k) ** 2)


def coefficient_ratio(n: int, k: int) -> float:
    """|xi_(k+1) / xi_(k-1)| for even k: exactly (k - 1)/(n - k), which equation (5) bounds.

    >>> coefficient_ratio(11, 4), abs(majority_coefficient(11, 5) / majority_coefficient(11, 3))
    (0.42857142857142855, 0.42857142857142855)
    """
    _check(n, k)
    return (k - 1) / (n - k)


def majority_gap(n: int, k: int) -> float:
    """Gamma of a ReLU neuron with sign weights, (|xi_(k-1)| - |xi_(k+1)|)/2, for even k.

    >>> majority_gap(5, 2)
    0.125
    """
    _check(n, k)
    return (abs(majority_coefficient(n, k - 1)) - abs(majority_coefficient(n, k + 1))) / 2


def sign_gradient(weights: ArrayLike, outputs: ArrayLike, support: Iterable[int]) -> Floats:
    """Gradient of the hinge loss at f = 0 by the weights of ReLU neurons u relu(w.x + b), as in Lemma 2.

    Weights (r, n) and outputs u (r,) are signs, n is odd, |S| even and |b| < 1, which makes the gradient by the
    biases 0: -(1/2) u xi chi_T(w), at T = S without j and xi_(k-1) for j in S, T = S and j and xi_(k+1) elsewhere.

    >>> sign_gradient([[1, 1, 1, 1, 1]], [1], [0, 1])
    array([[-0.1875, -0.1875,  0.0625,  0.0625,  0.0625]])
    """
    w, u = np.asarray(weights, np.float64), np.asarray(outputs, np.float64)
    require(bool(np.all(np.abs(w) == 1)), "Lemma 2 is about weights that are signs")
    inside = np.isin(np.arange(w.shape[-1]), list(support))
    n, k = len(inside), int(inside.sum())
    _check(n, k)
    xi = np.where(inside, majority_coefficient(n, k - 1), majority_coefficient(n, k + 1))
    chi = w[:, inside].prod(-1, keepdims=True) * w
    return -0.5 * u[:, None] * xi * chi


def _check(n: int, k: int) -> None:
    require(n % 2 == 1 and k % 2 == 0 and 0 < k < n, f"this needs odd n and even k from 2 to n - 1, not ({n}, {k})")
