"""Exact identities and laws: Equation (11), Lemma 1, Corollary 3, Proposition 1."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import cycle, product
from typing import Any

import numpy as np
from scipy.special import k0e

from abbe2024.common import Fit, decay_plot, fit
from abbe2024.theory.high_degree import activation_moments, delta, recommended_bias
from paritylab import alignment, plots
from paritylab.claims import Findings, Lab, Trial, at_least, at_most, claim, computation, holds, size
from paritylab.measures.fourier import cube

Curve = Mapping[int, float]
"""Logarithms by d."""


class Exact(Trial):
    """Asks for nothing: it is computed where it is judged."""

    def work(self, lab: Lab) -> None:
        """Nothing takes long."""


# --- signs and binomials ------------------------------------------------------------------------------------------


@claim(
    "abbe2024.eq11-identity",
    where="Equation (11)",
    kind="exact",
    title="Parity of a product of sign vectors",
    statement="prod_j x_j w_j = (-1)^((d - w.x)/2) for all sign vectors.",
    published="the equality (Equation 11)",
)
class Eq11Identity(Exact):
    """prod_j x_j w_j and (-1)^((d - w.x)/2) for all pairs of sign vectors."""

    most = size(10, label="largest d")

    differ = at_most("pairs of sign vectors that differ, d <= {most}", 0)

    @functools.cached_property
    def counted(self) -> tuple[list[dict[str, int]], int]:
        """Pairs by d, sum and product; how many differ."""
        rows, wrong = [], 0
        for d in range(1, self.most + 1):
            signs = cube(d).astype(np.int64)
            chi, total = signs.prod(1), signs @ signs.T
            products = np.multiply.outer(chi, chi)
            wrong += int(np.count_nonzero(products != 1 - 2 * ((d - total) // 2 % 2)))
            for value, sign in product(range(-d, d + 1, 2), (1, -1)):
                pairs = int(np.count_nonzero((total == value) & (products == sign)))
                rows.append({"d": d, "w.x": value, "product": sign, "pairs": pairs})
        return rows, wrong

    def judge(self, got: None) -> Findings:
        rows, wrong = self.counted
        return Findings([self.differ(wrong, most=self.most)], rows,
                        {"pairs compared": float(sum(4**d for d in range(1, self.most + 1)))})

    def draw(self, got: None) -> plots.Figure:
        return draw_products([row for row in self.counted[0] if row["d"] == self.most])


@plots.styled
def draw_products(rows: Sequence[Mapping[str, Any]]) -> plots.Figure:
    """How many pairs have each sum, by the sign of their product."""
    figure = plots.blank(2.2)
    axes = figure.add_subplot(xlabel="$w \\cdot x$", ylabel="pairs $(w, x)$", yscale="log", ylim=(100, 2e6))
    for sign, colour, marker in ((1, plots.COLOURS[0], "o"), (-1, plots.COLOURS[1], "s")):
        found = [(row["w.x"], row["pairs"]) for row in rows if row["product"] == sign and row["pairs"]]
        axes.plot(*zip(*found, strict=True), marker, color=colour, markersize=4, label=f"product {sign:+d}")
    axes.set_xticks(sorted({row["w.x"] for row in rows}))
    axes.legend(loc="upper center", ncols=2)
    return figure


BIASES = [Fraction(text) for text in ("-3", "-2", "-1.5", "-1", "-0.3", "0", "0.4", "1", "2.5", "3")]


@claim(
    "abbe2024.lemma1",
    where="Lemma 1, Equation (20)",
    kind="exact",
    title="Closed form of Delta_{d,b}",
    statement="Delta_{d,b} = (-1)^(d+c) 2^-d (d C(d-2,c-2) - d C(d-2,c-1) + b C(d-1,c-1)), c = ceil((d-b)/2).",
    published="the equality (Lemma 1)",
)
class Lemma1(Exact):
    """Lemma 1 against the sum over the binomial law, both in rationals."""

    most = size(40, label="largest d")

    close = at_most("|closed form - sum|, largest over d and b", 1e-12)
    equal = at_most("unequal rationals for whole b", 0)

    def judge(self, got: None) -> Findings:
        rows, unequal, away = [], 0, Fraction(0)
        for d, b in product(range(2, self.most + 1), BIASES):
            if abs(b) < d:
                closed, direct = delta(d, b), activation_moments(d, b)[0]  # pyright: ignore[reportArgumentType]
                unequal += closed != direct and b.denominator == 1
                away = max(away, abs(closed - direct))
                rows.append({"d": d, "bias": float(b), "closed form": float(closed), "sum": float(direct)})
        return Findings([self.close(float(away)), self.equal(unequal)], rows)

    def draw(self, got: None) -> plots.Figure:
        return draw_delta(BIASES, min(20, self.most))


@plots.styled
def draw_delta(biases: Sequence[Fraction], d: int) -> plots.Figure:
    """Delta as a function of the bias for an even and an odd d, and the sums at the biases that were compared."""
    figure = plots.blank(2.4)
    axes = figure.add_subplot(xlabel="bias b", ylabel="$\\sqrt{d}\\ \\Delta_{d,b}$")
    grid = [Fraction(step, 20) for step in range(-80, 81)]
    for each, colour, line, marker in zip((d, d + 1), plots.COLOURS, plots.LINES, "os", strict=False):
        axes.plot([float(b) for b in grid], [math.sqrt(each) * float(delta(each, b)) for b in grid], color=colour,
                  linestyle=line, label=f"Lemma 1, d = {each}")
        sums = [math.sqrt(each) * float(activation_moments(each, float(b))[0]) for b in biases]
        axes.plot([float(b) for b in biases], sums, marker, color=colour, markersize=3.5, fillstyle="none",
                  label=f"sum, d = {each}")
    plots.legend_above(figure, axes)
    return figure


LIMIT = 1 / math.sqrt(2 * math.pi)
CLOSE = {0: 78, 1: 27}
"""The even and the odd d from which the rule asks for one per cent."""


@claim(
    "abbe2024.cor3",
    where="Corollary 3, Equation (26)",
    kind="exact",
    title="Size of Delta at the recommended bias",
    statement="""With b=0 for even d and b=-1 for odd d, 1/(3 sqrt d) <= |Delta| <= 1/sqrt d; other biases can make it
    vanish (b=0 with odd d gives 0).""",
    published="""1/(3 sqrt d) <= |Delta| <= 1/sqrt d (Equation 26). (Computed here: sqrt(d)|Delta| lies in [0.399,
    0.708] and tends to 0.3989.)""",
)
class Cor3(Exact):
    """sqrt(d) |Delta| at the recommended bias, from exact integers."""

    most = size(2000, label="largest d")

    not_small = at_least("sqrt(d) |Delta|, smallest over d", 1 / 3)
    not_large = at_most("sqrt(d) |Delta|, largest over d", 1.0)
    near_limit = at_most("|sqrt(2 pi d) |Delta| - 1|, largest over even d >= {even} and odd d >= {odd}", 0.01)
    vanishes = holds("Delta_(d,0) = 0 for all odd d")

    @functools.cached_property
    def scaled(self) -> dict[int, float]:
        return {d: math.sqrt(d) * float(abs(delta(d, recommended_bias(d)))) for d in range(2, self.most + 1)}

    def judge(self, got: None) -> Findings:
        away = {d: abs(scaled / LIMIT - 1) for d, scaled in self.scaled.items()}
        checks = [
            self.not_small(min(self.scaled.values())),
            self.not_large(max(self.scaled.values())),
            self.near_limit(max(away[d] for d in away if d >= CLOSE[d % 2]), even=CLOSE[0], odd=CLOSE[1]),
            self.vanishes(all(delta(d, 0) == 0 for d in range(3, self.most + 1, 2))),
        ]
        numbers = {f"least {name} d from which it is within 1 %":
                   float(2 + max(d for d in away if d % 2 == odd and away[d] > 0.01))
                   for odd, name in ((0, "even"), (1, "odd"))}
        numbers |= {f"|sqrt(2 pi d) |Delta| - 1| at d = {d}": away[d] for d in (25, 27, 60, 76, 78)}
        rows = [{"d": d, "bias": recommended_bias(d), "scaled": scaled, "away": away[d]}
                for d, scaled in self.scaled.items()]
        return Findings(checks, rows, numbers)

    def draw(self, got: None) -> plots.Figure:
        return draw_sizes(self.scaled)


def draw_sizes(sizes: Curve) -> plots.Figure:
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


Got = tuple[list[dict[str, np.ndarray]], list[dict[str, np.ndarray]]]


@claim(
    "abbe2024.prop1",
    where="Proposition 1; Lemmas 5 and 6; Claim 2",
    kind="exact",
    title="Exponential alignment bound for Gaussian weights",
    statement="""Per-coordinate alignments are alternating binomial sums of the Gaussian orthant and ReLU kernels, E_k
    (-1)^k K(rho(k)), and decay like exp(-C d).""",
    published="""GAL <= P C' exp(-C d) (Equation 9), constants not given. (Computed here, alpha=1 and beta=0: K_step
    3.2e-5 at d=11, 2.0e-8 at d=21, 9.4e-21 at d=61, zero for even d; K_relu 2.0e-6 at d=10, 4.6e-10 at d=20, zero for
    odd d.)""",
)
class Prop1(Trial):
    """Alternating sums of the kernels of Gaussian units, and whole alignments of Gaussian networks, against d."""

    alpha = size([0.3, 0.5, 1.0])
    d = size(list(range(10, 101)))
    degree = size(30, label="largest d of Claim 2")
    network_d = size(list(range(10, 61)), label="d of the networks")

    slope = at_most("slope of ln |E| on d from 20 to 100, plus 0.05 alpha, largest over kernels, alpha, beta", 0.0)
    straight = at_least("R^2 of that line, smallest", 0.95)
    powers = at_most("powers k^n, n < d <= {degree}, whose alternating sum is not 0", 0)
    falls = holds("slope of ln(GAL/P) on d, largest over a and sigma", "< 0")
    networks_straight = at_least("R^2 of that line, smallest", 0.95)

    def places(self) -> list[tuple[str, float, float]]:
        """Kernel, alpha and beta of each sum."""
        return [(unit, alpha, beta) for unit in ("step", "relu") for alpha in self.alpha for beta in shifts(alpha)]

    def work(self, lab: Lab) -> Got:
        sums = [{"unit": unit, "alpha": alpha, "beta": beta, "d": self.d} for unit, alpha, beta in self.places()]
        networks = [{"removed": name, "variance": variance, "d": self.network_d}
                    for name, variance in product(REMOVED, (0, 1))]
        return lab.compute_each(alternating_means, sums), lab.compute_each(network_alignments, networks)

    def curves(self, got: Got) -> tuple[dict[tuple[str, float, float], Curve], dict[tuple[str, int], Curve]]:
        """Logarithms of the sums, and of the networks' alignments over P."""
        sums, networks = ([arrays["ln"].tolist() for arrays in found] for found in got)
        return ({place: dict(zip(self.d, found, strict=True))
                 for place, found in zip(self.places(), sums, strict=True)},
                {place: dict(zip(self.network_d, found, strict=True))
                 for place, found in zip(product(REMOVED, (0, 1)), networks, strict=True)})

    def judge(self, got: Got) -> Findings:
        sums, networks = self.curves(got)
        lines = {place: exponential(found, 20) for place, found in sums.items()}
        excess = max(line.slope + 0.05 * alpha for (_, alpha, _), line in lines.items())
        nonzero = [(d, n) for d in range(1, self.degree + 1) for n in range(d)
                   if sum((-1) ** k * math.comb(d, k) * k**n for k in range(d + 1))]
        falls = {place: exponential(found, self.network_d[0]) for place, found in networks.items()}
        steepest = max(line.slope for line in falls.values())
        checks = [
            self.slope(excess),
            self.straight(min(line.r2 for line in lines.values())),
            self.powers(len(nonzero), degree=self.degree),
            self.falls(steepest < 0, steepest),
            self.networks_straight(min(line.r2 for line in falls.values())),
        ]
        rows = [{"quantity": f"kernel {unit}", "alpha": alpha, "beta": beta, "d": d,
                 "ln": value if value > -1e9 else None}
                for (unit, alpha, beta), found in sums.items() for d, value in found.items()]
        rows += [{"quantity": f"GAL/P, a = {name}, sigma^2 = {variance}", "alpha": None, "beta": None, "d": d,
                  "ln": value} for (name, variance), found in networks.items() for d, value in found.items()]
        numbers = {f"E of K_{unit}, alpha = 1, beta = 0, d = {d}": math.exp(alternating_mean(unit, d, 1.0, 0.0))
                   for unit, d in (("step", 11), ("step", 21), ("step", 61), ("relu", 10), ("relu", 20))}
        numbers |= {f"slope of K_step, alpha = {alpha}, beta = {beta:g}": line.slope
                    for (unit, alpha, beta), line in lines.items() if unit == "step" and beta >= 0}
        numbers |= {f"slope of ln(GAL/P), a = {name}, sigma^2 = {variance}": line.slope
                    for (name, variance), line in falls.items()}
        numbers["ln E of K_step less that of paritylab.alignment, largest over odd d"] = max(
            abs(sums["step", 1.0, 0.0][d] - alignment("gaussian", d).log) for d in self.d if d % 2)
        note = ("integrals of one sign instead of alternating sums with 80 digits; networks of width 1, where GAL/P is "
                "largest: it falls with the width")
        return Findings(checks, rows, numbers, note)

    def draw(self, got: Got) -> plots.Figure:
        return draw_gaussian(*self.curves(got))


