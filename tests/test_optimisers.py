"""Optimisers: their updates against optax, PyTorch's formulas and plain arithmetic."""

from __future__ import annotations

import math
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import paritylab as pl
from paritylab.engines.gradient import add_noise
from paritylab.errors import InvalidInput

PARAMS = [{"w": jnp.array([[1.0, -2.0], [0.5, 3.0]]), "b": jnp.array([0.1, -0.2])}, {"w": jnp.array([[2.0], [-1.0]])}]
STEPS = 5


def gradient(t: int, params=PARAMS):
    generator = np.random.default_rng(t)
    return jax.tree.map(lambda p: jnp.asarray(generator.normal(size=p.shape), jnp.float32), params)


def moves(optimiser, params=PARAMS, steps=STEPS):
    """The params after each of a few updates with random gradients."""
    state, history = optimiser.start(params), []
    for t in range(steps):
        factor = optimiser.lr * optimiser.schedule(t)
        lr = jax.tree.map(lambda rate, factor=factor: factor * rate, optimiser.layer_rates(params))
        params, state = optimiser.move(gradient(t, params), state, params, lr, t)
        history.append(params)
    return history


def optax_moves(transformation, steps=STEPS):
    params, history = PARAMS, []
    state = transformation.init(params)
    for t in range(steps):
        updates, state = transformation.update(gradient(t), state, params)
        params = optax.apply_updates(params, updates)
        history.append(params)
    return history


def assert_same(left, right, rtol=1e-5):
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=rtol, atol=1e-6), left, right)


@pytest.mark.parametrize("numbers", [{}, {"b1": 0.5, "b2": 0.9, "eps": 1e-3}, {"b1": 0.0}])
def test_adam_is_that_of_optax(numbers):
    assert_same(moves(pl.Adam(0.1, **numbers)), optax_moves(optax.adam(0.1, **numbers)))


def test_sgd_is_that_of_optax():
    assert_same(moves(pl.SGD(0.3)), optax_moves(optax.sgd(0.3)))


def test_sign_sgd_moves_every_param_by_the_learning_rate():
    assert_same(moves(pl.SignSGD(0.25)), optax_moves(optax.sign_sgd(0.25)))


def test_weight_decay_is_that_of_torch():
    (after,) = moves(pl.SGD(0.3, weight_decay=0.5), steps=1)
    want = jax.tree.map(lambda p, g: p - 0.3 * (g + 0.5 * p), PARAMS, gradient(0))
    assert_same(after, want)


TORCH = {
    "decay": (pl.SGD(0.3, weight_decay=0.5), "SGD", {"lr": 0.3, "weight_decay": 0.5}),
    "momentum": (pl.SGD(0.1, momentum=0.9, weight_decay=0.1), "SGD",
                 {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.1}),
    "nesterov": (pl.SGD(0.1, momentum=0.8, nesterov=True, weight_decay=0.1), "SGD",
                 {"lr": 0.1, "momentum": 0.8, "nesterov": True, "weight_decay": 0.1}),
    "adam": (pl.Adam(0.1, b1=0.8, b2=0.95, eps=1e-4), "Adam", {"lr": 0.1, "betas": (0.8, 0.95), "eps": 1e-4}),
    "adam, decay": (pl.Adam(0.1, weight_decay=0.2), "Adam", {"lr": 0.1, "weight_decay": 0.2}),
    "adamw": (pl.AdamW(0.1, 0.3), "AdamW", {"lr": 0.1, "weight_decay": 0.3}),
    "rmsprop": (pl.RMSProp(0.01, alpha=0.9), "RMSprop", {"lr": 0.01, "alpha": 0.9}),
    "rmsprop, momentum": (pl.RMSProp(0.01, momentum=0.5, weight_decay=0.1), "RMSprop",
                          {"lr": 0.01, "momentum": 0.5, "weight_decay": 0.1}),
    "clip": (pl.SGD(0.1, momentum=0.9, clip=0.5), "SGD", {"lr": 0.1, "momentum": 0.9}),
}


@pytest.mark.parametrize(("ours", "name", "options"), TORCH.values(), ids=TORCH)
def test_a_hundred_steps_are_those_of_torch(ours, name, options):
    torch = pytest.importorskip("torch")
    weights = [torch.tensor(np.array(leaf), requires_grad=True) for leaf in jax.tree.leaves(PARAMS)]
    theirs = getattr(torch.optim, name)(weights, **options)
    for t in range(100):
        for weight, g in zip(weights, jax.tree.leaves(gradient(t)), strict=True):
            weight.grad = torch.tensor(np.array(g))
        if ours.clip is not None:
            torch.nn.utils.clip_grad_norm_(weights, ours.clip)
        theirs.step()
    for leaf, weight in zip(jax.tree.leaves(moves(ours, steps=100)[-1]), weights, strict=True):
        np.testing.assert_allclose(leaf, weight.detach().numpy(), rtol=1e-5, atol=1e-5)


