"""What the pages show: papers, claims with their evidence, counts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from paritylab.claims import evidence
from paritylab.claims.registry import Claim, registry, remarks
from paritylab.claims.verdicts import INCONCLUSIVE, NOT_REPRODUCED, REPRODUCED

OPEN = "open"
VERDICTS = {REPRODUCED: "✓", NOT_REPRODUCED: "✗", INCONCLUSIVE: "≈", OPEN: "○"}
"""The verdicts in the order of the pages, each with its sign; a claim without evidence is open."""
FIRST_COMMAND = "paritylab reproduce barak2022.fig2-left --quick"
"""What a newcomer should try: seconds, and reproduced."""

_BOX = re.compile(r'viewBox="0 0 ([\d.]+) ([\d.]+)"')
_MARK = re.compile(r'^@reproduces\("([^"]+)"\)', re.MULTILINE)


@dataclass(frozen=True)
class Paper:
    """One of the four papers, and the claims whose figures stand for it."""

    id: str
    authors: str
    title: str
    venue: str
    says: str
    headlines: tuple[str, ...]


PAPERS = (
    Paper("barak2022", "Barak, Edelman, Goel, Kakade, Malach, Zhang",
          "Hidden Progress in Deep Learning: SGD Learns Parities Near the Computational Limit", "NeurIPS 2022",
          "Plain SGD learns sparse parities with many networks in about as many steps as there are supports to"
          " choose from: a long plateau, then a sudden drop, while progress is hidden in the weights.",
          ("barak2022.fig2-left", "barak2022.fig3", "barak2022.fig7")),
    Paper("abbe2024", "Abbe, Cornacchia, Hązła, Kougang-Yombi",
          "Learning High-Degree Parities: The Crucial Role of the Initialization", "2024",
          "Parities of almost all bits are learned from Rademacher weights and not from Gaussian ones: what the start"
          " knows about the target decides.",
          ("abbe2024.fig1-right", "abbe2024.open-gal-predicts", "abbe2024.open-threshold")),
    Paper("glasgow2023", "Glasgow",
          "SGD Finds then Tunes Features in Two-Layer Neural Networks with Near-Optimal Sample Complexity: A Case Study"
          " in the XOR problem", "2023",
          "A two-layer ReLU network trained by minibatch SGD learns the XOR of two of d bits in d polylog(d) samples:"
          " it finds the features first and tunes them afterwards.",
          ("glasgow2023.thm3-1", "glasgow2023.phase2-margins")),
    Paper("daniely2020", "Daniely, Malach", "Learning Parities with Neural Networks", "NeurIPS 2020",
          "With inputs that leak the relevant bits, gradient descent on a two-layer network learns parities that no"
          " linear method on fixed features can.",
          ("daniely2020.thm2", "daniely2020.linear-fails")),
)


@dataclass(frozen=True)
class Source:
    """Where in the package the function that tries a claim stands."""

    module: str
    """Such as ``papers/barak2022/table.py``."""
    line: int

    @property
    def page(self) -> str:
        return f"source/{self.module.removesuffix('.py')}.html"

    @property
    def href(self) -> str:
        return f"{self.page}#L{self.line}"


@dataclass(frozen=True)
class Card:
    """A claim with the evidence that counts."""

    claim: Claim
    found: dict[str, Any] | None
    source: Source | None
    out: Path

    @property
    def id(self) -> str:
        return self.claim.id

    @property
    def href(self) -> str:
        return f"{self.claim.paper}.html#{self.claim.id}"

    @property
    def verdict(self) -> str:
        return self.found["verdict"] if self.found else OPEN

    @property
    def sign(self) -> str:
        return VERDICTS.get(self.verdict, "?")

    @cached_property
    def figure(self) -> Path | None:
        return evidence.figure_of(self.out, self.id, self.found) if self.found else None

    @cached_property
    def size(self) -> tuple[int, int]:
        """Width and height of the figure, so that a page keeps its place before it is loaded."""
        head = self.figure.read_text(encoding="utf-8")[:2000] if self.figure else ""
        found = _BOX.search(head)
        return (round(float(found[1])), round(float(found[2]))) if found else (400, 300)

    @cached_property
    def data(self) -> list[Path]:
        return evidence.data_of(self.out, self.id, self.found) if self.found else []

    @property
    def remark(self) -> str:
        return remarks().get(self.id, "")

    @property
    def command(self) -> str:
        """The command that makes this evidence again; the quick trial where there is none."""
        if not self.found:
            return f"paritylab reproduce {self.id} --quick"
        size = {"quick": " --quick", "full": " --full"}.get(self.found["size"], "")
        seed = f" --seed {self.found['seed']}" if self.found["seed"] else ""
        return f"paritylab reproduce {self.id}{size}{seed}"

    @property
    def checks(self) -> list[dict[str, Any]]:
        return [check | {"shown": number(check["value"]), "ends": interval(check["interval"]),
                         "sign": {True: "✓", False: "✗", None: "○"}[check["passed"]],
                         "word": {True: "pass", False: "fail", None: "undecided"}[check["passed"]]}
                for check in (self.found or {}).get("checks", [])]

    @property
    def numbers(self) -> list[tuple[str, str]]:
        return [(name, number(value)) for name, value in (self.found or {}).get("numbers", {}).items()]


def cards(out: Path) -> list[Card]:
    """Every claim of the registry with what came of it."""
    where = sources()
    return [Card(claim, evidence.strongest(out, claim.id), where.get(claim.id), out) for claim in registry().values()]


def counts(chosen: Sequence[Card]) -> dict[str, int]:
    """How many claims have each verdict."""
    verdicts = [card.verdict for card in chosen]
    return {verdict: verdicts.count(verdict) for verdict in VERDICTS}


def sources() -> dict[str, Source]:
    """The function that tries each claim, found without importing any."""
    package = Path(__file__).parents[1]
    found = {}
    for path in sorted((package / "papers").glob("*/*.py")):
        text = path.read_text(encoding="utf-8")
        for mark in _MARK.finditer(text):
            found[mark[1]] = Source(path.relative_to(package).as_posix(), text.count("\n", 0, mark.start()) + 1)
    return found


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
