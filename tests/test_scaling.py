"""Fitted laws: exact ones are found, and intervals cover; simulations as in test_statistics."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from scipy import stats
from simulated import FALSE_ALARM, at_least, at_most, sample

from paritylab.errors import InvalidInput
from paritylab.statistics import (
    percentile,
    power_law_fit,
    power_law_fit_runs,
)
from paritylab.statistics.percentiles import order
from paritylab.statistics.scaling import resampled_percentile

X = np.array([10.0, 15, 20, 30, 45])


def test_an_exact_law_is_found_exactly():
    power = power_law_fit(X, 3 * X**2.5)
    assert (power.power.exponent, power.power.prefactor) == pytest.approx((2.5, 3))
    assert power.power(20) == pytest.approx(3 * 20**2.5)
    assert power.evidence > 50
    exponential = power_law_fit(X, 3 * np.exp(0.2 * X))
    assert (exponential.exponential.exponent, exponential.exponential.prefactor) == pytest.approx((0.2, 3))
    assert exponential.exponential([20]) == pytest.approx([3 * np.exp(4)])
    assert exponential.evidence < -50


def test_evidence_is_the_difference_of_the_information_criteria():
    y = 3 * X**2 * np.exp([0.1, -0.2, 0.05, 0.1, -0.05])
    fit = power_law_fit(X, y)

    def criterion(prediction: np.ndarray) -> float:
        deviations = np.log(y) - np.log(prediction)
        scale = np.sqrt(np.mean(deviations**2))
        return -2 * stats.norm(0, scale).logpdf(deviations).sum()

    assert fit.evidence == pytest.approx(criterion(fit.exponential(X)) - criterion(fit.power(X)))


@pytest.mark.long
def test_regression_intervals_cover_exponent_and_prefactor():
    """Log-normal scatter, for which the Student interval is exact."""
    generator, trials, hits = np.random.default_rng(5), 3000, np.zeros(2)
    for _ in range(trials):
        law = power_law_fit(X, 3 * X**2 * np.exp(generator.normal(0, 0.3, len(X)))).power
        hits += [
            interval[0] <= true <= interval[1]
            for interval, true in ((law.exponent_interval, 2), (law.prefactor_interval, 3))
        ]
    for hit in hits:
        assert at_least(hit, trials, 0.95)
        assert at_most(hit, trials, 0.95)


@pytest.mark.long
def test_bootstrap_intervals_cover_the_exponent_of_the_true_medians():
    """200 exponential times per x, a tenth to a third unsolved. Asymptotic: checked to cover 93-97.5 %."""
    generator, trials, hits = np.random.default_rng(6), 1500, 0
    for trial in range(trials):
        samples = [sample(np.ceil(1000 * x**2 * generator.exponential(1, 200)), 1500 * x**2) for x in X]
        low, high = power_law_fit_runs(X, samples, resamples=500, seed=trial).power.exponent_interval
        hits += low <= 2 <= high
    assert at_least(hits, trials, 0.93)
    assert at_most(hits, trials, 0.975)


@pytest.mark.parametrize("q", [0, 10, 30, 50, 65, 100])
def test_bootstrap_percentiles_follow_the_law_of_all_bootstrap_samples(q):
    """Five runs, one unsolved: all 5^5 samples with replacement against 100 000 draws (chi-square)."""
    t_c, status, draws = np.array([10, 20, 40, 80, -1]), np.array([0, 0, 0, 0, 1]), 100_000
    samples = itertools.product(range(5), repeat=5)
    exact = Counter(percentile(t_c[list(chosen)], status[list(chosen)], q) for chosen in samples)
    drawn = Counter(resampled_percentile(*order(t_c, status), q, draws, np.random.default_rng(7)).tolist())
    assert drawn.keys() <= exact.keys()
    expected = np.array(list(exact.values())) * draws / 5**5
    assert stats.chisquare([drawn[value] for value in exact], expected).pvalue > FALSE_ALARM


def test_a_percentile_that_is_barely_reached_leaves_the_exponent_open():
    samples = [sample(np.arange(1, 102) * scale, 51 * scale) for scale in (1, 4, 16)]
    assert power_law_fit_runs([1, 2, 4], samples).power.exponent_interval == (-math.inf, math.inf)


@pytest.mark.parametrize(
    ("x", "y"),
    [
        ([1, 2], [1, 2]),
        ([1, 1, 2], [1, 2, 3]),
        ([1, 2, 3], [1, 2, math.inf]),
        ([0, 1, 2], [1, 2, 3]),
        ([1, 2, 3], [1]),
    ],
)
def test_points_that_determine_no_law_are_refused(x, y):
    with pytest.raises(InvalidInput):
        power_law_fit(x, y)
