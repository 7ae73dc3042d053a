"""Gradient flow and descent of the disjoint-PolyNet on the population's correlation loss (Barak et al., B.3.1).

Only the relevant weights move: dv_i/dt = prod_{j != i} v_j. Where prod v > 0, all v_i^2 rise by the same amount q(t),
so times follow from one integral of the rise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from barak2022.theory.disjoint import SignSum, block_error, laws, split
from paritylab.aliases import Floats
from paritylab.errors import require

PANEL = np.polynomial.legendre.leggauss(16)


def ones_path(k: int, t: ArrayLike) -> Floats:
    """v(t) from the all-ones start: (1 - (k-2) t)^(-1/(k-2)), and e^t for k = 2; inf from the blow-up on.

    >>> ones_path(3, [0.0, 0.5, 1.0])
    array([ 1.,  2., inf])
    """
    time = np.asarray(t, np.float64)
    if k == 2:
        return np.exp(time)
    require(k > 2, f"the flow is for k of at least 2, not {k}")
    left = np.maximum(1 - (k - 2) * time, 0.0)
    with np.errstate(divide="ignore"):
        return left ** (-1 / (k - 2))


def ones_time(k: int, b: float) -> float:
    """When v reaches b >= 1 from the all-ones start: (1 - b^(2-k))/(k-2), and log b for k = 2.

    >>> ones_time(3, 2.0), ones_time(4, math.inf)
    (0.5, 0.5)
    """
    require(k >= 2 and b >= 1, f"the flow is for k of at least 2 and b of at least 1, not {k} and {b:g}")
    return math.log(b) if k == 2 else (1 - float(b) ** (2 - k)) / (k - 2)


def rise_time(v: ArrayLike, rise: float) -> float:
    """When v_i(t)^2 - v_i(0)^2 reaches ``rise`` (``inf``: the blow-up), for a start with prod v > 0.

    With m the smallest |v_i|, the time is the integral of dr / prod_{i != m} sqrt(r^2 + v_i^2 - v_m^2), r = |v_m(t)|;
    in log r the integrand has no structure finer than 1, so 16 Gauss nodes on each piece of length 2 exhaust float64.

    >>> round(rise_time([1, 1, 1], 3.0), 12), round(rise_time([1, -1, -1, 1], math.inf), 12)
    (0.5, 0.5)
    """
    start = _positive(v)
    require(rise >= 0, f"squares only rise, not by {rise:g}")
    require(len(start) > 2 or rise < math.inf, "with k = 2 the flow never blows up")
    smallest = int(start.argmin())
    apart = np.delete(start**2, smallest) - start[smallest] ** 2
    low = math.log(start[smallest])
    if rise == math.inf:  # beyond all |v_i| the integrand falls like e^(-(k-2) y)
        high = max(low, math.log(start.max())) + 40 / (len(start) - 2)
    else:
        high = low + 0.5 * math.log1p(rise / start[smallest] ** 2)
    pieces = max(1, math.ceil((high - low) / 2))
    edges = np.linspace(low, high, pieces + 1)[:-1]
    half = (high - low) / pieces / 2
    r = np.exp(edges[:, None] + half * (1 + PANEL[0]))
    values = r / np.sqrt(r[..., None] ** 2 + apart).prod(-1)
    return float((values @ PANEL[1]).sum() * half)


def blow_up_bounds(v: ArrayLike, i: int, b: float) -> tuple[float, float]:
    """Lemma 5: a lower bound of T_i(b), when |v_i| reaches b, and an upper bound of the time from then to the blow-up.

    >>> low, rest = blow_up_bounds([1, 1, 1], 0, 2.0)
    >>> low, rest, round(rise_time([1, 1, 1], math.inf), 12)
    (0.5, 0.5, 1.0)
    """
    start = _positive(v)
    k = len(start)
    require(k > 2, "Lemma 5 is about k > 2")
    require(b >= start[i], f"|v_{i}| starts at {start[i]:g} and cannot reach {b:g}")
    arithmetic, geometric = (start**2).mean(), math.exp(np.log(start**2).mean())
    rise = b**2 - start[i] ** 2
    power = 1 - k / 2
    lower = (arithmetic**power - (arithmetic + rise) ** power) / (k - 2)
    return float(lower), float((geometric + rise) ** power / (k - 2))


def runge_kutta(v: ArrayLike, time: float | Floats, steps: int) -> Floats:
    """v(time) of starts (..., k) by the classical fourth-order rule, as a check of the integrals.

    >>> runge_kutta([1, 1, 1], 0.5, 100).round(6)
    array([2., 2., 2.])
    """
    state, h = np.array(v, np.float64), time / steps
    for _ in range(steps):
        a = _speed(state)
        b = _speed(state + h / 2 * a)
        c = _speed(state + h / 2 * b)
        d = _speed(state + h * c)
        state = state + h / 6 * (a + 2 * b + 2 * c + d)
    return state


def _speed(v: Floats) -> Floats:
    """prod_{j != i} v_j along the last axis, without a division."""
    left, right = np.ones_like(v), np.ones_like(v)
    np.cumprod(v[..., :-1], axis=-1, out=left[..., 1:])
    np.cumprod(v[..., :0:-1], axis=-1, out=right[..., -2::-1])
    return left * right


def _positive(v: ArrayLike) -> Floats:
    start = np.asarray(v, np.float64)
    require(start.ndim == 1 and len(start) >= 2, "a start has one relevant weight for each of at least two blocks")
    require(float(np.sign(start).prod()) > 0, "the flow is for starts with a positive product of relevant weights")
    return np.abs(start)


# --- time until an error ----------------------------------------------------------------------------------------


class Plateau(NamedTuple):
    """When the flow's error falls below the level, when it becomes 0, and the first as a fraction of the second."""

    level_time: float
    zero_time: float
    fraction: float


