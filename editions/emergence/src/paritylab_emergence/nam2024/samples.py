"""Emergence in the number of examples: Figures 1(b) and 11(b)."""

# matplotlib leaves its keyword arguments untyped.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from paritylab import SGD, Learner, Protocol, Setup, plots
from paritylab.aliases import Floats
from paritylab.claims import Check, Findings, Lab, Trial, at_least, at_most, between, claim, size
from paritylab.claims.intervals import jackknife, mean
from paritylab.engines.curves import Curves
from paritylab_emergence import skills as theory
from paritylab_emergence.nam2024.common import ALPHA, Row, crossing, network, power, problem, strengths

SPREAD, RATE = 0.001, 0.05
ENOUGH = 800.0
"""D_c, the examples that one skill needs."""
MOST_EXAMPLES = 2**31 - 1
"""Batch times steps must be below this."""
EARLY, EARLY_STRENGTH = 200, 0.134
"""With 200 examples of a skill the formula has it at 0.134 already; the network rises more abruptly (Section 5.5)."""


def setup(tasks: int, examples: int, batch: int, width: int, steps: int, falls: Sequence[int], inputs: int) -> Setup:
    """A finite sample in reshuffled passes; the rate is halved at each of these steps."""
    pairs = ",".join(f"{at},{0.5 ** (i + 1)}" for i, at in enumerate(falls))
    learner = Learner(network(width), init=f"normal:{SPREAD}", loss="square",
                      optimiser=SGD(RATE, schedule=f"steps:{pairs}"), batch=batch)
    return Setup(problem(tasks, sample=examples), learner, Protocol(max_steps=steps, eval_size=inputs * tasks))


class Sampled(Trial):
    """Runs on samples of several sizes, whose strengths are looked at in the end, (runs, sizes, tasks)."""

    def ends(self, got: list[Curves]) -> Floats:
        return np.stack([strengths(curves)[:, -1] for curves in got], axis=1)

    def left(self, got: list[Curves]) -> list[float]:
        """The largest training loss in the end, of each size."""
        return [float("nan") if curves.train_loss is None else float(curves.train_loss[:, -1].max()) for curves in got]


def draw_strengths(examples: Sequence[int], ends: Floats, frequencies: Floats) -> plots.Figure:
    """Means over runs with 95 % intervals against D, and the formula of each task."""
    figure = plots.blank(2.7, "double" if len(frequencies) > 1 else "single")
    axes = figure.add_subplot(xlabel="examples D", ylabel="strength R/S in the end", ylim=(-0.1, 1.1))
    along = np.linspace(0, max(examples), 500)
    for task, (frequency, colour) in enumerate(zip(frequencies, plots.COLOURS, strict=False)):
        value, low, high = np.array([(found, *interval) for found, interval in map(mean, ends[:, :, task].T)]).T
        reach = np.nan_to_num(np.stack([value - low, high - value]), posinf=0.0)
        label = f"skill {task + 1}, frequency {frequency:.2f}" if len(frequencies) > 1 else f"mean of {len(ends)} runs"
        axes.errorbar(examples, value, reach, color=colour, marker="o", markersize=3, elinewidth=0.8, capsize=1.5,
                      label=label)
        axes.plot(along, theory.with_data(along * frequency, ENOUGH), color=colour, linestyle="dashed", linewidth=0.9,
                  label="$1 - \\sqrt{1 - D P_k/800}$" if task == len(frequencies) - 1 else "")
    plots.legend_above(figure, axes)
    return figure


@claim(
    "nam2024.data-calibration",
    where="Figure 11(b); Section 5.2, Equation 17",
    kind="empirical",
    title="A skill needs 800 examples",
    statement="""Trained to the end on D examples of one parity, the network's skill strength follows
    1 - sqrt(1 - D/D_c) with D_c = 800, except that it rises more abruptly for few examples.""",
    published="D_c = 800: R/S = 0.29, 0.5, 1 at D = 400, 600, 800 (computed from it)",
)
class DataCalibration(Sampled):
    """The strength after full-batch descent on samples of growing size."""

    examples = size(quick=[400, 600, 800, 1200], full=[*range(100, 2001, 100)], label="D")
    runs = size(quick=3, standard=5, full=50)
    steps = size(quick=2500, full=30_000)
    inputs = size(quick=4000, full=20_000, label="inputs of a check")
    stop = size(1e-5, label="training loss at which a run stops")

    half = between("D of half strength", 480, 750)
    most = at_least("mean R/S at D = 900", 0.8, only=("standard", "full"))
    full_strength = at_least("mean R/S at D = 1500", 0.95, only=("standard", "full"))
    abrupt = at_most("mean R/S at D = 200", EARLY_STRENGTH, only=("standard", "full"))

    def work(self, lab: Lab) -> list[Curves]:
        setups = [setup(1, count, count, 1000, self.steps, [1, 10_000, 20_000], self.inputs) for count in self.examples]
        return lab.curves_each(setups, self.steps, 500, self.runs, stop=self.stop)

    def judge(self, got: list[Curves]) -> Findings:
        ends, sizes = self.ends(got)[:, :, 0], np.array(self.examples, float)
        checks = [self.half(*jackknife(lambda runs: crossing(sizes, runs.mean(0), 0.5), ends))]
        if self.size != "quick":
            asked = ((self.most, 900), (self.full_strength, 1500), (self.abrupt, 200))
            checks += [rule(*mean(ends[:, self.examples.index(count)])) for rule, count in asked]
        found = [mean(column) for column in ends.T]
        rows: list[Row] = [{"D": count, "R/S": value, "low": low, "high": high, "formula": float(by),
                            "largest training loss": left}
                           for count, (value, (low, high)), by, left in zip(
                               self.examples, found, theory.with_data(sizes), self.left(got), strict=True)]
        return Findings(checks, rows)

    @plots.styled
    def draw(self, got: list[Curves]) -> plots.Figure:
        return draw_strengths(self.examples, self.ends(got), np.ones(1))


