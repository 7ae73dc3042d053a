"""Intervals of what noise moves one way: they hold their estimate, and cover the truth as often as they say."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paritylab.claims import Rule, at_least
from paritylab.claims.intervals import (
    Estimate,
    below,
    contrast,
    distance,
    jackknife,
    largest,
    mean,
    share_of_cases,
    smallest,
    together,
)
from paritylab.claims.published import fisher, table, tail
from paritylab.errors import InvalidInput

SAMPLES = 300
FEWEST = 270
"""Of 300 intervals that cover with probability 0.95, fewer than 270 do with a chance of 1 in 6,000."""


def covered(truth: float, found: list[Estimate]) -> int:
    assert all(low <= value <= high for value, (low, high) in found)
    return sum(low <= truth + 1e-12 and truth - 1e-12 <= high for _, (low, high) in found)


@pytest.mark.parametrize("truths", [np.zeros(8), np.linspace(-1, 1, 8), np.array([0.0] * 7 + [3.0])])
def test_the_largest_and_the_smallest_of_means_and_distances_are_covered(truths):
    rng = np.random.default_rng(0)
    level = together(len(truths))
    runs = [[rng.normal(truth, 1, 7) for truth in truths] for _ in range(SAMPLES)]
    means = [[mean(each, level) for each in sample] for sample in runs]
    assert covered(truths.max(), [largest(each) for each in means]) >= FEWEST
    assert covered(truths.min(), [smallest(each) for each in means]) >= FEWEST
    count = len(truths)
    apart = [largest([distance(contrast(sample, [(place == law) - 1 / count for place in range(count)], level))
                      for law in range(count)]) for sample in runs]
    assert covered(np.abs(truths - truths.mean()).max(), apart) >= FEWEST


def test_percentiles_of_resampled_maxima_exclude_the_truth():
    """Why such a statistic has an interval of its own: of eight means that are all 0, resampled maxima say above 0."""
    rng = np.random.default_rng(1)
    missed = 0
    for _ in range(100):
        runs = rng.normal(0, 1, (8, 7))
        drawn = runs[np.arange(8)[:, None], rng.integers(0, 7, (500, 8, 7))].mean(axis=2).max(axis=1)
        missed += np.quantile(drawn, 0.025) > 0
    assert missed > 50


@pytest.mark.parametrize("runs", [2, 3, 10])
def test_a_jackknife_of_few_runs_covers_a_smooth_statistic(runs):
    """2,000 samples: fewer than 93 % once in 10^4 trials if 95 % are covered."""
    samples = np.random.default_rng(0).normal(10.0, 1.0, (2000, runs))
    ends = [jackknife(lambda values: float(1 / values.mean()), sample)[1] for sample in samples]
    assert np.mean([low <= 0.1 <= high for low, high in ends]) > 0.93
    assert jackknife(np.mean, samples[0]) == (pytest.approx(mean(samples[0])[0]), pytest.approx(mean(samples[0])[1]))


def test_a_jackknife_knows_nothing_of_one_run_or_where_a_run_decides():
    assert jackknife(np.mean, np.ones(1)) == (1.0, (-math.inf, math.inf))
    assert jackknife(lambda values: math.nan if len(values) < 3 else 1.0, np.ones(3)) == (1.0, (-math.inf, math.inf))


def test_what_noise_only_lowers_is_covered():
    """-max(|z|) over five parts, measured with noise: true values between 0 and far from it."""
    rng = np.random.default_rng(2)
    for truth in (np.array([0.0, 0.5, 1, 1.5, 2]), np.array([3.0, 0, 0, 0, 0])):
        found = []
        for _ in range(SAMPLES):
            runs = rng.normal(truth, 1, (30, 5))
            drawn = runs[rng.integers(0, 30, (400, 30))].mean(axis=1)
            found.append(below(-float(np.abs(runs.mean(axis=0)).max()), -np.abs(drawn).max(axis=1), most=0.0))
        assert covered(-np.abs(truth).max(), found) >= FEWEST


@given(value=st.floats(-1, 1), values=st.lists(st.floats(-1, 1) | st.just(math.nan), min_size=1))
def test_what_noise_only_lowers_always_holds_its_estimate(value, values):
    _, (low, high) = below(value, np.array(values), most=1.0)
    assert low <= value <= high <= 1


@pytest.mark.parametrize("outside", [0, 5, 60])
def test_a_share_of_cases_is_covered_though_every_case_is_as_doubtful_as_can_be(outside):
    """Each of 60 cases is wrongly sure as often as it may be."""
    rng, total, wrong = np.random.default_rng(outside), 60, (0.1, 0.15)
    found = []
    for _ in range(SAMPLES):
        taken_in = int(rng.binomial(outside, wrong[0])) + int(rng.binomial(total - outside, 0.8))
        taken_out = int(rng.binomial(total - outside - min(total - outside, taken_in), wrong[1]))
        within = int(rng.integers(taken_in, total - taken_out + 1))
        found.append(share_of_cases(within, taken_in, taken_out, total, wrong))
    assert covered(1 - outside / total, found) >= FEWEST


@given(st.lists(st.tuples(st.floats(-5, 5), st.floats(0, 3), st.floats(0, 3)), min_size=1))
def test_the_largest_and_the_smallest_always_hold_their_estimates(parts):
    estimates = [(value, (value - down, value + up)) for value, down, up in parts]
    for found in (largest(estimates), smallest(estimates), *map(distance, estimates)):
        value, (low, high) = found
        assert low <= value <= high


@pytest.mark.parametrize("interval", [(1.04, 1.0), (0.5, 0.6), (math.nan, math.nan)])
def test_rules_refuse_an_interval_that_does_not_hold_its_value(interval):
    with pytest.raises(InvalidInput, match=r"^R\^2 at k = 3: the interval .* does not hold 0\.99$"):
        at_least("R^2 at k = {k}", 0.9)(0.99, interval, k=3)
    with pytest.raises(InvalidInput, match="does not hold"):
        Rule("slope", "> 0")(0.99, passed=True, interval=interval)


def test_rules_allow_for_rounding_and_for_what_is_unknown():
    rule = at_least("loss", 0.5)
    assert rule(0.9919285959122818, (0.9919285959122818, 0.9919285959122817)).passed
    assert rule(math.inf, (math.inf, math.inf)).passed
    assert rule(None, (0.0, 1.0)).passed is None


# --- beside what was published ----------------------------------------------------------------------------------------


@given(st.lists(st.integers(0, 9), min_size=1, max_size=60), st.integers(0, 9))
def test_a_published_number_lies_between_quantiles_where_its_tail_is_large_enough(values, number):
    """By their definition: the q quantile is the smallest number up to which at least a share q of all is."""
    share, (low, high) = tail(values, number)
    ordered = np.sort(values)
    assert low <= share <= high
    for q in (0.005, 0.1, 0.3):
        count = math.ceil(q * len(values) - 1e-9)
        inside = ordered[count - 1] <= number <= ordered[len(values) - count]
        assert (share >= q - 1e-12) == inside


def test_a_number_that_no_run_reaches_is_outside_for_sure_once_there_are_enough():
    assert tail(np.arange(700), -1)[1][1] > 0.005
    assert tail(np.arange(1000), -1) == (0.0, (0.0, pytest.approx(0.00368, abs=1e-5)))
    assert tail([math.inf] * 10, 3)[0] == 0


def test_fishers_test_of_tea():
    assert fisher((3, 4), (1, 4), "greater") == pytest.approx(17 / 70)
    assert fisher((3, 4), (1, 4)) == pytest.approx(34 / 70)


def test_a_table_is_read_from_beside_the_module_that_asks(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "medians.csv").write_text("width,median\n10,960\n")
    assert table(str(tmp_path / "claim.py"), "medians").rows() == [(10, 960)]
