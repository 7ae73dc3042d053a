"""What is kept beside Records: training curves, final params, and computations of papers, a file for each task.

They are made here or, within a :func:`paritylab.crew`, by its workers; either way the process that asks writes the
file. Curves and params of any engine are used where they are found.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from paritylab import engines
from paritylab.aliases import Arrays
from paritylab.engines.arithmetic import earlier
from paritylab.engines.curves import SERIES, Curves, curves_each, stepping
from paritylab.errors import InvalidInput
from paritylab.later import jax
from paritylab.progress import Bar
from paritylab.running import crews
from paritylab.running.tasks import ComputeTask, CurveTask, ParamsTask
from paritylab.setups.setup import Setup
from paritylab.storage.kept import load_arrays, recall, save_arrays
from paritylab.storage.records import COLUMNS, Records

KeptTask = CurveTask | ParamsTask | ComputeTask


def keep(
    tasks: Sequence[KeptTask],
    directory: Path,
    engine: str = "auto",
    threads: int | None = None,
    progress: bool | None = None,
) -> None:
    """Make what these tasks ask for, and keep each in a file of the directory when it is done."""
    crew = crews.current()
    groups = [[task] for task in tasks] if crew is not None else _groups(tasks)
    title = "computing" if all(isinstance(task, ComputeTask) for task in tasks) else "recording"
    with Bar(title, len(tasks), progress if len(tasks) > 1 else False) as bar:
        inner = progress if len(tasks) == 1 else False
        calls = [([crews.sent(task) for task in group], engine, threads, inner) for group in groups]
        for done, (place, made) in enumerate(crews.each(_made, calls), 1):
            for task, (chosen, arrays) in zip(groups[place], made, strict=True):
                save_arrays(directory / f"{name_of(task, chosen)}.npz", arrays)
            bar.show(done)


def name_of(task: KeptTask, engine: str) -> str:
    """The name of the file that keeps what an engine made of a task."""
    return task.name if isinstance(task, ComputeTask) else task.name_on(engines.known(engine))


def find(task: KeptTask, directory: Path, engine: str = "auto") -> Arrays | None:
    """What a directory keeps of a task, by any engine and version; the one asked for first."""
    if isinstance(task, ComputeTask):
        names = [task.name]
    else:
        chosen = engines.choose(task.setup, engine, curves=isinstance(task, CurveTask))
        versions = map(engines.known, dict.fromkeys((chosen, *engines.registered())))
        names = [task.name_on(each) for now in versions for each in (now, *earlier(now))]
    found = (recall(directory / f"{name}.npz", load_arrays) for name in names)
    return next((arrays for arrays in found if arrays is not None), None)


def _groups(tasks: Sequence[KeptTask]) -> list[list[KeptTask]]:
    """Those that are made together: nothing is gained by it on a CPU, so there each is kept when it is done."""
    groups: dict[object, list[KeptTask]] = {}
    for task in tasks:
        alike: object = task
        if isinstance(task, CurveTask) and jax.default_backend() != "cpu":
            alike = task.how, stepping(task.setup), task.seed
        groups.setdefault(alike, []).append(task)
    return list(groups.values())


def _made(
    group: Sequence[KeptTask], engine: str, threads: int | None, progress: bool | None
) -> list[tuple[str, Arrays]]:
    """On whichever machine: the engine that made each task of a group, and its arrays with the seconds they took."""
    start, tasks = time.perf_counter(), [crews.received(task) for task in group]
    first = tasks[0]
    if isinstance(first, ComputeTask):
        return [("", first.do() | {"seconds": np.array(time.perf_counter() - start)})]
    if isinstance(first, ParamsTask):
        chosen = engines.choose(first.setup, engine)
        job = engines.Job(first.setup, first.seed, np.arange(first.runs))
        records, params = engines.final_params([job], chosen, threads=threads)
        made = [{name: getattr(records, name) for name in COLUMNS} | _leaves(params)]
        names = [chosen]
    else:
        drawn = [task for task in tasks if isinstance(task, CurveTask)]
        names = [engines.choose(task.setup, engine, curves=True) for task in drawn]
        options = {"seed": first.seed, "engine": engine, "threads": threads, "progress": progress}
        made = [curve_arrays(each) for each in curves_each([d.setup for d in drawn], **first.how.options(), **options)]
    about = {"seconds": np.array((time.perf_counter() - start) / len(tasks))}
    return [(name, arrays | about | {"engine": np.array(engines.label(name))})
            for name, arrays in zip(names, made, strict=True)]


# --- arrays ---------------------------------------------------------------------------------------------------------


def curve_arrays(curves: Curves) -> Arrays:
    """Curves as named arrays."""
    arrays = {name: value for name in SERIES if (value := getattr(curves, name)) is not None}
    return {"steps": curves.steps} | arrays | _leaves(curves.weights)


def curves_of(arrays: Mapping[str, np.ndarray], setup: Setup) -> Curves:
    """Curves from named arrays; InvalidInput if they are not there."""
    try:
        series: dict[str, Any] = {name: arrays[name] for name in ("steps", *SERIES) if name in arrays}
        return Curves(**series, weights=_tree(arrays, setup))
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"no curves: {error}") from error


def params_of(arrays: Mapping[str, np.ndarray], setup: Setup) -> tuple[Records, Any]:
    """Records and final params from named arrays; InvalidInput if they are not there."""
    try:
        return Records(*(arrays[name] for name in COLUMNS)), _tree(arrays, setup)
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidInput(f"no params: {error}") from error


def _leaves(params: Any) -> Arrays:
    return {f"weights{i}": np.asarray(leaf) for i, leaf in enumerate(jax.tree.leaves(params))}


def _tree(arrays: Mapping[str, np.ndarray], setup: Setup) -> Any:
    leaves = [arrays[f"weights{i}"] for i in range(len(arrays)) if f"weights{i}" in arrays]
    structure = jax.tree.structure(jax.eval_shape(setup.params, jax.random.key(0)))
    return jax.tree.unflatten(structure, leaves) if leaves else None
