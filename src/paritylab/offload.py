"""Work for another machine: a file of tasks goes there, records come back. The machine needs JAX and NumPy alone.

    paritylab reproduce barak2022.fig10-mlp --full --export work.json       # here: what is missing
    python -m paritylab.offload work.json records --processes 8             # there, as often as needed
    paritylab merge records                                                 # here: into the store

Tasks of one chain are done in order, and a chain ends with the first task whose median run is unsolved: a curve over n
stops where its points leave the axis. Training curves (CurveTask) that can train together do so.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import multiprocessing
import os
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np

from paritylab import __version__, engines
from paritylab.engines.curves import SERIES, Curves, curves_each, stepping
from paritylab.errors import InvalidInput, require
from paritylab.files import load_arrays, save_arrays
from paritylab.records import COLUMNS, SOLVED, Records
from paritylab.setup import Setup

FORMAT = 1


@dataclass(frozen=True)
class Task:
    """Runs 0 .. ``runs`` - 1 of a Setup, as part of a chain (a task without a name for it is a chain by itself)."""

    setup: Setup
    seed: int
    runs: int
    chain: str = ""

    @property
    def name(self) -> str:
        return f"{self.setup.id}-{self.seed}-{self.runs}"


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
        return self.name_on(engines.choose(self.setup))


def kept_name(name: str, parameters: Mapping[str, Any], seed: int) -> str:
    """The name of the file that keeps a result with these parameters."""
    key = json.dumps([name, dict(parameters), seed, __version__], sort_keys=True)
    return f"{name}-{hashlib.blake2b(key.encode(), digest_size=12).hexdigest()}"


def to_text(tasks: Sequence[Task | CurveTask]) -> str:
    """The tasks as JSON."""
    rows = [{"setup": t.setup.to_json(), "seed": t.seed}
            | ({"curves": t.how.options()} if isinstance(t, CurveTask) else {"runs": t.runs, "chain": t.chain})
            for t in tasks]  # fmt: skip
    return json.dumps({"format": FORMAT, "tasks": rows}, indent=1) + "\n"


def from_text(text: str) -> list[Task | CurveTask]:
    try:
        document = json.loads(text)
        require(isinstance(document, dict) and document.get("format") == FORMAT, f"not of format {FORMAT}")
        return [_task(row) for row in document["tasks"]]
    except (ValueError, KeyError, TypeError) as error:
        raise InvalidInput(f"not a file of tasks: {error}") from error


def _task(row: dict[str, Any]) -> Task | CurveTask:
    setup, seed = Setup.from_json(row["setup"]), int(row["seed"])
    if "curves" not in row:
        return Task(setup, seed, int(row["runs"]), row["chain"])
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
        directory.mkdir(parents=True, exist_ok=True)
        for task, curves in zip(group, made, strict=True):
            chosen = engines.choose(task.setup, engine)
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
    engine, seconds = str(arrays.pop("engine", "jax")), float(arrays.pop("seconds", 0.0))
    leaves = [arrays.pop(f"weights{i}") for i in range(len(arrays)) if f"weights{i}" in arrays]
    structure = jax.tree.structure(jax.eval_shape(setup.params, jax.random.key(0)))
    curves = Curves(**arrays, weights=jax.tree.unflatten(structure, leaves) if leaves else None)
    return curves, engine, seconds


def work(text: str, directory: Path, deadline: float) -> int:
    """Do tasks whose chains belong together, one program after the other; returns how many are left at the deadline."""
    everything = from_text(text)
    if drawn := [task for task in everything if isinstance(task, CurveTask)]:
        missing = [task for task in drawn if not (directory / f"{task.name}.npz").exists()]
        if missing:
            record(missing, directory, progress=False)
    tasks = [task for task in everything if isinstance(task, Task)]
    ended: set[str] = set()
    left = 0
    waiting = [task for task in tasks if not _done(task, directory, ended)]
    while waiting:
        waiting = [task for task in waiting if not task.chain or task.chain not in ended]
        first: dict[str, Task] = {}
        for task in waiting:
            first.setdefault(task.chain or task.name, task)
        if not first or time.monotonic() > deadline:
            break
        programs = [task.setup.program for task in first.values()]
        together = [task for task in first.values() if task.setup.program == programs[0]]
        for task, records in zip(together, _train(together, deadline), strict=True):
            if records is None:
                left += 1
                continue
            _write(task, records, directory)
            _judge(task, records, ended)
        waiting = [task for task in waiting if task not in together]
    return left + len(waiting)


def _train(tasks: Sequence[Task], deadline: float) -> list[Records | None]:
    """The Records of each task; None where the deadline came first."""
    jobs = [engines.Job(task.setup, task.seed, np.arange(task.runs)) for task in tasks]
    parts: list[list[Records]] = [[] for _ in jobs]
    for ended in engines.train(jobs):
        for index, records in ended:
            parts[index].append(records)
        if time.monotonic() > deadline:
            break
    found = [Records.concatenate(part) for part in parts]
    return [records if len(records) == task.runs else None for task, records in zip(tasks, found, strict=True)]


def _judge(task: Task, records: Records, ended: set[str]) -> None:
    if task.chain and np.mean(records.status == SOLVED) <= 0.5:
        ended.add(task.chain)


def _file(task: Task, directory: Path) -> Path:
    return directory / f"{task.name}.npz"


def _done(task: Task, directory: Path, ended: set[str]) -> bool:
    path = _file(task, directory)
    if not path.exists():
        return False
    _judge(task, read_records(path)[2], ended)
    return True


def _write(task: Task, records: Records, directory: Path) -> None:
    label = engines.label(engines.choose(task.setup))
    about = {"setup": np.array(task.setup.to_json()), "engine": np.array(label), "seed": np.array(task.seed)}
    save_arrays(_file(task, directory), about | {name: getattr(records, name) for name in COLUMNS})


def read_records(path: Path) -> tuple[Setup, str, Records, int]:
    """The Setup, engine, Records and seed in a file that :func:`work` wrote."""
    try:
        file = load_arrays(path)
        records = Records(*(file[name] for name in COLUMNS))
        return Setup.from_json(str(file["setup"])), str(file["engine"]), records, int(file["seed"])
    except (OSError, ValueError, KeyError) as error:
        raise InvalidInput(f"{path} does not hold records: {error}") from error


def _batches(tasks: Sequence[Task | CurveTask]) -> list[list[Task | CurveTask]]:
    """Tasks that should be done by one process: chains that share a program, transitively; curves recorded alike."""
    groups: list[tuple[set[object], list[Task | CurveTask]]] = []
    for task in tasks:
        marks: set[object] = {(task.how, stepping(task.setup), task.seed)} if isinstance(task, CurveTask) else {
            task.chain or task.name, task.setup.program}  # fmt: skip
        touched = [group for group in groups if group[0] & marks]
        groups = [group for group in groups if not group[0] & marks]
        joined = [member for group in touched for member in group[1]]
        groups.append((marks.union(*(group[0] for group in touched)), [*joined, task]))
    position = {id(task): i for i, task in enumerate(tasks)}
    batches = [sorted(members, key=lambda task: position[id(task)]) for _, members in groups]
    return sorted(batches, key=lambda batch: position[id(batch[0])])


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m paritylab.offload", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("tasks", type=Path, help="what 'paritylab reproduce --export' wrote")
    parser.add_argument("records", type=Path, help="the directory for the records; what is there is not repeated")
    parser.add_argument("--processes", type=int, default=1, help="so many programs are compiled and run at a time")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after so long")
    options = parser.parse_args()
    deadline = time.monotonic() + options.seconds
    try:
        batches = _batches(from_text(options.tasks.read_text(encoding="utf-8")))
    except (InvalidInput, OSError) as error:
        print(f"paritylab.offload: error: {error}", file=sys.stderr)
        return 2
    options.records.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    start, left = time.monotonic(), 0
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(options.processes, mp_context=context) as pool:
        running = {pool.submit(work, to_text(batch), options.records, deadline): batch for batch in batches}
        for done in as_completed(running):
            left += done.result()
            chain = getattr(running[done][0], "chain", "") or running[done][0].name
            print(f"{time.monotonic() - start:7.1f} s  {chain}: {done.result()} tasks left", flush=True)
    print(f"{len(list(options.records.glob('*.npz')))} record files, {left} tasks left")
    return 0


if __name__ == "__main__":
    sys.exit(main())
