"""Training curves: loss, accuracy and weights of chosen runs along the way, whether or not they are solved."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from paritylab.engines import choose, loop
from paritylab.engines.evaluation import Evaluation
from paritylab.engines.gradient import MOST_UPDATES
from paritylab.engines.jax_engine import accurate_products, all_finite, default_slots
from paritylab.engines.lanes import LanesPool
from paritylab.engines.slots import Slots, entering, make_moves
from paritylab.engines.work import Job, Queue
from paritylab.errors import InvalidInput, require
from paritylab.progress import Bar
from paritylab.setup import Setup

MOST_BYTES = 4 * 10**9
"""The most memory the weights of all runs and points may take."""


@dataclass(frozen=True)
class Curves:
    """What each run does after ``steps`` (points,) updates; the other arrays have leading axes (runs, points).

    ``accuracy`` and ``loss`` are those on the run's whole evaluation sample, ``train_accuracy`` and ``train_loss``
    those on its finite training sample with the labels it trains on (None unless asked for), ``weights`` its params
    in the network's own structure (None unless asked for). All are NaN from the point on at which a run has a param
    that is not finite.
    """

    steps: np.ndarray
    accuracy: np.ndarray
    loss: np.ndarray
    weights: Any = None
    train_accuracy: np.ndarray | None = None
    train_loss: np.ndarray | None = None

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
    seed: int = 0,
    engine: str = "auto",
    threads: int | None = None,
    weights: bool = False,
    train: bool = False,
    progress: bool | None = None,
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

    >>> from paritylab.problems import Parity
    >>> curves(Setup(Parity(n=8, k=2)), steps=20, every=10).steps
    array([ 0, 10, 20])
    >>> curves(Setup(Parity(n=8, k=2)), steps=[1, 3, 10], runs=range(4)).accuracy.shape
    (4, 3)
    """
    points = _points(steps, every)
    require(len(runs) > 0, "curves need at least one run")
    last = max(1, int(points[-1]))
    setup = replace(setup, protocol=replace(setup.protocol, max_steps=last, eval_every=MOST_UPDATES))
    setup.check()
    shapes = jax.eval_shape(setup.params, jax.random.key(0))
    if weights:
        _check_memory(sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(shapes)), len(runs), len(points))
    train = train and setup.problem.sample is not None
    queue = Queue([Job(setup, seed, np.asarray(runs))])
    with Bar("model-steps", len(runs) * last, progress) as bar:
        if choose(setup, engine) == "lanes":
            series, params = _on_lanes(setup, queue, points, threads, weights, train, bar.show)
        else:
            series, params = _on_jax(setup, queue, points, shapes if weights else None, train, bar.show)
    return Curves(points, **series, weights=params)


def _points(steps: int | Sequence[int], every: int | None) -> np.ndarray:
    if isinstance(steps, (int, np.integer)):
        require(every is not None and every >= 1, f"one number of steps needs every, at least 1, not {every}")
        require(steps >= 0, f"steps must be at least 0, not {steps}")
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


Result = tuple[dict[str, np.ndarray], Any]


def _on_lanes(setup: Setup, queue: Queue, points: np.ndarray, threads: int | None, weights: bool, train: bool,
              show: Callable[[int], None]) -> Result:
    trace = (points.tolist(), len(queue), train)
    pool = LanesPool(
        setup.program, setup.protocol.max_steps, threads or os.cpu_count() or 1, keep_params=weights, trace=trace
    )
    for _ in loop.train(queue, pool):
        show(pool.model_steps)
    return pool.take_trace()


@functools.lru_cache(maxsize=8)
def _stepper(program: Setup, slots: int, train: bool) -> Any:
    """Compiled ``fresh(rows)`` and ``step(slots, updates)``; the latter also says how the slots do afterwards."""
    moves, evaluation = make_moves(program), Evaluation(program, slots)

    def step(state: Slots, updates: Any) -> Any:
        state = moves.by(state, updates)
        totals = {"": evaluation.totals(state)} | ({"train_": evaluation.train_totals(state)} if train else {})
        return state, jax.vmap(all_finite)(state.params), totals

    return jax.jit(moves.fresh), jax.jit(step, donate_argnums=0)


def _on_jax(setup: Setup, queue: Queue, points: np.ndarray, shapes: Any, train: bool,
            show: Callable[[int], None]) -> Result:
    """One call for each point, so that one program serves any spacing; ``shapes`` of the params, if wanted."""
    program, runs = setup.program, len(queue)
    slots = min(runs, default_slots(program, runs))
    fresh, step = _stepper(program, slots, train)
    sizes = {"": setup.protocol.eval_size} | ({"train_": setup.problem.sample} if train else {})
    axes = runs, len(points)
    series = {prefix + name: np.full(axes, np.nan) for prefix in sizes for name in ("accuracy", "loss")}
    params = jax.tree.map(lambda leaf: np.full((*axes, *leaf.shape), np.nan, leaf.dtype), shapes)
    updates = np.diff(points, prepend=0)
    for first in range(0, runs, slots):
        state = fresh(entering(program, queue.take(slots), slots))
        for i in range(len(points)):
            with accurate_products():
                state, finite, totals = step(state, jnp.int32(updates[i]))
            (good,) = np.nonzero(np.asarray(finite)[: runs - first])
            for prefix, size in sizes.items():
                errors, losses = (np.asarray(part, np.float64)[good] for part in totals[prefix])
                series[prefix + "accuracy"][first + good, i] = (size - errors) / size
                series[prefix + "loss"][first + good, i] = losses / size
            if shapes is not None:
                _write(params, state.params, first + good, good, i)
            show(first * int(points[-1]) + min(slots, runs - first) * int(points[i]))
    return series, params


def _write(kept: Any, params: Any, rows: np.ndarray, slots: np.ndarray, point: int) -> None:
    for target, leaf in zip(jax.tree.leaves(kept), jax.tree.leaves(params), strict=True):
        target[rows, point] = np.asarray(leaf)[slots]
