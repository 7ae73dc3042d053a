"""One step, then the top layer: each part against the definition, the whole on small sizes (fixed seeds)."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from barak2022.theory.bumps import coverage, feature_sum, parity_features, printed_features, width_needed
from barak2022.theory.two_stage import (
    bias_grid,
    first_step,
    good_neurons,
    initialise,
    sampled_gradient,
    train_top,
)
from scipy import stats

from paritylab.cli import main
from paritylab.errors import InvalidInput
from paritylab.measures.fourier import cube, majority_coefficient

FALSE_ALARM = 1e-6


def test_the_network_starts_at_zero_with_biases_from_the_grid():
    layer = initialise(9, 4, 200, seed=1)
    x = cube(9)
    assert np.abs(np.maximum(x @ layer.w.T + layer.b, 0) @ layer.u).max() == 0
    assert set(layer.b.tolist()) == set(bias_grid(4).tolist())
    assert bias_grid(4).tolist() == [-0.75, -0.5, -0.25, 0, 0.25, 0.5, 0.75]


@pytest.mark.parametrize(("n", "k"), [(9, 2), (11, 4)])
def test_the_first_step_is_the_gradient_of_the_hinge_loss(n, k):
    layer, support, x = initialise(n, k, 12, seed=2), list(range(1, k + 1)), cube(n)
    y = x[:, support].prod(1)
    active = 1.0 * (x @ layer.w.T + layer.b > 0)
    by_weight = -layer.u[:, None] * (active * y[:, None]).T @ x / 2**n
    rate = 1 / (k * abs(majority_coefficient(n, k - 1)))
    moved = first_step(layer, support)
    np.testing.assert_allclose(moved.w, -rate * by_weight, atol=1e-14)
    np.testing.assert_array_equal(moved.b, layer.b)
    good = good_neurons(layer, support)
    np.testing.assert_allclose(moved.w[good][:, support], 1 / (2 * k), atol=1e-15)
    samples = 100_000
    weights, biases = sampled_gradient(layer, support, samples, seed=3)
    margin = math.sqrt(2 * math.log(2 * 12 * (n + 1) / FALSE_ALARM) / samples)
    assert np.abs(weights - by_weight).max() < margin
    assert np.abs(biases).max() < margin


def test_good_neurons_are_the_aligned_ones():
    layer = initialise(7, 2, 4000, seed=4)
    good = good_neurons(layer, [0, 3])
    expected = [all(w[j] == u * np.sign(majority_coefficient(7, 1)) for j in (0, 3))
                for w, u in zip(layer.w, layer.u, strict=True)]
    assert good.tolist() == expected
    pairs = good[:2000] | good[2000:]
    assert stats.binomtest(int(pairs.sum()), 2000, 0.5).pvalue > FALSE_ALARM


@pytest.mark.parametrize("k", [2, 4, 6, 8])
def test_features_make_the_parity_with_one_more_neuron_than_printed(k):
    chi = (-1.0) ** np.arange(k + 1)
    biases, coefficients = parity_features(k)
    np.testing.assert_allclose(feature_sum(k, biases, coefficients), 2 * chi, atol=1e-9)
    assert np.abs(coefficients).max() == 8 * k
    for offset in (0, 1):
        off = np.abs(feature_sum(k, *printed_features(k, offset)) - 2 * chi)
        assert off.max() >= 1
    assert np.all(np.isin(np.round(biases, 9), np.round(bias_grid(k), 9))) == (k > 2)


@pytest.mark.parametrize(("k", "width", "values"), [(2, 24, 2), (2, 40, 3), (4, 300, 4)])
def test_coverage_agrees_with_drawn_initialisations(k, width, values):
    draws, wanted = 2000, bias_grid(k)[:values]
    generator = np.random.default_rng(width)
    covered = 0
    for _ in range(draws):
        layer = initialise(k + 1, k, width, generator)
        covered += set(wanted) <= set(layer.b[good_neurons(layer, range(k))])
    assert stats.binomtest(covered, draws, coverage(k, width, values)).pvalue > FALSE_ALARM


def test_the_printed_width_fails_more_often_than_it_says():
    for k in (2, 4):
        assert coverage(k, width_needed(k, 0.1)) >= 0.9
        assert coverage(k, width_needed(k, 0.1, printed=True)) < 0.8


@pytest.mark.parametrize(("n", "k", "width", "samples"), [(31, 2, 64, None), (31, 2, 64, 20_000),
                                                           pytest.param(101, 4, 512, None, marks=pytest.mark.long)])
def test_two_stages_learn_the_parity(n, k, width, samples):
    layer = first_step(initialise(n, k, width, seed=5), range(k), samples, seed=6)
    trained = train_top(layer, range(k), steps=400, rate=0.5, seed=7)
    assert trained.accuracy[-1] > 0.95
    assert trained.loss.min() < 0.15
    assert trained.steps.tolist() == [100, 200, 300, 400]


def test_odd_parities_and_even_dimensions_are_refused():
    with pytest.raises(InvalidInput, match="even k"):
        initialise(9, 3, 4)
    with pytest.raises(InvalidInput, match="odd n"):
        initialise(10, 2, 4)


@pytest.mark.parametrize(("arguments", "name", "expected"), [
    (["barak2022", "two-stage", "--n", "31", "--steps", "300"], "accuracy", 1.0),
    (["barak2022", "adaptive", "--block", "2", "--nets", "8"], "steps", 24371),
    (["theory", "search", "--n", "30", "--k", "3"], "mean", 4060.0),
])
def test_theorems_and_random_search_as_commands(arguments, name, expected, capsys, tmp_path):
    assert main([*arguments, "--json", "--out", str(tmp_path)]) == 0
    assert json.loads(capsys.readouterr().out)[name] == expected
    assert main([*arguments, "--out", str(tmp_path)]) == 0
    assert capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments", [["two-stage", "--n", "30"], ["two-stage", "--seed", "-1"], ["adaptive", "--batch", "99"],
                  ["adaptive", "--seed", "-1"], ["search", "--k", "99"]]
)
def test_these_commands_refuse_in_one_line(arguments, capsys, tmp_path):
    assert main([*arguments, "--out", str(tmp_path)]) == 2
    assert capsys.readouterr().err.startswith("paritylab: error: ")
