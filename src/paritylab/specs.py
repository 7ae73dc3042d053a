"""Specs: the one-line names of activations, initialisations, losses and schedules, such as ``zigzag:3``.

A spec is a name, optionally followed by a colon and comma-separated numbers. The same spelling is used in
Python, on the command line and in files.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import re
import types
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from paritylab.errors import InvalidInput, single, unknown


def parse(kind: str, text: str, arities: Mapping[str, tuple[int, int]]) -> tuple[str, tuple[float, ...]]:
    """Split a spec into its name and its numbers; ``arities`` maps each known name to (fewest, most) numbers.

    >>> parse("activation", "zigzag:3", {"relu": (0, 0), "zigzag": (1, 1)})
    ('zigzag', (3.0,))
    """
    name, colon, tail = text.partition(":")
    if name not in arities:
        raise unknown(kind, name, arities)
    try:
        numbers = tuple(float(part) for part in tail.split(",")) if colon else ()
    except ValueError:
        raise InvalidInput(f"{kind} {text!r}: what follows the colon must be numbers separated by commas") from None
    fewest, most = arities[name]
    if not fewest <= len(numbers) <= most:
        count = f"{fewest}" if fewest == most else f"{fewest} to {'any number' if most > 99 else most}"
        raise InvalidInput(f"{kind} {name!r} takes {count} number(s) after a colon, not {len(numbers)}")
    return name, tuple(single(f"{kind} {name!r}: what follows the colon", number) for number in numbers)


def render(name: str, numbers: tuple[float, ...] = ()) -> str:
    """The canonical spelling of a spec: whole numbers without a decimal point.

    >>> render("perturbed-rademacher", (0.10,)), render("zigzag", (3.0,))
    ('perturbed-rademacher:0.1', 'zigzag:3')
    """
    if not numbers:
        return name
    return name + ":" + ",".join(str(int(x)) if x == int(x) and abs(x) < 1e15 else repr(x) for x in numbers)


def name(function: Any) -> str:
    """What a user's function (or class, or object) goes by: ``module.qualname``."""
    named = function if hasattr(function, "__qualname__") else type(function)
    return f"{getattr(function, '__module__', '?')}.{named.__qualname__}"


def fingerprint(function: Callable[..., Any]) -> str:
    """A name for a user's function that changes when its code changes: ``module.qualname@digest``.

    It identifies the function in a Setup's JSON (and so in its id); it cannot be turned back into the function. The
    digest covers the source and what the function captured, not the globals it reads.
    """
    return f"{name(function)}@{hashlib.sha256(_describe(function, 0).encode()).hexdigest()[:12]}"


def _describe(value: Any, depth: int) -> str:
    """A text that is the same in every process and differs when ``value`` does."""
    if depth > 12:
        return type(value).__qualname__
    deeper = functools.partial(_describe, depth=depth + 1)
    if isinstance(value, types.FunctionType):
        code = value.__code__
        captured = [cell.cell_contents for cell in value.__closure__ or ()]
        parts = (_source(value), code.co_code.hex(), code.co_names, code.co_consts, captured)
        return repr([deeper(part) for part in (*parts, value.__defaults__, value.__kwdefaults__)])
    if isinstance(value, types.CodeType):  # of a function within the function
        return repr([deeper(part) for part in (value.co_code.hex(), value.co_names, value.co_consts)])
    if isinstance(value, functools.partial):
        return repr([deeper(part) for part in (value.func, value.args, value.keywords)])
    if isinstance(value, types.MethodType):
        return repr([deeper(value.__func__), deeper(value.__self__)])
    if hasattr(value, "__wrapped__"):  # such as a compiled function
        return deeper(value.__wrapped__)
    if isinstance(value, type):
        methods = {name: item for name, item in vars(value).items() if isinstance(item, types.FunctionType)}
        return repr([_source(value), deeper(methods)])
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        array = np.asarray(value)
        return repr((str(array.dtype), array.shape, hashlib.sha256(array.tobytes()).hexdigest()))
    if isinstance(value, (tuple, list)):
        return repr([deeper(item) for item in value])
    if isinstance(value, (set, frozenset)):
        return repr(sorted(deeper(item) for item in value))
    if isinstance(value, Mapping):
        return repr([(str(key), deeper(item)) for key, item in value.items()])
    text = re.sub(r" at 0x[0-9a-f]+", "", repr(value))
    return repr([text, deeper(type(value)), deeper(vars(value))]) if _is_users(value) else text


def _source(value: Any) -> str:
    try:
        return inspect.getsource(value)
    except (OSError, TypeError):
        return ""


def _is_users(value: Any) -> bool:
    """Whether a value is an object with attributes of its own, rather than a number, text, module or the like."""
    return hasattr(value, "__dict__") and not isinstance(value, types.ModuleType)
