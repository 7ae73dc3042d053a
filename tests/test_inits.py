"""Laws of initial weights: what is sampled agrees with what is stated."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
import oracle
import pytest

import paritylab as pl
from paritylab.errors import InvalidInput
from paritylab.setups import inits

SPECS = [
    "torch", "xavier", "kaiming", "sign", "uniform", "rademacher", "gaussian", "perturbed-rademacher:0.1",
    "perturbed-rademacher:1.5", "uniform-perturbed:0.3", "sparse-rademacher:0.4", "discrete:-2,-1,1,2",
    "discrete:-1,3,4", "discrete:0,1", "sphere", "sphere:2.5", "normal:0.01", "truncated", "truncated:1",
    "unbiased kaiming", "logits torch", "raised:0.5 torch",
]
SAMPLES = 200_000
SEED = 17


def samples(law: inits.Init) -> np.ndarray:
    return np.asarray(law.sample(jax.random.key(SEED), (SAMPLES,)), np.float64)


@pytest.mark.parametrize("spec", [spec for spec in SPECS if not spec.startswith("sphere")])
def test_samples_have_the_stated_characteristic_function(spec):
    law = inits.init(spec)
    t = np.array([0.1, 0.4, 1.0, math.pi / 2, 2.5, math.pi, 5.0, 9.0])
    phases = np.multiply.outer(t, samples(law))
    stated = np.asarray(law.characteristic(t), complex)
    # Hoeffding: each of 8 * 2 means of numbers in [-1, 1] is off by 6/sqrt(N) with probability 2 exp(-18) = 3e-8
    tolerance = 6 / math.sqrt(SAMPLES)
    np.testing.assert_allclose(np.cos(phases).mean(1), stated.real, rtol=0, atol=tolerance)
    np.testing.assert_allclose(np.sin(phases).mean(1), stated.imag, rtol=0, atol=tolerance)


@pytest.mark.parametrize("spec", [spec for spec in SPECS if not spec.startswith("sphere")])
def test_a_characteristic_function_is_1_at_0_and_takes_scalars_and_arrays(spec):
    phi = inits.init(spec).characteristic
    assert phi(np.array(0.0)) == pytest.approx(1)
    assert np.shape(phi(np.zeros((2, 3)))) == (2, 3)
    assert np.all(np.abs(phi(np.linspace(-20, 20, 401))) <= 1 + 1e-12)


FAN_IN, FAN_OUT = 50, 400
VARIANCES = {
    "torch": 1 / 3 / FAN_IN,
    "xavier": 2 / (FAN_IN + FAN_OUT),
    "kaiming": 2 / FAN_IN,
    "uniform": 1 / 3,
    "sign": 1 / FAN_IN,
    "rademacher": 1 / FAN_IN,
    "gaussian": 1 / FAN_IN,
    "perturbed-rademacher:0.1": 1 / FAN_IN,
    "perturbed-rademacher:1.5": 1 / FAN_IN,
    "uniform-perturbed:0.3": 1 / FAN_IN,
    "sparse-rademacher:0.4": 1 / FAN_IN,
    "discrete:-2,-1,1,2": 1 / FAN_IN,
    "discrete:-1,3,4": 1 / FAN_IN,  # the second moment, as its points are not centred
    "normal:0.3": 0.09,
    "truncated": (1 - 2 * 2 * math.exp(-2) / math.sqrt(2 * math.pi) / math.erf(math.sqrt(2))) / FAN_IN,
}


@pytest.mark.parametrize("spec", VARIANCES)
def test_weights_and_biases_have_the_documented_second_moment(spec):
    layer = inits.init(spec).dense(jax.random.key(SEED), FAN_IN, FAN_OUT)
    assert layer["w"].shape == (FAN_IN, FAN_OUT)
    assert layer["b"].shape == (FAN_OUT,)
    for values in (layer["w"], layer["b"]):
        squares = np.square(np.asarray(values, np.float64)).ravel()
        # 5 standard errors of the mean square: a false alarm in 2e6, heavier for the 400 biases (about 1e-5)
        rounding = 2**-11 if inits.init(spec).grain else 1e-6
        error = 5 * squares.std() / math.sqrt(len(squares)) + rounding * VARIANCES[spec]
        assert abs(squares.mean() - VARIANCES[spec]) <= error


@pytest.mark.parametrize(
    ("spec", "points"),
    [("sign", {-1, 1}), ("rademacher", {-1, 1}), ("sparse-rademacher:0.4", {-1, 0, 1}),
     ("discrete:-2,-1,1,2", {-2, -1, 1, 2}), ("discrete:-1,3,4", {-1, 3, 4})],
)
def test_a_discrete_law_takes_its_points_and_no_others(spec, points):
    assert set(samples(inits.init(spec)).tolist()) == points


def test_a_bounded_law_keeps_its_bounds():
    values = np.asarray(inits.init("torch").dense(jax.random.key(0), 16, 5000)["w"])
    assert 0.249 < np.abs(values).max() <= 0.25


def test_a_truncated_law_may_count_biases_as_weights_of_one_more_input():
    """Of the hidden layer alone, and with the draws of the plain law."""
    made, plain = (inits.init(spec).layers(jax.random.key(0), (3, 5, 1)) for spec in ("truncated:1", "truncated"))
    for name in ("w", "b"):
        assert np.allclose(made[0][name] * 2, plain[0][name] * math.sqrt(3))
        assert np.array_equal(made[1][name], plain[1][name])
    with pytest.raises(InvalidInput, match="whole number"):
        inits.init("truncated:0.5")


def test_a_truncated_law_ends_at_two_standard_deviations():
    values = np.abs(samples(inits.init("truncated")))
    assert 1.999 < values.max() <= 2


@pytest.mark.parametrize("spec", ["kaiming", "normal:2", "mean-field", "logits torch", "released discrete:-2,-1,1,2"])
def test_an_unbiased_start_has_the_weights_of_its_law_and_no_biases(spec):
    made, same = (inits.init(each).layers(jax.random.key(SEED), (9, 4, 3, 1)) for each in (f"unbiased {spec}", spec))
    for layer, other in zip(made, same, strict=True):
        assert np.array_equal(layer["w"], other["w"])
        assert not np.any(layer["b"])


@pytest.mark.parametrize(
    ("spec", "variance"), [("torch", 2 / 3 / FAN_OUT), ("xavier", 4 / (FAN_OUT + 600)), ("normal:0.1", 0.02)]
)
def test_an_output_of_logits_is_the_difference_of_two_draws(spec, variance):
    hidden, output = inits.init(f"logits {spec}").layers(jax.random.key(SEED), (FAN_IN, FAN_OUT, 300))
    assert np.array_equal(hidden["w"], inits.init(spec).layers(jax.random.key(SEED), (FAN_IN, FAN_OUT, 300))[0]["w"])
    squares = np.square(np.asarray(output["w"], np.float64)).ravel()
    # 5 standard errors of a mean of 120,000 squares: a false alarm in 2e6
    assert abs(squares.mean() - variance) <= 5 * squares.std() / math.sqrt(len(squares))


def test_two_logits_with_adam_are_one_output_at_twice_the_rate():
    """An MLP with two outputs and their cross-entropy, written by hand, against the logistic loss of one output."""
    rng = np.random.default_rng(SEED)
    w, u = rng.normal(size=(5, 4)), rng.normal(size=(4, 2))
    adam, x = pl.Adam(0.01), 1.0 - 2.0 * (rng.random((8, 5)) < 0.5)
    y = x[:, 0] * x[:, 1]

    def two(params):
        logits = jnp.maximum(x @ params[0]["w"], 0) @ params[1]["w"]
        return -jnp.mean(jax.nn.log_softmax(logits)[jnp.arange(8), (y > 0).astype(int)])

    network = pl.MLP(4, bias=False)

    def one(params):
        return jnp.mean(pl.Learner(loss="logistic").loss(network.apply(params, x), y))

    pair = [{"w": jnp.asarray(w)}, {"w": jnp.asarray(u)}]
    single = [{"w": jnp.asarray(w)}, {"w": jnp.asarray(u[:, 1:] - u[:, :1])}]
    states = adam.start(pair), adam.start(single)
    twice = pl.Adam(0.01, rates=(1, 2))
    for step in range(20):
        pair, first = adam.move(jax.grad(two)(pair), states[0], pair, jax.tree.map(lambda _: 0.01, pair), step)
        rates = jax.tree.map(lambda rate: 0.01 * rate, twice.layer_rates(single))
        single, second = twice.move(jax.grad(one)(single), states[1], single, rates, step)
        states = first, second
    np.testing.assert_allclose(single[0]["w"], pair[0]["w"], atol=1e-5)
    np.testing.assert_allclose(single[1]["w"][:, 0], pair[1]["w"][:, 1] - pair[1]["w"][:, 0], atol=1e-5)


@pytest.mark.parametrize(
    ("network", "spec"),
    [(pl.Neuron(), "logits torch"), (pl.PolyNet(2), "logits torch"), (pl.DisjointPolyNet(2), "logits torch"),
     (pl.Transformer(), "logits torch"), (pl.Graph(["linear:1"]), "logits torch")],
)
def test_a_law_of_logits_needs_an_output_layer(network, spec):
    with pytest.raises(InvalidInput, match="logits") as caught:
        pl.Setup(pl.Parity(6, 2), pl.Learner(network, init=spec)).check()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("spec", ["torch", "mirrored kaiming", "unbiased kaiming", "fixed:3 torch", "logits torch"])
def test_a_raised_start_differs_in_its_output_biases_alone(spec):
    *before, law = spec.replace("logits ", "logits_").split()
    raised = " ".join([*before, "raised:-0.25", law]).replace("_", " ")
    made, same = (inits.init(each).layers(jax.random.key(SEED), (9, 4, 6, 3)) for each in (raised, spec))
    assert all(map(np.array_equal, jax.tree.leaves(made[:-1]), jax.tree.leaves(same[:-1])))
    assert np.array_equal(made[-1]["w"], same[-1]["w"])
    assert np.array_equal(made[-1]["b"], same[-1]["b"] - np.float32(0.25))


@pytest.mark.parametrize(
    "network", [pl.Neuron(), pl.PolyNet(2), pl.DisjointPolyNet(2), pl.Transformer(), pl.Graph(["linear:1"]),
                pl.MLP(4, output_bias=False)])
def test_a_raised_start_needs_an_output_bias(network):
    with pytest.raises(InvalidInput, match="raised start") as caught:
        pl.Setup(pl.Parity(6, 2), pl.Learner(network, init="raised:0.5 torch")).check()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("spec", ["raised:x torch", "raised:inf torch", "raised:0 torch", "raised: torch", "raised:1"])
def test_a_start_is_raised_by_a_number(spec):
    with pytest.raises(InvalidInput, match="raised"):
        inits.init(spec)


@pytest.mark.parametrize("spec", ["unbiased mirrored torch", "logits unbiased torch", "logits logits torch",
                                  "unbiased fixed:3 torch", "released unbiased discrete:-1,1", "logits raised:1 torch",
                                  "raised:1 unbiased torch", "raised:1 raised:1 torch"])
def test_the_words_of_an_init_have_one_order(spec):
    with pytest.raises(InvalidInput, match="in this order"):
        inits.init(spec)


def test_sparsity_is_the_probability_of_zero():
    # 5 standard deviations: a false alarm in 2e6
    zeros = np.mean(samples(inits.sparse_rademacher(0.4)) == 0)
    assert abs(zeros - 0.4) < 5 * math.sqrt(0.24 / SAMPLES)


@pytest.mark.parametrize(("spec", "radius"), [("sphere", 1.0), ("sphere:2.5", 2.5)])
def test_every_unit_of_a_spherical_layer_has_the_radius_and_no_bias(spec, radius):
    layer = inits.init(spec).dense(jax.random.key(SEED), 20, 300)
    np.testing.assert_allclose(np.linalg.norm(layer["w"], axis=0), radius, rtol=1e-5)
    assert not np.any(layer["b"])
    assert inits.init(spec).characteristic is None


def test_units_on_the_sphere_point_nowhere_in_particular():
    w = np.asarray(inits.sphere().dense(jax.random.key(SEED), 10, 20_000)["w"], np.float64)
    # coordinates have variance 1/10: 10 means of 2e4 beyond 5 standard deviations, a false alarm in 2e5
    assert np.abs(w.mean(1)).max() < 5 * math.sqrt(0.1 / 20_000)


@pytest.mark.parametrize(
    ("spec", "width"), [("torch", 10), ("kaiming", (6, 4)), ("rademacher", 2), ("sphere:2", 8), ("discrete:0,1", 4)]
)
def test_a_mirrored_network_is_zero_everywhere(spec, width):
    setup = pl.Setup(pl.Parity(6, 2), pl.Learner(pl.MLP(width), init=f"mirrored {spec}"))
    params = jax.jit(setup.params)(jax.random.key(SEED))
    *_, hidden, output = jax.tree.map(np.asarray, params)
    half = len(output["w"]) // 2
    # exactly opposite twins: zero but for the rounding of the sum, which may fuse one of the two products
    assert np.array_equal(output["w"][:half], -output["w"][half:])
    assert np.array_equal(hidden["w"][:, :half], hidden["w"][:, half:])
    assert np.array_equal(hidden["b"][:half], hidden["b"][half:])
    assert not output["b"].any()
    assert output["w"].any()
    x = oracle.signs(np.arange(64, dtype=np.uint32)[:, None], 6)
    assert np.abs(jax.jit(setup.learner.network.apply)(params, x.astype(np.float32))).max() < 1e-6


def test_mirrored_pairs_need_an_even_width():
    setup = pl.Setup(pl.Parity(6, 2), pl.Learner(pl.MLP(5), init="mirrored torch"))
    with pytest.raises(InvalidInput, match="even last hidden width, not 5"):
        setup.check()


@pytest.mark.parametrize("network", [pl.Neuron("relu"), pl.PolyNet(2), pl.DisjointPolyNet(2)])
def test_a_network_without_a_hidden_layer_cannot_be_mirrored(network):
    with pytest.raises(InvalidInput, match="mirrored"):
        pl.Setup(pl.Parity(6, 2), pl.Learner(network, init="mirrored torch")).check()


@pytest.mark.parametrize("spec", [*SPECS, "mirrored kaiming", "mirrored discrete:-1,1", "fixed:3 torch",
                                  "fixed:0 discrete:-1,1", f"fixed:{2**32 - 1} mirrored kaiming"])
def test_a_spec_names_the_same_law_again(spec):
    law = inits.init(spec)
    again = inits.init(law.spec)
    assert again == law
    assert again.spec == law.spec
    key = jax.random.key(3)
    assert np.array_equal(law.sample(key, (6,)), again.sample(key, (6,)))
    assert law.scale(4, 6) == again.scale(4, 6)


def test_spellings_of_one_number_are_one_law():
    assert inits.init("perturbed-rademacher:0.10") == inits.perturbed_rademacher(0.1)
    assert inits.init("sphere:1.0") == inits.sphere(1) == inits.init("sphere")
    assert inits.init("discrete:-1,1.0").spec == "discrete:-1,1"


def test_sign_is_rademacher_under_another_name():
    key = jax.random.key(0)
    assert np.array_equal(inits.init("sign").dense(key, 3, 4)["w"], inits.rademacher().dense(key, 3, 4)["w"])


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("tourch", "did you mean 'torch'"),
        ("perturbed-rademacher", "takes 1 number"),
        ("torch:1", "takes 0 number"),
        ("perturbed-rademacher:x", "numbers separated by commas"),
        ("perturbed-rademacher:-1", "at least 0"),
        ("perturbed-rademacher:nan", "finite"),
        ("perturbed-rademacher:1e300", "perturb"),
        ("uniform-perturbed:-1", "at least 0"),
        ("sparse-rademacher:1", r"in \[0, 1\)"),
        ("sphere:0", "positive"),
        ("discrete:0", "not 0"),
        ("discrete:1,1", "must differ"),
        ("mirrored nothing", "unknown init"),
        ("fixed:3", "unknown init ''"),
        ("fixed:x torch", "whole number"),
        ("fixed:-1 torch", "whole number"),
        (f"fixed:{2**32} torch", "below 2"),
        ("fixed:1 fixed:2 torch", "not two"),
        ("mirrored fixed:3 torch", "'fixed:3 mirrored ...'"),
        ("", "unknown init"),
    ],
)
def test_a_law_that_is_none_is_refused_in_one_line(spec, says):
    with pytest.raises(InvalidInput, match=says) as caught:
        inits.init(spec)
    assert "\n" not in str(caught.value)


def test_what_a_users_sampler_returns_is_used_as_it_is():
    law = inits.init(lambda key, shape: jnp.full(shape, 3.0))
    layer = law.dense(jax.random.key(0), 9, 2)
    np.testing.assert_array_equal(layer["w"], 3.0)
    np.testing.assert_array_equal(layer["b"], 3.0)
    assert "@" in law.spec


def test_a_users_scale_is_used():
    law = inits.custom(lambda key, shape: jnp.ones(shape), scale=lambda fan_in, fan_out: fan_in + 10 * fan_out)
    np.testing.assert_allclose(law.dense(jax.random.key(0), 2, 3)["w"], 32.0)


def test_a_users_sampler_can_be_mirrored():
    law = inits.mirrored(lambda key, shape: jax.random.normal(key, shape))
    output = pl.MLP(4).init(jax.random.key(0), 5, law)[-1]["w"]
    assert np.array_equal(output[:2], -output[2:])
