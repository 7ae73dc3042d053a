"""The Store: Records on disk, kept for good.

```
<root>/setups/<how many>-<digest>.parquet                                Setups, as JSON, with their parameters
<root>/blocks/<setup id>-<engine>-<seed>-<first run>-<digest>.parquet    a block of Records of one series
<root>/blocks/many-<rows>-<digest>.parquet                               a block of Records of several
<root>/networks/                                                         trained networks, if they are kept
```

A file is written once, completely (to a temporary file that is then renamed), and never changed. Its name carries a
digest of its bytes that every read verifies: Parquet readers, Polars among them, do not notice flipped bits. A file
that cannot be trusted is reported as a :class:`StoreWarning` and left alone, and its runs count as absent. What it
costs to write, to find and to read depends on records and bytes, not on how many Setups they belong to
(docs/explanation/store.md).
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from polars.io.plugins import register_io_source

from paritylab.errors import InvalidInput, require
from paritylab.setups.ids import functions_of
from paritylab.storage import blocks
from paritylab.storage.blocks import Block, Origin, Origins, origin, origin_id, series_of
from paritylab.storage.catalogue import Catalogue
from paritylab.storage.files import remove_stale
from paritylab.storage.gathered import KEY, RECORD, Differ, Gathered, Key, Wanted, as_arrays, merged
from paritylab.storage.gathered import to_frame as to_frame
from paritylab.storage.kept import NETWORKS
from paritylab.storage.records import Records
from paritylab.storage.shelf import SMALL, File, Shelf, StoreConflict, explained, lineage, tidied
from paritylab.storage.shelf import StoreError as StoreError

ALL = Wanted()
FOLDERS = frozenset({"blocks", "setups", NETWORKS})
Series = tuple[str, str, str, int, Records]
"""A Setup's id and JSON, an engine, a seed, and Records."""


class StoreWarning(UserWarning):
    """A file of the store is not used: damaged, foreign or newer than this version."""


