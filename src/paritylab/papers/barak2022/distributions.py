"""How convergence times are distributed: Figure 2, left and centre."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from paritylab import MLP, SGD, Learner, Parity, Setup, plots
from paritylab.claims.lab import Lab
from paritylab.claims.registry import reproduces
from paritylab.claims.verdicts import Interval, Outcome, at_least, significant
from paritylab.papers.barak2022.common import FIXED_8192, FRESH_128, times
from paritylab.statistics import percentile, percentile_interval


@reproduces("barak2022.fig2-left")
def no_lucky_convergence(lab: Lab) -> Outcome:
    """Convergence times of very many runs, beside random search with the same median."""
    n = lab.pick("n", quick=20, full=30)
    widths = lab.pick("widths", quick=[10], standard=[10], full=[10, 100])
    runs = lab.pick("runs", quick=1000, full=1_000_000)
    samples, data, checks, numbers = {}, [], [], {}
    for width in widths:
        setup = Setup(Parity(n, 3), Learner(MLP(width), optimiser=SGD(1.0)), FRESH_128)
        records = lab.measure(setup, runs).records
        low, median, high = (percentile(records.t_c, records.status, q, records.steps) for q in (0.1, 50, 99))
        ends = [percentile_interval(records.t_c, records.status, q, steps=records.steps) for q in (0.1, 99)]
        test = stats.kstest(records.t_c[records.t_c > 0], geometric(median).cdf)
        samples[f"width {width}"] = records
        checks += [
            at_least(f"0.1 % quantile / median, width {width}", low / median, 0.25, ratio(ends[0], median)),
            at_least(f"99 % quantile / median, width {width}", high / median, 1.5, ratio(ends[1], median)),
            significant(f"p-value of a geometric law, width {width}", test.pvalue, 1e-6),
        ]
        times, counts = np.unique(records.t_c[records.t_c > 0], return_counts=True)
        data += [{"width": width, "t_c": int(t), "runs": int(c)} for t, c in zip(times, counts, strict=True)]
        data.append({"width": width, "t_c": None, "runs": int(np.sum(records.t_c < 0))})
        numbers |= {f"median, width {width}": median, f"smallest t_c, width {width}": float(times[0])}
    figure = plots.histogram_plot(samples, reference=float(math.comb(n, 3)), bins=60 if runs < 10**5 else 240)
    return Outcome(checks, data, figure, numbers)


def geometric(median: float) -> stats.rv_frozen:
    """Random search rescaled to a median: the law of the first success of independent trials."""
    return stats.geom(1 - 0.5 ** (1 / median))


def ratio(interval: tuple[float, float], median: float) -> tuple[float, float]:
    return interval[0] / median, interval[1] / median


@reproduces("barak2022.fig2-center")
def start_decides(lab: Lab) -> Outcome:
    """Convergence times of ten starts with ten streams of data each: how much of their spread is the start's."""
    n = lab.pick("n", quick=20, full=50)
    widths = lab.pick("widths", quick=[10], full=[10, 100])
    lr = lab.pick("lr", quick=0.05, full=0.01)
    starts = lab.pick("initialisations", quick=10, full=10)
    streams = lab.pick("streams", quick=10, full=10)
    protocol = replace(FIXED_8192, max_steps=lab.pick("max_steps", quick=8000, full=100_000))
    checks, data, numbers, shown = [], [], {}, {}
    for width in widths:
        laws = [f"fixed:{start} torch" for start in range(starts)]
        learners = [Learner(MLP(width), law, optimiser=SGD(lr), batch=128) for law in laws]
        results = lab.sweep([Setup(Parity(n, 3), learner, protocol) for learner in learners], streams)
        groups = [times(result.records) for result in results]
        solved = np.isfinite(groups).mean()
        found = intraclass([np.log(group[np.isfinite(group)]) for group in groups])
        checks += [
            at_least(f"share of runs solved, width {width}", float(solved), 0.8),
            at_least(f"intraclass correlation of log t_c, width {width}", found.correlation, 0.5, found.interval),
            significant(f"p-value of equal initialisations, width {width}", found.p_value, 1e-3),
        ]
        numbers[f"F, width {width}"] = found.f
        data += [{"width": width, "initialisation": start, "stream": stream, "t_c": int(t) if t < np.inf else None}
                 for start, group in enumerate(groups) for stream, t in enumerate(group)]
        shown[f"width {width}"] = groups
    return Outcome(checks, data, draw_groups(shown), numbers)


class Intraclass(NamedTuple):
    """The share of the variance that lies between groups, its 95 % interval, and the F-test of no such share."""

    correlation: float
    interval: Interval
    f: float
    p_value: float


def intraclass(groups: Sequence[Any]) -> Intraclass:
    """One-way random-effects ANOVA; exact for groups of one size, with their effective size otherwise.

    >>> intraclass([[1, 2, 3], [11, 12, 13], [21, 22, 23]]).correlation > 0.98
    True
    """
    groups = [np.asarray(group, float) for group in groups if len(group)]
    sizes = np.array([len(group) for group in groups])
    between_freedom, within_freedom = len(groups) - 1, int(sizes.sum()) - len(groups)
    if between_freedom < 1 or within_freedom < 1:
        return Intraclass(math.nan, (-1.0, 1.0), math.nan, math.nan)
    means = np.array([group.mean() for group in groups])
    grand = np.concatenate(groups).mean()
    between = float(sizes @ (means - grand) ** 2) / between_freedom
    within = sum(float(((group - mean) ** 2).sum()) for group, mean in zip(groups, means, strict=True)) / within_freedom
    size = (sizes.sum() - (sizes**2).sum() / sizes.sum()) / between_freedom
    law = stats.f(between_freedom, within_freedom)
    f = between / within if within else math.inf

    def share(ratio: float) -> float:
        return float((ratio - 1) / (ratio + size - 1)) if math.isfinite(ratio) else 1.0

    return Intraclass(share(f), (share(f / law.ppf(0.975)), share(f / law.ppf(0.025))), f, float(law.sf(f)))


@plots.styled
def draw_groups(shown: Mapping[str, Sequence[Any]]) -> Any:
    """A column for each initialisation, in the order of their medians; a point for each stream of data."""
    figure = plots.blank(2.3)
    axes = figure.add_subplot(xlabel="initialisation, by its median", ylabel="steps to convergence", yscale="log")
    for i, ((label, groups), colour, marker) in enumerate(zip(shown.items(), plots.COLOURS, "os", strict=False)):
        for place, group in enumerate(sorted(groups, key=np.median), 1):
            solved = group[np.isfinite(group)]
            axes.plot(np.full(len(solved), place + 0.25 * i), solved, marker, color=colour, fillstyle="none",
                      markersize=3.5, label=label if place == 1 else None)
    if len(shown) > 1:
        figure.legend(*axes.get_legend_handles_labels(), loc="outside upper center", ncols=2)
    return figure
