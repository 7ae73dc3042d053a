"""Networks of Section 6 and Appendix E: how they start, how they are trained, and how well they do."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import Any

import numpy as np
from scipy import stats

from paritylab import MLP, SGD, Curves, Learner, Parity, Protocol, Setup, plots
from paritylab.aliases import Interval
from paritylab.claims.intervals import mean

DEEP: tuple[int, ...] = (512, 512, 64)
SHALLOW: tuple[int, ...] = (512,)


def law(sigma: float) -> str:
    """The Rademacher law with a Gaussian perturbation; a pure Gaussian at infinite sigma.

    >>> law(0), law(0.1), law(math.inf)
    ('rademacher', 'perturbed-rademacher:0.1', 'gaussian')
    """
    return "rademacher" if sigma == 0 else "gaussian" if sigma == math.inf else f"perturbed-rademacher:{sigma:g}"


def named(init: str) -> str:
    """A law as a figure names it."""
    name, _, numbers = init.partition(":")
    sigma = "\N{GREEK SMALL LETTER SIGMA}"
    shown = {"rademacher": "Rademacher", "gaussian": "Gaussian", "perturbed-rademacher": f"{sigma} = {numbers}",
             "uniform-perturbed": f"uniform {numbers}", "discrete": f"{{{numbers}}}"}
    if name == "sparse-rademacher":
        return f"sparse 1/{round(1 / float(numbers))}"
    return shown[name]


def trained(init: str, d: int, widths: Sequence[int] = DEEP, *, degree: int | None = None, loss: str = "hinge",
            sample: int | None = None, lr: float = 0.01) -> Setup:
    """Plain SGD on a parity of the first ``degree`` of d bits (all of them unless said): batch 64, 10^4 test inputs."""
    problem = Parity(n=d, k=d if degree is None else degree, sample=sample)
    learner = Learner(MLP(tuple(widths)), init, loss, SGD(lr), batch=64)
    return Setup(problem, learner, Protocol(eval_size=10_000))


def difference(first: np.ndarray, second: np.ndarray) -> tuple[float, Interval]:
    """The difference of two means and its Welch interval."""
    value = float(np.mean(first) - np.mean(second))
    if np.ptp(first) == np.ptp(second) == 0:
        return value, (value, value)
    interval = stats.ttest_ind(first, second, equal_var=False).confidence_interval(0.95)
    return value, (float(interval.low), float(interval.high))


def apart(first: np.ndarray, second: np.ndarray) -> float:
    """By how much the interval of the first mean lies above that of the second; negative where they overlap."""
    return mean(first)[1][0] - mean(second)[1][1]


def ranks_agree(x: np.ndarray, y: np.ndarray) -> float:
    """Spearman's rank correlation.

    >>> ranks_agree(np.array([1.0, 2.0, 3.0]), np.array([0.1, 0.1, 0.4])).__round__(3)
    0.866
    """
    return float(np.corrcoef(stats.rankdata(x), stats.rankdata(y))[0, 1])


def final(curves: Curves) -> np.ndarray:
    """Each run's accuracy at its last point; 0 for one that diverged."""
    return np.nan_to_num(curves.accuracy[:, -1])


def rows(found: Mapping[str, Curves], **columns: Any) -> list[dict[str, Any]]:
    """Accuracy and loss of each run at each point."""
    return [columns | {"init": name, "run": run, "step": int(step), "accuracy": accuracy, "loss": loss}
            for name, curves in found.items()
            for run in range(len(curves.accuracy))
            for step, accuracy, loss in zip(curves.steps, curves.accuracy[run].tolist(), curves.loss[run].tolist(),
                                            strict=True)]


@plots.styled
def accuracy_plot(found: Mapping[str, Curves], mark: int | None = None) -> plots.Figure:
    """Mean test accuracy against steps, with bands of Student-t intervals; ``mark`` where it is judged."""
    figure = plots.blank(2.4 + 0.08 * len(found))
    axes = figure.add_subplot(xlabel="steps", ylabel="test accuracy", ylim=(0.45, 1.02))
    for (name, curves), colour, line in zip(found.items(), cycle(plots.COLOURS), cycle(plots.LINES), strict=False):
        ends = np.array([[centre, *interval] for centre, interval in map(mean, curves.accuracy.T)]).T
        axes.plot(curves.steps, ends[0], color=colour, linestyle=line, label=name)
        if np.isfinite(ends).all():
            axes.fill_between(curves.steps, ends[1], ends[2], color=colour, alpha=0.2, linewidth=0)
    if mark is not None:
        axes.axvline(mark, color=plots.GREY, linewidth=0.8, linestyle="dotted")
    axes.axhline(0.5, color=plots.GREY, linewidth=0.6)
    axes.margins(x=0.01)
    axes.locator_params(axis="x", nbins=5)
    plots.legend_above(figure, axes)
    return figure
