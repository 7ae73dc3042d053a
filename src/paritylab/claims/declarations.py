"""Which claims a module declares, read without running it: listing hundreds of claims needs no engine."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path
from typing import Any

from paritylab.claims.trial import KINDS, claim
from paritylab.errors import InvalidInput, unknown

NAMES = tuple(inspect.signature(claim).parameters)


def declared(path: Path) -> list[tuple[dict[str, Any], str, int]]:
    """The claims of a module: arguments, name of the class, line of the decorator."""
    try:
        text = path.read_text(encoding="utf-8")
        if not re.search(r"^@[\w.]*\bclaim\b", text, re.MULTILINE):  # parsing is what takes time
            return []
        tree = ast.parse(text)
    except (OSError, ValueError, SyntaxError) as error:
        raise InvalidInput(f"{path.name} cannot be read: {error}") from error
    found = []
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            for call in node.decorator_list:
                if isinstance(call, ast.Call) and ast.unparse(call.func).split(".")[-1] == "claim":
                    found.append((_fields(call, path), node.name, call.lineno))
    return found


def _fields(call: ast.Call, path: Path) -> dict[str, Any]:
    where = f"{path.name}, line {call.lineno}"
    given: dict[str, Any] = dict(zip(NAMES, (_text(value, where) for value in call.args), strict=False))
    given |= {str(each.arg): _text(each.value, where) for each in call.keywords}
    for name in given:
        if name not in NAMES:
            raise unknown(f"field of a claim in {where}", name, NAMES)
    if missing := [name for name in NAMES if not given.get(name)]:
        raise InvalidInput(f"{where}: the claim {given.get('id', '')} has no {' and no '.join(missing)}")
    if given["kind"] not in KINDS:
        raise unknown(f"kind of claim in {where}", given["kind"], KINDS)
    return given


def _text(node: ast.expr, where: str) -> str:
    try:
        value = ast.literal_eval(node)
    except ValueError:
        value = None
    if not isinstance(value, str):
        raise InvalidInput(f"{where}: write the arguments of @claim as text in quotes, not {ast.unparse(node)}")
    return " ".join(value.split())
