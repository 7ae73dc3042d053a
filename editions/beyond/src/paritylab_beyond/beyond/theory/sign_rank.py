"""Forster's bound on the dimension of embeddings: for random embeddings, and with errors.

An embedding of dimension N realises a sign matrix M (m inputs x n targets) if vectors u_i, v_j in R^N have the signs
M_ij = sign(u_i.v_j). Forster (2002) brings the u_i, by a linear map, to |u_i| = |v_j| = 1 with sum u_i u_i^T a multiple
of the identity. Then mn/N = sum (u_i.v_j)^2 <= sum |u_i.v_j| = sum M_ij u_i.v_j <= |M| sqrt(mn), |M| the spectral norm:
N >= sqrt(mn) / |M|.

*Random.* If each of P targets is realised with probability 1/N at least, some embedding realises P/N of them. Columns
of distinct parities are orthogonal, so every set of P/N columns has the norm sqrt(m): N >= sqrt(P/N), N >= P^(1/3).

*Errors.* If a share eps of all entries has the wrong sign, sum |u_i.v_j| exceeds sum M_ij u_i.v_j by twice its part on
wrong entries, at most 2 eps mn: 1/N <= |M| / sqrt(mn) + 2 eps.
"""

from __future__ import annotations

import itertools
import math

import numpy as np

from paritylab.aliases import Floats
from paritylab.errors import require
from paritylab.measures.fourier import cube


def parities(n: int, degrees: list[int]) -> Floats:
    """All parities of these degrees on all inputs, (2^n, number of parities)."""
    s = cube(n)
    return np.stack([s[:, list(a)].prod(1) for k in degrees for a in itertools.combinations(range(n), k)], axis=1)


def forster(matrix: Floats) -> float:
    """sqrt(mn) / |M|.

    >>> round(forster(parities(4, [0, 1, 2, 3, 4])), 9)
    4.0
    """
    return math.sqrt(matrix.size) / float(np.linalg.norm(matrix, 2))


def random_dimension(count: int) -> int:
    """The least N with N >= sqrt(count / N), for embeddings that realise each of ``count`` parities with chance 1/N.

    >>> random_dimension(math.comb(100, 5))
    423
    """
    require(count >= 1, f"there must be a parity, not {count}")
    found = max(1, round(count ** (1 / 3)) - 1)
    return next(n for n in itertools.count(found) if n**3 >= count)


def dimension_with_errors(bound: float, eps: float) -> float:
    """The least dimension for a share ``eps`` of wrong entries, from the bound without errors.

    >>> dimension_with_errors(32.0, 0.0), round(dimension_with_errors(32.0, 0.01), 2)
    (32.0, 19.51)
    """
    require(bound > 0 and 0 <= eps <= 1, f"a bound and a share are asked for, not {bound:g} and {eps:g}")
    return 1 / (1 / bound + 2 * eps)
