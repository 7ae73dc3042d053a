"""Training curves in numbers and pictures: how long runs sit at chance before they are solved."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from matplotlib.ticker import EngFormatter

from paritylab import Setup, plots
from paritylab.claims.lab import Lab
from paritylab.claims.verdicts import Check, Interval, at_least, at_most
from paritylab.papers.barak2022.common import Floats, bootstrap, median, times
from paritylab.statistics import solved_fraction
from paritylab.storage.records import Records

LEAVES_CHANCE = 0.55
ENOUGH = 0.8
"""The share of runs that must be solved for a median over the solved ones to count: 8 of 10, 4 of 5."""


@dataclass(frozen=True)
class Phases:
    """The runs of one panel: when they were solved, and for what part of that time they sat at chance."""

    setup: Setup
    records: Records
    plateau: Floats
    """t_55 / t_c of each solved run; NaN where trained anew it went another way, as rounding on a GPU can make it."""
    interval: Interval

    @property
    def share(self) -> float:
        return solved_fraction(self.records.status)[0]

    @property
    def fraction(self) -> float:
        """The median plateau; undefined where it is known of too few runs."""
        known = self.plateau[~np.isnan(self.plateau)]
        return median(known) if len(known) >= ENOUGH * len(self.records) else math.nan


def phases(lab: Lab, panels: Mapping[str, Setup], runs: int) -> dict[str, Phases]:
    """Train every panel twice, to the paper's criterion and until it leaves chance: the same runs, so t_55 <= t_c."""
    solved = lab.sweep(list(panels.values()), runs)
    last = [int(max(result.records.t_c.max(), setup.protocol.eval_every))
            for result, setup in zip(solved, panels.values(), strict=True)]
    leaving = [replace(setup, protocol=replace(setup.protocol, threshold=LEAVES_CHANCE, max_steps=steps))
               for setup, steps in zip(panels.values(), last, strict=True)]
    found = {}
    for (name, setup), result, left in zip(panels.items(), solved, lab.sweep(leaving, runs), strict=True):
        t_c, t_55 = times(result.records), times(left.records)
        ended = np.isfinite(t_c)
        plateau = np.where(t_55 <= t_c, t_55, np.nan)[ended] / t_c[ended]
        interval = bootstrap(median, plateau[~np.isnan(plateau)], rng=lab.rng(len(found)))
        found[name] = Phases(setup, result.records, plateau, interval)
    return found


def rows(panels: Mapping[str, Phases]) -> list[dict[str, Any]]:
    """One row per run: when it left chance and when it was solved; None where it was not."""
    out: list[dict[str, Any]] = []
    for name, panel in panels.items():
        plateaus = iter(panel.plateau)
        for run, t_c in zip(panel.records.run, times(panel.records), strict=True):
            solved = math.isfinite(t_c)
            plateau = next(plateaus) if solved else math.nan
            t_55 = None if math.isnan(plateau) else round(plateau * t_c)
            out.append({"panel": name, "run": int(run), "t_55": t_55, "t_c": int(t_c) if solved else None})
    return out


def plateau_check(name: str, panel: Phases, low: float = -math.inf, high: float = math.inf) -> Check:
    """The median of t_55 / t_c is at least ``low``, or at most ``high``."""
    label = f"median t_55 / t_c, {name}"
    if high < math.inf:
        return at_most(label, panel.fraction, high, panel.interval)
    return at_least(label, panel.fraction, low, panel.interval)


def training_curves(lab: Lab, panels: Mapping[str, tuple[Setup, Records]]) -> Any:
    """One panel each: the error of run 0 until it is solved and a fifth longer."""
    curves = {}
    for name, (setup, records) in panels.items():
        first, longest = (int(t) for t in (records.t_c[0], records.t_c.max()))
        steps = 1.2 * first if first > 0 else 1.2 * longest if longest > 0 else setup.protocol.max_steps
        every = 10 * math.ceil(steps / 3000)
        traced = lab.curves(setup, every * math.ceil(steps / every), every, runs=1)
        curves[name] = traced.steps, 1 - traced.accuracy[0]
    return draw(curves)


@plots.styled
def draw(curves: Mapping[str, tuple[Any, Any]]) -> Any:
    lines = math.ceil(len(curves) / 2)
    figure = plots.blank(0.35 + 0.95 * lines)
    grid = np.atleast_2d(figure.subplots(lines, 2, sharey=True))
    for axes, (name, (steps, error)) in zip(grid.flat, curves.items(), strict=False):
        axes.plot(steps, error, color=plots.COLOURS[0], linewidth=0.9)
        axes.axhline(1 - LEAVES_CHANCE, color=plots.GREY, linestyle="dotted", linewidth=0.7)
        axes.set_title(name, fontsize=7)
        axes.set(ylim=(0, 0.58), xlim=(0, steps[-1]), yticks=(0, 0.25, 0.5))
        axes.locator_params(axis="x", nbins=4)
        axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    first = grid.flat[0]
    first.text(1, 0.46, "55 % correct", transform=first.get_yaxis_transform(), color=plots.GREY, fontsize=6, ha="right")
    for axes in grid.flat[len(curves):]:
        axes.set_visible(False)
    figure.supxlabel("steps", fontsize=8)
    figure.supylabel("error", fontsize=8)
    return figure


def figure_of(lab: Lab, panels: Mapping[str, Phases]) -> Any:
    return training_curves(lab, {name: (panel.setup, panel.records) for name, panel in panels.items()})
