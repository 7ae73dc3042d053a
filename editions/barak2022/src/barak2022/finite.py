"""Finite samples: delayed generalisation, and what weight decay does to it (Figures 4-right and 15)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from barak2022.common import median
from paritylab import MLP, SGD, Curves, Learner, Parity, Setup, plots
from paritylab.aliases import Floats
from paritylab.claims import Check, Findings, Lab, Trial, at_least, at_most, claim, size
from paritylab.claims.intervals import bootstrap, share

GENERALISES = 0.99
MOST = 0.8
"""4 of 5 seeds."""
GRID = "checks at 400 steps evenly spaced on a log scale, not every 100 steps"
Case = tuple[int, float]


class FiniteSample(Trial):
    """An MLP on m examples drawn with replacement: train and test accuracy."""

    n = size(quick=30, full=50)
    width = size(quick=30, full=100)
    runs = size(5)

    def trained(self, lab: Lab, cases: Sequence[Case], steps: int) -> list[Curves]:
        """The curves for each (m, weight decay)."""
        setups = [Setup(Parity(self.n, 3, sample=m, replacement=True),
                        Learner(MLP(self.width), optimiser=SGD(0.1, weight_decay=decay), batch=32))
                  for m, decay in cases]
        return lab.curves_each(setups, log_steps(steps), runs=self.runs, train=True)


DECAY = 0.003
"""The weight decay of Figure 4, right: not printed."""


@claim(
    "barak2022.fig4-right",
    where="Figure 4 (right); Section 5; Appendix C.5",
    kind="empirical",
    title="Grokking on a finite sample",
    statement="""Same network and algorithm, only the sample size m changes: plenty of data gives simultaneous train
    and test success, too little gives pure memorisation, and in between test accuracy jumps to 100% long after the
    training set is fitted.""",
    published="""'a large gap between the time to zero train error vs. zero test error' in the two center panels (Figure
    4, caption); no numbers.""",
)
class Fig4Right(FiniteSample):
    """The first steps with all of the training sample right and with 99 % of test inputs right, for samples of m."""

    samples = size(quick=[60, 600, 4000], full=[100, 1000, 1200, 10_000], label="m")
    runs = size(quick=8, standard=10, full=40)
    steps = size(quick=30_000, standard=300_000, full=1_000_000)
    no_gap = at_most("median t_test / t_train, m={m}", 2, part="large sample: no gap")
    reached = at_least("share of runs that generalise, m={m}", MOST, part="between: grokking")
    grokking = at_least("median t_test / t_train of these, m={m}", 5, part="between: grokking")
    memorised = at_least("share of runs with test accuracy <= 0.6 at the end, m={m}", MOST,
                         part="small sample: memorised")

    def work(self, lab: Lab) -> list[Curves]:
        return self.trained(lab, [(m, DECAY) for m in self.samples], self.steps)

    def judge(self, got: list[Curves]) -> Findings:
        found = dict(zip(self.samples, got, strict=True))
        small, *between, large = found
        delays = {m: delay(curves) for m, curves in found.items()}
        checks: list[Check] = [self.no_gap(median(delays[large]), self.spread(delays[large], large), m=large)]
        for m in between:
            reached = found[m].first(GENERALISES) >= 0
            late = delays[m][reached]
            checks += [self.reached(*share(reached), m=m), self.grokking(median(late), self.spread(late, m), m=m)]
        checks.append(self.memorised(*share(final(found[small].accuracy) <= 0.6), m=small))
        numbers = {f"share of runs that generalise, m={m}": float(np.mean(curves.first(GENERALISES) >= 0))
                   for m, curves in found.items()}
        return Findings(checks, rows({(m, DECAY): curves for m, curves in found.items()}), numbers, GRID)


    def draw(self, got: list[Curves]) -> plots.Figure:
        return draw_curves(dict(zip(self.samples, got, strict=True)))

    def spread(self, delays: Any, m: int) -> tuple[float, float]:
        return bootstrap(median, delays, rng=self.rng(m))


@claim(
    "barak2022.fig15",
    where="Figure 15; Appendix C.5",
    kind="empirical",
    title="Sample size and weight decay trade off",
    statement="More weight decay lets smaller samples generalise, up to the point where training itself breaks down.",
    published="""'larger lambda improves generalization, but can cause optimization to fail (bottom row)'; 'When m is
    sufficiently large [...], generalization error is negligible. When m is too small, the model fails to train' (Figure
    15, caption); no numbers.""",
)
class Fig15(FiniteSample):
    """The smallest sample that generalises with and without weight decay, and training under the largest decay."""

    samples = size(quick=[100, 600, 2000], full=[100, 500, 1000, 5000], label="m")
    decays = size(quick=[0.0, 0.01, 0.5], full=[0.0, 0.003, 0.01, 0.1, 0.5], label="lambda")
    runs = size(quick=5, standard=10, full=20)
    steps = size(quick=15_000, standard=100_000, full=200_000)
    plenty = at_least("share of runs that generalise, m={m}, decay 0", MOST, part="large m: no gap")
    helped = at_least("share of runs that generalise, m={m}, decay 0.01", 0.5, part="larger lambda generalises")
    unhelped = at_most("share of runs that generalise, m={m}, decay 0", 0.2, part="larger lambda generalises")
    memorised = at_least("share of runs with test accuracy <= 0.6, m={m}, decay 0", MOST, part="small m: memorised")
    untrained = at_least("share of runs with training accuracy <= 0.9, decay {decay:g}, m={m}", MOST,
                         part="largest lambda: training fails")

    @property
    def cases(self) -> list[Case]:
        return [(m, decay) for m in self.samples for decay in self.decays]

    def work(self, lab: Lab) -> list[Curves]:
        return self.trained(lab, self.cases, self.steps)

    def judge(self, got: list[Curves]) -> Findings:
        found = dict(zip(self.cases, got, strict=True))
        small, between, large, strongest = self.samples[0], self.samples[-2], self.samples[-1], self.decays[-1]

        def generalise(m: int, decay: float) -> Any:
            return share(found[m, decay].first(GENERALISES) >= 0)

        checks = [self.plenty(*generalise(large, 0.0), m=large), self.helped(*generalise(between, 0.01), m=between),
                  self.unhelped(*generalise(between, 0.0), m=between),
                  self.memorised(*share(final(found[small, 0.0].accuracy) <= 0.6), m=small)]
        checks += [self.untrained(*share(final(found[m, strongest].train_accuracy) <= 0.9), decay=strongest, m=m)
                   for m in self.samples]
        return Findings(checks, rows(found), note=GRID)

    def draw(self, got: list[Curves]) -> plots.Figure:
        return draw_map(dict(zip(self.cases, got, strict=True)), self.samples, self.decays)


def log_steps(last: int, points: int = 400) -> list[int]:
    """0, 1, ..., last: as many steps as there are distinct whole numbers among these evenly spaced ones.

    >>> log_steps(1000, points=4)
    [0, 1, 10, 100, 1000]
    """
    return [0, *np.unique(np.geomspace(1, last, points).round().astype(int)).tolist()]


def times(first: Any) -> Floats:
    """First times, ``inf`` where there is none."""
    return np.where(first >= 0, first, np.inf)


def delay(curves: Curves) -> Floats:
    """t_test / t_train of each run: ``inf`` where only the latter was reached, NaN where neither was."""
    with np.errstate(invalid="ignore"):
        return times(curves.first(GENERALISES)) / times(curves.first_train(1.0))


def final(accuracy: Any) -> Floats:
    """The last accuracy of each run."""
    return np.asarray(accuracy)[:, -1]


def rows(found: Mapping[Case, Curves]) -> list[dict[str, Any]]:
    """One row for each run; None where a time was not reached."""
    out: list[dict[str, Any]] = []
    for (m, decay), curves in found.items():
        test, train = curves.first(GENERALISES), curves.first_train(1.0)
        for run in range(len(test)):
            out.append({"m": m, "decay": decay, "run": run,
                        "t_train": int(train[run]) if train[run] >= 0 else None,
                        "t_test": int(test[run]) if test[run] >= 0 else None,
                        "train_accuracy": float(final(curves.train_accuracy)[run]),
                        "test_accuracy": float(final(curves.accuracy)[run])})
    return out


@plots.styled
def draw_curves(found: Mapping[int, Curves]) -> plots.Figure:
    """A panel for each m: train and test accuracy of every run."""
    lines = math.ceil(len(found) / 2)
    figure = plots.blank(0.55 + 0.85 * lines)
    grid = np.atleast_2d(figure.subplots(lines, 2, sharex=True, sharey=True))
    for axes, (m, curves) in zip(grid.flat, found.items(), strict=False):
        assert curves.train_accuracy is not None
        for label, accuracy, colour, line in (("train", curves.train_accuracy, plots.COLOURS[1], "dashed"),
                                              ("test", curves.accuracy, plots.COLOURS[0], "solid")):
            for run, values in enumerate(accuracy):
                axes.plot(curves.steps[1:], values[1:], color=colour, linestyle=line, linewidth=0.7,
                          label=label if run == 0 else None)
        axes.set_title(f"m = {m}", fontsize=7)
        axes.set(xscale="log", xlim=(10, curves.steps[-1]), ylim=(0.45, 1.02), yticks=(0.5, 0.75, 1))
    for axes in grid.flat[len(found):]:
        axes.set_visible(False)
    for axes in grid.flat[len(found) - 2:len(found)]:
        axes.tick_params(labelbottom=True)
    figure.legend(*grid.flat[0].get_legend_handles_labels(), loc="outside upper center", ncols=2)
    figure.supxlabel("steps", fontsize=8)
    figure.supylabel("accuracy", fontsize=8)
    return figure


@plots.styled
def draw_map(found: Mapping[Case, Curves], samples: Sequence[int], decays: Sequence[float]) -> plots.Figure:
    """The median final test accuracy as a colour for each m and decay; the numbers are test / train in per cent."""
    grid = [[found[m, decay] for m in samples] for decay in decays]
    test = np.array([[median(final(curves.accuracy)) for curves in line] for line in grid])
    train = np.array([[median(final(curves.train_accuracy)) for curves in line] for line in grid])
    figure = plots.blank(0.8 + 0.27 * len(decays))
    axes = figure.add_subplot(xlabel="sample size m", ylabel=r"weight decay $\lambda$")
    image = axes.imshow(test, vmin=0.5, vmax=1, cmap="cividis", aspect="auto")
    for (line, column), value in np.ndenumerate(test):
        axes.text(column, line, f"{100 * value:.0f}/{100 * train[line, column]:.0f}", ha="center", va="center",
                  fontsize=6, color="black" if value > 0.75 else "white")
    axes.set_xticks(range(len(samples)), [str(m) for m in samples])
    axes.set_yticks(range(len(decays)), [f"{decay:g}" for decay in decays])
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    axes.set_title("final test / train accuracy, per cent (medians)", fontsize=7)
    figure.colorbar(image, ax=axes, label="test accuracy")
    return figure