@claim(
    "nam2024.data-emergence",
    where="Figure 1(b); Section 5.2, Equation 17",
    kind="empirical",
    title="Rarer skills need proportionally larger samples",
    statement="""With five tasks of power-law frequency each task emerges in D where about 800 of its own examples are
    in the sample.""",
    published="a figure; R_k/S = 0.5 at D = 1012, 3069, 5871, 9303, 13295 (computed from D_c = 800)",
)
class DataEmergence(Sampled):
    """The strength of each skill after training to the end on samples of growing size."""

    tasks = size(quick=2, full=5)
    skills = size(quick=2, full=4, label="skills that are judged")
    early = size(quick=[2], full=[2, 3], label="skills judged at D = 200/P_k")
    width = size(quick=300, full=1000)
    examples = size(quick=[400, 800, 2400, 3600],
                    full=[*range(500, 10_001, 500), *range(11_000, 15_001, 1000), *range(20_000, 35_001, 5000)],
                    label="D")
    most = size(quick=10**9, full=2000, label="batches are D // (D // this)")
    passes = size(quick=3000, full=100_000)
    inputs = size(quick=4000, full=20_000, label="inputs of each task in a check")
    runs = size(quick=3, full=10)
    stop = size(1e-4, label="training loss at which a run stops")

    near = between("D of half strength / (600/P_k), skill {k}", 1 / 1.4, 1.4)
    exponent = between("exponent of these D in the rank", 1.4, 2.0, claimed=1.6)
    abrupt = at_most("mean R_k/S at D = 200/P_k, skill {k}", EARLY_STRENGTH)

    @property
    def frequencies(self) -> Floats:
        return theory.frequencies(ALPHA, self.tasks)

    def setup(self, count: int) -> tuple[Setup, int]:
        """That of a sample size, and its steps: as many passes as can be numbered, where those asked for cannot."""
        batch = count // max(1, count // self.most)
        steps = min(round(self.passes * count / batch), MOST_EXAMPLES // batch)
        first = max(1, round(count / batch))
        falls = [first, *(at * first for at in range(10_000, self.passes, 10_000) if at * first < steps)]
        return setup(self.tasks, count, batch, self.width, steps, falls, self.inputs), steps

    def work(self, lab: Lab) -> list[Curves]:
        asked = [self.setup(count) for count in self.examples]
        return [lab.curves(each, steps, max(1, steps // 200), self.runs, stop=self.stop) for each, steps in asked]

    def judge(self, got: list[Curves]) -> Findings:
        ends, sizes, asked = self.ends(got), np.array(self.examples, float), 600 / self.frequencies

        def halves(runs: Floats) -> Floats:
            return np.array([crossing(sizes, runs[:, :, task].mean(0), 0.5) for task in range(self.skills)])

        checks: list[Check] = [
            self.near(*jackknife(lambda runs, task=task: halves(runs)[task] / asked[task], ends), k=task + 1)
            for task in range(self.skills)]
        checks.append(self.exponent(*jackknife(lambda runs: power(halves(runs)), ends)))
        for skill in self.early:
            few = EARLY / self.frequencies[skill - 1]
            checks.append(self.abrupt(*mean([np.interp(few, sizes, run[:, skill - 1]) for run in ends]), k=skill))
        rows: list[Row] = []
        for place, (count, left) in enumerate(zip(self.examples, self.left(got), strict=True)):
            for task, frequency in enumerate(self.frequencies):
                value, (low, high) = mean(ends[:, place, task])
                rows.append({"D": count, "skill": task + 1, "R/S": value, "low": low, "high": high,
                             "formula": float(theory.with_data(count * frequency)), "largest training loss": left})
        return Findings(checks, rows, {f"D of half strength, skill {task + 1}": float(each)
                                       for task, each in enumerate(halves(ends))})

    @plots.styled
    def draw(self, got: list[Curves]) -> plots.Figure:
        return draw_strengths(self.examples, self.ends(got), self.frequencies)