OPTAX = {
    "momentum": (pl.SGD(0.1, momentum=0.9), optax.sgd(0.1, momentum=0.9)),
    "nesterov": (pl.SGD(0.1, momentum=0.9, nesterov=True), optax.sgd(0.1, momentum=0.9, nesterov=True)),
    "adamw": (pl.AdamW(0.1, 0.3), optax.adamw(0.1, weight_decay=0.3)),
    "lion": (pl.Lion(0.01, weight_decay=0.1), optax.lion(0.01, b1=0.9, b2=0.99, weight_decay=0.1)),
    "rmsprop": (pl.RMSProp(0.01, alpha=0.9), optax.rmsprop(0.01, decay=0.9, eps=1e-8, eps_in_sqrt=False)),
    "clip": (pl.SGD(0.1, clip=0.5), optax.chain(optax.clip_by_global_norm(0.5), optax.sgd(0.1))),
}


@pytest.mark.parametrize(("ours", "theirs"), OPTAX.values(), ids=OPTAX)
def test_twenty_steps_are_those_of_optax(ours, theirs):
    assert_same(moves(ours, steps=20), optax_moves(theirs, steps=20))


def test_signum_is_lion_with_one_running_mean():
    m, params = jax.tree.map(jnp.zeros_like, PARAMS), PARAMS
    for t in range(STEPS):
        m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, gradient(t))
        params = jax.tree.map(lambda p, m: p - 0.01 * jnp.sign(m), params, m)
    assert_same(moves(pl.SignSGD(0.01, b1=0.9, b2=0.9))[-1], params)


def test_a_frozen_layer_does_not_count_towards_the_norm():
    (after,) = moves(pl.SGD(0.1, clip=0.5, rates=(0, 1)), steps=1)
    g = gradient(0)[1]["w"]
    np.testing.assert_allclose(after[1]["w"], PARAMS[1]["w"] - 0.1 * g * min(1, 0.5 / jnp.linalg.norm(g)), rtol=1e-5)


def test_plain_weight_decay_does_not_depend_on_the_learning_rate():
    (after,) = moves(pl.SGD(0.3, weight_decay=0.1, decay_form="plain"), steps=1)
    assert_same(after, jax.tree.map(lambda p, g: 0.9 * p - 0.3 * g, PARAMS, gradient(0)))


@pytest.mark.parametrize("form", ["coupled", "plain"])
def test_a_frozen_layer_does_not_decay(form):
    after = moves(pl.SGD(0.3, weight_decay=0.1, decay_form=form, rates=(0, 1)))[-1]
    assert_same(after[0], PARAMS[0], rtol=0)


@pytest.mark.parametrize(
    "optimiser",
    [pl.SGD(0.1, rates=(0, 2)), pl.Adam(0.1, rates=(0, 2)), pl.SignSGD(0.1, rates=(0, 2)),
     pl.Optax(0.1, rates=(0, 2), transformation=optax.adam(1.0))],
    ids=lambda optimiser: type(optimiser).__name__,
)
def test_rates_freeze_one_layer_and_speed_up_another(optimiser):
    first = moves(optimiser, steps=1)[0]
    reference = moves(type(optimiser)(**{**vars(optimiser), "rates": None}), steps=1)[0]
    assert_same(first[0], PARAMS[0], rtol=0)
    moved = first[1]["w"] - PARAMS[1]["w"]
    np.testing.assert_allclose(moved, 2 * (reference[1]["w"] - PARAMS[1]["w"]), rtol=1e-5)


def test_rates_by_name_reach_the_parts_of_that_name():
    params = {"deep": {"w": jnp.ones(2)}, "head": jnp.ones(3)}
    after = moves(pl.SGD(0.1, rates={"head": 0, "deep": 1}), params)[-1]
    assert np.array_equal(after["head"], params["head"])
    assert not np.array_equal(after["deep"]["w"], params["deep"]["w"])


def test_rates_work_for_params_in_a_tuple():
    params = (jnp.ones(2), jnp.ones(3))
    after = moves(pl.SGD(0.1, rates=(0, 1)), params)[-1]
    assert np.array_equal(after[0], params[0])
    assert not np.array_equal(after[1], params[1])


@pytest.mark.parametrize("rates", [(1,), (1, 1, 1), (), {"w": 1, "b": 0}, {"0": 1}])
def test_rates_that_do_not_fit_the_network_are_refused(rates):
    with pytest.raises(InvalidInput, match="rates"):
        pl.Setup(pl.Parity(6, 2), pl.Learner(optimiser=pl.SGD(rates=rates))).check()


