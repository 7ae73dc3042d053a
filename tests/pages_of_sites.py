"""Pages of a built site, and what must be true of every one."""

from __future__ import annotations

import os
from collections.abc import Mapping
from html.parser import HTMLParser
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urldefrag

from paritylab.claims import papers, registry
from paritylab.cli import build_parser
from paritylab.site import content, watch

NOWHERE = Path("nowhere")


class Page(HTMLParser):
    """Links, ids and visible words of a page."""

    def __init__(self, text):
        super().__init__()
        self.links, self.ids, self.tags = [], set(), []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        for name, value in attrs:
            if name in ("href", "src") and not (tag == "a" and value.startswith("https://")):  # a reader may leave
                self.links.append(value)
            if name == "id":
                assert value not in self.ids, f"id {value} twice"
                self.ids.add(value)


def pages_of(site: Mapping[str, bytes]) -> dict[str, Page]:
    return {name: Page(data.decode()) for name, data in site.items() if name.endswith(".html")}


def check_links(site: Mapping[str, bytes], pages: Mapping[str, Page]) -> None:
    """Every link leads to a page of the site and a place on it."""
    for name, page in pages.items():
        for link in page.links:
            if link == "data:,":
                continue
            assert "://" not in link, f"{name} reaches for {link}"
            target, place = urldefrag(link)
            path = os.path.normpath(PurePosixPath(name).parent / unquote(target)) if target else name
            assert path in site, f"{name} links to {link}"
            if place.startswith("runs="):
                assert path == "play.html"  # a whole Setup: tests/test_play.py has the page read it
            elif place and path.endswith(".html"):
                assert unquote(place) in pages[path].ids, f"{name} links to {link}"


def check_counts(site: Mapping[str, bytes]) -> None:
    """The pages show as many claims that hold, and so on, as the evidence says; one is proposed to begin with."""
    home, cards = site["index.html"].decode(), content.cards(NOWHERE)
    counts = content.counts(cards)
    assert sum(counts.values()) == len(registry.registry())
    published = content.counts([card for card in cards if not card.claim.paper.own])
    assert f"{published['holds']} hold<" in home
    for word, count in counts.items():
        shown = sum(site[f"{paper}.html"].decode().count(f'data-result="{word}"') for paper in papers())
        assert shown == count, word
    command = content.first_command(cards)
    assert command in home
    assert next(card for card in cards if card.id == command.split()[2]).word == "holds"


def check_claims(site: Mapping[str, bytes]) -> None:
    """Every claim has its source and a command; with evidence, also its place on the page, data and figure."""
    for card in content.cards(NOWHERE):
        assert card.source_page in site, card.id
        build_parser().parse_args(card.command.split()[1:])
        if card.found:
            assert f"evidence/{card.id}.json" in site
            page = site[f"{card.claim.paper.id}.html"].decode()
            assert f'id="{card.id}"' in page
            assert (f"evidence/{card.id}.svg" in page) == (card.figure is not None)


def check_recordings(site: Mapping[str, bytes]) -> None:
    """Recorded runs are small, of one length, and their commands are understood."""
    for _, recording in watch.recordings():
        assert len(site[f"data/watch-{recording.name}.js"]) < 300_000
        build_parser().parse_args(recording.command.split()[1:])
        run = watch.shipped()[recording.name]
        for panel in run["panels"]:
            lengths = {len(panel["accuracy"]), len(panel["loss"]), *map(len, panel["progress"].values())}
            assert lengths == {len(run["steps"])}
