"""The canonical JSON of what has nothing of the user's in it, fast: sweeps name hundreds of thousands of Setups.

Parts of this package are frozen, so the texts of some thousand are remembered; Setups of a grid share most of theirs.
Not in the parts themselves: what is in an object counts where a user's function holds it.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import math
from collections.abc import Mapping
from typing import Any

from paritylab.setups.inits import Init
from paritylab.setups.losses import Loss
from paritylab.setups.networks.activations import Activation
from paritylab.setups.schedules import Schedule

MOST = 4096
_known: dict[int, tuple[Any, str]] = {}
"""By identity; the part that is kept beside its text cannot be another one."""

_quoted = functools.lru_cache(4096)(json.dumps)


def text(value: Any, names: Mapping[type, str]) -> str | None:
    """What ``encode`` and ``json.dumps`` give; None if there is, or may be, something of the user's in it."""
    kind = type(value)
    if value is None or kind is bool:
        return {None: "null", True: "true", False: "false"}[value]
    if kind is int:
        return str(value)
    if kind is float:
        if not math.isfinite(value):
            return None
        return str(int(value)) if value.is_integer() else repr(value)
    if kind is str:
        return _quoted(value)
    if kind is tuple or kind is list:
        parts = [part for item in value if (part := text(item, names)) is not None]
        return f"[{','.join(parts)}]" if len(parts) == len(value) else None
    if kind in (Activation, Init, Loss, Schedule):
        return None if value.is_own else _quoted(value.spec)
    return _whole(value, names) if kind in names else None


def _whole(value: Any, names: Mapping[type, str]) -> str | None:
    if (known := _known.get(id(value))) is not None:
        return known[1]
    parts: list[str] = []
    for name, head in _fields(type(value), names[type(value)]):
        if name is None:
            parts.append(head)
            continue
        found = text(getattr(value, name), names)
        if found is None:
            return None
        parts.append(head + found)
    if len(_known) >= MOST:
        _known.clear()
    made = f"{{{','.join(parts)}}}"
    _known[id(value)] = value, made
    return made


@functools.cache
def _fields(kind: type, called: str) -> list[tuple[str | None, str]]:
    """The fields of a part as JSON has them, in its order."""
    fields: list[tuple[str | None, str]] = [(field.name, f'"{field.name}":') for field in dataclasses.fields(kind)]
    return sorted([*fields, (None, f'"type":"{called}"')], key=lambda each: each[0] or "type")
