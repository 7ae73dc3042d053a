"""What noisy gradient descent cannot learn: Theorems 7 and 8."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.ticker import MaxNLocator

from paritylab import alignment, plots
from paritylab.claims.lab import Lab
from paritylab.claims.registry import reproduces
from paritylab.claims.verdicts import Interval, Outcome, at_least, at_most, holds
from paritylab.theory.abbe2024 import accuracy_bound, recommended_bias
from paritylab.theory.junk_flow import Floats
from paritylab.theory.noisy_gd import noisy_gd

Rows = Sequence[Mapping[str, Any]]


def trained(lab: Lab, d: int, width: int, number: int, **options: Any) -> Floats:
    """Accuracies of noisy GD, kept on disk; w ~ init / sqrt(d), b ~ N(0, 1), v ~ N(0, 1 / n) unless told."""
    asked = {"d": d, "width": width, "number": number, **options}
    seed = int(lab.rng(7, number).integers(2**32))
    found = lab.kept_old("noisy-gd", asked, lambda: {
        "accuracies": noisy_gd(d, width, **options, seed=seed, threads=lab.threads)})
    return found["accuracies"]


# --- Theorem 7 ----------------------------------------------------------------------------------------------------


@reproduces("abbe2024.thm7-bound")
def alignment_bounds_accuracy(lab: Lab) -> Outcome:
    """Mean accuracies from Gaussian starts beside 1/2 + T sqrt(eps) / (2 tau), and those from signs."""
    width = lab.pick("width", quick=20, full=50)
    draws = lab.pick("draws", quick=50, full=200)
    dims = lab.pick("d", quick=[10, 13, 19], full=list(range(8, 22)))
    many = lab.pick("largest d at T = 100", quick=10, standard=16, full=21)
    signs = lab.pick("d of the signs", quick=[10], full=[10, 11, 12])
    data: list[dict[str, Any]] = []
    for number, (start, d, rate, tau) in enumerate(itertools.product(STARTS, dims, (0.1, 1.0), (0.1, 1.0))):
        if start != "gaussian" and d not in signs:
            continue
        times = [10, 100] if d <= many else [10]
        found = trained(lab, d, width, number=number, rate=rate, tau=tau, steps=times, draws=draws, **STARTS[start](d))
        for t, accuracies in zip(times, found, strict=True):
            eps = largest_alignment(d, width, t * (rate * tau) ** 2) if start == "gaussian" else None
            bound = None if eps is None else accuracy_bound([eps] * t, tau)
            data.append({"start": start, "d": d, "rate": rate, "tau": tau, "steps": t, "eps": eps, "bound": bound,
                         **measured(accuracies)})
    gaussian = [row for row in data if row["start"] == "gaussian"]
    best = {start: max((row for row in data if row["start"] == start and row["d"] >= 10),
                       key=lambda row: row["accuracy"]) for start in STARTS}
    learned, scaled = best["signs"], best["signs / sqrt(d)"]
    excess = [row["accuracy"] - 3 * row["error"] - row["bound"] for row in gaussian]
    checks = [
        at_most("mean accuracy - 3 standard errors - bound, largest over d, gamma, tau and T", max(excess), 0.0),
        at_least(f"mean accuracy from signs / sqrt(d), all else as for Gaussian weights, best at d = {scaled['d']},"
                 f" gamma = {scaled['rate']:g}, tau = {scaled['tau']:g}, T = {scaled['steps']}",
                 scaled["accuracy"], 0.6, interval(scaled)),
    ]
    tight = [row for row in gaussian if row["bound"] <= 0.51]
    if tight:
        away = max(abs(row["accuracy"] - 0.5) / row["error"] for row in tight)
        checks.append(at_most(f"|mean accuracy - 1/2| in standard errors, largest of the {len(tight)} with a bound"
                              " of at most 0.51", away, 3.0))
    numbers = {"configurations": len(gaussian),
               "of these with a bound below 1": sum(row["bound"] < 1 for row in gaussian),
               "smallest bound": min(row["bound"] for row in gaussian),
               "largest mean accuracy": max(row["accuracy"] for row in gaussian),
               "mean accuracy from the signs, bias and v = 0 of Theorem 4, best": learned["accuracy"]}
    note = ("eps is the largest exact alignment at nine lambda^2 from 0 to T gamma^2 tau^2; gradients are exact at"
            " every d; a Rademacher start is read as Rademacher weights, with biases and v as for Gaussian ones")
    return Outcome(checks, data, draw_bounds(data), numbers, note)


STARTS: dict[str, Callable[[int], dict[str, Any]]] = {
    "gaussian": lambda d: {"init": "gaussian"},
    "signs": lambda d: {"init": "rademacher", "scale": 1.0, "bias": recommended_bias(d), "output": 0},
    "signs / sqrt(d)": lambda d: {"init": "rademacher"},
}


def measured(accuracies: Floats) -> dict[str, float]:
    """The mean and its standard error."""
    return {"accuracy": float(accuracies.mean()), "error": float(accuracies.std(ddof=1) / math.sqrt(len(accuracies)))}


def interval(row: Mapping[str, Any]) -> Interval:
    return row["accuracy"] - 1.96 * row["error"], row["accuracy"] + 1.96 * row["error"]


def network_alignment(d: int, width: int, noise: float, degree: int | None = None) -> float:
    """GAL(theta + lambda H), lambda^2 = noise, of w ~ N(0, 1/d), b ~ N(0, 1), v ~ N(0, 1/n), exactly."""
    scales = math.sqrt(1 / d + noise), math.sqrt(1 / width + noise)
    bias = f"gaussian:{math.sqrt(1 + noise)!r}"
    return alignment("gaussian", d, degree, unit="network", width=width, bias=bias, scale=scales).value


def largest_alignment(d: int, width: int, most: float, degree: int | None = None) -> float:
    return max(network_alignment(d, width, noise, degree) for noise in np.linspace(0, most, 9))


@plots.styled
def draw_bounds(data: Rows) -> Any:
    """Mean accuracies against d, Gaussian and signs, and the bounds where they are below 1."""
    figure = plots.blank(3.0)
    axes = figure.add_subplot(xlabel="input dimension d", ylabel="mean accuracy $\\pm$ 3 s.e.", ylim=(0.45, 1.02))
    labels = {"gaussian": "Gaussian", "signs": "signs", "signs / sqrt(d)": "signs / $\\sqrt{d}$"}
    settings = sorted({(row["rate"], row["tau"], row["steps"]) for row in data})
    place = {setting: 0.06 * (i - len(settings) / 2) for i, setting in enumerate(settings)}
    shifted = [row["d"] + place[row["rate"], row["tau"], row["steps"]] for row in data]
    for (start, label), colour, marker in zip(labels.items(), plots.COLOURS, "osD", strict=False):
        chosen = [(x, row["accuracy"], 3 * row["error"]) for x, row in zip(shifted, data, strict=True)
                  if row["start"] == start]
        axes.errorbar(*zip(*chosen, strict=True), fmt=marker, markersize=2.5, fillstyle="none", elinewidth=0.6,
                      color=colour, label=label)
    bounds = [(x, row["bound"]) for x, row in zip(shifted, data, strict=True)
              if row["start"] == "gaussian" and row["bound"] < 1]
    axes.plot(*zip(*bounds, strict=True), "_", markersize=6, color=plots.COLOURS[3], label="bound, if below 1")
    axes.axhline(0.5, color=plots.GREY, linewidth=0.6)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    plots.legend_above(figure, axes)
    return figure


# --- Theorem 8 ----------------------------------------------------------------------------------------------------

WEIGHTS = {"gaussian": "Gaussian", "rademacher": "signs"}


@reproduces("abbe2024.thm8")
def gaussian_starts_fail(lab: Lab) -> Outcome:
    """Accuracies on parities of d - a inputs after T steps, from Gaussian weights and from signs."""
    dims = lab.pick("d", quick=[10, 12], full=[10, 12, 14, 16])
    seeds = lab.pick("seeds", quick=5, full=20)
    width = lab.pick("width", quick=200, full=200)
    steps = lab.pick("steps", quick=200, full=200)
    tau = 0.01
    data: list[dict[str, Any]] = []
    cases = itertools.product(dims, ("0", "2", "d/2"), (0.1, 1.0), WEIGHTS)
    for number, (d, left_out, rate, init) in enumerate(cases):
        degree = d - (d // 2 if left_out == "d/2" else int(left_out))
        found = trained(lab, d, width, 2000 + number, init=init, degree=degree, rate=rate, tau=tau, steps=steps,
                        draws=seeds)
        data.append({"d": d, "a": left_out, "degree": degree, "rate": rate, "start": init, **measured(found),
                     "smallest": float(found.min()), "largest": float(found.max())})
    gaussian = [row for row in data if row["start"] == "gaussian"]
    high = [row for row in gaussian if row["d"] >= 12 and row["a"] != "d/2"]
    control = max((row for row in data if row["start"] == "rademacher" and row["a"] == "0"),
                  key=lambda row: row["accuracy"])
    checks = []
    for rate in (0.1, 1.0):
        for name, extreme in (("smallest", min), ("largest", max)):
            row = extreme((row for row in high if row["rate"] == rate), key=lambda row: row["accuracy"])
            check = at_least if name == "smallest" else at_most
            checks.append(check(f"{name} mean Gaussian accuracy, d >= 12, a = 0 and 2, gamma = {rate:g}",
                                row["accuracy"], 0.47 if name == "smallest" else 0.53,
                                interval(row)))
    checks.append(at_least(f"mean accuracy from signs, a = 0, best at d = {control['d']}, gamma = {control['rate']:g}",
                           control["accuracy"], 0.7, interval(control)))
    rises = {(left_out, rate): largest_rise([row for row in gaussian if (row["a"], row["rate"]) == (left_out, rate)])
             for left_out, rate in itertools.product(("0", "2", "d/2"), (0.1, 1.0))}
    checks += [holds(f"excess of Gaussian starts does not rise with d, a = {left_out}, gamma = {rate:g}",
                     None if math.isnan(rise) else rise <= 2, "rises by <= 2 standard errors", rise)
               for (left_out, rate), rise in rises.items()]
    bounds = {d: accuracy_bound([largest_alignment(d, width, steps * tau**2)] * steps, tau) for d in dims}
    numbers = {f"Theorem 7's bound, d = {d}, a = 0, gamma = 1": bound for d, bound in bounds.items()}
    note = "b ~ N(0, 1); signs are +-1/sqrt(d), all else as for Gaussian weights"
    return Outcome(checks, data, draw_accuracies(data), numbers, note)


def largest_rise(rows: Rows) -> float:
    """From one d to the next, in standard errors of the difference.

    >>> largest_rise([{"accuracy": 0.5, "error": 0.03}, {"accuracy": 0.6, "error": 0.04}])
    2.0
    """
    steps = [(b["accuracy"] - a["accuracy"]) / max(math.hypot(a["error"], b["error"]), 1e-12)
             for a, b in itertools.pairwise(rows)]
    return round(max(steps, default=math.nan), 12)


@plots.styled
def draw_accuracies(data: Rows) -> Any:
    """A panel for each rate: mean accuracies with two standard errors against d."""
    figure = plots.blank(2.7)
    panels = figure.subplots(1, 2, sharey=True)
    for axes, rate in zip(panels, (0.1, 1.0), strict=True):
        axes.set(xlabel="input dimension d", title=f"$\\gamma$ = {rate:g}")
        for place, (init, left_out) in enumerate(itertools.product(WEIGHTS, ("0", "2", "d/2"))):
            rows = [row for row in data if (row["start"], row["a"], row["rate"]) == (init, left_out, rate)]
            axes.errorbar([row["d"] for row in rows], [row["accuracy"] for row in rows],
                          [2 * row["error"] for row in rows], marker="os"[place // 3], markersize=3, elinewidth=0.8,
                          color=plots.COLOURS[place // 3], linestyle=plots.LINES[place % 3], linewidth=1,
                          label=f"{WEIGHTS[init]}, a = {left_out}")
        axes.axhspan(0.47, 0.53, color=plots.GREY, alpha=0.15, linewidth=0)
        axes.set_xticks(sorted({row["d"] for row in data}))
    panels[0].set_ylabel("accuracy")
    plots.legend_above(figure, panels[0])
    return figure
