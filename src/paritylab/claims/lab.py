"""The Lab: where a claim is tried. It knows how large the trial is, keeps what was computed, and counts the cost."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from paritylab.claims.evidence import SIZES
from paritylab.engines import ENGINES
from paritylab.errors import require, unknown
from paritylab.running.cost import step_flops
from paritylab.running.offload import CurveTask, Task, chain_ends, kept_name
from paritylab.storage.kept import load_arrays, recall, save_arrays
from paritylab.storage.records import Records

if TYPE_CHECKING:
    from paritylab.engines.curves import Curves
    from paritylab.running.races import Race
    from paritylab.running.sweeps import Result
    from paritylab.setups.setup import Setup
    from paritylab.storage.store import Store

T = TypeVar("T")


class Planned(Exception):
    """The plan is complete: what it lists must be done before the trial can go on."""


class Lab:
    """One trial's size, seed, engine and memory.

    ``quick`` takes at most a minute on two cores, ``full`` is the published setup, ``standard`` the largest that takes
    about a quarter of an hour on two cores. Whatever is trained is kept under ``out`` and never trained twice. With a
    ``plan``, nothing is trained: the tasks of the first sweep with missing runs are added to it, and Planned is raised.

    >>> lab = Lab("quick", Path("/tmp/paritylab-doctest"))
    >>> lab.pick("n", quick=20, full=50)
    20
    >>> lab.size_reached
    'quick'
    """

    def __init__(
        self,
        size: str = "quick",
        out: Path = Path("out"),
        seed: int = 0,
        engine: str = "auto",
        threads: int | None = None,
        progress: bool | None = None,
        plan: list[Task | CurveTask] | None = None,
    ) -> None:
        if size not in SIZES:
            raise unknown("size", size, SIZES)
        require(0 <= seed < 2**32, f"seed must be in 0..2^32-1, not {seed}")
        if engine not in ENGINES:
            raise unknown("engine", engine, ENGINES)
        require(threads is None or threads >= 1, f"threads must be at least 1, not {threads}")
        self.size, self.out, self.seed = size, out, seed
        self.engine, self.threads, self.progress, self.plan = engine, threads, progress, plan
        self.parameters: dict[str, Any] = {}
        self.engines: set[str] = set()
        self.model_steps = 0
        self.flops = 0.0
        self.runs = 0
        self.reused = 0
        self.recalled = 0
        self.recalled_seconds = 0.0
        self._reduced = False

    @property
    def size_reached(self) -> str:
        """``full`` if nothing was smaller than in the published setup, otherwise the size asked for."""
        return self.size if self._reduced else "full"

    def pick(self, name: str, *, quick: T, full: T, standard: T | None = None) -> T:
        """A parameter of the trial by its size; ``standard`` is as ``full`` unless said. Evidence lists it."""
        value = {"quick": quick, "standard": full if standard is None else standard, "full": full}[self.size]
        self._reduced |= value != full
        self.parameters[name] = value
        return value

    def leave_out(self, what: str) -> None:
        """Say what of the published setup is not tried."""
        self._reduced = True
        self.parameters.setdefault("left out", []).append(what)

    def rng(self, *path: int) -> np.random.Generator:
        """Random numbers of the trial's own, for whatever is not a run."""
        return np.random.default_rng([self.seed, *path])

    @functools.cached_property
    def store(self) -> Store:
        from paritylab.storage.store import Store

        return Store(self.out / "store")

    def affords(self, setup: Setup, runs: int) -> bool:
        """Whether a network too large for a CPU should be tried: at ``full``, on a GPU, or if the runs are there."""
        from paritylab import engines

        return self.size == "full" or engines.on_gpu() or self._stored(setup, runs) is not None

    def reach(self, chain: Sequence[Setup], runs: int) -> int:
        """How many points of a chain can be had where its networks are too large for a CPU."""
        for i, setup in enumerate(chain):
            found = self._stored(setup, runs)
            if found is not None and chain_ends(found, None):
                return len(chain)  # nothing beyond is asked for
            if found is None and not self.affords(setup, runs):
                return i
        return len(chain)

    def _stored(self, setup: Setup, runs: int) -> Records | None:
        """The Records of all runs of a Setup by one engine, if the store has them."""
        for engine in self.store.engines(setup.id, self.seed):
            records = self.store.records(setup.id, engine, self.seed)
            if np.isin(np.arange(runs), records.run).all():
                return records
        return None

    def sweep(self, setups: Sequence[Setup], runs: int) -> list[Result]:
        """As :func:`paritylab.sweep`; records of any engine in the store are used if they are complete."""
        from paritylab.running.sweeps import sweep

        self._note({"": setups}, runs)
        results = sweep(setups, runs, self.seed, self.engine, self.threads, self.store, self.progress, any_engine=True)
        for result in results:
            self.count(result.setup, result.engine, len(result.records), result.model_steps, result.reused)
        return results

    def measure(self, setup: Setup, runs: int) -> Result:
        """A sweep of one Setup."""
        return self.sweep([setup], runs)[0]

    def chains(
        self, curves: Mapping[str, Sequence[Setup]], runs: int, until: float | None = None
    ) -> dict[str, list[Result]]:
        """Sweep along several curves, all at once, each up to its first point whose median run is unsolved.

        With ``until``, up to the first point that solves so large a share of its runs.
        """
        self._note(curves, runs, until)
        results: dict[str, list[Result]] = {name: [] for name in curves}
        going = {name: list(setups) for name, setups in curves.items()}
        while going := {name: setups for name, setups in going.items() if setups}:
            names = list(going)
            for name, result in zip(names, self.sweep([going[name].pop(0) for name in names], runs), strict=True):
                results[name].append(result)
                if chain_ends(result.records, until):
                    going[name] = []
        return results

    def _note(self, curves: Mapping[str, Sequence[Setup]], runs: int, until: float | None = None) -> None:
        """With a plan: add the tasks that are missing, and stop if there are any. A chain has a name."""
        if self.plan is None:
            return
        for name, setups in curves.items():
            for setup in setups:
                found = self._stored(setup, runs)
                if found is None:
                    self.plan.append(Task(setup, self.seed, runs, name, until))
                elif name and chain_ends(found, until):
                    break
        if self.plan:
            raise Planned

    def race(self, setups: Sequence[Setup], runs: int, **options: Any) -> Race:
        """As :func:`paritylab.race`."""
        from paritylab.running.races import race

        options = {"progress": self.progress} | options
        result = race(setups, runs=runs, seed=self.seed, engine=self.engine, threads=self.threads, store=self.store,
                      **options)
        for entry in result.rates:
            self.count(entry.setup, entry.engine, len(entry.records), int(entry.records.steps.sum()), entry.reused)
        return result

    def curves(
        self,
        setup: Setup,
        steps: int | Sequence[int],
        every: int | None = None,
        runs: int | Sequence[int] = 10,
        weights: bool = False,
        train: bool = False,
        stop: float | None = None,
        loss: str | None = None,
    ) -> Curves:
        """As :func:`paritylab.curves`, kept on disk."""
        return self.curves_each([setup], steps, every, runs, weights, train, stop, loss)[0]

    def curves_each(
        self,
        setups: Sequence[Setup],
        steps: int | Sequence[int],
        every: int | None = None,
        runs: int | Sequence[int] = 10,
        weights: bool = False,
        train: bool = False,
        stop: float | None = None,
        loss: str | None = None,
    ) -> list[Curves]:
        """As :func:`paritylab.curves_each`, kept on disk one by one; those of any engine are used."""
        from paritylab import engines
        from paritylab.running.offload import Recorded, read_curves, record

        numbers = tuple(range(runs)) if isinstance(runs, int) else tuple(int(run) for run in runs)
        asked = steps if isinstance(steps, int) else tuple(int(step) for step in steps)
        how = Recorded(asked, every, numbers, weights, train, stop, loss)
        directory = self.out / "kept"

        def found_on_disk(task: CurveTask) -> tuple[Curves, str, float] | None:
            chosen = engines.choose(task.setup, self.engine, curves=True)
            paths = [directory / f"{task.name_on(engine)}.npz" for engine in dict.fromkeys((chosen, "lanes", "jax"))]
            kept = (recall(path, lambda path: read_curves(path, task.setup)) for path in paths)
            return next((curves for curves in kept if curves is not None), None)

        tasks = [CurveTask(setup, self.seed, how) for setup in setups]
        missing = [task for task in tasks if found_on_disk(task) is None]
        self.recalled += len(tasks) - len(missing)
        if missing and self.plan is not None:
            self.plan += missing
            raise Planned
        if missing:
            record(missing, directory, self.progress, engine=self.engine, threads=self.threads)
        found = []
        for task in tasks:
            kept = found_on_disk(task)
            assert kept is not None
            curves, engine, seconds = kept
            self.recalled_seconds += seconds if task not in missing else 0
            self.count(task.setup, engine, len(numbers), len(numbers) * int(curves.steps[-1]))
            found.append(curves)
        return found

    def kept(
        self, name: str, parameters: Mapping[str, Any], make: Callable[[], Mapping[str, np.ndarray]]
    ) -> dict[str, np.ndarray]:
        """Arrays that took long to compute: from disk if these parameters (and the seed) were tried before."""
        path = self.out / "kept" / f"{kept_name(name, parameters, self.seed)}.npz"
        if (arrays := recall(path, load_arrays)) is not None:
            self.recalled += 1
            return arrays
        arrays = {each: np.asarray(value) for each, value in make().items()}
        save_arrays(path, arrays)
        return arrays

    def count(self, setup: Setup, engine: str, runs: int, model_steps: int, reused: int = 0) -> None:
        """Add runs to the cost of the trial."""
        self.engines.add(engine)
        self.runs += runs
        self.reused += reused
        self.model_steps += model_steps
        self.flops += model_steps * step_flops(setup)
