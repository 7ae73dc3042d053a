"""What a store of many Setups costs: synthetic records of real Setups, and what is done with them.

    python benchmarks/store.py                      10^5 Setups of 20 runs
    python benchmarks/store.py --setups 1000000     more
    python benchmarks/store.py --one 100000000      as many records of one Setup instead

Seconds are wall time and, beside it, processor time: on a busy machine the second says more. Commands are processes of
their own, with all that they import.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice, product
from pathlib import Path
from typing import Any

import numpy as np

import paritylab as pl
from paritylab.storage.records import Records
from paritylab.storage.store import Store

BATCH = 10_000


@contextmanager
def timed(name: str, table: list[dict[str, Any]], bar: float | None = None) -> Iterator[None]:
    wall, spent = time.perf_counter(), cpu()
    yield
    row = {"what": name, "bar": bar, "seconds": time.perf_counter() - wall, "cpu": cpu() - spent}
    table.append(row)
    asked = "" if bar is None else f"  (bar {bar:g})"
    print(f"{name:58s} {row['seconds']:9.3f} s  {row['cpu']:9.3f} s of processor{asked}", flush=True)


def cpu() -> float:
    """Processor time of this process and of those it started that have ended."""
    both = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in both)


def setups(count: int) -> list[pl.Setup]:
    """Setups as a large sweep has them: sizes, widths, batches and many rates."""
    rates = max(1, -(-count // 128))
    sizes = product(range(20, 52, 2), (10, 20), (8, 16, 32, 64))
    return [pl.Setup(problem, pl.Learner(network, optimiser=pl.SGD(float(rate)), batch=batch), protocol)
            for (n, width, batch), protocol in ((each, pl.Protocol(eval_size=128)) for each in sizes)
            for problem, network in [(pl.Parity(n, 3), pl.MLP(width))]
            for rate in islice(np.geomspace(0.001, 10, rates).round(9), rates)][:count]


def drawn(count: int, seed: int) -> Records:
    """Records that look like those of a sweep."""
    rng = np.random.default_rng(seed)
    solved = rng.random(count) < 0.92
    t_c = 10 * rng.integers(20, 400, count)
    accuracy = np.where(solved, 1, 0.5 + rng.integers(0, 64, count) / 128)
    return Records(np.arange(count), ~solved, np.where(solved, t_c, -1), np.where(solved, t_c, 100_000), accuracy,
                   rng.random(count))


def filled(root: Path, every: list[pl.Setup], runs: int) -> Store:
    store = Store(root)
    for first in range(0, len(every), BATCH):
        some = every[first : first + BATCH]
        records = drawn(len(some) * runs, first)
        numbers = np.arange(runs)
        parts = []
        for place, setup in enumerate(some):
            mine = records.take(np.arange(place * runs, (place + 1) * runs))
            parts.append((setup.id, setup.to_json(), "lanes", 0, Records(numbers, *list(vars(mine).values())[1:])))
        store.extend(parts)
    return store


def command(*arguments: str) -> None:
    done = subprocess.run([sys.executable, "-m", "paritylab", *arguments], stdout=subprocess.PIPE)
    assert done.returncode == 0, arguments


def repeated(name: str, table: list[dict[str, Any]], times: int, act: Callable[[int], Any], bar: float | None) -> None:
    """The median of some: one write may wait for the disk."""
    seconds, spent = [], cpu()
    for each in range(times):
        start = time.perf_counter()
        act(each)
        seconds.append(time.perf_counter() - start)
    row = {"what": name, "bar": bar, "seconds": float(np.median(seconds)), "cpu": (cpu() - spent) / times}
    table.append(row)
    asked = "" if bar is None else f"  (bar {bar:g})"
    print(f"{name:58s} {row['seconds']:9.4f} s  {row['cpu']:9.4f} s of processor{asked}", flush=True)


def synced(folder: Path) -> None:
    """What the disk takes for a block in any case: one file and the folder forced to it."""
    path = folder / "floor"
    with open(path, "wb") as file:
        file.write(bytes(8000))
        file.flush()
        os.fsync(file.fileno())
    path.rename(folder / "renamed")
    descriptor = os.open(folder, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)


def many(options: argparse.Namespace, table: list[dict[str, Any]], folder: Path) -> None:
    out, count, runs = folder / "out", options.setups, options.runs
    scale = count / 1e5
    bar = (lambda seconds: seconds) if scale <= 1 else (lambda _: 60.0)
    with timed(f"{count} Setups are made and named", table):
        every = setups(count)
        for setup in every:
            _ = setup.id
    with timed("their records are written, in batches", table):
        store = filled(out / "store", every, runs)
    with timed("compaction", table):
        store.compact()
    files = list((out / "store").rglob("*.parquet"))
    print(f"{len(files)} files, {sum(path.stat().st_size for path in files) / 1e6:.1f} MB")
    for name, arguments in {
        "results, the 10 fastest": ["--sort", "median", "--limit", "10"],
        "results --where, sorted, 20 lines": ["--where", "n == 30 and lr >= 0.1", "--sort", "p90", "--limit", "20"],
        "results --where on a statistic": ["--where", "solved_fraction >= 0.99 and width == 10", "--limit", "20"],
        "results --group n --pivot batch": ["--group", "n", "--pivot", "batch"],
        "results, all lines": [],
        "results --csv": ["--csv"],
        "results --json": ["--json"],
    }.items():
        with timed(name, table, bar(3)):
            command("results", "--out", str(out), *arguments)
    del store
    again = setups(count)
    with timed("a repeated sweep, nothing to do", table, bar(10)):
        pl.sweep(again, runs, engine="lanes", store=Store(out / "store"))
    with timed("the same, Setups named before", table, bar(10)):
        pl.sweep(again, runs, engine="lanes", store=Store(out / "store"))
    store, one = Store(out / "store"), every[count // 2]
    repeated("what the disk takes for a block", table, 20, lambda _: synced(folder), None)
    store.append(one.id, one.to_json(), "jax", 0, drawn(10, 0))
    repeated("one block is appended", table, 20,
             lambda i: store.append(one.id, one.to_json(), "lanes", 1 + i, drawn(1000, i)), 0.02)
    repeated("one Setup is looked up", table, 20, lambda i: store.records(every[i].id, "lanes", 0), None)
    with timed("one Setup is looked up by a new process", table):
        Store(out / "store").records(one.id, "lanes", 0)
    with timed("compaction after that", table):
        store.compact()
    with timed("frame().collect()", table):
        height = pl.Store(out / "store").frame().collect().height
    assert height == count * runs + 20 * 1000 + 10
    with timed("status", table):
        command("status", "--out", str(out))
    with timed("merge into an empty folder", table):
        command("merge", str(out), "--out", str(folder / "merged"))
    if options.report:
        with timed("report", table):
            command("report", "--out", str(out))


def one(options: argparse.Namespace, table: list[dict[str, Any]], folder: Path) -> None:
    count, store = options.one, Store(folder)
    records = drawn(count, 0)
    parts = np.array_split(np.arange(count), max(1, count // 2_000_000))
    with timed(f"{count} records of one Setup are written", table):
        for part in parts:
            store.append("4f2a", "{}", "lanes", 0, records.take(part))
    with timed("compaction", table):
        store.compact()
    del records
    with timed("they are read", table):
        assert len(Store(folder).records("4f2a", "lanes", 0)) == count


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--setups", type=int, default=100_000)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--one", type=int, metavar="RECORDS", help="so many records of one Setup instead")
    parser.add_argument("--report", action="store_true", help="build the site as well")
    parser.add_argument("--json", action="store_true", help="print the table as JSON as well")
    options = parser.parse_args()
    table: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        (one if options.one else many)(options, table, Path(folder))
    if options.json:
        print(json.dumps(table, indent=1))


if __name__ == "__main__":
    main()
