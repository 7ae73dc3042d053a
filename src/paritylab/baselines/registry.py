"""The learners by name: what each does, what it is given, and how far a search for its need goes."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from paritylab.baselines import elimination, fixed_features, goldreich_levin, guessing, low_degree
from paritylab.baselines.search import samples_needed
from paritylab.baselines.sources import Guess
from paritylab.errors import InvalidInput, require, unknown
from paritylab.setups.problems import Parity, Polynomial

MOST_CANDIDATES = 10**9
MOST_GRAM = 2**14
"""The most examples of a kernel: its Gram matrix then takes 2 GiB."""


@dataclass(frozen=True)
class Method:
    """A learner: what it is, and ``find``, from Examples (or Queries) to a Guess; None for SGD, which the engines do.

    A search for its need begins at ``start`` samples, ends at ``limit`` unless said otherwise, and leaves a relative
    uncertainty of ``precision``. It takes at most ``most`` samples.
    """

    about: str
    find: Callable[[Any], Guess] | None
    limit: Callable[[Parity], int]
    start: Callable[[Parity], int] = lambda problem: 1
    unit: str = "examples"
    precision: float = 0.0
    most: int = 2**24
    candidates: Callable[[Parity], int] = lambda problem: 1
    noise_below_half: bool = True


def _supports(problem: Parity) -> int:
    return math.comb(problem.n, problem.degree)


def _low_supports(problem: Parity) -> int:
    return sum(math.comb(problem.n, size) for size in range(problem.degree + 1))


def _enough(supports: Callable[[Parity], int]) -> Callable[[Parity], int]:
    """Four times what Hoeffding's inequality says suffices to tell one support from the others."""
    return lambda problem: 4 * samples_needed(supports(problem), problem.noise)


def _everything(problem: Parity) -> int:
    return 2**problem.n


def _fixed(find: Callable[[Any], Guess], about: str) -> Method:
    return Method(about, find, lambda problem: 4096, lambda problem: 16, precision=0.1, most=MOST_GRAM,
                  noise_below_half=False)


METHODS: dict[str, Method] = {
    "gaussian-elimination": Method(
        "linear algebra over GF(2) on bit-packed rows; about n examples, refuses noisy labels",
        elimination.find, lambda problem: 2 * problem.n + 64, lambda problem: problem.n),
    "pooled-elimination": Method(
        "elimination on random subsets until one was clean; time (1 - noise)^-n",
        elimination.find_pooled, _enough(_everything), lambda problem: problem.n, precision=0.05),
    "exhaustive": Method(
        "the support of size k that agrees with most labels; about k log n examples, time n^k",
        guessing.find_exhaustive, _enough(_supports), candidates=_supports, precision=0.02),
    "random-search": Method(
        "random supports of size k until one fits the labels; about k log n examples, time n^k",
        guessing.find_random, _enough(_supports), candidates=_supports, precision=0.02),
    "low-degree": Method(
        "the largest of all estimated Fourier coefficients of degree at most k; time n^k",
        low_degree.find, _enough(_low_supports), candidates=_low_supports, precision=0.02),
    "goldreich-levin": Method(
        "Kushilevitz-Mansour: splits supports into buckets by membership queries; n log n queries, any k",
        goldreich_levin.find, lambda problem: 2**20, lambda problem: 2 * (problem.n + 1), "queries", 0.05, 2**30),
    "ntk": _fixed(fixed_features.find_ntk, "ridge regression with the tangent kernel of a wide ReLU network"),
    "gaussian-kernel": _fixed(fixed_features.find_gaussian, "ridge regression with a Gaussian kernel of width sqrt(n)"),
    "polynomial-kernel": _fixed(fixed_features.find_polynomial, "ridge regression with the kernel (1 + x.z / n)^k"),
    "random-features": _fixed(fixed_features.find_features, "ridge regression on 4096 random ReLU features"),
    "sgd": Method(
        "a network trained on fresh batches; batch times t_c examples",
        None, lambda problem: 32 * 100_000, lambda problem: 32, most=2**36, noise_below_half=False),
}


def descriptions() -> dict[str, str]:
    """What each learner is, in one line.

    >>> list(descriptions())[0]
    'gaussian-elimination'
    """
    return {name: method.about for name, method in METHODS.items()}


def method_for(name: str, problem: Any) -> Method:
    """The Method of that name; says in one line why it cannot be tried on this Problem."""
    if name not in METHODS:
        raise unknown("learner", name, METHODS)
    method = METHODS[name]
    if not isinstance(problem, Parity) or isinstance(problem, Polynomial):
        raise InvalidInput(f"baselines learn a Parity or LeakyParity, not {type(problem).__name__}")
    require(problem.noise < 0.5 or not method.noise_below_half,
            f"{name} needs noise below 1/2, not {problem.noise:g}")
    candidates = method.candidates(problem)
    require(candidates <= MOST_CANDIDATES,
            f"{name} would try {candidates:.2g} supports; allowed: {MOST_CANDIDATES:.0e}; lower n or k")
    return method
