"""SGD as a learner: networks trained by the engines, batch times t_c examples each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import jax
import numpy as np

from paritylab import engines
from paritylab.baselines.records import Record, identity
from paritylab.errors import require
from paritylab.measures.heavy import heavy
from paritylab.running.sweeps import sweep
from paritylab.setups.networks import MLP
from paritylab.setups.optimisers import SGD
from paritylab.setups.problems import AnyProblem, Data
from paritylab.setups.setup import Learner, Protocol, Setup
from paritylab.storage.records import DIVERGED, SOLVED
from paritylab.storage.store import Store

LEARNER = Learner(MLP(10), optimiser=SGD(1.0), batch=32)
STEPS = 20_000
"""Updates after which a network that has not learnt a table's labels is taken as it is."""


def train(
    problem: AnyProblem,
    runs: Sequence[int],
    seed: int,
    limit: int,
    threshold: float,
    learner: Learner | None = None,
    store: Store | None = None,
    progress: bool | None = None,
) -> list[Record]:
    """Train networks until they are right on a share ``threshold`` of 8192 clean inputs, on ``limit`` examples at most.

    On a finite sample an example counts once, however often it is seen.

    >>> from paritylab import Parity
    >>> train(Parity(n=8, k=2), [3], seed=0, limit=10**5, threshold=1.0)[0].status
    'solved'
    """
    learner = learner or LEARNER
    steps = limit // learner.batch
    require(steps >= 1, f"{limit} examples are fewer than a batch of {learner.batch}")
    setup = Setup(problem, learner, Protocol(max_steps=steps, threshold=threshold))
    numbers = range(min(runs), max(runs) + 1) if len(runs) else range(0)
    result = sweep([setup], numbers, seed=seed, store=store, progress=progress)[0]
    new = len(result.records) - result.reused
    found = []
    for i in np.flatnonzero(np.isin(result.records.run, runs)):
        status = result.records.status[i]
        samples = int(result.records.steps[i]) * learner.batch
        found.append(Record(
            "sgd", problem.n, problem.degree, problem.noise, int(result.records.run[i]),
            "solved" if status == SOLVED else "failed",
            min(samples, problem.sample or samples), "examples", result.seconds / new if new else None,
            None, float(result.records.accuracy[i]), "diverged" if status == DIVERGED else "", identity(problem),
        ))
    return found


def with_options(lr: float | None = None, width: int | None = None, batch: int | None = None,
                 weight_decay: float = 0.0) -> Learner:
    """The learner of this module with another rate, width or batch size, or with weight decay.

    >>> with_options(lr=0.1).optimiser.lr
    0.1
    """
    made = LEARNER if width is None else replace(LEARNER, network=MLP(width))
    made = replace(made, optimiser=SGD(LEARNER.optimiser.lr if lr is None else lr, weight_decay=weight_decay))
    return made if batch is None else replace(made, batch=batch)


def support_of_data(x: np.ndarray, y: np.ndarray, k: int, generator: np.random.Generator, learner: Learner = LEARNER,
                    steps: int = STEPS) -> list[int]:
    """Train a network on signs x (m, n) and y (m,), and read a support of at most k inputs off it.

    Of its Fourier coefficients above 0.1, the one whose parity agrees best, or worst, with the labels; none: empty.
    """
    n = x.shape[1]
    setup = Setup(Data(x, y, replacement=True), learner, Protocol(max_steps=steps))
    job = engines.Job(setup, int(generator.integers(2**32)), np.arange(1))
    _, params = engines.final_params([job], "jax", slots=1)
    params = jax.tree.map(lambda leaf: leaf[0], params)
    forward = jax.jit(learner.network.apply)
    found = heavy(lambda z: np.sign(forward(params, z.astype(np.float32))), n, 0.1, 4096 * (n + 1), generator, k)
    return list(max(found, key=lambda T: abs(int((x[:, list(T)].prod(axis=1) * y).sum())), default=()))
