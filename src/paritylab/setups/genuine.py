"""Named things that are what their name says: a loss called ``hinge`` with another function would share its id."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from paritylab.errors import InvalidInput
from paritylab.functions.fingerprints import fingerprint


class Named(Protocol):
    @property
    def spec(self) -> str: ...
    def functions(self) -> tuple[Any, ...]:
        """What it computes with; the first names it."""
        ...


T = TypeVar("T", bound=Named)
_KNOWN: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()


def known(made: T) -> T:
    """Remember what was made from its name."""
    _KNOWN[id(made)] = made
    return made


def genuine(kind: str, given: T, named: Callable[[str], T]) -> T:
    """A thing as it was given, if it is a user's by its fingerprint, or the one of its name; otherwise refused.

    >>> from paritylab.setups.losses import Loss, loss
    >>> loss(Loss("hinge", lambda f, y: f))
    Traceback (most recent call last):
    ...
    paritylab.errors.InvalidInput: a loss that goes by the name 'hinge' must be that one; pass your function itself
    """
    if "@" in given.spec or _KNOWN.get(id(given)) is given:
        return given
    try:
        same = _told(given) == _told(named(given.spec))
    except InvalidInput:
        same = False
    if not same:
        raise InvalidInput(f"a{'n' * (kind[0] in 'ai')} {kind} that goes by the name {given.spec!r} must be that one;"
                           " pass your function itself")
    return known(given)


def _told(thing: Named) -> tuple[object, str]:
    functions = thing.functions()
    return thing, fingerprint(functions, functions[0])
