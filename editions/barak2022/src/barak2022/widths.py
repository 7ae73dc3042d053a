"""How convergence times depend on the hidden width: Figures 4-left and 14."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from barak2022.common import FRESH_128, longer_tail, ratio_of_medians, times, with_interval
from barak2022.distributions import in_order, quotient
from paritylab import MLP, SGD, Learner, Parity, Setup, plots
from paritylab.aliases import Floats
from paritylab.baselines.search import RandomSearch
from paritylab.claims import Check, Findings, Lab, Trial, at_least, at_most, between, claim, size
from paritylab.claims.intervals import bootstrap
from paritylab.running.sweeps import Result
from paritylab.statistics import percentile

GRID = [*range(1, 11), *(m * 10**e for e in range(1, 7) for m in (1, 3) if m * 10**e > 10)]
Swept = tuple[list[Result], list[Result]]
"""Narrow and wide networks."""


class Widths(Trial):
    """Convergence times on (n, 3) against the width, at batch 128 and rate 0.1."""

    smallest = size(quick=3, full=1, label="smallest width")
    largest = size(quick=300, full=3_000_000, label="largest width")
    narrow_runs = size(quick=100, full=1000, label="runs up to width 1000")
    wide_runs = size(quick=100, standard=50, full=1000, label="runs above width 1000")
    max_steps = size(quick=4000, full=100_000)

    flat = between("slope of log median on log width from {first} to {last}, n = {n}", -0.15, 0.15)

    def setup(self, n: int, width: int) -> Setup:
        """Networks with fewer units than k can only do better than chance: 55 % on ten batches in a row counts."""
        exact = replace(FRESH_128, max_steps=self.max_steps)
        weak = replace(exact, threshold=0.55, consecutive=10)
        learner = Learner(MLP(width), optimiser=SGD(0.1), batch=128)
        return Setup(Parity(n, 3), learner, exact if width >= 3 else weak)

    def sweeps(self, lab: Lab, sizes: Sequence[int]) -> Swept:
        """All widths for each n, those above 10^4 as far as they can be had."""
        narrow: list[Setup] = []
        wide: list[Setup] = []
        for n in sizes:
            for width in (width for width in GRID if self.smallest <= width <= self.largest):
                setup = self.setup(n, width)
                if width > 10_000 and not lab.affords(setup, self.wide_runs):
                    lab.leave_out(f"width {width}, n={n}")
                else:
                    (narrow if width <= 1000 else wide).append(setup)
        return lab.sweep(narrow, self.narrow_runs), lab.sweep(wide, self.wide_runs)

    def by_width(self, got: Swept) -> dict[int, dict[int, Result]]:
        """For each n, the results by width."""
        found: dict[int, dict[int, Result]] = {}
        for result in (*got[0], *got[1]):
            found.setdefault(result.setup.problem.n, {})[result.setup.learner.network.widths[0]] = result
        return found


    def draw(self, got: Swept) -> plots.Figure:
        return draw_widths(self.by_width(got))


# --- Figures 4-left and 14 ------------------------------------------------------------------------------------------


class Resampled(Widths):
    """The widths of the rules with the published number of runs up to 1000, and intervals from resampled runs."""

    largest = size(quick=300, standard=1000, full=100_000, label="largest width")
    narrow_runs = size(quick=100, standard=200, full=1000, label="runs up to width 1000")
    wide_runs = size(quick=100, standard=20, full=100, label="runs above width 1000")

    def slope(self, results: Mapping[int, Result], n: int) -> Check:
        """The slope of log median on log width from 100 (or 30 in a small trial) on."""
        smallest = 100 if max(results) > 300 else 30
        widths = [width for width in results if smallest <= width <= 100_000]
        samples = [times(results[width].records) for width in widths]
        fitted = slope_over(widths)
        return self.flat(fitted(*samples), bootstrap(fitted, *samples, rng=self.rng(n), resamples=1000),
                         first=widths[0], last=widths[-1], n=n)


def slope_over(widths: list[int]) -> Callable[..., float]:
    """The slope of log median on log width, as a function of the samples at these widths."""
    x = np.log(widths) - np.mean(np.log(widths))

    def slope(*samples: Floats) -> float:
        y = np.log([np.median(sample) for sample in samples])
        return float(x @ y / (x @ x)) if np.isfinite(y).all() else math.nan

    return slope


@claim(
    "barak2022.fig4-left",
    where="Figure 4 (left); Appendix C.4",
    kind="empirical",
    title="Width gives diminishing returns, not parallel speed-up",
    statement="""On (40,3) parity the success time stops improving as the hidden width grows, whereas r independent
    copies of random search would be r times faster.""",
    published="'parallelization experiences diminishing returns' (Figure 4, caption); the times are not in the text.",
)
class Fig4Left(Resampled):
    """Convergence times on (40, 3) against the hidden width, beside as many copies of random search."""

    n = size(quick=20, full=40)
    flat = between("slope of log median on log width from {first} to {last}, n = {n}", -0.15, 0.15,
                   part="no parallel speed-up")
    narrow_gain = at_most("median at width {a} / median at width {b}", 4, part="no parallel speed-up")
    wide_gain = at_most("median at width {a} / median at width {b}", 2, only=("standard", "full"),
                        part="no parallel speed-up")
    spread = at_least("IQR/median at width {a} - at width {b}", 0, part="less spread at larger widths")

    def work(self, lab: Lab) -> Swept:
        return self.sweeps(lab, [self.n])

    def judge(self, got: Swept) -> Findings:
        found = self.by_width(got)
        results = found[self.n]
        low, middle, high = named_widths(results)
        checks: list[Check] = []
        for a, b, rule in ((low, middle, self.narrow_gain), (middle, high, self.wide_gain)):
            if a < b:
                pair = times(results[a].records), times(results[b].records)
                interval = bootstrap(ratio_of_medians, *pair, rng=self.rng(a))
                checks.append(rule(ratio_of_medians(*pair), interval, a=a, b=b))
        spreads = [resampled_spread(results[width], seed=width) for width in (low, middle)]
        checks += [self.slope(results, self.n), self.spread(*with_interval(spreads[0] - spreads[1]), a=low, b=middle)]
        return Findings(checks, width_rows(found))


@claim(
    "barak2022.fig14",
    where="Figure 14; Appendix C.4",
    kind="empirical",
    title="Width experiment for n = 30, 40, 50",
    statement="""The width plateau of Figure 4-left holds for three input sizes, with the upper tail of t_c shrinking
    as r grows; under-parameterised nets (r < 3) only reach a weak-learning threshold.""",
    published="""'We did not find evidence of such parallel speedups over 1000 runs in each setting'; 'the upper tail
    of long convergence times is mitigated' (Appendix C.4).""",
)
class Fig14(Resampled):
    """The width experiment for n = 30, 40, 50."""

    n = size(quick=[20, 30], full=[30, 40, 50])
    flat = between("slope of log median on log width from {first} to {last}, n = {n}", -0.15, 0.15,
                   part="no parallel speed-up")
    soonest = at_least("5 % quantile / median at width {width}, n = {n}", 0.3, part="no parallel speed-up")
    tails = at_least("95 % quantile / median at width {narrow} less that at {middle}, n = {n}", 0,
                     part="shorter tails at larger widths")

    def work(self, lab: Lab) -> Swept:
        return self.sweeps(lab, self.n)

    def judge(self, got: Swept) -> Findings:
        found = self.by_width(got)
        checks: list[Check] = []
        for n, results in found.items():
            low, middle, high = named_widths(results)
            pair = times(results[low].records), times(results[middle].records)
            last = results[high].records
            fifth, half = (in_order(last.t_c, last.status, q, last.steps) for q in (5, 50))
            checks += [
                self.slope(results, n),
                self.tails(longer_tail(*pair), bootstrap(longer_tail, *pair, rng=self.rng(n)), narrow=low,
                           middle=middle, n=n),
                self.soonest(*quotient(fifth, half), width=high, n=n),
            ]
        return Findings(checks, width_rows(found))


