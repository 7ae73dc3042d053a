"""The repository's Markdown pages as HTML: one source for both. Mathematics becomes MathML when the site is built."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path, PurePosixPath
from typing import Any

from paritylab.site.formulas import mathml

PARTS = {"": "Tutorial", "notebooks": "Notebooks", "how-to": "How to", "reference": "Reference",
         "explanation": "Explanation"}
"""The folders of ``docs/``, and that of the notebooks, by purpose."""
API = "reference/api"
"""The page that the site makes by itself, with more to it than Markdown has."""

_PACKAGE = Path(__file__).parents[1]


@dataclass(frozen=True)
class Document:
    """One page of ``docs/``, or a notebook."""

    name: str
    """Its path without the suffix, such as ``theory/alignment``."""
    title: str
    lead: str
    """The first paragraph as plain text, shortened."""
    part: str
    """What it is for: a title of ``PARTS``."""
    body: str
    """HTML without the first heading."""
    images: tuple[str, ...]
    """Paths of images under ``docs/``."""
    files: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    """What else belongs to it, by paths under ``docs/``."""


def directory() -> Path:
    """``docs/`` of the checkout, or the copy that an installed package carries."""
    checkout = _PACKAGE.parents[1] / "docs"
    return checkout if (checkout.parent / "pyproject.toml").is_file() else _PACKAGE / "docs"


def documents(claims: Mapping[str, str], written: Mapping[str, str] | None = None) -> list[Document]:
    """All pages; ``claims`` says for each claim's id which page of the site shows it.

    ``written`` are texts that take the place of those in ``docs/``: pages on claims, of all papers that are here.
    """
    root, told = directory(), written or {}
    names = [path.relative_to(root).with_suffix("").as_posix() for path in root.rglob("*.md")]
    folders = list(PARTS)
    order = sorted(names, key=lambda name: (folders.index(_folder(name)), name))
    return [made(name, told.get(name) or (root / f"{name}.md").read_text(encoding="utf-8"), claims)
            for name in order if name != API]


def _folder(name: str) -> str:
    """
    >>> _folder("tutorial"), _folder("explanation/theory/xor")
    ('', 'explanation')
    """
    return name.partition("/")[0] if "/" in name else ""


def made(
    name: str, text: str, claims: Mapping[str, str], *, before: str = "", files: Mapping[str, bytes] | None = None,
    shown: Sequence[str] = (),
) -> Document:
    """A page from its Markdown; ``before`` is HTML above it, ``shown`` what fences of the language ``shown`` number."""
    text = re.sub(r"^<!--.*?-->\n", "", text, flags=re.MULTILINE)
    up = "../" * (1 + name.count("/"))
    images: list[str] = []
    parser = _parser({claim: up + page for claim, page in claims.items()}, name, images, shown)
    tokens = parser.parse(text)
    title = name
    if tokens and tokens[0].type == "heading_open":
        title, tokens = tokens[1].content, tokens[3:]
    lead = next((tokens[i + 1].content for i, token in enumerate(tokens) if token.type == "paragraph_open"), "")
    body = _together(parser.renderer.render(tokens, parser.options, {}))
    return Document(name, title, _shorten(lead), PARTS[_folder(name)], before + body, tuple(images), files or {})


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


def _parser(claims: Mapping[str, str], name: str, images: list[str], shown: Sequence[str]) -> Any:
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

    def link(self: Any, tokens: Any, i: int, options: Any, env: Any) -> str:
        href = str(tokens[i].attrGet("href"))
        if "://" not in href:
            moved = re.sub(r"^(\.\./)+examples/(?=notebooks/)", "../" * name.count("/"), href)
            moved = re.sub(r"^(\.\./)+docs/", "../" * name.count("/"), moved)
            tokens[i].attrSet("href", re.sub(r"\.(md|ipynb)(?=$|#)", ".html", moved))
        return self.renderToken(tokens, i, options, env)

    def image(self: Any, tokens: Any, i: int, options: Any, env: Any) -> str:
        images.append(posixpath.normpath(PurePosixPath(name).parent / str(tokens[i].attrGet("src"))))
        tokens[i].attrSet("loading", "lazy")
        tokens[i].attrSet("alt", tokens[i].content)
        return self.renderToken(tokens, i, options, env)

    def fence(self: Any, tokens: Any, i: int, options: Any, env: Any) -> str:
        return shown[int(tokens[i].content)] if tokens[i].info == "shown" else self.fence(tokens, i, options, env)

    parser.add_render_rule("fence", fence)
    parser.add_render_rule("link_open", link)
    parser.add_render_rule("image", image)
    return parser
