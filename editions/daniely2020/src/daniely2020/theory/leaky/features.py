"""What good units can express (daniely2020, Lemmas 8 to 10): bumps of z, and separators of small norm made of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg  # pyright: ignore[reportMissingTypeStubs]
import scipy.optimize  # pyright: ignore[reportMissingTypeStubs]
from numpy.typing import ArrayLike, NDArray

from daniely2020.theory.leaky import Leaky
from paritylab.aliases import Floats

linalg: Any = scipy.linalg
optimize: Any = scipy.optimize


def bump(r: int, z: ArrayLike) -> Floats:
    """psi_r(z) = relu(|r| - sign(r) z); the paper's ReLU6 would cut it off for k > 3.

    >>> bump(-1, [-3, -1, 1, 3])
    array([0., 0., 2., 4.])
    """
    return np.maximum(abs(r) - np.sign(r) * np.asarray(z, float), 0.0)


def bump_coefficients(k: int, printed: bool = False) -> dict[int, float]:
    """The c_r with sum_r c_r psi_r(z) = (-1)^((k-z)/2) for z = -k, -k+2, ..., k; or those the paper prints.

    >>> bump_coefficients(3)
    {-3: 1.5, -1: -2.0, 1: 2.0, 3: -1.5}
    """
    found = {}
    for r in range(-k, k + 1, 2):
        sign = (-1.0) ** ((k - r) // 2)
        outer = 1.5 if k % 4 == 3 else 0.5
        size = (1.0 if abs(r) == k else 2.5 if abs(r) == 1 else 2.0) if printed else (outer if abs(r) == k else 2.0)
        found[r] = sign * size if printed else -sign * size
    return found


def bump_sum(k: int, coefficients: dict[int, float]) -> Floats:
    """sum_r c_r psi_r at z = -k, -k+2, ..., k.

    >>> bump_sum(5, bump_coefficients(5))
    array([-1.,  1., -1.,  1., -1.,  1.])
    """
    z = np.arange(-k, k + 1, 2)
    return np.sum([c * bump(r, z) for r, c in coefficients.items()], axis=0)


def bump_distance(sizes: Leaky, r: int, alpha: Floats, u: Floats) -> Floats:
    """max over z of | |r|/b relu6(alpha u z/n + b) - psi_r(z) | for each unit."""
    z, b = sizes.values, sizes.bias
    unit = np.clip(np.multiply.outer(alpha * u / sizes.n, z) + b, 0, sizes.upper)
    return np.abs(abs(r) / b * unit - bump(r, z)).max(-1)


def bump_chance(sizes: Leaky, r: int, alpha: Floats, eps: float) -> Floats:
    """The probability over u, uniform on [-n/k, n/k], that a unit is within eps of psi_r: exactly.

    >>> float(bump_chance(Leaky(10**6, 3), 1, np.array([0.25]), 0.5)[0].round(6))
    0.083333
    """
    z, b = sizes.values.astype(float), sizes.bias
    low, high = ((bump(r, z) + sign * eps) * b / abs(r) for sign in (-1, 1))
    rate = np.multiply.outer(alpha, z) / sizes.n  # the unit's argument is rate u + b
    ends = np.stack([(np.where(low > 0, low, -np.inf) - b) / rate, (high - b) / rate])
    start, stop = ends.min(0).max(-1), ends.max(0).min(-1)
    reach = sizes.reach
    return np.maximum(np.minimum(stop, reach) - np.maximum(start, -reach), 0.0) / (2 * reach)


def smallest_separator(features: NDArray[Any], y: Floats, rounds: int = 60, added: int = 40) -> float:
    """The smallest norm of output weights with margin 1 at all inputs, given (inputs, units); inf if none is found.

    The dual's non-negative least squares on a working set of inputs that grows by the most violated ones; the solution
    is scaled to margin 1, so the norm is that of a true separator, within 1 % of the smallest.

    >>> smallest_separator(np.eye(4), np.array([1.0, -1.0, 1.0, -1.0]))
    2.0
    """
    working = np.arange(min(added, len(y)))
    for _ in range(rounds):
        part = features[working] * y[working, None]
        matrix = part @ part.T
        root = linalg.cholesky(matrix + 1e-12 * np.trace(matrix) * np.eye(len(working)))
        a, _ = optimize.nnls(root, linalg.solve_triangular(root, np.ones(len(working)), trans="T"))
        weights = a @ part
        margins = y * (features @ weights)
        if margins.min() >= 0.99:
            return float(np.linalg.norm(weights) / margins.min())
        working = np.union1d(working[a > 0], np.argsort(margins)[:added])
    return float("inf")
