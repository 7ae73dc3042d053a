"""Where papers are: packages with an entry point of the group ``paritylab.papers``, and folders that are named.

``PARITYLAB_PAPERS`` names folders, separated as in ``PATH``: each is a paper (it has a ``paper.toml``), or holds some.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import importlib.util
import os
import sys
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from types import ModuleType

from paritylab.errors import InvalidInput, in_a_line, require

GROUP = "paritylab.papers"
VARIABLE = "PARITYLAB_PAPERS"
OWN = "paritylab.papers."


class PlaceWarning(UserWarning):
    """Something that a paper brings cannot be used."""


@dataclass(frozen=True)
class Place:
    """A package that is said to be a paper; its folder, if there is one."""

    package: str
    folder: Path | None
    installed: bool

    @property
    def name(self) -> str:
        return self.package.split(".")[-1]

    @property
    def commands(self) -> list[str]:
        """The commands that it adds to ``paritylab``: the modules of its folder ``commands``."""
        return sorted(path.stem for path in self.folder.glob("commands/[a-z]*.py")) if self.folder else []

    def load(self, module: str) -> ModuleType:
        """A module of the package."""
        try:
            if not self.installed:
                self._make_importable()
            return importlib.import_module(f"{self.package}.{module}")
        except InvalidInput:
            raise
        except Exception as error:
            raise InvalidInput(f"paper {self.name}: {module}.py cannot be imported: {in_a_line(error)}") from error

    def _make_importable(self) -> None:
        """Let a folder that is not installed be imported by its name."""
        assert self.folder is not None
        init = self.folder / "__init__.py"
        found = importlib.util.find_spec(self.package)
        if found is not None and str(self.folder) in (found.submodule_search_locations or ()):
            return
        if self.package in _by_folder:  # a paper of this name, in another folder that was named before
            for name in [name for name in sys.modules if f"{name}.".startswith(f"{self.package}.")]:
                del sys.modules[name]
            found = importlib.util.find_spec(self.package)
        require(found is None, f"{self.package} is the name of another package")
        require(init.is_file(), f"{self.folder} has no __init__.py")
        spec = importlib.util.spec_from_file_location(self.package, init,
                                                      submodule_search_locations=[str(self.folder)])
        assert spec is not None
        assert spec.loader is not None
        sys.modules[self.package] = module = importlib.util.module_from_spec(spec)
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[self.package]
            raise
        _by_folder.add(self.package)


_by_folder: set[str] = set()
"""The packages that can be imported because a folder was named."""


def places() -> list[Place]:
    """Every package that is said to be a paper; those of paritylab itself come first."""
    return [*_installed(), *_named(os.environ.get(VARIABLE, ""))]


@contextlib.contextmanager
def also_in(folders: Iterable[Path]) -> Generator[None, None, None]:
    """Look for papers in these folders too."""
    before = os.environ.get(VARIABLE)
    if added := [str(folder) for folder in folders]:
        os.environ[VARIABLE] = os.pathsep.join([*added, *filter(None, [before])])
    try:
        yield
    finally:
        if added and before is None:
            del os.environ[VARIABLE]
        elif before is not None:
            os.environ[VARIABLE] = before


@functools.cache
def _installed() -> tuple[Place, ...]:
    found: list[Place] = []
    entries = metadata.entry_points(group=GROUP)
    for entry in sorted(entries, key=lambda entry: not entry.value.startswith(OWN)):
        try:
            spec = importlib.util.find_spec(entry.value)
        except ImportError:
            spec = None
        folders = list(spec.submodule_search_locations or []) if spec else []
        found.append(Place(entry.value, Path(folders[0]) if folders else None, installed=True))
    return tuple(found) if any(entry.value.startswith(OWN) for entry in entries) else (*_beside(), *found)


def _beside() -> Iterator[Place]:
    """The papers of this package where it is used without being installed."""
    for path in sorted(Path(__file__).parent.glob("papers/*/paper.toml")):
        yield Place(f"{OWN}{path.parent.name}", path.parent, installed=True)


def _named(folders: str) -> Iterator[Place]:
    for text in filter(None, folders.split(os.pathsep)):
        folder = Path(text).resolve()
        inside = [path.parent for path in sorted(folder.glob("*/paper.toml"))]
        for each in [folder] if (folder / "paper.toml").is_file() else inside or [folder]:
            yield Place(each.name, each, installed=False)
