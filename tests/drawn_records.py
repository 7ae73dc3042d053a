"""A store of drawn convergence times, for tests of figures."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import paritylab
from paritylab.storage.records import CENSORED, DIVERGED, SOLVED, Records

GRID = [(n, k, lr) for n in (10, 20, 40) for k in (2, 3) for lr in (0.1, 1.0)]


def drawn(n: int, k: int, lr: float, runs: int = 60, horizon: int = 2000) -> Records:
    """Times that grow as n^(k - 1), the rest censored, one run diverged where the rate is high."""
    times = np.random.default_rng(n + 100 * k).geometric(1 / (5 * (n / 10) ** (k - 1) * 10 / lr**0.5), runs)
    status = np.where(times <= horizon, SOLVED, CENSORED)
    if lr == 1:
        status[0] = DIVERGED
    solved = status == SOLVED
    steps = np.where(solved, times, horizon)
    return Records(np.arange(runs), status, np.where(solved, times, -1), steps, solved, ~solved)


def setup(n: int, k: int, lr: float) -> paritylab.Setup:
    learner = paritylab.Learner(optimiser=paritylab.SGD(lr))
    return paritylab.Setup(paritylab.Parity(n, k), learner, paritylab.Protocol(max_steps=2000))


def kept(folder: Path) -> Path:
    """The folder, with a store of all of them."""
    setups = [(setup(*each), drawn(*each)) for each in GRID]
    paritylab.Store(folder / "store").extend(
        [(each.id, each.to_json(), "jax", 0, records) for each, records in setups])
    return folder
