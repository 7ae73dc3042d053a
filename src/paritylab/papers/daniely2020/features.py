"""What the good units can express: Lemmas 8 to 10."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from paritylab import plots
from paritylab.claims.lab import Lab
from paritylab.claims.registry import reproduces
from paritylab.claims.verdicts import Check, Outcome, at_least, at_most, between, holds
from paritylab.papers.daniely2020.first_step import lowest
from paritylab.plots import Series
from paritylab.theory import leaky, leaky_features, leaky_flow
from paritylab.theory.leaky import Leaky

# --- Lemmas 8 and 9 -------------------------------------------------------------------------------------------------


@reproduces("daniely2020.lemma8-9")
def every_bump(lab: Lab) -> Outcome:
    """How many units are within eps of psi_r after the first step: among good ones, and among all; for every r."""
    degrees = lab.pick("k", quick=[3, 5, 7], full=[3, 5, 7])
    sizes = lab.pick("n", quick=[1001, 10_001], full=[1001, 10_001])
    draws = lab.pick("draws", quick=100_000, full=100_000)
    checks: list[Check] = []
    data: list[dict[str, Any]] = []
    for k, n in itertools.product(degrees, sizes):
        problem = Leaky(n, k)
        units, u = leaky.draw_units(problem, draws, lab.rng(8, n, k))
        good = np.flatnonzero(leaky.good(problem, units))
        chosen = leaky.Units(units.plus[good], units.minus[good], units.others[good])
        alpha = leaky.first_gradient(problem, chosen).relevant
        for r in problem.values.tolist():
            distance = leaky_features.bump_distance(problem, r, alpha, u[good])
            for eps in (0.1 * k, 0.5):
                near = int(np.sum(distance <= eps))
                name = f"r = {r}, eps = {eps:g}, n = {n}, k = {k}"
                bounds = eps / (8 * k**2), eps / (112 * k**2.5)
                surely = lowest(near, len(good)), lowest(near, draws)
                checks += [at_least(f"share of good units near psi_r, 99 % confidence, {name}", surely[0], bounds[0]),
                           at_least(f"share of all units near psi_r, 99 % confidence, {name}", surely[1], bounds[1])]
                exact = float(leaky_features.bump_chance(problem, r, alpha, eps).mean())
                data.append({"n": n, "k": k, "r": r, "eps": eps, "of good": near / len(good), "of all": near / draws,
                             "exact of good": exact, "Lemma 8": bounds[0], "Lemma 9": bounds[1]})
    return Outcome(checks, data, draw_bumps(data, max(sizes)))


@plots.styled
def draw_bumps(data: Sequence[dict[str, Any]], n: int) -> Any:
    """The shares at eps = 0.5 against r, beside the exact ones and the lemmas' bounds."""
    figure = plots.blank(2.9)
    axes = figure.add_subplot(xlabel="r", ylabel="share of units near $\\psi_r$, $\\epsilon = 0.5$", yscale="log")
    for k, colour, marker in zip(sorted({row["k"] for row in data}), plots.COLOURS, "osD", strict=False):
        rows = [row for row in data if row["k"] == k and row["n"] == n and row["eps"] == 0.5]
        r = [row["r"] for row in rows]
        axes.plot(r, [row["of good"] for row in rows], marker, color=colour, markersize=4, label=f"of good, k = {k}")
        axes.plot(r, [row["of all"] for row in rows], marker, color=colour, markersize=4, fillstyle="none",
                  label=f"of all, k = {k}")
        axes.plot(r, [row["exact of good"] for row in rows], color=colour, linewidth=0.8,
                  label="exact" if k == data[0]["k"] else None)
        for name, line in (("Lemma 8", "dashed"), ("Lemma 9", "dotted")):
            axes.plot(r, [row[name] for row in rows], color=colour, linestyle=line, linewidth=0.8,
                      label=name if k == data[0]["k"] else None)
    figure.legend(*axes.get_legend_handles_labels(), loc="outside upper center", ncols=3, columnspacing=1)
    return figure


