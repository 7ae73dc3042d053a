"""Without the leak, with less of it, and with more depth: Section 2 and the open questions of Section 5."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from paritylab import MLP, SGD, Learner, Parity, Protocol, Setup, plots
from paritylab.claims.lab import Lab
from paritylab.claims.registry import reproduces
from paritylab.claims.verdicts import Check, Outcome, at_least, at_most, holds
from paritylab.papers.daniely2020.common import best, practical, share, trained
from paritylab.plots import Series
from paritylab.theory import leaky
from paritylab.theory.leaky import Floats, Leaky

# --- without the leak -----------------------------------------------------------------------------------------------


@reproduces("daniely2020.uniform-contrast")
def without_leak(lab: Lab) -> Outcome:
    """Exact relevant gradients of the first step with and without the leak; then the same network trained without."""
    draws = lab.pick("draws of w", quick=2000, full=2000)
    networks = lab.pick("n, k, q, T, seeds", quick=[], standard=[[101, 3, 200, 5000, 5], [101, 5, 500, 2000, 5]],
                        full=[[101, 3, 200, 5000, 5], [101, 5, 500, 100_000, 5]])
    sizes, checks = [31, 51, 101, 201, 401, 801], []
    data: list[dict[str, Any]] = []
    numbers: dict[str, float] = {}
    series: dict[str, Series] = {}
    laws: dict[str, tuple[Any, Any]] = {}
    for k, leak in itertools.product((3, 5), (0.5, 0.0)):
        means = [relevant_gradient(Leaky(n, k, leak), draws, lab.rng(15, n, k)) for n in sizes]
        name = f"k = {k}, " + ("leaky" if leak else "uniform")
        numbers[f"mean sqrt(n) |E x_j f sigma'|, j in A, n = 101, {name}"] = means[sizes.index(101)]
        series[name] = Series(sizes, means)
        data += [{"n": n, "k": k, "leak": leak, "gradient": mean} for n, mean in zip(sizes, means, strict=True)]
        if not leak:
            law = [means[2] * (101 / n) ** ((k - 1) / 2) for n in sizes]
            laws["_" * len(laws) + "$n^{-(k-1)/2}$"] = (sizes, law)
    ratio = numbers["mean sqrt(n) |E x_j f sigma'|, j in A, n = 101, k = 3, leaky"] \
        / numbers["mean sqrt(n) |E x_j f sigma'|, j in A, n = 101, k = 3, uniform"]
    checks.append(at_least("gradient with the leak / without, k = 3, n = 101", ratio, 500))
    for n, k, q, steps, seeds in networks:
        rows = trained(lab, practical(n, k, q, leak=0.0), steps, seeds)
        errors = best(rows)
        data += [{"schedule": "uniform only", **row} for row in rows]
        numbers[f"smallest error without the leak, n = {n}, k = {k}"] = float(errors.min())
        if k == 5:
            checks.append(share(f"share of seeds with error >= 0.4, n = {n}, k = {k}, T = {steps}", errors >= 0.4, 0.8))
    figure = plots.scaling_plot(series, "input bits n", "mean $\\sqrt{n}\\,|E x_j f \\sigma'|$, j in A", laws)
    return Outcome(checks, data, figure, numbers)


def relevant_gradient(sizes: Leaky, draws: int, rng: np.random.Generator) -> float:
    """The mean over units and j in A of |E[s_j f sigma']|.

    >>> round(relevant_gradient(Leaky(101, 3), 500, np.random.default_rng(0)), 2)
    0.26
    """
    units, _ = leaky.draw_units(sizes, draws, rng)
    g = leaky.first_gradient(sizes, units)
    zeros = sizes.k - units.plus - units.minus
    total = zeros * np.abs(g.relevant + g.at_zero) + units.plus * np.abs(g.relevant + g.along) \
        + units.minus * np.abs(g.relevant - g.along)
    return float(total.mean() / sizes.k)


# --- how small may the leak be? ---------------------------------------------------------------------------------------


@reproduces("daniely2020.open-leak-strength")
def leak_strength(lab: Lab) -> Outcome:
    """The error on the uniform half after the practical schedule against the weight of the equal-bits half."""
    leaks = lab.pick("leak", quick=[0.1, 0.5], full=[0.0, 0.01, 0.03, 0.1, 0.3, 0.5])
    networks = lab.pick("n, k, q, T, seeds", quick=[[61, 3, 200, 3000, 1]], standard=[[101, 3, 200, 5000, 5]],
                        full=[[101, 3, 200, 5000, 5], [101, 5, 500, 100_000, 5]])
    checks: list[Check] = []
    data: list[dict[str, Any]] = []
    series: dict[str, Series] = {}
    for n, k, q, steps, seeds in networks:
        by_leak = []
        for leak in leaks:
            rows = trained(lab, practical(n, k, q, leak=leak), steps, seeds)
            data += rows
            by_leak.append(best(rows, "uniform error"))
        means = np.array([errors.mean() for errors in by_leak])
        spreads = np.array([errors.std(ddof=1) / math.sqrt(seeds) if seeds > 1 else 0.0 for errors in by_leak])
        falls = np.diff(means) <= 2 * np.hypot(spreads[1:], spreads[:-1]) + 1e-12
        checks += [holds(f"uniform-half error non-increasing in the leak (within 2 s.e.), n = {n}, k = {k}",
                         bool(falls.all()), value=float(np.sum(~falls))),
                   at_most(f"mean uniform-half error at leak 0.5, n = {n}, k = {k}", float(means[-1]), 0.05)]
        series[f"n = {n}, k = {k}"] = Series(leaks, means, means - 2 * spreads, means + 2 * spreads)
    figure = plots.scaling_plot(series, "leak p", "error on the uniform half", log="")
    figure.axes[0].set(xlim=(-0.02, 0.52), ylim=(-0.02, 0.8))
    return Outcome(checks, data, figure)


# --- depth ----------------------------------------------------------------------------------------------------------


@reproduces("daniely2020.open-depth")
def depth(lab: Lab) -> Outcome:
    """Quadratic networks with one and with two hidden layers on a parity of degree 4; ReLU networks beside them."""
    sizes = lab.pick("n", quick=[10], full=[10, 20])
    runs = lab.pick("runs", quick=3, full=10)
    steps = lab.pick("steps", quick=10_000, full=50_000)
    networks = {"depth 2, $z^2$, width 10": MLP(10, "power:2"), "depth 2, $z^2$, width 100": MLP(100, "power:2"),
                "depth 3, $z^2$": MLP((10, 10), "power:2"), "depth 2, ReLU": MLP(100), "depth 3, ReLU": MLP((10, 10))}
    checks: list[Check] = []
    data: list[dict[str, Any]] = []
    shown: dict[str, Floats] = {}
    for n, (name, network) in itertools.product(sizes, networks.items()):
        setup = Setup(Parity(n, 4), Learner(network, optimiser=SGD(0.01)), Protocol(max_steps=steps))
        curves = lab.curves(setup, steps, steps // 50, runs)
        accuracy = np.nan_to_num(curves.accuracy, nan=0.5)  # a network that diverged predicts nothing
        last = accuracy[:, -1]
        where = name.replace("$", "")
        if name.startswith("depth 2, $z^2$"):
            checks.append(at_most(f"highest final accuracy, {where}, n = {n}", float(last.max()), 0.55))
        elif "z^2" in name:
            checks.append(share(f"share of runs with accuracy >= 0.99, {where}, n = {n}", last >= 0.99, 0.8))
        shown[f"{name}, n = {n}"] = last
        data += [{"n": n, "network": where, "run": run, "final accuracy": float(value),
                  "diverged": bool(np.isnan(curves.accuracy[run, -1]))} for run, value in enumerate(last)]
    return Outcome(checks, data, draw_depths(shown))


@plots.styled
def draw_depths(shown: Mapping[str, Sequence[float] | Floats]) -> Any:
    """A circle for each run's final accuracy."""
    figure = plots.blank(0.7 + 0.19 * len(shown))
    axes = figure.add_subplot(xlabel="final accuracy", ylim=(len(shown) - 0.5, -0.5),
                              xlim=(0.45, 1.02))
    axes.set_yticks(range(len(shown)), list(shown))
    for place, values in enumerate(shown.values()):
        axes.plot(values, np.full(len(values), place), "o", fillstyle="none", markersize=4, color=plots.COLOURS[0])
    for bound in (0.55, 0.99):
        axes.axvline(bound, color=plots.GREY, linestyle="dotted", linewidth=0.8)
    return figure
