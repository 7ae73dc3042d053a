"""Every engine against the float64 oracle, step by step over 50 steps."""

from __future__ import annotations

import itertools
from dataclasses import replace
from types import SimpleNamespace

import jax
import numpy as np
import oracle
import pytest
from lengths import long_but
from native_problems import PROBLEMS

import paritylab as pl
from paritylab.engines import Job, final_params, lanes
from paritylab.engines.gradient import make_step
from paritylab.engines.starts import initial_params
from paritylab.engines.work import Queue
from paritylab.rng import run_keys

STEPS = 50
TOLERANCE = 1e-4  # relative to the largest param, in float32

ACTIVATIONS = [
    "relu",
    "relu6",
    "clipped-relu",
    "clipped-relu:2.5",
    "power:1",
    "power:2",
    "power:3",
    "zigzag:2",
    "zigzag:3",
    "infinite-zigzag:2",
    "infinite-zigzag:3",
    "oscillating:2",
    "oscillating:3",
    "oscillating:4",
    "sinusoid:2",
    "sinusoid:3,2",
    "gelu",
]
LOSSES = ["hinge", "hinge:0.3", "square", "logistic", "logistic:2", "correlation", "l1"]

PARITY = pl.Parity(n=7, k=2)
MLP = pl.Learner(pl.MLP(5), optimiser=pl.SGD(lr=0.05), batch=6)

CASES: dict[str, pl.Setup] = {}
for _name in ACTIVATIONS:
    CASES[f"mlp {_name}"] = pl.Setup(PARITY, replace(MLP, network=pl.MLP(5, _name)))
    CASES[f"neuron {_name}"] = pl.Setup(PARITY, replace(MLP, network=pl.Neuron(_name)))
for _name in LOSSES:
    CASES[f"mlp {_name}"] = pl.Setup(PARITY, replace(MLP, loss=_name))
    CASES[f"polynet {_name}"] = pl.Setup(PARITY, replace(MLP, network=pl.PolyNet(3), loss=_name))
    CASES[f"neuron {_name}"] = pl.Setup(PARITY, replace(MLP, network=pl.Neuron("sinusoid:2"), loss=_name))
