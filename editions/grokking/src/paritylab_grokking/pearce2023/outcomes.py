"""What becomes of a network: the four outcomes, how often they are seen, and the published ones."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from paritylab.aliases import Floats
from paritylab.claims.intervals import LEVEL, Estimate

NO_FIT, MEMORISE, GROK, DIRECT = OUTCOMES = ("no-fit", "memorise", "grok", "direct")
FITTED, APART = 1e-5, 5e4
"""The largest loss that counts as fitted, and the ratio of test to training loss from which on a network groks."""
AXES = ("weight decay", "width", "sample")
Cell = tuple[float, int, int]
"""A value on each of these axes."""


def outcomes(train: ArrayLike, test: ArrayLike, ratio: ArrayLike) -> np.ndarray:
    """Places in OUTCOMES of networks with these smallest losses and largest ratios of test to training loss.

    >>> [OUTCOMES[each] for each in outcomes([1e-4, 1e-7, 1e-7, 1e-7], [1e-7, 0.7, 1e-7, 1e-7], [1, 1e7, 1e6, 10])]
    ['no-fit', 'memorise', 'grok', 'direct']
    """
    train, test, ratio = (np.asarray(each, float) for each in (train, test, ratio))
    return np.select([~(train <= FITTED), ~(test <= FITTED), ratio >= APART], [0, 1, 2], 3)


@dataclass(frozen=True)
class Networks:
    """Outcomes by cell: arrays of places in OUTCOMES, one for each network."""

    cells: Mapping[Cell, np.ndarray]

    def at(self, axis: str, value: float) -> Networks:
        """Those of the cells with one value on an axis."""
        place = AXES.index(axis)
        return Networks({cell: found for cell, found in self.cells.items() if cell[place] == value})

    def shares(self, cell: Cell) -> Floats:
        """Of each outcome in a cell."""
        return np.bincount(self.cells[cell], minlength=len(OUTCOMES)) / len(self.cells[cell])

    def share(self, outcome: str) -> tuple[float, float]:
        """The share of an outcome, all cells alike, and its variance over seeds, without bias in each cell."""
        place, cells = OUTCOMES.index(outcome), len(self.cells)
        p = np.array([np.mean(found == place) for found in self.cells.values()])
        runs = np.array([len(found) for found in self.cells.values()])
        return float(p.mean()), float(np.sum(p * (1 - p) / np.maximum(1, runs - 1))) / cells**2

    def count(self, outcome: str, total: int, level: float = LEVEL) -> Estimate:
        """How many of ``total`` networks have an outcome, and the interval from the spread of seeds within cells."""
        share, variance = self.share(outcome)
        return around(total * share, total**2 * variance, level)

    def change(self, other: Networks, outcome: str, total: int, level: float = LEVEL) -> Estimate:
        """How many more of ``total`` have an outcome here than there."""
        (one, var_one), (two, var_two) = self.share(outcome), other.share(outcome)
        return around(total * (one - two), total**2 * (var_one + var_two), level)

    def agreement(self, published: Networks) -> Estimate:
        """The chance that a network here and a published one of the same cell end alike; the interval is over ours."""
        mean = variance = 0.0
        for cell, found in self.cells.items():
            alike = published.shares(cell)[found]
            mean += float(alike.mean()) / len(self.cells)
            variance += float(np.var(alike)) / max(1, len(found) - 1) / len(self.cells) ** 2
        return around(mean, variance, LEVEL)

    def own_agreement(self) -> float:
        """The chance that two different networks of one cell end alike, mean over cells.

        >>> Networks({(0.1, 16, 750): np.array([0, 0, 1])}).own_agreement()
        0.3333333333333333
        """
        found = []
        for each in self.cells.values():
            counts = np.bincount(each)
            found.append(float(np.sum(counts * (counts - 1))) / (len(each) * (len(each) - 1)))
        return float(np.mean(found))


def around(value: float, variance: float, level: float) -> Estimate:
    """A value and its interval by the normal law."""
    half = float(stats.norm.ppf((1 + level) / 2)) * math.sqrt(variance)
    return value, (value - half, value + half)


@cache
def published() -> Networks:
    """The 1,125 networks of the sweep: nine seeds in each of 125 cells.

    >>> {outcome: round(published().count(outcome, 1125)[0]) for outcome in OUTCOMES}
    {'no-fit': 152, 'memorise': 390, 'grok': 435, 'direct': 148}
    """
    text = resources.files("paritylab_grokking.pearce2023").joinpath("data/sweep.csv").read_text(encoding="utf-8")
    cells: dict[Cell, list[int]] = {}
    for row in csv.DictReader(text.splitlines()):
        cell = float(row["weight_decay"]), int(row["width"]), int(row["train_size"])
        losses = (float(row[name]) for name in ("min_train_loss", "min_test_loss", "max_loss_ratio"))
        cells.setdefault(cell, []).append(int(outcomes(*losses)))
    return Networks({cell: np.array(found) for cell, found in cells.items()})
