"""Other ways to learn a parity: fixed features (Theorem 6), linear algebra and exhaustive search (C.6)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from paritylab import MLP, SGD, Learner, Parity, Setup, plots
from paritylab.baselines import gf2
from paritylab.baselines.search import exhaustive
from paritylab.claims.lab import Lab
from paritylab.claims.registry import reproduces
from paritylab.claims.verdicts import Check, Outcome, at_least, at_most
from paritylab.papers.barak2022.common import FIXED_8192, Floats, converging
from paritylab.papers.barak2022.exact import torch_law
from paritylab.papers.barak2022.fourier import share, signs
from paritylab.plots import Series

# --- Theorem 6 --------------------------------------------------------------------------------------------------

EPSILON = 0.5
RIDGES = (1e-6, 1e-4, 1e-2, 1.0)
"""Penalties, as multiples of the features' mean square."""


@reproduces("barak2022.thm6-kernels")
def fixed_features_fail(lab: Lab) -> Outcome:
    """A: the best hinge loss of random features in a ball. B: ridge regression on fixed features beside the network."""
    n = lab.pick("n", quick=30, full=30)
    supports = lab.pick("supports", quick=50, full=50)
    samples = lab.pick("samples", quick=20_000, full=20_000)
    runs = lab.pick("seeds", quick=10, full=10)
    checks: list[Check] = []
    data, losses, unknown = [], {}, 0.0
    for dimension in (100, 1000):
        radius = math.sqrt(0.25 * math.comb(n, 3) * EPSILON**2 / dimension)
        rng = lab.rng(6, dimension)
        x = signs(rng, samples, n)
        features = random_features(rng, x, dimension)
        features /= np.linalg.norm(features, axis=1, keepdims=True)
        labels = (x[:, rng.choice(n, 3, replace=False)].prod(1) for _ in range(supports))
        bounds = np.array([hinge_bounds(features, y, radius) for y in labels])
        losses[dimension] = bounds[:, 0]
        unknown = max(unknown, float(np.diff(bounds).max()))
        low, high = bounds.max(0)
        checks.append(at_least(f"A: largest optimal loss over S, D = {dimension}", low, 1 - EPSILON, (low, high)))
        data += [{"part": "A", "predictor": f"D = {dimension}", "number": i, "loss": float(low), "accuracy": None}
                 for i, low in enumerate(losses[dimension])]
    setup = Setup(Parity(n, 3), Learner(MLP(10), optimiser=SGD(1.0)), replace(FIXED_8192, threshold=0.99))
    trained = lab.measure(setup, runs).records
    accuracies = fixed_accuracies(lab, setup, runs, samples)
    value, interval = share(np.max(list(accuracies.values()), axis=0) <= 0.62)
    checks.append(at_least("B: share of seeds with both fixed features at most 62 % right", value, 0.9, interval))
    checks.append(converging("B: network at least 99 % right", trained, 0.9))
    accuracies["network"] = trained.accuracy
    data += [{"part": "B", "predictor": name, "number": seed, "loss": None, "accuracy": float(accuracy)}
             for name, values in accuracies.items() for seed, accuracy in enumerate(values)]
    numbers = {f"highest accuracy, {name}": float(values.max()) for name, values in accuracies.items()}
    numbers["largest uncertainty of an optimal loss"] = unknown
    note = "A: the optimum by a certificate (a feasible point and a dual bound) instead of projected SGD"
    return Outcome(checks, data, draw_fixed(losses, accuracies), numbers, note)


def hinge_bounds(features: Floats, y: Floats, radius: float) -> tuple[float, float]:
    """A lower and an upper bound of the least mean hinge loss of Psi.w over |w| <= R; features Psi are (samples, D).

    max(0, 1 - yf) >= 1 - yf gives the dual bound 1 - R |E y Psi|, and the loss at the w that attains it is the upper
    one. They are equal unless that w has margins above 1.

    >>> hinge_bounds(np.array([[1.0, 0.0], [1.0, 0.0]]), np.array([1.0, 1.0]), radius=0.5)
    (0.5, 0.5)
    """
    correlation = y @ features / len(y)
    size = float(np.linalg.norm(correlation))
    margins = y * (features @ correlation) * radius / size
    return 1 - radius * size, float(np.maximum(0, 1 - margins).mean())


def random_features(rng: np.random.Generator, x: Floats, dimension: int) -> Floats:
    """relu(w.x + b) for units with weights and biases of the networks' law."""
    n = x.shape[1]
    return np.maximum(x @ torch_law(rng, n, n, dimension) + torch_law(rng, n, dimension), 0)


def tangent_features(layers: Sequence[Mapping[str, Floats]], x: Floats) -> Floats:
    """The gradient of a two-layer ReLU network at each input by all its weights and biases."""
    hidden, output = layers
    z = x @ hidden["w"] + hidden["b"]
    by_bias = (z > 0) * output["w"][:, 0]
    by_weight = (x[:, :, None] * by_bias[:, None, :]).reshape(len(x), -1)
    return np.concatenate([by_weight, by_bias, np.maximum(z, 0), np.ones((len(x), 1))], axis=1)


