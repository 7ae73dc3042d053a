"""Exact statements by enumeration: Lemmas 1 and 2, label noise (C.6), quadratic units (C.7)."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from barak2022.disjoint_flow import slope
from barak2022.fourier import signs
from paritylab import plots
from paritylab.aliases import Floats
from paritylab.claims import Findings, Lab, Trial, at_least, at_most, between, claim, size
from paritylab.claims.intervals import share
from paritylab.measures.fourier import cube, fourier_coefficients, majority_coefficient
from paritylab.measures.gap import largest_gap
from paritylab.plots import Series
from paritylab.theory.majority import coefficient_ratio, level_weight, sign_gradient


class Enumerated(Trial):
    """A trial that needs neither runs nor long computations."""

    def work(self, lab: Lab) -> None:
        return None


# --- majority ---------------------------------------------------------------------------------------------------


@claim(
    "barak2022.lemma1-majority",
    where="Lemma 1; Equation (5)",
    kind="exact",
    title="Fourier coefficients of majority",
    statement="""For odd n and |S|=k: zero for even k; for odd k, (-1)^((k-1)/2) C((n-1)/2,(k-1)/2)/C(n-1,k-1) * 2^(1-n)
    C(n-1,(n-1)/2). The level weight C(n,k) xi_k^2 is of order k^(-3/2), and |xi_{k+1}/xi_{k-1}| = (k-1)/(n-k).""",
    published="""C(n, k) MAJ(S)^2 of order k^(-2/3) for odd k, 0 for even k (Lemma 1); C(n, k) xi_k^2 k^(3/2) lies
    between 0.51 = (2/pi)^1.5 and 0.64 (computed here).""",
)
class Lemma1Majority(Enumerated):
    """The closed form against enumeration, the weights of its levels, and the ratio of consecutive coefficients."""

    small = size([5, 7, 9, 11, 13], label="n enumerated")
    large = size([101, 1001], label="n of the weights")
    exponents = size(20_001, label="n of the exponent")
    closed_form = at_most("closed form - enumeration, largest difference", 1e-14, part="coefficients and their ratio")
    consecutive = at_most("|xi_(k+1) / xi_(k-1)| - (k - 1)/(n - k), largest difference", 1e-12,
                          part="coefficients and their ratio")
    printed = between("exponent of C(n, k) xi_k^2 in k, printed -2/3", -2 / 3 - 0.1, -2 / 3 + 0.1,
                      part="exponent -2/3 as printed")
    corrected = between("exponent of C(n, k) xi_k^2 in k, corrected -3/2", -1.6, -1.4,
                        part="exponent -3/2, corrected")

    def judge(self, got: None) -> Findings:
        deviation, ratio = 0.0, 0.0
        for n in self.small:
            found = fourier_coefficients(lambda x: np.sign(x.sum(1)), n)
            sizes = np.bitwise_count(np.arange(2**n))
            closed = np.array([majority_coefficient(n, k) for k in range(n + 1)])
            deviation = max(deviation, float(np.abs(found - closed[sizes]).max()))
        for n in (*self.small, *self.large):
            xi = [abs(majority_coefficient(n, k)) for k in range(n + 1)]
            ratio = max(ratio, *(abs(xi[k + 1] / xi[k - 1] - coefficient_ratio(n, k)) for k in range(2, n, 2)))
        degrees = range(25, math.isqrt(self.exponents // 2) + 1, 2)
        exponent = slope([float(k) for k in degrees], [level_weight(self.exponents, k) for k in degrees])
        checks = [self.closed_form(deviation), self.consecutive(ratio), self.printed(exponent),
                  self.corrected(exponent)]
        smallest = min(scaled_weights(self.weights, 2 / 3))
        return Findings(checks, self.weights, {"smallest k^(2/3) C(n, k) xi_k^2, as printed": smallest})

    @functools.cached_property
    def weights(self) -> list[dict[str, Any]]:
        return [{"n": n, "k": k, "weight": level_weight(n, k)}
                for n in self.large for k in range(1, n, 2) if n >= 2 * k**2]

    def draw(self, got: None) -> plots.Figure:
        return draw_weights(self.weights)


def scaled_weights(rows: Sequence[Mapping[str, Any]], power: float) -> list[float]:
    return [row["k"] ** power * row["weight"] for row in rows]


def draw_weights(rows: Sequence[Mapping[str, Any]]) -> plots.Figure:
    """The scaled weights against k beside their limit, and those with the printed exponent."""
    series, laws = {}, {}
    for n in sorted({row["n"] for row in rows}):
        shown = [row for row in rows if row["n"] == n]
        degrees = [row["k"] for row in shown]
        series[f"n = {n}"] = Series(degrees, scaled_weights(shown, 1.5))
        laws = {"$(2/\\pi)^{3/2}$": ([degrees[0], degrees[-1]], [(2 / math.pi) ** 1.5] * 2),
                f"with $k^{{2/3}}$, n = {n}": (degrees, scaled_weights(shown, 2 / 3))}
    figure = plots.scaling_plot(series, "degree k", "$k^{3/2} \\binom{n}{k} \\xi_k^2$", laws, log="")
    figure.axes[0].set_xticks(range(1, max(row["k"] for row in rows) + 1, 4))
    return figure


@claim(
    "barak2022.lemma2-gradients",
    where="Lemma 2; Equation (4)",
    kind="exact",
    title="Exact population gradients at sign initialisation",
    statement="""At f=0 with hinge loss and |b|<1, n odd, k even: g_{i,j} = -(1/2) u xi_{k-1} chi_{S minus j}(w) for j
    in S, -(1/2) u xi_{k+1} chi_{S plus j}(w) for j outside S, and the bias gradient is 0.""",
    published="The three equalities of Lemma 2.",
)
class Lemma2Gradients(Enumerated):
    """The hinge loss's gradient by enumeration at f = 0 and sign weights, against the closed form."""

    n = size([7, 9, 11, 13])
    draws = size(50)

    by_weights = at_most("weight gradients, largest deviation", 1e-14)
    by_bias = at_most("bias gradients, largest size", 1e-14)

    @functools.cached_property
    def rows(self) -> list[dict[str, Any]]:
        generator, rows = self.rng(2), []
        for n, k in itertools.product(self.n, (2, 4)):
            x = cube(n)
            y = x[:, :k].prod(1)
            w, u = signs(generator, self.draws, n), signs(generator, self.draws)
            b = generator.uniform(-1, 1, self.draws)
            found = [hinge_gradient(x, y, *neuron) for neuron in zip(w, b, u, strict=True)]
            by_weights, by_bias = (np.array(part) for part in zip(*found, strict=True))
            rows.append({
                "n": n, "k": k, "draws": self.draws, "bias gradient": float(np.abs(by_bias).max()),
                "deviation": float(np.abs(by_weights - sign_gradient(w, u, range(k))).max()),
                "relevant": float(np.abs(by_weights[:, :k]).max()),
                "irrelevant": float(np.abs(by_weights[:, k:]).max()),
            })
        return rows

    def judge(self, got: None) -> Findings:
        checks = [self.by_weights(max(row["deviation"] for row in self.rows)),
                  self.by_bias(max(row["bias gradient"] for row in self.rows))]
        return Findings(checks, self.rows)

    def draw(self, got: None) -> plots.Figure:
        series, laws = {}, {}
        for k, (part, step) in itertools.product((2, 4), (("relevant", -1), ("irrelevant", 1))):
            series[f"{part}, k = {k}"] = Series(self.n, [row[part] for row in self.rows if row["k"] == k])
            law = [abs(majority_coefficient(n, k + step)) / 2 for n in self.n]
            laws["_" * len(laws) + "$|\\xi|/2$"] = (self.n, law)
        return plots.scaling_plot(series, "input bits n", "$|g_{ij}|$", laws, log="y")


