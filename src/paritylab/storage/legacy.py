"""Stores as 0.1.0 wrote them: a folder for each Setup.

```
<root>/<setup id>/setup.json                                        the Setup, as canonical JSON
<root>/<setup id>/<engine>-<seed>-<first run>-<digest>.parquet      a block of Records
```

They are read as they are. What is in them is brought over, some Setups at a time, by :meth:`paritylab.Store.compact`:
first it is written anew and forced to disk, then the old files are deleted, so that one may stop it at any moment. What
cannot be trusted stays where it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from paritylab.errors import InvalidInput, require
from paritylab.storage.blocks import STAMP, Origins, check_format, origin_id
from paritylab.storage.catalogue import json_object, may_be
from paritylab.storage.gathered import KEY, RECORD, Differ, Gathered, Key, Wanted, merged
from paritylab.storage.shelf import File, Report, Shelf, listing

FORMAT = 1
ID = re.compile(r"[\w-]+", re.ASCII)
NAME = re.compile(r"(?P<engine>\w+)-(?P<seed>\d+)-(?P<first>\d+)-(?P<digest>[0-9a-f]{32})\.parquet", re.ASCII)


BATCH_SETUPS, BATCH_RECORDS = 1000, 2**20
"""What is brought over at a time."""


@dataclass
class Found:
    """What can be trusted of some old folders."""

    setup_ids: list[str] = field(default_factory=list[str])
    texts: dict[str, str] = field(default_factory=dict[str, str])
    parts: list[Gathered] = field(default_factory=list[Gathered])
    paths: list[Path] = field(default_factory=list[Path])
    origins: dict[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])
    records: int = 0

    def blocks(self) -> Iterator[Gathered]:
        """What to write anew: a block for each series that is large, and one for the others."""
        large = [part for part in self.parts if part.records.height >= BATCH_RECORDS]
        yield from large
        if len(large) < len(self.parts):
            yield merged([part for part in self.parts if part.records.height < BATCH_RECORDS])


class Legacy:
    """The old folders of a store, if it has any."""

    def __init__(self, root: Path, apart: frozenset[str], report: Report) -> None:
        self._root, self._apart, self._report = root, apart, report

    def ids(self) -> list[str]:
        """The Setups that have a folder."""
        return sorted(entry.name for entry in listing(self._root)
                      if entry.name not in self._apart and ID.fullmatch(entry.name) and entry.is_dir())

    def text(self, setup_id: str) -> str | None:
        """The JSON of a Setup; None if it is not there, or damaged, which is reported."""
        path = self._root / setup_id / "setup.json"
        try:
            data = path.read_bytes()
            require(may_be(setup_id, data), "it is damaged: it does not match its id")
            json_object(data)
            return data.decode()
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            self._report(path, f"cannot be read: {error}")
            return None

    def blocks(self, setup_id: str, wanted: Wanted) -> Iterator[tuple[Path, Gathered, Origins]]:
        """The blocks of a Setup that are asked for and can be trusted; FileNotFoundError if one has vanished."""
        shelf = Shelf(self._root / setup_id, NAME, self._report)
        for file in shelf.files():
            key = setup_id, file.match["engine"], int(file.match["seed"])
            if wanted.series(key) and (found := shelf.load(file, parse)) is not None:
                frame, origins = found
                yield file.path, Gathered.of(key, frame.filter(wanted.within)), origins

    def batches(self, setup_ids: Sequence[str]) -> Iterator[tuple[int, Found]]:
        """What is in these folders, some at a time, and how many are done."""
        found = Found()
        for done, setup_id in enumerate(setup_ids, 1):
            self._add(found, setup_id)
            if found.records >= BATCH_RECORDS or len(found.setup_ids) >= BATCH_SETUPS or done == len(setup_ids):
                yield done, found
                found = Found()

    def _add(self, found: Found, setup_id: str) -> None:
        try:
            blocks = list(self.blocks(setup_id, Wanted()))
            series: dict[Key, list[Gathered]] = {}
            for _, part, _ in blocks:
                series.setdefault(part.series.select(*KEY).row(0), []).append(part)
            parts = [merged(parts) for parts in series.values()]
        except FileNotFoundError:
            return  # another process is bringing it over
        except Differ as error:
            why = f"is not brought over: its files differ in the outcome of run {error.run}"
            self._report(self._root / setup_id, why)
            return
        found.setup_ids.append(setup_id)
        found.parts += parts
        found.records += sum(part.records.height for part in parts)
        for path, _, origins in blocks:
            found.paths.append(path)
            found.origins |= origins
        if (text := self.text(setup_id)) is not None:
            found.texts[setup_id] = text

    def remove(self, found: Found) -> None:
        """Delete what was found, and folders in which nothing is left but a Setup."""
        for path in found.paths:
            path.unlink(missing_ok=True)
        for setup_id in found.setup_ids:
            folder = self._root / setup_id
            left = {entry.name for entry in listing(folder)}
            if left <= {"setup.json"} and (setup_id in found.texts or not left):
                (folder / "setup.json").unlink(missing_ok=True)
                with suppress(OSError):  # a process of an earlier version writes into it
                    folder.rmdir()


def parse(file: File, data: bytes) -> tuple[pl.DataFrame, Origins]:
    """The records of a block and their origin."""
    try:
        stamp, schema = pl.read_parquet_metadata(data), pl.read_parquet_schema(data)
    except pl.exceptions.PolarsError as error:
        raise InvalidInput(f"cannot be read: {error}") from error
    check_format(stamp, FORMAT)
    named = dict(zip(KEY, (file.path.parent.name, file.match["engine"], str(int(file.match["seed"]))), strict=True))
    stamped = {name: stamp.get(STAMP + name, "") for name in named}
    require(stamped == named, f"belongs elsewhere: it holds records of {stamped}")
    require(schema == RECORD, "has other columns than a block of Records")
    about = {"version": stamp.get(STAMP + "version", "unknown")}
    name = origin_id(about)
    return pl.scan_parquet(data).with_columns(origin=pl.lit(name)).collect(), {name: about}
