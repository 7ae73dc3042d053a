"""Data of the user's own, in place of a law of inputs and a target."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from paritylab.errors import flag, require, whole
from paritylab.later import jnp
from paritylab.setups.problems.arrays import from_text, to_text
from paritylab.setups.problems.base import AnyProblem


@dataclass(frozen=True)
class Data(AnyProblem):
    """Learn the labels of given inputs; every run has the same examples, in an order of its own.

    The arrays are part of the Setup's JSON, in single precision, and so of its id.

    Args:
        x: inputs (examples, n), signs or other numbers.
        y: their labels (examples,), or (examples, outputs).
        eval_x: the inputs that runs are judged on, all of them at each check; ``x`` unless said.
        eval_y: their labels.
        replacement: how batches come from the examples: in passes, reshuffled each time, or with replacement.
        short_last: whether each pass ends with a batch of what is left.
        n: number of inputs, as ``x`` has it.

    >>> problem = Data([[1, 1], [1, -1], [-1, 1], [-1, -1]], [1, -1, -1, 1])
    >>> problem.n, problem.sample, problem.x
    (2, 4, 'signs 4x2 2A==')
    """

    x: Any = field(repr=False)
    y: Any = field(repr=False)
    eval_x: Any = field(default=None, repr=False)
    eval_y: Any = field(default=None, repr=False)
    replacement: bool = False
    short_last: bool = False
    n: int | None = None  # type: ignore[assignment]

    noise = 0.0  # labels are what they are

    def __post_init__(self) -> None:
        for name in ("x", "y", "eval_x", "eval_y"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, to_text(name, getattr(self, name)))
        require((self.eval_x is None) == (self.eval_y is None), "eval_x and eval_y come together")
        (x, y), (eval_x, eval_y) = self._examples, self._evaluated
        require(x.ndim == eval_x.ndim == 2, "x must have the shape (examples, n)")
        require(x.shape[1] == eval_x.shape[1], f"eval_x must have {x.shape[1]} inputs, as x has, not {eval_x.shape[1]}")
        require(len(x) == len(y) and len(eval_x) == len(eval_y),
                f"there must be a label for each input, not {len(y)} for {len(x)} and {len(eval_y)} for {len(eval_x)}")
        require(y.shape[1:] == eval_y.shape[1:], "y and eval_y must have the same outputs")
        given = x.shape[1] if self.n is None else whole("n", self.n)
        require(given == x.shape[1], f"n must be {x.shape[1]}, as x has it, not {given}")
        object.__setattr__(self, "n", given)
        object.__setattr__(self, "sample", len(x))
        object.__setattr__(self, "replacement", flag("replacement", self.replacement))
        object.__setattr__(self, "short_last", flag("short_last", self.short_last))
        require(not (self.short_last and self.replacement), "short_last=True is for a finite sample in passes")

    @functools.cached_property
    def _examples(self) -> tuple[np.ndarray, np.ndarray]:
        return from_text(self.x), from_text(self.y)

    @functools.cached_property
    def _evaluated(self) -> tuple[np.ndarray, np.ndarray]:
        return self._examples if self.eval_x is None else (from_text(self.eval_x), from_text(self.eval_y))

    @functools.cached_property
    def _all(self) -> tuple[np.ndarray, np.ndarray]:
        """Inputs and labels of the examples and, behind them, of what is evaluated if it is something else."""
        if self.eval_x is None:
            return self._examples
        x, y = (np.concatenate(both) for both in zip(self._examples, self._evaluated, strict=True))
        return x, y

    @property
    def shared(self) -> Data:
        return self

    @property
    def packed(self) -> bool:
        return False

    @property
    def support(self) -> None:
        return None

    @property
    def evaluated(self) -> int:
        return len(self._evaluated[0])

    def draw(self, key: Any, count: int, step: Any = None) -> Any:
        """Numbers of examples: what is drawn are their places."""
        return jnp.arange(count) % self.examples

    def draw_block(self, key: Any, block: Any, size: int) -> Any:
        """Numbers of inputs to evaluate on, behind those of the examples if they are others."""
        first = 0 if self.eval_x is None else self.examples
        return first + jnp.minimum(block * size + jnp.arange(size), self.evaluated - 1)

    def signs(self, drawn: Any, mask: Any = None) -> Any:
        return jnp.asarray(self._all[0])[drawn].astype(jnp.float32)

    def labels(self, drawn: Any, mask: Any) -> Any:
        return jnp.asarray(self._all[1])[drawn].astype(jnp.float32)
