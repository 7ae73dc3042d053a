"""Claims on alignments, one step and initialisations: their trials, and the helpers behind them."""

from __future__ import annotations

import math

import flint
import numpy as np
import pytest
from abbe2024.alignments import ratio_interval, sign_flow
from abbe2024.common import fit
from abbe2024.initialisations import sampled_moments
from abbe2024.laws import alternating_mean
from abbe2024.one_step import Trials, largest, predicted_success, smallest
from abbe2024.output_layer import largest_drop
from abbe2024.theory.high_degree import critical_width

from paritylab.claims import Lab, at_least, at_most, find, reproduce
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
    assert found.verdict == "reproduced"
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


def test_random_labels_do_not_move_the_alignment_of_signs():
    for d in (6, 10):
        assert sign_flow(d) == pytest.approx(alignment("rademacher", d, unit="hinge-neuron").value)


def test_lines_and_intervals():
    assert fit([1, 2, 4], [3, 5, 9]) == (2.0, 1.0)
    above = np.random.default_rng(0).exponential(size=400)
    assert ratio_interval(2 * above, above, np.random.default_rng(1)) == pytest.approx((2, 2))


def test_shares_of_perfect_networks():
    some, all_ = Trials(3, 10), Trials(10, 10)
    assert smallest(at_least("", 0.9), [some, all_]).value == 0.3
    assert largest(at_most("", 0.5), [some, all_]).passed is False
    no_fall = at_most("", 0.0)
    assert largest_drop(no_fall, [[some, all_]]).passed
    drop = largest_drop(no_fall, [[all_, Trials(9, 10)]])
    assert not drop.passed
    assert not drop.certain  # one seed of ten is no evidence
    assert largest_drop(no_fall, [[all_, some]]).certain


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
