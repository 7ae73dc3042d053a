"""How convergence times grow with n and k: Figures 1-right, 2-right and 10."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.ticker import NullLocator

from barak2022 import settings
from barak2022.common import FRESH_128, with_interval
from paritylab import MLP, SGD, Learner, Parity, Setup, plots
from paritylab.aliases import Interval
from paritylab.claims import Check, Findings, Lab, Trial, at_least, at_most, claim, holds, size
from paritylab.claims.intervals import below
from paritylab.claims.rules import Condition
from paritylab.running.sweeps import Result
from paritylab.statistics.percentiles import holding

DEAR = ("iii", "v", "vi", "*iii")
"""Settings whose curves take hours on two cores; (ii) does at k >= 7 or n > 40."""
LARGER = ", larger n"
Chains = dict[str, list[Result]]


class Wide(Trial):
    """One network at rate 1."""

    width = size(quick=10, full=100)
    runs = size(quick=400, full=1000)

    protocol = FRESH_128

    def curve(self, k: int, sizes: Sequence[int], max_steps: int) -> list[Setup]:
        """Its Setups over n."""
        learner = Learner(MLP(self.width), optimiser=SGD(1.0))
        return [Setup(Parity(n, k), learner, replace(self.protocol, max_steps=max_steps)) for n in sizes]


EVERY_STEP = replace(FRESH_128, eval_every=1)
"""At k = 2 networks take 20 to 40 steps: checks every ten steps leave three or four different medians."""


def steeper_by(line: Line, other: Line) -> tuple[float, tuple[float, float]]:
    """The slope of the second less that of the first."""
    return with_interval(other.slopes - line.slopes)


@claim(
    "barak2022.fig1-right",
    where="Figure 1 (right)",
    kind="empirical",
    title="Median convergence time grows like a power of n",
    statement="""For small instances the median number of steps to perfect accuracy increases polynomially in n with an
    exponent that grows with k, far below exponential in n.""",
    published="""'the convergence time is closer to an n^O(k) scaling' than to 2^Omega(n) (Section 1); the slopes are
    not in the text.""",
)
class Fig1Right(Wide):
    """Median convergence times of a wide network against n, one line for each k."""

    n = size(quick=[10, 15, 20, 25, 30], full=list(range(10, 31)))
    degrees = size(quick=[2, 3], full=[2, 3, 4], label="k")
    max_steps = size(quick=5000, full=100_000)
    protocol = EVERY_STEP
    slope = at_most("slope, k = {k}", "k")
    increase = at_least("slope at k = {next} less that at k = {k}", 0)
    exponential = at_most("bits per input of an exponential law, k = {k}", 0.25)

    def work(self, lab: Lab) -> Chains:
        return lab.chains({f"k = {k}": self.curve(k, self.n, self.max_steps) for k in self.degrees}, self.runs)

    def judge(self, got: Chains) -> Findings:
        lines = {k: Line(got[f"k = {k}"], low=12) for k in self.degrees}
        checks: list[Check] = []
        for k, line in lines.items():
            checks += [self.slope(*line.slope, high=k, k=k), self.exponential(*line.bits, k=k)]
        for k, after in pairwise(self.degrees):
            checks.append(self.increase(*steeper_by(lines[k], lines[after]), k=k, next=after))
        numbers = {f"log residual of exponential / of power law, k = {k}": line.preference[0]
                   for k, line in lines.items()}
        return Findings(checks, rows(got), numbers)

    def draw(self, got: Chains) -> plots.Figure:
        return draw_curves(got, {name: Line(results, low=12, resamples=0) for name, results in got.items()})


def thirds(results: Sequence[Result]) -> tuple[Line, Line]:
    """The lines through the first and through the last third of the points that were reached."""
    kept = reached(results)
    third = max(2, len(kept) // 3)
    return Line(kept[:third]), Line(kept[-third:])


@claim(
    "barak2022.fig2-right",
    where="Figure 2 (right); Appendix C.2",
    kind="empirical",
    title="Power-law exponent worsens for larger n",
    statement="With a fixed learning rate the local exponent alpha in t_c ~ n^alpha increases once n becomes large.",
    published="""'The power-law exponent (alpha such that t_c ~ n^alpha) eventually degrades on larger problem
    instances' (Figure 2, caption).""",
)
class Fig2Right(Wide):
    """The same curves to larger n: the local exponent at the right end against that at the left end."""

    n_of_pairs = size(quick=[], full=[*range(10, 101, 10), 150, 200], label="n at k=2")
    n_of_triples = size(quick=[10, 14, 20, 28, 40], standard=list(range(10, 71, 10)), full=list(range(10, 101, 10)),
                        label="n at k=3")
    max_steps = size(quick=20_000, full=100_000)
    protocol = EVERY_STEP
    runs = size(quick=400, full=500)
    grows = at_least("slope(right) - slope(left), k = {k}", 0, part="k = {k}")
    by = at_least("slope(right) / slope(left), k = {k}", 1.2, part="k = {k}")

    def work(self, lab: Lab) -> Chains:
        sizes = {2: self.n_of_pairs, 3: self.n_of_triples}
        return lab.chains({f"k = {k}": self.curve(k, n, self.max_steps) for k, n in sizes.items() if n}, self.runs)

    def judge(self, got: Chains) -> Findings:
        checks: list[Check] = []
        numbers: dict[str, float | None] = {}
        for k in (k for k in (2, 3) if f"k = {k}" in got):
            left, right = thirds(got[f"k = {k}"])
            checks += [self.grows(*steeper_by(left, right), k=k),
                       self.by(*with_interval(right.slopes / left.slopes), k=k)]
            numbers |= {f"slope(left), k = {k}": left.slope[0], f"slope(right), k = {k}": right.slope[0]}
        return Findings(checks, rows(got), numbers)

    def draw(self, got: Chains) -> plots.Figure:
        return draw_curves(got, {})


