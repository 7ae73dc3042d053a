"""Lemmas 8 to 10 by amended rules: bumps by their probabilities in the lemmas' regime, and printed weights apart."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
from scipy import stats

from daniely2020.amended_first_step import good_share, good_units
from daniely2020.common import Row
from daniely2020.features import Lemma10, Lemma89, distances, draw_bumps, many_units, residual
from daniely2020.theory import leaky
from daniely2020.theory.leaky import Leaky
from daniely2020.theory.leaky import features as leaky_features
from paritylab.aliases import Arrays, Floats
from paritylab.claims import Check, Findings, Lab, amends, at_least, at_most, between, computation, size
from paritylab.claims.intervals import bootstrap, share
from paritylab.plots import Figure

BUMPS, CUT_OFF = "psi_r with a ReLU", "psi_r with a ReLU6, as printed"


@amends(
    "daniely2020.lemma8-9",
    date="2026-11-16",
    kind="misreading",
    where="Lemmas 8 and 9",
    quote="""assume that n >= 9 log 7 and 7 <= k <= c eps^(1/4) n^(1/8), for some universal constant c""",
    change="""k = 7, 9 and 11 at n = k^8 in place of k = 3, 5, 7 at n up to 10,001; probabilities computed instead of
    estimated from 100,000 draws. psi_r with the ReLU6 of the paper, which cuts it off at 6, is a part of its own: the
    first rule had a ReLU in its place.""",
    known="""The first rule's 144 shares were all above their bounds; at k = 9 and 11 nothing was known. Units are far
    below 6, so that none of them can follow a cut-off bump.""",
)
class Lemma89Amended(Lemma89):
    """The probability that a unit is near psi_r after the first step: of good ones, and of all; for every r."""

    k = size([7, 9, 11])
    n = None
    draws = None
    quantiles = size(201, label="quantiles of |J|")

    good = at_least("probability of a good unit near psi_r, r = {r}, eps = {eps:g}, k = {k}", "eps / (8 k^2)",
                    exact=True, part=BUMPS)
    all_ = at_least("probability of any unit near psi_r, r = {r}, eps = {eps:g}, k = {k}", "eps / (112 k^2.5)",
                    exact=True, part=BUMPS)
    cut = at_least("share of u with a good unit near psi_k cut off at 6, eps = {eps:g}, k = {k}", "eps / (8 k^2)",
                   exact=True, part=CUT_OFF)

    def work(self, lab: Lab) -> list[Arrays]:
        return lab.compute_each(bump_chances, [{"k": k, "eps": list(distances(k)), "counts": self.quantiles}
                                               for k in self.k])

    def rows(self, got: list[Arrays]) -> list[Row]:
        found: list[Row] = []
        for k, arrays in zip(self.k, got, strict=True):
            places = itertools.product(Leaky(k**8, k).values.tolist(), distances(k))
            found += [{"n": k**8, "k": k, "r": r, "eps": eps, "of good": chance,
                       "of all": chance * float(arrays["share"]), "exact of good": chance,
                       "Lemma 8": eps / (8 * k**2), "Lemma 9": eps / (112 * k**2.5)}
                      for (r, eps), chance in zip(places, arrays["near"].ravel().tolist(), strict=True)]
        return found

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


PRINTED, CORRECTED, DRAWN, REGIME = ("weights as printed", "weights corrected", "drawn units, k = 3 and 5",
                                     "many units, k = 7 to 11, n = k^10")


@amends(
    "daniely2020.lemma10",
    date="2026-11-16",
    kind="misprint",
    where="Lemma 10 and its proof",
    quote="""Observe that sum_r (-1)^((k-r)/2) v_r psi_r(x) = f_A(x). [...] Furthermore, we have |u*|_2 <= B k^5 /
    sqrt(q)""",
    change="""The printed weights are a part that must reproduce the parity; the first rule asked that they do not. The
    bound on the norm is judged in the lemma's regime (k >= 7, n = k^10) with B = 1, in the limit of many units. Drawn
    units: nine draws instead of five, with intervals.""",
    known="""Residuals of the printed weights are 4 to 16; sqrt(q) |u*| / k^5 is 0.75, 0.63 and 0.56 at k = 7, 9 and 11;
    five draws of seed 0 gave slopes of -0.50 and -0.53 and a separator each time.""",
)
class Lemma10Amended(Lemma10):
    """Both sets of weights, the smallest separators on drawn features, and their norm in the lemma's regime."""

    seeds = size(quick=2, full=9)
    regime = size(quick=[7], full=[7, 9, 11], label="k in the regime")

    corrected = at_most("residual of the corrected weights, k = {k}", 1e-9, exact=True, part=CORRECTED)
    printed = at_most("residual of the printed weights, k = {k}", 1e-9, exact=True, part=PRINTED)
    separated = at_least("share of draws with a separator, q = {q}, all k", 0.8, part=DRAWN, claimed=1.0)
    slope = between("slope of log median |u| on log q, k = {k}", -0.7, -0.3, part=DRAWN, claimed=-0.5)
    norm = at_most("sqrt(q) |u*| / k^5, k = {k}, n = k^10", 1, exact=True, part=REGIME)

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

    def exponent(self, *norms: Floats) -> float:
        """The slope of log median norms on log q; NaN where a median is infinite."""
        medians = np.array([np.median(each) for each in norms])
        return float(np.polyfit(np.log(self.q), np.log(medians), 1)[0]) if np.isfinite(medians).all() else math.nan
