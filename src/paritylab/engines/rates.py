"""How fast an engine trains here: real training of one small program, timed once it is compiled and warm."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from paritylab.engines import loop, make_pool
from paritylab.engines.work import Job, Queue
from paritylab.setups.networks import MLP
from paritylab.setups.optimisers import SGD
from paritylab.setups.problems import Parity
from paritylab.setups.setup import Learner, Protocol, Setup

IDLE_RATE = 1e-6  # every update is computed, nothing is learned: no run ends while it is timed
RUNS = 2**16  # more than any engine trains at once
W1 = Setup(
    Parity(30, 3),
    Learner(MLP(10), optimiser=SGD(IDLE_RATE), batch=32),
    Protocol(max_steps=10**9, eval_every=10, eval_size=128),
)
"""The workload that all figures of ``docs/explanation/performance.md`` begin with."""


def steady_rate(engine: str, setup: Setup = W1, seconds: float = 2.0) -> float:
    """Model-steps a second of an engine, all threads, over about so many seconds after as long a warming up.

    >>> steady_rate("jax", Setup(Parity(5, 2), W1.learner, W1.protocol), seconds=0.01) > 0
    True
    """
    queue = Queue([Job(setup, 0, np.arange(RUNS))])
    pool = make_pool(queue, engine)
    training = loop.train(queue, pool)
    for wait in (0.0, seconds / 2):  # the first call compiles
        _advance(training, wait)
    before, start = pool.model_steps, time.perf_counter()
    _advance(training, seconds)
    return (pool.model_steps - before) / (time.perf_counter() - start)


def _advance(training: Iterator[Any], seconds: float) -> None:
    start = time.perf_counter()
    next(training)
    while time.perf_counter() - start < seconds:
        next(training)
