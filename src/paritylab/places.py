"""Where papers are: packages with an entry point of the group ``paritylab.papers``, and folders that are named.

``PARITYLAB_PAPERS`` names folders, separated as in ``PATH``: each is a paper (it has a ``paper.toml``), or holds some.
A paper in such a folder is used in place of an installed one of the same name.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import importlib.util
import os
import sys
import warnings
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Any

from paritylab.errors import InvalidInput, in_a_line, require

GROUP = "paritylab.papers"
VARIABLE = "PARITYLAB_PAPERS"


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
    def source(self) -> str:
        """Its folder as links between documents have it: every edition is at the same depth of a repository."""
        return f"editions/{self.name}/src/{self.package.replace('.', '/')}"

    @property
    def commands(self) -> list[str]:
        """The commands that it adds to ``paritylab``: the modules of its folder ``commands``."""
        return sorted(path.stem for path in self.folder.glob("commands/[a-z]*.py")) if self.folder else []

    def load(self, module: str) -> ModuleType:
        """A module of the package."""
        try:
            self.make_importable()
            return importlib.import_module(f"{self.package}.{module}")
        except InvalidInput:
            raise
        except Exception as error:
            raise InvalidInput(f"paper {self.name}: {module}.py cannot be imported: {in_a_line(error)}") from error

    def make_importable(self) -> None:
        """Let what is imported by the package's name be what is in the folder."""
        papers = _by_folder | {place.package for place in _installed()}
        if self.package in papers and not self._is_here(sys.modules.get(self.package)):  # another paper of this name
            for name in [name for name in sys.modules if f"{name}.".startswith(f"{self.package}.")]:
                del sys.modules[name]
        if self.installed or self._is_here(found := importlib.util.find_spec(self.package)):
            return
        if found is not None and not found.has_location:  # a folder of this name on the path, without any code
            found = None
        require(found is None or self.package in papers, f"{self.package} is the name of another package")
        assert self.folder is not None
        init = self.folder / "__init__.py"
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

    def _is_here(self, found: Any) -> bool:
        """Whether a module or its spec is of this folder."""
        folders = getattr(found, "submodule_search_locations", None) or getattr(found, "__path__", None)
        return found is not None and (self.folder is None or str(self.folder) in (folders or ()))


_by_folder: set[str] = set()
"""The packages that can be imported because a folder was named."""


def places() -> list[Place]:
    """Every package that is said to be a paper; installed ones come first."""
    named = {place.name: place for place in _named(os.environ.get(VARIABLE, ""))}
    for place in _installed():
        if place.name in named:
            warnings.warn(f"paper {place.name}: the one in {named[place.name].folder} is used, not the installed"
                          f" {place.package}", PlaceWarning, stacklevel=2)
    return [*(place for place in _installed() if place.name not in named), *_named(os.environ.get(VARIABLE, ""))]


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
    for entry in sorted(metadata.entry_points(group=GROUP)):
        try:
            spec = importlib.util.find_spec(entry.value)
        except ImportError:
            spec = None
        folders = list(spec.submodule_search_locations or []) if spec else []
        found.append(Place(entry.value, Path(folders[0]) if folders else None, installed=True))
    return tuple(found)


def _named(folders: str) -> Iterator[Place]:
    for text in filter(None, folders.split(os.pathsep)):
        folder = Path(text).resolve()
        inside = [path.parent for path in sorted(folder.glob("*/paper.toml"))]
        for each in [folder] if (folder / "paper.toml").is_file() else inside or [folder]:
            yield Place(each.name, each, installed=False)
