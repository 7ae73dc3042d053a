"""Noise along the junk flow hardly changes the alignment: Corollaries 1 and 2."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from scipy import stats

from abbe2024.junk import around
from abbe2024.theory.high_degree import claim1, growth_factor
from abbe2024.theory.noisy_gd import threshold_coefficients
from abbe2024.theory.one_step import full_parity
from paritylab import alignment, plots
from paritylab.aliases import Floats
from paritylab.claims import Findings, Lab, Trial, at_most, claim, computation, rng, size
from paritylab.measures.fourier import cube
from paritylab.plots import Series

Rows = Sequence[Mapping[str, Any]]
Kept = list[dict[str, np.ndarray]]
CHUNK = 5000
"""Draws held at once."""


def mean(values: Floats) -> tuple[float, float]:
    """With its standard error."""
    return float(values.mean()), float(values.std(ddof=1)) / math.sqrt(len(values))


def chunks(draws: int) -> Iterator[int]:
    return (min(CHUNK, draws - start) for start in range(0, draws, CHUNK))


def ratio_with_error(above: tuple[float, float], below: tuple[float, float]) -> tuple[float, float]:
    """Of two independent means.

    >>> ratio_with_error((2.0, 0.6), (1.0, 0.4))
    (2.0, 1.0)
    """
    ratio = above[0] / below[0]
    return ratio, ratio * math.hypot(above[1] / above[0], below[1] / below[0])


# --- Corollary 1 --------------------------------------------------------------------------------------------------


SETS = {"ball": (0.0, False), "ball off centre": (3.0, False), "outside of a ball": (0.0, True)}
"""How far the centre of each is off, and whether it is the outside."""


@claim(
    "abbe2024.cor1",
    where="Corollary 1, Equation (6)",
    kind="theory",
    title="Small-noise corollary in terms of the initial alignment only",
    statement="""For tau^2 <= sigma^2 min Var(A)/(P T gamma^2) accuracy is at most 1/2 + T sqrt(4R+1)/(2 tau)
    GAL(theta^0)^(1/18).""",
    published="the inequality (Equation 6; Claim 1 in Appendix B.3)",
)
class Cor1(Trial):
    """Claim 1: E F(psi) against (4 R + 1) (E F(theta))^(1/9), variances of psi larger by 1 + 1/P."""

    P = size(quick=[5, 50], full=[5, 50, 500])
    d = size(quick=[5, 7], full=[5, 7, 9])
    draws = size(quick=20_000, full=100_000)
    exactly = at_most("E F(psi) / ((4 R + 1) (E F(theta))^(1/9)), exactly, largest of all cases", 1.0, exact=True)
    bound = at_most("E F(psi) - bound, sampled, largest upper end of all cases", 0.0)

    def layers(self) -> list[dict[str, Any]]:
        """d, units, and sigma before and after the inflation of each layer."""
        found = []
        for count, d, sigma in itertools.product(self.P, self.d, (0.1, 0.5, 1.0)):
            units = max(1, count // d)
            found.append({"d": d, "units": units, "sigmas": [sigma, sigma * math.sqrt(1 + 1 / (units * d))]})
        return found

    def balls(self) -> list[dict[str, Any]]:
        return [{"name": name, "dimension": dimension, "share": share}
                for dimension, name, share in itertools.product(self.P, SETS, (0.5, 0.01))]

    def work(self, lab: Lab) -> tuple[Kept, Kept]:
        layers, balls = ([{**each, "number": number, "draws": self.draws} for number, each in enumerate(cases)]
                         for cases in (self.layers(), self.balls()))
        return lab.compute_each(layer_means, layers), lab.compute_each(ball_means, balls)

    def rows(self, got: tuple[Kept, Kept]) -> list[dict[str, Any]]:
        rows = []
        for each, arrays in zip(self.layers(), got[0], strict=True):
            d, units, sigmas = each["d"], each["units"], each["sigmas"]
            exact = [units * alignment(f"perturbed-rademacher:{sigma!r}", d).value for sigma in sigmas]
            rows.append(row("alignment", units * d, units / 4, arrays["means"].tolist(), exact, d=d, sigma=sigmas[0]))
        for each, arrays in zip(self.balls(), got[1], strict=True):
            exact = radius(each["dimension"], *SETS[each["name"]], each["share"])[1]
            rows.append(row(each["name"], each["dimension"], 1.0, arrays["means"].tolist(), exact))
        return rows

    def judge(self, got: tuple[Kept, Kept]) -> Findings:
        rows = self.rows(got)
        worst = max(rows, key=lambda each: each["psi"] + 1.96 * each["psi error"] - each["bound"])
        away = worst["psi"] - worst["bound"]
        checks = [self.exactly(max(each["exact psi"] / claim1(each["exact theta"], each["R"]) for each in rows)),
                  self.bound(away, around(away, worst["psi error"]))]
        aligned = [each for each in rows if each["F"] == "alignment"]
        return Findings(checks, rows, {"E F(psi) / E F(theta) of the alignment, exactly, largest":
                                       max(each["exact psi"] / each["exact theta"] for each in aligned)})

    def draw(self, got: tuple[Kept, Kept]) -> plots.Figure:
        return draw_claim1(self.rows(got))


@computation
def layer_means(seed: int, number: int, d: int, units: int, sigmas: list[float], draws: int) -> dict[str, Any]:
    """Means and errors of a layer's alignment for each sigma."""
    return {"means": [mean(layer_alignments(d, units, sigma, draws, rng(seed, 1, number, i)))
                      for i, sigma in enumerate(sigmas)]}


