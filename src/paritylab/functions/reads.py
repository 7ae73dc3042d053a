"""What a function's code reads from outside itself, found in its bytecode: globals, captured names, local imports."""

from __future__ import annotations

import dis
import functools
import types
from collections.abc import Iterator
from typing import Any, NamedTuple

ATTRIBUTE = ("LOAD_ATTR", "LOAD_METHOD")
GLOBAL = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS")
CAPTURED = ("LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF")
MOVED = ("SWAP", "POP_TOP", "ROT_TWO")
BOUND = ("STORE_FAST", "STORE_DEREF")
HIDDEN = ("CACHE", "EXTENDED_ARG")


class Read(NamedTuple):
    """A name and the attributes that are loaded from it, one from the other: ``config.model.width``.

    ``kind`` is ``global``, ``captured`` or ``import`` (then the name is a module's, with a leading dot for each level
    of a relative import). What was imported and only bound to a local name is ``bound``: the uses of that name are
    reads of their own.
    """

    kind: str
    name: str
    attributes: tuple[str, ...] = ()
    bound: bool = False


@functools.lru_cache(maxsize=4096)
def reads(code: types.CodeType) -> tuple[Read, ...]:
    """All that a function's code, and the code within it, reads from outside, in a fixed order.

    >>> reads((lambda x: math.pi * x).__code__)
    (Read(kind='global', name='math', attributes=('pi',), bound=False),)
    """
    return tuple(sorted(set(_reads(code, {name: Read("captured", name) for name in code.co_freevars}))))


def _reads(code: types.CodeType, known: dict[str, Read]) -> Iterator[Read]:
    """The same in no order; ``known`` says what local and captured names of interest stand for."""
    known = dict(known)
    steps = _steps(code)
    imported = Read("import", "")
    for i, (operation, value) in enumerate(steps):
        if operation in GLOBAL:
            start = Read("global", value)
        elif value in known and (operation in CAPTURED or _is_local(operation, value, code)):
            start = known[value]
        elif operation == "IMPORT_NAME":
            imported = start = _module(value, level=steps[i - 2][1], names=steps[i - 1][1])
        elif operation == "IMPORT_FROM":
            start = imported._replace(attributes=(*imported.attributes, value))
        else:
            continue
        end = i + 1
        while steps[end][0] in ATTRIBUTE:
            end += 1
        found = start._replace(attributes=start.attributes + tuple(value for _, value in steps[i + 1 : end]))
        if operation.startswith("IMPORT"):
            while steps[end][0] in MOVED:  # import a.b as c
                imported, end = found, end + 1
            if steps[end][0] == "IMPORT_FROM":
                if operation == "IMPORT_FROM" or steps[i + 1][0] == "IMPORT_FROM":
                    continue  # only the way to what is bound
            elif steps[end][0] in BOUND:
                known[steps[end][1]] = found
                found = found._replace(bound=True)
        yield found
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _reads(constant, {name: known[name] for name in constant.co_freevars if name in known})


def _is_local(operation: str, name: object, code: types.CodeType) -> bool:
    """Whether a local name is loaded; Python 3.13 spells handing a cell to an inner function in the same way."""
    return operation.startswith("LOAD_FAST") and name not in code.co_cellvars


def _steps(code: types.CodeType) -> list[tuple[str, Any]]:
    """Operations and what they are about; those that newer Pythons do two at a time, one by one."""
    steps: list[tuple[str, Any]] = []
    for each in dis.get_instructions(code):
        if each.opname in HIDDEN:
            continue
        if isinstance(each.argval, tuple) and "FAST_" in each.opname:  # STORE_FAST_LOAD_FAST and the like
            first, second = each.opname.split("_FAST")[:2]
            steps += [(f"{first}_FAST", each.argval[0]), (f"{second.lstrip('_')}_FAST", each.argval[1])]
        else:
            steps.append((each.opname, each.argval))
    return [*steps, ("END", None)]


def _module(name: str, level: int, names: Any) -> Read:
    """What an import puts on the stack: the module itself if names are taken from it, otherwise its first package."""
    return Read("import", "." * level + name if names or level else name.partition(".")[0])
