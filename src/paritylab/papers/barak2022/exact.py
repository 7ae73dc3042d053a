"""Exact statements by enumeration: Lemmas 1 and 2, label noise (C.6), quadratic units (C.7)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from paritylab import plots
from paritylab.claims.lab import Lab
from paritylab.claims.registry import reproduces
from paritylab.claims.verdicts import Outcome, at_least, at_most
from paritylab.measures.fourier import cube, fourier_coefficients, majority_coefficient
from paritylab.measures.gap import largest_gap
from paritylab.papers.barak2022.common import Floats
from paritylab.papers.barak2022.fourier import share, signs
from paritylab.plots import Series
from paritylab.theory.majority import coefficient_ratio, level_weight, sign_gradient

# --- majority ---------------------------------------------------------------------------------------------------


@reproduces("barak2022.lemma1-majority")
def majority_spectrum(lab: Lab) -> Outcome:
    """The closed form against enumeration, the weights of its levels, and the ratio of consecutive coefficients."""
    small = lab.pick("n enumerated", quick=[5, 7, 9, 11, 13], full=[5, 7, 9, 11, 13])
    large = lab.pick("n of the weights", quick=[101, 1001], full=[101, 1001])
    deviation, ratio = 0.0, 0.0
    for n in small:
        found = fourier_coefficients(lambda x: np.sign(x.sum(1)), n)
        size = np.bitwise_count(np.arange(2**n))
        closed = np.array([majority_coefficient(n, k) for k in range(n + 1)])
        deviation = max(deviation, float(np.abs(found - closed[size]).max()))
    for n in (*small, *large):
        xi = [abs(majority_coefficient(n, k)) for k in range(n + 1)]
        ratio = max(ratio, *(abs(xi[k + 1] / xi[k - 1] - coefficient_ratio(n, k)) for k in range(2, n, 2)))
    data = [{"n": n, "k": k, "weight": level_weight(n, k)} for n in large for k in range(1, n, 2) if n >= 2 * k**2]
    scaled = [row["k"] ** 1.5 * row["weight"] for row in data]
    printed = [row["k"] ** (2 / 3) * row["weight"] for row in data]
    checks = [
        at_most("closed form - enumeration, largest difference", deviation, 1e-14),
        at_least("smallest k^(3/2) C(n, k) xi_k^2", min(scaled), 0.5),
        at_most("largest k^(3/2) C(n, k) xi_k^2", max(scaled), 0.66),
        at_most("|xi_(k+1) / xi_(k-1)| - (k - 1)/(n - k), largest difference", ratio, 1e-12),
    ]
    figure = draw_weights(data, scaled, printed)
    return Outcome(checks, data, figure, {"smallest k^(2/3) C(n, k) xi_k^2, as printed": min(printed)})


def draw_weights(data: Sequence[Mapping[str, Any]], scaled: Sequence[float], printed: Sequence[float]) -> Any:
    """The scaled weights against k beside their limit, and those with the printed exponent."""
    series, laws = {}, {}
    for n in sorted({row["n"] for row in data}):
        places = [i for i, row in enumerate(data) if row["n"] == n]
        degrees = [data[i]["k"] for i in places]
        series[f"n = {n}"] = Series(degrees, [scaled[i] for i in places])
        laws = {"$(2/\\pi)^{3/2}$": ([degrees[0], degrees[-1]], [(2 / math.pi) ** 1.5] * 2),
                f"with $k^{{2/3}}$, n = {n}": (degrees, [printed[i] for i in places])}
    figure = plots.scaling_plot(series, "degree k", "$k^{3/2} \\binom{n}{k} \\xi_k^2$", laws, log="")
    figure.axes[0].set_xticks(range(1, max(row["k"] for row in data) + 1, 4))
    return figure


@reproduces("barak2022.lemma2-gradients")
def gradients_at_signs(lab: Lab) -> Outcome:
    """The hinge loss's gradient by enumeration at f = 0 and sign weights, against the closed form."""
    sizes = lab.pick("n", quick=[7, 9, 11, 13], full=[7, 9, 11, 13])
    draws = lab.pick("draws", quick=50, full=50)
    rng, data = lab.rng(2), []
    for n, k in itertools.product(sizes, (2, 4)):
        x = cube(n)
        y = x[:, :k].prod(1)
        w, u, b = signs(rng, draws, n), signs(rng, draws), rng.uniform(-1, 1, draws)
        by_weights, by_bias = zip(*(hinge_gradient(x, y, *neuron) for neuron in zip(w, b, u, strict=True)), strict=True)
        by_weights = np.array(by_weights)
        data.append({
            "n": n, "k": k, "draws": draws, "bias gradient": float(np.abs(by_bias).max()),
            "deviation": float(np.abs(by_weights - sign_gradient(w, u, range(k))).max()),
            "relevant": float(np.abs(by_weights[:, :k]).max()), "irrelevant": float(np.abs(by_weights[:, k:]).max()),
        })
    checks = [at_most("weight gradients, largest deviation", max(row["deviation"] for row in data), 1e-14),
              at_most("bias gradients, largest size", max(row["bias gradient"] for row in data), 1e-14)]
    series, laws = {}, {}
    for k, (part, step) in itertools.product((2, 4), (("relevant", -1), ("irrelevant", 1))):
        series[f"{part}, k = {k}"] = Series(sizes, [row[part] for row in data if row["k"] == k])
        law = [abs(majority_coefficient(n, k + step)) / 2 for n in sizes]
        laws["_" * len(laws) + "$|\\xi|/2$"] = (sizes, law)
    return Outcome(checks, data, plots.scaling_plot(series, "input bits n", "$|g_{ij}|$", laws, log="y"))


