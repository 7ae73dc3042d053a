"""Units: sums of steps h 1[z >= theta], or of ramps h max(0, z - theta), of z = w.x + b."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from paritylab.aliases import Floats
from paritylab.measures.alignment.laws import Law

SLACK = 1e-9
"""What rounding may take from a tie: a z this close to theta counts as theta."""


@dataclass(frozen=True)
class Unit:
    """``power`` 1: steps, 2: ramps; ``jumps`` are pairs (height, threshold). A tie counts as above the threshold."""

    power: int
    jumps: tuple[tuple[Fraction, Fraction], ...]

    def __call__(self, z: Any) -> Any:
        total = np.zeros(np.shape(z))
        for height, threshold in self.jumps:
            rest = np.asarray(z) - float(threshold)
            above = rest >= -SLACK * (1 + abs(float(threshold)))
            total += float(height) * (above if self.power == 1 else np.where(above, rest, 0.0))
        return total

    def rescaled(self, factor: float | Fraction) -> Unit:
        """The unit v with v(z / factor) = u(z) for steps, and u(z) / factor for ramps."""
        by = Fraction(factor)
        return Unit(self.power, tuple((height, threshold / by) for height, threshold in self.jumps))

    def plus(self, k: int) -> bool:
        """Whether degree k sees the cosine of the bias: c_T = (1/pi) int cos(tb) ... dt/t^power, or its sine."""
        return (k % 2 == 1) == (self.power == 1)


THRESHOLD = Unit(1, ((Fraction(1), Fraction(0)),))
RELU = Unit(2, ((Fraction(1), Fraction(0)),))
HINGE = Unit(1, ((Fraction(1), Fraction(0)), (Fraction(-1, 2), Fraction(1))))
"""What is left of a hinge neuron's gradient after that of random labels: 1[z >= 0] - 1[z >= 1] / 2."""


Terms = dict[Law, list[tuple[float, Law]]]
"""The bias factor as a sum of products left(p) right(q): E cos(q X) for each law X to the left side, a sum of
weight E cos(p Y) over pairs (weight, Y)."""


def bias_terms(unit: Unit, bias: Law, k: int) -> Terms:
    """E g(s) g(t) for g(t) = sum of h cos(t(b - theta)) (or sines), as sums of products in p = s - t and q = s + t.

    cos(sx) cos(ty) = [cos(sx - ty) + cos(sx + ty)] / 2, x = b - theta, y = b - theta'; with sines the sum is a
    difference. sx - ty = p (b - mean) - q gap / 2 and sx + ty = q (b - mean) - p gap / 2, up to terms that cancel
    when theta and theta' are swapped.
    """
    sign = 1.0 if unit.plus(k) else -1.0
    terms: Terms = {}
    if not unit.plus(k) and bias.zero and not any(threshold for _, threshold in unit.jumps):
        return terms
    for height, one in unit.jumps:
        for other_height, other in unit.jumps:
            weight = float(height * other_height) / 2
            law, gap = bias.shifted(-(one + other) / 2), Law((abs(one - other) / 2,))
            terms.setdefault(gap, []).append((weight, law))
            terms.setdefault(law, []).append((sign * weight, gap))
    return terms


def left(sides: list[tuple[float, Law]], p: Floats) -> Floats:
    return sum((weight * law.even(p) for weight, law in sides), np.zeros(len(p)))
