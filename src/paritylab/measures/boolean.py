"""Boolean functions of a few bits, and what their Fourier expansion says.

Values are in the order of :func:`paritylab.measures.fourier.cube` (bit j of an index is set where x_j = -1); where a
function speaks of true and false, true is -1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from paritylab.aliases import Floats
from paritylab.errors import require
from paritylab.measures.fourier import walsh_hadamard
from paritylab.measures.product import biased_coefficients
from paritylab.setups.problems.functions import named as named

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
