"""Building the site: all files in memory first, then onto disk, each whole or not at all."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from paritylab import palette
from paritylab.baselines import page as learners
from paritylab.claims import findings
from paritylab.claims.library import papers
from paritylab.claims.pages import markdown
from paritylab.site import content, documents, formulas, notebooks, pages, reference
from paritylab.site.content import Card
from paritylab.site.documents import Document
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


def report(out: Path, written: Mapping[str, str] | None = None) -> dict[str, Path]:
    """Build ``<out>/site`` from the shipped evidence and what is under ``out``; the paths written, by name."""
    files = build(out, written=written)
    root = out / "site"
    for name, data in files.items():
        path = root / name
        if not path.is_file() or path.read_bytes() != data:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, data)
    return {name: root / name for name in files}


def build(out: Path, live: bool = False, written: Mapping[str, str] | None = None) -> Mapping[str, bytes]:
    """The files of the site; ``written`` are pages in Markdown that the caller brings (:func:`documents.documents`)."""
    site = Site(live)
    cards = content.cards(out)
    found = _documents(site, cards, written or {})
    pages.home(site, cards)
    for paper in papers().values():
        docs = [each for each in found if each.name.startswith(f"papers/{paper.id}/")]
        pages.paper(site, paper, [card for card in cards if card.claim.paper == paper], docs)
    for part in site.parts.values():
        part.add(site, {card.id: card for card in cards})
    pages.watched(site)
    pages.played(site)
    pages.results(site, cards, out)
    if live:
        site.page("live.html", "live", "Live")
    _evidence(site, cards)
    _sources(site, cards)
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
        claim = tried[0].claim
        lines = claim.path.read_text(encoding="utf-8").splitlines()
        site.page(page, "source", claim.source.rpartition(":")[0], lines=lines, tried=tried)


API = Document("docs/reference/api", "API reference", "Every public name with its signature and what it does.")


def _documents(site: Site, cards: list[Card], brought: Mapping[str, str]) -> list[Document]:
    """Everything that there is to read: files, notebooks, and pages that are made here, of what is installed."""
    claims = {card.id: card.href for card in cards}
    written = {"docs/reference/learners.md": learners.markdown(), "docs/explanation/findings.md": findings.markdown(),
               "docs/reference/reproduction.md": markdown([card.claim for card in cards]), **brought}
    found = [API, *documents.documents(claims, written, [API.name, *notebooks.names()])]
    found += notebooks.pages(claims, {each.name for each in found} | set(notebooks.names()))
    order = [*documents.PARTS.values(), documents.PAPERS]
    found.sort(key=lambda each: order.index(each.part))
    for document in found:
        if document != API:
            site.page(document.path, "document", document.title, document=document, documents=found)
        site.files |= document.files or {}
    site.page(API.path, "reference", API.title, sections=reference.sections(), documents=found)
    site.page("docs/index.html", "documents", "Documentation", documents=found)
    return found