class Settings(Trial):
    """Settings of the paper, each at one rate, over n."""

    degrees = size(quick=[2, 3], full=list(range(2, 9)), label="k")
    runs = size(quick=400, full=1000)
    max_steps = size(quick=4000, full=100_000)

    r_squared = at_least("R^2 of ({setting}), k = {k}", 0.9)
    increase = holds("slopes of ({setting}) increase with k", "{slopes}")

    protocol = FRESH_128

    def chains(self, lab: Lab, rates: Mapping[str, float], degrees: Sequence[int], sizes: Sequence[int]) -> Chains:
        """Sweeps over n for settings at these rates and for each degree."""
        protocol = replace(self.protocol, max_steps=self.max_steps)
        asked: dict[str, list[Setup]] = {}
        for name, lr in rates.items():
            for k in degrees:
                curve = [Setup(Parity(n, k), settings.barak2022(name, k, lr, 32), protocol) for n in sizes]
                dear = name in DEAR or (name == "ii" and (k >= 7 or sizes[-1] > 40))
                last = lab.reach(curve, self.runs) if dear else None
                if last is not None and last < len(curve):
                    lab.leave_out(f"({name}) k={k} from n={sizes[last]} on")
                asked[f"({name}) k={k}"] = curve[:last]
        return lab.chains({name: curve for name, curve in asked.items() if curve}, self.runs)

    def straight(self, curves: Chains, names: Sequence[str]) -> list[Check]:
        """R^2 of log median on log n over 10..25, and slopes that increase with k, for k = 2, 3, 4."""
        checks: list[Check] = []
        for name in names:
            lines = {k: Line(curves[f"({name}) k={k}"], high=25) for k in self.degrees if k <= 4}
            checks += [self.r_squared(*line.r_squared, setting=name, k=k) for k, line in lines.items()]
            checks.append(steeper(self.increase, [line.slope[0] for line in lines.values()], setting=name))
        return checks


class EveryStep(Settings):
    """Settings of the paper with checks at every step, for k = 2, 3, 4, which the rule is about."""

    protocol = EVERY_STEP
    degrees = size(quick=[2, 3], full=[2, 3, 4], label="k")
    runs = size(quick=400, full=500)

    r_squared = at_least("R^2 of ({setting}), k = {k}", 0.9, part="power laws at small n, {part}")
    slope = at_most("slope of ({setting}), k = {k}", "k", part="power laws at small n, {part}")
    increase = at_least("slope of ({setting}) at k = {next} less that at k = {k}", 0,
                        part="power laws at small n, {part}")

    def small(self, curves: Chains, name: str, part: str) -> list[Check]:
        """Straight lines over n = 10..25, no steeper than k, steeper for larger k."""
        lines = {k: Line(curves[f"({name}) k={k}"], high=25) for k in self.degrees}
        checks: list[Check] = []
        for k, line in lines.items():
            checks += [self.r_squared(*line.straightness, setting=name, k=k, part=part),
                       self.slope(*line.slope, high=k, setting=name, k=k, part=part)]
        for k, after in pairwise(self.degrees):
            checks.append(self.increase(*steeper_by(lines[k], lines[after]), setting=name, k=k, next=after, part=part))
        return checks


