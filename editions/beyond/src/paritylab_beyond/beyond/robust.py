"""What decides whether a network learns the full parity from a start: the alignment, and how it lasts and grows."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from itertools import cycle
from typing import Any, NamedTuple

import numpy as np
from abbe2024.training import DEEP, final, ranks_agree, trained
from scipy import stats

from paritylab import Curves, plots
from paritylab.aliases import Floats, Interval
from paritylab.claims import Findings, Lab, Rule, Trial, at_least, between, claim, holds, size
from paritylab.claims.verdicts import Check
from paritylab_beyond.beyond.growth import (
    LEARNT,
    MOVED,
    Cell,
    growth,
    moved_alignments,
    movement,
    network_alignment,
    neuron_alignment,
)


def two_sizes(a: float) -> str:
    """The law uniform on {+-1, +-a}.

    >>> two_sizes(1.4)
    'discrete:-1.4,-1,1,1.4'
    """
    return f"discrete:{-a:g},-1,1,{a:g}"


SIGNS = "rademacher"
RESONANT = two_sizes(1.4)
SEEN = (SIGNS, *map(two_sizes, (1.2, 1.4, 1.5, 2, 3)), "perturbed-rademacher:0.1", "perturbed-rademacher:0.2",
        "sparse-rademacher:0.2", "gaussian")
"""Laws on which the model was made, at d = 20 and 30. No check but that of the pair at d = 100 looks at them."""
AGAIN = (SIGNS, *map(two_sizes, (1.4, 1.5, 2, 3)), "perturbed-rademacher:0.1", "sparse-rademacher:0.2", "gaussian")
"""Those that are drawn beside the others."""
HELD_OUT = (
    *map(two_sizes, (1.1, 1.3, 1.41421, 1.6, 1.75, 2.5, 4, 5)),
    "discrete:-5,-3,-1,1,3,5", "discrete:-3,-2,-1,1,2,3", "discrete:-1.5,-1.25,-1,1,1.25,1.5",
    "discrete:-1.5,-1.2,1.2,1.5",
    *(f"sparse-rademacher:{s}" for s in (0.05, 0.1, 0.3, 0.5)),
    *(f"perturbed-rademacher:{s}" for s in (0.05, 0.15, 0.3, 0.5, 1)),
    *(f"uniform-perturbed:{s}" for s in (0.2, 0.3, 0.5)),
)
FEW = (SIGNS, *map(two_sizes, (1.3, 1.75, 5)), "sparse-rademacher:0.1", "perturbed-rademacher:0.15",
       "perturbed-rademacher:0.5")
WALKER = "uniform-perturbed:0.5"
"""A law that is not learnt at d = 30 in the steps tried, so that all movement is noise."""
MORE = "> 0 at 95 %"
RESAMPLES = 2000
POINTS = 40
CHANCE = 0.51
"""What a network that has learnt nothing may reach."""
Got = tuple[list[Curves], list[dict[str, Floats]]]


class Measured(NamedTuple):
    """Cells in order, each with the mean final accuracy and the median step to an accuracy of 0.75."""

    cells: list[Cell]
    tables: list[Mapping[str, Floats]]
    accuracy: Floats
    steps: Floats

    @property
    def order(self) -> Floats:
        """Cells that learn by their speed, behind them the others by accuracy; those at chance are level."""
        never = np.isinf(self.steps)
        speed = 1 / np.where(never, 1.0, self.steps)
        return np.where(never, np.maximum(self.accuracy, CHANCE) - 1, speed)

    def chosen(self, keep: Callable[[Cell], bool]) -> Measured:
        rows = [i for i, cell in enumerate(self.cells) if keep(cell)]
        return Measured([self.cells[i] for i in rows], [self.tables[i] for i in rows],
                        self.accuracy[rows], self.steps[rows])


class Starts(Trial):
    """Two-layer and deep networks from many laws: hinge, SGD at 0.01, batches of 64, biases of the weights' law."""

    laws = size(quick=list(FEW), full=[*AGAIN, *HELD_OUT])
    shapes = size(quick=[[20, 128], [20, 256]],
                  full=[[30, 512], [30, 2048], [50, 512], [50, 2048], [50, 8192], [75, 2048], [75, 8192], [100, 2048],
                        [100, 8192], [100, 16_384], [150, 8192]], label="d and width")
    deep = size(quick=[], full=[30, 50, 100], label="d of four layers")
    moved = size(quick=[0.0, 0.1], full=list(MOVED), label="movements")
    steps = size(quick=5000, full=30_000)
    runs = size(2)

    @property
    def cells(self) -> list[Cell]:
        return [Cell(law, d, width) for d, width in self.shapes for law in self.laws]

    @property
    def deep_cells(self) -> list[Cell]:
        """Four layers, with the width of the first."""
        return [Cell(law, d, DEEP[0]) for d in self.deep for law in self.laws]

    @property
    def points(self) -> list[int]:
        return sorted({round(step) for step in np.geomspace(self.steps / 40, self.steps, POINTS)})

    def work(self, lab: Lab) -> Got:
        setups = [trained(cell.law, cell.d, (cell.width,)) for cell in self.cells]
        setups += [trained(cell.law, cell.d, DEEP) for cell in self.deep_cells]
        asked = [{"law": law, "d": d, "moved": self.moved} for law in self.laws for d in self.dimensions]
        return lab.curves_each(setups, self.points, runs=self.runs), lab.compute_each(moved_alignments, asked)

    @property
    def dimensions(self) -> list[int]:
        return list(dict.fromkeys(d for d, _ in self.shapes))

    def measured(self, got: Got, *, deep: bool = False) -> Measured:
        curves, arrays = got
        keys = [(law, d) for law in self.laws for d in self.dimensions]
        tables = dict(zip(keys, arrays, strict=True))
        cells = self.deep_cells if deep else self.cells
        chosen = curves[len(self.cells):] if deep else curves[: len(self.cells)]
        return Measured(cells, [tables[cell.law, cell.d] for cell in cells],
                        np.array([final(each).mean() for each in chosen]),
                        np.array([steps_to(each) for each in chosen]))

    def held_out(self, got: Got, *, deep: bool = False) -> Measured:
        return self.measured(got, deep=deep).chosen(lambda cell: cell.law not in SEEN)

    def pair_of(self, got: Got) -> tuple[Measured, Measured]:
        """Signs and {+-1, +-1.4} at the largest d = 100, or the last shape of a smaller trial."""
        d, width = max(((d, width) for d, width in self.shapes if d <= 100), key=lambda shape: (shape[0], shape[1]))
        every = self.measured(got)
        signs, resonant = (every.chosen(lambda cell, law=law: cell == Cell(law, d, width)) for law in (SIGNS, RESONANT))
        return signs, resonant

    def resampled(self, measured: Measured, value: Callable[[np.ndarray], float]) -> tuple[float, Interval]:
        """A statistic of chosen cells, and its bootstrap interval over laws."""
        laws = np.array([cell.law for cell in measured.cells])
        rows = [np.flatnonzero(laws == law) for law in dict.fromkeys(laws)]
        rng = self.rng(0)
        drawn = [value(np.concatenate([rows[i] for i in rng.integers(0, len(rows), len(rows))]))
                 for _ in range(RESAMPLES)]
        low, high = np.nanquantile(drawn, [0.025, 0.975])
        return value(np.arange(len(laws))), (float(low), float(high))

    def predictors(self, measured: Measured) -> dict[str, Floats]:
        """What may order cells by how well they learn."""
        pairs = list(zip(measured.cells, measured.tables, strict=True))
        return {
            "neuron": np.array([neuron_alignment(cell.law, cell.d, table) for cell, table in pairs]),
            "network": np.array([network_alignment(table, cell.width, 0.0) for cell, table in pairs]),
            "robust": np.array([network_alignment(table, cell.width, float(movement(cell, self.steps)))
                                for cell, table in pairs]),
            "growth": growth(measured.cells, measured.tables, 10 * self.steps).score(),
            "growth without noise": growth(measured.cells, measured.tables, 10 * self.steps, noise=False).score(),
        }

    def rows(self, got: Got) -> list[dict[str, Any]]:
        """Data of all cells, with what was predicted of each."""
        rows = []
        for deep in (False, True):
            measured = self.measured(got, deep=deep)
            if measured.cells:
                found = self.predictors(measured)
                first = growth(measured.cells, measured.tables, 10 * self.steps).first()
                rows += [{"law": cell.law, "d": cell.d, "width": cell.width, "layers": 4 if deep else 2,
                          "held_out": cell.law not in SEEN, "accuracy": float(measured.accuracy[i]),
                          "steps": float(measured.steps[i]), "predicted_steps": float(first[i]),
                          **{name.replace(" ", "_"): float(values[i]) for name, values in found.items()}}
                         for i, cell in enumerate(measured.cells)]
        return rows

    def agreements(self, measured: Measured) -> tuple[dict[str, Floats], Callable[[str, np.ndarray], float]]:
        """Predictors, and Spearman's correlation of one with the order of learning over chosen cells."""
        found = self.predictors(measured)
        return found, lambda name, rows: ranks_agree(found[name][rows], measured.order[rows])

    def better(self, rule: Rule, measured: Measured, one: str, other: str) -> Check:
        """Whether one predictor's correlation with the order of learning is larger than another's."""
        _, agreement = self.agreements(measured)
        value, ends = self.resampled(measured, lambda rows: agreement(one, rows) - agreement(other, rows))
        return rule(value, passed=ends[0] > 0, interval=ends, certain=ends[1] <= 0)

    def numbers(self, measured: Measured) -> dict[str, float]:
        found, agreement = self.agreements(measured)
        every = np.arange(len(measured.cells))
        return {"held-out cells": float(len(every)), "share learnt": float((measured.accuracy >= LEARNT).mean())} | {
            f"Spearman with the order of learning, {name}": agreement(name, every) for name in found}


