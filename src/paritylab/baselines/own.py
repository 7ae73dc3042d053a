"""Learners of the user's own beside those of paritylab: a function of examples, known by its code."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from paritylab.baselines.registry import METHODS, Method, check, method_for
from paritylab.baselines.sources import Examples, Guess, Queries
from paritylab.baselines.targets import ANY, KINDS, SUMS, Term
from paritylab.errors import InvalidInput, in_a_line, require, unknown, whole
from paritylab.functions import code
from paritylab.functions.named import Named
from paritylab.setups.problems import AnyProblem
from paritylab.setups.problems.targets import positions

Function = Callable[[Any], Any]
Count = int | Callable[[AnyProblem], int]
Learning = Any
"""A learner: the name of one of paritylab's, a function of Examples, or what :func:`learner` made of one."""

RETURNS = "a support, a dictionary from supports to coefficients, a function from inputs to scores, a Guess or None"


@dataclass(frozen=True)
class Own(Method):
    """A learner of the user's own, made by :func:`learner`; it can still be called like the function."""

    name: str = ""
    function: Any = None

    def __call__(self, given: Any) -> Any:
        return self.function(given)

    def told(self, problem: AnyProblem) -> dict[str, Any]:
        """All that what it needs on a Problem depends on, as plain values."""
        return {"function": code.written(self.function), "unit": self.unit, "start": self.start(problem),
                "limit": self.limit(problem), "precision": self.precision}


def learner(
    function: Any = None, *, name: str | None = None, unit: str = "examples", targets: Sequence[str] | None = None,
    start: Count = 1, limit: Count = 4096, precision: float = 0.02, about: str = "",
) -> Any:
    """Make a learner of a function, or of an object with a method ``find``; also as a decorator.

    The function is given :class:`Examples` (or :class:`Queries`, with ``unit="queries"``) and returns what it found: a
    support, a dictionary from supports to coefficients (of a Polynomial), a function from inputs (count, n) to scores
    whose sign is the label, a :class:`Guess`, or None. It must use no randomness but ``examples.generator``.

    Args:
        function: what learns.
        name: what tables and figures call it; the function's own name unless said.
        unit: what it is given, ``examples`` or membership ``queries``.
        targets: the kinds of Problems that it can be given, of ``parity``, ``leaky-parity``, ``polynomial``, ``other``;
            all unless said (queries: all but ``other``).
        start: samples at which a search for its need begins; a number, or a function of the Problem.
        limit: the most samples that such a search gives it, likewise.
        precision: the relative uncertainty that the search leaves.
        about: one line on what it does.

    >>> from paritylab import Parity
    >>> @learner(limit=1000)
    ... def most_correlated(examples):
    ...     return np.argsort(-np.abs(examples.y @ examples.x))[: examples.k]
    >>> from paritylab import baselines
    >>> baselines.needed(most_correlated, Parity(n=20, k=1)).status
    'solved'
    """
    if function is None:
        return lambda given: learner(given, name=name, unit=unit, targets=targets, start=start, limit=limit,
                                     precision=precision, about=about)
    find = getattr(function, "find", None) or function
    require(callable(find), f"a learner is a function of examples, or has a method find, not {function!r}")
    called = _checked_name(function, name)
    require(unit in ("examples", "queries"), f"a learner is given examples or queries, not {unit!r}")
    allowed = SUMS if unit == "queries" else ANY
    for kind in targets or ():
        if kind not in allowed:
            raise unknown("kind of target", str(kind), [each for each in KINDS if each in allowed])
    require(0 <= precision < 1, f"the precision must be at least 0 and below 1, not {precision:g}")
    return Own(about or f"a learner of your own, {called}", lambda given: found_by(called, find, given),
               _count("limit", limit), _count("start", start), unit, precision,
               targets=tuple(targets or allowed), name=called, function=function)


