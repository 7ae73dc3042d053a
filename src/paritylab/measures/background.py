"""What the inputs off the target add to a unit's sum, under a product law.

Let c = w_A.x_A + b run over the inputs A that one side reads, with weights q(c), and t over the sums of all others.
Every population gradient follows from two lists: h(c) = E s(c + t) for each c, and Q(t) = sum_c q(c) s(c + t) for each
t. The sums t come with their law as atoms: all 2^B of them, or the points of a lattice.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from paritylab.aliases import Floats
from paritylab.errors import require
from paritylab.measures.coefficients import MOST_NODES

Function = Callable[[Any], Any]
BLOCK = 2**21
MOST_WAVES = 2**28


def step_means(c: Floats, q: Floats, t: Floats, mass: Floats, slack: float) -> tuple[Floats, Floats]:
    """h and Q for s(z) = 1[z > slack], by sorting both lists.

    >>> step_means(np.array([0.0, 2.0]), np.array([1.0, 1.0]), np.array([-1.0, 1.0]), np.array([0.25, 0.75]), 0.0)
    (array([0.75, 1.  ]), array([1., 2.]))
    """
    return _above(t, mass, slack - c), _above(c, q, slack - t)


def _above(places: Floats, weights: Floats, limits: Floats) -> Floats:
    """The weight of all places above each limit."""
    order = np.argsort(places)
    above = np.append(np.cumsum(weights[order][::-1])[::-1], 0.0)
    return above[np.searchsorted(places[order], limits, side="right")]


def function_means(c: Floats, q: Floats, t: Floats, mass: Floats, function: Function) -> tuple[Floats, Floats]:
    """h and Q for any function of arrays: every pair is visited."""
    h, Q = np.empty(len(c)), np.zeros(len(t))
    size = max(1, BLOCK // len(t))
    for start in range(0, len(c), size):
        part = slice(start, start + size)
        values = np.asarray(function(c[part, None] + t), np.float64)
        h[part] = values @ mass
        Q += q[part] @ values
    return h, Q


class Lattice(NamedTuple):
    """The law of a sum of lattice weights: its points, their probabilities, and E x_j 1[sum = point] for each j."""

    points: Floats
    masses: Floats
    signed: Floats


def lattice(weights: Floats, p: Floats, spacing: float) -> Lattice:
    """For weights that are multiples of the spacing. Only products of probabilities are added, so all digits hold.

    Inputs with the same |w_j| and the same chance of w_j x_j > 0 are alike; the law without one of them is made once.

    >>> lattice(np.array([1.0, -1.0]), np.array([0.75, 0.5]), 1.0).masses
    array([0.125, 0.5  , 0.375])
    """
    sizes = np.round(np.abs(weights) / spacing).astype(int)
    signs = np.where(weights < 0, -1.0, 1.0)
    chances = np.where(weights < 0, 1 - p, p)
    total = int(sizes.sum())
    signed, known = np.zeros((len(weights), total + 1)), dict[tuple[int, float], Floats]()
    for j, (size, chance) in enumerate(zip(sizes.tolist(), chances.tolist(), strict=True)):
        if (size, chance) not in known:
            rest = np.arange(len(weights)) != j
            law = _count_law(sizes[rest], chances[rest])
            known[size, chance] = np.zeros(total + 1)
            known[size, chance][size:] += chance * law
            known[size, chance][: len(law)] -= (1 - chance) * law
        signed[j] = signs[j] * known[size, chance]
    points = spacing * (2.0 * np.arange(total + 1) - total)
    return Lattice(points, _count_law(sizes, chances), signed)


def _count_law(sizes: Any, chances: Floats) -> Floats:
    """The law of a sum of sizes, each there with its chance."""
    law = np.ones(1)
    for size, chance in zip(sizes.tolist(), chances.tolist(), strict=True):
        grown = np.zeros(len(law) + size)
        grown[size:] = chance * law
        grown[: len(law)] += (1 - chance) * law
        law = grown
    return law


def integrals(
    c: Floats, q: Floats, weights: Floats, p: Floats, most: int = MOST_NODES
) -> tuple[Floats, Floats, float]:
    """h(c), sum_c q(c) E x_j 1[c + t > 0] for each j, and the estimated error, for steps and any weights.

    1[z > 0] = 1/2 + (1/pi) int_0^inf sin(tz) dt/t by the midpoint rule, as ``coefficients.integrate`` has it for
    uniform inputs. The transform of a sum is the product of E e^(i t w x) = cos(tw) + i mu sin(tw), and an input x_j
    in front makes its factor mu cos(tw) + i sin(tw). The error is what the products have left at the last nodes.
    """
    means = 2 * p - 1
    norm, centre = float(np.sqrt((weights**2).sum())), float(means @ weights)
    widest = float(np.abs(c).max()) + float(np.abs(weights).sum())
    reach = min(widest, float(np.abs(c + centre).max()) + 8.5 * norm)  # P(|w.x - mean| > 8.5 norm) < 1e-15 (Hoeffding)
    step = 2 * math.pi / (reach * (1 + 1e-9))
    count = max(math.ceil(18 / norm / step), 2)
    while True:
        late = (np.arange(count // 2, count) + 0.5) * step
        plain, swapped = _transforms(late, weights, means)
        error = 1e-15 + float(np.abs(swapped).mean(0).max() + np.abs(plain).mean())
        if error < 1e-13 or 2 * count > most:
            break
        count *= 2
    require(count * len(c) <= MOST_WAVES, f"the integral takes at most {MOST_WAVES} nodes times table entries, not"
            f" {count * len(c)}; weights on a lattice, or fewer than 41 inputs, need none")
    nodes = (np.arange(count) + 0.5) * step
    factors = step / (math.pi * nodes)
    h, others = np.full(len(c), 0.5), 0.5 * q.sum() * means
    size = max(1, BLOCK // max(len(c), len(weights)))
    for start in range(0, count, size):
        part = slice(start, start + size)
        plain, swapped = _transforms(nodes[part], weights, means)
        waves = np.exp(1j * np.outer(c, nodes[part]))
        h += (waves @ (factors[part] * plain)).imag
        others += ((factors[part] * (q @ waves)) @ swapped).imag
    return h, others, error * float(np.abs(q).sum())


def _transforms(nodes: Floats, weights: Floats, means: Floats) -> tuple[Any, Any]:
    """The transform of the sum at each node, and with x_j in front for each j, without a division."""
    angles = nodes[:, None] * weights
    cosines, sines = np.cos(angles), np.sin(angles)
    kept = cosines + 1j * means * sines
    left, right = np.ones_like(kept), np.ones_like(kept)
    np.cumprod(kept[:, :-1], axis=1, out=left[:, 1:])
    right[:, :-1] = np.cumprod(kept[:, :0:-1], axis=1)[:, ::-1]
    return kept.prod(1), left * (means * cosines + 1j * sines) * right