CASES |= {
    "wide": pl.Setup(pl.Parity(n=20, k=3), replace(MLP, network=pl.MLP(150), batch=40)),
    "very wide": pl.Setup(pl.Parity(n=9, k=3), replace(MLP, network=pl.MLP(1100), batch=5)),
    "batch 1": pl.Setup(PARITY, replace(MLP, batch=1)),
    "batch over a block": pl.Setup(PARITY, replace(MLP, batch=131)),
    "two words": pl.Setup(pl.Parity(n=40, support=(1, 33, 39)), MLP),
    "three words, polynet": pl.Setup(pl.Parity(n=70, k=2), replace(MLP, network=pl.PolyNet(2))),
    "polynet degree 1": pl.Setup(PARITY, replace(MLP, network=pl.PolyNet(1))),
    "label noise": pl.Setup(replace(PARITY, noise=0.3), MLP),
    "finite sample": pl.Setup(replace(PARITY, sample=15), MLP),
    "sample smaller than a batch": pl.Setup(replace(PARITY, sample=4), MLP),
    "sample with replacement and noise": pl.Setup(replace(PARITY, sample=15, replacement=True, noise=0.2), MLP),
    "gradient noise": pl.Setup(PARITY, replace(MLP, optimiser=pl.SGD(0.05, noise=0.3))),
    "gradient noise, polynet": pl.Setup(
        PARITY, replace(MLP, network=pl.PolyNet(2), optimiser=pl.SGD(0.05, noise=0.1))
    ),
    "weight decay": pl.Setup(PARITY, replace(MLP, optimiser=pl.SGD(0.05, weight_decay=0.5))),
    "plain weight decay": pl.Setup(
        PARITY, replace(MLP, optimiser=pl.SGD(0.05, weight_decay=0.02, decay_form="plain", rates=(1, 0)))
    ),
    "frozen first layer": pl.Setup(PARITY, replace(MLP, optimiser=pl.SGD(0.05, rates=(0, 1.5)))),
    "schedule": pl.Setup(PARITY, replace(MLP, optimiser=pl.SGD(0.05, schedule="cosine:40"))),
    "schedule in steps": pl.Setup(PARITY, replace(MLP, optimiser=pl.SGD(0.05, schedule="steps:10,0.5,30,2"))),
}
DEEP = replace(MLP, network=pl.MLP((6, 5, 4)))
CASES |= {
    "deep": pl.Setup(PARITY, DEEP),
    "deep, odd widths": pl.Setup(pl.Parity(n=40, k=2), replace(MLP, network=pl.MLP((33, 70, 17)), batch=13)),
    "deep, several panels": pl.Setup(pl.Parity(n=9, k=2), replace(MLP, network=pl.MLP((100, 209)), batch=64)),
    "deep, batch 1": pl.Setup(PARITY, replace(DEEP, batch=1)),
    "deep, batch over a block": pl.Setup(PARITY, replace(DEEP, network=pl.MLP((35, 20)), batch=131)),
    "deep, no biases": pl.Setup(PARITY, replace(DEEP, network=pl.MLP((9, 6), bias=False))),
    "deep, few losses left": pl.Setup(PARITY, replace(DEEP, loss="hinge:0.05", batch=70)),
    "deep, label noise": pl.Setup(replace(PARITY, noise=0.3), DEEP),
    "deep, finite sample": pl.Setup(replace(PARITY, sample=15), DEEP),
    "deep, gradient noise": pl.Setup(PARITY, replace(DEEP, optimiser=pl.SGD(0.05, noise=0.3))),
    "deep, gradient noise, no biases": pl.Setup(
        PARITY, replace(DEEP, network=pl.MLP((20, 6), bias=False), optimiser=pl.SGD(0.05, noise=0.1))
    ),
    "deep, weight decay": pl.Setup(PARITY, replace(DEEP, optimiser=pl.SGD(0.05, weight_decay=0.5))),
    "deep, plain weight decay, a frozen layer": pl.Setup(
        PARITY, replace(DEEP, optimiser=pl.SGD(0.05, weight_decay=0.02, decay_form="plain", rates=(1, 0, 0.5, 2)))
    ),
    "deep, schedule": pl.Setup(PARITY, replace(DEEP, optimiser=pl.SGD(0.05, schedule="cosine:40"))),
}
for _name in ACTIVATIONS[1:]:
    _rate = pl.SGD(1e-3 if _name == "power:3" else 0.02)  # z^9 is wild
    CASES[f"deep {_name}"] = pl.Setup(PARITY, replace(MLP, network=pl.MLP((5, 19), _name), optimiser=_rate))
for _name in LOSSES[1:]:
    CASES[f"deep {_name}"] = pl.Setup(PARITY, replace(DEEP, loss=_name))
