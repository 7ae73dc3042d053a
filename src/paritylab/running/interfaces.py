"""What sweeps need of others: something that trains, and a place for Records."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

from paritylab.engines.work import Job
from paritylab.errors import CellFailed, require
from paritylab.setups.setup import Setup
from paritylab.storage.records import Records


class Trainer(Protocol):
    """What sweeps ask to train: a crew, or :mod:`paritylab.engines` itself."""

    def choices(self, setups: Sequence[Setup], engine: str = "auto") -> list[tuple[str, str]]:
        """For each Setup the engine that will train it, and the name of its Records."""
        ...

    def attempt(
        self, jobs: Sequence[Job], engine: str = "auto", threads: int | None = None
    ) -> Iterator[Sequence[tuple[int, Records | CellFailed]]]:
        """Train; a few times a second, what has ended since, by the position of its job."""
        ...


@runtime_checkable
class RecordStore(Protocol):
    """Where Records are kept and looked up: a :class:`paritylab.Store`, or what stands before one."""

    @property
    def root(self) -> Path | None:
        """The folder where those who look on find the sweep."""
        ...

    def find(
        self, setup_ids: Collection[str], engines: Collection[str] | None, seed: int, runs: range | None
    ) -> dict[tuple[str, str, int], Records]:
        """The Records of many Setups at once, by Setup, engine and seed; those without are left out."""
        ...

    def extend(self, parts: Sequence[tuple[str, str, str, int, Records]]) -> object:
        """Keep Records: of each part a Setup's id and JSON, an engine, a seed and Records."""
        ...

    def compact(self) -> object:
        """Tidy up after having written."""
        ...


def check_store(store: object) -> None:
    """A path, say, is no store."""
    require(store is None or isinstance(store, RecordStore), f"store must be a paritylab.Store(PATH), not {store!r}")
