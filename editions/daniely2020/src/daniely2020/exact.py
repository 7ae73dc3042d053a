"""The distribution, Forster's bound and online gradient descent: Section 2, Theorems 1 and 11."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
import scipy.optimize  # pyright: ignore[reportMissingTypeStubs]
from scipy import stats

from daniely2020.common import Row
from paritylab import LeakyParity, plots
from paritylab.aliases import Arrays, Floats
from paritylab.claims import Findings, Lab, Trial, at_least, at_most, claim, computation, rng, size
from paritylab.measures.fourier import cube
from paritylab.plots import Series

optimize: Any = scipy.optimize
optimize: Any = scipy.optimize


def largest_margin(x: Floats, y: Floats) -> float:
    """The largest t with y (w.x + b) >= t at all inputs, |w_j| and |b| at most 1; 0 where nothing separates.

    >>> signs = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
    >>> largest_margin(signs, signs[:, 0]), largest_margin(signs, signs.prod(1))
    (1.0, 0.0)
    """
    count, d = x.shape
    above = np.concatenate([-y[:, None] * x, -y[:, None], np.ones((count, 1))], axis=1)
    ends = [(-1.0, 1.0)] * (d + 1) + [(0.0, None)]
    found = optimize.linprog(np.append(np.zeros(d + 1), -1.0), above, np.zeros(count), bounds=ends)
    return abs(round(float(found.fun), 12))


# --- Section 2 ------------------------------------------------------------------------------------------------------


@claim(
    "daniely2020.distribution",
    where="Section 2",
    kind="exact",
    title="Properties of the leaky parity distribution",
    statement="""Labels are balanced; each relevant bit has correlation 1/2 with the label, irrelevant bits none; the
    equal-bits half is linearly separable, the uniform half is not.""",
    published="E[y]=0, 1/2 for j in A, 0 otherwise; majority of A gives the D2 half right (computed here)",
)
class Distribution(Trial):
    """Moments of D_A by enumeration, its sampler against it, and what a linear classifier makes of its halves."""

    n = size(15)
    k = size([3, 5, 7])
    samples = size(10**6)
    fitted = size(10**5, label="samples of the linear classifier")
    balanced = at_most("|E y|, k = {k}", 1e-12)
    relevant = at_most("|E y sqrt(n) x_j - 1/2|, j in A, k = {k}", 1e-12)
    irrelevant = at_most("|E y sqrt(n) x_j|, j not in A, k = {k}", 1e-12)
    separable = at_least("share of the equal-bits half that majority gets right, k = {k}", 1)
    inseparable = at_most("largest margin of a linear classifier on the uniform half, k = {k}", 1e-9)

    def work(self, lab: Lab) -> list[Arrays]:
        return lab.compute_each(sampled, [{"n": self.n, "k": k, "samples": self.samples, "fitted": self.fitted}
                                          for k in self.k])

    def rows(self, got: list[Arrays]) -> list[Row]:
        """The correlation of every bit with the label, exactly and as sampled."""
        rows: list[Row] = []
        for k, arrays in zip(self.k, got, strict=True):
            exact, p_value = Moments.of(self.n, k).correlations, self.p_value(k, arrays)
            rows += [{"k": k, "bit": j, "exact": float(exact[j]), "sampled": float(arrays["correlations"][j]),
                      "p-value": p_value} for j in range(self.n)]
        return rows

    def p_value(self, k: int, arrays: Arrays) -> float:
        expected = self.samples * (0.5 / 2**k + 0.25 * (np.abs(cube(k).sum(1)) == k))
        return float(stats.chisquare(arrays["counts"], expected).pvalue)

    def judge(self, got: list[Arrays]) -> Findings:
        checks, numbers = [], {}
        for k, arrays in zip(self.k, got, strict=True):
            exact, signs = Moments.of(self.n, k), cube(k)
            checks += [self.balanced(abs(exact.label), k=k),
                       self.relevant(float(np.abs(exact.correlations[:k] - 0.5).max()), k=k),
                       self.irrelevant(float(np.abs(exact.correlations[k:]).max()), k=k),
                       self.separable(exact.majority, k=k),
                       self.inseparable(largest_margin(signs, signs.prod(1)), k=k)]
            numbers[f"chi-square p-value of the sampler's relevant bits, k = {k}"] = self.p_value(k, arrays)
        return Findings(checks, self.rows(got), numbers)

    def draw(self, got: list[Arrays]) -> plots.Figure:
        return draw_correlations(self.rows(got))


@dataclass(frozen=True)
class Moments:
    """Means under D_A: of the label, of the label times each bit, and how often majority is right where bits agree."""

    label: float
    correlations: Floats
    majority: float

    @classmethod
    def of(cls, n: int, k: int) -> Moments:
        s = cube(n)
        y, equal = s[:, :k].prod(1), np.abs(s[:, :k].sum(1)) == k
        law = 0.5 / 2**n + 0.5 * equal / equal.sum()
        majority = float(np.mean(np.sign(s[equal, :k].sum(1)) == y[equal]))
        return cls(float(law @ y), law @ (y[:, None] * s), majority)


@computation
def sampled(seed: int, n: int, k: int, samples: int, fitted: int) -> dict[str, Any]:
    """How often the sampler draws each pattern on A, its correlations, and errors of a fitted linear classifier."""
    x, labels = drawn(n, k, samples, seed)
    counts = np.bincount(((x[:, :k] < 0) @ (1 << np.arange(k))).astype(int), minlength=2**k)
    wrong = np.sign(x[:fitted] @ logistic(x[:fitted], labels[:fitted])) != labels[:fitted]
    same = np.abs(x[:fitted, :k].sum(1)) == k
    return {"counts": counts, "correlations": [np.mean(labels * x[:, j]) for j in range(n)],
            "error": wrong.mean(), "unequal_error": wrong[~same].mean()}


def drawn(n: int, k: int, count: int, seed: int) -> tuple[Floats, Floats]:
    """Inputs and labels as the engines draw them."""
    problem = LeakyParity(n, k)
    words = problem.draw(jax.random.key(seed), count)
    return np.asarray(problem.signs(words, problem.mask)), np.asarray(problem.labels(words, problem.mask))


def logistic(x: Floats, y: Floats, ridge: float = 1e-6) -> Floats:
    """The weights of a logistic regression of labels y on inputs x, without an intercept."""

    def cost(w: Floats) -> tuple[float, Floats]:
        margin = y * (x @ w)
        slope = -y / (1 + np.exp(np.clip(margin, -50, 50)))
        return float(np.logaddexp(0, -margin).mean() + ridge * w @ w), x.T @ slope / len(y) + 2 * ridge * w

    return optimize.minimize(cost, np.zeros(x.shape[1]), jac=True, method="L-BFGS-B").x


@plots.styled
def draw_correlations(data: Sequence[Row]) -> plots.Figure:
    """E[y s_j] of every bit, exactly and of the sampler."""
    figure = plots.blank(2.2)
    axes = figure.add_subplot(xlabel="bit j", ylabel="$E[y \\sqrt{n} x_j]$", ylim=(-0.05, 0.62))
    for k, colour, marker in zip(sorted({row["k"] for row in data}), plots.COLOURS, "osD", strict=False):
        rows = [row for row in data if row["k"] == k]
        axes.plot([row["bit"] + 1 for row in rows], [row["sampled"] for row in rows], marker, color=colour,
                  fillstyle="none", markersize=4, label=f"k = {k}")
        axes.step([row["bit"] + 1 for row in rows], [row["exact"] for row in rows], where="mid", color=colour,
                  linewidth=0.8)
    figure.legend(*axes.get_legend_handles_labels(), loc="outside upper center", ncols=3,
                  title="line: exact, marks: sampler", title_fontsize=7)
    return figure


# --- Theorem 1 --------------------------------------------------------------------------------------------------------

IDENTITY, SEARCH, EXPONENTIAL = "Forster's bound, an identity", "embeddings searched for", "2^Omega(k) at n = 2k"


def needed(n: int, k: int) -> int:
    """The dimensions that Forster's bound asks for.

    >>> needed(6, 3)
    5
    """
    return math.isqrt(math.comb(n, k) - 1) + 1


@computation
def best_margins(seed: int, n: int, k: int, dimensions: int, starts: int) -> dict[str, Any]:
    """From several starts, the smallest product of a parity's value with what an embedding makes of it."""
    s = cube(n)
    values = np.stack([s[:, list(chosen)].prod(1) for chosen in itertools.combinations(range(n), k)], axis=1)
    return {"margins": [best_margin(values, dimensions, rng(seed, n, k, start)) for start in range(starts)]}


