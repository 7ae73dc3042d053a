"""Leaky parities (Daniely and Malach, 2020): the population's first gradient step, exactly, at any size.

Inputs s in {-1, +1}^n, seen by the network as x = s / sqrt(n), have law D_A: with probability ``leak`` the signs on A,
an odd number k of them, are all equal, otherwise s is uniform. The label f is the product of the signs on A. A hidden
unit starts as relu6(w.x + b) with w uniform on {-1, 0, 1}^n, b = 1/(8k) and output weight u uniform on [-n/k, n/k],
beside a twin with output weight -u: the network starts at 0, and the first step of rate 1 and decay 1/2 leaves

    w <- u E[x f sigma'],    b <- b + u E[f sigma'],    u <- E[f sigma].

These depend on w through three counts alone, its +1s and -1s on A and its non-zeros off A, by sums of fair signs; so
nothing of size n is ever stored. Signs, Lemma 7's alpha and the twins are corrected: docs/leaky.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daniely2020.theory.leaky import binomials as signs
from paritylab.aliases import Floats, Ints
from paritylab.errors import require

UPPER = 6.0
MOST_INPUTS = 2**50


@dataclass(frozen=True)
class Leaky:
    """The problem's sizes and its leak; ``upper`` is where the units saturate (infinite for plain ReLUs).

    >>> Leaky(n=101, k=3).bias
    0.041666666666666664
    """

    n: int
    k: int
    leak: float = 0.5
    upper: float = UPPER

    def __post_init__(self) -> None:
        require(self.k >= 3 and self.k % 2 == 1, f"leaky parities need an odd k of at least 3, not {self.k}")
        require(self.k < self.n <= MOST_INPUTS, f"n must be above k = {self.k} and at most 2^50, not {self.n}")
        require(0 <= self.leak <= 1, f"leak must be a probability, not {self.leak:g}")

    @property
    def bias(self) -> float:
        """The units' initial bias 1/(8k)."""
        return 1 / (8 * self.k)

    @property
    def reach(self) -> float:
        """Output weights start uniform on [-reach, reach]."""
        return self.n / self.k

    @property
    def ends(self) -> tuple[float, float]:
        """The sums T of signs with 0 < T/sqrt(n) + b < upper."""
        low = -math.sqrt(self.n) / (8 * self.k)
        return low, low + self.upper * math.sqrt(self.n)

    @property
    def values(self) -> Ints:
        """The k + 1 values of z, the sum of the signs on A."""
        return np.arange(-self.k, self.k + 1, 2)

    @property
    def labels(self) -> Floats:
        """The label at each z: the product of k signs with that sum."""
        return 1.0 - 2.0 * ((self.k - self.values) // 2 % 2)

    @property
    def uniform_law(self) -> Floats:
        """The law of z on the uniform half."""
        return signs.probability(self.k, (self.k - self.values) // 2)

    @property
    def law(self) -> Floats:
        """The law of z under D_A."""
        equal = np.abs(self.values) == self.k
        return (1 - self.leak) * self.uniform_law + self.leak * equal / 2


@dataclass(frozen=True)
class Units:
    """Hidden units at the start, as counts of w: +1s and -1s on A, non-zeros off A."""

    plus: Ints
    minus: Ints
    others: Ints

    @property
    def sum(self) -> Ints:
        """The sum of w over A."""
        return self.plus - self.minus

    def __len__(self) -> int:
        return len(self.plus)


def draw_units(sizes: Leaky, count: int, rng: np.random.Generator) -> tuple[Units, Floats]:
    """Units with w uniform on {-1, 0, 1}^n, and their output weights.

    >>> units, u = draw_units(Leaky(10**9, 7), 3, np.random.default_rng(0))
    >>> bool(np.all(abs(units.others / 1e9 - 2 / 3) < 1e-4)), len(u)
    (True, 3)
    """
    plus, minus, _ = rng.multinomial(sizes.k, [1 / 3] * 3, size=count).T
    units = Units(plus, minus, rng.binomial(sizes.n - sizes.k, 2 / 3, size=count))
    return units, rng.uniform(-sizes.reach, sizes.reach, count)


def counted(w: NDArray[Any], k: int) -> Units:
    """Weight vectors (count, n) with A = {0, ..., k-1} as counts."""
    on, off = w[:, :k], w[:, k:]
    return Units((on == 1).sum(1), (on == -1).sum(1), (off != 0).sum(1))


@dataclass(frozen=True)
class FirstGradient:
    """Correlations of the label with a unit's derivatives; x stands for signs, so weights have a factor u/sqrt(n).

    E[s_j f sigma'] is ``relevant`` for j in A, plus ``at_zero`` where w_j = 0 and ``along`` w_j elsewhere; it is
    ``off`` w_j for j outside A. E[f sigma'] is ``bias``, E[f sigma] is ``output``.
    """

    relevant: Floats
    at_zero: Floats
    along: Floats
    off: Floats
    bias: Floats
    output: Floats


def first_gradient(sizes: Leaky, units: Units) -> FirstGradient:
    """The exact population gradient of D_A at the start, in O(k) for each unit.

    >>> sizes = Leaky(7**10, 7)
    >>> good = first_gradient(sizes, Units(np.array([2]), np.array([2]), np.array([188316824])))
    >>> float(good.relevant[0].round(6)), float(good.bias[0]), float(good.off[0]), float(good.output[0])
    (0.254375, 0.0, 0.0, 0.0)
    """
    even, odd = uniform_gradient(sizes, units), leaked_gradient(sizes, units)
    names = FirstGradient.__dataclass_fields__
    return FirstGradient(**{name: (1 - sizes.leak) * getattr(even, name) + sizes.leak * getattr(odd, name)
                            for name in names})


def uniform_gradient(sizes: Leaky, units: Units) -> FirstGradient:
    """The gradient on the uniform half: Fourier coefficients of a slab of sums of signs.

    A zero of w on A makes all of them 0 but its own weight's.
    """
    k, (low, high) = sizes.k, sizes.ends
    zeros = k - units.plus - units.minus
    sign = 1.0 - 2.0 * (units.minus % 2)
    total = units.plus + units.minus + units.others
    none, one = zeros == 0, zeros == 1

    def where(mask: Any, value: Floats) -> Floats:
        return np.where(mask, sign * value, 0.0)

    return FirstGradient(
        relevant=np.zeros(len(units)),
        at_zero=where(one, signs.slab_coefficient(total, k - 1, low, high)),
        along=where(none, signs.slab_coefficient(total, k - 1, low, high)),
        off=where(none & (units.others > 0), signs.slab_coefficient(total, k + 1, low, high)),
        bias=where(none, signs.slab_coefficient(total, k, low, high)),
        output=where(none, signs.ramp_coefficient(total, k, low, high) / math.sqrt(sizes.n)),
    )


def leaked_gradient(sizes: Leaky, units: Units) -> FirstGradient:
    """The gradient on the equal-bits half, where w.s on A is W or -W, the sum of w over A."""
    (low, high), shift, others = sizes.ends, units.sum, units.others

    def open_at(a: Ints) -> Floats:
        """P[the unit is between its kinks | the signs on A contribute a]."""
        return signs.slab_probability(others, low - a, high - a)

    def turned(a: Ints) -> Floats:
        """Half of what one of the signs off A changes in it by being +1 instead of -1: a term for each end."""
        lower = np.ceil((others - low + a) / 2) - 1
        upper = np.floor((others - high + a) / 2)
        return (signs.probability(others - 1, lower) - signs.probability(others - 1, upper)) / 2

    def mean(a: Ints) -> Floats:
        return signs.ramp_mean(others, low - a, high - a) / math.sqrt(sizes.n)

    balanced = shift == 0
    return FirstGradient(
        relevant=(open_at(shift) + open_at(-shift)) / 2,
        at_zero=np.zeros(len(units)),
        along=np.zeros(len(units)),
        off=np.where(balanced | (others == 0), 0.0, (turned(shift) - turned(-shift)) / 2),
        bias=np.where(balanced, 0.0, (open_at(shift) - open_at(-shift)) / 2),
        output=np.where(balanced, 0.0, (mean(shift) - mean(-shift)) / 2),
    )


# --- good units -----------------------------------------------------------------------------------------------------


def good(sizes: Leaky, units: Units) -> NDArray[np.bool_]:
    """Lemma 7's good units: w sums to 0 over A, and at least a third of it off A is not 0."""
    return (units.sum == 0) & (3 * units.others >= sizes.n - sizes.k)


def balanced_share(k: int) -> float:
    """P[w sums to 0 over A] = sum_j C(k, 2j) C(2j, j) / 3^k.

    >>> [round(balanced_share(k), 3) for k in (3, 5, 7)]
    [0.259, 0.21, 0.18]
    """
    return sum(math.comb(k, 2 * j) * math.comb(2 * j, j) for j in range(k // 2 + 1)) / 3**k


def share_bound(k: int) -> float:
    """Lemma 7's bound on the share of good units, 1/(14 sqrt(k))."""
    return 1 / (14 * math.sqrt(k))


def central_probability(sizes: Leaky, units: Units) -> Floats:
    """Lemma 6's phi: P[k/sqrt(n) < sum off A + b < upper - k/sqrt(n)]."""
    low, high = sizes.ends
    return signs.slab_probability(units.others, low + sizes.k, high - sizes.k)


# --- whole networks, for sizes that fit ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Layer:
    """Hidden weights (units, n), biases (units,) and output weights (units,); A = {0, ..., k-1}."""

    w: Floats
    b: Floats
    u: Floats

    def features(self, s: NDArray[Any]) -> Floats:
        """relu6(w.x + b) at x = s / sqrt(n): (inputs, units)."""
        return np.clip(s @ self.w.T / math.sqrt(self.w.shape[1]) + self.b, 0, UPPER)


def start(sizes: Leaky, pairs: int, rng: np.random.Generator) -> Layer:
    """``pairs`` units and their twins with the same w and b and the opposite u: the network is 0."""
    w = rng.integers(-1, 2, (pairs, sizes.n)).astype(float)
    u = rng.uniform(-sizes.reach, sizes.reach, pairs)
    return Layer(np.concatenate([w, w]), np.full(2 * pairs, sizes.bias), np.concatenate([u, -u]))


def first_step(sizes: Leaky, layer: Layer) -> Layer:
    """The network after the population's first step: rate 1 on w, b and u, decay that erases w and u."""
    gradient = first_gradient(sizes, counted(layer.w, sizes.k))
    on = layer.w[:, : sizes.k]
    relevant = gradient.relevant[:, None] + np.where(on == 0, gradient.at_zero[:, None], gradient.along[:, None] * on)
    correlation = np.concatenate([relevant, gradient.off[:, None] * layer.w[:, sizes.k :]], axis=1)
    w = layer.u[:, None] * correlation / math.sqrt(sizes.n)
    return Layer(w, layer.b + layer.u * gradient.bias, gradient.output)


def sampled_step(layer: Layer, s: NDArray[Any], y: NDArray[Any]) -> Layer:
    """The same step with the mean over a sample of inputs s (count, n) and labels y instead of the population's."""
    n, half = layer.w.shape[1], len(layer.u) // 2
    z = s @ layer.w[:half].T / math.sqrt(n) + layer.b[:half]
    active = ((z > 0) & (z < UPPER)) * y[:, None]
    by_weight, by_bias = active.T @ s / (math.sqrt(n) * len(s)), active.mean(0)
    output = np.clip(z, 0, UPPER).T @ y / len(s)
    u = layer.u
    return Layer(u[:, None] * np.tile(by_weight, (2, 1)), layer.b + u * np.tile(by_bias, 2), np.tile(output, 2))


def draw_inputs(sizes: Leaky, count: int, rng: np.random.Generator) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """Inputs of D_A as signs (count, n), their labels, and which come from the uniform half."""
    s = 1.0 - 2.0 * rng.integers(0, 2, (count, sizes.n))
    uniform = rng.random(count) >= sizes.leak
    s[~uniform, : sizes.k] = 1.0 - 2.0 * rng.integers(0, 2, ((~uniform).sum(), 1))
    return s, s[:, : sizes.k].prod(1), uniform
