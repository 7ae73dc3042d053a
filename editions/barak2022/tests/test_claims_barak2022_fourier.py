"""The claims of barak2022 about Fourier gaps, exact gradients and other methods: helpers, and small trials."""

import math

import jax
import numpy as np
import pytest
from barak2022 import activations, exact, fourier, methods

from paritylab import MLP
from paritylab.claims import Lab, find
from paritylab.claims.reproduction import tried
from paritylab.claims.verdicts import CONTRADICTED, HOLDS, UNDECIDED
from paritylab.measures.fourier import cube, population_gradient
from paritylab.measures.gap import gaps
from paritylab.setups.networks.activations import activation
from paritylab.theory.majority import sign_gradient

CLAIMS = ["fig11", "fig12-left", "fig12-right", "lemma1-majority", "lemma2-gradients", "prop5", "c6-noise-scaling",
          "c7-zero-gradient", "fig18", "thm6-kernels", "c6-gaussian-elimination"]


@pytest.mark.parametrize("name", CLAIMS)
def test_claim_has_a_trial(name):
    assert find([f"barak2022.{name}"])[0].trial.rules()


def test_a_share_is_sure_only_where_its_lower_bound_is():
    draws = np.arange(100) < 55  # one-sided bound 0.463, two-sided interval 0.447 to 0.650
    check = fourier.surely_at_least("share", 0.5)(draws)
    assert (check.passed, check.result, check.rule) == (False, UNDECIDED, "95 % lower bound >= 0.5")
    assert fourier.surely_at_least("share", 0.46)(draws).result == HOLDS
    assert fourier.surely_at_least("share", 0.7)(draws).result == CONTRADICTED


def test_gaps_of_a_sinusoidal_neuron_are_those_of_its_activation():
    """The formula along the path of SGD against enumeration with the activation's own derivative."""
    rng = np.random.default_rng(0)
    w, b = rng.normal(size=(5, 7)) / 3, rng.normal(size=5) / 3
    slope = jax.jit(jax.vmap(jax.grad(activation("sinusoid:3").function)))
    by_sum = gaps(w, range(3), b, lambda z: np.asarray(slope(z.reshape(-1)), np.float64).reshape(z.shape))
    np.testing.assert_allclose(gaps(w, range(3), b, "sinusoid:3"), by_sum, atol=1e-6)


def test_hinge_gradient_of_one_unit_by_finite_differences():
    """With its frozen twin, at a point without ties; the loss is piecewise linear there."""
    x, rng = cube(5), np.random.default_rng(1)
    y, w, b, u = x[:, :2].prod(1), rng.normal(size=5), 0.3, -1.0

    def loss(w, b):
        f = u * (np.maximum(x @ w + b, 0) - np.maximum(x @ start + 0.3, 0))
        return np.maximum(0, 1 - y * f).mean()

    start, step = w.copy(), 1e-6
    by_weights, by_bias = exact.hinge_gradient(x, y, w, b, u)
    found = [(loss(w + step * e, b) - loss(w - step * e, b)) / (2 * step) for e in np.eye(5)]
    np.testing.assert_allclose(by_weights, found, atol=1e-8)
    assert by_bias == pytest.approx((loss(w, b + step) - loss(w, b - step)) / (2 * step), abs=1e-8)


def test_hinge_gradient_at_signs_is_the_closed_form():
    x = cube(5)
    found = exact.hinge_gradient(x, x[:, :2].prod(1), np.ones(5), 0.5, 1.0)
    np.testing.assert_array_equal(found[0], sign_gradient([np.ones(5)], [1], range(2))[0])
    assert found[1] == 0


@pytest.mark.parametrize(("unit", "spec"), [("ReLU", "relu"), ("sinusoid", "sinusoid:3")])
def test_slopes_give_the_population_gradient(unit, spec):
    x = cube(7)
    slopes = exact.UNITS[unit](np.random.default_rng(3), x, 3)
    rng = np.random.default_rng(3)  # the same weights and bias again
    w, b = exact.torch_law(rng, 7, 7, 1)[:, 0], exact.torch_law(rng, 7, 1)[0]
    expected = population_gradient(w, range(3), b, spec).weights
    np.testing.assert_allclose(x[:, :3].prod(1) @ slopes / len(x), expected, atol=1e-12)


