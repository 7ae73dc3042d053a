"""Blocks: Records of one series or of many in a Parquet file that any tool reads.

```
<setup id>-<engine>-<seed>-<first run>-<digest>.parquet     records of one series
many-<rows>-<digest>.parquet                                of several, sorted by their key and run
```

Both have the same columns, so that all of them are one table. What a block has beside them is its *stamp*, Parquet's
key-value metadata: the format, and for each value of the column ``origin`` what made the records that have it, as JSON.
Records keep their origin when blocks are merged, here or into another store.
"""

from __future__ import annotations

import functools
import hashlib
import io
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from paritylab import provenance
from paritylab.errors import InvalidInput, require
from paritylab.storage.gathered import KEY, RECORD, Gathered, Key, Wanted
from paritylab.storage.shelf import File

FORMAT = 1
SCHEMA = pl.Schema(KEY | RECORD | {"origin": pl.String()})
ID = re.compile(r"[\w-]+", re.ASCII)
ENGINE = re.compile(r"\w+", re.ASCII)
NAME = re.compile(
    r"(?:(?P<setup_id>[\w-]+)-(?P<engine>\w+)-(?P<seed>\d+)-(?P<first>\d+)|many-(?P<rows>\d+))"
    r"-(?P<digest>[0-9a-f]{32})\.parquet", re.ASCII
)
STAMP = "paritylab."
ROWS = 2**16
"""Rows in a group of a block of many series: what is decoded for one of them."""
FEW = 16
"""So many Setups are looked for by the bounds of groups of rows; for more, all rows are read."""

Origin = Mapping[str, Any]
Origins = Mapping[str, Origin]


@functools.cache
def origin(engine: str, functions: str = "") -> Origin:
    """What makes records of an engine and of users' functions here and now, as it is kept with them: of the time the
    day, so that a store has few origins however many processes write it."""
    about = provenance.origin(engine)
    return about | {"time": about["time"][:10]} | ({"functions": functions} if functions else {})


def origin_id(about: Origin) -> str:
    """How rows name their origin."""
    return hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()[:8]


@dataclass(frozen=True)
class Block:
    """A block whose bytes are those of its digest."""

    series: Key | None
    frame: pl.LazyFrame
    origins: Origins

    def gather(self, wanted: Wanted, *more: str) -> Gathered:
        """What is asked for, with ``more`` columns beside those of Records."""
        if self.series is not None:
            found = self.frame.select(*RECORD, *more).filter(wanted.within).collect()
            return Gathered.of(self.series, found) if found.height else Gathered.empty()
        found = self._few(wanted).select(*KEY, *RECORD, *more).collect()
        return Gathered.of_rows(found).only(wanted) if found.height else Gathered.empty()

    def keys(self, wanted: Wanted) -> pl.DataFrame:
        """The series asked for that the block has."""
        if self.series is not None:
            return pl.DataFrame([self.series], schema=KEY, orient="row")
        return self._few(wanted).select(*KEY).filter(wanted.where).unique().collect()

    def _few(self, wanted: Wanted) -> pl.LazyFrame:
        """The rows of some Setups, if few are asked for."""
        if wanted.setup_ids is None or len(wanted.setup_ids) > FEW:
            return self.frame
        ids = [pl.col("setup_id") == setup_id for setup_id in wanted.setup_ids]  # groups of rows are skipped by these
        return self.frame.filter(pl.any_horizontal(pl.lit(False), *ids) if len(ids) != 1 else ids[0])


def series_of(file: File) -> Key | None:
    """Which series a block has, by its name; None if it has several."""
    match = file.match
    return None if match["setup_id"] is None else (match["setup_id"], match["engine"], int(match["seed"]))


def parse(file: File, data: bytes) -> Block:
    """What is in the bytes of a block; InvalidInput says why they cannot be trusted."""
    try:
        stamp, schema = pl.read_parquet_metadata(data), pl.read_parquet_schema(data)
    except pl.exceptions.PolarsError as error:
        raise InvalidInput(f"cannot be read: {error}") from error
    check_format(stamp)
    series = series_of(file)
    if series is not None:
        named = dict(zip(KEY, map(str, series), strict=True))
        stamped = {name: stamp.get(STAMP + name, "") for name in named}
        require(stamped == named, f"belongs elsewhere: it holds records of {stamped}")
    require(schema == SCHEMA, "has other columns than a block of Records")
    prefix = STAMP + "origin."
    origins = {name.removeprefix(prefix): json.loads(text) for name, text in stamp.items() if name.startswith(prefix)}
    return Block(series, pl.scan_parquet(data), origins)


def check_format(stamp: Mapping[str, str]) -> None:
    """Whether this version reads a file, by its stamp."""
    text = stamp.get(STAMP + "format", "")
    require(text.isdigit(), "was not written by paritylab")
    require(int(text) <= FORMAT, f"is in format {text}; this version of paritylab reads up to {FORMAT}")


def to_bytes(block: Gathered, origins: Origins, merges: str = "") -> tuple[str, bytes]:
    """A block as a file: its name, with a place for the digest, and its bytes. Its records have an origin each.

    ``merges`` depends on the names of the blocks that it replaces.
    """
    stamp: dict[str, Any] = {"format": FORMAT, **({"merges": merges} if merges else {})}
    keys: Sequence[Key] = block.series.select(*KEY).rows() if block.series.height == 1 else ()
    for key in keys:
        stamp |= zip(KEY, key, strict=True)
    used = block.records["origin"].unique().sort()
    stamp |= {f"origin.{name}": json.dumps(origins[name], sort_keys=True) for name in used if name in origins}
    buffer = io.BytesIO()
    rows = block.rows().select(*SCHEMA)
    rows.write_parquet(buffer, row_group_size=None if keys else ROWS,
                       metadata={STAMP + name: str(text) for name, text in stamp.items()})
    name = f"many-{rows.height}-{{}}.parquet"
    for setup_id, engine, seed in keys:
        name = f"{setup_id}-{engine}-{seed}-{rows['run'].min()}-{{}}.parquet"
    return name, buffer.getvalue()