def named_widths(results: Mapping[int, Result]) -> list[int]:
    """The widths nearest to those that the rules name: 10, 1000 and 10^5."""
    widths = [width for width in results if width >= 3]
    return [nearest(widths, wanted) for wanted in (10, 1000, 100_000)]


def nearest(widths: Sequence[int], wanted: int) -> int:
    """The width of the grid nearest to the one the rule names, on a log scale."""
    return min(widths, key=lambda width: abs(math.log(width / wanted)))


def medians(results: Mapping[int, Result], width: int) -> float:
    return results[width].summary.median


def resampled_spread(result: Result, resamples: int = 2000, seed: int = 0) -> np.ndarray:
    """IQR / median of the times, followed by those of resampled runs."""
    times = np.where(result.records.t_c >= 0, result.records.t_c, np.inf)
    drawn = np.random.default_rng(seed).choice(times, (resamples, len(times)))
    sorted_ = np.sort(np.vstack([times, drawn]), axis=1)
    low, middle, high = (sorted_[:, round(q * (len(times) - 1))] for q in (0.25, 0.5, 0.75))
    with np.errstate(invalid="ignore"):
        return (high - low) / middle


def width_rows(everything: Mapping[int, Mapping[int, Result]]) -> list[dict[str, Any]]:
    quantiles = (5, 25, 50, 75, 95)
    return [
        {"n": n, "width": width, "runs": r.summary.runs, "solved": r.summary.solved, "fastest": r.summary.fastest}
        | {f"p{q}": percentile(r.records.t_c, r.records.status, q, r.records.steps) for q in quantiles}
        for n, results in everything.items() for width, r in results.items()
    ]


def draw_widths(everything: Mapping[int, Mapping[int, Result]]) -> plots.Figure:
    """Median and quartiles against width; the grey lines are random search by as many searchers."""
    curves, laws = {}, {}
    for n, results in everything.items():
        widths = list(results)
        quartiles = [[percentile(r.records.t_c, r.records.status, q, r.records.steps) for r in results.values()]
                     for q in (50, 25, 75)]
        curves[f"n = {n}"] = plots.Series(widths, *quartiles)
        grid = np.unique(np.geomspace(widths[0], widths[-1], 50).round().astype(int))
        laws[f"random search, n = {n}"] = (grid, [RandomSearch(n, 3, searchers=int(r)).mean for r in grid])
    return plots.scaling_plot(curves, "hidden width", "steps (median, quartiles)", laws)
