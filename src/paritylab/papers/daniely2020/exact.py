"""The distribution, Forster's bound and online gradient descent: Section 2, Theorems 1 and 11."""

from __future__ import annotations

import itertools
import math
from typing import Any

import jax
import numpy as np
import scipy.optimize  # pyright: ignore[reportMissingTypeStubs]
from scipy import stats

from paritylab import LeakyParity, plots
from paritylab.claims.lab import Lab
from paritylab.claims.registry import reproduces
from paritylab.claims.verdicts import Check, Outcome, at_least, at_most
from paritylab.measures.fourier import cube
from paritylab.plots import Series
from paritylab.theory.leaky import Floats

optimize: Any = scipy.optimize

# --- Section 2 ------------------------------------------------------------------------------------------------------


@reproduces("daniely2020.distribution")
def leaky_distribution(lab: Lab) -> Outcome:
    """Moments of D_A by enumeration, its sampler against it, and what a linear classifier makes of its halves."""
    n = lab.pick("n", quick=15, full=15)
    degrees = lab.pick("k", quick=[3, 5, 7], full=[3, 5, 7])
    samples = lab.pick("samples", quick=10**6, full=10**6)
    fitted = lab.pick("samples of the linear classifier", quick=10**5, full=10**5)
    checks: list[Check] = []
    data: list[dict[str, Any]] = []
    numbers: dict[str, float] = {}
    for k in degrees:
        s = cube(n)
        y, equal = s[:, :k].prod(1), np.abs(s[:, :k].sum(1)) == k
        law = 0.5 / 2**n + 0.5 * equal / equal.sum()
        correlations = law @ (y[:, None] * s)
        majority = float(np.mean(np.sign(s[equal, :k].sum(1)) == y[equal]))
        checks += [at_most(f"|E y|, k = {k}", abs(float(law @ y)), 1e-12),
                   at_most(f"|E y sqrt(n) x_j - 1/2|, j in A, k = {k}", float(np.abs(correlations[:k] - 0.5).max()),
                           1e-12),
                   at_most(f"|E y sqrt(n) x_j|, j not in A, k = {k}", float(np.abs(correlations[k:]).max()), 1e-12)]
        x, labels = drawn(n, k, samples, lab.seed)
        counts = np.bincount(((x[:, :k] < 0) @ (1 << np.arange(k))).astype(int), minlength=2**k)
        pattern = cube(k)
        expected = samples * (0.5 / 2**k + 0.25 * (np.abs(pattern.sum(1)) == k))
        p_value = float(stats.chisquare(counts, expected).pvalue)
        checks.append(at_least(f"chi-square p-value of the relevant bits, k = {k}", p_value, 0.001))
        right = np.sign(x[:fitted] @ logistic(x[:fitted], labels[:fitted])) == labels[:fitted]
        same = np.abs(x[:fitted, :k].sum(1)) == k
        numbers |= {f"share of the equal-bits half that majority gets right, k = {k}": majority,
                    f"error of the best linear classifier on D_A, k = {k}": float(1 - right.mean()),
                    f"its error where the bits are not equal, k = {k}": float(1 - right[~same].mean())}
        data += [{"k": k, "bit": j, "exact": float(correlations[j]), "sampled": float(np.mean(labels * x[:, j])),
                  "p-value": p_value} for j in range(n)]
    return Outcome(checks, data, draw_correlations(data), numbers)


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
def draw_correlations(data: list[dict[str, Any]]) -> Any:
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


# --- Theorem 1 ------------------------------------------------------------------------------------------------------


@reproduces("daniely2020.thm1-forster")
def sign_rank(lab: Lab) -> Outcome:
    """Forster's bound sqrt(rows columns) / norm of the matrix of all parities of size k on all inputs."""
    sizes = lab.pick("n", quick=[6, 7, 8, 9, 10], full=[6, 7, 8, 9, 10, 11, 12])
    degrees = lab.pick("k", quick=[3, 5], full=[3, 5])
    checks: list[Check] = []
    data: list[dict[str, Any]] = []
    for n in sizes:
        s = cube(n)
        supports = {f"k = {k}": list(itertools.combinations(range(n), k)) for k in degrees}
        supports["all parities"] = [a for k in range(n + 1) for a in itertools.combinations(range(n), k)]
        for name, chosen in supports.items():
            matrix = np.stack([s[:, list(a)].prod(1) for a in chosen], axis=1)
            norm = math.sqrt(float(np.linalg.eigvalsh(matrix.T @ matrix)[-1]))
            bound, exact = math.sqrt(matrix.size) / norm, math.sqrt(len(chosen))
            checks.append(at_most(f"|bound - sqrt(number of parities)|, n = {n}, {name}", abs(bound - exact), 1e-6))
            data.append({"n": n, "class": name, "parities": len(chosen), "norm": norm, "bound": bound, "exact": exact})
    names = list(dict.fromkeys(row["class"] for row in data))
    curves = {name: Series(sizes, [row["bound"] for row in data if row["class"] == name]) for name in names}
    laws = {"_" * i + "square root of their number": (sizes, [row["exact"] for row in data if row["class"] == name])
            for i, name in enumerate(names)}
    figure = plots.scaling_plot(curves, "input bits n", "dimension needed (Forster)", laws, log="y")
    figure.axes[0].set_xticks(sizes)
    return Outcome(checks, data, figure)


# --- Theorem 11 -----------------------------------------------------------------------------------------------------


@reproduces("daniely2020.thm11-ogd")
def regret(lab: Lab) -> Outcome:
    """Both sides of the regret bound for online descent on random hinge losses in dimension 20."""
    repetitions = lab.pick("repetitions", quick=100, full=100)
    d, comparators = 20, 50
    data: list[dict[str, Any]] = []
    worst = -math.inf
    for steps, rate, repetition in itertools.product((10, 100, 1000), (0.01, 0.1, 1.0), range(repetitions)):
        rng = lab.rng(11, steps, round(100 * rate), repetition)
        x = rng.standard_normal((steps, d)) * np.sign(rng.standard_normal((steps, 1)))
        first, rivals = rng.standard_normal(d), rng.standard_normal((comparators, d))
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
        gap = float((losses.mean() - allowed).max())
        worst = max(worst, gap)
        data.append({"T": steps, "rate": rate, "repetition": repetition, "mean loss": float(losses.mean()),
                     "smallest bound": float(allowed.min()), "largest violation": gap})
    checks = [at_most("largest excess of the mean loss over the bound, all comparators", worst, 1e-10)]
    return Outcome(checks, data, draw_regret(data))


@plots.styled
def draw_regret(data: list[dict[str, Any]]) -> Any:
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
