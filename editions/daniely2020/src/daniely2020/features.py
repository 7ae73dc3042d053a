"""What the good units can express: Lemmas 8 to 10."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from daniely2020.common import Row
from daniely2020.first_step import lowest
from daniely2020.theory import leaky
from daniely2020.theory.leaky import Leaky
from daniely2020.theory.leaky import features as leaky_features
from daniely2020.theory.leaky import flow as leaky_flow
from paritylab import plots
from paritylab.aliases import Arrays, Floats
from paritylab.claims import (
    Check,
    Findings,
    Lab,
    Trial,
    at_least,
    at_most,
    between,
    claim,
    computation,
    holds,
    rng,
    size,
)
from paritylab.plots import Series

# --- Lemmas 8 and 9 -------------------------------------------------------------------------------------------------


@claim(
    "daniely2020.lemma8-9",
    where="Lemmas 8 and 9",
    kind="theory",
    title="Good neurons realise every bump psi_r",
    statement="""For each r in {-k,...,k} step 2 the rescaled post-step neuron approximates relu(-sign(r) z + |r|), z =
    sqrt(n) sum_A x, within eps with probability at least eps/(8 k^2) over u (and eps/(112 k^2.5) over w and u).""",
    published="probabilities of at least eps/(8 k^2) (Lemma 8) and eps/(112 k^2.5) (Lemma 9)",
)
class Lemma89(Trial):
    """How many units are within eps of psi_r after the first step: among good ones, and among all; for every r."""

    k = size([3, 5, 7])
    n = size([1001, 10_001])
    draws = size(100_000)

    good = at_least("share of good units near psi_r, 99 % confidence, r = {r}, eps = {eps:g}, n = {n}, k = {k}",
                    "eps / (8 k^2)")
    all_ = at_least("share of all units near psi_r, 99 % confidence, r = {r}, eps = {eps:g}, n = {n}, k = {k}",
                    "eps / (112 k^2.5)")

    @property
    def points(self) -> list[tuple[int, int]]:
        return list(itertools.product(self.k, self.n))

    def work(self, lab: Lab) -> list[Arrays]:
        asked = [{"n": n, "k": k, "draws": self.draws, "eps": list(distances(k))} for k, n in self.points]
        return lab.compute_each(near_bumps, asked)

    def judge(self, got: list[Arrays]) -> Findings:
        checks: list[Check] = []
        for row, (near, good) in zip(rows := self.rows(got), self.counts(got), strict=True):
            where = {name: row[name] for name in ("r", "eps", "n", "k")}
            checks += [self.good(lowest(near, good), low=row["Lemma 8"], **where),
                       self.all_(lowest(near, self.draws), low=row["Lemma 9"], **where)]
        return Findings(checks, rows)

    def draw(self, got: list[Arrays]) -> plots.Figure:
        return draw_bumps(self.rows(got), max(self.n))

    def counts(self, got: list[Arrays]) -> list[tuple[int, int]]:
        """For each row how many units are near the bump, and how many are good."""
        return [(int(near), int(arrays["good"])) for arrays in got for near in arrays["near"].ravel()]

    def rows(self, got: list[Arrays]) -> list[Row]:
        places = [(n, k, r, eps) for k, n in self.points for r in Leaky(n, k).values.tolist() for eps in distances(k)]
        exact = [float(value) for arrays in got for value in arrays["exact"].ravel()]
        return [{"n": n, "k": k, "r": r, "eps": eps, "of good": near / good, "of all": near / self.draws,
                 "exact of good": chance, "Lemma 8": eps / (8 * k**2), "Lemma 9": eps / (112 * k**2.5)}
                for (n, k, r, eps), (near, good), chance in zip(places, self.counts(got), exact, strict=True)]


def distances(k: int) -> tuple[float, float]:
    """The eps that are tried."""
    return 0.1 * k, 0.5


@computation
def near_bumps(seed: int, n: int, k: int, draws: int, eps: list[float]) -> dict[str, Any]:
    """How many drawn units are good; for each r and eps, how many of them are near psi_r, and the exact share."""
    problem = Leaky(n, k)
    units, u = leaky.draw_units(problem, draws, rng(seed, 8, n, k))
    good = np.flatnonzero(leaky.good(problem, units))
    chosen = leaky.Units(units.plus[good], units.minus[good], units.others[good])
    alpha = leaky.first_gradient(problem, chosen).relevant
    bumps = problem.values.tolist()
    apart = [leaky_features.bump_distance(problem, r, alpha, u[good]) for r in bumps]
    return {"good": len(good), "near": [[np.sum(distance <= most) for most in eps] for distance in apart],
            "exact": [[leaky_features.bump_chance(problem, r, alpha, most).mean() for most in eps] for r in bumps]}


@plots.styled
def draw_bumps(data: Sequence[dict[str, Any]], n: int) -> plots.Figure:
    """The shares at eps = 0.5 against r, beside the exact ones and the lemmas' bounds."""
    figure = plots.blank(2.9)
    axes = figure.add_subplot(xlabel="r", ylabel="share of units near $\\psi_r$, $\\epsilon = 0.5$", yscale="log")
    for k, colour, marker in zip(sorted({row["k"] for row in data}), plots.COLOURS, "osD", strict=False):
        rows = [row for row in data if row["k"] == k and row["n"] == n and row["eps"] == 0.5]
        r = [row["r"] for row in rows]
        axes.plot(r, [row["of good"] for row in rows], marker, color=colour, markersize=4, label=f"of good, k = {k}")
        axes.plot(r, [row["of all"] for row in rows], marker, color=colour, markersize=4, fillstyle="none",
                  label=f"of all, k = {k}")
        axes.plot(r, [row["exact of good"] for row in rows], color=colour, linewidth=0.8,
                  label="exact" if k == data[0]["k"] else None)
        for name, line in (("Lemma 8", "dashed"), ("Lemma 9", "dotted")):
            axes.plot(r, [row[name] for row in rows], color=colour, linestyle=line, linewidth=0.8,
                      label=name if k == data[0]["k"] else None)
    figure.legend(*axes.get_legend_handles_labels(), loc="outside upper center", ncols=3, columnspacing=1)
    return figure


