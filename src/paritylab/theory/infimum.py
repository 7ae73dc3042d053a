"""Where the characteristic function phi(u) = E cos(uw) of a weight's law is smallest, with a bound on the error.

K(s, t) = E sin(sw) sin(tw) = (phi(s - t) - phi(s + t)) / 2, so that |K| <= (1 - inf phi) / 2.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from scipy.optimize import brentq

from paritylab.aliases import Floats
from paritylab.measures.alignment.laws import Law

Function = Callable[[Floats], Floats]
MOST_SPACINGS = 4096
"""A discrete law with an atom of more than this many spacings is treated as incommensurable."""
WINDOW = 300.0
"""How far the infimum is searched, in 1/sqrt(E w^2), where nothing is known of phi beyond."""
NODES = 21
SINC_LEAST = 0.2172336283
"""The largest |sin x / x| beyond the first zero."""


def derivatives(function: Function, at: float, radius: float, order: int = 4) -> list[float]:
    """f, f', ..., by interpolation at Chebyshev points within the radius; about 8 digits at order 4.

    >>> [round(x, 6) for x in derivatives(np.exp, 0.0, 1.0)]
    [1.0, 1.0, 1.0, 1.0, 1.0]
    """
    nodes = np.cos(math.pi * (np.arange(NODES) + 0.5) / NODES)
    series = np.polynomial.Chebyshev.fit(nodes, function(at + radius * nodes), NODES - 1, domain=[-1, 1])
    return [float((series.deriv(m) if m else series)(0.0)) / radius**m for m in range(order + 1)]


def moments(law: Law) -> tuple[float, float]:
    """E w^2 and E w^4; from phi at 0 for a user's law.

    >>> from paritylab.measures.alignment.laws import law
    >>> moments(law("discrete:-2,-1,1,2")), moments(law("perturbed-rademacher:1"))
    ((2.5, 8.5), (2.0, 10.0))
    """
    second = law.second_moment
    if law.init:
        return second, derivatives(law.even, 0.0, 1 / math.sqrt(second))[4]
    a2, a4 = (float(sum(p * a**m for a, p in zip(law.atoms, law.probabilities, strict=True))) for m in (2, 4))
    g, u = law.normal**2, law.uniform**2
    return second, a4 + 6 * a2 * (g + u / 3) + 3 * g**2 + 2 * g * u + u**2 / 5


def atoms(law: Law) -> list[Fraction]:
    """The atoms of a discrete law that have a positive probability."""
    return [a for a, p in zip(law.atoms, law.probabilities, strict=True) if p]


def commensurable(law: Law) -> bool:
    """Whether the law lives on the multiples of one number, few enough to search a whole period of phi."""
    return law.discrete and max(map(abs, atoms(law))) <= MOST_SPACINGS * law.spacing


def odd_multiples(law: Law) -> bool:
    """Whether the weight is almost surely an odd multiple of one constant, which is when phi reaches -1: exact.

    >>> from paritylab.measures.alignment.laws import law
    >>> [odd_multiples(law(name)) for name in ("sign", "discrete:0.5,-1.5", "discrete:1,2", "sparse-rademacher:0.1")]
    [True, True, False, False]
    """
    return law.discrete and all((a / law.spacing).numerator % 2 == 1 for a in atoms(law))


@dataclass(frozen=True)
class Infimum:
    """The infimum of phi is in [value - error, value], and attained ``at`` this point; infinity where it is not."""

    value: float
    at: float
    error: float


def infimum(law: Law) -> Infimum:
    """The infimum of phi over u > 0, certified up to rounding by branch and bound with |phi''| <= E w^2.

    Nothing is certified beyond the window for a user's law or an incommensurable one; the error is then value + 1,
    which is always true.
    """
    second = law.second_moment
    if commensurable(law):
        end = math.pi / float(law.spacing)
        return Infimum(-1.0, end, 0.0) if odd_multiples(law) else _branch_and_bound(law.even, second, end)
    if law.discrete or law.init:
        found = _branch_and_bound(law.even, second, WINDOW / math.sqrt(second))
        return Infimum(found.value, found.at, 1 + found.value)
    if law.normal and not law.uniform and set(atoms(law)) == {1, -1}:
        # (cos u) exp(-(sigma u)^2 / 2) is smallest in its first negative arch, where tan u = -sigma^2 u
        root = _root(lambda u: math.sin(u) + law.normal**2 * u * math.cos(u), math.pi / 2, math.pi)
        return Infimum(float(law.even(np.array(root))), root, 1e-15)
    end = 8 / math.sqrt(second)
    while True:
        found, beyond = _branch_and_bound(law.even, second, end), _envelope(law, end)
        if beyond <= -found.value:
            return found
        if beyond < 1e-12:
            return Infimum(0.0, math.inf, beyond)
        end *= 2


def _envelope(law: Law, u: float) -> float:
    """A bound of |phi| from u on: that of the normal part times that of the uniform part."""
    x = law.uniform * u
    sinc = 1 / x if x > 1 / SINC_LEAST else max(math.exp(-(x**2) / 6), SINC_LEAST)
    return math.exp(-((law.normal * u) ** 2) / 2) * sinc


def _root(function: Callable[[float], float], low: float, high: float) -> float:
    found: Any = brentq(function, low, high, xtol=1e-15)
    return float(found)


def _branch_and_bound(phi: Function, curvature: float, end: float) -> Infimum:
    """The minimum over [0, end] of a function with |phi''| <= curvature: cells that cannot hold it are dropped."""
    count = math.ceil(max(64, 10 * end * math.sqrt(curvature)))
    step = end / count
    left = np.arange(count) * step
    best, at, slack = float(phi(np.array(end))), end, 0.0
    for _ in range(24):
        half = step / 2
        middle = left + half
        values = phi(middle)
        lowest = int(values.argmin())
        if values[lowest] < best:
            best, at = float(values[lowest]), float(middle[lowest])
        slope = np.abs(phi(middle + half) - phi(middle - half)) / step + curvature * half
        lower = values - slope * half - curvature * half**2 / 2
        slack = max(0.0, best - float(lower.min()))
        keep = left[lower < best]
        if slack < 1e-13 or not keep.size:
            break
        step /= 4
        left = (keep[:, None] + step * np.arange(4)).ravel()
    return Infimum(best, at, slack)
