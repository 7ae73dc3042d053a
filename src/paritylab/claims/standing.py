"""Where a claim stands: the result of each of its parts, on what basis, and what the first rule said."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from paritylab.claims import evidence
from paritylab.claims.library import Claim
from paritylab.claims.verdicts import CONTRADICTED, HOLDS, REPRODUCED, UNDECIDED, Result, joined

IN_PARTS, OPEN = "in parts", "open"
WORDS = (HOLDS, IN_PARTS, CONTRADICTED, UNDECIDED, OPEN)
"""How a claim stands, in the order of the pages; ``in parts`` where parts of it differ, ``open`` without evidence."""
_NUMBER = r"(-?(?:\d[\d.]*(?:e[+-]?\d+)?|inf))"


@dataclass(frozen=True)
class Standing:
    """A claim by the rule that counts, with its evidence and that of the first rule."""

    claim: Claim
    """The version of the claim whose evidence it is."""
    found: dict[str, Any] | None
    first: dict[str, Any] | None
    """The evidence of the first rule, where another counts now."""

    @cached_property
    def results(self) -> dict[str, Result]:
        """The result of each part; the part of a claim without parts has no name."""
        parts: dict[str, list[Result]] = {}
        for check in (self.found or {}).get("checks", []):
            parts.setdefault(check.get("part", ""), []).append(result_of(check))
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

    @property
    def untried(self) -> bool:
        """Whether an amendment waits for its run."""
        return self.claim.current is not self.claim


def standing(out: Path, claim: Claim) -> Standing:
    """Where a claim stands by the amended rule, or by the first where there is no other, or no run by it yet."""
    first = evidence.strongest(out, claim.id)
    if claim.amended and (found := evidence.strongest(out, claim.amended.key)):
        return Standing(claim.amended, found, first)
    return Standing(claim, first, None)


def tally(standings: Iterable[Standing]) -> dict[str, int]:
    """How many claims stand how."""
    words = [each.word for each in standings]
    return {word: words.count(word) for word in WORDS}


def told(standings: Sequence[Standing]) -> str:
    """Both counts: by the first rules and by those that count now."""
    counts = tally(standings)
    first = sum((each.first or each.found or {}).get("verdict") == REPRODUCED for each in standings)
    amended = sum(each.first is not None for each in standings)
    parts = [result for each in standings if each.word == IN_PARTS for result in each.results.values()]
    within = f" ({parts.count(HOLDS)} of {len(parts)} parts hold)" if parts else ""
    shown = [f"{counts[word]} {word}{within if word == IN_PARTS else ''}" for word in WORDS if counts[word]]
    return (f"first rules: {first} of {len(standings)} reproduced; by those that count now ({amended} amended, and an"
            f" interval asked of every pass): {', '.join(shown)}")


def result_of(check: Mapping[str, Any]) -> Result:
    """The result of a check that evidence keeps; of older ones, which have none, from its interval and its words.

    >>> result_of({"passed": True, "certain": False, "interval": [0.1, 0.4], "rule": ">= 0.2"})
    'undecided'
    """
    if "result" in check:
        return check["result"]
    passed, ends = check["passed"], check["interval"]
    if passed is None:
        return UNDECIDED
    if not passed:
        return CONTRADICTED if check["certain"] else UNDECIDED
    bounds = printed_bounds(check["rule"])
    if not ends or None in ends or bounds is None:
        return HOLDS
    low, high = map(float, ends)
    return HOLDS if bounds[0] <= low and high <= bounds[1] else UNDECIDED


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
