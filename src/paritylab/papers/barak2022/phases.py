"""Plateau, then drop: the training curves of Figures 1-left, 6 and 17."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

from scipy import stats

from paritylab import MLP, SGD, Adam, Learner, Parity, PolyNet, Protocol, Setup, Transformer
from paritylab.claims.lab import Lab
from paritylab.claims.registry import reproduces
from paritylab.claims.verdicts import Check, Outcome, at_least, holds, significant
from paritylab.papers.barak2022 import settings
from paritylab.papers.barak2022.common import (
    FIXED_8192,
    Floats,
    bootstrap,
    by_run,
    converging,
    median,
    ratio_of_medians,
    times,
)
from paritylab.papers.barak2022.plateaus import figure_of, phases, plateau_check, rows, training_curves

# --- Figure 1, left -------------------------------------------------------------------------------------------------


def figure_1(n: int, protocol: Protocol) -> dict[str, Setup]:
    """The eight panels; the Transformer alone is trained by Adam."""
    setting = settings.barak2022
    learners = {
        "(i) B=32": setting("i", 3, 0.5),
        "(i) B=1024": setting("i", 3, 0.05, 1024),
        "(ii) B=1": setting("ii", 3, 0.05, 1),
        "(iv)": setting("iv", 3, 0.05),
        "(vii)": setting("vii", 3, 0.2),
        "(x)": Learner(MLP(1, "sinusoid:3,2"), optimiser=SGD(0.05)),
        "(*iii)": Learner(Transformer(), optimiser=Adam(5e-4)),
        "(xv)": setting("xv", 3, 0.07),
    }
    return {name: Setup(Parity(n, 3), learner, protocol) for name, learner in learners.items()}


@reproduces("barak2022.fig1-left")
def phase_transitions(lab: Lab) -> Outcome:
    """Eight networks on one parity: chance error for most of the run, then a drop."""
    n = lab.pick("n", quick=30, full=50)
    runs = lab.pick("runs", quick=10, full=10)
    protocol = replace(FIXED_8192, max_steps=lab.pick("max_steps", quick=20_000, full=100_000))
    every = figure_1(n, protocol)
    names = lab.pick("panels", quick=["(i) B=32", "(vii)", "(xv)"], standard=[p for p in every if p != "(*iii)"],
                     full=list(every))
    panels = phases(lab, {name: every[name] for name in names}, runs)
    checks: list[Check] = []
    for name, panel in panels.items():
        checks.append(converging(name, panel.records, 0.7))
        checks.append(plateau_check(name, panel, low=0.25 if name == "(iv)" else 0.4))
    note = "" if "(*iii)" in panels else "without the Transformer, which needs a GPU" if lab.size != "quick" else ""
    return Outcome(checks, rows(panels), figure_of(lab, panels), note=note)


# --- Figure 6 -------------------------------------------------------------------------------------------------------


@reproduces("barak2022.fig6-row1")
def one_network_many_tasks(lab: Lab) -> Outcome:
    """The same network, batch and rate on tasks of growing n and growing k."""
    width = lab.pick("width", quick=30, full=100)
    tasks = lab.pick("(n, k)", quick=[[20, 2], [20, 3], [40, 3]],
                     full=[[30, 3], [60, 3], [90, 3], [30, 4], [30, 5], [30, 6]])
    runs = lab.pick("runs", quick=10, full=10)
    protocol = replace(FIXED_8192, max_steps=lab.pick("max_steps", quick=20_000, full=2_000_000))
    learner = Learner(MLP(width), optimiser=SGD(0.1))
    setups = {(n, k): Setup(Parity(n, k), learner, protocol) for n, k in tasks}
    results = dict(zip(setups, lab.sweep(list(setups.values()), runs), strict=True))
    checks = [converging(f"(n, k) = {task}", result.records, 0.5 if task == (30, 6) else 0.8)
              for task, result in results.items()]
    for easy, hard in neighbours(results):
        first, second = (times(results[task].records) for task in (easy, hard))
        ratio = ratio_of_medians(second, first)
        test = stats.mannwhitneyu(first, second)
        longer = None if math.isnan(ratio) else ratio > 1
        checks.append(holds(f"median t_c of {hard} / of {easy}", longer, "> 1", ratio))
        checks.append(significant(f"Mann-Whitney p of {easy} and {hard}", float(test.pvalue), 0.01))
    data = [{"n": n, "k": k, **row} for (n, k), result in results.items() for row in by_run(result.records)]
    panels = {f"n={n}, k={k}": (setups[n, k], result.records) for (n, k), result in results.items()}
    return Outcome(checks, data, training_curves(lab, panels))


def neighbours(tasks: Mapping[tuple[int, int], Any]) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Consecutive tasks, easier first: along n where k is the same, and along k where n is.

    >>> neighbours({(20, 2): 0, (20, 3): 0, (40, 3): 0})
    [((20, 3), (40, 3)), ((20, 2), (20, 3))]
    """
    pairs = []
    for same, grows in ((1, 0), (0, 1)):
        for value in sorted({task[same] for task in tasks}):
            line = sorted((task for task in tasks if task[same] == value), key=lambda task: task[grows])
            pairs += pairwise(line)
    return pairs


