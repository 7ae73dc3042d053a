"""One learner on one run of a Problem: with so many samples, or with as few as it needs."""

from __future__ import annotations

import time
from typing import Any

from paritylab.baselines.records import Record, identity
from paritylab.baselines.registry import Method, method_for
from paritylab.baselines.sources import Source
from paritylab.errors import require
from paritylab.setups.problems.parity import Parity

THRESHOLD = 0.99


def learn(
    name: str, problem: Parity, samples: int | None = None, run: int = 0, seed: int = 0, threshold: float = THRESHOLD,
    learner: Any = None,
) -> Record:
    """Give a learner ``samples`` (all of a finite sample unless said) and see what it finds.

    Solved means: the support found is the right one, or, for a learner that only predicts, a share ``threshold`` of its
    predictions on clean inputs is right. ``learner`` is the network of ``sgd``.

    >>> learn("gaussian-elimination", Parity(n=30, k=3), samples=50).support
    (0, 1, 2)
    >>> learn("gaussian-elimination", Parity(n=30, k=3, noise=0.1), samples=50).note
    'inconsistent: the labels are noisy'
    """
    given = problem.sample if samples is None else samples
    require(given is not None, "say how many samples, or use a Problem with a finite sample")
    assert given is not None
    method = _checked(name, problem, given, run, seed, threshold)
    if method.find is None:
        return _train(problem, run, seed, given, threshold, learner)
    require(method.unit != "examples" or given <= (problem.sample or given),
            f"this Problem has {problem.sample} examples, not {given}")
    return _attempt(name, method, Source(problem, run, seed), given, run, threshold)


def needed(
    name: str, problem: Parity, run: int = 0, seed: int = 0, limit: int | None = None, threshold: float = THRESHOLD,
    learner: Any = None,
) -> Record:
    """The attempt with the fewest samples that solved this run; the last failure where none did up to ``limit``.

    An attempt with m samples gets the first m of the run. m doubles from the method's start until an attempt is solved
    (or refused: that ends the search), then the interval is halved until its relative length is at most the method's
    precision: success is taken to be monotone in m. Networks need no search: SGD stops when it has solved the run.

    >>> record = needed("gaussian-elimination", Parity(n=30, k=3))
    >>> record.status, record.samples
    ('solved', 31)
    """
    most = bound(name, problem, limit)
    method = _checked(name, problem, most, run, seed, threshold)
    if method.find is None:
        return _train(problem, run, seed, most, threshold, learner)
    if method.unit == "examples":
        most = min(most, problem.sample or most)
    source = Source(problem, run, seed)
    failed, given = 0, min(method.start(problem), most)
    record = _attempt(name, method, source, given, run, threshold)
    while record.status == "failed" and given < most:
        failed, given = given, min(2 * given, most)
        record = _attempt(name, method, source, given, run, threshold)
    while record.solved and record.samples - failed > max(1, method.precision * failed):
        middle = (failed + record.samples) // 2
        tried = _attempt(name, method, source, middle, run, threshold)
        if tried.solved:
            record = tried
        else:
            failed = middle
    return record


def bound(name: str, problem: Parity, limit: int | None = None) -> int:
    """The most samples that a search for a learner's need may give it: ``limit``, or the learner's own bound.

    >>> bound("gaussian-elimination", Parity(n=30, k=3))
    124
    """
    method = method_for(name, problem)
    most = min(method.limit(problem), method.most) if limit is None else limit
    require(1 <= most <= method.most, f"{name} takes from 1 to {method.most} {method.unit}, not {most}")
    return most


def _attempt(name: str, method: Method, source: Source, samples: int, run: int, threshold: float) -> Record:
    assert method.find is not None
    problem = source.problem
    given = source.queries(samples) if method.unit == "queries" else source.examples(samples)
    start = time.perf_counter()
    guess = method.find(given)
    seconds = time.perf_counter() - start
    accuracy = source.accuracy(guess)
    right = guess.support == source.support if guess.predict is None else accuracy >= threshold
    status = "refused" if guess.refused else "solved" if right else "failed"
    note = guess.note or ("" if right else "wrong support" if guess.support is not None else "")
    return Record(name, problem.n, problem.degree, problem.noise, run, status, samples, method.unit, seconds,
                  guess.support, accuracy, note, identity(problem))


def _train(problem: Parity, run: int, seed: int, limit: int, threshold: float, learner: Any) -> Record:
    from paritylab.baselines import sgd

    return sgd.train(problem, [run], seed, limit, threshold, learner)[0]


def _checked(name: str, problem: Parity, samples: int, run: int, seed: int, threshold: float) -> Method:
    bound(name, problem, samples)
    require(run >= 0, f"a run number must be at least 0, not {run}")
    require(0 <= seed < 2**32, f"seed must be in 0..2^32-1, not {seed}")
    check_threshold(threshold)
    return method_for(name, problem)


def check_threshold(threshold: float) -> None:
    require(0.5 < threshold <= 1, f"threshold must be above 1/2 and at most 1, not {threshold:g}")