def test_quadratic_stack_has_a_gradient_where_one_unit_has_none(tmp_path):
    outcome = tried(exact.C7ZeroGradient(), Lab("quick", tmp_path, progress=False))
    assert outcome.results == {"": HOLDS}
    assert outcome.figure is not None


def test_stacked_gradient_agrees_with_automatic_differentiation():
    x = cube(5)
    y = x[:, :3].prod(1)
    rng = np.random.default_rng(4)
    first, b1 = exact.torch_law(rng, 5, 5, 4), exact.torch_law(rng, 5, 4)
    second, u = exact.torch_law(rng, 4, 4, 4), exact.torch_law(rng, 4, 4)
    b2 = exact.torch_law(rng, 4, 4)
    by_weights = jax.jit(jax.grad(lambda w: -(y * (((x @ w + b1) ** 2 @ second + b2) ** 2 @ u)).mean()))(first)
    np.testing.assert_allclose(exact.stacked_gradient(np.random.default_rng(4), x, y), by_weights, atol=1e-6)


def test_tangent_features_are_the_gradient_of_the_network():
    rng, x = np.random.default_rng(7), cube(5)[:6]
    params = [{"w": rng.normal(size=(5, 3)), "b": rng.normal(size=3)},
              {"w": rng.normal(size=(3, 1)), "b": rng.normal(size=1)}]
    jacobian = jax.jit(jax.vmap(jax.grad(MLP(3).apply), (None, 0)))(params, x)
    leaves = [jacobian[0]["w"], jacobian[0]["b"], jacobian[1]["w"], jacobian[1]["b"]]
    expected = np.concatenate([np.asarray(leaf).reshape(6, -1) for leaf in leaves], axis=1)
    np.testing.assert_allclose(methods.tangent_features(params, x), expected, atol=1e-6)


@pytest.mark.parametrize("radius", [0.7, 2.0])
def test_bounds_of_the_hinge_loss_enclose_the_least_loss(radius):
    """The least loss over a grid of w; only beyond radius 1 can margins exceed 1 and the bounds differ."""
    rng = np.random.default_rng(5)
    features, y = rng.normal(size=(50, 2)), fourier.signs(rng, 50)
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    low, high = methods.hinge_bounds(features, y, radius)
    angles, radii = np.meshgrid(np.linspace(0, 2 * math.pi, 400), radius * np.linspace(0, 1, 20))
    w = np.stack([radii * np.cos(angles), radii * np.sin(angles)]).reshape(2, -1)
    least = np.maximum(0, 1 - y[:, None] * (features @ w)).mean(0).min()
    assert low - 1e-12 <= least <= high + 1e-4
    assert (high - low < 1e-12) == (radius < 1)


def test_elimination_and_search_find_the_support():
    rng = np.random.default_rng(6)
    assert all(methods.finds(name, rng, 12, 60, 0.0) for name in ("elimination", "search"))
    assert not methods.finds("elimination", rng, 12, 200, 0.2)  # 200 labels, none flipped: 1 in 10^19


def test_activations_are_evaluated_in_double_precision():
    z, sinusoid = np.array([0.1, 0.5]), activation("sinusoid:3")
    values, slopes = activations.evaluate(sinusoid, z)
    np.testing.assert_allclose(values, -np.sin(math.pi / 2 * z), atol=1e-14)
    np.testing.assert_allclose(slopes, -math.pi / 2 * np.cos(math.pi / 2 * z), atol=1e-14)
    np.testing.assert_allclose(slopes, activations.difference(sinusoid, z), atol=1e-10)


def test_majority_claim_as_a_trial(tmp_path):
    outcome = tried(exact.Lemma1Majority(), Lab("quick", tmp_path, progress=False))
    assert outcome.results == {"coefficients and their ratio": HOLDS, "exponent -2/3 as printed": CONTRADICTED,
                               "exponent -3/2, corrected": HOLDS}
    assert {row["n"] for row in outcome.data} == {101, 1001}
