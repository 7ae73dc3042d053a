"""The tables of convergence times and of converged runs: Figures 7 and 8."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import stats

from barak2022 import figure7, settings
from barak2022.figure7 import Measured
from barak2022.published import Cell, barak2022_fig8
from barak2022.readings import CONVERGED, FASTEST, READINGS, Measure, TableCell, likelihoods
from barak2022.repeats import repeated
from barak2022.robustness import NARROW
from paritylab import Protocol, Setup, plots
from paritylab.aliases import Floats
from paritylab.claims import Findings, Lab, Trial, at_least, claim, size
from paritylab.claims.intervals import bootstrap, proportion
from paritylab.running.races import Entry, Race
from paritylab.running.sweeps import Result

NUMBERED = tuple(name for name in settings.BARAK2022 if not name.startswith("*"))
ADAM_RATES = (1e-3, 3e-4, 0.01, 0.1, 1.0)
PUBLISHED_RUNS = 25
BUDGET = 5e12
"""FLOPs for the unsolved runs of one cell's winners, beyond the steps that decide the percentile."""
Answers = tuple[list[Race], list[Result], list[Result]]
"""The rates of every cell; the Transformer's, as far as they can be had; many more runs of the rates that count."""


class Table(Trial):
    """The cells of Figure 7: n = 30, every setting, degree, batch and learning rate, 25 runs each."""

    names = size(quick=["i", "iv", "xi", "xiv", "xv"], full=list(settings.BARAK2022), label="settings")
    degrees = size(quick=[2, 3], full=[2, 3, 4], label="k")
    batches = size(quick=[32, 128], full=[1, 4, 32, 128, 1024], label="B")

    def cells(self) -> list[Cell]:
        """All but the Transformer's, cheapest first."""
        names = [name for name in self.names if name != "*iii"]
        return figure7.cheapest_first(figure7.cells(names, self.degrees, self.batches))

    def transformer(self) -> list[Cell]:
        return figure7.cells(["*iii"] if "*iii" in self.names else [], self.degrees, self.batches)

    def work(self, lab: Lab) -> Answers:
        races = [self.race(lab, cell) for cell in self.cells()]
        row = lab.sweep([part for cell in self.transformer() for part in self.parts(lab, cell)], PUBLISHED_RUNS)
        again = repeated(lab, self.judged((races, row, []))) if self.size != "quick" else []
        return races, row, again

    def race(self, lab: Lab, cell: Cell) -> Race:
        """Every rate of a cell, as far as it takes to compare it with what was printed."""
        rates = (1.0, 0.1) if self.size == "quick" else None
        follow = functools.partial(figure7.follow, cell=cell, budget=BUDGET)
        return lab.pursue(figure7.cell_setups(cell, rates), PUBLISHED_RUNS, follow, q=10)

    def parts(self, lab: Lab, cell: Cell) -> list[Setup]:
        """A cell of the Transformer: every rate that can be had, up to 1.6 times the printed percentile."""
        assert cell.p10 is not None
        protocol = Protocol(max_steps=10 * math.ceil(figure7.FOLLOW * cell.p10 / 10), eval_size=128)
        found = []
        for setup in figure7.cell_setups(cell, ADAM_RATES):
            part = replace(setup, protocol=protocol)
            if lab.affords(part, PUBLISHED_RUNS):
                found.append(part)
            else:
                lab.leave_out(f"Transformer, k={cell.k}, B={cell.batch}, rate {setup.learner.optimiser.lr:g}")
        return found

    def measured(self, got: Answers) -> list[Measured]:
        """What is known of every cell."""
        races, row, _ = got
        found = [Measured(cell, race.rates, race.seconds) for cell, race in zip(self.cells(), races, strict=True)]
        for cell in self.transformer():
            entries = [
                Entry(replace(result.setup, protocol=replace(result.setup.protocol, max_steps=100_000)), result.engine,
                      self.seed, result.records, result.seconds, result.reused, runs=range(PUBLISHED_RUNS), q=10.0)
                for result in row
                if (result.setup.problem.k, result.setup.learner.batch) == (cell.k, cell.batch)
            ]
            if entries:
                found.append(Measured(cell, tuple(entries), sum(entry.seconds for entry in entries)))
        return found

    def judged(self, got: Answers) -> list[Measured]:
        """The cells that the claim is about."""
        return self.measured(got)


