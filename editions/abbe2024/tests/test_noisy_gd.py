"""Noisy population gradient descent: gradients against automatic differentiation, noise, determinism, learning."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from abbe2024.theory.noisy_gd import (
    Networks,
    accuracies,
    descend,
    draw_networks,
    gradient,
    noisy_gd,
    threshold_coefficients,
)

from paritylab.errors import InvalidInput
from paritylab.measures.coefficients import enumerate_threshold
from paritylab.measures.fourier import cube


@pytest.mark.parametrize(("d", "degree"), [(1, 1), (6, 3), (9, 9)])
def test_the_gradient_is_that_of_the_mean_over_all_inputs(d, degree):
    networks = draw_networks(d, 7, 3, seed=d)
    x = cube(d)
    y = x[:, :degree].prod(1)

    def loss(params):
        w, b, v = params
        return -jnp.mean(y * (jnp.maximum(x @ w.T + b, 0) @ v))

    found = gradient(networks, degree)
    for draw in range(3):
        expected = jax.grad(loss)(tuple(jnp.asarray(part[draw]) for part in networks))
        for part, truth in zip(found, expected, strict=True):
            assert part[draw] == pytest.approx(np.asarray(truth), abs=1e-6)


@pytest.mark.parametrize("d", [3, 8, 11])
def test_the_coefficients_are_exact(d):
    rng = np.random.default_rng(d)
    inside = np.arange(d) < max(1, d - 2)
    for w, b in (
        (rng.standard_normal((2000, d)), rng.standard_normal(2000)),
        (rng.choice([-1.0, 1.0], (500, d)), rng.integers(-2, 3, 500) * 1.0),  # with ties
        (rng.choice([-1.0, 1.0], (500, d)) / math.sqrt(d), np.zeros(500)),
    ):
        g, c = threshold_coefficients(w, b, inside, threads=2)
        truth = enumerate_threshold(w, inside, b)
        assert np.array_equal(g, truth[0])
        assert np.array_equal(c, truth[1])


@pytest.mark.parametrize("d", [4, 12])
def test_accuracies_are_those_of_the_outputs_on_the_cube(d):
    networks = draw_networks(d, 9, 4, seed=1)
    x = cube(d)
    for degree in (d, d - 1):
        for draw, found in enumerate(accuracies(networks, degree)):
            w, b, v = (part[draw] for part in networks)
            outputs = np.maximum(x @ w.T + b, 0) @ v
            assert found == np.mean(np.sign(outputs) == x[:, :degree].prod(1))
    dead = Networks(np.zeros((1, 2, d)), -np.ones((1, 2)), np.ones((1, 2)))
    assert accuracies(dead)[0] == 0


def test_without_noise_the_descent_is_deterministic():
    start = draw_networks(6, 5, 2, seed=3)
    one, two = (descend(start, None, 0.5, 0.0, 4, seed) for seed in (1, 2))
    assert all(np.array_equal(a, b) for a, b in zip(one, two, strict=True))
    once = [part - 0.5 * slope for part, slope in zip(start, gradient(start), strict=True)]
    assert all(np.array_equal(a, b) for a, b in zip(once, descend(start, None, 0.5, 0.0, 1), strict=True))


def test_the_noise_has_its_variance_in_every_layer():
    dead = Networks(np.zeros((200, 40, 4)), -np.full((200, 40), 1e6), np.zeros((200, 40)))  # no gradient
    moved = descend(dead, None, rate=0.5, tau=0.2, steps=9, seed=0)
    for part, start in zip(moved, dead, strict=True):  # standard error of the deviation below 1 %
        assert (part - start).std() == pytest.approx(0.5 * 0.2 * 3, rel=0.04)


def test_runs_are_reproducible_and_steps_are_shared():
    options = {"rate": 0.3, "tau": 0.1, "draws": 5, "seed": 7}
    both = noisy_gd(7, 10, steps=[2, 5], threads=1, **options)
    assert both.shape == (2, 5)
    assert np.array_equal(both[1], noisy_gd(7, 10, steps=5, threads=2, **options))
    assert np.array_equal(both[0], noisy_gd(7, 10, steps=2, **options))


def test_signs_learn_the_full_parity_and_gaussian_weights_do_not():
    options = {"rate": 0.3, "tau": 0.01, "steps": 100, "draws": 8}
    assert noisy_gd(10, 200, "rademacher", **options).mean() > 0.6
    assert noisy_gd(13, 50, "gaussian", **options).mean() == pytest.approx(0.5, abs=0.02)


@pytest.mark.parametrize("wrong", [{"steps": [3, 1]}, {"tau": -1.0}, {"draws": 0}, {"d": 40}])
def test_bad_arguments_are_refused(wrong):
    with pytest.raises(InvalidInput):
        noisy_gd(**({"d": 4, "width": 2, "rate": 0.1, "tau": 0.1, "steps": 1} | wrong))
