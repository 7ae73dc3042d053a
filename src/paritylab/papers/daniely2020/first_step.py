"""The first gradient step, exactly: Lemmas 3 to 7 and 12."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from paritylab import plots
from paritylab.claims.intervals import proportion
from paritylab.claims.lab import Lab
from paritylab.claims.registry import reproduces
from paritylab.claims.verdicts import Check, Outcome, at_least, at_most, between
from paritylab.measures.fourier import cube
from paritylab.plots import Series
from paritylab.theory import leaky
from paritylab.theory.leaky import Leaky

# --- Lemmas 3 and 4 -------------------------------------------------------------------------------------------------


@reproduces("daniely2020.lemma3")
def uniform_part(lab: Lab) -> Outcome:
    """How often gradients of the uniform half exceed c / sqrt(C(n-1, k)) over random w: off A, the bias, any."""
    sizes = lab.pick("n", quick=[15, 21, 31, 51], full=[15, 21, 31, 51])
    degrees = lab.pick("k", quick=[3, 5], full=[3, 5])
    draws = lab.pick("draws", quick=5000, full=5000)
    checks: list[Check] = []
    data: list[dict[str, Any]] = []
    tails: dict[str, Series] = {}
    for k in degrees:
        for n in sizes:
            rng = lab.rng(3, n, k)
            problem = Leaky(n, k)
            units, _ = leaky.draw_units(problem, draws, rng)
            gradient = leaky.uniform_gradient(problem, units)
            touched = rng.random(draws) < units.others / (n - k)  # w_j != 0 for a given j outside A
            unit = 1 / math.sqrt(math.comb(n - 1, k))
            found = {"j outside A": np.abs(gradient.off) * touched / math.sqrt(n), "bias": np.abs(gradient.bias)}
            for name, values in found.items():
                for c in (2, 5, 10):
                    share, _ = proportion(int(np.sum(values > c * unit)), draws)
                    spread = math.sqrt(share * (1 - share) / draws)
                    checks.append(at_most(f"P[|{name}| > {c} / sqrt(C(n-1, k))], n = {n}, k = {k}", share,
                                          1 / c + 3 * spread))
                    data.append({"n": n, "k": k, "part": name, "c": c, "share": share,
                                 "largest": float(values.max() / unit)})
            largest = np.maximum(np.abs(gradient.off) / math.sqrt(n), np.abs(gradient.bias))
            for c in (2, 5, 10):
                share, _ = proportion(int(np.sum(largest > c * (n - 1) * unit)), draws)
                checks.append(at_most(f"P[any > {c} (n-1) / sqrt(C(n-1, k))], n = {n}, k = {k}", share, 1 / c))
            if n == max(sizes):
                for name, values in found.items():
                    ratio = np.sort(values / unit)[::-1]
                    tails[f"{name}, k = {k}"] = Series(np.maximum(ratio, 1e-6), np.arange(1, draws + 1) / draws)
    return Outcome(checks, data, draw_tails(tails, max(sizes)))


@plots.styled
def draw_tails(tails: dict[str, Series], n: int) -> Any:
    """The share of units whose gradient exceeds c units, beside Lemma 3's 1/c."""
    figure = plots.blank(2.5)
    axes = figure.add_subplot(xscale="log", yscale="log", xlabel="c", xlim=(1e-3, 12), ylim=(1e-3, 1.3),
                              ylabel=f"P[|gradient| > $c / \\sqrt{{C(n-1, k)}}$], n = {n}")
    for (label, tail), colour, line in zip(tails.items(), plots.COLOURS, plots.LINES, strict=False):
        axes.step(np.asarray(tail.x), np.asarray(tail.y), where="post", color=colour, linestyle=line, label=label)
    c = np.geomspace(1, 12, 20)
    axes.plot(c, 1 / c, color=plots.GREY, linestyle="dotted", label="Lemma 3: 1/c")
    figure.legend(*axes.get_legend_handles_labels(), loc="outside upper center", ncols=2)
    return figure


# --- Lemma 5 --------------------------------------------------------------------------------------------------------


@reproduces("daniely2020.lemma5")
def balanced_units(lab: Lab) -> Outcome:
    """Gradients of units whose w sums to 0 over A, by enumeration, on both halves; others for comparison."""
    n = lab.pick("n", quick=11, full=11)
    draws = lab.pick("draws", quick=2000, full=2000)
    checks: list[Check] = []
    data: list[dict[str, Any]] = []
    shown: dict[str, Any] = {}
    for k in (3, 5):
        rng, s = lab.rng(5, k), cube(n)
        f = s[:, :k].prod(1)
        equal = np.abs(s[:, :k].sum(1)) == k
        w = rng.integers(-1, 2, (60 * draws, n)).astype(float)
        balanced = w[:, :k].sum(1) == 0
        for name, chosen in (("balanced", w[balanced][:draws]), ("others", w[~balanced][:draws])):
            z = s @ chosen.T / math.sqrt(n) + Leaky(n, k).bias
            pull = ((z > 0) & (z < leaky.UPPER)) * f[:, None]
            for half, rows in (("equal bits", equal), ("uniform", np.ones(len(s), bool))):
                by_weight = pull[rows].T @ s[rows, k:] / rows.sum()
                by_bias = pull[rows].mean(0)
                largest = np.maximum(np.abs(by_weight).max(1), np.abs(by_bias))
                shown[f"{name}, {half}, k = {k}"] = largest
                data += [{"n": n, "k": k, "units": name, "half": half, "unit": i, "largest": float(value)}
                         for i, value in enumerate(largest[:200])]
                if name == "balanced":
                    checks.append(at_most(f"largest |gradient| off A and of the bias, {half} half, k = {k}",
                                          float(largest.max()), 1e-14))
    return Outcome(checks, data, draw_sizes(shown))


