"""Which claims a module declares, read without running it: listing hundreds of claims needs no engine."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path
from typing import Any

from paritylab.claims.trial import AMENDMENTS, KINDS, amends, claim
from paritylab.errors import InvalidInput, unknown

MARKS = {"claim": (tuple(inspect.signature(claim).parameters), KINDS),
         "amends": (tuple(inspect.signature(amends).parameters), AMENDMENTS)}
"""The decorators that are read, each with its arguments and the kinds there are."""


def declared(path: Path, mark: str = "claim") -> list[tuple[dict[str, Any], str, int]]:
    """The claims (or amendments: ``amends``) of a module: arguments, name of the class, line of the decorator."""
    try:
        text = path.read_text(encoding="utf-8")
        if not re.search(rf"^@[\w.]*\b{mark}\b", text, re.MULTILINE):  # parsing is what takes time
            return []
        tree = ast.parse(text)
    except (OSError, ValueError, SyntaxError) as error:
        raise InvalidInput(f"{path.name} cannot be read: {error}") from error
    found = []
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            for call in node.decorator_list:
                if isinstance(call, ast.Call) and ast.unparse(call.func).split(".")[-1] == mark:
                    found.append((_fields(call, mark, path), node.name, call.lineno))
    return found


def _fields(call: ast.Call, mark: str, path: Path) -> dict[str, Any]:
    where = f"{path.name}, line {call.lineno}"
    names, kinds = MARKS[mark]
    given: dict[str, Any] = dict(zip(names, (_text(value, mark, where) for value in call.args), strict=False))
    given |= {str(each.arg): _text(each.value, mark, where) for each in call.keywords}
    what = "claim" if mark == "claim" else "amendment"
    for name in given:
        if name not in names:
            raise unknown(f"field of {'a' if mark == 'claim' else 'an'} {what} in {where}", name, names)
    if missing := [name for name in names if not given.get(name)]:
        raise InvalidInput(f"{where}: the {what} {given.get('id', '')} has no {' and no '.join(missing)}")
    if given["kind"] not in kinds:
        raise unknown(f"kind of {what} in {where}", given["kind"], kinds)
    return given


def _text(node: ast.expr, mark: str, where: str) -> str:
    try:
        value = ast.literal_eval(node)
    except ValueError:
        value = None
    if not isinstance(value, str):
        raise InvalidInput(f"{where}: write the arguments of @{mark} as text in quotes, not {ast.unparse(node)}")
    return " ".join(value.split())
