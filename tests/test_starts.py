"""Initial weights of runs: the same on every engine, to the last bit."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from lengths import long_but

import paritylab as pl
from paritylab import engines
from paritylab.engines import Job, lanes, starts
from paritylab.engines.starts import initial_params, start_keys
from paritylab.rng import run_keys
from paritylab.setups import inits

SEED = 17
built = pytest.mark.skipif(lanes.kernel() is None, reason="the native kernel was not built")
NETWORKS = {"mlp": (pl.MLP(10), 30), "smallest": (pl.MLP(1), 1), "wide": (pl.MLP(33), 50),
            "deep": (pl.MLP((5, 3)), 9), "without output bias": (pl.MLP(4, output_bias=False), 6),
            "without biases": (pl.MLP(4, bias=False), 6), "neuron": (pl.Neuron("relu"), 17),
            "polynet": (pl.PolyNet(3), 40)}
BY_WORDS = ("torch", "sign", "xavier", "uniform", "rademacher", "fixed:7 torch")
CASES = long_but([f"torch, {name}" for name in NETWORKS] + [f"{spec}, mlp" for spec in BY_WORDS[1:]],
                 "torch, mlp", "torch, deep", "torch, without output bias")


def bitwise_equal(left, right) -> bool:
    pairs = zip(jax.tree.leaves(left), jax.tree.leaves(right), strict=True)
    return all(np.asarray(a).tobytes() == np.asarray(b).tobytes() for a, b in pairs)


@built
@pytest.mark.parametrize("case", CASES)
def test_weights_drawn_without_compiling_are_those_of_jax_to_the_last_bit(case):
    spec, name = case.split(", ")
    law, keys, (network, n) = inits.init(spec), run_keys(np.arange(300) % 3, np.arange(300)), NETWORKS[name]
    assert starts.can_draw(network, law, n)
    program = pl.Setup(pl.Parity(n, 1), pl.Learner(network, init=law)).program
    drawn = initial_params(program, keys)
    expected = starts.starter(program.start)(start_keys(law, keys))
    assert jax.tree.structure(drawn) == jax.tree.structure(expected)
    assert bitwise_equal(drawn, expected)


@built
@pytest.mark.parametrize("network", [pl.MLP(2**12), pl.MLP((2**16, 2**16)), pl.PolyNet(2**12)], ids=str)
def test_layers_of_more_words_than_the_kernel_can_number_are_left_to_jax(network):
    assert not starts.can_draw(network, inits.torch(), 2**20)
    assert starts.can_draw(network, inits.torch(), 9) == (network != pl.MLP((2**16, 2**16)))


@pytest.mark.parametrize("spec", ["kaiming", "mirrored torch", "sphere", "uniform-perturbed:0.3", "discrete:-1,1"])
def test_other_laws_are_left_to_jax(spec):
    assert not starts.draws_by_itself(inits.init(spec))
    assert not starts.draws_by_itself(inits.init(lambda key, shape: jnp.zeros(shape)))


@built
@pytest.mark.parametrize("engine", ["jax", "lanes"])
def test_such_a_law_starts_with_nothing_to_compile(engine, monkeypatch):
    monkeypatch.setattr(starts, "starter", lambda *_: pytest.fail("JAX was asked"))
    setup = pl.Setup(pl.Parity(6, 2), pl.Learner(pl.MLP(4)), pl.Protocol(max_steps=5, eval_size=8))
    assert sum(len(r) for part in engines.train([Job(setup, 0, np.arange(3))], engine) for _, r in part) == 3


def params_after_a_step(spec, engine, runs=3, lr=0.1):
    learner = pl.Learner(pl.MLP(4), init=spec, optimiser=pl.SGD(lr))
    setup = pl.Setup(pl.Parity(6, 2), learner, pl.Protocol(max_steps=1, eval_size=8))
    return setup, engines.final_params([Job(setup, SEED, np.arange(runs))], engine)[1]


@pytest.mark.parametrize("engine", ["jax", pytest.param("lanes", marks=built)])
@pytest.mark.parametrize("spec", long_but(["torch", "mirrored kaiming"], "torch"))
def test_a_fixed_start_is_that_of_its_number_for_every_run_and_the_data_differ(spec, engine):
    setup, still = params_after_a_step(f"fixed:3 {spec}", engine, lr=0.0)
    base = pl.Setup(setup.problem, pl.Learner(pl.MLP(4), init=spec))
    expected = jax.jit(base.params)(jax.random.key(3))
    for run in range(3):
        assert bitwise_equal(jax.tree.map(lambda leaf, run=run: leaf[run], still), expected)
    _, moved = params_after_a_step(f"fixed:3 {spec}", engine)
    assert not np.array_equal(moved[0]["w"][0], moved[0]["w"][1])


def test_a_fixed_start_serves_every_network_and_survives_json():
    network = pl.Network(lambda key, n: {"w": jax.random.normal(key, (n,))}, lambda params, x: x @ params["w"])
    for net in (network, pl.DisjointPolyNet(2)):
        setup = pl.Setup(pl.Parity(4, 2), pl.Learner(net, init="fixed:5 gaussian"))
        params = initial_params(setup.program, run_keys(np.zeros(2, int), np.arange(2)), chunk=2)
        assert bitwise_equal(jax.tree.map(lambda leaf: leaf[1], params), jax.jit(setup.params)(jax.random.key(5)))
    setup = pl.Setup(pl.Parity(4, 2), pl.Learner(init=inits.fixed("mirrored kaiming", 3)))
    assert pl.Setup.from_json(setup.to_json()) == setup
    assert setup.learner.init.fixed == 3
    assert start_keys(setup.learner.init, run_keys(np.zeros(2, int), np.arange(2))).tolist() == [[0, 3]] * 2
    assert setup.id != pl.Setup(pl.Parity(4, 2), pl.Learner(init="mirrored kaiming")).id
