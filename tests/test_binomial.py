"""Binomial counts and normal deviates, against SciPy."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats

from paritylab.statistics.binomial import at_most, deviate, quantile

CHANCES = st.floats(1e-6, 1 - 1e-6) | st.sampled_from([0.0, 0.1, 0.5, 0.9, 1.0])


@given(st.integers(1, 10**6), CHANCES, st.floats(0, 1))
def test_the_probability_of_at_most_k_is_the_binomial_one(runs: int, chance: float, part: float) -> None:
    k = int(part * runs)
    assert at_most(k, runs, chance) == pytest.approx(float(stats.binom.cdf(k, runs, chance)), rel=1e-6, abs=1e-14)


@given(st.integers(0, 3000), st.sampled_from([0, 0.025, 0.1, 0.5, 0.9, 1]), st.sampled_from([0.005, 0.025, 0.975]))
def test_the_quantile_is_the_first_count_that_reaches_the_level(runs: int, chance: float, level: float) -> None:
    count = quantile(runs, chance, level)
    assert count == runs or special.bdtr(count, runs, chance) >= level
    assert count == 0 or special.bdtr(count - 1, runs, chance) < level


@pytest.mark.parametrize(("runs", "count"), [(2, 0), (4, 1), (60, 27)])
def test_a_quantile_whose_chance_is_the_level_exactly_is_reached(runs: int, count: int) -> None:
    """Half of the chances of a fair coin: 1/4 of two throws have no head at all."""
    assert quantile(runs, 0.5, 0.25) == count == int(stats.binom.ppf(0.25, runs, 0.5))


@given(st.floats(1e-12, 0.5))
def test_a_tail_begins_where_the_normal_distribution_says(tail: float) -> None:
    assert deviate(tail) == pytest.approx(-float(special.ndtri(tail)), rel=1e-12, abs=1e-12)