def hinge_gradient(x: Floats, y: Floats, w: Floats, b: float, u: float) -> tuple[Floats, float]:
    """The gradient of E max(0, 1 - y f) by w and b of u relu(w.x + b), beside a frozen twin that makes f = 0."""
    z = x @ w + b
    f = u * np.maximum(z, 0) - u * np.maximum(z, 0)
    by_unit = np.where(y * f < 1, -y, 0.0) * u * (z > 0)
    return by_unit @ x / len(x), float(by_unit.mean())


# --- C.6 and C.7 ------------------------------------------------------------------------------------------------

NOISES = (0.0, 0.1, 0.3, 0.49)


@claim(
    "barak2022.c6-noise-scaling",
    where="Appendix C.6, noisy-parity equation",
    kind="exact",
    title="Label noise multiplies every population correlation by 1-2p",
    statement="""With labels flipped with probability p the population gradient of the correlation loss is the clean one
    times (1-2p), so a gap gamma becomes (1-2p) gamma.""",
    published="""E[y f(x)] is multiplied by epsilon (Appendix C.6), with labels flipped at rate 1/2 - epsilon (text) or
    epsilon = 1 - 2p (Figure 16, caption); the factor is 1 - 2p (computed here).""",
)
class C6NoiseScaling(Enumerated):
    """E y df/dw over inputs and flips, against (1 - 2p) times that without flips."""

    n = size(11)
    draws = size(100)
    deviation = at_most("|noisy - (1 - 2p) clean|, largest over units, k, p and draws", 1e-12,
                        part="epsilon = 1 - 2p (Figure 16)")
    printed = at_most("|noisy gap / gap - (1/2 - p)|, largest over units, k, p and draws", 1e-12,
                      part="p = 1/2 - epsilon (C.6, as printed)")

    @functools.cached_property
    def rows(self) -> list[dict[str, Any]]:
        x, generator, rows = cube(self.n), self.rng(6), []
        for k, unit, _ in itertools.product((2, 3, 4), UNITS, range(self.draws)):
            y, slopes = x[:, :k].prod(1), UNITS[unit](generator, x, k)
            clean = y @ slopes / len(x)
            for p in NOISES:
                noisy = np.concatenate([(1 - p) * y, -p * y]) @ np.concatenate([slopes, slopes]) / len(x)
                before, after = (largest_gap(g.reshape(-1, self.n), range(k))[0] for g in (clean, noisy))
                rows.append({"k": k, "unit": unit, "p": p,
                             "deviation": float(np.abs(noisy - (1 - 2 * p) * clean).max()),
                             "largest": float(np.abs(clean).max()), "gap": float(before), "noisy gap": float(after)})
        return rows

    def judge(self, got: None) -> Findings:
        off = max(abs(row["noisy gap"] / row["gap"] - (0.5 - row["p"])) for row in self.rows if row["gap"])
        numbers = {"median largest coordinate without flips": float(np.median([row["largest"] for row in self.rows]))}
        checks = [self.deviation(max(row["deviation"] for row in self.rows)), self.printed(off)]
        return Findings(checks, self.rows, numbers)

    def draw(self, got: None) -> plots.Figure:
        sums = {(unit, p): np.sum([abs(row["noisy gap"]) for row in self.rows if (row["unit"], row["p"]) == (unit, p)])
                for unit in UNITS for p in NOISES}
        series = {unit: Series(NOISES, [sums[unit, p] / sums[unit, 0.0] for p in NOISES]) for unit in UNITS}
        return plots.scaling_plot(series, "fraction of labels flipped, p", "mean |gap| / same without flips",
                                  {"1 - 2p": ([0, 0.5], [1, 0])}, log="")


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


