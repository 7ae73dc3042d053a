"""Every statistic is checked against brute force on small samples and for its coverage on simulated ones.

Simulations have fixed seeds. Where a coverage is compared with its nominal value, the bound is the one that a
correct statistic would miss with probability ``FALSE_ALARM``.
"""

from __future__ import annotations

import itertools
import json
import math
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from simulated import at_least, at_most, sample

from paritylab.errors import InvalidInput
from paritylab.statistics import (
    compare,
    percentile,
    percentile_interval,
    solved_fraction,
    summary,
    survival,
)
from paritylab.storage.records import CENSORED, DIVERGED, SOLVED, Records

outcomes = st.lists(st.tuples(st.integers(0, 50), st.sampled_from([0, 0, 0, 1, 2])), min_size=1, max_size=40)
percents = st.one_of(st.integers(0, 100), st.floats(0, 100))


def columns(runs: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    t_c, status = (np.array(column) for column in zip(*runs, strict=True))
    return np.where(status == SOLVED, t_c, -1), status


# --- percentiles --------------------------------------------------------------------------------------------


@settings(deadline=None)
@given(st.lists(st.integers(0, 10**6), min_size=1), percents)
def test_percentiles_of_solved_runs_are_those_of_numpy(times, q):
    expected = np.percentile(times, q)
    assert percentile(times, [SOLVED] * len(times), q) == pytest.approx(expected, rel=1e-9, abs=1e-9)


@settings(deadline=None)
@given(outcomes, percents)
def test_a_percentile_is_what_large_finite_times_instead_of_inf_would_tend_to(runs, q):
    t_c, status = columns(runs)
    position = q * (len(runs) - 1) / 100
    ordered = sorted(math.inf if s != SOLVED else float(t) for t, s in zip(t_c, status, strict=True))
    touched = ordered[math.floor(position) : math.ceil(position) + 1]
    value = percentile(t_c, status, q)
    assert math.isinf(value) == (math.inf in touched)
    if math.isfinite(value):
        finite = np.where(status == SOLVED, t_c, 10**9)
        assert value == pytest.approx(np.percentile(finite, q), rel=1e-9, abs=1e-5)


@settings(deadline=None)
@given(outcomes, percents, percents)
def test_percentiles_and_their_intervals_grow_with_q(runs, first, second):
    t_c, status = columns(runs)
    low, high = sorted((first, second))
    # Interpolating between equal times can round by one unit in the last place.
    assert percentile(t_c, status, low) <= percentile(t_c, status, high) * (1 + 1e-12)
    for below, above in zip(
        percentile_interval(t_c, status, low), percentile_interval(t_c, status, high), strict=True
    ):
        assert below <= above


@settings(deadline=None)
@given(outcomes, percents, st.randoms(use_true_random=False))
def test_the_order_of_runs_does_not_matter(runs, q, shuffle):
    shuffled = runs.copy()
    shuffle.shuffle(shuffled)
    for statistic in (percentile, percentile_interval):
        assert statistic(*columns(runs), q) == statistic(*columns(shuffled), q)


@settings(deadline=None)
@given(outcomes, percents, st.data())
def test_censoring_more_runs_never_lowers_a_percentile(runs, q, data):
    t_c, status = columns(runs)
    fewer = np.where(
        data.draw(st.lists(st.booleans(), min_size=len(runs), max_size=len(runs))), CENSORED, status
    )
    assert percentile(np.where(fewer == SOLVED, t_c, -1), fewer, q) >= percentile(t_c, status, q)
    for less, more in zip(
        percentile_interval(t_c, status, q), percentile_interval(t_c, fewer, q), strict=True
    ):
        assert less <= more


@settings(deadline=None)
@given(outcomes, percents)
def test_the_interval_holds_the_percentile(runs, q):
    low, high = percentile_interval(*columns(runs), q)
    assert low <= percentile(*columns(runs), q) <= high


@pytest.mark.parametrize("q", [-1, 101, math.nan])
def test_a_percentile_outside_0_to_100_is_refused(q):
    for statistic in (percentile, percentile_interval):
        with pytest.raises(InvalidInput):
            statistic([1], [0], q)


@pytest.mark.parametrize("level", [0, 1, 95])
def test_a_level_outside_0_to_1_is_refused(level):
    with pytest.raises(InvalidInput):
        percentile_interval([1], [0], 50, level)
    with pytest.raises(InvalidInput):
        solved_fraction([0], level)


@pytest.mark.parametrize("q", [10, 50, 90])
@pytest.mark.parametrize("runs", [5, 40, 1000])
def test_percentile_intervals_cover_the_true_percentile_of_a_coarse_censored_law(runs, q):
    """Geometric times seen every 10 steps, a fifth unsolved; the 90th percentile is therefore inf."""
    law, horizon, trials = stats.geom(0.01), 160, 2000
    generator = np.random.default_rng(1)
    true = 10 * math.ceil(law.ppf(q / 100) / 10)
    true = true if true <= horizon else math.inf
    hits = 0
    for times in law.rvs((trials, runs), random_state=generator):
        records = sample(10 * np.ceil(times / 10).astype(int), horizon)
        low, high = percentile_interval(records.t_c, records.status, q)
        hits += low <= true <= high
    assert at_least(hits, trials, 0.95)


def test_percentile_intervals_of_a_continuous_law_are_not_much_too_wide():
    """Exact coverage of the ranks for the median of 100 runs: 1 - 2 P(Bin(100, 1/2) <= 39) = 0.9648."""
    ranks = percentile_interval(np.arange(1, 101), np.zeros(100), 50)
    below = stats.binom(100, 0.5)
    assert 0.95 <= below.cdf(ranks[1] - 1) - below.cdf(ranks[0] - 1) < 0.97


# --- fractions and survival ---------------------------------------------------------------------------------


@pytest.mark.parametrize("runs", [20, 100])
def test_the_solved_interval_covers_as_much_as_it_says_on_average(runs):
    """Exact coverage (no simulation), averaged over the true fraction, is within 1 % of the level."""
    true = np.linspace(0.005, 0.995, 199)
    covered = np.zeros_like(true)
    for solved in range(runs + 1):
        fraction, (low, high) = solved_fraction([SOLVED] * solved + [CENSORED] * (runs - solved))
        assert fraction == solved / runs
        covered += stats.binom.pmf(solved, runs, true) * ((low <= true) & (true <= high))
    assert covered.mean() == pytest.approx(0.95, abs=0.01)


def test_the_solved_interval_is_that_of_wilson():
    fraction, z = 0.924, stats.norm.ppf(0.975)
    centre = (fraction + z**2 / 2000) / (1 + z**2 / 1000)
    margin = z / (1 + z**2 / 1000) * math.sqrt(fraction * (1 - fraction) / 1000 + z**2 / 4e6)
    assert solved_fraction([SOLVED] * 924 + [DIVERGED] * 76)[1] == pytest.approx(
        (centre - margin, centre + margin)
    )


@settings(deadline=None)
@given(outcomes, st.integers(1, 60))
def test_survival_is_that_of_aalen_and_johansen_diverged_runs_being_unsolved_for_good(runs, horizon):
    times, kinds = (np.array(column) for column in zip(*runs, strict=True))
    records = sample(times + 1, horizon + times % 5, diverged=kinds == 2)
    curve = survival(records)
    ends = np.where(records.status == SOLVED, records.t_c, records.steps)
    training, unsolved, expected = 1.0, 1.0, {}
    for step in sorted(set(ends)):
        at_risk = sum(ends >= step)
        unsolved -= training * sum(records.t_c == step) / at_risk
        training *= 1 - sum((ends == step) & (records.status != CENSORED)) / at_risk
        expected[step] = unsolved
    last = [records.steps.max()] if np.any(records.status == DIVERGED) else []
    assert curve.steps.tolist() == sorted({*ends[records.status != DIVERGED], *last})
    assert curve.unsolved == pytest.approx([expected[step] for step in curve.steps], abs=1e-12)
    assert np.all((curve.low >= 0) & (curve.low <= curve.unsolved + 1e-12))
    assert np.all((curve.unsolved <= curve.high + 1e-12) & (curve.high <= 1))
    assert curve.censored.sum() == sum(records.status == CENSORED)


def test_without_early_censoring_survival_is_the_plain_fraction_unsolved_diverged_included():
    generator = np.random.default_rng(2)
    records = sample(generator.geometric(0.01, 500), 100, diverged=generator.random(500) < 0.1)
    curve = survival(records)
    solved = records.status == SOLVED
    for step, unsolved in zip(curve.steps, curve.unsolved, strict=True):
        assert unsolved == pytest.approx(1 - np.mean(solved & (records.t_c <= step)))


def test_the_survival_band_covers_the_true_curve_at_each_step():
    """120 geometric runs, censored at random steps. The band is asymptotic: checked to cover 93-97 %."""
    generator, law, censoring = np.random.default_rng(3), stats.geom(0.02), stats.geom(0.01)
    trials, checked = 2000, np.array([10, 35, 70])
    hits = np.zeros(len(checked))
    for _ in range(trials):
        times = law.rvs(120, random_state=generator)
        curve = survival(sample(times, censoring.rvs(120, random_state=generator)))
        at = np.searchsorted(curve.steps, checked, side="right") - 1
        hits += (curve.low[at] <= law.sf(checked)) & (law.sf(checked) <= curve.high[at])
    for hit in hits:
        assert at_least(hit, trials, 0.93)
        assert at_most(hit, trials, 0.97)


def test_the_band_is_defined_where_nothing_or_everything_is_solved():
    nothing = survival(sample(np.full(50, 200), 100))
    assert (nothing.unsolved.tolist(), nothing.high.tolist()) == ([1.0], [1.0])
    assert nothing.low[0] == pytest.approx(stats.binomtest(50, 50).proportion_ci(method="exact").low)
    everything = survival(sample(np.array([10, 20, 30]), 100))
    assert (everything.unsolved[-1], everything.low[-1]) == (0, 0)
    assert everything.high[-1] == everything.high[-2] < 1
    at_once = survival(sample(np.array([10, 10]), 100))
    assert (at_once.low.tolist(), at_once.high.tolist()) == ([0.0], [1.0])
    assert len(survival(Records.empty()).steps) == 0


# --- comparison ---------------------------------------------------------------------------------------------


def test_the_comparison_raises_false_alarms_as_often_as_it_says():
    """Equal laws, ties, different censoring: 5 % of p-values are below 5 % (checked to be 4 to 6 %)."""
    generator, trials = np.random.default_rng(4), 4000
    p_values = np.array(
        [
            compare(
                sample(10 * generator.geometric(0.1, 80), 250),
                sample(10 * generator.geometric(0.1, 120), 120),
            ).p_value
            for _ in range(trials)
        ]
    )
    assert at_least(np.sum(p_values < 0.05), trials, 0.04)
    assert at_most(np.sum(p_values < 0.05), trials, 0.06)


def test_the_comparison_agrees_with_all_permutations_of_a_small_sample():
    """The exact permutation p-value of the statistic; the normal approximation is near it at 6 + 6 runs."""
    times = np.array([3, 5, 8, 13, 20, 22, 9, 17, 24, 30, 33, 36])

    def statistic(first: tuple[int, ...]) -> float:
        second = [index for index in range(12) if index not in first]
        return compare(sample(times[list(first)], 31), sample(times[second], 31)).statistic

    observed = statistic(tuple(range(6)))
    permuted = [statistic(chosen) for chosen in itertools.combinations(range(12), 6)]
    exact = np.mean(np.abs(permuted) >= abs(observed) - 1e-9)
    assert observed > 0  # the first sample solves faster
    assert compare(sample(times[:6], 31), sample(times[6:], 31)).p_value == pytest.approx(exact, abs=0.03)


def test_a_sample_that_diverges_is_slower_than_one_that_solves_late():
    solved = sample(np.full(30, 900), 1000)
    diverged = sample(np.full(30, 5), 10, diverged=np.ones(30, bool))
    assert compare(solved, diverged).p_value < 1e-6


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (Records.empty(), sample(np.array([5]), 10)),
        (sample(np.array([50, 60]), 10), sample(np.array([50]), 10)),
        (sample(np.array([5, 5]), 10), sample(np.array([5]), 10)),
    ],
)
def test_samples_with_nothing_to_tell_apart_are_not_told_apart(first, second):
    assert compare(first, second) == (0.0, 1.0)