def _checked_name(function: Any, name: str | None) -> str:
    if name is None:
        held = function.name if isinstance(function, Named) else getattr(function, "name", None)
        name = held or getattr(function, "__name__", None) or type(function).__name__
    require(isinstance(name, str) and 0 < len(name) <= 60 and name == name.strip() and name.isprintable()
            and not set(name) & set("@,<>"), f"a learner needs a name of up to 60 printable characters, without any of"
            f" '@,<>', not {name!r}: baselines.learner(function, name='mine')")
    require(name not in METHODS, f"{name!r} is the name of a learner of paritylab; choose another")
    return str(name)


def _count(what: str, given: Count) -> Callable[[AnyProblem], int]:
    if callable(given):
        return lambda problem: max(1, whole(what, given(problem)))
    number = whole(what, given)
    require(number >= 1, f"{what} must be at least 1, not {number}")
    return lambda problem: number


def found_by(name: str, find: Function, given: Examples | Queries) -> Guess:
    """What a user's function makes of samples; what it does wrong is named."""
    try:
        found = find(given)
    except InvalidInput:
        raise
    except Exception as error:
        size = given.budget if isinstance(given, Queries) else len(given.y)
        raise InvalidInput(f"{name} failed with {size} samples: {type(error).__name__}: {in_a_line(error)}") from error
    n = given.n if isinstance(given, Queries) else given.x.shape[1]
    return as_guess(name, found, n)


def as_guess(name: str, found: Any, n: int) -> Guess:
    """What a user's function returned, as a Guess.

    >>> as_guess("mine", [3, 1], 5).support
    (1, 3)
    >>> as_guess("mine", {(0, 1): 0.5}, 5).terms
    (Term(support=(0, 1), coefficient=0.5, low=-inf, high=inf),)
    """
    if found is None:
        return Guess()
    if isinstance(found, Guess):
        return found if found.predict is None else found._replace(predict=_scoring(name, found.predict))
    if isinstance(found, Mapping):
        terms = tuple(Term(positions(f"a support of {name}", T, n), float(c)) for T, c in found.items())
        return Guess(terms[0].support if len(terms) == 1 else None, terms=terms)
    if callable(found):
        return Guess(predict=_scoring(name, found))
    if isinstance(found, (Sequence, set, frozenset, np.ndarray)) and not isinstance(found, (str, bytes)):
        return Guess(positions(f"the support of {name}", list(found), n))
    raise InvalidInput(f"a learner returns {RETURNS}; {name} returned {found!r:.60}")


def _scoring(name: str, predict: Function) -> Function:
    def scores(x: np.ndarray) -> np.ndarray:
        try:
            made = np.asarray(predict(x), np.float64)
        except Exception as error:
            why = f"{type(error).__name__}: {in_a_line(error)}"
            raise InvalidInput(f"the predictions of {name} failed: {why}") from error
        require(made.shape == (len(x),), f"the predictions of {name} must have shape {(len(x),)}, not {made.shape}")
        return made

    return scores


class Chosen(NamedTuple):
    """A learner with its name, and for one of the user's own what its code is known by."""

    name: str
    method: Method
    function: str


def chosen(given: Learning, problem: Any) -> Chosen:
    """The learner that is meant; says in one line why it cannot be tried on this Problem."""
    if isinstance(given, str):
        return Chosen(given, method_for(given, problem), "")
    own = made(given)
    check(own.name, own, problem)
    return Chosen(own.name, own, code.shown(own.function))


def made(given: Learning) -> Own:
    """A learner of the user's own: a function, or an object with ``find`` and those options of :func:`learner` that it
    has as attributes."""
    if isinstance(given, Own):
        return given
    require(not isinstance(given, (numbers.Number, bytes, type(None))),
            f"a learner is a name or a function of examples, not {given!r}")
    said = ("unit", "targets", "start", "limit", "precision", "about") if hasattr(given, "find") else ()
    return learner(given, **{name: getattr(given, name) for name in said if hasattr(given, name)})


def name_of(given: Learning) -> str:
    """What tables call a learner.

    >>> name_of("sgd"), name_of(learner(lambda examples: (), name="nothing"))
    ('sgd', 'nothing')
    """
    return given if isinstance(given, str) else made(given).name
