"""What noisy gradient descent cannot learn: Theorems 7 and 8."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.ticker import MaxNLocator

from abbe2024.theory.high_degree import accuracy_bound, recommended_bias
from abbe2024.theory.noisy_gd import noisy_gd
from paritylab import alignment, plots
from paritylab.aliases import Floats, Interval
from paritylab.claims import Check, Findings, Lab, Trial, at_least, at_most, claim, computation, holds, rng, size

Rows = Sequence[Mapping[str, Any]]


Kept = list[dict[str, np.ndarray]]
RATES = (0.1, 1.0)


@computation
def noisy_accuracies(seed: int, d: int, width: int, number: int, **options: Any) -> dict[str, Any]:
    """Accuracies of noisy GD; w ~ init / sqrt(d), b ~ N(0, 1), v ~ N(0, 1 / n) unless told."""
    drawn = int(rng(seed, 7, number).integers(2**32))
    return {"accuracies": noisy_gd(d, width, **options, seed=drawn)}


# --- Theorem 7 ----------------------------------------------------------------------------------------------------


STARTS: dict[str, Callable[[int], dict[str, Any]]] = {
    "gaussian": lambda d: {"init": "gaussian"},
    "signs": lambda d: {"init": "rademacher", "scale": 1.0, "bias": recommended_bias(d), "output": 0},
    "signs / sqrt(d)": lambda d: {"init": "rademacher"},
}


@claim(
    "abbe2024.thm7-bound",
    where="Theorem 7, Equation (52)",
    kind="theory",
    title="Noisy gradient descent cannot beat 1/2 + T sqrt(eps)/(2 tau)",
    statement="""If the alignment stays below eps along all Gaussian perturbations reached by the noise, accuracy after
    T noisy population-GD steps on the correlation loss is at most 1/2 + T sqrt(eps)/(2 tau).""",
    published=""""P[sign(NN(x; theta^T)) = f(x)] <= 1/2 + (1/(2 tau)) sum_t sqrt(GAL_f(psi^t))" (Equation 52; the
    theorem itself prints T gamma^2 eps/(2 tau) for the last term)""",
)
class Thm7Bound(Trial):
    """Mean accuracies from Gaussian starts beside 1/2 + T sqrt(eps) / (2 tau), and those from signs."""

    width = size(quick=20, full=50)
    draws = size(quick=50, full=200)
    d = size(quick=[10, 13, 19], full=list(range(8, 22)))
    many = size(quick=10, standard=16, full=21, label="largest d at T = 100")
    signs = size(quick=[10], full=[10, 11, 12], label="d of the signs")

    below = at_most("mean accuracy - 3 standard errors - bound, largest over d, gamma, tau and T", 0.0)
    learned = at_least("mean accuracy from signs / sqrt(d), all else as for Gaussian weights, best at d = {d},"
                       " gamma = {rate:g}, tau = {tau:g}, T = {steps}", 0.6)
    chance = at_most("|mean accuracy - 1/2| in standard errors, largest of the {tight} with a bound of at most 0.51",
                     3.0)

    def cases(self) -> list[dict[str, Any]]:
        """Start, d, rate, tau and numbers of steps of each configuration, and its number."""
        product = itertools.product(STARTS, self.d, RATES, (0.1, 1.0))
        return [{"number": number, "start": start, "d": d, "rate": rate, "tau": tau,
                 "steps": [10, 100] if d <= self.many else [10]}
                for number, (start, d, rate, tau) in enumerate(product) if start == "gaussian" or d in self.signs]

    def noise(self, d: int) -> list[float]:
        """The largest lambda^2 = T gamma^2 tau^2 of each Gaussian configuration."""
        return sorted({t * (case["rate"] * case["tau"]) ** 2 for case in self.cases() if case["d"] == d
                       for t in case["steps"]})

    def work(self, lab: Lab) -> tuple[Kept, Kept]:
        asked = [{"width": self.width, "draws": self.draws, **STARTS[case["start"]](case["d"]),
                  **{name: case[name] for name in ("number", "d", "rate", "tau", "steps")}} for case in self.cases()]
        bounds = [{"d": d, "width": self.width, "noise": self.noise(d)} for d in self.d]
        return lab.compute_each(noisy_accuracies, asked), lab.compute_each(largest_alignments, bounds)

    def rows(self, got: tuple[Kept, Kept]) -> list[dict[str, Any]]:
        eps = {(d, noise): value for d, arrays in zip(self.d, got[1], strict=True)
               for noise, value in zip(self.noise(d), arrays["eps"].tolist(), strict=True)}
        rows = []
        for case, arrays in zip(self.cases(), got[0], strict=True):
            start, d, rate, tau = (case[name] for name in ("start", "d", "rate", "tau"))
            for t, accuracies in zip(case["steps"], arrays["accuracies"], strict=True):
                most = eps[d, t * (rate * tau) ** 2] if start == "gaussian" else None
                bound = None if most is None else accuracy_bound([most] * t, tau)
                rows.append({"start": start, "d": d, "rate": rate, "tau": tau, "steps": t, "eps": most, "bound": bound,
                             **measured(accuracies)})
        return rows

    def judge(self, got: tuple[Kept, Kept]) -> Findings:
        rows = self.rows(got)
        gaussian = [row for row in rows if row["start"] == "gaussian"]
        best = {start: max((row for row in rows if row["start"] == start and row["d"] >= 10),
                           key=lambda row: row["accuracy"]) for start in STARTS}
        scaled = best["signs / sqrt(d)"]
        excess = [row["accuracy"] - 3 * row["error"] - row["bound"] for row in gaussian]
        checks = [self.below(max(excess)),
                  self.learned(scaled["accuracy"], interval(scaled),
                               **{name: scaled[name] for name in ("d", "rate", "tau", "steps")})]
        tight = [row for row in gaussian if row["bound"] <= 0.51]
        if tight:
            away = max(abs(row["accuracy"] - 0.5) / row["error"] for row in tight)
            checks.append(self.chance(away, tight=len(tight)))
        numbers = {"configurations": len(gaussian),
                   "of these with a bound below 1": sum(row["bound"] < 1 for row in gaussian),
                   "smallest bound": min(row["bound"] for row in gaussian),
                   "largest mean accuracy": max(row["accuracy"] for row in gaussian),
                   "mean accuracy from the signs, bias and v = 0 of Theorem 4, best": best["signs"]["accuracy"]}
        note = ("eps is the largest exact alignment at nine lambda^2 from 0 to T gamma^2 tau^2; gradients are exact at"
                " every d; a Rademacher start is read as Rademacher weights, with biases and v as for Gaussian ones")
        return Findings(checks, rows, numbers, note)

    def draw(self, got: tuple[Kept, Kept]) -> plots.Figure:
        return draw_bounds(self.rows(got))


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


@computation
def largest_alignments(seed: int, d: int, width: int, noise: list[float]) -> dict[str, Any]:
    return {"eps": [largest_alignment(d, width, most) for most in noise]}


@plots.styled
def draw_bounds(data: Rows) -> plots.Figure:
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
LEFT_OUT = ("0", "2", "d/2")
TAU = 0.01


@claim(
    "abbe2024.thm8",
    where="Theorem 8",
    kind="theory",
    title="Gaussian starts fail on every parity of degree at least d/2",
    statement="""Noisy GD with correlation loss from w ~ N(0,1/d), b ~ N(0,sigma^2), v ~ N(0,1/n) stays at accuracy 1/2
    + exp(-Omega(d)) for sub-exponential n, T, gamma, 1/tau.""",
    published=""""Pr[sign(NN^T(x; theta)) = f(x)] <= 1/2 + exp(-Omega(d))" (Equation 8)""",
)
class Thm8(Trial):
    """Accuracies on parities of d - a inputs after T steps, from Gaussian weights and from signs."""

    d = size(quick=[10, 12], full=[10, 12, 14, 16])
    seeds = size(quick=5, full=20)
    width = size(200)
    steps = size(200)

    least = at_least("smallest mean Gaussian accuracy, d >= 12, a = 0 and 2, gamma = {rate:g}", 0.47)
    most = at_most("largest mean Gaussian accuracy, d >= 12, a = 0 and 2, gamma = {rate:g}", 0.53)
    control = at_least("mean accuracy from signs, a = 0, best at d = {d}, gamma = {rate:g}", 0.7)
    no_rise = holds("excess of Gaussian starts does not rise with d, a = {a}, gamma = {rate:g}",
                    "rises by <= 2 standard errors")

    def cases(self) -> list[dict[str, Any]]:
        return [{"d": d, "a": left_out, "degree": d - (d // 2 if left_out == "d/2" else int(left_out)), "rate": rate,
                 "start": init} for d, left_out, rate, init in itertools.product(self.d, LEFT_OUT, RATES, WEIGHTS)]

    def work(self, lab: Lab) -> Kept:
        return lab.compute_each(noisy_accuracies, [
            {"d": case["d"], "width": self.width, "number": 2000 + number, "init": case["start"],
             "degree": case["degree"], "rate": case["rate"], "tau": TAU, "steps": self.steps, "draws": self.seeds}
            for number, case in enumerate(self.cases())])

    def rows(self, got: Kept) -> list[dict[str, Any]]:
        found = [arrays["accuracies"] for arrays in got]
        return [{**case, **measured(accuracies), "smallest": float(accuracies.min()),
                 "largest": float(accuracies.max())} for case, accuracies in zip(self.cases(), found, strict=True)]

    def judge(self, got: Kept) -> Findings:
        rows = self.rows(got)
        gaussian = [row for row in rows if row["start"] == "gaussian"]
        high = [row for row in gaussian if row["d"] >= 12 and row["a"] != "d/2"]
        control = max((row for row in rows if row["start"] == "rademacher" and row["a"] == "0"),
                      key=lambda row: row["accuracy"])
        checks: list[Check] = []
        for rate, (rule, extreme) in itertools.product(RATES, ((self.least, min), (self.most, max))):
            row = extreme((row for row in high if row["rate"] == rate), key=lambda row: row["accuracy"])
            checks.append(rule(row["accuracy"], interval(row), rate=rate))
        checks.append(self.control(control["accuracy"], interval(control), d=control["d"], rate=control["rate"]))
        for left_out, rate in itertools.product(LEFT_OUT, RATES):
            rise = largest_rise([row for row in gaussian if (row["a"], row["rate"]) == (left_out, rate)])
            checks.append(self.no_rise(None if math.isnan(rise) else rise <= 2, rise, a=left_out, rate=rate))
        bounds = {d: accuracy_bound([largest_alignment(d, self.width, self.steps * TAU**2)] * self.steps, TAU)
                  for d in self.d}
        numbers = {f"Theorem 7's bound, d = {d}, a = 0, gamma = 1": bound for d, bound in bounds.items()}
        note = "b ~ N(0, 1); signs are +-1/sqrt(d), all else as for Gaussian weights"
        return Findings(checks, rows, numbers, note)

    def draw(self, got: Kept) -> plots.Figure:
        return draw_accuracies(self.rows(got))


def largest_rise(rows: Rows) -> float:
    """From one d to the next, in standard errors of the difference.

    >>> largest_rise([{"accuracy": 0.5, "error": 0.03}, {"accuracy": 0.6, "error": 0.04}])
    2.0
    """
    steps = [(b["accuracy"] - a["accuracy"]) / max(math.hypot(a["error"], b["error"]), 1e-12)
             for a, b in itertools.pairwise(rows)]
    return round(max(steps, default=math.nan), 12)


@plots.styled
def draw_accuracies(data: Rows) -> plots.Figure:
    """A panel for each rate: mean accuracies with two standard errors against d."""
    figure = plots.blank(2.7)
    panels = figure.subplots(1, 2, sharey=True)
    for axes, rate in zip(panels, RATES, strict=True):
        axes.set(xlabel="input dimension d", title=f"$\\gamma$ = {rate:g}")
        for place, (init, left_out) in enumerate(itertools.product(WEIGHTS, LEFT_OUT)):
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