@claim(
    "barak2022.c7-zero-gradient",
    where="Appendix C.7, Equation (1)",
    kind="exact",
    title="Layer-wise population gradient of a z^2 layer vanishes for k > 2",
    statement="""The population correlation gradient of a single quadratic neuron with a k-parity is identically zero
    when k > 2, but becomes non-zero once a further quadratic layer sits on top.""",
    published="""'With layer-by-layer training, this gradient contains no information'; 'the presence of downstream
    layers removes this barrier' (Appendix C.7).""",
)
class C7ZeroGradient(Enumerated):
    """Population gradients of one quadratic unit, and of the first layer of two, for degrees above 2."""

    draws = size(100)

    single = at_most("single unit, largest coordinate", 1e-12)
    stacked = at_least("share of stacks with a gradient norm > 0.001, k = {k}", 0.95)

    @functools.cached_property
    def rows(self) -> list[dict[str, Any]]:
        x, generator, rows = cube(9), self.rng(7), []
        for k, draw in itertools.product((3, 4), range(self.draws)):
            y = x[:, :k].prod(1)
            single = (-y * 2 * (x @ torch_law(generator, 9, 9) + torch_law(generator, 9, 1))) @ x / len(x)
            rows.append({"k": k, "draw": draw, "single, largest": float(np.abs(single).max()),
                         "stacked, norm": float(np.sqrt(np.sum(stacked_gradient(generator, x, y) ** 2)))})
        return rows

    def judge(self, got: None) -> Findings:
        checks = [self.single(max(row["single, largest"] for row in self.rows))]
        checks += [self.stacked(*share([row["stacked, norm"] > 1e-3 for row in self.rows if row["k"] == k]), k=k)
                   for k in (3, 4)]
        return Findings(checks, self.rows)

    def draw(self, got: None) -> plots.Figure:
        return gradient_sizes(self.rows)


def stacked_gradient(rng: np.random.Generator, x: Floats, y: Floats, width: int = 4) -> Floats:
    """The gradient by W1 of -E y f for f = u.(W2 (W1 x + b1)^2 + b2)^2 at random weights: (inputs, units)."""
    n = x.shape[1]
    z = x @ torch_law(rng, n, n, width) + torch_law(rng, n, width)
    second, u = torch_law(rng, width, width, width), torch_law(rng, width, width)
    above = 2 * (z**2 @ second + torch_law(rng, width, width)) * u
    return -x.T @ (y[:, None] * (above @ second.T) * 2 * z) / len(x)


@plots.styled
def gradient_sizes(data: Sequence[Mapping[str, Any]]) -> plots.Figure:
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
