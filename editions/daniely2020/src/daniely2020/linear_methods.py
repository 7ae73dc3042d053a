"""Linear methods on fixed embeddings against the network, on the same data: Theorem 1 and Section 5."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

import numpy as np

from daniely2020.common import Row
from daniely2020.exact import logistic
from daniely2020.theory import leaky
from daniely2020.theory.leaky import Leaky
from paritylab import plots
from paritylab.aliases import Arrays, Floats
from paritylab.baselines.kernels import feature_classifier, gaussian, kernel_classifier, ntk, polynomial
from paritylab.claims import Check, Findings, Lab, Trial, at_least, at_most, between, claim, computation, size
from paritylab.claims.intervals import mean

TEST = 16_000
PAIRS = 300
"""Units of the network that is trained on the linear methods' samples: one step, then a ridge fit of its output."""
Scores = Callable[[Floats], Floats]
Method = Callable[..., Scores]
SAME = "the same 5,000 samples, n = 101"


def grouped(rows: Sequence[Row]) -> dict[tuple[int, int, int, str], list[Row]]:
    """Rows that differ by their seed alone."""
    found: dict[tuple[int, int, int, str], list[Row]] = {}
    for row in rows:
        found.setdefault((row["n"], row["k"], row["count"], row["method"]), []).append(row)
    return found


def budget(n: int, k: int, count: int) -> str:
    """
    >>> budget(61, 3, 10_000), budget(31, 3, 10_000)
    ('k = 3, fewer samples than C(n, k)', 'k = 3, more samples than C(n, k)')
    """
    return f"k = {k}, {'more' if count > math.comb(n, k) else 'fewer'} samples than C(n, k)"


@claim(
    "daniely2020.linear-fails",
    where="Theorem 1; Section 1; Section 5",
    kind="empirical",
    title="Linear methods on fixed embeddings fail on the same data",
    statement="""Random features, the NTK and polynomial kernels of low degree cannot fit the uniform half of D_A at
    sample and feature budgets where the trained network succeeds.""",
    published="""linear methods need a dimension of 2^Omega(k) (Theorem 1); majority of A has uniform-half error 0.3125
    (k=5) and 0.75 (k=3), a single relevant bit 0.5 (computed here)""",
)
class LinearFails(Trial):
    """Errors on the uniform half of linear methods and of the network; then all of them on the same 5000 samples."""

    features = size(quick=[400], full=[400, 4000], label="D")
    ridges = size(quick=[1.0], full=[0.001, 1.0])
    problems = size(quick=[[61, 3]], full=[[61, 3], [31, 3], [101, 5]], label="n, k")
    samples = size(quick=[2000], full=[10_000], label="N")
    seeds = size(quick=2, standard=3, full=5)
    same_k = size(quick=[5], full=[3, 5, 7, 9], label="k on the same samples")
    fails = at_least("mean uniform-half error of {method}, n = {n}, k = {k}, N = {count}", 0.25, part="{part}")
    network = at_least("mean accuracy on D_A, network, the same samples, k = {k}", 0.99, part=SAME)
    network_half = at_least("mean accuracy on its uniform half, network, the same samples, k = {k}", 0.99, part=SAME)
    linear = at_most("mean accuracy on D_A, {method}, the same samples, k = {k}", 0.85, part=SAME)
    linear_half = at_most("mean accuracy on its uniform half, {method}, the same samples, k = {k}", 0.7, part=SAME)
    no_leak_half = between("mean accuracy on its uniform half, network without leak, the same samples, k = {k}", 0.47,
                           0.53, part=SAME)

    def samplings(self) -> list[Sampling]:
        """Those on which linear methods alone are tried."""
        return [Sampling(n, k, count, number) for (n, k), count in itertools.product(self.problems, self.samples)
                for number in range(self.seeds)]

    def same_samplings(self) -> list[Sampling]:
        """Those on which the network is tried too."""
        return [Sampling(101, k, 5000, number) for k in self.same_k for number in range(self.seeds)]

    def tries(self, network: bool) -> list[Attempt]:
        embeddings = [Attempt("logistic regression"),
                      *(Attempt("random ReLU6", {"count": count}) for count in self.features),
                      Attempt("NTK with biases"), Attempt("Gaussian kernel"), Attempt("cubic kernel")]
        found = [Attempt(each.method, each.options | {"ridge": ridge}) for each in embeddings for ridge in self.ridges]
        return found + ([Attempt("network"), Attempt("network without leak")] if network else [])

    def work(self, lab: Lab) -> Any:
        return [self.asked(lab, samplings, network) for samplings, network in
                ((self.samplings(), False), (self.same_samplings(), True))]

    def asked(self, lab: Lab, samplings: Sequence[Sampling], network: bool) -> list[Arrays]:
        """What every method makes of these samplings."""
        return lab.compute_each(learned, [asdict(sampling) | asdict(each) for sampling in samplings
                                          for each in self.tries(network)])

    def rows(self, samplings: Sequence[Sampling], network: bool, got: Sequence[Arrays]) -> list[Row]:
        """One row for each sampling and method: of ``inputs`` test inputs ``right``; of its ``uniform`` ones ``wrong``.

        Of a method's ridges it is the best.
        """
        rows: list[Row] = []
        answers = iter(got)
        for sampling in samplings:
            found: dict[str, dict[str, int]] = {}
            for each, arrays in zip(tries := self.tries(network), itertools.islice(answers, len(tries)), strict=True):
                result = {part: int(arrays[part]) for part in ("inputs", "right", "uniform", "wrong")}
                if each.name not in found or result["right"] > found[each.name]["right"]:
                    found[each.name] = result
            rows += [{"n": sampling.n, "k": sampling.k, "count": sampling.count, "seed": sampling.number,
                      "method": name, **result, "accuracy": result["right"] / result["inputs"],
                      "uniform accuracy": 1 - result["wrong"] / result["uniform"]} for name, result in found.items()]
        return rows

    def judge(self, got: Any) -> Findings:
        alone = self.rows(self.samplings(), False, got[0])
        same = self.rows(self.same_samplings(), True, got[1])
        checks: list[Check] = []
        for (n, k, count, method), rows in grouped(alone).items():
            errors = [1 - row["uniform accuracy"] for row in rows]
            checks.append(self.fails(*mean(errors), method=method, n=n, k=k, count=count, part=budget(n, k, count)))
        for (_, k, _, method), rows in grouped(same).items():
            checks += self.told(method, k, rows)
        return Findings(checks, alone + same)

    def draw(self, got: Any) -> plots.Figure:
        return draw_separation(self.rows(self.same_samplings(), True, got[1]))

    def told(self, method: str, k: int, rows: Sequence[Row]) -> list[Check]:
        """The network learns both halves, no linear method either, and without the leak the network learns nothing."""
        all_, half = (mean([row[name] for row in rows]) for name in ("accuracy", "uniform accuracy"))
        if method == "network without leak":
            return [self.no_leak_half(*half, k=k)]
        if method == "network":
            return [self.network(*all_, k=k), self.network_half(*half, k=k)]
        return [self.linear(*all_, method=method, k=k), self.linear_half(*half, method=method, k=k)]


