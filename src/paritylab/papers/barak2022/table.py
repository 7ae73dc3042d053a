"""The tables of convergence times and of converged runs: Figures 7, 8 and 9."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from paritylab import Parity, Protocol, Setup, plots
from paritylab.claims.intervals import proportion
from paritylab.claims.lab import Lab
from paritylab.claims.registry import reproduces
from paritylab.claims.verdicts import Check, Outcome, at_least, at_most
from paritylab.papers.barak2022 import figure7, settings
from paritylab.papers.barak2022.common import Floats, bootstrap
from paritylab.papers.barak2022.figure7 import Measured
from paritylab.papers.barak2022.published import Cell, barak2022_fig8
from paritylab.papers.barak2022.repeats import RUNS, Repeat, repeats
from paritylab.progress import Bar
from paritylab.running.races import Entry
from paritylab.statistics import Interval
from paritylab.storage.records import SOLVED

NUMBERED = tuple(name for name in settings.BARAK2022 if not name.startswith("*"))
ADAM_RATES = (1e-3, 3e-4, 0.01, 0.1, 1.0)
BUDGET = 5e12
"""FLOPs for the unsolved runs of one cell's winners, beyond the steps that decide the percentile."""


@reproduces("barak2022.fig7")
def percentiles(lab: Lab) -> Outcome:
    """10th percentiles over 25 runs of the steps to 100 % at n = 30, at every learning rate, beside the printed."""
    measured = table(lab)
    core = [m for m in measured if m.cell.setting in figure7.CORE and m.cell.certain and m.cell.p10]
    certain = [m for m in measured if m.cell.certain and m.cell.p10]
    printed = np.array([m.log_ratio(m.as_printed) for m in certain])
    matched = [abs(m.log_ratio(entry)) for m in certain if (entry := m.matched)]
    checks = [
        statistic("rms log10 ratio, (i)-(iv) and (xv)", at_most, figure7.rms_log_ratio(core), 0.10, rms,
                  np.array([m.log_ratio(m.as_printed) for m in core]), lab),
        share("cells where some rate is within a factor 1.5", figure7.matched_share(measured), 0.85, len(matched)),
        share("cells within a factor 2, rate 1 left out as in B5", figure7.as_printed_share(measured), 0.88,
              len(printed)),
        statistic("median |log10 ratio|, rate 1 left out as in B5", at_most, figure7.median_log_ratio(measured), 0.06,
                  lambda values: float(np.median(np.abs(values))), printed, lab),
    ]
    again = repeats(lab, measured)
    if any(m.cell.setting == "*i" for m in measured):
        solved, ends = hopeless(measured, again)
        checks.append(Check("largest share of solved runs, (*i) at B=1, k=3 and 4", solved, "< 0.2", solved < 0.2, ends,
                            ends[0] >= 0.2))
    stated = [m.log_ratio(m.best) for m in certain]
    numbers = {
        "cells": float(len(measured)),
        "median |log10 ratio| at the fastest rate": float(np.median(np.abs(stated))),
        "cells within a factor 2 at the fastest rate": within(np.array(stated), 2),
    }
    numbers |= repeated_numbers(certain, again, lab)
    return Outcome(checks, rate_rows(measured, again), draw_table(measured), numbers, what_is_missing(lab, measured))


