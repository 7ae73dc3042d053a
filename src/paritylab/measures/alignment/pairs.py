"""Alignment of a unit by counting pairs of inputs: exact rationals, or certified digits by ball arithmetic.

Two inputs that differ in m places give sums U + V and U - V of d - m and m weights, so that

    G = 2^-d sum_m kappa_m E u(U + V + b) u(U - V + b),   kappa_m = [y^m] (1 - y)^k (1 + y)^(d - k).

The sum alternates and loses about d bits, which exact or ball arithmetic affords.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from paritylab.errors import InvalidInput, require
from paritylab.measures.alignment.found import Found
from paritylab.measures.alignment.laws import Law
from paritylab.measures.alignment.units import Unit

MOST_INTEGRALS = 4000
MOST_BITS = 2**15
DIGITS = 20


def kappa(d: int, k: int) -> list[int]:
    """[y^m] (1 - y)^k (1 + y)^(d - k), m = 0..d.

    >>> kappa(3, 1)
    [1, 1, -1, -1]
    """
    # y (1 - y^2) f' = [(d - 2k) y - d y^2] f gives a recursion over three neighbours.
    found = [1, d - 2 * k]
    for m in range(1, d):
        found.append(((d - 2 * k) * found[m] - (d - m + 1) * found[m - 1]) // (m + 1))
    return found[: d + 1]


def pair_sum(law: Law, bias: Law, d: int, k: int, unit: Unit) -> Found:
    require(not (law.init or law.uniform or bias.init or bias.uniform),
            "pairs are counted for atoms with or without normal noise; use 'integral'")
    if law.discrete and bias.discrete:
        return Found.rational(rational_sum(law, bias, d, k, unit))
    return _certified(law, bias, d, k, unit)


# --- rationals ----------------------------------------------------------------------------------------------------


def cost(law: Law, d: int) -> float:
    """Additions of big integers that :func:`rational_sum` needs, about."""
    return d * d * float(max(abs(a) for a in law.atoms) / law.spacing) * len(law.symmetrised())


def _powers(law: Law, d: int) -> tuple[list[Any], int, int]:
    """Integer weights of the sums of 0, ..., d atoms over -size..size, in spacings; size; the total of one atom."""
    chances = law.symmetrised()
    common = math.lcm(*(p.denominator for p in chances.values()))
    steps = {int(a / law.spacing): int(p * common) for a, p in chances.items()}
    most = max(steps)
    size = d * most
    power: Any = np.zeros(2 * size + 1, object)
    power[size] = 1
    powers = [power]
    for _ in range(d):
        power = sum(np.roll(power, step) * weight for step, weight in steps.items())
        powers.append(power)
    return powers, size, common


def rational_sum(law: Law, bias: Law, d: int, k: int, unit: Unit) -> Fraction:
    """G exactly, for discrete laws."""
    powers, size, common = _powers(law, d)
    spacing = law.spacing
    total = Fraction(0)
    for atom, chance in zip(bias.atoms, bias.probabilities, strict=True):
        for height, one in unit.jumps:
            for other_height, other in unit.jumps:
                offsets = (atom - one) / spacing, (atom - other) / spacing
                pairs = sum(sign * _both(powers[d - m], powers[m], size, *offsets, unit.power)
                            for m, sign in enumerate(kappa(d, k)))
                total += chance * height * other_height * pairs
    return total * (spacing**2 if unit.power == 2 else 1) / (2 * common) ** d


def _both(u_weights: Any, v_weights: Any, size: int, one: Fraction, other: Fraction, power: int) -> Fraction:
    """The weight of all u, v with u + v + one >= 0 and u - v + other >= 0; times both for ramps (there one = other)."""
    u = np.arange(-size, size + 1)
    low = np.maximum(math.ceil(-one) - u, -size) + size
    high = np.minimum(u + math.floor(other), size) + size + 1
    high = np.maximum(low, high)
    v = u.astype(object)

    def between(weights: Any) -> Any:
        running = np.concatenate([[0], np.cumsum(weights)])
        return running[np.minimum(high, 2 * size + 1)] - running[np.minimum(low, 2 * size + 1)]

    if power == 1:
        return Fraction(int((u_weights * between(v_weights)).sum()))
    inside, squares = between(v_weights), between(v_weights * v * v)
    a, b = one.numerator, one.denominator  # (u + one)^2 - v^2
    return Fraction(int((u_weights * ((v * b + a) ** 2 * inside - b * b * squares)).sum()), b * b)


# --- balls --------------------------------------------------------------------------------------------------------


def _certified(law: Law, bias: Law, d: int, k: int, unit: Unit) -> Found:
    try:
        import flint
    except ImportError:
        raise InvalidInput("certified digits need python-flint: pip install 'paritylab[certify]'") from None
    cells = (d * d * d) // 6 if any(law.atoms) else 0 if bias.zero or not any(bias.atoms) else d
    require(cells * len(law.atoms) <= 2 * MOST_INTEGRALS and (not any(law.atoms) or d < 30),
            f"pairs of {d} weights with atoms need too many integrals; use 'integral'")
    before = flint.ctx.prec
    bits = 2 * d + 128 if not any(law.atoms) else d + 128
    try:
        while bits < MOST_BITS:
            flint.ctx.prec = bits
            total: Any = _ball_sum(flint, law, bias, d, k, unit)
            if not total.contains(0) and total.rel_accuracy_bits() > 3.33 * DIGITS:
                log = float(abs(total).log().mid())
                return Found(1.0, 2e-16 * (1 + abs(log)), log, digits=total.str(DIGITS, radius=False))
            if abs(total) < flint.arb(2) ** (-bits // 2):
                return Found(0.0, float(abs(total).upper()))
            bits *= 2
    finally:
        flint.ctx.prec = before
    raise InvalidInput("the sum over pairs lost all digits; use 'integral'")


def _ball_sum(flint: Any, law: Law, bias: Law, d: int, k: int, unit: Unit) -> Any:
    arb: Any = flint.arb
    noise, bias_noise = arb(law.normal) ** 2, arb(bias.normal) ** 2
    variance = d * noise + bias_noise
    root = variance.sqrt()
    found = arb(0)
    cache: dict[Any, Any] = {}
    for m, (sign, values) in enumerate(zip(kappa(d, k), _sums(law, d), strict=True)):
        covariance = (d - 2 * m) * noise + bias_noise
        ends = 1 if m == 0 or not law.normal else -1 if m == d and not bias.normal else 0
        part = arb(0)
        for u, v, chance in values:
            for atom, p in zip(bias.atoms, bias.probabilities, strict=True):
                for height, one in unit.jumps:
                    for other_height, other in unit.jumps:
                        first, second = u + v + atom - one, u - v + atom - other
                        key = m, *sorted((first, second))
                        if key not in cache:
                            means = (_ball(flint, first) / root, _ball(flint, second) / root)
                            value = _steps(flint, *means, covariance / variance, ends)
                            if unit.power == 2:
                                value = variance * _ramps(flint, *means, covariance / variance, ends, value)
                            cache[key] = value
                        part += _ball(flint, chance * p * height * other_height) * cache[key]
        found += sign * part
    return found / arb(2) ** d


def _sums(law: Law, d: int) -> Iterator[list[tuple[Fraction, Fraction, Fraction]]]:
    """For m = 0..d: values and chance of the atoms' part of U and V."""
    if not any(law.atoms):
        yield from [[(Fraction(0), Fraction(0), Fraction(1))]] * (d + 1)
        return
    powers, size, common = _powers(law, d)
    for m in range(d + 1):
        us, vs = powers[d - m], powers[m]
        yield [((int(u) - size) * law.spacing, (int(v) - size) * law.spacing, Fraction(us[u] * vs[v], common**d))
               for u in np.flatnonzero(us) for v in np.flatnonzero(vs)]


