"""Emergence times of a Transformer: Figure 4."""

# matplotlib leaves its keyword arguments untyped.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import numpy as np

from paritylab import SGD, Learner, Protocol, Setup, multitask, plots
from paritylab.aliases import Floats
from paritylab.claims import Findings, Lab, Trial, between, claim, holds, size
from paritylab.claims.intervals import jackknife
from paritylab.engines.curves import Curves
from paritylab_emergence.nam2024.common import Row, crossing, power, strengths
from paritylab_emergence.nam2024.decoder import decoder

ALPHA = 0.9
EMERGED = 0.05
"""The strength from which on a skill has emerged."""
SMALL = ("A Transformer of the published size asks for 6e18 FLOP of training, years on two cores. This trial has "
         "parities of two of six bits, three tasks, a block of width 16 and a rate of 0.002: it says that such "
         "networks can be tried, and little of those of the paper.")


@claim(
    "nam2024.transformer-times",
    where="Figure 4; Section 5.4; Appendix K.2",
    kind="empirical",
    title="A Transformer's emergence times follow the same power of rank",
    statement="""A one-block decoder Transformer on the five-task problem learns skill k at a time proportional to
    k^(alpha+1).""",
    published="a figure with the line 4000 k^1.9",
)
class TransformerTimes(Trial):
    """When each skill's strength is 0.05, against its rank."""

    tasks = size(quick=3, full=5)
    bits = size(quick=6, full=32, label="n")
    degree = size(quick=2, full=3, label="k")
    width = size(quick=16, full=512, label="d")
    heads = size(quick=2, full=4)
    rate = size(quick=0.002, full=5e-5)
    batch = size(quick=100, full=5000)
    steps = size(quick=2000, full=340_000)
    every = size(quick=20, full=400, label="steps between checks")
    inputs = size(quick=4000, full=20_000, label="inputs of each task in a check")
    runs = size(quick=6, full=5)

    exponent = between("exponent of the mean steps of emergence in the rank", 1.6, 2.2, claimed=1.9)
    in_order = holds("skills emerge in the order of frequency", "in every run", exact=True)

    def work(self, lab: Lab) -> Curves:
        problem = multitask(self.bits, self.tasks, self.degree, alpha=ALPHA + 1, overlap="disjoint")
        learner = Learner(decoder(self.width, self.heads), loss="square", batch=self.batch,
                          optimiser=SGD(self.rate, weight_decay=1e-5, momentum=0.9))
        setup = Setup(problem, learner, Protocol(max_steps=self.steps, eval_size=self.inputs * self.tasks))
        return lab.curves(setup, self.steps, self.every, self.runs)

    def times(self, got: Curves) -> Floats:
        """When each skill emerges in each run, (runs, tasks); infinite where it does not."""
        return np.array([[crossing(got.steps, run[:, task], EMERGED) for task in range(self.tasks)]
                         for run in strengths(got)])

    def judge(self, got: Curves) -> Findings:
        times = self.times(got)
        ordered = (np.diff(times, axis=1) > 0).all(axis=1)
        checks = [self.exponent(*jackknife(lambda runs: power(runs.mean(0)), times))]
        checks.append(self.in_order(bool(ordered.all())))
        rows: list[Row] = [{"run": run, "skill": task + 1, "steps": float(times[run, task])}
                           for run in range(self.runs) for task in range(self.tasks)]
        return Findings(checks, rows, {"runs in the order of frequency": int(ordered.sum())},
                        SMALL if self.size == "quick" else "")

    @plots.styled
    def draw(self, got: Curves) -> plots.Figure:
        times, ranks = self.times(got), np.arange(1, self.tasks + 1)
        figure = plots.blank(2.4)
        axes = figure.add_subplot(xlabel="rank of the skill", ylabel="steps until R/S = 0.05", xscale="log",
                                  yscale="log")
        axes.plot(np.broadcast_to(ranks, times.shape).T, times.T, "o", color=plots.COLOURS[0], markersize=3, alpha=0.6)
        middle = times.mean(0)
        axes.plot(ranks, middle, color=plots.COLOURS[0], label=f"mean of {len(times)} runs")
        if np.isfinite(middle[0]):
            axes.plot(ranks, middle[0] * ranks ** (ALPHA + 1.0), color=plots.GREY, linestyle="dashed",
                      label="$k^{1.9}$")
        axes.set_xticks(ranks, [str(rank) for rank in ranks])
        axes.minorticks_off()
        plots.legend_above(figure, axes)
        return figure