@computation
def ball_means(seed: int, number: int, name: str, dimension: int, share: float, draws: int) -> dict[str, Any]:
    """Shares of theta and of psi in a set, with their errors."""
    offset, outside = SETS[name]
    square, _ = radius(dimension, offset, outside, share)
    return {"means": [mean(in_ball(dimension, offset, outside, square, scale, draws, rng(seed, 2, number, i)))
                      for i, scale in enumerate((1.0, math.sqrt(1 + 1 / dimension)))]}


def row(name: str, count: int, most: float, found: Sequence[tuple[float, float]], exact: Sequence[float],
        d: int | None = None, sigma: float | None = None) -> dict[str, Any]:
    ratio, error = ratio_with_error(found[1], found[0])
    return {"F": name, "P": count, "d": d, "sigma": sigma, "R": most, "theta": found[0][0], "theta error": found[0][1],
            "psi": found[1][0], "psi error": found[1][1], "bound": claim1(found[0][0], most), "ratio": ratio,
            "ratio error": error, "exact theta": float(exact[0]), "exact psi": float(exact[1])}


def layer_alignments(d: int, units: int, sigma: float, draws: int, generator: np.random.Generator) -> Floats:
    """The sum over units of (E_x chi 1[w.x >= 0])^2, for draws of signs + N(0, sigma^2)."""
    found = []
    for count in chunks(draws):
        signs = generator.choice(np.array([-1.0, 1.0]), (count * units, d))
        w = signs + sigma * generator.standard_normal((count * units, d))
        found.append(np.square(threshold_coefficients(w, 0.0, np.ones(d, bool))[1]).reshape(count, units).sum(1))
    return np.concatenate(found)


def radius(dimension: int, offset: float, outside: bool, share: float) -> tuple[float, list[float]]:
    """The squared radius that gives E F(theta) = share for standard normal theta; E F(theta) and E F(psi).

    >>> [round(each, 4) for each in radius(2, 0.0, True, 0.01)[1]]
    [0.01, 0.0464]
    """
    law = stats.ncx2(dimension, offset**2) if offset else stats.chi2(dimension)
    square = float(law.isf(share) if outside else law.ppf(share))
    inflated = 1 + 1 / dimension
    wide = stats.ncx2(dimension, offset**2 / inflated) if offset else stats.chi2(dimension)
    at = square / inflated
    return square, [share, float(wide.sf(at) if outside else wide.cdf(at))]


