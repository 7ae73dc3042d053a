"""Names of users' functions: as text has them, and as users vouch for."""

from __future__ import annotations

import contextlib
import inspect
import re
from typing import Any

from paritylab.errors import require

MARK = "@"
"""What only users' functions have in a Setup's JSON: ``mine.loss@0123456789abcdef``, ``@my loss v2``."""


class Named:
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
    """A function (or network, transformation, learner) known by a name of your own.

    paritylab tells functions apart by what they compute, and rejects those of which it cannot know that: one that
    calls Python while it trains, or computes something else each time. A name takes the digest's place in the Setup's
    JSON and id. You vouch that it tells this function from all others: choose another whenever it computes something
    else.

    >>> import jax.numpy as jnp, paritylab as pl
    >>> cube = pl.named("cube v1", lambda z: jnp.power(z, 3))
    >>> pl.Setup(pl.Parity(8, 2), pl.Learner(pl.MLP(4, cube))).functions
    ['cube v1']
    """
    require(isinstance(name, str) and 0 < len(name) <= 100 and name == name.strip() and name.isprintable()
            and MARK not in name, f"a name must be up to 100 printable characters without {MARK!r}, not {name!r}")
    require(re.fullmatch("[0-9a-f]{16}", name) is None, f"a name must not look like a digest, as {name!r} does")
    require(not isinstance(value, Named), f"what is called {name!r} has a name already: {getattr(value, 'name', '')!r}")
    return Named(name, value)


def title(value: Any) -> str:
    """What a function, class or object goes by: ``module.qualname``, or the name that a user gave it.

    >>> title(title), title(Named("mine v1", abs))
    ('paritylab.functions.named.title', 'mine v1')
    """
    if not isinstance(value, Named):
        with contextlib.suppress(ValueError):  # it wraps itself
            value = inspect.unwrap(value)
    if isinstance(value, Named):
        return value.name
    holder = value if isinstance(getattr(value, "__qualname__", None), str) else type(value)
    return f"{getattr(holder, '__module__', '?')}.{holder.__qualname__}"


def written(value: Any) -> str:
    """How text names something of the user's whose program is not known: with a mark and nothing behind it.

    >>> written(written), written(Named("mine v1", abs))
    ('paritylab.functions.named.written@', '@mine v1')
    """
    from paritylab.functions.traced import Traced, TracedObject

    if isinstance(value, Traced | TracedObject):
        return value.spec
    return f"{MARK}{value.name}" if isinstance(value, Named) else f"{title(value)}{MARK}"
