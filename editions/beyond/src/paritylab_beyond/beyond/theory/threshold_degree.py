"""How often the sign of a polynomial of low degree can be the parity of k bits.

Let P have degree r < k and E be the set of inputs where chi P <= 0. With m = floor((k - r - 1)/2), polynomials of
degree at most m make a space of dimension s = sum_{i <= m} C(k, i). If |E| < s, one of them, q, is not 0 and vanishes
on E. Then chi P q^2 is nowhere negative and somewhere positive; but its mean is 0, because P q^2 has degree below k.
So |E| >= s. It holds for every setting of further bits; where k - r is odd a polynomial in the sum of the bits attains
it.
"""

from __future__ import annotations

import math

import numpy as np

from paritylab.aliases import Floats, Ints
from paritylab.errors import require


def fewest_errors(k: int, degree: int) -> int:
    """Of the 2^k inputs, on how many the sign of a polynomial of this degree differs from the parity, at least.

    >>> [fewest_errors(3, 2), fewest_errors(5, 2), fewest_errors(5, 4), fewest_errors(5, 5)]
    [1, 6, 1, 0]
    """
    require(k >= 1 and degree >= 0, f"k and the degree must be positive, not {k} and {degree}")
    return sum(math.comb(k, i) for i in range((k - degree - 1) // 2 + 1)) if degree < k else 0


def best_polynomial(k: int, degree: int) -> Floats:
    """Values of a polynomial of this degree in z, the sum of k signs, at z = k, k - 2, ..., -k.

    Its roots lie between the middle values of z, and its sign there is that of the parity: the fewest errors where
    k - degree is odd.

    >>> best_polynomial(3, 2), levels(3)[1]
    (array([ 3., -1.,  3., 15.]), array([ 1., -1.,  1., -1.]))
    """
    z, labels = levels(k)
    first = (k - degree) // 2
    roots = z[first : first + min(degree, k)] - 1
    values = np.prod(z[:, None] - roots[None, :], axis=1, dtype=np.float64)
    return values * np.sign(values[first]) * labels[first]


def levels(k: int) -> tuple[Ints, Floats]:
    """The values of z, and the parity there."""
    return np.arange(k, -k - 1, -2), 1.0 - 2.0 * (np.arange(k + 1) % 2)


def errors(k: int, values: Floats) -> int:
    """On how many of the 2^k inputs a function of z, given at its levels, has not the sign of the parity."""
    wrong = values * levels(k)[1] <= 0
    return sum(math.comb(k, int(i)) for i in np.flatnonzero(wrong))