UNITS = {"i": "ReLU", "ii": "ReLU", "iv": "z^k"}


@claim(
    "barak2022.fig10-mlp",
    where="Figure 10 top row; Appendix D.1.7",
    kind="empirical",
    title="Fine scaling of median t_c for MLPs",
    statement="""Median convergence times of the six MLP settings follow power laws in n for small n, with steeper
    lines for larger k and upward bending at the right.""",
    published="""'for small n, power law relationships t_c ~ n^Theta(k) are observed for all configurations. Note that
    for larger n, the exponent [...] increases' (Appendix C).""",
)
class Fig10Mlp(EveryStep):
    """Median convergence times of MLPs with ReLU (rate 1) and z^k (rate 0.01) units against n."""

    n = size(quick=[10, 15, 20, 25], full=list(range(10, 41)))
    names = size(quick=["i", "iv"], full=["i", "ii", "iv"], label="settings")
    bends = at_least("slope over n = 30..40 - slope over 10..20, ({setting}) k = 3", 0, only=("standard", "full"),
                     part="steeper at larger n, {part}")

    def work(self, lab: Lab) -> Chains:
        rates = {name: 1.0 if name in ("i", "ii", "iii") else 0.01 for name in self.names}
        return self.chains(lab, rates, self.degrees, self.n)

    def judge(self, got: Chains) -> Findings:
        checks = [check for name in self.names for check in self.small(got, name, UNITS[name])]
        if self.size != "quick":
            checks += [self.bends(*steepening(got[f"({name}) k=3"]), setting=name, part=UNITS[name])
                       for name in self.names]
        return Findings(checks, rows(got))

    def draw(self, got: Chains) -> plots.Figure:
        return draw_panels(got)


KINDS = {"viii": "oscillating neuron", "xiv": "sinusoidal neuron", "xv": "PolyNet"}


@claim(
    "barak2022.fig10-misc",
    where="Figure 10 bottom row; Appendix D.1.7",
    kind="empirical",
    title="Fine scaling for single neurons, Transformer, PolyNet and larger n",
    statement="""The same scaling picture holds for a width-1 oscillating-polynomial MLP, a sinusoidal neuron, a
    Transformer and a PolyNet, and the two larger-n panels show the exponent growing.""",
    published="""'for small n, power law relationships t_c ~ n^Theta(k) are observed for all configurations. Note that
    for larger n, the exponent [...] increases' (Appendix C).""",
)
class Fig10Misc(EveryStep):
    """Median convergence times of single neurons and PolyNets against n, and of two MLPs at larger n."""

    n = size(quick=[10, 15, 20, 25, 30], full=list(range(10, 41)))
    sinusoid_rate = size(quick=0.05, full=0.01, label="rate of (xiv)")
    names = size(quick=["xv", "xiv"], full=["viii", "xiv", "xv"], label="settings")
    larger_n = size(quick=[], full=[*range(10, 101, 10)], label="larger n")
    largest_n = size(quick=[], full=[150, 200], label="larger n at k=2")
    larger = at_least("slope(right) - slope(left) of ({setting}), k = {k}, larger n", 0, only=("standard", "full"),
                      part="steeper at larger n, {part}")

    def work(self, lab: Lab) -> tuple[Chains, Chains]:
        rates = {"viii": 0.01, "xiv": self.sinusoid_rate, "xv": 0.05}
        curves = self.chains(lab, {name: rates[name] for name in self.names}, self.degrees, self.n)
        wide = {"ii": 1.0, "v": 0.01}
        more = {k: [*self.larger_n, *(self.largest_n if k == 2 else [])] for k in (2, 3)}
        found = [self.chains(lab, wide, [k], sizes) for k, sizes in more.items() if sizes]
        return curves, {name: results for each in found for name, results in each.items()}

    def curves(self, got: tuple[Chains, Chains]) -> Chains:
        return got[0] | {f"{name}{LARGER}": results for name, results in got[1].items()}

    def judge(self, got: tuple[Chains, Chains]) -> Findings:
        checks = [check for name in self.names for check in self.small(got[0], name, KINDS[name])]
        for name, part in (("ii", "ReLU (ii)"), ("v", "z^k (v)")):
            for k in (k for k in (2, 3) if f"({name}) k={k}" in got[1]):
                bend = steeper_by(*thirds(got[1][f"({name}) k={k}"]))
                checks.append(self.larger(*bend, setting=name, k=k, part=part))
        return Findings(checks, rows(self.curves(got)))

    def draw(self, got: tuple[Chains, Chains]) -> plots.Figure:
        return draw_panels(self.curves(got))