def in_ball(
    dimension: int, offset: float, outside: bool, square: float, scale: float, draws: int,
    generator: np.random.Generator,
) -> Floats:
    """Whether normal draws of this scale lie in the ball whose centre is ``offset`` away from their mean."""
    found = []
    for count in chunks(draws):
        points = scale * generator.standard_normal((count, dimension))
        points[:, 0] -= offset
        found.append((np.square(points).sum(1) <= square) != outside)
    return np.concatenate(found).astype(float)


@plots.styled
def draw_claim1(data: Rows) -> plots.Figure:
    """E F(psi) and the bound of each case against E F(theta)."""
    figure = plots.blank(2.9)
    axes = figure.add_subplot(xlabel="E F($\\theta$)", ylabel="E F($\\psi$)", xscale="log", yscale="log")
    names = list(dict.fromkeys(each["F"] for each in data))
    for name, colour, marker in zip(names, plots.COLOURS, "osD^", strict=False):
        rows = [each for each in data if each["F"] == name]
        axes.errorbar([each["theta"] for each in rows], [each["psi"] for each in rows],
                      [3 * each["psi error"] for each in rows], fmt=marker, markersize=3, fillstyle="none",
                      elinewidth=0.8, color=colour, label=name)
    axes.plot([each["theta"] for each in data], [each["bound"] for each in data], "_", color=plots.GREY,
              markersize=5, label="bound")
    ends = min(each["theta"] for each in data), max(each["theta"] for each in data)
    axes.plot(ends, ends, color=plots.GREY, linewidth=0.8, linestyle="dashed", label="E F($\\theta$)")
    plots.legend_above(figure, axes)
    return figure


# --- Corollary 2 --------------------------------------------------------------------------------------------------


WIDTH = 3
NOISES = (0.1, 0.5, 1.0, 2.0)


@computation
def paired_growth(seed: int, depth: int, d: int, draws: int) -> dict[str, Any]:
    """Mean squared gradient with each noise over that without, with its error; the draws are the same."""
    variances, ratios = layer_variances(depth, d), []
    plain = squared_gradients(d, WIDTH, variances, draws, rng(seed, 82, depth, d))
    for noise in NOISES:
        noisy = squared_gradients(d, WIDTH, [v + noise**2 for v in variances], draws, rng(seed, 82, depth, d))
        ratio = float(noisy.mean() / plain.mean())
        ratios.append((ratio, float(np.std(noisy - ratio * plain, ddof=1)) / (plain.mean() * math.sqrt(draws))))
    return {"ratios": ratios}


@claim(
    "abbe2024.cor2",
    where="Corollary 2, Proposition 2",
    kind="exact",
    title="Gaussian starts and homogeneous activations: alignment grows at most by a product factor",
    statement="""GAL(theta^0 + lambda H) <= prod_l (1 + lambda^2/v_l^2)^H GAL(theta^0) for H-homogeneous networks with
    Gaussian layers.""",
    published="GAL_f(theta^0 + gamma lambda H) <= prod_l (1 + gamma^2 lambda^2 / v_l^2)^H eps (Equation 74)",
)
class Cor2(Trial):
    """GAL(theta + lambda H) / GAL(theta) of Gaussian ReLU networks of depths 2 and 3 against Proposition 2's factor."""

    d = size([4, 5, 6, 7])
    draws = size(quick=5000, full=20_000)
    measured = at_most("sampled ratio / factor at depth 3, largest upper end over d and lambda", 1.0, part="depth 3")
    exact = at_most("exact ratio / factor at depth 2, largest", 1.0, part="depth 2", exact=True)

    def work(self, lab: Lab) -> Kept:
        return lab.compute_each(paired_growth, [{"depth": depth, "d": d, "draws": self.draws}
                                                for depth, d in itertools.product((2, 3), self.d)])

    def rows(self, got: Kept) -> list[dict[str, Any]]:
        rows = []
        for (depth, d), arrays in zip(itertools.product((2, 3), self.d), got, strict=True):
            variances = layer_variances(depth, d)
            for noise, (ratio, error) in zip(NOISES, arrays["ratios"].tolist(), strict=True):
                rows.append({"depth": depth, "d": d, "lambda": noise, "ratio": ratio, "error": error,
                             "exact": exact_ratio(d, WIDTH, noise) if depth == 2 else None,
                             "factor": growth_factor(variances, noise**2, printed=True)})
        return rows

    def judge(self, got: Kept) -> Findings:
        rows = self.rows(got)
        exact = [each for each in rows if each["depth"] == 2]
        deep = [each for each in rows if each["depth"] == 3]
        worst = max(deep, key=lambda each: (each["ratio"] + 1.96 * each["error"]) / each["factor"])
        factor = worst["factor"]
        checks = [self.exact(max(each["exact"] / each["factor"] for each in exact)),
                  self.measured(worst["ratio"] / factor, around(worst["ratio"] / factor, worst["error"] / factor))]
        away = max(abs(each["ratio"] - each["exact"]) / each["error"] for each in exact)
        return Findings(checks, rows, {"|sampled - exact ratio| in standard errors at depth 2, largest": away})

    def draw(self, got: Kept) -> plots.Figure:
        return draw_growth(self.rows(got))


