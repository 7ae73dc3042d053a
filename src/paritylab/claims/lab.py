"""The Lab: the one door through which a trial has anything trained or computed. It keeps all, and counts the cost.

A trial calls its methods; each makes a request (:mod:`paritylab.claims.requests`), which is answered from disk as far
as possible. With a plan nothing is trained: what is missing is listed there, and the trial goes as far as it can.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np

from paritylab.aliases import Arrays
from paritylab.claims import requests, sources
from paritylab.claims.requests import Pending, Request, Strategy
from paritylab.claims.rules import SIZES, Size
from paritylab.claims.sources import Source
from paritylab.engines.registry import names
from paritylab.errors import require, unknown
from paritylab.running import keeping, races
from paritylab.running.computations import Computation
from paritylab.running.cost import step_flops
from paritylab.running.keeping import KeptTask
from paritylab.running.tasks import AnyTask, Recorded, chain_ends
from paritylab.setups import identity
from paritylab.storage.records import Records

if TYPE_CHECKING:
    from paritylab.engines.curves import Curves
    from paritylab.running.races import Race
    from paritylab.running.sweeps import Result
    from paritylab.setups.setup import Setup
    from paritylab.storage.store import Store

A = TypeVar("A")


class Lab:
    """One trial's size, seed, engine and memory.

    Args:
        size: ``quick`` takes at most a minute on two cores, ``full`` is the published setup, ``standard`` the largest
            that takes about a quarter of an hour on two cores.
        out: whatever is trained or computed is kept under this folder, and never done twice.
        seed: the root of all random numbers.
        engine: which trains; ``auto`` takes the fastest that can.
        threads: cores for the native engine; all of them unless said.
        progress: bars on standard error; by default only on a terminal.
        plan: with a list here nothing is trained, and the tasks that are missing are added to it.
    """

    def __init__(
        self,
        size: Size = "quick",
        out: Path = Path("out"),
        seed: int = 0,
        engine: str = "auto",
        threads: int | None = None,
        progress: bool | None = None,
        plan: list[AnyTask] | None = None,
    ) -> None:
        if size not in SIZES:
            raise unknown("size", size, SIZES)
        require(0 <= seed < 2**32, f"seed must be in 0..2^32-1, not {seed}")
        if engine not in names():
            raise unknown("engine", engine, names())
        require(threads is None or threads >= 1, f"threads must be at least 1, not {threads}")
        self.size: Size = size
        self.out, self.seed = out, seed
        self.engine, self.threads, self.progress, self.plan = engine, threads, progress, plan
        self.left_out: list[str] = []
        self.planned_all = True
        self._planned = {task.name for task in plan or ()}
        self.engines: set[str] = set()
        self.model_steps = 0
        self.flops = 0.0
        self.runs = 0
        self.reused = 0
        self.recalled = 0
        self.recalled_seconds = 0.0
        self.sources: list[Source] = []
        """What the trial stands on."""

    # --- what a trial asks for ------------------------------------------------------------------------------------

    def get(self, request: Request[A]) -> A:
        """The answer to a request; with a plan, one that is not there lists what is missing and can be passed on."""
        if self.plan is not None and (missing := request.missing(self)):
            self.planned_all &= not request.staged
            for task in missing:
                if task.name not in self._planned:
                    self._planned.add(task.name)
                    self.plan.append(task)
            return cast("A", Pending())
        return request.answer(self)

    def sweep(self, setups: Sequence[Setup], runs: int) -> list[Result]:
        """As :func:`paritylab.sweep`; records of any engine in the store are used if they are complete."""
        return self.get(requests.Sweep(identity.traced(setups), runs))

    def measure(self, setup: Setup, runs: int) -> Result:
        """A sweep of one Setup."""
        return self._one(self.sweep([setup], runs))

    def chains(
        self, curves: Mapping[str, Sequence[Setup]], runs: int, until: float | None = None
    ) -> dict[str, list[Result]]:
        """Sweep along several curves, all at once, each up to its first point whose median run is unsolved.

        With ``until``, up to the first point that solves so large a share of its runs.
        """
        traced = {name: identity.traced(setups) for name, setups in curves.items()}
        return self.get(requests.Chains(traced, runs, until))

    def race(self, setups: Sequence[Setup], runs: int, q: float = 10, follow: float = 0) -> Race:
        """As :func:`paritylab.race`."""
        return self.pursue(setups, runs, functools.partial(races.decide, follow=follow), q)

    def pursue(self, setups: Sequence[Setup], runs: int, strategy: Strategy, q: float = 10) -> Race:
        """Setups followed as far as a strategy finds necessary (:func:`paritylab.running.races.decide` is one)."""
        return self.get(requests.Pursuit(identity.traced(setups), runs, strategy, q))

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
        return self._one(self.curves_each([setup], steps, every, runs, weights, train, stop, loss))

    def curves_each(
        self,
        setups: Sequence[Setup],
        steps: int | Sequence[int],
        every: int | None = None,
        runs: int | Sequence[int] | Sequence[Sequence[int]] = 10,
        weights: bool = False,
        train: bool = False,
        stop: float | None = None,
        loss: str | None = None,
    ) -> list[Curves]:
        """As :func:`paritylab.curves_each`, kept on disk one by one; those of any engine are used.

        ``runs`` are so many, those with these numbers, or for each Setup the numbers of its own.
        """
        points = steps if isinstance(steps, int) else tuple(int(step) for step in steps)
        numbers = range(runs) if isinstance(runs, int) else runs
        own = [tuple(each) for each in numbers if isinstance(each, Sequence)]
        for_all = tuple(int(each) for each in numbers if not isinstance(each, Sequence))
        require(not own or (len(own) == len(setups) and not for_all),
                f"runs of their own are for each of {len(setups)} Setups, not for {len(own)}")
        hows = [Recorded(points, every, each, weights, train, stop, loss) for each in own or [for_all] * len(setups)]
        return self.get(requests.Recordings(list(zip(identity.traced(setups), hows, strict=True))))

    def final_params(self, setup: Setup, runs: int) -> tuple[Records, Any]:
        """The Records of runs and their params at the end, with a leading axis of runs, kept on disk."""
        return self.get(requests.FinalParams(setup.now(), runs))

    def compute(self, function: Computation, **arguments: Any) -> Arrays:
        """Arrays that took long to compute, by a function marked as a ``computation``, kept on disk."""
        return self._one(self.compute_each(function, [arguments]))

    def compute_each(self, function: Computation, arguments: Sequence[Mapping[str, Any]]) -> list[Arrays]:
        """The same for each of these arguments; a crew does several at a time."""
        return self.get(requests.Computations(function, arguments))

    def _one(self, found: list[A]) -> A:
        return cast("A", found) if isinstance(found, Pending) else found[0]

    # --- what can be had ------------------------------------------------------------------------------------------

    def affords(self, setup: Setup, runs: int) -> bool:
        """Whether a network too large for a CPU should be tried: at ``full``, on a GPU, or if the runs are there."""
        from paritylab import engines

        return self.size == "full" or engines.on_gpu() or self.stored(setup, runs) is not None

    def reach(self, chain: Sequence[Setup], runs: int) -> int:
        """How many points of a chain can be had where its networks are too large for a CPU."""
        for i, setup in enumerate(chain):
            found = self.stored(setup, runs)
            if found is not None and chain_ends(found, None):
                return len(chain)  # nothing beyond is asked for
            if found is None and not self.affords(setup, runs):
                return i
        return len(chain)

    def leave_out(self, what: str) -> None:
        """Say what of the published setup is not tried."""
        self.left_out.append(what)

    # --- what requests need ---------------------------------------------------------------------------------------

    @functools.cached_property
    def store(self) -> Store:
        from paritylab.storage.store import Store

        return Store(self.out / "store")

    def stored(self, setup: Setup, runs: int) -> Records | None:
        """The Records of all runs of a Setup by one engine, if the store has them."""
        for engine in self.store.engines(setup.id, self.seed):
            records = self.store.records(setup.id, engine, self.seed)
            if np.isin(np.arange(runs), records.run).all():
                return records
        return None

    def kept(self, task: KeptTask) -> Arrays | None:
        """What is kept of a task, if anything."""
        return keeping.find(task, self.out / "kept", self.engine)

    def keep(self, tasks: Sequence[KeptTask]) -> list[Arrays]:
        """What is kept of each task; what is missing is made first."""
        missing = [task for task in tasks if self.kept(task) is None]
        if missing:
            keeping.keep(missing, self.out / "kept", self.engine, self.threads, self.progress)
        found: list[Arrays] = []
        for task in tasks:
            arrays = self.kept(task)
            assert arrays is not None
            if task not in missing:
                self.recalled += 1
                self.recalled_seconds += float(arrays.get("seconds", 0.0))
            self.sources.append(sources.of_arrays(task, arrays))
            found.append(arrays)
        return found

    def count(self, setup: Setup, engine: str, runs: int, model_steps: int, reused: int = 0) -> None:
        """Add runs to the cost of the trial."""
        self.engines.add(engine)
        self.runs += runs
        self.reused += reused
        self.model_steps += model_steps
        self.flops += model_steps * step_flops(setup)
