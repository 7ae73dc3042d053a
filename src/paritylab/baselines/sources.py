"""Where learners get their samples: the examples of one run of a Problem, or answers to membership queries."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import jax
import numpy as np

from paritylab import rng
from paritylab.baselines.records import settled
from paritylab.baselines.targets import PARITIES, Target, Term, degree_of, kind_of, target_of
from paritylab.errors import InvalidInput, require
from paritylab.memory import Part, require_room
from paritylab.setups.problems import AnyProblem

Signs = np.ndarray
TESTED = 2048
"""Inputs on which predictions are judged."""


class Guess(NamedTuple):
    """What a learner concludes: a support, or the terms of a polynomial, or a function from inputs to scores whose sign
    is the label, or nothing.

    ``refused``: more samples would not help.
    """

    support: tuple[int, ...] | None = None
    predict: Callable[[Signs], np.ndarray] | None = None
    refused: bool = False
    note: str = ""
    terms: tuple[Term, ...] | None = None


@dataclass(frozen=True)
class Examples:
    """Signs x (m, n) and labels y (m,), with what a learner may know beside them: the size k of the (largest) parity,
    the noise rate, how many parities there are, the size of the smallest coefficient, random numbers."""

    x: Signs
    y: Signs
    k: int
    noise: float
    generator: np.random.Generator
    count: int = 1
    least: float = 1.0


@dataclass
class Queries:
    """Membership queries: ``ask`` the labels of inputs of one's choice, ``budget`` times in all.

    Each answer is flipped with probability ``noise``, independently, also where an input is asked again. Beside what is
    known with examples, ``norm`` is the root of the labels' mean square.
    """

    n: int
    k: int
    noise: float
    budget: int
    target: Target = field(repr=False)
    generator: np.random.Generator
    used: int = 0

    @property
    def count(self) -> int:
        return len(self.target.terms)

    @property
    def least(self) -> float:
        return self.target.least

    @property
    def norm(self) -> float:
        return self.target.norm

    def ask(self, x: Signs) -> np.ndarray:
        self.used += len(x)
        require(self.used <= self.budget, f"only {self.budget} queries are allowed")
        labels = self.target(x)
        return np.where(self.generator.random(len(x)) < self.noise, -labels, labels)


class Source:
    """The samples of one run of a Problem. Its first m examples are those that a network with ``sample=m`` trains on.

    >>> from paritylab import Parity
    >>> source = Source(Parity(n=8, k=2), run=0, seed=0)
    >>> few, more = source.examples(5), source.examples(500)
    >>> few.x.shape, bool(np.all(few.x == more.x[:5]))
    ((5, 8), True)
    """

    def __init__(self, problem: AnyProblem, run: int = 0, seed: int = 0) -> None:
        self.problem, self._path = settled(problem), (seed, run)
        self.kind, self.target, self._degree = kind_of(problem), target_of(problem), degree_of(problem)
        self._key = rng.run_keys(np.array([seed]), np.array([run]))[0]
        self._x, self._y = np.zeros((0, problem.n), np.int8), np.zeros(0, np.int8)

    @property
    def support(self) -> tuple[int, ...] | None:
        """That of a single parity."""
        return tuple(self.problem.support or ()) if self.kind in PARITIES else None

    def examples(self, m: int) -> Examples:
        if m > len(self._y):
            self._x, self._y = self._draw(max(256, 1 << (m - 1).bit_length()))
        known = (1, 1.0) if self.target is None else (len(self.target.terms), self.target.least)
        return Examples(self._x[:m], self._y[:m], self._degree, self.problem.noise, self._generator(), *known)

    def queries(self, budget: int) -> Queries:
        if self.target is None:
            raise InvalidInput(f"only sums of parities answer queries, not {type(self.problem).__name__}")
        return Queries(self.problem.n, self._degree, self.problem.noise, budget, self.target, self._generator())

    def judge(self, guess: Guess, threshold: float) -> tuple[bool, float]:
        """Whether a guess is right, and its accuracy.

        A prediction is right with an accuracy of ``threshold``, a support if it is the parity's, the terms of a
        polynomial if :meth:`Target.is_found` says so.
        """
        accuracy = self.accuracy(guess)
        if guess.predict is not None:
            return accuracy >= threshold, accuracy
        if self.support is not None:
            return guess.support == self.support, accuracy
        return self.target is not None and self.target.is_found(guess.terms or ()), accuracy

    def accuracy(self, guess: Guess) -> float:
        """The share of clean test inputs that a guess gives the label's sign; a guess of nothing counts as chance."""
        if guess.support is not None and guess.support == self.support:
            return 1.0
        if guess.support is None and guess.predict is None and guess.terms is None:
            return 0.5
        drawn = self.problem.draw(rng.stream(self._key, rng.EVALUATION), TESTED)
        x, y = self._signs(drawn), np.asarray(self.problem.labels(drawn, self.problem.mask))
        return float(np.mean(_scores(guess, x) * y > 0))

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
        labels = np.where(flips, -labels, labels)
        return self._signs(drawn), labels.astype(np.int8) if self.kind in PARITIES else labels.astype(np.float64)

    def _signs(self, drawn: Any) -> Signs:
        x = np.asarray(self.problem.signs(drawn, self.problem.mask))
        require(bool(np.all(np.abs(x) == 1)), "baselines need inputs of -1 and +1")
        return x.astype(np.int8)


def _scores(guess: Guess, x: Signs) -> np.ndarray:
    """What a guess says of inputs: its predictions, or the values of its parities."""
    if guess.predict is not None:
        return guess.predict(x)
    if guess.support is not None:
        return x[:, list(guess.support)].prod(axis=1)
    return Target({term.support: term.coefficient for term in guess.terms or ()})(x)
