"""Arrays as text, so that a Setup's JSON holds what they hold: two that differ never share an id."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np

from paritylab.errors import InvalidInput, require

MOST = 2**26
"""Numbers in one array; beyond, a compiled program would be too large."""


def to_text(name: str, given: Any) -> str:
    """A matrix as text: ``signs 2x3 BASE64`` with a bit for each number if all are +1 or -1, otherwise in float32.

    >>> to_text("x", [[1, -1, 1], [1, 1, -1]]), to_text("y", [0.5, 2])
    ('signs 2x3 Ig==', 'float32 2 AAAAPwAAAEA=')
    """
    try:
        array = from_text(given) if isinstance(given, str) else np.asarray(given).astype(np.float32)
    except (TypeError, ValueError):
        raise InvalidInput(f"{name} must be an array of numbers") from None
    require(array.ndim in (1, 2) and array.size > 0, f"{name} must be an array of one or two axes, not {array.shape}")
    require(array.size <= MOST, f"{name} must hold at most 2^26 numbers, not {array.size}")
    require(bool(np.isfinite(array).all()), f"{name} must hold finite numbers")
    signs = bool(np.all(np.abs(array) == 1))
    data = np.packbits(array < 0, bitorder="little") if signs else (array + np.float32(0)).astype("<f4")  # no -0
    shape = "x".join(map(str, array.shape))
    return f"{'signs' if signs else 'float32'} {shape} {base64.b64encode(data.tobytes()).decode()}"


def from_text(text: str) -> np.ndarray:
    """The array of such a text: signs in int8, other numbers in float32.

    >>> from_text("signs 2x3 Ig==").tolist()
    [[1, -1, 1], [1, 1, -1]]
    """
    kind, shape, data = text.split(" ")
    sizes = tuple(int(size) for size in shape.split("x"))
    raw = np.frombuffer(base64.b64decode(data, validate=True), np.uint8)
    if kind != "signs":
        return raw.view("<f4").astype(np.float32).reshape(sizes)
    bits = np.unpackbits(raw, count=int(np.prod(sizes)), bitorder="little")
    return (1 - 2 * bits.astype(np.int8)).reshape(sizes)
