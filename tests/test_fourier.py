"""Fourier coefficients, population gradients and gaps against brute force, and sampling where there is none.

Statistical tests have fixed seeds; a correct function would fail one with probability at most ``FALSE_ALARM``.
"""

from __future__ import annotations

import itertools
import json
import math
from fractions import Fraction

import numpy as np
import pytest
from commands import run
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from paritylab.errors import InvalidInput
from paritylab.measures.fourier import (
    cube,
    fourier_coefficients,
    majority_coefficient,
    majority_fraction,
    population_gradient,
    unit_coefficient,
    walsh_hadamard,
)
from paritylab.measures.gap import (
    definition_interval,
    gap_interval,
    gaps,
    largest_gap,
    recover_support,
    sampled_gradient,
)
from paritylab.theory.majority import coefficient_ratio, level_weight, majority_gap, sign_gradient

FALSE_ALARM = 1e-6


def brute(function, weights, support, bias):
    """E chi_S x_j s(z) for each j and E chi_S s(z), one input at a time."""
    n = len(weights)
    total, constant = np.zeros(n), 0.0
    for x in itertools.product((-1.0, 1.0), repeat=n):
        value = function(np.dot(weights, x) + bias) * math.prod(x[j] for j in support)
        total += value * np.array(x)
        constant += value
    return total / 2**n, constant / 2**n


def step(z):
    return 1.0 * (z > 1e-9)


# --- transforms -------------------------------------------------------------------------------------------------


@given(st.integers(0, 6), st.integers(0, 99))
def test_the_transform_is_the_sum_over_all_characters(n, seed):
    values = np.random.default_rng(seed).standard_normal((2, 2**n))
    x = cube(n) if n else np.ones((1, 0))
    for subset in range(2**n):
        chi = x[:, [j for j in range(n) if subset >> j & 1]].prod(1)
        np.testing.assert_allclose(walsh_hadamard(values)[:, subset], values @ chi, atol=1e-12)


def test_the_transform_is_its_own_inverse_and_leaves_its_argument_alone():
    values = np.random.default_rng(0).standard_normal(2**12)
    kept = values.copy()
    np.testing.assert_allclose(walsh_hadamard(walsh_hadamard(values)) / 2**12, values, atol=1e-12)
    assert np.array_equal(values, kept)


@pytest.mark.parametrize("values", [[], 1.0, [1, 2, 3]])
def test_a_function_on_the_cube_has_a_power_of_two_of_values(values):
    with pytest.raises(InvalidInput, match="2\\^n"):
        walsh_hadamard(values)


# --- thresholds -------------------------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(
    n=st.integers(1, 7),
    k=st.integers(0, 7),
    bias=st.sampled_from([0.0, 0.1, -0.6, 0.3, 5.0]),
    kind=st.sampled_from(["gaussian", "sign", "tenths"]),
    seed=st.integers(0, 10**6),
)
def test_enumeration_and_meeting_in_the_middle_are_exact_ties_included(n, k, bias, kind, seed):
    generator = np.random.default_rng(seed)
    if kind == "gaussian":
        weights = generator.standard_normal(n)
    elif kind == "sign":
        weights = generator.choice([-0.1, 0.1], n)
    else:
        weights = 0.1 * generator.integers(-3, 4, n)
    support = list(generator.permutation(n)[: min(k, n)])
    expected, constant = brute(step, weights, support, bias)
    methods = ["auto", "enumerate", "meet"] + ["integral"] * (kind == "sign")
    for method in methods:
        found = population_gradient(weights, support, bias, method=method)
        np.testing.assert_allclose(found.weights, expected, atol=1e-14)
        np.testing.assert_allclose(found.bias, constant, atol=1e-14)
        assert found.error == 0


def test_lattice_weights_are_exact_at_any_size_whatever_the_bias():
    generator = np.random.default_rng(1)
    for n, bias in ((20, 0.0), (20, 0.25), (21, 0.7), (22, -2.0)):
        weights = 0.3 * generator.choice([-3, -2, 2, 3], n)
        support = [0, 4, 7]
        exact = population_gradient(weights, support, bias, method="meet")
        series = population_gradient(weights, support, bias, method="integral")
        np.testing.assert_allclose(series.weights, exact.weights, atol=1e-13)
        np.testing.assert_allclose(series.bias, exact.bias, atol=1e-13)


