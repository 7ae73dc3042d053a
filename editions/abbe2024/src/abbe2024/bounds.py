"""What noisy gradient descent cannot learn: Theorems 7 and 8."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.ticker import MaxNLocator

from abbe2024.theory.high_degree import accuracy_bound, recommended_bias
from abbe2024.theory.noisy_gd import accuracies, draw_networks, gradient, noisy_gd
from paritylab import alignment, plots
from paritylab.aliases import Floats, Interval
from paritylab.claims import Findings, Lab, Trial, at_least, at_most, claim, computation, rng, size
from paritylab.claims.intervals import bootstrap, mean

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
SEPARATED = ("rademacher", "gaussian")


@computation
def first_step(seed: int, d: int, init: str, draws: int) -> dict[str, Any]:
    """Accuracies after one noisy step on the output layer from Theorem 4's start, whose weights may be Gaussian.

    Width d^4, recommended biases, output weights 0, noise 0.5/d^2; only the output layer is trained.
    """
    found = []
    for draw in range(draws):
        generator = rng(seed, 74, d, draw)
        start = draw_networks(d, d**4, 1, init, recommended_bias(d), 0, 1.0, generator)
        noise = 0.5 / d**2 * generator.standard_normal(start.v.shape)
        found.append(float(accuracies(start._replace(v=-(gradient(start).v + noise)))[0]))
    return {"accuracies": found}


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
    d = size(quick=[10, 13, 19], full=[8, 9, 10, 12, 14, 17, 21])
    many = size(quick=10, full=14, label="largest d at T = 100")
    signs = size([10], label="d of the signs")
    separated = size(quick=[8], full=[8, 10, 12], label="d of the separation")
    starts = size(quick=5, full=20, label="starts of the separation")
    below = at_most("mean accuracy - bound, largest upper end over d, gamma, tau and T", 0.0, part="the bound")
    right = at_least("mean accuracy after one step of Theorem 4 from signs, d = {d}", 0.99, part="the separation")
    wrong = at_most("the same from Gaussian weights, d = {d}", 0.6, part="the separation", only=("standard", "full"))

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

    def work(self, lab: Lab) -> Any:
        asked = [{"width": self.width, "draws": self.draws, **STARTS[case["start"]](case["d"]),
                  **{name: case[name] for name in ("number", "d", "rate", "tau", "steps")}} for case in self.cases()]
        bounds = [{"d": d, "width": self.width, "noise": self.noise(d)} for d in self.d]
        steps = [{"d": d, "init": each, "draws": self.starts} for d, each in self.pairs]
        return (lab.compute_each(noisy_accuracies, asked), lab.compute_each(largest_alignments, bounds),
                lab.compute_each(first_step, steps))

    def rows(self, got: tuple[Kept, Kept]) -> list[dict[str, Any]]:
        eps = {(d, noise): value for d, arrays in zip(self.d, got[1], strict=True)
               for noise, value in zip(self.noise(d), arrays["eps"].tolist(), strict=True)}
        rows = []
        for case, arrays in zip(self.cases(), got[0], strict=True):
            start, d, rate, tau = (case[name] for name in ("start", "d", "rate", "tau"))
            for t, found in zip(case["steps"], arrays["accuracies"], strict=True):
                most = eps[d, t * (rate * tau) ** 2] if start == "gaussian" else None
                bound = None if most is None else accuracy_bound([most] * t, tau)
                rows.append({"start": start, "d": d, "rate": rate, "tau": tau, "steps": t, "eps": most, "bound": bound,
                             **measured(found)})
        return rows

    def judge(self, got: Any) -> Findings:
        every = self.rows(got[:2])
        rows = [row for row in every if row["start"] == "gaussian"]
        worst = max(rows, key=lambda row: interval(row)[1] - row["bound"])
        ends = tuple(end - worst["bound"] for end in interval(worst))
        checks = [self.below(worst["accuracy"] - worst["bound"], (ends[0], ends[1]))]
        separated = {pair: arrays["accuracies"] for pair, arrays in zip(self.pairs, got[2], strict=True)}
        for (d, init), found in separated.items():
            if init == "rademacher":
                checks.append(self.right(*mean(found), d=d))
            elif d == max(self.separated) and self.size != "quick":
                checks.append(self.wrong(*mean(found), d=d))
        numbers = {"configurations": len(rows),
                   "of these with a bound below 1": sum(row["bound"] < 1 for row in rows),
                   "smallest bound": min(row["bound"] for row in rows)}
        numbers |= {f"mean accuracy after one step, {init}, d = {d}": float(np.mean(found))
                    for (d, init), found in separated.items()}
        return Findings(checks, every, numbers,
                        "eps is the largest exact alignment at nine lambda^2 from 0 to T gamma^2 tau^2")

    def draw(self, got: Any) -> plots.Figure:
        return draw_bounds(self.rows(got[:2]))

    @property
    def pairs(self) -> list[tuple[int, str]]:
        return list(itertools.product(self.separated, SEPARATED))


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

    width = size(200)
    steps = size(200)
    d = size(quick=[8, 10], full=[8, 10, 12, 14])
    seeds = size(quick=10, full=60)
    falls = at_most("slope of ln(accuracy - 1/2) on d, a = {a}, gamma = 1", 0.0, part="rate 1: the excess falls with d")
    chance = at_most("mean accuracy, a = {a}, gamma = 0.1, d = {d}", 0.53, part="rate 0.1: at chance",
                     only=("standard", "full"))

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
        found = {(case["d"], case["a"], case["rate"], case["start"]): arrays["accuracies"]
                 for case, arrays in zip(self.cases(), got, strict=True)}
        checks, last = [], self.d[-1]
        for place, a in enumerate(LEFT_OUT):
            every = [found[d, a, RATES[1], "gaussian"] for d in self.d]
            checks.append(self.falls(self.slope(*every), bootstrap(self.slope, *every, rng=self.rng(8, place)), a=a))
            if self.size != "quick":
                checks.append(self.chance(*mean(found[last, a, RATES[0], "gaussian"]), a=a, d=last))
        numbers = {f"Theorem 7's bound, d = {d}, a = 0, gamma = 1": accuracy_bound(
            [largest_alignment(d, self.width, self.steps * TAU**2)] * self.steps, TAU) for d in self.d}
        numbers |= {f"mean accuracy, {start}, a = {a}, gamma = {rate:g}, d = {d}": float(np.mean(each))
                    for (d, a, rate, start), each in found.items()}
        return Findings(checks, self.rows(got), numbers,
                        "b ~ N(0, 1); the bound that the theorem's proof gives is above 1 at these sizes")

    def draw(self, got: Kept) -> plots.Figure:
        return draw_accuracies(self.rows(got))

    def slope(self, *accuracies: Floats) -> float:
        """Of the logarithm of the mean excess on d; undefined where there is none."""
        excess = [float(np.mean(each)) - 0.5 for each in accuracies]
        return float(np.polyfit(self.d, np.log(excess), 1)[0]) if min(excess) > 0 else math.nan


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