# --- curves over n ------------------------------------------------------------------------------------------


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
    def bits(self) -> tuple[float, tuple[float, float]]:
        """The rate of an exponential law, in bits per input: 1 for 2^n."""
        return with_interval(self._fit(self.n)[0] / math.log(2))

    @property
    def _r_squared(self) -> np.ndarray:
        residuals = self._fit(np.log(self.n))[1] if len(self.n) > 2 else np.full(len(self.y), np.nan)
        return 1 - residuals / np.sum((self.y - self.y.mean(1, keepdims=True)) ** 2, axis=1)

    @property
    def r_squared(self) -> tuple[float, tuple[float, float]]:
        """The resampled values lie below the estimate, which they may exclude."""
        value, interval = with_interval(self._r_squared)
        return value, holding(value, interval)

    @property
    def straightness(self) -> tuple[float, tuple[float, float]]:
        """R^2 with an interval for what noise only lowers."""
        value, *resampled = self._r_squared
        return below(float(value), np.array(resampled), most=1.0)

    @property
    def preference(self) -> tuple[float, tuple[float, float]]:
        """log(residual of an exponential law / residual of a power law): above 0 where the power law fits better."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return with_interval(0.5 * np.log(self._fit(self.n)[1] / self._fit(np.log(self.n))[1]))


def steeper(rule: Condition, slopes: Sequence[float], **fields: str) -> Check:
    truth = None if np.isnan(slopes).any() else bool(np.all(np.diff(slopes) > 0))
    return rule(truth, None, slopes=" < ".join(f"{slope:.2f}" for slope in slopes), **fields)


def steepening(results: Sequence[Result]) -> tuple[float, Interval]:
    """The local slope over n = 30..40 less that over 10..20."""
    left, right = Line(results, 10, 20), Line(results, 30, 40)
    return with_interval(right.slopes - left.slopes)


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


def draw_curves(curves: Mapping[str, Sequence[Result]], lines: Mapping[str, Line]) -> plots.Figure:
    laws = {}
    for name, line in lines.items():
        if len(line.n) > 1:
            slope, ends = line.slopes[0], line.n[[0, -1]]
            law = np.exp(line.y[0].mean() + slope * (np.log(ends) - np.log(line.n).mean()))
            laws[f"{name}: $n^{{{slope:.2f}}}$"] = (ends, law)
    return plots.scaling_plot({name: series(results) for name, results in curves.items()}, "input bits n",
                              "median steps to convergence", laws)


@plots.styled
def draw_panels(curves: Mapping[str, Sequence[Result]]) -> plots.Figure:
    """One panel for each setting, and range of n, of which there is something; one line for each k."""
    present = {(key.split(" k=")[0], LARGER if key.endswith(LARGER) else "") for key in curves}
    shown = [(f"({name})", more) for more in ("", LARGER) for name in settings.BARAK2022
             if (f"({name})", more) in present]
    columns = min(len(shown), 3)
    lines = math.ceil(len(shown) / columns)
    figure = plots.blank(0.4 + 1.9 * lines)
    panels = np.ravel(figure.subplots(lines, columns, sharey=True, squeeze=False))
    degrees = sorted({result.setup.problem.degree for results in curves.values() for result in results})
    for axes, (name, more) in zip(panels, shown, strict=False):
        axes.set(xscale="log", yscale="log", title=name + more)
        for k, colour, marker in zip(degrees, plots.COLOURS, "osD^v*P", strict=False):
            points = series(reached(curves.get(f"{name} k={k}{more}", [])))
            axes.plot(points.x, points.y, marker=marker, markersize=2.5, linewidth=0.9, color=colour, label=f"k = {k}")
            axes.fill_between(points.x, points.low, points.high, color=colour, alpha=0.2, linewidth=0)
        axes.set_xticks(ticks := [10, 50, 200] if more else [10, 20, 40], [str(tick) for tick in ticks])
        axes.xaxis.set_minor_locator(NullLocator())
    for axes in panels[len(shown):]:
        axes.set_visible(False)
    figure.supxlabel("input bits n", fontsize=8)
    figure.supylabel("median steps to convergence", fontsize=8)
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=4, columnspacing=1.0)
    return figure
