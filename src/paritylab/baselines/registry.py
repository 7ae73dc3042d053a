"""The learners by name: what each does, what it is given, and how far a search for its need goes."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from paritylab.baselines import elimination, fixed_features, goldreich_levin, guessing, low_degree, targets
from paritylab.baselines.search import samples_needed
from paritylab.baselines.sources import Guess
from paritylab.baselines.targets import ANY, KINDS, PARITIES, SUMS, degree_of, kind_of, target_of
from paritylab.errors import InvalidInput, require, unknown
from paritylab.setups.problems import AnyProblem

MOST_CANDIDATES = 10**9
MOST_GRAM = 2**14
"""The most examples of a kernel: its Gram matrix then takes 2 GiB."""


@dataclass(frozen=True)
class Method:
    """A learner: what it is, and ``find``, from Examples (or Queries) to a Guess; None for SGD, which the engines do.

    A search for its need begins at ``start`` samples, ends at ``limit`` unless said otherwise, and leaves a relative
    uncertainty of ``precision``. It takes at most ``most`` samples. ``targets`` are the kinds of targets that it can
    find (of the table ``KINDS``), ``refuses`` says why it cannot find one of them after all; one that ``predicts``
    names neither support nor terms.
    """

    about: str
    find: Callable[[Any], Guess] | None
    limit: Callable[[AnyProblem], int]
    start: Callable[[AnyProblem], int] = lambda problem: 1
    unit: str = "examples"
    precision: float = 0.0
    most: int = 2**24
    candidates: Callable[[AnyProblem], int] = lambda problem: 1
    targets: tuple[str, ...] = PARITIES
    refuses: Callable[[AnyProblem], str] = lambda problem: ""
    predicts: bool = False


def _supports(problem: AnyProblem) -> int:
    return math.comb(problem.n, degree_of(problem))


def _low_supports(problem: AnyProblem) -> int:
    return sum(math.comb(problem.n, size) for size in range(degree_of(problem) + 1))


def _enough(supports: Callable[[AnyProblem], int]) -> Callable[[AnyProblem], int]:
    """Four times what Hoeffding's inequality says suffices to tell the smallest coefficient from zeros."""
    return lambda problem: math.ceil(4 * samples_needed(supports(problem), problem.noise) * _contrast(problem) ** 2)


def _contrast(problem: AnyProblem) -> float:
    """How many times as large as its smallest coefficient the values of a target may be; 1 of a parity."""
    target = target_of(problem)
    return 1.0 if target is None else target.most / target.least


def _queries(problem: AnyProblem) -> int:
    """2^20, or more where terms are small: a bucket's weight is told to the power -3/4 of the queries."""
    target = target_of(problem)
    return 2**20 if target is None else math.ceil(2**20 * (target.norm / target.least) ** (8 / 3))


def _everything(problem: AnyProblem) -> int:
    return 2**problem.n


def _fixed(find: Callable[[Any], Guess], about: str) -> Method:
    return Method(about, find, lambda problem: 4096, lambda problem: 16, precision=0.1, most=MOST_GRAM,
                  targets=ANY, predicts=True)


METHODS: dict[str, Method] = {
    "gaussian-elimination": Method(
        "linear algebra over GF(2) on bit-packed rows; about n examples, refuses noisy labels",
        elimination.find, lambda problem: 2 * problem.n + 64, lambda problem: problem.n),
    "pooled-elimination": Method(
        "elimination on random subsets until one was clean; time (1 - noise)^-n",
        elimination.find_pooled, _enough(_everything), lambda problem: problem.n, precision=0.05),
    "voted-elimination": Method(
        "elimination on 100 random subsets of n examples, and a vote; needs (1 - noise)^n of several per cent",
        elimination.find_voted, _enough(_everything), lambda problem: problem.n, precision=0.05),
    "exhaustive": Method(
        "the support of size k that agrees with most labels; about k log n examples, time n^k",
        guessing.find_exhaustive, _enough(_supports), candidates=_supports, precision=0.02),
    "random-search": Method(
        "random supports of size k until one fits the labels; about k log n examples, time n^k",
        guessing.find_random, _enough(_supports), candidates=_supports, precision=0.02),
    "low-degree": Method(
        "the largest of all estimated Fourier coefficients of degree at most k; time n^k",
        low_degree.find, _enough(_low_supports), candidates=_low_supports, precision=0.02, targets=SUMS,
        refuses=low_degree.refuses),
    "goldreich-levin": Method(
        "Kushilevitz-Mansour: splits supports into buckets by membership queries; n log n queries, any k",
        goldreich_levin.find, _queries, lambda problem: 2 * (problem.n + 1), "queries", 0.05, 2**30, targets=SUMS),
    "ntk": _fixed(fixed_features.find_ntk, "ridge regression with the tangent kernel of a wide ReLU network"),
    "gaussian-kernel": _fixed(fixed_features.find_gaussian, "ridge regression with a Gaussian kernel of width sqrt(n)"),
    "polynomial-kernel": _fixed(fixed_features.find_polynomial, "ridge regression with the kernel (1 + x.z / n)^k"),
    "random-features": _fixed(fixed_features.find_features, "ridge regression on 4096 random ReLU features"),
    "sgd": Method(
        "a network trained on fresh batches; batch times t_c examples",
        None, lambda problem: 32 * 100_000, lambda problem: 32, most=2**36, targets=ANY,
        predicts=True),
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
    check(name, METHODS[name], problem)
    return METHODS[name]


def check(name: str, method: Method, problem: Any) -> None:
    """Say in one line why a Method cannot be tried on a Problem, if it cannot."""
    kind = kind_of(problem)
    if kind not in method.targets:
        raise InvalidInput(f"{name} finds {in_words(method.targets)}, not {targets.in_words(problem)}, which can be"
                           f" given to {', '.join(able(kind))}")
    require(problem.noise < 0.5 or method.predicts, f"{name} needs noise below 1/2, not {problem.noise:g}")
    if why := method.refuses(problem):
        raise InvalidInput(f"{name} {why}")
    candidates = method.candidates(problem)
    require(candidates <= MOST_CANDIDATES,
            f"{name} would try {candidates:.2g} supports; allowed: {MOST_CANDIDATES:.0e}; lower n or k")


def check_reach(name: str, method: Method, problem: AnyProblem, threshold: float) -> None:
    """Refuse predictions that can never be right often enough: where a polynomial is 0, no sign is right."""
    if not method.predicts or kind_of(problem) != "polynomial" or not problem.packed:
        return
    target = target_of(problem)
    zeros = target.zeros if target else 0.0
    finders = [each for each in able("polynomial") if not METHODS[each].predicts]
    require(1 - zeros >= threshold, f"{name} predicts signs, but this polynomial is 0, without a sign, on"
            f" {100 * zeros:.3g} % of inputs, too many for the threshold {threshold:g}; its terms are found by"
            f" {', '.join(finders)}")


def able(kind: str) -> list[str]:
    """The learners that can find a kind of target.

    >>> able("polynomial")[:2]
    ['low-degree', 'goldreich-levin']
    """
    return [name for name, method in METHODS.items() if kind in method.targets]


def in_words(kinds: tuple[str, ...]) -> str:
    """
    >>> in_words(PARITIES)
    'a Parity or a LeakyParity'
    """
    words = [KINDS[kind] for kind in kinds]
    return " or ".join(filter(None, [", ".join(words[:-1]), words[-1]]))