def _ball(flint: Any, number: Fraction) -> Any:
    return flint.arb(flint.fmpq(number.numerator, number.denominator))


def _normal(flint: Any, z: Any) -> Any:
    return (-z / flint.arb(2).sqrt()).erfc() / 2


def _density(flint: Any, z: Any) -> Any:
    return (-z * z / 2).exp() / (2 * flint.arb.pi()).sqrt()


def _steps(flint: Any, a: Any, b: Any, rho: Any, ends: int) -> Any:
    """P(X + a >= 0, Y + b >= 0) for standard normals of correlation rho; ``ends`` says that it is 1 or -1 exactly."""
    arb = flint.arb
    if ends == 1:
        return _normal(flint, a if a < b else b)
    if ends == -1:
        return _normal(flint, a) - _normal(flint, -b) if a + b > 0 else arb(0)
    if a == 0 and b == 0:
        return arb(1) / 4 + rho.asin() / (2 * arb.pi())
    squares, product = a * a + b * b, 2 * a * b

    def integrand(t: Any, _: Any) -> Any:
        return (-(squares - product * t.sin()) / (2 * t.cos() ** 2)).exp()

    area = flint.acb.integral(integrand, flint.acb(0), flint.acb(rho.asin())).real
    return _normal(flint, a) * _normal(flint, b) + area / (2 * arb.pi())


def _ramps(flint: Any, a: Any, b: Any, rho: Any, ends: int, steps: Any) -> Any:
    """E (X + a)_+ (Y + b)_+, given :func:`_steps`; by parts from E XY 1, E X 1 and E Y 1 on the quadrant."""
    first, second = _density(flint, a), _density(flint, b)
    if ends:  # Y = X or -X: the quadrant is an interval
        low, high = (a if a < b else b), (None if ends == 1 else b)
        if ends == 1:
            return (a * b + 1) * steps + (a + b - low) * _density(flint, low)
        return (a * b - 1) * steps + a * second + b * first if a + b > 0 and high is not None else flint.arb(0)
    s = (1 - rho * rho).sqrt()
    given_second, given_first = _normal(flint, (a - rho * b) / s), _normal(flint, (b - rho * a) / s)
    joint = s * second * _density(flint, (a - rho * b) / s)
    return (a * b + rho) * steps + a * second * given_second + b * first * given_first + joint
