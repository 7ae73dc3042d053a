"""The pages about claims and results: home, one for each paper, and one for what is on this disk."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from paritylab.claims.library import Paper, papers
from paritylab.claims.standing import IN_PARTS
from paritylab.claims.verdicts import CONTRADICTED, UNDECIDED
from paritylab.site import content, play, watch
from paritylab.site.content import Card
from paritylab.site.results import summaries

if TYPE_CHECKING:
    from paritylab.site.build import Site
    from paritylab.site.documents import Document


def home(site: Site, cards: list[Card]) -> None:
    """The papers, what was reproduced and what was not, and one command to check."""
    panels = []
    for paper in papers().values():
        own = [card for card in cards if card.claim.paper == paper]
        shown = next((card for name in paper.headlines for card in own if card.id == name and card.figure), None)
        panels.append((paper, content.counts(own), len(own), shown))
    published = [card for card in cards if not card.claim.paper.own]
    lists = {title: [card for card in published if card.word == word]
             for title, word in (("Contradicted", CONTRADICTED), ("In parts", IN_PARTS), ("Undecided", UNDECIDED))}
    site.page("index.html", "home", "What holds", panels=panels, counts=content.counts(published),
              total=len(published), lists=lists,
              command=content.first_command(published))


def paper(site: Site, paper: Paper, cards: list[Card], docs: Sequence[Document]) -> None:
    """Every claim of one paper as a card; above them what else it brings to read."""
    site.page(f"{paper.id}.html", "paper", paper.id, paper=paper, cards=cards, counts=content.counts(cards), docs=docs)


MOST_ROWS = 1000
"""Of sweeps that the page lists."""


def results(site: Site, cards: list[Card], out: Path) -> None:
    """What is under ``out``: claims tried, figures, sweeps."""
    own = [card for card in cards if card.found and card.found["source"] == "local"]
    here = out.resolve()  # a link that leads elsewhere is not a result
    figures = sorted(path for path in out.glob("*.svg") if path.is_file() and path.resolve().is_relative_to(here))
    for path in figures:
        site.files[f"figures/{path.name}"] = path.read_bytes()
    rows = summaries(out)
    site.page("results.html", "results", "Your results", own=own, figures=[path.name for path in figures],
              rows=rows[:MOST_ROWS], more=max(0, len(rows) - MOST_ROWS), told=percentile)


def watched(site: Site) -> None:
    """The recorded runs."""
    runs = watch.shipped()
    for name, run in runs.items():
        site.data(f"watch-{name}", run)
    site.page("watch.html", "watch", "Watch it learn", runs=runs)


def played(site: Site) -> None:
    """Networks that learn here and now."""
    experiments = play.told()
    for name, value in play.scripts().items():
        site.data(name, value)
    needed = ("name", "title", "runs", "speed", "variants")
    site.data("play", [{name: each[name] for name in needed} for each in experiments])
    site.page("play.html", "play", "Play", experiments=experiments, first=play.first().to_json())


def percentile(value: float | None, ends: Sequence[float | None]) -> str:
    """
    >>> percentile(1240.0, (1200.0, None)), percentile(None, (None, None))
    ('1,240 [1,200, not reached]', 'not reached')
    """
    shown = ["not reached" if each is None else f"{each:,.0f}" for each in (value, *ends)]
    return shown[0] if value is None and not ends[0] else f"{shown[0]} [{shown[1]}, {shown[2]}]"
