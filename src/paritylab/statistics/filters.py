"""Conditions on columns, as a user writes them: ``n == 30 and lr >= 0.1``. They are read, never executed."""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from paritylab.errors import InvalidInput, require, unknown

ALLOWED = ("columns, numbers, texts in quotes, None, True and False with == != < <= > >= in, not in, and, or, not"
           " and brackets")
LONGEST = 2000

_COMPARE: dict[type[ast.cmpop], Any] = {
    ast.Eq: lambda left, right: left == right,
    ast.NotEq: lambda left, right: left != right,
    ast.Lt: lambda left, right: left < right,
    ast.LtE: lambda left, right: left <= right,
    ast.Gt: lambda left, right: left > right,
    ast.GtE: lambda left, right: left >= right,
}


@dataclass(frozen=True)
class Condition:
    """One condition of several that must all hold, and the columns it is about."""

    expression: pl.Expr
    names: frozenset[str]


@dataclass(frozen=True)
class _Value:
    expression: pl.Expr
    kind: str
    text: str


def conditions(text: str, schema: Mapping[str, pl.DataType]) -> list[Condition]:
    """The conditions in a text, which must all hold of rows with these columns.

    A row that has no value there (its problem has no ``k``, say) fails every condition on a column but ``== None``.

    >>> table = pl.DataFrame({"n": [20, 30, 30], "lr": [0.1, 0.01, 1.0], "loss": ["hinge", "hinge", None]})
    >>> (both,) = conditions("n == 30 or lr in (0.1, 3)", table.schema)
    >>> table.filter(both.expression)["lr"].to_list(), sorted(both.names)
    ([0.1, 0.01, 1.0], ['lr', 'n'])
    >>> conditions("__import__('os')", table.schema)
    Traceback (most recent call last):
    ...
    paritylab.errors.InvalidInput: cannot use "__import__('os')" in a condition; allowed: columns, numbers, ...
    """
    require(len(text) <= LONGEST, f"a condition must have at most {LONGEST} characters, not {len(text)}")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
        return [Condition(_truth(part, schema), _names(part)) for part in _parts(tree)]
    except SyntaxError as error:
        raise InvalidInput(f"cannot read the condition {text!r}: {error.msg}; allowed: {ALLOWED}") from None
    except (RecursionError, MemoryError):
        raise InvalidInput(f"the condition is nested too deeply; allowed: {ALLOWED}") from None
    except InvalidInput:
        raise
    except ValueError as error:  # null bytes
        raise InvalidInput(f"cannot read the condition {text!r}: {error}") from None


def _parts(node: ast.expr) -> list[ast.expr]:
    if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And):
        return [part for value in node.values for part in _parts(value)]
    return [node]


def _names(node: ast.AST) -> frozenset[str]:
    return frozenset(each.id for each in ast.walk(node) if isinstance(each, ast.Name))


def _truth(node: ast.expr, schema: Mapping[str, pl.DataType]) -> pl.Expr:
    """What is true or false of a row."""
    if isinstance(node, ast.BoolOp):
        join = pl.all_horizontal if isinstance(node.op, ast.And) else pl.any_horizontal
        return join([_truth(value, schema) for value in node.values])
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return ~_truth(node.operand, schema)
    if isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
        return pl.all_horizontal([_compared(left, op, right, schema)
                                  for left, op, right in zip(sides, node.ops, sides[1:], strict=False)])
    value = _value(node, schema)
    require(value.kind == "truth value", f"{value.text} is a {value.kind}: compare it, as in {value.text} == ...")
    return value.expression


def _compared(left: ast.expr, op: ast.cmpop, right: ast.expr, schema: Mapping[str, pl.DataType]) -> pl.Expr:
    if isinstance(op, (ast.In, ast.NotIn)):
        if not isinstance(right, (ast.List, ast.Tuple, ast.Set)):
            raise _refused(right, "after 'in' there must be values in brackets")
        each = [_compared(left, ast.Eq(), item, schema) for item in right.elts]
        inside = pl.any_horizontal([pl.lit(False), *each])
        return inside if isinstance(op, ast.In) else ~inside
    ours, theirs = _value(left, schema), _value(right, schema)
    none = [value for value in (ours, theirs) if value.kind == "None"]
    if none and isinstance(op, (ast.Eq, ast.NotEq, ast.Is, ast.IsNot)):
        other = theirs if ours.kind == "None" else ours
        return other.expression.is_null() if isinstance(op, (ast.Eq, ast.Is)) else other.expression.is_not_null()
    if type(op) not in _COMPARE:
        raise _refused(left, "'is' is for None")
    require(ours.kind == theirs.kind,
            f"{ours.text} is a {ours.kind} and {theirs.text} a {theirs.kind}: they cannot be compared")
    return _COMPARE[type(op)](ours.expression, theirs.expression)


def _value(node: ast.expr, schema: Mapping[str, pl.DataType]) -> _Value:
    if isinstance(node, ast.Name):
        if node.id not in schema:
            raise unknown("column", node.id, schema)
        return _Value(pl.col(node.id), _kind(schema[node.id]), node.id)
    sign, inner = 1, node
    while isinstance(inner, ast.UnaryOp) and isinstance(inner.op, (ast.USub, ast.UAdd)):
        sign, inner = (-sign if isinstance(inner.op, ast.USub) else sign), inner.operand
    if isinstance(inner, ast.Constant):
        value: Any = inner.value
        text = ast.unparse(node)
        if value is None and inner is node:
            return _Value(pl.lit(None), "None", text)
        if isinstance(value, bool) and inner is node:
            return _Value(pl.lit(value), "truth value", text)
        if isinstance(value, str) and inner is node:
            return _Value(pl.lit(value), "text", text)
        if isinstance(value, (int, float)) and not isinstance(value, bool) and not math.isnan(value):
            number = sign * value
            return _Value(pl.lit(number if abs(number) < 2**63 else float(number)), "number", text)
    raise _refused(node)


def _kind(kind: pl.DataType) -> str:
    if kind == pl.Boolean():
        return "truth value"
    return "number" if kind.is_numeric() else "text"


def _refused(node: ast.expr, why: str = "") -> InvalidInput:
    shown = ast.unparse(node)
    shown = shown if len(shown) <= 60 else f"{shown[:57]}..."
    return InvalidInput(f'cannot use "{shown}" in a condition{": " * bool(why)}{why}; allowed: {ALLOWED}')
