"""Alignment with a sum of parities, f = sum_S c_S chi_S: a quadratic form in the coefficients,

    E_w (E_x f(x) u(w.x + b))^2 = sum_{S,T} c_S c_T E_w u^(S) u^(T),   u^(S) = E_x chi_S(x) u(w.x + b).

Turning w_j around is turning x_j around: it multiplies u^(S) by -1 if j is in S and leaves it alone if not. So where
the law of a weight is symmetric about 0, whatever the bias, every term with S != T vanishes and the alignment is the
sum of c_S^2 times that of one parity of |S| inputs. A gradient by w_j, E_x f x_j u', is the same with every S changed
at j, so the terms of a network vanish likewise. Without that symmetry they stay; for discrete laws they are a finite
sum, as in ``lattice``, where an input of S alone has the factor E sin(sw) cos(tw) = [psi(s + t) + psi(s - t)] / 2 with
psi(t) = E sin(tw).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from paritylab.errors import require
from paritylab.measures.alignment.found import Found
from paritylab.measures.alignment.lattice import bias_points, unit_waves
from paritylab.measures.alignment.laws import Law, rational
from paritylab.measures.alignment.units import RELU, THRESHOLD, Unit
from paritylab.measures.targets import terms as parse

Support = frozenset[int]
Pair = Callable[[Unit, Support, Support], Found]
"""E_w u^(S) u^(T)."""
MOST_POINTS = 3000


def terms(given: Any, d: int) -> list[tuple[Fraction, Support]]:
    """The sum of parities that is meant, of at least one input each."""
    found = [(rational(coefficient), frozenset(support)) for coefficient, support in parse(given)]
    for _, support in found:
        require(len(support) > 0 and max(support) < d, f"a term has inputs from 0 to {d - 1}, at least one,"
                f" not {sorted(support)}")
    return found


def pairs(law: Law, bias: Law, d: int, coefficient: Callable[[Unit, int], Found]) -> Pair:
    """From the alignments of single parities, and the lattice for two different ones if the law is not symmetric."""
    symmetric, known = law.symmetric, dict[Any, Found]()

    def pair(unit: Unit, one: Support, other: Support) -> Found:
        if one != other and symmetric:
            return Found.rational(Fraction(0))
        sizes = len(one & other), len(one - other), len(other - one)
        if (unit, sizes) not in known:
            known[unit, sizes] = cross(law, bias, d, sizes, unit) if one != other else coefficient(unit, len(one))
        return known[unit, sizes]

    return pair


def parts(
    unit: str, pair: Pair, given: list[tuple[Fraction, Support]], d: int, scale: Fraction, square: Fraction, width: int
) -> dict[str, Found]:
    """The value ("total") and the parts of a network; "S" is the union of all supports.

    ``scale`` is the square of the hidden weights' factor, ``square`` the sum of squared output weights, on average.
    """
    if unit != "network":
        step = unit == "threshold"
        return {"total": _form(pair, THRESHOLD if step else RELU, given).times(1 if step else scale)}
    union = frozenset[int]().union(*(support for _, support in given))
    # Inputs of the same supports are alike.
    kinds = Counter(tuple(j in support for _, support in given) for j in union)
    inside = Found.rational(Fraction(0))
    for kind, count in kinds.items():
        j = next(j for j in union if tuple(j in support for _, support in given) == kind)
        inside += _form(pair, THRESHOLD, _turned(given, j)).times(count * square)
    outside = Found.rational(Fraction(0))
    if len(union) < d:
        j = min(set(range(len(union) + 1)) - union)
        outside = _form(pair, THRESHOLD, _turned(given, j)).times((d - len(union)) * square)
    biases = _form(pair, THRESHOLD, given).times(square)
    outputs = _form(pair, RELU, given).times(width * scale)
    found = {"weights in S": inside, "weights outside S": outside, "biases": biases, "output weights": outputs}
    return {**found, "total": inside + outside + biases + outputs}


def _turned(given: list[tuple[Fraction, Support]], j: int) -> list[tuple[Fraction, Support]]:
    """f times x_j."""
    return [(coefficient, support ^ {j}) for coefficient, support in given]


def _form(pair: Pair, unit: Unit, given: list[tuple[Fraction, Support]]) -> Found:
    total = Found.rational(Fraction(0))
    for i, (c, one) in enumerate(given):
        total += pair(unit, one, one).times(c * c)
        for e, other in given[:i]:
            total += pair(unit, one, other).times(2 * c * e)
    return total


def cross(law: Law, bias: Law, d: int, sizes: tuple[int, int, int], unit: Unit) -> Found:
    """E_w u^(S) u^(T) for a discrete law, given how many inputs are in both, in S alone and in T alone."""
    require(law.discrete, "a sum of parities needs weights that are symmetric about 0, or discrete ones")
    both, one, other = sizes
    spacing = law.spacing
    size = int(max(abs(a) for a in law.atoms) / spacing) * d
    require(size <= MOST_POINTS, f"without symmetry, sums of weights may take {2 * MOST_POINTS} values at most, not"
            f" {2 * size + 1}")
    points, mass = bias_points(bias.scaled(1 / spacing), unit.rescaled(spacing))
    step = 2 if all((a / spacing) % 2 == 1 for a in law.atoms) else 1
    first, second = (unit_waves(points, unit.rescaled(spacing), size, step, k) for k in (both + one, both + other))
    at = law.scaled(1 / spacing)
    t = math.pi * np.arange(2 * size + 3) / (size + 1)
    even, odd = at.even(t), at.odd(t)
    s, t = np.arange(first.shape[1])[:, None], np.arange(first.shape[1])[None]
    x, y = even[np.abs(s - t)], even[s + t]
    u, v = np.sign(s - t) * odd[np.abs(s - t)], odd[s + t]
    factors = ((x - y) / 2, both), ((v + u) / 2, one), ((v - u) / 2, other), ((x + y) / 2, d - both - one - other)
    logs, signs = np.zeros(x.shape), np.ones(x.shape)
    with np.errstate(divide="ignore"):
        for factor, power in factors:
            if power:
                logs += power * np.log(np.abs(factor))
                signs *= np.sign(factor) ** power
    top = float(logs.max())
    if top == -math.inf:
        return Found.rational(Fraction(0))
    values = signs * np.exp(logs - top) * (first.T @ mass @ second)
    scale = (float(spacing) ** 2 if unit.power == 2 else 1.0) * _sign(both + one) * _sign(both + other)
    error = (20 + d) * float(np.finfo(np.float64).eps) * abs(scale) * float(np.abs(values).sum())
    return Found.scaled(scale * float(values.sum()), error, top)


def _sign(k: int) -> int:
    """E chi e^(itz) = i^k prod sin prod cos: what the cosine (even k) or the sine (odd k) sees of i^k."""
    return -1 if k % 4 >= 2 else 1
