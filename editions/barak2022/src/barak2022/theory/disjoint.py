"""The disjoint-PolyNet f(x) = prod_i w_i.x_i over k blocks of n' inputs (Barak et al., 4.2 and B.3): its exact error.

The target is the product of the first input of every block. v_i is the weight of that input and u_i the other weights
of block i. An input with f(x) = 0 is an error.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.special  # pyright: ignore[reportMissingTypeStubs]
from numpy.typing import ArrayLike, NDArray

from paritylab.aliases import Floats
from paritylab.errors import require
from paritylab.measures.coefficients import lattice_spacing, midpoint_rule, sums

special: Any = scipy.special  # SciPy has no types
BERRY_ESSEEN = 0.56
MOST_ENUMERATED = 20


class SignSum:
    """The law of |u.z| for fixed numbers u and uniform signs z.

    Exact for up to 20 numbers and for multiples of one number (signs); otherwise an integral of the characteristic
    function, for Gaussian numbers within about 1e-4 from 21 of them on, 1e-6 from 30 and 1e-8 from 50.

    >>> law = SignSum(np.ones(4))
    >>> law.within(2.0), law.within(2.0, closed=False), law.within(1.0)
    (0.875, 0.375, 0.375)
    """

    def __init__(self, u: ArrayLike):
        numbers = np.asarray(u, np.float64)
        self.largest = float(np.abs(numbers).sum())
        spacing = lattice_spacing(numbers)
        self.atoms: Floats | None = None
        if spacing:
            masses = _lattice_masses(np.round(np.abs(numbers) / spacing).astype(np.int64))
            self._set_atoms(spacing * np.arange(len(masses)), masses)
        elif len(numbers) <= MOST_ENUMERATED:
            halves = np.sort(np.abs(sums(numbers)[: 2 ** (len(numbers) - 1)]))
            self._set_atoms(halves, np.full(len(halves), 1 / len(halves)))
        else:
            self.reach = min(self.largest, 8.5 * float(np.linalg.norm(numbers)))
            nodes, factors, _ = midpoint_rule(numbers, np.zeros(len(numbers), bool), self.reach, most=2048)
            self.nodes, self.factors = nodes, 2 * factors * np.cos(nodes[:, None] * numbers).prod(1)

    def _set_atoms(self, atoms: Floats, masses: Floats) -> None:
        self.atoms, self.cumulative = atoms, np.append(0.0, np.cumsum(masses))
        self.cumulative[-1] = 1.0

    def within(self, r: float, closed: bool = True) -> float:
        """P(|u.z| <= r), or P(|u.z| < r)."""
        if self.atoms is None:
            return 1.0 if r >= self.reach else float(np.clip(self.factors @ np.sin(self.nodes * r), 0.0, 1.0))
        slack = 1e-12 * self.largest
        place = np.searchsorted(self.atoms, r + slack if closed else r - slack, side="right" if closed else "left")
        return float(self.cumulative[place])


def _lattice_masses(sizes: NDArray[np.int64]) -> Floats:
    """P(|sum| = s) for s = 0, 1, ..., by adding one sign at a time."""
    total = int(sizes.sum())
    masses = np.zeros(2 * total + 1)
    masses[total] = 1.0
    for size in sizes[sizes > 0]:
        masses = (np.roll(masses, size) + np.roll(masses, -size)) / 2  # what wraps around is 0 still
    folded = masses[total:].copy()
    folded[1:] *= 2
    return folded


def split(weights: ArrayLike) -> tuple[Floats, Floats]:
    """Relevant weights (..., k) and the others (..., k, n' - 1)."""
    w = np.asarray(weights, np.float64)
    require(w.ndim >= 2 and w.shape[-1] >= 2, "a disjoint-PolyNet has weights (..., k, n') with n' at least 2")
    return w[..., 0], w[..., 1:]


def error(weights: ArrayLike) -> Floats:
    """P(sign f(x) != chi_S(x)) from the weights (..., k, n'), any signs of v; f = 0 counts as an error.

    A block is overruled with probability p = P(u.z > |v|) and tied with q = P(u.z = |v|), independently of the others:
    the error is 1 - (prod (1 - q) + sign(prod v) prod (1 - 2p - q))/2.

    >>> float(error(np.ones((2, 3)))), float(error([[3, 1, 1], [3, -1, 1]])), float(error([[3, 1, 1], [-3, 1, 1]]))
    (0.375, 0.0, 1.0)
    """
    v, u = split(weights)
    flat_v, flat_u = v.reshape(-1, v.shape[-1]), u.reshape(-1, *u.shape[-2:])
    return np.array([block_error(*net) for net in zip(flat_v, map(laws, flat_u), strict=True)]).reshape(v.shape[:-1])


def laws(u: Floats) -> list[SignSum]:
    return [SignSum(block) for block in u]


def block_error(v: Floats, blocks: list[SignSum]) -> float:
    """The error for relevant weights v and the laws of the blocks' other sums."""
    untied, ahead = 1.0, float(np.sign(v).prod())
    for r, law in zip(np.abs(v), blocks, strict=True):
        below, upto = law.within(r, closed=False), law.within(r)
        untied *= 1 - (upto - below) / (1 if r == 0 else 2)
        ahead *= (below + upto) / 2
    return 1 - (untied + ahead) / 2


def normal_error(weights: ArrayLike) -> Floats:
    """The error with every u.z taken as Gaussian.

    >>> float(normal_error([[3, 1, 1], [3, 1, 1]]).round(4))
    0.0333
    """
    v, u = split(weights)
    return 0.5 - 0.5 * np.sign(v).prod(-1) * _gaussian_within(v, u).prod(-1)


def sampled_error(weights: ArrayLike, samples: int, seed: int | np.random.Generator = 0) -> float:
    """The share of errors among fresh samples, for one net (k, n')."""
    v, u = split(weights)
    require(v.ndim == 1, "samples are drawn for one net at a time")
    generator = np.random.default_rng(seed)
    wrong = 0
    for start in range(0, samples, 2**14):
        z = generator.choice(np.array([-1.0, 1.0]), (min(2**14, samples - start), *u.shape))
        # By symmetry the relevant inputs may be taken as +1.
        wrong += int((((v + (u * z).sum(-1)).prod(-1)) <= 0).sum())
    return wrong / samples


def error_bounds(weights: ArrayLike, printed: bool = False) -> tuple[Floats, Floats]:
    """Lemma 6: a lower and an upper bound of the error for prod v > 0.

    As corrected, 1/2 - 1/2 prod min(1, erf + 2c sum|u|^3/|u|_2^3) and 2 sum exp(-v^2/(2|u|_2^2)), where erf is
    erf(|v|/(sqrt(2) |u|_2)) and c = 0.56; ``printed``: with c |u|_inf/|u|_2^3 and exp(-v^2/|u|_2^2), which can fail.

    >>> low, high = error_bounds([[6, 1, 1, 1, 1], [6, 1, 1, 1, 1]])
    >>> float(low.round(3)), float(high.round(3))
    (0.0, 0.044)
    """
    v, u = split(weights)
    require(bool(np.all(v.prod(-1) > 0)), "Lemma 6 is about relevant weights with a positive product")
    norm = np.linalg.norm(u, axis=-1)
    within = _gaussian_within(v, u)
    if printed:
        within = within + BERRY_ESSEEN * np.abs(u).max(-1) / norm**3
    else:
        within = np.minimum(1.0, within + 2 * BERRY_ESSEEN * (np.abs(u) ** 3).sum(-1) / norm**3)
    upper = 2 * np.exp(-((v / norm) ** 2) / (1 if printed else 2)).sum(-1)
    return 0.5 - 0.5 * within.prod(-1), upper


def _gaussian_within(v: Floats, u: Floats) -> Floats:
    return special.erf(np.abs(v) / (np.sqrt(2) * np.linalg.norm(u, axis=-1)))
