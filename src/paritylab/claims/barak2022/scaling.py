"""How convergence times grow with n, k and width: Figures 1-right, 2-right, 4-left, 10 and 14."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from matplotlib.ticker import NullLocator

from paritylab import MLP, SGD, Learner, Parity, Protocol, Setup, plots, settings
from paritylab.baselines.search import RandomSearch
from paritylab.claims.lab import Lab
from paritylab.claims.registry import reproduces
from paritylab.claims.verdicts import Check, Outcome, at_least, at_most, between, holds
from paritylab.statistics import percentile
from paritylab.sweeps import Result

CHECKS = Protocol(eval_size=128, fresh=True)
"""A fresh batch of 128 inputs every 10 steps, at most 10^5 steps."""


@reproduces("barak2022.fig1-right")
def power_of_n(lab: Lab) -> Outcome:
    """Median convergence times of a wide network against n, one line for each k."""
    width = lab.pick("width", quick=10, full=100)
    sizes = lab.pick("n", quick=[10, 15, 20, 25, 30], full=list(range(10, 31)))
    degrees = lab.pick("k", quick=[2, 3], full=[2, 3, 4])
    runs = lab.pick("runs", quick=400, full=1000)
    protocol = replace(CHECKS, max_steps=lab.pick("max_steps", quick=5000, full=100_000))
    learner = Learner(MLP(width), optimiser=SGD(1.0))
    curves = lab.chains({f"k = {k}": [Setup(Parity(n, k), learner, protocol) for n in sizes] for k in degrees}, runs)
    lines = {name: Line(results, low=12) for name, results in curves.items()}
    checks: list[Check] = []
    for k, (name, line) in zip(degrees, lines.items(), strict=True):
        checks.append(between(f"slope, {name}", line.slope[0], 0.3, 1.5 * k, line.slope[1]))
        if k >= 3:
            checks.append(at_least(f"log residual of exponential / of power law, {name}", line.preference[0], 0.0,
                                   line.preference[1]))
    checks.append(steeper([line.slope[0] for line in lines.values()], "slopes increase with k"))
    return Outcome(checks, rows(curves), draw(curves, lines))


@reproduces("barak2022.fig2-right")
def exponent_worsens(lab: Lab) -> Outcome:
    """The same curves to larger n: the local exponent at the right end against that at the left end."""
    width = lab.pick("width", quick=10, full=100)
    sizes = {
        2: lab.pick("n at k=2", quick=[], full=[*range(10, 101, 10), 150, 200]),
        3: lab.pick("n at k=3", quick=[10, 14, 20, 28, 40], full=list(range(10, 101, 10)),
                    standard=list(range(10, 71, 10))),
    }
    runs = lab.pick("runs", quick=400, full=1000)
    protocol = replace(CHECKS, max_steps=lab.pick("max_steps", quick=20_000, full=100_000))
    learner = Learner(MLP(width), optimiser=SGD(1.0))
    asked = {f"k = {k}": [Setup(Parity(n, k), learner, protocol) for n in values] for k, values in sizes.items()}
    curves = lab.chains({name: setups for name, setups in asked.items() if setups}, runs)
    results = reached(curves["k = 3"])
    third = max(2, len(results) // 3)
    left, right = Line(results[:third]), Line(results[-third:])
    difference, ends = with_interval(right.slopes - left.slopes)
    ratio, ratio_ends = with_interval(right.slopes / left.slopes)
    checks = [
        Check("slope(right) - slope(left)", difference, "> 0, with its interval", ends[0] > 0, ends),
        at_least("slope(right) / slope(left)", ratio, 1.2, ratio_ends),
    ]
    numbers = {"slope(left)": left.slope[0], "slope(right)": right.slope[0]}
    return Outcome(checks, rows(curves), draw(curves, {}), numbers)


@reproduces("barak2022.fig10-mlp")
def scaling_of_mlps(lab: Lab) -> Outcome:
    """Median convergence times of MLPs with ReLU (rate 1) and z^k (rate 0.01) units against n."""
    names = lab.pick("settings", quick=["i", "iv"], standard=["i", "ii", "iv"],
                     full=["i", "ii", "iii", "iv", "v", "vi"])
    degrees = lab.pick("k", quick=[2, 3], full=list(range(2, 9)))
    sizes = lab.pick("n", quick=[10, 15, 20, 25], full=list(range(10, 41)))
    runs = lab.pick("runs", quick=400, full=1000)
    most = lab.pick("max_steps", quick=4000, full=100_000)
    curves = setting_curves(lab, {name: 1.0 if name in ("i", "ii", "iii") else 0.01 for name in names}, degrees, sizes,
                            runs, most)
    checks = straight(curves, [name for name in names if name in ("i", "ii", "iv")], degrees)
    if "ii" in names:
        slope, interval = Line(curves["(ii) k=3"], high=25).slope
        checks.append(between("slope of (ii), k = 3", slope, 1.0, 4.0, interval))
    if max(sizes) >= 40:
        checks += [bends(name, curves[f"({name}) k=3"]) for name in names if name in ("i", "ii", "iv")]
    return Outcome(checks, rows(curves), draw_panels(curves, names))


@reproduces("barak2022.fig10-misc")
def scaling_of_others(lab: Lab) -> Outcome:
    """Median convergence times of single neurons and PolyNets against n, and of two MLPs at larger n."""
    names = lab.pick("settings", quick=["xv", "xiv"], standard=["viii", "xiv", "xv"],
                     full=["viii", "xiv", "*iii", "xv"])
    degrees = lab.pick("k", quick=[2, 3], full=list(range(2, 9)))
    sizes = lab.pick("n", quick=[10, 15, 20, 25, 30], full=list(range(10, 41)))
    runs = lab.pick("runs", quick=400, full=1000)
    most = lab.pick("max_steps", quick=4000, full=100_000)
    rates = {"viii": 0.01, "xiv": lab.pick("rate of (xiv)", quick=0.05, full=0.01), "*iii": 3e-4, "xv": 0.05}
    curves = setting_curves(lab, {name: rates[name] for name in names}, degrees, sizes, runs, most)
    larger = lab.pick("larger n", quick=[], standard=[], full=[*range(50, 101, 10), 150, 200])
    if larger:
        wide = setting_curves(lab, {"ii": 1.0, "v": 0.01}, [2, 3, 4], larger, runs, most)
        curves |= {f"{name}, larger n": results for name, results in wide.items()}
    checks = straight(curves, ["xv", "xiv"], degrees)
    slope, interval = Line(curves["(xv) k=3"], high=25).slope
    checks.append(between("slope of (xv), k = 3", slope, 0.5, 3.0, interval))
    return Outcome(checks, rows(curves), draw_panels(curves, names))


@reproduces("barak2022.fig4-left")
def diminishing_returns(lab: Lab) -> Outcome:
    """Convergence times on (40, 3) against the hidden width, beside as many copies of random search."""
    n = lab.pick("n", quick=20, full=40)
    largest = lab.pick("largest width", quick=300, standard=100_000, full=3_000_000)
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
    largest = lab.pick("largest width", quick=300, standard=100_000, full=3_000_000)
    everything = by_width(lab, sizes, largest)
    checks: list[Check] = []
    for n, results in everything.items():
        widths = [width for width in results if width >= 3]
        low, middle, high = (nearest(widths, w) for w in (10, 1000, 100_000))
        tails = {width: percentile(r.records.t_c, r.records.status, 95) / r.summary.median
                 for width, r in results.items() if width in (low, middle)}
        checks += [
            flat(results, n),
            holds(f"95 % quantile / median at width {middle} below that at {low}, n = {n}", tails[middle] < tails[low],
                  f"< {tails[low]:.3g}", tails[middle]),
            at_least(f"smallest t_c / median at width {high}, n = {n}",
                     results[high].summary.fastest / results[high].summary.median, 0.3),
        ]
    return Outcome(checks, width_rows(everything), draw_widths(everything))


# --- curves over n ------------------------------------------------------------------------------------------


def setting_curves(
    lab: Lab, rates: Mapping[str, float], degrees: Sequence[int], sizes: Sequence[int], runs: int, max_steps: int
) -> dict[str, list[Result]]:
    """Sweeps over n for settings at these rates and for each degree."""
    protocol = replace(CHECKS, max_steps=max_steps)
    asked: dict[str, list[Setup]] = {}
    for name, lr in rates.items():
        for k in degrees:
            curve = [Setup(Parity(n, k), settings.barak2022(name, k, lr, 32), protocol) for n in sizes]
            if name == "ii" and k >= 7:  # an hour on two cores
                last = next((i for i, setup in enumerate(curve) if not lab.affords(setup, runs)), len(curve))
                if last < len(curve):
                    lab.leave_out(f"({name}) k={k} from n={sizes[last]} on")
                curve = curve[:last]
            asked[f"({name}) k={k}"] = curve
    return lab.chains(asked, runs)


def reached(results: Sequence[Result]) -> list[Result]:
    """The points whose median was reached."""
    return [result for result in results if result.summary.median < math.inf]


class Line:
    """The straight line through log median against log n, low <= n <= high, with resampled runs for intervals."""

    def __init__(
        self, results: Sequence[Result], low: float = 0, high: float = math.inf, resamples: int = 1000
    ) -> None:
        kept = [result for result in reached(results) if low <= result.setup.problem.n <= high]
        generator = np.random.default_rng(0)
        self.n = np.array([result.setup.problem.n for result in kept], float)
        self.y = np.empty((resamples + 1, len(kept)))
        for column, result in enumerate(kept):
            times = np.where(result.records.t_c >= 0, result.records.t_c, np.inf)
            drawn = generator.choice(times, (resamples, len(times)))
            self.y[:, column] = np.log(np.append(np.median(times), np.median(drawn, axis=1)))

    def _fit(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Slopes and sums of squared residuals of least squares on x: of the medians, then of the resampled ones."""
        if len(x) < 2:
            return np.full(len(self.y), np.nan), np.full(len(self.y), np.nan)
        x, y = x - x.mean(), self.y - self.y.mean(1, keepdims=True)
        slopes = y @ x / (x @ x)
        return slopes, np.sum((y - slopes[:, None] * x) ** 2, axis=1)

    @property
    def slopes(self) -> np.ndarray:
        return self._fit(np.log(self.n))[0]

    @property
    def slope(self) -> tuple[float, tuple[float, float]]:
        return with_interval(self.slopes)

    @property
    def r_squared(self) -> tuple[float, tuple[float, float]]:
        residuals = self._fit(np.log(self.n))[1] if len(self.n) > 2 else np.full(len(self.y), np.nan)
        return with_interval(1 - residuals / np.sum((self.y - self.y.mean(1, keepdims=True)) ** 2, axis=1))

    @property
    def preference(self) -> tuple[float, tuple[float, float]]:
        """log(residual of an exponential law / residual of a power law): above 0 where the power law fits better."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return with_interval(0.5 * np.log(self._fit(self.n)[1] / self._fit(np.log(self.n))[1]))


def with_interval(values: np.ndarray) -> tuple[float, tuple[float, float]]:
    """The first value, with the central 95 % of the others."""
    if np.isnan(values).all():
        return math.nan, (math.nan, math.nan)
    low, high = np.nanquantile(values[1:], [0.025, 0.975])
    return float(values[0]), (float(low), float(high))


def straight(curves: Mapping[str, Sequence[Result]], names: Sequence[str], degrees: Sequence[int]) -> list[Check]:
    """R^2 of log median on log n over 10..25, and slopes that increase with k, for k = 2, 3, 4."""
    checks: list[Check] = []
    for name in names:
        lines = {k: Line(curves[f"({name}) k={k}"], high=25) for k in degrees if k <= 4}
        for k, line in lines.items():
            value, interval = line.r_squared
            checks.append(at_least(f"R^2 of ({name}), k = {k}", value, 0.9, interval))
        checks.append(steeper([line.slope[0] for line in lines.values()], f"slopes of ({name}) increase with k"))
    return checks


def steeper(slopes: Sequence[float], name: str) -> Check:
    truth = None if np.isnan(slopes).any() else bool(np.all(np.diff(slopes) > 0))
    return holds(name, truth, " < ".join(f"{slope:.2f}" for slope in slopes))


def bends(name: str, results: Sequence[Result]) -> Check:
    """Whether the local slope over n = 30..40 is at least that over 10..20."""
    left, right = Line(results, 10, 20), Line(results, 30, 40)
    value, interval = with_interval(right.slopes - left.slopes)
    return at_least(f"slope over n = 30..40 - slope over 10..20, ({name}) k = 3", value, 0.0, interval)


def rows(curves: Mapping[str, Sequence[Result]]) -> list[dict[str, Any]]:
    return [
        {"curve": name, "n": r.setup.problem.n, "k": r.setup.problem.k, "runs": r.summary.runs,
         "solved": r.summary.solved, "median": r.summary.median, "low": r.summary.median_interval[0],
         "high": r.summary.median_interval[1], "p10": r.summary.p10, "p90": r.summary.p90}
        for name, results in curves.items() for r in results
    ]


def series(results: Sequence[Result]) -> plots.Series:
    summaries = [result.summary for result in results]
    return plots.Series([r.setup.problem.n for r in results], [s.median for s in summaries],
                        [s.median_interval[0] for s in summaries], [s.median_interval[1] for s in summaries])


def draw(curves: Mapping[str, Sequence[Result]], lines: Mapping[str, Line]) -> Any:
    laws = {}
    for name, line in lines.items():
        if len(line.n) > 1:
            slope, ends = line.slope[0], line.n[[0, -1]]
            law = np.exp(line.y[0].mean() + slope * (np.log(ends) - np.log(line.n).mean()))
            laws[f"{name}: $n^{{{slope:.2f}}}$"] = (ends, law)
    return plots.scaling_plot({name: series(results) for name, results in curves.items()}, "input bits n",
                              "median steps to convergence", laws)


@plots.styled
def draw_panels(curves: Mapping[str, Sequence[Result]], names: Sequence[str]) -> Any:
    """One panel for each setting, one line for each k."""
    columns = min(len(names), 3)
    lines = math.ceil(len(names) / columns)
    figure = plots.blank(0.4 + 1.9 * lines)
    panels = np.ravel(figure.subplots(lines, columns, sharex=True, sharey=True, squeeze=False))
    degrees = sorted({result.setup.problem.k for results in curves.values() for result in results})
    for axes, name in zip(panels, names, strict=False):
        axes.set(xscale="log", yscale="log", title=f"({name})")
        for k, colour, marker in zip(degrees, plots.COLOURS, "osD^v*P", strict=False):
            points = series(reached(curves.get(f"({name}) k={k}", [])))
            axes.plot(points.x, points.y, marker=marker, markersize=2.5, linewidth=0.9, color=colour, label=f"k = {k}")
            axes.fill_between(points.x, points.low, points.high, color=colour, alpha=0.2, linewidth=0)
        axes.set_xticks(ticks := [10, 20, 40], [str(tick) for tick in ticks])
        axes.xaxis.set_minor_locator(NullLocator())
    for axes in panels[len(names):]:
        axes.set_visible(False)
    figure.supxlabel("input bits n", fontsize=8)
    figure.supylabel("median steps to convergence", fontsize=8)
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=4, columnspacing=1.0)
    return figure


# --- widths -------------------------------------------------------------------------------------------------


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
    exact = replace(CHECKS, max_steps=most)
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
        | {f"p{q}": percentile(r.records.t_c, r.records.status, q) for q in quantiles}
        for n, results in everything.items() for width, r in results.items()
    ]


def draw_widths(everything: Mapping[int, Mapping[int, Result]]) -> Any:
    """Median and quartiles against width; the grey lines are random search by as many searchers."""
    curves, laws = {}, {}
    for n, results in everything.items():
        widths = list(results)
        quartiles = [[percentile(r.records.t_c, r.records.status, q) for r in results.values()] for q in (50, 25, 75)]
        curves[f"n = {n}"] = plots.Series(widths, *quartiles)
        grid = np.unique(np.geomspace(widths[0], widths[-1], 50).round().astype(int))
        laws[f"random search, n = {n}"] = (grid, [RandomSearch(n, 3, searchers=int(r)).mean for r in grid])
    return plots.scaling_plot(curves, "hidden width", "steps (median, quartiles)", laws)