@reproduces("barak2022.fig6-row2")
def polynet_at_all_batches(lab: Lab) -> Outcome:
    """The degree-3 PolyNet from one example a step to 1024."""
    n = lab.pick("n", quick=30, full=50)
    pairs = lab.pick("(B, lr)", quick=[[1, 0.005], [16, 0.1], [256, 0.1]],
                     full=[[1, 0.005], [4, 0.01], [16, 0.1], [64, 0.1], [256, 0.1], [1024, 0.1]])
    runs = lab.pick("runs", quick=10, full=10)
    protocol = replace(FIXED_8192, max_steps=lab.pick("max_steps", quick=20_000, full=100_000))
    setups = {int(batch): Setup(Parity(n, 3), Learner(PolyNet(3), optimiser=SGD(lr), batch=int(batch)), protocol)
              for batch, lr in pairs}
    results = dict(zip(setups, lab.sweep(list(setups.values()), runs), strict=True))
    checks = [converging(f"B={batch}", result.records, 0.8) for batch, result in results.items()]
    one, many = 1, max(batch for batch in setups if batch <= 64)
    samples = [times(results[batch].records) for batch in (one, many)]
    interval = bootstrap(ratio_of_medians, *samples, rng=lab.rng())
    checks.append(at_least(f"median t_c at B={one} / at B={many}", ratio_of_medians(*samples), 3, interval))
    data = [{"batch": batch, **row} for batch, result in results.items() for row in by_run(result.records)]
    return Outcome(checks, data, training_curves(lab, {f"B={b}": (setups[b], r.records) for b, r in results.items()}))


@reproduces("barak2022.fig6-row3")
def barely_wide(lab: Lab) -> Outcome:
    """Networks just wide enough for the parity, one example at a time: some runs converge, some get stuck."""
    n = lab.pick("n", quick=20, full=50)
    names = lab.pick("settings", quick=["*i", "vii", "xi"], full=["*i", "*ii", "vii", "viii", "xi", "xii"])
    runs = lab.pick("runs", quick=25, full=25)
    protocol = replace(FIXED_8192, eval_every=100, max_steps=lab.pick("max_steps", quick=50_000, full=1_000_000))
    rates = {name: 0.001 if name == "*ii" else 0.1 for name in names}
    setups, slower = ({f"({name})": Setup(Parity(n, 3), settings.barak2022(name, 3, rates[name] / by, 1), protocol)
                       for name in names} for by in (1, 10))
    results = dict(zip(setups, lab.sweep(list(setups.values()), runs), strict=True))
    others = zip(slower, lab.sweep(list(slower.values()), runs), strict=True)
    numbers = {f"share solved at a tenth of the rate, {name}": other.summary.solved_fraction for name, other in others}
    checks = [converging(name, result.records, 2 / 25) for name, result in results.items()]
    partial = sum(0.1 <= result.summary.solved_fraction <= 0.95 for result in results.values())
    checks.append(at_least("settings of which 10 % to 95 % converge", partial, 2))
    data = [{"setting": name, **row} for name, result in results.items() for row in by_run(result.records)]
    figure = training_curves(lab, {name: (setups[name], result.records) for name, result in results.items()})
    return Outcome(checks, data, figure, numbers, "rate 0.001 for (*ii), whose printed rate of 0.01 diverges")


