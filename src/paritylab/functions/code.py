"""Functions that run as Python, and are not traced by JAX (a learner for ``compare``), known by their code."""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np

from paritylab.errors import InvalidInput, require
from paritylab.functions import sources
from paritylab.functions.named import MARK, Named, title
from paritylab.functions.named import written as nameless
from paritylab.functions.traced import ADVICE, combined

PLAIN = (type(None), bool, int, float, complex, str, bytes)
HELD = (*PLAIN, tuple, list, dict, set, np.ndarray)
METHODS = (types.FunctionType, property, staticmethod, classmethod)


def shown(function: Any) -> str:
    """How text has a function: ``mine.learner@0123456789abcdef``; without a digest where it cannot be known."""
    try:
        return written(function)
    except InvalidInput:
        return nameless(function)


def written(function: Any) -> str:
    """The same; InvalidInput if a function cannot be told from others. ``@my learner v2`` if its user vouches for it.

    The digest is of the source of its module and of what that imports, of all that it has captured, by default or as
    attributes, of the plain values among the globals of its module, and of all globals that its code names, as they
    are now. What it reads from files or the environment is not seen.
    """
    if isinstance(function, Named):
        return f"{MARK}{function.name}"
    told = _Told(_module(function))
    try:
        told.visit("it", function)
    except InvalidInput as error:
        raise InvalidInput(f"{title(function)} cannot be told from others: {error}; {ADVICE}") from None
    return f"{title(function)}{MARK}{combined(told.texts)}"


class _Told:
    """What tells a function from others, text by text; modules of its own package are known by their source."""

    def __init__(self, home: str) -> None:
        self.texts: list[str] = []
        self._home = home
        self._seen: dict[int, Any] = {}
        self._digest = functools.cache(sources.digest)

    def visit(self, what: str, value: Any) -> None:
        kind, value = type(value), np.asarray(value) if isinstance(value, jax.Array) else value
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
        if kind is dict and all(type(key) is str for key in value):
            self.texts.append(str(len(value)))
            yield from ((repr(key), held) for key, held in value.items())
        elif kind in (tuple, list, dict):
            items = list(value.items()) if kind is dict else list(value)
            yield from ((str(i), item) for i, item in enumerate([len(items), *items]))
        elif kind in (set, frozenset):
            require(all(type(each) in PLAIN for each in value), "it holds a set of more than plain values")
            self.texts.append(str(sorted(map(repr, value))))
        elif isinstance(value, functools.partial):
            yield "of", [value.func, value.args, value.keywords]
        elif isinstance(value, types.MethodType):
            yield "of", [value.__func__, value.__self__]
        elif isinstance(value, (property, staticmethod, classmethod)):
            yield "of", [getattr(value, name, None) for name in ("fget", "__func__")]
        elif isinstance(value, types.FunctionType):
            self._made_of(value)
            require(sources.is_current(value), f"{title(value)} was edited after it was loaded")
            cells = zip(value.__code__.co_freevars, value.__closure__ or (), strict=True)
            yield "line", value.__code__.co_firstlineno
            yield "captured", {name: cell.cell_contents for name, cell in cells}
            yield "defaults", [value.__defaults__, value.__kwdefaults__, dict(vars(value))]
            if not sources.is_library(value.__module__, self._home):
                yield "globals", self._globals(value)
        elif isinstance(value, (types.ModuleType, types.BuiltinFunctionType, np.ufunc)):
            self._made_of(value)
        elif isinstance(value, type):
            self._made_of(value)
            if not sources.is_library(value.__module__, self._home):
                yield "has", {name: held for name, held in sorted(vars(value).items())
                              if (isinstance(held, METHODS) and not _is_generated(held))
                              or (isinstance(held, HELD) and name[:2] != "__")}
        elif isinstance(wrapped := getattr(value, "__wrapped__", None), types.FunctionType):
            yield "of", wrapped  # jax.jit, functools.cache
        else:
            held, bases = getattr(value, "__dict__", None), kind.__mro__[:-1]
            require(held is not None and all(each.__flags__ & 1 << 9 for each in bases),  # made by Python code
                    f"{what.partition(' ')[2] or 'it'} is a {kind.__name__}")
            yield "class", kind
            yield "attributes", dict(held or {})

    def _globals(self, function: types.FunctionType) -> dict[str, Any]:
        """The plain globals of a function's module, and whatever its code names there and in other modules."""
        names, known = _names(function.__code__), function.__globals__
        found = {name: held for name, held in known.items() if name[:2] != "__" and (
            name in names or type(held) in PLAIN or isinstance(held, np.ndarray))}
        for name in names:
            module = known.get(name, sys.modules.get(name))
            if isinstance(module, types.ModuleType) and not sources.is_library(module.__name__, self._home):
                found |= {f"{name}.{inner}": vars(module)[inner] for inner in names & vars(module).keys()}
        return dict(sorted(found.items()))

    def _made_of(self, value: Any) -> None:
        """The code of the module that something is from."""
        name, module = getattr(value, "__qualname__", value.__name__), _module(value)
        library = sources.is_library(module, self._home)
        self.texts.append(f"{name} of {library or self._digest(module)}")


def _module(value: Any) -> str:
    """The name of the module that something is from."""
    if isinstance(value, types.ModuleType):
        return value.__name__
    return getattr(value, "__module__", None) or ("numpy" if isinstance(value, np.ufunc) else "builtins")


def _is_generated(method: Any) -> bool:
    """Whether it was made of no file, such as those of a dataclass: they follow from what is in the file."""
    return isinstance(method, types.FunctionType) and method.__code__.co_filename.startswith("<string>")


def _names(code: types.CodeType) -> set[str]:
    """The globals, attributes and modules that code names, and the functions in it."""
    inner = (each for each in code.co_consts if isinstance(each, types.CodeType))
    return set(code.co_names).union(*map(_names, inner))
