"""Figure 7 of barak2022: 10th percentiles of the convergence time at n = 30, at the best learning rate."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from paritylab import settings
from paritylab.problems import Parity
from paritylab.published import Cell, barak2022_fig7
from paritylab.setup import Protocol, Setup
from paritylab.statistics import Interval
from paritylab.sweeps import Result, sweep

if TYPE_CHECKING:
    from paritylab.store import Store

N = 30
RATES = (1.0, 0.1, 0.01, 0.001)
SLOWER = ("iv", "v", "vi", "vii", "viii", "ix", "x", "xi", "xii", "xiii", "xiv", "*ii")
"""Settings whose printed numbers match rates up to 0.1, although rate 1 is in the paper's grid and often faster."""


@dataclass(frozen=True)
class Measured:
    """One cell as measured: the rate with the smallest 10th percentile, beside what was printed."""

    cell: Cell
    best: Result

    @property
    def lr(self) -> float:
        return self.best.setup.learner.optimiser.lr

    @property
    def p10(self) -> float:
        return self.best.summary.p10

    @property
    def interval(self) -> Interval:
        return self.best.summary.p10_interval

    @property
    def log_ratio(self) -> float:
        """log10(measured / published)."""
        return math.log10(self.p10 / self.cell.p10) if self.cell.p10 else math.nan

    @property
    def label(self) -> str:
        return f"({self.cell.setting}) k={self.cell.k} B={self.cell.batch}"


def rates(setting: str) -> tuple[float, ...]:
    """The rates the printed table was drawn from, as far as its numbers tell."""
    return RATES[1:] if setting in SLOWER else RATES


def measure_cell(
    cell: Cell,
    runs: int = 25,
    grid: Sequence[float] | None = None,
    max_steps: int = 100_000,
    seed: int = 0,
    engine: str = "auto",
    threads: int | None = None,
    store: Store | None = None,
    progress: bool | None = None,
) -> Measured:
    """Measure one cell with checks on 128 inputs, fastest rate first; options as in :func:`paritylab.sweep`.

    A later rate is trained only as long as it can still win. Its percentile is t + f (u - t) of two consecutive times,
    so it can be below the best so far while u is above it, but not once u exceeds the best / f.
    """
    best: Result | None = None
    limit = max_steps
    for lr in grid or rates(cell.setting):
        learner = settings.barak2022(cell.setting, cell.k, lr, cell.batch)
        setup = Setup(Parity(N, cell.k), learner, Protocol(max_steps=limit, eval_size=128))
        (result,) = sweep([setup], runs, seed, engine, threads, store, progress)
        p10 = result.summary.p10
        if best is None or p10 < best.summary.p10:
            best = result
            fraction = 0.1 * (runs - 1) % 1
            if fraction > 0 and p10 < math.inf:
                limit = min(limit, 10 * math.ceil(p10 / fraction / 10))
    assert best is not None
    return Measured(cell, best)


def cells(names: Sequence[str], degrees: Sequence[int], batches: Sequence[int]) -> Iterator[Cell]:
    """The printed cells of these settings, degrees and batch sizes, in this order."""
    table = barak2022_fig7()
    return (table[name, k, batch] for name in names for k in degrees for batch in batches)


def rms_log_ratio(measured: Sequence[Measured]) -> float:
    """Root-mean-square log10(measured / published) over the cells with a certain printed number."""
    ratios = [m.log_ratio for m in measured if m.cell.certain and m.cell.p10]
    return float(np.sqrt(np.mean(np.square(ratios))))