# --- Lemma 10 -------------------------------------------------------------------------------------------------------


@reproduces("daniely2020.lemma10")
def small_separators(lab: Lab) -> Outcome:
    """The weights of the bumps that make the parity, and the smallest separators on features after the exact step."""
    n = lab.pick("n", quick=301, full=1001)
    degrees = lab.pick("k of the separators", quick=[3], full=[3, 5])
    widths = lab.pick("q", quick=[125, 250, 500], full=[500, 2000, 8000])
    points = lab.pick("points", quick=1000, full=4000)
    seeds = lab.pick("seeds", quick=2, full=5)
    checks: list[Check] = []
    data: list[dict[str, Any]] = []
    for k in (3, 5, 7, 9, 11):
        labels = Leaky(k + 1, k).labels
        found, printed = (float(np.abs(leaky_features.bump_sum(k, leaky_features.bump_coefficients(k, as_printed))
                                       - labels).max()) for as_printed in (False, True))
        checks += [at_most(f"residual of the corrected weights, k = {k}", found, 1e-9),
                   holds(f"residual of the printed weights, k = {k}", printed > 1, "> 1", printed)]
        data.append({"k": k, "residual": found, "residual as printed": printed})
    curves: dict[str, Series] = {}
    laws: dict[str, tuple[Any, Any]] = {}
    for k in degrees:
        problem = Leaky(n, k)
        norms = np.array([[
            lab.kept_old("separator", {"n": n, "k": k, "q": q, "points": points, "seed": seed},
                     partial(separator, problem, q, points, lab.rng(10, k, q, seed)))["norm"]
            for seed in range(seeds)] for q in widths])
        separated = np.isfinite(norms[-1])
        checks.append(at_least(f"share of seeds with a separator, q = {widths[-1]}, k = {k}", float(separated.mean()),
                               0.8))
        middle = np.median(norms, axis=1)
        slope = float(np.polyfit(np.log(widths), np.log(middle), 1)[0]) if np.isfinite(middle).all() else None
        checks.append(between(f"slope of log median |u| on log q, k = {k}", slope, -0.7, -0.3))
        curves[f"k = {k}"] = Series(widths, middle, norms.min(1), norms.max(1))
        limit = leaky_flow.separator_norm(problem, leaky_flow.limit(problem).kernel)
        laws["_" * len(laws) + "limit of many units, no noise"] = (widths, [math.sqrt(limit / 2 / q) for q in widths])
        data += [{"k": k, "n": n, "q": q, "seed": seed, "norm": float(norm), "limit": math.sqrt(limit / 2 / q)}
                 for q, row in zip(widths, norms, strict=True) for seed, norm in enumerate(row)]
    figure = plots.scaling_plot(curves, "pairs of units q", "smallest $|u|$ with margin 1", laws)
    theorem = leaky_flow.separator_norm(Leaky(7**10, 7), leaky_flow.limit(Leaky(7**10, 7)).kernel)
    numbers = {"sqrt(q) |u*| / k^5, k = 7, n = 7^10, q -> infinity": math.sqrt(theorem / 2) / 7**5}
    return Outcome(checks, data, figure, numbers)


def separator(problem: Leaky, q: int, points: int, rng: np.random.Generator) -> dict[str, Any]:
    """The smallest separator of all patterns on A, each with several random completions."""
    layer = leaky.first_step(problem, leaky.start(problem, q, rng))
    patterns = np.array(list(itertools.product((1.0, -1.0), repeat=problem.k)))
    s = 1.0 - 2.0 * rng.integers(0, 2, (points, problem.n))
    s[:, : problem.k] = np.resize(patterns, (points, problem.k))
    return {"norm": np.array(leaky_features.smallest_separator(layer.features(s), s[:, : problem.k].prod(1)))}
