"""Trained networks that are kept beside the Records of their runs: those at the end of a run.

```
<store>/networks/<setup id>-<engine>-<seed>/<first run>-<digest>.safetensors    networks of some runs
```

A file is written once, completely, and never changed; its name carries a digest of its bytes. One that is damaged is
reported and counts as absent: its networks can be trained again.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from paritylab import engines, provenance
from paritylab.engines.work import Outcomes
from paritylab.errors import CellFailed, InvalidInput
from paritylab.memory import Part, require_room
from paritylab.setups.setup import Setup
from paritylab.storage.files import write_atomically
from paritylab.storage.kept import digest_of, is_sound, recall
from paritylab.storage.records import DIVERGED, Records
from paritylab.trained import files
from paritylab.trained import params as arrays
from paritylab.trained.networks import TrainedNetworks

FLUSH_SECONDS, FLUSH_BYTES = 10.0, 2**26


class KeptNetworks:
    """Networks at the end of their runs, in a folder, or in memory where there is none."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self._held: list[TrainedNetworks] = []

    def expect(self, setups: Sequence[Setup], runs: int) -> None:
        """Refuse so many runs of each Setup whose networks memory would not hold."""
        if self.folder is None:
            parts = {f"runs of {setup.id}": Part(runs, 2 * arrays.size_of(setup)) for setup in setups}
            require_room("keeping networks without a store", parts)

    def add(self, networks: TrainedNetworks) -> None:
        """Keep networks of one Setup; when this returns they are on disk."""
        if self.folder is None:
            self._held.append(networks)
        elif len(networks):
            data = files.to_bytes(networks.contents())
            series = self.folder / _series(networks.setup, networks.engine, networks.seed)
            try:
                series.mkdir(parents=True, exist_ok=True)
                write_atomically(series / f"{networks.runs.min()}-{digest_of(data)}.safetensors", data)
            except OSError as error:
                raise InvalidInput(f"cannot write to {series}: {error.strerror or error}") from error

    def find(self, setup: Setup, engine: str, seed: int, records: Records) -> TrainedNetworks | None:
        """The networks with which the runs of these records ended, in that order; None unless all are here."""
        found: dict[int, tuple[TrainedNetworks, int]] = {}
        ends = dict(zip(records.run.tolist(), records.steps.tolist(), strict=True))
        for networks in self._blocks(setup, engine, seed):
            for place, (run, step) in enumerate(zip(networks.runs.tolist(), networks.steps.tolist(), strict=True)):
                if ends.get(run) == step:
                    found[run] = networks, place
        if not ends or len(found) < len(ends):
            return None
        chosen = [found[run] for run in records.run.tolist()]
        params = {name: np.stack([networks.params[name][place] for networks, place in chosen])
                  for name in chosen[0][0].params}
        exact = all(networks.exact for networks, _ in chosen)
        origins = [networks.origin for networks, _ in chosen]
        origin = origins[0] if all(each == origins[0] for each in origins) else {}
        return TrainedNetworks(setup, seed, records.run, records.steps, params, engine, exact, origin)

    def lacking(self, setup: Setup, engine: str, seed: int, records: Records) -> np.ndarray:
        """The runs among these records whose networks are not here; a diverged run has none."""
        there = [networks.runs for networks in self._blocks(setup, engine, seed)]
        return np.setdiff1d(records.run[records.status != DIVERGED], np.concatenate(there or [np.zeros(0, np.int64)]))

    def _blocks(self, setup: Setup, engine: str, seed: int) -> Iterator[TrainedNetworks]:
        if self.folder is None:
            yield from (held for held in self._held
                        if (held.setup, held.engine, held.seed) == (setup, engine, seed))
            return
        for path in sorted((self.folder / _series(setup, engine, seed)).glob("*-*.safetensors")):
            networks = recall(path, lambda path: TrainedNetworks.load(path, setup=setup))
            if networks is not None:
                yield networks


def merge(source: Path, target: Path) -> int:
    """Copy the networks that one folder has and another lacks; how many files they are."""
    copied = 0
    for path in sorted(source.glob("*/*-*.safetensors")):
        to = target / path.parent.name / path.name
        if not to.exists() and is_sound(path, path.stem.rpartition("-")[2]):
            to.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(to, path.read_bytes())
            copied += 1
    return copied


def _series(setup: Setup, engine: str, seed: int) -> str:
    return f"{setup.id}-{engine}-{seed}"


class Keeper:
    """Engines that keep the networks which they train; a sweep takes it for them."""

    def __init__(self, kept: KeptNetworks) -> None:
        self.kept = kept
        self._lock = threading.Lock()  # some engines train programs side by side, in threads

    def choices(self, setups: Sequence[Setup], engine: str = "auto") -> list[tuple[str, str]]:
        return engines.choices(setups, engine)

    def attempt(
        self, jobs: Sequence[engines.Job], engine: str = "auto", threads: int | None = None
    ) -> Iterator[Sequence[tuple[int, Records | CellFailed]]]:
        """As :func:`paritylab.engines.attempt`; networks reach the disk every few seconds, and at the end."""
        waiting: dict[int, list[Outcomes]] = {}
        label, written = engines.label(engine), time.monotonic()

        def keep(index: int, part: Outcomes) -> None:
            with self._lock:
                waiting.setdefault(index, []).append(part)

        def flush() -> None:
            with self._lock:
                ready = dict(waiting)
                waiting.clear()
            for index, parts in ready.items():
                self.kept.add(_networks(jobs[index], label, parts))

        try:
            for ended in engines.attempt(jobs, engine, threads, keep):
                yield ended
                if time.monotonic() - written > FLUSH_SECONDS or _size(waiting) > FLUSH_BYTES:
                    flush()
                    written = time.monotonic()
        finally:
            flush()


def _networks(job: engines.Job, label: str, parts: Sequence[Outcomes]) -> TrainedNetworks:
    """The networks of runs that ended; a diverged one has none."""
    records = Records.concatenate([part.records for part in parts])
    trees = [arrays.named(part.params) for part in parts if len(part.records)]
    params = {name: np.concatenate([tree[name] for tree in trees]) for name in trees[0]}
    whole = TrainedNetworks(job.setup, job.seed, records.run, records.steps, params, label, True,
                            provenance.origin(label))
    return whole[np.flatnonzero(records.status != DIVERGED)]


def _size(waiting: dict[int, list[Outcomes]]) -> int:
    import jax

    return sum(leaf.nbytes for parts in list(waiting.values()) for part in list(parts)
               for leaf in jax.tree.leaves(part.params))
