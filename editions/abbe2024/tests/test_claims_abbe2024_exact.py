"""Claims on alignments, one step and initialisations: their trials, and the helpers behind them."""

from __future__ import annotations

import math
from typing import Any

import flint
import numpy as np
import pytest
from abbe2024 import alignments, output_layer
from abbe2024.alignments import ratio_interval
from abbe2024.common import fit
from abbe2024.initialisations import sampled_moments
from abbe2024.laws import alternating_mean
from abbe2024.one_step import Trials, largest, predicted_success, smallest
from abbe2024.theory.high_degree import critical_width

from paritylab.claims import Lab, at_least, at_most, find, reproduce
from paritylab.claims.reproduction import tried
from paritylab.claims.trial import Trial
from paritylab.claims.verdicts import CONTRADICTED, HOLDS, Result, results
from paritylab.measures.alignment import alignment

CLAIMS = ("fig2-left", "fig2-right", "fig6", "lemma1", "cor3", "eq11-identity", "prop1", "thm9", "initialisations",
          "thm4-1", "thm4-2", "thm4-3", "thm4-bias", "remark1-clipped-relu")


@pytest.mark.parametrize("name", CLAIMS)
def test_the_claim_has_a_trial(name):
    claim = find([f"abbe2024.{name}"])[0]
    assert claim.trial.claim == claim.id


@pytest.mark.parametrize("name", ["lemma1", "eq11-identity"])
def test_identities_hold(name, tmp_path):
    found = reproduce(f"abbe2024.{name}", Lab("quick", tmp_path))
    assert found.outcome.results == {"": HOLDS}
    assert found.result["size"] == "full"


def alternating_sum(unit: str, d: int, alpha: str, beta: str) -> float:
    """The sum over k itself, with 300 digits."""
    before, flint.ctx.dps = flint.ctx.dps, 300
    arb = flint.arb
    try:
        total = arb(0)
        for k in range(d + 1):
            rho = arb(alpha) * (d - 2 * k) / d + arb(beta)
            inside = abs(rho.mid() ** 2 - 1) > arb("1e-100")
            angle = rho.acos() if inside else arb(0) if rho > 0 else arb.pi()
            root = (1 - rho * rho).sqrt() if inside else arb(0)
            step = arb(1) / 2 - angle / (2 * arb.pi())
            value = step if unit == "step" else root / (2 * arb.pi()) + rho * step
            total += (-1) ** k * math.comb(d, k) * value
        return float((abs(total) / arb(2) ** d).log().mid())
    finally:
        flint.ctx.dps = before


@pytest.mark.parametrize("unit", ["step", "relu"])
@pytest.mark.parametrize(("alpha", "beta"), [("1", "0"), ("0.5", "0.5"), ("0.5", "-0.25"), ("0.3", "0")])
def test_the_integral_is_the_alternating_sum(unit, alpha, beta):
    for d in (10, 11, 40, 61, 100):
        found = alternating_mean(unit, d, float(alpha), float(beta))
        if beta == "0" and (d + (unit == "relu")) % 2 == 0:
            assert found == -math.inf
        else:
            assert found == pytest.approx(alternating_sum(unit, d, alpha, beta), abs=1e-9)


def test_the_sum_is_the_alignment_of_a_gaussian_unit():
    assert alternating_mean("step", 31, 1.0, 0.0) == pytest.approx(alignment("gaussian", 31).log, abs=1e-11)
    with_bias = alignment("gaussian", 30, bias=f"gaussian:{math.sqrt(30)}").log  # variance of the bias = of w.x
    assert alternating_mean("step", 30, 0.5, 0.5) == pytest.approx(with_bias, abs=1e-9)


def test_lines_and_intervals():
    assert fit([1, 2, 4], [3, 5, 9]) == (2.0, 1.0)
    above = np.random.default_rng(0).exponential(size=400)
    assert ratio_interval(2 * above, above, np.random.default_rng(1)) == pytest.approx((2, 2))


def test_shares_of_perfect_networks():
    some, all_ = Trials(3, 10), Trials(10, 10)
    assert smallest(at_least("", 0.9), [some, all_]).value == 0.3
    assert largest(at_most("", 0.5), [some, all_]).passed is False


def judged(trial: Trial, got: Any) -> dict[str, Result]:
    return results(trial.judge(got).checks)


def counted(perfect: int, seeds: int) -> dict[str, Any]:
    return {"perfect": np.array(perfect), "seeds": np.array(seeds)}


def test_shares_of_perfect_networks_by_part() -> None:
    sgd = output_layer.Thm43("full")
    got = [counted(100 if batch == 1 else 980, 1000) for _, batch, _ in sgd.places for _ in range(5)]
    assert set(judged(sgd, got).items()) == {("B = 1, no noise", "contradicted"), ("B = 1, noise", "contradicted"),
                                             ("B = 64, no noise", "holds"), ("B = 64, noise", "holds")}
    bias = output_layer.Thm4Bias("full")
    got = [counted(each["seeds"] // (2 if kind == "wider" else 1), each["seeds"])
           for (kind, _, _), each in bias.cases().items()]
    assert judged(bias, got) == {"recommended biases": "holds", "N(0, 1) biases": "contradicted",
                                 "an unlucky bias": "holds"}


def test_the_predicted_transition():
    shares = [predicted_success(12, factor * critical_width(12)) for factor in (0.25, 0.5, 1, 2)]
    assert shares == sorted(shares)
    assert shares[0] < 1e-3
    assert shares[-1] > 0.999


def test_moments_in_standard_errors():
    w = np.random.default_rng(2).standard_normal(100_000)
    found = sampled_moments(w, 3.0)
    assert max(abs(found[f"{name} z"]) for name in ("mean", "variance", "kurtosis")) < 5
    assert abs(sampled_moments(1.05 * w, 3.0)["variance z"]) > 5
    signs = sampled_moments(np.where(w > 0, 1.0, -1.0), 1.0)
    assert (signs["variance z"], signs["kurtosis z"]) == (0, 0)


def test_the_published_values_of_figure_2_are_not_those_of_enumeration(tmp_path):
    found = tried(alignments.Fig2Left("quick"), Lab("quick", tmp_path, progress=False)).results
    assert found.pop("the published values for signs") == CONTRADICTED
    assert set(found.values()) == {HOLDS}
