"""Theorem 2 by parts, its own schedule and another, and Lemmas 13 and 14 over several runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from daniely2020.common import Row, Trained, best, practical, train
from daniely2020.second_phase import (
    Lemma1314,
    Moves,
    Thm2,
    descended,
    fixed_separator,
    in_theory,
    regularised,
)
from daniely2020.theory.leaky import Leaky
from daniely2020.theory.leaky import theorem as leaky_theorem
from paritylab.aliases import Arrays
from paritylab.claims import Check, Findings, Lab, amends, at_least, at_most, size
from paritylab.claims.intervals import mean, share
from paritylab.engines.curves import Curves

OWN, SMALL = "its own schedule in its regime (k = 7, many units)", "its own schedule outside of it (k = 3, n = 61)"
THREE, FIVE = "another schedule, k = 3", "another schedule, k = 5"


@dataclass(frozen=True)
class Runs:
    """Practical runs and their frozen controls, runs at the theorem's rate, and descent in its regime."""

    networks: list[Trained]
    controls: list[Trained]
    printed: list[Trained]
    drawn: Arrays


@amends(
    "daniely2020.thm2",
    date="2026-11-16",
    kind="misreading",
    where="Theorem 2",
    quote="""with eta_1 = 1, lambda_1 = 1/2 and eta_t = k^2 / (T sqrt q), lambda_t <= k/n for every t > 1. Assume that
    n >= Omega(1) and 7 <= k <= O(n^(1/10)).""",
    change="""The first rule judged another schedule (rate 0.1) at k = 3 alone, and let it stand for the theorem. The
    theorem's own schedule is judged in its regime, where the limit of many units is computed: every term of the bound
    against what it bounds, and the error against the bound, with 1 for the constant. What it leaves at k = 3, and the
    other schedule at k = 3 and k = 5, are parts of their own. Six runs for each n instead of five, eight at k = 5;
    intervals.""",
    known="""Seed 0: error 0 at rate 0.1 in all 15 runs at k = 3; 0.375 at the theorem's rate for every T; in the limit
    no error from q = 6 k^16 on, and terms of 0.28 of their bounds and less. k = 5 had not been run.""",
)
class Thm2Amended(Thm2):
    """The theorem's schedule in its regime and at k = 3, and the practical one at k = 3 and 5."""

    networks = size(quick=[[61, 3, 200, 3000, 2]], standard=[[n, 3, 200, 5000, 6] for n in (61, 101, 201)],
                    full=[*([n, 3, 200, 5000, 6] for n in (61, 101, 201)), [101, 5, 500, 100_000, 8]],
                    label="n, k, q, T, seeds")
    others = size(quick=2, full=3, label="seeds of the controls and of the theorem's rate")

    terms = at_most("what {term} bounds / it, q = {q:.2g}", 1, exact=True, part=OWN)
    bound = at_most("largest error after the schedule / sum of the bound's terms without n, where that is below 1", 1,
                    exact=True, part=OWN)
    own = at_most("mean best error at the theorem's rate, T = {steps}, n = 61, k = 3, q = 200", 0.01, part=SMALL)
    three = at_least("share of runs with error <= 0.01, k = 3, all n", 0.8, part=THREE, claimed=1.0)
    five = at_least("share of runs with error <= 0.05, n = 101, k = 5", 0.6, part=FIVE, claimed=1.0, only=("full",))
    frozen = at_least("mean best error with frozen random units, n = {n}, k = {k}, q = {q}", 0.15, part="{part}")

    def work(self, lab: Lab) -> Any:
        if self.size == "standard":
            lab.leave_out("k = 5, which takes hours on two cores")
        networks = [train(lab, [practical(n, k, q)], steps, seeds) for n, k, q, steps, seeds in self.networks]
        controls = [train(lab, [practical(n, k, q, frozen=True)], steps, self.others)
                    for n, k, q, steps, _ in self.networks]
        printed = [train(lab, [practical(61, 3, 200, rate=leaky_theorem.schedule_rate(3, 200, steps))], steps,
                         self.others) for steps in self.printed]
        pairs, steps = self.drawn
        return Runs(networks, controls, printed, lab.compute(descended, q=pairs, steps=steps))

    def rows(self, got: Any) -> list[Row]:
        """Errors along the practical runs and their controls."""
        return [{"schedule": schedule, **row} for schedule, made in (("practical", got.networks),
                                                                     ("frozen", got.controls))
                for trained in made for row in trained.rows[0]]

    def judge(self, got: Any) -> Findings:
        checks = self.in_regime()
        errors = {3: [], 5: []}
        for (n, k, q, *_), trained, control in zip(self.networks, got.networks, got.controls, strict=True):
            errors[k] += best(trained.rows[0]).tolist()
            checks.append(self.frozen(*mean(best(control.rows[0])), n=n, k=k, q=q, part=THREE if k == 3 else FIVE))
        checks.append(self.three(*share(np.array(errors[3]) <= 0.01)))
        if errors[5]:
            checks.append(self.five(*share(np.array(errors[5]) <= 0.05)))
        data = self.rows(got)
        for steps, trained in zip(self.printed, got.printed, strict=True):
            checks.append(self.own(*mean(best(trained.rows[0])), steps=steps))
            data += [{"schedule": f"theorem's rate, T = {steps}", **row} for row in trained.rows[0]]
        data += [{"schedule": "theorem, q -> infinity", **row} for row in self.curve]
        return Findings(checks, data, in_theory(self.regime, got.drawn, *self.drawn))

    def in_regime(self) -> list[Check]:
        """The theorem's bound at k = 7, n = 7^10, in the limit of many units."""
        q, k = self.regime.needed, 7
        bounds = leaky_theorem.bound_terms(7**10, k, q, k**4 * q)
        terms = self.regime.proof_terms(q, k**4 * q)
        checks = [self.terms(terms[name] / bounds[name], term=name, q=q) for name in leaky_theorem.TERMS]
        without_n = [name for name in leaky_theorem.TERMS if "n" not in name]
        allowed = [(row["error"], sum(row[f"bound: {name}"] for name in without_n)) for row in self.curve]
        return [*checks, self.bound(max(error / most for error, most in allowed if most < 1))]