@reproduces("barak2022.fig8")
def converged(lab: Lab) -> Outcome:
    """The percentage of those runs that are solved within 10^5 steps."""
    measured = [m for m in table(lab) if not (m.best.pending.any() or m.as_printed.pending.any())]
    again, fig8 = repeats(lab, measured), barak2022_fig8()
    rows: list[dict[str, Any]] = []
    near: dict[str, list[bool]] = {"fastest": [], "as printed": []}
    for m in measured:
        published = fig8[m.cell.setting, m.cell.k, m.cell.batch]
        p = max(published.percent, 4) / 100
        tolerance = 4 + 200 * math.sqrt(2 * p * (1 - p) / 25)
        for rule, entry in (("fastest", m.best), ("as printed", m.as_printed)):
            percent = 100 * entry.solved_fraction
            rows.append({"setting": m.cell.setting, "k": m.cell.k, "batch": m.cell.batch, "rule": rule,
                         "lr": entry.setup.learner.optimiser.lr, "percent": percent, "published": published.percent,
                         "certain": published.certain, "tolerance": tolerance}
                        | repeated_share(again.get(entry.setup.id), published.percent))
            if published.certain:
                near[rule].append(abs(percent - published.percent) <= tolerance)
    easy = [m.best for m in measured if m.cell.setting in NUMBERED and m.cell.batch >= 32 and m.cell.k <= 3]
    worst = min(easy, key=lambda entry: entry.solved_fraction)
    checks = [
        share("cells within the tolerance, fastest rate", float(np.mean(near["fastest"])), 0.9, len(near["fastest"])),
        at_least("smallest share of solved runs, (i)-(xv), B >= 32, k <= 3", worst.solved_fraction, 0.92,
                 worst.summary.solved_interval),
    ]
    if lab.size == "quick":
        checks = [at_least("smallest share of solved runs at the best rate", worst.solved_fraction, 1.0)]
    numbers = {"cells": float(len(measured)), "cells within, rates as printed": float(np.mean(near["as printed"]))}
    judged = [row["chance"] for row in rows if row["rule"] == "fastest" and row["certain"]]
    chances = [chance for chance in judged if chance is not None]
    if chances:
        numbers |= {f"cells with {RUNS} runs": float(len(chances)),
                    "share whose printed percentage 25 runs can give (95 %)": float(np.mean(np.array(chances) > 0.05))}
    return Outcome(checks, rows, draw_shares(rows), numbers, what_is_missing(lab, measured))


@reproduces("barak2022.fig9")
def coarse_scaling(lab: Lab) -> Outcome:
    """The smallest alpha with p10(n) <= p10(10) (n - 9)^alpha over n = 10, 20, 30, for every cell."""
    quick = lab.size == "quick"
    names = lab.pick("settings", quick=["i", "iv", "xv"], standard=[*NUMBERED, "*i", "*ii"],
                     full=list(settings.BARAK2022))
    degrees = lab.pick("k", quick=[2, 3], full=[2, 3, 4])
    batches = lab.pick("B", quick=[32], full=[1, 4, 32, 128, 1024])
    most = lab.pick("max_steps", quick=1500, full=100_000)
    rows: list[dict[str, Any]] = []
    points = [(name, k, batch) for name in names for k in degrees for batch in batches]
    with Bar("Figure 9", len(points), lab.progress) as bar:
        for done, (name, k, batch) in enumerate(points):
            bar.show(done, f"({name}) k={k} B={batch}")
            rates = (1.0, 0.1) if quick else figure7.grid(name)
            p10 = {n: lab.race([Setup(Parity(n, k), settings.barak2022(name, k, lr, batch),
                                      Protocol(max_steps=most, eval_size=128)) for lr in rates],
                               runs=25, progress=False).best.percentile for n in (10, 20, 30)}
            alpha = max(math.log(p10[n] / p10[10]) / math.log(n - 9) for n in (20, 30)) if p10[10] < math.inf else None
            rows.append({"setting": name, "k": k, "batch": batch, "alpha": alpha}
                        | {f"p10 at {n}": value for n, value in p10.items()})
    judged = [row for row in rows if row["batch"] >= 32 and row["alpha"] is not None]
    good = [row["alpha"] <= 1.2 * row["k"] for row in judged]
    medians = [float(np.median([row["alpha"] for row in judged if row["k"] == k])) for k in degrees]
    checks = [share("cells with B >= 32 and alpha <= 1.2 k", float(np.mean(good)), 0.9, len(good))]
    for first, (low, high) in zip(degrees, itertools.pairwise(medians), strict=False):
        checks.append(Check(f"median alpha at k={first + 1} - at k={first}", high - low, "> 0", high > low))
    return Outcome(checks, rows, draw_exponents(rows))


