"""Linear methods on fixed embeddings against the network, on the same data: Theorem 1 and Section 5."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from paritylab import plots
from paritylab.baselines.kernels import feature_classifier, gaussian, kernel_classifier, ntk, polynomial
from paritylab.claims.intervals import proportion
from paritylab.claims.lab import Lab
from paritylab.claims.registry import reproduces
from paritylab.claims.verdicts import Check, Outcome, at_least, at_most, between
from paritylab.papers.daniely2020.common import best, practical, share, trained
from paritylab.papers.daniely2020.exact import logistic
from paritylab.theory import leaky
from paritylab.theory.leaky import Floats, Leaky

TEST = 16_000
PAIRS = 300
"""Units of the network that is trained on the linear methods' samples: one step, then a ridge fit of its output."""
Scores = Callable[[Floats], Floats]


@reproduces("daniely2020.linear-fails")
def linear_methods_fail(lab: Lab) -> Outcome:
    """Errors on the uniform half of linear methods and of the network; then all of them on the same 5000 samples."""
    problems = lab.pick("n, k", quick=[[61, 3]], full=[[n, k] for k in (3, 5) for n in (61, 101)])
    samples = lab.pick("N", quick=[2000], standard=[2000, 10_000], full=[2000, 10_000, 40_000])
    features = lab.pick("D", quick=[400], full=[400, 4000])
    seeds = lab.pick("seeds", quick=1, standard=1, full=5)
    ridges = lab.pick("ridges", quick=[1.0], full=[0.001, 1.0])
    networks = lab.pick("n, k, q, T, seeds of the network", quick=[[61, 3, 200, 3000, 1]],
                        standard=[[61, 3, 200, 5000, 5]], full=[[61, 3, 200, 5000, 5], [101, 5, 500, 100_000, 5]])
    degrees = lab.pick("k on the same samples", quick=[5, 7], full=[3, 5, 7, 9])
    checks: list[Check] = []
    data: list[dict[str, Any]] = []
    asked = 10_000 if 10_000 in samples else max(samples)
    for (n, k), count in itertools.product(problems, samples):
        rows = compared(lab, Leaky(n, k), count, features, ridges, seeds, network=False)
        data += rows
        for method in dict.fromkeys(row["method"] for row in rows) if count == asked else ():
            wrong, total = (sum(row[name] for row in rows if row["method"] == method) for name in ("wrong", "uniform"))
            error, interval = proportion(wrong, total)
            checks.append(at_least(f"uniform-half error of {method}, n = {n}, k = {k}, N = {count}", error, 0.25,
                                   interval))
    for n, k, q, steps, runs in networks:
        level, needed = (0.01, 1.0) if k == 3 else (0.05, 0.6)
        errors = best(trained(lab, practical(n, k, q), steps, runs), "uniform error")
        checks.append(share(f"share of networks with uniform-half error <= {level:g}, n = {n}, k = {k}",
                            errors <= level, needed))
    same = [row for k in degrees
            for row in compared(lab, Leaky(101, k), 5000, features, ridges, seeds, network=True)]
    data += same
    checks += [check for k in degrees if k in (5, 7)
               for check in separated(k, [row for row in same if row["k"] == k])]
    note = ("On the same samples, the network makes one gradient step and fits its output weights to them by ridge "
            "regression; of a linear method's ridges the best is shown.")
    return Outcome(checks, data, draw_separation(same), note=note)


def separated(k: int, rows: Sequence[Mapping[str, Any]]) -> list[Check]:
    """The network learns both halves, no linear method either, and without the leak the network learns nothing."""
    checks: list[Check] = []
    for row in rows:
        name, where = row["method"], f"the same samples, n = 101, k = {k}, seed {row['seed']}"
        values = [proportion(row["right"], row["inputs"]), proportion(row["uniform"] - row["wrong"], row["uniform"])]
        halves = [f"accuracy on D_A, {name}, {where}", f"accuracy on its uniform half, {name}, {where}"]
        if name == "network without leak":
            checks.append(between(halves[1], values[1][0], 0.47, 0.53, values[1][1]))
            continue
        bounds = (0.99, 0.99) if name == "network" else (0.85, 0.7)
        rule = at_least if name == "network" else at_most
        checks += [rule(half, value, bound, interval)
                   for half, (value, interval), bound in zip(halves, values, bounds, strict=True)]
    return checks


def compared(lab: Lab, sizes: Leaky, count: int, features: Sequence[int], ridges: Sequence[float], seeds: int,
             network: bool) -> list[dict[str, Any]]:
    """One row for each method and seed: of ``inputs`` test inputs ``right``; of its ``uniform`` ones ``wrong``."""
    rows = []
    for seed in range(seeds):
        key = {"n": sizes.n, "k": sizes.k, "count": count, "seed": seed}
        tries = {f"{name}, ridge {ridge:g}": (name, partial(method, ridge=ridge))
                 for name, method in methods(sizes, features).items() for ridge in ridges}
        if network:
            tries |= {"network": ("network", one_step), "network without leak": ("network without leak", no_leak)}
        found: dict[str, dict[str, int]] = {}
        for label, (name, method) in tries.items():
            kept = lab.kept_old("linear", key | {"method": label},
                            partial(tested, sizes, count, method, (lab.seed, sizes.n, sizes.k, count, seed)))
            result = {part: int(value) for part, value in kept.items()}
            if name not in found or result["right"] > found[name]["right"]:
                found[name] = result
        rows += [{**key, "method": name, **result, "accuracy": result["right"] / result["inputs"],
                  "uniform accuracy": 1 - result["wrong"] / result["uniform"]} for name, result in found.items()]
    return rows