def hinge_gradient(x: Floats, y: Floats, w: Floats, b: float, u: float) -> tuple[Floats, float]:
    """The gradient of E max(0, 1 - y f) by w and b of u relu(w.x + b), beside a frozen twin that makes f = 0."""
    z = x @ w + b
    f = u * np.maximum(z, 0) - u * np.maximum(z, 0)
    by_unit = np.where(y * f < 1, -y, 0.0) * u * (z > 0)
    return by_unit @ x / len(x), float(by_unit.mean())


# --- C.6 and C.7 ------------------------------------------------------------------------------------------------


@reproduces("barak2022.c6-noise-scaling")
def noise_scales_gradients(lab: Lab) -> Outcome:
    """E y df/dw over inputs and flips, against (1 - 2p) times that without flips."""
    n = lab.pick("n", quick=11, full=11)
    draws = lab.pick("draws", quick=100, full=100)
    noises = (0.0, 0.1, 0.3, 0.49)
    x, rng, data = cube(n), lab.rng(6), []
    for k, unit, _ in itertools.product((2, 3, 4), UNITS, range(draws)):
        y, slopes = x[:, :k].prod(1), UNITS[unit](rng, x, k)
        clean = y @ slopes / len(x)
        for p in noises:
            noisy = np.concatenate([(1 - p) * y, -p * y]) @ np.concatenate([slopes, slopes]) / len(x)
            before, after = (largest_gap(g.reshape(-1, n), range(k))[0] for g in (clean, noisy))
            data.append({"k": k, "unit": unit, "p": p, "deviation": float(np.abs(noisy - (1 - 2 * p) * clean).max()),
                         "largest": float(np.abs(clean).max()), "gap": float(before), "noisy gap": float(after)})
    checks = [at_most("|noisy - (1 - 2p) clean|, largest over units, k, p and draws",
                      max(row["deviation"] for row in data), 1e-12)]
    sizes = {(unit, p): np.sum([abs(row["noisy gap"]) for row in data if (row["unit"], row["p"]) == (unit, p)])
             for unit in UNITS for p in noises}
    series = {unit: Series(noises, [sizes[unit, p] / sizes[unit, 0.0] for p in noises]) for unit in UNITS}
    figure = plots.scaling_plot(series, "fraction of labels flipped, p", "mean |gap| / same without flips",
                                {"1 - 2p": ([0, 0.5], [1, 0])}, log="")
    numbers = {"median largest coordinate without flips": float(np.median([row["largest"] for row in data]))}
    return Outcome(checks, data, figure, numbers)


