"""Four readings of "best learning rate" in Figures 7 and 8, and how likely each makes the printed table."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from barak2022 import figure7
from barak2022.common import times
from barak2022.published import Cell
from barak2022.repeats import p10_of_few, tail
from paritylab.aliases import Floats
from paritylab.running.sweeps import Result
from paritylab.statistics import percentile
from paritylab.storage.records import SOLVED

FASTEST, SLOWER, CONVERGED, NEAREST = "fastest", "rate 1 left out", "most converged", "nearest"
READINGS = {
    FASTEST: "fastest rate",
    SLOWER: "fastest rate, 1 left out for 12 settings",
    CONVERGED: "rate with the most converged runs",
    NEAREST: "rate nearest to the printed number",
}
"""Which rate of a cell is the best one. The second and the last were chosen with the printed table in view."""
NEAR = 0.05
"""A percentile is as printed if it is within 5 % of it, or within the ten steps between two checks."""


@dataclass(frozen=True)
class Measure:
    """One cell at one rate."""

    result: Result

    @property
    def lr(self) -> float:
        return self.result.setup.learner.optimiser.lr

    @cached_property
    def p10(self) -> float:
        records = self.result.records
        return percentile(records.t_c, records.status, 10, records.steps)

    @cached_property
    def solved(self) -> int:
        return int(np.sum(self.result.records.status == SOLVED))

    @property
    def runs(self) -> int:
        return len(self.result.records)

    def log_ratio(self, printed: float) -> float:
        return math.log10(self.p10 / printed)


@dataclass(frozen=True)
class TableCell:
    """A cell of the tables with all its rates: as few runs as were printed, and many runs where there are more."""

    cell: Cell
    rates: Sequence[Measure]
    many: Mapping[float, Measure]
    """By rate."""

    def read(self, reading: str) -> Measure:
        """The rate that a reading takes for the best."""
        if reading == CONVERGED:
            return min(self.rates, key=lambda rate: (-rate.solved, rate.p10))
        if reading == NEAREST:
            return min(self.rates, key=lambda rate: abs(rate.log_ratio(self.cell.p10 or 1)))
        kept = figure7.rates(self.cell.setting, [rate.lr for rate in self.rates]) if reading == SLOWER else None
        return min((rate for rate in self.rates if kept is None or rate.lr in kept), key=lambda rate: rate.p10)

    def law(self, rate: Measure, rng: np.random.Generator) -> Floats:
        """Percentiles that 25 runs at this rate may give."""
        return p10_of_few(times(self.many.get(rate.lr, rate).result.records), rng)

    def chances(self, rng: np.random.Generator) -> dict[str, float]:
        """How often 25 runs give the printed percentile, by each reading; of the nearest rate, by any of the rates.

        The nearest rate is chosen for its number, so all rates share in it alike: otherwise it could not but win.
        """
        printed = self.cell.p10 or 0
        laws = {rate.lr: self.law(rate, rng) for rate in self.rates}
        hit = {lr: as_printed(law, printed) for lr, law in laws.items()}
        found = {reading: hit[self.read(reading).lr] for reading in READINGS if reading != NEAREST}
        return found | {NEAREST: float(np.mean(list(hit.values())))}

    def possible(self, reading: str, rng: np.random.Generator) -> bool:
        """Whether the printed percentile is within the central 95 % of what 25 runs give."""
        return tail(self.law(self.read(reading), rng), self.cell.p10 or 0) > 0.05


def as_printed(law: Floats, printed: float) -> float:
    """The share of draws that are as printed, and half a draw more, so that none is impossible.

    >>> round(as_printed(np.array([100.0] * 50 + [200.0] * 50), 103), 2)
    0.5
    """
    near = np.abs(law - printed) <= max(10.0, NEAR * printed)
    return float((near.sum() + 0.5) / (len(law) + 1))


def likelihoods(cells: Sequence[TableCell], rng: np.random.Generator) -> dict[str, Floats]:
    """The log-likelihood of each cell's printed percentile by each reading; at least -log(2 DRAWS + 2) each."""
    chances = [cell.chances(rng) for cell in cells]
    return {reading: np.log([each[reading] for each in chances]) for reading in READINGS}


