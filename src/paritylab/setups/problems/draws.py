"""How inputs of a law come from random words: the same in every engine, bit for bit.

Example e of a stream has words numbered from ``e * stride``: one for each 32 inputs, and three more that choose a
component, a law and a task where there is a choice. Threefry makes two words a and b of each number. A uniform word is
a ^ b. For inputs with other chances the word's sixteen digits are d_0 = a ^ b and d_i = mix(a + i (b | 1)), and input j
is -1 where the number with the binary digits of bit j of d_0, d_1, ... (each inverted) is below its chance: from the
last digit to the first, less = majority(chance's digit, d_i, less).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from paritylab.later import jax, jnp, random
from paritylab.setups.problems import bits

DIGITS = 16
UNIT = 1 << DIGITS
HALF = UNIT // 2
EXTRA = 3
"""Words of an example beside its inputs: they choose its component, its law and its task."""


@dataclass(frozen=True)
class Component:
    """Inputs that are drawn independently, after which some are multiplied by others.

    ``chances`` says of each how many times of 2^16 it is -1; for each of ``copies``, (i, j), in order, x_j is then
    multiplied by x_i.
    """

    chances: tuple[int, ...]
    copies: tuple[tuple[int, int], ...] = ()

    def without(self, fixed: Collection[int]) -> Component:
        """The same with these inputs at +1."""
        chances = tuple(0 if j in fixed else c for j, c in enumerate(self.chances))
        return Component(chances, tuple((i, j) for i, j in self.copies if j not in fixed))

    def moved(self, places: Sequence[int]) -> Component:
        """The same with input j at places[j]."""
        chances = [0] * len(self.chances)
        for j, place in enumerate(places):
            chances[place] = self.chances[j]
        return Component(tuple(chances), tuple((places[i], places[j]) for i, j in self.copies))

    def tied(self, pairs: Sequence[tuple[int, int]], chance: int) -> Component:
        """The same where each pair's second input is its first, multiplied by -1 with this chance."""
        second = {j for _, j in pairs}
        chances = tuple(chance if j in second else c for j, c in enumerate(self.chances))
        kept = tuple((i, j) for i, j in self.copies if j not in second)
        return Component(chances, (*kept, *pairs))

    @property
    def uniform(self) -> bool:
        return not self.copies and set(self.chances) <= {HALF}


@dataclass(frozen=True, eq=False)
class Drawn:
    """A law as engines draw it: for each component its chances as words of digits, first digit first."""

    cumulative: np.ndarray
    """(components - 1,): component c is chosen by a word that is at least this number c - 1, and below number c."""
    planes: np.ndarray
    """(components, digits, words)"""
    always: np.ndarray
    """(components, words): inputs that are always -1."""
    copies: tuple[tuple[tuple[int, int], ...], ...]

    @property
    def plain(self) -> bool:
        """Whether uniform words are the inputs."""
        digits = self.planes[0]
        return len(self.planes) == 1 and not self.copies[0] and not digits[1:].any() and not self.always.any() and bool(
            np.all(digits[0] == bits.mask(range(self.inputs), self.inputs)))

    inputs: int = 0


def drawn(components: Sequence[tuple[float, Component]], n: int) -> Drawn:
    """The numbers that a law's components are drawn with."""
    parts = [(weight, component) for weight, component in components if weight > 0]
    shares = np.cumsum([weight for weight, _ in parts])[:-1]
    chances = np.array([component.chances for _, component in parts], np.int64)
    shifts = range(DIGITS - 1, -1, -1)
    digits = [[bits.mask(np.flatnonzero(row >> shift & 1).tolist(), n) for shift in shifts] for row in chances]
    return Drawn(
        cumulative=np.minimum(np.round(shares * 2.0**32), 2**32 - 1).astype(np.uint32),
        planes=np.array(digits, np.uint32).reshape(len(parts), DIGITS, -1),
        always=np.array([bits.mask(np.flatnonzero(row >= UNIT).tolist(), n) for row in chances], np.uint32),
        copies=tuple(component.copies for _, component in parts),
        inputs=n,
    )


def words_at(key: Any, numbers: Any) -> tuple[Any, Any]:
    """Both words of each of these numbers under a key."""
    flat = jnp.asarray(numbers, jnp.uint32).reshape(-1)
    made = random.threefry_2x32(jax.random.key_data(key), jnp.concatenate([jnp.zeros_like(flat), flat]))
    return made[: flat.size].reshape(numbers.shape), made[flat.size :].reshape(numbers.shape)


def mix(x: Any) -> Any:
    """A bijection of 32-bit words whose output bits depend on all input bits (the finaliser of MurmurHash3)."""
    x = (x ^ (x >> 16)) * np.uint32(0x85EBCA6B)
    x = (x ^ (x >> 13)) * np.uint32(0xC2B2AE35)
    return x ^ (x >> 16)


def inputs_of(law: Drawn, a: Any, b: Any, choice: Any) -> Any:
    """Packed inputs (count, words) from both words of each; the word ``choice`` (count,) chooses a component."""
    if law.plain:
        return a ^ b
    made = [_component(law, c, a, b) for c in range(len(law.planes))]
    found = made[0]
    for c in range(1, len(made)):
        found = jnp.where((choice >= law.cumulative[c - 1])[:, None], made[c], found)
    return found


def _component(law: Drawn, c: int, a: Any, b: Any) -> Any:
    less = jnp.zeros_like(a)
    for i in reversed(range(DIGITS)):
        plane = law.planes[c, i]
        if not law.planes[c, i:].any():
            continue  # the last digits of all chances are 0
        digit = a ^ b if i == 0 else mix(a + np.uint32(i) * (b | np.uint32(1)))
        less = (plane & digit) | (less & (plane | digit))
    less = less | law.always[c]
    for i, j in law.copies[c]:
        bit = (less[..., i // 32] >> np.uint32(i % 32)) & 1
        less = less.at[..., j // 32].set(less[..., j // 32] ^ (bit << np.uint32(j % 32)))
    return less


def high_word(a: Any, b: int) -> Any:
    """The upper half of the 64-bit products of words with a number."""
    low, high = a & 0xFFFF, a >> 16
    c, d = np.uint32(b & 0xFFFF), np.uint32(b >> 16)
    middle = ((low * c) >> 16) + ((high * c) & 0xFFFF) + ((low * d) & 0xFFFF)
    return high * d + ((high * c) >> 16) + ((low * d) >> 16) + (middle >> 16)
