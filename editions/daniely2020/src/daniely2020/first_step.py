"""The first gradient step, exactly: Lemmas 3 to 7 and 12."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from daniely2020.common import Exact, Row
from daniely2020.theory import leaky
from daniely2020.theory.leaky import Leaky, Units
from paritylab import plots
from paritylab.aliases import Floats, Ints
from paritylab.claims import Check, Findings, at_least, at_most, claim, size
from paritylab.measures.fourier import cube
from paritylab.plots import Series

SIGMAS = 9
"""Non-zeros off A further from their mean have a probability below 1e-18."""


def all_units(sizes: Leaky) -> tuple[Units, Floats]:
    """Every kind of unit at the start and its probability, but for the tails of the count off A.

    >>> units, chance = all_units(Leaky(31, 3))
    >>> len(units), round(float(chance.sum()), 12)
    (290, 1.0)
    """
    k, off = sizes.k, sizes.n - sizes.k
    on = [(plus, minus) for plus in range(k + 1) for minus in range(k + 1 - plus)]
    ways = np.array([math.comb(k, plus) * math.comb(k - plus, minus) / 3**k for plus, minus in on])
    middle, reach = 2 * off / 3, SIGMAS * math.sqrt(2 * off / 9)
    others = np.arange(max(0, math.floor(middle - reach)), min(off, math.ceil(middle + reach)) + 1)
    plus, minus = np.repeat(np.array(on).T, len(others), axis=1)
    chance = np.outer(ways, stats.binom.pmf(others, off, 2 / 3)).ravel()
    return Units(plus, minus, np.tile(others, len(on))), chance


# --- Lemmas 3 and 4 -------------------------------------------------------------------------------------------------


@claim(
    "daniely2020.lemma3",
    where="Lemmas 3 and 4",
    kind="exact",
    title="Uniform-part gradients of irrelevant coordinates are tiny",
    statement="""Over random w, |E_x x_j f 1[w.x+b>0]| exceeds c/sqrt(C(n-1,k)) with probability at most 1/c; a union
    bound covers all irrelevant coordinates and the bias.""",
    published="probabilities of at most 1/c (Lemmas 3 and 4)",
)
class Lemma3(Exact):
    """How often gradients of the uniform half exceed c / sqrt(C(n-1, k)) over random w: off A, the bias, any."""

    n = size([15, 21, 31, 51])
    k = size([3, 5])
    any_ = at_most("P[any > {c} (n-1) / sqrt(C(n-1, k))], n = {n}, k = {k}", "1/c")
    one = at_most("P[|{part}| > {c} / sqrt(C(n-1, k))], n = {n}, k = {k}", "1/c")
    mean = at_most("mean of |{part}| sqrt(C(n-1, k)), n = {n}, k = {k}", 1)

    @functools.cached_property
    def gradients(self) -> dict[tuple[int, int], tuple[dict[str, Floats], Floats]]:
        """For each k and n those of every unit, in parts, and the largest; all over 1 / sqrt(C(n-1, k))."""
        found: dict[tuple[int, int], tuple[dict[str, Floats], Floats]] = {}
        for k, n in itertools.product(self.k, self.n):
            rng, problem, unit = self.rng(3, n, k), Leaky(n, k), 1 / math.sqrt(math.comb(n - 1, k))
            units, _ = leaky.draw_units(problem, self.draws, rng)
            gradient = leaky.uniform_gradient(problem, units)
            touched = rng.random(self.draws) < units.others / (n - k)  # w_j != 0 for a given j outside A
            off, bias = np.abs(gradient.off) / math.sqrt(n) / unit, np.abs(gradient.bias) / unit
            found[k, n] = {"j outside A": off * touched, "bias": bias}, np.maximum(off, bias)
        return found

    def judge(self, got: None) -> Findings:
        checks: list[Check] = []
        data: list[Row] = []
        for (k, n), (parts, touched, chance) in self.chances.items():
            for part, values in parts.items():
                weights = chance * touched if part == "j outside A" else chance
                where = {"part": part, "n": n, "k": k}
                checks.append(self.mean(float(weights @ values), **where))
                checks += [self.one(float(weights[values > c].sum()), high=1 / c, c=c, **where) for c in (2, 5, 10)]
                data.append(where | {"mean": float(weights @ values), "largest": float(values.max())})
            largest = np.maximum(*parts.values())
            checks += [self.any_(float(chance[largest > c * (n - 1)].sum()), high=1 / c, c=c, n=n, k=k)
                       for c in (2, 5, 10)]
        return Findings(checks, data)

    def draw(self, got: None) -> plots.Figure:
        means = {f"{part}, k = {k}": [self._mean(k, n, part) for n in self.n]
                 for k in self.k for part in ("j outside A", "bias")}
        return plots.scaling_plot({name: plots.Series(self.n, values) for name, values in means.items()},
                                  "input bits n", "mean |gradient| $\\sqrt{C(n-1, k)}$",
                                  {"Lemma 3's proof: 1": (self.n, [1.0] * len(self.n))})

    @functools.cached_property
    def chances(self) -> dict[tuple[int, int], tuple[dict[str, Floats], Floats, Floats]]:
        """For each k and n the gradients of every kind of unit, in parts, whether w_j is not 0, and probabilities."""
        found: dict[tuple[int, int], tuple[dict[str, Floats], Floats, Floats]] = {}
        for k, n in itertools.product(self.k, self.n):
            units, chance = all_units(Leaky(n, k))
            gradient, unit = leaky.uniform_gradient(Leaky(n, k), units), 1 / math.sqrt(math.comb(n - 1, k))
            parts: dict[str, Floats] = {"j outside A": np.abs(gradient.off) / math.sqrt(n) / unit,
                                        "bias": np.abs(gradient.bias) / unit}
            found[k, n] = parts, units.others / (n - k), chance
        return found

    def _mean(self, k: int, n: int, part: str) -> float:
        parts, touched, chance = self.chances[k, n]
        return float((chance * touched if part == "j outside A" else chance) @ parts[part])


# --- Lemma 5 --------------------------------------------------------------------------------------------------------


@claim(
    "daniely2020.lemma5",
    where="Lemma 5",
    kind="exact",
    title="Zero gradient on the equal-bits half for balanced neurons",
    statement="""If the entries of w on A sum to zero the D2 gradients of irrelevant coordinates and of the bias are
    exactly 0. For odd k such a neuron has a zero entry on A, so the uniform half contributes exactly 0 as well.""",
    published="0 (Lemma 5)",
)
class Lemma5(Exact):
    """Gradients of units whose w sums to 0 over A, by enumeration, on both halves; others for comparison."""

    n = size(11)
    draws = size(2000)

    zero = at_most("largest |gradient| off A and of the bias, {half} half, k = {k}", 1e-14)

    @functools.cached_property
    def largest(self) -> dict[tuple[str, str, int], Floats]:
        """The largest gradient of each unit, for either kind of unit, half and k."""
        found: dict[tuple[str, str, int], Floats] = {}
        s = cube(self.n)
        for k in (3, 5):
            f = s[:, :k].prod(1)
            equal = np.abs(s[:, :k].sum(1)) == k
            w = self.rng(5, k).integers(-1, 2, (60 * self.draws, self.n)).astype(float)
            balanced = w[:, :k].sum(1) == 0
            for name, chosen in (("balanced", w[balanced][: self.draws]), ("others", w[~balanced][: self.draws])):
                z = s @ chosen.T / math.sqrt(self.n) + Leaky(self.n, k).bias
                pull = ((z > 0) & (z < leaky.UPPER)) * f[:, None]
                for half, rows in (("equal bits", equal), ("uniform", np.ones(len(s), bool))):
                    by_weight = pull[rows].T @ s[rows, k:] / rows.sum()
                    by_bias = pull[rows].mean(0)
                    found[name, half, k] = np.maximum(np.abs(by_weight).max(1), np.abs(by_bias))
        return found

    def judge(self, got: None) -> Findings:
        checks = [self.zero(float(largest.max()), half=half, k=k)
                  for (name, half, k), largest in self.largest.items() if name == "balanced"]
        data = [{"n": self.n, "k": k, "units": name, "half": half, "unit": i, "largest": float(value)}
                for (name, half, k), largest in self.largest.items() for i, value in enumerate(largest[:200])]
        return Findings(checks, data)

    def draw(self, got: None) -> plots.Figure:
        return draw_sizes({f"{name}, {half}, k = {k}": found for (name, half, k), found in self.largest.items()})


@plots.styled
def draw_sizes(shown: Mapping[str, Floats]) -> plots.Figure:
    """One row of points for each kind of unit; zeros at the left end."""
    figure = plots.blank(0.8 + 0.17 * len(shown))
    axes = figure.add_subplot(xscale="log", xlabel="largest |gradient| of a unit (0: left)",
                              ylim=(len(shown) - 0.5, -0.5), xlim=(3e-19, 1))
    axes.set_yticks(range(len(shown)), list(shown))
    for place, values in enumerate(shown.values()):
        axes.plot(np.maximum(values, 1e-18), np.full(len(values), place), "|", markersize=6, color=plots.COLOURS[0])
    axes.axvline(1e-14, color=plots.GREY, linestyle="dotted", linewidth=0.8)
    return figure


def every_deviation(problem: Leaky) -> tuple[Floats, Floats]:
    """Deviations of all kinds of units: where a third of w off A is not 0, and times sqrt|J| / k where one is not."""
    on = [(plus, minus) for plus in range(problem.k + 1) for minus in range(problem.k + 1 - plus)]
    others = np.arange(1, problem.n - problem.k + 1)
    plus, minus = np.repeat(np.array(on).T, len(others), axis=1)
    units = Units(plus, minus, np.tile(others, len(on)))
    g, zeros = leaky.first_gradient(problem, units), problem.k - units.plus - units.minus
    by_sign = [np.where(present, g.relevant + extra, np.nan) for present, extra in (
        (zeros > 0, g.at_zero), (units.plus > 0, g.along), (units.minus > 0, -g.along))]
    central = problem.leak * leaky.central_probability(problem, units)
    deviation = np.nanmax(np.abs(np.stack(by_sign) - central), axis=0)
    return deviation[3 * units.others >= problem.n - problem.k], np.sqrt(units.others) / problem.k * deviation


# --- Lemma 6 --------------------------------------------------------------------------------------------------------


@claim(
    "daniely2020.lemma6",
    where="Lemma 6",
    kind="theory",
    title="Activation derivative nearly independent of the relevant bits",
    statement="|E[h sigma'] - E[h] phi(w,b)| <= C k/sqrt|J| for h depending on A only.",
    published="C k / sqrt|J| (Lemma 6); E[h] = 1/2 under D_A, not the 1 of Lemma 7's proof (computed here)",
)
class Lemma6(Exact):
    """E[h sigma'] - E[h] phi for h = sqrt(n) x_j f, largest over j and random w, against n."""

    n = size([51, 201, 801, 3201])
    constant = at_most("largest sqrt|J| / k times deviation over all w, n = {n}, k = {k}", 1, exact=True)
    exponent = at_most("slope of log largest deviation on log n, |J| >= (n-k)/3, k = {k}", -0.3, exact=True)

    @functools.cached_property
    def deviations(self) -> dict[int, list[tuple[Floats, Floats]]]:
        """For each k and each n those of every kind of unit with |J| >= (n-k)/3; of all, times sqrt|J| / k."""
        return {k: [every_deviation(Leaky(n, k)) for n in self.n] for k in (3, 7)}


    def largest(self, k: int) -> list[float]:
        return [float(deviation.max()) for deviation, _ in self.deviations[k]]

    def judge(self, got: None) -> Findings:
        checks: list[Check] = []
        data: list[Row] = []
        for k, found in self.deviations.items():
            for n, (typical, scaled) in zip(self.n, found, strict=True):
                checks.append(self.constant(float(scaled.max()), n=n, k=k))
                data.append({"n": n, "k": k, "deviation": float(typical.max()), "scaled": float(scaled.max())})
            slope = float(np.polyfit(np.log(self.n), np.log(self.largest(k)), 1)[0])
            checks.append(self.exponent(slope, k=k))
        return Findings(checks, data)

    def draw(self, got: None) -> plots.Figure:
        laws = {"$n^{-1/2}$": (self.n, [1.2 / math.sqrt(n) for n in self.n])}
        curves = {f"k = {k}": Series(self.n, self.largest(k)) for k in self.deviations}
        return plots.scaling_plot(curves, "input bits n", "largest $|E h\\sigma' - \\varphi/2|$", laws)


def good_row(sizes: Leaky, counts: int) -> Row:
    """Of a problem's good units: their share, and the extremes of what the first step makes of them at |u| = n/k."""
    n, k = sizes.n, sizes.k
    units = good_units(sizes, np.unique(np.linspace(math.ceil((n - k) / 3), n - k, counts).astype(int)))
    g, phi, scale = leaky.first_gradient(sizes, units), leaky.central_probability(sizes, units), math.sqrt(n) / k
    return {"n": n, "k": k, "share": good_share(sizes), "exact": leaky.balanced_share(k),
            "bound": leaky.share_bound(k), "smallest alpha": float(g.relevant.min()),
            "largest alpha": float(g.relevant.max()),
            "relevant": scale * float(np.maximum(np.abs(g.at_zero), np.abs(g.along)).max()),
            "irrelevant": (n - 1) * scale * float(np.abs(g.off).max()),
            "bias": math.sqrt(n) * sizes.reach * float(np.abs(g.bias).max()),
            "by phi": scale * float(np.abs(g.relevant - phi).min())}


def good_units(sizes: Leaky, others: Ints) -> Units:
    """All good units with these counts off A: on A they have as many +1s as -1s."""
    pairs = np.arange(sizes.k // 2 + 1)
    both = np.repeat(pairs, len(others))
    return Units(both, both, np.tile(others, len(pairs)))


def good_share(sizes: Leaky) -> float:
    """The probability of a good unit.

    >>> round(good_share(Leaky(153_665, 7)), 4)
    0.1797
    """
    off = sizes.n - sizes.k
    return leaky.balanced_share(sizes.k) * float(stats.binom.sf(math.ceil(off / 3) - 1, off, 2 / 3))


# --- Lemma 7 --------------------------------------------------------------------------------------------------------


@claim(
    "daniely2020.lemma7",
    where="Lemma 7",
    kind="theory",
    title="A constant share of neurons becomes good after one step",
    statement="""With probability at least 1/(14 sqrt k) a neuron ends with relevant weights alpha u/sqrt n + O(1),
    irrelevant weights O(1/n) and an almost unchanged bias.""",
    published="""at least 1/(14 sqrt k) of the neurons, alpha in [1/4, 1] (Lemma 7); shares of 0.259 (k=3), 0.210 (k=5),
    0.180 (k=7), alpha 0.25 to 0.28, irrelevant weights and the bias's change 0 (computed here)""",
)
class Lemma7(Exact):
    """How many units are good, and what the exact first step makes of them."""

    n = size([64 * k**4 + 1 for k in (7, 9, 11)])
    k = size([7, 9, 11])
    counts = size(quick=200, full=2000, label="counts |J| looked at")
    enough = at_least("share of good units, n = {n}, k = {k}", "1 / (14 sqrt(k))", exact=True)
    smallest = at_least("smallest alpha, n = {n}, k = {k}", 1 / 4, exact=True)
    largest = at_most("largest alpha, n = {n}, k = {k}", 1, exact=True)
    relevant = at_most("largest |w_j - alpha u / sqrt(n)|, j in A, n = {n}, k = {k}", 1, exact=True)
    irrelevant = at_most("largest (n-1) |w_j|, j not in A, n = {n}, k = {k}", 1, exact=True)
    bias = at_most("largest sqrt(n) times the bias's change, n = {n}, k = {k}", 1, exact=True)

    @functools.cached_property
    def good(self) -> list[Good]:
        return [self._good(Leaky(n, k)) for k in (3, 5, 7) for n in self.n]

    def _good(self, problem: Leaky) -> Good:
        units, u = leaky.draw_units(problem, self.draws, self.rng(7, problem.n, problem.k))
        good = leaky.good(problem, units)
        chosen = np.flatnonzero(good)[: self.gradients]
        picked = leaky.Units(units.plus[chosen], units.minus[chosen], units.others[chosen])
        g = leaky.first_gradient(problem, picked)
        irrelevant = np.abs(u[chosen] * g.off) / math.sqrt(problem.n)
        return Good(problem.n, problem.k, int(good.sum()), g.relevant, irrelevant, np.abs(u[chosen] * g.bias))

    def rows(self) -> list[Row]:
        return [good_row(Leaky(n, k), self.counts) for n, k in zip(self.n, self.k, strict=True)]

    def judge(self, got: None) -> Findings:
        checks: list[Check] = []
        numbers: dict[str, float] = {}
        for row in (rows := self.rows()):
            where: dict[str, Any] = {"n": row["n"], "k": row["k"]}
            checks += [self.enough(row["share"], low=row["bound"], **where),
                       self.smallest(row["smallest alpha"], **where), self.largest(row["largest alpha"], **where),
                       self.relevant(row["relevant"], **where), self.irrelevant(row["irrelevant"], **where),
                       self.bias(row["bias"], **where)]
            numbers[f"least |w_j - phi u / sqrt(n)| with the proof's phi, |u| = n/k, k = {row['k']}"] = row["by phi"]
        note = ("The printed interval of alpha holds, although the proof's alpha is phi, which is twice as large: "
                "sqrt(n) x_j f is 1 on the equal-bits half alone.")
        return Findings(checks, rows, numbers, note)

    def draw(self, got: None) -> plots.Figure:
        return draw_good([row | {"n": "$64 k^4 + 1$"} for row in self.rows()], ends=(1 / 4,))


@dataclass(frozen=True)
class Good:
    """How many of the drawn units are good, and of some of them: alpha, weights off A, and changes of the bias."""

    n: int
    k: int
    count: int
    alpha: Floats
    irrelevant: Floats
    shift: Floats


def lowest(count: int, total: int, confidence: float = 0.99) -> float:
    """The one-sided Clopper-Pearson lower end of a proportion.

    >>> round(lowest(50, 100), 3)
    0.381
    """
    return float(stats.binomtest(count, total, alternative="greater").proportion_ci(confidence, "exact").low)


@plots.styled
def draw_good(data: Sequence[dict[str, Any]], ends: Sequence[float] = (1 / 8, 1 / 2)) -> plots.Figure:
    """Shares beside the exact ones and the lemma's bound; alpha beside its range."""
    figure = plots.blank(2.2)
    shares, alphas = figure.subplots(1, 2)
    degrees = sorted({row["k"] for row in data})
    for n, colour, marker in zip(sorted({row["n"] for row in data}), plots.COLOURS, "osD", strict=False):
        rows = [row for row in data if row["n"] == n]
        shares.plot(degrees, [row["share"] for row in rows], marker, color=colour, fillstyle="none", markersize=4,
                    label=f"n = {n}")
        for part in ("smallest alpha", "largest alpha"):
            alphas.plot(degrees, [row[part] for row in rows], marker, color=colour, fillstyle="none", markersize=4)
    rows = [row for row in data if row["n"] == data[0]["n"]]
    exact, bound = ([row[name] for row in rows] for name in ("exact", "bound"))
    shares.plot(degrees, exact, color=plots.GREY, linewidth=0.8, label="exact")
    shares.plot(degrees, bound, color=plots.GREY, linestyle="dotted", label="Lemma 7")
    shares.set(xlabel="k", ylabel="share of good units", ylim=(0, 0.3), xticks=degrees)
    for end in ends:
        alphas.axhline(end, color=plots.GREY, linestyle="dotted")
    alphas.set(xlabel="k", ylabel="$\\alpha$ of good units", ylim=(0, 0.55), xticks=degrees)
    figure.legend(*shares.get_legend_handles_labels(), loc="outside upper center", ncols=3)
    return figure


# --- Lemma 12 -------------------------------------------------------------------------------------------------------


@claim(
    "daniely2020.lemma12",
    where="Lemma 12",
    kind="exact",
    title="Output weights are small after the first step",
    statement="|u_i^(1)| <= k/sqrt n for every neuron.",
    published="|u^(1)| <= k/sqrt(n) (Lemma 12); at most 0.26 of it (computed here)",
)
class Lemma12(Exact):
    """|u| sqrt(n) / k after the first step, exactly, over random units."""

    n = size([101, 1001])
    draws = size(500)

    above = at_most("units with |u| above k / sqrt(n), n = {n}, k = {k}", 0)
    largest = at_most("largest |u| sqrt(n) / k, n = {n}, k = {k}", 0.5)

    @functools.cached_property
    def rows(self) -> list[Row]:
        found: list[Row] = []
        for k, n in itertools.product((3, 5, 7), self.n):
            units, _ = leaky.draw_units(Leaky(n, k), self.draws, self.rng(12, n, k))
            ratio = np.abs(leaky.first_gradient(Leaky(n, k), units).output) * math.sqrt(n) / k
            found += [{"n": n, "k": k, "sum": int(abs(total)), "ratio": float(value)}
                      for total, value in zip(units.sum, ratio, strict=True)]
        return found

    def judge(self, got: None) -> Findings:
        checks: list[Check] = []
        for k, n in itertools.product((3, 5, 7), self.n):
            ratio = [row["ratio"] for row in self.rows if (row["n"], row["k"]) == (n, k)]
            checks += [self.above(sum(value > 1 for value in ratio), n=n, k=k), self.largest(max(ratio), n=n, k=k)]
        return Findings(checks, self.rows)

    def draw(self, got: None) -> plots.Figure:
        return draw_outputs(self.rows)


@plots.styled
def draw_outputs(data: Sequence[dict[str, Any]]) -> plots.Figure:
    """The ratios against |W|, the sum of w over A, on which they depend almost alone."""
    figure = plots.blank(2.3)
    axes = figure.add_subplot(xlabel="|sum of w over A|", ylabel="$|u^{(1)}| \\sqrt{n} / k$", ylim=(-0.01, 0.55))
    for k, colour, marker in zip(sorted({row["k"] for row in data}), plots.COLOURS, "osD", strict=False):
        rows = [row for row in data if row["k"] == k]
        axes.plot([row["sum"] for row in rows], [row["ratio"] for row in rows], marker, color=colour, fillstyle="none",
                  markersize=3.5, label=f"k = {k}")
    axes.axhline(0.5, color=plots.GREY, linestyle="dotted", linewidth=0.8, label="asked")
    figure.legend(*axes.get_legend_handles_labels(), loc="outside upper center", ncols=4, columnspacing=1)
    return figure