def torch_law(rng: np.random.Generator, fan_in: int, *shape: int) -> Floats:
    return rng.uniform(-1, 1, shape) / math.sqrt(fan_in)


def relu_slopes(rng: np.random.Generator, x: Floats, k: int) -> Floats:
    n = x.shape[1]
    return x * (x @ torch_law(rng, n, n, 1) + torch_law(rng, n, 1) > 0)


def sinusoid_slopes(rng: np.random.Generator, x: Floats, k: int) -> Floats:
    n = x.shape[1]
    return x * -math.pi / 2 * np.sin(math.pi / 2 * (x @ torch_law(rng, n, n, 1) + torch_law(rng, n, 1) - k))


def polynet_slopes(rng: np.random.Generator, x: Floats, k: int) -> Floats:
    n = x.shape[1]
    z = x @ torch_law(rng, n, n, k) + torch_law(rng, n, k)
    return np.concatenate([x * np.delete(z, factor, 1).prod(1, keepdims=True) for factor in range(k)], axis=1)


UNITS = {"ReLU": relu_slopes, "sinusoid": sinusoid_slopes, "PolyNet": polynet_slopes}
"""df/dw at all inputs (rows) of a unit for degree k, with weights and biases from the law of the networks."""


@reproduces("barak2022.c7-zero-gradient")
def depth_makes_gradients(lab: Lab) -> Outcome:
    """Population gradients of one quadratic unit, and of the first layer of two, for degrees above 2."""
    draws = lab.pick("draws", quick=100, full=100)
    x, rng, data = cube(9), lab.rng(7), []
    for k, draw in itertools.product((3, 4), range(draws)):
        y = x[:, :k].prod(1)
        single = (-y * 2 * (x @ torch_law(rng, 9, 9) + torch_law(rng, 9, 1))) @ x / len(x)
        data.append({"k": k, "draw": draw, "single, largest": float(np.abs(single).max()),
                     "stacked, norm": float(np.sqrt(np.sum(stacked_gradient(rng, x, y) ** 2)))})
    checks = [at_most("single unit, largest coordinate", max(row["single, largest"] for row in data), 1e-12)]
    for k in (3, 4):
        value, interval = share([row["stacked, norm"] > 1e-3 for row in data if row["k"] == k])
        checks.append(at_least(f"share of stacks with a gradient norm > 0.001, k = {k}", value, 0.95, interval))
    return Outcome(checks, data, gradient_sizes(data))


def stacked_gradient(rng: np.random.Generator, x: Floats, y: Floats, width: int = 4) -> Floats:
    """The gradient by W1 of -E y f for f = u.(W2 (W1 x + b1)^2 + b2)^2 at random weights: (inputs, units)."""
    n = x.shape[1]
    z = x @ torch_law(rng, n, n, width) + torch_law(rng, n, width)
    second, u = torch_law(rng, width, width, width), torch_law(rng, width, width)
    above = 2 * (z**2 @ second + torch_law(rng, width, width)) * u
    return -x.T @ (y[:, None] * (above @ second.T) * 2 * z) / len(x)


@plots.styled
def gradient_sizes(data: Sequence[Mapping[str, Any]]) -> Any:
    """The share of draws with at most this size; zeros at the left end."""
    figure = plots.blank(2.2)
    axes = figure.add_subplot(xscale="log", xlabel="size of the gradient", ylabel="share of draws", ylim=(0, 1.02))
    for (name, k), colour, line in zip(itertools.product(("single, largest", "stacked, norm"), (3, 4)), plots.COLOURS,
                                       plots.LINES, strict=False):
        sizes = np.sort([max(row[name], 1e-20) for row in data if row["k"] == k])
        axes.step(sizes, np.arange(1, len(sizes) + 1) / len(sizes), where="post", color=colour, linestyle=line,
                  label=f"{name.split(',')[0]}, k = {k}")
    for bound in (1e-12, 1e-3):
        axes.axvline(bound, color=plots.GREY, linestyle="dotted", linewidth=0.8)
    figure.legend(*axes.get_legend_handles_labels(), loc="outside upper center", ncols=2)
    return figure
