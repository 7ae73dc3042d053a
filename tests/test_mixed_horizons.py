"""Percentiles, curves and comparisons of runs that were not all followed equally long, some of them diverged.

Simulations have fixed seeds; a correct statistic would miss each of their bounds with probability 1e-6 at most.
"""

from __future__ import annotations

import json
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from simulated import at_least, at_most, sample

from paritylab import statistics
from paritylab.statistics import compare, percentile, percentile_interval, power_law_fit_runs, summary, survival
from paritylab.statistics.percentiles import percentiles
from paritylab.statistics.risk import risk
from paritylab.storage.records import CENSORED, DIVERGED, SOLVED, Records

LAW = stats.geom(0.01)
runs_with_ends = st.lists(st.tuples(st.integers(1, 12), st.sampled_from([0, 0, 0, 1, 1, 2])), min_size=1, max_size=25)


def true_percentile(q: float, diverged: float = 0.0) -> float:
    """Of times seen every 10 steps, a share of the runs never solved."""
    return 10 * math.ceil(LAW.ppf(q / 100 / (1 - diverged)) / 10)


def seen(count: int, generator: np.random.Generator) -> np.ndarray:
    return 10 * np.ceil(LAW.rvs(count, random_state=generator) / 10).astype(int)


def two_horizons(count: int, _: np.random.Generator) -> np.ndarray:
    return np.where(np.arange(count) % 2, 50, 400)


def random_horizons(count: int, generator: np.random.Generator) -> np.ndarray:
    return 10 * np.ceil(generator.exponential(12, count)).astype(int)


def covered(count, q, horizons, trials, diverged=0.0, seed=1):
    """How often the interval holds the true percentile."""
    generator = np.random.default_rng(seed)
    hits = 0
    for _ in range(trials):
        lost = generator.random(count) < diverged
        records = sample(seen(count, generator), horizons(count, generator), lost)
        low, high = percentile_interval(records.t_c, records.status, q, steps=records.steps)
        hits += low <= true_percentile(q, diverged) <= high
    return hits


@pytest.mark.parametrize("horizons", [two_horizons, random_horizons])
@pytest.mark.parametrize("count", [10, 100])
def test_the_interval_of_the_median_covers_it_as_often_as_it_says(horizons, count):
    assert at_least(covered(count, 50, horizons, 300), 300, 0.95)


def test_the_interval_covers_where_runs_diverge():
    """As unsolved up to the largest horizon, diverged runs would outweigh those given up early: coverage 33 %."""
    assert at_least(covered(400, 40, two_horizons, 300, diverged=0.45), 300, 0.95)


@pytest.mark.long
@pytest.mark.parametrize("horizons", [two_horizons, random_horizons])
@pytest.mark.parametrize("count", [5, *(pytest.param(count, marks=pytest.mark.slow) for count in (10, 25, 100)), 400])
@pytest.mark.parametrize("q", [10, 50, 90])
@pytest.mark.parametrize("diverged", [0.0, 0.08])
def test_all_intervals_cover_as_often_as_they_say(horizons, count, q, diverged):
    assert at_least(covered(count, q, horizons, 2000, diverged), 2000, 0.95)


def test_the_interval_is_not_much_too_wide():
    """Of 400 runs, three quarters as many as the exact interval without early censoring are 1.16 times as wide."""
    generator = np.random.default_rng(2)
    widths = []
    for _ in range(100):
        times = generator.exponential(100, 400)
        early, late = (sample(times, horizons) for horizons in (np.where(np.arange(400) % 2, 50, 10**6), 10**6))
        ends = [percentile_interval(r.t_c, r.status, 50, steps=r.steps) for r in (early, late)]
        widths.append((ends[0][1] - ends[0][0]) / (ends[1][1] - ends[1][0]))
    assert 1 < np.median(widths) < 1.6


# --- against other implementations ------------------------------------------------------------------------------


def aalen_johansen(records: Records) -> dict[int, Fraction]:
    """The fraction unsolved after each step, as 1 less the sum of S(s-) d(s)/Y(s), S of runs that have not ended."""
    ends = [int(t if s == SOLVED else e) for t, s, e in zip(records.t_c, records.status, records.steps, strict=True)]
    staying, unsolved, found = Fraction(1), Fraction(1), {}
    for step in sorted(set(ends)):
        at_risk = sum(end >= step for end in ends)
        solved, diverged = (sum(e == step and s == kind for e, s in zip(ends, records.status, strict=True))
                            for kind in (SOLVED, DIVERGED))
        unsolved -= staying * Fraction(solved, at_risk)
        staying *= 1 - Fraction(solved + diverged, at_risk)
        found[step] = unsolved
    return found