@pytest.mark.parametrize("n", [24, 30, 36])
def test_the_integral_is_within_its_error_estimate(n):
    generator = np.random.default_rng(n)
    weights, bias = generator.standard_normal((3, n)), np.array([0.0, 0.3, -2.0])
    exact = population_gradient(weights, [0, 1, 2, 3], bias, method="meet")
    found = population_gradient(weights, [0, 1, 2, 3], bias, method="integral")
    off = np.maximum(np.abs(found.weights - exact.weights).max(1), np.abs(found.bias - exact.bias))
    assert np.all(off <= found.error)
    assert np.all(found.error < 10 ** (-n / 8))


def test_the_integral_at_large_n_agrees_with_samples():
    generator = np.random.default_rng(2)
    weights, samples = generator.standard_normal(120) * np.linspace(0.2, 2, 120), 200_000
    weights[0] = 12.0
    exact = population_gradient(weights, [0, 60], 0.5)
    assert exact.error < 1e-12
    sampled = sampled_gradient(weights, [0, 60], samples, 3, bias=0.5)
    # Each term is at most 1 in size: Hoeffding, with a union over the coordinates.
    margin = math.sqrt(2 * math.log(2 * 120 / FALSE_ALARM) / samples)
    assert np.abs(sampled - exact.weights).max() < margin
    assert np.abs(exact.weights).max() > 3 * margin


def test_batches_are_the_single_vectors_one_by_one():
    generator = np.random.default_rng(4)
    weights, bias = generator.uniform(-1, 1, (2, 3, 9)), generator.uniform(-1, 1, (2, 3))
    for unit in ("relu", "sinusoid", np.tanh):
        many = population_gradient(weights, [1, 2], bias, unit)
        for place in np.ndindex(2, 3):
            one = population_gradient(weights[place], [1, 2], bias[place], unit)
            np.testing.assert_allclose(many.weights[place], one.weights, atol=1e-15)
            np.testing.assert_allclose(many.bias[place], one.bias, atol=1e-15)


def test_without_a_bias_odd_parities_have_no_gradient_at_all():
    weights = np.random.default_rng(5).uniform(-1, 1, (50, 15))
    assert np.abs(population_gradient(weights, [0, 1, 2]).weights).max() == 0


# --- other units ------------------------------------------------------------------------------------------------


@settings(max_examples=20, deadline=None)
@given(n=st.integers(1, 7), k=st.integers(0, 7), seed=st.integers(0, 10**6))
def test_sinusoids_and_functions_of_ones_own(n, k, seed):
    generator = np.random.default_rng(seed)
    weights, bias, support = generator.standard_normal(n), 0.4, list(range(min(k, n)))
    waves = {
        "sinusoid": (np.sin, np.cos),
        "sinusoid:3": (lambda z: np.cos(math.pi / 2 * (z - 3)), lambda z: -math.pi / 2 * np.sin(math.pi / 2 * (z - 3))),
        "sinusoid:2,0.7": (
            lambda z: np.cos(math.pi / 2 * (0.7 * z - 2)),
            lambda z: -0.35 * math.pi * np.sin(math.pi / 2 * (0.7 * z - 2)),
        ),
    }
    for unit, (value, derivative) in waves.items():
        for given_unit in (unit, derivative):
            found = population_gradient(weights, support, bias, given_unit)
            expected, constant = brute(derivative, weights, support, bias)
            np.testing.assert_allclose(found.weights, expected, atol=1e-13)
            np.testing.assert_allclose(found.bias, constant, atol=1e-13)
        np.testing.assert_allclose(
            unit_coefficient(weights, support, bias, unit), brute(value, weights, support, bias)[1], atol=1e-13
        )


