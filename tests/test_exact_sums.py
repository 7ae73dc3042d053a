"""Starts of finitely many values: float32 adds them up exactly, so inputs of neurons that cancel are 0 everywhere."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
import oracle
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lengths import long_but
from oracle_data import batch, run_key

import paritylab as pl
from paritylab import engines
from paritylab.engines import Job, lanes
from paritylab.engines.starts import initial_params
from paritylab.rng import run_keys
from paritylab.setups import inits
from paritylab.setups.weights import coarse, common_grain

WIDTH, RUNS = 8, 64
SIZES = (8, 10, 20, 30, 50)
"""Inputs at which many sums of signs over the root of n were off by rounding: 31 of 68 at n = 30."""
LAWS = ("sign", "xavier-sign", "unbiased rademacher", "fixed:3 mirrored rademacher", "raised:0.5 sign",
        "perturbed-rademacher:0", "uniform-perturbed:0", "sparse-rademacher:0.2", "released sparse-rademacher:0.2",
        "discrete:-2,-1,1,2", "released discrete:-2,-1,1,2", "discrete:-1.5,-1.25,-1,1,1.25,1.5", "discrete:0,1",
        "discrete:-2.8,-2,2,2.8")
LAYOUTS = ("lanes", "within", "deep", "tables", "samples")
WAYS = [("jax", {}), *(pytest.param("lanes", {"layout": layout}, id=layout, marks=pytest.mark.skipif(
    lanes.kernel() is None, reason="the native kernel was not built")) for layout in LAYOUTS)]


def start_of(spec: str, n: int) -> tuple[inits.Init, np.ndarray]:
    """The law and the hidden layer of many neurons, the biases as its last row."""
    law = inits.init(spec)
    hidden = law.layers(jax.random.key(n), (n, 512, 1))[0]
    return law, np.concatenate([hidden["w"], hidden["b"][None]])


@pytest.mark.parametrize("spec", long_but(LAWS, "sign", "discrete:-1.5,-1.25,-1,1,1.25,1.5"))
def test_float32_sums_are_exact_in_any_order(spec: str) -> None:
    rng = np.random.default_rng(0)
    cancelling = 0
    for n in range(8, 51):
        law, w = start_of(spec, n)
        level = law.level(n, 512)
        wholes = np.round(w / level)
        assert np.array_equal(w, np.float32(level) * wholes.astype(np.float32))
        x = np.append(rng.choice([-1.0, 1.0], n), 1.0)
        exact = x @ wholes
        cancelling += np.sum(exact == 0)
        terms = np.float32(x)[:, None] * w
        for _ in range(5):
            assert np.array_equal(np.cumsum(rng.permutation(terms), axis=0, dtype=np.float32)[-1], level * exact)
        for chosen in (jnp.dot, jax.jit(jnp.dot)):
            assert np.array_equal(chosen(jnp.float32(x), w), level * exact)
    assert cancelling > 300


@pytest.mark.parametrize("spec", LAWS)
def test_levels_differ_from_the_law_by_at_most_one_part_in_4096(spec: str) -> None:
    law = inits.init(spec)
    assert law.grain is not None
    for n in range(1, 300):
        ideal = law.scale(n, 7) * law.grain
        assert abs(law.level(n, 7) / ideal - 1) <= 2**-12


@given(st.floats(1e-30, 1e30))
def test_a_coarse_number_is_the_nearest_of_12_significant_bits(number: float) -> None:
    part, power = math.frexp(number)
    assert math.frexp(coarse(number))[0] * 2**12 % 1 == 0
    assert abs(coarse(number) - number) == abs(math.ldexp(round(part * 2**12), power - 12) - number)
    assert coarse(-number) == -coarse(number)
    assert float(np.float32(coarse(number))) == coarse(number)


@given(st.lists(st.integers(-4096, 4096).filter(bool), min_size=1), st.sampled_from([1e-6, 0.01, 0.05, 0.25, 1, 3, 40]))
def test_points_are_whole_multiples_of_their_grain(wholes: list[int], size: float) -> None:
    points = [float(f"{whole * size:.9g}") for whole in wholes]
    grain = common_grain(points)
    assert grain is not None
    assert grain == pytest.approx(math.gcd(*wholes) * size)
    assert [round(point / grain) for point in points] == [whole // math.gcd(*wholes) for whole in wholes]


@pytest.mark.parametrize("spec", ["discrete:-1.41421,-1,1,1.41421", "discrete:0.3333333333333333,1", "discrete:1,5000",
                                  "discrete:1e-300,1", "discrete:1e6,1e-9", "torch", "kaiming", "sphere",
                                  "perturbed-rademacher:0.1", "uniform-perturbed:0.1"])
def test_other_laws_have_the_scale_as_it_is(spec: str) -> None:
    law = inits.init(spec)
    assert law.grain is None
    assert law.level(30, 10) == law.scale(30, 10)
    key = jax.random.key(1)
    weights = law.dense(key, 30, 10)["w"]
    assert np.array_equal(weights, law.scale(30, 10) * law.sample(jax.random.split(key)[0], (30, 10)))


def test_differences_of_logits_have_levels_too() -> None:
    law = inits.init("logits sign")
    assert law.output is not None
    level = law.output.level(90, 1)
    weights = np.asarray(law.layers(jax.random.key(0), (30, 90, 1))[1]["w"])
    assert set((weights / np.float32(level)).ravel().tolist()) == {-2, 0, 2}
    assert math.frexp(level)[0] * 2**12 % 1 == 0


def trained(setup: pl.Setup, engine: str, runs: int, **options: str) -> tuple[np.ndarray, np.ndarray]:
    """Hidden weights of runs before and after one update."""
    start = initial_params(setup.program, run_keys(np.zeros(runs, int), np.arange(runs)))
    _, end = engines.final_params([Job(setup, 0, np.arange(runs))], engine, **options)
    return np.asarray(start[0]["w"]), np.asarray(end[0]["w"])


@pytest.mark.parametrize(("engine", "options"), WAYS)
def test_a_neuron_whose_inputs_cancel_does_not_move(engine: str, options: dict[str, str]) -> None:
    """ReLU has slope 0 at 0. One example a batch, 512 neurons for each n."""
    for n in SIZES:
        learner = pl.Learner(pl.MLP(WIDTH, bias=False), init="sign", batch=1, optimiser=pl.SGD(0.1))
        setup = pl.Setup(pl.Parity(n, 2), learner, pl.Protocol(max_steps=1, eval_size=8))
        start, end = trained(setup, engine, RUNS, **options)
        inputs = [batch(setup.problem, 1, run_key(0, run), 0)[0][0] for run in range(RUNS)]
        tied = np.einsum("rn,rnu->ru", inputs, np.sign(start)) == 0
        moved = (start != end).any(axis=1)
        assert tied.sum() > 50
        assert not np.any(moved & tied), f"{np.sum(moved & tied)} of {tied.sum()} at n = {n}"
        assert moved.any()


@pytest.mark.parametrize("spec", long_but(LAWS, "unbiased rademacher", "discrete:-2,-1,1,2"))
@pytest.mark.parametrize(("engine", "options"), WAYS)
def test_one_update_has_the_active_neurons_of_exact_arithmetic(
    engine: str, options: dict[str, str], spec: str
) -> None:
    """A neuron that is active by rounding would move a weight by about 1e-3."""
    learner = pl.Learner(pl.MLP(16), init=spec, batch=300, optimiser=pl.SGD(1.0))
    setup = pl.Setup(pl.Parity(30, 2), learner, pl.Protocol(max_steps=1, eval_size=8))
    params = initial_params(setup.program, run_keys(np.zeros(3, int), np.arange(3)))
    _, end = trained(setup, engine, 3, **options)
    for run in range(3):
        (exact,) = oracle.train(setup, 0, run, jax.tree.map(lambda leaf, run=run: leaf[run], params), 1)
        assert np.abs(end[run] - exact[0]["w"]).max() < 1e-6