def tested(sizes: Leaky, count: int, method: Any, seed: tuple[int, ...]) -> dict[str, Any]:
    """What a method learns from ``count`` samples, the same for all methods with this seed, on one test sample."""
    rng = np.random.default_rng(seed)
    (x, y, _), (z, labels, uniform) = (leaky.draw_inputs(sizes, size, rng) for size in (count, TEST))
    x, y, z = (values.astype(np.float32) for values in (x, y, z))
    right = np.sign(method(sizes, x, y, rng)(z)) == labels
    return {"inputs": np.array(len(z)), "right": np.array(right.sum()), "uniform": np.array(uniform.sum()),
            "wrong": np.array((~right[uniform]).sum())}


def methods(sizes: Leaky, features: Sequence[int]) -> dict[str, Any]:
    """Linear methods by name, each ``method(sizes, x, y, rng, ridge) -> scores``."""
    return {
        "logistic regression": linear,
        **{f"{count} random ReLU6": partial(random_features, count=count) for count in features},
        "NTK with biases": partial(of_kernel, kernel=ntk, prepare=with_bias),
        "Gaussian kernel": partial(of_kernel, kernel=partial(gaussian, width=math.sqrt(sizes.n))),
        "cubic kernel": partial(of_kernel, kernel=partial(polynomial, degree=3)),
    }


def linear(sizes: Leaky, x: Floats, y: Floats, rng: np.random.Generator, ridge: float) -> Scores:
    weights = logistic(x, y, ridge / len(x))
    return lambda z: z @ weights


def random_features(sizes: Leaky, x: Floats, y: Floats, rng: np.random.Generator, ridge: float, count: int) -> Scores:
    """The network's own units as they start."""
    start = leaky.start(sizes, count, rng)
    units = leaky.Layer(start.w[:count].astype(np.float32), start.b[:count].astype(np.float32), start.u[:count])
    return feature_classifier(units.features, x, y, ridge, intercept=True)


def of_kernel(sizes: Leaky, x: Floats, y: Floats, rng: np.random.Generator, ridge: float, kernel: Any,
              prepare: Scores = lambda x: x) -> Scores:
    scores = kernel_classifier(kernel, prepare(x), y, ridge)
    return lambda z: scores(prepare(z))


def with_bias(x: Floats) -> Floats:
    """Inputs of norm 1 and a constant 1: without it the kernel has no odd degree above 1."""
    return np.concatenate([x / math.sqrt(x.shape[1]), np.ones((len(x), 1))], axis=1).astype(np.float32)


def one_step(sizes: Leaky, x: Floats, y: Floats, rng: np.random.Generator) -> Scores:
    """The network: one step on the samples, then a ridge fit of the output weights on the same samples."""
    layer = leaky.sampled_step(leaky.start(sizes, PAIRS, rng), x.astype(float), y.astype(float))
    return feature_classifier(layer.features, x, y, 1e-3, intercept=True)


def no_leak(sizes: Leaky, x: Floats, y: Floats, rng: np.random.Generator) -> Scores:
    """The same on uniform samples alone, as many."""
    s, labels, _ = leaky.draw_inputs(Leaky(sizes.n, sizes.k, leak=0.0), len(x), rng)
    return one_step(sizes, s, labels, rng)


@plots.styled
def draw_separation(same: Sequence[Mapping[str, Any]]) -> Any:
    """Accuracy of every method on D_A and on its uniform half, for each k, on the same samples."""
    names = list(dict.fromkeys(row["method"] for row in same))
    figure = plots.blank(0.9 + 0.2 * len(names))
    axes = figure.add_subplot(xlabel="accuracy (n = 101)", ylim=(len(names) - 0.5, -0.5),
                              xlim=(0.2, 1.02))
    axes.set_yticks(range(len(names)), names)
    for k, colour, marker in zip(sorted({row["k"] for row in same}), plots.COLOURS, "osD^", strict=False):
        for part, fill in (("accuracy", "full"), ("uniform accuracy", "none")):
            rows = [row for row in same if row["k"] == k]
            axes.plot([row[part] for row in rows], [names.index(row["method"]) for row in rows], marker, color=colour,
                      fillstyle=fill, markersize=4, label=f"k = {k}" + (", uniform half" if fill == "none" else ""))
    axes.axvline(0.5, color=plots.GREY, linestyle="dotted", linewidth=0.8)
    figure.legend(*axes.get_legend_handles_labels(), loc="outside upper center", ncols=2)
    return figure
