"""Laws of inputs on {-1, +1}^n, as users write them; what engines draw from is in ``draws.py``."""

from __future__ import annotations

import dataclasses
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from paritylab.errors import InvalidInput, real, require, unknown, whole
from paritylab.setups.problems.draws import HALF, UNIT, Component

Components = list[tuple[float, Component]]
"""Independent inputs, each with its probability."""


class Law(ABC):
    """A law of inputs: a mixture of components in which inputs are independent, or copy one another."""

    @abstractmethod
    def components(self, n: int) -> Components:
        """Its components for n inputs."""


@dataclass(frozen=True)
class Uniform(Law):
    """All inputs are equally likely.

    >>> Uniform().components(2)
    [(1.0, Component(chances=(32768, 32768), copies=()))]
    """

    def components(self, n: int) -> Components:
        return [(1.0, Component((HALF,) * n))]


@dataclass(frozen=True)
class Biased(Law):
    """Independent inputs that are +1 with probability p: one number, or one for each. It is rounded to 2^-16.

    >>> Biased(0.75).components(2)
    [(1.0, Component(chances=(16384, 16384), copies=()))]
    """

    p: float | Sequence[float]

    def __post_init__(self) -> None:
        many = isinstance(self.p, (tuple, list)) or getattr(self.p, "ndim", 0)
        p = [probability("p", each) for each in self.p] if many else probability("p", self.p)  # type: ignore[union-attr]
        object.__setattr__(self, "p", tuple(p) if isinstance(p, list) else p)

    def components(self, n: int) -> Components:
        p = self.p if isinstance(self.p, tuple) else (self.p,) * n
        require(len(p) == n, f"a biased law with one p for each input needs {n} of them, not {len(p)}")
        return [(1.0, Component(tuple(round((1 - each) * UNIT) for each in p)))]  # type: ignore[operator]


@dataclass(frozen=True)
class Mixture(Law):
    """With probability rho the first law, otherwise the second.

    >>> [weight for weight, _ in Mixture(0.25, Biased(0.9)).components(3)]
    [0.25, 0.75]
    """

    rho: float
    first: Law
    second: Law = field(default_factory=Uniform)

    def __post_init__(self) -> None:
        object.__setattr__(self, "rho", probability("rho", self.rho))
        for name in ("first", "second"):
            object.__setattr__(self, name, law(getattr(self, name)))
            require(not isinstance(getattr(self, name), Sampler), "a mixture is of laws of this package, not functions")

    def components(self, n: int) -> Components:
        parts = ((self.rho, self.first), (1 - self.rho, self.second))
        return [(share * weight, component) for share, part in parts for weight, component in part.components(n)]


@dataclass(frozen=True)
class Active(Law):
    """Only some inputs vary, by a law; the others are +1.

    Args:
        bits: the positions that vary, or how many of the first.
        law: their law.

    >>> Active(1).components(2)
    [(1.0, Component(chances=(32768, 0), copies=()))]
    """

    bits: int | Sequence[int]
    law: Law = field(default_factory=Uniform)

    def __post_init__(self) -> None:
        many = isinstance(self.bits, (tuple, list, range)) or getattr(self.bits, "ndim", 0)
        bits = tuple(sorted({whole("a position", j) for j in self.bits})) if many else whole("bits", self.bits)  # type: ignore[union-attr]
        object.__setattr__(self, "bits", bits)
        object.__setattr__(self, "law", law(self.law))

    def components(self, n: int) -> Components:
        bits = self.bits if isinstance(self.bits, tuple) else tuple(range(self.bits))  # type: ignore[arg-type]
        require(all(0 <= j < n for j in bits), f"active inputs must be in 0..{n - 1}")
        return [(weight, part.without(set(range(n)) - set(bits))) for weight, part in self.law.components(n)]


@dataclass(frozen=True)
class Permuted(Law):
    """A law whose input j is at position ``places[j]``.

    >>> Permuted((1, 0), Biased([1.0, 0.5])).components(2)
    [(1.0, Component(chances=(32768, 0), copies=()))]
    """

    places: Sequence[int]
    law: Law

    def __post_init__(self) -> None:
        object.__setattr__(self, "places", tuple(whole("a place", j) for j in self.places))
        object.__setattr__(self, "law", law(self.law))
        require(sorted(self.places) == list(range(len(self.places))), "places must be a permutation of 0..n-1")

    def components(self, n: int) -> Components:
        require(len(self.places) == n, f"a permutation of {n} inputs has {n} places, not {len(self.places)}")
        return [(weight, part.moved(self.places)) for weight, part in self.law.components(n)]