@dataclass(frozen=True)
class Sampling:
    """So many samples of D_A; those of another number are others."""

    n: int
    k: int
    count: int
    number: int


@dataclass(frozen=True)
class Attempt:
    """A method and its options."""

    method: str
    options: dict[str, float] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return f"{self.options['count']} {self.method}" if "count" in self.options else self.method


@computation
def learned(
    seed: int, n: int, k: int, count: int, number: int, method: str, options: dict[str, float]
) -> dict[str, Any]:
    """What a method makes of samples, in numbers of test inputs."""
    return tested(Leaky(n, k), count, partial(METHODS[method], **options), (seed, n, k, count, number))


def tested(sizes: Leaky, count: int, method: Method, seed: tuple[int, ...]) -> dict[str, Any]:
    """What a method learns from ``count`` samples, the same for all methods with this seed, on one test sample."""
    rng = np.random.default_rng(seed)
    (x, y, _), (z, labels, uniform) = (leaky.draw_inputs(sizes, each, rng) for each in (count, TEST))
    x, y, z = (values.astype(np.float32) for values in (x, y, z))
    right = np.sign(method(sizes, x, y, rng)(z)) == labels
    return {"inputs": len(z), "right": right.sum(), "uniform": uniform.sum(), "wrong": (~right[uniform]).sum()}


def linear(sizes: Leaky, x: Floats, y: Floats, rng: np.random.Generator, ridge: float) -> Scores:
    weights = logistic(x, y, ridge / len(x))
    return lambda z: z @ weights


def random_features(sizes: Leaky, x: Floats, y: Floats, rng: np.random.Generator, ridge: float, count: int) -> Scores:
    """The network's own units as they start."""
    start = leaky.start(sizes, count, rng)
    units = leaky.Layer(start.w[:count].astype(np.float32), start.b[:count].astype(np.float32), start.u[:count])
    return feature_classifier(units.features, x, y, ridge, intercept=True)


def tangent_kernel(sizes: Leaky, x: Floats, y: Floats, rng: np.random.Generator, ridge: float) -> Scores:
    scores = kernel_classifier(ntk, with_bias(x), y, ridge)
    return lambda z: scores(with_bias(z))


def gaussian_kernel(sizes: Leaky, x: Floats, y: Floats, rng: np.random.Generator, ridge: float) -> Scores:
    return kernel_classifier(partial(gaussian, width=math.sqrt(sizes.n)), x, y, ridge)


def cubic_kernel(sizes: Leaky, x: Floats, y: Floats, rng: np.random.Generator, ridge: float) -> Scores:
    return kernel_classifier(partial(polynomial, degree=3), x, y, ridge)


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


METHODS: dict[str, Method] = {
    "logistic regression": linear,
    "random ReLU6": random_features,
    "NTK with biases": tangent_kernel,
    "Gaussian kernel": gaussian_kernel,
    "cubic kernel": cubic_kernel,
    "network": one_step,
    "network without leak": no_leak,
}


@plots.styled
def draw_separation(same: Sequence[Row]) -> plots.Figure:
    """Accuracy of every method on D_A and on its uniform half, for each k, on the same samples."""
    names = list(dict.fromkeys(row["method"] for row in same))
    figure = plots.blank(0.9 + 0.2 * len(names))
    axes = figure.add_subplot(xlabel="accuracy (n = 101)", ylim=(len(names) - 0.5, -0.5), xlim=(0.2, 1.02))
    axes.set_yticks(range(len(names)), names)
    for k, colour, marker in zip(sorted({row["k"] for row in same}), plots.COLOURS, "osD^", strict=False):
        for part, fill in (("accuracy", "full"), ("uniform accuracy", "none")):
            rows = [row for row in same if row["k"] == k]
            axes.plot([row[part] for row in rows], [names.index(row["method"]) for row in rows], marker, color=colour,
                      fillstyle=fill, markersize=4, label=f"k = {k}" + (", uniform half" if fill == "none" else ""))
    axes.axvline(0.5, color=plots.GREY, linestyle="dotted", linewidth=0.8)
    figure.legend(*axes.get_legend_handles_labels(), loc="outside upper center", ncols=2)
    return figure
