"""The junk flow of a ReLU neuron: gradient descent on random labels, with exact expectations over the inputs.

One neuron relu(w.x) without bias and the hinge loss max(0, 1 - y relu(w.x)), as in Figure 2 (left) of Abbe et al.
Starts are drawn, all else is enumerated over the 2^d inputs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from paritylab.aliases import Floats
from paritylab.errors import require
from paritylab.measures.coefficients import character, sums

MOST_INPUTS = 22
MOST_VALUES = 2**23
ROUNDING = 1e-9
"""Sums closer than this to a kink are on it: sums of signs may not fall on either side by rounding."""


def random_gradient(weights: ArrayLike) -> Floats:
    """Gamma_r(w) = E_x x 1[w.x >= 1] / 2 for rows of weights (m, d); at a kink the loss's right derivative.

    >>> random_gradient([[1.0, 1.0]])
    array([[0.125, 0.125]])
    """
    return _by_chunks(lambda z: 0.5 * (z >= 1 - ROUNDING), weights, parity=False)


def alignment_gap(weights: ArrayLike) -> Floats:
    """Gamma_f(w) - Gamma_r(w) = -E_x chi(x) x 1[w.x > 0] (1 - 1[w.x >= 1] / 2), f the full parity, for rows (m, d).

    >>> alignment_gap([[1.0, 1.0]])
    array([[-0.125, -0.125]])
    """
    return -_by_chunks(lambda z: 1.0 * (z > ROUNDING) - 0.5 * (z >= 1 - ROUNDING), weights, parity=True)


def junk_flow(
    weights: ArrayLike, steps: int, rate: float = 1.0, tau: float = 0.0, seed: int | np.random.Generator = 0
) -> Floats:
    """psi <- psi - rate (Gamma_r(psi) + N(0, tau^2)), so many steps from rows of weights.

    >>> junk_flow([[1.0, 1.0]], 1)
    array([[0.875, 0.875]])
    """
    generator = np.random.default_rng(seed)
    psi = np.array(weights, float)
    for _ in range(steps):
        noise = tau * generator.standard_normal(psi.shape) if tau else 0.0
        psi = psi - rate * (random_gradient(psi) + noise)
    return psi


def hinge_alignment(weights: ArrayLike) -> tuple[float, float]:
    """E_w of the squared gap per coordinate, over the drawn rows, and its standard error."""
    squares = np.square(alignment_gap(weights)).mean(axis=1)
    return float(squares.mean()), float(squares.std(ddof=1) / np.sqrt(len(squares)))


def _by_chunks(unit: Any, weights: ArrayLike, parity: bool) -> Floats:
    """E_x x_j unit(w.x), times chi(x) where asked, for every row and j."""
    w = np.atleast_2d(np.asarray(weights, float))
    d = w.shape[1]
    require(1 <= d <= MOST_INPUTS, f"all inputs can be visited for d from 1 to {MOST_INPUTS}, not {d}")
    chi = character(np.full(d, parity))
    rows = max(1, MOST_VALUES >> d)
    out = np.empty_like(w)
    for start in range(0, len(w), rows):
        values = unit(sums(w[start : start + rows])) * chi
        for j in reversed(range(d)):
            low, high = values[:, : 2**j], values[:, 2**j :]
            out[start : start + rows, j] = (low.sum(1) - high.sum(1)) / 2**d
            values = low + high
    return out