class Store:
    """A directory of Records; it is created by the first :meth:`append`.

    >>> import tempfile
    >>> store = Store(tempfile.mkdtemp())
    >>> block = Records([0, 1], [0, 1], [120, -1], [120, 500], [1.0, 0.5], [0.0, 1.0])
    >>> path = store.append("4f2a", '{"problem": {"n": 30}}', "jax", 0, block)
    >>> store.records("4f2a", "jax", 0).t_c
    array([120,  -1])
    >>> store.frame().select("setup_id", "n", "run", "t_c").collect().rows()
    [('4f2a', 30, 0, 120), ('4f2a', 30, 1, None)]
    """

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self.root = Path(root)
        self._reported: set[Path] = set()
        with explained("read", self.root):
            if self.root.exists() and not self.root.is_dir():
                raise StoreError(f"the store {self.root} is not a directory")
        self._blocks = Shelf(self.root / "blocks", blocks.NAME, self._report)
        self._setups = Catalogue(self.root / "setups", self._report)

    # --- writing --------------------------------------------------------------------------------------------------

    def append(self, setup_id: str, setup_json: str, engine: str, seed: int, records: Records) -> Path:
        """Write a block of Records and return its path; when this returns, the block is on disk.

        Appending the same block again changes nothing.
        """
        return self.extend([(setup_id, setup_json, engine, seed, records)])

    def extend(self, parts: Iterable[Series], origins: Sequence[Origin] | None = None) -> Path:
        """The same with Records of several Setups, engines and seeds: one block, for the price of one.

        ``origins`` says of each part what made it, where that was not this process.
        """
        parts = list(parts)
        for setup_id, _, engine, seed, records in parts:
            require(blocks.ID.fullmatch(setup_id) is not None and setup_id not in FOLDERS,
                    f"{setup_id!r} cannot be the id of a Setup")
            require(blocks.ENGINE.fullmatch(engine) is not None, f"{engine!r} cannot name an engine in a store")
            require(0 <= seed < 2**63, f"a seed in a store must be at least 0 and below 2^63, not {seed}")
            require(len(records) > 0, "there are no records to store")
        require(len(parts) > 0, "there are no records to store")
        frame = to_frame(Records.concatenate([part[-1] for part in parts]))
        rows = pl.DataFrame([(part[0], part[2], part[3], len(part[4])) for part in parts], orient="row",
                            schema=KEY | {"count": pl.Int64()})
        abouts = [origin(part[2], functions_of(part[1])) for part in parts] if origins is None else list(origins)
        made = [origin_id(about) for about in abouts]
        whose = pl.Series(np.repeat(np.array(made), rows["count"].to_numpy()), dtype=pl.String())
        try:
            block = merged([Gathered(rows, frame.with_columns(origin=whose))])
        except Differ as error:
            raise InvalidInput(f"run {error.run} of {error.key[0]} has two different records") from error
        texts = {part[0]: part[1] for part in parts}
        with explained("write to", self.root):
            self._setups.keep(texts)
            written = self._blocks.write(*blocks.to_bytes(block, dict(zip(made, abouts, strict=True))))
        remove_stale(written, self._setups.shelf.folder)
        return written

    def compact(self) -> list[Path]:
        """Merge small blocks into larger ones; return what was written.

        Old files are deleted once the new ones are on disk. A process killed in between leaves runs in two blocks,
        which is harmless. Blocks that cannot be read, or contradict each other, stay where they are, and so do all
        where the store cannot be written: nothing is lost by that, and it is said.
        """
        written: list[Path] = []
        try:
            while self._setups.tidy():
                pass
            apart: set[str] = set()
            while some := self._untidy(apart):
                written += self._merge(some, apart)
        except OSError as error:
            self._report(self.root, f"cannot be compacted: {error.strerror or error}", "its records are safe, but")
        return [path for path in written if path.exists()]

    def _untidy(self, apart: set[str]) -> list[File]:
        """Blocks that should become one. Those of a series with many records are not mixed with others, so that its
        records, and those of others, are found by name."""
        files = [file for file in self._blocks.files() if file.name not in apart]
        sizes: dict[Key | None, int] = {}
        for file in files:
            sizes[series_of(file)] = sizes.get(series_of(file), 0) + file.size
        families: dict[Key | None, list[File]] = {}
        for file in files:
            key = series_of(file)
            families.setdefault(key if sizes[key] >= SMALL else None, []).append(file)
        return next((some for family in families.values() if (some := tidied(family))), [])

    def _merge(self, files: Sequence[File], apart: set[str]) -> list[Path]:
        """One block in the place of several; those that cannot be merged are put ``apart``."""
        try:
            loaded = [(file, self._blocks.load(file, blocks.parse)) for file in files]
        except FileNotFoundError:
            return []  # another process was quicker
        apart.update(file.name for file, block in loaded if block is None)
        read = [(file, block) for file, block in loaded if block is not None]
        if len(read) < 2:
            apart.update(file.name for file in files)
            return []
        parts = [(file.path, block.gather(Wanted(), "origin")) for file, block in read]
        try:
            whole = merged([part for _, part in parts])
        except Differ as error:
            conflict = _conflict(error, parts)
            self._report(self._blocks.folder, str(conflict), "not merged: in")
            apart.update(path.name for path in _holders(error, parts))
            return []
        origins = {name: about for _, block in read for name, about in block.origins.items()}
        path = self._blocks.write(*blocks.to_bytes(whole, origins, lineage([file for file, _ in read])))
        self._blocks.remove([file.path for file, _ in read])
        return [path]

    # --- reading --------------------------------------------------------------------------------------------------

    def gather(self, wanted: Wanted = ALL) -> Gathered:
        """What is asked for of all series at once, each run once, sorted by series and run."""
        return self._gather(wanted)[0]

    def by_origin(self, setup_ids: Collection[str]) -> Iterator[tuple[Key, Origin, Records]]:
        """The Records of many Setups, apart by what made them: of each part its Setup, engine and seed, and what is
        known of its origin."""
        whole, origins = self._gather(Wanted(frozenset(setup_ids)), "origin")
        if not whole.records.height:
            return
        for (*key, made), rows in whole.rows().group_by(*KEY, "origin", maintain_order=True):
            setup_id, engine, seed = key
            yield (str(setup_id), str(engine), int(str(seed))), origins.get(str(made), {}), Records(
                *as_arrays(rows.select(*RECORD)))

    def _gather(self, wanted: Wanted, *more: str) -> tuple[Gathered, Origins]:
        """What is asked for, with ``more`` columns beside those of Records, and all origins that are told of."""
        while True:
            try:
                found = list(self._parts(wanted, *more))
                break
            except FileNotFoundError:
                continue  # another process compacted the store after it was listed: list it again
        parts = [(path, part) for path, part, _ in found]
        try:
            return merged([part for _, part in parts]), {name: each[name] for *_, each in found for name in each}
        except Differ as error:
            raise _conflict(error, parts) from None

    def _parts(self, wanted: Wanted, *more: str) -> Iterator[tuple[Path, Gathered, Origins]]:
        for file, block in self._asked(wanted):
            yield file.path, block.gather(wanted, *more), block.origins

    def _asked(self, wanted: Wanted) -> Iterator[tuple[File, Block]]:
        """The blocks that can be trusted and may have what is asked for: files are selected by name."""
        for file in self._blocks.files():
            key = series_of(file)
            if (key is None or wanted.series(key)) and (block := self._blocks.load(file, blocks.parse)) is not None:
                yield file, block

    def records(self, setup_id: str, engine: str, seed: int, runs: range | None = None) -> Records:
        """The Records of one Setup, engine and seed, each run once, in the order of their numbers."""
        return Records(*as_arrays(self.gather(Wanted({setup_id}, {engine}, seed, runs)).records))

    def find(
        self,
        setup_ids: Collection[str],
        engines: Collection[str] | None = None,
        seed: int | None = None,
        runs: range | None = None,
    ) -> dict[Key, Records]:
        """The Records of many Setups at once, by Setup, engine and seed; those without are left out."""
        return dict(self.gather(Wanted(frozenset(setup_ids), engines, seed, runs)).split())

    def runs(self, setup_id: str, engine: str, seed: int) -> NDArray[np.int64]:
        """The numbers of the runs that are present, in increasing order."""
        return self.records(setup_id, engine, seed).run

    def series(self, setup_id: str) -> list[tuple[str, int]]:
        """The engines and seeds that have records of one Setup."""
        wanted = Wanted({setup_id})
        while True:
            try:
                parts = [block.keys(wanted) for _, block in self._asked(wanted)]
                return sorted({row for part in parts for row in part.select("engine", "seed").iter_rows()})
            except FileNotFoundError:
                continue

    def engines(self, setup_id: str, seed: int) -> list[str]:
        """The engines that have records of one Setup and seed."""
        return sorted({engine for engine, each in self.series(setup_id) if each == seed})

    def frame(
        self, setup_id: str | None = None, engine: str | None = None, seed: int | None = None
    ) -> pl.LazyFrame:
        """Everything (or what is selected) as one lazy frame: a row for each run, its Setup's parameters beside it.

        Nothing is read before ``collect``. The columns are setup_id, engine, seed, those of Records, and the
        parameters; those that share a name with another column have their part in front (``learner_loss``).
        """
        ids, engines = (None if each is None else {each} for each in (setup_id, engine))
        wanted = Wanted(ids, engines, seed)

        def read(columns: list[str] | None, where: pl.Expr | None, most: int | None, _: int | None
                 ) -> Iterator[pl.DataFrame]:
            rows = self.gather(wanted).rows()
            rows = rows if most is None else rows.head(most)
            rows = rows if where is None else rows.filter(where)
            yield rows if columns is None else rows.select(columns)

        rows = register_io_source(read, schema=KEY | RECORD)
        about = self.parameters().drop("family")
        twice = {name: f"learner_{name}" for name in about.collect_schema() if name in RECORD}
        return rows.join(about.rename(twice), on="setup_id", how="inner", maintain_order="left")

    def parameters(self) -> pl.LazyFrame:
        """One row for each Setup: its id, its family (the same for Setups that differ in their step limit alone) and
        its parameters (:mod:`paritylab.setups.parameters`)."""
        return self._table().drop("json")

    def setups(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """The id and the parsed JSON of every Setup."""
        for setup_id, text in self.texts().items():
            yield setup_id, json.loads(text)

    def texts(self, setup_ids: Collection[str] | None = None) -> dict[str, str]:
        """The canonical JSON of every Setup, or of some, by id."""
        some = Wanted(setup_ids).where
        return dict(self._table().select("setup_id", "json").filter(some).sort("setup_id").collect().iter_rows())

    def _table(self) -> pl.LazyFrame:
        return self._setups.table()

    def _report(self, path: Path, reason: str, what: str = "not used:") -> None:
        if path not in self._reported:
            self._reported.add(path)
            warnings.warn(f"{what} {path} {reason}", StoreWarning, stacklevel=2)


def _holders(error: Differ, parts: Sequence[tuple[Path, Gathered]]) -> list[Path]:
    """The files that have records of a run that differ."""
    setup_id, engine, seed = error.key
    wanted = Wanted({setup_id}, {engine}, seed, range(error.run, error.run + 1))
    return [path for path, part in parts if part.only(wanted).records.height]


def _conflict(error: Differ, parts: Sequence[tuple[Path, Gathered]]) -> StoreConflict:
    paths = " and ".join(map(str, _holders(error, parts)))
    return StoreConflict(f"the outcome of run {error.run} differs within {paths}")
