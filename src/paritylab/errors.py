"""What a user did wrong, said in one line."""

from __future__ import annotations

import difflib
import math
import numbers
import operator
import reprlib
from collections.abc import Iterable
from typing import Any


class InvalidInput(ValueError):
    """A value the user gave cannot be used. The message is one line: what was wrong and what is allowed."""

    def __init__(self, message: str) -> None:
        super().__init__(" ".join(message.split()))


class CellFailed(InvalidInput, UserWarning):
    """One Setup of a sweep could not be trained. It is raised where it is the only one, and a warning among others."""


def unknown(kind: str, name: str, allowed: Iterable[str]) -> InvalidInput:
    """The error for a name that is not in a table, with the nearest known name suggested.

    >>> print(unknown("loss", "hing", ["hinge", "square"]))
    unknown loss 'hing' (did you mean 'hinge'?); allowed: hinge, square
    """
    names = list(allowed)
    near = difflib.get_close_matches(name, names, n=1)
    hint = f" (did you mean {near[0]!r}?)" if near else ""
    return InvalidInput(f"unknown {kind} {name!r}{hint}; allowed: {', '.join(names)}")


def in_a_line(error: Exception) -> str:
    """The line of an error's text that says most: the first, or the last where the text is a traceback.

    >>> in_a_line(IndexError())
    'IndexError'
    """
    lines = [line for line in str(error).strip().splitlines() if line.strip()] or [type(error).__name__]
    return lines[-1 if any(line.endswith("Traceback (most recent call last):") for line in lines) else 0].strip()


def require(condition: bool, message: str) -> None:
    """Raise :class:`InvalidInput` with ``message`` unless ``condition`` holds."""
    if not condition:
        raise InvalidInput(message)


def whole(name: str, value: Any) -> int:
    """The whole number a user gave for ``name``, in any spelling: 1000, 1e3, NumPy's or JAX's.

    >>> whole("n", 1e3)
    1000
    """
    try:
        return int(operator.index(value))
    except TypeError:
        number = real(name, value)
    require(number.is_integer(), f"{name} must be a whole number, not {value}")
    return int(number)


def real(name: str, value: Any) -> float:
    """The finite number a user gave for ``name``."""
    try:
        plain = _plain(value)
        number = float(plain) if isinstance(plain, numbers.Real) else math.nan
    except OverflowError:
        number = math.inf
    require(math.isfinite(number), f"{name} must be a finite number, not {reprlib.repr(value)}")
    return number + 0.0  # no negative zero: it has the JSON of zero


def single(name: str, value: Any) -> float:
    """The number a user gave for ``name``, within the range of single precision."""
    number = real(name, value)
    require(abs(number) <= 3.4e38, f"{name} must be at most 3.4e38, the largest in single precision, not {number:g}")
    return number


def positive(name: str, number: float) -> None:
    """Require a number above 0 that is not 0 in single precision."""
    require(number >= 1.2e-38, f"{name} must be positive, at least 1.2e-38, not {number:g}")


def flag(name: str, value: Any) -> bool:
    """The truth value a user gave for ``name``."""
    plain = _plain(value)
    require(isinstance(plain, bool), f"{name} must be True or False, not {reprlib.repr(value)}")
    return plain


def _plain(value: Any) -> Any:
    """A number of NumPy's or JAX's as one of Python's; anything else as it is."""
    try:
        return value.item()
    except (AttributeError, TypeError, ValueError):
        return value
