"""Faults of work for another machine, of which counts are kept: its processes are killed or interrupted."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from functools import cache
from pathlib import Path
from random import Random

import numpy as np
from faults.bench import INTERRUPTED, Bench, Child, Outcome, ended, wait_for

import paritylab as pl
from paritylab.running import offload
from paritylab.running.tasks import AnyTask, to_text
from paritylab.storage.counts import NUMBERS, Counted, CountTask
from paritylab.storage.kept import recall

RUNS, EACH = 40_000, 10_000


def compared(directory: Path, wanted: dict[str, Counted]) -> Outcome:
    """The counts in a folder beside those that should be there, run by run, and what else is there."""
    outcome = Outcome()
    for path in directory.glob(".*.tmp"):
        os.utime(path, (0, 0))  # an hour old by the next write
    for name, right in wanted.items():
        found = recall(directory / name, Counted.load)
        outcome.records += right.task.runs if found else 0
        outcome.lost += 0 if found else right.task.runs
        if found and not same(found, right):
            outcome.different += right.task.runs
    outcome.left = len({path.name for path in directory.glob("counts-*")} - wanted.keys())
    return outcome


def same(found: Counted, right: Counted) -> bool:
    mine, theirs = found.counts, right.counts
    numbers = all(getattr(mine, name) == getattr(theirs, name) for name in NUMBERS)
    steps = np.array_equal(mine.t_c, theirs.t_c) and np.array_equal(mine.solved, theirs.solved)
    return found.task == right.task and numbers and steps


def tasks() -> list[AnyTask]:
    """Two programs, so that two processes have something to do; each in several files."""
    networks = pl.MLP(10), pl.MLP(10, "power:2")
    setups = [pl.Setup(pl.Parity(10, 2), pl.Learner(network, optimiser=pl.SGD(1.0))) for network in networks]
    return [CountTask(setup, 0, first, EACH) for setup in setups for first in range(0, RUNS, EACH)]


@cache
def worked(bench: Bench) -> dict[str, Counted]:
    folder = bench.folder / "work in peace"
    offload.work(tasks(), folder)
    return {path.name: Counted.load(path) for path in folder.iterdir()}


def offload_cut_short(moments: Random, folder: Path, bench: Bench) -> Outcome:
    """``paritylab work`` with two processes: one of them, or the main one, gets a signal."""
    outcome, wanted = Outcome(), worked(bench)
    (folder / "work.json").write_text(to_text(tasks()))

    def begin() -> Child:
        return Child(bench, ["work", str(folder / "work.json"), str(folder / "records"), "--processes", "2"])

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        child = begin()
        with ended(child):
            wait_for(lambda child=child: child.status() is not None or len(child.workers()) == 2, 60)
            time.sleep(moments.uniform(0, 3))
            if number == signal.SIGTERM:  # to a worker
                for pid in child.workers()[:1]:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
            else:
                child.send(number)
            status = child.wait()
            outcome.faults += 1
            allowed = {signal.SIGINT: (0, 130), signal.SIGTERM: (0,), signal.SIGKILL: (0, -signal.SIGKILL)}[number]
            said = child.err == INTERRUPTED if status == 130 else not child.err or status == -signal.SIGKILL
            outcome.expect(status in allowed and said, f"signal {number}, status {status}: {child.err}")
            outcome.left += child.orphans()
    child = begin()
    status = child.wait()
    outcome.expect(status == 0 and not child.err, f"status {status}: {child.err}")
    outcome += compared(folder / "records", wanted)
    return outcome
