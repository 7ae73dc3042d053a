"""Gradients of a neuron on a parity of biased inputs: every start and input one by one, and samples where n is large.

Statistical tests have fixed seeds; a correct function would fail one with probability at most 1e-5 (4.5 sigma).
"""

from __future__ import annotations

import itertools
import math
from dataclasses import astuple

import numpy as np
import pytest
from scipy import stats

import paritylab as pl
from paritylab.errors import InvalidInput
from paritylab.measures.fourier import cube, majority_coefficient
from paritylab.measures.gap import largest_gap
from paritylab.theory.bias_gap import bias_gap, gap_at, leading_signal
from paritylab.theory.majority import majority_gap

SIGMAS = 4.5


def brute(starts, k, p, bias):
    """All eight numbers from their definitions: starts one by one, each with all inputs at once."""
    n = starts.shape[1]
    x = cube(n)
    mass = np.where(x > 0, p, 1 - p).prod(1)
    y = x[:, :k].prod(1)
    rows = []
    for w in starts:
        terms = (y * (x @ w + bias > 1e-9))[:, None] * x
        g = mass @ terms
        mean = g[k:].mean()
        variance = mass @ (terms - g) ** 2
        gap = float(largest_gap(g, range(k)))
        rows.append([np.mean(g[:k] ** 2), np.mean(g[k:] ** 2), np.mean((g[:k] - mean) ** 2),
                     np.mean((g[k:] - mean) ** 2), gap, gap > 1e-14, variance[:k].mean(), variance[k:].mean()])
    found = np.mean(rows, axis=0)
    found[:4] **= 0.5
    return found


@pytest.mark.parametrize("p", [0.5, 0.75, 0.1])
@pytest.mark.parametrize(("n", "k", "bias"), [(2, 1, 0.0), (5, 2, 0.0), (6, 3, 0.5), (7, 4, -1.0), (7, 1, 0.3),
                                              (6, 5, 0.0)])
def test_all_starts_and_inputs_one_by_one(n, k, p, bias):
    expected = brute(cube(n), k, p, bias)
    np.testing.assert_allclose(astuple(bias_gap(n, k, p, bias)), expected, atol=1e-13)
    np.testing.assert_allclose(astuple(gap_at(cube(n), k, p, bias)), expected, atol=1e-13)
    np.testing.assert_allclose(astuple(bias_gap(n, k, p, bias, "majority")), brute(np.ones((1, n)), k, p, bias),
                               atol=1e-13)


def test_weights_of_any_kind_one_by_one():
    weights = np.random.default_rng(0).standard_normal((20, 7))
    np.testing.assert_allclose(astuple(gap_at(weights, 3, 0.7, 0.2)), brute(weights, 3, 0.7, 0.2), atol=1e-13)


@pytest.mark.parametrize(("n", "k"), [(5, 2), (31, 4), (101, 6)])
def test_without_bias_every_start_has_the_majoritys_gap(n, k):
    for start in ("signs", "majority"):
        found = bias_gap(n, k, start=start)
        assert found.gap == pytest.approx(majority_gap(n, k), rel=1e-9)
        assert found.relevant == pytest.approx(abs(majority_coefficient(n, k - 1)) / 2, rel=1e-9)
        assert found.irrelevant == pytest.approx(abs(majority_coefficient(n, k + 1)) / 2, rel=1e-8)
        assert found.positive == pytest.approx(1.0)


@pytest.mark.long
@pytest.mark.parametrize(("n", "k", "p", "bias"), [(101, 4, 0.6, 0.0), (60, 3, 0.8, 0.5)])
def test_large_cases_agree_with_sampled_starts(n, k, p, bias):
    starts = 1.0 - 2.0 * np.random.default_rng(n).integers(0, 2, (600, n))
    found = bias_gap(n, k, p, bias)
    rows = np.array([astuple(gap_at(w, k, p, bias)) for w in starts])
    rows[:, :4] **= 2
    expected = np.array(astuple(found))
    expected[:4] **= 2
    error = rows.std(0, ddof=1) / math.sqrt(len(rows))
    assert stats.binomtest(int(rows[:, 5].sum()), len(rows), found.positive).pvalue > 1e-5
    rows[:, 5] = found.positive
    assert np.all(np.abs(rows.mean(0) - expected) <= SIGMAS * error + 1e-12)
    assert error[2] < 0.2 * expected[2]


