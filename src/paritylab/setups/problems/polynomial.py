"""Polynomials of the inputs: real-valued targets, for regression losses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from paritylab.errors import InvalidInput, real, require, whole
from paritylab.setups.problems import bits
from paritylab.setups.problems.parity import Parity, positions


@dataclass(frozen=True, eq=False)
class Polynomial(Parity):
    """Learn a sum of parities with coefficients.

    Args:
        terms: pairs (coefficient, support), each support a set of positions. The remaining arguments are those of a
            Parity, whose own support here is the union of the terms' and plays no role.

    The label of an input is the polynomial's value there; accuracy counts the inputs where the network has its sign.

    >>> Polynomial(n=10, terms=[(0.5, (0, 1)), (-1.0, (2,))]).terms
    ((0.5, (0, 1)), (-1.0, (2,)))
    """

    terms: Sequence[tuple[float, Sequence[int]]] = ()

    def __post_init__(self) -> None:
        n = whole("n", self.n)
        try:
            pairs = [(c, support) for c, support in self.terms]
        except (TypeError, ValueError):
            raise InvalidInput(f"terms must be pairs (coefficient, support), not {self.terms!r}") from None
        place = "the support of a term"
        terms = tuple((real("a coefficient", c), positions(place, support, n)) for c, support in pairs)
        require(len(terms) > 0, "a Polynomial needs at least one term (coefficient, support)")
        object.__setattr__(self, "terms", terms)
        if self.support is None and self.k is None:
            object.__setattr__(self, "support", tuple(sorted({j for _, support in terms for j in support})))
        super().__post_init__()

    def labels(self, drawn: Any, mask: Any) -> Any:
        """The polynomial's values; the mask of a single support plays no role."""
        words = drawn if self.inputs is None else bits.pack(drawn)
        return sum(c * bits.parity(words, bits.mask(support, self.n)) for c, support in self.terms)

    def _identity(self) -> tuple[Any, ...]:
        return (*super()._identity(), self.terms)