@pytest.mark.parametrize("method", ["enumerate", "meet"])
def test_threshold_and_relu_coefficients(method):
    weights, bias = np.random.default_rng(6).standard_normal(8), 0.3
    for support in ([], [0], [1, 4], [0, 2, 5, 7]):
        for unit, function in (("threshold", step), ("relu", lambda z: max(z, 0.0))):
            found = unit_coefficient(weights, support, bias, unit, method)
            np.testing.assert_allclose(found, brute(function, weights, support, bias)[1], atol=1e-14)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1.0, 2.0], [2]), "support"),
        (([1.0, 2.0], [0, 0]), "support"),
        (([1.0, math.nan], [0]), "finite"),
        (([1.0, 2.0], [0], 0, "threshold"), "no gradient"),
        (([1.0, 2.0], [0], 0, "tanh"), "unknown unit"),
        (([1.0, 2.0], [0], 0, "relu", "meat"), "did you mean 'meet'"),
        ((np.ones(25), [0], 0, "relu", "enumerate"), "at most n = 24"),
        ((np.ones(25), [0], 0, np.tanh), "from 1 to 24"),
    ],
)
def test_what_cannot_be_computed_is_refused_in_one_line(arguments, message):
    with pytest.raises(InvalidInput, match=message):
        population_gradient(*arguments)


# --- majority ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 3, 5, 9, 13])
def test_majority_coefficients_are_those_of_the_majority(n):
    found = fourier_coefficients(lambda x: np.sign(x.sum(1)), n)
    sizes = np.bitwise_count(np.arange(2**n))
    expected = np.array([majority_coefficient(n, k) for k in range(n + 1)])
    np.testing.assert_allclose(found, expected[sizes], atol=1e-15)


def test_majority_at_large_n():
    assert sum(math.comb(101, k) * majority_fraction(101, k) ** 2 for k in range(102)) == 1
    assert majority_coefficient(10001, 1) == pytest.approx(math.sqrt(2 / (math.pi * 10001)), rel=1e-4)
    for n in (101, 1001):
        for k in range(1, int(math.sqrt(n / 2)) + 1, 2):
            assert 0.5 <= level_weight(n, k) * k**1.5 <= 0.66
        for k in (2, 4, 10):
            exact = abs(majority_fraction(n, k + 1) / majority_fraction(n, k - 1))
            assert exact == Fraction(k - 1, n - k)
            assert coefficient_ratio(n, k) == float(exact)
    with pytest.raises(InvalidInput, match="odd number"):
        majority_coefficient(10, 3)


@pytest.mark.parametrize(("n", "k"), [(7, 2), (9, 4), (11, 2), (13, 4)])
def test_gradients_at_sign_weights(n, k):
    generator = np.random.default_rng(n)
    weights, outputs = generator.choice([-1.0, 1.0], (10, n)), generator.choice([-1.0, 1.0], 10)
    support = list(generator.permutation(n)[:k])
    for bias in (-0.9, 0.0, 0.5):
        exact = population_gradient(weights, support, bias, method="enumerate")
        found = sign_gradient(weights, outputs, support)
        np.testing.assert_allclose(found, -outputs[:, None] * exact.weights, atol=1e-15)
        assert np.abs(exact.bias).max() < 1e-15
        np.testing.assert_allclose(gaps(weights, support, bias), majority_gap(n, k), atol=1e-15)


# --- gaps -------------------------------------------------------------------------------------------------------


def test_the_two_gaps_and_the_definition():
    generator = np.random.default_rng(7)
    weights, support = generator.standard_normal(9), [2, 5]
    coefficients = fourier_coefficients(lambda x: 1.0 * (x @ weights > 0), 9)
    gradient = population_gradient(weights, support).weights
    relevant = [abs(coefficients[1 << 5]), abs(coefficients[1 << 2])]
    seen = [abs(coefficients[1 << 2 | 1 << 5 | 1 << j]) for j in range(9) if j not in support]
    every = [abs(coefficients[sum(1 << j for j in triple)]) for triple in itertools.combinations(range(9), 3)]
    assert largest_gap(gradient, support) == pytest.approx(max(relevant) - max(seen), abs=1e-15)
    assert gap_interval(gradient, support) == pytest.approx((2 * max(seen), min(relevant)), abs=1e-15)
    assert definition_interval(coefficients, support) == pytest.approx((2 * max(every), min(relevant)), abs=1e-15)


