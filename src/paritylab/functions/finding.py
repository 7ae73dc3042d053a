"""Users' own functions found again: of those that are offered, the one whose fingerprint a text has.

Nothing that a text names is imported: only what a caller passes, and the modules that an option or the variable
``PARITYLAB_FUNCTIONS`` names (several with commas).
"""

from __future__ import annotations

import contextlib
import importlib
import os
import types
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Any

from paritylab.errors import InvalidInput, in_a_line, require
from paritylab.functions import fingerprints

VARIABLE = "PARITYLAB_FUNCTIONS"


class Offered:
    """Functions, classes and objects of the user's own that a text may mean; a module stands for all that is in it.

    ``written`` says how one of them is written in a text.

    >>> def cube(z):
    ...     return z**3
    >>> offered = Offered([cube], fingerprints.fingerprint)
    >>> offered.find(fingerprints.fingerprint(cube)) is cube
    True
    """

    def __init__(self, given: Iterable[Any], written: Callable[[Any], Any]) -> None:
        for each in (given := list(given)):
            require(not isinstance(each, str), f"functions= takes functions and modules, not the name {each!r}")
        self._things = [*_spread(given), *_spread(_in_environment())]
        self._written = written
        self.used = False

    def find(self, text: str) -> Any:
        """What a text calls ``module.name@digest``; one line says what is missing, or has changed."""
        name = text.rpartition(fingerprints.MARK)[0]
        alike = [each for each in self._things if _name(each) == name]
        found = self._first(alike, text)
        if found is not None:
            return found
        if name and alike:
            raise InvalidInput(f"{name} is not what it was: it is {self._or_why_not(alike[0])} now, not {text}")
        raise InvalidInput(f"a user's function cannot be rebuilt from its name: {text}; pass it, or its module, in"
                           " functions= (--functions MODULE of a command)")

    def whole(self, body: Any) -> Any:
        """An object that is written as this list or dictionary; None if there is none."""
        alike = [each for each in self._things
                 if isinstance(each, tuple) or hasattr(type(each), "__dataclass_fields__")]
        return self._first(alike, body)

    def _first(self, things: Iterable[Any], text: Any) -> Any:
        for each in things:
            if self._or_why_not(each) == text:
                self.used = True
                return each
        return None

    def _or_why_not(self, thing: Any) -> Any:
        try:
            return self._written(thing)
        except InvalidInput as error:
            return f"unknown ({error})"


@contextlib.contextmanager
def also_in(modules: Iterable[str]) -> Generator[None, None, None]:
    """Look for users' functions in the modules of these names too, here and in processes that are started meanwhile.

    >>> with also_in(["math"]):
    ...     Offered([], fingerprints.fingerprint).find(fingerprints.fingerprint(__import__("math").sqrt))
    <built-in function sqrt>
    """
    before, added = os.environ.get(VARIABLE), list(modules)
    for name in added:
        imported(name)
    if added:
        os.environ[VARIABLE] = ",".join([*added, *filter(None, [before])])
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(VARIABLE, None)
        else:
            os.environ[VARIABLE] = before


def imported(name: str) -> types.ModuleType:
    """The module that a user names; one line says why it cannot be imported.

    >>> imported("no_such_module")
    Traceback (most recent call last):
    ...
    paritylab.errors.InvalidInput: the module 'no_such_module' cannot be imported: No module named 'no_such_module'
    """
    try:
        return importlib.import_module(name)
    except Exception as error:
        raise InvalidInput(f"the module {name!r} cannot be imported: {in_a_line(error)}") from error


def _in_environment() -> list[types.ModuleType]:
    return [imported(name) for name in os.environ.get(VARIABLE, "").split(",") if name]


def _spread(given: Iterable[Any]) -> Iterator[Any]:
    for each in given:
        if isinstance(each, types.ModuleType):
            yield from (value for name, value in vars(each).items()
                        if not name.startswith("__") and not isinstance(value, types.ModuleType))
        else:
            yield each


def _name(thing: Any) -> str:
    """What stands before the mark where a thing is written; nothing for one that a user vouches for."""
    if isinstance(thing, fingerprints.Named):
        return ""
    if isinstance(spec := getattr(thing, "spec", None), str):  # a loss, a law, ... of paritylab's kinds
        return spec.rpartition(fingerprints.MARK)[0]
    return fingerprints.name(thing)
