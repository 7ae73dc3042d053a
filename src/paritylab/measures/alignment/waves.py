"""Sums over a far tail, in closed form: functions that are sums of Re(c e^(i omega q)) / q^n beyond some Q."""

from __future__ import annotations

import math

import numpy as np

from paritylab.aliases import Floats
from paritylab.measures.alignment.laws import Law

Waves = dict[tuple[float, int], complex]
"""(omega >= 0, n) to c."""
ONE: Waves = {(0.0, 0): 1.0}

_X = np.arange(-4.25, 3.25, 1 / 32)
_Y = np.exp(math.pi / 2 * np.sinh(_X))
_DY = math.pi / 2 * np.cosh(_X) * _Y / 32


def waves(law: Law) -> Waves:
    """E cos(q w) far out; nothing where normal noise (or an unknown law) makes it vanish."""
    found: Waves = {}
    if law.normal or law.init:
        return found
    for atom, probability in zip(law.atoms, law.probabilities, strict=True):
        a, p = float(atom), float(probability)
        if not law.uniform:
            _add(found, a, 0, p)
            continue
        for omega in (law.uniform + a, law.uniform - a):  # cos(aq) sin(uq) / (uq)
            _add(found, omega, 1, -0.5j * p / law.uniform)
    return found


def product(first: Waves, second: Waves, factor: float = 1.0) -> Waves:
    found: Waves = {}
    for (one, n), c in first.items():
        for (other, m), e in second.items():
            _add(found, one + other, n + m, factor * c * e / 2)
            _add(found, one - other, n + m, factor * c * e.conjugate() / 2)
    return found


def _add(found: Waves, omega: float, n: int, c: complex) -> None:
    key = abs(omega), n
    found[key] = found.get(key, 0.0) + (c if omega >= 0 else complex(c).conjugate())


def tail(p: Floats, wave: Waves, power: int, edge: float, step: float) -> Floats:
    """The sum over q = edge + (j + 1/2) step, j >= 0, of wave(q) / (q^2 - p^2)^power, for |p| < edge.

    By the Abel-Plana formula, with the integral along the real axis turned to the imaginary one.

    >>> float(tail(np.zeros(1), ONE, 1, 2.0, 2.0)[0] + 1)  # 1/1^2 + 1/3^2 + 1/5^2 + ... = pi^2/8
    1.2337005501361...
    """
    y = _Y * edge / step
    weights = _DY * edge / step
    total = np.zeros(len(p))
    for (omega, n), c in wave.items():
        for sign in (1, -1):
            q = edge + sign * 1j * step * y
            # e^(i omega q) and 1 - 1/(e^(2 pi y) + 1) above the axis, 1/(e^(2 pi y) + 1) below it
            damping = np.exp(-sign * omega * step * y - np.logaddexp(0.0, -sign * 2 * math.pi * y))
            factor = 1j * c * np.exp(1j * omega * edge) * weights * damping * q ** (-n)
            total += (factor / (q * q - np.square(p)[:, None]) ** power).sum(1).real
    return total


def smooth_tail(p: Floats, wave: Waves, power: int, edge: float, step: float) -> Floats:
    """:func:`tail`, a smooth function of p^2, from 18 values where p < edge / 2."""
    if not wave:
        return np.zeros(len(p))
    near = p < edge / 2
    if near.sum() <= 18:
        return tail(p, wave, power, edge, step)
    roots = np.cos(math.pi * (np.arange(18) + 0.5) / 18)
    values = tail(edge / 2 * np.sqrt((1 + roots) / 2), wave, power, edge, step)
    series = np.polynomial.chebyshev.chebfit(roots, values, 17)
    found = np.empty(len(p))
    found[near] = np.polynomial.chebyshev.chebval(8 * np.square(p[near] / edge) - 1, series)
    found[~near] = tail(p[~near], wave, power, edge, step)
    return found
