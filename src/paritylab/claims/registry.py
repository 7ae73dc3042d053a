"""The registry of claims, and which function tries which of them."""

from __future__ import annotations

import fnmatch
import functools
import importlib
import pkgutil
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING

from paritylab.errors import InvalidInput, unknown

if TYPE_CHECKING:
    from paritylab.claims.lab import Lab
    from paritylab.claims.verdicts import Outcome

    Method = Callable[[Lab], Outcome]

PAPERS = ("barak2022", "abbe2024", "glasgow2023", "daniely2020")
EXECUTABLE = ("barak2022", "abbe2024", "glasgow2023", "daniely2020")
"""The papers whose claims can be run; ``paritylab.claims.<paper>`` holds the functions that do."""

_METHODS: dict[str, Method] = {}


@dataclass(frozen=True)
class Claim:
    """One published statement: what is claimed, in which setup, and the rule by which it is judged."""

    id: str
    paper: str
    where: str
    kind: str
    title: str
    statement: str
    setup: str
    expect: str
    criterion: str
    quick: str
    cost: float
    """FLOPs of the full setup."""
    cost_note: str
    tier: str
    depends: tuple[str, ...]


@functools.cache
def registry() -> dict[str, Claim]:
    """Every claim, by id, in the order of the registry.

    >>> registry()["barak2022.fig7"].where
    'Figure 7; Appendix D.2'
    """
    text = resources.files("paritylab").joinpath("data/claims.toml").read_text(encoding="utf-8")
    claims = [Claim(**entry | {"depends": tuple(entry["depends"])}) for entry in tomllib.loads(text)["claim"]]
    return {claim.id: claim for claim in claims}


@functools.cache
def remarks() -> dict[str, str]:
    """What else was tried or found out about some claims, by id."""
    text = resources.files("paritylab").joinpath("data/remarks.toml").read_text(encoding="utf-8")
    return {claim: " ".join(remark.split()) for claim, remark in tomllib.loads(text)["remarks"].items()}


def find(patterns: Sequence[str]) -> list[Claim]:
    """The claims with these ids, or whose ids match these globs, each once.

    >>> [claim.id for claim in find(["barak2022.fig4-*"])]
    ['barak2022.fig4-left', 'barak2022.fig4-right']
    """
    found: dict[str, Claim] = {}
    for pattern in patterns:
        names = [name for name in registry() if fnmatch.fnmatchcase(name, pattern)]
        if not names:
            if any(sign in pattern for sign in "*?["):
                raise InvalidInput(f"no claim matches {pattern!r}; 'paritylab claims' lists them")
            raise _unknown_claim(pattern)
        found |= {name: registry()[name] for name in names}
    return list(found.values())


def _unknown_claim(name: str) -> InvalidInput:
    hint = str(unknown("claim", name, registry())).split("; allowed")[0]
    return InvalidInput(f"{hint}; 'paritylab claims' lists them")


def reproduces(claim: str) -> Callable[[Method], Method]:
    """Mark the function that tries a claim."""

    def mark(method: Method) -> Method:
        assert claim in registry(), claim
        assert claim not in _METHODS or _METHODS[claim].__qualname__ == method.__qualname__, claim
        _METHODS[claim] = method
        return method

    return mark


def method(claim: Claim) -> Method | None:
    """The function that tries a claim, or None where there is none yet."""
    if claim.paper in EXECUTABLE:
        package = importlib.import_module(f"paritylab.papers.{claim.paper}")
        for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)
    return _METHODS.get(claim.id)