def plateau(weights: ArrayLike, gamma: float = 0.01) -> Plateau:
    """How much of the time until zero error is spent at errors of at least 1/2 - gamma, from weights (k, n').

    >>> [round(value, 4) for value in plateau(np.ones((3, 101)))]
    [0.75, 0.99, 0.7576]
    """
    v, u = split(weights)
    start, sums = _positive(v), laws(u)
    zero = float(np.max(np.maximum([law.largest for law in sums], start) ** 2 - start**2))
    level_time = rise_time(start, error_rise(start, sums, 0.5 - gamma))
    zero_time = rise_time(start, zero)
    return Plateau(level_time, zero_time, level_time / zero_time if zero_time > 0 else math.nan)


def error_rise(v: ArrayLike, blocks: list[SignSum], level: float) -> float:
    """The rise of the squares from which on the error is below ``level``, by bisection: blocks only improve."""
    require(0 < level <= 0.5, f"an error level must be above 0 and at most 1/2, not {level:g}")
    start = _positive(v)

    def below(rise: float) -> bool:
        reached = np.sqrt(start**2 + rise)
        right = math.prod(law.within(r) for law, r in zip(blocks, reached, strict=True))
        return 0.5 - 0.5 * right < level

    low, high = 0.0, max(law.largest for law in blocks) ** 2
    if below(low):
        return 0.0
    while high - low > 1e-14 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if below(middle) else (middle, high)
    return high


def descent_times(
    weights: ArrayLike, rate: float, levels: Sequence[float], most_steps: int = 10**6, chunk: int = 4096
) -> Floats:
    """Steps of population gradient descent until nets (draws, k, n') have errors below each level: (draws, levels).

    ``inf`` where ``most_steps`` do not suffice. Every start must have a positive product of relevant weights.

    >>> descent_times(np.ones((1, 3, 11)), 0.001, [0.49, 0.01])
    array([[501., 878.]])
    """
    v, u = split(weights)
    require(v.ndim == 2, "weights are (draws, k, n')")
    require(rate > 0, f"a rate must be positive, not {rate:g}")
    blocks = [laws(net) for net in u]
    v = np.array([_positive(start) for start in v])
    found = np.full((len(v), len(levels)), math.inf)
    for done in range(0, most_steps + 1, chunk):
        path = np.empty((chunk, *v.shape))
        for t in range(chunk):
            path[t] = v
            v = np.minimum(v + rate * _speed(v), 1e9)  # where the error has long been 0
        for d, level in zip(*np.nonzero(np.isinf(found)), strict=True):
            steps = _first_below(path[:, d], blocks[d], levels[level])
            found[d, level] = done + steps
        if np.all(np.isfinite(found)):
            break
    return np.where(found > most_steps, math.inf, found)


def _first_below(path: Floats, blocks: list[SignSum], level: float) -> float:
    """The first index of a rising path with an error below ``level``; inf where there is none."""
    if block_error(path[-1], blocks) >= level:
        return math.inf
    low, high = -1, len(path) - 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if block_error(path[middle], blocks) < level else (middle, high)
    return high
