"""Equinox modules as Networks."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import paritylab as pl

N = 8


def perceptron(key, n):
    return eqx.nn.MLP(n, "scalar", 16, 1, key=key)


class Dropping(eqx.Module):
    first: eqx.nn.Linear
    drop: eqx.nn.Dropout
    output: eqx.nn.Linear

    def __init__(self, key, n, share=0.25):
        keys = jax.random.split(key)
        self.first, self.output = eqx.nn.Linear(n, 16, key=keys[0]), eqx.nn.Linear(16, 1, key=keys[1])
        self.drop = eqx.nn.Dropout(share)

    def __call__(self, x, key=None):
        return self.output(self.drop(jnp.tanh(self.first(x)), key=key))


def test_outputs_are_those_of_the_module():
    x = np.random.default_rng(0).choice([-1.0, 1.0], (6, N)).astype(np.float32)
    network = pl.from_equinox(perceptron)
    found = network.apply(network.make(jax.random.key(3), N), x)
    np.testing.assert_allclose(found, jax.vmap(perceptron(jax.random.key(3), N))(x), rtol=1e-6)


def test_dropout_has_a_key_in_training_alone():
    network = pl.from_equinox(Dropping)
    params = network.make(jax.random.key(3), N)
    x = jnp.ones((40, N))
    still = eqx.nn.inference_mode(Dropping(jax.random.key(3), N))
    np.testing.assert_allclose(network.apply(params, x), jax.vmap(still)(x)[:, 0], rtol=1e-6)
    dropped = network.apply(params, x, key=jax.random.key(1))
    assert len(np.unique(np.asarray(dropped))) > 20  # each example drops units of its own
    assert network.takes_key


def test_updates_are_those_of_gradient_descent_by_hand():
    """Five steps on all sixteen inputs of four bits, so that batches are no matter of chance; in single precision."""
    x = np.array(list(np.ndindex(2, 2, 2, 2))) * 2.0 - 1
    y = x[:, 0] * x[:, 1]
    learner = pl.Learner(pl.from_equinox(perceptron), loss="square", optimiser=pl.SGD(0.1), batch=16)
    found = pl.curves(pl.Setup(pl.Data(x, y), learner), [0, 5], weights=True).weights
    start = jax.tree.map(lambda leaf: leaf[0, 0], found)
    module = eqx.combine(start, eqx.partition(perceptron(jax.random.key(0), 4), eqx.is_inexact_array)[1])

    @eqx.filter_jit
    @eqx.filter_grad
    def gradient(module):
        return jnp.mean((jax.vmap(module)(jnp.asarray(x, jnp.float32)) - y) ** 2)

    for _ in range(5):
        module = eqx.apply_updates(module, jax.tree.map(lambda g: -0.1 * g, gradient(module)))
    np.testing.assert_allclose(found.layers[0].weight[0, 1], module.layers[0].weight, atol=1e-5)
    np.testing.assert_allclose(found.layers[1].bias[0, 1], module.layers[1].bias, atol=1e-5)


def test_the_id_is_that_of_what_makes_it():
    def setup(make):
        return pl.Setup(pl.Parity(N, 1), pl.Learner(pl.from_equinox(make)))

    source = "def make(key, n, eqx=eqx): return eqx.nn.MLP(n, 'scalar', {}, 1, key=key)"

    def defined(width):
        names = {"eqx": eqx, "__name__": "mine"}
        exec(source.format(width), names)
        return names["make"]

    assert setup(defined(16)).id == setup(defined(16)).id
    assert setup(defined(16)).id != setup(defined(17)).id


@pytest.mark.long
def test_it_learns():
    protocol = pl.Protocol(max_steps=300, eval_size=128)
    assert pl.measure(pl.Parity(N, 1), pl.Learner(pl.from_equinox(perceptron)), protocol, runs=3).summary.solved == 3


@pytest.mark.parametrize(("make", "line"), [
    (lambda: perceptron(jax.random.key(0), N), r"takes a function make\(key, n\) that returns a module"),
    (lambda: lambda key, n: 3, "must return an equinox.Module, not 3"),
    (lambda: lambda key, n: eqx.nn.Linear(n, 3, key=key), "must return floating-point numbers of shape"),
])
def test_what_is_no_such_function_is_said_in_a_line(make, line):
    with pytest.raises(pl.InvalidInput, match=line):
        pl.measure(pl.Parity(N, 1), pl.Learner(pl.from_equinox(make())), runs=1)
