"""Tasks: work as values that can be written to a file, done on any machine, and asked for again.

Tasks of one chain are done in order, and a chain ends with the first task whose median run is unsolved (a curve over n
stops where its points leave the axis) or, with ``until``, that solves such a share of its runs.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from paritylab import __version__, engines
from paritylab.errors import InvalidInput, require
from paritylab.functions import sources
from paritylab.running import computations
from paritylab.running.cost import step_flops, step_seconds
from paritylab.setups.setup import Setup
from paritylab.storage.counts import CountTask
from paritylab.storage.records import SOLVED, Records

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
        """The name of the file that keeps them, by the engine that made them, with the version of its arithmetic."""
        how = {name: value for name, value in self.how.options().items() if value is not None or name == "every"}
        return kept_name("curves", {"setup": self.setup.id, "engine": engine, **how}, self.seed)

    @property
    def name(self) -> str:
        return self.name_on(engines.known(engines.choose(self.setup, curves=True)))


def kept_name(name: str, parameters: Mapping[str, Any], seed: int) -> str:
    """The name of the file that keeps a result with these parameters."""
    key = json.dumps([name, dict(parameters), seed, __version__], sort_keys=True)
    return f"{name}-{hashlib.blake2b(key.encode(), digest_size=12).hexdigest()}"


@dataclass(frozen=True)
class ParamsTask:
    """Runs 0 .. ``runs`` - 1 of a Setup with their final params."""

    setup: Setup
    seed: int
    runs: int

    def name_on(self, engine: str) -> str:
        """The name of the file that keeps them, by the engine that trained them, with the version of its arithmetic."""
        return kept_name("params", {"setup": self.setup.id, "engine": engine, "runs": self.runs}, self.seed)

    @property
    def name(self) -> str:
        return self.name_on(engines.known(engines.choose(self.setup)))


@dataclass(frozen=True)
class ComputeTask:
    """A computation of a paper: its function by name, its arguments as JSON text, and the digest of its code."""

    function: str
    arguments: str
    seed: int
    code: str

    @classmethod
    def of(cls, function: computations.Computation, arguments: Mapping[str, Any], seed: int) -> ComputeTask:
        """The task of calling a function as it is here."""
        text = json.dumps(dict(arguments), sort_keys=True, allow_nan=False)
        return cls(computations.name_of(function), text, seed, sources.digest(function.__module__))

    @property
    def name(self) -> str:
        kept = self.function.partition(":")[2].replace("_", "-")
        about = {"function": self.function, "arguments": self.arguments, "code": self.code}
        return kept_name(f"computed-{kept}", about, self.seed)

    def checked(self) -> computations.Computation:
        """The function; InvalidInput if it is another one here than where it was asked for."""
        function = computations.named(self.function)
        require(sources.digest(function.__module__) == self.code,
                f"{self.function} is made of other code here than where it was asked for: of its own modules, of"
                " paritylab, or of the versions of Python and libraries")
        return function

    def do(self) -> dict[str, np.ndarray]:
        """Its arrays."""
        function = self.checked()
        with sources.unchanged(function.__module__):
            made = function(self.seed, **json.loads(self.arguments))
        return {name: np.asarray(value) for name, value in made.items()}


def runs_of(task: AnyTask) -> int:
    """How many runs a task trains, as far as it says."""
    if isinstance(task, ComputeTask):
        return 0
    return len(task.how.runs) if isinstance(task, CurveTask) else task.runs


def cost_of(task: AnyTask) -> tuple[float, float]:
    """FLOPs and seconds of training, if no run is solved before its step limit; a computation's are not known."""
    if isinstance(task, ComputeTask):
        return 0.0, 0.0
    if isinstance(task, CurveTask):
        updates = len(task.how.runs) * (task.how.steps if isinstance(task.how.steps, int) else task.how.steps[-1])
    else:
        updates = task.runs * task.setup.protocol.max_steps
    return updates * step_flops(task.setup), updates * step_seconds(task.setup)


AnyTask = Task | CurveTask | CountTask | ParamsTask | ComputeTask


def to_text(tasks: Sequence[AnyTask], claims: Sequence[Mapping[str, Any]] = ()) -> str:
    """The tasks as JSON, with the claims that asked for them: id, size and seed."""

    def row(task: AnyTask) -> dict[str, Any]:
        if isinstance(task, ComputeTask):
            return asdict(task)
        about = {"setup": task.setup.to_json(), "seed": task.seed}
        if isinstance(task, CurveTask):
            return about | {"curves": task.how.options()}
        if isinstance(task, CountTask):
            return about | {"count": [task.first, task.runs]}
        if isinstance(task, ParamsTask):
            return about | {"params": task.runs}
        return about | {"runs": task.runs, "chain": task.chain, "until": task.until}

    asked = {"claims": list(claims)} if claims else {}
    return json.dumps({"format": FORMAT, **asked, "tasks": [row(task) for task in tasks]}, indent=1) + "\n"


def from_text(text: str, functions: Iterable[Any] = ()) -> list[AnyTask]:
    """The tasks that a text holds; users' functions are looked for as :meth:`Setup.from_json` says."""
    return [task_of(row, functions) for row in read(text)["tasks"]]


def read(text: str) -> dict[str, Any]:
    """What :func:`to_text` wrote, as plain JSON values."""
    try:
        document = json.loads(text)
        require(isinstance(document, dict) and document.get("format") == FORMAT, f"not of format {FORMAT}")
        require(isinstance(document["tasks"], list), "its tasks are no list")
        return document
    except (ValueError, KeyError) as error:
        raise InvalidInput(f"not a file of tasks: {error}") from error


def task_of(row: dict[str, Any], functions: Iterable[Any] = ()) -> AnyTask:
    """The task of a row."""
    try:
        return _task(row, functions)
    except (KeyError, TypeError, AttributeError) as error:
        raise InvalidInput(f"not a file of tasks: {error}") from error


def _task(row: dict[str, Any], functions: Iterable[Any]) -> AnyTask:
    if "function" in row:
        return ComputeTask(str(row["function"]), str(row["arguments"]), int(row["seed"]), str(row.get("code", "")))
    setup, seed = Setup.from_json(row["setup"], functions), int(row["seed"])
    if "params" in row:
        return ParamsTask(setup, seed, int(row["params"]))
    if "count" in row:
        first, runs = row["count"]
        return CountTask(setup, seed, int(first), int(runs))
    if "curves" not in row:
        return Task(setup, seed, int(row["runs"]), row["chain"], row.get("until"))
    options: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in row["curves"].items()
    }
    return CurveTask(setup, seed, Recorded(**options))
