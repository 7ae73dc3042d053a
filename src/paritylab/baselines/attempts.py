"""One learner on one run of a Problem: with so many samples, or with as few as it needs."""

from __future__ import annotations

import time
from typing import Any

from paritylab.baselines.own import Chosen, Learning, chosen
from paritylab.baselines.records import Record, identity
from paritylab.baselines.registry import check_reach
from paritylab.baselines.sources import Guess, Source
from paritylab.errors import require
from paritylab.setups.problems import AnyProblem

THRESHOLD = 0.99


def learn(
    method: Learning, problem: AnyProblem, samples: int | None = None, run: int = 0, seed: int = 0,
    threshold: float = THRESHOLD, learner: Any = None,
) -> Record:
    """Give a learner ``samples`` (all of a finite sample unless said) and see what it finds.

    ``method`` is the name of a learner, or one of your own (:func:`paritylab.baselines.learner`). Solved means: the
    support found is the right one; of a Polynomial, exactly its supports are found, each coefficient to within half of
    the smallest; or, for a learner that only predicts, a share ``threshold`` of its predictions on clean inputs has the
    right sign. ``learner`` is the network of ``sgd``.

    >>> from paritylab import Parity, Polynomial
    >>> learn("gaussian-elimination", Parity(n=30, k=3), samples=50).support
    (0, 1, 2)
    >>> learn("gaussian-elimination", Parity(n=30, k=3, noise=0.1), samples=50).note
    'inconsistent: the labels are noisy'
    >>> from paritylab import Polynomial
    >>> record = learn("low-degree", Polynomial(n=10, terms=[(1, (0, 1)), (-0.5, (2,))]), samples=1000)
    >>> record.status, sorted((term.support, round(term.coefficient, 1)) for term in record.terms)
    ('solved', [((0, 1), 1.0), ((2,), -0.5)])
    """
    given = problem.sample if samples is None else samples
    require(given is not None, "say how many samples, or use a Problem with a finite sample")
    assert given is not None
    this = _checked(method, problem, given, run, seed, threshold)
    if this.method.find is None:
        return _train(problem, run, seed, given, threshold, learner)
    require(this.method.unit != "examples" or given <= (problem.sample or given),
            f"this Problem has {problem.sample} examples, not {given}")
    return _attempt(this, Source(problem, run, seed), given, run, threshold)


def needed(
    method: Learning, problem: AnyProblem, run: int = 0, seed: int = 0, limit: int | None = None,
    threshold: float = THRESHOLD, learner: Any = None,
) -> Record:
    """The attempt with the fewest samples that solved this run; the last failure where none did up to ``limit``.

    An attempt with m samples gets the first m of the run. m doubles from the method's start until an attempt is solved
    (or refused: that ends the search), then the interval is halved until its relative length is at most the method's
    precision: success is taken to be monotone in m. Networks need no search: SGD stops when it has solved the run.

    >>> from paritylab import Parity
    >>> record = needed("gaussian-elimination", Parity(n=30, k=3))
    >>> record.status, record.samples
    ('solved', 31)
    """
    most = bound(method, problem, limit)
    this = _checked(method, problem, most, run, seed, threshold)
    if this.method.find is None:
        return _train(problem, run, seed, most, threshold, learner)
    if this.method.unit == "examples":
        most = min(most, problem.sample or most)
    source = Source(problem, run, seed)
    failed, given = 0, min(this.method.start(problem), most)
    record = _attempt(this, source, given, run, threshold)
    while record.status == "failed" and given < most:
        failed, given = given, min(2 * given, most)
        record = _attempt(this, source, given, run, threshold)
    while record.solved and record.samples - failed > max(1, this.method.precision * failed):
        middle = (failed + record.samples) // 2
        tried = _attempt(this, source, middle, run, threshold)
        if tried.solved:
            record = tried
        else:
            failed = middle
    return record


def bound(method: Learning, problem: AnyProblem, limit: int | None = None) -> int:
    """The most samples that a search for a learner's need may give it: ``limit``, or the learner's own bound.

    >>> from paritylab import Parity
    >>> bound("gaussian-elimination", Parity(n=30, k=3))
    124
    """
    return _bound(chosen(method, problem), problem, limit)


def _bound(this: Chosen, problem: AnyProblem, limit: int | None) -> int:
    method = this.method
    most = min(method.limit(problem), method.most) if limit is None else limit
    require(1 <= most <= method.most, f"{this.name} takes from 1 to {method.most} {method.unit}, not {most}")
    return most


def _attempt(this: Chosen, source: Source, samples: int, run: int, threshold: float) -> Record:
    method = this.method
    assert method.find is not None
    problem = source.problem
    given = source.queries(samples) if method.unit == "queries" else source.examples(samples)
    start = time.perf_counter()
    guess = method.find(given)
    seconds = time.perf_counter() - start
    right, accuracy = source.judge(guess, threshold)
    status = "refused" if guess.refused else "solved" if right else "failed"
    return Record(this.name, problem.n, problem.degree, problem.noise, run, status, samples, method.unit, seconds,
                  guess.support, accuracy, guess.note or ("" if right else _what_is_wrong(guess, source)),
                  identity(problem), guess.terms, this.function)


def _what_is_wrong(guess: Guess, source: Source) -> str:
    if guess.predict is not None or (guess.support is None and guess.terms is None):
        return ""
    if source.support is not None:
        return "wrong support"
    return "wrong terms" if guess.terms is not None else "a support alone does not say what a polynomial's terms are"


def _train(problem: AnyProblem, run: int, seed: int, limit: int, threshold: float, learner: Any) -> Record:
    from paritylab.baselines import sgd

    return sgd.train(problem, [run], seed, limit, threshold, learner)[0]


def _checked(method: Learning, problem: AnyProblem, samples: int, run: int, seed: int, threshold: float) -> Chosen:
    this = chosen(method, problem)
    _bound(this, problem, samples)
    require(run >= 0, f"a run number must be at least 0, not {run}")
    require(0 <= seed < 2**32, f"seed must be in 0..2^32-1, not {seed}")
    check_threshold(threshold)
    check_reach(this.name, this.method, problem, threshold)
    return this


def check_threshold(threshold: float) -> None:
    require(0.5 < threshold <= 1, f"threshold must be above 1/2 and at most 1, not {threshold:g}")
