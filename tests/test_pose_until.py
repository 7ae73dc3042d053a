"""Runs that are solved by their training loss."""

from __future__ import annotations

import json

import numpy as np
import pytest

import paritylab as pl
from paritylab import engines
from paritylab.errors import InvalidInput

LEARNER = pl.Learner(pl.MLP(16), optimiser=pl.SGD(0.2), batch=16)
PROBLEM = pl.Parity(8, 2, sample=60, noise=0.1)


def protocol(**fields):
    return pl.Protocol(**{"max_steps": 200, "eval_size": 256, "until_loss": 0.3, **fields})


@pytest.mark.long
def test_a_run_ends_at_the_first_check_with_a_training_loss_below():
    result = pl.measure(PROBLEM, LEARNER, protocol(), runs=6)
    assert result.engine == engines.label("jax")
    made = pl.curves(result.setup, 200, 10, runs=range(6), train=True, engine="jax")
    assert made.train_loss is not None
    below = made.train_loss[:, 1:] < 0.3
    expected = np.where(below.any(axis=1), 10 * (1 + below.argmax(axis=1)), -1)
    np.testing.assert_array_equal(result.records.t_c, expected)
    assert result.summary.solved > 0
    solved = result.records.status == 0
    at = made.steps.searchsorted(result.records.steps[solved])
    np.testing.assert_allclose(result.records.accuracy[solved], made.accuracy[solved, at], atol=1e-6)
    assert result.records.accuracy[solved].min() < 1


@pytest.mark.long
def test_consecutive_checks_and_a_loss_that_is_not_reached():
    once, twice = (pl.measure(PROBLEM, LEARNER, protocol(consecutive=count), runs=3).records for count in (1, 3))
    assert np.all(twice.t_c[twice.t_c > 0] >= once.t_c[twice.t_c > 0] + 20)
    assert pl.measure(PROBLEM, LEARNER, protocol(until_loss=1e-9, max_steps=20), runs=3).summary.solved == 0


def test_it_is_in_the_json():
    told = json.loads(pl.Setup(PROBLEM, LEARNER, protocol()).to_json())["protocol"]
    assert told["until_loss"] == 0.3
    assert pl.Setup.from_json(pl.Setup(PROBLEM, LEARNER, protocol()).to_json()).protocol == protocol()


@pytest.mark.parametrize(("make", "message"), [
    (lambda: pl.Setup(pl.Parity(8, 2), LEARNER, protocol()), "until_loss is about the loss on a finite sample"),
    (lambda: protocol(threshold=0.9), "until_loss takes the place of a threshold"),
    (lambda: protocol(until_loss="low"), "until_loss must be a finite number"),
    (lambda: engines.choose(pl.Setup(PROBLEM, LEARNER, protocol()), "lanes"), "it has no until_loss"),
])
def test_mistakes_are_said_in_a_line(make, message):
    with pytest.raises(InvalidInput, match=message):
        make()