# --- measuring ----------------------------------------------------------------------------------------------


def table(lab: Lab) -> list[Measured]:
    """Figure 7, cell by cell, cheapest first; the Transformer's row where there are records of it, or a GPU."""
    names = lab.pick("settings", quick=["i", "iv", "xi", "xiv", "xv"], full=list(settings.BARAK2022))
    degrees = lab.pick("k", quick=[2, 3], full=[2, 3, 4])
    batches = lab.pick("B", quick=[32, 128], full=[1, 4, 32, 128, 1024])
    runs, most = 25, 100_000
    rates = (1.0, 0.1) if lab.size == "quick" else None
    cells = figure7.cheapest_first(figure7.cells([name for name in names if name != "*iii"], degrees, batches))
    measured: list[Measured] = []
    with Bar("Figure 7", len(cells), lab.progress) as bar:
        for cell in cells:
            bar.show(len(measured), f"({cell.setting}) k={cell.k} B={cell.batch}")
            found = figure7.measure_cell(cell, runs, rates, most, lab.seed, lab.engine, lab.threads, lab.store, False,
                                         BUDGET)
            for entry in found.rates:
                lab.count(entry.setup, entry.engine, len(entry.records), int(entry.records.steps.sum()), entry.reused)
            measured.append(found)
    if "*iii" in names:
        measured += filter(None, (transformer(lab, cell, runs) for cell in figure7.cells(["*iii"], degrees, batches)))
    return measured


def transformer(lab: Lab, cell: Cell, runs: int) -> Measured | None:
    """A cell of the Transformer: every rate that can be had, up to 1.6 times the printed percentile."""
    assert cell.p10 is not None
    limit = 10 * math.ceil(figure7.FOLLOW * cell.p10 / 10)
    entries = []
    for setup in figure7.cell_setups(cell, ADAM_RATES):
        part = Setup(setup.problem, setup.learner, Protocol(max_steps=limit, eval_size=128))
        if not lab.affords(part, runs):
            lab.leave_out(f"Transformer, k={cell.k}, B={cell.batch}, rate {setup.learner.optimiser.lr:g}")
            continue
        result = lab.measure(part, runs)
        entries.append(Entry(setup, result.engine, lab.seed, result.records, result.seconds, result.reused,
                             runs=range(runs), q=10.0))
    return Measured(cell, tuple(entries), sum(entry.seconds for entry in entries)) if entries else None


def what_is_missing(lab: Lab, measured: Sequence[Measured]) -> str:
    row = sum(m.cell.setting == "*iii" for m in measured)
    if lab.size == "quick" or row == 15:
        return ""
    return f"{row} of the Transformer's 15 cells: those whose runs could be had from a GPU"


# --- judging ------------------------------------------------------------------------------------------------


def rms(values: Floats) -> float:
    return float(np.sqrt(np.mean(np.square(values)))) if len(values) else math.nan


def within(ratios: Floats, factor: float) -> float:
    return float(np.mean(np.abs(ratios) <= math.log10(factor) + 1e-9)) if len(ratios) else math.nan


def share(name: str, value: float, bound: float, cells: int) -> Check:
    if not cells:
        return at_least(name, None, bound)
    return at_least(name, value, bound, proportion(round(value * cells), cells)[1])


def statistic(
    name: str, rule: Callable[..., Check], value: float, bound: float, function: Callable[[Floats], float],
    values: Floats, lab: Lab,
) -> Check:
    """A check of a statistic over cells, with an interval from resampled cells."""
    return rule(name, value, bound, bootstrap(function, values, rng=lab.rng(7)))


# --- showing ------------------------------------------------------------------------------------------------


