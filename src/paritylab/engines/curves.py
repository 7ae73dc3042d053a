"""Training curves: loss, accuracy and weights of chosen runs along the way, whether or not they are solved."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypedDict, Unpack

import jax
import jax.numpy as jnp
import numpy as np

from paritylab.engines import choose, loop
from paritylab.engines.evaluation import Evaluation, task_sizes
from paritylab.engines.gradient import MOST_ORDERED, MOST_UPDATES
from paritylab.engines.jax_engine import JaxEngine, accurate_products, all_finite, default_slots
from paritylab.engines.registry import AUTO, named
from paritylab.engines.room import require_room_for
from paritylab.engines.slots import ACTIVE, Slots, entering, make_moves
from paritylab.engines.work import Job, Queue
from paritylab.errors import InvalidInput, require
from paritylab.functions.fingerprints import moment
from paritylab.functions.tracing import current, traced_apart
from paritylab.memory import Part, require_room
from paritylab.progress import Bar
from paritylab.setups.losses import LossLike
from paritylab.setups.setup import Setup
from paritylab.storage.records import CENSORED

SERIES = ("accuracy", "loss", "train_accuracy", "train_loss", "task_accuracy", "task_loss")
MOST_BYTES = 4 * 10**9
"""The most memory the weights of all runs and points may take."""
POINT_BYTES = 64
"""What the number of a point takes."""


@dataclass(frozen=True)
class Curves:
    """What each run does after ``steps`` (points,) updates; the other arrays have leading axes (runs, points).

    ``accuracy`` and ``loss`` are those on the run's whole evaluation sample, ``train_accuracy`` and ``train_loss``
    those on its finite training sample with the labels it trains on (None unless asked for), ``weights`` its params
    in the network's own structure (None unless asked for), ``task_accuracy`` and ``task_loss``, (runs, points, tasks),
    those of each task (None unless there are several). All are NaN from the point on at which a run has a param that
    is not finite.
    """

    steps: np.ndarray
    accuracy: np.ndarray
    loss: np.ndarray
    weights: Any = None
    train_accuracy: np.ndarray | None = None
    train_loss: np.ndarray | None = None
    task_accuracy: np.ndarray | None = None
    task_loss: np.ndarray | None = None

    def first(self, threshold: float = 1.0) -> np.ndarray:
        """The first recorded step of each run with at least this accuracy; -1 where there is none."""
        return self._first(self.accuracy, threshold)

    def first_train(self, threshold: float = 1.0) -> np.ndarray:
        """The same on the training sample."""
        if self.train_accuracy is None:
            raise InvalidInput("these curves have no training sample; ask with train=True, for a finite sample")
        return self._first(self.train_accuracy, threshold)

    def _first(self, accuracy: np.ndarray, threshold: float) -> np.ndarray:
        reached = accuracy >= threshold
        return np.where(reached.any(axis=1), self.steps[reached.argmax(axis=1)], -1)


def curves(
    setup: Setup,
    steps: int | Sequence[int],
    every: int | None = None,
    runs: Sequence[int] = (0,),
    *,
    seed: int = 0,
    engine: str = "auto",
    threads: int | None = None,
    weights: bool = False,
    train: bool = False,
    progress: bool | None = None,
    stop: float | None = None,
    loss: LossLike | None = None,
) -> Curves:
    """Loss and accuracy of runs at chosen steps; runs go on when solved.

    Args:
        setup: what is trained; of its protocol only ``eval_size`` and ``fresh`` matter.
        steps: the chosen steps, increasing, or the last one.
        every: with one number of steps, the distance of points: 0, ``every``, 2 ``every``, ..., and ``steps`` itself.
        runs: their numbers.
        seed: their seed.
        engine: ``lanes``, ``jax`` or ``auto``.
        threads: for ``lanes``; all cores unless said.
        weights: whether to keep the params at each point.
        train: whether to look at the training sample too, where it is finite.
        progress: whether to show a progress bar; where someone is watching unless said.
        stop: a run ends at the first point where its loss on the finite sample is below this; its later points repeat
            that one. Implies ``train``.
        loss: the loss to report, if not the one that is trained.

    >>> from paritylab.setups.problems import Parity
    >>> curves(Setup(Parity(n=8, k=2)), steps=20, every=10).steps
    array([ 0, 10, 20])
    >>> curves(Setup(Parity(n=8, k=2)), steps=[1, 3, 10], runs=range(4)).accuracy.shape
    (4, 3)
    """
    return curves_each(
        [setup], steps, every, runs, seed=seed, engine=engine, threads=threads, weights=weights, train=train,
        progress=progress, stop=stop, loss=loss,
    )[0]


class Options(TypedDict, total=False):
    """The options of :func:`curves`, as they are passed on."""

    seed: int
    engine: str
    threads: int | None
    weights: bool
    train: bool
    progress: bool | None
    stop: float | None
    loss: LossLike | None


@moment()
def curves_each(
    setups: Sequence[Setup],
    steps: int | Sequence[int],
    every: int | None = None,
    runs: Sequence[int] = (0,),
    **options: Unpack[Options],
) -> list[Curves]:
    """The :func:`curves` of several Setups; on ``jax`` those that differ in start, rate or target train together."""
    seed, engine, threads = options.get("seed", 0), options.get("engine", AUTO), options.get("threads")
    weights, train, stop = options.get("weights", False), options.get("train", False), options.get("stop")
    points = _points(steps, every)
    require(len(runs) > 0, "curves need at least one run")
    require(stop is None or all(setup.problem.sample is not None for setup in setups),
            "stop is about the loss on a finite sample, which this problem has not")
    last = max(1, int(points[-1]))
    series = 2 if train or stop is not None else 1
    require_room("this recording", {"points over all runs": Part(len(setups) * len(runs) * len(points), 16 * series)})
    recording = Recording(points, weights, train or stop is not None, stop, options.get("loss"))
    setups = [recording.prepared(setup.now(), last) for setup in setups]
    for setup in setups:
        setup.check()
        if weights:
            leaves = jax.tree.leaves(_shapes(setup))
            _check_memory(sum(leaf.size * leaf.dtype.itemsize for leaf in leaves), len(runs), len(points))
    found: dict[int, Curves] = {}
    together: dict[Setup, list[int]] = {}
    with Bar("model-steps", len(setups) * len(runs) * last, options.get("progress")) as bar:
        for i, setup in enumerate(setups):
            chosen = recording.engine(setup, engine)
            if chosen != JaxEngine.name:
                job = Job(setup, seed, np.asarray(runs))
                done = len(found) * len(runs) * last
                found[i] = _traced(job, recording, chosen, threads, lambda steps, done=done: bar.show(done + steps))
            else:
                together.setdefault(stepping(setup), []).append(i)
        for program, members in together.items():
            jobs = [Job(setups[i], seed, np.asarray(runs)) for i in members]
            done = len(found) * len(runs) * last
            made = _on_jax(program, jobs, recording, lambda steps, done=done: bar.show(done + steps))
            found |= dict(zip(members, made, strict=True))
    return [found[i] for i in range(len(setups))]


@dataclass(frozen=True)
class Recording:
    """What is recorded of runs, and where."""

    points: np.ndarray
    weights: bool
    train: bool
    stop: float | None
    loss: LossLike | None

    def prepared(self, setup: Setup, last: int) -> Setup:
        """A Setup whose protocol goes to the last point, in as large blocks of updates as can be had."""
        blocks = MOST_UPDATES if setup.problem.sample is None else MOST_ORDERED
        return replace(setup, protocol=replace(setup.protocol, max_steps=last, eval_every=blocks))

    def engine(self, setup: Setup, asked: str) -> str:
        """The engine for a Setup; only ``jax`` reports another loss than the one that is trained."""
        if self.reported(setup) == setup:
            return choose(setup, asked, curves=True)
        require(asked in (AUTO, JaxEngine.name),
                f"engine {asked!r} reports the loss that is trained; use 'jax' or 'auto'")
        return JaxEngine.name

    def reported(self, setup: Setup) -> Setup:
        """The Setup with the loss that is reported."""
        return setup if self.loss is None else replace(setup, learner=replace(setup.learner, loss=self.loss))

    def trains(self, setup: Setup) -> bool:
        return self.train and setup.problem.sample is not None


def _shapes(setup: Setup) -> Any:
    return jax.eval_shape(setup.params, jax.random.key(0))


def stepping(setup: Setup) -> Setup:
    """What of a Setup matters after the start: those that agree can share one compiled program."""
    return replace(setup.program, learner=replace(setup.program.learner, init="torch"))


def _points(steps: int | Sequence[int], every: int | None) -> np.ndarray:
    if isinstance(steps, (int, np.integer)):
        if every is None or every < 1:
            raise InvalidInput(f"one number of steps needs every, at least 1, not {every}")
        require(steps >= 0, f"steps must be at least 0, not {steps}")
        require_room("this recording", {"points": Part(steps // every + 2, POINT_BYTES)})
        return np.append(np.arange(0, steps, every), steps).astype(np.int64)
    require(every is None, "every is for one number of steps, not for chosen ones")
    points = np.asarray(steps)
    whole = points.ndim == 1 and len(points) > 0 and np.issubdtype(points.dtype, np.integer)
    require(whole and points[0] >= 0 and bool(np.all(np.diff(points) > 0)),
            "steps must be one number, or increasing whole numbers of at least 0")
    return points.astype(np.int64)


def _check_memory(size: int, runs: int, points: int) -> None:
    needed = size * runs * points
    require(needed <= MOST_BYTES,
            f"the weights of {runs} runs at {points} points take {needed / 1e9:.1f} GB; "
            f"allowed: {MOST_BYTES / 1e9:.0f} GB, so {MOST_BYTES // size} points over all runs")
    require_room("this recording", {"points over all runs": Part(runs * points, size)})


def _traced(
    job: Job, recording: Recording, engine: str, threads: int | None, show: Callable[[int], None]
) -> Curves:
    """By an engine that records curves by itself."""
    queue, found = Queue([job]), named(engine)
    require_room_for(found, job.setup.program, len(queue), threads)
    pool = found.tracer(queue, recording.points, recording.trains(job.setup), recording.weights, threads)
    assert pool is not None, "choose() offers it only for engines that record curves"
    for _ in loop.train(queue, pool):
        show(pool.model_steps)
    series, params = pool.take_trace()
    made = Curves(recording.points, **series, weights=params)
    return made if recording.stop is None else _held(made, recording.stop)


def _held(made: Curves, stop: float) -> Curves:
    """Curves that stay as they are from the first point on with a training loss below ``stop``."""
    assert made.train_loss is not None
    below = made.train_loss < stop
    points = np.arange(below.shape[1])
    at = np.minimum(points, np.where(below.any(axis=1), below.argmax(axis=1), points[-1])[:, None])
    rows = np.arange(len(at))[:, None]
    series = {name: values[rows, at] for name in SERIES if (values := getattr(made, name)) is not None}
    return Curves(made.steps, **series, weights=jax.tree.map(lambda leaf: leaf[rows, at], made.weights))


class Stepper(NamedTuple):
    setups: tuple[Setup, Setup]
    fresh: Any
    step: Any


@functools.lru_cache(maxsize=8)
def _stepper(program: Setup, reported: Setup, slots: int, train: bool, stop: float | None) -> Stepper:
    """Compiled ``fresh(rows)`` and ``step(slots, updates)``; the latter also says how the slots do afterwards."""
    moves, evaluation = make_moves(program), Evaluation(program, slots, reported.learner.loss)

    def step(state: Slots, updates: Any) -> Any:
        state = moves.by(state, updates)
        totals = {"": evaluation.totals(state)} | ({"train_": evaluation.train_totals(state)} if train else {})
        if stop is not None:
            below = totals["train_"][1] < stop * program.problem.examples
            state = state._replace(status=jnp.where(below, CENSORED, state.status))
        return state, jax.vmap(all_finite)(state.params), totals

    setups = program, reported
    return Stepper(setups, traced_apart(jax.jit(moves.fresh), *setups),
                   traced_apart(jax.jit(step, donate_argnums=0), *setups))


def _on_jax(program: Setup, jobs: list[Job], recording: Recording, show: Callable[[int], None]) -> list[Curves]:
    """One call for each point, so that one program serves any spacing."""
    each, points = len(jobs[0].runs), recording.points
    runs = each * len(jobs)
    require_room_for(named(JaxEngine.name), program, runs)
    slots = min(runs, default_slots(program, runs))
    train = recording.trains(program)
    _, fresh, step = current(_stepper, [program, recording.reported(program)], slots, train, recording.stop)
    sizes = {"": program.protocol.eval_size} | ({"train_": program.problem.examples} if train else {})
    series = {prefix + name: np.full((runs, len(points)), np.nan)
              for prefix in sizes for name in ("accuracy", "loss")}
    tasks = np.array(task_sizes(sizes[""], program.problem.tasks))
    if len(tasks):
        series |= {name: np.full((runs, len(points), len(tasks)), np.nan) for name in ("task_accuracy", "task_loss")}
    shapes = _shapes(jobs[0].setup) if recording.weights else None
    params = jax.tree.map(lambda leaf: np.full((runs, len(points), *leaf.shape), np.nan, leaf.dtype), shapes)
    updates = np.diff(points, prepend=0)
    for first in range(0, runs, slots):
        count = min(slots, runs - first)
        state = fresh(_entering(jobs, np.resize(np.arange(first, first + count), slots)))
        for i in range(len(points)):
            with accurate_products():
                state, finite, totals = step(state, jnp.int32(updates[i]))
            (good,) = np.nonzero(np.asarray(finite)[:count])
            for prefix, size in sizes.items():
                errors, losses = (np.asarray(part, np.float64)[good] for part in totals[prefix])
                if len(tasks) and not prefix:
                    series["task_accuracy"][first + good, i] = (tasks - errors) / tasks
                    series["task_loss"][first + good, i] = losses / tasks
                    errors, losses = errors.sum(axis=1), losses.sum(axis=1)
                series[prefix + "accuracy"][first + good, i] = (size - errors) / size
                series[prefix + "loss"][first + good, i] = losses / size
            if shapes is not None:
                _write(params, state.params, first + good, good, i)
            show(first * int(points[-1]) + count * int(points[i]))
            if not np.any(np.asarray(state.status) == ACTIVE):
                _repeat(series, params, slice(first, first + count), i)
                break
    parts = [slice(i * each, (i + 1) * each) for i in range(len(jobs))]
    return [Curves(points, **{name: values[part] for name, values in series.items()},
                   weights=jax.tree.map(lambda leaf, part=part: leaf[part], params)) for part in parts]


def _entering(jobs: list[Job], rows: np.ndarray) -> Slots:
    """The runs at these positions over all jobs, with their start params, as slots."""
    each = len(jobs[0].runs)
    parts = []
    for i in np.unique(rows // each):
        chosen = replace(jobs[i], runs=jobs[i].runs[rows[rows // each == i] % each])
        parts.append(entering(chosen.setup.program, Queue([chosen]).take(len(chosen.runs)), len(chosen.runs)))
    return jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *parts)


def _repeat(series: dict[str, np.ndarray], params: Any, rows: slice, point: int) -> None:
    """Fill the points after the one at which all these runs had ended."""
    for values in [*series.values(), *jax.tree.leaves(params)]:
        values[rows, point + 1 :] = values[rows, point : point + 1]


def _write(kept: Any, params: Any, rows: np.ndarray, slots: np.ndarray, point: int) -> None:
    for target, leaf in zip(jax.tree.leaves(kept), jax.tree.leaves(params), strict=True):
        target[rows, point] = np.asarray(leaf)[slots]
