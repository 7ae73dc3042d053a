"""Fourier gaps and what they reveal: Figures 11 and 12, Proposition 5."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy import stats

from paritylab import SGD, Learner, Neuron, Parity, Setup, plots
from paritylab.claims.lab import Lab
from paritylab.claims.registry import reproduces
from paritylab.claims.verdicts import Check, Interval, Outcome, at_least, at_most
from paritylab.measures.fourier import majority_coefficient, population_gradient
from paritylab.measures.gap import gaps, largest_gap, recover_support, sampled_gradient
from paritylab.papers.barak2022.common import Floats
from paritylab.plots import Series
from paritylab.theory.majority import coefficient_ratio, majority_gap


def share(flags: Any) -> tuple[float, Interval]:
    """The share of trues and its 95 % interval, by Clopper and Pearson.

    >>> value, (low, high) = share([True] * 9 + [False])
    >>> value, round(low, 3), round(high, 3)
    (0.9, 0.555, 0.997)
    """
    test = stats.binomtest(int(np.sum(flags)), len(flags))
    ends = test.proportion_ci(0.95, "exact")
    return float(test.statistic), (float(ends.low), float(ends.high))


def surely_at_least(name: str, flags: Any, bound: float) -> Check:
    """The one-sided 95 % lower bound of a share of draws is at least this."""
    value, interval = share(flags)
    low = stats.binomtest(int(np.sum(flags)), len(flags), alternative="greater").proportion_ci(0.95, "exact").low
    return Check(name, value, f"95 % lower bound >= {bound:g}", bool(low >= bound), interval, interval[1] < bound)


def signs(rng: np.random.Generator, *shape: int) -> Floats:
    return rng.choice(np.array([-1.0, 1.0]), shape)


# --- random weights ---------------------------------------------------------------------------------------------


def random_weights(rng: np.random.Generator, draws: int, n: int) -> dict[str, Floats]:
    return {"uniform": rng.uniform(-1, 1, (draws, n)), "Gaussian": rng.normal(size=(draws, n))}


@reproduces("barak2022.fig11")
def gaps_of_thresholds(lab: Lab) -> Outcome:
    """Gaps of ReLU neurons with random weights and no bias, beside those of neurons with sign weights."""
    n = lab.pick("n", quick=15, full=15)
    degrees = lab.pick("k", quick=[2, 3, 4, 5], full=[2, 3, 4, 5])
    draws = lab.pick("draws", quick=2000, full=10_000)
    checks: list[Check] = []
    data, shown = [], {}
    for k, (law, weights) in itertools.product(degrees, random_weights(lab.rng(11), draws, n).items()):
        gradients = population_gradient(weights, range(k)).weights
        found = largest_gap(gradients, range(k))
        where = f"k = {k}, {law} weights"
        if k % 2:
            checks.append(at_most(f"largest |g_i|, {where}", float(np.abs(gradients).max()), 1e-12))
        else:
            checks.append(surely_at_least(f"P(gap > 0), {where}", found > 0, 0.5))
            checks.append(surely_at_least(f"P(gap >= majority gap / 2), {where}", found >= majority_gap(n, k) / 2, 0.1))
            shown.setdefault(k, {})[law] = found
        data += [{"k": k, "law": law, "draw": i, "gap": float(gap)} for i, gap in enumerate(found)]
    return Outcome(checks, data, gap_histograms(n, shown))


@reproduces("barak2022.fig12-left")
def gaps_of_sinusoids(lab: Lab) -> Outcome:
    """The same with the derivative function sin(w.x / sqrt n), or cos where k is odd, by a product formula."""
    n = lab.pick("n", quick=15, full=15)
    draws = lab.pick("draws", quick=10_000, full=10_000)
    enumerated = lab.pick("draws enumerated", quick=100, full=10_000)
    checks: list[Check] = []
    data, shown, numbers, deviation = [], {}, {}, 0.0
    for k, (law, weights) in itertools.product((2, 3, 4), random_weights(lab.rng(12), draws, n).items()):
        name, wave, shift = ("cos", np.cos, 0.0) if k % 2 else ("sin", np.sin, -math.pi / 2)
        scaled = weights / math.sqrt(n)
        gradients = population_gradient(scaled, range(k), shift, "sinusoid").weights
        by_sum = population_gradient(scaled[:enumerated], range(k), 0.0, wave).weights
        deviation = max(deviation, float(np.abs(gradients[:enumerated] - by_sum).max()))
        found = largest_gap(gradients, range(k))
        where = f"k = {k}, {law} weights"
        if k % 2:
            numbers[f"P(gap > 0), {where}, cos"] = share(found > 0)[0]
        else:
            for bound, factor, rule in ((0.5, 0.0, "> 0"), (0.2, 0.1, ">= majority gap / 10")):
                flags = found >= factor * majority_gap(n, k) if factor else found > 0
                value, interval = share(flags)
                checks.append(at_least(f"P(gap {rule}), {where}", value, bound, interval))
        shown.setdefault(k, {})[law] = found
        data += [{"k": k, "function": name, "law": law, "draw": i, "gap": float(gap)} for i, gap in enumerate(found)]
    checks.append(at_most("product formula - enumeration, largest difference", deviation, 1e-10))
    return Outcome(checks, data, gap_histograms(n, shown), numbers)


@plots.styled
def gap_histograms(n: int, shown: Mapping[int, Mapping[str, Floats]]) -> Any:
    """A panel for each k, the central 99 % of the draws; dashed: the majority's gap, which there is for even k."""
    figure = plots.blank(0.6 + 0.95 * len(shown))
    panels = figure.subplots(len(shown), 1, squeeze=False)[:, 0]
    for axes, (k, laws) in zip(panels, shown.items(), strict=True):
        ends = np.quantile(np.concatenate(list(laws.values())), (0.005, 0.995))
        edges = np.linspace(ends[0], ends[1], 61)
        for (law, values), colour, line in zip(laws.items(), plots.COLOURS, plots.LINES, strict=False):
            axes.stairs(np.histogram(values, edges)[0] / len(values), edges, color=colour, linestyle=line,
                        linewidth=0.9, label=f"{law} weights")
        axes.axvline(0, color=plots.GREY, linewidth=0.5)
        if k % 2 == 0:
            axes.axvline(majority_gap(n, k), color=plots.COLOURS[3], linestyle="dashed", linewidth=0.9,
                         label="majority")
        axes.annotate(f"k = {k}", (0.98, 0.85), xycoords="axes fraction", ha="right", va="top", fontsize=7)
        axes.set(ylim=(0, None))
    panels[-1].set_xlabel(f"gap of the population gradient, n = {n}")
    figure.supylabel("fraction of draws", fontsize=8)
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=3, columnspacing=1.2)
    return figure


