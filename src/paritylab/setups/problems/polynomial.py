"""Polynomials of the inputs: real-valued targets, for regression losses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from paritylab.errors import require
from paritylab.setups.problems import bits
from paritylab.setups.problems.base import AnyProblem, Inputs
from paritylab.setups.problems.targets import Sum, positions


@dataclass(frozen=True)
class Polynomial(AnyProblem):
    """Learn a sum of parities with coefficients.

    Args:
        terms: pairs (coefficient, support), each support a set of positions. The other arguments are those of a
            Parity; ``support`` is the union of the terms' unless said, and ``k`` its size.

    The label of an input is the polynomial's value there; accuracy counts the inputs where the network has its sign.
    For the sign of a polynomial, or other laws of inputs, see :class:`Problem`.

    >>> Polynomial(n=10, terms=[(0.5, (0, 1)), (-1.0, (2,))]).terms
    ((0.5, (0, 1)), (-1.0, (2,)))
    """

    n: int
    k: int | None = None  # type: ignore[assignment]
    support: Sequence[int] | None = None  # type: ignore[assignment]
    noise: float = 0.0
    sample: int | None = None
    replacement: bool = False
    inputs: Inputs | None = None
    terms: Sequence[tuple[float, Sequence[int]]] = ()
    short_last: bool = False

    def __post_init__(self) -> None:
        self._validate()
        for _, support in (target := Sum(self.terms)).terms:
            positions("the support of a term", support, self.n)
        object.__setattr__(self, "terms", target.terms)
        given = (target.bits if self.k is None else range(self.k)) if self.support is None else self.support
        support = positions("support", given, self.n)
        require(self.k in (None, len(support)), f"k={self.k} contradicts a support of size {len(support)}")
        object.__setattr__(self, "support", support)
        object.__setattr__(self, "k", len(support))
        require(self.inputs is None or callable(self.inputs), f"inputs must be a function, not {self.inputs!r}")

    @property
    def target(self) -> Sum:
        return Sum(self.terms)

    @property
    def shared(self) -> Polynomial:
        return replace(self, k=0, support=(), noise=float(self.noise > 0))

    @property
    def sampler(self) -> Inputs | None:
        return self.inputs

    def labels(self, drawn: Any, mask: Any) -> Any:
        return self.target.values(drawn if self.packed else bits.pack(drawn), self.n)

    def with_sampler(self, function: Inputs) -> Polynomial:
        return replace(self, inputs=function)
