"""Emergence in time: Figures 1(a), 8 and 11(a)."""

# matplotlib leaves its keyword arguments untyped.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.optimize  # pyright: ignore[reportMissingTypeStubs]
from scipy import stats

from paritylab import SGD, Learner, Protocol, Setup, plots
from paritylab.aliases import Floats
from paritylab.claims import Check, Findings, Lab, Trial, at_least, between, claim, significant, size
from paritylab.claims.intervals import jackknife, mean, share
from paritylab.engines.curves import Curves
from paritylab_emergence import skills as theory
from paritylab_emergence.nam2024.common import ALPHA, TARGET, Row, crossing, network, power, problem, strengths

optimize: Any = scipy.optimize
RATE, SPREAD, WIDTH = 0.02, 0.01, 1000
INVERSE_SQUARE = 22.0
"""1/B^2, as the authors set it by eye from one task alone."""
START = SPREAD**2 / (3.6 * TARGET)
"""R(0)/S, a convention of the released plots."""
MODEL_RATIO = 1.243
"""T(0.95)/T(0.5) of the sigmoid, as printed by the rule: (ln c + ln 19)/ln c for c = 179,999."""


def setup(tasks: int, batch: int, steps: int, inputs: int) -> Setup:
    """Fresh batches, plain SGD on the whole squared error; checks on so many inputs of each task."""
    learner = Learner(network(WIDTH), init=f"normal:{SPREAD}", loss="square", optimiser=SGD(RATE), batch=batch)
    return Setup(problem(tasks), learner, Protocol(max_steps=steps, eval_size=inputs * tasks))


def predicted(steps: Floats, frequency: float, inverse_square: float = INVERSE_SQUARE) -> Floats:
    """R/S after so many steps by the solvable model (Equation 14, twice as fast for the whole squared error)."""
    return theory.sigmoid(4 * RATE * TARGET * frequency / inverse_square * np.asarray(steps, float), START)


def half_times(tasks: int) -> Floats:
    """When the model has each skill at half strength."""
    return theory.emergence_time(theory.frequencies(ALPHA, tasks), RATE, TARGET, 1 / INVERSE_SQUARE, START)


@claim(
    "nam2024.time-calibration",
    where="Figure 11(a); Section 5.1, Equation 14; Appendix K.1",
    kind="empirical",
    title="One skill emerges along a sigmoid with one constant",
    statement="""A wide two-layer ReLU network trained on a single sparse parity gains skill strength along a logistic
    curve in time; a single constant B^2 = 1/22, which stands for the cost of finding the feature, places the curve.""",
    published="1/B^2 = 22, set by eye: R/S = 0.05, 0.5, 0.95 at steps 504, 666, 827 (computed from it)",
)
class TimeCalibration(Trial):
    """The mean strength of one skill along training, and the constant that places the sigmoid nearest to it."""

    batch = size(quick=1000, full=4000)
    runs = size(quick=3, standard=10, full=50)
    steps = size(quick=1100, full=2500)
    every = size(50, label="steps between checks")
    inputs = size(quick=4000, full=20_000, label="inputs of a check")

    constant = between("1/B^2 of the nearest sigmoid", 18, 26)
    full_strength = at_least("mean R/S at step {steps}", 0.95, only=("standard", "full"))

    def work(self, lab: Lab) -> Curves:
        return lab.curves(setup(1, self.batch, self.steps, self.inputs), self.steps, self.every, self.runs)

    def judge(self, got: Curves) -> Findings:
        strength = strengths(got)[:, :, 0]
        found = jackknife(lambda runs: nearest(got.steps, runs.mean(0)), strength)
        checks = [self.constant(*found)]
        if self.size != "quick":
            checks.append(self.full_strength(*mean(strength[:, -1]), steps=self.steps))
        reached = [crossing(got.steps, each, 0.5) for each in strength]
        numbers = {"half strength, mean curve": crossing(got.steps, strength.mean(0), 0.5),
                   "half strength, earliest run": min(reached), "half strength, latest run": max(reached),
                   "half strength, model": float(half_times(1)[0])}
        rows = [{"step": int(step), "R/S": each, "low": low, "high": high, "model": float(by)}
                for step, (each, low, high), by in zip(got.steps, pointwise(strength), predicted(got.steps, 1.0),
                                                       strict=True)]
        return Findings(checks, rows, numbers)

    @plots.styled
    def draw(self, got: Curves) -> plots.Figure:
        strength = strengths(got)[:, :, 0]
        figure = plots.blank(2.5)
        axes = figure.add_subplot(xlabel="steps", ylabel="strength R/S", ylim=(-0.05, 1.05))
        axes.plot(got.steps, strength.T, color=plots.COLOURS[0], linewidth=0.4, alpha=0.4)
        axes.plot(got.steps, strength.mean(0), color=plots.COLOURS[0], label=f"mean of {len(strength)} runs")
        found = nearest(got.steps, strength.mean(0))
        for constant, line, words in ((INVERSE_SQUARE, "dashed", "model, 1/B² = 22"),
                                      (found, "dotted", f"nearest, 1/B² = {found:.1f}")):
            axes.plot(got.steps, predicted(got.steps, 1.0, constant), color=plots.GREY, linestyle=line, label=words)
        plots.legend_above(figure, axes, most=2)
        return figure