def outcomes(runs) -> Records:
    ends, status = (np.array(column) for column in zip(*runs, strict=True))
    return Records(np.arange(len(runs)), status, np.where(status == SOLVED, ends, -1), ends, status == SOLVED, status)


@settings(deadline=None, max_examples=60)
@given(runs_with_ends, st.sampled_from([0, 10, 25, 50, 60, 75, 90, 100]))
def test_a_percentile_is_the_first_step_by_which_that_share_is_solved(runs, q):
    records = outcomes(runs)
    if not summary(records).horizons_differ:
        return
    expected = [step for step, unsolved in aalen_johansen(records).items()
                if unsolved <= 1 - Fraction(q, 100) and step in records.t_c]
    value = percentile(records.t_c, records.status, q, records.steps)
    assert value == (expected[0] if expected else math.inf)
    low, high = percentile_interval(records.t_c, records.status, q, steps=records.steps)
    assert low <= value <= high


@settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(1, 30), min_size=1, max_size=40), st.integers(1, 30), st.sampled_from([5, 10, 50, 90]),
       st.integers(0, 3))
def test_with_one_horizon_the_beta_product_is_the_exact_interval(times, horizon, q, lost):
    """And the percentile from the curve the one of NumPy without interpolation."""
    records = sample(np.array(times), horizon, np.arange(len(times)) < lost)
    if len(records.steps[records.status != SOLVED]) == 0:
        horizon = max(times)
    records = Records(*(getattr(records, name) for name in ("run", "status", "t_c")),
                      np.where(records.status == SOLVED, records.t_c, horizon), records.accuracy, records.loss)
    whole = risk(records.t_c, records.status, records.steps)
    ((value, interval),) = percentiles(records.t_c, records.status, [q], records.steps)
    low, high = whole.interval(q, 0.025)
    assert (min(low, value), max(high, value)) == interval
    ordered = np.sort(np.where(records.status == SOLVED, records.t_c, np.inf))
    assert whole.percentile(q) == np.percentile(ordered, q, method="inverted_cdf")


def test_the_interval_is_that_of_sampled_beta_products():
    """Quantiles of 10^5 products of beta variables, one for each step, in place of two moments."""
    generator = np.random.default_rng(3)
    records = sample(generator.integers(1, 40, 30), generator.integers(10, 40, 30))
    ends = np.where(records.status == SOLVED, records.t_c, records.steps)
    steps = np.unique(ends)
    product, low, high = np.ones(10**5), 0.0, math.inf
    for step in steps:
        at_risk, solved = np.sum(ends >= step), np.sum(records.t_c == step)
        if solved:
            product = product * generator.beta(at_risk - solved + 1, solved, 10**5)
        left = np.sum(ends > step)
        below = product * generator.beta(left, 1, 10**5) if left else np.zeros(10**5)
        if low == 0 and np.mean(below <= 0.5) >= 0.025:
            low = float(step)
        if math.isinf(high) and np.mean(product <= 0.5) >= 0.975:
            high = float(step)
    assert 0 < low < high < math.inf
    assert percentile_interval(records.t_c, records.status, 50, steps=records.steps) == (low, high)


def test_without_diverged_runs_curve_and_comparison_are_those_of_scipy():
    generator = np.random.default_rng(4)
    one, two = (sample(seen(40, generator), random_horizons(40, generator)) for _ in range(2))
    data = [stats.CensoredData.right_censored(np.where(r.status == SOLVED, r.t_c, r.steps), r.status != SOLVED)
            for r in (one, two)]
    theirs, mine = stats.ecdf(data[0]).sf, survival(one)
    np.testing.assert_allclose(mine.unsolved, theirs.probabilities, atol=1e-13)
    band = theirs.confidence_interval(method="log-log")
    inside = mine.unsolved < 1
    np.testing.assert_allclose(mine.low[inside], band.low.probabilities[inside], atol=1e-13)
    np.testing.assert_allclose(mine.high[inside], band.high.probabilities[inside], atol=1e-13)
    assert compare(one, two) == pytest.approx((stats.logrank(*data).statistic, stats.logrank(*data).pvalue), abs=1e-12)


