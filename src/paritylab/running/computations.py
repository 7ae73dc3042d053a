"""Computations of papers: functions that take long, found by name on any machine that has the paper."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from paritylab.errors import InvalidInput, require
from paritylab.functions import sources
from paritylab.places import places

Computation = Callable[..., Mapping[str, Any]]
C = TypeVar("C", bound=Computation)

_MARK = "paritylab_computation"


def computation(function: C) -> C:
    """Mark a function of a paper that takes long: ``lab.compute`` keeps its arrays, and any machine can do it.

    Its first argument is the seed; the others are given by keyword, as plain values (numbers, text, lists). It stands
    at the top of a module of the paper, and is found there by its name. What is kept of it is used as long as the code
    that it is made of stays the same (:mod:`paritylab.functions.sources`).
    """
    names = list(inspect.signature(function).parameters)
    require(names[:1] == ["seed"], f"{function.__qualname__}: the first argument of a computation is the seed")
    require("." not in function.__qualname__, f"{function.__qualname__}: a computation stands at the top of a module")
    sources.remember(function.__module__)
    function.__dict__[_MARK] = True
    return function


def name_of(function: Computation) -> str:
    """The name under which :func:`named` finds it: ``package.module:function``."""
    require(_is_computation(function), f"{function.__qualname__} is not marked as a computation")
    return f"{function.__module__}:{function.__qualname__}"


def named(name: str) -> Computation:
    """The computation of this name. A name from a file leads to marked functions of papers alone."""
    module, _, function = name.partition(":")
    for place in places():
        if module.startswith(f"{place.package}."):
            found: Any = getattr(place.load(module.removeprefix(f"{place.package}.")), function, None)
            if _is_computation(found):
                return found
            raise InvalidInput(f"{place.name} has no computation {name!r} here; is it of the same version?")
    raise InvalidInput(f"no paper here has the computation {name!r}")


def _is_computation(function: Any) -> bool:
    return callable(function) and _MARK in getattr(function, "__dict__", {})
