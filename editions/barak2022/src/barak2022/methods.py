"""Other ways to learn a parity: fixed features (Theorem 6), linear algebra and exhaustive search (C.6)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from barak2022.common import FIXED_8192
from barak2022.exact import torch_law
from barak2022.fourier import signs
from paritylab import MLP, SGD, Learner, Parity, Setup, plots
from paritylab.aliases import Arrays, Floats
from paritylab.baselines import gf2
from paritylab.baselines.search import exhaustive
from paritylab.claims import Check, Findings, Lab, Trial, at_least, at_most, claim, computation, rng, size
from paritylab.claims.intervals import share
from paritylab.plots import Series
from paritylab.running.sweeps import Result
from paritylab.statistics import solved_fraction

# --- Theorem 6 --------------------------------------------------------------------------------------------------

EPSILON = 0.5
DIMENSIONS = (100, 1000)
RIDGES = (1e-6, 1e-4, 1e-2, 1.0)
"""Penalties, as multiples of the features' mean square."""


@dataclass(frozen=True)
class FixedFeatures:
    """Bounds of the least losses (supports, 2) for each dimension, the trained network, and accuracies of each run."""

    bounds: list[dict[str, Floats]]
    network: Result
    features: list[dict[str, Floats]]

    @property
    def losses(self) -> dict[int, Floats]:
        return {dimension: each["bounds"][:, 0] for dimension, each in zip(DIMENSIONS, self.bounds, strict=True)}

    @property
    def accuracies(self) -> dict[str, Floats]:
        fixed = {name: np.array([float(each[name.split()[0]]) for each in self.features])
                 for name in ("tangent features", "random features")}
        return fixed | {"network": self.network.records.accuracy}


@claim(
    "barak2022.thm6-kernels",
    where="Theorem 6",
    kind="theory",
    title="Fixed kernels cannot learn sparse parities cheaply",
    statement="""Any embedding of dimension D with norm-R predictors needs D R^2 of order C(n,k) to beat the trivial
    loss on all (n,k) parities; random features and the NTK therefore stay near chance at sizes where the network
    succeeds.""",
    published="""A loss above 1 - epsilon for some S if D R^2 < epsilon^2 C(n, k) (Theorem 6); the contrast with a
    network is ours.""",
)
class Thm6Kernels(Trial):
    """A: the best hinge loss of random features in a ball. B: ridge regression on fixed features beside the network."""

    n = size(30)
    supports = size(50)
    samples = size(20_000)
    loss = at_least("A: largest optimal loss over S, D = {dimension}", 1 - EPSILON)
    fixed = at_least("B: share of seeds with both fixed features at most 62 % right", 0.9)
    network = at_least("share of runs solved, B: network at least 99 % right", 0.9)
    seeds = size(quick=10, full=40)

    def work(self, lab: Lab) -> FixedFeatures:
        setup = Setup(Parity(self.n, 3), Learner(MLP(10), optimiser=SGD(1.0)), replace(FIXED_8192, threshold=0.99))
        bounds = lab.compute_each(least_losses, [
            {"n": self.n, "dimension": dimension, "supports": self.supports, "samples": self.samples}
            for dimension in DIMENSIONS])
        trained = lab.measure(setup, self.seeds)
        start = lab.curves(setup, [0], None, self.seeds, weights=True).weights
        features = lab.compute_each(ridge_accuracies, [
            {"layers": [{name: value[run, 0].tolist() for name, value in layer.items()} for layer in start],
             "run": run, "samples": self.samples} for run in range(self.seeds)])
        return FixedFeatures(bounds, trained, features)

    def judge(self, got: FixedFeatures) -> Findings:
        losses, accuracies = got.losses, got.accuracies
        tops = [each["bounds"].max(0) for each in got.bounds]
        checks = [self.loss(low, (low, high), dimension=dimension)
                  for dimension, (low, high) in zip(DIMENSIONS, tops, strict=True)]
        best = np.maximum(accuracies["tangent features"], accuracies["random features"])
        checks += [self.fixed(*share(best <= 0.62)), self.network(*solved_fraction(got.network.records.status))]
        rows = [{"part": "A", "predictor": f"D = {dimension}", "number": i, "loss": float(low), "accuracy": None}
                for dimension, values in losses.items() for i, low in enumerate(values)]
        rows += [{"part": "B", "predictor": name, "number": seed, "loss": None, "accuracy": float(accuracy)}
                 for name, values in accuracies.items() for seed, accuracy in enumerate(values)]
        numbers = {f"highest accuracy, {name}": float(values.max()) for name, values in accuracies.items()}
        numbers["largest uncertainty of an optimal loss"] = max(float(np.diff(each["bounds"]).max())
                                                                for each in got.bounds)
        note = "A: the optimum by a certificate (a feasible point and a dual bound) instead of projected SGD"
        return Findings(checks, rows, numbers, note)

    def draw(self, got: FixedFeatures) -> plots.Figure:
        return draw_fixed(got.losses, got.accuracies)


@computation
def least_losses(seed: int, n: int, dimension: int, supports: int, samples: int) -> dict[str, Any]:
    """Bounds of the least hinge loss of random features for each of several S, in the theorem's ball."""
    radius = math.sqrt(0.25 * math.comb(n, 3) * EPSILON**2 / dimension)
    generator = rng(seed, 6, dimension)
    x = signs(generator, samples, n)
    features = random_features(generator, x, dimension)
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    labels = (x[:, generator.choice(n, 3, replace=False)].prod(1) for _ in range(supports))
    return {"bounds": [hinge_bounds(features, y, radius) for y in labels]}


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


