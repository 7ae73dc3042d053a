"""What the pages show: papers, claims with their evidence, counts."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from paritylab.claims import evidence
from paritylab.claims.library import Claim
from paritylab.claims.pages import command, history_lines, origin_lines, power_words
from paritylab.claims.registry import registry
from paritylab.claims.standing import IN_PARTS, OPEN, Standing, standing, tally
from paritylab.claims.texts import planned, request_lines, rule_lines, size_lines
from paritylab.claims.verdicts import CONTRADICTED, HOLDS, UNDECIDED
from paritylab.errors import InvalidInput
from paritylab.running.tasks import ComputeTask
from paritylab.site import play

SIGNS = {HOLDS: "✓", IN_PARTS: "◐", CONTRADICTED: "✗", UNDECIDED: "≈", OPEN: "○"}
"""How claims stand, in the order of the pages, each with its sign."""

SOON = 20.0
"""Seconds that a newcomer waits for a first verdict."""

_BOX = re.compile(r'viewBox="0 0 ([\d.]+) ([\d.]+)"')


@dataclass(frozen=True)
class Card:
    """A claim with the evidence that counts."""

    claim: Claim
    standing: Standing
    out: Path

    @property
    def found(self) -> dict[str, Any] | None:
        return self.standing.found

    @property
    def id(self) -> str:
        return self.claim.id

    @property
    def href(self) -> str:
        return f"{self.claim.paper.id}.html#{self.claim.id}"

    @property
    def source_page(self) -> str:
        """The page with the module that tries it."""
        return f"source/{self.claim.paper.id}/{self.claim.module}.html"

    @cached_property
    def sizes(self) -> list[str]:
        return self._told(size_lines)

    @cached_property
    def rules(self) -> list[str]:
        return self._told(rule_lines)

    @cached_property
    def asks(self) -> list[str]:
        return self._told(lambda claim: request_lines(claim, "quick"))

    def _told(self, lines: Callable[[Claim], list[str]]) -> list[str]:
        try:
            return lines(self.claim)
        except InvalidInput as error:  # a paper whose code cannot be loaded
            return [str(error)]

    @property
    def word(self) -> str:
        return self.standing.word

    @property
    def parts(self) -> list[tuple[str, str, str]]:
        """Each part with its result and basis."""
        return [(part, result, self.standing.basis(part)) for part, result in self.standing.results.items()]

    @property
    def history(self) -> list[str]:
        return history_lines(self.claim)

    @cached_property
    def figure(self) -> Path | None:
        return evidence.figure_of(self.out, self.claim.id, self.found) if self.found else None

    @cached_property
    def size(self) -> tuple[int, int]:
        """Width and height of the figure, so that a page keeps its place before it is loaded."""
        head = self.figure.read_text(encoding="utf-8")[:2000] if self.figure else ""
        found = _BOX.search(head)
        return (round(float(found[1])), round(float(found[2]))) if found else (400, 300)

    @cached_property
    def data(self) -> list[Path]:
        return evidence.data_of(self.out, self.claim.id, self.found) if self.found else []

    @cached_property
    def played(self) -> str | None:
        """The address at which networks of its quick trial learn in the reader's browser; None where that cannot be."""
        try:
            tasks, _ = planned(self.claim, "quick")
        except InvalidInput:
            return None
        setups = [task.setup for task in tasks if not isinstance(task, ComputeTask)]
        return next((play.link(setup) for setup in setups if play.refusal(setup) is None), None)

    @property
    def remark(self) -> str:
        return self.claim.remark

    @property
    def command(self) -> str:
        """The command that makes this evidence again; the quick trial where there is none."""
        return command(self.claim, self.found)

    @property
    def origin(self) -> list[str]:
        """Who made the evidence, with what, and its digests."""
        return origin_lines(self.found, evidence.files_of(self.claim.id, self.found)) if self.found else []

    @property
    def records(self) -> Path | None:
        """The table of records that the evidence stands on."""
        return evidence.sources_of(self.out, self.claim.id, self.found) if self.found else None

    @property
    def checks(self) -> list[dict[str, Any]]:
        return [check | {"shown": number(check["value"]), "ends": interval(check["interval"]),
                         "sign": SIGNS[check["result"]], "word": check["result"],
                         "power": power_words(check)}
                for check in (self.found or {}).get("checks", [])]

    @property
    def numbers(self) -> list[tuple[str, str]]:
        return [(name, number(value)) for name, value in (self.found or {}).get("numbers", {}).items()]


def cards(out: Path) -> list[Card]:
    """Every claim of every paper with what came of it."""
    return [Card(claim, standing(out, claim), out) for claim in registry().values()]


def first_command(chosen: Sequence[Card]) -> str:
    """What a newcomer should try: it takes seconds, and its verdict is that of the largest trial shipped."""
    for card in chosen:
        quick = evidence.shipped(card.id).get("quick")
        if quick is None or card.id not in card.claim.paper.headlines or card.word != HOLDS:
            continue
        if quick["seconds"] < SOON and Standing(card.claim, quick).word == HOLDS:
            return f"paritylab reproduce {card.id} --quick"
    return "paritylab claims"


def counts(chosen: Sequence[Card]) -> dict[str, int]:
    """How many claims stand how."""
    return tally(card.standing for card in chosen)


def number(value: Any) -> str:
    """A number as people write it.

    >>> number(0.123456), number(1e-9), number(25.0), number("inf"), number(None)
    ('0.1235', '1e-09', '25', 'inf', 'unknown')
    """
    if value is None:
        return "unknown"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def interval(ends: Any) -> str:
    return f"[{', '.join(map(number, ends))}]" if ends else ""


def duration(seconds: float) -> str:
    """
    >>> duration(0.4), duration(90), duration(5400)
    ('0.4 s', '1.5 min', '1.5 h')
    """
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.2g} s"


def count(value: float) -> str:
    """
    >>> count(42550), count(3.2e14)
    ('42,550', '3.2e+14')
    """
    return f"{value:,.0f}" if value < 1e9 else f"{value:.2g}"
