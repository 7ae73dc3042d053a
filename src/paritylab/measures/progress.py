"""Hidden progress: how far weights have moved, and how far chance alone would have moved them.

A path is an array (times, ..., n) of one neuron's weights, the first entry being the initial ones.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import scipy.special  # pyright: ignore[reportMissingTypeStubs]
from numpy.typing import ArrayLike, NDArray

from paritylab.aliases import Floats
from paritylab.errors import require

special: Any = scipy.special  # SciPy has no types


def displacement(path: ArrayLike) -> Floats:
    """rho_t = max_i |w_t,i - w_0,i| (Barak et al., Section 5), for each time: (times, ...).

    >>> displacement([[0.0, 1.0], [0.5, 1.0], [0.5, -1.0]])
    array([0. , 0.5, 2. ])
    """
    return np.abs(_moved(path)).max(-1)


def support_leads(path: ArrayLike, support: Iterable[int]) -> NDArray[np.bool_]:
    """Whether the coordinates that moved farthest are exactly the support, for each time: (times, ...).

    >>> support_leads([[0, 0, 0], [1, 0.2, 0.5], [1, 2, 0]], [0, 1])
    array([False, False,  True])
    """
    moved = np.abs(_moved(path))
    inside = np.isin(np.arange(moved.shape[-1]), list(support))
    require(0 < inside.sum() < len(inside), "a lead needs inputs inside and outside of the support")
    return moved[..., inside].min(-1) > moved[..., ~inside].max(-1)


def _moved(path: ArrayLike) -> Floats:
    weights = np.asarray(path, np.float64)
    require(weights.ndim >= 2, "a path has the shape (times, ..., n)")
    return weights - weights[0]


def walk_maximum(times: ArrayLike, deviation: float, n: int, drift: float = 0.0, drifting: int = 0) -> Floats:
    """E max_i |W_i(t)| of n independent random walks at each of ``times`` (in steps); Gaussian steps, or many of them.

    A step has standard deviation ``deviation``; ``drifting`` of the walks also move by ``drift`` at every step, the
    others are unbiased: n unbiased walks are what random labels do to n weights, drift what a population gradient adds.

    >>> walk_maximum([1, 100], 0.1, n=1).round(4)
    array([0.0798, 0.7979])
    >>> walk_maximum([100], 0.01, n=50, drift=0.02, drifting=3).round(2)
    array([2.08])
    """
    t = np.asarray(times, np.float64)[..., None]
    require(bool(np.all(t >= 0)), "a walk has no negative time")
    require(deviation > 0, f"the deviation of a step must be positive, not {deviation:g}")
    require(0 <= drifting <= n and n >= 1, f"of {n} walks, {drifting} cannot drift")
    # E max = int_0^inf (1 - prod_i P(|W_i| <= r)) dr, with r and the drift in units of deviation * sqrt(t).
    shift = abs(drift) * np.sqrt(t) / deviation if drifting else np.zeros_like(t)
    low = np.maximum(shift - 12.0, 0.0)
    points, factors = np.polynomial.legendre.leggauss(256)
    half = (shift + 12.0 - low) / 2
    r = low + half * (1 + points)
    still = special.erf(r / np.sqrt(2)) ** (n - drifting)
    moving = (special.ndtr(r - shift) - special.ndtr(-r - shift)) ** drifting
    area = low[..., 0] + ((1 - still * moving) * half) @ factors
    return deviation * np.sqrt(t[..., 0]) * area
