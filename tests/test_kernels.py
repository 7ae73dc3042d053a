"""Kernels against sampled features, and classifiers against problems with known answers."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from paritylab.baselines import kernels
from paritylab.errors import InvalidInput

CUBE = np.array(list(itertools.product([1.0, -1.0], repeat=4)))
XOR = CUBE[:, 0] * CUBE[:, 1]


@pytest.mark.parametrize("degree", [0, 1, 2])
def test_arc_cosine_kernels_are_expectations(degree):
    # 4e5 draws; six standard errors: a false alarm has probability below 1e-7
    generator = np.random.default_rng(0)
    x, z = generator.standard_normal((2, 3)), generator.standard_normal((3, 3))
    w = generator.standard_normal((3, 400_000))
    made = 2 * np.einsum("xw,zw->xzw", *((inputs @ w > 0) * (inputs @ w) ** degree for inputs in (x, z)))
    error = made.std(axis=2) / np.sqrt(made.shape[2])
    assert np.all(np.abs(made.mean(axis=2) - kernels.arc_cosine(x, z, degree)) < 6 * error)


def test_the_tangent_kernel_is_that_of_a_wide_network():
    generator = np.random.default_rng(1)
    w = generator.standard_normal((4, 200_000))
    active = (CUBE @ w > 0).astype(float)
    ramp = active * (CUBE @ w)
    made = ((CUBE @ CUBE.T) * (active @ active.T) + ramp @ ramp.T) / w.shape[1]
    np.testing.assert_allclose(made, kernels.ntk(CUBE, CUBE), atol=0.06)


def test_the_tangent_kernel_on_the_cube_is_the_published_formula():
    d = 4
    rho = (CUBE @ CUBE.T / d).clip(-1, 1)
    left = np.pi - np.arccos(rho)
    formula = d * rho * left / (2 * np.pi) + d * (np.sqrt(1 - rho**2) + rho * left) / (2 * np.pi)
    np.testing.assert_allclose(kernels.ntk(CUBE, CUBE), formula, atol=1e-12)


def test_rows_are_made_in_blocks_that_do_not_matter(monkeypatch):
    whole = kernels.ntk(CUBE, CUBE[:5])
    monkeypatch.setattr(kernels, "ROWS", 3)
    np.testing.assert_array_equal(kernels.ntk(CUBE, CUBE[:5]), whole)


def test_the_kernel_of_a_vanishing_input_vanishes():
    assert np.all(kernels.ntk(np.zeros((1, 4)), CUBE) == 0)


def test_random_features_tend_to_their_kernel():
    phi = kernels.relu_features(4, 100_000, np.random.default_rng(2))(CUBE)
    np.testing.assert_allclose(phi @ phi.T, kernels.arc_cosine(CUBE, CUBE, 1) / 2, atol=0.05)


def test_capped_features_stop_at_the_cap():
    phi = kernels.relu_features(4, 9, np.random.default_rng(3), scale=10.0, cap=6.0)(CUBE)
    assert phi.max() == 6 / 3
    assert phi.min() == 0


@pytest.mark.parametrize("kernel", [
    kernels.ntk,
    lambda x, z: kernels.gaussian(x, z, 2.0),
    lambda x, z: kernels.polynomial(x, z, 2),
    lambda x, z: kernels.arc_cosine(x, z, 1),
])
def test_classifiers_that_see_products_learn_xor(kernel):
    scores = kernels.kernel_classifier(kernel, CUBE, XOR, ridge=1e-8)(CUBE)
    assert np.all(scores * XOR > 0)


def test_a_linear_classifier_cannot_learn_xor_and_finds_a_bit():
    blind = kernels.feature_classifier(lambda x: x, CUBE, XOR)(CUBE)
    assert np.abs(blind).max() < 1e-9
    assert np.all(kernels.feature_classifier(lambda x: x, CUBE, CUBE[:, 2])(CUBE) * CUBE[:, 2] > 0)


def test_primal_and_dual_ridge_regressions_agree():
    phi = kernels.relu_features(4, 40, np.random.default_rng(4))
    narrow = kernels.feature_classifier(phi, CUBE, XOR, ridge=0.1)(CUBE)
    as_kernel = kernels.kernel_classifier(lambda x, z: phi(x) @ phi(z).T, CUBE, XOR, ridge=0.1)(CUBE)
    np.testing.assert_allclose(narrow, as_kernel, atol=1e-9)
    repeated = np.tile(CUBE, (4, 1))
    wide = kernels.feature_classifier(phi, repeated, np.tile(XOR, 4), ridge=0.4)(CUBE)
    np.testing.assert_allclose(narrow, wide, atol=1e-9)


def test_an_intercept_learns_a_constant_label():
    scores = kernels.feature_classifier(lambda x: x, CUBE, np.ones(16), intercept=True)(CUBE)
    np.testing.assert_allclose(scores, 1.0)


@pytest.mark.parametrize("make", [
    lambda: kernels.arc_cosine(CUBE, CUBE, 3),
    lambda: kernels.gaussian(CUBE, CUBE, 0.0),
    lambda: kernels.polynomial(CUBE, CUBE, 0),
    lambda: kernels.kernel_classifier(kernels.ntk, CUBE, XOR[:3]),
    lambda: kernels.kernel_classifier(kernels.ntk, CUBE, XOR, ridge=0.0),
    lambda: kernels.relu_features(4, 0, np.random.default_rng(0)),
])
def test_mistakes_are_named(make):
    with pytest.raises(InvalidInput):
        make()
