"""Cells of Figures 7 and 8 with many more runs than the published 25: what 25 runs could have printed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from barak2022.figure7 import Measured
from paritylab.aliases import Floats, Interval
from paritylab.claims import Lab
from paritylab.running.sweeps import Result
from paritylab.statistics import percentile, percentile_interval, solved_fraction
from paritylab.statistics.percentiles import interpolate, position

RUNS = 1000
PUBLISHED_RUNS = 25
DRAWS = 4000


@dataclass(frozen=True)
class Repeat:
    """One cell and rate with RUNS runs."""

    result: Result

    @property
    def p10(self) -> float:
        records = self.result.records
        return percentile(records.t_c, records.status, 10, records.steps)

    @property
    def interval(self) -> Interval:
        records = self.result.records
        return percentile_interval(records.t_c, records.status, 10, steps=records.steps)

    @property
    def solved(self) -> tuple[float, Interval]:
        return solved_fraction(self.result.records.status)


    def chance_of_percent(self, printed: float) -> float:
        """How often the percentage that 25 runs solve is as far out; a share of 4 % is one run."""
        law = stats.binom(PUBLISHED_RUNS, self.solved[0])
        count = round(printed * PUBLISHED_RUNS / 100)
        return float(min(1.0, 2 * min(law.cdf(count), law.sf(count - 1))))


def p10_of_few(values: Floats, rng: np.random.Generator) -> Floats:
    """10th percentiles of 25 values drawn at random, DRAWS times; as in the paper, with unsolved runs last."""
    drawn = np.sort(rng.choice(values, (DRAWS, PUBLISHED_RUNS)), axis=1)
    index, fraction = position(PUBLISHED_RUNS, 10)
    return interpolate(drawn[:, index], drawn[:, index + 1], fraction)


def tail(values: Floats, seen: float) -> float:
    """Twice the smaller share of values on either side of what was seen, itself included; at most 1.

    >>> tail(np.arange(100.0), 98.0), tail(np.arange(100.0), 50.0)
    (0.04, 1.0)
    """
    return float(min(1.0, 2 * min(np.mean(values <= seen), np.mean(values >= seen))))


def repeats(results: Sequence[Result]) -> dict[str, Repeat]:
    """By the Setup's id."""
    return {result.setup.id: Repeat(result) for result in results}


def repeated(lab: Lab, measured: Sequence[Measured]) -> list[Result]:
    """Every rate that one of the rules chooses, where there is a GPU or the runs are in the store; not the Transformer.

    On two cores they take hours.
    """
    entries = [(m.best, m.as_printed, m.matched) for m in measured if m.cell.setting != "*iii"]
    chosen = {entry.setup.id: entry.setup for three in entries for entry in three if entry}
    return lab.sweep([setup for setup in chosen.values() if lab.affords(setup, RUNS)], RUNS)