OPTIMISERS = {
    "momentum": pl.Setup(PARITY, replace(MLP, optimiser=pl.SGD(0.02, momentum=0.9, weight_decay=0.1))),
    "nesterov, clipped": pl.Setup(PARITY, replace(MLP, optimiser=pl.SGD(0.02, momentum=0.8, nesterov=True, clip=0.3))),
    "adamw": pl.Setup(PARITY, replace(MLP, optimiser=pl.AdamW(0.01, 0.2, rates=(1, 0.5)))),
    "adam, coupled decay": pl.Setup(PARITY, replace(MLP, optimiser=pl.Adam(0.01, weight_decay=0.1))),
    "lion": pl.Setup(PARITY, replace(MLP, network=pl.MLP(5, "gelu"), optimiser=pl.Lion(0.001, weight_decay=0.1),
                                     batch=5)),
    "rmsprop": pl.Setup(PARITY, replace(MLP, optimiser=pl.RMSProp(0.003, momentum=0.5, weight_decay=0.1,
                                                                  decay_form="plain"))),
    "adam": pl.Setup(PARITY, replace(MLP, optimiser=pl.Adam(0.01))),
    # an odd batch, because the sign of a gradient that vanishes exactly is a matter of rounding
    "sign sgd": pl.Setup(PARITY, replace(MLP, network=pl.MLP(5, "gelu"), optimiser=pl.SignSGD(0.001), batch=5)),
    "momentum, gradient noise": pl.Setup(PARITY, replace(MLP, optimiser=pl.SGD(0.02, momentum=0.9, noise=0.1))),
    "clipped sgd, frozen": pl.Setup(PARITY, replace(MLP, optimiser=pl.SGD(0.1, clip=0.2, rates=(1, 0)))),
    "neuron with adam": pl.Setup(PARITY, replace(MLP, network=pl.Neuron("gelu"), optimiser=pl.Adam(0.01))),
    "polynet with rmsprop": pl.Setup(PARITY, replace(MLP, network=pl.PolyNet(3), optimiser=pl.RMSProp(0.001))),
    "batch of one with adam": pl.Setup(PARITY, replace(MLP, optimiser=pl.Adam(0.003), batch=1)),
    "large batch with momentum": pl.Setup(PARITY, replace(MLP, optimiser=pl.SGD(0.02, momentum=0.9), batch=70)),
    "sample with adamw": pl.Setup(replace(PARITY, sample=20), replace(MLP, optimiser=pl.AdamW(0.01, 0.5))),
    "deep, adamw": pl.Setup(PARITY, replace(DEEP, optimiser=pl.AdamW(0.003, 0.2, clip=0.5, rates=(1, 0.5, 1, 2)))),
    "deep, momentum and noise": pl.Setup(
        PARITY, replace(DEEP, optimiser=pl.SGD(0.01, momentum=0.9, noise=0.05, schedule="cosine:40"))
    ),
    "no output bias": pl.Setup(PARITY, replace(MLP, network=pl.MLP(5, output_bias=False))),
    "no output bias, noise": pl.Setup(PARITY, replace(MLP, network=pl.MLP(5, output_bias=False),
                                                      optimiser=pl.SGD(0.05, noise=0.1))),
    "deep, no output bias, clipped adam": pl.Setup(PARITY, replace(MLP, network=pl.MLP((5, 7), output_bias=False),
                                                                   optimiser=pl.Adam(0.003, clip=0.2, noise=0.1))),
    "no biases with adam": pl.Setup(
        PARITY,
        replace(MLP, network=pl.MLP(5, bias=False, output_bias=False), optimiser=pl.Adam(0.01, weight_decay=0.1)),
    ),
}
CASES |= OPTIMISERS
# An odd batch: at the same margin on both sides the sum of a batch is a matter of rounding.
COMPOSED = {f"problem: {name}": pl.Setup(problem, replace(MLP, loss="square", optimiser=pl.SGD(0.02), batch=7))
            for name, problem in PROBLEMS.items() if problem.support != "random"}
