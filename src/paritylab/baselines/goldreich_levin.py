"""Goldreich-Levin, in the form of Kushilevitz and Mansour: large Fourier coefficients from membership queries.

The search itself is :func:`paritylab.measures.heavy.heavy`.
"""

from __future__ import annotations

import math

from paritylab.baselines.sources import Guess, Queries
from paritylab.baselines.targets import Support, Term
from paritylab.measures.heavy import heavy


def find(queries: Queries) -> Guess:
    """The large coefficients that the labels' function has, if they are as many as it should have; a single one must be
    of size k. Intervals are those of normal estimates, from the last share of the queries."""
    if queries.budget < 2 * (queries.n + 1):
        return Guess(note="too few queries to split every input")
    bias, norm = 1 - 2 * queries.noise, queries.norm
    found = heavy(lambda x: queries.ask(x) / norm, queries.n, min(1.0, bias * queries.least / norm), queries.budget,
                  queries.generator, queries.k)
    if queries.count == 1 and [len(T) for T in found] != [queries.k]:
        return Guess(note=f"{len(found)} large coefficients, not one of size {queries.k}")
    if len(found) != queries.count:
        return Guess(note=f"{len(found)} large coefficients, not {queries.count}")
    share = queries.budget // (queries.n + 1)
    terms = tuple(_term(T, c, norm / bias, share) for T, c in found.items())
    return Guess(terms[0].support if queries.count == 1 else None, terms=terms)


def _term(support: Support, c: float, scale: float, share: int) -> Term:
    """A coefficient of a function whose mean square is 1, scaled, with the 95 % interval of a mean of ``share``."""
    reach = 1.96 * math.sqrt(max(0.0, 1 - c * c) / share)
    return Term(support, scale * c, scale * (c - reach), scale * (c + reach))
