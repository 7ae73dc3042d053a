"""Two learners on the same runs: the size, power and coverage of what is said, by simulation with fixed seeds."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from paritylab import statistics
from paritylab.errors import InvalidInput
from paritylab.statistics.paired import EXACT, _signs_test
from paritylab.storage.records import Records

HORIZON = 1000


def records(times: np.ndarray, horizon: int = HORIZON, diverged: float = 0.0) -> Records:
    """Runs that are solved at these times, seen every ten steps; the rest censored, or some diverged."""
    seen = np.maximum(10, 10 * np.ceil(times / 10)).astype(int)
    late = seen > horizon
    status = np.where(late, np.where(np.arange(len(times)) < diverged * len(times), 2, 1), 0)
    return Records(np.arange(len(times)), status, np.where(late, -1, seen), np.where(late, horizon, seen), 0 * status,
                   0 * status)


def simulated(rng: np.random.Generator, pairs: int, factor: float = 1.0) -> tuple[Records, Records]:
    """Times that share half of what makes a run hard; three in ten are beyond the horizon. The first has ``factor``
    times as much as it would have."""
    shared = rng.normal(size=pairs)
    times = [600 * np.exp(0.7 * (shared + rng.normal(size=pairs))) for _ in range(2)]
    return records(times[0] * factor), records(times[1])


@pytest.mark.parametrize("pairs", [6, 20, 100])
def test_alike_learners_are_told_apart_no_more_often_than_stated(pairs):
    """Of 1500 comparisons at most 5 % are decided: 75, and 103 with 3.3 deviations (false alarms: 5e-4)."""
    rng = np.random.default_rng(pairs)
    found = [statistics.paired(*simulated(rng, pairs)) for _ in range(1500)]
    assert sum(each.decided for each in found) <= 103
    assert sum(each.solved_p_value <= 0.05 for each in found) <= 103
    if pairs > EXACT:  # neither is it too shy: 47 is 3.3 deviations below
        assert sum(each.decided for each in found) >= 47


def test_as_many_runs_as_are_needed_decide_in_nine_of_ten():
    """Of 600, 540 +- 7.3 where ``needed`` were exact; it is an approximation, allowed 3 % of the runs more."""
    rng = np.random.default_rng(7)
    needed = statistics.paired(*simulated(rng, 40000, 1.25)).needed
    assert 50 < needed < 1000
    decided = sum(statistics.paired(*simulated(rng, int(needed), 1.25)).decided for _ in range(600))
    assert 540 - 18 - 3.3 * 7.3 <= decided <= 540 + 18 + 3.3 * 7.3


@pytest.mark.parametrize("factor", [0.5, 1.0, 1.4])
def test_intervals_hold_what_they_should(factor):
    """In at least 95 % of 1000: 950, and 927 with 3.3 deviations (false alarms: 5e-4).

    The median ratio is the factor up to what checks every ten steps round it to, below 10 / 150."""
    rng = np.random.default_rng(int(10 * factor))
    exact = np.concatenate([simulated(rng, 200_000, factor)[i].t_c > 0 for i in range(2)]).reshape(2, -1).mean(axis=1)
    difference, held, shares = exact[0] - exact[1], 0, 0
    for _ in range(1000):
        found = statistics.paired(*simulated(rng, 60, factor))
        low, high = found.ratio_interval
        held += 0.93 * low <= factor <= 1.07 * high
        shares += found.solved_interval[0] <= difference <= found.solved_interval[1]
    assert held >= 927
    assert shares >= 927


@pytest.mark.parametrize("pairs", [1, 2, 5, 9])
def test_small_samples_try_all_signs(pairs):
    differences = np.random.default_rng(pairs).normal(size=pairs)
    sums = [abs(np.dot(signs, differences)) for signs in itertools.product((-1, 1), repeat=pairs)]
    share = np.mean([each >= abs(differences.sum()) - 1e-9 for each in sums])
    assert _signs_test(differences)[1] == pytest.approx(share)


def test_ranks_are_those_of_prentice():
    """With one horizon the scores 1 - 2 S(t) of solved and 1 - S of unsolved runs, S of Kaplan and Meier, are ranks."""
    a, b = simulated(np.random.default_rng(3), 30)
    times = np.concatenate([np.where(each.status == 0, each.t_c, np.inf) for each in (a, b)])
    # the mean of S just before and just after t is what tied times share of 1 - 2 S(t)
    after = np.array([np.mean(times > t) for t in times])
    before = np.array([np.mean(times >= t) for t in times])
    scores = np.where(np.isfinite(times), 1 - (before + after), 1 - np.mean(np.isinf(times)))
    d = scores[30:] - scores[:30]
    assert statistics.paired(a, b).statistic == pytest.approx(d.sum() / np.sqrt((d**2).sum()))


def test_unsolved_runs_bound_the_ratio_and_are_never_left_out():
    first = records(np.array([100.0, 100, 100, 100, 5000, 5000, 100]))
    second = records(np.array([200.0, 200, 200, 5000, 5000, 200, 5000]))
    found = statistics.paired(first, second)
    assert (found.both, found.first_alone, found.second_alone, found.neither) == (3, 2, 1, 1)
    assert found.ratio == 0.5  # the fourth of seven, whatever became of the unsolved ones
    assert found.ratio_interval == (0, math.inf)
    fewer = np.array([0, 3, 4])
    assert math.isnan(statistics.paired(first.take(fewer), second.take(fewer)).ratio)  # 0.5 or at most 0.1
    assert found.solved_difference == pytest.approx(1 / 7)
    swapped = statistics.paired(second, first)
    assert swapped.statistic == -found.statistic
    assert swapped.p_value == found.p_value


def test_runs_are_followed_to_one_horizon():
    """What one learner did after the other was given up is not held against it."""
    long, short = records(np.full(30, 700.0), 1000), records(np.full(30, 700.0), 500)
    found = statistics.paired(long, short)
    assert (found.horizon, found.neither, found.p_value, found.more) == (500, 30, 1.0, math.inf)
    assert statistics.paired(long, long, horizon=600).neither == 30


def test_pairs_have_the_same_numbers():
    a, b = simulated(np.random.default_rng(3), 30)
    reversed_b = b.take(np.arange(30)[::-1])
    assert statistics.paired(a, reversed_b) == statistics.paired(a, b)
    assert statistics.paired(a.take(np.arange(5, 30)), b).pairs == 25
    with pytest.raises(InvalidInput, match="must have the same numbers"):
        statistics.paired(a.take(np.arange(10)), b.take(np.arange(10, 20)))
    with pytest.raises(InvalidInput, match="a confidence level must be between 0 and 1"):
        statistics.paired(a, b, level=95)


def test_diverged_runs_are_never_solved():
    times = np.array([100.0, 5000, 5000, 100])
    found = statistics.paired(records(times, diverged=0.5), records(np.full(4, 200.0)))
    assert found.second_alone == 2
