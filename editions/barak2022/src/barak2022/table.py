"""The tables of convergence times and of converged runs: Figures 7 and 8."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from barak2022 import figure7, settings
from barak2022.figure7 import Measured
from barak2022.published import Cell, barak2022_fig8
from barak2022.repeats import RUNS, Repeat, repeated, repeats
from paritylab import Protocol, Setup, plots
from paritylab.aliases import Floats, Interval
from paritylab.claims import Findings, Lab, Rule, Trial, at_least, at_most, claim, size
from paritylab.claims.intervals import bootstrap, proportion
from paritylab.running.races import Entry, Race
from paritylab.running.sweeps import Result
from paritylab.storage.records import SOLVED

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

    def what_is_missing(self, measured: Sequence[Measured]) -> str:
        row = sum(m.cell.setting == "*iii" for m in measured)
        if self.size == "quick" or row == 15:
            return ""
        return f"{row} of the Transformer's 15 cells: those whose runs could be had from a GPU"


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
class Fig7(Table):
    """10th percentiles over 25 runs of the steps to 100 % at n = 30, at every learning rate, beside the printed."""

    core = at_most("rms log10 ratio, (i)-(iv) and (xv)", 0.10)
    matched = at_least("cells where some rate is within a factor 1.5", 0.85)
    as_printed = at_least("cells within a factor 2, rate 1 left out as in B5", 0.88)
    typical = at_most("median |log10 ratio|, rate 1 left out as in B5", 0.06)
    hopeless = Rule("largest share of solved runs, (*i) at B=1, k=3 and 4", "< 0.2", only=("standard", "full"))

    def judge(self, got: Answers) -> Findings:
        measured, again = self.judged(got), repeats(got[2])
        certain = [m for m in measured if m.cell.certain and m.cell.p10]
        core = [m for m in certain if m.cell.setting in figure7.CORE]
        printed, printed_core = (np.array([m.log_ratio(m.as_printed) for m in each]) for each in (certain, core))
        checks = [
            self.core(figure7.rms_log_ratio(core), bootstrap(rms, printed_core, rng=self.rng(7))),
            self.matched(*share_of_cells(figure7.matched_share(measured), len(certain))),
            self.as_printed(*share_of_cells(figure7.as_printed_share(measured), len(certain))),
            self.typical(figure7.median_log_ratio(measured), bootstrap(median_size, printed, rng=self.rng(7))),
        ]
        if self.size != "quick":
            solved, ends = hopeless(measured, again)
            checks.append(self.hopeless(solved, passed=solved < 0.2, interval=ends, certain=ends[0] >= 0.2))
        stated = np.array([m.log_ratio(m.best) for m in certain])
        numbers = {
            "cells": float(len(measured)),
            "median |log10 ratio| at the fastest rate": median_size(stated),
            "cells within a factor 2 at the fastest rate": within(stated, 2),
        }
        numbers |= repeated_numbers(certain, again, self.rng(8))
        return Findings(checks, rate_rows(measured, again), numbers, self.what_is_missing(measured))

    def draw(self, got: Answers) -> plots.Figure:
        measured = self.judged(got)
        ratios = {(m.cell.setting, m.cell.k, m.cell.batch): m.log_ratio(m.as_printed) for m in measured if m.cell.p10}
        return heat_map(ratios, "log10(measured / printed)", 0.5)


def rms(values: Floats) -> float:
    return float(np.sqrt(np.mean(np.square(values)))) if len(values) else math.nan


def median_size(values: Floats) -> float:
    return float(np.median(np.abs(values)))


def within(ratios: Floats, factor: float) -> float:
    return float(np.mean(np.abs(ratios) <= math.log10(factor) + 1e-9)) if len(ratios) else math.nan


def share_of_cells(value: float, cells: int) -> tuple[float | None, Interval | None]:
    """A share of cells, with its interval."""
    return (value, proportion(round(value * cells), cells)[1]) if cells else (None, None)


def hopeless(measured: Sequence[Measured], again: Mapping[str, Repeat]) -> tuple[float, Interval]:
    """The largest solved share over all rates in the cells of ``HOPELESS``, of as many runs as there are of each."""
    entries = [entry for m in measured if (m.cell.setting, m.cell.k, m.cell.batch) in figure7.HOPELESS
               for entry in m.rates]
    records = [again[entry.setup.id].result.records if entry.setup.id in again else entry.records for entry in entries]
    counts = [(int(np.sum(each.status == SOLVED)), len(each)) for each in records]
    return max(proportion(*count) for count in counts)


def repeated_numbers(
    certain: Sequence[Measured], again: Mapping[str, Repeat], rng: np.random.Generator
) -> dict[str, float]:
    """What many more runs say about the printed percentiles, at the rates of the printed table."""
    cells = [(m, again[m.as_printed.setup.id]) for m in certain if m.as_printed.setup.id in again]
    if not cells:
        return {}
    chances = np.array([repeat.chance_of_p10(m.cell.p10 or 0, rng) for m, repeat in cells])
    ratios = np.array([math.log10(repeat.p10 / (m.cell.p10 or 0)) for m, repeat in cells])
    core = ratios[[m.cell.setting in figure7.CORE for m, _ in cells]]
    return {
        f"cells with {RUNS} runs": float(len(cells)),
        f"rms log10 ratio, (i)-(iv) and (xv), {RUNS} runs": rms(core),
        f"median |log10 ratio|, {RUNS} runs": median_size(ratios),
        "share whose printed percentile 25 runs can give (95 %)": float(np.mean(chances > 0.05)),
    }


def rate_rows(measured: Sequence[Measured], again: Mapping[str, Repeat]) -> list[dict[str, Any]]:
    """One row for each cell and rate."""

    def repeated(setup_id: str) -> dict[str, Any]:
        names = (f"p10 of {RUNS}", f"low of {RUNS}", f"high of {RUNS}", f"solved of {RUNS}")
        repeat = again.get(setup_id)
        values = (None,) * 4 if repeat is None else (repeat.p10, *repeat.interval, repeat.solved[0])
        return dict(zip(names, values, strict=True))

    return [
        {"setting": m.cell.setting, "k": m.cell.k, "batch": m.cell.batch, "lr": entry.setup.learner.optimiser.lr,
         "p10": entry.percentile, "p10_at_least": entry.low, "low": entry.interval[0], "high": entry.interval[1],
         "solved": entry.solved_fraction, "horizon": entry.horizon, "published": m.cell.p10, "certain": m.cell.certain,
         "fastest": entry is m.best, "as_printed": entry is m.as_printed, "matched": entry is m.matched,
         "engine": entry.engine} | repeated(entry.setup.id)
        for m in measured for entry in m.rates
    ]


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
class Fig8(Table):
    """The percentage of those runs that are solved within 10^5 steps."""

    near = at_least("cells within the tolerance, fastest rate", 0.9, only=("standard", "full"))
    easy = at_least("smallest share of solved runs, (i)-(xv), B >= 32, k <= 3", 0.92, only=("standard", "full"))
    all_solved = at_least("smallest share of solved runs at the best rate", 1.0, only=("quick",))

    def judged(self, got: Answers) -> list[Measured]:
        """Those whose runs all came to an end, at the rates of both rules."""
        return [m for m in self.measured(got) if not (m.best.pending.any() or m.as_printed.pending.any())]

    def rows(self, got: Answers) -> list[dict[str, Any]]:
        """Two for each cell: at the fastest rate, and at that of the printed table."""
        again, fig8 = repeats(got[2]), barak2022_fig8()
        rows: list[dict[str, Any]] = []
        for m in self.judged(got):
            published = fig8[m.cell.setting, m.cell.k, m.cell.batch]
            p = max(published.percent, 4) / 100
            tolerance = 4 + 200 * math.sqrt(2 * p * (1 - p) / PUBLISHED_RUNS)
            for rule, entry in (("fastest", m.best), ("as printed", m.as_printed)):
                rows.append({"setting": m.cell.setting, "k": m.cell.k, "batch": m.cell.batch, "rule": rule,
                             "lr": entry.setup.learner.optimiser.lr, "percent": 100 * entry.solved_fraction,
                             "published": published.percent, "certain": published.certain, "tolerance": tolerance}
                            | repeated_share(again.get(entry.setup.id), published.percent))
        return rows

    def judge(self, got: Answers) -> Findings:
        measured, rows = self.judged(got), self.rows(got)
        fastest, printed = ([row for row in rows if row["rule"] == rule and row["certain"]]
                            for rule in ("fastest", "as printed"))
        near, near_printed = (
            float(np.mean([abs(row["percent"] - row["published"]) <= row["tolerance"] for row in each]))
            for each in (fastest, printed))
        easy = [m.best for m in measured if m.cell.setting in NUMBERED and m.cell.batch >= 32 and m.cell.k <= 3]
        worst = min(easy, key=lambda entry: entry.solved_fraction)
        if self.size == "quick":
            checks = [self.all_solved(worst.solved_fraction)]
        else:
            checks = [self.near(*share_of_cells(near, len(fastest))),
                      self.easy(worst.solved_fraction, worst.summary.solved_interval)]
        numbers = {"cells": float(len(measured)), "cells within, rates as printed": near_printed}
        chances = [row["chance"] for row in fastest if row["chance"] is not None]
        if chances:
            numbers |= {f"cells with {RUNS} runs": float(len(chances)),
                        "share whose printed percentage 25 runs can give (95 %)":
                            float(np.mean(np.array(chances) > 0.05))}
        return Findings(checks, rows, numbers, self.what_is_missing(measured))

    def draw(self, got: Answers) -> plots.Figure:
        """Measured minus printed percentage at the fastest rate."""
        gaps = {(row["setting"], row["k"], row["batch"]): row["percent"] - row["published"]
                for row in self.rows(got) if row["rule"] == "fastest"}
        return heat_map(gaps, "measured - printed (points)", 100)


def repeated_share(repeat: Repeat | None, printed: float) -> dict[str, Any]:
    names = (f"percent of {RUNS}", "low", "high", "chance")
    if repeat is None:
        return dict.fromkeys(names)
    share, (low, high) = repeat.solved
    return dict(zip(names, (100 * share, 100 * low, 100 * high, repeat.chance_of_percent(printed)), strict=True))


@plots.styled
def heat_map(values: Mapping[tuple[str, int, int], float], label: str, limit: float) -> plots.Figure:
    """Settings down, batch sizes within degrees across; white at 0 and where there is nothing."""
    names = [name for name in settings.BARAK2022 if any(key[0] == name for key in values)]
    columns = sorted({key[1:] for key in values})
    grid = np.array([[values.get((name, *column), np.nan) for column in columns] for name in names])
    figure = plots.blank(1.0 + 0.14 * max(len(names), 6))
    axes = figure.add_subplot(xlabel="batch size, for each k")
    image = axes.imshow(np.clip(grid, -limit, limit), cmap="PuOr", aspect="auto", vmin=-limit, vmax=limit)
    axes.set_yticks(range(len(names)), [f"({name})" for name in names], fontsize=6)
    axes.set_xticks(range(len(columns)), [str(batch) for _, batch in columns], rotation=90, fontsize=6)
    degrees = sorted({k for k, _ in columns})
    for k in degrees:
        places = [i for i, column in enumerate(columns) if column[0] == k]
        axes.text(float(np.mean(places)), -0.9, f"k = {k}", ha="center", fontsize=7)
        if places[0]:
            axes.axvline(places[0] - 0.5, color="black", linewidth=0.8)
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    figure.colorbar(image, ax=axes, label=label, shrink=0.9, pad=0.02)
    return figure
