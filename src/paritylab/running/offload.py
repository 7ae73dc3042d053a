"""Work for another machine: a file of tasks goes there, records come back. The machine needs JAX and NumPy alone.

    paritylab reproduce me2025.width --full --export work.json              # here: what is missing
    python -m paritylab work work.json records --processes 8                # there, as often as needed
    paritylab store merge records                                                 # here: into the store

Training curves that can train together do so. Of a CountTask only the distribution of convergence times is kept.
"""

from __future__ import annotations

import json
import math
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import numpy as np

from paritylab import engines
from paritylab.engines.curves import stepping
from paritylab.errors import InvalidInput
from paritylab.running import crews
from paritylab.running.keeping import KeptTask, find, keep
from paritylab.running.pools import done_apart
from paritylab.running.tasks import AnyTask, ComputeTask, CurveTask, Task
from paritylab.setups.ids import functions_of
from paritylab.storage.blocks import origin
from paritylab.storage.counts import Counted, Counts, CountTask
from paritylab.storage.kept import load_arrays, recall, save_arrays
from paritylab.storage.records import COLUMNS, Records


def work(everything: Sequence[AnyTask], directory: Path, over: Callable[[], bool] = lambda: False) -> int:
    """Do tasks whose chains belong together, one program after the other; returns how many are left once it is over."""
    missing = [task for task in everything if isinstance(task, KeptTask) and find(task, directory) is None]
    if missing and not over():
        keep(missing, directory, progress=False)
        missing = []
    tasks = [task for task in everything if isinstance(task, Task)]
    ended: set[str] = set()
    counts = [task for task in everything
              if isinstance(task, CountTask) and recall(task.path(directory), Counted.load) is None]
    left = len(missing) + len(counts) - sum(1 for _ in counted(counts, directory, over))
    waiting = [task for task in tasks if not _done(task, directory, ended)]
    while waiting:
        waiting = [task for task in waiting if not task.chain or task.chain not in ended]
        first: dict[str, Task] = {}
        for task in waiting:
            first.setdefault(task.chain or task.name, task)
        if not first or over():
            break
        programs = [task.setup.program for task in first.values()]
        together = [task for task in first.values() if task.setup.program == programs[0]]
        for task, records in zip(together, _train(together, over), strict=True):
            if records is None:
                left += 1
                continue
            _write(task, records, directory)
            if task.ends(records):
                ended.add(task.chain)
        waiting = [task for task in waiting if task not in together]
    return left + len(waiting)


def _work_apart(tasks: Sequence[AnyTask], directory: Path, deadline: float) -> int:
    return work([crews.received(task) for task in tasks], directory, lambda: time.monotonic() > deadline)


def _train(tasks: Sequence[Task], over: Callable[[], bool]) -> list[Records | None]:
    """The Records of each task; None where it was over before."""
    jobs = [engines.Job(task.setup, task.seed, np.arange(task.runs)) for task in tasks]
    parts: list[list[Records]] = [[] for _ in jobs]
    for ended in engines.train(jobs):
        for index, records in ended:
            parts[index].append(records)
        if over():
            break
    found = [Records.concatenate(part) for part in parts]
    return [records if len(records) == task.runs else None for task, records in zip(tasks, found, strict=True)]


def counted(
    tasks: Sequence[CountTask], directory: Path, over: Callable[[], bool] = lambda: False
) -> Iterator[CountTask]:
    """Do tasks of any programs, here or by the crew, keeping each when it is complete, until it is over."""
    jobs = [engines.Job(task.setup, task.seed, task.first + np.arange(task.runs)) for task in tasks]
    trainer = crews.trainer()
    chosen = trainer.choices([task.setup for task in tasks])
    for group in engines.together(jobs) if trainer is engines else _by_engine([name for name, _ in chosen]):
        sums = dict.fromkeys(group, Counts.sum([]))
        (engine, label), began = chosen[group[0]], time.time()
        for ended in () if over() else trainer.attempt([jobs[i] for i in group], engine):
            for index, records in ended:
                if not isinstance(records, Records):
                    raise records
                i = group[index]
                sums[i] = Counts.sum([sums[i], Counts.of(records)])
                if sums[i].runs == tasks[i].runs:
                    Counted(tasks[i], sums[i], label, began, time.time()).save(directory)
                    yield tasks[i]
            if over():
                break


def _by_engine(names: Sequence[str]) -> list[list[int]]:
    return [[i for i, other in enumerate(names) if other == name] for name in dict.fromkeys(names)]


def _file(task: Task, directory: Path) -> Path:
    return directory / f"{task.name}.npz"


