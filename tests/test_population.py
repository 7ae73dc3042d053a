"""Population gradients of any target under product laws: every method against one input at a time, automatic
differentiation, each other, and sampling where n is large.

Statistical tests have fixed seeds; a correct function would fail one with probability at most ``FALSE_ALARM``.
"""

from __future__ import annotations

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import paritylab as pl
from paritylab.errors import InvalidInput
from paritylab.measures import fourier
from paritylab.measures.boolean import named
from paritylab.measures.population import population_gradient, unit_gradient, unit_mean
from paritylab.measures.targets import Target, target, terms
from paritylab.setups import inits

FALSE_ALARM = 1e-6
TARGETS = {
    "parity:2": lambda x: x[0] * x[1],
    "majority:3": lambda x: math.copysign(1, x[0] + x[1] + x[2]),
    "table": lambda x: (2.0, -1.0, 0.5, 3.0)[(x[0] < 0) + 2 * (x[1] < 0)],
    "polynomial": lambda x: 0.5 * x[1] * x[3] - 2 * x[0] + 0.25,
    "elsewhere": lambda x: (1.0, 2.0, 4.0, -8.0)[(x[3] < 0) + 2 * (x[1] < 0)],
}
GIVEN = {
    "parity:2": "parity:2", "majority:3": "majority:3", "table": [2.0, -1.0, 0.5, 3.0],
    "polynomial": [(0.5, (1, 3)), (-2.0, (0,)), (0.25, ())],
    "elsewhere": Target(np.array([1.0, 2.0, 4.0, -8.0]), (3, 1)),
}
SLOPES = {
    "relu": lambda z: 1.0 * (z > 1e-9),
    "tanh": lambda z: 1 / math.cosh(z) ** 2,
    "power:3": lambda z: 3 * z * z,
    "sinusoid:1": lambda z: math.pi / 2 * math.cos(math.pi / 2 * z),
}


def brute(weights, y, p, bias, slope):
    """E y x_j s(z) for each j and E y s(z), one input at a time."""
    total, constant = np.zeros(len(weights)), 0.0
    for x in itertools.product((1.0, -1.0), repeat=len(weights)):
        mass = math.prod(chance if s > 0 else 1 - chance for chance, s in zip(p, x, strict=True))
        value = mass * y(x) * slope(np.dot(weights, x) + bias)
        total += value * np.array(x)
        constant += value
    return total, constant


@pytest.mark.long
@given(
    n=st.integers(4, 7), name=st.sampled_from(list(GIVEN)), unit=st.sampled_from(list(SLOPES)),
    kind=st.sampled_from(["gaussian", "signs", "tenths"]), bias=st.sampled_from([0.0, 0.3, -0.6]),
    seed=st.integers(0, 10**6),
)
@settings(max_examples=80, deadline=None)
def test_every_method_is_what_visiting_all_inputs_finds(n, name, unit, kind, bias, seed):
    generator = np.random.default_rng(seed)
    weights = {"gaussian": generator.standard_normal(n), "signs": generator.choice([-0.1, 0.1], n),
               "tenths": 0.1 * generator.integers(-3, 4, n)}[kind]
    p = generator.choice([0.5, 0.2, 0.85], n)
    expected, constant = brute(weights, TARGETS[name], p, bias, SLOPES[unit])
    methods = ["auto", "enumerate"] + ["meet"] * (unit == "relu") + ["lattice"] * (kind == "signs")
    for method in methods:
        found = unit_gradient(weights, GIVEN[name], p, bias, unit, method)
        np.testing.assert_allclose(found.weights, expected, atol=1e-12)
        np.testing.assert_allclose(found.bias, constant, atol=1e-12)
        assert found.error == 0


