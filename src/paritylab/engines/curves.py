"""Training curves: loss, accuracy and weights of chosen runs along the way, whether or not they are solved."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypedDict, Unpack

import numpy as np

from paritylab.callbacks import Callback, heard
from paritylab.engines import loop
from paritylab.engines.checkpoints import Checkpoint
from paritylab.engines.jax_engine import JaxEngine
from paritylab.engines.metrics import Metric, checked, shapes
from paritylab.engines.recorder import Recording, on_jax
from paritylab.engines.registry import AUTO, named
from paritylab.engines.room import require_room_for
from paritylab.engines.work import Job, Queue
from paritylab.errors import InvalidInput, require
from paritylab.later import jax
from paritylab.memory import Part, require_room
from paritylab.notebooks import table
from paritylab.progress import COMPILING, Bar
from paritylab.setups.losses import LossLike
from paritylab.setups.setup import Setup

SERIES = ("accuracy", "loss", "train_accuracy", "train_loss", "task_accuracy", "task_loss", "task_skill",
          "train_task_accuracy")
MOST_BYTES = 4 * 10**9
"""The most memory the weights of all runs and points may take."""
SHOWN = 7
"""So many points are written out in a notebook."""
POINT_BYTES = 64
"""What the number of a point takes."""


@dataclass(frozen=True, repr=False)
class Curves:
    """What each run does after ``steps`` (points,) updates; the other arrays have leading axes (runs, points).

    ``accuracy`` and ``loss`` are those on the run's whole evaluation sample, ``train_accuracy`` and ``train_loss``
    those on its finite training sample with the labels it trains on (None unless asked for), ``weights`` its params
    in the network's own structure (None unless asked for), ``task_accuracy`` and ``task_loss``, (runs, points, tasks),
    those of each task or output (None unless there are several), ``metrics`` what functions of the user's own return,
    by name. ``task_skill``, (runs, points, tasks) with one task where there is one target, says how much of each is
    learned: the covariance of the output with the label's sign over the task's inputs, over the size of labels. It is
    0 for an output that knows nothing of the label and 1 for the label itself. ``train_task_accuracy``, (runs, points,
    outputs), is the accuracy of each output on the training sample (None unless asked for, of several outputs). All
    are NaN from the point on at which a run has a param that is not finite. From the ``checkpoint`` (None unless asked
    for) runs can go on after the last point.
    """

    steps: np.ndarray
    accuracy: np.ndarray
    loss: np.ndarray
    weights: Any = None
    train_accuracy: np.ndarray | None = None
    train_loss: np.ndarray | None = None
    task_accuracy: np.ndarray | None = None
    task_loss: np.ndarray | None = None
    task_skill: np.ndarray | None = None
    train_task_accuracy: np.ndarray | None = None
    metrics: Mapping[str, np.ndarray] | None = None
    checkpoint: Checkpoint | None = None

    def first(self, threshold: float = 1.0) -> np.ndarray:
        """The first recorded step of each run with at least this accuracy; -1 where there is none."""
        return self._first(self.accuracy, threshold)

    def first_train(self, threshold: float = 1.0) -> np.ndarray:
        """The same on the training sample."""
        if self.train_accuracy is None:
            raise InvalidInput("these curves have no training sample; ask with train=True, for a finite sample")
        return self._first(self.train_accuracy, threshold)

    def __repr__(self) -> str:
        runs, points = self.accuracy.shape
        more = [name for name in ("train_accuracy", "weights", "task_accuracy", "checkpoint")
                if getattr(self, name) is not None] + sorted(self.metrics or ())
        also = f", with {', '.join(more)}" if more else ""
        return f"<Curves of {runs} runs at {points} points, {np.sum(self.first() >= 0)} of them reach accuracy 1{also}>"

    def _repr_html_(self) -> str:
        """For notebooks: accuracies and losses at a few points, medians over runs."""
        points = self.accuracy.shape[1]
        some = np.unique(np.linspace(0, points - 1, min(points, SHOWN)).round().astype(int))
        head = ["step", "median accuracy", "lowest", "highest", "median loss"]
        rows = [(int(self.steps[i]), *(float(found(self.accuracy[:, i])) for found in (np.median, np.min, np.max)),
                 float(np.median(self.loss[:, i]))) for i in some]
        return table(head, rows, repr(self)[1:-1])

    def _first(self, accuracy: np.ndarray, threshold: float) -> np.ndarray:
        reached = accuracy >= threshold
        return np.where(reached.any(axis=1), self.steps[reached.argmax(axis=1)], -1)


def curves(
    setup: Setup,
    steps: int | Sequence[int],
    every: int | None = None,
    runs: Sequence[int] | None = None,
    *,
    seed: int | None = None,
    engine: str = "auto",
    threads: int | None = None,
    weights: bool = False,
    train: bool = False,
    progress: bool | None = None,
    stop: float | None = None,
    loss: LossLike | None = None,
    metrics: Mapping[str, Metric] | None = None,
    checkpoint: bool = False,
    start: Checkpoint | None = None,
    callbacks: Sequence[Callback] = (),
) -> Curves:
    """Loss and accuracy of runs at chosen steps; runs go on when solved.

    Args:
        setup: what is trained; of its protocol only ``eval_size`` and ``fresh`` matter.
        steps: the chosen steps, increasing, or the last one.
        every: with one number of steps, the distance of points: 0, ``every``, 2 ``every``, ..., and ``steps`` itself;
            they begin at the step of ``start``, if there is one.
        runs: their numbers; 0 unless said, or those of ``start``.
        seed: their seed; 0 unless said, or that of ``start``.
        engine: ``auto``, ``jax``, ``lanes`` or ``warps``.
        threads: for ``lanes``; all cores unless said.
        weights: whether to keep the params at each point.
        train: whether to look at the training sample too, where it is finite.
        progress: whether to show a progress bar; where someone is watching unless said.
        stop: a run ends at the first point where its loss on the finite sample is below this; its later points repeat
            that one. Implies ``train``.
        loss: the loss to report, if not the one that is trained.
        metrics: functions of your own by name, on ``jax``: ``f(params)``, or ``f(params, x, y)`` with the inputs and
            labels of the run's evaluation sample, returns an array that is recorded at each point.
        checkpoint: whether to keep, on ``jax``, all that runs need to go on after the last point.
        start: a checkpoint to go on from, in place of the start; what this Setup says holds from there on.
        callbacks: those who are told of the points, such as ``[pl.callbacks.TensorBoard("logs")]``.

    >>> from paritylab.setups.problems import Parity
    >>> curves(Setup(Parity(n=8, k=2)), steps=20, every=10).steps
    array([ 0, 10, 20])
    >>> curves(Setup(Parity(n=8, k=2)), steps=[1, 3, 10], runs=range(4)).accuracy.shape
    (4, 3)
    >>> curves(Setup(Parity(n=8, k=2)), steps=300, every=300, engine="jax").task_skill.shape
    (1, 2, 1)
    >>> size = {"size": lambda params: abs(params[0]["w"]).max()}
    >>> curves(Setup(Parity(n=8, k=2)), steps=[1, 3, 10], metrics=size).metrics["size"].shape
    (1, 3)
    """
    with heard(callbacks, [setup], how_many(runs, start)) as listeners:
        (found,) = curves_each(
            [setup], steps, every, runs, seed=seed, engine=engine, threads=threads, weights=weights, train=train,
            progress=progress, stop=stop, loss=loss, metrics=metrics, checkpoint=checkpoint, start=start,
        )
        listeners.tell_curves(setup, found)
    return found


def how_many(runs: Sequence[int] | None, start: Checkpoint | None) -> int:
    """Runs are recorded."""
    return len(runs) if runs is not None else 1 if start is None else len(start.runs)


class Options(TypedDict, total=False):
    """The options of :func:`curves`, as they are passed on."""

    seed: int | None
    engine: str
    threads: int | None
    weights: bool
    train: bool
    progress: bool | None
    stop: float | None
    loss: LossLike | None
    metrics: Mapping[str, Metric] | None
    checkpoint: bool
    start: Checkpoint | None


class ToldOptions(Options, total=False):
    """The same with those who are told."""

    callbacks: Sequence[Callback]


def curves_each(
    setups: Sequence[Setup],
    steps: int | Sequence[int],
    every: int | None = None,
    runs: Sequence[int] | None = None,
    **options: Unpack[Options],
) -> list[Curves]:
    """The :func:`curves` of several Setups; on ``jax`` those that differ in start, rate or target train together."""
    engine, threads, start = options.get("engine", AUTO), options.get("threads"), options.get("start")
    weights, train, stop = options.get("weights", False), options.get("train", False), options.get("stop")
    runs, seed = _whose(setups, runs, options.get("seed"), start)
    points = _points(steps, every, 0 if start is None else start.step)
    require(len(runs) > 0, "curves need at least one run")
    require(stop is None or all(setup.problem.sample is not None for setup in setups),
            "stop is about the loss on a finite sample, which this problem has not")
    require(stop is None or not options.get("checkpoint"), "runs with stop end at different steps: no checkpoint")
    last = max(1, int(points[-1]))
    series = 2 if train or stop is not None else 1
    require_room("this recording", {"points over all runs": Part(len(setups) * len(runs) * len(points), 16 * series)})
    recording = Recording(points, weights, train or stop is not None, stop, options.get("loss"),
                          checked(options.get("metrics")), options.get("checkpoint", False), start)
    given, setups = setups, [recording.prepared(setup.now(), last) for setup in setups]
    for setup in setups:
        setup.check()
        if start is not None:
            start.check(setup)
        if weights or recording.metrics:
            _check_memory(recording, setup, len(runs))
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
            bar.wait(COMPILING)
            made = on_jax(program, jobs, recording, lambda steps, done=done: bar.show(done + steps))
            found |= {i: _made(points, given[i], fields) for i, fields in zip(members, made, strict=True)}
    return [found[i] for i in range(len(setups))]


def _whose(
    setups: Sequence[Setup], runs: Sequence[int] | None, seed: int | None, start: Checkpoint | None
) -> tuple[Sequence[int], int]:
    """The runs to record and their seed: those of a checkpoint, or runs 0 and seed 0, unless said."""
    if start is None:
        return (0,) if runs is None else runs, 0 if seed is None else seed
    require(len(setups) == 1, "a checkpoint goes on with one Setup")
    require(seed in (None, start.seed), f"the checkpoint has seed {start.seed}, not {seed}")
    start.places(runs)
    return start.runs if runs is None else runs, start.seed


def _made(points: np.ndarray, setup: Setup, fields: dict[str, Any]) -> Curves:
    if "checkpoint" in fields:
        fields["checkpoint"] = replace(fields["checkpoint"], setup=setup.to_json())
    return Curves(points, **fields)


def stepping(setup: Setup) -> Setup:
    """What of a Setup matters after the start: those that agree can share one compiled program."""
    return setup.program.derived(learner=replace(setup.program.learner, init="torch"))


def _points(steps: int | Sequence[int], every: int | None, first: int = 0) -> np.ndarray:
    if isinstance(steps, (int, np.integer)):
        if every is None or every < 1:
            raise InvalidInput(f"one number of steps needs every, at least 1, not {every}")
        require(steps >= first, f"steps must be at least {first}, not {steps}")
        require_room("this recording", {"points": Part(steps // every + 2, POINT_BYTES)})
        return np.append(np.arange(first, steps, every), steps).astype(np.int64)
    require(every is None, "every is for one number of steps, not for chosen ones")
    points = np.asarray(steps)
    whole = points.ndim == 1 and len(points) > 0 and np.issubdtype(points.dtype, np.integer)
    require(whole and points[0] >= first and bool(np.all(np.diff(points) > 0)),
            f"steps must be one number, or increasing whole numbers of at least {first}")
    return points.astype(np.int64)


def _check_memory(recording: Recording, setup: Setup, runs: int) -> None:
    weights = jax.eval_shape(setup.params, jax.random.key(0)) if recording.weights else None
    leaves = jax.tree.leaves((weights, shapes(recording.metrics, setup)))
    size, points = max(1, sum(leaf.size * leaf.dtype.itemsize for leaf in leaves)), len(recording.points)
    needed = size * runs * points
    what = " and ".join(["weights"] * recording.weights + ["metrics"] * bool(recording.metrics))
    require(needed <= MOST_BYTES,
            f"the {what} of {runs} runs at {points} points take {needed / 1e9:.1f} GB; "
            f"allowed: {MOST_BYTES / 1e9:.0f} GB, so {MOST_BYTES // size} points over all runs")
    require_room("this recording", {"points over all runs": Part(runs * points, size)})


def _traced(
    job: Job, recording: Recording, engine: str, threads: int | None, show: Callable[[int], None]
) -> Curves:
    """By an engine that records curves by itself."""
    queue, found = Queue([job]), named(engine)
    require_room_for(found, job.setup.program, len(queue), threads)
    pool = found.tracer(queue, recording.points, recording.trains(job.setup), recording.weights, threads,
                        recording.stop)
    assert pool is not None, "choose() offers it only for engines that record curves"
    for _ in loop.train(queue, pool):
        show(pool.model_steps)
    series, params = pool.take_trace()
    made = _made(recording.points, job.setup, {**series, "weights": params})
    return made if recording.stop is None else _held(made, recording.stop)


def _held(made: Curves, stop: float) -> Curves:
    """Curves that stay as they are from the first point on with a training loss below ``stop``."""
    assert made.train_loss is not None
    below = made.train_loss < stop
    points = np.arange(below.shape[1])
    at = np.minimum(points, np.where(below.any(axis=1), below.argmax(axis=1), points[-1])[:, None])
    rows = np.arange(len(at))[:, None]
    series = {name: values[rows, at] for name in SERIES if (values := getattr(made, name)) is not None}
    return replace(made, **series, weights=jax.tree.map(lambda leaf: leaf[rows, at], made.weights))
