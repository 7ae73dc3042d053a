"""What curves record of runs, and how the JAX engine records it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from paritylab.engines import choose, metrics
from paritylab.engines.checkpoints import Checkpoint, of_states
from paritylab.engines.evaluation import Evaluation, Parts, task_sizes
from paritylab.engines.gradient import MOST_ORDERED, MOST_UPDATES
from paritylab.engines.jax_engine import JaxEngine, accurate_products, all_finite, default_slots
from paritylab.engines.registry import AUTO, named
from paritylab.engines.room import require_room_for
from paritylab.engines.slots import ACTIVE, Slots, entering, make_moves
from paritylab.engines.work import Job, Queue
from paritylab.errors import require
from paritylab.later import jax, jnp
from paritylab.setups.losses import LossLike
from paritylab.setups.setup import Setup
from paritylab.storage.records import CENSORED


@dataclass(frozen=True)
class Recording:
    """What is recorded of runs, and where."""

    points: np.ndarray
    weights: bool
    train: bool
    stop: float | None
    loss: LossLike | None
    metrics: Mapping[str, metrics.Metric] = field(default_factory=dict)
    checkpoint: bool = False
    start: Checkpoint | None = None

    @property
    def first(self) -> int:
        """The step from which runs go on."""
        return 0 if self.start is None else self.start.step

    def prepared(self, setup: Setup, last: int) -> Setup:
        """A Setup whose protocol goes to the last point, in as large blocks of updates as can be had."""
        blocks = MOST_UPDATES if setup.problem.sample is None else MOST_ORDERED
        return setup.derived(protocol=replace(setup.protocol, max_steps=last, eval_every=blocks))

    def engine(self, setup: Setup, asked: str) -> str:
        """The engine for a Setup; what only ``jax`` records, others refuse."""
        refused = {
            "reports the loss that is trained": self.reported(setup) != setup,
            "has no metrics of one's own": bool(self.metrics),
            "has no checkpoints": self.checkpoint or self.start is not None,
        }
        if not any(refused.values()):
            return choose(setup, asked, curves=True)
        why = next(words for words, is_so in refused.items() if is_so)
        require(asked in (AUTO, JaxEngine.name), f"engine {asked!r} {why}; use 'jax' or 'auto'")
        return JaxEngine.name

    def reported(self, setup: Setup) -> Setup:
        """The Setup with the loss that is reported."""
        return setup if self.loss is None else replace(setup, learner=replace(setup.learner, loss=self.loss)).now()

    def trains(self, setup: Setup) -> bool:
        return self.train and setup.problem.sample is not None


class Stepper(NamedTuple):
    fresh: Any
    step: Any


@functools.lru_cache(maxsize=8)
def _stepper(program: Setup, reported: Setup, slots: int, train: bool, stop: float | None) -> Stepper:
    """Compiled ``fresh(rows)`` and ``step(slots, updates)``; the latter also says how the slots do afterwards."""
    moves, evaluation = make_moves(program), Evaluation(program, slots, reported.learner.loss)

    def step(state: Slots, updates: Any) -> Any:
        state = moves.by(state, updates)
        whole, parts = evaluation.report(state)
        totals = {"": whole} | ({"train_": evaluation.train_totals(state)} if train else {})
        if stop is not None:
            below = totals["train_"][1] < stop * program.problem.examples
            state = state._replace(status=jnp.where(below, CENSORED, state.status))
        return state, jax.vmap(all_finite)(state.params), totals, parts

    return Stepper(jax.jit(moves.fresh), jax.jit(step, donate_argnums=0))


def on_jax(
    program: Setup, jobs: list[Job], recording: Recording, show: Callable[[int], None]
) -> list[dict[str, Any]]:
    """The fields of each job's Curves. One call for each point, so that one program serves any spacing."""
    runs, points = sum(len(job.runs) for job in jobs), recording.points
    require_room_for(named(JaxEngine.name), program, runs)
    slots = min(runs, default_slots(program, runs))
    train = recording.trains(program)
    fresh, step = _stepper(program, recording.reported(program), slots, train, recording.stop)
    measure = metrics.measuring(recording.metrics, program, slots)
    kept = _Kept(program, jobs, recording)
    updates = np.diff(points, prepend=recording.first)
    for first in range(0, runs, slots):
        count = min(slots, runs - first)
        state = _begun(fresh, jobs, np.resize(np.arange(first, first + count), slots), recording)
        for i in range(len(points)):
            with accurate_products():
                state, finite, totals, parts = step(state, jnp.int32(updates[i]))
                measured = measure(state)
            (good,) = np.nonzero(np.asarray(finite)[:count])
            kept.write(first, good, i, totals, parts, (state.params, measured))
            show(first * int(points[-1] - recording.first) + count * int(points[i] - recording.first))
            if not np.any(np.asarray(state.status) == ACTIVE):
                kept.repeat(slice(first, first + count), i)
                break
        kept.end(state, count)
    return kept.fields()


