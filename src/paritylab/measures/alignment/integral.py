"""Alignment of a unit as a double integral, for weights with a density.

With p = s - t, q = s + t and phi the characteristic function of a weight, made symmetric,

    G = E_w (E_x chi_T(x) u(w.x + b))^2 = (1/pi^2) int int_{s,t>0} beta K^k C^(d-k) ds dt / (s t)^m,
    K = E sin(sw) sin(tw) = [phi(p) - phi(q)] / 2,   C = E cos(sw) cos(tw) = [phi(p) + phi(q)] / 2,

where m is 1 for steps and 2 for ramps and beta comes from the bias. The midpoint rule in s and t converges faster than
exponentially: at step h it is the exact value for a unit with period 4 pi / h. Its nodes are p = ih, q = jh with i + j
odd, so one list of even and one of odd multiples of h hold phi, and the sum over s, t > 0 runs over pairs of the two.
Nodes that cannot matter are left out; what lies beyond the last node is added in closed form.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from paritylab.aliases import Floats
from paritylab.errors import InvalidInput, require
from paritylab.measures.alignment.found import Found
from paritylab.measures.alignment.lattice import lattice_sum
from paritylab.measures.alignment.laws import Law, sum_gap
from paritylab.measures.alignment.units import Terms, Unit, bias_terms, left
from paritylab.measures.alignment.waves import ONE, Waves, product, smooth_tail, waves

NEGLIGIBLE = 39.0
"""Natural logarithms below the largest value of the integrand."""
MOST_PAIRS = 1e8
MOST_NODES = 4e6
MOST_LINE = 10**6
BLOCK = 2**19
FLAT = 8.9
"""Standard deviations that separate two sums for good: P(|N(0, 1)| > 8.9) < 1e-18."""
ORDERS = 5


class Case(NamedTuple):
    law: Law
    d: int
    k: int
    unit: Unit
    terms: Terms


def integrate(law: Law, bias: Law, d: int, k: int, unit: Unit) -> Found:
    """G for d weights of the law and a set of k inputs.

    Noise too small to carry a sum across a threshold decides ties only. Steps then do not depend on its size, and ramps
    make G a quadratic function of it, which is known at 0.
    """
    noise = math.hypot(law.normal, law.uniform / math.sqrt(3))
    least = _least_noise(law, bias, d, unit)
    if noise >= least:
        return _integrate(law, bias, d, k, unit)
    if unit.power == 1:
        return _integrate(law.with_noise(least / noise), bias, d, k, unit)
    near, far = (_integrate(law.with_noise(part * least / noise), bias, d, k, unit) for part in (0.5, 1.0))
    at = noise / least
    weights = 2 * (at - 0.5) * (at - 1), -4 * at * (at - 1), 2 * at * (at - 0.5)
    start = lattice_sum(law.with_noise(0), bias, d, k, unit)
    parts = [found.times(weight) for found, weight in zip((start, near, far), weights, strict=True)]
    return parts[0] + parts[1] + parts[2]


def _least_noise(law: Law, bias: Law, d: int, unit: Unit) -> float:
    if not bias.discrete or law.init or not any(law.atoms):
        return 0.0
    gap = min(sum_gap(law, d, a - threshold) for a in bias.atoms for _, threshold in unit.jumps)
    return float(gap) / (FLAT * math.sqrt(d))


def _integrate(law: Law, bias: Law, d: int, k: int, unit: Unit) -> Found:
    root = math.sqrt(d * law.second_moment)
    offsets = [float(abs(a - threshold)) for a in bias.atoms for _, threshold in unit.jumps]
    step = 2 * math.pi / (19 * root + max(offsets) + 9 * bias.normal + bias.uniform)
    case = Case(law, d, k, unit, bias_terms(unit, bias, k))
    constant = _low_degree(case, bias, step)
    if not case.terms:
        return Found.of(constant)
    top, cut = _scale(case)
    sums = []
    for h, part in ((step, 1.0), (1.25 * step, 0.9)):
        total, size, corner = _sum(case, bias, h, part, top, cut)
        factor = (2 if unit.power == 1 else 8) * h * h / math.pi**2
        sums.append((factor * total, factor * size, corner))
    (value, size, corner), (coarse, _, _) = sums
    # Logarithms of d factors cost up to d units in the last place.
    error = abs(value - coarse) + (4 + d) * float(np.finfo(np.float64).eps) * size + corner
    return Found.of(constant, 1e-15 * constant) + Found.scaled(value, error, top)


def _low_degree(case: Case, bias: Law, h: float) -> float:
    """What degree 0 (steps) and 1 (ramps) have beyond the double integral: u is even about a mean, z a linear part."""
    law, d, k, unit, _ = case
    if (unit.power, k) not in ((1, 0), (2, 1)):
        return 0.0
    heights = sum(float(height) for height, _ in unit.jumps)
    constant = heights**2 / 4 * (1 if k == 0 else law.second_moment)
    ends = 2.0 ** np.arange(-3, 40) / math.sqrt(law.second_moment)
    far = np.array([_bound(law, end) for end in ends]) ** max(d - k, 1) / ends < 1e-17
    end = float(ends[np.argmax(far)]) if far.any() else math.inf
    t = (np.arange(min(math.ceil(end / h), MOST_LINE)) + 0.5) * h
    odd = sum(float(height) * bias.shifted(-threshold).odd(t) for height, threshold in unit.jumps)
    if not np.any(odd):
        return constant
    even = law.even(t)
    weight = even**d if k == 0 else law.slope(t) * even ** (d - 1)
    return constant + heights * h / math.pi * float((odd * weight / t**unit.power).sum())


# --- what matters -------------------------------------------------------------------------------------------------


def _log(case: Case, x: Floats, y: Floats) -> Floats:
    """log |K^k C^(d-k)| at phi(p) = x and phi(q) = y."""
    k, rest = case.k, case.d - case.k
    with np.errstate(divide="ignore"):
        found = k * np.log(np.abs(x - y) / 2) if k else np.zeros(np.broadcast(x, y).shape)
        return found + rest * np.log(np.abs(x + y) / 2) if rest else found


def _best(case: Case, x: Floats) -> Floats:
    """The largest of :func:`_log` over |y| <= 1."""
    inside = x * (case.d - 2 * case.k) / case.d
    return np.max([_log(case, x, y) for y in (inside, np.ones_like(x), -np.ones_like(x))], axis=0)


def _scale(case: Case) -> tuple[float, float]:
    """log of the largest |K^k C^(d-k)|, and the level below which it is neglected."""
    root = math.sqrt(case.law.second_moment)
    largest = max([1.0, *(abs(float(a)) / root for a in case.law.atoms)])
    lowest = float(case.law.even(np.linspace(0, 12 / root, math.ceil(4000 * largest))).min())
    at = max(lowest, (case.d - 2 * case.k) / case.d)
    top = float(_log(case, np.array(1.0), np.array(at)))
    return top, top - NEGLIGIBLE


def _reach(case: Case, bias: Law, h: float, cut: float) -> tuple[int, bool]:
    """How many nodes on each axis, and whether what lies beyond them counts."""
    law, d = case.law, case.d
    x = np.linspace(0, 1, 2001)
    best = np.maximum.accumulate(_best(case, x))
    far = float(best[0])
    counts = far >= cut
    unit = math.sqrt(law.second_moment)
    # Beyond the nodes phi(q) is expanded in powers, up to ORDERS of them; with normal noise it is nothing at all.
    order = 1 if law.normal or law.init else ORDERS
    rest = 1e-17 * math.factorial(order) * math.exp(min(cut + NEGLIGIBLE - far, NEGLIGIBLE))
    limit = float(x[max(int(np.argmax(best >= cut)) - 1, 0)])

    def beyond(q: float) -> bool:
        if not counts:
            return _bound(law, q) <= limit
        if (bias.normal or bias.init) and _bound(bias, q) > 1e-18:
            return False
        return (d * _bound(law, q)) ** order / (unit * q) <= rest

    high = 1.0 / unit
    while not beyond(high):
        high *= 1.1
        require(high / h < MOST_NODES, "this law is too close to a discrete one for the integral; use that one, or"
                " method 'monte-carlo'")
    return math.ceil(max(high, 20 * h) / h), counts


def _bound(law: Law, q: float) -> float:
    """A bound on |phi| from q on; for an unknown law, its largest value seen there."""
    if law.init:
        return float(np.abs(law.even(np.linspace(q, 4 * q, 4001))).max())
    return float(law.envelope(np.array(q)))


# --- the sum ------------------------------------------------------------------------------------------------------


def _sum(case: Case, bias: Law, h: float, part: float, top: float, cut: float) -> tuple[float, float, float]:
    """The sum of beta K^k C^(d-k) e^(-top) / (q^2 - p^2)^m over nodes on a part of each axis.

    With the sum of its absolute values, and what the corner left out, beyond the nodes on both axes, may hold.
    """
    law, d = case.law, case.d
    count, counts = _reach(case, bias, h / part, cut)
    count += count % 2
    even, odd = np.arange(0, count + 1, 2) * h, np.arange(1, count, 2) * h
    lists = []
    for nodes in (even, odd):
        phi = law.even(nodes)
        kept = _best(case, phi) >= cut
        bound = np.maximum.accumulate(np.abs(phi)[::-1])[::-1]
        lists.append((nodes[kept], phi[kept], bound[kept]))
    (p, x, x_bound), (q, y, y_bound) = lists
    # |K|, |C| <= (bound(p) + bound(q)) / 2: a row stops where that is too small.
    need = 2 * np.exp((cut + np.log1p(law.second_moment * p**2)) / d)
    stops = len(y_bound) - np.searchsorted(y_bound[::-1], need - x_bound)
    if float(stops.sum()) > MOST_PAIRS:
        raise InvalidInput("this law is too close to a discrete one for the integral; use that one, or method"
                           " 'monte-carlo'")
    twice = np.where(p == 0, 2.0, 4.0)
    total = size = 0.0
    start = 0
    while start < len(p):
        width = int(stops[start])
        rows = slice(start, start + max(1, BLOCK // max(width, 1)))
        start = rows.stop
        values = twice[rows, None] * _integrand(case, p[rows], x[rows], q[:width], y[:width], top)
        total += float(values.sum())
        size += float(np.abs(values).sum())
    corner = 0.0
    if counts:
        corner = 0.4 * math.exp(d * math.log(_bound(law, count * h) + 1e-300) - top)
        for near, phi, factor, edge in ((p, x, twice, count * h), (q, y, 4.0, (count + 1) * h)):
            values = factor * _beyond(case, near, phi, edge, 2 * h, top)
            total += float(values.sum())
            size += float(np.abs(values).sum())
    return total, size, corner


def _integrand(case: Case, p: Floats, x: Floats, q: Floats, y: Floats, top: float) -> Floats:
    k, rest = case.k, case.d - case.k
    minus, plus = x[:, None] - y, x[:, None] + y
    with np.errstate(divide="ignore"):
        logs = k * np.log(np.abs(minus)) if k else np.zeros_like(minus)
        if rest:
            logs += rest * np.log(np.abs(plus))
    logs -= case.d * math.log(2) + top
    found = np.exp(logs, out=logs)
    if k % 2:
        np.copysign(found, minus, out=found)
    if rest % 2:
        found *= np.sign(plus)
    found /= (q**2 - p[:, None] ** 2) ** case.unit.power
    lefts = np.stack([left(sides, p) for sides in case.terms.values()], axis=1)
    found *= lefts @ np.stack([law.even(q) for law in case.terms])
    return found


def _beyond(case: Case, p: Floats, x: Floats, edge: float, step: float, top: float) -> Floats:
    """The rest of each row, where phi(q) is small: K^k C^(d-k) = 2^-d sum_r c_r x^(d-r) phi(q)^r."""
    d, k, m = case.d, case.k, case.unit.power
    largest = d * np.log((np.abs(x) + _bound(case.law, edge) + 1e-300) / 2) - np.log1p(case.law.second_moment * p**2)
    kept = (x != 0) & (largest > top - NEGLIGIBLE)
    found, p, x = np.zeros(len(p)), p[kept], x[kept]
    phi = waves(case.law)
    power: Waves = ONE
    for r in range(min(ORDERS, d + 1) if phi else 1):
        scale = np.exp((d - r) * np.log(np.abs(x)) - d * math.log(2) - top) * np.sign(x) ** ((d - r) % 2)
        for law, sides in case.terms.items():
            wave = product(power, waves(law), krawtchouk(d, k, r))
            seen = {key: c for key, c in wave.items() if abs(c) > 1e-18 * edge ** key[1]}
            found[kept] += scale * left(sides, p) * smooth_tail(p, seen, m, edge, step)
        power = product(power, phi)
    return found


def krawtchouk(d: int, k: int, r: int) -> int:
    """[y^r] (1 - y)^k (1 + y)^(d - k).

    >>> [krawtchouk(3, 1, r) for r in range(4)]
    [1, 1, -1, -1]
    """
    return sum((-1) ** i * math.comb(k, i) * math.comb(d - k, r - i) for i in range(min(k, r) + 1))
