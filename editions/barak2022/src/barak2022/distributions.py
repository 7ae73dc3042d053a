"""How convergence times are distributed: Figure 2, left and centre."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from barak2022.common import FIXED_8192, FRESH_128, times
from barak2022.plateaus import ENOUGH
from paritylab import MLP, SGD, Learner, Parity, Setup, plots
from paritylab.aliases import Floats, Interval
from paritylab.claims import Check, Findings, Lab, Trial, at_least, claim, significant, size
from paritylab.running.sweeps import Result
from paritylab.statistics import percentile, percentile_interval

Estimate = tuple[float, Interval]


def in_order(t_c: Floats, status: Floats, q: float, steps: Floats) -> Estimate:
    """A percentile with its interval."""
    return percentile(t_c, status, q, steps), percentile_interval(t_c, status, q, steps=steps)


def quotient(above: Estimate, below: Estimate) -> Estimate:
    """The ratio of two estimates, with the widest interval that theirs allow.

    >>> quotient((4.0, (3.0, 5.0)), (2.0, (1.0, 2.0)))
    (2.0, (1.5, 5.0))
    """
    low, high = above[1][0] / below[1][1], above[1][1] / below[1][0] if below[1][0] else math.inf
    return above[0] / below[0], (low, high)


@claim(
    "barak2022.fig2-left",
    where="Figure 2 (left); Section 3.2",
    kind="empirical",
    title="No lucky early convergence",
    statement="""Across very many independent runs the convergence-time distribution has a heavy right tail but no mass
    close to zero, unlike random search whose success time is geometric with rate 1/C(n,k).""",
    published="""'heavy upper tails but no observed successes near t = 0' over 10^6 trials (Figure 2, caption); random
    search is Geom(1/C(n,k)) (Section 3.2).""",
)
class Fig2Left(Trial):
    """Convergence times of very many runs, beside random search with the same median."""

    n = size(quick=20, full=30)
    widths = size(quick=[10], full=[10, 100])
    runs = size(quick=1000, full=1_000_000)
    wider_runs = size(quick=1000, full=100_000, label="runs at width 100")
    early = at_least("0.1 % quantile / median, width {width}", 0.25, part="no success near t = 0")
    unlike_search = significant("p-value of a geometric law, width {width}", 1e-6, part="no success near t = 0")
    late = at_least("99 % quantile / median, width {width}", 1.5, part="heavy upper tail of a small network")

    def work(self, lab: Lab) -> list[Result]:
        return [lab.measure(Setup(Parity(self.n, 3), Learner(MLP(width), optimiser=SGD(1.0)), FRESH_128),
                            self.runs if width == 10 else self.wider_runs) for width in self.widths]

    def judge(self, got: list[Result]) -> Findings:
        checks: list[Check] = []
        rows, numbers = [], {}
        for width, result in zip(self.widths, got, strict=True):
            records = result.records
            low, middle, high = (in_order(records.t_c, records.status, q, records.steps) for q in (0.1, 50, 99))
            solved = records.t_c[records.t_c > 0]
            test: Any = stats.kstest(solved, geometric(middle[0]).cdf)
            checks += [self.early(*quotient(low, middle), width=width), self.unlike_search(test.pvalue, width=width)]
            times, counts = np.unique(solved, return_counts=True)
            rows += [{"width": width, "t_c": int(t), "runs": int(c)} for t, c in zip(times, counts, strict=True)]
            rows.append({"width": width, "t_c": None, "runs": int(np.sum(records.t_c < 0))})
            numbers |= {f"median, width {width}": middle[0], f"smallest t_c, width {width}": float(times[0])}
            if width == 10:
                checks.append(self.late(*quotient(high, middle), width=width))
            else:
                numbers[f"99 % quantile / median, width {width}"] = high[0] / middle[0]
        return Findings(checks, rows, numbers)

    def draw(self, got: list[Result]) -> plots.Figure:
        samples = {f"width {width}": result.records for width, result in zip(self.widths, got, strict=True)}
        return plots.histogram_plot(samples, reference=float(math.comb(self.n, 3)),
                                    bins=60 if self.runs < 10**5 else 240)


def geometric(median: float) -> stats.rv_frozen:
    """Random search rescaled to a median: the law of the first success of independent trials."""
    return stats.geom(1 - 0.5 ** (1 / median))


def ratio(interval: tuple[float, float], median: float) -> tuple[float, float]:
    return interval[0] / median, interval[1] / median


@claim(
    "barak2022.fig2-center",
    where="Figure 2 (center); Section 3.2",
    kind="empirical",
    title="Initialisation, not batch noise, fixes the convergence time",
    statement="""Re-running SGD with different data from one common initialisation gives nearly the same trajectory,
    while changing the initialisation moves the convergence time a lot.""",
    published="""'Optimization path (and convergence time) depend heavily on initialization, not the randomness of SGD'
    (Figure 2, caption).""",
)
class Fig2Center(Trial):
    """Convergence times of ten starts with ten streams of data each: how much of their spread is the start's."""

    n = size(quick=20, full=50)
    widths = size(quick=[10], full=[10, 100])
    lr = size(quick=0.05, full=0.01)
    max_steps = size(quick=8000, full=100_000)
    initialisations = size(quick=10, full=20)
    streams = size(quick=10, full=5)
    correlation = at_least("intraclass correlation of log t_c, width {width}", 0.5, part="width {width}")
    unequal = significant("p-value of equal initialisations, width {width}", 1e-3, part="width {width}")

    def work(self, lab: Lab) -> list[list[Result]]:
        """For each width, a result for each start."""
        protocol = replace(FIXED_8192, max_steps=self.max_steps)
        laws = [f"fixed:{start} torch" for start in range(self.initialisations)]
        learners = [[Learner(MLP(width), law, optimiser=SGD(self.lr), batch=128) for law in laws]
                    for width in self.widths]
        return [lab.sweep([Setup(Parity(self.n, 3), learner, protocol) for learner in each], self.streams)
                for each in learners]

    def groups(self, got: list[list[Result]]) -> dict[int, list[Floats]]:
        return {width: [times(result.records) for result in results]
                for width, results in zip(self.widths, got, strict=True)}

    def judge(self, got: list[list[Result]]) -> Findings:
        checks: list[Check] = []
        data: list[dict[str, Any]] = []
        numbers: dict[str, float | None] = {}
        for width, groups in self.groups(got).items():
            solved = float(np.isfinite(groups).mean())
            found = intraclass([np.log(group[np.isfinite(group)]) for group in groups])
            known = solved >= ENOUGH
            checks += [self.correlation(found.correlation if known else None, found.interval, width=width),
                       self.unequal(found.p_value if known else None, width=width)]
            numbers |= {f"share of runs solved, width {width}": solved, f"F, width {width}": found.f}
            data += [{"width": width, "initialisation": start, "stream": stream, "t_c": int(t) if t < np.inf else None}
                     for start, group in enumerate(groups) for stream, t in enumerate(group)]
        return Findings(checks, data, numbers)

    def draw(self, got: list[list[Result]]) -> plots.Figure:
        return draw_groups({f"width {width}": groups for width, groups in self.groups(got).items()})


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

    def between_share(ratio: float) -> float:
        return float((ratio - 1) / (ratio + size - 1)) if math.isfinite(ratio) else 1.0

    ends = between_share(f / law.ppf(0.975)), between_share(f / law.ppf(0.025))
    return Intraclass(between_share(f), ends, f, float(law.sf(f)))


@plots.styled
def draw_groups(shown: Mapping[str, Sequence[Any]]) -> plots.Figure:
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
