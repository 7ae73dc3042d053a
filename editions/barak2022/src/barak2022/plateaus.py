"""Training curves in numbers and pictures: how long runs sit at chance before they are solved."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from matplotlib.ticker import EngFormatter

from barak2022.common import median, times
from paritylab import Curves, Setup, plots
from paritylab.aliases import Floats, Interval
from paritylab.claims import Lab, Trial, size
from paritylab.claims.intervals import bootstrap
from paritylab.running.sweeps import Result
from paritylab.statistics import solved_fraction
from paritylab.storage.records import Records

LEAVES_CHANCE = 0.55
ENOUGH = 0.8
"""The share of runs that must be solved for a median over the solved ones to count: 8 of 10, 4 of 5."""


@dataclass(frozen=True)
class Phases:
    """The runs of one panel: when they were solved, and for what part of that time they sat at chance."""

    records: Records
    plateau: Floats
    """t_55 / t_c of each solved run; NaN where trained anew it went another way, as rounding on a GPU can make it."""
    interval: Interval

    @property
    def solved(self) -> tuple[float, Interval]:
        """The share of runs that were solved."""
        return solved_fraction(self.records.status)

    @property
    def fraction(self) -> float:
        """The median plateau; undefined where it is known of too few runs."""
        known = self.plateau[~np.isnan(self.plateau)]
        return median(known) if len(known) >= ENOUGH * len(self.records) else math.nan


class Traced(Trial):
    """Panels of one Setup each: convergence times of all runs, and the error of run 0."""

    runs = size(10)

    @abstractmethod
    def panels(self) -> dict[str, Setup]:
        """The Setups by name."""

    def trained(self, lab: Lab) -> list[Result]:
        """The runs, to the paper's criterion."""
        return lab.sweep(list(self.panels().values()), self.runs)

    def curves(self, lab: Lab, solved: Sequence[Result]) -> list[Curves]:
        """The curve of run 0 of each."""
        both = zip(self.panels().values(), solved, strict=True)
        return [trace(lab, setup, result.records) for setup, result in both]

    def work(self, lab: Lab) -> tuple[Any, ...]:
        solved = self.trained(lab)
        return solved, self.curves(lab, solved)

    def records(self, got: tuple[Any, ...]) -> dict[str, Records]:
        return {name: result.records for name, result in zip(self.panels(), got[0], strict=True)}

    def draw(self, got: tuple[Any, ...]) -> plots.Figure:
        return draw_errors(dict(zip(self.panels(), got[-1], strict=True)))


class Phased(Traced):
    """The same, with every panel trained twice: to the paper's criterion, and until it leaves chance."""

    def work(self, lab: Lab) -> tuple[list[Result], list[Result], list[Curves]]:
        solved = self.trained(lab)
        both = zip(self.panels().values(), solved, strict=True)
        leaving = [leaves_chance(setup, result.records) for setup, result in both]
        return solved, lab.sweep(leaving, self.runs), self.curves(lab, solved)

    def phases(self, got: tuple[Any, ...]) -> dict[str, Phases]:
        left = (result.records for result in got[1])
        return {name: phases(records, other, self.rng(place))
                for place, ((name, records), other) in enumerate(zip(self.records(got).items(), left, strict=True))}


def leaves_chance(setup: Setup, solved: Records) -> Setup:
    """The Setup of the same runs until they leave chance: t_55 <= t_c."""
    most = int(max(solved.t_c.max(), setup.protocol.eval_every))
    return replace(setup, protocol=replace(setup.protocol, threshold=LEAVES_CHANCE, max_steps=most))


def phases(solved: Records, left: Records, rng: np.random.Generator) -> Phases:
    t_c, t_55 = times(solved), times(left)
    ended = np.isfinite(t_c)
    plateau = np.where(t_55 <= t_c, t_55, np.nan)[ended] / t_c[ended]
    return Phases(solved, plateau, bootstrap(median, plateau[~np.isnan(plateau)], rng=rng))


def trace(lab: Lab, setup: Setup, records: Records) -> Curves:
    """The curve of run 0 until it is solved and a fifth longer."""
    first, longest = (int(t) for t in (records.t_c[0], records.t_c.max()))
    steps = 1.2 * first if first > 0 else 1.2 * longest if longest > 0 else setup.protocol.max_steps
    every = 10 * math.ceil(steps / 3000)
    return lab.curves(setup, every * math.ceil(steps / every), every, runs=1)


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


@plots.styled
def draw_errors(curves: Mapping[str, Curves]) -> plots.Figure:
    """A panel for each curve: the error of its first run."""
    lines = math.ceil(len(curves) / 2)
    figure = plots.blank(0.35 + 0.95 * lines)
    grid = np.atleast_2d(figure.subplots(lines, 2, sharey=True))
    for axes, (name, traced) in zip(grid.flat, curves.items(), strict=False):
        axes.plot(traced.steps, 1 - traced.accuracy[0], color=plots.COLOURS[0], linewidth=0.9)
        axes.axhline(1 - LEAVES_CHANCE, color=plots.GREY, linestyle="dotted", linewidth=0.7)
        axes.set_title(name, fontsize=7)
        axes.set(ylim=(0, 0.58), xlim=(0, traced.steps[-1]), yticks=(0, 0.25, 0.5))
        axes.locator_params(axis="x", nbins=4)
        axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    first = grid.flat[0]
    first.text(0.02, 0.43, "55 % correct", transform=first.get_yaxis_transform(), color=plots.GREY, fontsize=7,
               va="top")
    for axes in grid.flat[len(curves):]:
        axes.set_visible(False)
    figure.supxlabel("steps", fontsize=8)
    figure.supylabel("error", fontsize=8)
    return figure
