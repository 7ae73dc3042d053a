"""Papers: folders of claims.

A paper is a Python package with a ``paper.toml`` (docs/how-to/add-a-paper.md). It is found by an entry point of the
group ``paritylab.papers``, or in a folder that ``--papers`` or the environment variable ``PARITYLAB_PAPERS`` names.
What is wrong with one is said in a line (:class:`PaperWarning`), and the others stay.
"""

from __future__ import annotations

import functools
import tomllib
import warnings
from dataclasses import dataclass, field, fields
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from paritylab.claims import basis
from paritylab.claims.basis import Values
from paritylab.claims.declarations import declared
from paritylab.claims.trial import Trial
from paritylab.errors import InvalidInput, require, unknown
from paritylab.places import Place, PlaceWarning, places

WORDS = {str: "text", int: "a whole number", list: "a list"}
FIELDS = {"title": str, "authors": str, "venue": str, "year": int, "summary": str, "headlines": list}
"""What ``paper.toml`` says; the headlines are the claims whose figures stand for the paper."""
OPTIONAL = {"own": bool}
"""What it may say besides: ``own = true`` is for statements that nobody published before, which are counted apart."""
OWN = "our own statement"


class PaperWarning(PlaceWarning):
    """A paper, or a part of one, cannot be used."""


REASONS = ("misreading", "unprinted", "misprint", "power", "artefact")
"""Why a setup or rule was changed after it had been tried: it asked what the paper does not say; rested on a value that
the paper does not print; on one that it misprints; had too few runs to decide; or measured the laboratory's own doing.
"""


@dataclass(frozen=True)
class Change:
    """What was asked of a claim before, what came of it, and why it is asked otherwise now: from ``history.toml``."""

    date: str
    reason: str
    """One of ``REASONS``."""
    asked: str
    result: str
    change: str
    """What is different now."""
    known: str
    """What was known of the outcome when the change was written."""
    commit: str
    """Where the earlier code and evidence can be read."""
    paper: str = ""
    """The place and the words of the paper that the change goes by."""


@dataclass(frozen=True)
class Claim:
    """One published statement, and where the code that tries it stands."""

    id: str
    where: str
    kind: str
    title: str
    statement: str
    published: str
    paper: Paper = field(repr=False)
    module: str
    """The module of the paper, such as ``hidden_progress``."""
    name: str
    """Its class there."""
    line: int

    @property
    def history(self) -> tuple[Change, ...]:
        """What was asked before."""
        return self.paper.history.get(self.id.partition(".")[2], ())

    def values(self, part: str = "") -> Values:
        """Where the values of its setup come from."""
        return basis.read(self.paper.values.get(self.id.partition(".")[2], {}), part)

    def basis(self, part: str = "") -> str:
        """On what a result rests: as printed, or which values are ours."""
        return OWN if self.paper.own else self.values(part).basis

    @property
    def path(self) -> Path:
        return self.paper.folder / f"{self.module}.py"

    @property
    def source(self) -> str:
        """The class and where it stands, as one looks for it: ``paritylab/papers/me2025/figures.py:12 (Fig1)``."""
        parts = self.paper.place.package.split(".")
        return f"{'/'.join(parts)}/{self.module}.py:{self.line} ({self.name})"

    @functools.cached_property
    def trial(self) -> type[Trial]:
        """The class that tries it; its module is loaded when first asked for."""
        found: Any = getattr(self.paper.place.load(self.module), self.name)
        wrong = not isinstance(found, type) or not issubclass(found, Trial)  # pyright: ignore[reportUnknownArgumentType]
        require(not wrong, f"{self.id}: {self.name} is not a Trial")
        return cast("type[Trial]", found)

    @property
    def remark(self) -> str:
        """What else was tried or found out."""
        return self.paper.remarks.get(self.id, "")


