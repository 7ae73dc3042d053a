"""What a user did wrong, said in one line."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class InvalidInput(ValueError):
    """A value the user gave cannot be used. The message is one line: what was wrong and what is allowed."""


def unknown(kind: str, name: str, allowed: Iterable[str]) -> InvalidInput:
    """The error for a name that is not in a table, with the nearest known name suggested.

    >>> print(unknown("loss", "hing", ["hinge", "square"]))
    unknown loss 'hing' (did you mean 'hinge'?); allowed: hinge, square
    """
    names = list(allowed)
    near = difflib.get_close_matches(name, names, n=1)
    hint = f" (did you mean {near[0]!r}?)" if near else ""
    return InvalidInput(f"unknown {kind} {name!r}{hint}; allowed: {', '.join(names)}")


def require(condition: bool, message: str) -> None:
    """Raise :class:`InvalidInput` with ``message`` unless ``condition`` holds."""
    if not condition:
        raise InvalidInput(message)