def layer_variances(depth: int, d: int) -> list[float]:
    return [1 / d] + [1 / WIDTH] * (depth - 1)


def exact_ratio(d: int, width: int, noise: float) -> float:
    """GAL(theta + lambda H) / GAL(theta) at depth 2, biases with the law of the hidden weights."""
    noisy, plain = (alignment("gaussian", d, unit="network", bias="same", width=width, scale=(
        math.sqrt(1 / d + square), math.sqrt(1 / width + square))).value for square in (noise**2, 0.0))
    return noisy / plain


def squared_gradients(
    d: int, width: int, variances: Sequence[float], draws: int, generator: np.random.Generator
) -> Floats:
    """|E chi(x) grad NN(x)|^2 over all inputs for draws of Gaussian layers, with biases in the first one."""
    x, chi = cube(d).T, full_parity(d) / 2**d
    found = []
    for count in chunks(draws):
        inputs = np.broadcast_to(np.vstack([x, np.ones(2**d)]), (count, d + 1, 2**d))
        hidden, layers = [inputs], []
        for place, variance in enumerate(variances):
            last = place == len(variances) - 1
            shape = count, 1 if last else width, hidden[-1].shape[1]
            layers.append(math.sqrt(variance) * generator.standard_normal(shape))
            if not last:
                hidden.append(np.maximum(layers[-1] @ hidden[-1], 0.0))
        back, total = np.broadcast_to(chi, (count, 1, 2**d)), np.zeros(count)
        for place in reversed(range(len(layers))):
            total += np.square(back @ hidden[place].transpose(0, 2, 1)).sum((1, 2))
            back = (layers[place].transpose(0, 2, 1) @ back) * (hidden[place] > 0)
        found.append(total)
    return np.concatenate(found)


def draw_growth(data: Rows) -> plots.Figure:
    """Measured ratios over the printed factor against lambda, and the exact ones at depth 2."""
    series, laws = {}, {}
    for depth, d in sorted({(each["depth"], each["d"]) for each in data if each["d"] in (4, 7)}):
        rows = [each for each in data if (each["depth"], each["d"]) == (depth, d)]
        sizes = [each["lambda"] for each in rows]
        share, error = (np.array([each[name] / each["factor"] for each in rows]) for name in ("ratio", "error"))
        series[f"depth {depth}, d = {d}"] = Series(sizes, share, share - 3 * error, share + 3 * error)
        if depth == 2:
            laws[f"exact, d = {d}"] = (sizes, [each["exact"] / each["factor"] for each in rows])
    laws["bound"] = ([0.1, 2], [1, 1])
    return plots.scaling_plot(series, "noise $\\lambda$", "growth of the alignment / factor", laws)
