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
from paritylab.setups.ids import id_of
from paritylab.storage.blocks import Origin
from paritylab.storage.kept import NETWORKS, load_arrays, recall, save_arrays
from paritylab.storage.records import COLUMNS, Records
from paritylab.storage.store import Series, Store, StoreConflict
from paritylab.trained import kept

BATCH, SETUPS = 2**20, 10_000
"""Records and Setups that are added at a time, in one block."""

Theirs = tuple[Series, Origin]
"""Records from elsewhere, and what is known of where they come from."""

KEPT = ("curves-", "params-", "computed-")
"""How the names of files begin that are kept beside Records (:mod:`paritylab.running.keeping`)."""


@dataclass
class Merged:
    """What a merge did."""

    added: int = 0
    known: int = 0
    curves: int = 0
    counts: int = 0
    networks: int = 0
    conflicts: list[dict[str, Any]] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("added", "known", "curves", "counts", "networks", "conflicts")}


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
    _add(store, [((setup.id, setup.to_json(), engine, seed, records), {"engine": engine, "system": "a browser"})
                 for setup, engine, seed, records in downloaded], done)
    for source in filter(Path.is_dir, sources):
        for root in _stores(source):
            _add_store(store, Store(root), source, done)
            done.networks += kept.merge(root / NETWORKS, store.root / NETWORKS)
        files = _files(source)
        with Bar(f"merging {source}", len(files), progress) as bar:
            waiting: list[Theirs] = []
            size = 0
            for place, path in enumerate(files):
                bar.show(place)
                if path.name.startswith(KEPT):
                    done.curves += _keep(path, out / "kept" / path.name, done)
                elif path.name.startswith("counts-"):
                    done.counts += _keep(path, out / "campaign" / path.name, done)
                elif (found := recall(path, read_records)) is not None:
                    text, engine, records, seed, origin = found
                    waiting.append(((id_of(text), text, engine, seed, records), _from(source, origin)))
                    size += len(records)
                if size >= BATCH:
                    _add(store, waiting, done)
                    waiting, size = [], 0
            _add(store, waiting, done)
    if done.added:
        store.compact()
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


def _from(source: Path, origin: Origin) -> Origin:
    """What is known of records, and the folder they were first merged from."""
    return {"merged_from": str(source), **origin}


def _add_store(store: Store, theirs: Store, source: Path, done: Merged) -> None:
    """Bring over another store, some Setups at a time."""
    texts = theirs.texts()
    ids = sorted(texts)
    for first in range(0, len(ids), SETUPS):
        found = theirs.by_origin(ids[first : first + SETUPS])
        _add(store, [((key[0], texts[key[0]], *key[1:], records), _from(source, origin))
                     for key, origin, records in found], done)


def _add(store: Store, theirs: list[Theirs], done: Merged) -> None:
    """Add what is new, in one block, and compare what is known."""
    known = store.find({series[0] for series, _ in theirs}) if theirs else {}
    new: list[Theirs] = []
    for (setup_id, text, engine, seed, records), origin in theirs:
        ours = known.get((setup_id, engine, seed))
        if ours is None:
            new.append(((setup_id, text, engine, seed, records), origin))
            known[setup_id, engine, seed] = records.take(np.argsort(records.run))
            continue
        both = np.isin(records.run, ours.run)
        if not both.all():
            fresh = records.take(~both)
            new.append(((setup_id, text, engine, seed, fresh), origin))
            every = Records.concatenate([ours, fresh])
            known[setup_id, engine, seed] = every.take(np.argsort(every.run))
        same = records.take(both)
        differs = _differing(same, ours.take(np.searchsorted(ours.run, same.run)))
        done.known += int(np.sum(~differs))
        if differs.any():
            about = {"setup_id": setup_id, "engine": engine, "seed": seed, "runs": same.run[differs].tolist()}
            done.conflicts.append(about | {"why": "the records differ"})
    _extend(store, new, done)


def _extend(store: Store, new: list[Theirs], done: Merged) -> None:
    try:
        if new:
            store.extend([series for series, _ in new], [origin for _, origin in new])
            done.added += sum(len(series[-1]) for series, _ in new)
    except StoreConflict as error:  # another Setup has the id of one of them
        if len(new) > 1:
            for each in new:
                _extend(store, [each], done)
            return
        ((setup_id, _, engine, seed, records), _), = new
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
