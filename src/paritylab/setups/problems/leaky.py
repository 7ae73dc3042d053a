"""Leaky parities: inputs that give the support away (Daniely and Malach, 2020)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from paritylab import rng
from paritylab.errors import real, require
from paritylab.later import jax, jnp
from paritylab.setups.problems import bits
from paritylab.setups.problems.parity import Parity


@dataclass(frozen=True, eq=False)
class LeakyParity(Parity):
    """Learn chi_S(x) where the inputs in S are all equal more often than by chance: D_A of Daniely and Malach (2020).

    Args:
        leak: probability that an input is drawn with equal signs on S (both signs equally likely, the rest uniform)
            instead of uniformly; the paper's D_A has 1/2. The other arguments are those of a Parity.

    A network sees signs in {-1, +1}; the paper's inputs are these, divided by sqrt(n).

    >>> LeakyParity(n=30, k=3).leak
    0.5
    """

    leak: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "leak", real("leak", self.leak))
        require(0 <= self.leak <= 1, f"leak must be a probability, not {self.leak:g}")
        require(self.inputs is None, "a LeakyParity has its own law of inputs")

    @property
    def numbered(self) -> int:
        return self.words + 1

    def draw(self, key: Any, count: int, step: Any = None) -> Any:
        """``count`` rows of packed uniform inputs with one word more, which says whether they leak and with what sign.

        The support is not known here; ``signs`` and ``labels`` apply the leak.
        """
        return jax.random.bits(key, (count, self.numbered))

    def draw_block(self, key: Any, block: Any, size: int) -> Any:
        width = self.numbered
        return rng.bits_at(key, block * size * width, size * width).reshape(size, width)

    def signs(self, drawn: Any, mask: Any = None) -> Any:
        return bits.unpack(self._leaked(drawn, self.mask if mask is None else mask), self.n)

    def labels(self, drawn: Any, mask: Any) -> Any:
        return bits.parity(self._leaked(drawn, mask), mask)

    def _leaked(self, drawn: Any, mask: Any) -> Any:
        """Packed inputs: the last word's lowest bit is the sign on the support if its other 31 bits fall below leak."""
        words, last = drawn[..., :-1], drawn[..., -1:]
        equal = (words & ~mask) | jnp.where(last & 1 == 1, mask, np.uint32(0))
        return jnp.where(last >> 1 < np.uint32(round(self.leak * 2**31)), equal, words)

    def _identity(self) -> tuple[Any, ...]:
        return (*super()._identity(), self.leak)
