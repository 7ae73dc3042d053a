"""sigma*(d): how much noise on the signs a two-layer network stands, by dimension, width and steps."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import Any, NamedTuple

import numpy as np
from abbe2024.predictions import LEVEL, crossing, perturbed_alignments
from abbe2024.training import law

from paritylab import MLP, SGD, Learner, Parity, Protocol, Result, Setup, plots
from paritylab.aliases import Floats, Interval
from paritylab.claims import Findings, Lab, Trial, at_least, at_most, claim, size
from paritylab.claims.rules import Size

LARGE: tuple[Size, ...] = ("standard", "full")
ENDS = (0.08, 1.6)
"""Of the grid of sigma."""
RESAMPLES = 400
FEWEST = 3
"""Dimensions with a sigma* within the grid that a slope needs."""


class Budget(NamedTuple):
    """What a network may use."""

    width: int
    steps: int


Cases = list[tuple[Budget, int]]
"""Budgets and dimensions."""


@claim(
    "beyond.sigma-star",
    where="abbe2024, abstract and Section 7: where between sigma = O(1/d) and a constant learning stops",
    kind="empirical",
    title="The noise on signs at which a two-layer network stops learning, by dimension, width and steps",
    statement="""The sigma*(d) at which accuracy falls to 0.75 falls with d at every width and number of steps, and
    rises with both. The alignment of a neuron at sigma* is no constant: it rises with d.""",
    published="an open question: works at O(1/d), fails at a large constant; no values",
)
class SigmaStar(Trial):
    """Final accuracy by sigma: hinge loss, SGD at rate 0.01, batches of 64; sigma* by lines in ln sigma."""

    d = size(quick=[8, 10, 12], full=[20, 28, 36, 48, 60])
    widths = size(quick=[128], full=[256, 1024])
    steps = size(quick=[1500], full=[12_500, 50_000, 200_000])
    points = size(quick=4, full=10, label="sigmas")
    runs = size(quick=2, full=8)

    falls = at_most("slope of ln sigma* on ln d, width {width}, {steps} steps", 0.0)
    drifts = at_least("slope of log10 alignment at sigma* on d, width {width}, {steps} steps", 0.0, only=LARGE)
    longer = at_least("mean ln sigma* at the most steps less that at the fewest, widest networks", 0.0, only=LARGE)
    wider = at_least("mean ln sigma* of the widest networks less that of the narrowest, most steps", 0.0, only=LARGE)

    @property
    def sigmas(self) -> list[float]:
        return [round(float(s), 4) for s in np.geomspace(*ENDS, self.points)]

    @property
    def fine(self) -> list[float]:
        """Where alignments are computed; between them they are interpolated."""
        return [round(float(s), 4) for s in np.geomspace(*ENDS, 3 * self.points - 2)]

    @property
    def budgets(self) -> list[Budget]:
        return [Budget(*each) for each in itertools.product(self.widths, self.steps)]

    def work(self, lab: Lab) -> tuple[list[Result], list[dict[str, Floats]]]:
        setups = [setup(each, d, s) for each in self.budgets for d in self.d for s in self.sigmas]
        return (lab.sweep(setups, self.runs),
                lab.compute_each(perturbed_alignments, [{"d": d, "sigmas": self.fine} for d in self.d]))

    def accuracy(self, results: Sequence[Result]) -> dict[Budget, Floats]:
        """(d, sigma, run) by budget; 0 for a run that diverged."""
        values = np.nan_to_num([result.records.accuracy for result in results])
        shaped = values.reshape(len(self.budgets), len(self.d), self.points, self.runs)
        return dict(zip(self.budgets, shaped, strict=True))

    def critical(self, accuracy: Floats) -> Floats:
        """ln sigma* for each d, of mean accuracies (d, sigma); NaN where it is outside the grid."""
        found = np.array([crossing(self.sigmas, each) for each in accuracy.tolist()])
        return np.log(np.where((found > 0) & np.isfinite(found), found, np.nan))

    def judge(self, got: tuple[list[Result], list[dict[str, Floats]]]) -> Findings:
        accuracy = self.accuracy(got[0])
        drawn, aligned = self.critical_values(accuracy, got[1])
        checks, numbers = [], {}
        for each in self.budgets:
            checks.append(self.falls(*estimate([slope(np.log(self.d), row) for row in drawn[each]]), **each._asdict()))
            if self.size in LARGE:
                slopes = [slope(np.array(self.d), row) for row in aligned[each]]
                checks.append(self.drifts(*estimate(slopes), **each._asdict()))
            for place, d in enumerate(self.d):
                numbers |= self.numbers(each, d, drawn[each][:, place], aligned[each][:, place])
        if self.size in LARGE:
            narrow, wide = self.widths[0], self.widths[-1]
            few, many = self.steps[0], self.steps[-1]
            checks.append(self.longer(*gain(drawn[Budget(wide, many)], drawn[Budget(wide, few)])))
            checks.append(self.wider(*gain(drawn[Budget(wide, many)], drawn[Budget(narrow, many)])))
        return Findings(checks, self.rows(accuracy), numbers, self.note(accuracy, drawn))

    def critical_values(self, accuracy: Mapping[Budget, Floats], alignments: Sequence[Mapping[str, Floats]]
                        ) -> tuple[dict[Budget, Floats], dict[Budget, Floats]]:
        """ln sigma* and log10 of the alignment there, (as measured and resampled, d) by budget."""
        drawn = {each: self.resampled(each, accuracy[each]) for each in self.budgets}
        logs = [arrays["log10"] for arrays in alignments]
        return drawn, {each: np.array([self.alignments(logs, row) for row in rows]) for each, rows in drawn.items()}

    def resampled(self, budget: Budget, accuracy: Floats) -> Floats:
        """ln sigma* by d: as measured in the first row, then from runs drawn anew at each point."""
        generator = self.rng(budget.width, budget.steps)
        means = [accuracy.mean(axis=2)]
        for _ in range(RESAMPLES):
            chosen = generator.integers(0, self.runs, accuracy.shape)
            means.append(np.take_along_axis(accuracy, chosen, axis=2).mean(axis=2))
        return np.array([self.critical(each) for each in means])

    def alignments(self, logs: Sequence[Floats], critical: Floats) -> Floats:
        """log10 of the alignment at sigma* for each d."""
        return np.array([np.interp(x, np.log(self.fine), each) for x, each in zip(critical, logs, strict=True)])

    def numbers(self, budget: Budget, d: int, logs: Floats, aligned: Floats) -> dict[str, float]:
        """sigma* and the alignment there, with their ends; nothing where sigma* is not known."""
        found = {}
        for name, values in (("sigma*", np.exp(logs)), ("log10 alignment at sigma*", aligned)):
            value, (low, high) = estimate(values)
            if math.isfinite(value):
                ends = {"": value, ", lower end": low, ", upper end": high}
                found |= {f"{name}{end}, {where(budget, d)}": number for end, number in ends.items()}
        return found

    def censored(self, accuracy: Mapping[Budget, Floats], drawn: Mapping[Budget, Floats]) -> tuple[Cases, Cases]:
        """Where sigma* is not known: because accuracy stays above the level, or because it is not surely above it."""
        above: Cases = []
        never: Cases = []
        for each, rows in drawn.items():
            for place, d in enumerate(self.d):
                if math.isnan(estimate(rows[:, place])[0]):
                    last = accuracy[each][place, -1].mean()
                    (above if last >= LEVEL else never).append((each, d))
        return above, never

    def note(self, accuracy: Mapping[Budget, Floats], drawn: Mapping[Budget, Floats]) -> str:
        above, never = self.censored(accuracy, drawn)
        told = {f"above {self.sigmas[-1]:g}, the largest tried, at": above,
                f"unknown, as accuracy reaches {LEVEL:g} at no sigma or not surely, at": never}
        return "; ".join(f"sigma* is {words} {listed(cases)}" for words, cases in told.items() if cases)

    def rows(self, accuracy: Mapping[Budget, Floats]) -> list[dict[str, Any]]:
        return [{**each._asdict(), "d": d, "sigma": s, "run": run, "accuracy": float(value)}
                for each, values in accuracy.items() for d, by_sigma in zip(self.d, values, strict=True)
                for s, found in zip(self.sigmas, by_sigma, strict=True) for run, value in enumerate(found)]

    def draw(self, got: tuple[list[Result], list[dict[str, Floats]]]) -> plots.Figure:
        accuracy = self.accuracy(got[0])
        drawn, aligned = self.critical_values(accuracy, got[1])
        return draw_critical(self.d, {each: np.exp(rows) for each, rows in drawn.items()}, aligned,
                             self.censored(accuracy, drawn))


def where(budget: Budget, d: int) -> str:
    return f"width {budget.width}, {budget.steps} steps, d = {d}"


def listed(cases: Cases) -> str:
    """
    >>> listed([(Budget(256, 500), 36), (Budget(256, 500), 48), (Budget(1024, 500), 20)])
    'd = 36, 48 (width 256, 500 steps) and d = 20 (width 1024, 500 steps)'
    """
    budgets = dict.fromkeys(each for each, _ in cases)
    return " and ".join(f"d = {', '.join(str(d) for budget, d in cases if budget == each)}"
                        f" (width {each.width}, {each.steps} steps)" for each in budgets)


def setup(budget: Budget, d: int, sigma: float) -> Setup:
    learner = Learner(MLP(budget.width), law(sigma), "hinge", SGD(0.01), batch=64)
    return Setup(Parity(n=d, k=d), learner, Protocol(budget.steps, budget.steps, 10_000))


def slope(x: Floats, y: Floats) -> float:
    """By least squares over the points that are known; NaN with fewer than three.

    >>> slope(np.array([1.0, 2.0, 3.0, 4.0]), np.array([np.nan, 2.0, 3.0, 4.0])).__round__(9)
    1.0
    """
    known = np.isfinite(y)
    return float(np.polyfit(x[known], y[known], 1)[0]) if known.sum() >= FEWEST else math.nan


def estimate(values: Sequence[float] | Floats) -> tuple[float, Interval]:
    """The first value, with the percentile interval of the others; unknown unless nearly all of them are known."""
    first, rest = float(values[0]), np.asarray(values[1:], float)
    known = rest[np.isfinite(rest)]
    if math.isnan(first) or len(known) < 0.95 * len(rest):
        return math.nan, (-math.inf, math.inf)
    low, high = np.quantile(known, [0.025, 0.975])
    return first, (float(low), float(high))


def gain(above: Floats, below: Floats) -> tuple[float, Interval]:
    """The mean difference over the dimensions where both are known."""
    differences = above - below
    known = np.isfinite(differences[0])
    return estimate(np.nanmean(differences[:, known], axis=1)) if known.any() else (math.nan, (-math.inf, math.inf))


@plots.styled
def draw_critical(dims: Sequence[int], sigma: Mapping[Budget, Floats], aligned: Mapping[Budget, Floats],
                  unknown: tuple[Cases, Cases]) -> plots.Figure:
    """sigma* above, the alignment at it below: a colour for each width, a line for each number of steps.

    The edges of the upper panel are those of the grid; what lies beyond is marked there.
    """
    figure = plots.blank(4.0)
    above, below = figure.subplots(2, 1, sharex=True)
    widths, steps = (list(dict.fromkeys(each[i] for each in sigma)) for i in (0, 1))
    colours = dict(zip(widths, cycle(plots.COLOURS), strict=False))
    lines = dict(zip(steps, cycle(plots.LINES), strict=False))
    for axes, found in ((above, sigma), (below, aligned)):
        for each, rows in found.items():
            ends = [estimate(column) for column in rows.T]
            values = np.array([value for value, _ in ends])
            bars = np.array([np.abs(np.subtract(interval, value)) if np.isfinite(value) else (0, 0)
                             for value, interval in ends]).T
            axes.errorbar(dims, values, bars, color=colours[each.width], linestyle=lines[each.steps], marker="o",
                          markersize=2.5, linewidth=0.9, elinewidth=0.6)
    for cases, marker, edge in zip(unknown, ("^", "x"), (1, 0), strict=True):
        for each, d in cases:
            there = [budget for budget, other in cases if other == d]
            beside = 0.02 * (dims[-1] - dims[0]) * (there.index(each) - (len(there) - 1) / 2)
            above.plot(d + beside, edge, marker, color=colours[each.width], markersize=4, clip_on=False,
                       transform=above.get_xaxis_transform())
    signs = f"▲ above {ENDS[1]:g}", f"✕ accuracy {LEVEL:g} not surely reached"
    told = [words for cases, words in zip(unknown, signs, strict=True) if cases]
    above.text(1, 0.97, "\n".join(told), transform=above.transAxes, fontsize=7, ha="right", va="top", color=plots.GREY)
    above.set(yscale="log", ylim=ENDS, ylabel=rf"$\sigma^*$ (accuracy {LEVEL:g})")
    below.set(xlabel="input dimension d", ylabel=r"log10 alignment at $\sigma^*$", xticks=list(dims))
    for width in widths:
        above.plot([], [], color=colours[width], label=f"width {width}")
    for each in steps:
        above.plot([], [], color=plots.GREY, linestyle=lines[each], label=f"{each:,} steps")
    plots.readable_log(above)
    plots.legend_above(figure, above)
    figure.align_ylabels()
    return figure
