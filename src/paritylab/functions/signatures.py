"""What a user's function asks to be given, by the names of its arguments."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from paritylab.functions.named import Named


def asked(function: Callable[..., Any], after: int, names: Sequence[str], rest: bool = False) -> tuple[str, ...]:
    """Which of ``names`` a function takes after its first ``after`` arguments, without a default or with None.

    With ``rest``, one that takes any keywords takes them all.

    >>> asked(lambda f, y, params: 0, 2, ("params", "x")), asked(lambda f, x: 0, 2, ("params", "x"))
    (('params',), ())
    >>> asked(lambda updates, state, params, **more: 0, 3, ("value", "grad"), rest=True)
    ('value', 'grad')
    """
    while isinstance(inner := inspect.unwrap(function), Named):
        function = inner.value
    try:
        parameters = list(inspect.signature(inner).parameters.values())[after:]
    except (TypeError, ValueError):  # a builtin that does not say
        return ()
    if rest and any(each.kind is each.VAR_KEYWORD for each in parameters):
        return tuple(names)
    by_name = {each.name for each in parameters if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)
               and (each.default is each.empty or each.default is None)}
    return tuple(name for name in names if name in by_name)