COMPOSED |= {
    "problem: staged, deep": pl.Setup(PROBLEMS["staged"], replace(MLP, network=pl.MLP((6, 5)))),
    "problem: staged, adam": pl.Setup(PROBLEMS["staged"], replace(MLP, optimiser=pl.Adam(0.01, clip=0.5))),
    "problem: staged, batch over a block": pl.Setup(PROBLEMS["staged"], replace(MLP, batch=131)),
    "problem: biased, batch 1": pl.Setup(PROBLEMS["biased, one for each"], replace(MLP, batch=1)),
    "problem: short last, polynet": pl.Setup(PROBLEMS["short last"], replace(MLP, network=pl.PolyNet(2))),
    "problem: staged tasks, neuron": pl.Setup(PROBLEMS["staged tasks"], replace(MLP, network=pl.Neuron("gelu"))),
}
CASES |= COMPOSED
CASES |= {
    "clipped logistic": pl.Setup(PARITY, replace(MLP, loss="clipped-logistic:0.45", optimiser=pl.SGD(0.2))),
    "satisfied batches": pl.Setup(PARITY, replace(MLP, batch=1, loss="hinge:0.1", optimiser=pl.SGD(
        0.05, momentum=0.5, weight_decay=0.2, skip_satisfied=True))),
    "satisfied batches, adamw": pl.Setup(PARITY, replace(MLP, batch=1, loss="hinge:0.1", optimiser=pl.AdamW(
        0.01, 0.2, skip_satisfied=True))),
    "bits": pl.Setup(PARITY, replace(MLP, network=pl.MLP(5, inputs="bits"))),
    "deep, bits, logits": pl.Setup(PARITY, replace(MLP, network=pl.MLP((6, 5), inputs="bits"), loss="logistic",
                                                   init="unbiased logits torch",
                                                   optimiser=pl.Adam(0.01, rates=(1, 1, 2)))),
    "normal": pl.Setup(PARITY, replace(MLP, init="normal:0.5")),
    "bits, large batch, wide": pl.Setup(
        pl.Parity(n=37, k=2), replace(MLP, network=pl.MLP(50, inputs="bits"), loss="square", batch=131)
    ),
    "outputs": pl.Setup(pl.Problem(9, pl.Outputs([(0, 1), (3, 4, 5), (2,)]), noise=0.1, scale=2.0),
                        replace(MLP, network=pl.MLP(18, outputs=3), loss="square", batch=7, optimiser=pl.SGD(0.01))),
    "outputs, some counted": pl.Setup(pl.Problem(9, pl.Outputs([(0, 1), (3, 4)], counted=(0.3, 1)), sample=11),
                                      replace(MLP, network=pl.MLP(5, inputs="bits", outputs=2), batch=11)),
    "outputs, everything": pl.Setup(
        pl.Problem(40, pl.Outputs([(0, 1), (38,), (35, 36)], (0.9, 0, 0.2)), "biased:0.4", sample=37, noise=0.1),
        replace(MLP, network=pl.MLP(33, outputs=3), loss="logistic", batch=25, init="raised:0.5 torch",
                optimiser=pl.Adam(0.01, weight_decay=0.1, noise=0.01, clip=0.2, rates=(1, 2))),
    ),
    "outputs, whole sample": pl.Setup(
        pl.Problem(9, pl.Outputs([(0, 1), (3, 4)]), sample=41),
        replace(MLP, network=pl.MLP(17, outputs=2, output_bias=False), batch=41, optimiser=pl.SGD(0.1, momentum=0.9)),
    ),
    "one output, counted": pl.Setup(pl.Problem(9, pl.Outputs([(0, 1)], counted=[0.5])), MLP),
    "whole sample, adamw": pl.Setup(
        replace(PARITY, sample=41), replace(MLP, network=pl.MLP(17, inputs="bits"), loss="square", batch=41,
                                            optimiser=pl.AdamW(0.01, 0.5))
    ),
}
RELU = replace(MLP, batch=40)
COUNTED: dict[str, pl.Setup] = {
    **{f"n {n}": pl.Setup(pl.Parity(n, 3), replace(RELU, network=pl.MLP(width), batch=batch, loss=loss))
       for n, width, batch, loss in (
           (7, 5, 20, "hinge"), (29, 2, 31, "correlation"), (31, 1, 33, "l1"), (32, 16, 64, "hinge:0.3"),
           (33, 7, 100, "l1"), (45, 10, 300, "hinge"), (60, 33, 32, "correlation"), (64, 6, 33, "hinge"),
           (100, 9, 1500, "hinge"))},
    "decay": pl.Setup(PARITY, replace(RELU, optimiser=pl.SGD(0.05, weight_decay=0.5, rates=(1, 0.5)))),
    "plain decay, a frozen layer": pl.Setup(
        PARITY, replace(RELU, optimiser=pl.SGD(0.05, weight_decay=0.02, decay_form="plain", rates=(0, 1)))
    ),
    "momentum": pl.Setup(PARITY, replace(RELU, optimiser=pl.SGD(0.02, momentum=0.9, weight_decay=0.1))),
    "nesterov, clipped": pl.Setup(PARITY, replace(RELU, optimiser=pl.SGD(0.02, momentum=0.8, nesterov=True, clip=0.3))),
    "adam, coupled decay": pl.Setup(PARITY, replace(RELU, optimiser=pl.Adam(0.01, weight_decay=0.1))),
    "adamw, blocks": pl.Setup(PARITY, replace(RELU, optimiser=pl.AdamW(0.01, 0.2, rates=(1, 0.5)), batch=1501)),
    "rmsprop": pl.Setup(PARITY, replace(RELU, optimiser=pl.RMSProp(0.003, momentum=0.5))),
    "satisfied batches": pl.Setup(PARITY, replace(RELU, batch=1, loss="hinge:0.1", optimiser=pl.SGD(
        0.05, momentum=0.5, weight_decay=0.2, skip_satisfied=True))),
    "gradient noise": pl.Setup(PARITY, replace(RELU, optimiser=pl.SGD(0.05, noise=0.3))),
    "gradient noise, adam": pl.Setup(PARITY, replace(RELU, optimiser=pl.Adam(0.003, clip=0.2, noise=0.1))),
    "schedule": pl.Setup(PARITY, replace(RELU, optimiser=pl.SGD(0.05, schedule="cosine:40"))),
    "no biases": pl.Setup(PARITY, replace(RELU, network=pl.MLP(5, bias=False, output_bias=False))),
    "no output bias": pl.Setup(PARITY, replace(RELU, network=pl.MLP(5, output_bias=False))),
    "label noise": pl.Setup(replace(PARITY, noise=0.3), RELU),
    "finite sample": pl.Setup(replace(PARITY, sample=75), RELU),
    "sample with replacement and noise": pl.Setup(replace(PARITY, sample=75, replacement=True, noise=0.2), RELU),
    "whole sample": pl.Setup(replace(PARITY, sample=40), RELU),
    **{f"problem: {name}": pl.Setup(problem, replace(MLP, loss="l1", optimiser=pl.SGD(0.02), batch=33))
       for name, problem in PROBLEMS.items() if problem.support != "random"},
    "problem: staged, blocks": pl.Setup(PROBLEMS["staged"], replace(MLP, batch=1131)),
}
"""For the layout `samples`."""
JAX_ONLY = {
    "deep, outputs": pl.Setup(pl.Problem(9, pl.Outputs([(0, 1), (3, 4, 5), (2,)]), noise=0.1, scale=2.0),
                              replace(MLP, network=pl.MLP((6, 5), outputs=3), loss="square", batch=7)),
    "tanh": pl.Setup(PARITY, replace(MLP, network=pl.MLP(5, "tanh"))),
    "disjoint polynet": pl.Setup(pl.Parity(n=8, support=(0, 4)), replace(MLP, network=pl.DisjointPolyNet(2))),
    "transformer": pl.Setup(
        pl.Parity(n=5, k=2), replace(MLP, network=pl.Transformer(d_emb=4, d_attn=2, heads=2, d_mlp=5), batch=3)
    ),
    "transformer with adam": pl.Setup(
        pl.Parity(n=4, k=2),
        replace(MLP, network=pl.Transformer(d_emb=4, d_attn=3, heads=1, d_mlp=3), optimiser=pl.Adam(0.01), batch=3),
    ),
}