Answers = tuple[list[Result], list[Result]]
"""Every rate of every cell, with 25 runs; the rates that some reading takes, with many more."""


class EveryRate(Trial):
    """The cells of both tables without the Transformer's, at every learning rate."""

    names = size(quick=["i", "iv", "xi", "xv"], standard=[*NARROW, "*i", "*ii"], full=[*NUMBERED, "*i", "*ii"],
                 label="settings")
    degrees = size(quick=[2, 3], full=[2, 3, 4], label="k")
    batches = size(quick=[32, 128], standard=[1, 4, 32, 128], full=[1, 4, 32, 128, 1024],
                   label="B")
    rates = size(quick=[1.0, 0.1], full=[1.0, 0.1, 0.01, 0.001], label="learning rates")
    runs = size(PUBLISHED_RUNS)
    max_steps = size(quick=20_000, full=100_000)

    def cells(self) -> list[Cell]:
        return figure7.cells(self.names, self.degrees, self.batches)

    def setups(self) -> list[Setup]:
        return [setup for cell in self.cells() for setup in figure7.cell_setups(cell, self.rates, self.max_steps)]

    def few(self, results: Sequence[Result]) -> list[TableCell]:
        """The cells by their few runs alone."""
        return self.table((list(results), []))

    def table(self, got: Answers) -> list[TableCell]:
        few = [Measure(result) for result in got[0]]
        again = {result.setup.id: Measure(result) for result in got[1]}
        count = len(self.rates)
        parts = [few[place * count : (place + 1) * count] for place in range(len(self.cells()))]
        return [TableCell(cell, rates, {rate.lr: again[rate.result.setup.id] for rate in rates
                                        if rate.result.setup.id in again})
                for cell, rates in zip(self.cells(), parts, strict=True)]


def reading_rows(cells: Sequence[TableCell]) -> list[dict[str, Any]]:
    """One row for each cell and rate."""
    return [{"setting": each.cell.setting, "k": each.cell.k, "batch": each.cell.batch, "lr": rate.lr, "p10": rate.p10,
             "solved": rate.solved, "runs": rate.runs, "published": each.cell.p10,
             "p10 of many": each.many[rate.lr].p10 if rate.lr in each.many else None}
            | {reading: each.read(reading) is rate for reading in READINGS}
            for each in cells for rate in each.rates]


@plots.styled
def draw_readings(cells: Sequence[TableCell]) -> plots.Figure:
    """The share of cells whose percentile is within a factor of the printed one, by each reading."""
    figure = plots.blank(2.4)
    axes = figure.add_subplot(xlabel="factor between measured and printed percentile",
                              ylabel="share of cells", xscale="log", ylim=(0, 1.02), xlim=(1, 20))
    for (reading, words), colour, line in zip(READINGS.items(), plots.COLOURS, plots.LINES, strict=False):
        ratios = np.sort([10 ** abs(each.read(reading).log_ratio(each.cell.p10 or 1)) for each in cells])
        axes.step(ratios, np.arange(1, len(ratios) + 1) / len(ratios), where="post", color=colour, linestyle=line,
                  label=words)
    axes.axvline(2, color=plots.GREY, linestyle="dotted", linewidth=0.8)
    axes.set_xticks([1, 2, 5, 10, 20], ["1", "2", "5", "10", "20"])
    axes.legend(loc="lower right")
    return figure


# --- percentiles --------------------------------------------------------------------------------------------


