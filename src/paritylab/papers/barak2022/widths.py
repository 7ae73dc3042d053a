"""How convergence times depend on the hidden width: Figures 4-left and 14."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from paritylab import MLP, SGD, Learner, Parity, Setup, plots
from paritylab.baselines.search import RandomSearch
from paritylab.claims.lab import Lab
from paritylab.claims.registry import reproduces
from paritylab.claims.verdicts import Check, Outcome, at_least, at_most, between, holds
from paritylab.papers.barak2022.common import FRESH_128, with_interval
from paritylab.running.sweeps import Result
from paritylab.statistics import percentile


@reproduces("barak2022.fig4-left")
def diminishing_returns(lab: Lab) -> Outcome:
    """Convergence times on (40, 3) against the hidden width, beside as many copies of random search."""
    n = lab.pick("n", quick=20, full=40)
    largest = lab.pick("largest width", quick=300, full=3_000_000)
    results = by_width(lab, [n], largest)[n]
    widths = [width for width in results if width >= 3]
    low, middle, high = (nearest(widths, w) for w in (10, 1000, 100_000))
    spreads = {width: resampled_spread(results[width], seed=width) for width in (low, middle)}
    difference, ends = with_interval(spreads[low] - spreads[middle])
    checks = [
        *(at_most(f"median at width {a} / median at width {b}", medians(results, a) / medians(results, b), bound)
          for a, b, bound in ((low, middle, 4), (middle, high, 2)) if a < b),
        flat(results, n),
        Check(f"IQR/median at width {low} - at width {middle}", difference, "> 0, with its interval", ends[0] > 0,
              ends),
    ]
    return Outcome(checks, width_rows({n: results}), draw_widths({n: results}))


@reproduces("barak2022.fig14")
def widths_at_three_sizes(lab: Lab) -> Outcome:
    """The width experiment for n = 30, 40, 50."""
    sizes = lab.pick("n", quick=[20, 30], full=[30, 40, 50])
    largest = lab.pick("largest width", quick=300, full=3_000_000)
    everything = by_width(lab, sizes, largest)
    checks: list[Check] = []
    for n, results in everything.items():
        widths = [width for width in results if width >= 3]
        low, middle, high = (nearest(widths, w) for w in (10, 1000, 100_000))
        tails = {width: percentile(r.records.t_c, r.records.status, 95, r.records.steps) / r.summary.median
                 for width, r in results.items() if width in (low, middle)}
        checks += [
            flat(results, n),
            holds(f"95 % quantile / median at width {middle} below that at {low}, n = {n}", tails[middle] < tails[low],
                  f"< {tails[low]:.3g}", tails[middle]),
            at_least(f"smallest t_c / median at width {high}, n = {n}",
                     results[high].summary.fastest / results[high].summary.median, 0.3),
        ]
    return Outcome(checks, width_rows(everything), draw_widths(everything))


def by_width(lab: Lab, sizes: Sequence[int], largest: int) -> dict[int, dict[int, Result]]:
    """Convergence times on (n, 3) for each n and width, at batch 128 and rate 0.1.

    Networks with fewer units than k can only do better than chance: 55 % on ten batches in a row counts for them.
    """
    smallest = lab.pick("smallest width", quick=3, full=1)
    grid = [*range(1, 11), *(m * 10**e for e in range(1, 7) for m in (1, 3) if m * 10**e > 10)]
    widths = [width for width in grid if smallest <= width <= largest]
    narrow, wide = (lab.pick(f"runs {which} width 1000", quick=100, standard=standard, full=1000)
                    for which, standard in (("up to", 1000), ("above", 50)))
    most = lab.pick("max_steps", quick=4000, full=100_000)
    exact = replace(FRESH_128, max_steps=most)
    weak = replace(exact, threshold=0.55, consecutive=10)
    learners = {width: Learner(MLP(width), optimiser=SGD(0.1), batch=128) for width in widths}
    asked = [(n, width) for n in sizes for width in widths]
    setups = {at: Setup(Parity(at[0], 3), learners[at[1]], exact if at[1] >= 3 else weak) for at in asked}
    for n, width in asked.copy():
        if width > 10_000 and not lab.affords(setups[n, width], wide):
            lab.leave_out(f"width {width}, n={n}")
            asked.remove((n, width))
    found: dict[tuple[int, int], Result] = {}
    for runs, chosen in ((narrow, [at for at in asked if at[1] <= 1000]), (wide, [at for at in asked if at[1] > 1000])):
        found |= zip(chosen, lab.sweep([setups[at] for at in chosen], runs), strict=True)
    return {n: {width: found[n, width] for width in widths if (n, width) in found} for n in sizes}


def nearest(widths: Sequence[int], wanted: int) -> int:
    """The width of the grid nearest to the one the rule names, on a log scale."""
    return min(widths, key=lambda width: abs(math.log(width / wanted)))


def medians(results: Mapping[int, Result], width: int) -> float:
    return results[width].summary.median


def flat(results: Mapping[int, Result], n: int) -> Check:
    """The slope of log median on log width over widths from 100 (or 30 in a small trial) to 10^5."""
    smallest = 100 if max(results) > 300 else 30
    widths = [width for width in results if smallest <= width <= 100_000]
    y = np.log([medians(results, width) for width in widths])
    slope = float(np.polyfit(np.log(widths), y, 1)[0]) if np.isfinite(y).all() and len(widths) > 1 else None
    return between(f"slope of log median on log width from {widths[0]} to {widths[-1]}, n = {n}", slope, -0.15, 0.15)


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


def draw_widths(everything: Mapping[int, Mapping[int, Result]]) -> Any:
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