def test_large_cases_agree_with_sampled_examples():
    n, k, p, samples = 75, 3, 0.75, 200_000
    generator = np.random.default_rng(8)
    w = generator.choice([-1.0, 1.0], n)
    x = np.where(generator.random((samples, n)) < p, 1.0, -1.0)
    terms = (x[:, :k].prod(1) * (x @ w > 0))[:, None] * x
    g, error = terms.mean(0), terms.std(0) / math.sqrt(samples)
    exact = pl.population_gradient(pl.Neuron("relu"), [{"w": w[:, None], "b": np.zeros(1)}], "parity:3", p)[0]["w"]
    assert np.all(np.abs(g + exact[:, 0]) < SIGMAS * error)
    found = gap_at(w, k, p)
    assert found.relevant == pytest.approx(np.sqrt(np.mean(g[:k] ** 2)), abs=SIGMAS * error.max())
    assert found.variance == pytest.approx(terms[:, :k].var(0).mean(), abs=SIGMAS * error.max())
    assert found.irrelevant_variance == pytest.approx(terms[:, k:].var(0).mean(), abs=SIGMAS * error.max())


@pytest.mark.parametrize(("k", "p"), [(1, 0.75), (2, 0.6), (3, 0.75), (4, 0.75), (3, 0.2)])
def test_the_signal_tends_to_its_leading_order(k, p):
    """The difference is of relative order 1/(mu^2 n)."""
    for n in (401, 1601):
        ratio = bias_gap(n, k, p).signal / leading_signal(k, p)
        assert abs(ratio - 1) < k**2 / ((2 * p - 1) ** 2 * n)


def test_bias_counts_from_one_over_the_root_of_n_on():
    fair = bias_gap(401, 4).signal
    assert bias_gap(401, 4, 0.5 + 0.1 / (2 * 20)).signal < 1.1 * fair
    assert bias_gap(401, 4, 0.5 + 3 / (2 * 20)).signal > 10 * fair


def test_steps_are_variance_over_squared_signal():
    found = bias_gap(21, 2, 0.7)
    assert found.steps(8) == pytest.approx(found.variance / (8 * found.signal**2))
    assert gap_at(np.ones((1, 4)), 1, 0.5, 5.0).steps() < math.inf
    assert gap_at(np.ones((1, 4)), 2, 0.5, 5.0).steps() == math.inf  # the unit is always on


@pytest.mark.parametrize(("arguments", "says"), [
    ({"k": 0}, "k from 1"), ({"k": 9}, "k from 1"), ({"n": 5000}, "up to"), ({"p": 1.0}, "probability"),
    ({"p": math.nan}, "probability"), ({"bias": math.inf}, "finite"), ({"start": "sign"}, "signs"),
])
def test_what_cannot_be_is_refused_in_one_line(arguments, says):
    with pytest.raises(InvalidInput, match=says) as caught:
        bias_gap(**{"n": 9, "k": 2, **arguments})
    assert "\n" not in str(caught.value)
    with pytest.raises(InvalidInput, match="k from 1"):
        gap_at(np.ones((2, 3)), 3)


def test_few_starts_are_left_out():
    """Their probabilities sum to 1 where all are kept, and nearly where n is large."""
    for n, k in itertools.product((10, 400), (2, 3)):
        found = bias_gap(n, k, 0.9)
        assert found.variance + found.relevant**2 == pytest.approx(found.irrelevant_variance + found.irrelevant**2)
