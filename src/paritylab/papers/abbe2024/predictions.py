"""Open questions: where learnability breaks as sigma grows, and whether the initial alignment foretells it."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

from paritylab import MLP, SGD, Learner, Parity, Protocol, Setup, plots
from paritylab.claims.lab import Lab
from paritylab.claims.registry import reproduces
from paritylab.claims.verdicts import Check, Outcome, at_least, holds, significant
from paritylab.engines.jax_engine import accurate_products
from paritylab.papers.abbe2024.atlas import neuron_alignment
from paritylab.papers.abbe2024.online import DISCRETE, FIFTH
from paritylab.papers.abbe2024.training import SHALLOW, final, law, named, ranks_agree, trained
from paritylab.setups.inits import init
from paritylab.setups.losses import loss

LEVEL = 0.75
POWERS = {"sigma": 0.0, "sigma sqrt(d)": 0.5, "sigma d": 1.0}
Accuracy = Mapping[tuple[int, float], np.ndarray]


@reproduces("abbe2024.open-threshold")
def threshold(lab: Lab) -> Outcome:
    """The perturbation at which a two-layer network's accuracy falls to 0.75, against the dimension."""
    dimensions = lab.pick("d", quick=[10, 14, 20], full=[10, 14, 20, 28, 40])
    sigmas = [round(float(s), 4) for s in np.geomspace(0.01, 2, lab.pick("sigmas", quick=8, full=15))]
    steps = lab.pick("steps", quick=4000, full=50_000)
    runs = lab.pick("runs", quick=3, full=5)
    accuracy = perturbed(lab, dimensions, sigmas, steps, runs)
    critical = {d: crossing(sigmas, [float(accuracy[d, s].mean()) for s in sigmas]) for d in dimensions}
    slope = log_slope(critical)
    rng = lab.rng(0)
    slopes = [log_slope({d: crossing(sigmas, [float(rng.choice(accuracy[d, s], runs).mean()) for s in sigmas])
                         for d in dimensions}) for _ in range(2000)]
    known = np.array([value for value in slopes if math.isfinite(value)])
    low, high = map(float, np.quantile(known, [0.025, 0.975])) if len(known) else (-math.inf, math.inf)
    above = min(sigma * 72 * d for d, sigma in critical.items())
    checks = [
        Check(f"slope of log sigma* on log d, d in {[d for d in critical if 0 < critical[d] < math.inf]}", slope,
              "< 0 at 95 %", high < 0, (low, high), certain=low > 0),
        holds("sigma* > 1/(72 d) at every d: smallest ratio", above > 1, "> 1", above),
    ]
    numbers = {f"sigma* at d = {d}": value for d, value in critical.items()}
    exact = {(d, s): neuron_alignment(law(s), d) / math.log(10) for d, s in accuracy}
    numbers |= {f"log10 alignment at sigma*, d = {d}": neuron_alignment(law(sigma), d) / math.log(10)
                for d, sigma in critical.items() if 0 < sigma < math.inf}
    variables = {name: {(d, s): math.log10(s * d**power) for d, s in accuracy} for name, power in POWERS.items()}
    variables["exact alignment"] = exact
    numbers |= {f"mean spread of accuracy at equal {name}": spread(accuracy, x) for name, x in variables.items()}
    data = [{"d": d, "sigma": s, "run": run, "accuracy": float(value)}
            for (d, s), values in accuracy.items() for run, value in enumerate(values)]
    beyond = [d for d, sigma in critical.items() if sigma == math.inf]
    note = f"at d in {beyond} accuracy is above {LEVEL} even at sigma = {sigmas[-1]:g}" if beyond else ""
    return Outcome(checks, data, threshold_plot(accuracy, variables), numbers, note)


