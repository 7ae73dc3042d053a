"""Training curves: loss and accuracy of chosen runs along the way, whether or not they are solved."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np

from paritylab.engines.evaluation import Evaluation
from paritylab.engines.jax_engine import accurate_products
from paritylab.engines.slots import entering, make_moves
from paritylab.engines.work import Job, Queue
from paritylab.setup import Setup


@dataclass(frozen=True)
class Curves:
    """``accuracy`` and ``loss`` (runs, points) on each run's evaluation sample after ``steps`` updates."""

    steps: np.ndarray
    accuracy: np.ndarray
    loss: np.ndarray


@functools.lru_cache(maxsize=8)
def _tracer(program: Setup, count: int) -> Any:
    moves, evaluation = make_moves(program), Evaluation(program, count)

    def trace(rows: Any, checks: int) -> Any:
        def body(state: Any, _: Any) -> Any:
            state = moves.until_check(state)
            return state, evaluation.full(state)

        state = moves.fresh(rows)
        first = evaluation.full(state)
        _, rest = jax.lax.scan(body, state, None, checks)
        return first, rest

    return jax.jit(trace, static_argnums=1)


def curves(setup: Setup, steps: int, every: int, runs: Sequence[int] = (0,), seed: int = 0) -> Curves:
    """Loss and accuracy every ``every`` updates, from the initial network to step ``steps``; runs go on when solved.

    >>> from paritylab.problems import Parity
    >>> curves(Setup(Parity(n=8, k=2)), steps=20, every=10).steps
    array([ 0, 10, 20])
    """
    checks = -(-steps // every)
    setup = replace(setup, protocol=replace(setup.protocol, eval_every=every, max_steps=checks * every))
    rows = Queue([Job(setup, seed, np.asarray(runs))]).take(len(runs))
    with accurate_products():
        first, rest = _tracer(setup.program, len(runs))(entering(setup.program, rows, len(runs)), checks)
    accuracy, loss = (np.concatenate([np.asarray(a)[None], np.asarray(b)]).T for a, b in zip(first, rest, strict=True))
    return Curves(every * np.arange(checks + 1), accuracy, loss)
