"""Markdown pages as HTML, one source for the repository and the site: ``docs/``, and the folder ``docs`` of each paper.

Mathematics becomes MathML when the site is built. A link to what the site does not have, such as a page of a paper that
is not installed, becomes plain text.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from paritylab.claims.library import papers
from paritylab.site.formulas import mathml

PARTS = {"": "Tutorial", "notebooks": "Notebooks", "how-to": "How to", "reference": "Reference",
         "explanation": "Explanation"}
"""The folders of ``docs/``, and that of the notebooks, by purpose."""
PAPERS = "Papers"
"""The part of what papers bring."""

_PACKAGE = Path(__file__).parents[1]


@dataclass(frozen=True)
class Document:
    """One page of ``docs/``, a notebook, or a page of a paper."""

    name: str
    """Its path on the site without the suffix, such as ``docs/explanation/theory/alignment``."""
    title: str
    lead: str
    """The first paragraph as plain text, shortened."""
    body: str = ""
    """HTML without the first heading."""
    files: Mapping[str, bytes] | None = None
    """Images, and what else belongs to it, by paths on the site."""

    @property
    def path(self) -> str:
        return f"{self.name}.html"

    @property
    def part(self) -> str:
        """What it is for: a title of ``PARTS``, or ``PAPERS``."""
        top, _, rest = self.name.partition("/")
        return PARTS[rest.partition("/")[0] if "/" in rest else ""] if top == "docs" else PAPERS


def directory() -> Path:
    """``docs/`` of the checkout, or the copy that an installed package carries."""
    checkout = _PACKAGE.parents[1] / "docs"
    return checkout if (checkout.parent / "pyproject.toml").is_file() else _PACKAGE / "docs"


def documents(
    claims: Mapping[str, str], written: Mapping[str, str] | None = None, others: Collection[str] = ()
) -> list[Document]:
    """All pages; ``claims`` says for each claim's id which page of the site shows it.

    ``written`` are pages that no file holds, by the path in the repository that links would give them; ``others`` are
    the names of pages that are made elsewhere.
    """
    laboratory = {f"docs/{path.relative_to(directory()).as_posix()}": path.read_text(encoding="utf-8")
                  for path in directory().rglob("*.md")} | dict(written or {})
    texts = dict(sorted(laboratory.items())) | dict(_of_papers())
    known = {name_of(path) for path in texts} | set(others)
    return [made(path, text, claims, known) for path, text in texts.items()]


def _of_papers() -> Iterator[tuple[str, str]]:
    for paper in papers().values():
        for path in sorted((paper.folder / "docs").rglob("*.md")):
            inner = path.relative_to(paper.folder).as_posix()
            yield f"{paper.place.source}/{inner}", path.read_text(encoding="utf-8")


def name_of(path: str) -> str:
    """The name of a page, by its path in the repository."""
    return posixpath.splitext(on_site(path))[0]


def on_site(path: str) -> str:
    """Where the site has a file of the repository.

    >>> on_site("docs/tutorial.md"), on_site("examples/notebooks/01-first.ipynb")
    ('docs/tutorial.md', 'docs/notebooks/01-first.ipynb')
    >>> on_site("editions/you2026/src/you2026/docs/errata.md"), on_site("editions/a/src/b/c/evidence/c.fig1.svg")
    ('papers/you2026/errata.md', 'papers/c/evidence/c.fig1.svg')
    """
    path = re.sub(r"^examples/(?=notebooks/)", "docs/", path)
    return re.sub(r"^(?:editions|examples)/[^/]+/src/(?:[^/]+/)*?([^/]+)/(?:docs/|(?=evidence/))", r"papers/\1/", path)


def _file(path: str) -> Path:
    """The file that the site shows here."""
    top, _, rest = path.partition("/")
    paper, _, inner = rest.partition("/")
    if top == "docs" or paper not in papers():
        return directory() / rest
    return papers()[paper].folder / ("" if inner.startswith("evidence/") else "docs") / inner


def made(
    path: str, text: str, claims: Mapping[str, str], known: Collection[str], *, before: str = "",
    files: Mapping[str, bytes] | None = None, shown: Sequence[str] = (),
) -> Document:
    """A page from its Markdown, by its path in the repository; ``known`` are the names of all pages.

    ``before`` is HTML above it, ``shown`` what fences of the language ``shown`` number.
    """
    text = re.sub(r"^<!--.*?-->\n", "", text, flags=re.MULTILINE)
    name = name_of(path)
    up = "../" * name.count("/")
    parser = _parser({claim: up + page for claim, page in claims.items()}, shown)
    tokens = parser.parse(text)
    images = dict[str, bytes]()
    for token in tokens:
        _led(token.children or [], path, known, images)
    title = name
    if tokens and tokens[0].type == "heading_open":
        title, tokens = tokens[1].content, tokens[3:]
    lead = next((tokens[i + 1].content for i, token in enumerate(tokens) if token.type == "paragraph_open"), "")
    body = _together(parser.renderer.render(tokens, parser.options, {}))
    return Document(name, title, _shorten(lead), before + body, images | dict(files or {}))


def _led(tokens: Sequence[Any], path: str, known: Collection[str], images: dict[str, bytes]) -> None:
    """Lead links and images of a page to where the site has them; what it does not have is no link."""
    here, stays = posixpath.dirname(on_site(path)), True
    for token in tokens:
        if token.type == "link_close":
            token.hidden = not stays
        elif token.type == "link_open":
            target, mark, place = str(token.attrGet("href")).partition("#")
            stays = "://" in target or not target
            if not stays:
                page = name_of(posixpath.normpath(posixpath.join(posixpath.dirname(path), target)))
                stays = page in known
                token.attrSet("href", f"{posixpath.relpath(page, here)}.html{mark}{place}")
            token.hidden = not stays
        elif token.type == "image":
            file = on_site(posixpath.normpath(posixpath.join(posixpath.dirname(path), str(token.attrGet("src")))))
            token.attrSet("src", posixpath.relpath(file, here))
            token.attrSet("loading", "lazy")
            if _file(file).is_file():
                images[file] = _file(file).read_bytes()


def _shorten(text: str, most: int = 200) -> str:
    """
    >>> _shorten("See [this](that.md): `x` and $y$. More.", 30)
    'See this: x and y. More.'
    """
    plain = re.sub(r"[`*$]", "", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", " ".join(text.split())))
    return plain if len(plain) <= most else plain[:most].rsplit(" ", 1)[0] + " …"


def _together(body: str) -> str:
    """Formulas with the marks beside them: without a word between, a line could break there.

    >>> _together('<span class="formula">x</span> (<span class="formula">y</span>), yes')
    '<span class="formula">x</span> <span class="together">(<span class="formula">y</span>),</span> yes'
    """
    formula = r'<span class="formula">(?:(?!</span>).)*</span>'
    return re.sub(rf"\({formula}[).,;:?!-]*|{formula}[).,;:?!-]+", r'<span class="together">\g<0></span>', body)


def _parser(claims: Mapping[str, str], shown: Sequence[str]) -> Any:
    from markdown_it import MarkdownIt
    from mdit_py_plugins.anchors import anchors_plugin
    from mdit_py_plugins.dollarmath import dollarmath_plugin

    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    parser.use(anchors_plugin, max_level=4).use(dollarmath_plugin, double_inline=True, allow_digits=False)

    def render(rule: str) -> Any:
        return lambda function: parser.add_render_rule(rule, function)

    @render("math_inline")
    def _(self: Any, tokens: Any, i: int, *_: Any) -> str:
        return f'<span class="formula">{mathml(tokens[i].content)}</span>'

    @render("math_block")
    def _(self: Any, tokens: Any, i: int, *_: Any) -> str:
        formula = mathml(tokens[i].content, True)
        return f'<div class="scroll math" tabindex="0" role="group" aria-label="formula">{formula}</div>'

    @render("table_open")
    def _(self: Any, tokens: Any, i: int, *_: Any) -> str:
        return '<div class="scroll" tabindex="0" role="region" aria-label="table"><table>'

    @render("table_close")
    def _(self: Any, tokens: Any, i: int, *_: Any) -> str:
        return "</table></div>"

    @render("code_inline")
    def _(self: Any, tokens: Any, i: int, *_: Any) -> str:
        code = f"<code>{escape(tokens[i].content)}</code>"
        page = claims.get(tokens[i].content)
        return f'<a href="{escape(page)}">{code}</a>' if page else code

    def fence(self: Any, tokens: Any, i: int, options: Any, env: Any) -> str:
        return shown[int(tokens[i].content)] if tokens[i].info == "shown" else self.fence(tokens, i, options, env)

    parser.add_render_rule("fence", fence)
    return parser