def perturbed(lab: Lab, dimensions: Sequence[int], sigmas: Sequence[float], steps: int, runs: int) -> Accuracy:
    """Final accuracies of a two-layer network by dimension and perturbation."""
    cases = [(d, s) for d in dimensions for s in sigmas]
    made = lab.curves_each([trained(law(s), d, SHALLOW) for d, s in cases], steps, steps // 10, runs)
    return {case: final(curves) for case, curves in zip(cases, made, strict=True)}


def crossing(sigmas: Sequence[float], accuracy: Sequence[float], level: float = LEVEL) -> float:
    """The sigma at which a line through the points (log sigma, accuracy) last falls below the level.

    Infinite if it is above the level at the largest sigma, 0 if it never is.

    >>> round(crossing([0.1, 1.0], [1.0, 0.5]), 4)
    0.3162
    """
    if accuracy[-1] >= level:
        return math.inf
    for i in range(len(sigmas) - 1, 0, -1):
        if accuracy[i] < level <= accuracy[i - 1]:
            share = (accuracy[i - 1] - level) / (accuracy[i - 1] - accuracy[i])
            return float(sigmas[i - 1] * (sigmas[i] / sigmas[i - 1]) ** share)
    return 0.0


def log_slope(critical: Mapping[int, float]) -> float:
    """The slope of log sigma* on log d over the dimensions where sigma* lies within the grid."""
    known = {d: sigma for d, sigma in critical.items() if 0 < sigma < math.inf}
    return float(np.polyfit(np.log(list(known)), np.log(list(known.values())), 1)[0]) if len(known) > 1 else math.nan


def spread(accuracy: Accuracy, x: Mapping[tuple[int, float], float]) -> float:
    """How far apart the curves of accuracy of several d lie when drawn against a variable x.

    That is the standard deviation over d, averaged over the part of the axis where all curves are known and not all
    are within 0.02 of each other at chance or at the top; between points by linear interpolation.
    """
    dimensions = list(dict.fromkeys(d for d, _ in accuracy))
    curves = {d: np.array(sorted((x[case], accuracy[case].mean()) for case in accuracy if case[0] == d)).T
              for d in dimensions}
    low, high = max(curve[0, 0] for curve in curves.values()), min(curve[0, -1] for curve in curves.values())
    grid = np.linspace(low, high, 400)
    drawn = np.array([np.interp(grid, *curve) for curve in curves.values()])
    moving = (drawn.max(axis=0) > 0.52) & (drawn.min(axis=0) < 0.98)
    return float(np.std(drawn, axis=0)[moving].mean()) if moving.any() else 0.0


@plots.styled
def threshold_plot(accuracy: Accuracy, variables: Mapping[str, Mapping[tuple[int, float], float]]) -> Any:
    """Final accuracy against sigma, sigma sqrt(d), sigma d and the alignment: which of them collapses the curves?"""
    names = {"sigma": r"$\sigma$", "sigma sqrt(d)": r"$\sigma\sqrt{d}$", "sigma d": r"$\sigma d$",
             "exact alignment": "alignment"}
    figure = plots.blank(3.8)
    panels = figure.subplots(2, 2, sharey=True).ravel()
    for axes, (name, x) in zip(panels, variables.items(), strict=True):
        dimensions = dict.fromkeys(d for d, _ in accuracy)
        for d, colour, line in zip(dimensions, cycle(plots.COLOURS), cycle(plots.LINES), strict=False):
            cases = sorted((case for case in accuracy if case[0] == d), key=lambda case: x[case])
            axes.plot([10 ** x[case] for case in cases], [accuracy[case].mean() for case in cases], color=colour,
                      linestyle=line, marker=".", markersize=3, label=f"d = {d}" if name == "sigma" else None)
        axes.axhline(LEVEL, color=plots.GREY, linewidth=0.6, linestyle="dotted")
        axes.set(xscale="log", xlabel=names[name], ylim=(0.45, 1.03))
    for axes in panels[::2]:
        axes.set_ylabel("accuracy")
    plots.legend_above(figure, panels[0])
    return figure


LAWS = ("rademacher", law(0.1), law(0.5), law(1), FIFTH, DISCRETE, "gaussian")
NETWORKS = {
    "2 layers, 64, tanh": MLP(64, "tanh"),
    "2 layers, 256, ReLU": MLP(256),
    "2 layers, 1024, clipped": MLP(1024, "clipped-relu:5"),
    "3 layers, 256, ReLU": MLP((256, 256)),
    "4 layers, 64, ReLU": MLP((64, 64, 64)),
}


@reproduces("abbe2024.open-gal-predicts")
def alignment_predicts(lab: Lab) -> Outcome:
    """The hinge alignment at initialisation beside the accuracy after training, over many networks and laws."""
    dimensions = lab.pick("d", quick=[9], full=[11, 13])
    names = lab.pick("networks", quick=["2 layers, 64, tanh", "2 layers, 256, ReLU"], full=list(NETWORKS))
    steps = lab.pick("steps", quick=3000, full=20_000)
    runs = lab.pick("runs", quick=3, full=3)
    draws = lab.pick("draws", quick=20, full=40)
    cases = [(d, name, each) for d in dimensions for name in names for each in LAWS]
    made = lab.curves_each([setup(d, name, each) for d, name, each in cases], steps, steps // 10, runs)
    accuracy = {case: float(final(curves).mean()) for case, curves in zip(cases, made, strict=True)}
    parts: dict[tuple[int, str, str], np.ndarray] = {}
    for case in cases:
        d, name, each = case
        make = functools.partial(hinge_alignment, NETWORKS[name], each, d, draws, lab.seed)
        parts[case] = lab.kept_old("hinge-alignment", {"d": d, "network": name, "law": each, "draws": draws}, make)["parts"]
    whole = np.array([parts[case].sum(axis=1).mean() for case in cases])
    first = np.array([parts[case][:, 0].mean() for case in cases])
    reached = np.array([accuracy[case] for case in cases])
    correlation = ranks_agree(whole, reached)
    shuffled = stats.permutation_test((whole,), lambda x: ranks_agree(x, reached), permutation_type="pairings",
                                      alternative="greater", n_resamples=9999, rng=lab.rng(1))
    checks = [at_least("Spearman correlation of alignment and final accuracy", correlation, 0.6,
                       rank_interval(whole, reached, lab.rng(2))),
              significant("permutation p", float(shuffled.pvalue), 0.01)]
    numbers = {"configurations": float(len(cases)),
               "Spearman correlation, first layer alone": ranks_agree(first, reached)}
    data = [{"d": d, "network": name, "init": each, "alignment": float(value), "first_layer": float(part),
             "accuracy": accuracy[d, name, each]}
            for (d, name, each), value, part in zip(cases, whole, first, strict=True)]
    return Outcome(checks, data, prediction_plot(data), numbers)


def setup(d: int, name: str, each: str) -> Setup:
    learner = Learner(NETWORKS[name], each, "hinge", SGD(0.01), batch=64)
    return Setup(Parity(n=d, k=d), learner, Protocol(eval_size=10_000))


def hinge_alignment(network: MLP, each: str, d: int, draws: int, seed: int) -> dict[str, np.ndarray]:
    """|E grad L(f, chi) - E grad L(f, r)|^2 over the whole cube, layer by layer, for draws of the start weights."""
    cube = 1 - 2 * ((np.arange(2**d)[:, None] >> np.arange(d)) & 1)
    x, chi, hinge = jnp.asarray(cube, jnp.float32), jnp.asarray(cube.prod(axis=1), jnp.float32), loss("hinge")

    def excess(params: Any) -> Any:
        f = network.apply(params, x)
        return jnp.mean(hinge(f, chi) - (hinge(f, jnp.ones_like(f)) + hinge(f, -jnp.ones_like(f))) / 2)

    @jax.jit
    def squares(key: Any) -> Any:
        layers = jax.grad(excess)(network.init(key, d, init(each)))
        return jnp.stack([sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(layer)) for layer in layers])

    with accurate_products():
        parts = [np.asarray(squares(key)) for key in jax.random.split(jax.random.key(seed), draws)]
    return {"parts": np.array(parts)}


def rank_interval(x: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> tuple[float, float]:
    """The bootstrap interval of a rank correlation."""
    chosen = (rng.integers(0, len(x), len(x)) for _ in range(1000))
    values = [ranks_agree(x[rows], y[rows]) for rows in chosen]
    low, high = np.nanquantile(values, [0.025, 0.975])
    return float(low), float(high)


@plots.styled
def prediction_plot(data: Sequence[Mapping[str, Any]]) -> Any:
    """Final accuracy against the initial alignment; a colour for each law, a mark for each network."""
    figure = plots.blank(3.2)
    axes = figure.add_subplot(xscale="log", xlabel="hinge alignment at initialisation", ylabel="final test accuracy")
    marks = dict(zip(dict.fromkeys(row["network"] for row in data), "os^vD", strict=False))
    for each, colour in zip(LAWS, plots.COLOURS, strict=False):
        for row in [row for row in data if row["init"] == each]:
            axes.plot(row["alignment"], row["accuracy"], marks[row["network"]], markersize=3.5, fillstyle="none",
                      color=colour)
        axes.plot([], [], "o", color=colour, label=named(each))
    for name, mark in marks.items():
        axes.plot([], [], mark, color=plots.GREY, fillstyle="none", label=name)
    plots.legend_above(figure, axes)
    return figure
