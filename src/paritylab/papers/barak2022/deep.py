"""What networks can and cannot learn: depth (C.7), biases (C.2), degree (D.1.1), weak classifiers (D.2)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np

from paritylab import MLP, SGD, Learner, Parity, Protocol, Setup, engines, plots
from paritylab.baselines.goldreich_levin import heavy
from paritylab.claims.lab import Lab
from paritylab.claims.registry import reproduces
from paritylab.claims.verdicts import Check, Outcome, at_least, at_most, between
from paritylab.measures.fourier import cube
from paritylab.papers.barak2022.common import FIXED_8192, Floats, by_run, converging, times_plot
from paritylab.running.sweeps import Result
from paritylab.setups.inits import Init
from paritylab.statistics import solved_fraction
from paritylab.storage.records import SOLVED, Records

QUADRATIC = SGD(0.01)
"""The optimiser of all quadratic networks here; their batches are of 32."""


# --- C.7: deep quadratic networks -----------------------------------------------------------------------------------


@reproduces("barak2022.c7-deep-quadratic")
def deep_quadratic(lab: Lab) -> Outcome:
    """z^2 networks of three and four layers, trained end to end on parities of degree above 2."""
    cases = [("L=3", (2, 1), n, k, 20_000) for n in (10, 20, 30) for k in (1, 2, 3, 4)]
    cases += [("L=4", (10, 10, 1), n, k, 50_000) for n in (10, 20, 30) for k in range(1, 7)]
    cases += [("L=4", (10, 10, 1), n, k, 500_000) for n, k in ((10, 7), (20, 7), (30, 7), (10, 8))]
    few = [f"L=3, n=10, k={k}" for k in (2, 3, 4)]
    named = {f"{depth}, n={n}, k={k}": Setup(Parity(n, k), Learner(MLP(widths, "power:2"), optimiser=QUADRATIC),
                                            replace(FIXED_8192, max_steps=steps))
             for depth, widths, n, k, steps in cases}
    names = lab.pick("networks and tasks", quick=few, full=list(named))
    runs = lab.pick("runs", quick=10, full=10)
    results = dict(zip(names, lab.sweep([named[name] for name in names], runs), strict=True))
    checks = [converging(name, result.records, 0.6 if name.endswith(("k=7", "k=8")) else 0.9)
              for name, result in results.items()]
    return Outcome(checks, by_case(results), times_plot({name: result.records for name, result in results.items()}))


def by_case(results: Mapping[str, Result]) -> list[dict[str, Any]]:
    return [{"case": name, **row} for name, result in results.items() for row in by_run(result.records)]


@reproduces("barak2022.c7-sanity")
def too_shallow(lab: Lab) -> Outcome:
    """Quadratic networks too shallow for the degree: no check of any run may show more than 53 %."""
    every = {f"L={len(widths) + 1}, k={k}": (widths, k)
             for widths, degrees in (((10,), (3, 4)), ((10, 10), (5, 6))) for k in degrees}
    names = lab.pick("networks and tasks", quick=["L=2, k=3"], full=list(every))
    runs = lab.pick("runs", quick=10, full=10)
    steps = lab.pick("max_steps", quick=5000, full=50_000)
    setups = {name: Setup(Parity(10, k), Learner(MLP(widths, "power:2"), optimiser=QUADRATIC),
                          replace(FIXED_8192, max_steps=steps)) for name, (widths, k) in every.items() if name in names}
    checks, data, numbers, curves = [], [], {}, {}
    for name, setup in setups.items():
        traced = lab.curves(setup, steps, 10, runs)
        highest = traced.accuracy.max(axis=1)
        checks.append(at_most(f"highest accuracy of any run, {name}", float(highest.max()), 0.53))
        numbers |= {f"highest accuracy before training, {name}": float(traced.accuracy[:, 0].max()),
                    f"runs that ever show more than 53 %, {name}": float(np.sum(highest > 0.53))}
        data += [{"case": name, "run": run, "first": float(values[0]), "highest": float(values.max()),
                  "last": float(values[-1])} for run, values in enumerate(traced.accuracy)]
        curves[name] = traced.steps, traced.accuracy
    return Outcome(checks, data, accuracy_curves(curves, 0.53), numbers)


@plots.styled
def accuracy_curves(curves: Mapping[str, tuple[Any, Any]], bound: float) -> Any:
    """Accuracy against steps: the highest, middle and lowest of the runs at each step."""
    figure = plots.blank(2.3)
    axes = figure.add_subplot(xlabel="steps", ylabel="accuracy of the runs")
    for (name, (steps, accuracy)), colour in zip(curves.items(), itertools.cycle(plots.COLOURS), strict=False):
        points = np.unique(np.linspace(0, len(steps) - 1, 300).astype(int))
        lowest, middle, highest = np.quantile(accuracy[:, points], (0, 0.5, 1), axis=0)
        axes.plot(steps[points], middle, color=colour, label=name, linewidth=0.8)
        axes.fill_between(steps[points], lowest, highest, color=colour, alpha=0.2, linewidth=0)
    axes.axhline(bound, color=plots.GREY, linestyle="dotted", linewidth=0.8, label=f"{100 * bound:.0f} %")
    figure.legend(*axes.get_legend_handles_labels(), loc="outside upper center", ncols=3)
    return figure


# --- C.2: biases ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Unbiased(MLP):
    """A perceptron without any biases; its weights start as those of the MLP."""

    def init(self, key: Any, n: int, init: Init) -> Any:
        return [{"w": layer["w"]} for layer in super().init(key, n, init)]

    def apply(self, params: Any, x: Any) -> Any:
        for layer in params[:-1]:
            x = self.activation(x @ layer["w"])
        return jnp.sum(x * params[-1]["w"][:, 0], axis=-1)


@reproduces("barak2022.c2-bias-needed")
def biases_needed(lab: Lab) -> Outcome:
    """A ReLU network on a parity of odd degree, with biases and without."""
    n = lab.pick("n", quick=12, full=20)
    width = lab.pick("width", quick=20, full=30)
    runs = lab.pick("runs", quick=10, full=20)
    protocol = replace(FIXED_8192, max_steps=lab.pick("max_steps", quick=4000, full=20_000))
    networks = {"with biases": MLP(width), "without": Unbiased(width)}
    setups = [Setup(Parity(n, 3), Learner(network, optimiser=SGD(0.3)), protocol) for network in networks.values()]
    results = dict(zip(networks, lab.sweep(setups, runs), strict=True))
    share, interval = solved_fraction(results["without"].records.status)
    checks = [
        converging("with biases", results["with biases"].records, 0.9),
        at_most("share of runs solved, without", share, 0.2, interval),
        at_most("largest population gradient of a unit without bias", float(np.abs(unbiased_gradients(11, 3)).max()),
                1e-12),
    ]
    return Outcome(checks, by_case(results), times_plot({name: result.records for name, result in results.items()}))


def unbiased_gradients(n: int, k: int) -> Floats:
    """E chi_S(x) x_j 1[w.x > 0] for all sign vectors w (rows) and all j, by enumeration.

    >>> float(abs(unbiased_gradients(5, 3)).max()), float(abs(unbiased_gradients(5, 2)).max())
    (0.0, 0.1875)
    """
    x = cube(n)
    chi = x[:, :k].prod(axis=1)
    return (x @ x.T > 0) @ (chi[:, None] * x) / 2**n


# --- D.1.1: degree --------------------------------------------------------------------------------------------------


@reproduces("barak2022.d1-low-degree-fails")
def low_degree(lab: Lab) -> Outcome:
    """Polynomials of degree below k are orthogonal to the parity, and z^2 networks stay near chance on k = 3."""
    draws = lab.pick("draws", quick=20, full=1000)
    runs = lab.pick("trained runs", quick=2, full=5)
    x, rng = cube(10), lab.rng()
    data: list[dict[str, Any]] = []
    for degree, k in itertools.combinations(range(1, 6), 2):
        values = [random_net(rng, x, 8, degree) for _ in range(draws)]
        chi = x[:, :k].prod(axis=1)
        sizes = [abs(f @ chi) / len(x) / np.abs(f).max() for f in values]
        data.append({"degree": degree, "k": k, "draws": draws, "correlation": float(max(sizes)), "accuracy": None})
    setup = Setup(Parity(10, 3), Learner(MLP(30, "power:2"), optimiser=QUADRATIC),
                  replace(FIXED_8192, max_steps=10_000))
    records, params = final_params(lab, setup, runs)
    y = x[:, :3].prod(axis=1)
    accuracies = [float(np.mean(forward(params, run, x, lambda z: z**2) * y > 0)) for run in range(runs)]
    data += [{"degree": 2, "k": 3, "draws": None, "correlation": None, "accuracy": value} for value in accuracies]
    largest = max(row["correlation"] for row in data if row["correlation"] is not None)
    checks: list[Check] = [at_most("largest |E f chi_S| / max |f| of random networks", largest, 1e-10)]
    checks += [between(f"accuracy on all inputs of trained run {run}", value, 0.4, 0.6)
               for run, value in zip(records.run, accuracies, strict=True)]
    return Outcome(checks, data, orthogonality([row for row in data if row["correlation"] is not None]))


def random_net(rng: np.random.Generator, x: Floats, width: int, degree: int) -> Floats:
    """The values of a random two-layer network with z^degree units."""
    w, b, u = rng.normal(size=(x.shape[1], width)), rng.normal(size=width), rng.normal(size=width)
    return (x @ w + b) ** degree @ u


@plots.styled
def orthogonality(rows: Sequence[Mapping[str, Any]]) -> Any:
    figure = plots.blank(2.2)
    axes = figure.add_subplot(xlabel="degree of the parity", ylabel="largest $|E f \\chi_S| / \\max |f|$", yscale="log")
    for degree, colour, marker in zip(range(1, 5), plots.COLOURS, "osD^", strict=False):
        shown = [(row["k"], row["correlation"]) for row in rows if row["degree"] == degree]
        axes.plot(*zip(*shown, strict=True), marker=marker, markersize=4, color=colour, label=f"$z^{degree}$")
    axes.axhline(1e-10, color=plots.GREY, linestyle="dotted", linewidth=0.8, label="asked")
    axes.set_xticks((2, 3, 4, 5))
    figure.legend(*axes.get_legend_handles_labels(), loc="outside upper center", ncols=5, columnspacing=1)
    return figure


def final_params(lab: Lab, setup: Setup, runs: int) -> tuple[Records, Any]:
    """The records and final weights of runs 0, 1, ..."""
    engine = engines.choose(setup, lab.engine)
    records, params = engines.final_params([engines.Job(setup, lab.seed, np.arange(runs))], engine)
    lab.count(setup, engine, runs, int(records.steps.sum()))
    return records, params


def forward(params: Any, run: int, x: Floats, activation: Any) -> Floats:
    """The outputs of one run's two-layer network, in double precision."""
    hidden, output = ({name: np.asarray(value[run], np.float64) for name, value in layer.items()} for layer in params)
    return activation(x @ hidden["w"] + hidden["b"]) @ output["w"][:, 0] + output["b"][0]


