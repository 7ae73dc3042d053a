"""What a trial may ask for, as values: runs, chains, races, training curves, final params, computations.

Each says what of it is missing on this disk, as tasks that any machine can do, and how its answer is had here, where a
crew of workers (:func:`paritylab.crew`) does what is missing if there is one.
"""

from __future__ import annotations

import contextlib
import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from paritylab.claims import sources
from paritylab.running import keeping, races
from paritylab.running.computations import Computation
from paritylab.running.races import Entry, Race
from paritylab.running.sweeps import Result, sweep
from paritylab.running.tasks import AnyTask, ComputeTask, CurveTask, ParamsTask, Recorded, Task, chain_ends
from paritylab.setups.setup import Setup
from paritylab.storage.records import Records

if TYPE_CHECKING:
    from paritylab.claims.lab import Lab
    from paritylab.engines.curves import Curves

A = TypeVar("A", covariant=True)
Extend = Callable[[Entry, int], Entry]
Strategy = Callable[[list[Entry], Extend], list[Entry]]
"""How a race goes: which Entries are followed how far. It extends them as it likes and returns them."""


class Planned(Exception):
    """What was asked for is not there: what the plan lists must be done before the trial can go on."""


class Request(ABC, Generic[A]):
    """Something a trial asks for."""

    staged = False
    """Whether more may be missing once what is missing now is done."""

    @abstractmethod
    def missing(self, lab: Lab) -> list[AnyTask]:
        """What is to be done first, as far as it can be told now."""

    @abstractmethod
    def answer(self, lab: Lab) -> A:
        """What it asks for; what is missing is done and kept."""


@dataclass(frozen=True)
class Sweep(Request[list[Result]]):
    """Runs 0 .. ``runs`` - 1 of each Setup; records of any engine are used where they are complete."""

    setups: Sequence[Setup]
    runs: int

    def missing(self, lab: Lab) -> list[AnyTask]:
        return [Task(setup, lab.seed, self.runs) for setup in self.setups if lab.stored(setup, self.runs) is None]

    def answer(self, lab: Lab) -> list[Result]:
        results = sweep(self.setups, self.runs, seed=lab.seed, engine=lab.engine, threads=lab.threads, store=lab.store,
                        progress=lab.progress, any_engine=True)
        for result in results:
            lab.count(result.setup, result.engine, len(result.records), result.model_steps, result.reused)
            if result.failure is None:
                task = Task(result.setup, lab.seed, self.runs)
                lab.sources.append(sources.of_records(task, result.engine, result.records))
        return results


@dataclass(frozen=True)
class Chains(Request[dict[str, list[Result]]]):
    """Runs along several curves, each up to its first point whose median run is unsolved.

    With ``until``, up to the first point that solves so large a share of its runs.
    """

    curves: Mapping[str, Sequence[Setup]]
    runs: int
    until: float | None = None

    def missing(self, lab: Lab) -> list[AnyTask]:
        tasks: list[AnyTask] = []
        for name, setups in self.curves.items():
            for setup in setups:
                found = lab.stored(setup, self.runs)
                if found is None:
                    tasks.append(Task(setup, lab.seed, self.runs, name, self.until))
                elif chain_ends(found, self.until):
                    break
        return tasks

    def answer(self, lab: Lab) -> dict[str, list[Result]]:
        results: dict[str, list[Result]] = {name: [] for name in self.curves}
        going = {name: list(setups) for name, setups in self.curves.items()}
        while going := {name: setups for name, setups in going.items() if setups}:
            names = list(going)
            now = Sweep([going[name].pop(0) for name in names], self.runs).answer(lab)
            for name, result in zip(names, now, strict=True):
                results[name].append(result)
                if chain_ends(result.records, self.until):
                    going[name] = []
        return results


