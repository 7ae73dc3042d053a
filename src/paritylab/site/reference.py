"""The API reference: signatures and docstrings of the public names, read from the source without running it."""

from __future__ import annotations

import ast
import functools
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import paritylab
from paritylab.claims.library import papers

INSTRUMENTS = (
    "measures.alignment", "measures.boolean", "measures.fourier", "measures.product",
    "measures.population", "measures.targets", "measures.gap", "measures.progress", "baselines.search",
    "baselines.gf2", "theory.alignment_rate", "theory.bias_gap", "theory.majority",
    "statistics.results", "claims",
)
"""Modules beside the public names whose functions users call."""

_PACKAGE = Path(paritylab.__file__).parent
_Definition = ast.FunctionDef | ast.ClassDef
_Found = tuple[_Definition, ast.Module]
"""A definition and the module it stands in."""


@dataclass(frozen=True)
class Entry:
    """A function or class: its name, how it is called, what it says, and its public methods or attributes."""

    name: str
    signature: str
    text: str
    parts: tuple[Entry, ...] = ()


@dataclass(frozen=True)
class Section:
    """Entries that belong together."""

    title: str
    text: str
    entries: tuple[Entry, ...]


def sections() -> list[Section]:
    """The names of ``paritylab`` itself, then its public modules, then those of papers: settings and theory."""
    found = [*_of_the_laboratory()]
    for paper in papers().values():
        for path in (*paper.folder.glob("settings.py"), *sorted((paper.folder / "theory").rglob("*.py"))):
            words = path.relative_to(paper.folder).with_suffix("").parts
            found.append(_section(".".join([paper.place.package, *words]).removesuffix(".__init__"), path))
    return [section for section in found if section.entries]


@functools.cache
def _of_the_laboratory() -> tuple[Section, ...]:
    """They do not change while it runs."""
    names = [name for name in paritylab.__all__ if name in paritylab._HOME]
    core = [_find(_module(f"paritylab.{paritylab._HOME[name]}"), name) for name in names]
    text = ast.get_docstring(_parse(_PACKAGE / "__init__.py")) or ""
    modules = (f"paritylab.{name}" for name in (*paritylab._MODULES.values(), *INSTRUMENTS))
    return (Section("paritylab", text, _entries(core)), *(_section(name, _module(name)) for name in modules))


@functools.cache
def _section(name: str, path: Path) -> Section:
    tree = _parse(path)
    found = [_find(path, each) for each in _exported(tree)]
    return Section(name, ast.get_docstring(tree) or "", _entries(found))


def _entries(found: Iterable[_Found | None]) -> tuple[Entry, ...]:
    return tuple(_entry(*each) for each in found if each is not None)


def _exported(tree: ast.Module) -> Iterator[str]:
    """Public functions and classes defined in a module, or that a package passes on."""
    for node in tree.body:
        if isinstance(node, _Definition) and not node.name.startswith("_"):
            yield node.name
        elif isinstance(node, ast.If | ast.ImportFrom):
            for inner in ast.walk(node):
                if isinstance(inner, ast.ImportFrom):
                    yield from (alias.name for alias in inner.names if alias.asname == alias.name)


def _find(path: Path, name: str) -> _Found | None:
    """The definition of a name in a module, or where the module has it from; None for a plain value."""
    tree = _parse(path)
    for node in tree.body:
        if isinstance(node, _Definition) and node.name == name:
            return node, tree
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and any(alias.name == name for alias in node.names):
            return _find(_module(node.module), name) if node.module.startswith("paritylab.") else None
    return None


def _module(name: str) -> Path:
    path = _PACKAGE.joinpath(*name.split(".")[1:])
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def _parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def _entry(node: _Definition, tree: ast.Module) -> Entry:
    name, text = node.name, ast.get_docstring(node) or ""
    if isinstance(node, ast.FunctionDef):
        return Entry(name, _signature(node, name), text)
    methods = [item for item in node.body if isinstance(item, ast.FunctionDef)]
    start = next((item for item in methods if item.name == "__init__"), None)
    listed = ", ".join(ast.unparse(item) for item in _fields(node, tree))
    signature = f"{name}({listed})" if start is None else _signature(start, name)
    parts = [_entry(item, tree) for item in methods if not item.name.startswith("_") and ast.get_docstring(item)]
    return Entry(name, signature, text, tuple(parts))


def _fields(node: ast.ClassDef, tree: ast.Module) -> list[ast.AnnAssign]:
    """The annotated fields of a class, those of its bases in the same module first."""
    bases = {ast.unparse(base) for base in node.bases}
    inherited = [field for each in tree.body if isinstance(each, ast.ClassDef) and each.name in bases
                 for field in _fields(each, tree)]
    own = [item for item in node.body if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name)]
    return inherited + [item for item in own if not ast.unparse(item.target).startswith("_")]


def _signature(node: ast.FunctionDef, name: str) -> str:
    if any(ast.unparse(each).endswith("property") for each in node.decorator_list):
        return f"{name}: {ast.unparse(node.returns)}" if node.returns else name
    arguments = ast.unparse(node.args)
    for first in ("self", "cls"):
        if arguments == first or arguments.startswith(f"{first}, "):
            arguments = arguments[len(first) + 2 :]
    returns = f" -> {ast.unparse(node.returns)}" if node.returns and node.name != "__init__" else ""
    return f"{name}({arguments}){returns}"


def blocks(text: str) -> list[tuple[bool, str]]:
    """A docstring's paragraphs, and whether each is code.

    >>> blocks("Adds.\\n\\n>>> 1 + 1\\n2")
    [(False, 'Adds.'), (True, '>>> 1 + 1\\n2')]
    """
    found: list[tuple[bool, str]] = []
    for block in filter(str.strip, text.split("\n\n")):
        code = block.startswith((">>>", "```", "    "))
        if code and found and found[-1][0]:
            found[-1] = (True, f"{found[-1][1]}\n\n{block}")
        else:
            found.append((code, block))
    return [(code, textwrap.dedent(block)) for code, block in found]
