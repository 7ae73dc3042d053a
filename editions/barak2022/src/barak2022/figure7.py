"""Figures 7 and 8 of barak2022: 10th percentiles of t_c at n = 30 at the best learning rate, and the solved fraction.

The printed numbers do not always belong to the fastest rate of the paper's grid, so a cell is measured at every rate
and judged by three rules: the stated one (smallest percentile over the grid), the same without rate 1 for the settings
of ``SLOWER``, and the rate that comes nearest to what was printed.
"""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from barak2022 import settings
from barak2022.published import Cell, barak2022_fig7
from paritylab.aliases import Interval
from paritylab.running.cost import step_flops
from paritylab.running.races import Entry, decide, enter, extend, leader
from paritylab.setups.problems import Parity
from paritylab.setups.setup import Protocol, Setup

if TYPE_CHECKING:
    from paritylab.storage.store import Store

N = 30
DEGREES = (2, 3, 4)
BATCHES = (1, 4, 32, 128, 1024)
RATES = (1.0, 0.1, 0.01, 0.001)
ADAM_RATES = (*RATES, 3e-4)
SLOWER = ("iv", "v", "vi", "vii", "viii", "ix", "x", "xi", "xii", "xiii", "xiv", "*ii")
"""Settings whose printed numbers match rates up to 0.1, although rate 1 is in the paper's grid and often faster."""
CORE = ("i", "ii", "iii", "iv", "xv")
"""Settings whose printed numbers are those of the stated rule, or nearly so."""
HOPELESS = (("*i", 3, 1), ("*i", 4, 1))
"""Cells (setting, k, batch) that are blank because too few runs were solved."""
FOLLOW = 1.6  # times the printed percentile, so that a match within a factor 1.5 is decided for every rate


@dataclass(frozen=True)
class Measured:
    """One cell as measured at every rate, beside what was printed."""

    cell: Cell
    rates: tuple[Entry, ...]
    seconds: float

    @property
    def best(self) -> Entry:
        """The rate with the smallest 10th percentile: the stated rule."""
        return self.rates[leader(self.rates)]

    @property
    def as_printed(self) -> Entry:
        """The same among the rates the printed table was drawn from."""
        drawn = _drawn_from(self.cell, self.rates)
        return self.rates[drawn[leader([self.rates[i] for i in drawn])]]

    @property
    def matched(self) -> Entry | None:
        """The rate whose 10th percentile is nearest to the printed one; None where nothing was printed."""
        return min(self.rates, key=lambda entry: abs(self.log_ratio(entry))) if self.cell.p10 else None

    @property
    def lr(self) -> float:
        return self.best.setup.learner.optimiser.lr

    @property
    def p10(self) -> float:
        return self.best.percentile

    @property
    def interval(self) -> Interval:
        return self.best.interval

    def log_ratio(self, entry: Entry) -> float:
        """log10(measured / printed): ``inf`` where the percentile is not reached, or beyond what was followed."""
        return math.log10(entry.percentile / self.cell.p10) if self.cell.p10 else math.nan

    @property
    def label(self) -> str:
        return f"({self.cell.setting}) k={self.cell.k} B={self.cell.batch}"

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain JSON values."""
        lr = {name: entry and entry.setup.learner.optimiser.lr for name, entry in
              (("best", self.best), ("as_printed", self.as_printed), ("matched", self.matched))}
        cell = self.cell
        return {
            "setting": cell.setting, "k": cell.k, "batch": cell.batch, "published_p10": cell.p10,
            "certain": cell.certain, "lr": lr, "rates": [entry.to_dict() for entry in self.rates],
            "seconds": round(self.seconds, 3),
        }


def grid(setting: str) -> tuple[float, ...]:
    """The paper's learning rates for a setting."""
    return ADAM_RATES if setting == "*iii" else RATES


def rates(setting: str, among: Sequence[float] | None = None) -> tuple[float, ...]:
    """The rates (of the grid, unless said) the printed table was drawn from, as far as its numbers tell."""
    among = among or grid(setting)
    slower = tuple(lr for lr in among if lr < 1)
    return slower if slower and setting in SLOWER else tuple(among)


def _drawn_from(cell: Cell, entries: Sequence[Entry]) -> list[int]:
    """The positions of these rates."""
    present = [entry.setup.learner.optimiser.lr for entry in entries]
    return [i for i, lr in enumerate(present) if lr in rates(cell.setting, present)]


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
    budget: float = math.inf,
) -> Measured:
    """Measure one cell with checks on 128 inputs, as :func:`follow` says; options as in :func:`paritylab.sweep`."""
    further = functools.partial(extend, engine=engine, threads=threads, store=store, progress=progress)
    start = time.perf_counter()
    entries = follow(enter(cell_setups(cell, grid, max_steps), 10, runs, seed, engine), further, cell, budget)
    return Measured(cell, tuple(entries), time.perf_counter() - start)