@dataclass(frozen=True)
class Pursuit(Request[Race]):
    """Setups followed as far as a strategy finds necessary; a race, unless it is another."""

    staged = True

    setups: Sequence[Setup]
    runs: int
    strategy: Strategy = races.decide
    q: float = 10

    def missing(self, lab: Lab) -> list[AnyTask]:
        """One stage of the race: what is asked for whatever the runs of that stage turn out to do."""
        tasks: list[AnyTask] = []
        planned: set[str] = set()

        def extend(entry: Entry, steps: int) -> Entry:
            if entry.setup.id in planned:
                raise Planned
            found = races.missing(entry, steps, lab.store)
            if found is None:
                return races.extend(entry, steps, lab.engine, lab.threads, lab.store, lab.progress)
            stage, unsolved = found
            tasks.append(Task(stage, lab.seed, self.runs))
            planned.add(entry.setup.id)
            return unsolved

        with contextlib.suppress(Planned):
            entries = races.enter(self.setups, self.q, self.runs, lab.seed, lab.engine, check=False)
            self.strategy(entries, extend)
        return tasks

    def answer(self, lab: Lab) -> Race:
        extend = functools.partial(races.extend, engine=lab.engine, threads=lab.threads, store=lab.store,
                                   progress=lab.progress)
        entries = races.enter(self.setups, self.q, self.runs, lab.seed, lab.engine)
        races.tell_earlier(entries, lab.store)
        entries = self.strategy(entries, extend)
        for entry in entries:
            lab.count(entry.setup, entry.engine, len(entry.records), int(entry.records.steps.sum()), entry.reused)
            lab.sources += [sources.of_entry(entry)] if entry.horizon else []
        return Race(tuple(entries), sum(entry.seconds for entry in entries))


@dataclass(frozen=True)
class Recordings(Request["list[Curves]"]):
    """Training curves of each Setup, and how each is recorded."""

    asked: Sequence[tuple[Setup, Recorded]]

    def _tasks(self, lab: Lab) -> list[CurveTask]:
        return [CurveTask(setup, lab.seed, how) for setup, how in self.asked]

    def missing(self, lab: Lab) -> list[AnyTask]:
        return [task for task in self._tasks(lab) if lab.kept(task) is None]

    def answer(self, lab: Lab) -> list[Curves]:
        found: list[Curves] = []
        for task, arrays in zip(tasks := self._tasks(lab), lab.keep(tasks), strict=True):
            curves, runs = keeping.curves_of(arrays, task.setup), len(task.how.runs)
            lab.count(task.setup, str(arrays.get("engine", "jax")), runs, runs * int(curves.steps[-1]))
            found.append(curves)
        return found


@dataclass(frozen=True)
class FinalParams(Request[tuple[Records, Any]]):
    """Runs 0 .. ``runs`` - 1 of a Setup, with their params at the end."""

    setup: Setup
    runs: int

    def missing(self, lab: Lab) -> list[AnyTask]:
        task = ParamsTask(self.setup, lab.seed, self.runs)
        return [task] if lab.kept(task) is None else []

    def answer(self, lab: Lab) -> tuple[Records, Any]:
        (arrays,) = lab.keep([ParamsTask(self.setup, lab.seed, self.runs)])
        records, params = keeping.params_of(arrays, self.setup)
        lab.count(self.setup, str(arrays["engine"]), len(records), int(records.steps.sum()))
        return records, params


@dataclass(frozen=True)
class Computations(Request[list[dict[str, np.ndarray]]]):
    """Arrays that a function of the paper makes, for each of these arguments."""

    function: Computation
    arguments: Sequence[Mapping[str, Any]]

    def _tasks(self, lab: Lab) -> list[ComputeTask]:
        return [ComputeTask.of(self.function, each, lab.seed) for each in self.arguments]

    def missing(self, lab: Lab) -> list[AnyTask]:
        return [task for task in self._tasks(lab) if lab.kept(task) is None]

    def answer(self, lab: Lab) -> list[dict[str, np.ndarray]]:
        return lab.keep(self._tasks(lab))


class Pending:
    """An answer that is not there yet: whatever is done with it ends the plan."""

    def _end(self, *_: Any, **__: Any) -> Any:
        raise Planned

    def __getattr__(self, name: str) -> Any:
        raise Planned

    def __iter__(self) -> Iterator[Any]:
        raise Planned

    __getitem__ = __len__ = __bool__ = __call__ = __float__ = __array__ = __contains__ = _end
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _end
    __or__ = __ror__ = __eq__ = __lt__ = __le__ = __gt__ = __ge__ = _end
    __hash__ = None  # pyright: ignore[reportAssignmentType]
