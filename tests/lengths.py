"""Which cases of a test are tried by ``make test``, which only by ``make test-long``, which by ``make test-slow``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def long_but(names: Iterable[str], *kept: str, slow: Iterable[str] = ()) -> list[Any]:
    """The cases with these names, of which only those kept are short, and some slow: ``make test-slow`` tries them."""
    names, slow = list(names), set(slow)
    assert set(kept) | slow <= set(names), (kept, slow)
    return [name if name in kept else pytest.param(name, marks=SLOW if name in slow else pytest.mark.long)
            for name in names]


def slow_but(names: Iterable[str], *kept: str) -> list[Any]:
    """The same, with all others slow."""
    names = list(names)
    return long_but(names, *kept, slow=set(names) - set(kept))


SLOW = [pytest.mark.slow, pytest.mark.long]