def steps_to(curves: Curves) -> float:
    """The median first recorded step with an accuracy of 0.75; infinite if most runs never reach it."""
    first = curves.first(LEARNT)
    return float(np.median(np.where(first < 0, np.inf, first)))


@claim(
    "beyond.robust-alignment",
    where="after Abbe et al. (2024), Section 6",
    kind="empirical",
    title="Is it the alignment after the noise of SGD that decides what is learnt?",
    statement="""SGD moves hidden weights by a random walk of eta sqrt(d T / (2 B width)) relative to the law. Across
laws the order of learning follows the network's alignment after it, more closely than the alignment at the start.""",
    published="a hypothesis of our own",
)
class RobustAlignment(Starts):
    """Rank correlations of three alignments with the order of learning, over laws that had no part in the hypothesis.

    The order: networks that reach accuracy 0.75 by their steps to it, behind them the others by their final accuracy.
    """

    walked = size(quick=[128], full=[128, 512, 2048], label="widths whose movement is measured at d = 30")

    walks = between("measured movement over that of the walk, width {width}, t = {t}", 0.5, 2)
    orders = at_least("Spearman correlation of robust alignment and order of learning", 0.7)
    beats_neuron = Rule("the same less that of a neuron's alignment at the start", MORE)
    beats_start = Rule("the same less that of the network's alignment at the start", MORE, only=("full",))
    same_neuron = holds("signs and {{±1, ±1.4}} at d = {d}: decades between the neuron's alignments", "< 0.3",
                        only=("full",), exact=True)
    apart = holds("decades between their robust alignments", ">= 1", only=("full",), exact=True)

    def work(self, lab: Lab) -> Any:
        setups = [trained(WALKER, 30, (width,)) for width in self.walked]
        return super().work(lab), lab.curves_each(setups, [0, self.steps // 10, self.steps], runs=2, weights=True)

    def walk_checks(self, got: list[Curves]) -> list[Check]:
        """Root mean squares over weights and runs; a range over runs is their interval."""
        checks = []
        for width, curves in zip(self.walked, got, strict=True):
            weights = np.asarray(curves.weights[0]["w"], float)
            for i, t in enumerate(curves.steps.tolist()[1:], 1):
                moved = np.sqrt(30 * np.square(weights[:, i] - weights[:, 0]).mean(axis=(1, 2)))
                ratios = moved / float(movement(Cell(WALKER, 30, width), t))
                ends = float(ratios.min()), float(ratios.max())
                checks.append(self.walks(float(ratios.mean()), ends, width=width, t=t))
        return checks

    def judge(self, got: Any) -> Findings:
        got, walks = got
        measured = self.held_out(got)
        _, agreement = self.agreements(measured)
        checks: list[Check] = [
            *self.walk_checks(walks),
            self.orders(*self.resampled(measured, lambda rows: agreement("robust", rows))),
            self.better(self.beats_neuron, measured, "robust", "neuron"),
        ]
        if self.deep:
            checks.append(self.better(self.beats_start, measured, "robust", "network"))
            signs, other = (self.predictors(each) for each in self.pair_of(got))
            gaps = {name: float(signs[name][0] - other[name][0]) for name in ("neuron", "robust")}
            checks += [self.same_neuron(abs(gaps["neuron"]) < 0.3, gaps["neuron"], d=self.pair_of(got)[0].cells[0].d),
                       self.apart(gaps["robust"] >= 1, gaps["robust"])]
        return Findings(checks, self.rows(got), self.numbers(measured))

    def draw(self, got: Any) -> plots.Figure:
        return order_plot(self.rows(got[0]), {"neuron": "neuron, at the start", "network": "network, at the start",
                                              "robust": "network, moved"})


@claim(
    "beyond.growth",
    where="after Abbe et al. (2024), Section 6",
    kind="empirical",
    title="How soon a two-layer network learns the full parity, from the law of its start",
    statement="""Two units that feed each other, with the exact alignment of the start, its wavenumber and the noise of
SGD and no fitted constant, say whether and when a two-layer network reaches accuracy 0.75.""",
    published="a statement of our own",
)
class GrowthForetells(Starts):
    """Predicted against measured steps to accuracy 0.75, over laws that had no part in the model."""

    sorts = at_least("area under the curve: learnt or not, by predicted growth", 0.9)
    beats_neuron = Rule("Spearman correlation with the order of learning less that of a neuron's alignment", MORE)
    beats_network = Rule("the same less that of the network's alignment", MORE, only=("full",))
    timely = at_least("share of cells learnt and predicted so whose steps are within a factor 2", 0.8)
    pair = holds("signs and {{±1, ±1.4}} at d = 100: the one learnt by the end, the other not, as predicted",
                 only=("full",))
    deeper = at_least("four layers: Spearman correlation of growth at the first width with order of learning", 0.6,
                      only=("full",))

    def judge(self, got: Got) -> Findings:
        measured = self.held_out(got)
        found = self.predictors(measured)
        learnt = measured.accuracy >= LEARNT
        first = growth(measured.cells, measured.tables, 10 * self.steps).first()
        both = np.isfinite(measured.steps) & (first <= self.steps)
        within = np.abs(np.log2(np.where(both, first, 1.0) / np.where(both, measured.steps, 1.0))) <= 1
        share = self.resampled(
            measured, lambda rows: float(within[rows][both[rows]].mean()) if both[rows].any() else math.nan)
        checks: list[Check] = [
            self.sorts(*self.resampled(measured, lambda rows: separation(found["growth"][rows], learnt[rows]))),
            self.better(self.beats_neuron, measured, "growth", "neuron"),
            self.timely(*share),
        ]
        if self.deep:
            checks += [self.better(self.beats_network, measured, "growth", "network"),
                       self.pair(self.as_predicted(got)), self.deeper(*self.deep_agreement(got))]
        called = learnt == (first <= self.steps)
        numbers = self.numbers(measured) | {
            "share called right": float(called.mean()), "cells learnt and predicted so": float(both.sum()),
            "median of predicted / measured steps":
                float(np.median(first[both] / measured.steps[both])) if both.any() else math.nan,
        }
        return Findings(checks, self.rows(got), numbers)

    def as_predicted(self, got: Got) -> bool:
        signs, other = self.pair_of(got)
        first = [float(growth(each.cells, each.tables, self.steps).first()[0]) for each in (signs, other)]
        return bool(first[0] <= self.steps < first[1] and signs.accuracy[0] >= LEARNT > other.accuracy[0])

    def deep_agreement(self, got: Got) -> tuple[float, Interval]:
        measured = self.held_out(got, deep=True)
        _, agreement = self.agreements(measured)
        return self.resampled(measured, lambda rows: agreement("growth", rows))

    def draw(self, got: Got) -> plots.Figure:
        return steps_plot(self.rows(got), self.steps)


def separation(score: Floats, learnt: np.ndarray) -> float:
    """The chance that a cell that learns has the higher score of two; NaN where all or none do."""
    if learnt.all() or not learnt.any():
        return math.nan
    return float(stats.mannwhitneyu(score[learnt], score[~learnt]).statistic / (learnt.sum() * (~learnt).sum()))


@plots.styled
def order_plot(rows: list[dict[str, Any]], names: Mapping[str, str]) -> plots.Figure:
    """Final accuracy of two-layer networks against each alignment; open marks are laws seen before."""
    figure = plots.blank(1.0 + 1.5 * len(names))
    panels = figure.subplots(len(names), 1, sharey=True, squeeze=False)[:, 0]
    two = [row for row in rows if row["layers"] == 2]
    for axes, (name, words) in zip(panels, names.items(), strict=True):
        dimensions = dict.fromkeys(row["d"] for row in two)
        for d, colour, mark in zip(dimensions, cycle(plots.COLOURS), cycle("os^vD"), strict=False):
            for held in (True, False):
                chosen = [row for row in two if row["d"] == d and row["held_out"] == held]
                axes.plot([max(row[name], -12) for row in chosen], [row["accuracy"] for row in chosen], mark,
                          markersize=3, color=colour, fillstyle="full" if held else "none", linestyle="none",
                          label=f"d = {d}" if held and axes is panels[0] else None)
        axes.axhline(0.5, color=plots.GREY, linewidth=0.6)
        axes.set(xlabel=f"log10 alignment: {words}", ylabel="accuracy", ylim=(0.45, 1.03))
    plots.legend_above(figure, panels[0])
    return figure


@plots.styled
def steps_plot(rows: list[dict[str, Any]], steps: int) -> plots.Figure:
    """Measured against predicted steps to accuracy 0.75; what never gets there lies on the upper edge."""
    figure = plots.blank(3.2)
    axes = figure.add_subplot(xscale="log", yscale="log", xlabel="predicted steps", ylabel="measured steps")
    two, last = [row for row in rows if row["layers"] == 2], 20 * steps
    dimensions = dict.fromkeys(row["d"] for row in two)
    for d, colour, mark in zip(dimensions, cycle(plots.COLOURS), cycle("os^vD"), strict=False):
        for held in (True, False):
            chosen = [row for row in two if row["d"] == d and row["held_out"] == held]
            axes.plot([min(row["predicted_steps"], last) for row in chosen],
                      [min(row["steps"], 2 * steps) for row in chosen], mark, markersize=3, color=colour,
                      fillstyle="full" if held else "none", linestyle="none",
                      label=f"d = {d}" if held else None)
    ends = np.array([steps / 40, 2 * steps])
    axes.plot(ends, ends, color=plots.GREY, linewidth=0.8)
    axes.fill_between(ends, ends / 2, ends * 2, color=plots.GREY, alpha=0.15, linewidth=0)
    axes.axhline(1.4 * steps, color=plots.GREY, linewidth=0.6, linestyle="dotted")
    axes.set(ylim=(steps / 40, 2.6 * steps))
    plots.legend_above(figure, axes)
    return figure