def fixed_accuracies(lab: Lab, setup: Setup, runs: int, samples: int) -> dict[str, Floats]:
    """Accuracies on fresh inputs, for each run: of the tangent features at its start, and of as many random ones."""
    n = setup.problem.n
    start = lab.curves(setup, [0], None, runs, weights=True).weights
    found: dict[str, list[float]] = {"tangent features": [], "random features": []}
    for run in range(runs):
        rng = lab.rng(6, run)
        x = signs(rng, 2 * samples, n)
        y = x[:, :3].prod(1)
        layers = [{name: np.asarray(value[run, 0], np.float64) for name, value in layer.items()} for layer in start]
        tangent = tangent_features(layers, x)
        found["tangent features"].append(ridge_accuracy(tangent, y, samples))
        found["random features"].append(ridge_accuracy(random_features(rng, x, tangent.shape[1]), y, samples))
    return {name: np.array(values) for name, values in found.items()}


def ridge_accuracy(features: Floats, y: Floats, train: int) -> float:
    """Accuracy on the rest of the sample after regression on its first part, with whichever penalty does best there.

    >>> x = np.random.default_rng(0).choice([-1.0, 1.0], (200, 5))
    >>> ridge_accuracy(x, x[:, 2], 100)
    1.0
    """
    gram, target = features[:train].T @ features[:train], features[:train].T @ y[:train]
    scale = np.trace(gram) / len(gram)
    solutions = [np.linalg.solve(gram + ridge * scale * np.eye(len(gram)), target) for ridge in RIDGES]
    right = features[train:] @ np.stack(solutions, axis=1) * y[train:, None] > 0
    return float(right.mean(0).max())


@plots.styled
def draw_fixed(losses: Mapping[int, Floats], accuracies: Mapping[str, Floats]) -> Any:
    """Above: gains on the trivial loss over the supports. Below: accuracies of all seeds. Dotted: what is asked."""
    figure = plots.blank(3.2)
    above, below = figure.subplots(2, 1)
    for (dimension, values), colour, line in zip(losses.items(), plots.COLOURS, plots.LINES, strict=False):
        above.stairs(*np.histogram(1 - values, np.geomspace(1e-3, 1, 61)), color=colour, linestyle=line,
                     label=f"D = {dimension}")
    above.axvline(EPSILON, color=plots.GREY, linestyle="dotted", linewidth=0.8)
    above.set(xlabel="1 - least hinge loss in the ball", ylabel="supports S", xscale="log", xlim=(1e-3, 1))
    above.legend(loc=(0.48, 0.65))
    for place, values in enumerate(accuracies.values()):
        below.plot(values, np.full(len(values), place), "o", markersize=4, fillstyle="none", color=plots.COLOURS[place])
    for bound in (0.62, 0.99):
        below.axvline(bound, color=plots.GREY, linestyle="dotted", linewidth=0.8)
    below.set(xlabel="accuracy", xlim=(0.48, 1.02), ylim=(len(accuracies) - 0.5, -0.5))
    below.set_yticks(range(len(accuracies)), list(accuracies))
    return figure


# --- C.6 --------------------------------------------------------------------------------------------------------


@reproduces("barak2022.c6-gaussian-elimination")
def elimination_and_search(lab: Lab) -> Outcome:
    """How often S is found: over GF(2) from n + 10 samples, and by trying every S on 8 log C(n, 3) / (1 - 2p)^2."""
    sizes = lab.pick("n", quick=[20, 50, 100], full=[20, 50, 100])
    trials = lab.pick("trials", quick=50, full=200)
    cases = [("elimination", 0.0), ("elimination", 0.05), *(("search", p) for p in (0.0, 0.25, 0.4))]
    checks: list[Check] = []
    data = []
    for (method, p), n in itertools.product(cases, sizes):
        samples = n + 10 if method == "elimination" else math.ceil(8 * math.log(math.comb(n, 3)) / (1 - 2 * p) ** 2)
        rng = lab.rng(n, round(100 * p), samples)
        value, interval = share([finds(method, rng, n, samples, p) for _ in range(trials)])
        name = f"S found by {method}, p = {p:g}, n = {n}"
        if method == "search":
            checks.append(at_least(name, value, 0.95, interval))
        elif p == 0:
            checks.append(at_least(name, value, 0.99, interval))
        elif n == max(sizes):
            checks.append(at_most(name, value, 0.3, interval))
        data.append({"method": method, "p": p, "n": n, "samples": samples, "trials": trials, "found": value,
                     "low": interval[0], "high": interval[1]})
    series = {}
    for method, p in cases:
        rows = [row for row in data if (row["method"], row["p"]) == (method, p)]
        columns = ([row[name] for row in rows] for name in ("found", "low", "high"))
        series[f"{method}, p = {p:g}"] = Series(sizes, *columns)
    grid = np.arange(min(sizes), max(sizes) + 1)
    figure = plots.scaling_plot(series, "input bits n", "share of trials with S found",
                                {"$0.95^{n + 10}$, no label flipped": (grid, 0.95 ** (grid + 10.0))}, log="")
    return Outcome(checks, data, figure)


def finds(method: str, rng: np.random.Generator, n: int, samples: int, p: float) -> bool:
    """Whether a method finds a random S of three inputs from samples with labels flipped at rate p."""
    support = sorted(rng.choice(n, 3, replace=False).tolist())
    x = signs(rng, samples, n)
    y = x[:, support].prod(1) * np.where(rng.random(samples) < p, -1.0, 1.0)
    return (gf2.solve(x < 0, y < 0).support if method == "elimination" else exhaustive(x, y, 3).support) == support
