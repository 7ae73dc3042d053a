"""What more workers bring, what scheduling costs, and how far one scheduler goes.

    python benchmarks/scaling.py speedup            # a sweep of 200 cells: one worker, two workers, alternately
    python benchmarks/scaling.py asleep             # the same with runs that only sleep, for a machine that is busy
    python benchmarks/scaling.py blocks             # blocks of a second that only sleep: time lost between them
    python benchmarks/scaling.py simulate --workers 1000 --blocks 100000
    python benchmarks/scaling.py setups --setups 100000 --stored
    python benchmarks/scaling.py store              # bytes of a record on disk, records read and written a second
    python benchmarks/scaling.py start              # a crew begins and ends, with TLS and without, alternately

Measure ``speedup`` on an idle machine. Simulated workers are threads of two processes that sleep as long as a block
would take: the scheduler, the client and all messages are real. Connections are encrypted, as those of crews are,
unless ``--plain`` is said.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from dask import config
from distributed import Client, LocalCluster, Security

import paritylab as pl
from paritylab.engines import Job
from paritylab.running import clusters, crews
from paritylab.storage.records import COLUMNS, SOLVED, Records
from paritylab.storage.store import Store


def cells(count: int) -> list[pl.Setup]:
    """A grid like a user's: widths, batches and rates on (30, 3)."""
    rates = np.geomspace(0.03, 1.0, count // 8)
    return [
        pl.Setup(pl.Parity(30, 3), pl.Learner(pl.MLP(width), optimiser=pl.SGD(float(lr)), batch=batch),
                 pl.Protocol(20_000, eval_size=1024))
        for width in (8, 10, 16, 32) for batch in (16, 32) for lr in rates
    ]


def speedup(options: argparse.Namespace) -> dict[str, Any]:
    """Wall time of one sweep with 1 and 2 workers, each pinned to a core; the start of the crew is left out."""
    setups, seconds = cells(options.cells), {1: [], 2: []}
    for _ in range(options.rounds):
        for workers in (1, 2):
            with crews.crew(workers=workers) as crew:
                pinned(crew)
                pl.sweep(setups, 2)  # imports, compiles
                start = time.perf_counter()
                pl.sweep(setups, options.runs, seed=1)
                seconds[workers].append(time.perf_counter() - start)
    ratios = [one / two for one, two in zip(seconds[1], seconds[2], strict=True)]
    return {"cells": len(setups), "runs": options.runs, "seconds": seconds, "ratios": ratios}


def pinned(crew: crews.Crew) -> None:
    """Keep every worker, with all threads of its libraries, on a core of its own."""
    for core, worker in zip(sorted(os.sched_getaffinity(0)), crew.client.nthreads(), strict=False):
        crew.client.run(pin, core, workers=[worker])


def pin(core: int) -> None:
    for thread in Path("/proc/self/task").iterdir():
        os.sched_setaffinity(int(thread.name), {core})


def slept(block: Sequence[Any], seconds: float, said: float) -> list[tuple[list[np.ndarray], float]]:
    """A block whose every run takes so many seconds of sleep, and says that it took so many."""
    time.sleep(seconds * sum(len(runs) for _, _, runs in block))
    return [(columns(runs), said * len(runs)) for _, _, runs in block]


def columns(runs: np.ndarray) -> list[np.ndarray]:
    ones = np.ones(len(runs))
    records = Records(runs, ones * SOLVED, ones, ones, ones, ones)
    return [getattr(records, name) for name in COLUMNS]


class Sleepers(crews.Crew):
    """A crew whose runs sleep; one run is one block unless a run says how long it took."""

    def __init__(self, client: Any, seconds: float, said: float = 1e3) -> None:
        super().__init__(client, lambda block, *_: slept(block, seconds, said))


def drained(crew: crews.Crew, runs: int, setups: int = 1) -> tuple[int, float]:
    """Records that came back, and the seconds that it took."""
    jobs = [Job(setup, 0, np.arange(runs)) for setup in cells(max(8, setups))[:setups]]
    start, count = time.perf_counter(), 0
    for ended in crew.attempt(jobs, "lanes"):
        count += sum(len(records) for _, records in ended if isinstance(records, Records))
    return count, time.perf_counter() - start


def processes(options: argparse.Namespace, workers: int, threads: int = 1) -> LocalCluster:
    return LocalCluster(n_workers=workers, threads_per_worker=threads, host="127.0.0.1", dashboard_address=None,
                        security=None if options.plain else Security.temporary())


def start(options: argparse.Namespace) -> dict[str, Any]:
    """Wall and CPU seconds from nothing to an end of a crew of two that was ready for work; imports are left out."""
    seconds: dict[str, list[float]] = {"tls": [], "plain": [], "tls cpu": [], "plain cpu": []}
    make = clusters._temporary_credentials
    for _ in range(options.rounds + 1):
        for name, credentials in (("tls", make), ("plain", lambda: None)):
            clusters._temporary_credentials = credentials
            began, cpu = time.perf_counter(), sum(os.times()[:4])
            with crews.crew(workers=2) as crew:
                crew.client.wait_for_workers(2)
            seconds[name].append(time.perf_counter() - began)
            seconds[f"{name} cpu"].append(sum(os.times()[:4]) - cpu)
    return {name: each[1:] for name, each in seconds.items()}  # the first imports


def asleep(options: argparse.Namespace) -> dict[str, Any]:
    """Wall time of a sweep whose runs sleep for 5 ms, with 1 and 2 workers: what scheduling leaves of a factor 2."""
    seconds: dict[int, float] = {}
    for workers in (1, 2):
        with processes(options, workers) as cluster, Client(cluster) as client:
            drained(Sleepers(client, 0.0), 10)
            _, seconds[workers] = drained(Sleepers(client, 0.005, 0.005), options.runs, options.cells)
    return {"cells": options.cells, "runs": options.runs, "seconds": seconds, "ratio": seconds[1] / seconds[2],
            "lost with 2": seconds[2] / (options.cells * options.runs * 0.005 / 2) - 1}


def blocks(options: argparse.Namespace) -> dict[str, Any]:
    """Time lost between blocks of a second, on two worker processes."""
    with processes(options, 2) as cluster, Client(cluster) as client:
        drained(Sleepers(client, 0.0), 10)
        count, seconds = drained(Sleepers(client, 1.0), options.blocks)
    # the first blocks are of FIRST_RUNS runs, two for each worker
    return {"blocks": count, "seconds": seconds, "ideal": count / 2, "lost": seconds / (count / 2) - 1}


def simulate(options: argparse.Namespace) -> dict[str, Any]:
    """So many workers, each block as long as the crew would make it; then as fast as the scheduler can."""
    length = max(crews.BLOCK_SECONDS, options.workers / crews.BLOCKS_A_SECOND)
    run, runs = length / crews.FIRST_RUNS, options.blocks * crews.FIRST_RUNS
    with config.set({"distributed.worker.profile.enabled": False}), \
            processes(options, 2, options.workers // 2) as cluster, Client(cluster) as client:
        _, seconds = drained(Sleepers(client, run, run), runs)
        few = min(options.blocks, 20_000)
        _, fastest = drained(Sleepers(client, 0.0), few)
    ideal = options.blocks * length / options.workers
    return {"workers": options.workers, "blocks": options.blocks, "block seconds": length, "seconds": seconds,
            "ideal": ideal, "efficiency": ideal / seconds, "most blocks a second": few / fastest}


def setups(options: argparse.Namespace) -> dict[str, Any]:
    """A whole sweep of so many Setups, one run of a second each: from the call to its Results, stored.

    Seconds of CPU are those of the process that asks, where the scheduler lives too: before the first block goes out,
    while runs end, and after the last. On an idle core the first and the last are wall time in which no worker works.
    """
    asked = [
        pl.Setup(pl.Parity(30, 3), pl.Learner(pl.MLP(8 + i % 50), optimiser=pl.SGD(0.01 + 1e-6 * i)),
                 pl.Protocol(20_000, eval_size=1024))
        for i in range(options.setups)
    ]
    with config.set(clusters.SETTINGS), processes(options, 2, options.workers // 2) as cluster, \
            Client(cluster, timeout=clusters.CONNECT_SECONDS) as client, tempfile.TemporaryDirectory() as folder:
        crew = Sleepers(client, options.slow, 1.0)
        crew.choices(asked[:1])  # workers import
        token, marks = crews._CREW.set(crew), [np.array(clocks())]
        attempt = crew.attempt

        def marked(*arguments: Any) -> Iterator[Any]:
            marks.append(np.array(clocks()))
            yield from attempt(*arguments)
            marks.append(np.array(clocks()))

        crew.attempt = marked
        found = pl.sweep(asked, 1, engine=options.engine, store=Store(folder) if options.stored else None)
        marks.append(np.array(clocks()))
        crews._CREW.reset(token)
    assert all(len(result.records) == 1 for result in found)
    ideal, (wall, cpu) = options.slow * options.setups / options.workers, np.diff(marks, axis=0).T
    return {"setups": options.setups, "workers": options.workers, "seconds": wall.sum(), "ideal": ideal,
            "efficiency": ideal / wall.sum(), "before, during, after": wall.tolist(), "cpu likewise": cpu.tolist()}


def clocks() -> tuple[float, float]:
    return time.perf_counter(), time.process_time()


def store(options: argparse.Namespace) -> dict[str, Any]:
    """Bytes and seconds of records in the store, as a sweep of (30, 3) writes them."""
    setup = pl.Setup(pl.Parity(30, 3), pl.Learner(optimiser=pl.SGD(1.0)), pl.Protocol(eval_size=128))
    records = pl.sweep([setup], 20_000)[0].records
    rng, count = np.random.default_rng(0), options.records
    drawn = records.take(rng.integers(len(records), size=count))
    drawn = Records(np.arange(count), *(getattr(drawn, name) for name in COLUMNS[1:]))
    with tempfile.TemporaryDirectory() as folder:
        kept = Store(folder)
        start = time.perf_counter()
        parts = np.array_split(np.arange(count), 10)
        for part in parts:
            kept.append(setup.id, setup.to_json(), "lanes", 0, drawn.take(part))
        written = time.perf_counter() - start
        kept.compact(setup.id, "lanes", 0)
        compacted = time.perf_counter() - start - written
        start = time.perf_counter()
        kept.records(setup.id, "lanes", 0)
        read = time.perf_counter() - start
        size = sum(path.stat().st_size for path in Path(folder).rglob("*.parquet"))
    return {"records": count, "bytes each": size / count, "written a second": count / written,
            "compaction seconds": compacted, "read a second": count / read}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("what", choices=["speedup", "asleep", "blocks", "simulate", "setups", "store", "start"])
    parser.add_argument("--setups", type=int, default=10_000)
    parser.add_argument("--slow", type=float, default=1.0, help="seconds that a run sleeps in 'setups' where it says it"
                        " took one: as on a machine so many times faster, for one that has other work")
    parser.add_argument("--stored", action="store_true", help="keep the records of 'setups' in a store")
    parser.add_argument("--engine", default="auto")
    parser.add_argument("--plain", action="store_true", help="without encryption")
    parser.add_argument("--cells", type=int, default=200)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=1000)
    parser.add_argument("--blocks", type=int, default=60)
    parser.add_argument("--records", type=int, default=1_000_000)
    options = parser.parse_args()
    print(json.dumps(globals()[options.what](options), indent=1))


if __name__ == "__main__":
    main()