# --- along the path of SGD --------------------------------------------------------------------------------------


@reproduces("barak2022.fig12-right")
def gap_grows(lab: Lab) -> Outcome:
    """The exact gap of a sinusoidal neuron's population gradient, every 20 steps of SGD."""
    n = lab.pick("n", quick=15, full=15)
    steps = lab.pick("steps", quick=2000, full=2000)
    runs = lab.pick("runs", quick=10, full=10)
    setup = Setup(Parity(n, 3), Learner(Neuron("sinusoid:3"), optimiser=SGD(0.01)))
    traced = lab.curves(setup, steps, 20, runs, weights=True)
    layer = traced.weights[0]
    found = gaps(layer["w"][..., 0], range(3), layer["b"][..., 0], "sinusoid:3")
    solved = traced.first()
    until = np.where(solved < 0, steps, solved)
    largest = np.array([gap[traced.steps <= end].max() for gap, end in zip(found, until, strict=True)])
    checks = [at_least(name, share(flags)[0], 0.8, share(flags)[1]) for name, flags in (
        ("share of runs with a gap > 0 at the start", found[:, 0] > 0),
        ("share of runs with a gap twice that at the start by t_c", largest >= 2 * found[:, 0]),
    )]
    numbers = {"median gap at the start": float(np.median(found[:, 0])),
               "median largest gap by t_c": float(np.median(largest)), "runs solved": float(np.sum(solved >= 0))}
    data = [{"run": run, "step": int(step), "gap": float(gap), "t_c": int(end) if end >= 0 else None}
            for run, end in enumerate(solved) for step, gap in zip(traced.steps, found[run], strict=True)]
    note = "k = 3 is odd, so the paper's reference, the gap of majority, is 0 here"
    return Outcome(checks, data, gap_paths(traced.steps, found, solved), numbers, note)


