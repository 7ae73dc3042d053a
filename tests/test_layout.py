"""How the code is laid out: packages without cycles, small modules, and nothing outside a paper that names it."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import paritylab
from paritylab.claims import papers

ROOT = Path(paritylab.__file__).parent
MODULES = sorted(ROOT.rglob("*.py"))
MOST_LINES = 400
PACKS = Path(__file__).parents[1] / "packs"


def trees(*words: str) -> Iterator[tuple[Path, ast.Module]]:
    """The modules that have one of these words: parsing and walking take time."""
    for path in MODULES:
        text = path.read_text(encoding="utf-8")
        if any(word in text for word in words):
            yield path.relative_to(ROOT), ast.parse(text)


def for_types_only(tree: ast.Module) -> set[ast.AST]:
    conditions = [node for node in ast.walk(tree) if isinstance(node, ast.If)]
    return {inner for node in conditions if ast.unparse(node.test) == "TYPE_CHECKING" for inner in ast.walk(node)}


def test_no_import_cycle_between_packages():
    """Imports within functions count; imports for types alone do not. The names that ``paritylab`` passes on do not
    lead back: they stand for the package's users."""
    packages = {path.name for path in ROOT.iterdir() if (path / "__init__.py").is_file()}
    packages |= {path.stem for path in ROOT.glob("*.py") if not path.stem.startswith("__")}
    graph: dict[str, set[str]] = {}
    for path, tree in trees("from paritylab"):
        own = path.parts[0].removesuffix(".py")
        types = for_types_only(tree)
        for node in ast.walk(tree):
            if own == "__init__" or not isinstance(node, ast.ImportFrom) or node in types:
                continue
            words = (node.module or "").split(".")
            if words[0] != "paritylab":
                continue
            found = {words[1]} if len(words) > 1 else {alias.name for alias in node.names}
            graph.setdefault(own, set()).update((found & packages) - {own})
    list(TopologicalSorter(graph).static_order())  # raises CycleError


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_modules_are_short(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= MOST_LINES


def test_nothing_outside_a_paper_names_it():
    """``paritylab`` itself has two old public names."""
    own = [paper for paper in papers().values() if paper.place.package.startswith("paritylab.")]
    names = [f"papers.{paper.id}" if paper.own else paper.id for paper in own]  # a name of ours may be a word
    assert len(names) == 5
    assert [each for path, each in named(names) if path.parts[0] != "papers" and path != Path("__init__.py")] == []


def test_nothing_here_names_a_paper_of_a_pack():
    files = sorted(PACKS.glob("*/pyproject.toml"))
    assert files
    packs = [tomllib.loads(path.read_text(encoding="utf-8")) for path in files]
    places = [pack["project"]["entry-points"]["paritylab.papers"] for pack in packs]
    names = [name for each in places for name in each] + [next(iter(each.values())).split(".")[0] for each in places]
    assert [each for _, each in named(names)] == []


def named(names: list[str]) -> Iterator[tuple[Path, str]]:
    """Where these names are imported or said, in code or strings; docstrings may cite."""
    for path, tree in trees(*names):
        texts = {node.body[0].value for node in ast.walk(tree)
                 if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and node.body
                 and isinstance(node.body[0], ast.Expr)}
        for node in ast.walk(tree):
            said = [node.value] if isinstance(node, ast.Constant) and node not in texts else []
            said += [node.module] if isinstance(node, ast.ImportFrom) else []
            said += [getattr(node, name, None) for name in ("id", "attr", "name")]
            for name in names:
                if any(isinstance(text, str) and name in text for text in said):
                    yield path, f"{path}:{getattr(node, 'lineno', 0)} {name}"
