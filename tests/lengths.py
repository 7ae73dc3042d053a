"""Which cases of a test are tried by ``make test``, and which by ``make test-long`` alone."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def long_but(names: Iterable[str], *kept: str) -> list[Any]:
    """The cases with these names, of which only those kept are short."""
    return _marked(names, kept, pytest.mark.long)


def slow_but(names: Iterable[str], *kept: str) -> list[Any]:
    """The same, with all others among those that ``make test-slow`` tries alone."""
    return _marked(names, kept, pytest.mark.slow, pytest.mark.long)


def _marked(names: Iterable[str], kept: Iterable[str], *marks: pytest.MarkDecorator) -> list[Any]:
    names = list(names)
    assert set(kept) <= set(names), kept
    return [name if name in kept else pytest.param(name, marks=marks) for name in names]
