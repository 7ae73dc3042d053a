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
from paritylab.progress import Bar
from paritylab.running import downloads
from paritylab.running.offload import read_records
from paritylab.storage.kept import load_arrays, recall, save_arrays
from paritylab.storage.records import COLUMNS, Records
from paritylab.storage.store import Series, Store, StoreConflict

BATCH, SETUPS = 2**20, 10_000
"""Records and Setups that are added at a time, in one block."""

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


def merge(out: Path, sources: list[Path], progress: bool | None = None) -> Merged:
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
    theirs = [(setup.id, setup.to_json(), engine, seed, records) for setup, engine, seed, records in downloaded]
    _add(store, theirs, done)
    for source in filter(Path.is_dir, sources):
        for root in _stores(source):
            _add_store(store, Store(root), done)
        files = _files(source)
        with Bar(f"merging {source}", len(files), progress) as bar:
            waiting: list[Series] = []
            size = 0
            for place, path in enumerate(files):
                bar.show(place)
                if path.name.startswith(KEPT):
                    done.curves += _keep(path, out / "kept" / path.name, done)
                elif path.name.startswith("counts-"):
                    done.counts += _keep(path, out / "campaign" / path.name, done)
                elif (found := recall(path, read_records)) is not None:
                    setup, engine, records, seed = found
                    waiting.append((setup.id, setup.to_json(), engine, seed, records))
                    size += len(records)
                if size >= BATCH:
                    _add(store, waiting, done)
                    waiting, size = [], 0
            _add(store, waiting, done)
    if done.added:
        store.compact(progress)
    return done


def _stores(source: Path) -> Iterator[Path]:
    """The roots of stores in a folder: itself, or the one within."""
    for root in (source, source / "store"):
        if any(any(root.glob(pattern)) for pattern in ("setups/*.parquet", "blocks/*.parquet", "*/setup.json")):
            yield root


def _files(source: Path) -> list[Path]:
    """Files of records, curves and counts in a folder, or kept in it."""
    kept = (path for kind in KEPT for path in source.glob(f"kept/{kind}*.npz"))
    return sorted([*source.glob("*.npz"), *kept, *source.glob("campaign/counts-*.npz")])


def _add_store(store: Store, source: Store, done: Merged) -> None:
    """Bring over another store, some Setups at a time."""
    texts = source.texts()
    ids = sorted(texts)
    for first in range(0, len(ids), SETUPS):
        some = ids[first : first + SETUPS]
        _add(store, [(key[0], texts[key[0]], *key[1:], records) for key, records in source.find(some).items()], done)


def _add(store: Store, theirs: list[Series], done: Merged) -> None:
    """Add what is new, in one block, and compare what is known."""
    known = store.find({series[0] for series in theirs}) if theirs else {}
    new: list[Series] = []
    for setup_id, text, engine, seed, records in theirs:
        ours = known.get((setup_id, engine, seed))
        if ours is None:
            new.append((setup_id, text, engine, seed, records))
            known[setup_id, engine, seed] = records.take(np.argsort(records.run))
            continue
        both = np.isin(records.run, ours.run)
        if not both.all():
            new.append((setup_id, text, engine, seed, records.take(~both)))
            every = Records.concatenate([ours, new[-1][-1]])
            known[setup_id, engine, seed] = every.take(np.argsort(every.run))
        same = records.take(both)
        differs = _differing(same, ours.take(np.searchsorted(ours.run, same.run)))
        done.known += int(np.sum(~differs))
        if differs.any():
            about = {"setup_id": setup_id, "engine": engine, "seed": seed, "runs": same.run[differs].tolist()}
            done.conflicts.append(about | {"why": "the records differ"})
    _extend(store, new, done)


def _extend(store: Store, new: list[Series], done: Merged) -> None:
    try:
        if new:
            store.extend(new)
            done.added += sum(len(series[-1]) for series in new)
    except StoreConflict as error:  # another Setup has the id of one of them
        if len(new) > 1:
            for series in new:
                _extend(store, [series], done)
            return
        (setup_id, _, engine, seed, records), = new
        about = {"setup_id": setup_id, "engine": engine, "seed": seed, "runs": records.run.tolist()}
        done.conflicts.append(about | {"why": str(error)})


def _differing(left: Records, right: Records) -> np.ndarray:
    differs = np.zeros(len(left), bool)
    for name in COLUMNS:
        mine, theirs = getattr(left, name), getattr(right, name)
        differs |= (mine != theirs) & ~((mine != mine) & (theirs != theirs))
    return differs


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