@claim(
    "barak2022.fig7",
    where="Figure 7; Appendix D.2",
    kind="empirical",
    title="Table of 10th-percentile convergence times at n=30",
    statement="""For 18 architectures, three degrees and five batch sizes the 10th percentile (25 seeds) of the steps
    to perfect accuracy, at the best of four learning rates, matches the published table.""",
    published="265 of 270 numbers of Figure 7 (fig7.csv); 5 cells are blank, or lost a number in the text.",
)
class Fig7(EveryRate):
    """10th percentiles over 25 runs of the steps to 100 % at n = 30, at every learning rate, beside the printed."""

    many = size(quick=100, standard=100, full=1000)
    near = at_least("cells within a factor 2, {reading}", 0.88, part="{reading}")
    possible = at_least("cells whose printed percentile 25 runs can give (95 %), {reading}", 0.9, part="{reading}",
                        claimed=0.95)

    def work(self, lab: Lab) -> Answers:
        few = lab.sweep(self.setups(), self.runs)
        chosen = {cell.read(reading).result.setup.id: cell.read(reading).result.setup
                  for cell in self.printed(self.few(few)) for reading in READINGS}
        return few, lab.sweep(list(chosen.values()), self.many)

    def printed(self, cells: Sequence[TableCell]) -> list[TableCell]:
        """Those with a number that is certain."""
        return [each for each in cells if each.cell.certain and each.cell.p10]

    def judge(self, got: Answers) -> Findings:
        cells = self.printed(self.table(got))
        checks = []
        for place, (reading, words) in enumerate(READINGS.items()):
            ratios = np.array([each.read(reading).log_ratio(each.cell.p10 or 1) for each in cells])
            possible = sum(each.possible(reading, self.rng(7, place, i)) for i, each in enumerate(cells))
            checks += [self.near(*proportion(round(within(ratios, 2) * len(cells)), len(cells)), reading=words),
                       self.possible(*proportion(possible, len(cells)), reading=words)]
        return Findings(checks, reading_rows(cells), self.likelihoods(cells))

    def likelihoods(self, cells: Sequence[TableCell]) -> dict[str, float]:
        """Of the printed table by each reading, and how much more it is than by the first, with an interval."""
        found, numbers = likelihoods(cells, self.rng(8)), {}
        for place, (reading, words) in enumerate(READINGS.items()):
            more: Floats = found[reading] - found[FASTEST]
            low, high = bootstrap(np.sum, more, rng=self.rng(9, place))
            numbers |= {f"log-likelihood of the printed table, {words}": float(found[reading].sum())}
            if reading != FASTEST:
                numbers |= {f"more than for the fastest rate, {words}": float(more.sum()),
                            f"lower end of its interval, {words}": low, f"upper end, {words}": high}
        return {"cells": float(len(cells))} | numbers

    def draw(self, got: Answers) -> plots.Figure:
        return draw_readings(self.printed(self.table(got)))


def rms(values: Floats) -> float:
    return float(np.sqrt(np.mean(np.square(values)))) if len(values) else math.nan


def within(ratios: Floats, factor: float) -> float:
    return float(np.mean(np.abs(ratios) <= math.log10(factor) + 1e-9)) if len(ratios) else math.nan


def tolerance(percent: float) -> float:
    """By how many points two shares of 25 runs may differ."""
    p = max(percent, 4) / 100
    return 4 + 200 * math.sqrt(2 * p * (1 - p) / PUBLISHED_RUNS)


def log_chance(row: Mapping[str, Any]) -> float:
    """The log-probability that 25 further runs solve the printed percentage, by what was seen (Jeffreys' prior).

    >>> round(log_chance({"solved": 25, "runs": 25, "published": 100}), 2)
    -0.34
    """
    printed = round(row["published"] * PUBLISHED_RUNS / 100)
    unsolved = row["runs"] - row["solved"]
    law: Any = stats.betabinom(PUBLISHED_RUNS, row["solved"] + 0.5, unsolved + 0.5)
    return float(law.logpmf(printed))


def within_tolerance(row: Mapping[str, Any]) -> bool:
    """Whether a cell is within its tolerance."""
    return abs(100 * row["solved"] / row["runs"] - row["published"]) <= row["tolerance"]