def best_margin(values: Floats, dimensions: int, generator: np.random.Generator) -> float:
    """Of inputs (rows) and weights (columns) in so many dimensions, found by descent on the squared hinge loss.

    >>> best_margin(np.ones((2, 2)), 1, np.random.default_rng(0)) > 0
    True
    """
    inputs, weights = values.shape
    cut = inputs * dimensions

    def parts(flat: Floats) -> tuple[Floats, Floats]:
        return flat[:cut].reshape(inputs, dimensions), flat[cut:].reshape(weights, dimensions)

    def cost(flat: Floats) -> tuple[float, Floats]:
        left, right = parts(flat)
        short = np.maximum(1 - values * (left @ right.T), 0)
        pull = -2 * short * values
        return float((short**2).sum()), np.concatenate([(pull @ right).ravel(), (pull.T @ left).ravel()])

    start = generator.standard_normal((inputs + weights) * dimensions) / math.sqrt(dimensions)
    left, right = parts(optimize.minimize(cost, start, jac=True, method="L-BFGS-B", options={"maxiter": 400}).x)
    return float((values * (left @ right.T)).min())


# --- Theorem 1 ------------------------------------------------------------------------------------------------------


@claim(
    "daniely2020.thm1-forster",
    where="Theorem 1",
    kind="theory",
    title="Sign-rank lower bound 2^Omega(k)",
    statement="Any embedding that realises all k-subset parities exactly must have exponential dimension in k.",
    published="N = 2^Omega(k) (Theorem 1); all parities need 2^(n/2), those of size k sqrt(C(n,k)) (computed here)",
)
class Thm1Forster(Trial):
    """Forster's bound sqrt(rows columns) / norm of the matrix of all parities of size k on all inputs."""

    n = size(quick=[6, 7, 8, 9, 10], full=[6, 7, 8, 9, 10, 11, 12])
    k = size([3, 5])
    searched = size(quick=[[5, 3], [6, 3]], full=[[5, 3], [6, 3], [7, 3], [7, 5], [8, 3]], label="n, k of the search")
    starts = size(quick=3, full=10, label="starts of the search")
    largest = size(101, label="largest k at n = 2k")
    equal = at_most("|bound - sqrt(number of parities)|, n = {n}, {parities}", 1e-6, exact=True, part=IDENTITY)
    none = at_most("largest margin of an embedding in {dimensions} dimensions, n = {n}, k = {k}", 0, exact=True,
                   part=SEARCH)
    grows = at_least("least log2(dimension needed) / k, {kind} embeddings, k = 3 to {k}", "the exponent", exact=True,
                     part=EXPONENTIAL)

    def classes(self, n: int) -> dict[str, list[int]]:
        """The degrees of the parities in each class."""
        return {f"k = {k}": [k] for k in self.k} | {"all parities": list(range(n + 1))}

    def work(self, lab: Lab) -> tuple[list[Arrays], list[Arrays]]:
        norms = [{"n": n, "degrees": degrees} for n in self.n for degrees in self.classes(n).values()]
        asked = [{"n": n, "k": k, "dimensions": needed(n, k) - 1, "starts": self.starts} for n, k in self.searched]
        return lab.compute_each(spectral_norm, norms), lab.compute_each(best_margins, asked)

    def rows(self, got: list[Arrays]) -> list[Row]:
        asked = [(n, name, degrees) for n in self.n for name, degrees in self.classes(n).items()]
        rows: list[Row] = []
        for (n, name, degrees), arrays in zip(asked, got, strict=True):
            parities, norm = sum(math.comb(n, k) for k in degrees), float(arrays["norm"])
            rows.append({"n": n, "class": name, "parities": parities, "norm": norm,
                         "bound": math.sqrt(2**n * parities) / norm, "exact": math.sqrt(parities)})
        return rows

    def judge(self, got: tuple[list[Arrays], list[Arrays]]) -> Findings:
        rows = self.rows(got[0])
        checks = [self.equal(abs(row["bound"] - row["exact"]), n=row["n"], parities=row["class"]) for row in rows]
        checks += [self.none(float(arrays["margins"].max()), dimensions=needed(n, k) - 1, n=n, k=k)
                   for (n, k), arrays in zip(self.searched, got[1], strict=True)]
        degrees = range(3, self.largest + 1, 2)
        for kind, power in (("fixed", 1 / 2), ("random", 1 / 3)):
            least = min(power * math.log2(math.comb(2 * k, k)) / k for k in degrees)
            checks.append(self.grows(least, low=power, kind=kind, k=self.largest))
        return Findings(checks, rows)

    def draw(self, got: tuple[list[Arrays], list[Arrays]]) -> plots.Figure:
        rows = self.rows(got[0])
        by_class = {name: [row for row in rows if row["class"] == name] for name in self.classes(self.n[0])}
        curves = {name: Series(self.n, [row["bound"] for row in part]) for name, part in by_class.items()}
        laws = {"_" * i + "square root of their number": (self.n, [row["exact"] for row in part])
                for i, part in enumerate(by_class.values())}
        figure = plots.scaling_plot(curves, "input bits n", "dimension needed (Forster)", laws, log="y")
        figure.axes[0].set_xticks(self.n)
        return figure