@computation
def alternating_means(seed: int, unit: str, alpha: float, beta: float, d: list[int]) -> dict[str, Any]:
    return {"ln": [alternating_mean(unit, each, alpha, beta) for each in d]}


@computation
def network_alignments(seed: int, removed: str, variance: float, d: list[int]) -> dict[str, Any]:
    return {"ln": [network(each, REMOVED[removed](each), variance) for each in d]}


REMOVED = {"0": lambda d: 0, "2": lambda d: 2, "d/4": lambda d: d // 4, "d/2": lambda d: d // 2}
"""How many inputs are not in the parity."""


def shifts(alpha: float) -> list[float]:
    """Values of beta, |beta| <= 1 - alpha."""
    return sorted({round(part * (1 - alpha), 12) + 0.0 for part in (-1, -0.5, 0, 0.5, 1)})


def exponential(found: Curve, low: int) -> Fit:
    """The line through logarithms against d, for the d where they are finite."""
    points = [(d, value) for d, value in found.items() if d >= low and math.isfinite(value)]
    return fit(*zip(*points, strict=True))


def network(d: int, a: int, variance: float) -> float:
    """ln(GAL/P) of one unit of Theorem 8's network on the parity of d - a inputs, P = d + 2."""
    bias = f"gaussian:{math.sqrt(variance):g}"
    found = alignment("gaussian", d, d - a, unit="network", bias=bias, width=1, scale="fan-in")
    return found.log - math.log(d + 2)


@plots.styled
def draw_gaussian(sums: Mapping[Any, Curve], networks: Mapping[Any, Curve]) -> plots.Figure:
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
