"""Boolean functions of a few bits, by name: their values on the cube, and what their Fourier expansion says.

Values are in the order of :func:`paritylab.measures.fourier.cube` (bit j of an index is set where x_j = -1); where a
function speaks of true and false, true is -1.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from paritylab.aliases import Floats
from paritylab.errors import InvalidInput, require, unknown
from paritylab.measures.fourier import cube, walsh_hadamard
from paritylab.measures.product import biased_coefficients

MOST_BITS = 20
ZERO = 1e-12


class Term(NamedTuple):
    """One parity of an expansion."""

    support: tuple[int, ...]
    coefficient: float


@dataclass(frozen=True, eq=False)
class Spectrum:
    """The Fourier expansion of a function of ``bits`` signs.

    >>> spectrum(named("staircase:3")).leap, spectrum(named("parity:3")).leap
    (1, 3)
    """

    coefficients: Floats

    @property
    def bits(self) -> int:
        return len(self.coefficients).bit_length() - 1

    @property
    def terms(self) -> list[Term]:
        """The parities that are there, small sets first."""
        largest = float(np.max(np.abs(self.coefficients)))
        places = np.flatnonzero(np.abs(self.coefficients) > ZERO * largest)
        found = [Term(tuple(j for j in range(self.bits) if place >> j & 1), float(self.coefficients[place]))
                 for place in places.tolist()]
        return sorted(found, key=lambda term: (len(term.support), term.support))

    @property
    def degree(self) -> int:
        """The size of the largest parity; 0 for a constant."""
        return max((len(term.support) for term in self.terms), default=0)

    @property
    def information_exponent(self) -> int | None:
        """The size of the smallest parity that is not constant; None if there is none."""
        return min((len(term.support) for term in self.terms if term.support), default=None)

    @property
    def leap(self) -> int:
        """How many new bits one must find at once, at worst, if parities are learned in the best order.

        Taking the parity with the fewest new bits first is best: bits that are known only make others cheaper.
        """
        left, known, leap = [set(term.support) for term in self.terms], set[int](), 0
        while left := [support - known for support in left if support - known]:
            nearest = min(left, key=len)
            leap, known = max(leap, len(nearest)), known | nearest
        return leap

    @property
    def weights(self) -> Floats:
        """The sum of squared coefficients at each degree."""
        sizes = np.array([int(place).bit_count() for place in range(len(self.coefficients))])
        return np.array([np.sum(self.coefficients[sizes == size] ** 2) for size in range(self.bits + 1)])


def spectrum(values: ArrayLike, p: ArrayLike | None = None) -> Spectrum:
    """The expansion of a function from its values on the cube.

    With ``p``, the probability of +1 of every bit or of each: the expansion in products of (x_j - mu_j) / sigma_j,
    the basis of ``measures.product``. Degree, exponent, leap and weights are then those of the biased law; the
    weights sum to the mean of the squared values under it.

    >>> spectrum(named("majority:3")).terms
    [Term(support=(0,), coefficient=0.5), Term(support=(1,), coefficient=0.5), Term(support=(2,), coefficient=0.5), \
Term(support=(0, 1, 2), coefficient=-0.5)]
    >>> spectrum(named("parity:3"), 0.75).leap
    1
    """
    table = np.asarray(values, float)
    require(table.ndim == 1 and bool(np.isfinite(table).all()), "a table holds finite numbers, one for each input")
    return Spectrum(walsh_hadamard(table) / len(table) if p is None else biased_coefficients(table, p))


def _majority(k: int) -> Floats:
    require(k % 2 == 1, f"a majority needs an odd number of bits, not {k}")
    return np.sign(cube(k).sum(axis=1))


def _mod(m: int, k: int) -> Floats:
    require(m >= 2, f"mod:M,K needs M of at least 2, not {m}")
    return np.where((cube(k) < 0).sum(axis=1) % m == 0, 1.0, -1.0)


def _tribes(width: int, tribes: int) -> Floats:
    agreed = np.any(np.all((cube(width * tribes) < 0).reshape(-1, tribes, width), axis=2), axis=1)
    return np.where(agreed, -1.0, 1.0)


def _address(a: int) -> Floats:
    x = cube(a + 2**a)
    place = (x[:, :a] < 0) @ (1 << np.arange(a))
    return x[np.arange(len(x)), a + place]


def _leap(*steps: int) -> Floats:
    x = cube(sum(steps))
    return np.sum([x[:, :size].prod(axis=1) for size in itertools.accumulate(steps)], axis=0)


def _random(k: int, seed: int = 0) -> Floats:
    return np.random.default_rng(seed).choice([-1.0, 1.0], 2**k)


@dataclass(frozen=True)
class _Named:
    words: str
    least: int
    most: int | None
    bits: Callable[[Sequence[int]], int]
    values: Callable[..., Floats]


NAMED = {
    "parity": _Named("parity:K", 1, 1, lambda n: n[0], lambda k: cube(k).prod(axis=1)),
    "majority": _Named("majority:K", 1, 1, lambda n: n[0], _majority),
    "mod": _Named("mod:M,K", 2, 2, lambda n: n[1], _mod),
    "tribes": _Named("tribes:WIDTH,TRIBES", 2, 2, lambda n: n[0] * n[1], _tribes),
    "address": _Named("address:A", 1, 1, lambda n: n[0] + 2 ** min(n[0], MOST_BITS), _address),
    "staircase": _Named("staircase:K", 1, 1, lambda n: n[0], lambda k: _leap(*[1] * k)),
    "leap": _Named("leap:K1,K2,...", 1, None, lambda n: sum(n), _leap),
    "random": _Named("random:K[,SEED]", 1, 2, lambda n: n[0], _random),
}


def named(spec: str) -> Floats:
    """The values of a function by name.

    ``parity:K``; ``majority:K``; ``mod:M,K``, +1 where the number of -1 among K bits is divisible by M;
    ``tribes:WIDTH,TRIBES``, -1 where all of some tribe are -1; ``address:A``, the one of 2^A bits that A others
    number; ``staircase:K``, x1 + x1 x2 + ... + x1 ... xK; ``leap:K1,K2,...``, the same with so many new bits at each
    step; ``random:K[,SEED]``.

    >>> named("majority:3").tolist()
    [1.0, 1.0, 1.0, -1.0, 1.0, -1.0, -1.0, -1.0]
    """
    name, _, text = spec.partition(":")
    if name not in NAMED:
        raise unknown("Boolean function", name, NAMED)
    kind = NAMED[name]
    try:
        numbers = [int(each) for each in text.split(",")] if text else []
    except ValueError:
        raise InvalidInput(f"a Boolean function is {kind.words}, with whole numbers, not {spec!r}") from None
    require(kind.least <= len(numbers) <= (kind.most or len(numbers)) and (len(numbers) > 0),
            f"a Boolean function is {kind.words}, not {spec!r}")
    seed = numbers[1:] if name == "random" else []
    require(all(each >= 1 for each in numbers[: len(numbers) - len(seed)]) and all(each >= 0 for each in seed),
            f"the numbers of {kind.words} must be at least 1, not {spec!r}")
    bits = kind.bits(numbers)
    require(bits <= MOST_BITS, f"a Boolean function has at most {MOST_BITS} bits here, not the {bits} of {spec!r}")
    return kind.values(*numbers)
