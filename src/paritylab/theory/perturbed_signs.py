"""The alignment of weights that are a sign plus independent noise: its scaling law, and bounds for every d.

GAL(sigma, d) = E_w (E_x x_1...x_d 1[w.x >= 0])^2, odd d, w_j a sign plus noise of standard deviation sigma. Proofs:
docs/explanation/theory/alignment.md.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr

from paritylab.aliases import Floats
from paritylab.errors import require


def scaling(noise: ArrayLike) -> Floats:
    """F(lambda): 2 pi d GAL -> F for a sign plus independent noise of standard deviation lambda / sqrt(d).

    sqrt(F) is E sign cos(pi lambda G / 2), G normal: the probability that a Brownian motion stays within (-1, 1)
    to the time lambda^2.

    >>> scaling([0.0, 1.0, 3.0]).round(6)
    array([1.      , 0.137476, 0.      ])
    """
    lam = np.atleast_1d(np.asarray(noise, float))
    require(bool(np.all(lam >= 0)), "the noise must not be negative")
    odd = np.arange(1, 80, 2)
    signs = np.where(odd % 4 == 1, 1.0, -1.0)
    late = 4 / math.pi * np.exp(-np.square(np.multiply.outer(lam, odd)) * math.pi**2 / 8) @ (signs / odd)
    with np.errstate(divide="ignore"):
        early = 1 - 4 * ndtr(-odd / lam[:, None]) @ signs
    root = np.where(lam < 0.7, early, late)
    return (root**2).reshape(np.shape(noise))


def least_rate(sigma: float) -> float:
    """A positive lower bound of the rate c(sigma) for normal noise: ln 2 - ln(1 + exp(-pi^2 sigma^2 / 8)).

    >>> round(least_rate(0.1), 6)
    0.006149
    """
    return math.log(2) - math.log1p(math.exp(-((math.pi * sigma) ** 2) / 8))


def least_alignment(sigma: float, d: int) -> float:
    """A lower bound of GAL(sigma, d) for normal noise and every odd d: 8 exp(-pi^2 sigma^2 d / 4) / (9 pi^3 (d + 1)).

    It makes the alignment inverse-polynomial for sigma = O(sqrt(log d / d)).

    >>> least_alignment(0.0, 101) < 1 / (2 * math.pi * 101)
    True
    """
    require(d % 2 == 1, f"the alignment of a unit without bias needs an odd d, not {d}")
    return 8 * math.exp(-((math.pi * sigma) ** 2) * d / 4) / (9 * math.pi**3 * (d + 1))
