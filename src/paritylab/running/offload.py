"""Work for another machine: a file of tasks goes there, records come back. The machine needs JAX and NumPy alone.

    paritylab reproduce barak2022.fig10-mlp --full --export work.json       # here: what is missing
    python -m paritylab work work.json records --processes 8                # there, as often as needed
    paritylab merge records                                                 # here: into the store

Tasks of one chain are done in order, and a chain ends with the first task whose median run is unsolved (a curve over n
stops where its points leave the axis) or, with ``until``, that solves such a share of its runs. Training curves
(CurveTask) that can train together do so. Of a CountTask only the distribution of convergence times is kept.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np

from paritylab import __version__, engines
from paritylab.engines.curves import SERIES, Curves, curves_each, stepping
from paritylab.errors import InvalidInput, require
from paritylab.running.pools import done_apart
from paritylab.setups.setup import Setup
from paritylab.storage.counts import Counted, Counts, CountTask
from paritylab.storage.kept import load_arrays, recall, save_arrays
from paritylab.storage.records import COLUMNS, SOLVED, Records

FORMAT = 1


@dataclass(frozen=True)
class Task:
    """Runs 0 .. ``runs`` - 1 of a Setup, as part of a chain (a task without a name for it is a chain by itself)."""

    setup: Setup
    seed: int
    runs: int
    chain: str = ""
    until: float | None = None

    @property
    def name(self) -> str:
        return f"{self.setup.id}-{self.seed}-{self.runs}"

    def ends(self, records: Records) -> bool:
        """Whether its chain ends with this task."""
        return bool(self.chain) and chain_ends(records, self.until)


def chain_ends(records: Records, until: float | None) -> bool:
    """Whether so large a share is solved or, without ``until``, no more than half."""
    solved = float(np.mean(records.status == SOLVED))
    return solved <= 0.5 if until is None else solved >= until


@dataclass(frozen=True)
class Recorded:
    """How training curves are recorded: the options of :func:`paritylab.curves` that decide what they hold."""

    steps: int | tuple[int, ...]
    every: int | None = None
    runs: tuple[int, ...] = (0,)
    weights: bool = False
    train: bool = False
    stop: float | None = None
    loss: str | None = None

    def options(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class CurveTask:
    """Training curves of a Setup."""

    setup: Setup
    seed: int
    how: Recorded

    def name_on(self, engine: str) -> str:
        """The name of the file that keeps them, by the engine that made them."""
        how = {name: value for name, value in self.how.options().items() if value is not None or name == "every"}
        return kept_name("curves", {"setup": self.setup.id, "engine": engine, **how}, self.seed)

    @property
    def name(self) -> str:
        return self.name_on(engines.choose(self.setup, curves=True))


def kept_name(name: str, parameters: Mapping[str, Any], seed: int) -> str:
    """The name of the file that keeps a result with these parameters."""
    key = json.dumps([name, dict(parameters), seed, __version__], sort_keys=True)
    return f"{name}-{hashlib.blake2b(key.encode(), digest_size=12).hexdigest()}"


AnyTask = Task | CurveTask | CountTask


def to_text(tasks: Sequence[AnyTask]) -> str:
    """The tasks as JSON."""

    def rest(task: AnyTask) -> dict[str, Any]:
        if isinstance(task, CurveTask):
            return {"curves": task.how.options()}
        if isinstance(task, CountTask):
            return {"count": [task.first, task.runs]}
        return {"runs": task.runs, "chain": task.chain, "until": task.until}

    rows = [{"setup": task.setup.to_json(), "seed": task.seed} | rest(task) for task in tasks]
    return json.dumps({"format": FORMAT, "tasks": rows}, indent=1) + "\n"


def from_text(text: str) -> list[AnyTask]:
    try:
        document = json.loads(text)
        require(isinstance(document, dict) and document.get("format") == FORMAT, f"not of format {FORMAT}")
        return [_task(row) for row in document["tasks"]]
    except (ValueError, KeyError, TypeError) as error:
        raise InvalidInput(f"not a file of tasks: {error}") from error


def _task(row: dict[str, Any]) -> AnyTask:
    setup, seed = Setup.from_json(row["setup"]), int(row["seed"])
    if "count" in row:
        first, runs = row["count"]
        return CountTask(setup, seed, int(first), int(runs))
    if "curves" not in row:
        return Task(setup, seed, int(row["runs"]), row["chain"], row.get("until"))
    options: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in row["curves"].items()
    }
    return CurveTask(setup, seed, Recorded(**options))


def record(tasks: Sequence[CurveTask], directory: Path, progress: bool | None = None, **options: Any) -> None:
    """Make the curves of tasks that are recorded alike, and keep them in a directory."""
    how = tasks[0].how
    engine = options.pop("engine", "auto")
    groups: dict[object, list[CurveTask]] = {}
    for task in tasks:  # nothing is gained on a CPU by training together: there, keep each when it is done
        groups.setdefault(task if jax.default_backend() == "cpu" else stepping(task.setup), []).append(task)
    for group in groups.values():
        setups = [task.setup for task in group]
        start = time.perf_counter()
        made = curves_each(setups, **how.options(), seed=group[0].seed, engine=engine, progress=progress, **options)
        seconds = (time.perf_counter() - start) / len(group)
        for task, curves in zip(group, made, strict=True):
            chosen = engines.choose(task.setup, engine, curves=True)
            about = {"engine": np.array(engines.label(chosen)), "seconds": np.array(seconds)}
            save_arrays(directory / f"{task.name_on(chosen)}.npz", curve_arrays(curves) | about)


def curve_arrays(curves: Curves) -> dict[str, np.ndarray]:
    """Curves as named arrays."""
    arrays = {name: value for name in SERIES if (value := getattr(curves, name)) is not None}
    leaves = jax.tree.leaves(curves.weights)
    return {"steps": curves.steps} | arrays | {f"weights{i}": np.asarray(leaf) for i, leaf in enumerate(leaves)}


def read_curves(path: Path, setup: Setup) -> tuple[Curves, str, float]:
    """Kept curves, the engine that made them and its seconds; OSError or ValueError if not there or damaged."""
    arrays = load_arrays(path)
    try:
        engine, seconds = str(arrays.pop("engine", "jax")), float(arrays.pop("seconds", 0.0))
        leaves = [arrays.pop(f"weights{i}") for i in range(len(arrays)) if f"weights{i}" in arrays]
        structure = jax.tree.structure(jax.eval_shape(setup.params, jax.random.key(0)))
        curves = Curves(**arrays, weights=jax.tree.unflatten(structure, leaves) if leaves else None)
        return curves, engine, seconds
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"{path} does not hold curves: {error}") from error


def work(everything: Sequence[AnyTask], directory: Path, over: Callable[[], bool] = lambda: False) -> int:
    """Do tasks whose chains belong together, one program after the other; returns how many are left once it is over."""
    if drawn := [task for task in everything if isinstance(task, CurveTask)]:
        missing = [task for task in drawn if recall(directory / f"{task.name}.npz", load_arrays) is None]
        if missing:
            record(missing, directory, progress=False)
    tasks = [task for task in everything if isinstance(task, Task)]
    ended: set[str] = set()
    left = _count([task for task in everything if isinstance(task, CountTask)], directory, over)
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


def _work_on_text(text: str, directory: Path, deadline: float) -> int:
    return work(from_text(text), directory, lambda: time.monotonic() > deadline)


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


def _count(tasks: Sequence[CountTask], directory: Path, over: Callable[[], bool]) -> int:
    """Do tasks of any programs, keeping each when it is complete; returns how many are left once it is over."""
    missing = [task for task in tasks if recall(task.path(directory), Counted.load) is None]
    jobs = [engines.Job(task.setup, task.seed, task.first + np.arange(task.runs)) for task in missing]
    left = len(missing)
    for group in engines.together(jobs):
        sums = dict.fromkeys(group, Counts.sum([]))
        began, label = time.time(), engines.label(engines.choose(jobs[group[0]].setup))
        for ended in () if over() else engines.train([jobs[i] for i in group]):
            for index, records in ended:
                i = group[index]
                sums[i] = Counts.sum([sums[i], Counts.of(records)])
                if sums[i].runs == missing[i].runs:
                    Counted(missing[i], sums[i], label, began, time.time()).save(directory)
                    left -= 1
            if over():
                break
    return left


def _file(task: Task, directory: Path) -> Path:
    return directory / f"{task.name}.npz"


def _done(task: Task, directory: Path, ended: set[str]) -> bool:
    found = recall(_file(task, directory), read_records)
    if found is not None and task.ends(found[2]):
        ended.add(task.chain)
    return found is not None


def _write(task: Task, records: Records, directory: Path) -> None:
    label = engines.label(engines.choose(task.setup))
    about = {"setup": np.array(task.setup.to_json()), "engine": np.array(label), "seed": np.array(task.seed)}
    save_arrays(_file(task, directory), about | {name: getattr(records, name) for name in COLUMNS})


def read_records(path: Path) -> tuple[Setup, str, Records, int]:
    """The Setup, engine, Records and seed in a file that :func:`work` wrote."""
    file = load_arrays(path)
    try:
        records = Records(*(file[name] for name in COLUMNS))
        return Setup.from_json(str(file["setup"])), str(file["engine"]), records, int(file["seed"])
    except (ValueError, KeyError, TypeError) as error:
        raise InvalidInput(f"{path} does not hold records: {error}") from error


def batches_of(tasks: Sequence[AnyTask]) -> list[list[AnyTask]]:
    """Tasks that should be done by one process: chains that share a program, transitively; curves recorded alike."""
    owner: dict[object, int] = {}  # of a mark: the batch that has it
    batches: dict[int, tuple[set[object], list[int]]] = {}
    for position, task in enumerate(tasks):
        marks: set[object] = {task.setup.program}
        if isinstance(task, CurveTask):
            marks = {(task.how, stepping(task.setup), task.seed)}
        elif isinstance(task, Task) and task.chain:
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
        curves = isinstance(batch[0], CurveTask)
        engine = engines.choose(batch[0].setup, curves=curves) if engines.on_gpu() else "any"
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
        calls = [(to_text(batch), directory, deadline) for batch in batches]
        for place, left in done_apart(_work_on_text, calls, count):
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