SEED, RUN = 3, 11


def start(setup: pl.Setup):
    keys = run_keys(np.array([SEED]), np.array([RUN]))
    params = initial_params(setup.program, np.repeat(keys, STEPS, axis=0))  # as many as an engine starts below
    return jax.tree.map(lambda leaf: np.asarray(leaf[0]), params)


def assert_follows_oracle(setup: pl.Setup, history) -> None:
    """``history`` holds the params after 1, 2, ..., 50 steps along the leading axis."""
    expected = oracle.train(setup, SEED, RUN, start(setup), STEPS)
    for t in range(STEPS):
        got = oracle.leaves(jax.tree.map(lambda leaf, t=t: np.asarray(leaf[t]), history))
        want = oracle.leaves(expected[t])
        scale = max(np.abs(leaf).max() for leaf in want)
        for g, w in zip(got, want, strict=True):
            np.testing.assert_allclose(g.reshape(w.shape), w, rtol=0, atol=TOLERANCE * scale, err_msg=f"step {t + 1}")


def engine_history(setup: pl.Setup, **options):
    """Runs of 1, 2, ..., 50 steps that share one seed and number, through the whole engine."""
    never = replace(setup.protocol, eval_every=25, eval_size=8, threshold=1.0, consecutive=10**6)
    jobs = [Job(replace(setup, protocol=replace(never, max_steps=t)), SEED, np.array([RUN])) for t in range(1, 51)]
    records, params = final_params(jobs, **options)
    assert records.steps.tolist() == list(range(1, STEPS + 1))
    return params


