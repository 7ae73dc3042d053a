"""More steps on the output layer, and other biases: Theorem 4.3 and the remark on biases of Section 4.1."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from paritylab import plots
from paritylab.claims.lab import Lab
from paritylab.claims.registry import reproduces
from paritylab.claims.verdicts import Check, Outcome, at_most
from paritylab.papers.abbe2024.one_step import Trials, smallest, trials
from paritylab.plots import Series
from paritylab.theory.one_step import cube_outputs, population_step, sgd_steps


@reproduces("abbe2024.thm4-3")
def plain_sgd(lab: Lab) -> Outcome:
    """Networks that classify all inputs after SGD on the output layer, against the number of samples seen."""
    dims = lab.pick("d", quick=[6, 8, 10], full=[6, 8, 10])
    seeds = lab.pick("seeds", quick=100, full=1000)
    factors = (1 / 16, 1 / 4, 1, 4, 16)
    found: dict[tuple[int, int, bool], dict[float, Trials]] = {}
    for d, batch, noisy in itertools.product(dims, (1, 64), (False, True)):
        found[d, batch, noisy] = {factor: sgd_trials(lab, seeds, d, batch, noisy, factor) for factor in factors}
    asked = {place: [points[factor] for factor in (1, 4, 16)] for place, points in found.items()}
    checks = [
        smallest("share of perfect networks at T B = 16 d^5, smallest over d, B and noise",
                 [points[-1] for points in asked.values()], 0.9),
        largest_drop("largest fall of that share as T B grows fourfold, from d^5 on", asked),
    ]
    data = [each.row(d=d, batch=batch, noise=noisy, samples=round(factor * d**5))
            for (d, batch, noisy), points in found.items() for factor, each in points.items()]
    numbers = {f"smallest share at T B = {factor:g} d^5": min(points[factor].share[0] for points in found.values())
               for factor in factors}
    return Outcome(checks, data, draw_sgd(found), numbers, f"{seeds} seeds instead of 10")


def sgd_trials(lab: Lab, seeds: int, d: int, batch: int, noisy: bool, factor: float) -> Trials:
    """The widths' and samples' seeds are those of the other numbers of steps."""
    steps = round(factor * d**5 / batch)
    tau = 0.2 * math.sqrt(steps) / d**2 if noisy else 0.0
    runs = (sgd_steps(d, d**4, steps, batch, tau, lab.rng(43, d, batch, seed)) for seed in range(seeds))
    return Trials(sum(run.errors == 0 for run in runs), seeds)


def largest_drop(name: str, curves: Mapping[Any, Sequence[Trials]]) -> Check:
    """The largest fall between neighbours, at most 0; its interval is the normal one of a difference, by add-one."""
    pairs = [pair for points in curves.values() for pair in itertools.pairwise(points)]
    before, after = max(pairs, key=lambda pair: pair[0].share[0] - pair[1].share[0])
    fall = before.share[0] - after.share[0]
    shares = [(each.perfect + 1) / (each.seeds + 2) for each in (before, after)]
    half = 1.96 * math.sqrt(sum(p * (1 - p) / (before.seeds + 2) for p in shares))
    return at_most(name, fall, 0.0, (fall - half, fall + half))


@plots.styled
def draw_sgd(found: Mapping[tuple[int, int, bool], Mapping[float, Trials]]) -> Any:
    figure = plots.blank(2.6)
    axes = figure.add_subplot(xlabel="samples $TB\\ /\\ d^5$", ylabel="share of perfect networks", xscale="log",
                              ylim=(-0.04, 1.04))
    dims = sorted({d for d, _, _ in found})
    for (d, batch, noisy), points in found.items():
        shares, ends = zip(*(each.share for each in points.values()), strict=True)
        axes.errorbar(list(points), shares, np.abs(np.array(ends).T - shares), color=plots.COLOURS[dims.index(d)],
                      linestyle="dashed" if noisy else "solid", marker="o" if batch == 1 else "s", markersize=3,
                      fillstyle="none", elinewidth=0.8, capsize=1.5,
                      label=f"d = {d}" if batch == 1 and not noisy else None)
    for style, label in (("o", "B = 1"), ("s", "B = 64"), ("--", "with noise")):
        axes.plot([], [], style, color=plots.GREY, markersize=3, fillstyle="none", label=label)
    plots.legend_above(figure, axes)
    return figure


@reproduces("abbe2024.thm4-bias")
def other_biases(lab: Lab) -> Outcome:
    """One step at width d^4 with the recommended bias, with normal ones, and with one where Delta is 0."""
    dims = lab.pick("d", quick=[10, 11], full=[10, 11])
    seeds = lab.pick("seeds", quick=1000, full=20_000)
    recommended = {d: trials(lab, seeds // 10, d, d**4) for d in dims}
    normal = {d: trials(lab, seeds, d, d**4, "normal") for d in dims}
    unlucky = max(d for d in dims if d % 2)
    codes = lab.rng(45).integers(0, 2**unlucky, unlucky**4)
    outputs = cube_outputs(unlucky, codes, 0.0, population_step(unlucky, codes, 0.0))
    checks = [smallest(f"share of perfect networks, {name} biases, d = {d}", [found[d]], 0.9)
              for name, found in (("recommended", recommended), ("N(0, 1)", normal)) for d in dims]
    checks.append(at_most(f"|output|, largest over inputs, bias 0, d = {unlucky}", float(np.abs(outputs).max()), 1e-9))
    wider = {d: trials(lab, seeds // 10, d, 2 * d**4, "normal") for d in dims}
    data = [each.row(bias=name, d=d, n=factor * d**4) for name, factor, found in
            (("recommended", 1, recommended), ("normal", 1, normal), ("normal", 2, wider)) for d, each in found.items()]
    numbers = {f"share of perfect networks, N(0, 1) biases, n = 2 d^4, d = {d}": each.share[0]
               for d, each in wider.items()}
    numbers |= {f"perfect of the first 10 seeds, N(0, 1) biases, d = {d}":
                float(trials(lab, 10, d, d**4, "normal").perfect) for d in dims}
    scans = {name: {width: trials(lab, max(40, seeds // 100), dims[0], width, bias)
                    for width in (round(dims[0] ** 4 * 2**power) for power in np.arange(-3, 2.1, 0.5))}
             for name, bias in (("recommended bias", ""), ("N(0, 1) biases", "normal"))}
    data += [each.row(bias=name, d=dims[0], n=n) for name, points in scans.items() for n, each in points.items()]
    note = f"{seeds} seeds (recommended bias: {seeds // 10}) instead of 10"
    return Outcome(checks, data, draw_biases(scans, dims[0]), numbers, note)


def draw_biases(scans: Mapping[str, Mapping[int, Trials]], d: int) -> Any:
    series = {}
    for name, points in scans.items():
        shares, ends = zip(*(each.share for each in points.values()), strict=True)
        series[f"{name}, d = {d}"] = Series(list(points), shares, *zip(*ends, strict=True))
    every = [width for points in scans.values() for width in points]
    laws = {"$n = d^4$": ([d**4] * 2, [0, 1]), "asked for": ([d**4, max(every)], [0.9, 0.9])}
    return plots.scaling_plot(series, "width n", "share of perfect networks", laws, log="x")