def _done(task: Task, directory: Path, ended: set[str]) -> bool:
    found = recall(_file(task, directory), read_records)
    if found is not None and task.ends(found[2]):
        ended.add(task.chain)
    return found is not None


def _write(task: Task, records: Records, directory: Path) -> None:
    label, text = engines.label(engines.choose(task.setup)), task.setup.to_json()
    about = {"setup": np.array(text), "engine": np.array(label), "seed": np.array(task.seed),
             "origin": np.array(json.dumps(origin(label, functions_of(text))))}
    save_arrays(_file(task, directory), about | {name: getattr(records, name) for name in COLUMNS})


def read_records(path: Path) -> tuple[str, str, Records, int, dict[str, Any]]:
    """The Setup as text, engine, Records, seed and origin in a file that :func:`work` wrote."""
    file = load_arrays(path)
    try:
        records = Records(*(file[name] for name in COLUMNS))
        origin = dict(json.loads(str(file["origin"]))) if "origin" in file else {}  # earlier versions wrote none
        return str(file["setup"]), str(file["engine"]), records, int(file["seed"]), origin
    except (ValueError, KeyError, TypeError) as error:
        raise InvalidInput(f"{path} does not hold records: {error}") from error


def batches_of(tasks: Sequence[AnyTask]) -> list[list[AnyTask]]:
    """Tasks that should be done by one process: chains that share a program, transitively; curves recorded alike."""
    owner: dict[object, int] = {}  # of a mark: the batch that has it
    batches: dict[int, tuple[set[object], list[int]]] = {}
    for position, task in enumerate(tasks):
        if isinstance(task, CurveTask):
            marks: set[object] = {(task.how, stepping(task.setup), task.seed)}
        else:
            marks = {task} if isinstance(task, ComputeTask) else {task.setup.program}
        if isinstance(task, Task) and task.chain:
            marks.add(task.chain)
        members = [position]
        for other in {owner[mark] for mark in marks if mark in owner}:
            theirs, earlier = batches.pop(other)
            marks, members = marks | theirs, earlier + members
        batches[position] = marks, members
        owner |= dict.fromkeys(marks, position)
    found = sorted(sorted(members) for _, members in batches.values())
    return [[tasks[i] for i in members] for members in found]


def done_batches(
    batches: Sequence[list[AnyTask]], directory: Path, count: int, deadline: float = math.inf
) -> Iterator[tuple[list[AnyTask], int]]:
    """Do batches, ``count`` at a time; yields each when it is done, with how many of its tasks are left."""
    directory.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    for mine in _rounds(batches):
        yield from _done_together(mine, directory, count, deadline)


def _rounds(batches: Sequence[list[AnyTask]]) -> list[list[list[AnyTask]]]:
    """On a GPU one engine after the other: each of JAX's small kernels would wait for a whole launch of ``warps``."""
    rounds: dict[str, list[list[AnyTask]]] = {}
    for batch in batches:
        engine, first = "any", batch[0]
        if engines.on_gpu() and not isinstance(first, ComputeTask):
            engine = engines.choose(first.setup, curves=isinstance(first, CurveTask))
        rounds.setdefault(engine, []).append(batch)
    return list(rounds.values())


def _done_together(
    batches: Sequence[list[AnyTask]], directory: Path, count: int, deadline: float
) -> Iterator[tuple[list[AnyTask], int]]:
    """Those that may run beside each other: in threads on a GPU, elsewhere in processes, or here if one at a time."""
    if engines.on_gpu():  # which lets kernels of one process run beside each other
        yield from _done_in_threads(batches, directory, count, deadline)
    elif count == 1:
        for batch in batches:
            yield batch, work(batch, directory, lambda: time.monotonic() > deadline)
    else:
        calls = [([crews.sent(task) for task in batch], directory, deadline) for batch in batches]
        for place, left in done_apart(_work_apart, calls, count):
            yield batches[place], left


def _done_in_threads(
    batches: Sequence[list[AnyTask]], directory: Path, count: int, deadline: float
) -> Iterator[tuple[list[AnyTask], int]]:
    """Left before its end, it waits for the launches under way and starts no more: threads cannot be killed."""
    stopped = threading.Event()

    def over() -> bool:
        return time.monotonic() > deadline or stopped.is_set()

    with ThreadPoolExecutor(count) as pool:
        running = {pool.submit(work, batch, directory, over): batch for batch in batches}
        try:
            for done in as_completed(running):
                yield running[done], done.result()
        finally:
            stopped.set()
            pool.shutdown(cancel_futures=True)