def test_rates_by_position_of_a_network_with_named_parts_are_refused():
    network = pl.Transformer(d_emb=2, d_attn=1, heads=1, d_mlp=2)
    with pytest.raises(InvalidInput, match="rates"):
        pl.Setup(pl.Parity(4, 2), pl.Learner(network, optimiser=pl.SGD(rates=(1,) * 8))).check()


def test_the_optax_wrapper_of_sgd_is_sgd():
    wrapped = moves(pl.Optax(transformation=optax.sgd(0.3)))
    assert_same(wrapped, moves(pl.SGD(0.3)))
    assert_same(moves(pl.Optax(lr=0.3, transformation=optax.sgd(1.0))), moves(pl.SGD(0.3)))


def test_an_optax_chain_keeps_its_state():
    chain = optax.chain(optax.clip_by_global_norm(0.5), optax.adam(0.1))
    assert_same(moves(pl.Optax(transformation=chain)), optax_moves(chain))


def test_a_schedule_multiplies_the_learning_rate():
    after = moves(pl.SGD(0.3, schedule="steps:1,0"))
    assert_same(after[0], moves(pl.SGD(0.3), steps=1)[0])
    assert_same(after[-1], after[0], rtol=0)


def test_gradient_noise_is_gaussian_of_the_standard_deviation_asked_for():
    zeros = {"a": jnp.zeros(50_000), "b": jnp.zeros((100, 500))}
    noise = add_noise(zeros, jax.random.key(8), 0.3)
    a, b = np.asarray(noise["a"]), np.asarray(noise["b"]).ravel()
    for values in (a, b):
        # mean, standard deviation and kurtosis at 5 standard errors: false alarms in 1e5 in all
        assert abs(values.mean()) < 5 * 0.3 / math.sqrt(len(values))
        assert abs(values.std() / 0.3 - 1) < 5 / math.sqrt(2 * len(values))
        assert abs(np.mean((values / 0.3) ** 4) - 3) < 5 * math.sqrt(96 / len(values))
    assert abs(np.corrcoef(a, b)[0, 1]) < 5 / math.sqrt(len(a))


def test_gradient_noise_adds_to_the_gradient():
    g = {"a": jnp.full(4, 7.0)}
    key = jax.random.key(1)
    alone = add_noise({"a": jnp.zeros(4)}, key, 0.5)
    np.testing.assert_allclose(add_noise(g, key, 0.5)["a"] - 7, alone["a"], atol=1e-6)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: pl.SGD(-1), "learning rate must be at least 0, not -1"),
        (lambda: pl.SGD(math.nan), "learning rate"),
        (lambda: pl.SGD(math.inf), "learning rate"),
        (lambda: pl.SGD(noise=-1), "gradient noise"),
        (lambda: pl.SGD(noise=math.inf), "gradient noise"),
        (lambda: pl.SGD(weight_decay=-0.1), "weight decay"),
        (lambda: pl.SGD(weight_decay=math.inf), "weight decay"),
        (lambda: pl.SGD(decay_form="torch"), "coupled, decoupled, plain"),
        (lambda: pl.SGD(decay_form=np.arange(99).reshape(3, 33)), "coupled, decoupled, plain"),
        (lambda: pl.SGD(schedule="cosin:3"), "did you mean 'cosine'"),
        (lambda: pl.Adam(b1=1), r"in \[0, 1\)"),
        (lambda: pl.Adam(b2=-0.1), r"in \[0, 1\)"),
        (lambda: pl.Adam(eps=-1), "eps"),
        (lambda: pl.SGD(momentum=1), r"momentum must be in \[0, 1\)"),
        (lambda: pl.SGD(nesterov=True), "needs momentum"),
        (lambda: pl.SGD(noise=0.1, skip_satisfied=True), "not with gradient noise"),
        (lambda: pl.SGD(clip=0), "clip must be above 0"),
        (lambda: pl.Adam(weight_decay=-1), "weight decay"),
        (lambda: pl.Adam(decay_form="none"), "coupled, decoupled, plain"),
        (lambda: pl.SignSGD(b1=0.9), "both 0 or both above"),
        (lambda: pl.RMSProp(alpha=1), r"alpha must be in \[0, 1\)"),
        (lambda: pl.Optax(), "transformation"),
        (lambda: pl.Learner(optimiser=SimpleNamespace(lr=1)), "one of SGD"),
        (lambda: pl.Learner(optimiser="sgd"), "one of SGD"),
    ],
)
def test_an_impossible_optimiser_is_refused_in_one_line(make, says):
    with pytest.raises(InvalidInput, match=says) as caught:
        make()
    assert "\n" not in str(caught.value)
