"""Functions that run as Python, and are not traced by JAX (a learner for ``compare``), known by their code."""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Iterator
from typing import Any

import numpy as np

from paritylab.errors import InvalidInput, require
from paritylab.functions import sources
from paritylab.functions.named import MARK, Named, title
from paritylab.functions.named import written as nameless
from paritylab.functions.traced import ADVICE, combined

PLAIN = (type(None), bool, int, float, complex, str, bytes)


def shown(function: Any) -> str:
    """How text has a function: ``mine.learner@0123456789abcdef``; without a digest where it cannot be known."""
    try:
        return written(function)
    except InvalidInput:
        return nameless(function)


def written(function: Any) -> str:
    """The same; InvalidInput if a function cannot be told from others. ``@my learner v2`` if its user vouches for it.

    The digest is of the source of its module and of what that imports, of all that it has captured, by default or as
    attributes, and of the plain values among the globals of its module.
    """
    if isinstance(function, Named):
        return f"{MARK}{function.name}"
    told = _Told()
    try:
        told.visit("it", function)
    except InvalidInput as error:
        raise InvalidInput(f"{title(function)} cannot be told from others: {error}; {ADVICE}") from None
    return f"{title(function)}{MARK}{combined(told.texts)}"


class _Told:
    """What tells a function from others, text by text."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._seen: dict[int, Any] = {}

    def visit(self, what: str, value: Any) -> None:
        kind = type(value)
        if kind in PLAIN:
            self.texts.append(f"{what} {kind.__name__} {value!r}")
        elif isinstance(value, (np.ndarray, np.generic)) and value.dtype != object:
            self.texts.append(f"{what} {kind.__name__} {value.dtype} {value.shape} {value.tobytes().hex()}")
        elif id(value) in self._seen:
            self.texts.append(f"{what} again {list(self._seen).index(id(value))}")
        else:
            self._seen[id(value)] = value
            for part, held in self._parts(what, value):
                self.visit(f"{what} {part}", held)

    def _parts(self, what: str, value: Any) -> Iterator[tuple[str, Any]]:
        kind = type(value)
        self.texts.append(f"{what} {title(kind)}")
        if kind in (tuple, list, dict):
            items = list(value.items()) if kind is dict else list(value)
            yield from ((str(i), item) for i, item in enumerate([len(items), *items]))
        elif kind in (set, frozenset):
            require(all(type(each) in PLAIN for each in value), "it holds a set of more than plain values")
            self.texts.append(str(sorted(map(repr, value))))
        elif isinstance(value, functools.partial):
            yield "of", [value.func, value.args, value.keywords]
        elif isinstance(value, types.MethodType):
            yield "of", [value.__func__, value.__self__]
        elif isinstance(value, types.FunctionType):
            self._made_of(value)
            require(sources.is_current(value), f"{title(value)} was edited after it was loaded")
            cells = zip(value.__code__.co_freevars, value.__closure__ or (), strict=True)
            yield "line", value.__code__.co_firstlineno
            yield "captured", {name: cell.cell_contents for name, cell in cells}
            yield "defaults", [value.__defaults__, value.__kwdefaults__, dict(vars(value))]
            yield "globals", {name: held for name, held in sorted(value.__globals__.items())
                              if name[:2] != "__" and (type(held) in PLAIN or isinstance(held, np.ndarray))}
        elif isinstance(value, (type, types.BuiltinFunctionType, np.ufunc)):
            self._made_of(value)
        else:
            held, bases = getattr(value, "__dict__", None), kind.__mro__[:-1]
            require(held is not None and all(each.__flags__ & 1 << 9 for each in bases),  # made by Python code
                    f"{what.partition(' ')[2] or 'it'} is a {kind.__name__}")
            yield "class", kind
            yield "attributes", dict(held or {})

    def _made_of(self, value: Any) -> None:
        """The code of the module that something is from."""
        module = getattr(value, "__module__", None) or "builtins"
        known = module.partition(".")[0] in sys.stdlib_module_names and module != "__main__"
        self.texts.append(f"{value.__qualname__ if hasattr(value, '__qualname__') else value.__name__}"
                          f" of {module if known or isinstance(value, np.ufunc) else sources.digest(module)}")
