"""Losses that see params and inputs, and forward passes with random numbers of their own."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import paritylab as pl
from paritylab import engines, rng
from paritylab.errors import InvalidInput
from paritylab.functions.signatures import asked

PROBLEM = pl.Parity(8, 2)
PROTOCOL = pl.Protocol(max_steps=40, eval_size=128)


def make(key, n):
    return {"w": jax.random.normal(key, (n, 4)) / n**0.5, "u": jnp.ones(4) / 4}


def forward(params, x):
    return jax.nn.relu(x @ params["w"]) @ params["u"]


def weights(learner, steps=(1, 5), **options):
    return pl.curves(pl.Setup(PROBLEM, learner, PROTOCOL), list(steps), engine="jax", weights=True, **options)


def square(f, y):
    return (f - y) ** 2


def penalised(f, y, params, x):
    return (f - y) ** 2 + 0.3 * jnp.sum(jnp.abs(params["w"])) + 0.1 * x[:, 0] * f


def by_hand(step, value, lr=0.1, run=0):
    """The params of a run after ``step`` steps of SGD on ``value(params, x, y, key)``."""
    key = rng.run_keys(np.zeros(1, int), np.array([run]))[0]
    params = make(rng.stream(key, rng.INIT), 8)
    for t in range(step):
        drawn = PROBLEM.draw(jax.random.fold_in(rng.stream(key, rng.DATA), t), 32)
        x, y = PROBLEM.signs(drawn), PROBLEM.labels(drawn, PROBLEM.mask)
        noise = jax.random.fold_in(rng.stream(key, rng.FORWARD), t)
        slope = jax.grad(value)(params, x, y, noise)
        params = jax.tree.map(lambda p, g: p - lr * g, params, slope)
    return params


@pytest.mark.long
def test_a_penalty_is_trained():
    made = weights(pl.Learner(pl.Network(make, forward), loss=penalised, optimiser=pl.SGD(0.1)))
    expected = by_hand(5, lambda p, x, y, key: jnp.mean(penalised(forward(p, x), y, p, x)))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a[0, 1], b, rtol=2e-5, atol=1e-6), made.weights, expected)


@pytest.mark.long
def test_a_loss_may_ask_for_params_or_inputs_alone():
    for loss in (lambda f, y, params: square(f, y) + 0 * params["u"][0], lambda f, y, x: square(f, y) + 0 * x[:, 0]):
        made, plain = (weights(pl.Learner(pl.Network(make, forward), loss=each)).accuracy for each in (loss, square))
        np.testing.assert_array_equal(made, plain)


def test_a_penalty_is_reported_unless_another_loss_is_asked_for():
    learner = pl.Learner(pl.Network(make, forward), loss=lambda f, y, params: square(f, y) + 7.0)
    assert weights(learner).loss.min() > 7
    assert weights(learner, loss="square").loss.max() < 7


def test_a_named_loss_and_one_of_an_object_ask_for_the_same():
    class Penalty:
        def __call__(self, f, y, params, x):
            return f

    assert asked(pl.named("mine", pl.named("inner", penalised).value), 2, ("params", "x")) == ("params", "x")
    assert asked(pl.named("mine", jax.jit(penalised)), 2, ("params", "x")) == ("params", "x")
    assert asked(Penalty(), 2, ("params", "x")) == ("params", "x")
    assert asked(max, 2, ("params",)) == ()


def test_arguments_that_have_a_value_are_left_alone():
    learner = pl.Learner(pl.Network(make, forward), loss=lambda f, y, params=2.0: params * square(f, y))
    assert weights(learner).loss.shape == (1, 2)


def noisy(params, x, key):
    hidden = jax.nn.relu(x @ params["w"])
    if key is not None:
        hidden = hidden * 2 * jax.random.bernoulli(key, 0.5, hidden.shape)
    return hidden @ params["u"]


@pytest.mark.long
def test_dropout_has_a_stream_of_its_own_and_is_not_evaluated():
    learner = pl.Learner(pl.Network(make, noisy), loss=square, optimiser=pl.SGD(0.1))
    made = weights(learner, runs=[3])
    expected = by_hand(5, lambda p, x, y, key: jnp.mean(square(noisy(p, x, key), y)), run=3)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a[0, 1], b, rtol=2e-5, atol=1e-6), made.weights, expected)
    again = weights(learner, runs=[1, 3])
    np.testing.assert_array_equal(again.loss[1], made.loss[0])
    first = weights(learner, steps=[0]).accuracy
    np.testing.assert_array_equal(first, weights(pl.Learner(pl.Network(make, forward), loss=square), [0]).accuracy)


@pytest.mark.long
def test_dropout_is_measured_and_a_network_with_a_name_takes_its_key():
    named = pl.named("dropout v1", pl.Network(make, noisy))
    results = [pl.measure(PROBLEM, pl.Learner(net, loss=square), PROTOCOL, runs=3, engine="jax")
               for net in (named, pl.Network(make, noisy))]
    np.testing.assert_array_equal(*(result.records.loss for result in results))


def test_a_class_of_the_users_own_takes_its_key():
    @dataclass(frozen=True)
    class Own:
        def init(self, key, n, init):
            return make(key, n)

        def apply(self, params, x, key=None):
            return noisy(params, x, key)

    made, other = (weights(pl.Learner(net, loss=square)) for net in (Own(), pl.Network(make, noisy)))
    np.testing.assert_array_equal(made.loss, other.loss)


@pytest.mark.parametrize(("learner", "message"), [
    (pl.Learner(pl.Network(make, forward), loss=lambda f, y, params: jnp.sum(params["w"])),
     r"loss .* must return floating-point numbers of shape \(32,\), not float32 of shape \(\)"),
    (pl.Learner(pl.Network(make, forward), loss=lambda f, y, params: f + params["v"]), "loss .* failed: 'v'"),
    (pl.Learner(pl.Network(make, forward), loss=lambda f, y, p: f), "loss .* failed: .* missing .* 'p'"),
    (pl.Learner(pl.Network(make, lambda params, x, key: x[:, 0] * jax.random.normal(key))),
     "network .* failed"),  # there is no key at evaluation
    (pl.Learner(pl.Network(make, lambda params, x, key: x if key is not None else x[:, 0])),
     r"network .* must return .* of shape \(32,\), not float32 of shape \(32, 8\)"),
])
def test_mistakes_are_said_in_a_line(learner, message):
    with pytest.raises(InvalidInput, match=message) as caught:
        pl.Setup(PROBLEM, learner).check()
    assert "\n" not in str(caught.value)


def test_the_native_engine_refuses_them():
    for learner in (pl.Learner(pl.MLP(4), loss=penalised), pl.Learner(pl.Network(make, noisy))):
        setup = pl.Setup(PROBLEM, learner)
        assert engines.choose(setup) == "jax"
        with pytest.raises(InvalidInput, match="engine 'lanes' cannot train this: it has no"):
            engines.choose(setup, "lanes")