# --- summary ------------------------------------------------------------------------------------------------


def test_a_summary_says_it_all_in_one_line():
    generator = np.random.default_rng(8)
    records = sample(10 * generator.geometric(0.015, 1000), 1500)
    result = summary(records)
    assert str(result) == (
        "solved 89.5 % [87.4, 91.3] of 1000, median t_c 470 [430, 500], 10 % 70 [60, 80],"
        " 90 % not reached [1420, inf]"
    )
    assert (result.runs, result.solved + result.censored, result.diverged) == (1000, 1000, 0)
    assert result.fastest == records.t_c[records.status == SOLVED].min()
    assert (result.min_horizon, result.max_horizon) == (1500, 1500)


def test_what_is_not_reached_is_said_and_is_null_in_json():
    result = summary(sample(np.array([5, 50, 60]), 10, diverged=np.array([False, False, True])))
    assert (result.solved, result.censored, result.diverged) == (1, 1, 1)
    loaded = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert loaded["median"] is None
    assert loaded["median_interval"] == [0.0, None]
    assert loaded["fastest"] == 5
    assert "90 % not reached" in str(summary(sample(np.full(100, 50), 10)))


def test_early_censoring_is_said():
    records = sample(np.full(100, 500), np.where(np.arange(100) < 5, 100, 1000))
    assert summary(records).horizons_differ
    assert str(summary(records)).splitlines()[1] == (
        "censored from step 100 on: percentiles are those of the Kaplan-Meier curve"
    )
    assert not summary(sample(np.full(100, 500), 1000)).horizons_differ


def test_no_runs_have_a_summary():
    assert str(summary(Records.empty())) == "no runs"
    assert json.dumps(summary(Records.empty()).to_dict(), allow_nan=False)


def test_a_million_runs_are_summarised_within_two_seconds():
    generator = np.random.default_rng(9)
    records = sample(generator.geometric(1e-4, 10**6), 20_000)
    start = time.process_time()
    summary(records)
    assert time.process_time() - start < 2