def hopeless(measured: Sequence[Measured], again: Mapping[str, Repeat]) -> tuple[float, Interval]:
    """The largest solved share over all rates in the cells of ``HOPELESS``, of as many runs as there are of each."""
    entries = [entry for m in measured if (m.cell.setting, m.cell.k, m.cell.batch) in figure7.HOPELESS
               for entry in m.rates]
    records = [again[entry.setup.id].result.records if entry.setup.id in again else entry.records for entry in entries]
    counts = [(int(np.sum(each.status == SOLVED)), len(each)) for each in records]
    return max(proportion(*count) for count in counts)


def repeated_numbers(certain: Sequence[Measured], again: Mapping[str, Repeat], lab: Lab) -> dict[str, float]:
    """What many more runs say about the printed percentiles, at the rates of the printed table."""
    cells = [(m, again[m.as_printed.setup.id]) for m in certain if m.as_printed.setup.id in again]
    if not cells:
        return {}
    generator = lab.rng(8)
    chances = np.array([repeat.chance_of_p10(m.cell.p10 or 0, generator) for m, repeat in cells])
    ratios = np.array([math.log10(repeat.p10 / (m.cell.p10 or 0)) for m, repeat in cells])
    core = ratios[[m.cell.setting in figure7.CORE for m, _ in cells]]
    return {
        f"cells with {RUNS} runs": float(len(cells)),
        f"rms log10 ratio, (i)-(iv) and (xv), {RUNS} runs": rms(core),
        f"median |log10 ratio|, {RUNS} runs": float(np.median(np.abs(ratios))),
        "share whose printed percentile 25 runs can give (95 %)": float(np.mean(chances > 0.05)),
    }


def repeated_share(repeat: Repeat | None, printed: float) -> dict[str, Any]:
    names = (f"percent of {RUNS}", "low", "high", "chance")
    if repeat is None:
        return dict.fromkeys(names)
    share, (low, high) = repeat.solved
    return dict(zip(names, (100 * share, 100 * low, 100 * high, repeat.chance_of_percent(printed)), strict=True))


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


@plots.styled
def heat_map(values: Mapping[tuple[str, int, int], float], label: str, limit: float) -> Any:
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


def draw_table(measured: Sequence[Measured]) -> Any:
    ratios = {(m.cell.setting, m.cell.k, m.cell.batch): m.log_ratio(m.as_printed) for m in measured if m.cell.p10}
    return heat_map(ratios, "log10(measured / printed)", 0.5)


def draw_shares(rows: Sequence[Mapping[str, Any]]) -> Any:
    """Measured minus printed percentage at the fastest rate."""
    gaps = {(row["setting"], row["k"], row["batch"]): row["percent"] - row["published"]
            for row in rows if row["rule"] == "fastest"}
    return heat_map(gaps, "measured - printed (points)", 100)


@plots.styled
def draw_exponents(rows: Sequence[Mapping[str, Any]]) -> Any:
    """Every cell's alpha for each k, the median marked, beside the bound 1.2 k."""
    figure = plots.blank(2.2)
    axes = figure.add_subplot(xlabel="parity degree k", ylabel=r"exponent $\alpha$")
    degrees = sorted({row["k"] for row in rows})
    spread = np.random.default_rng(0)
    for k in degrees:
        kinds = ((True, plots.COLOURS[0], "o", "B >= 32"), (False, plots.COLOURS[1], "x", "B < 32"))
        for wide, colour, marker, label in kinds:
            values = [row["alpha"] for row in rows
                      if row["k"] == k and (row["batch"] >= 32) == wide and row["alpha"] is not None]
            values = [value for value in values if math.isfinite(value)]
            places = k + spread.uniform(-0.18, 0.18, len(values))
            axes.plot(places, values, marker, color=colour, markersize=3, fillstyle="none",
                      label=label if k == degrees[0] and values else None)
            if wide and values:
                axes.plot([k - 0.25, k + 0.25], [np.median(values)] * 2, color="black")
    ends = np.array([degrees[0] - 0.3, degrees[-1] + 0.3])
    axes.plot(ends, 1.2 * ends, color=plots.GREY, linestyle="dashed", label="1.2 k")
    axes.set_xticks(degrees)
    axes.legend(loc="upper left")
    return figure

