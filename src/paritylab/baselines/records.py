"""What a learner made of a Problem: one Record, whatever the learner."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from paritylab.baselines.targets import Term
from paritylab.functions.named import MARK
from paritylab.functions.traced import Traced
from paritylab.setups.problems import AnyProblem
from paritylab.setups.setup import Setup, canonical, decode, encode
from paritylab.setups.words import problem_in_words
from paritylab.storage.records import CENSORED, DIVERGED, SOLVED, Records

if TYPE_CHECKING:
    import polars


@dataclass(frozen=True)
class Record:
    """How one run of a learner on a parity ended.

    ``status`` is ``solved``, ``failed``, or ``refused`` where the learner itself says that it cannot (``note`` says
    why). ``samples`` counts what the learner had been given by then, labelled examples or membership queries
    (``unit``); it is what the learner needed only if the status is ``solved``. ``support`` is what was found, None
    for a learner that predicts without naming one; ``accuracy`` is that of its predictions on clean inputs;
    ``seconds`` is the time of the attempt that ``samples`` counts, None where it was not measured. ``problem`` is the
    Problem as canonical JSON: n, k and noise do not say all of it. ``terms`` are the parities that were found with
    their coefficients and 95 % intervals, None for a learner that does not estimate them. ``function`` is the
    code of a learner of the user's own, in a word; empty for those of paritylab.
    """

    learner: str
    n: int
    k: int
    noise: float
    run: int
    status: str
    samples: int
    unit: str
    seconds: float | None
    support: tuple[int, ...] | None
    accuracy: float
    note: str = ""
    problem: str = ""
    terms: tuple[Term, ...] | None = None
    function: str = ""

    @property
    def solved(self) -> bool:
        return self.status == "solved"

    def to_dict(self) -> dict[str, Any]:
        """The record as plain values: the support as text such as ``0 1 2``, terms as JSON.

        >>> Record("low-degree", 9, 2, 0.0, 0, "solved", 99, "examples", 0.1, (1, 4), 1.0,
        ...        terms=(Term((1, 4), 0.5, 0.4, 0.6),)).to_dict()["terms"]
        '[[[1, 4], 0.5, 0.4, 0.6]]'
        """
        support = None if self.support is None else " ".join(map(str, self.support))
        terms = None if self.terms is None else json.dumps([
            [term.support, *(number if math.isfinite(number) else None for number in term[1:])] for term in self.terms])
        return {field.name: getattr(self, field.name) for field in fields(self)} | {"support": support, "terms": terms}

    @classmethod
    def from_dict(cls, row: dict[str, Any]) -> Record:
        """The inverse of :meth:`to_dict`; rows of earlier versions have no terms."""
        made, support, terms = dict(row), row["support"], row.get("terms")
        made["support"] = None if support is None else tuple(map(int, support.split()))
        made["terms"] = None if terms is None else tuple(_term(*each) for each in json.loads(terms))
        return cls(**made)


def _term(support: list[int], coefficient: float, low: float | None, high: float | None) -> Term:
    return Term(tuple(support), coefficient, -math.inf if low is None else low, math.inf if high is None else high)


def identity(problem: AnyProblem) -> str:
    """A Problem as canonical JSON.

    >>> from paritylab import Parity
    >>> identity(Parity(n=9, k=2)) == identity(Parity(n=9, support=(0, 1))) != identity(Parity(n=9, support=(0, 2)))
    True
    """
    return canonical(encode(settled(problem)))


def settled(problem: AnyProblem) -> AnyProblem:
    """The Problem with the user's functions as they are now, traced; as it is if they are."""
    functions = problem.sampler, getattr(problem, "target", None)
    return problem if any(isinstance(each, Traced) for each in functions) else Setup(problem).now().problem


def details(problem: str) -> str:
    """What a Problem, as canonical JSON, is beside its n, k and noise; of a plain parity, nothing.

    >>> from paritylab import Parity, Polynomial, Problem
    >>> details(identity(Parity(n=9, k=2, noise=0.1))), details(identity(Parity(n=9, support=(3, 4), sample=50)))
    ('', 'sample 50, support 3 4')
    >>> details(identity(Polynomial(9, terms=[(0.5, (0, 1)), (-1, (2,))])))
    'polynomial, terms 0.5:0,1 -1:2'
    >>> details(identity(Problem(9, "majority:3", "biased:0.3")))
    'table of 3 of 9 bits, biased(p 0.3)'
    """
    said = json.loads(problem) if problem else {}
    if said.get("type") == "problem" and MARK not in problem:
        return problem_in_words(decode(said, {}))
    kind, support = said.pop("type", "parity"), said.pop("support", [])
    if terms := said.pop("terms", None):
        said["terms"] = " ".join(f"{c:g}:{','.join(map(str, T))}" for c, T in terms)
    elif support != list(range(len(support))):
        said["support"] = " ".join(map(str, support))
    words = [] if kind == "parity" else [kind]
    words += [name if value is True else f"{name} {value}" for name, value in sorted(said.items())
              if name not in ("n", "k", "noise") and value not in (None, False)]
    return ", ".join(words)


def as_records(rows: Sequence[Record]) -> Records:
    """The same as Records of networks, samples in place of steps, so that all of ``pl.statistics`` applies.

    A run that was refused, and a network that diverged, can never be solved: both are ``diverged``. Whatever else was
    not solved is censored at the samples it was given.

    >>> rows = [Record("exhaustive", 9, 2, 0.0, run, status, 16, "examples", 0.1, None, 0.5)
    ...         for run, status in enumerate(["solved", "failed"])]
    >>> as_records(rows).t_c
    array([16, -1])
    """
    solved = np.array([row.solved for row in rows], bool)
    never = np.array([row.status == "refused" or row.note == "diverged" for row in rows], bool)
    samples = np.array([row.samples for row in rows], np.int64)
    return Records(
        run=np.array([row.run for row in rows]),
        status=np.where(solved, SOLVED, np.where(never, DIVERGED, CENSORED)),
        t_c=np.where(solved, samples, -1),
        steps=samples,
        accuracy=np.array([row.accuracy for row in rows]),
        loss=np.full(len(rows), np.nan),
    )


def frame(rows: Iterable[Record]) -> polars.DataFrame:
    """One row for each Record."""
    import polars as pl

    kinds: dict[str, Any] = {"int": pl.Int64(), "float": pl.Float64(), "float | None": pl.Float64(), "str": pl.String()}
    schema = {field.name: kinds.get(str(field.type), pl.String()) for field in fields(Record)}
    return pl.DataFrame([row.to_dict() for row in rows], schema)