@plots.styled
def draw_sizes(shown: dict[str, Any]) -> Any:
    """One row of points for each kind of unit; zeros at the left end."""
    figure = plots.blank(0.8 + 0.17 * len(shown))
    axes = figure.add_subplot(xscale="log", xlabel="largest |gradient| of a unit (0: left)",
                              ylim=(len(shown) - 0.5, -0.5), xlim=(3e-19, 1))
    axes.set_yticks(range(len(shown)), list(shown))
    for place, values in enumerate(shown.values()):
        axes.plot(np.maximum(values, 1e-18), np.full(len(values), place), "|", markersize=6, color=plots.COLOURS[0])
    axes.axvline(1e-14, color=plots.GREY, linestyle="dotted", linewidth=0.8)
    return figure


# --- Lemma 6 --------------------------------------------------------------------------------------------------------


@reproduces("daniely2020.lemma6")
def nearly_independent(lab: Lab) -> Outcome:
    """E[h sigma'] - E[h] phi for h = sqrt(n) x_j f, largest over j and random w, against n."""
    sizes = lab.pick("n", quick=[51, 201, 801, 3201], full=[51, 201, 801, 3201])
    draws = lab.pick("draws", quick=200, full=200)
    checks: list[Check] = []
    data: list[dict[str, Any]] = []
    curves: dict[str, Series] = {}
    for k in (3, 7):
        largest = []
        for n in sizes:
            problem = Leaky(n, k)
            units, _ = leaky.draw_units(problem, draws, lab.rng(6, n, k))
            g = leaky.first_gradient(problem, units)
            zeros = k - units.plus - units.minus
            by_sign = [np.where(present, g.relevant + extra, np.nan) for present, extra in (
                (zeros > 0, g.at_zero), (units.plus > 0, g.along), (units.minus > 0, -g.along))]
            central = problem.leak * leaky.central_probability(problem, units)
            deviation = np.nanmax(np.abs(np.stack(by_sign) - central), axis=0)
            scaled = np.sqrt(units.others) / k * deviation
            largest.append(float(deviation.max()))
            checks.append(at_most(f"largest sqrt|J| / k times deviation, n = {n}, k = {k}", float(scaled.max()), 3))
            data += [{"n": n, "k": k, "unit": i, "deviation": float(d), "scaled": float(s)}
                     for i, (d, s) in enumerate(zip(deviation, scaled, strict=True))]
        slope = float(np.polyfit(np.log(sizes), np.log(largest), 1)[0])
        checks.append(between(f"slope of log largest deviation on log n, k = {k}", slope, -0.7, -0.3))
        curves[f"k = {k}"] = Series(sizes, largest)
    laws = {"$n^{-1/2}$": (sizes, [1.2 / math.sqrt(n) for n in sizes])}
    figure = plots.scaling_plot(curves, "input bits n", "largest $|E h\\sigma' - \\varphi/2|$", laws)
    return Outcome(checks, data, figure)


# --- Lemma 7 --------------------------------------------------------------------------------------------------------


@reproduces("daniely2020.lemma7")
def good_units(lab: Lab) -> Outcome:
    """How many units are good, and what the exact first step makes of them."""
    sizes = lab.pick("n", quick=[101, 1001, 4001], full=[101, 1001, 4001])
    draws = lab.pick("draws", quick=20_000, full=20_000)
    gradients = lab.pick("gradients", quick=200, full=200)
    checks: list[Check] = []
    data: list[dict[str, Any]] = []
    for k in (3, 5, 7):
        exact = leaky.balanced_share(k)
        for n in sizes:
            problem = Leaky(n, k)
            units, u = leaky.draw_units(problem, draws, lab.rng(7, n, k))
            good = leaky.good(problem, units)
            share, _ = proportion(int(good.sum()), draws)
            surely = lowest(int(good.sum()), draws)
            chosen = np.flatnonzero(good)[:gradients]
            picked = leaky.Units(units.plus[chosen], units.minus[chosen], units.others[chosen])
            g = leaky.first_gradient(problem, picked)
            weights = np.abs(u[chosen] * g.off) / math.sqrt(n)
            name = f"n = {n}, k = {k}"
            checks += [
                at_least(f"share of good units, 99 % confidence, {name}", surely, leaky.share_bound(k)),
                at_most(f"|share - trinomial probability|, {name}", abs(share - exact), 0.02),
                at_least(f"smallest alpha, {name}", float(g.relevant.min()), 1 / 8),
                at_most(f"largest alpha, {name}", float(g.relevant.max()), 1 / 2),
                at_most(f"largest irrelevant weight, {name}", float(weights.max()), 1e-12 * n),
            ]
            data.append({"n": n, "k": k, "share": share, "exact": exact, "bound": leaky.share_bound(k),
                         "smallest alpha": float(g.relevant.min()), "largest alpha": float(g.relevant.max()),
                         "largest bias change": float(np.abs(u[chosen] * g.bias).max())})
    return Outcome(checks, data, draw_good(data))


