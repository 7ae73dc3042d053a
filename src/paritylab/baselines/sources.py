"""Where learners get their samples: the examples of one run of a Problem, or answers to membership queries."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import jax
import numpy as np

from paritylab import rng
from paritylab.errors import require
from paritylab.memory import Part, require_room
from paritylab.setups.problems.parity import Parity

Signs = np.ndarray
TESTED = 2048
"""Inputs on which predictions are judged."""


class Guess(NamedTuple):
    """What a learner concludes: a support, or a function from inputs to scores whose sign is the label, or neither.

    ``refused``: more samples would not help.
    """

    support: tuple[int, ...] | None = None
    predict: Callable[[Signs], np.ndarray] | None = None
    refused: bool = False
    note: str = ""


@dataclass(frozen=True)
class Examples:
    """Signs x (m, n) and labels y (m,), with what a learner may know beside them: k, the noise rate, random numbers."""

    x: Signs
    y: Signs
    k: int
    noise: float
    generator: np.random.Generator


@dataclass
class Queries:
    """Membership queries: ``ask`` the labels of inputs of one's choice, ``budget`` times in all.

    Each answer is flipped with probability ``noise``, independently, also where an input is asked again.
    """

    n: int
    k: int
    noise: float
    budget: int
    support: tuple[int, ...] = field(repr=False)
    generator: np.random.Generator
    used: int = 0

    def ask(self, x: Signs) -> Signs:
        self.used += len(x)
        require(self.used <= self.budget, f"only {self.budget} queries are allowed")
        labels = x[:, list(self.support)].prod(axis=1)
        return np.where(self.generator.random(len(x)) < self.noise, -labels, labels)


class Source:
    """The samples of one run of a Problem. Its first m examples are those that a network with ``sample=m`` trains on.

    >>> source = Source(Parity(n=8, k=2), run=0, seed=0)
    >>> few, more = source.examples(5), source.examples(500)
    >>> few.x.shape, bool(np.all(few.x == more.x[:5]))
    ((5, 8), True)
    """

    def __init__(self, problem: Parity, run: int = 0, seed: int = 0) -> None:
        self.problem, self._path = problem, (seed, run)
        self._key = rng.run_keys(np.array([seed]), np.array([run]))[0]
        self._x, self._y = np.zeros((0, problem.n), np.int8), np.zeros(0, np.int8)

    @property
    def support(self) -> tuple[int, ...]:
        return tuple(self.problem.support or ())

    def examples(self, m: int) -> Examples:
        if m > len(self._y):
            self._x, self._y = self._draw(max(256, 1 << (m - 1).bit_length()))
        return Examples(self._x[:m], self._y[:m], self.problem.degree, self.problem.noise, self._generator())

    def queries(self, budget: int) -> Queries:
        problem = self.problem
        return Queries(problem.n, problem.degree, problem.noise, budget, self.support, self._generator())

    def accuracy(self, guess: Guess) -> float:
        """The share of clean test inputs that a guess labels correctly; a guess of nothing counts as chance."""
        if guess.support == self.support:
            return 1.0
        if guess.support is None and guess.predict is None:
            return 0.5
        drawn = self.problem.draw(rng.stream(self._key, rng.EVALUATION), TESTED)
        x, y = self._signs(drawn), np.asarray(self.problem.labels(drawn, self.problem.mask))
        score = guess.predict(x) if guess.predict else x[:, list(guess.support or ())].prod(axis=1)
        return float(np.mean(score * y > 0))

    def _generator(self) -> np.random.Generator:
        return np.random.default_rng(self._path)

    def _draw(self, m: int) -> tuple[Signs, Signs]:
        n, words = self.problem.n, self.problem.words
        require_room(f"a sample of {n} inputs each", {"examples": Part(m, 6 * n + 8 * words + 16)})
        root = rng.stream(self._key, rng.SAMPLE)
        drawn = self.problem.draw(jax.random.fold_in(root, 0), m)
        labels = np.asarray(self.problem.labels(drawn, self.problem.mask))
        words = np.asarray(jax.random.bits(jax.random.fold_in(root, 1), (m,)))
        flips = (words < self.problem.flip) & (self.problem.noise > 0)
        return self._signs(drawn), np.where(flips, -labels, labels).astype(np.int8)

    def _signs(self, drawn: Any) -> Signs:
        x = np.asarray(self.problem.signs(drawn, self.problem.mask))
        require(bool(np.all(np.abs(x) == 1)), "baselines need inputs of -1 and +1")
        return x.astype(np.int8)
