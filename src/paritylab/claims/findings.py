"""Findings: what was found out that the papers do not say, each with its evidence, derivation and what would refute it.

A paper's ``findings.toml`` lists them::

    [[finding]]
    title = "No constant threshold"
    sentence = "One sentence that says it."
    claims = ["me2025.width"]               # whose evidence shows it; the figure is that of the first
    derivation = "Proof, derivation or a link to one."
    refuted = "What would refute it."
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from paritylab.claims import evidence
from paritylab.claims.library import papers
from paritylab.claims.pages import check_line, plain
from paritylab.claims.registry import registry
from paritylab.claims.standing import Standing, standing
from paritylab.claims.texts import NOWHERE
from paritylab.errors import require

FIELDS = ("title", "sentence", "claims", "derivation", "refuted")
MOST_CHECKS = 12
HEAD = """# Findings

What the laboratory knows that the papers do not say: each finding with its figure, the checks of the claims that show
it (95 % intervals), where it comes from, what would refute it, and the command that tries it again. Amended rules were
committed before their runs; what was known when a rule of our own was written is on its claim's page (`paritylab claims
show ID`). `make docs` writes this page from the evidence that the package ships."""


@dataclass(frozen=True)
class Finding:
    """One of them."""

    title: str
    sentence: str
    claims: tuple[str, ...]
    derivation: str
    refuted: str

    @property
    def standings(self) -> list[Standing]:
        return [standing(NOWHERE, registry()[name]) for name in self.claims]

    @property
    def figure(self) -> Path | None:
        """The figure of the first claim that has one."""
        found = (evidence.figure_of(NOWHERE, each.claim.key, each.found) for each in self.standings if each.found)
        return next((path for path in found if path), None)


def findings() -> list[Finding]:
    """Those of every paper."""
    return [finding for paper in papers().values() for finding in _of(paper.id, paper.findings)]


def _of(name: str, entries: list[dict[str, object]]) -> Iterator[Finding]:
    for entry in entries:
        require(set(entry) == set(FIELDS), f"findings.toml of {name}: a finding has {', '.join(FIELDS)}")
        claims = [str(each) for each in list(entry["claims"])]  # pyright: ignore[reportArgumentType, reportUnknownArgumentType, reportUnknownVariableType]
        for each in claims:
            require(each in registry(), f"findings.toml of {name}: there is no claim {each}")
        texts = {field: str(entry[field]).strip() for field in FIELDS if field != "claims"}
        yield Finding(claims=tuple(claims), **texts)


def markdown(figures: str) -> str:
    """The page; figures are looked for in this folder beside it, under the name of their file."""
    lines = [HEAD]
    for number, finding in enumerate(findings(), 1):
        lines += ["", f"## {number}. {finding.title}", "", f"**{finding.sentence}**"]
        if finding.figure:
            lines += ["", f"![{finding.title}]({figures}/{finding.figure.name})"]
        for each in finding.standings:
            lines += ["", *_evidence(each)]
        lines += ["", f"*Where it comes from.* {finding.derivation}", "", f"*What would refute it.* {finding.refuted}"]
    return "\n".join(lines) + "\n"


def _evidence(each: Standing) -> list[str]:
    found = each.found
    if found is None:
        return [f"`{each.claim.id}`: not tried yet."]
    size = {"quick": " --quick", "full": " --full"}.get(found["size"], "")
    seed = f" --seed {found['seed']}" if found["seed"] else ""
    told = "; ".join(map(plain, each.lines))
    checks = found["checks"][:MOST_CHECKS]
    more = [f"- and {len(found['checks']) - len(checks)} more"] if len(found["checks"]) > len(checks) else []
    return [f"`{each.claim.id}` ({found['runs']} runs): {told}.",
            f"Again: `paritylab reproduce {each.claim.id}{size}{seed}`", "",
            *(f"- {plain(check_line(check))}" for check in checks), *more]
