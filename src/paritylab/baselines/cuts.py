"""Features as bits: above or below the midpoint of their range. Tables may be sparse."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from paritylab.aliases import Floats
from paritylab.baselines.packed import Bits
from paritylab.errors import InvalidInput

ENTRIES = 2**24
"""Of a sparse table that are dense at a time."""


def midpoints(X: Any, binarise: bool) -> Floats:
    """Where features are cut, X (rows, features) being an array or a sparse matrix in columns; with ``binarise`` False,
    those of more than two values are refused.

    >>> midpoints(np.array([[0.0, -1.0], [1.0, 1.0]]), False).tolist()
    [0.5, 0.0]
    """
    cuts = [np.zeros(0)]
    for first, part in _parts(X):
        low, high = part.min(axis=0), part.max(axis=0)
        if not binarise:
            odd = np.flatnonzero(np.any((part != low) & (part != high), axis=0))
            if len(odd):
                raise InvalidInput(f"feature {first + odd[0]} has more than two values;"
                                   f" binarise=True cuts it at the midpoint")
        middle = low / 2 + high / 2
        # Between neighbouring numbers it rounds to one of them.
        cuts.append(np.where((low <= middle) & (middle < high), middle, low))
    return np.concatenate(cuts)


def bits(X: Any, cuts: Floats) -> Bits:
    """Whether each entry lies above its feature's cut."""
    found = np.empty(X.shape, bool)
    for first, part in _parts(X):
        after = first + part.shape[1]
        np.greater(part, cuts[first:after], out=found[:, first:after])
    return found


def _parts(X: Any) -> Iterator[tuple[int, Floats]]:
    """Columns as dense arrays, with the number of their first; all at once if they are dense already."""
    if isinstance(X, np.ndarray):
        yield 0, X
        return
    step = max(1, ENTRIES // max(1, X.shape[0]))
    for first in range(0, X.shape[1], step):
        yield first, X[:, first : first + step].toarray()
