"""Parities: the product of a hidden subset of the inputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from paritylab import rng
from paritylab.errors import InvalidInput, flag, real, require, whole
from paritylab.setups.problems import bits

Inputs = Callable[[Any, int, int], Any]


def positions(name: str, given: Any, n: int) -> tuple[int, ...]:
    """Distinct positions among n inputs, in order."""
    try:
        found = tuple(sorted(whole(f"a position of {name}", j) for j in given))
    except TypeError:
        raise InvalidInput(f"{name} must be a list of positions, not {given!r}") from None
    require(len(set(found)) == len(found) and all(0 <= j < n for j in found),
            f"{name} must hold distinct positions in 0..{n - 1}, not {list(found)}")
    return found


@dataclass(frozen=True)
class Parity:
    """Learn chi_S(x), the product of the inputs in S.

    Args:
        n: number of inputs.
        k: size of S = {0, ..., k-1}; by symmetry every S of size k is equally hard for a network that treats its
            inputs alike.
        support: S itself, instead of k.
        noise: probability that a training label is flipped; 1/2 trains on pure noise. Evaluation is always clean.
        sample: None for a fresh batch each step, or the size m of a finite training sample.
        replacement: how batches come from a finite sample: in passes, reshuffled each time, or with replacement.
        inputs: None for uniform inputs in {-1, +1}^n, or a function ``(key, count, n) -> (count, n)`` of your own;
            a label is then the product of the signs on S.

    >>> Parity(n=30, k=3).support
    (0, 1, 2)
    """

    n: int
    k: int | None = None
    support: Sequence[int] | None = None
    noise: float = 0.0
    sample: int | None = None
    replacement: bool = False
    inputs: Inputs | None = None

    def __post_init__(self) -> None:
        for name in ("n", "k", "sample"):
            if name == "n" or getattr(self, name) is not None:
                object.__setattr__(self, name, whole(name, getattr(self, name)))
        object.__setattr__(self, "noise", real("noise", self.noise))
        object.__setattr__(self, "replacement", flag("replacement", self.replacement))
        require(1 <= self.n <= 2**20, f"n must be in 1..{2**20}, not {self.n}")
        if self.support is None:
            if self.k is None:
                raise InvalidInput("a Parity needs k, the size of the support, or support itself")
            require(0 <= self.k <= self.n, f"k must be in 0..n={self.n}, not {self.k}")
            support = tuple(range(self.k))
        else:
            support = positions("support", self.support, self.n)
            require(self.k in (None, len(support)), f"k={self.k} contradicts a support of size {len(support)}")
        object.__setattr__(self, "support", support)
        object.__setattr__(self, "k", len(support))
        require(0 <= self.noise <= 1, f"noise must be a probability, not {self.noise:g}")
        require(self.sample is None or self.sample >= 1, f"a sample must hold at least 1 example, not {self.sample}")
        require(self.sample is None or self.sample < 2**31, f"a sample must be below 2^31, not {self.sample}")
        require(self.sample is not None or not self.replacement, "replacement=True needs a finite sample")
        require(self.inputs is None or callable(self.inputs), f"inputs must be a function, not {self.inputs!r}")

    @property
    def degree(self) -> int:
        """The size of the support."""
        return len(self.support or ())

    @property
    def examples(self) -> int:
        """The size of the finite sample; 0 for a fresh batch each step."""
        return self.sample or 0

    @property
    def words(self) -> int:
        return bits.words(self.n)

    @property
    def mask(self) -> np.ndarray:
        return bits.mask(self.support or (), self.n)

    @property
    def flip(self) -> int:
        """Labels are flipped where a 32-bit word falls below this."""
        return min(round(self.noise * 2**32), 2**32 - 1)

    def draw(self, key: Any, count: int) -> Any:
        """``count`` inputs as packed words if uniform, as reals (count, n) if the user's own."""
        if self.inputs is None:
            return jax.random.bits(key, (count, self.words))
        return self.inputs(key, count, self.n)

    def draw_block(self, key: Any, block: Any, size: int) -> Any:
        """Block number ``block`` of a long sample: consecutive rows of ``draw``, if the inputs are uniform."""
        if self.inputs is None:
            return rng.bits_at(key, block * size * self.words, size * self.words).reshape(size, self.words)
        return self.inputs(jax.random.fold_in(key, block), size, self.n)

    def signs(self, drawn: Any, mask: Any = None) -> Any:
        """What a network sees of drawn inputs; their law may depend on the support with this mask (its own if None)."""
        return bits.unpack(drawn, self.n) if self.inputs is None else drawn

    def labels(self, drawn: Any, mask: Any) -> Any:
        """The parity of drawn inputs over the support with this mask."""
        return bits.parity(drawn if self.inputs is None else bits.pack(drawn), mask)

    def __hash__(self) -> int:
        return hash(self._identity())

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self._identity() == other._identity()

    def _identity(self) -> tuple[Any, ...]:
        return (self.n, self.support, self.noise, self.sample, self.replacement, self.inputs)