def follow(
    entries: Sequence[Entry], extend: Callable[[Entry, int], Entry], cell: Cell, budget: float = math.inf
) -> list[Entry]:
    """How the rates of a cell are followed (:meth:`paritylab.claims.Lab.pursue` takes it with the cell bound to it).

    Every rate is followed until it is known, or cannot win and is beyond 1.6 times the printed percentile. The winners
    of both rules are followed to their step limit, or until their unsolved runs may have cost ``budget`` FLOPs.
    """
    entries = decide(entries, extend, FOLLOW * (cell.p10 or 0))
    drawn = _drawn_from(cell, entries)
    among = decide([entries[i] for i in drawn], extend)
    for i, entry in zip(drawn, among, strict=True):
        entries[i] = entry
    for i in {leader(entries), drawn[leader(among)]}:
        setup = entries[i].setup
        affordable = budget / (max(1, entries[i].pending.sum()) * step_flops(setup))
        entries[i] = extend(entries[i], math.ceil(min(setup.protocol.max_steps, affordable)))
    return entries


def cell_setups(cell: Cell, lrs: Sequence[float] | None = None, max_steps: int = 100_000) -> list[Setup]:
    """The Setups of a cell, one for each rate."""
    protocol = Protocol(max_steps=max_steps, eval_size=128)
    return [
        Setup(Parity(N, cell.k), settings.barak2022(cell.setting, cell.k, lr, cell.batch), protocol)
        for lr in lrs or grid(cell.setting)
    ]


def cells(
    names: Iterable[str] = settings.BARAK2022, degrees: Iterable[int] = DEGREES, batches: Iterable[int] = BATCHES
) -> list[Cell]:
    """The cells of these settings, degrees and batch sizes, in this order."""
    table = barak2022_fig7()
    return [table[name, k, batch] for name in names for k in degrees for batch in batches]


def cheapest_first(cells: Iterable[Cell]) -> list[Cell]:
    """Cells in the order of the work they will take, about."""
    return sorted(cells, key=lambda cell: (cell.p10 or 100_000) * step_flops(cell_setups(cell)[0]))


# --- the claim's criteria -----------------------------------------------------------------------------------


def rms_log_ratio(measured: Iterable[Measured]) -> float:
    """Part 1 (of ``CORE``): root-mean-square log10(measured / printed) at the rates of the printed table."""
    ratios = [m.log_ratio(m.as_printed) for m in _comparable(measured)]
    return float(np.sqrt(np.mean(np.square(ratios)))) if ratios else math.nan


def matched_share(measured: Iterable[Measured], factor: float = 1.5) -> float:
    """Part 2: the fraction of cells in which some rate comes within ``factor`` of the printed percentile."""
    return _share([m.log_ratio(m.matched) for m in _comparable(measured) if m.matched], factor)


def as_printed_share(measured: Iterable[Measured], factor: float = 2.0) -> float:
    """Part 3: the fraction of cells within ``factor``, with rate 1 left out for the settings of ``SLOWER``."""
    return _share([m.log_ratio(m.as_printed) for m in _comparable(measured)], factor)


def median_log_ratio(measured: Iterable[Measured]) -> float:
    """Part 3: the median of |log10(measured / printed)| by the same rule."""
    ratios = [abs(m.log_ratio(m.as_printed)) for m in _comparable(measured)]
    return float(np.median(ratios)) if ratios else math.nan


def hopeless_solved(measured: Iterable[Measured]) -> float:
    """Part 3: the largest solved fraction, over all rates as far as followed, in the cells of ``HOPELESS``."""
    chosen = [m for m in measured if (m.cell.setting, m.cell.k, m.cell.batch) in HOPELESS]
    return max((entry.solved_fraction for m in chosen for entry in m.rates), default=math.nan)


def criteria(measured: Sequence[Measured]) -> dict[str, float]:
    """All parts of the claim's criterion, by name; ``nan`` where no cell bears on a part."""
    return {
        "rms_log_ratio": rms_log_ratio(m for m in measured if m.cell.setting in CORE),
        "matched_share": matched_share(measured),
        "as_printed_share": as_printed_share(measured),
        "median_log_ratio": median_log_ratio(measured),
        "hopeless_solved": hopeless_solved(measured),
    }


def _comparable(measured: Iterable[Measured]) -> list[Measured]:
    return [m for m in measured if m.cell.certain and m.cell.p10]


def _share(ratios: Sequence[float], factor: float) -> float:
    most = math.log10(factor) + 1e-9  # 20 against 30 is within a factor 1.5, however it is rounded
    return float(np.mean(np.abs(ratios) <= most)) if ratios else math.nan