# --- D.2: from a weak classifier to S -------------------------------------------------------------------------------

WEAK = Protocol(eval_size=128, fresh=True, threshold=0.55, consecutive=10)
"""Ten fresh batches of 128 in a row, one every 10 steps, with at least 55 % correct."""
LARGE = 0.08
"""Coefficients that Goldreich-Levin looks for."""


@reproduces("barak2022.d2-weak-to-strong")
def weak_to_strong(lab: Lab) -> Outcome:
    """Networks too narrow for the parity: the largest coefficient of size 3 of a 55 % classifier is at S.

    Found twice: among all triples, estimated from random inputs, and by Goldreich-Levin, which asks the classifier for
    labels of inputs of its choice and never lists all triples.
    """
    n = lab.pick("n", quick=15, full=20)
    widths = lab.pick("widths", quick=[2], full=[1, 2])
    runs = lab.pick("runs", quick=20, full=20)
    samples = lab.pick("samples", quick=50_000, full=200_000)
    queries = lab.pick("queries", quick=16 * 2**14, full=21 * 2**16)
    triples = list(itertools.combinations(range(n), 3))
    checks, data, numbers = [], [], {}
    for width in widths:
        setup = Setup(Parity(n, 3), Learner(MLP(width), optimiser=SGD(0.1), batch=128), WEAK)
        records, params = final_params(lab, setup, runs)
        found, asked = [], []
        for run in np.flatnonzero(records.status == SOLVED):
            x = lab.rng(width, int(run)).choice([-1.0, 1.0], (samples, n))
            f = forward(params, int(run), x, relu)
            size = np.abs(triple_coefficients(np.sign(f), x))
            found.append(triples[int(size.argmax())] == (0, 1, 2))
            classifier = partial(labels_of, params, int(run))
            listed = heavy(classifier, n, LARGE, queries, lab.rng(width, int(run), 1), degree=3)
            asked.append(next((T for T in listed if len(T) == 3), None) == (0, 1, 2))
            data.append({"width": width, "run": int(records.run[run]), "t": int(records.t_c[run]),
                         "accuracy": float(np.mean(f * x[:, :3].prod(axis=1) > 0)), "at_S": float(size[0]),
                         "elsewhere": float(size[1:].max()), "found": found[-1], "large": len(listed),
                         "found_by_queries": asked[-1]})
        for way, successes in (("all triples", found), ("Goldreich-Levin", asked)):
            share, interval = solved_fraction(np.where(successes, SOLVED, 1)) if found else (math.nan, (0.0, 1.0))
            name = f"share of 55 % classifiers that give S by {way}, width {width}"
            checks.append(at_least(name, share, 0.95, interval))
        numbers[f"runs that reached 55 %, width {width}"] = float(len(found))
    return Outcome(checks, data, coefficient_plot(data), numbers)