# --- comparison and scaling -------------------------------------------------------------------------------------


def test_the_comparison_is_fair_to_samples_that_diverge_and_were_followed_differently():
    """Equal laws, a third diverged, horizons 50 and 400: 5 % of p-values are below 5 % (checked to be 3 to 8 %)."""
    generator, trials = np.random.default_rng(5), 600
    alarms = 0
    for _ in range(trials):
        one, two = (sample(seen(100, generator), horizon, generator.random(100) < 1 / 3) for horizon in (50, 400))
        alarms += compare(one, two).p_value < 0.05
    assert at_least(alarms, trials, 0.03)
    assert at_most(alarms, trials, 0.08)


def test_a_law_is_fitted_to_medians_of_runs_that_were_not_followed_equally_long():
    """Medians 100, 200, 400; as infinite, early censored runs would make them larger. False alarms: 1e-6."""
    generator = np.random.default_rng(6)
    samples = [sample(np.ceil(generator.exponential(scale / math.log(2), 2000)).astype(int),
                      np.where(np.arange(2000) % 2, scale // 2, 20 * scale)) for scale in (100, 200, 400)]
    fit = power_law_fit_runs([1, 2, 4], samples, resamples=200, level=1 - 1e-2)
    assert fit.power.exponent_interval[0] < 1 < fit.power.exponent_interval[1]
    assert fit.power.prefactor == pytest.approx(100, rel=0.2)
    low, high = fit.power.exponent_interval
    assert 0.02 < high - low < 0.4


# --- what is said -----------------------------------------------------------------------------------------------


def test_the_summary_and_its_json_come_from_the_curve():
    records = sample(np.array([20, 40, 60, 80, 100, 120, 900, 900]), np.array([1000] * 6 + [30, 30]))
    assert records.status.tolist() == [SOLVED] * 6 + [CENSORED] * 2
    found = summary(records)
    assert (found.median, found.horizons_differ) == (80, True)  # 1 - 1/8 after 20, then a sixth of 7/8 at a time
    assert found.to_dict()["median"] == 80
    assert str(found).splitlines()[1] == "censored from step 30 on: percentiles are those of the Kaplan-Meier curve"
    infinite = percentile(records.t_c, records.status, 50)
    assert infinite == 90


def test_what_is_not_reached_is_null_never_the_limit():
    late = sample(np.full(40, 5000), np.where(np.arange(40) % 2, 100, 1000))
    found = json.loads(json.dumps(summary(late).to_dict(), allow_nan=False))
    assert [found[name] for name in ("p10", "median", "p90")] == [None] * 3
    assert found["median_interval"] == [None, None]  # 20 runs unsolved after 1000 steps: beyond the largest horizon
    few = summary(sample(np.full(40, 5000), np.where(np.arange(40) < 39, 100, 1000)))
    assert few.median_interval == (100, math.inf)  # of one run that was followed further little can be said
    half = summary(sample(np.array([10, 20, 5000, 5000, 5000]), np.array([100, 100, 100, 50, 15])))
    assert (half.median, half.median_interval[1]) == (math.inf, math.inf)
    assert math.isinf(half.p90)


def test_no_runs_and_ties_have_percentiles():
    nothing = Records.empty()
    assert percentile(nothing.t_c, nothing.status, 50, nothing.steps) == math.inf
    assert percentile_interval(nothing.t_c, nothing.status, 50, steps=nothing.steps) == (0, math.inf)
    tied = sample(np.full(30, 100), np.where(np.arange(30) < 10, 100, 50))  # solved and censored at the same step
    assert summary(tied).median == 100
    assert summary(sample(np.array([100, 500]), np.array([100, 100]))).horizons_differ is False


def test_a_run_that_is_followed_further_never_makes_the_others_worthless():
    """One horizon is exact and is left as it was, to the last bit; with one run beyond it the curve takes over."""
    generator = np.random.default_rng(7)
    times = seen(99, generator)
    one = summary(sample(times, 200))
    more = summary(sample(np.append(times, 5000), np.append(np.full(99, 200), 1000)))
    assert (one.horizons_differ, more.horizons_differ) == (False, True)
    assert one.median_interval == statistics.percentile_interval(sample(times, 200).t_c, sample(times, 200).status, 50)
    for mine, theirs in zip(one.median_interval, more.median_interval, strict=True):
        assert abs(mine - theirs) <= 20
