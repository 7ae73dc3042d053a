"""How many sign neurons one step on the output layer needs: of order d^3, no more and no less.

Bernstein's inequality in the proof of Theorem 4 of Abbe et al. in place of Hoeffding's, and an input at which narrower
networks err. Bias as recommended, 0 for even d and -1 for odd d. Proofs: docs/one-step.md.
"""

from __future__ import annotations

import math

import numpy as np
from abbe2024.theory.high_degree import activation_moments, delta, recommended_bias
from numpy.typing import NDArray

from paritylab.aliases import Floats
from paritylab.errors import require

ALL_RIGHT, WIDE_MARGIN, NOISY = 11, 15, 43
"""Widths in d^3 that suffice but for a chance e^-d: all inputs right; margins of equation (4); noise of ``noise``."""


def moments(d: int) -> tuple[float, float]:
    """|Delta| and the variance of chi relu, the mean and variance of a neuron's share of a margin over |Delta|.

    >>> moments(4)
    (0.25, 1.9375)
    """
    mean, square = activation_moments(d, recommended_bias(d))
    return abs(float(mean)), float(square - mean**2)


def failure(d: int, n: float, kept: float = 0.0) -> float:
    """A bound on the chance that some of the 2^d inputs keeps less than this share of its mean margin.

    >>> failure(10, 3000), failure(10, 11 * 10**3) < math.exp(-10)
    (1.0, True)
    """
    return min(1.0, math.exp(d * math.log(2) - n * _exponent(d, kept)))


def sufficient_width(d: int, kept: float = 0.0) -> float:
    """The width at which ``failure`` is e^-d.

    >>> max(sufficient_width(d) / d**3 for d in range(2, 200)) < ALL_RIGHT
    True
    """
    return d * (1 + math.log(2)) / _exponent(d, kept)


def _exponent(d: int, kept: float) -> float:
    """Bernstein's exponent for one neuron: (theta Delta)^2 / (2 (variance + theta |Delta| range / 3))."""
    require(0 <= kept < 1, f"a share of the margin to keep is in [0, 1), not {kept:g}")
    mean, variance = moments(d)
    lost = (1 - kept) * mean
    most = d + recommended_bias(d) + mean
    return lost**2 / (2 * (variance + lost * most / 3))


def kept_by_equation_4(d: int) -> float:
    """The share of the mean margin that equation (4), sqrt(n/d)/18 for output weights of norm 1, asks for."""
    return 1 / (18 * math.sqrt(d) * moments(d)[0])


def noise(d: int, n: float) -> float:
    """Gradient noise that a network of width 43 d^3 or more stands, sqrt(n) / (24 d^2): of order 1/sqrt(d) at d^3.

    >>> round(noise(100, 43 * 100**3) * math.sqrt(100), 3)
    0.273
    """
    return math.sqrt(n) / (24 * d**2)


def hard_input(weights: NDArray[np.int8]) -> Floats:
    """An input of parity 1, from the rows of signs of a network with even d, at which it is wrong if narrow.

    Of the part of the one-step network that is linear in x it makes the smallest output, but for one sign that sets
    the parity.

    >>> hard_input(np.array([[1, 1], [1, 1], [1, -1]], np.int8))
    array([-1., -1.])
    """
    require(weights.shape[1] % 2 == 0, "the hard input is for even d")
    linear = _outputs(weights) @ weights.astype(np.float32)
    x = np.where(linear > 0, -1.0, 1.0)
    if np.prod(x) < 0:
        x[np.abs(linear).argmin()] *= -1
    return x


def margin(weights: NDArray[np.int8], x: Floats) -> float:
    """f(x) N(x) / Delta^2 of the one-step network of these rows of signs, even d: its mean is the width."""
    shares = _outputs(weights) * np.maximum(weights @ x.astype(np.float32), 0)
    return float(np.prod(x) * shares.sum(dtype=np.float64)) / moments(weights.shape[1])[0]


def _outputs(weights: NDArray[np.int8]) -> NDArray[np.float32]:
    """The signs of the output weights after one step."""
    sign = math.copysign(1.0, delta(weights.shape[1], 0))
    return (sign * weights.prod(axis=1, dtype=np.int8)).astype(np.float32)
