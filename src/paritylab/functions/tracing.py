"""JAX's memory of users' functions, kept apart for each state of them.

JAX remembers what it once traced by the function's identity: a compiled helper, the body of a scan. If a global that it
reads changes, JAX goes on with the old number. So whatever traces a user's function does so in the name of the Setup's
id, which changes with all that the function reads: what was traced in another name is not used.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import jax

if TYPE_CHECKING:
    from paritylab.setups.setup import Setup


class Made(Protocol):
    """Something compiled for Setups, which it knows."""

    @property
    def setups(self) -> tuple[Setup, ...]: ...


T = TypeVar("T", bound=Made)

_in_the_name_of = jax.make_user_context()
_NUMBERS = itertools.count()


def apart(*setups: Setup) -> AbstractContextManager[Any]:
    """Within, JAX uses no traces but those made in the name of these Setups; any, if no function is a user's."""
    ids = tuple(setup.id for setup in setups if setup.functions)
    return _in_the_name_of(ids) if ids else contextlib.nullcontext()


def traced_apart(function: Callable[..., Any], *setups: Setup) -> Callable[..., Any]:
    """A function that is always called so."""
    if not any(setup.functions for setup in setups):
        return function

    def called(*arguments: Any) -> Any:
        with apart(*setups):
            return function(*arguments)

    return called


def traced_anew(function: Callable[..., Any], *setups: Setup) -> Callable[..., Any]:
    """A function that is traced in no name but its own: for users' functions that no Setup's id knows."""
    name = (*(setup.id for setup in setups), next(_NUMBERS))

    def called(*arguments: Any) -> Any:
        with _in_the_name_of(name):
            return function(*arguments)

    return called


def current(cache: Callable[..., T], setups: Sequence[Setup], *rest: Any) -> T:
    """What an ``lru_cache`` holds for some Setups, made with functions that are still what they were then.

    An object can change, and another come to be as it was: equal to what is in the cache, which holds the first.
    """
    made = cache(*setups, *rest)
    if [setup.now() for setup in made.setups] != list(setups):
        cache.cache_clear()  # pyright: ignore[reportFunctionMemberAccess]
        made = cache(*setups, *rest)
    return made
