"""What there is to find: the kinds of targets, and the terms of those that are sums of parities."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from paritylab.errors import require
from paritylab.measures.boolean import spectrum
from paritylab.setups.problems import AnyProblem, LeakyParity, Parity, Polynomial, Problem, Product, Sum, Table

Support = tuple[int, ...]

KINDS = {
    "parity": "a Parity",
    "leaky-parity": "a LeakyParity",
    "polynomial": "a Polynomial",
    "other": "any other Problem",
}
"""The kinds of targets, in words."""
PARITIES = ("parity", "leaky-parity")
SUMS = (*PARITIES, "polynomial")
ANY = tuple(KINDS)

_KIND_OF = {Parity.labels: "parity", LeakyParity.labels: "leaky-parity", Polynomial.labels: "polynomial"}
_ENUMERATED = 16
"""Inputs of a polynomial that are all tried; of more, as many random ones."""


class Term(NamedTuple):
    """A parity with its estimated coefficient, and the ends of a 95 % interval (infinite where there is none)."""

    support: Support
    coefficient: float
    low: float = -math.inf
    high: float = math.inf


def kind_of(problem: Any) -> str:
    """The kind of a Problem's target: it is told by the labels that the Problem's class gives.

    >>> kind_of(Parity(8, 2)), kind_of(Polynomial(8, terms=[(1, (0,))]))
    ('parity', 'polynomial')
    >>> kind_of(Problem(8, "staircase:3")), kind_of(Problem(8, "majority:3")), kind_of(Problem(8, [0, 1], "biased:0.3"))
    ('polynomial', 'polynomial', 'other')
    """
    require(isinstance(problem, AnyProblem), f"a learner is given a Problem, not {problem!r}")
    require(not isinstance(problem.support, str), "a learner is given one support, not a random one for each run")
    if isinstance(problem, Problem):
        known = {Product: "parity", Table: "polynomial",
                 Sum: "other" if getattr(problem.target, "sign", True) else "polynomial"}
        return known.get(type(problem.target), "other") if problem.simple and problem.scale == 1 else "other"
    return _KIND_OF.get(type(problem).labels, "other")


def in_words(problem: AnyProblem) -> str:
    """What a Problem is that no learner but those that predict can be given.

    >>> in_words(Problem(8, [0, 1], "biased:0.3")), in_words(Problem(8, Sum([(1, (0,)), (2, (1,))], sign=True)))
    ('a Problem with inputs that are not uniform', 'a Problem with a Sum')
    """
    if not isinstance(problem, Problem):
        return f"a {type(problem).__name__}"
    if problem.tasks:
        return "a Problem with tasks"
    if not problem.simple:
        return "a Problem with inputs that are not uniform"
    return "a Problem with a scale" if problem.scale != 1 else f"a Problem with a {type(problem.target).__name__}"


@dataclass(frozen=True)
class Target:
    """A sum of parities with coefficients, none of which is 0.

    >>> target = Target({(0, 1): 0.5, (2,): -1.0})
    >>> target.degree, target.least, target.most
    (2, 0.5, 1.5)
    >>> target(np.array([[1, -1, -1]]))
    array([0.5])
    """

    terms: dict[Support, float]

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Its values at signs x (count, n)."""
        return sum((c * x[:, list(T)].prod(axis=1) for T, c in self.terms.items()), np.zeros(len(x)))

    @property
    def degree(self) -> int:
        """The size of the largest support."""
        return max(map(len, self.terms))

    @property
    def least(self) -> float:
        """The size of the smallest coefficient."""
        return min(map(abs, self.terms.values()))

    @property
    def most(self) -> float:
        """The largest value that it could have."""
        return sum(map(abs, self.terms.values()))

    @property
    def norm(self) -> float:
        """The root of its mean square over uniform inputs."""
        return math.sqrt(sum(c * c for c in self.terms.values()))

    @cached_property
    def zeros(self) -> float:
        """The share of uniform inputs where it is 0, and has no sign."""
        inputs = sorted({j for T in self.terms for j in T})
        if len(inputs) <= _ENUMERATED:
            x = 1 - 2 * (np.arange(2 ** len(inputs))[:, None] >> np.arange(len(inputs)) & 1)
        else:
            x = np.random.default_rng(0).choice(np.array([-1, 1]), (2**_ENUMERATED, len(inputs)))
        place = {j: i for i, j in enumerate(inputs)}
        values = Target({tuple(place[j] for j in T): c for T, c in self.terms.items()})(x)
        return float(np.mean(np.abs(values) <= 1e-12 * self.most))

    def is_found(self, found: tuple[Term, ...]) -> bool:
        """Whether exactly its supports are found, each coefficient to within half of the smallest.

        >>> target = Target({(0, 1): 0.5, (2,): -1.0})
        >>> target.is_found((Term((2,), -0.8), Term((0, 1), 0.6))), target.is_found((Term((2,), -1.0),))
        (True, False)
        """
        named = {term.support: term.coefficient for term in found}
        return named.keys() == self.terms.keys() and all(
            abs(named[T] - c) < self.least / 2 for T, c in self.terms.items())


def target_of(problem: AnyProblem) -> Target | None:
    """The terms of a Problem's target; None if it is not known to be a sum of parities.

    >>> target_of(Polynomial(8, terms=[(1, (0, 1)), (2, (3,)), (-1, (0, 1))]))
    Target(terms={(3,): 2.0})
    >>> target_of(Problem(8, Table((5, 1), [1, 1, 1, -1]))).terms
    {(): 0.5, (5,): 0.5, (1,): 0.5, (1, 5): -0.5}
    """
    kind = kind_of(problem)
    if kind in PARITIES:
        return Target({tuple(problem.support or ()): 1.0})
    if kind == "other":
        return None
    if isinstance(table := problem.target, Table):  # type: ignore[attr-defined]
        found = spectrum(table.array).terms
        return Target({tuple(sorted(table.places[i] for i in term.support)): term.coefficient for term in found})
    terms: dict[Support, float] = {}
    for coefficient, support in problem.target.terms:  # type: ignore[attr-defined]
        terms[tuple(support)] = terms.get(tuple(support), 0.0) + coefficient
    terms = {T: c for T, c in terms.items() if c != 0}
    require(len(terms) > 0, "this Polynomial is 0 everywhere: there is nothing to find")
    return Target(terms)


def degree_of(problem: AnyProblem) -> int:
    """The largest parity that a learner looks for."""
    target = target_of(problem)
    return problem.degree if target is None else target.degree