@dataclass(frozen=True)
class Pairs(Law):
    """Pairs of inputs that agree more, or less, often than by chance.

    Args:
        pairs: pairs (i, j) of positions; the second follows the first.
        correlation: E x_i x_j, from -1 to 1.
        law: of all inputs but the second ones of the pairs.

    >>> Pairs([(0, 1)], 0.5).components(2)
    [(1.0, Component(chances=(32768, 16384), copies=((0, 1),)))]
    """

    pairs: Sequence[tuple[int, int]]
    correlation: float
    law: Law = field(default_factory=Uniform)

    def __post_init__(self) -> None:
        pairs = tuple((whole("a position", i), whole("a position", j)) for i, j in self.pairs)
        object.__setattr__(self, "pairs", pairs)
        object.__setattr__(self, "correlation", real("correlation", self.correlation))
        object.__setattr__(self, "law", law(self.law))
        require(-1 <= self.correlation <= 1, f"a correlation must be in -1..1, not {self.correlation:g}")
        second = [j for _, j in pairs]
        require(len(set(second)) == len(second) and not set(second) & {i for i, _ in pairs},
                "the second position of a pair must be in no other pair")

    def components(self, n: int) -> Components:
        require(all(0 <= j < n for pair in self.pairs for j in pair), f"pairs must hold positions in 0..{n - 1}")
        chance = round((1 - self.correlation) / 2 * UNIT)
        return [(weight, part.tied(self.pairs, chance)) for weight, part in self.law.components(n)]


@dataclass(frozen=True)
class Sampler(Law):
    """A function of your own, ``(key, count, n) -> (count, n)``; it is drawn on ``jax``."""

    function: Callable[[Any, int, int], Any]

    def __post_init__(self) -> None:
        require(callable(self.function), f"inputs must be a law or a function, not {self.function!r}")

    def components(self, n: int) -> Components:
        raise InvalidInput("a function of your own is no law that others could be made of")


def probability(name: str, value: Any) -> float:
    number = real(name, value)
    require(0 <= number <= 1, f"{name} must be a probability, not {number:g}")
    return number


SPECS = {
    "uniform": "uniform",
    "biased": "biased:P[,P,...]",
    "active": "active:BITS[,LAW]",
    "mixture": "mixture:RHO,LAW[,LAW]",
}


def law(given: Any) -> Law:
    """A law from its spec, a function of your own, or itself.

    >>> law("mixture:0.2,biased:0.9")
    Mixture(rho=0.2, first=Biased(p=0.9), second=Uniform())
    """
    if isinstance(given, Law):
        return given
    if callable(given):
        return Sampler(given)
    require(isinstance(given, str), f"inputs must be a law, its spec or a function, not {given!r}")
    name, _, tail = given.partition(":")
    if name not in SPECS:
        raise unknown("law of inputs", name, SPECS)
    texts = re.split(r",(?=[a-z])", tail) if tail else []
    try:
        numbers = [float(part) for part in texts[0].split(",")] if texts else []
    except ValueError:
        numbers = [math.nan, math.nan]
    made = _made(name, numbers, [law(text) for text in texts[1:]])
    if made is None:
        raise InvalidInput(f"a law of inputs is {SPECS[name]}, not {given!r}")
    return made


def _made(name: str, numbers: list[float], parts: list[Law]) -> Law | None:
    """The law of this name, or None if that is not what it takes."""
    if name == "uniform" and not numbers:
        return Uniform()
    if name == "biased" and numbers and not parts and not math.isnan(numbers[0]):
        return Biased(numbers[0] if len(numbers) == 1 else tuple(numbers))
    if name == "active" and len(numbers) == 1 and len(parts) <= 1:
        return Active(whole("bits", numbers[0]), *parts)
    if name == "mixture" and len(numbers) == 1 and 1 <= len(parts) <= 2:
        return Mixture(numbers[0], *parts)
    return None


def sampler_of(given: Law) -> Callable[[Any, int, int], Any] | None:
    return given.function if isinstance(given, Sampler) else None


def in_words(given: Law) -> str:
    """
    >>> in_words(law("mixture:0.2,biased:0.9"))
    'mixture(rho 0.2, first biased(p 0.9), second uniform)'
    """
    def said(value: Any) -> str:
        return in_words(value) if isinstance(value, Law) else f"{value:g}" if isinstance(value, float) else str(value)

    parts = ", ".join(f"{f.name} {said(getattr(given, f.name))}" for f in dataclasses.fields(given))  # type: ignore[arg-type]
    return type(given).__name__.lower() + (f"({parts})" if parts else "")