@computation
def spectral_norm(seed: int, n: int, degrees: list[int]) -> dict[str, Any]:
    """The norm of the matrix of all parities of these degrees on all inputs."""
    s = cube(n)
    matrix = np.stack([s[:, list(a)].prod(1) for k in degrees for a in itertools.combinations(range(n), k)], axis=1)
    return {"norm": math.sqrt(float(np.linalg.eigvalsh(matrix.T @ matrix)[-1]))}


# --- Theorem 11 -----------------------------------------------------------------------------------------------------


@claim(
    "daniely2020.thm11-ogd",
    where="Theorem 11",
    kind="theory",
    title="Online gradient descent regret with non-zero start",
    statement="""(1/T) sum f_t(theta_t) <= (1/T) sum f_t(theta*) + ||theta*||^2/(2 eta T) + ||theta_1|| mean||grad||
    + eta mean||grad||^2 for convex f_t.""",
    published="an inequality (Theorem 11)",
)
class Thm11Ogd(Trial):
    """Both sides of the regret bound for online descent on random hinge losses in dimension 20."""

    repetitions = size(100)

    excess = at_most("largest excess of the mean loss over the bound, all comparators", 1e-10, exact=True)

    points = tuple(itertools.product((10, 100, 1000), (0.01, 0.1, 1.0)))

    def work(self, lab: Lab) -> list[Arrays]:
        return lab.compute_each(descents, [{"steps": steps, "rate": rate, "repetitions": self.repetitions}
                                           for steps, rate in self.points])

    def rows(self, got: list[Arrays]) -> list[Row]:
        return [{"T": steps, "rate": rate, "repetition": repetition, "mean loss": float(arrays["loss"][repetition]),
                 "smallest bound": float(arrays["bound"][repetition]),
                 "largest violation": float(arrays["excess"][repetition])}
                for (steps, rate), arrays in zip(self.points, got, strict=True)
                for repetition in range(self.repetitions)]

    def judge(self, got: list[Arrays]) -> Findings:
        rows = self.rows(got)
        return Findings([self.excess(max(row["largest violation"] for row in rows))], rows)

    def draw(self, got: list[Arrays]) -> plots.Figure:
        return draw_regret(self.rows(got))


