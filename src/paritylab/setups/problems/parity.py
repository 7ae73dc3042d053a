"""Parities: the product of a hidden subset of the inputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from paritylab import rng
from paritylab.errors import InvalidInput, require, whole
from paritylab.setups.problems import bits
from paritylab.setups.problems.base import AnyProblem, Inputs
from paritylab.setups.problems.targets import positions

RANDOM = "random"


@dataclass(frozen=True)
class Parity(AnyProblem):
    """Learn chi_S(x), the product of the inputs in S.

    Args:
        n: number of inputs.
        k: size of S = {0, ..., k-1}; by symmetry every S of size k is equally hard for a network that treats its
            inputs alike.
        support: S itself, instead of k; or ``"random"``, with k: each run has its own.
        noise: probability that a training label is flipped; 1/2 trains on pure noise. Evaluation is always clean.
        sample: None for a fresh batch each step, or the size m of a finite training sample.
        replacement: how batches come from a finite sample: in passes, reshuffled each time, or with replacement.
        inputs: None for uniform inputs in {-1, +1}^n, or a function ``(key, count, n) -> (count, n)`` of your own;
            a label is then the product of the signs on S.
        short_last: whether each pass over a finite sample ends with a batch of what is left (PyTorch's DataLoader);
            otherwise a batch goes on into the next pass.

    >>> Parity(n=30, k=3).support
    (0, 1, 2)
    """

    n: int
    k: int | None = None  # type: ignore[assignment]
    support: Sequence[int] | str | None = None  # type: ignore[assignment]
    noise: float = 0.0
    sample: int | None = None
    replacement: bool = False
    inputs: Inputs | None = None
    short_last: bool = False

    def __post_init__(self) -> None:
        self._validate()
        if self.k is not None:
            object.__setattr__(self, "k", whole("k", self.k))
            require(0 <= self.k <= self.n, f"k must be in 0..n={self.n}, not {self.k}")
        if isinstance(self.support, str):
            require(self.support == RANDOM and self.k is not None,
                    f"support must be positions, or {RANDOM!r} with k, not {self.support!r}")
        elif self.support is None:
            if self.k is None:
                raise InvalidInput("a Parity needs k, the size of the support, or support itself")
            object.__setattr__(self, "support", tuple(range(self.k)))
        else:
            support = positions("support", self.support, self.n)
            require(self.k in (None, len(support)), f"k={self.k} contradicts a support of size {len(support)}")
            object.__setattr__(self, "support", support)
            object.__setattr__(self, "k", len(support))
        require(self.inputs is None or callable(self.inputs), f"inputs must be a function, not {self.inputs!r}")

    @property
    def shared(self) -> Parity:
        return replace(self, k=0, support=(), noise=float(self.noise > 0))

    @property
    def sampler(self) -> Inputs | None:
        return self.inputs

    @property
    def mask(self) -> np.ndarray:
        return bits.mask(() if self.support == RANDOM else self.support or (), self.n)  # type: ignore[arg-type]

    def masks(self, keys: np.ndarray) -> np.ndarray:
        if self.support != RANDOM:
            return super().masks(keys)
        chosen = random_supports(keys, self.n, self.degree)
        return np.stack([bits.mask(support, self.n) for support in chosen.tolist()])

    def labels(self, drawn: Any, mask: Any) -> Any:
        """The parity of drawn inputs over the support with this mask."""
        return bits.parity(drawn if self.packed else bits.pack(drawn), mask)

    def with_sampler(self, function: Inputs) -> Parity:
        return replace(self, inputs=function)

    def __hash__(self) -> int:
        return hash(self._identity())

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self._identity() == other._identity()

    def _identity(self) -> tuple[Any, ...]:
        return (self.n, self.k, self.support, self.noise, self.sample, self.replacement, self.inputs, self.short_last)


def random_supports(keys: np.ndarray, n: int, k: int) -> np.ndarray:
    """The supports (runs, k) of runs with these keys: the places of the k smallest of n words, ties by place.

    >>> random_supports(rng.run_keys(np.zeros(2, int), np.arange(2)), 10, 3).shape
    (2, 3)
    """
    roots = rng.fold_in(keys, rng.SUPPORT)
    zeros = np.zeros((len(keys), n), np.uint32)
    a, b = rng.threefry(roots[:, :1], roots[:, 1:], zeros, zeros + np.arange(n, dtype=np.uint32))
    return np.sort(np.argsort(a ^ b, axis=1, kind="stable")[:, :k], axis=1)
