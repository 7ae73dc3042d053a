"""glasgow2023's network on both engines, step by step against the float64 oracle."""

from __future__ import annotations

from dataclasses import replace

import jax
import numpy as np
import pytest
from glasgow2023.theory import xor
from lengths import long_but
from test_oracle_agreement import assert_follows_oracle, engine_history, update_history

import paritylab as pl
from paritylab.engines import choose, lanes
from paritylab.errors import InvalidInput
from paritylab.setups import inits
from paritylab.setups.problems import bits

CASES = {
    "joint": pl.Setup(pl.Parity(12, 2), xor.learner(20, 0.5, 0.25, 24)),
    "frozen": pl.Setup(pl.Parity(12, 2), xor.learner(20, 0.5, 0.25, 24, frozen=True)),
    "batch 1": pl.Setup(pl.Parity(9, 2), xor.learner(12, 0.3, 0.05, 1)),
    "over a block, two words": pl.Setup(pl.Parity(40, support=(3, 37)), xor.learner(40, 0.5, 0.25, 70)),
    "unbalanced signs": pl.Setup(pl.Parity(9, 2), xor.learner(16, 0.5, 0.25, 8, share=0.7)),
    "gradient noise": pl.Setup(pl.Parity(9, 2), replace(
        xor.learner(16, 0.5, 0.25, 8), optimiser=pl.SGD(0.25, rates=(4, 0.25), noise=0.02))),
    "weight decay": pl.Setup(pl.Parity(9, 2), replace(
        xor.learner(16, 0.5, 0.25, 8), optimiser=pl.SGD(0.25, rates=(4, 0.25), weight_decay=0.1))),
}
native = pytest.mark.skipif(lanes.kernel() is None, reason="the native kernel was not built")


@pytest.mark.parametrize("name", long_but(CASES, "joint", "unbalanced signs"))
def test_updates_of_the_jax_engine_follow_the_oracle(name):
    assert_follows_oracle(CASES[name], update_history(CASES[name]))


@native
@pytest.mark.parametrize("name", CASES)
def test_the_lanes_engine_follows_the_oracle_in_both_layouts(name):
    for layout in ("lanes", "within"):
        assert_follows_oracle(CASES[name], engine_history(CASES[name], engine="lanes", layout=layout))


@pytest.mark.long
def test_updates_are_those_of_the_paper():
    setup = CASES["joint"]
    rows = pl.curves(setup, 3, 1, engine="jax", weights=True)
    neurons = xor.Neurons.of(jax.tree.map(lambda leaf: leaf[0, 0], rows.weights))
    key = jax.random.fold_in(jax.random.fold_in(jax.random.key(0), 0), 1)  # of run 0's batches
    for t in range(3):
        drawn = setup.problem.draw(jax.random.fold_in(key, t), setup.learner.batch)
        x = np.asarray(bits.unpack(drawn, 12), np.float64)
        neurons = xor.step(neurons, x, x[:, 0] * x[:, 1], 0.25)
    after = xor.Neurons.of(jax.tree.map(lambda leaf: leaf[0, -1], rows.weights))
    np.testing.assert_allclose(after.w, neurons.w, atol=1e-5)
    np.testing.assert_allclose(after.a, neurons.a, atol=1e-5)


def test_the_start_is_on_the_sphere_with_balanced_layers():
    params = CASES["joint"].params(jax.random.key(3))
    assert [list(layer) for layer in params] == [["w"], ["w"]]
    neurons = xor.Neurons.of(params)
    np.testing.assert_allclose(neurons.size, 0.5, rtol=1e-6)
    np.testing.assert_allclose(np.abs(neurons.a), 0.5, rtol=1e-6)


def test_the_share_of_positive_signs_is_as_asked():
    # 10^4 signs with probability 0.7: 5 standard errors, false alarms below 1e-6
    neurons = xor.Neurons.of(pl.MLP(10_000, bias=False).init(jax.random.key(0), 3, inits.init("mean-field:0.1,0.7")))
    assert abs(np.mean(neurons.a > 0) - 0.7) < 5 * np.sqrt(0.21 / 10_000)


def test_a_network_without_biases_says_so():
    bare = CASES["joint"]
    assert '"bias":false' in bare.to_json()
    assert pl.Setup.from_json(bare.to_json()) == bare
    assert pl.MLP(4, bias=False) == pl.MLP(4, bias=False, output_bias=False) != pl.MLP(4, output_bias=False)


def test_specs_of_the_start():
    assert inits.init("mean-field:0.5").spec == "mean-field:0.5"
    assert inits.init("mean-field:0.5,0.7").spec == "mean-field:0.5,0.7"
    for wrong in ("mean-field:0", "mean-field:1,2"):
        with pytest.raises(InvalidInput):
            inits.init(wrong)


@native
def test_engines_are_chosen_by_what_they_can():
    assert choose(CASES["joint"], "auto") == "lanes"
    assert lanes.refusal(pl.Setup(pl.Parity(8, 2), pl.Learner(pl.MLP(4, output_bias=False)))) is None
    gaussian = replace(CASES["joint"], problem=pl.Parity(12, 2, inputs=xor.gaussian_inputs))
    assert choose(gaussian, "auto") == "jax"


def test_a_rotated_learner_sees_rotated_inputs():
    learner = CASES["joint"].learner
    turn = np.linalg.qr(np.random.default_rng(0).standard_normal((12, 12)))[0]
    rotated = xor.rotated(learner, turn)
    params = learner.network.init(jax.random.key(1), 12, learner.init)
    same = rotated.network.init(jax.random.key(1), 12, rotated.init)
    x = np.random.default_rng(1).choice([-1.0, 1.0], (5, 12)).astype(np.float32)
    np.testing.assert_allclose(rotated.network.apply(same, x), learner.network.apply(params, x @ turn.T), atol=1e-5)