def lowest(count: int, total: int, confidence: float = 0.99) -> float:
    """The one-sided Clopper-Pearson lower end of a proportion.

    >>> round(lowest(50, 100), 3)
    0.381
    """
    from scipy import stats

    return float(stats.binomtest(count, total, alternative="greater").proportion_ci(confidence, "exact").low)


@plots.styled
def draw_good(data: Sequence[dict[str, Any]]) -> Any:
    """Shares beside the exact ones and the lemma's bound; alpha beside its range."""
    figure = plots.blank(2.2)
    shares, alphas = figure.subplots(1, 2)
    degrees = sorted({row["k"] for row in data})
    for n, colour, marker in zip(sorted({row["n"] for row in data}), plots.COLOURS, "osD", strict=False):
        rows = [row for row in data if row["n"] == n]
        shares.plot(degrees, [row["share"] for row in rows], marker, color=colour, fillstyle="none", markersize=4,
                    label=f"n = {n}")
        for part in ("smallest alpha", "largest alpha"):
            alphas.plot(degrees, [row[part] for row in rows], marker, color=colour, fillstyle="none", markersize=4)
    rows = [row for row in data if row["n"] == data[0]["n"]]
    exact, bound = ([row[name] for row in rows] for name in ("exact", "bound"))
    shares.plot(degrees, exact, color=plots.GREY, linewidth=0.8, label="exact")
    shares.plot(degrees, bound, color=plots.GREY, linestyle="dotted", label="Lemma 7")
    shares.set(xlabel="k", ylabel="share of good units", ylim=(0, 0.3), xticks=degrees)
    for end in (1 / 8, 1 / 2):
        alphas.axhline(end, color=plots.GREY, linestyle="dotted")
    alphas.set(xlabel="k", ylabel="$\\alpha$ of good units", ylim=(0, 0.55), xticks=degrees)
    figure.legend(*shares.get_legend_handles_labels(), loc="outside upper center", ncols=3)
    return figure


# --- Lemma 12 -------------------------------------------------------------------------------------------------------


@reproduces("daniely2020.lemma12")
def small_outputs(lab: Lab) -> Outcome:
    """|u| sqrt(n) / k after the first step, exactly, over random units."""
    sizes = lab.pick("n", quick=[101, 1001], full=[101, 1001])
    draws = lab.pick("draws", quick=500, full=500)
    checks: list[Check] = []
    data: list[dict[str, Any]] = []
    for k in (3, 5, 7):
        for n in sizes:
            problem = Leaky(n, k)
            units, _ = leaky.draw_units(problem, draws, lab.rng(12, n, k))
            ratio = np.abs(leaky.first_gradient(problem, units).output) * math.sqrt(n) / k
            name = f"n = {n}, k = {k}"
            checks += [at_most(f"units with |u| above k / sqrt(n), {name}", float(np.sum(ratio > 1)), 0),
                       at_most(f"largest |u| sqrt(n) / k, {name}", float(ratio.max()), 0.5)]
            data += [{"n": n, "k": k, "sum": int(abs(total)), "ratio": float(value)}
                     for total, value in zip(units.sum, ratio, strict=True)]
    return Outcome(checks, data, draw_outputs(data))


@plots.styled
def draw_outputs(data: Sequence[dict[str, Any]]) -> Any:
    """The ratios against |W|, the sum of w over A, on which they depend almost alone."""
    figure = plots.blank(2.3)
    axes = figure.add_subplot(xlabel="|sum of w over A|", ylabel="$|u^{(1)}| \\sqrt{n} / k$", ylim=(-0.01, 0.55))
    for k, colour, marker in zip(sorted({row["k"] for row in data}), plots.COLOURS, "osD", strict=False):
        rows = [row for row in data if row["k"] == k]
        axes.plot([row["sum"] for row in rows], [row["ratio"] for row in rows], marker, color=colour, fillstyle="none",
                  markersize=3.5, label=f"k = {k}")
    axes.axhline(0.5, color=plots.GREY, linestyle="dotted", linewidth=0.8, label="asked")
    figure.legend(*axes.get_legend_handles_labels(), loc="outside upper center", ncols=4, columnspacing=1)
    return figure