def update_history(setup: pl.Setup):
    """The JAX engine's update alone, one run: quick to compile, so every case can be tried."""
    program = replace(setup.program, protocol=replace(setup.program.protocol, eval_every=STEPS))
    step, make_sample = make_step(program)
    row = Queue([Job(setup, SEED, np.array([RUN]))]).take(1)
    slot = SimpleNamespace(**{name: getattr(row, name)[0] for name in ("key", "lr", "noise", "flip", "mask")})
    optimiser = setup.learner.optimiser

    @jax.jit
    def run(params):
        sample = make_sample(slot.key, slot.flip, slot.mask)
        orders = step.orders(slot.key, 0)

        def body(carry, t):
            now = SimpleNamespace(**vars(slot), params=carry[0], optimiser=carry[1], sample=sample, step=t)
            order = jax.tree.map(lambda o: o[t], orders)
            carry = step.update(now, order)
            return carry, carry[0]

        return jax.lax.scan(body, (params, optimiser.start(params)), jax.numpy.arange(STEPS))[1]

    return run(start(setup))


SHORT = ("mlp relu", "neuron zigzag:3", "polynet hinge", "two words", "label noise", "finite sample", "gradient noise",
         "weight decay", "frozen first layer", "schedule", "deep", "adam", "momentum", "deep, adamw", "problem: sum",
         "problem: two tasks", "problem: composed tasks", "problem: staged", "problem: mixture",
         "bits", "bits, large batch, wide", "clipped logistic", "satisfied batches",
         "whole sample, adamw", "outputs, some counted", "outputs, everything")


@pytest.mark.parametrize("name", long_but([*CASES, *JAX_ONLY], *SHORT, slow=["transformer"]))
def test_an_update_of_the_jax_engine_follows_the_oracle(name):
    setup = (CASES | JAX_ONLY)[name]
    assert_follows_oracle(setup, update_history(setup))


@pytest.mark.parametrize("name", long_but(["satisfied batches", "satisfied batches, adamw"], "satisfied batches"))
def test_some_of_these_batches_are_satisfied_and_change_nothing(name):
    setup = (CASES | JAX_ONLY)[name]
    history = oracle.train(setup, SEED, RUN, start(setup), STEPS)
    still = [all(np.array_equal(a, b) for a, b in zip(oracle.leaves(one), oracle.leaves(other), strict=True))
             for one, other in itertools.pairwise(history)]
    assert 3 < sum(still) < len(still) - 3


@pytest.mark.parametrize(
    "name", long_but(["mlp relu", "polynet hinge", "two words", "label noise", "finite sample", "gradient noise",
                      "schedule", "sample with replacement and noise", "transformer with adam"],
                     "mlp relu", "sample with replacement and noise",
                     slow=["polynet hinge", "two words", "label noise", "gradient noise", "transformer with adam"])
)
def test_the_jax_engine_follows_the_oracle(name):
    setup = (CASES | JAX_ONLY)[name]
    assert_follows_oracle(setup, engine_history(setup, engine="jax"))


@pytest.mark.skipif(lanes.kernel() is None, reason="the native kernel was not built")
@pytest.mark.parametrize("name", long_but(CASES, *SHORT))
def test_the_lanes_engine_follows_the_oracle_in_all_layouts(name):
    network = CASES[name].learner.network
    depth = len(network.widths) if isinstance(network, pl.MLP) else 0
    shallow = ("lanes", "within", "deep", *(["tables"] if depth and network.activation.spec == "relu" else []))
    if isinstance(getattr(CASES[name].problem, "target", None), pl.Outputs):
        shallow = ("tables",)
    for layout in (("lanes",), shallow, ("deep",))[min(depth, 2)]:
        for isa in lanes.kernel().supported_isas() if depth > 1 else ("auto",):
            assert_follows_oracle(CASES[name], engine_history(CASES[name], engine="lanes", layout=layout, isa=isa))


@pytest.mark.skipif(lanes.kernel() is None, reason="the native kernel was not built")
@pytest.mark.parametrize("name", long_but(COUNTED, "n 29", "n 33", "n 64", "adam, coupled decay", "gradient noise",
                                          "finite sample", "problem: two tasks", "problem: staged"))
def test_the_layout_of_samples_follows_the_oracle(name):
    for isa in lanes.kernel().supported_isas():
        assert_follows_oracle(COUNTED[name], engine_history(COUNTED[name], engine="lanes", layout="samples", isa=isa))
