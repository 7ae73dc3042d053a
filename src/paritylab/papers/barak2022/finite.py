"""Finite samples: delayed generalisation, and what weight decay does to it (Figures 4-right and 15)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from paritylab import MLP, SGD, Curves, Learner, Parity, Setup, plots
from paritylab.claims.intervals import proportion
from paritylab.claims.lab import Lab
from paritylab.claims.registry import reproduces
from paritylab.claims.verdicts import Check, Outcome, at_least, at_most, holds
from paritylab.papers.barak2022.common import Floats, bootstrap, median

GENERALISES = 0.99
MOST = 0.8
"""4 of 5 seeds."""
GRID = "checks at 400 steps evenly spaced on a log scale, not every 100 steps"

Case = tuple[int, float]


@reproduces("barak2022.fig4-right")
def grokking(lab: Lab) -> Outcome:
    """The first steps with all of the training sample right and with 99 % of test inputs right, for samples of m."""
    n = lab.pick("n", quick=30, full=50)
    width = lab.pick("width", quick=30, full=100)
    samples = lab.pick("m", quick=[60, 200, 400, 600, 4000], full=[100, 300, 500, 700, 1000, 2000, 10_000])
    steps = lab.pick("steps", quick=60_000, full=1_000_000)
    runs = lab.pick("runs", quick=5, full=5)
    found = {m: train(lab, n, width, m, 0.01, steps, runs) for m in samples}
    delays = {m: delay(curves) for m, curves in found.items()}
    reached = {m: np.isfinite(times(curves.first(GENERALISES))).mean() for m, curves in found.items()}
    m1 = delayed(delays, reached)
    m2 = min((m for m in samples if m1 is not None and m > m1), key=lambda m: worst_first(median(delays[m])),
             default=None)
    memorised = found[samples[0]].accuracy[:, -1] <= 0.6
    share, interval = proportion(int(memorised.sum()), runs)
    checks = [
        delay_check(at_most, "no gap", m2, delays, 2, lab),
        delay_check(at_least, f"grokking in at least {MOST:.0%} of the runs", m1, delays, 5, lab),
        at_least(f"share of runs with test accuracy <= 0.6 at the end, m={samples[0]}", share, MOST, interval),
    ]
    numbers = {f"median t_test / t_train, m={m}": median(delays[m]) for m in samples}
    numbers |= {f"share of runs with t_test, m={m}": float(reached[m]) for m in samples}
    return Outcome(checks, rows({(m, 0.01): curves for m, curves in found.items()}), draw_curves(found), numbers, GRID)


@reproduces("barak2022.fig15")
def sample_size_and_weight_decay(lab: Lab) -> Outcome:
    """The smallest sample that generalises with and without weight decay, and training under the largest decay."""
    n = lab.pick("n", quick=30, full=50)
    width = lab.pick("width", quick=30, full=100)
    samples = lab.pick("m", quick=[150, 400, 1000, 2000], full=[100, 300, 500, 1000, 5000])
    decays = lab.pick("lambda", quick=[0.0, 0.01, 0.1], full=[0.0, 0.001, 0.003, 0.01, 0.03, 0.1])
    steps = lab.pick("steps", quick=50_000, full=1_000_000, standard=300_000)
    runs = lab.pick("runs", quick=5, full=5)
    found = {(m, decay): train(lab, n, width, m, decay, steps, runs) for m in samples for decay in decays}
    smallest = {decay: smallest_sample({m: found[m, decay] for m in samples}) for decay in decays}
    strongest = {m: final(found[m, decays[-1]].train_accuracy) for m in samples}
    checks = [
        holds(f"smallest m with test accuracy >= 0.99 in {MOST:.0%} of the runs, decay 0.01 (decay 0: {smallest[0]:g})",
              smallest[0.01] < smallest[0], f"< {smallest[0]:g}", smallest[0.01]),
        *(at_most(f"largest train accuracy at the end, decay {decays[-1]:g}, m={m}", float(accuracy.max()), 0.9)
          for m, accuracy in strongest.items()),
    ]
    numbers = {f"smallest m, decay {decay:g}": m for decay, m in smallest.items()}
    note = GRID if steps == 1_000_000 or lab.size == "quick" else f"{steps:.0e} steps, not 1e6; {GRID}"
    return Outcome(checks, rows(found), draw_map(found, samples, decays), numbers, note)


def train(lab: Lab, n: int, width: int, m: int, decay: float, steps: int, runs: int) -> Curves:
    """Train and test accuracy of an MLP on m examples drawn with replacement."""
    problem = Parity(n, 3, sample=m, replacement=True)
    learner = Learner(MLP(width), optimiser=SGD(0.1, weight_decay=decay), batch=32)
    return lab.curves(Setup(problem, learner), log_steps(steps), runs=runs, train=True)


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


def worst_first(value: float) -> float:
    return math.inf if math.isnan(value) else value


def delayed(delays: Mapping[int, Floats], reached: Mapping[int, float]) -> int | None:
    """The smallest m at which most runs generalise, and late; that with the longest delay if none is late enough.

    >>> delayed({1: np.array([np.inf]), 2: np.array([7.0]), 3: np.array([9.0])}, {1: 0.0, 2: 1.0, 3: 1.0})
    2
    """
    candidates = [m for m in delays if reached[m] >= MOST]
    late = [m for m in candidates if median(delays[m]) >= 5]
    return min(late) if late else max(candidates, key=lambda m: median(delays[m]), default=None)


def delay_check(rule: Any, name: str, m: int | None, delays: Mapping[int, Floats], bound: float, lab: Lab) -> Check:
    """A bound on the median of t_test / t_train at one m; open where there is no such m."""
    if m is None:
        return rule(f"median t_test / t_train ({name}), no such m", None, bound)
    return rule(f"median t_test / t_train ({name}), m={m}", median(delays[m]), bound,
                bootstrap(median, delays[m], rng=lab.rng(m)))


def smallest_sample(found: Mapping[int, Curves]) -> float:
    """The smallest m at which most runs generalise, ``inf`` if none."""
    return min((m for m, curves in found.items() if (curves.first(GENERALISES) >= 0).mean() >= MOST), default=math.inf)


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
def draw_curves(found: Mapping[int, Curves]) -> Any:
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
def draw_map(found: Mapping[Case, Curves], samples: Sequence[int], decays: Sequence[float]) -> Any:
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