@computation
def ridge_accuracies(seed: int, layers: list[dict[str, Any]], run: int, samples: int) -> dict[str, float]:
    """Accuracies on fresh inputs: of a run's tangent features, and of as many random ones."""
    network = [{name: np.asarray(value, np.float64) for name, value in layer.items()} for layer in layers]
    generator = rng(seed, 6, run)
    x = signs(generator, 2 * samples, len(network[0]["w"]))
    y = x[:, :3].prod(1)
    tangent = tangent_features(network, x)
    return {"tangent": ridge_accuracy(tangent, y, samples),
            "random": ridge_accuracy(random_features(generator, x, tangent.shape[1]), y, samples)}


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
def draw_fixed(losses: Mapping[int, Floats], accuracies: Mapping[str, Floats]) -> plots.Figure:
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

CASES = (("elimination", 0.0), ("elimination", 0.05), ("search", 0.0), ("search", 0.25), ("search", 0.4))


@claim(
    "barak2022.c6-gaussian-elimination",
    where="Appendix C.6; Section 2",
    kind="exact",
    title="Noiseless parity: Gaussian elimination needs about n samples, noise breaks it",
    statement="""Without noise S is recovered by linear algebra over GF(2) from about n samples; with a constant
    flip rate the same procedure fails, while exhaustive correlation search needs on the order of k log n / (1-2p)^2
    samples.""",
    published="""'Gaussian elimination can identify S in O(n^3) time and Theta(n) samples' without noise; with it the
    statistical limit is Theta(k log n / epsilon^2) (Appendix C.6).""",
)
class C6GaussianElimination(Trial):
    """How often S is found: over GF(2) from n + 10 samples, and by trying every S on 8 log C(n, 3) / (1 - 2p)^2."""

    n = size([20, 50, 100])
    clean = at_least("S found by elimination, p = 0, n = {n}", 0.99)
    noisy = at_most("S found by elimination, p = 0.05, n = {n}", 0.3)
    search = at_least("S found by search, p = {p:g}, n = {n}", 0.95)
    trials = size(quick=400, full=1000, label="trials of elimination")
    searches = size(quick=20, full=100, label="trials of search")

    def work(self, lab: Lab) -> list[Arrays]:
        return lab.compute_each(finds_often, [
            {"method": method, "p": p, "n": n, "samples": samples_for(method, p, n),
             "trials": self.trials if method == "elimination" else self.searches}
            for (method, p), n in itertools.product(CASES, self.n)])

    def rows(self, got: list[Arrays]) -> list[dict[str, Any]]:
        rows = []
        for ((method, p), n), each in zip(itertools.product(CASES, self.n), got, strict=True):
            value, (low, high) = share(each["found"])
            rows.append({"method": method, "p": p, "n": n, "samples": samples_for(method, p, n),
                         "trials": len(each["found"]), "found": value, "low": low, "high": high})
        return rows

    def judge(self, got: list[dict[str, np.ndarray]]) -> Findings:
        checks: list[Check] = []
        for row in (rows := self.rows(got)):
            n, p, value, interval = row["n"], row["p"], row["found"], (row["low"], row["high"])
            if row["method"] == "search":
                checks.append(self.search(value, interval, p=p, n=n))
            elif p == 0:
                checks.append(self.clean(value, interval, n=n))
            elif n == max(self.n):
                checks.append(self.noisy(value, interval, n=n))
        return Findings(checks, rows)

    def draw(self, got: list[dict[str, np.ndarray]]) -> plots.Figure:
        rows, series = self.rows(got), {}
        for method, p in CASES:
            shown = [row for row in rows if (row["method"], row["p"]) == (method, p)]
            columns = ([row[name] for row in shown] for name in ("found", "low", "high"))
            series[f"{method}, p = {p:g}"] = Series(self.n, *columns)
        grid = np.arange(min(self.n), max(self.n) + 1)
        return plots.scaling_plot(series, "input bits n", "share of trials with S found",
                                  {"$0.95^{n + 10}$, no label flipped": (grid, 0.95 ** (grid + 10.0))}, log="")


def samples_for(method: str, p: float, n: int) -> int:
    return n + 10 if method == "elimination" else math.ceil(8 * math.log(math.comb(n, 3)) / (1 - 2 * p) ** 2)


@computation
def finds_often(seed: int, method: str, p: float, n: int, samples: int, trials: int) -> dict[str, list[bool]]:
    generator = rng(seed, n, round(100 * p), samples)
    return {"found": [finds(method, generator, n, samples, p) for _ in range(trials)]}


def finds(method: str, rng: np.random.Generator, n: int, samples: int, p: float) -> bool:
    """Whether a method finds a random S of three inputs from samples with labels flipped at rate p."""
    support = sorted(rng.choice(n, 3, replace=False).tolist())
    x = signs(rng, samples, n)
    y = x[:, support].prod(1) * np.where(rng.random(samples) < p, -1.0, 1.0)
    return (gf2.solve(x < 0, y < 0).support if method == "elimination" else exhaustive(x, y, 3).support) == support
