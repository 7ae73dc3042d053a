"""The claims of abbe2024 on updates, bounds and the junk flow: helpers against known answers, and a fast claim."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from abbe2024 import bounds, corollaries, junk, updates

from paritylab.claims import Lab, find
from paritylab.claims.reproduction import tried
from paritylab.claims.trial import Trial
from paritylab.claims.verdicts import HOLDS, Result, results
from paritylab.measures.fourier import cube

CLAIMS = ["thm5", "thm6-updates", "thm7-bound", "lemma3-tv", "junk-flow", "cor1", "cor2", "thm8"]


@pytest.mark.parametrize("name", CLAIMS)
def test_claim_has_a_trial(name):
    claim = find([f"abbe2024.{name}"])[0]
    assert claim.trial.claim == claim.id


def judged(trial: Trial, got: Any) -> dict[str, Result]:
    return results(trial.judge(got).checks)


def test_input_laws_are_laws():
    uniform, biased, few = updates.input_laws(6, np.random.default_rng(0))
    assert [float(law.sum()) for law in (uniform, biased, few)] == pytest.approx([1, 1, 1])
    assert biased @ cube(6) == pytest.approx(np.full(6, 0.6))
    assert np.count_nonzero(few) == 16


def test_slope_of_a_power_law():
    rows = [{"d": d, "updates": 7 * d**3} for d in (4, 5, 6, 7, 8) for _ in range(2)]
    slope, interval = updates.slope_of(rows, np.random.default_rng(0), 50)
    assert (slope, *interval) == pytest.approx((3, 3, 3))


def test_the_alignment_of_theorem_8s_network_is_that_of_sampled_gradients():
    """Two routes to one number: the integral, and gradients over all inputs (biases in the law of the weights)."""
    squares = corollaries.squared_gradients(4, 3, [0.25, 1 / 3], 20_000, np.random.default_rng(1))
    found, error = corollaries.mean(squares)
    scale = 0.5, math.sqrt(1 / 3)
    exact = bounds.alignment("gaussian", 4, unit="network", bias="same", width=3, scale=scale).value
    assert abs(found - exact) < 4 * error  # false alarms: 6e-5
    assert bounds.largest_alignment(9, 5, 0.3) == pytest.approx(bounds.network_alignment(9, 5, 0.3))


def test_balls_have_their_probability():
    rng = np.random.default_rng(2)
    for offset, outside in corollaries.SETS.values():
        square, exact = corollaries.radius(7, offset, outside, 0.3)
        for scale, truth in zip((1.0, math.sqrt(8 / 7)), exact, strict=True):
            found, error = corollaries.mean(corollaries.in_ball(7, offset, outside, square, scale, 20_000, rng))
            assert abs(found - truth) < 4.5 * error


def test_the_sampled_alignment_of_a_layer_is_the_exact_one():
    found, error = corollaries.mean(corollaries.layer_alignments(5, 3, 0.5, 20_000, np.random.default_rng(3)))
    assert abs(found - 3 * bounds.alignment("perturbed-rademacher:0.5", 5).value) < 4.5 * error


def test_random_labels_under_the_hinge_loss_pull_large_outputs_back():
    big = [np.ones((1, 2, 3)), np.ones((1, 2)), np.full((1, 2), 5.0)]
    assert junk.norms(junk.random_label_gradient("correlation", big)) == 0
    assert junk.random_label_gradient("hinge", big)[2].min() > 0


def test_the_correlation_gap_is_the_gradient_of_the_correlation():
    theta = np.random.default_rng(4).standard_normal((3, 6))
    step, chi = 1e-6, cube(5).prod(1)
    for j in range(6):
        ends = [-(np.maximum((theta + s * np.eye(6)[j]) @ junk.WITH_BIAS.T, 0) * chi).mean(1) for s in (step, -step)]
        assert (ends[0] - ends[1]) / (2 * step) == pytest.approx(junk.correlation_gap(theta)[:, j], abs=1e-8)


def test_equal_laws_are_not_told_apart():
    rng = np.random.default_rng(5)
    found, error = junk.best_test([rng.standard_normal(4000)], [rng.standard_normal(4000)])
    assert abs(found) < 4.5 * error


def test_junk_flow_end_to_end(tmp_path):
    outcome = tried(junk.JunkFlow("quick", 0), Lab("quick", tmp_path))
    assert outcome.results == {"": HOLDS}
    assert outcome.figure is not None


def test_errors_and_steps_of_hinge_training_count_both() -> None:
    trial = updates.Thm5("full")
    kinds = len(updates.BETAS) * len(updates.LAWS)
    fine = {"error": np.zeros(kinds), "updates": np.ones(kinds), "steps": np.ones(kinds)}
    slow = fine | {"steps": np.full(kinds, 1e15)}
    assert set(judged(trial, [fine] * len(trial.starts)).values()) == {"holds"}
    assert set(judged(trial, [slow] * len(trial.starts)).values()) == {"contradicted"}


def test_updates_are_bounded_and_their_slope_is_free() -> None:
    trial = updates.Thm6Updates("full")
    few = [{"updates": np.full(6, 10.0)}] * len(trial.starts)
    many = [{"updates": np.full(6, 1e9)}] * len(trial.starts)
    assert set(judged(trial, few).values()) == {"holds"}
    assert set(judged(trial, many).values()) == {"contradicted"}


def test_an_excess_that_grows_with_d_contradicts_theorem_8() -> None:
    trial = bounds.Thm8("full")
    noise = 0.002 * np.random.default_rng(0).standard_normal(60)

    def got(power: float) -> Any:
        return [{"accuracies": 0.5 + (0.1 * np.exp(power * case["d"]) if case["rate"] == 1 else 0) + noise}
                for case in trial.cases()]

    assert judged(trial, got(-0.2)) == {"rate 1: the excess falls with d": "holds", "rate 0.1: at chance": "holds"}
    assert judged(trial, got(0.05))["rate 1: the excess falls with d"] == "contradicted"
