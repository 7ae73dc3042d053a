"""Losses, activations and schedules: values and derivatives against the oracle, names and refusals."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
import oracle
import pytest

import paritylab as pl
from paritylab import engines
from paritylab.engines import lanes
from paritylab.errors import InvalidInput
from paritylab.setups import schedules
from paritylab.setups.losses import loss
from paritylab.setups.networks.activations import activation, oscillating_coefficients
from paritylab.setups.schedules import schedule
from paritylab.storage.records import SOLVED

built = pytest.mark.skipif(lanes.kernel() is None, reason="the native kernel was not built")
ACTIVATIONS = [
    "relu", "relu6", "clipped-relu", "clipped-relu:2.5", "power:1", "power:2", "power:5", "zigzag:1", "zigzag:2",
    "zigzag:3", "infinite-zigzag:2", "infinite-zigzag:3", "oscillating:1", "oscillating:3", "oscillating:4",
    "sinusoid:2", "sinusoid:3,2", "sinusoid:2.5,0.5", "gelu", "tanh",
]
LOSSES = ["hinge", "hinge:0.3", "hinge:0", "square", "logistic", "logistic:2.5", "correlation", "l1",
          "clipped-logistic:0.2"]
GRID = np.arange(-64, 65, dtype=np.float32) / 8  # holds every kink: 0, 1, 2.5, 6 and the whole numbers


@pytest.mark.parametrize("spec", ACTIVATIONS)
def test_activations_and_their_slopes_are_those_of_the_oracle_kinks_included(spec):
    value, slope = jax.jit(jax.vmap(jax.value_and_grad(activation(spec))))(GRID)
    want_value, want_slope = oracle.activation(spec, GRID.astype(np.float64))
    scale = 1 + np.abs(want_value) + np.abs(want_slope)  # float32 rounding, relative to the terms of a polynomial
    np.testing.assert_allclose((value - want_value) / scale, 0, atol=2e-5)
    np.testing.assert_allclose((slope - want_slope) / scale, 0, atol=2e-5)


@pytest.mark.parametrize("spec", LOSSES)
def test_losses_and_their_slopes_are_those_of_the_oracle_kinks_included(spec):
    f, y = np.tile(GRID, 2), np.repeat(np.float32([-1, 1]), len(GRID))
    value, slope = jax.jit(jax.vmap(jax.value_and_grad(loss(spec))))(f, y)
    want_value, want_slope = oracle.loss(spec, f.astype(np.float64), y)
    np.testing.assert_allclose(value, want_value, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(slope, want_slope, rtol=1e-5, atol=1e-6)


def test_the_slope_of_a_rectifier_is_0_at_its_kinks_and_of_a_zigzag_the_right_hand_one():
    slope = {spec: jax.grad(activation(spec)) for spec in ("relu", "relu6", "clipped-relu", "zigzag:2")}
    assert [float(slope["relu"](0.0)), float(slope["relu6"](6.0)), float(slope["clipped-relu"](1.0))] == [0, 0, 0]
    # the zigzag of degree 2 goes through (-2, 1), (0, -1), (2, 1)
    assert [float(slope["zigzag:2"](z)) for z in (-2.0, 0.0, 2.0)] == [-1, 1, 1]


def test_the_slope_of_a_loss_is_0_at_its_kink():
    assert float(jax.grad(loss("hinge"))(1.0, 1.0)) == 0
    assert float(jax.grad(loss("l1"))(-1.0, -1.0)) == 0


def test_the_clipped_logistic_loss_has_the_floor_of_single_precision_and_no_slope_there():
    clipped = jax.vmap(jax.value_and_grad(loss("clipped-logistic:1e-7")))
    value, slope = clipped(jnp.float32([-1000, -30, 15.9, 16, 40, 1000]), jnp.ones(6))
    most = float(np.float32(-np.log(1e-7)))
    np.testing.assert_allclose(value, [most, most, np.log1p(np.exp(-15.9)), *[2.0**-23] * 3], rtol=2e-6)
    assert (np.asarray(slope) == 0).tolist() == [True, True, False, True, True, True]


def test_the_logistic_loss_does_not_overflow():
    value, slope = jax.value_and_grad(loss("logistic"))(-1000.0, 1.0)
    assert (float(value), float(slope)) == (1000.0, -1.0)


@pytest.mark.parametrize("k", range(1, 7))
@pytest.mark.parametrize("name", ["zigzag", "infinite-zigzag", "oscillating", "sinusoid"])
def test_waves_go_through_the_parity_of_every_sum_of_k_signs(name, k):
    sums = k - 2 * np.arange(k + 1)  # j of the k inputs are -1, so their product is (-1)^j
    got = activation(f"{name}:{k}")(sums.astype(np.float32))
    np.testing.assert_allclose(got, (-1.0) ** np.arange(k + 1), atol=1e-4)


@pytest.mark.parametrize("k", [8, 10, 12])
def test_the_coefficients_of_the_oscillating_polynomial_stay_accurate_for_larger_degrees(k):
    exact = np.polynomial.Polynomial(oscillating_coefficients(k))
    np.testing.assert_allclose(exact(k - 2.0 * np.arange(k + 1)), (-1.0) ** np.arange(k + 1), atol=1e-5)


def test_the_ends_of_a_zigzag_go_on_straight_and_those_of_the_infinite_one_do_not():
    z = np.float32([9.0, -9.0])
    assert activation("zigzag:3")(z).tolist() == [7.0, -7.0]
    assert activation("infinite-zigzag:3")(z).tolist() == [-1.0, 1.0]


@pytest.mark.parametrize(
    ("spec", "t", "factor"),
    [
        ("constant", [0, 5, 10**6], [1, 1, 1]),
        ("linear:10", [0, 5, 10, 99], [1, 0.5, 0, 0]),
        ("cosine:10", [0, 5, 10, 99], [1, 0.5, 0, 0]),
        ("cosine:30", [10], [0.75]),
        ("warmup:4", [0, 2, 3, 99], [0.25, 0.75, 1, 1]),
        ("warmup-linear:4,8", [0, 3, 4, 6, 8, 99], [0.25, 1, 1, 0.5, 0, 0]),
        ("warmup-cosine:2,10", [0, 1, 2, 6, 10], [0.5, 1, 1, 0.5, 0]),
        ("inverse-sqrt:3", [0, 9, 45], [1, 0.5, 0.25]),
        ("steps:10,0.5,30,2", [0, 9, 10, 29, 30, 10**6], [1, 1, 0.5, 0.5, 2, 2]),
        ("steps:0,0.5", [0, 1], [0.5, 0.5]),
    ],
)
def test_a_schedule_has_its_documented_factors(spec, t, factor):
    np.testing.assert_allclose(schedule(spec)(np.array(t)), factor, atol=1e-6)
    np.testing.assert_allclose(schedule(spec)(jnp.int32(t[-1])), factor[-1], atol=1e-6)


def test_a_schedule_changes_exactly_at_its_step_however_late():
    late = 2**24 + 1  # beyond the whole numbers of float32
    assert schedule(f"steps:{late},0.5")(np.array([late - 1, late])).tolist() == [1.0, 0.5]


def test_only_the_constant_schedule_is_constant():
    assert schedule("constant").constant
    assert not schedule("linear:5").constant
    assert not schedule(lambda t: 1.0).constant


@pytest.mark.parametrize("make", [activation, loss, schedule])
def test_a_users_function_is_taken_as_it_is(make):
    def mine(*arguments):
        return arguments[0] * 2

    made = make(mine)
    assert made(21, *([1] if make is loss else [])) == 42
    assert "mine@" in made.spec
    assert make(made) == made
    assert make(lambda *arguments: 0) != make(lambda *arguments: 1)


@pytest.mark.parametrize(
    ("make", "spec", "says"),
    [
        (activation, "rellu", "did you mean 'relu'"),
        (activation, "zigzg:3", "did you mean 'zigzag'"),
        (activation, "zigzag", "takes 1 number"),
        (activation, "zigzag:2.5", "whole number"),
        (activation, "zigzag:0", "at least 1"),
        (activation, "power:-2", "at least 1"),
        (activation, "power:inf", "finite"),
        (activation, "sinusoid", "takes 1 to 2 number"),
        (activation, "clipped-relu:-1", "clipped-relu"),
        (activation, "oscillating:400", "oscillating"),
        (activation, "", "unknown activation"),
        (loss, "hing", "did you mean 'hinge'"),
        (loss, "hinge:-1", "at least 0"),
        (loss, "hinge:1,2", "takes 0 to 1 number"),
        (loss, "logistic:0", "positive"),
        (loss, "square:1", "takes 0 number"),
        (loss, "clipped-logistic", "takes 1 number"),
        (loss, "clipped-logistic:0.5", "from 1.2e-38 to 0.5, not 0.5"),
        (schedule, "cosin:10", "did you mean 'cosine'"),
        (schedule, "linear", "takes 1 number"),
        (schedule, "linear:0", "positive"),
        (schedule, "steps:1,2,3", "pairs"),
        (schedule, "steps:5,1,5,2", "must increase"),
        (schedule, "steps:9,1,5,2", "must increase"),
    ],
)
def test_a_name_that_means_nothing_is_refused_in_one_line(make, spec, says):
    with pytest.raises(InvalidInput, match=says) as caught:
        make(spec)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("spec", ["zigzag:3.0", "power:2.0", "clipped-relu:2.50", "sinusoid:3.0,2"])
def test_spellings_of_one_number_are_one_activation(spec):
    assert activation(spec).spec == activation(activation(spec).spec).spec
    assert ".0" not in activation(spec).spec


def test_every_loss_is_smaller_for_an_output_on_the_labels_side():
    for spec in LOSSES:
        right, wrong = (float(loss(spec)(f, 1.0)) for f in (0.9, -0.9))
        assert right < wrong or spec == "hinge:0"


def test_the_defaults_are_those_of_barak2022():
    learner = pl.Learner()
    assert (learner.loss.spec, learner.init.spec, learner.batch) == ("hinge", "torch", 32)
    assert math.isinf(learner.network.activation.native[1][0])


# --- schedules in blocks ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "given",
    ["linear:90000", "cosine:123456", "warmup-cosine:500,123456",
     "inverse-sqrt:333", "steps:10,0.5,65537,0.1", lambda t: jnp.exp(-t / 1e4)],
    ids=["linear", "cosine", "warm-up", "inverse-sqrt", "steps", "a user's own"],
)
def test_blocks_of_a_schedule_are_those_of_a_table_of_all_its_steps(given):
    made, steps = schedule(given), 2 * schedules.BLOCK - 1001
    table = np.asarray(jax.vmap(made)(np.arange(steps)), np.float32)
    blocks = np.concatenate([made.block(0), made.block(1)])
    assert blocks.dtype == np.float32
    assert np.array_equal(blocks[:steps].view(np.uint32), table.view(np.uint32))


@pytest.mark.parametrize("engine", ["jax", pytest.param("lanes", marks=built)])
def test_a_run_of_two_thousand_million_steps_that_is_soon_solved_takes_a_block_of_its_schedule(engine, monkeypatch):
    asked, block = [], schedules.Schedule.block
    monkeypatch.setattr(schedules.Schedule, "block", lambda self, number: asked.append(number) or block(self, number))
    learner = pl.Learner(optimiser=pl.SGD(1.0, schedule="cosine:2e9"))
    setup = pl.Setup(pl.Parity(5, 2), learner, pl.Protocol(max_steps=2**31 - 1, eval_size=64))
    records, _ = engines.final_params([engines.Job(setup, 0, np.arange(4))], engine)
    assert np.all(records.status == SOLVED)
    assert asked == ([0] if engine == "lanes" else [])  # jax evaluates it at each step