@reproduces("barak2022.fig6-row4")
def large_models(lab: Lab) -> Outcome:
    """Width-1000 MLPs and the Transformer at small and large batches; only the wide polynomial net has no plateau."""
    n = lab.pick("n", quick=30, full=50)
    width = lab.pick("width", quick=300, full=1000)
    large = lab.pick("large batch", quick=256, full=1024)
    runs = lab.pick("runs", quick=5, full=5)
    protocol = replace(FIXED_8192, max_steps=lab.pick("max_steps", quick=1500, full=100_000))
    relu, cubic, transformer = MLP(width), MLP(width, "power:3"), Transformer()
    every = {
        "(iii) B=1": Learner(relu, optimiser=SGD(0.1), batch=1),
        "(iii) large B": Learner(relu, optimiser=SGD(0.1), batch=large),
        "(vi) B=1": Learner(cubic, optimiser=SGD(0.001), batch=1),
        "(vi) large B": Learner(cubic, optimiser=SGD(0.01), batch=large),
        "(*iii) B=32": Learner(transformer, optimiser=Adam(3e-4), batch=32),
        "(*iii) large B": Learner(transformer, optimiser=Adam(3e-4), batch=large),
    }
    names = lab.pick("panels", quick=["(iii) large B", "(vi) large B"], standard=[p for p in every if "*" not in p],
                     full=list(every))
    panels = phases(lab, {name: Setup(Parity(n, 3), every[name], protocol) for name in names}, runs)
    checks = [converging(name, panel.records, 0.8) for name, panel in panels.items()]
    checks.append(plateau_check("(vi) large B", panels["(vi) large B"], high=0.3))
    checks.append(plateau_check("(iii) large B", panels["(iii) large B"], low=0.5))
    note = "" if len(panels) == len(every) else "without the Transformer, which needs a GPU"
    return Outcome(checks, rows(panels), figure_of(lab, panels), note=note)


# --- Figure 17 ------------------------------------------------------------------------------------------------------


@reproduces("barak2022.fig17")
def no_plateau(lab: Lab) -> Outcome:
    """z^3 MLPs lose their plateau as width and batch grow; a ReLU MLP keeps it."""
    n = lab.pick("n", quick=30, full=50)
    widths = lab.pick("widths", quick=[10, 300], full=[10, 100, 1000])
    batches = lab.pick("batches", quick=[32, 256], full=[1, 32, 1024])
    runs = lab.pick("runs", quick=10, full=10)
    protocol = replace(FIXED_8192, max_steps=lab.pick("max_steps", quick=1500, full=100_000))
    learners = {}
    for width in widths:
        for batch in batches:
            lr = (0.05 if width == 10 else 0.01) / (10 if batch == 1 else 1)
            learners[f"z^3, r={width}, B={batch}"] = Learner(MLP(width, "power:3"), optimiser=SGD(lr), batch=batch)
    width, batch = widths[-1], batches[-1]
    relu, small, large = f"ReLU, r={width}, B={batch}", "z^3, r=10, B=32", f"z^3, r={width}, B={batch}"
    learners[relu] = Learner(MLP(width), optimiser=SGD(0.1), batch=batch)
    panels = phases(lab, {name: Setup(Parity(n, 3), learner, protocol) for name, learner in learners.items()}, runs)
    samples = panels[small].plateau, panels[large].plateau
    interval = bootstrap(difference_of_medians, *samples, rng=lab.rng())
    difference = panels[small].fraction - panels[large].fraction
    checks = [
        plateau_check(large, panels[large], high=0.3),
        at_least(f"difference of these medians, {small} less {large}", difference, 0.2, interval),
        holds("the 95 % interval of that difference is above 0", interval[0] > 0, "lower end > 0", interval[0]),
        plateau_check(relu, panels[relu], low=0.5),
    ]
    numbers = {f"plateau, {name}": panel.fraction for name, panel in panels.items()}
    return Outcome(checks, rows(panels), figure_of(lab, panels), numbers)


def difference_of_medians(first: Floats, second: Floats) -> float:
    return median(first) - median(second)

