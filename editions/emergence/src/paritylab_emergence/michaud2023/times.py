"""One long run at alpha = 0.4: when each subtask is learned, and how the mean loss falls."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from scipy import stats

from paritylab import Setup, plots
from paritylab.aliases import Floats
from paritylab.claims import Check, Findings, Lab, Trial, at_least, at_most, between, claim, size
from paritylab.claims.published import table
from paritylab.engines.curves import Curves
from paritylab.plots import Series
from paritylab_emergence.fits import Exponent, censored_exponent, exponent
from paritylab_emergence.michaud2023.common import JUDGED, Row, frequencies, mean_bits, subtask_bits, theory, zipf

ALPHA = 0.4
LEARNED = 0.1
"""A subtask is learned at the first check with a loss below so many bits."""
SMALLER = "A smaller problem: fewer subtasks and bits, a narrower network, smaller batches, fewer steps."
STRATIFIED = f"""The mean loss is that of {JUDGED} fresh inputs of each subtask, weighted by the frequencies, where the
published one is of 1e6 inputs."""


class Long(Trial):
    """Runs at alpha = 0.4, each with subtasks of its own; their losses every hundred steps."""

    subtasks = size(quick=40, standard=40, full=500)
    task_bits = size(quick=40, standard=40, full=100, label="task bits")
    width = size(quick=100, standard=100, full=500)
    batch = size(quick=2000, standard=2000, full=20_000)
    steps = size(quick=8000, standard=16_000, full=200_000)
    runs = size(quick=2, standard=5, full=5)

    every = 100

    @functools.cached_property
    def setups(self) -> list[Setup]:
        return [zipf(self.subtasks, self.task_bits, 3, ALPHA, self.width, self.batch, seed=run)
                for run in range(self.runs)]

    def work(self, lab: Lab) -> list[Curves]:
        return lab.curves_each(self.setups, self.steps, self.every, [[run] for run in range(self.runs)])

    def times(self, curves: Curves) -> Floats:
        """The first check below 0.1 bits of each subtask; infinite where there is none."""
        below = subtask_bits(curves) < LEARNED
        return np.where(below.any(axis=0), curves.steps[below.argmax(axis=0)], np.inf)


@claim(
    "michaud2023.subtask-times",
    where="Appendix B, convergence time against frequency (sparse-parity-convergence-time)",
    kind="empirical",
    title="Rare subtasks converge sooner than in inverse proportion",
    statement="""On 500 parity subtasks of Zipf frequency, the step at which a subtask is learned grows as its frequency
    to the power -0.81, not -1, roughly in order of frequency.""",
    published="""45 of 500 subtasks learned, the first at step 700, the second at 1200; slope -0.806 (standard error
    0.044 from the 45 points); Spearman correlation of index and step 0.93""",
)
class SubtaskTimes(Long):
    """The first check with a loss below 0.1 bits against the frequency of a subtask."""

    near = at_most("distance of the pooled slope from the published, in joint standard errors", 2.576, exact=True,
                   only=("full",))
    flatter = at_least("pooled slope of log steps on log frequency (99 % interval)", -1, only=("full",))
    learned = between("subtasks learned, run {run}", 30, 65, exact=True, only=("full",))
    order = at_least("Spearman correlation of index and step, run {run}", 0.8, exact=True, only=("full",))
    slope = between("pooled slope of log steps on log frequency", -1.1, -0.6, only=("quick", "standard"))

    def judge(self, got: list[Curves]) -> Findings:
        rows = self._rows(got)
        pooled = exponent([row["frequency"] for row in rows], [row["step"] for row in rows])
        censored = self._censored(got)
        numbers: dict[str, float | None] = {
            "pooled slope": pooled.value, "its standard error": pooled.error,
            "slope with unlearned subtasks as censored": censored.value, "standard error of that": censored.error}
        if self.size != "full":
            return Findings([self.slope(*pooled.estimate)], rows, numbers, SMALLER)
        checks: list[Check] = [self.near(pooled.apart(published_slope())),
                               self.flatter(pooled.value, pooled.interval(0.99))]
        for run in range(self.runs):
            steps = [row["step"] for row in rows if row["run"] == run]
            rank: Any = stats.spearmanr(np.arange(len(steps)), steps) if len(steps) > 2 else None
            checks += [self.learned(len(steps), run=run), self.order(rank and float(rank.statistic), run=run)]
        return Findings(checks, rows, numbers)

    def _censored(self, got: list[Curves]) -> Exponent:
        """The slope if subtasks that were not learned count as later than the last step, not as missing."""
        often = np.concatenate([frequencies(setup) for setup in self.setups])
        steps = np.concatenate([self.times(curves) for curves in got])
        seen = np.isfinite(steps)
        return censored_exponent(often[seen], steps[seen], often[~seen], self.steps)

    def _rows(self, got: list[Curves]) -> list[Row]:
        """The subtasks that were learned, in the order of their frequency."""
        return [{"run": run, "subtask": i + 1, "frequency": float(frequency), "step": int(step)}
                for run, (setup, curves) in enumerate(zip(self.setups, got, strict=True))
                for i, (frequency, step) in enumerate(zip(frequencies(setup), self.times(curves), strict=True))
                if np.isfinite(step)]

    def draw(self, got: list[Curves]) -> plots.Figure:
        return plotted(self._rows(got), self.size != "full")


def published_slope() -> Exponent:
    """The slope through the 45 published points.

    >>> round(published_slope().value, 3), round(published_slope().error, 3)
    (-0.806, 0.044)
    """
    points = table(__file__, "subtasks")
    return exponent(points["frequency"].to_numpy(), points["steps"].to_numpy())


def plotted(rows: list[Row], smaller: bool) -> plots.Figure:
    """Steps against frequencies, beside the published, each with its fitted power."""
    points = table(__file__, "subtasks")
    name = "here, smaller problem" if smaller else "here"
    drawn = {name: ([row["frequency"] for row in rows], [row["step"] for row in rows]),
             "published": (points["frequency"].to_list(), points["steps"].to_list())}
    return scattered(drawn, "frequency of the subtask", "steps until it is learned")


@plots.styled
def scattered(drawn: dict[str, tuple[list[float], list[float]]], xlabel: str, ylabel: str) -> plots.Figure:
    """Points of each kind, and the power through them."""
    figure = plots.blank(2.6)
    axes = figure.add_subplot()
    axes.set(xscale="log", yscale="log", xlabel=xlabel, ylabel=ylabel)
    for (label, (x, y)), colour, marker, line in zip(drawn.items(), plots.COLOURS, "os", plots.LINES, strict=False):
        fit = exponent(x, y)
        ends = np.array([min(x, default=1.0), max(x, default=1.0)])
        middle = np.exp(np.mean(np.log(y)) + fit.value * (np.log(ends) - np.mean(np.log(x)))) if len(x) else ends
        axes.plot(x, y, marker, color=colour, markersize=3, markerfacecolor="none", markeredgewidth=0.8)
        axes.plot(ends, middle, color=colour, linestyle=line, label=f"{label}: {fit.value:.2f} ± {fit.error:.2f}")
    plots.readable_log(axes)
    plots.legend_above(figure, axes, most=2)
    return figure


# --- the mean loss ----------------------------------------------------------------------------------------------------


@claim(
    "michaud2023.step-exponent",
    where="Figure 2 (top, centre); Appendix B, caption of the convergence-time figure",
    kind="empirical",
    title="Mean loss falls as steps^-0.45 at alpha = 0.4",
    statement="""Within one long run at alpha = 0.4 the mean loss falls as a power of the step with exponent 0.45, well
    above the predicted alpha/(alpha+1) = 0.29.""",
    published="""exponent 0.45 (one run, width 500); the sweep of michaud2023.alpha-S gives 0.325 and 0.366 for two runs
    of width 300 over steps 500 to 14500""",
)
class StepExponent(Long):
    """Least squares of log loss on log step over steps 400 to 8900; of a smaller problem while the loss still falls."""

    subtasks = size(quick=40, full=500)
    task_bits = size(quick=40, full=100, label="task bits")
    width = size(quick=100, full=500)
    batch = size(quick=2000, full=20_000)
    steps = size(quick=8000, full=9000)

    spread = at_most("distance of 0.45 from the mean over runs, in standard deviations of runs (at least 0.02)", 2.576,
                     exact=True, only=("standard", "full"))
    above = at_least("exponent, run {run}", theory("S", ALPHA), only=("standard", "full"))
    falls = between("exponent, run {run}", 0.3, 0.6, only=("quick",))

    printed, window, least = 0.45, (400, 8900), 0.02

    def judge(self, got: list[Curves]) -> Findings:
        found = [self._exponent(setup, curves) for setup, curves in zip(self.setups, got, strict=True)]
        rule = self.falls if self.size == "quick" else self.above
        checks = [rule(*each.estimate, run=run) for run, each in enumerate(found)]
        values = np.array([each.value for each in found])
        deviation = max(float(np.std(values, ddof=1)), self.least)
        numbers = {"mean exponent": float(values.mean()), "standard deviation of runs": float(np.std(values, ddof=1))}
        if self.size != "quick":
            checks.insert(0, self.spread(abs(self.printed - float(values.mean())) / deviation))
        rows = [{"run": run, "step": int(step), "loss in bits": float(loss)}
                for run, (setup, curves) in enumerate(zip(self.setups, got, strict=True))
                for step, loss in zip(curves.steps, mean_bits(setup, curves), strict=True)]
        return Findings(checks, rows, numbers, f"{SMALLER} {STRATIFIED}" if self.size == "quick" else STRATIFIED)

    def _exponent(self, setup: Setup, curves: Curves) -> Exponent:
        loss = mean_bits(setup, curves)
        first, last = self.window
        if self.size == "quick":  # from the first subtask learned to where what can be learned nearly is
            first = int(self.times(curves).min(initial=np.inf)) if np.isfinite(self.times(curves)).any() else 1
            last = int(curves.steps[np.flatnonzero(loss >= 1.3 * loss[-1])[-1]])
        inside = (curves.steps >= first) & (curves.steps <= last)
        fit = exponent(curves.steps[inside], loss[inside])
        return fit._replace(value=-fit.value)

    def draw(self, got: list[Curves]) -> plots.Figure:
        series = {f"run {run + 1}": Series(curves.steps[1:], mean_bits(setup, curves)[1:])
                  for run, (setup, curves) in enumerate(zip(self.setups, got, strict=True))}
        steps = np.array([400.0, 8900.0])
        start = float(np.mean([np.interp(400, curves.steps, mean_bits(setup, curves))
                               for setup, curves in zip(self.setups, got, strict=True)]))
        laws = {f"$\\mathrm{{steps}}^{{-{power:.2f}}}$, {name}": (steps, start * (steps / 400) ** -power)
                for name, power in (("published", self.printed), ("theory", theory("S", ALPHA)))}
        return plots.scaling_plot(series, "steps", "mean loss in bits", laws)
