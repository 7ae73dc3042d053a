"""Where a claim stands: the result of each of its parts, and on what basis."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from paritylab.claims import evidence
from paritylab.claims.library import Claim
from paritylab.claims.verdicts import CONTRADICTED, HOLDS, UNDECIDED, Result, joined

IN_PARTS, OPEN = "in parts", "open"
WORDS = (HOLDS, IN_PARTS, CONTRADICTED, UNDECIDED, OPEN)
"""How a claim stands, in the order of the pages; ``in parts`` where parts of it differ, ``open`` without evidence."""
_NUMBER = r"(-?(?:\d[\d.]*(?:e[+-]?\d+)?|inf))"


@dataclass(frozen=True)
class Standing:
    """A claim with its evidence, if there is some."""

    claim: Claim
    found: dict[str, Any] | None

    @cached_property
    def results(self) -> dict[str, Result]:
        """The result of each part; the part of a claim without parts has no name."""
        parts: dict[str, list[Result]] = {}
        for check in (self.found or {}).get("checks", []):
            parts.setdefault(check["part"], []).append(check["result"])
        return {part: joined(results) for part, results in parts.items()}

    @property
    def word(self) -> str:
        """All parts hold, all are contradicted, all are undecided, or they differ."""
        if not self.results:
            return OPEN
        return next(iter(self.results.values())) if len(set(self.results.values())) == 1 else IN_PARTS

    def basis(self, part: str = "") -> str:
        return self.claim.basis(part)

    @property
    def lines(self) -> list[str]:
        """What holds and on what basis, a line for each part.

        >>> from paritylab.claims.registry import registry
        >>> standing(Path("nowhere"), registry()["me2025.width"]).word
        'holds'
        """
        return [f"{part}: {result}, {self.basis(part)}" if part else f"{result}, {self.basis(part)}"
                for part, result in self.results.items()]


def standing(out: Path, claim: Claim) -> Standing:
    """Where a claim stands by its strongest evidence."""
    return Standing(claim, evidence.strongest(out, claim.id))


def tally(standings: Iterable[Standing]) -> dict[str, int]:
    """How many claims stand how."""
    words = [each.word for each in standings]
    return {word: words.count(word) for word in WORDS}


def told(standings: Sequence[Standing]) -> str:
    """How many claims stand how, in a line."""
    counts = tally(standings)
    parts = [result for each in standings if each.word == IN_PARTS for result in each.results.values()]
    within = f" ({parts.count(HOLDS)} of {len(parts)} parts hold)" if parts else ""
    return ", ".join(f"{counts[word]} {word}{within if word == IN_PARTS else ''}" for word in WORDS if counts[word])


def printed_bounds(rule: str) -> tuple[float, float] | None:
    """The bounds that the words of a rule print.

    >>> printed_bounds(">= 0.2"), printed_bounds("yes")
    ((0.2, inf), None)
    """
    if found := re.fullmatch(f"{_NUMBER} to {_NUMBER}", rule):
        return float(found[1]), float(found[2])
    if found := re.fullmatch(f"([<>])=? {_NUMBER}", rule):
        return (float(found[2]), float("inf")) if found[1] == ">" else (float("-inf"), float(found[2]))
    return None