@plots.styled
def gap_paths(steps: Any, found: Floats, solved: Any) -> Any:
    """A line for each run; a circle where it first is right on the whole sample."""
    figure = plots.blank(2.3)
    axes = figure.add_subplot(xlabel="steps", ylabel="gap of the population gradient")
    axes.axhline(0, color=plots.GREY, linewidth=0.5)
    for number, (gap, end) in enumerate(zip(found, solved, strict=True)):
        axes.plot(steps, gap, color=plots.COLOURS[0], linewidth=0.7, alpha=0.7, label=None if number else "one run")
        place = steps == end
        axes.plot(steps[place], gap[place], "o", markersize=3.5, color=plots.COLOURS[1], fillstyle="none", zorder=3)
    axes.plot([], [], "o", markersize=3.5, color=plots.COLOURS[1], fillstyle="none", label="solved")
    axes.legend(loc="upper right")
    return figure


# --- one gradient ------------------------------------------------------------------------------------------------


@reproduces("barak2022.prop5")
def one_gradient_reveals(lab: Lab) -> Outcome:
    """The inputs whose gradient is above 3/4 of the gap: of the exact gradient, and of estimates from B samples."""
    n = lab.pick("n", quick=31, full=31)
    draws = lab.pick("draws", quick=200, full=200)
    sampled = lab.pick("k of the estimates", quick=[2], full=[2, 4])
    checks: list[Check] = []
    data, series = [], {}
    for k in (2, 4):
        gamma = abs(majority_coefficient(n, k - 1)) / 2
        exact = population_gradient(signs(lab.rng(5, k), draws, n), range(k)).weights
        checks.append(at_most(f"|xi_(k+1) / xi_(k-1)|, k = {k}", coefficient_ratio(n, k), 0.5))
        value, (low, high) = share([recover_support(g, gamma) == [*range(k)] for g in exact])
        checks.append(at_least(f"S recovered from the exact gradient, k = {k}", value, 1.0))
        data.append({"n": n, "k": k, "samples": None, "B / samples": None, "draws": draws, "recovered": value,
                     "low": low, "high": high})
        if k not in sampled:
            continue
        enough = 32 * math.log(2 * n / 0.01) / gamma**2
        for part in (200, 100, 50, 20, 10, 1):
            samples = math.ceil(enough / part)
            value, (low, high) = share(recoveries(lab, n, k, draws, samples))
            if part == 1:
                checks.append(at_least(f"S recovered from B = {samples}, k = {k}", value, 0.99, (low, high)))
            if part == 200:
                checks.append(Check(f"S recovered from B/200 = {samples}, k = {k}", value, "< 0.5", value < 0.5,
                                    (low, high), certain=low >= 0.5))
            data.append({"n": n, "k": k, "samples": samples, "B / samples": part, "draws": draws, "recovered": value,
                         "low": low, "high": high})
        rows = [row for row in data if row["k"] == k and row["samples"]]
        columns = ([row[name] for row in rows] for name in ("recovered", "low", "high"))
        series[f"k = {k}, B = {enough:.1e}"] = Series([1 / row["B / samples"] for row in rows], *columns)
    laws = {"asked at B": ([0.5, 1], [0.99, 0.99]), "asked at B/200": ([0.005, 0.01], [0.5, 0.5])}
    figure = plots.scaling_plot(series, "samples / B", "share of draws with S recovered", laws, log="x")
    return Outcome(checks, data, figure)


def recoveries(lab: Lab, n: int, k: int, draws: int, samples: int, chunk: int = 20) -> list[bool]:
    """Whether S is recovered from each of several estimates, each with sign weights and samples of its own."""
    gamma = abs(majority_coefficient(n, k - 1)) / 2
    found: list[bool] = []
    for start in range(0, draws, chunk):
        def make(start: int = start) -> dict[str, Floats]:
            rng = lab.rng(5, k, samples, start)
            pairs = range(min(chunk, draws - start))
            return {"gradients": np.array([sampled_gradient(signs(rng, n), range(k), samples, rng) for _ in pairs])}

        parameters = {"n": n, "k": k, "samples": samples, "start": start, "end": min(start + chunk, draws)}
        found += [recover_support(g, gamma) == [*range(k)] for g in lab.kept_old("prop5", parameters, make)["gradients"]]
    return found
