"""The Store: Records on disk, kept for good.

```
<root>/<setup id>/setup.json                                        the Setup, as canonical JSON
<root>/<setup id>/<engine>-<seed>-<first run>-<digest>.parquet      a block of Records
```

A block is written once, completely (to a temporary file that is then renamed), and never changed. Its name
carries a digest of its bytes that every read verifies: Parquet readers, Polars among them, do not notice
flipped bits. A block that cannot be trusted is reported as a :class:`StoreWarning` and left alone, and its
runs count as absent.
"""

from __future__ import annotations

import functools
import hashlib
import io
import json
import os
import re
import warnings
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from paritylab.errors import InvalidInput, require
from paritylab.storage.files import remove_stale, sync_directory, write_atomically
from paritylab.storage.records import SOLVED, STATUSES, Records

FORMAT = 1
SCHEMA = pl.Schema(
    {
        "run": pl.Int64(),
        "status": pl.Enum(STATUSES),
        "t_c": pl.Int64(),
        "steps": pl.Int64(),
        "accuracy": pl.Float32(),
        "loss": pl.Float32(),
    }
)
KEY = pl.Schema({"setup_id": pl.String(), "engine": pl.String(), "seed": pl.Int64()})

_ID = re.compile(r"[\w-]+", re.ASCII)
_ENGINE = re.compile(r"\w+", re.ASCII)
_NAME = re.compile(
    r"(?P<engine>\w+)-(?P<seed>\d+)-(?P<first>\d+)-(?P<digest>[0-9a-f]{32})\.parquet", re.ASCII
)


class StoreError(InvalidInput):
    """The store cannot be used. The message is one line: what failed and where."""


class StoreConflict(StoreError):
    """Two files of the store contradict each other."""


class StoreWarning(UserWarning):
    """A file of the store is not used: damaged, foreign or newer than this version."""


@dataclass(frozen=True)
class _Block:
    """What the name of a block says about it."""

    path: Path
    engine: str
    seed: int
    first: int
    digest: str

    @property
    def setup_id(self) -> str:
        return self.path.parent.name


