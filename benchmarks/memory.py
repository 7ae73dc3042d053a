"""Is resident memory flat over a million runs, and over many compiled programs?

    python benchmarks/memory.py [--runs 1e6] [--programs 96] [--json]

``sweeps``: ten sweeps of a tenth of the runs each, with seeds of their own, into one store, in one process; the Records
of one are dropped before the next. ``one sweep``: all runs at once, whose Records a Result keeps: what each of them
takes. ``programs``: Setups that the JAX engine compiles one after the other. Flat means that the highest resident
memory after the warm-up (a tenth of the runs; as many programs as the engine keeps, and as many starts) is at most
10 % above the highest during it. The exit status is 1 where it is not. ``in_use_mb`` is what is left in the end when
the C library has given back what it keeps for later.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import gc
import itertools
import json
import resource
import tempfile
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import paritylab as pl
from paritylab.engines import jax_engine, starts
from paritylab.storage.records import COLUMNS

LEARNER = pl.Learner(pl.MLP(10), optimiser=pl.SGD(1.0))
PROTOCOL = pl.Protocol(max_steps=10_000, eval_size=128)
TENTHS = 10
MEGABYTE = 2**20


def in_use() -> int:
    """Resident memory less what the C library, if it is glibc, could give back."""
    gc.collect()
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
    return resident()


def resident() -> int:
    """Bytes of this process that are in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def peaks(tasks: Iterable[Callable[[], Any]]) -> list[int]:
    """The highest resident memory during each of some tasks, looked at every 20 ms."""
    found: list[int] = []
    over = threading.Event()

    def watch() -> None:
        while not over.wait(0.02):
            if found:
                found[-1] = max(found[-1], resident())

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        for task in tasks:
            found.append(resident())
            task()
            found[-1] = max(found[-1], resident())
    finally:
        over.set()
        watcher.join()
    return found


def judged(name: str, found: list[int], warm: int, start: float) -> dict[str, Any]:
    """What is said of a series of peaks, of which the first few are the warm-up."""
    before, after = max(found[:warm]), max(found[warm:])
    return {"what": name, "warm_up_mb": round(before / MEGABYTE, 1), "highest_after_mb": round(after / MEGABYTE, 1),
            "growth": round(after / before - 1, 4), "flat": after <= 1.1 * before,
            "in_use_mb": round(in_use() / MEGABYTE, 1), "peaks_mb": [round(peak / MEGABYTE, 1) for peak in found],
            "seconds": round(time.perf_counter() - start, 1)}


def measure(k: int, runs: int, seed: int, store: pl.Store) -> pl.Result:
    """Setting (i) of barak2022 on the (30, k) parity, with a cheap check."""
    return pl.measure(pl.Parity(30, k), LEARNER, PROTOCOL, runs, seed=seed, store=store, progress=False)


def in_sweeps(runs: int, folder: Path) -> dict[str, Any]:
    start, store = time.perf_counter(), pl.Store(folder)
    found = peaks(lambda seed=seed: measure(3, runs // TENTHS, seed, store) for seed in range(TENTHS))
    return {"runs": runs} | judged("sweeps", found, 1, start)


def at_once(runs: int, folder: Path) -> dict[str, Any]:
    """One sweep of all runs: the memory that it ends with, for each run, beside what a Record takes."""
    start, store = time.perf_counter(), pl.Store(folder)
    measure(2, runs // 100, 1, store)  # so that everything is loaded
    before = in_use()
    kept: list[pl.Result] = []
    (peak,) = peaks([lambda: kept.append(measure(2, runs, 0, store))])
    records = kept[0].records
    return {"what": "one sweep", "runs": runs, "record_bytes": sum(getattr(records, name).itemsize for name in COLUMNS),
            "kept_bytes_per_run": round((in_use() - before) / runs, 1),
            "peak_bytes_per_run": round((peak - before) / runs, 1),
            "seconds": round(time.perf_counter() - start, 1)}


def in_programs(count: int) -> dict[str, Any]:
    start = time.perf_counter()
    setups = [pl.Setup(pl.Parity(n, 2), pl.Learner(pl.MLP(width)), pl.Protocol(5, 5, 32))
              for n, width in itertools.islice(itertools.product(range(5, 60), range(2, 10)), count)]
    found = peaks(lambda setup=setup: pl.sweep([setup], 2, engine="jax", progress=False) for setup in setups)
    kept = max(jax_engine.compiled.cache_parameters()["maxsize"], starts.starter.cache_parameters()["maxsize"])
    return {"programs": count} | judged("programs", found, kept, start)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=float, default=1e6)
    parser.add_argument("--programs", type=int, default=96, help="0 leaves them out")
    parser.add_argument("--json", action="store_true", help="print one JSON object for each, and nothing else")
    options = parser.parse_args()
    runs, good = int(options.runs), True
    with tempfile.TemporaryDirectory() as folder:
        trials = [lambda: in_sweeps(runs, Path(folder, "sweeps")), lambda: at_once(runs, Path(folder, "at-once"))]
        trials += [lambda: in_programs(options.programs)] if options.programs else []
        for trial in trials:
            said = trial()
            good &= said.get("flat", True)
            print(json.dumps(said) if options.json else
                  "\n  ".join(f"{name}: {value}" for name, value in said.items()), flush=True)
    return 0 if good else 1


if __name__ == "__main__":
    raise SystemExit(main())
