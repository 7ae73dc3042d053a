"""Product laws of the inputs, where x_j is +1 with probability p_j, and the Fourier basis that is orthonormal there.

With mu_j = 2 p_j - 1 and sigma_j = sqrt(1 - mu_j^2) the basis is psi_T(x) = prod_{j in T} (x_j - mu_j) / sigma_j. The
coefficient of f at T is E f(x) psi_T(x), and Parseval holds: the squares sum to E f(x)^2. At p = 1/2 it is the basis
of parities. Functions on the cube and their coefficients are in the order of ``measures.fourier``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from paritylab.aliases import Floats
from paritylab.errors import InvalidInput, require
from paritylab.measures.fourier import MOST_ENUMERATED


def chances(p: ArrayLike, n: int) -> Floats:
    """The probability of +1 for each of n inputs, from one number for all or n of them.

    >>> chances(0.75, 2), chances([0.5, 0.9], 2)
    (array([0.75, 0.75]), array([0.5, 0.9]))
    """
    try:
        found = np.asarray(p, np.float64)
    except (TypeError, ValueError):
        raise InvalidInput(f"a product law has a probability, or one for each input, not {p!r}") from None
    require(found.ndim == 0 or found.shape == (n,),
            f"a product law has one probability, or one for each of {n} inputs, not shape {found.shape}")
    require(bool(np.all((found > 0) & (found < 1))), "a probability of +1 must lie above 0 and below 1")
    return np.broadcast_to(found, (n,)).copy()


def masses(p: Floats) -> Floats:
    """The probability of every input, in the order of the cube.

    >>> masses(np.array([0.75, 0.5]))
    array([0.375, 0.125, 0.375, 0.125])
    """
    found = np.ones(1)
    for chance in p:
        found = np.concatenate([found * chance, found * (1 - chance)])
    return found


def biased_coefficients(values: ArrayLike, p: ArrayLike = 0.5) -> Floats:
    """All 2^n coefficients E f(x) psi_T(x) of a function from its values on the cube: n 2^n steps.

    One bit at a time: the mean p f(+1) + (1 - p) f(-1), and sqrt(p (1 - p)) [f(+1) - f(-1)].

    >>> biased_coefficients([1.0, -1.0, -1.0, 1.0], 0.75).round(4)  # the parity of two bits, with mean 1/2
    array([0.25 , 0.433, 0.433, 0.75 ])
    """
    out = np.array(values, np.float64)
    size = len(out) if out.ndim == 1 else 0
    n = size.bit_length() - 1
    require(size > 0 and size == 2**n, f"a function on the cube has 2^n values, not shape {out.shape}")
    require(n <= MOST_ENUMERATED, f"a transform takes at most n = {MOST_ENUMERATED}, not {n}")
    for j, chance in enumerate(chances(p, n)):
        pairs = out.reshape(-1, 2, 2**j)
        plus, minus = pairs[:, 0].copy(), pairs[:, 1].copy()
        pairs[:, 0] = chance * plus + (1 - chance) * minus
        pairs[:, 1] = np.sqrt(chance * (1 - chance)) * (plus - minus)
    return out


def biased_values(coefficients: ArrayLike, p: ArrayLike = 0.5) -> Floats:
    """The values of the function with these coefficients: :func:`biased_coefficients` undone.

    >>> biased_values(biased_coefficients([1.0, 2.0, 4.0, 8.0], 0.3), 0.3).round(12)
    array([1., 2., 4., 8.])
    """
    out = np.array(coefficients, np.float64)
    size = len(out) if out.ndim == 1 else 0
    n = size.bit_length() - 1
    require(size > 0 and size == 2**n, f"a function on the cube has 2^n coefficients, not shape {out.shape}")
    for j, chance in enumerate(chances(p, n)):
        pairs = out.reshape(-1, 2, 2**j)
        mean, slope = pairs[:, 0].copy(), pairs[:, 1].copy()
        pairs[:, 0] = mean + np.sqrt((1 - chance) / chance) * slope
        pairs[:, 1] = mean - np.sqrt(chance / (1 - chance)) * slope
    return out