class Store:
    """A directory of Records; it is created by the first :meth:`append`.

    >>> import tempfile
    >>> store = Store(tempfile.mkdtemp())
    >>> block = Records([0, 1], [0, 1], [120, -1], [120, 500], [1.0, 0.5], [0.0, 1.0])
    >>> path = store.append("4f2a", '{"n": 30}', "jax", 0, block)
    >>> store.records("4f2a", "jax", 0).t_c
    array([120,  -1])
    >>> list(store.setups())
    [('4f2a', {'n': 30})]
    """

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self.root = Path(root)
        self._reported: set[Path] = set()
        with _explained("read", self.root):
            if self.root.exists() and not self.root.is_dir():
                raise StoreError(f"the store {self.root} is not a directory")

    def append(self, setup_id: str, setup_json: str, engine: str, seed: int, records: Records) -> Path:
        """Write a block of Records and return its path; when this returns, the block is on disk.

        Appending the same block again changes nothing.
        """
        directory = self._directory(setup_id)
        require(_ENGINE.fullmatch(engine) is not None, f"{engine!r} cannot name an engine in a store")
        require(0 <= seed < 2**63, f"a seed in a store must be at least 0 and below 2^63, not {seed}")
        require(len(records) > 0, "there are no records to store")
        frame = to_frame(records)
        with _explained("write to", directory):
            _make_directory(directory)
            self._keep_setup(directory / "setup.json", setup_json.encode())
            written = _write_block(directory, engine, seed, frame)
        remove_stale(written)
        return written

    def runs(self, setup_id: str, engine: str, seed: int) -> NDArray[np.int64]:
        """The numbers of the runs that are present, in increasing order."""
        return self.records(setup_id, engine, seed).run

    def engines(self, setup_id: str, seed: int) -> list[str]:
        """The engines that have records of one Setup and seed."""
        return sorted({block.engine for block in self._blocks(setup_id, None, seed)})

    def series(self, setup_id: str) -> list[tuple[str, int]]:
        """The engines and seeds that have records of one Setup."""
        return sorted({(block.engine, block.seed) for block in self._blocks(setup_id, None, None)})

    def records(self, setup_id: str, engine: str, seed: int, runs: range | None = None) -> Records:
        """The Records of one Setup, engine and seed, each run once, in the order of their numbers."""
        frame = _merge(self._read(setup_id, engine, seed))
        return _to_records(frame if runs is None else frame.filter(_within(runs)))

    def frame(
        self, setup_id: str | None = None, engine: str | None = None, seed: int | None = None
    ) -> pl.DataFrame:
        """Everything (or what is selected) as one frame: setup_id, engine, seed and the record columns.

        Files are selected by name: what is not asked for is not read.
        """
        setup_ids = self._setup_ids() if setup_id is None else [setup_id]
        parts = [pl.DataFrame(schema=KEY | SCHEMA)]
        for each in setup_ids:
            series: dict[tuple[str, int], list[tuple[_Block, pl.LazyFrame]]] = {}
            for block, frame in self._read(each, engine, seed):
                series.setdefault((block.engine, block.seed), []).append((block, frame))
            parts += [
                _merge(blocks).select(*_key(each, *name), *SCHEMA) for name, blocks in sorted(series.items())
            ]
        return pl.concat(parts)

    def setups(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """The id and the parsed JSON of every Setup that has records."""
        for setup_id in self._setup_ids():
            path = self._directory(setup_id) / "setup.json"
            try:
                text = path.read_bytes()
                require(_may_be(setup_id, text), "it is damaged: it does not match its id")
                setup = json.loads(text)
                require(isinstance(setup, dict), "not a JSON object")
            except (OSError, ValueError) as error:
                self._report(path, f"cannot be read: {error}")
            else:
                yield setup_id, setup

    def compact(self, setup_id: str, engine: str, seed: int) -> Path | None:
        """Merge the blocks of one Setup, engine and seed into one; return its path (None: there was nothing to merge).

        The old blocks are deleted once the new one is on disk. A process killed in between leaves runs in two
        blocks, which is harmless. Blocks that cannot be read stay where they are, and so do all where the store cannot
        be written: nothing is lost by that, and it is said.
        """
        blocks = self._read(setup_id, engine, seed)
        if len(blocks) < 2:
            return None
        directory = self._directory(setup_id)
        # The name of a merged block depends on the names of its parts, so no two processes can each delete
        # the block that justifies the other's deletions.
        lineage = _digest("\n".join(sorted(block.path.name for block, _ in blocks)).encode())
        frame = _merge(blocks)
        try:
            merged = _write_block(directory, engine, seed, frame, merged=lineage)
            for block, _ in blocks:
                block.path.unlink(missing_ok=True)
            sync_directory(directory)
        except OSError as error:
            self._report(directory, f"cannot be compacted: {error.strerror or error}", "its records are safe, but")
            return None
        remove_stale(merged)
        return merged

    def _directory(self, setup_id: str) -> Path:
        require(_ID.fullmatch(setup_id) is not None, f"{setup_id!r} cannot be the id of a Setup")
        return self.root / setup_id

    def _setup_ids(self) -> list[str]:
        names = [entry.name for entry in _entries(self.root) if _ID.fullmatch(entry.name)]
        return sorted(name for name in names if (self.root / name / "setup.json").is_file())

    def _read(self, setup_id: str, engine: str | None, seed: int | None) -> list[tuple[_Block, pl.LazyFrame]]:
        """The blocks that can be trusted, with what is in them."""
        while True:
            try:
                blocks = self._blocks(setup_id, engine, seed)
                return [(block, frame) for block in blocks if (frame := self._load(block)) is not None]
            except FileNotFoundError:
                continue  # another process compacted the directory after it was listed: list it again

    def _blocks(self, setup_id: str, engine: str | None, seed: int | None) -> list[_Block]:
        blocks: list[_Block] = []
        directory = self._directory(setup_id)
        # A listing made while a directory is compacted can miss an old block (already deleted) and the merged
        # one (not yet there when its place was passed). The next listing then has the merged one.
        entries = {entry.name: entry for entry in [*_entries(directory), *_entries(directory)]}
        for entry in entries.values():
            if not (entry.name.endswith(".parquet") and entry.is_file()):
                continue
            if (match := _NAME.fullmatch(entry.name)) is None:
                self._report(Path(entry.path), "is not named like a block of this store")
                continue
            block = _Block(
                Path(entry.path), match["engine"], int(match["seed"]), int(match["first"]), match["digest"]
            )
            if engine in (None, block.engine) and seed in (None, block.seed):
                blocks.append(block)
        return sorted(blocks, key=lambda block: (block.first, block.path))

    def _load(self, block: _Block) -> pl.LazyFrame | None:
        try:
            return _parse(block, block.path.read_bytes())
        except FileNotFoundError:
            raise
        except (InvalidInput, OSError, pl.exceptions.PolarsError) as error:
            self._report(block.path, str(error))
            return None

    def _keep_setup(self, path: Path, text: bytes) -> None:
        try:
            present = path.read_bytes()
        except FileNotFoundError:
            present = None
        if present is not None and present != text:
            if _may_be(path.parent.name, present):
                raise StoreConflict(f"{path} differs from the Setup whose records are to be added")
            self._report(path, "is damaged; it is written anew")
            present = None
        if present is None:
            write_atomically(path, text)

    def _report(self, path: Path, reason: str, what: str = "not used:") -> None:
        if path not in self._reported:
            self._reported.add(path)
            warnings.warn(f"{what} {path} {reason}", StoreWarning, stacklevel=2)


# --- the bytes of a block -----------------------------------------------------------------------------------


def to_frame(records: Records) -> pl.DataFrame:
    """Records as a frame, one row for each run; ``t_c`` is null where a run was not solved."""
    require(
        bool(((records.status >= 0) & (records.status < len(STATUSES))).all()),
        "records have an unknown status",
    )
    require(
        bool(((records.t_c >= 0) == (records.status == SOLVED)).all()),
        "records must have a t_c where they are solved, and -1 elsewhere",
    )
    require(bool((records.run >= 0).all()), "run numbers must be at least 0")
    columns = {name: getattr(records, name) for name in SCHEMA}
    columns["status"] = pl.Series(STATUSES, dtype=SCHEMA["status"]).gather(records.status)
    return pl.DataFrame(columns, schema=SCHEMA).with_columns(t_c=pl.when(pl.col("t_c") >= 0).then("t_c"))


def _to_records(frame: pl.DataFrame) -> Records:
    plain = frame.with_columns(pl.col("t_c").fill_null(-1), pl.col("status").to_physical())
    return Records(*(plain[name].to_numpy() for name in SCHEMA))


def _digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def _parse(block: _Block, data: bytes) -> pl.LazyFrame:
    """The frame in the bytes of a block; InvalidInput says why they cannot be trusted."""
    require(_digest(data) == block.digest, "is damaged: its contents do not match the digest in its name")
    stamp = pl.read_parquet_metadata(data)
    require(stamp.get("paritylab.format", "").isdigit(), "was not written by paritylab")
    version = int(stamp["paritylab.format"])
    require(version <= FORMAT, f"is in format {version}; this version of paritylab reads up to {FORMAT}")
    named = {"setup_id": block.setup_id, "engine": block.engine, "seed": str(block.seed)}
    stamped = {name: stamp.get(f"paritylab.{name}", "") for name in named}
    require(stamped == named, f"belongs elsewhere: it holds records of {stamped}")
    require(pl.read_parquet_schema(data) == SCHEMA, "has other columns than a block of Records")
    return pl.scan_parquet(data)


def _write_block(directory: Path, engine: str, seed: int, frame: pl.DataFrame, **stamp: str) -> Path:
    stamp |= {"format": str(FORMAT), "setup_id": directory.name, "engine": engine, "seed": str(seed)}
    stamp["version"] = _version()
    buffer = io.BytesIO()
    frame.write_parquet(buffer, metadata={f"paritylab.{name}": text for name, text in stamp.items()})
    data = buffer.getvalue()
    path = directory / f"{engine}-{seed}-{frame['run'].min()}-{_digest(data)}.parquet"
    write_atomically(path, data)
    return path


@functools.cache
def _version() -> str:
    try:
        return metadata.version("paritylab")
    except metadata.PackageNotFoundError:
        return "unknown"


# --- merging ------------------------------------------------------------------------------------------------


def _merge(blocks: Sequence[tuple[_Block, pl.LazyFrame]]) -> pl.DataFrame:
    """One row per run, sorted; the same run in several blocks must be the same everywhere."""
    if not blocks:
        return pl.DataFrame(schema=SCHEMA)
    ordered = pl.concat([frame for _, frame in blocks]).sort("run").collect()
    repeats = pl.col("run") == pl.col("run").shift()
    differs = pl.any_horizontal(pl.col(name).ne_missing(pl.col(name).shift()) for name in SCHEMA)
    conflicts = ordered.filter(repeats & differs)["run"]
    if len(conflicts):
        paths = [str(block.path) for block, frame in blocks if conflicts[0] in frame.collect()["run"]]
        raise StoreConflict(f"the outcome of run {conflicts[0]} differs within {' and '.join(paths)}")
    return ordered.filter(repeats.fill_null(False).not_())


def _within(runs: range) -> pl.Expr:
    runs = runs if runs.step > 0 else runs[::-1]
    run = pl.col("run")
    return run.is_between(runs.start, runs.stop, closed="left") & ((run - runs.start) % runs.step == 0)


def _key(*values: str | int) -> list[pl.Expr]:
    return [
        pl.lit(value, dtype).alias(name) for value, (name, dtype) in zip(values, KEY.items(), strict=True)
    ]


# --- the file system ----------------------------------------------------------------------------------------


@contextmanager
def _explained(verb: str, path: Path) -> Generator[None, None, None]:
    try:
        yield
    except OSError as error:
        raise StoreError(f"cannot {verb} the store at {path}: {error.strerror or error}") from error


def _entries(directory: Path) -> list[os.DirEntry[str]]:
    with _explained("read", directory):
        try:
            with os.scandir(directory) as entries:
                return list(entries)
        except FileNotFoundError:
            return []


def _make_directory(directory: Path) -> None:
    if not directory.is_dir():
        directory.mkdir(parents=True, exist_ok=True)
        sync_directory(directory.parent)


def _may_be(setup_id: str, text: bytes) -> bool:
    """Whether a text can be the Setup with this id, which is the hash of its text (if it has the length of one)."""
    return len(setup_id) != 16 or hashlib.sha256(text).hexdigest()[:16] == setup_id
