"""Targets of any kind as tables: the values of a function of a few of the inputs, and which inputs those are."""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from paritylab.aliases import Floats
from paritylab.errors import InvalidInput, real, require, whole
from paritylab.measures.coefficients import character
from paritylab.setups.problems.functions import MOST_BITS, named

Terms = Sequence[tuple[float, Sequence[int]]]


@dataclass(frozen=True, eq=False)
class Target:
    """y(x) = values[index], where bit i of the index is set if input number ``inputs[i]`` is -1.

    >>> Target(np.array([1.0, -1.0, -1.0, 1.0]), (4, 7)).inputs  # x_4 x_7
    (4, 7)
    """

    values: Floats
    inputs: tuple[int, ...]

    def __post_init__(self) -> None:
        count = len(self.inputs)
        require(count <= MOST_BITS, f"a target reads at most {MOST_BITS} inputs here, not {count}")
        require(len(set(self.inputs)) == count and all(j >= 0 for j in self.inputs),
                f"a target reads different inputs, numbered from 0, not {list(self.inputs)}")
        require(np.shape(self.values) == (2**count,) and bool(np.isfinite(self.values).all()),
                f"a function of {count} inputs has 2^{count} finite values, not shape {np.shape(self.values)}")


def target(given: Any) -> Target:
    """The target that is meant.

    A Boolean function by name (``majority:3``) or a table of 2^b values reads the first b inputs; pairs (coefficient,
    support) are a sum of parities; a :class:`Target` says itself what it reads.

    >>> target("parity:2").values, target([(2.0, (5,)), (1.0, ())]).values
    (array([ 1., -1., -1.,  1.]), array([ 3., -1.]))
    """
    if isinstance(given, Target):
        return given
    if isinstance(given, str):
        values = named(given)
        return Target(values, tuple(range(len(values).bit_length() - 1)))
    if not isinstance(given, Iterable):
        raise InvalidInput(f"a target is a name, a table, or pairs (coefficient, support), not {given!r}")
    members: list[Any] = list(given)
    if members and all(isinstance(each, numbers.Real) for each in members):
        values = np.array(members, np.float64)
        return Target(values, tuple(range(len(values).bit_length() - 1)))
    return polynomial(terms(members))


def terms(given: Any) -> list[tuple[float, tuple[int, ...]]]:
    """Pairs (coefficient, support) with supports in order; those of equal support are added.

    >>> terms([(1.0, [2, 0]), (0.5, (0, 2)), (-1.0, [1])])
    [(1.5, (0, 2)), (-1.0, (1,))]
    """
    try:
        pairs = [(real("a coefficient", c), tuple(sorted(whole("a position", j) for j in s))) for c, s in given]
    except (TypeError, ValueError) as error:
        if isinstance(error, InvalidInput):
            raise
        raise InvalidInput(f"a sum of parities is pairs (coefficient, support), not {given!r}") from None
    require(len(pairs) > 0, "a sum of parities needs at least one pair (coefficient, support)")
    found: dict[tuple[int, ...], float] = {}
    for coefficient, support in pairs:
        require(len(set(support)) == len(support) and all(j >= 0 for j in support),
                f"a support has different inputs, numbered from 0, not {list(support)}")
        found[support] = found.get(support, 0.0) + coefficient
    return [(coefficient, support) for support, coefficient in found.items()]


def polynomial(terms: Terms) -> Target:
    """A sum of parities as a table of all inputs that it reads."""
    inputs = sorted({j for _, support in terms for j in support})
    require(len(inputs) <= MOST_BITS, f"a target reads at most {MOST_BITS} inputs here, not {len(inputs)}")
    values = np.zeros(2 ** len(inputs))
    for coefficient, support in terms:
        values += coefficient * character(np.isin(inputs, support))
    return Target(values, tuple(inputs))
