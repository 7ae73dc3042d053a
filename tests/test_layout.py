"""How the code is laid out: packages without cycles, small modules, and editions that nothing here names."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import paritylab

ROOT = Path(paritylab.__file__).parent
MODULES = sorted(ROOT.rglob("*.py"))
MOST_LINES = 400
TOP = Path(__file__).parents[1]
EDITIONS = sorted(path.parent for path in (TOP / "editions").glob("*/pyproject.toml"))


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


def words(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


def test_nothing_of_the_laboratory_names_an_edition():
    """No module, script, template or test has the name of an edition's paper, or imports its package."""
    papers = {name for each in EDITIONS for name in entry_points(each)}
    assert len(papers) > 10
    packages = {package.partition(".")[0] for each in EDITIONS for package in entry_points(each).values()}
    name = re.compile(rf"\b({'|'.join(sorted(papers - {'beyond'} | packages))})\b(?!-)|\bbeyond\.[a-z]+-")
    files = [path for folder in ("src/paritylab", "tests", "native") for path in (TOP / folder).rglob("*.*")
             if path.suffix in (".py", ".js", ".html", ".css", ".toml", ".cpp", ".h", ".cuh", ".sh")]
    assert [f"{path.relative_to(TOP)}: {found[0]}" for path in files if (found := name.search(words(path)))] == []


@pytest.mark.parametrize("edition", EDITIONS, ids=lambda path: path.name)
def test_an_edition_has_the_shape_of_the_template(edition):
    """A distribution with a README, tests, an entry point for each paper, and every paper's files below ``src``."""
    template = TOP / "examples" / "me2025"
    assert {path.name for path in template.iterdir()} <= {path.name for path in edition.iterdir()}
    project = tomllib.loads(words(edition / "pyproject.toml"))
    assert project["project"]["name"] == f"paritylab-{edition.name}"
    assert "paritylab>=0.2" in project["project"]["dependencies"]
    assert list((edition / "tests").glob("test_*.py"))
    for paper, package in entry_points(edition).items():
        folder = edition / "src" / Path(*package.split("."))
        assert folder.name == paper
        about = tomllib.loads(words(folder / "paper.toml"))
        needed = {"__init__.py", "evidence"} | (set() if about.get("own") else {"values.toml"})
        assert needed <= {path.name for path in folder.iterdir()}, paper


def test_an_edition_imports_no_other_but_beyond_may():
    packages = {each.name: {package.partition(".")[0] for package in entry_points(each).values()} for each in EDITIONS}
    wrong = []
    for edition in EDITIONS:
        others = {package for name, each in packages.items() if name != edition.name for package in each}
        for path in [*(edition / "src").rglob("*.py"), *(edition / "tests").glob("*.py")]:
            for node in ast.walk(ast.parse(words(path))):
                names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
                names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
                wrong += [f"{path.relative_to(TOP)}: {name}" for name in names if name.partition(".")[0] in others]
    assert [each for each in wrong if not each.startswith("editions/beyond/")] == []


def entry_points(edition: Path) -> dict[str, str]:
    """The papers of an edition, by id: their packages."""
    return tomllib.loads(words(edition / "pyproject.toml"))["project"]["entry-points"]["paritylab.papers"]
