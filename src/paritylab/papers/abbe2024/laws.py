"""Exact identities and laws: Equation (11), Lemma 1, Corollary 3, Proposition 1."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import cycle, product
from typing import Any

import numpy as np
from scipy.special import k0e

from paritylab import alignment, plots
from paritylab.claims.lab import Lab
from paritylab.claims.registry import reproduces
from paritylab.claims.verdicts import Outcome, at_least, at_most, holds
from paritylab.measures.fourier import cube
from paritylab.papers.abbe2024.common import Fit, decay_plot, fit
from paritylab.theory.abbe2024 import activation_moments, delta, recommended_bias

# --- signs and binomials ------------------------------------------------------------------------------------------


@reproduces("abbe2024.eq11-identity")
def parity_of_a_product(lab: Lab) -> Outcome:
    """prod_j x_j w_j and (-1)^((d - w.x)/2) for all pairs of sign vectors."""
    most = lab.pick("largest d", quick=10, full=10)
    data, wrong = [], 0
    for d in range(1, most + 1):
        signs = cube(d).astype(np.int64)
        chi, total = signs.prod(1), signs @ signs.T
        products = np.multiply.outer(chi, chi)
        wrong += int(np.count_nonzero(products != 1 - 2 * ((d - total) // 2 % 2)))
        for value, sign in product(range(-d, d + 1, 2), (1, -1)):
            pairs = int(np.count_nonzero((total == value) & (products == sign)))
            data.append({"d": d, "w.x": value, "product": sign, "pairs": pairs})
    checks = [at_most(f"pairs of sign vectors that differ, d <= {most}", wrong, 0)]
    return Outcome(checks, data, draw_products([row for row in data if row["d"] == most]),
                   {"pairs compared": float(sum(4**d for d in range(1, most + 1)))})


@plots.styled
def draw_products(rows: Sequence[Mapping[str, Any]]) -> Any:
    """How many pairs have each sum, by the sign of their product."""
    figure = plots.blank(2.2)
    axes = figure.add_subplot(xlabel="$w \\cdot x$", ylabel="pairs $(w, x)$", yscale="log", ylim=(100, 2e6))
    for sign, colour, marker in ((1, plots.COLOURS[0], "o"), (-1, plots.COLOURS[1], "s")):
        found = [(row["w.x"], row["pairs"]) for row in rows if row["product"] == sign and row["pairs"]]
        axes.plot(*zip(*found, strict=True), marker, color=colour, markersize=4, label=f"product {sign:+d}")
    axes.set_xticks(sorted({row["w.x"] for row in rows}))
    axes.legend(loc="upper center", ncols=2)
    return figure


@reproduces("abbe2024.lemma1")
def closed_form_of_delta(lab: Lab) -> Outcome:
    """Lemma 1 against the sum over the binomial law, both in rationals."""
    most = lab.pick("largest d", quick=40, full=40)
    biases = [Fraction(text) for text in ("-3", "-2", "-1.5", "-1", "-0.3", "0", "0.4", "1", "2.5", "3")]
    data, unequal, away = [], 0, Fraction(0)
    for d, b in product(range(2, most + 1), biases):
        if abs(b) < d:
            closed, direct = delta(d, b), activation_moments(d, b)[0]  # pyright: ignore[reportArgumentType]
            unequal += closed != direct and b.denominator == 1
            away = max(away, abs(closed - direct))
            data.append({"d": d, "bias": float(b), "closed form": float(closed), "sum": float(direct)})
    checks = [at_most("|closed form - sum|, largest over d and b", float(away), 1e-12),
              at_most("unequal rationals for whole b", unequal, 0)]
    return Outcome(checks, data, draw_delta(biases, min(20, most)))


@plots.styled
def draw_delta(biases: Sequence[Fraction], d: int) -> Any:
    """Delta as a function of the bias for an even and an odd d, and the sums at the biases that were compared."""
    figure = plots.blank(2.4)
    axes = figure.add_subplot(xlabel="bias b", ylabel="$\\sqrt{d}\\ \\Delta_{d,b}$")
    grid = [Fraction(step, 20) for step in range(-80, 81)]
    for size, colour, line, marker in zip((d, d + 1), plots.COLOURS, plots.LINES, "os", strict=False):
        axes.plot([float(b) for b in grid], [math.sqrt(size) * float(delta(size, b)) for b in grid], color=colour,
                  linestyle=line, label=f"Lemma 1, d = {size}")
        sums = [math.sqrt(size) * float(activation_moments(size, float(b))[0]) for b in biases]
        axes.plot([float(b) for b in biases], sums, marker, color=colour, markersize=3.5, fillstyle="none",
                  label=f"sum, d = {size}")
    plots.legend_above(figure, axes)
    return figure


LIMIT = 1 / math.sqrt(2 * math.pi)
CLOSE = {0: 78, 1: 27}
"""The even and the odd d from which the rule asks for one per cent."""


@reproduces("abbe2024.cor3")
def size_of_delta(lab: Lab) -> Outcome:
    """sqrt(d) |Delta| at the recommended bias, from exact integers."""
    most = lab.pick("largest d", quick=2000, full=2000)
    sizes = {d: math.sqrt(d) * float(abs(delta(d, recommended_bias(d)))) for d in range(2, most + 1)}
    away = {d: abs(size / LIMIT - 1) for d, size in sizes.items()}
    vanishing = all(delta(d, 0) == 0 for d in range(3, most + 1, 2))
    asked = [d for d in sizes if d >= CLOSE[d % 2]]
    checks = [
        at_least("sqrt(d) |Delta|, smallest over d", min(sizes.values()), 1 / 3),
        at_most("sqrt(d) |Delta|, largest over d", max(sizes.values()), 1.0),
        at_most(f"|sqrt(2 pi d) |Delta| - 1|, largest over even d >= {CLOSE[0]} and odd d >= {CLOSE[1]}",
                max(away[d] for d in asked), 0.01),
        holds("Delta_(d,0) = 0 for all odd d", vanishing),
    ]
    numbers = {f"least {name} d from which it is within 1 %":
               float(2 + max(d for d in sizes if d % 2 == odd and away[d] > 0.01))
               for odd, name in ((0, "even"), (1, "odd"))}
    numbers |= {f"|sqrt(2 pi d) |Delta| - 1| at d = {d}": away[d] for d in (25, 27, 60, 76, 78)}
    data = [{"d": d, "bias": recommended_bias(d), "scaled": size, "away": away[d]} for d, size in sizes.items()]
    return Outcome(checks, data, draw_sizes(sizes), numbers)


def draw_sizes(sizes: Mapping[int, float]) -> Any:
    curves = {name: ([d for d in sizes if d % 2 == odd], [abs(sizes[d] / LIMIT - 1) for d in sizes if d % 2 == odd])
              for odd, name in ((0, "even d, b = 0"), (1, "odd d, b = -1"))}
    most = max(sizes)
    laws = {"$3/(4d)$, $1/(4d)$": ([2, most], [3 / 8, 3 / 4 / most]), "_": ([3, most], [1 / 12, 1 / 4 / most]),
            "1 %, where asked for": ([CLOSE[1], most], [0.01, 0.01])}
    return decay_plot(curves, "$\\sqrt{2 \\pi d}\\ |\\Delta| - 1$", laws)


# --- normal weights -----------------------------------------------------------------------------------------------


STEP = 0.005


def alternating_mean(unit: str, d: int, alpha: float, beta: float) -> float:
    """ln |E_k (-1)^k K(rho(k))|, k ~ Bin(d, 1/2), of the orthant (``step``) or ``relu`` kernel; -inf where it is 0.

    int_0^inf K_0(u) sinh(rho u) / u du = (pi/2) asin(rho) and E_k (-1)^k exp(u rho(k)) = exp(beta u) sinh(alpha u/d)^d
    turn the sum, which loses d bits, into an integral of one sign: over K_0(u) sinh(alpha u/d)^d / u (the ReLU's
    kernel integrates the step's: u^2) times cosh(beta u) or sinh(beta u), by the parity of d.

    >>> f"{math.exp(alternating_mean('step', 11, 1.0, 0.0)):.3g} {math.exp(alternating_mean('relu', 10, 1.0, 0.0)):.3g}"
    '3.22e-05 2.02e-06'
    """
    u = np.exp(np.arange(-30, 75, STEP))
    power = {"step": 1, "relu": 2}[unit]
    sinh = (d + power) % 2 == 1
    if sinh and beta == 0:
        return -math.inf
    rest = round(1 - alpha - abs(beta), 12)
    # every exponential growth is taken out of the factors, and what is left of it is exp(-rest u)
    values = np.log(k0e(u)) - rest * u - power * np.log(u) + d * np.log(-np.expm1(-2 * alpha * u / d) / 2)
    other = np.exp(-2 * abs(beta) * u)
    values += np.log((1 - other if sinh else 1 + other) / 2) + np.log(u)
    top = values.max()
    return float(top + math.log(STEP * np.exp(values - top).sum() / math.pi**2))


@reproduces("abbe2024.prop1")
def gaussian_alignments(lab: Lab) -> Outcome:
    """Alternating sums of the kernels of Gaussian units, and whole alignments of Gaussian networks, against d."""
    alphas = lab.pick("alpha", quick=[0.3, 0.5, 1.0], full=[0.3, 0.5, 1.0])
    dims = lab.pick("d", quick=list(range(10, 101)), full=list(range(10, 101)))
    degree = lab.pick("largest d of Claim 2", quick=30, full=30)
    network_dims = lab.pick("d of the networks", quick=list(range(10, 61)), full=list(range(10, 61)))
    sums = {(unit, alpha, beta): {d: alternating_mean(unit, d, alpha, beta) for d in dims}
            for unit in ("step", "relu") for alpha in alphas for beta in shifts(alpha)}
    lines = {place: exponential(found, 20) for place, found in sums.items()}
    excess = max(line.slope + 0.05 * alpha for (_, alpha, _), line in lines.items())
    nonzero = [(d, n) for d in range(1, degree + 1) for n in range(d)
               if sum((-1) ** k * math.comb(d, k) * k**n for k in range(d + 1))]
    networks = {(name, variance): {d: network(d, removed(d), variance) for d in network_dims}
                for (name, removed), variance in product(REMOVED.items(), (0, 1))}
    falls = {place: exponential(found, network_dims[0]) for place, found in networks.items()}
    checks = [
        at_most("slope of ln |E| on d from 20 to 100, plus 0.05 alpha, largest over kernels, alpha, beta", excess, 0.0),
        at_least("R^2 of that line, smallest", min(line.r2 for line in lines.values()), 0.95),
        at_most(f"powers k^n, n < d <= {degree}, whose alternating sum is not 0", len(nonzero), 0),
        holds("slope of ln(GAL/P) on d, largest over a and sigma", max(f.slope for f in falls.values()) < 0, "< 0",
              max(line.slope for line in falls.values())),
        at_least("R^2 of that line, smallest", min(line.r2 for line in falls.values()), 0.95),
    ]
    data = [{"quantity": f"kernel {unit}", "alpha": alpha, "beta": beta, "d": d, "ln": value if value > -1e9 else None}
            for (unit, alpha, beta), found in sums.items() for d, value in found.items()]
    data += [{"quantity": f"GAL/P, a = {name}, sigma^2 = {variance}", "alpha": None, "beta": None, "d": d, "ln": value}
             for (name, variance), found in networks.items() for d, value in found.items()]
    numbers = {f"E of K_{unit}, alpha = 1, beta = 0, d = {d}": math.exp(alternating_mean(unit, d, 1.0, 0.0))
               for unit, d in (("step", 11), ("step", 21), ("step", 61), ("relu", 10), ("relu", 20))}
    numbers |= {f"slope of K_step, alpha = {alpha}, beta = {beta:g}": line.slope
                for (unit, alpha, beta), line in lines.items() if unit == "step" and beta >= 0}
    numbers |= {f"slope of ln(GAL/P), a = {name}, sigma^2 = {variance}": line.slope
                for (name, variance), line in falls.items()}
    numbers["ln E of K_step less that of paritylab.alignment, largest over odd d"] = max(
        abs(sums["step", 1.0, 0.0][d] - alignment("gaussian", d).log) for d in dims if d % 2)
    note = ("integrals of one sign instead of alternating sums with 80 digits; networks of width 1, where GAL/P is "
            "largest: it falls with the width")
    return Outcome(checks, data, draw_gaussian(sums, networks), numbers, note)


REMOVED = {"0": lambda d: 0, "2": lambda d: 2, "d/4": lambda d: d // 4, "d/2": lambda d: d // 2}
"""How many inputs are not in the parity."""


def shifts(alpha: float) -> list[float]:
    """Values of beta, |beta| <= 1 - alpha."""
    return sorted({round(part * (1 - alpha), 12) + 0.0 for part in (-1, -0.5, 0, 0.5, 1)})


def exponential(found: Mapping[int, float], low: int) -> Fit:
    """The line through logarithms against d, for the d where they are finite."""
    points = [(d, value) for d, value in found.items() if d >= low and math.isfinite(value)]
    return fit(*zip(*points, strict=True))


def network(d: int, a: int, variance: float) -> float:
    """ln(GAL/P) of one unit of Theorem 8's network on the parity of d - a inputs, P = d + 2."""
    bias = f"gaussian:{math.sqrt(variance):g}"
    found = alignment("gaussian", d, d - a, "network", bias, width=1, scale="fan-in")
    return found.log - math.log(d + 2)


@plots.styled
def draw_gaussian(sums: Mapping[Any, Mapping[int, float]], networks: Mapping[Any, Mapping[int, float]]) -> Any:
    """The sums of the step's kernel above, alignments of networks below."""
    figure = plots.blank(5.0)
    above, below = figure.add_subplot(2, 1, 1), figure.add_subplot(2, 1, 2)
    above.set(ylabel="ln $|E_k (-1)^k K(\\rho(k))|$, step", xlabel="input dimension d")
    below.set(ylabel="ln(GAL / P)", xlabel="input dimension d")
    styles = list(product(plots.COLOURS[:4], ("solid", "dashed")))
    shown = [(place, found) for place, found in sums.items() if place[0] == "step" and place[2] >= 0]
    for ((_, alpha, beta), found), colour, line in zip(shown, plots.COLOURS, cycle(plots.LINES), strict=False):
        points = [(d, value) for d, value in found.items() if math.isfinite(value)]
        above.plot(*zip(*points, strict=True), color=colour, linestyle=line, label=f"{alpha:g}, {beta:g}")
    above.legend(title="$\\alpha, \\beta$", loc="lower left", ncols=2)
    for ((name, variance), found), (colour, line) in zip(networks.items(), styles, strict=False):
        below.plot(list(found), list(found.values()), color=colour, linestyle=line,
                   label=f"a = {name}, $\\sigma^2$ = {variance}")
    below.set_ylim(bottom=-75)
    below.legend(loc="lower left", ncols=2)
    return figure