def test_the_sign_gap_is_the_definition_from_n_3k_minus_2_on():
    for n, k, has in ((9, 4, False), (11, 4, True), (5, 2, True), (3, 2, False)):
        low, high = gap_interval(population_gradient(np.ones(n), range(k)).weights, range(k))
        assert bool(low <= high + 1e-15) == has == (n >= 3 * k - 2)


def test_the_threshold_stands_errors_of_almost_a_quarter_of_the_gap_and_no_more():
    worst = np.array([1 - 0.249, -(1 - 0.249), 0.5 + 0.249, -(0.5 + 0.249)])  # a gap of 1 at the first two
    assert recover_support(worst, 1.0) == [0, 1]
    assert recover_support([0.749, 0.751], 1.0) == [1]


def test_the_support_is_recovered_from_any_estimate_within_a_quarter_of_the_gap():
    gradient = population_gradient(np.ones(31), range(4)).weights
    gamma = abs(majority_coefficient(31, 3)) / 2
    assert recover_support(gradient, gamma) == [0, 1, 2, 3]
    worst = gradient - 0.2499 * gamma * np.sign(gradient) * np.where(np.arange(31) < 4, 1, -1)
    assert recover_support(worst, gamma) == [0, 1, 2, 3]


@pytest.mark.parametrize("noise", [0.0, 0.2])
def test_sampled_gradients_have_the_right_mean_and_spread(noise):
    n, support, samples, repeats = 18, [0, 1], 2000, 400
    weights = np.random.default_rng(8).standard_normal(n)
    weights[1] = 3.0
    exact = (1 - 2 * noise) * population_gradient(weights, support, 0.4, method="meet").weights
    generator = np.random.default_rng(9)
    draws = np.array([sampled_gradient(weights, support, samples, generator, 0.4, noise=noise) for _ in range(repeats)])
    active = float(unit_coefficient(weights, [], 0.4, method="meet"))
    spread = np.sqrt((active - exact**2) / samples)
    z = (draws.mean(0) - exact) / spread * math.sqrt(repeats)
    assert np.abs(z).max() < stats.norm.isf(FALSE_ALARM / (2 * n))
    chi2 = ((draws - exact) ** 2).sum(0) / spread**2
    assert chi2.max() < stats.chi2.isf(FALSE_ALARM / n, repeats)
    assert chi2.min() > stats.chi2.ppf(FALSE_ALARM / n, repeats)


def test_sampling_takes_any_derivative():
    weights = np.linspace(-1, 1, 5)
    exact = population_gradient(weights, [0, 1], 0.3, np.tanh).weights
    found = sampled_gradient(weights, [0, 1], 10**6, 1, 0.3, np.tanh)
    assert np.abs(found - exact).max() < math.sqrt(2 * math.log(10 / FALSE_ALARM) / 10**6)


# --- the command ------------------------------------------------------------------------------------------------


def test_the_command_reports_gaps_and_majority(capsys, tmp_path):
    options = ["--n", "9", "--k", "2", "--draws", "200", "--json", "--out", str(tmp_path)]
    status, out, err = run(capsys, "theory", "fourier", *options)
    document = json.loads(out)
    assert status == 0
    assert err == ""
    assert document["majority_gap"] == majority_gap(9, 2)
    low, high = document["positive"]["interval"]
    assert 0.5 < low < document["positive"]["value"] <= high
    assert len(np.loadtxt(document["gaps"], skiprows=1)) == 200
    status, out, _ = run(capsys, "theory", "fourier", "--n", "21", "--init", "sign", "--draws", "5", "--out",
                         str(tmp_path))
    assert status == 0
    assert "P(gap > 0) = 1 [0.4782, 1]" in out


@pytest.mark.parametrize("wrong", ["--k 15", "--draws 0", "--unit tanh", "--init x", "--seed -1"])
def test_the_command_refuses_in_one_line(capsys, tmp_path, wrong):
    status, out, err = run(capsys, "theory", "fourier", *wrong.split(), "--out", str(tmp_path))
    assert (status, out, err.count("\n")) == (2, "", 1)
