"""How fast the gradient alignment of a threshold unit with the full parity decays with the dimension.

GAL(d) = E_w (E_x x_1...x_d 1[w.x >= 0])^2 for i.i.d. weights and odd d (eq. 10 of Abbe et al.) is of order
exp(-c d) / d with c = -ln[(1 - inf phi)/2], phi(u) = E cos(uw). Derivations: docs/explanation/theory/alignment.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.integrate import quad

from paritylab.aliases import Floats
from paritylab.errors import require
from paritylab.measures.alignment.laws import Law, law
from paritylab.setups import inits
from paritylab.theory.infimum import commensurable, derivatives, infimum, moments, odd_multiples


@dataclass(frozen=True)
class AlignmentRate:
    """The rate c of one weight law and the expansion GAL(d) = coefficient K^d / d (1 + correction / d + ...).

    ``saddle`` is where phi is smallest (infinity where it is only approached) and ``floor`` its value there, which
    is above the true infimum by at most ``error``; ``bounds`` is what that leaves for c. ``zero`` says that c = 0
    exactly: the weight is almost surely an odd multiple of a constant. ``kind`` is ``lattice`` (weights in hZ),
    ``smooth`` (a density), ``tail`` (a density with phi >= 0, such as the Gaussian), ``incommensurable`` or
    ``unknown`` (a user's law); coefficient and correction are None for the last three.
    """

    rate: float
    saddle: float
    floor: float
    error: float
    kind: str
    coefficient: float | None
    correction: float | None
    law: Law = field(repr=False, compare=False)

    @property
    def zero(self) -> bool:
        return self.kind == "lattice" and odd_multiples(self.law)

    @property
    def bounds(self) -> tuple[float, float]:
        """The interval that certainly holds c."""
        return _rate(max(-1.0, self.floor - self.error)), self.rate

    def leading(self, d: int) -> float:
        """coefficient K^d / d, for odd d.

        >>> round(alignment_rate("rademacher").leading(101) * 2 * math.pi * 101, 9)
        1.0
        """
        _odd(d)
        require(self.coefficient is not None, f"a law of the kind {self.kind!r} has no expansion; see reduced")
        assert self.coefficient is not None
        return self.coefficient * math.exp(-self.rate * d) / d

    def expansion(self, d: int) -> float:
        """The first two terms, coefficient K^d / d (1 + correction / d), for odd d."""
        leading = self.leading(d)
        assert self.correction is not None
        return leading * (1 + self.correction / d)

    def reduced(self, d: int) -> float:
        """GAL(d) up to O(d^-2), relatively: s - t integrated by Laplace's method, s + t numerically.

        It needs no attained minimum, and it is uniform in laws whose minimum is small; weights close to a lattice
        need d times the variance about it well above 1 (else see ``perturbed_signs.scaling``).

        >>> round(alignment_rate("gaussian").reduced(21) / 2.03789944e-8, 4)
        1.0
        """
        _odd(d)
        require(self.kind in ("lattice", "smooth", "tail"), f"a law of the kind {self.kind!r} has no reduced integral")
        variance, fourth = moments(self.law)
        period = _period(self.law)

        def integrand(q: float) -> float:
            deficit = 1 - float(self.law.even(np.array(q)))
            if deficit <= 0:
                return 0.0
            weight, curvature = _kernel(q, period)
            width = math.sqrt(2 * math.pi * deficit / (d * variance))
            first = fourth * deficit / (8 * variance**2) - 3 / 8 + curvature * deficit / variance
            return weight * width * math.exp(d * math.log(deficit / (2 * top))) * (1 + first / d)

        top = (1 - self.floor) / 2
        unit = math.sqrt(1 / variance)
        peak = self.saddle if math.isfinite(self.saddle) else unit * math.sqrt(2 * math.log(d + 1))
        end = math.pi * period if period else 64 * peak
        breaks = sorted({min(end, peak * (1 + j / math.sqrt(d))) for j in (-8, -2, 0, 2, 8) if j > -math.sqrt(d)})
        pieces = [0.0, *[x for x in breaks if 0 < x < end], end]
        total = sum(quad(integrand, a, b, limit=400, epsrel=1e-10)[0] for a, b in pairwise(pieces))
        if period is None:
            total += quad(lambda x: integrand(1 / x) / x**2, 0, 1 / end, limit=400, epsrel=1e-10)[0]
        return math.exp(d * math.log(top)) * total

    def bound(self, d: int) -> float:
        """A proved upper bound of GAL(d), for every odd d: E(w/h)^2 K^(d-1) for weights in hZ, and for densities
        (1/9 + 7 L/2) / pi^2 K^(d-3), L the integral of phi^2 over u > 0 for weights of variance 1, or more.

        >>> law = alignment_rate("gaussian")
        >>> round(law.bound(21) / law.reduced(21), 1)
        60.9
        """
        _odd(d)
        require(self.kind in ("lattice", "smooth", "tail"), f"no bound is known for a law of the kind {self.kind!r}")
        top, variance = (1 - max(-1.0, self.floor - self.error)) / 2, self.law.second_moment
        if self.kind == "lattice":
            return variance / float(self.law.spacing) ** 2 * top ** (d - 1)
        integrals = [math.sqrt(math.pi) / (2 * self.law.normal)] if self.law.normal else []
        integrals += [math.pi / (2 * self.law.uniform)] if self.law.uniform else []
        return (1 / 9 + 3.5 * math.sqrt(variance) * min(integrals)) / math.pi**2 * top ** (d - 3)

    def at_degree(self, fraction: float) -> float:
        """The rate for a parity of degree ``fraction * d``: the binary entropy while fraction <= (1 - inf phi)/2.

        There every law does as badly as a random guess among C(d, k) parities; beyond, the law matters.

        >>> rates = [alignment_rate(law).at_degree(0.5) for law in ("rademacher", "gaussian", "perturbed-rademacher:1")]
        >>> [round(rate / math.log(2), 12) for rate in rates]
        [1.0, 1.0, 1.0]
        """
        require(0 < fraction <= 1, f"a parity has a fraction of the inputs in (0, 1], not {fraction:g}")
        value = max(self.floor, 1 - 2 * fraction)
        even = (1 - fraction) * math.log((1 + value) / 2) if fraction < 1 else 0.0
        return max(0.0, -(fraction * math.log((1 - value) / 2) + even))


def alignment_rate(init: inits.InitLike) -> AlignmentRate:
    """The rate of an init's law: c = -ln[(1 - inf phi)/2], with its saddle and the expansion in the dimension.

    >>> alignment_rate("rademacher").zero, alignment_rate("discrete:-3,-1,1,3").rate
    (True, 0.0)
    >>> round(math.exp(-alignment_rate("discrete:-2,-1,1,2").rate) * 32, 12)
    25.0
    >>> round(alignment_rate("perturbed-rademacher:0.1").rate, 6)
    0.024131
    """
    weight = law(init)
    found = infimum(weight)
    if weight.discrete:
        kind = "lattice" if commensurable(weight) else "incommensurable"
    elif weight.init:
        kind = "unknown"
    else:
        kind = "smooth" if math.isfinite(found.at) else "tail"
    coefficient = correction = None
    if kind in ("lattice", "smooth"):
        coefficient, correction = _laplace(weight, found.at)
    return AlignmentRate(_rate(found.value), found.at, found.value, found.error, kind, coefficient, correction, weight)


def _rate(floor: float) -> float:
    return max(0.0, -math.log((1 - floor) / 2))


def _odd(d: int) -> None:
    require(d >= 1 and d % 2 == 1, f"the alignment of a unit without bias needs an odd d, not {d}")


def _period(weight: Law) -> float | None:
    return 1 / float(weight.spacing) if weight.discrete else None


def _kernel(q: Any, period: float | None) -> tuple[Any, Any]:
    """The kernel at s = t = q/2 and its relative curvature in (s - t)^2: 2/(pi q)^2 and 1/q^2, or the lattice sum."""
    if period is None:
        return 2 / (math.pi * q) ** 2, 1 / q**2
    x = np.cos(q / period)
    weight = (3 + x) / (1 - x) / (2 * math.pi * period) ** 2
    return weight, (1 + x) / ((1 - x) * (3 + x)) / period**2


def _laplace(weight: Law, saddle: float) -> tuple[float, float]:
    """Coefficient and correction: Laplace's method to second order at every minimum of phi like the given one."""
    variance, fourth = moments(weight)
    period = _period(weight)
    radius = min(0.5 / math.sqrt(variance), saddle / 2)

    def exponent(q: Floats) -> Floats:
        return np.log((1 - weight.even(q)) / 2)

    def amplitude(q: Floats) -> Floats:
        return _kernel(q, period)[0] * np.sqrt(2 * math.pi * (1 - weight.even(q)) / variance)

    h0, _, h2, h3, h4 = derivatives(exponent, saddle, radius)
    g0, g1, g2 = derivatives(amplitude, saddle, radius, order=2)
    deficit = 2 * math.exp(h0)
    inner = fourth * deficit / (8 * variance**2) - 3 / 8 + _kernel(saddle, period)[1] * deficit / variance
    outer = g2 / (-2 * h2) + g1 * h3 / (2 * h2**2) + g0 * h4 / (8 * h2**2) + 5 * g0 * h3**2 / (24 * (-h2) ** 3)
    edge = period is not None and math.isclose(saddle, math.pi * period)
    share = 0.5 if edge else 1.0
    return share * g0 * math.sqrt(2 * math.pi / -h2), float(inner + outer / g0)
