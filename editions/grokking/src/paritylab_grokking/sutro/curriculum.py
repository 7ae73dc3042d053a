"""Inputs that grow: a parity learned on few bits, then on more, against learning it on all of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

import paritylab as pl
from paritylab import SGD, Result, Setup, plots
from paritylab.aliases import Arrays, Floats
from paritylab.claims import Findings, Lab, Trial, at_least, claim, computation, size
from paritylab.claims.intervals import estimate, share
from paritylab.claims.published import tail
from paritylab.engines.checkpoints import Checkpoint
from paritylab_grokking.sutro.common import INSIDE, passes, published, setup, steps_of

SAMPLE, WIDTH, ENOUGH = 1000, 200, 0.95
STAGES = (10, 30, 50)
AT_ONCE = 50
"""Runs of one computation."""


@claim(
    "sutro.n-curriculum",
    where="findings, curriculum, test 2",
    kind="empirical",
    title="Growing the input from 10 to 30 to 50 bits is fifteen times faster",
    statement="""A network that learns the parity on 10 bits and is then given 30 and 50 bits, the new input weights
    starting small, reaches 95 % on 50 bits after a fraction of the passes that training on 50 bits takes.""",
    published="Direct 292 passes, with the curriculum 18 + 1 + 1 = 20 (one run of each): a ratio of 14.6",
)
class Curriculum(Trial):
    """Passes until 95 % of 200 test inputs are right, summed over the stages; width 200, rate 0.1, decay 0.01."""

    runs = size(quick=5, full=200)
    direct = size(quick=300, full=500, label="passes on 50 bits at most")
    staged = size(300, label="passes of a stage at most")

    faster = at_least("median passes, direct (unfinished runs count as all) / by stages", 8, claimed=14.6)
    direct_inside = at_least("smaller share of direct runs on one side of the published {theirs:g} passes", INSIDE)
    staged_inside = at_least("smaller share of runs by stages on one side of the published {theirs:g} passes", INSIDE)
    short = at_least("share of runs whose last two stages take at most 6 passes together", 0.9)

    def work(self, lab: Lab) -> tuple[Result, list[Arrays]]:
        staged = lab.compute_each(by_stages, [
            {"first": first, "runs": min(AT_ONCE, self.runs), "most": self.staged}
            for first in range(0, self.runs, AT_ONCE)])
        return lab.measure(stage(STAGES[-1], self.direct), self.runs), staged

    def times(self, got: tuple[Result, list[Arrays]]) -> tuple[Floats, Floats]:
        """Passes of direct runs, and (runs, stages) of the others; infinite where 95 % were not reached."""
        return passes(got[0], SAMPLE), np.concatenate([each["passes"] for each in got[1]])

    def judge(self, got: tuple[Result, list[Arrays]]) -> Findings:
        direct, staged = self.times(got)
        whole = staged.sum(axis=1)
        ratio = estimate(lambda a, b: float(np.median(np.minimum(a, self.direct)) / np.median(b)), direct, whole,
                         rng=self.rng(0))
        theirs = {name: float(published("curriculum", name)[0]) for name in ("direct 50", "10 30 50")}
        checks = [self.faster(*ratio),
                  self.direct_inside(*tail(direct, theirs["direct 50"]), theirs=theirs["direct 50"]),
                  self.staged_inside(*tail(whole, theirs["10 30 50"]), theirs=theirs["10 30 50"]),
                  self.short(*share(staged[:, 1:].sum(axis=1) <= 6))]
        rows = [{"run": run, "direct": _finite(direct[run]), **{f"{n} bits": _finite(each)
                 for n, each in zip(STAGES, staged[run], strict=True)}} for run in range(self.runs)]
        numbers = {"share of direct runs that finish": float(np.isfinite(direct).mean()),
                   "median passes by stages": float(np.median(whole))}
        return Findings(checks, rows, numbers)

    def draw(self, got: tuple[Result, list[Arrays]]) -> plots.Figure:
        return finished(*self.times(got), self.direct)


def stage(n: int, most: int) -> Setup:
    """Training on n bits, for so many passes at most."""
    return setup(n, 3, SAMPLE, WIDTH, SGD(0.1, weight_decay=0.01, skip_satisfied=True), most, ENOUGH)


@computation
def by_stages(seed: int, first: int, runs: int, most: int) -> dict[str, Any]:
    """Passes of each run (runs, stages) until 95 % of the test inputs of a stage are right.

    A stage has a sample, test inputs and passes of its own: those of another seed. Runs that are through wait for the
    others, with the weights that they had then.
    """
    found, start = np.full((runs, len(STAGES)), np.inf), None
    for number, n in enumerate(STAGES):
        own = (seed + number * 2**30) % 2**32
        start = None if start is None else next_stage(start, n, own)
        found[:, number], start = trained(stage(n, most), range(first, first + runs), own, start, most)
    return {"passes": found}


def next_stage(reached: Checkpoint, n: int, seed: int) -> Checkpoint:
    """The same networks with n inputs, before the first step of a stage: new weights are N(0, 0.1^2 2/n)."""
    return replace(reached.grown(n, f"normal:{0.1 * np.sqrt(2 / n):.6g}", seed), step=0)


def trained(
    setup: Setup, runs: range, seed: int, start: Checkpoint | None, most: int
) -> tuple[Floats, Checkpoint]:
    """Passes of each run until it is there, infinite where it is not, and all runs as they were then."""
    times, reached = np.full(len(runs), np.inf), start
    for done in range(1, most + 1):
        made = pl.curves(setup, [done * steps_of(SAMPLE)], runs=runs, seed=seed, engine="jax", start=start,
                         checkpoint=True, progress=False)
        start = made.checkpoint
        assert start is not None
        reached = start if reached is None else chosen(np.isinf(times), start, reached)
        times[np.isinf(times) & (made.accuracy[:, -1] >= ENOUGH)] = done
        if np.isfinite(times).all():
            break
    assert reached is not None
    return times, reached


def chosen(which: np.ndarray, one: Checkpoint, other: Checkpoint) -> Checkpoint:
    """The runs of one checkpoint where ``which`` (runs,) is set, and of another of the same params where it is not."""
    params = {name: np.where(which.reshape(-1, *[1] * (leaf.ndim - 1)), leaf, other.params[name])
              for name, leaf in one.params.items()}
    return replace(one, params=params)


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


@plots.styled
def finished(direct: Floats, staged: Floats, most: int) -> plots.Figure:
    """The share of runs that are there after so many passes, with the published ones as marks."""
    figure = plots.blank(2.2)
    axes = figure.add_subplot(xlabel="passes", ylabel="share of runs", xscale="log", ylim=(-0.02, 1.02))
    cases = [("10, 30, 50 bits", staged.sum(axis=1), "10 30 50"), ("10 bits alone", staged[:, 0], None),
             ("50 bits from the start", direct, "direct 50")]
    for (name, times, theirs), colour in zip(cases, plots.COLOURS, strict=False):
        x = np.sort(times[np.isfinite(times)])
        y = np.arange(1, len(x) + 1) / len(times)
        axes.step([5, *x, most], [0, *y, y[-1] if len(y) else 0], where="post", color=colour, label=name)
        if theirs:
            axes.plot(published("curriculum", theirs), [0.5], color=colour, marker="x", markersize=6, linestyle="none")
    axes.plot([], [], color=plots.GREY, marker="x", linestyle="none", label="published")
    axes.set_xlim(5, most)
    plots.legend_above(figure, axes, most=2)
    return figure
