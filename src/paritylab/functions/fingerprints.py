"""Fingerprints: names for users' functions that change when anything they compute with changes."""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from contextvars import ContextVar
from typing import Any

from paritylab.errors import require
from paritylab.functions import reachable
from paritylab.functions.reachable import title as name

MARK = "@"
"""What a user's function has in a Setup's JSON and nothing else has: ``mine.loss@0123456789ab`` or ``@my loss v2``."""

_MOMENT: ContextVar[dict[int, tuple[Any, Any]] | None] = ContextVar("moment", default=None)


def fingerprint(value: Any, called: Any = None) -> str:
    """A name for a user's function (or class, or object), by which a Setup's JSON, and so its id, knows it.

    It is ``module.qualname@digest``, of ``called`` if that says more, and cannot be turned back into the function. The
    digest covers all that the function reaches as it is now: code, what it captured, defaults, globals and the
    attributes of modules that it reads, classes and their bases, of installed libraries the versions.

    >>> fingerprint(named("steep v2", abs))
    '@steep v2'
    """
    if isinstance(value, Named):
        return f"{MARK}{value.name}"
    return at_this_moment(value, lambda: f"{name(value if called is None else called)}{MARK}{_digest(value)}")


def _digest(value: Any) -> str:
    return reachable.digest(value)[:12]


class Named(reachable.Vouched):
    """Anything of the user's under a name that they vouch for; otherwise just like it."""

    def __init__(self, name: str, value: Any) -> None:
        self.name, self.value = name, value

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return self.value(*arguments, **named)

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("__") or attribute == "value":  # not made yet: it is being copied
            raise AttributeError(attribute)
        return getattr(self.value, attribute)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Named) and other.name == self.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"named({self.name!r}, {self.value!r})"


def named(name: str, value: Any) -> Any:
    """A function (or network, transformation, or anything that a function uses) known by a name of the user's own.

    paritylab tells functions apart by all that they compute with, and refuses what it cannot follow: a lock, a cache, a
    module that is passed around. A name takes its place in the Setup's JSON and id: you vouch that it tells this
    function from all others, so choose another whenever the function computes something else.

    >>> import jax.numpy as jnp, paritylab as pl
    >>> cube = pl.named("cube v1", lambda z: jnp.power(z, 3))
    >>> pl.Setup(pl.Parity(8, 2), pl.Learner(pl.MLP(4, cube))).functions
    ['cube v1']
    """
    require(isinstance(name, str) and 0 < len(name) <= 100 and name == name.strip() and name.isprintable()
            and MARK not in name, f"a name must be up to 100 printable characters without {MARK!r}, not {name!r}")
    require(not isinstance(value, Named), f"what is called {name!r} has a name already: {getattr(value, 'name', '')!r}")
    return Named(name, value)


@contextlib.contextmanager
def moment() -> Generator[None, None, None]:
    """Within, everything is described once, when first met: what is measured together is of one moment."""
    if _MOMENT.get() is not None:
        yield
        return
    token = _MOMENT.set({})
    try:
        yield
    finally:
        _MOMENT.reset(token)


def at_this_moment(value: Any, make: Any) -> Any:
    """``make()``, once in a moment for each value."""
    known = _MOMENT.get()
    if known is None:
        return make()
    if id(value) not in known:
        known[id(value)] = value, make()  # the value stays alive: its address stays its own
    return known[id(value)][1]