def nearest(steps: Floats, strength: Floats) -> float:
    """1/B^2 of the sigmoid that is nearest to a curve, by least squares; its start is given."""
    def apart(constant: float) -> float:
        return float(np.sum((predicted(steps, 1.0, constant) - strength) ** 2))

    grid = np.linspace(5, 60, 111)
    place = grid[int(np.argmin([apart(each) for each in grid]))]
    return float(optimize.minimize_scalar(apart, bounds=(place - 0.5, place + 0.5), method="bounded",
                                          options={"xatol": 1e-4}).x)


def pointwise(strength: Floats) -> list[tuple[float, float, float]]:
    """Means over runs, with the ends of their intervals, at each point."""
    found = [mean(column) for column in strength.T]
    return [(value, *interval) for value, interval in found]


class Emerging(Trial):
    """Runs on several tasks, whose strengths are looked at along the way."""

    tasks = size(quick=3, full=5)
    batch = size(quick=500, full=4000)
    runs = size(quick=4, standard=10, full=40)
    steps = size(quick=7000, full=20_000)
    every = size(50, label="steps between checks")
    inputs = size(quick=1000, full=20_000, label="inputs of each task in a check")

    def work(self, lab: Lab) -> Curves:
        return lab.curves(setup(self.tasks, self.batch, self.steps, self.inputs), self.steps, self.every, self.runs)

    def times(self, got: Curves, level: float) -> Floats:
        """When each run has each task at a level, (runs, tasks); infinite where it does not come to that."""
        strength = strengths(got)
        return np.array([[crossing(got.steps, run[:, task], level) for task in range(self.tasks)] for run in strength])


@claim(
    "nam2024.time-emergence",
    where="Figure 1(a); Section 5.1, Equation 14",
    kind="empirical",
    title="Five skills emerge when the calibrated model says",
    statement="""With five parity tasks of power-law frequency the network learns them one after the other, at the times
    the solvable model predicts from the constant fitted to one task alone.""",
    published="a figure; half strength at steps 1123, 3404, 6513, 10319, 14747 (computed from its constants)",
)
class TimeEmergence(Emerging):
    """When the mean strength of each skill is a half, against the model's sigmoids with 1/B^2 = 22."""

    near = between("step of half strength / the model's, skill {k}", 0.8, 1.2)
    exponent = between("exponent of these steps in the rank", 1.45, 1.85, claimed=1.6)
    in_order = at_least("share of runs that learn in the order of frequency", 0.9)

    def judge(self, got: Curves) -> Findings:
        strength, model_times = strengths(got), half_times(self.tasks)

        def halves(runs: Floats) -> Floats:
            return np.array([crossing(got.steps, runs[:, :, task].mean(0), 0.5) for task in range(self.tasks)])

        ratios = [jackknife(lambda runs, task=task: halves(runs)[task] / model_times[task], strength)
                  for task in range(self.tasks)]
        checks: list[Check] = [self.near(*ratio, k=task + 1) for task, ratio in enumerate(ratios)]
        checks.append(self.exponent(*jackknife(lambda runs: power(halves(runs)), strength)))
        times = self.times(got, 0.5)
        checks.append(self.in_order(*share((np.diff(times, axis=1) > 0).all(axis=1) & np.isfinite(times[:, -2]))))
        rows: list[Row] = []
        for task, (half, by) in enumerate(zip(halves(strength), model_times, strict=True)):
            value, (low, high) = ratios[task]
            rows.append({"skill": task + 1, "frequency": float(theory.frequencies(ALPHA, self.tasks)[task]),
                         "half strength": half, "low": low * by, "high": high * by, "model": float(by),
                         "ratio": value, "earliest": times[:, task].min(), "latest": times[:, task].max()})
        return Findings(checks, rows)

    @plots.styled
    def draw(self, got: Curves) -> plots.Figure:
        return draw_emergence(got, self.times(got, 0.5))


