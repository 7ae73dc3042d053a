"""glasgow2023's claims: each has a trial, small ones are tried, helpers are checked against known answers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from glasgow2023 import gradients, invariance, phase_two, samples

from paritylab.claims import Lab, find, reproduce
from paritylab.claims.medians import exponent

CLAIMS = find(["glasgow2023.*"])


def test_every_claim_has_a_trial():
    assert len(CLAIMS) == 16
    assert all(claim.trial for claim in CLAIMS)


@pytest.mark.parametrize("claim", ["lemma-c4", "lemma-c2", "lemma-b12"])
def test_exact_claims_are_reproduced(claim, tmp_path):
    (first,) = find([f"glasgow2023.{claim}"])
    found = reproduce(first, Lab("quick", tmp_path))
    assert found.verdict == "reproduced"
    assert (tmp_path / "claims" / f"glasgow2023.{claim}" / "quick" / "figure.png").exists()


def test_exponents_of_power_laws_and_of_unsolved_runs():
    d = [10, 20, 40]
    values = [np.full(5, 3.0 * n**2) for n in d]
    assert exponent(d, values)[0] == pytest.approx(2.0)
    assert exponent(d, values, np.array(d) ** 0.5)[0] == pytest.approx(1.5)
    values[2][:4] = math.inf
    slope, interval = exponent(d, values)
    assert math.isnan(slope)
    assert interval == (-math.inf, math.inf)


def test_some_unsolved_runs_widen_the_interval():
    d = [10, 20, 40]
    values = [np.array([1.0, 1.1, 1.2, 1.3, 1.4]) * n for n in d]
    values[2][3:] = math.inf
    slope, interval = exponent(d, values)
    assert slope == pytest.approx(1.0)
    assert interval[1] == math.inf


def test_the_kernels_crossing_is_interpolated():
    size = samples.crossing(np.random.default_rng(0), 8, np.array([8, 16, 32, 64, 128]), 0.9, test=500)
    assert 16 < size < 128
    assert samples.crossing(np.random.default_rng(0), 8, np.array([2, 4]), 0.9, test=500) == math.inf


def test_fits_tell_lines_from_exponentials():
    x = np.arange(20.0)
    linear, exponential = phase_two.fit_both(x, 3 + x, np.arange(20))
    assert linear == pytest.approx(1.0)
    assert exponential < 0.99
    linear, exponential = phase_two.fit_both(x, np.exp(x / 5), np.arange(20))
    assert exponential == pytest.approx(1.0)
    assert linear < 0.9


def test_rises_are_relative_to_the_least_before():
    assert phase_two.rise(np.array([4.0, 2.0, 3.0, 1.0])) == 1.5
    assert math.isnan(phase_two.rise(np.array([1.0])))


def test_few_samples_leave_the_kernel_at_chance_and_the_best_pair_right():
    found = invariance.few_samples(0, 32, 30, 10, test=500)
    assert found["ntk"].mean() > 0.4
    assert found["pair"].mean() < 0.1


def test_inequalities_of_the_lemmas_hold_for_a_trained_network():
    generator = np.random.default_rng(1)
    neurons = gradients.trained(gradients.fresh(generator, 7, 12, 0.5), generator, 20)
    ratios = gradients.linearisation_ratios(neurons)
    del ratios["C.5, label flips"]
    assert max(ratios.values()) <= 1


def test_a_flip_of_the_label_breaks_the_printed_lemma_c5():
    assert gradients.linearisation_ratios(gradients.fresh(np.random.default_rng(2), 7, 12, 0.1))["C.5, label flips"] > 1
