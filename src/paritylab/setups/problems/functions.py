"""Boolean functions of a few bits, by name: their values on the cube.

Values are in the order of binary counting: bit j of an index is set where x_j = -1. Where a function speaks of true and
false, true is -1.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from paritylab.aliases import Floats
from paritylab.errors import InvalidInput, require, unknown

MOST_BITS = 20


def cube(n: int) -> Floats:
    """All 2^n inputs as rows of signs.

    >>> cube(2).tolist()
    [[1.0, 1.0], [-1.0, 1.0], [1.0, -1.0], [-1.0, -1.0]]
    """
    return 1.0 - 2.0 * ((np.arange(2**n)[:, None] >> np.arange(n)) & 1)


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


def steps(spec: str) -> list[int]:
    """The sizes of the parities that a staircase or leap, by a name that is known to be right, adds up.

    >>> steps("staircase:3"), steps("leap:1,3")
    ([1, 2, 3], [1, 4])
    """
    name, _, text = spec.partition(":")
    numbers = [int(each) for each in text.split(",")]
    return list(itertools.accumulate([1] * numbers[0] if name == "staircase" else numbers))
