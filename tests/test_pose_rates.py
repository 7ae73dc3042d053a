"""Optimisers that see the loss of the batch: rates that fall on a plateau, line searches, rules of one's own."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from optax import contrib

import paritylab as pl
from paritylab.errors import InvalidInput
from paritylab.setups.optimisers import Optimiser

SETUP = pl.Setup(pl.Parity(8, 2, sample=64), protocol=pl.Protocol(eval_size=128))


def trained(optimiser, steps, loss="square", **options):
    learner = pl.Learner(pl.MLP(6), loss=loss, optimiser=optimiser, batch=64)
    return pl.curves(pl.Setup(SETUP.problem, learner, SETUP.protocol), steps, train=True, checkpoint=True, **options)


def flat(f, y):
    return 0 * f + 1.0


@pytest.mark.long
def test_a_rate_falls_on_a_plateau_and_only_there():
    plateau = contrib.reduce_on_plateau(factor=0.5, patience=3, cooldown=0)
    rule = pl.Optax(transformation=optax.chain(optax.sgd(0.05), plateau))
    scales = []
    for loss in (flat, "square"):
        state = trained(rule, [20], loss).checkpoint
        assert state is not None
        scales.append(float(state.optimiser["[1].scale"][0]))
    assert scales[0] < 0.1
    assert scales[1] == 1


@pytest.mark.slow
@pytest.mark.long
def test_a_line_search_has_the_loss_as_a_function():
    """Polyak's step and a backtracking search: the batch is the whole sample, so its loss never grows by much."""
    search = optax.chain(optax.sgd(1.0), optax.scale_by_backtracking_linesearch(max_backtracking_steps=20))
    for rule in (search, optax.lbfgs()):
        losses = trained(pl.Optax(transformation=rule), [0, 1, 2, 5, 20]).train_loss
        assert losses is not None
        assert np.all(np.diff(losses[0]) < 0)
    assert np.isfinite(trained(pl.Optax(transformation=optax.polyak_sgd(0.1)), [5]).loss).all()


@dataclass(frozen=True)
class ByLoss(Optimiser):
    """The gradient times the loss."""

    def direct(self, gradient, state, params, step, value):  # pyright: ignore[reportIncompatibleMethodOverride]
        return jax.tree.map(lambda g: value * g, gradient), state


def test_a_rule_of_ones_own_sees_the_loss():
    made = trained(ByLoss(0.1), [0, 1], weights=True)
    plain = trained(pl.SGD(0.1), [0, 1], weights=True)
    assert made.train_loss is not None
    moved, by = ((each.weights[0]["w"][0, 1] - each.weights[0]["w"][0, 0]) for each in (made, plain))
    np.testing.assert_allclose(moved, made.train_loss[0, 0] * by, rtol=1e-3, atol=1e-6)


@pytest.mark.long
def test_a_transformation_with_a_name_and_one_without_extras():
    rule = optax.chain(optax.sgd(0.05), contrib.reduce_on_plateau(patience=3))
    named, itself = (trained(pl.Optax(transformation=each), [9]).loss for each in (pl.named("rule v1", rule), rule))
    np.testing.assert_array_equal(named, itself)
    plain = optax.GradientTransformation(lambda params: (), lambda g, state, params=None: (g, state))
    assert pl.Optax(transformation=plain).sees == ()
    assert pl.SGD().sees == ()


def test_mistakes_are_said_in_a_line():
    wrong = optax.GradientTransformationExtraArgs(
        lambda params: (), lambda g, state, params=None, *, value: (g, jnp.ones(value)))
    with pytest.raises(InvalidInput, match=r"optimiser .* failed: ") as caught:
        pl.Setup(SETUP.problem, pl.Learner(optimiser=pl.Optax(transformation=wrong))).check()
    assert "\n" not in str(caught.value)