@dataclass(frozen=True)
class Paper:
    """A paper: what it is, and the folder with its claims, tables and evidence."""

    place: Place
    title: str
    authors: str
    venue: str
    year: int
    summary: str
    headlines: tuple[str, ...]
    own: bool = False

    @property
    def id(self) -> str:
        return self.place.name

    @property
    def folder(self) -> Path:
        assert self.place.folder is not None
        return self.place.folder

    def __str__(self) -> str:
        return f"{self.id} in {self.folder}"

    def part(self, name: str) -> ModuleType | None:
        """A module or package that a paper may have: ``settings``, ``site``, ``recordings``."""
        files = (self.folder / f"{name}.py", self.folder / name / "__init__.py")
        return self.place.load(name) if any(path.is_file() for path in files) else None

    @functools.cached_property
    def claims(self) -> dict[str, Claim]:
        """Its claims by id, in the order of ``values.toml``, then of modules and lines."""
        found: dict[str, Claim] = {}
        for path in sorted(self.folder.glob("*.py")):
            try:
                for said, name, line in declared(path):
                    each = Claim(**said, paper=self, module=path.stem, name=name, line=line)
                    require(each.id.startswith(f"{self.id}."), f"{path.name}: the id {each.id} must begin {self.id}.")
                    require(each.id not in found, f"{path.name} declares {each.id} a second time")
                    found[each.id] = each
            except InvalidInput as error:
                _warn(self.id, error)
        order = {name: place for place, name in enumerate(self.values)}
        return dict(sorted(found.items(), key=lambda item: order.get(item[0].partition(".")[2], len(order))))

    @functools.cached_property
    def values(self) -> dict[str, Any]:
        """Where the values of setups come from, by the claim's name within the paper: ``values.toml``."""
        try:
            return basis.checked(_read(self.folder / "values.toml", self.id))
        except InvalidInput as error:
            _warn(self.id, error)
            return {}

    @functools.cached_property
    def findings(self) -> list[dict[str, Any]]:
        """What was found out that nobody said before: ``findings.toml``."""
        return _read(self.folder / "findings.toml", self.id).get("finding", [])

    @functools.cached_property
    def history(self) -> dict[str, tuple[Change, ...]]:
        """What was asked of claims before, by their names within the paper, the earliest first: ``history.toml``."""
        found: dict[str, tuple[Change, ...]] = {}
        for name, entries in _read(self.folder / "history.toml", self.id).items():
            try:
                require(f"{self.id}.{name}" in self.claims, f"history.toml speaks of {name}, which is no claim")
                require(isinstance(entries, list), f"history.toml: write [[{name}]], once for each change")
                found[name] = tuple(_change(name, entry) for entry in entries)
            except InvalidInput as error:
                _warn(self.id, error)
        return found

    @functools.cached_property
    def remarks(self) -> dict[str, str]:
        """What else was tried or found out, by id: ``remarks.toml``."""
        entries = _read(self.folder / "remarks.toml", self.id).get("remarks", {})
        for name in sorted(entries.keys() - self.claims.keys()):
            _warn(self.id, unknown("claim in remarks.toml", name, self.claims))
        return {name: " ".join(str(text).split()) for name, text in entries.items()}


def papers() -> dict[str, Paper]:
    """Every paper that can be found, by id, in the order of years; statements of our own come last."""
    return _opened(tuple(places()))


def paper(name: str) -> Paper:
    """The paper of this id.

    >>> paper("me2025").year
    2025
    """
    if name not in papers():
        raise unknown("paper", name, papers())
    return papers()[name]


@functools.lru_cache(maxsize=4)
def _opened(found: tuple[Place, ...]) -> dict[str, Paper]:
    opened: dict[str, Paper] = {}
    for place in found:
        try:
            require(place.name not in opened, f"there is another paper of this name: {opened.get(place.name)}")
            opened[place.name] = _open(place)
        except InvalidInput as error:
            _warn(place.name, error)
    return dict(sorted(opened.items(), key=lambda item: (item[1].own, item[1].year, item[0])))


@functools.lru_cache(maxsize=16)  # beside whatever others it is found, a paper is read once
def _open(place: Place) -> Paper:
    require(place.folder is not None and place.folder.is_dir(), f"there is no package {place.package}")
    require(place.name.isidentifier(), f"{place.name} is no name for a Python package")
    assert place.folder is not None
    about = _read(place.folder / "paper.toml", place.name, needed=True)
    for name, kind in FIELDS.items():
        require(isinstance(about.get(name), kind), f"paper.toml: {name} is missing, or not {WORDS[kind]}")
    for name, value in about.items():
        if name not in FIELDS | OPTIONAL:
            raise unknown("field of paper.toml", name, FIELDS | OPTIONAL)
        require(name not in OPTIONAL or isinstance(value, bool), f"paper.toml: {name} must be true or false")
    headlines: tuple[str, ...] = tuple(about.pop("headlines"))
    return Paper(place=place, headlines=headlines, **about)


def _change(name: str, entry: dict[str, Any]) -> Change:
    names = {each.name for each in fields(Change)}
    if wrong := [each for each in entry if each not in names]:
        raise unknown(f"field of {name} in history.toml", wrong[0], names)
    missing = names - entry.keys() - {"paper"}
    require(not missing, f"history.toml: {name} has no {' and no '.join(sorted(missing))}")
    if entry["reason"] not in REASONS:
        raise unknown(f"reason of {name} in history.toml", entry["reason"], REASONS)
    return Change(**{key: str(value) for key, value in entry.items()})


def _read(path: Path, name: str, needed: bool = False) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        if needed:
            raise InvalidInput(f"{path} is missing") from error
        return {}
    except (OSError, ValueError) as error:
        told = InvalidInput(f"{path} cannot be read: {error}")
        if needed:
            raise told from error
        _warn(name, told)
        return {}


def _warn(name: str, error: InvalidInput) -> None:
    warnings.warn(f"paper {name}, not used: {error}", PaperWarning, stacklevel=3)