def labels_of(params: Any, run: int, x: Floats) -> Floats:
    """The labels that one run's ReLU network gives."""
    return np.sign(forward(params, run, x, relu))


def relu(z: Floats) -> Floats:
    return np.maximum(z, 0)


def triple_coefficients(values: Floats, x: Floats) -> Floats:
    """The mean of values chi_T over samples x, for all T of size 3 in the order of itertools.combinations.

    >>> triple_coefficients(cube(4)[:, 1:].prod(axis=1), cube(4))
    array([0., 0., 0., 1.])
    """
    n = x.shape[1]
    pairs = list(itertools.combinations(range(n), 2))
    place = {pair: i for i, pair in enumerate(pairs)}
    total = np.zeros((n, len(pairs)))
    for part in np.array_split(np.arange(len(x)), max(1, len(x) // 20_000)):
        products = np.stack([x[part, a] * x[part, b] for a, b in pairs], axis=1)
        total += (values[part, None] * x[part]).T @ products
    return np.array([total[a, place[b, c]] for a, b, c in itertools.combinations(range(n), 3)]) / len(x)


@plots.styled
def coefficient_plot(rows: Sequence[Mapping[str, Any]]) -> Any:
    """The coefficient at S against the largest elsewhere: above the diagonal S is found."""
    figure = plots.blank(2.6)
    axes = figure.add_subplot(xlabel="largest coefficient of size 3, not at S", ylabel="coefficient at S")
    for width, colour, marker in zip(sorted({row["width"] for row in rows}), plots.COLOURS, "osD", strict=False):
        shown = [row for row in rows if row["width"] == width]
        axes.plot([row["elsewhere"] for row in shown], [row["at_S"] for row in shown], marker, color=colour,
                  fillstyle="none", markersize=4, label=f"width {width}")
    top = max([row["at_S"] for row in rows], default=1.0) * 1.08
    axes.plot([0, top], [0, top], color=plots.GREY, linestyle="dotted", linewidth=0.8, label="equal")
    axes.set(xlim=(0, top), ylim=(0, top))
    figure.legend(*axes.get_legend_handles_labels(), loc="outside upper center", ncols=3)
    return figure