@amends(
    "daniely2020.lemma13-14",
    date="2026-11-16",
    kind="power",
    where="Lemmas 13 and 14",
    quote="""For every t and every i in [2q] we have |u_i^(t)| <= 6 eta t + k / sqrt n""",
    change="""Four runs instead of one, and the mean over runs of the largest ratio with an interval; Lemma 14, which
    was a number, is judged.""",
    known="""One run of seed 0 had ratios of 0.26 at most for Lemma 13, and 0.0002 for Lemma 14.""",
)
class Lemma1314Amended(Lemma1314):
    """The same moves over several runs; Lemma 14 for a separator u*."""

    runs = size(quick=2, full=4)

    within = at_most("mean over runs of the largest |{part}| move / bound, eta = {eta:g}, lambda = {decay:.2g}", 1)
    losses = at_most("mean over runs of the largest left side of Lemma 14 / right side, eta = {eta:g}, "
                     "lambda = {decay:.2g}", 1)

    def work(self, lab: Lab) -> list[Curves]:
        setups = [regularised(self.n, self.k, self.q, eta, decay, batch=2000) for eta, decay in self.points]
        return lab.curves_each(setups, self.steps, 10, self.runs, weights=True)

    def judge(self, got: list[Curves]) -> Findings:
        checks: list[Check] = []
        for (eta, decay), curves in zip(self.points, got, strict=True):
            made = [Moves.of(curves, self.n, self.k, eta, decay, run) for run in range(self.runs)]
            where = {"eta": eta, "decay": decay}
            checks += [self.within(*mean([float((each.largest[part] / each.bounds[part]).max()) for each in made]),
                                   part=part, **where) for part in "uwb"]
            sides = [fixed_separator(Leaky(self.n, self.k), each.w, each.b, each.bounds["w"] + each.bounds["b"],
                                     self.rng(14, run)) for run, each in enumerate(made)]
            checks.append(self.losses(*mean(sides), **where))
        return Findings(checks, self.rows(got))
