"""Findings: what was found out that the papers do not say, each with its evidence, derivation and what would refute it.

A paper's ``findings.toml`` lists them::

    [[finding]]
    title = "No constant threshold"
    sentence = "One sentence that says it."
    claims = ["me2025.width"]               # whose evidence shows it; the figure is that of the first
    derivation = "Proof, derivation or a link to one, such as [proof](docs/proof.md)."
    refuted = "What would refute it."
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from paritylab.claims import evidence
from paritylab.claims.library import Paper, papers
from paritylab.claims.pages import check_line, plain
from paritylab.claims.registry import registry
from paritylab.claims.standing import Standing, standing
from paritylab.claims.texts import NOWHERE
from paritylab.errors import require

FIELDS = ("title", "sentence", "claims", "derivation", "refuted")
MOST_CHECKS = 12
HEAD = """# Findings

What the laboratory knows that the papers do not say: each finding with its figure, the checks of the claims that show
it (95 % intervals), where it comes from, what would refute it, and the command that tries it again. A rule that was
changed was committed before its run; what was known when a rule of our own was written is on its claim's page
(`paritylab claims show ID`). This page is made from shipped evidence when the site is built."""


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
    def figure(self) -> str:
        """A link to the figure of the first claim that has one; empty if none has."""
        for each in self.standings:
            if each.found and (path := evidence.figure_of(NOWHERE, each.claim.id, each.found)):
                return _from_page(each.claim.paper, f"evidence/{path.name}")
        return ""


def findings() -> list[Finding]:
    """Those of every paper."""
    return [finding for paper in papers().values() for finding in _of(paper)]


def _of(paper: Paper) -> Iterator[Finding]:
    for entry in paper.findings:
        require(set(entry) == set(FIELDS), f"findings.toml of {paper.id}: a finding has {', '.join(FIELDS)}")
        claims = [str(each) for each in entry["claims"]]
        for each in claims:
            require(each in registry(), f"findings.toml of {paper.id}: there is no claim {each}")
        texts = {field: str(entry[field]).strip() for field in FIELDS if field != "claims"}
        moved = {field: re.sub(r"(?<=\]\()(?!\w+:)[^)]+", lambda link: _from_page(paper, link[0]), text)
                 for field, text in texts.items()}
        yield Finding(claims=tuple(claims), **moved)


def _from_page(paper: Paper, link: str) -> str:
    """A link of a paper's folder as the page, ``docs/explanation/findings.md``, would have it."""
    return f"../../{paper.place.source}/{link}"


def markdown() -> str:
    """The page."""
    lines = [HEAD]
    for number, finding in enumerate(findings(), 1):
        lines += ["", f"## {number}. {finding.title}", "", f"**{finding.sentence}**"]
        if finding.figure:
            lines += ["", f"![{finding.title}]({finding.figure})"]
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
