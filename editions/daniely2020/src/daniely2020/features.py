"""What the good units can express: Lemmas 8 to 10."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import stats

from daniely2020.common import Row
from daniely2020.first_step import good_share, good_units
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
    rng,
    size,
)
from paritylab.claims.intervals import bootstrap, share
from paritylab.plots import Figure, Series

BUMPS, CUT_OFF = "psi_r with a ReLU", "psi_r with a ReLU6, as printed"


@computation
def bump_chances(seed: int, k: int, eps: list[float], counts: int) -> dict[str, Any]:
    """At n = k^8: the share of good units, and for each r and eps the probability that one is near psi_r.

    For each eps also the share of a grid of u whose units are near psi_k cut off at 6.
    """
    problem = Leaky(k**8, k)
    others = stats.binom.ppf((np.arange(counts) + 0.5) / counts, problem.n - k, 2 / 3).astype(int)
    alpha = leaky.first_gradient(problem, good_units(problem, others)).relevant[:counts]
    u = np.linspace(-problem.reach, problem.reach, 100_001)
    unit = np.clip(np.multiply.outer(alpha.mean() * u / problem.n, problem.values) + problem.bias, 0, problem.upper)
    apart = np.abs(k / problem.bias * unit - np.minimum(leaky_features.bump(k, problem.values), problem.upper)).max(1)
    return {"share": good_share(problem), "cut": [np.mean(apart <= most) for most in eps],
            "near": [[leaky_features.bump_chance(problem, r, alpha, most).mean() for most in eps]
                     for r in problem.values.tolist()]}


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

    k = size([7, 9, 11])
    quantiles = size(201, label="quantiles of |J|")
    good = at_least("probability of a good unit near psi_r, r = {r}, eps = {eps:g}, k = {k}", "eps / (8 k^2)",
                    exact=True, part=BUMPS)
    all_ = at_least("probability of any unit near psi_r, r = {r}, eps = {eps:g}, k = {k}", "eps / (112 k^2.5)",
                    exact=True, part=BUMPS)
    cut = at_least("share of u with a good unit near psi_k cut off at 6, eps = {eps:g}, k = {k}", "eps / (8 k^2)",
                   exact=True, part=CUT_OFF)

    @property
    def points(self) -> list[tuple[int, int]]:
        return list(itertools.product(self.k, self.n))

    def work(self, lab: Lab) -> list[Arrays]:
        return lab.compute_each(bump_chances, [{"k": k, "eps": list(distances(k)), "counts": self.quantiles}
                                               for k in self.k])

    def judge(self, got: list[Arrays]) -> Findings:
        checks: list[Check] = []
        for row in (rows := self.rows(got)):
            where = {name: row[name] for name in ("r", "eps", "k")}
            checks += [self.good(row["of good"], low=row["Lemma 8"], **where),
                       self.all_(row["of all"], low=row["Lemma 9"], **where)]
        checks += [self.cut(float(share), low=eps / (8 * k**2), eps=eps, k=k)
                   for k, arrays in zip(self.k, got, strict=True)
                   for eps, share in zip(distances(k), arrays["cut"], strict=True)]
        return Findings(checks, rows)

    def draw(self, got: list[Arrays]) -> Figure:
        return draw_bumps([row | {"n": 0} for row in self.rows(got)], 0)

    def counts(self, got: list[Arrays]) -> list[tuple[int, int]]:
        """For each row how many units are near the bump, and how many are good."""
        return [(int(near), int(arrays["good"])) for arrays in got for near in arrays["near"].ravel()]

    def rows(self, got: list[Arrays]) -> list[Row]:
        found: list[Row] = []
        for k, arrays in zip(self.k, got, strict=True):
            places = itertools.product(Leaky(k**8, k).values.tolist(), distances(k))
            found += [{"n": k**8, "k": k, "r": r, "eps": eps, "of good": chance,
                       "of all": chance * float(arrays["share"]), "exact of good": chance,
                       "Lemma 8": eps / (8 * k**2), "Lemma 9": eps / (112 * k**2.5)}
                      for (r, eps), chance in zip(places, arrays["near"].ravel().tolist(), strict=True)]
        return found


def distances(k: int) -> tuple[float, float]:
    """The eps that are tried."""
    return 0.1 * k, 0.5


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


PRINTED, CORRECTED, DRAWN, REGIME = ("weights as printed", "weights corrected", "drawn units, k = 3 and 5",
                                     "many units, k = 7 to 11, n = k^10")


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
    seeds = size(quick=2, full=9)
    regime = size(quick=[7], full=[7, 9, 11], label="k in the regime")
    corrected = at_most("residual of the corrected weights, k = {k}", 1e-9, exact=True, part=CORRECTED)
    printed = at_most("residual of the printed weights, k = {k}", 1e-9, exact=True, part=PRINTED)
    separated = at_least("share of draws with a separator, q = {q}, all k", 0.8, part=DRAWN, claimed=1.0)
    slope = between("slope of log median |u| on log q, k = {k}", -0.7, -0.3, part=DRAWN, claimed=-0.5)
    norm = at_most("sqrt(q) |u*| / k^5, k = {k}, n = k^10", 1, exact=True, part=REGIME)

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
            checks += [self.corrected(found, k=k), self.printed(printed, k=k)]
            rows.append({"k": k, "residual": found, "residual as printed": printed})
        separators = self.norms(got)
        last = np.concatenate([norms[-1] for norms in separators.values()])
        checks.append(self.separated(*share(np.isfinite(last)), q=self.q[-1]))
        for k, norms in separators.items():
            interval = bootstrap(self.exponent, *norms, rng=self.rng(k))
            checks.append(self.slope(self.exponent(*norms), interval, k=k))
            rows += [{"k": k, "n": self.n, "q": q, "seed": seed, "norm": float(norm), "limit": limit}
                     for q, limit, row in zip(self.q, self.limits[k], norms, strict=True)
                     for seed, norm in enumerate(row)]
        checks += [self.norm(math.sqrt(many_units(Leaky(k**10, k))) / k**5, k=k) for k in self.regime]
        return Findings(checks, rows)

    def draw(self, got: list[Arrays]) -> plots.Figure:
        curves = {f"k = {k}": Series(self.q, np.median(norms, axis=1), norms.min(1), norms.max(1))
                  for k, norms in self.norms(got).items()}
        laws = {"_" * i + "limit of many units, no noise": (self.q, limit)
                for i, limit in enumerate(self.limits.values())}
        return plots.scaling_plot(curves, "pairs of units q", "smallest $|u|$ with margin 1", laws)

    def exponent(self, *norms: Floats) -> float:
        """The slope of log median norms on log q; NaN where a median is infinite."""
        medians = np.array([np.median(each) for each in norms])
        return float(np.polyfit(np.log(self.q), np.log(medians), 1)[0]) if np.isfinite(medians).all() else math.nan


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
