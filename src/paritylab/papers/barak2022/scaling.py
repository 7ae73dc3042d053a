"""How convergence times grow with n and k: Figures 1-right, 2-right and 10."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from matplotlib.ticker import NullLocator

from paritylab import MLP, SGD, Learner, Parity, Setup, plots
from paritylab.claims.lab import Lab
from paritylab.claims.registry import reproduces
from paritylab.claims.verdicts import Check, Outcome, at_least, between, holds
from paritylab.papers.barak2022 import settings
from paritylab.papers.barak2022.common import FRESH_128, with_interval
from paritylab.running.sweeps import Result

DEAR = ("iii", "v", "vi", "*iii")
"""Settings whose curves take hours on two cores; (ii) does at k >= 7 or n > 40."""
LARGER = ", larger n"


@reproduces("barak2022.fig1-right")
def power_of_n(lab: Lab) -> Outcome:
    """Median convergence times of a wide network against n, one line for each k."""
    width = lab.pick("width", quick=10, full=100)
    sizes = lab.pick("n", quick=[10, 15, 20, 25, 30], full=list(range(10, 31)))
    degrees = lab.pick("k", quick=[2, 3], full=[2, 3, 4])
    runs = lab.pick("runs", quick=400, full=1000)
    protocol = replace(FRESH_128, max_steps=lab.pick("max_steps", quick=5000, full=100_000))
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
    protocol = replace(FRESH_128, max_steps=lab.pick("max_steps", quick=20_000, full=100_000))
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
    names = lab.pick("settings", quick=["i", "iv"], full=["i", "ii", "iii", "iv", "v", "vi"])
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
    return Outcome(checks, rows(curves), draw_panels(curves))


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
    larger = lab.pick("larger n", quick=[], full=[*range(50, 101, 10), 150, 200])
    if larger:
        wide = setting_curves(lab, {"ii": 1.0, "v": 0.01}, [2, 3, 4], larger, runs, most)
        curves |= {f"{name}{LARGER}": results for name, results in wide.items()}
    checks = straight(curves, ["xv", "xiv"], degrees)
    slope, interval = Line(curves["(xv) k=3"], high=25).slope
    checks.append(between("slope of (xv), k = 3", slope, 0.5, 3.0, interval))
    return Outcome(checks, rows(curves), draw_panels(curves))


# --- curves over n ------------------------------------------------------------------------------------------


def setting_curves(
    lab: Lab, rates: Mapping[str, float], degrees: Sequence[int], sizes: Sequence[int], runs: int, max_steps: int
) -> dict[str, list[Result]]:
    """Sweeps over n for settings at these rates and for each degree."""
    protocol = replace(FRESH_128, max_steps=max_steps)
    asked: dict[str, list[Setup]] = {}
    for name, lr in rates.items():
        for k in degrees:
            curve = [Setup(Parity(n, k), settings.barak2022(name, k, lr, 32), protocol) for n in sizes]
            dear = name in DEAR or (name == "ii" and (k >= 7 or sizes[-1] > 40))
            last = lab.reach(curve, runs) if dear else None
            if last is not None and last < len(curve):
                lab.leave_out(f"({name}) k={k} from n={sizes[last]} on")
            asked[f"({name}) k={k}"] = curve[:last]
    return lab.chains({name: curve for name, curve in asked.items() if curve}, runs)


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
def draw_panels(curves: Mapping[str, Sequence[Result]]) -> Any:
    """One panel for each setting, and range of n, of which there is something; one line for each k."""
    present = {(key.split(" k=")[0], LARGER if key.endswith(LARGER) else "") for key in curves}
    shown = [(f"({name})", more) for more in ("", LARGER) for name in settings.BARAK2022
             if (f"({name})", more) in present]
    columns = min(len(shown), 3)
    lines = math.ceil(len(shown) / columns)
    figure = plots.blank(0.4 + 1.9 * lines)
    panels = np.ravel(figure.subplots(lines, columns, sharey=True, squeeze=False))
    degrees = sorted({result.setup.problem.k for results in curves.values() for result in results})
    for axes, (name, more) in zip(panels, shown, strict=False):
        axes.set(xscale="log", yscale="log", title=name + more)
        for k, colour, marker in zip(degrees, plots.COLOURS, "osD^v*P", strict=False):
            points = series(reached(curves.get(f"{name} k={k}{more}", [])))
            axes.plot(points.x, points.y, marker=marker, markersize=2.5, linewidth=0.9, color=colour, label=f"k = {k}")
            axes.fill_between(points.x, points.low, points.high, color=colour, alpha=0.2, linewidth=0)
        axes.set_xticks(ticks := [50, 100, 200] if more else [10, 20, 40], [str(tick) for tick in ticks])
        axes.xaxis.set_minor_locator(NullLocator())
    for axes in panels[len(shown):]:
        axes.set_visible(False)
    figure.supxlabel("input bits n", fontsize=8)
    figure.supylabel("median steps to convergence", fontsize=8)
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=4, columnspacing=1.0)
    return figure