def _begun(fresh: Any, jobs: list[Job], rows: np.ndarray, recording: Recording) -> Slots:
    """Slots with the runs at these positions over all jobs, at their start or as a checkpoint has them."""
    state = fresh(_entering(jobs, rows))
    if recording.start is None:
        return state
    return recording.start.enter(state, jobs[0].setup, recording.start.places(jobs[0].runs[rows].tolist()))


def _entering(jobs: list[Job], rows: np.ndarray) -> Slots:
    """The runs at these positions over all jobs, with their start params, as slots."""
    each = len(jobs[0].runs)
    parts = []
    for i in np.unique(rows // each):
        chosen = replace(jobs[i], runs=jobs[i].runs[rows[rows // each == i] % each])
        parts.append(entering(chosen.setup.program, Queue([chosen]).take(len(chosen.runs)), len(chosen.runs)))
    return jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *parts)


class _Kept:
    """What is recorded, in the making: arrays with leading axes (runs of all jobs, points)."""

    def __init__(self, program: Setup, jobs: list[Job], recording: Recording) -> None:
        self._jobs, self._recording = jobs, recording
        self._shape = sum(len(job.runs) for job in jobs), len(recording.points)
        self._sizes = {"": program.protocol.eval_size}
        if recording.trains(program):
            self._sizes["train_"] = program.problem.examples
        self._series: dict[str, np.ndarray] = {}
        self._tasks, self._scale = program.problem.tasks, abs(program.problem.scale)
        setup = jobs[0].setup
        weights = jax.eval_shape(setup.params, jax.random.key(0)) if recording.weights else None
        measured = metrics.shapes(recording.metrics, setup)
        self._trees = jax.tree.map(lambda leaf: self._blank(*leaf.shape, dtype=leaf.dtype), (weights, measured))
        self._states: list[Slots] = []

    def _blank(self, *shape: int, dtype: Any = np.float64) -> np.ndarray:
        return np.full((*self._shape, *shape), np.nan, dtype)

    def write(self, first: int, good: np.ndarray, point: int, totals: Any, parts: Parts, trees: Any) -> None:
        """What the slots ``good`` do at a point; slot 0 has the run ``first``."""
        rows = first + good
        for name, values in self._told(totals, parts).items():
            if name not in self._series:
                self._series[name] = self._blank(*values.shape[1:])
            self._series[name][rows, point] = values[good]
        for kept, made in zip(self._trees, trees, strict=True):
            for target, leaf in zip(jax.tree.leaves(kept), jax.tree.leaves(made), strict=False):  # none if not kept
                target[rows, point] = np.asarray(leaf)[good]

    def _told(self, totals: Any, parts: Parts) -> dict[str, np.ndarray]:
        """The series of all slots at a point."""
        found: dict[str, np.ndarray] = {}
        for prefix, size in self._sizes.items():
            errors, losses = (np.asarray(part, np.float64) for part in totals[prefix][:2])
            if self._tasks and not prefix:
                errors, losses = errors.sum(axis=1), losses.sum(axis=1)
            found |= {f"{prefix}accuracy": (size - errors) / size, f"{prefix}loss": losses / size}
        sizes = np.array(task_sizes(self._sizes[""], self._tasks) or [self._sizes[""]])
        if self._tasks or parts.errors.shape[1] > 1:
            found["task_accuracy"] = (sizes - np.asarray(parts.errors, np.float64)) / sizes
            if parts.losses is not None:
                found["task_loss"] = np.asarray(parts.losses, np.float64) / sizes
        if "train_" in totals and (apart := totals["train_"][2]) is not None:
            size = self._sizes["train_"]
            found["train_task_accuracy"] = (size - np.asarray(apart, np.float64)) / size
        f, signs, products = (np.asarray(part, np.float64) / sizes for part in parts[2:])
        return found | {"task_skill": (products - f * signs) / self._scale}

    def repeat(self, rows: slice, point: int) -> None:
        """Fill the points after the one at which all these runs had ended."""
        for values in jax.tree.leaves((self._series, self._trees)):
            values[rows, point + 1 :] = values[rows, point : point + 1]

    def end(self, state: Slots, count: int) -> None:
        """Remember the first ``count`` slots as they are in the end."""
        if self._recording.checkpoint:
            self._states.append(jax.tree.map(lambda leaf: np.asarray(leaf[:count]), state))

    def fields(self) -> list[dict[str, Any]]:
        """The fields of each job's Curves."""
        weights, measured = self._trees
        whole = {**self._series, "weights": weights} | ({"metrics": measured} if measured else {})
        each = len(self._jobs[0].runs)
        made = [jax.tree.map(lambda leaf, i=i: leaf[i * each : (i + 1) * each], whole) for i in range(len(self._jobs))]
        if self._states:
            (job,) = self._jobs
            made[0]["checkpoint"] = of_states(
                self._states, int(self._recording.points[-1]), job.seed, job.runs.tolist(), job.setup)
        return made
