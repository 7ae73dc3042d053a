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
from daniely2020.theory.leaky import Leaky
from paritylab import plots
from paritylab.aliases import Floats
from paritylab.claims import Check, Findings, at_least, at_most, between, claim, size
from paritylab.measures.fourier import cube
from paritylab.plots import Series

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
    draws = size(5000)

    one = at_most("P[|{part}| > {c} / sqrt(C(n-1, k))], n = {n}, k = {k}", "1/c + 3 standard errors")
    any_ = at_most("P[any > {c} (n-1) / sqrt(C(n-1, k))], n = {n}, k = {k}", "1/c")

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
        for (k, n), (parts, largest) in self.gradients.items():
            for (part, values), c in itertools.product(parts.items(), (2, 5, 10)):
                share = float(np.mean(values > c))
                spread = math.sqrt(share * (1 - share) / self.draws)
                checks.append(self.one(share, high=1 / c + 3 * spread, part=part, c=c, n=n, k=k))
                data.append({"n": n, "k": k, "part": part, "c": c, "share": share, "largest": float(values.max())})
            checks += [self.any_(float(np.mean(largest > c * (n - 1))), high=1 / c, c=c, n=n, k=k) for c in (2, 5, 10)]
        return Findings(checks, data)

    def draw(self, got: None) -> plots.Figure:
        ranks = np.arange(1, self.draws + 1) / self.draws
        tails = {f"{part}, k = {k}": Series(np.maximum(np.sort(values)[::-1], 1e-6), ranks)
                 for (k, n), (parts, _) in self.gradients.items() if n == max(self.n)
                 for part, values in parts.items()}
        return draw_tails(tails, max(self.n))


@plots.styled
def draw_tails(tails: dict[str, Series], n: int) -> plots.Figure:
    """The share of units whose gradient exceeds c units, beside Lemma 3's 1/c."""
    figure = plots.blank(2.5)
    axes = figure.add_subplot(xscale="log", yscale="log", xlabel="c", xlim=(1e-3, 12), ylim=(1e-3, 1.3),
                              ylabel=f"P[|gradient| > $c / \\sqrt{{C(n-1, k)}}$], n = {n}")
    for (label, tail), colour, line in zip(tails.items(), plots.COLOURS, plots.LINES, strict=False):
        axes.step(np.asarray(tail.x), np.asarray(tail.y), where="post", color=colour, linestyle=line, label=label)
    c = np.geomspace(1, 12, 20)
    axes.plot(c, 1 / c, color=plots.GREY, linestyle="dotted", label="Lemma 3: 1/c")
    figure.legend(*axes.get_legend_handles_labels(), loc="outside upper center", ncols=2)
    return figure


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
    draws = size(200)

    constant = at_most("largest sqrt|J| / k times deviation, n = {n}, k = {k}", 3)
    slope = between("slope of log largest deviation on log n, k = {k}", -0.7, -0.3)

    @functools.cached_property
    def deviations(self) -> dict[int, list[tuple[Floats, Floats]]]:
        """For each k and each n those of every unit, and the same times sqrt|J| / k."""
        return {k: [self._deviations(Leaky(n, k)) for n in self.n] for k in (3, 7)}

    def _deviations(self, problem: Leaky) -> tuple[Floats, Floats]:
        units, _ = leaky.draw_units(problem, self.draws, self.rng(6, problem.n, problem.k))
        g = leaky.first_gradient(problem, units)
        zeros = problem.k - units.plus - units.minus
        by_sign = [np.where(present, g.relevant + extra, np.nan) for present, extra in (
            (zeros > 0, g.at_zero), (units.plus > 0, g.along), (units.minus > 0, -g.along))]
        central = problem.leak * leaky.central_probability(problem, units)
        deviation = np.nanmax(np.abs(np.stack(by_sign) - central), axis=0)
        return deviation, np.sqrt(units.others) / problem.k * deviation

    def largest(self, k: int) -> list[float]:
        return [float(deviation.max()) for deviation, _ in self.deviations[k]]

    def judge(self, got: None) -> Findings:
        checks: list[Check] = []
        data: list[Row] = []
        for k, found in self.deviations.items():
            for n, (deviation, scaled) in zip(self.n, found, strict=True):
                checks.append(self.constant(float(scaled.max()), n=n, k=k))
                data += [{"n": n, "k": k, "unit": i, "deviation": float(d), "scaled": float(s)}
                         for i, (d, s) in enumerate(zip(deviation, scaled, strict=True))]
            slope = float(np.polyfit(np.log(self.n), np.log(self.largest(k)), 1)[0])
            checks.append(self.slope(slope, k=k))
        return Findings(checks, data)

    def draw(self, got: None) -> plots.Figure:
        laws = {"$n^{-1/2}$": (self.n, [1.2 / math.sqrt(n) for n in self.n])}
        curves = {f"k = {k}": Series(self.n, self.largest(k)) for k in self.deviations}
        return plots.scaling_plot(curves, "input bits n", "largest $|E h\\sigma' - \\varphi/2|$", laws)


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

    n = size([101, 1001, 4001])
    draws = size(20_000)
    gradients = size(200)

    surely = at_least("share of good units, 99 % confidence, n = {n}, k = {k}", "1 / (14 sqrt(k))")
    known = at_most("|share - trinomial probability|, n = {n}, k = {k}", 0.02)
    smallest = at_least("smallest alpha, n = {n}, k = {k}", 1 / 8)
    largest = at_most("largest alpha, n = {n}, k = {k}", 1 / 2)
    irrelevant = at_most("largest irrelevant weight, n = {n}, k = {k}", "1e-12 n")

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
        return [{"n": good.n, "k": good.k, "share": good.count / self.draws, "exact": leaky.balanced_share(good.k),
                 "bound": leaky.share_bound(good.k), "smallest alpha": float(good.alpha.min()),
                 "largest alpha": float(good.alpha.max()), "largest bias change": float(good.shift.max())}
                for good in self.good]

    def judge(self, got: None) -> Findings:
        checks: list[Check] = []
        for good, row in zip(self.good, rows := self.rows(), strict=True):
            where: dict[str, Any] = {"n": good.n, "k": good.k}
            checks += [
                self.surely(lowest(good.count, self.draws), low=row["bound"], **where),
                self.known(abs(row["share"] - row["exact"]), **where),
                self.smallest(row["smallest alpha"], **where),
                self.largest(row["largest alpha"], **where),
                self.irrelevant(float(good.irrelevant.max()), high=1e-12 * good.n, **where),
            ]
        return Findings(checks, rows)

    def draw(self, got: None) -> plots.Figure:
        return draw_good(self.rows())


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