@computation
def descents(seed: int, steps: int, rate: float, repetitions: int) -> dict[str, Any]:
    """Of each repetition the mean loss, the smallest bound over comparators, and the largest excess over a bound."""
    d, comparators = 20, 50
    loss, bound, excess = np.empty(repetitions), np.empty(repetitions), np.empty(repetitions)
    for repetition in range(repetitions):
        generator = rng(seed, 11, steps, round(100 * rate), repetition)
        x = generator.standard_normal((steps, d)) * np.sign(generator.standard_normal((steps, 1)))
        first, rivals = generator.standard_normal(d), generator.standard_normal((comparators, d))
        theta, losses, norms = first.copy(), np.empty(steps), np.empty(steps)
        for t in range(steps):
            margin = float(x[t] @ theta)
            losses[t] = max(0.0, 1 - margin)
            gradient = -x[t] * (margin < 1)
            norms[t] = np.linalg.norm(gradient)
            theta = theta - rate * gradient
        theirs = np.maximum(0, 1 - x @ rivals.T).mean(0)
        allowed = theirs + (rivals**2).sum(1) / (2 * rate * steps) + np.linalg.norm(first) * norms.mean() \
            + rate * (norms**2).mean()
        loss[repetition], bound[repetition] = losses.mean(), allowed.min()
        excess[repetition] = (losses.mean() - allowed).max()
    return {"loss": loss, "bound": bound, "excess": excess}


@plots.styled
def draw_regret(data: Sequence[Row]) -> plots.Figure:
    """The mean loss of each sequence against the smallest bound over comparators: all lie below the diagonal."""
    figure = plots.blank(2.6)
    axes = figure.add_subplot(xlabel="smallest bound over comparators", ylabel="mean loss of descent", xscale="log",
                              yscale="log")
    for rate, colour, marker in zip((0.01, 0.1, 1.0), plots.COLOURS, "osD", strict=False):
        rows = [row for row in data if row["rate"] == rate]
        axes.plot([row["smallest bound"] for row in rows], [max(row["mean loss"], 1e-2) for row in rows], marker,
                  color=colour, fillstyle="none", markersize=3, label=f"$\\eta$ = {rate:g}")
    ends = [1.0, max(row["smallest bound"] for row in data)]
    axes.plot(ends, ends, color=plots.GREY, linestyle="dotted", label="equal")
    figure.legend(*axes.get_legend_handles_labels(), loc="outside upper center", ncols=4, columnspacing=1)
    return figure
