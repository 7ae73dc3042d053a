"""Which claims a module declares, read without running it: listing hundreds of claims needs no engine."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path
from typing import Any

from paritylab.claims.trial import KINDS, claim
from paritylab.errors import InvalidInput, unknown

FIELDS = tuple(inspect.signature(claim).parameters)


def declared(path: Path) -> list[tuple[dict[str, str], str, int]]:
    """The claims of a module: the arguments of the decorator, the name of the class, and the line of its decorator."""
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, SyntaxError) as error:
        raise InvalidInput(f"{path.name} cannot be read: {error}") from error
    found = []
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            for mark in node.decorator_list:
                if isinstance(mark, ast.Call) and ast.unparse(mark.func).split(".")[-1] == "claim":
                    found.append((_fields(mark, path), node.name, mark.lineno))
    return found


def _fields(mark: ast.Call, path: Path) -> dict[str, str]:
    where = f"{path.name}, line {mark.lineno}"
    given: dict[str, Any] = dict(zip(FIELDS, (_text(value, where) for value in mark.args), strict=False))
    given |= {str(each.arg): _text(each.value, where) for each in mark.keywords}
    for name in given:
        if name not in FIELDS:
            raise unknown(f"field of a claim in {where}", name, FIELDS)
    if missing := [name for name in FIELDS if not given.get(name)]:
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