@pytest.mark.parametrize("unit", ["relu", "tanh", "power:2", "gelu"])
@pytest.mark.parametrize("p", [0.5, 0.8])
def test_the_mean_of_a_unit_is_what_visiting_all_inputs_finds(unit, p):
    weights = np.random.default_rng(3).standard_normal(6)
    act = pl.MLP(1, unit).activation
    for name, y in TARGETS.items():
        _, expected = brute(weights, y, [p] * 6, 0.2, lambda z: float(act(jnp.float32(z))))
        assert unit_mean(weights, GIVEN[name], p, 0.2, unit) == pytest.approx(expected, rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("network", [
    pl.MLP(3), pl.MLP(2, "zigzag:3", bias=False), *(pytest.param(network, marks=pytest.mark.long) for network in (
        pl.MLP(3, output_bias=False), pl.MLP(2, "tanh"), pl.Neuron("gelu")))])
def test_a_networks_gradient_is_that_of_automatic_differentiation(network):
    n, p = 6, np.array([0.5, 0.7, 0.2, 0.5, 0.9, 0.4])
    x = fourier.cube(n)
    mass = np.where(x > 0, p, 1 - p).prod(1)
    params = network.init(jax.random.key(1), n, inits.init("uniform"))
    for name, given_target in GIVEN.items():
        y = np.array([TARGETS[name](row) for row in x])
        expected = jax.grad(lambda params, y=y: -jnp.sum(mass * y * network.apply(params, jnp.asarray(x))))(params)
        found = population_gradient(network, params, given_target, p)
        assert jax.tree.structure(found) == jax.tree.structure(expected)
        for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
            np.testing.assert_allclose(one, np.asarray(other), atol=3e-6)


@pytest.mark.long
def test_at_the_start_it_is_the_gradient_of_the_hinge_loss_and_of_the_square_loss_but_for_f():
    n, network = 5, pl.MLP(4)
    x = fourier.cube(n)
    params = jax.tree.map(lambda leaf: leaf * 0.1, network.init(jax.random.key(0), n, inits.init("uniform")))
    y = x[:, 0] * x[:, 1]
    f = network.apply(params, jnp.asarray(x))
    assert float(jnp.abs(f).max()) < 1
    hinge = jax.grad(lambda q: jnp.mean(jnp.maximum(0.0, 1 - y * network.apply(q, jnp.asarray(x)))))(params)
    square = jax.grad(lambda q: jnp.mean((network.apply(q, jnp.asarray(x)) - y) ** 2))(params)
    own = jax.grad(lambda q: jnp.mean(network.apply(q, jnp.asarray(x)) ** 2))(params)
    found = jax.tree.leaves(population_gradient(network, params, "parity:2"))
    for one, first, second, part in zip(found, *map(jax.tree.leaves, (hinge, square, own)), strict=True):
        np.testing.assert_allclose(one, np.asarray(first), atol=1e-6)
        np.testing.assert_allclose(2 * one, np.asarray(second - part), atol=1e-6)


# --- larger ones --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "kind"), [(17, "signs"), (21, "signs"), (22, "halves")])
def test_lattice_meet_and_enumeration_agree_ties_included(n, kind):
    generator = np.random.default_rng(n)
    weights = generator.choice([-0.3, 0.3] if kind == "signs" else [-1.0, -0.5, 0.0, 0.5, 1.5], n)
    p = generator.choice([0.5, 0.3, 0.8], n)
    read = Target(named("majority:3"), (2, 9, 14))
    exact = unit_gradient(weights, read, p, 0.3, method="meet")
    for method in ("lattice", "enumerate", "auto"):
        if method == "enumerate" and n > 17:
            continue
        found = unit_gradient(weights, read, p, 0.3, method=method)
        np.testing.assert_allclose(found.weights, exact.weights, atol=1e-13)
        np.testing.assert_allclose(found.bias, exact.bias, atol=1e-13)
    smooth = [unit_gradient(weights[:17], read, p[:17], 0.3, "tanh", method) for method in ("lattice", "enumerate")]
    np.testing.assert_allclose(smooth[0].weights, smooth[1].weights, atol=1e-13)


def test_uniform_parities_are_those_of_the_other_module():
    generator = np.random.default_rng(5)
    for weights in (generator.standard_normal(30), generator.choice([-1.0, 1.0], 101), generator.standard_normal(60)):
        expected = fourier.population_gradient(weights, [0, 1, 2, 3], 0.3)
        found = unit_gradient(weights, "parity:4", bias=0.3)
        np.testing.assert_allclose(found.weights, expected.weights, atol=1e-12)
        np.testing.assert_allclose(found.bias, expected.bias, atol=1e-12)


@pytest.mark.parametrize("n", [26, 32, 38])
def test_the_integral_is_within_its_error_estimate(n):
    generator = np.random.default_rng(n)
    weights, p = generator.standard_normal(n), generator.uniform(0.2, 0.8, n)
    exact = unit_gradient(weights, "mod:3,4", p, -0.4, method="meet")
    found = unit_gradient(weights, "mod:3,4", p, -0.4, method="integral")
    assert np.abs(found.weights - exact.weights).max() <= found.error
    assert abs(found.bias - exact.bias) <= found.error
    assert found.error < 10 ** (-n / 12)


@pytest.mark.parametrize(("kind", "unit"), [("signs", "relu"), ("signs", "tanh"), ("uniform", "relu")])
def test_large_cases_agree_with_samples(kind, unit):
    n, samples = 200, 100_000
    generator = np.random.default_rng(6)
    weights = generator.choice([-1.0, 1.0], n) / 8 if kind == "signs" else generator.uniform(-0.2, 0.2, n)
    p = generator.uniform(0.3, 0.9, n)
    read = Target(named("tribes:2,2"), (7, 50, 99, 150))
    exact = unit_gradient(weights, read, p, 0.1, unit)
    assert exact.error < 1e-12
    x = np.where(generator.random((samples, n)) < p, 1.0, -1.0)
    y = read.values[(x[:, read.inputs] < 0) @ (1 << np.arange(4))]
    z = x @ weights + 0.1
    slope = 1.0 * (z > 1e-9) if unit == "relu" else 1 / np.cosh(z) ** 2
    # Each term is at most 1 in size: Hoeffding, with a union over the coordinates.
    margin = math.sqrt(2 * math.log(2 * (n + 1) / FALSE_ALARM) / samples)
    assert np.abs((y * slope) @ x / samples - exact.weights).max() < margin
    assert abs((y * slope).mean() - exact.bias) < margin
    assert np.abs(exact.weights).max() > 3 * margin


def test_many_units_are_the_single_ones():
    generator = np.random.default_rng(7)
    weights, bias = generator.standard_normal((2, 3, 8)), generator.standard_normal((2, 3))
    found = unit_gradient(weights, "majority:3", 0.7, bias)
    for i, j in itertools.product(range(2), range(3)):
        one = unit_gradient(weights[i, j], "majority:3", 0.7, bias[i, j])
        np.testing.assert_array_equal(found.weights[i, j], one.weights)
        assert found.bias[i, j] == one.bias


# --- targets, and what is refused ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", GIVEN)
def test_a_target_has_the_values_of_its_definition(name):
    found = target(GIVEN[name])
    for x in fourier.cube(5):
        index = sum(1 << i for i, j in enumerate(found.inputs) if x[j] < 0)
        assert found.values[index] == pytest.approx(TARGETS[name](x))


@pytest.mark.parametrize(("given_target", "says"), [
    (3, "a target is"), ([], "at least one"), ([(1.0,)], "pairs"), ([1.0, 2.0, 3.0], "finite values"),
    ([(1.0, (0, 0))], "different"), ([(1.0, (-1,))], "different"), ([(1.0, range(21))], "at most 20"),
    ([("much", (0,))], "coefficient"), ("maj:3", "majority"), ([float("nan"), 1.0], "finite"),
])
def test_a_target_that_is_none_is_refused_in_one_line(given_target, says):
    with pytest.raises(InvalidInput, match=says) as caught:
        target(given_target)
    assert "\n" not in str(caught.value)


def test_equal_parities_are_added():
    assert terms([(1, [1, 0]), (2, [0, 1])]) == [(3.0, (0, 1))]


WEIGHTS = np.random.default_rng(0).standard_normal(50)


@pytest.mark.parametrize(("arguments", "says"), [
    ({"weights": []}, "at least one weight"),
    ({"weights": [1.0, 2.0], "y": "parity:3"}, "there are 2 inputs"),
    ({"weights": [1.0, float("inf")]}, "finite"),
    ({"weights": WEIGHTS, "activation": "tanh"}, "other than relu"),
    ({"weights": WEIGHTS, "method": "meet"}, "at most n = 40"),
    ({"weights": WEIGHTS, "method": "enumerate"}, "at most n = 24"),
    ({"weights": WEIGHTS, "method": "lattice"}, "multiples of one number"),
    ({"weights": WEIGHTS[:9], "method": "meet", "activation": "tanh"}, "is for relu"),
    ({"weights": [1.0, 1.0], "method": "integral"}, "not all 0"),
    ({"weights": WEIGHTS[:9], "method": "quick"}, "unknown method"),
    ({"weights": WEIGHTS[:9], "p": [0.5, 0.5]}, "probability"),
    ({"weights": WEIGHTS[:9], "activation": "rely"}, "unknown activation"),
    ({"weights": np.append(np.ones(20), WEIGHTS), "y": "random:20"}, "the integral takes"),
])
def test_what_cannot_be_is_refused_in_one_line(arguments, says):
    with pytest.raises(InvalidInput, match=says) as caught:
        unit_gradient(**{"y": "parity:2", **arguments})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("network", "params"), [
    (pl.MLP((3, 3)), []), (pl.PolyNet(2), []), (pl.MLP(2), []), (pl.MLP(2), [{"w": np.ones((3, 2))}]),
    (pl.MLP(2), [{"w": np.ones((3, 2)), "b": np.ones(3)}, {"w": np.ones((2, 1))}]),
    (pl.Neuron("relu"), [{"w": np.ones(3)}]),
])
def test_other_networks_and_params_are_refused(network, params):
    with pytest.raises(InvalidInput, match=r"one hidden layer|network's own"):
        population_gradient(network, params, "parity:2")
