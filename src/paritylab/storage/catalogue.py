"""The catalogue of a store: its Setups by their ids, as canonical JSON, with their parameters as columns beside it.

```
setups/<how many>-<digest>.parquet
```

The JSON is what counts. The other columns are made from it when it is written, so that whoever asks for Setups with
some parameters, also with other tools, need not read it; where a later version names them otherwise, they are made
again.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from paritylab.errors import InvalidInput, require
from paritylab.setups import parameters
from paritylab.setups.ids import id_of
from paritylab.storage.blocks import FORMAT, STAMP, check_format
from paritylab.storage.shelf import File, Report, Shelf, StoreConflict, lineage, tidied

NAME = re.compile(r"(?P<count>\d+)-(?P<digest>[0-9a-f]{32})\.parquet", re.ASCII)
FIRST = pl.Schema({"setup_id": pl.String(), "family": pl.String(), "json": pl.String()})


class Catalogue:
    """The Setups of a store."""

    def __init__(self, folder: Path, report: Report) -> None:
        self.shelf = Shelf(folder, NAME, report)
        self._report = report
        self._listed: tuple[str, ...] = ()
        self._ids: frozenset[str] = frozenset()

    def table(self) -> pl.LazyFrame:
        """One row for each Setup: its id, its family, its JSON and its parameters."""
        tables = [table for _, table in self._tables()]
        return _united(tables) if tables else pl.LazyFrame(schema=FIRST)

    def ids(self) -> frozenset[str]:
        """The Setups that are there."""
        tables = self._tables()
        listed = tuple(file.name for file, _ in tables)
        if listed != self._listed:
            parts = [table.select("setup_id").collect().to_series() for _, table in tables]
            self._ids, self._listed = frozenset(each for part in parts for each in part), listed
        return self._ids

    def text(self, setup_id: str) -> str | None:
        """The JSON of one Setup."""
        found = self.table().filter(pl.col("setup_id") == setup_id).select("json").collect().to_series()
        return found[0] if len(found) else None

    def keep(self, texts: Mapping[str, str]) -> None:
        """See that these Setups are there, each under its own id."""
        known = self.ids()
        for setup_id in texts:
            if setup_id in known and not _is_hash(setup_id) and self.text(setup_id) != texts[setup_id]:
                raise StoreConflict(f"the Setup {setup_id} in {self.shelf.folder} differs from the one to be added")
        new = {setup_id: text for setup_id, text in texts.items() if setup_id not in known}
        for setup_id, text in new.items():
            require(may_be(setup_id, text), f"the id {setup_id} is not that of the Setup to be added")
        if new:
            self.shelf.write(*to_bytes(tabulated(new)))

    def tidy(self) -> bool:
        """Merge files that should be one; whether there were any."""
        files = tidied(self.shelf.files())
        tables = [(file, table) for file in files if (table := self.shelf.load(file, parse)) is not None]
        if len(tables) < 2:
            return False
        every = _united([table for _, table in tables]).sort("setup_id").collect()
        self.shelf.write(*to_bytes(every, lineage([file for file, _ in tables])))
        self.shelf.remove([file.path for file, _ in tables])
        return True

    def _tables(self) -> list[tuple[File, pl.LazyFrame]]:
        while True:
            try:
                found = [(file, self.shelf.load(file, parse)) for file in self.shelf.files()]
                return [(file, table) for file, table in found if table is not None]
            except FileNotFoundError:
                continue  # merged with others after it was listed


def tabulated(texts: Mapping[str, str]) -> pl.DataFrame:
    """Setups in JSON as a table."""
    setups = [json_object(text) for text in texts.values()]
    families = [parameters.family(setup) for setup in setups]
    first = {"setup_id": list(texts), "family": families, "json": list(texts.values())}
    rows = [parameters.flattened(setup) for setup in setups]
    names = dict.fromkeys(name for row in rows for name in row)
    columns = {name: column([row.get(name) for row in rows], name) for name in names}
    return pl.DataFrame({**first, **columns}, schema_overrides=FIRST).sort("setup_id")


def json_object(text: str | bytes) -> dict[str, Any]:
    """What a Setup's JSON says."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"not JSON: {error}") from None
    require(isinstance(found, dict), "a Setup must be a JSON object")
    return found


def column(values: list[Any], name: str) -> pl.Series:
    """Values of one parameter: all numbers, all truth values, or else texts."""
    kinds = {type(value) for value in values if value is not None}
    if kinds <= {int}:
        if all(value is None or -(2**63) <= value < 2**63 for value in values):
            return pl.Series(name, values, pl.Int64())
        kinds = {float}
    if kinds <= {int, float}:
        return pl.Series(name, [None if value is None else float(value) for value in values], pl.Float64())
    if kinds <= {bool}:
        return pl.Series(name, values, pl.Boolean())
    texts = [value if value is None or isinstance(value, str) else json.dumps(value) for value in values]
    return pl.Series(name, texts, pl.String())


def _united(tables: list[pl.LazyFrame]) -> pl.LazyFrame:
    """Tables under each other, each Setup once; what some have as numbers and others as texts is text."""
    if len(tables) == 1:
        return tables[0]
    kinds: dict[str, set[pl.DataType]] = {}
    for table in tables:
        for name, kind in table.collect_schema().items():
            kinds.setdefault(name, set()).add(kind)
    mixed = {name for name, found in kinds.items() if len(found) > 1 and not found <= {pl.Int64(), pl.Float64()}}
    alike = [table.with_columns(pl.col(name).cast(pl.String()) for name in mixed & set(table.collect_schema()))
             for table in tables]
    return pl.concat(alike, how="diagonal_relaxed").unique("setup_id", keep="first", maintain_order=True)


def to_bytes(table: pl.DataFrame, merges: str = "") -> tuple[str, bytes]:
    """A part of the catalogue as a file: its name, with a place for the digest, and its bytes."""
    stamp = {"format": str(FORMAT), "parameters": str(parameters.VERSION), **({"merges": merges} if merges else {})}
    buffer = io.BytesIO()
    table.write_parquet(buffer, metadata={STAMP + name: text for name, text in stamp.items()})
    return f"{table.height}-{{}}.parquet", buffer.getvalue()


def parse(file: File, data: bytes) -> pl.LazyFrame:
    """The table in such a file."""
    try:
        stamp, schema = pl.read_parquet_metadata(data), pl.read_parquet_schema(data)
    except pl.exceptions.PolarsError as error:
        raise InvalidInput(f"cannot be read: {error}") from error
    check_format(stamp)
    require(all(schema.get(name) == kind for name, kind in FIRST.items()), "has other columns than Setups")
    table = pl.scan_parquet(data)
    if stamp.get(STAMP + "parameters") == str(parameters.VERSION):
        return table
    return tabulated(dict(table.select("setup_id", "json").collect().iter_rows())).lazy()


def may_be(setup_id: str, text: str | bytes) -> bool:
    """Whether a text can be the Setup with this id, which is the hash of its text (if it has the length of one)."""
    return not _is_hash(setup_id) or id_of(text if isinstance(text, str) else text.decode(errors="replace")) == setup_id


def _is_hash(setup_id: str) -> bool:
    return len(setup_id) == 16
