"""Building the site: all files in memory first, then onto disk, each whole or not at all."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from paritylab import palette
from paritylab.claims import findings
from paritylab.claims.library import papers
from paritylab.claims.pages import markdown
from paritylab.site import content, documents, formulas, notebooks, pages, reference
from paritylab.site.content import Card
from paritylab.storage.files import write_atomically

_HERE = Path(__file__).parent


def _marked(text: str) -> Any:
    """Text whose ``code`` is marked as such, escaped."""
    from markupsafe import Markup, escape

    return Markup(re.sub(r"``(.+?)``|:\w+:`([^`]+)`", r"<code>\1\2</code>", str(escape(text))))


def _templates(folders: Sequence[Path]) -> Any:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    found = Environment(loader=FileSystemLoader([_HERE / "templates", *folders]), autoescape=True, trim_blocks=True,
                        lstrip_blocks=True, undefined=StrictUndefined)
    found.filters |= {"number": content.number, "duration": content.duration, "count": content.count,
                      "blocks": reference.blocks, "marked": _marked}
    found.globals |= {"PAPERS": list(papers().values()), "SIGNS": content.SIGNS}
    return found


class Site:
    """The files of a site, by path; ``live`` pages look for news from the server that shows them."""

    def __init__(self, live: bool = False) -> None:
        self.files: dict[str, bytes] = {}
        self.live = live
        self.parts = {paper: part for paper in papers().values() if (part := paper.part("site"))}
        folders = [paper.folder / "site" for paper in self.parts]
        self._templates = _templates(folders)
        self._templates.globals["PAGES"] = functools.reduce(dict.__or__, (p.PAGES for p in self.parts.values()), {})
        for folder in (_HERE / "assets", *folders):
            for path in sorted(folder.glob("*.*s*")):
                if path.suffix in (".js", ".css"):
                    self.files[f"assets/{path.name}"] = path.read_bytes()
        self.files |= {"assets/math.css": formulas.stylesheet(), "assets/math-license.txt": formulas.licence(),
                       "assets/palette.css": palette.stylesheet().encode()}

    def page(self, path: str, template: str, title: str, **values: Any) -> None:
        """Add a page."""
        told = {"path": path, "root": "../" * path.count("/"), "title": title, "live": self.live, **values}
        self.files[path] = self._templates.get_template(f"{template}.html").render(told).encode()

    def data(self, name: str, value: Any) -> None:
        """Add ``data/<name>.js``: a script, since pages opened from disk may not read other files."""
        text = json.dumps(value, allow_nan=False, separators=(",", ":"), ensure_ascii=True).replace("<", "\\u003c")
        self.files[f"data/{name}.js"] = f"(window.paritylab??={{}})[{json.dumps(name)}]={text};\n".encode()


def report(out: Path) -> dict[str, Path]:
    """Build ``<out>/site`` from the shipped evidence and what is under ``out``; the paths written, by name."""
    files = build(out)
    root = out / "site"
    for name, data in files.items():
        path = root / name
        if not path.is_file() or path.read_bytes() != data:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, data)
    return {name: root / name for name in files}


def build(out: Path, live: bool = False) -> Mapping[str, bytes]:
    """The files of the site."""
    site = Site(live)
    cards = content.cards(out)
    pages.home(site, cards)
    for paper in papers().values():
        pages.paper(site, paper, [card for card in cards if card.claim.paper == paper])
    for part in site.parts.values():
        part.add(site, {card.id: card for card in cards})
    pages.watched(site)
    pages.played(site)
    pages.results(site, cards, out)
    if live:
        site.page("live.html", "live", "Live")
    _evidence(site, cards)
    _sources(site, cards)
    _documents(site, cards)
    return site.files


def _evidence(site: Site, cards: list[Card]) -> None:
    """Figures, data and records of every claim."""
    for card in cards:
        if card.found:
            text = json.dumps(card.found, indent=1, allow_nan=False) + "\n"
            site.files[f"evidence/{card.id}.json"] = text.encode()
        if card.figure:
            site.files[f"evidence/{card.id}.svg"] = card.figure.read_bytes()
        for path in card.data:
            site.files[f"evidence/{card.id}{path.suffix}"] = path.read_bytes()
        if card.records:
            site.files[f"evidence/{card.id}.records.csv.gz"] = card.records.read_bytes()


def _sources(site: Site, cards: list[Card]) -> None:
    """The modules that try the claims."""
    pages: dict[str, list[Card]] = {}
    for card in cards:
        pages.setdefault(card.source_page, []).append(card)
    for page, tried in pages.items():
        claim = tried[0].tried
        lines = claim.path.read_text(encoding="utf-8").splitlines()
        site.page(page, "source", claim.source.rpartition(":")[0], lines=lines, tried=tried)


def _documents(site: Site, cards: list[Card]) -> None:
    claims = {card.id: card.href for card in cards}
    order = list(documents.PARTS.values())
    written = {"reference/reproduction": markdown([card.claim for card in cards]),
               "explanation/findings": findings.markdown("../data/findings")}
    found = sorted([*documents.documents(claims, written), *notebooks.pages(claims)],
                   key=lambda each: order.index(each.part))
    figures = [each.figure for each in findings.findings() if each.figure]
    site.files |= {f"docs/data/findings/{path.name}": path.read_bytes() for path in figures}
    for document in found:
        site.page(f"docs/{document.name}.html", "document", document.title, document=document, documents=found)
        for image in document.images:
            if (path := documents.directory() / image).is_file():
                site.files[f"docs/{image}"] = path.read_bytes()
        site.files |= {f"docs/{path}": data for path, data in document.files.items()}
    site.page(f"docs/{documents.API}.html", "reference", "API reference", sections=reference.sections(),
              documents=found)
    site.page("docs/index.html", "documents", "Documentation", documents=found)