# --- Lemma 10 -------------------------------------------------------------------------------------------------------


@claim(
    "daniely2020.lemma10",
    where="Lemma 10",
    kind="theory",
    title="A low-norm separator on the learned features exists",
    statement="After the first step some u* with ||u*|| <= B k^5/sqrt q separates with margin 1.",
    published="""v_r = 1 at |r| = k, 2.5 at |r| = 1, 2 between (proof of Lemma 10), which do not reproduce the parity;
    the only weights that do: 2 for |r| < k and 1.5 (k = 3 mod 4) or 0.5 (k = 1 mod 4) at |r| = k, of sign
    -(-1)^((k-r)/2) (computed here)""",
)
class Lemma10(Trial):
    """The weights of the bumps that make the parity, and the smallest separators on features after the exact step."""

    n = size(quick=301, full=1001)
    k = size(quick=[3], full=[3, 5], label="k of the separators")
    q = size(quick=[125, 250, 500], full=[500, 2000, 8000])
    points = size(quick=1000, full=4000)
    seeds = size(quick=2, full=5)

    corrected = at_most("residual of the corrected weights, k = {k}", 1e-9)
    printed = holds("residual of the printed weights, k = {k}", "> 1")
    separated = at_least("share of seeds with a separator, q = {q}, k = {k}", 0.8)
    slope = between("slope of log median |u| on log q, k = {k}", -0.7, -0.3)

    def work(self, lab: Lab) -> list[Arrays]:
        asked = [{"n": self.n, "k": k, "q": q, "points": self.points, "number": number}
                 for k, q, number in itertools.product(self.k, self.q, range(self.seeds))]
        return lab.compute_each(separator, asked)

    def norms(self, got: list[Arrays]) -> dict[int, Floats]:
        """(q, seeds): the norms of the smallest separators, for each k; infinite where there is none."""
        found = np.array([float(arrays["norm"]) for arrays in got]).reshape(len(self.k), len(self.q), self.seeds)
        return dict(zip(self.k, found, strict=True))

    @functools.cached_property
    def limits(self) -> dict[int, list[float]]:
        """The norm at each q in the limit of many units, for each k."""
        squares = {k: many_units(Leaky(self.n, k)) for k in self.k}
        return {k: [math.sqrt(square / q) for q in self.q] for k, square in squares.items()}

    def judge(self, got: list[Arrays]) -> Findings:
        checks: list[Check] = []
        rows: list[Row] = []
        for k in (3, 5, 7, 9, 11):
            found, printed = residual(k), residual(k, printed=True)
            checks += [self.corrected(found, k=k), self.printed(printed > 1, printed, k=k)]
            rows.append({"k": k, "residual": found, "residual as printed": printed})
        for k, norms in self.norms(got).items():
            middle = np.median(norms, axis=1)
            slope = float(np.polyfit(np.log(self.q), np.log(middle), 1)[0]) if np.isfinite(middle).all() else None
            checks += [self.separated(float(np.isfinite(norms[-1]).mean()), q=self.q[-1], k=k), self.slope(slope, k=k)]
            rows += [{"k": k, "n": self.n, "q": q, "seed": seed, "norm": float(norm), "limit": limit}
                     for q, limit, row in zip(self.q, self.limits[k], norms, strict=True)
                     for seed, norm in enumerate(row)]
        theorem = math.sqrt(many_units(Leaky(7**10, 7))) / 7**5
        return Findings(checks, rows, {"sqrt(q) |u*| / k^5, k = 7, n = 7^10, q -> infinity": theorem})

    def draw(self, got: list[Arrays]) -> plots.Figure:
        curves = {f"k = {k}": Series(self.q, np.median(norms, axis=1), norms.min(1), norms.max(1))
                  for k, norms in self.norms(got).items()}
        laws = {"_" * i + "limit of many units, no noise": (self.q, limit)
                for i, limit in enumerate(self.limits.values())}
        return plots.scaling_plot(curves, "pairs of units q", "smallest $|u|$ with margin 1", laws)


def residual(k: int, printed: bool = False) -> float:
    """The largest error of the weighted bumps as a formula of the parity."""
    made = leaky_features.bump_sum(k, leaky_features.bump_coefficients(k, printed))
    return float(np.abs(made - Leaky(k + 1, k).labels).max())


def many_units(problem: Leaky) -> float:
    """q |u*|^2 of the smallest separator as q grows."""
    return leaky_flow.separator_norm(problem, leaky_flow.limit(problem).kernel) / 2


@computation
def separator(seed: int, n: int, k: int, q: int, points: int, number: int) -> dict[str, Any]:
    """The norm of the smallest separator of all patterns on A, each with several random completions."""
    problem, generator = Leaky(n, k), rng(seed, 10, k, q, number)
    layer = leaky.first_step(problem, leaky.start(problem, q, generator))
    patterns = np.array(list(itertools.product((1.0, -1.0), repeat=k)))
    s = 1.0 - 2.0 * generator.integers(0, 2, (points, n))
    s[:, :k] = np.resize(patterns, (points, k))
    return {"norm": leaky_features.smallest_separator(layer.features(s), s[:, :k].prod(1))}