def draw_emergence(got: Curves, times: Floats) -> plots.Figure:
    """The mean strengths with 95 % intervals, the model's sigmoids, and below each run's times of half strength."""
    strength = strengths(got)
    tasks = strength.shape[2]
    figure = plots.blank(3.9)
    grid = figure.add_gridspec(2, 1, height_ratios=(3, 1.3))
    above = figure.add_subplot(grid[0], ylabel="skill strength R/S", ylim=(-0.05, 1.08))
    below = figure.add_subplot(grid[1], sharex=above, xlabel="steps", ylabel="skill", ylim=(tasks + 0.7, 0.3),
                               yticks=range(1, tasks + 1))
    above.axhline(0.5, color=plots.GREY, linewidth=0.4)
    predicted_times = half_times(tasks)
    for task, (frequency, colour) in enumerate(zip(theory.frequencies(ALPHA, tasks), plots.COLOURS, strict=False)):
        value, low, high = np.array(pointwise(strength[:, :, task])).T
        above.fill_between(got.steps, np.maximum(low, -1), np.minimum(high, 2), color=colour, alpha=0.25, linewidth=0)
        above.plot(got.steps, value, color=colour, label=f"skill {task + 1}: P = {frequency:.2f}")
        above.plot(got.steps, predicted(got.steps, frequency), color=colour, linestyle="dashed", linewidth=0.9)
        reached = times[:, task][np.isfinite(times[:, task])]
        below.plot(reached, np.full(len(reached), task + 1), "|", color=colour, markersize=6, markeredgewidth=0.7)
        below.plot(predicted_times[task], task + 1, "D", color=colour, markersize=4, markerfacecolor="white")
    above.plot([], [], color=plots.GREY, linestyle="dashed", linewidth=0.9, label="solvable model")
    below.plot([], [], "|", color=plots.GREY, label="half, a run")
    below.plot([], [], "D", color=plots.GREY, markersize=4, fillstyle="none", label="half, model")
    above.tick_params(labelbottom=False)
    above.margins(x=0.01)
    figure.align_ylabels()
    plots.legend_above(figure, above, below, most=3)
    return figure


@claim(
    "nam2024.slow-tail",
    where="Section 5.5 (time emergence); Appendix G, Figure 8",
    kind="empirical",
    title="The network saturates later than the sigmoid",
    statement="""Network and model start together, but the network takes longer to reach full strength, because its
    skill is a sum of several saturating modes.""",
    published="the model's ratio of the steps at 0.95 and 0.5 is 1.243 for every skill (computed)",
)
class SlowTail(Emerging):
    """In how many runs the ratio of the times of 0.95 and 0.5 is above the model's; a run that ends before is counted
    by the least its ratio can be."""

    skills = size(quick=[1, 2], full=[1, 2, 3, 4])
    fewest = size(quick=0, full=20, label="fewest runs that reach 0.95")

    slower = significant("sign test of T(0.95)/T(0.5) > 1.243, skill {k}", 0.01)

    def ratios(self, got: Curves, skill: int) -> Floats:
        half, most = (self.times(got, level)[:, skill - 1] for level in (0.5, 0.95))
        return np.where(np.isfinite(half), np.minimum(most, got.steps[-1]) / half, 0)

    def judge(self, got: Curves) -> Findings:
        checks: list[Check] = []
        rows: list[Row] = []
        numbers: dict[str, float] = {}
        for skill in self.skills:
            ratios, reached = self.ratios(got, skill), np.isfinite(self.times(got, 0.95)[:, skill - 1])
            above = int(np.sum(ratios > MODEL_RATIO))
            enough = int(reached.sum()) >= self.fewest
            p_value = float(stats.binomtest(above, len(ratios), alternative="greater").pvalue) if enough else None
            checks.append(self.slower(p_value, k=skill))
            numbers |= {f"median T(0.95)/T(0.5), skill {skill}": float(np.median(ratios)),
                        f"runs above 1.243, skill {skill}": above}
            rows += [{"skill": skill, "run": run, "ratio": float(ratio), "reached 0.95": bool(end)}
                     for run, (ratio, end) in enumerate(zip(ratios, reached, strict=True))]
        return Findings(checks, rows, numbers)

    @plots.styled
    def draw(self, got: Curves) -> plots.Figure:
        figure = plots.blank(2.3)
        axes = figure.add_subplot(xlabel="skill", ylabel="T(0.95) / T(0.5)", xticks=self.skills)
        axes.axhline(MODEL_RATIO, color=plots.GREY, linestyle="dashed", label="solvable model")
        for skill in self.skills:
            ratios, reached = self.ratios(got, skill), np.isfinite(self.times(got, 0.95)[:, skill - 1])
            at = skill + np.linspace(-0.15, 0.15, len(ratios))
            axes.plot(at[reached], ratios[reached], "o", color=plots.COLOURS[0], markersize=3,
                      label="a run" if skill == self.skills[0] else "")
            axes.plot(at[~reached], ratios[~reached], "^", color=plots.COLOURS[1], markersize=3,
                      label="at least: it ended before" if not reached.all() and skill == self.skills[-1] else "")
        axes.set_ylim(bottom=1)
        plots.legend_above(figure, axes)
        return figure
