"""The claims of barak2022 about disjoint-PolyNets and two-stage training: helpers, and claims that take no time."""

import math

import numpy as np
import pytest
from barak2022 import disjoint, disjoint_flow, two_stage
from barak2022.theory.two_stage import Layer

from paritylab.claims import Lab, at_least, find
from paritylab.claims.reproduction import tried
from paritylab.claims.verdicts import CONTRADICTED, HOLDS

CLAIMS = ["fig5-left", "fig5-right", "thm7-gradient-flow", "cor11", "cor12", "lemma5", "lemma6", "thm8-adaptive-sgd",
          "thm4-two-stage", "lemma4-features"]


@pytest.mark.parametrize("name", CLAIMS)
def test_claim_has_a_trial(name):
    assert find([f"barak2022.{name}"])[0].trial.rules()


def test_starts_have_a_positive_product_and_keep_their_sizes():
    raw = np.random.default_rng(0).standard_normal((50, 3, 4))
    made = disjoint.positive(raw)
    assert np.all(made[..., 0].prod(-1) > 0)
    assert np.array_equal(np.abs(made), np.abs(raw))
    assert np.array_equal(made[..., 1:], raw[..., 1:])


def test_first_step_below_a_level_is_infinite_where_there_is_none():
    error = np.array([[0.5, 0.3, 0.6], [0.5, 0.5, np.nan]])
    assert disjoint.first_below(np.array([0, 10, 20]), error, 0.4).tolist() == [10, math.inf]


def test_slope_of_a_power_law():
    x = np.array([1.0, 2.0, 5.0])
    assert disjoint_flow.slope(x, 3 * x**-1.5) == pytest.approx(-1.5)


def test_share_counts_what_is_set():
    check = disjoint.wilson_share(at_least("share of {what}", 0.7), np.array([True, True, False, True]), what="flags")
    assert (check.name, check.value, check.passed) == ("share of flags", 0.75, True)


def test_both_bounds_of_lemma_5_are_equalities_for_equal_starts():
    assert disjoint_flow.bound_margins(np.full(4, 0.7), 3.0) == pytest.approx(np.ones((4, 2)), abs=1e-12)
    assert np.all(disjoint_flow.bound_margins(np.array([0.1, 1.0, 2.0]), 3.0) > 1.001)


def test_runge_kutta_agrees_with_the_quadratures():
    drift, difference = disjoint_flow.follow(np.random.default_rng(0).uniform(0.2, 2, (5, 4)))
    assert drift < 1e-8
    assert difference < 1e-8


def test_covered_asks_for_every_bias_on_aligned_neurons():
    w, u = np.ones((3, 5)), np.ones(3)
    assert two_stage.covered(Layer(w, np.array([0.0, 0.5, -0.5]), u), 2)
    assert not two_stage.covered(Layer(w, np.array([0.0, 0.0, -0.5]), u), 2)
    w[1, 0] = -1  # not aligned any more
    assert not two_stage.covered(Layer(w, np.array([0.0, 0.5, -0.5]), u), 2)


def test_exact_gradient_aligns_the_weights():
    found = two_stage.train(31, 2, 32, None, 300, np.random.default_rng(0))
    assert found["relevant"] == pytest.approx(np.full(len(found["relevant"]), 0.25))
    assert found["irrelevant"] == pytest.approx(np.full(len(found["irrelevant"]), 0.25 / 29))
    assert found["accuracy"][-1] == 1


@pytest.mark.parametrize(("name", "false"), [
    ("lemma6", {"upper bound as printed", "lower bound as printed"}), ("lemma4-features", {"proof as printed"})])
def test_exact_claims_hold_but_for_what_is_misprinted(name, false, tmp_path):
    trial = find([f"barak2022.{name}"])[0].trial()
    assert not trial.reduced
    found = tried(trial, Lab("quick", tmp_path, progress=False)).results
    assert found == {part: CONTRADICTED if part in false else HOLDS for part in found}
    assert false < set(found)