@plots.styled
def draw_shares(rows: Sequence[Mapping[str, Any]]) -> plots.Figure:
    """Measured against printed percentages, a panel for each reading; circles are within the tolerance."""
    readings = list(dict.fromkeys(row["reading"] for row in rows))
    figure = plots.blank(2.3)
    panels = figure.subplots(1, len(readings), sharex=True, sharey=True)
    spread = np.random.default_rng(0)
    for axes, reading in zip(panels, readings, strict=True):
        for near, colour, marker in ((True, plots.COLOURS[0], "o"), (False, plots.COLOURS[1], "x")):
            shown = [row for row in rows if (row["reading"], row["certain"]) == (reading, True)
                     and within_tolerance(row) is near]
            x, y = ([100 * row["solved"] / row["runs"] if name == "solved" else row[name] for row in shown]
                    for name in ("published", "solved"))
            axes.plot(np.array(x) + spread.uniform(-1.5, 1.5, len(x)), y, marker, color=colour, markersize=3,
                      fillstyle="none")
        axes.plot([0, 100], [0, 100], color=plots.GREY, linestyle="dotted", linewidth=0.8)
        axes.set_title(f"{reading} rate" if reading == FASTEST else reading, fontsize=7)
    panels[0].set_ylabel("runs solved, %")
    figure.supxlabel("printed, %", fontsize=8)
    return figure


# --- shares -------------------------------------------------------------------------------------------------


@claim(
    "barak2022.fig8",
    where="Figure 8",
    kind="empirical",
    title="Share of converged runs at n=30",
    statement="""At the learning rate chosen for Figure 7, settings (i)-(xv) converge in all 25 trials for moderate and
    large batches, and lose robustness only for k=4 at B in {1,4}; the starred settings are less robust.""",
    published="""Figure 8 (fig8.csv; the k = 4 entries of the last four rows are one row too high in print). 'With
    sufficiently large batch sizes, training is extremely robust in settings (i) through (xv)' (caption).""",
)
class Fig8(EveryRate):
    """The percentage of those runs that are solved within 10^5 steps."""

    near = at_least("cells within the tolerance, {reading}", 0.9, part="{reading}")
    robust = at_least("share of runs solved, (i)-(xv), B >= 32, k <= 3, {reading}", 0.98, part="{reading}", claimed=1.0)
    readings = (FASTEST, CONVERGED)

    def work(self, lab: Lab) -> list[Result]:
        return lab.sweep(self.setups(), self.runs)

    def rows(self, got: list[Result]) -> list[dict[str, Any]]:
        """One for each cell and reading."""
        fig8 = barak2022_fig8()
        rows: list[dict[str, Any]] = []
        for each in self.few(got):
            cell = each.cell
            published = fig8[cell.setting, cell.k, cell.batch]
            for reading in self.readings:
                rate = each.read(reading)
                rows.append({"setting": cell.setting, "k": cell.k, "batch": cell.batch, "reading": reading,
                             "lr": rate.lr, "solved": rate.solved, "runs": rate.runs, "published": published.percent,
                             "certain": published.certain, "tolerance": tolerance(published.percent)})
        return rows

    def judge(self, got: list[Result]) -> Findings:
        checks, numbers = [], {}
        for reading in self.readings:
            shown = [row for row in self.rows(got) if row["reading"] == reading]
            judged = [within_tolerance(row) for row in shown if row["certain"]]
            easy = [row for row in shown if row["setting"] in NUMBERED and row["batch"] >= 32 and row["k"] <= 3]
            checks += [self.near(*proportion(sum(judged), len(judged)), reading=READINGS[reading]),
                       self.robust(*proportion(sum(row["solved"] for row in easy), sum(row["runs"] for row in easy)),
                                   reading=READINGS[reading])]
            numbers |= {f"cells, {READINGS[reading]}": float(len(judged)),
                        f"log-likelihood of the printed percentages, {READINGS[reading]}":
                            sum(log_chance(row) for row in shown if row["certain"]),
                        f"smallest share of solved runs, B >= 32, k <= 3, {READINGS[reading]}":
                            min(row["solved"] / row["runs"] for row in easy)}
        return Findings(checks, self.rows(got), numbers)

    def draw(self, got: list[Result]) -> plots.Figure:
        return draw_shares(self.rows(got))


