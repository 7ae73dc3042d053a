"""Records from elsewhere: stores of other machines, what ``paritylab work`` wrote there, and what browsers trained.

What is new is added and what is known is left as it is. A record that contradicts the one already there is a conflict:
it is reported and left out, and nothing is overwritten. A damaged file is reported as well: one from elsewhere is left
out, one that is here is replaced.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from paritylab.errors import require
from paritylab.running import downloads
from paritylab.running.offload import read_records
from paritylab.storage.kept import load_arrays, recall, save_arrays
from paritylab.storage.records import COLUMNS, Records
from paritylab.storage.store import Store, StoreConflict

Series = tuple[str, str, str, int, Records]
"""A Setup's id and JSON, an engine, a seed, and Records."""


KEPT = ("curves-", "params-", "computed-")
"""How the names of files begin that are kept beside Records (:mod:`paritylab.running.keeping`)."""


@dataclass
class Merged:
    """What a merge did."""

    added: int = 0
    known: int = 0
    curves: int = 0
    counts: int = 0
    conflicts: list[dict[str, Any]] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("added", "known", "curves", "counts", "conflicts")}


def merge(out: Path, sources: list[Path]) -> Merged:
    """Bring the records, curves and counts of other folders into the one at ``out``.

    A source is an ``--out`` folder, a store, a folder of record files, or a file that the page "Play" wrote.
    """
    for source in sources:
        if source.is_file():
            continue
        require(source.is_dir(), f"there is no folder {source}")
        require(any(_stores(source)) or any(_files(source)), f"there are no records in {source}")
        require(source.resolve() not in (out.resolve(), (out / "store").resolve()), f"{source} is where records go")
    done, store = Merged(), Store(out / "store")
    downloaded = [downloads.read(source) for source in sources if source.is_file()]  # all, before anything is added
    for setup, engine, seed, records in downloaded:
        _add(store, (setup.id, setup.to_json(), engine, seed, records), done)
    for source in filter(Path.is_dir, sources):
        for series in _series(source):
            _add(store, series, done)
        for path in _files(source):
            if path.name.startswith(KEPT):
                done.curves += _keep(path, out / "kept" / path.name, done)
            elif path.name.startswith("counts-"):
                done.counts += _keep(path, out / "campaign" / path.name, done)
    return done


def _stores(source: Path) -> Iterator[Path]:
    """The roots of stores in a folder: itself, or the one within."""
    for root in (source, source / "store"):
        if any(root.glob("*/setup.json")):
            yield root


def _files(source: Path) -> list[Path]:
    """Files of records, curves and counts in a folder, or kept in it."""
    kept = (path for kind in KEPT for path in source.glob(f"kept/{kind}*.npz"))
    return sorted([*source.glob("*.npz"), *kept, *source.glob("campaign/counts-*.npz")])


def _series(source: Path) -> Iterator[Series]:
    for root in _stores(source):
        store = Store(root)
        for setup_id, _ in store.setups():
            text = (root / setup_id / "setup.json").read_text(encoding="utf-8")
            for engine, seed in store.series(setup_id):
                yield setup_id, text, engine, seed, store.records(setup_id, engine, seed)
    for path in source.glob("*.npz"):
        if not path.name.startswith((*KEPT, "counts-")) and (found := recall(path, read_records)) is not None:
            setup, engine, records, seed = found
            yield setup.id, setup.to_json(), engine, seed, records


def _add(store: Store, series: Series, done: Merged) -> None:
    setup_id, text, engine, seed, records = series
    about = {"setup_id": setup_id, "engine": engine, "seed": seed}
    known = store.records(setup_id, engine, seed)
    new = records.take(~np.isin(records.run, known.run))
    try:
        if len(new):
            store.append(setup_id, text, engine, seed, new)
    except StoreConflict as error:  # another Setup has this id
        done.conflicts.append(about | {"runs": records.run.tolist(), "why": str(error)})
        return
    done.added += len(new)
    theirs = records.take(np.isin(records.run, known.run))
    ours = known.take(np.searchsorted(known.run, theirs.run))
    differs = np.zeros(len(theirs), bool)
    for name in COLUMNS:
        left, right = getattr(theirs, name), getattr(ours, name)
        differs |= (left != right) & ~((left != left) & (right != right))
    done.known += int(np.sum(~differs))
    if differs.any():
        done.conflicts.append(about | {"runs": theirs.run[differs].tolist(), "why": "the records differ"})


TIMING = ("seconds", "began", "ended")


def _keep(source: Path, target: Path, done: Merged) -> bool:
    """Copy curves or counts unless they are there, and say whether; when they were made may differ."""
    arrays, there = recall(source, load_arrays), recall(target, load_arrays)
    if arrays is None:
        return False
    if there is not None:
        same = arrays.keys() == there.keys() and all(
            name in TIMING or np.array_equal(arrays[name], there[name], equal_nan=arrays[name].dtype.kind == "f")
            for name in arrays
        )
        if not same:
            done.conflicts.append({"file": source.name, "why": f"the {source.name.split('-')[0]} differ"})
        return False
    save_arrays(target, arrays)
    return True


def summary(done: Merged) -> str:
    """The conflicts in one line."""
    first = {name: value for name, value in done.conflicts[0].items() if name != "runs"}
    runs = sum(len(conflict.get("runs", [0])) for conflict in done.conflicts)
    return f"{runs} conflicts, left out; the first: {json.dumps(first)}"
