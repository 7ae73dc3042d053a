"""A user's own functions in a Setup: what they do wrong is named."""

from __future__ import annotations

from dataclasses import dataclass, replace

import jax.numpy as jnp
import pytest

import paritylab as pl
from paritylab.errors import InvalidInput

BASE = pl.Setup(pl.Parity(8, 2))


def with_learner(**fields):
    return replace(BASE, learner=replace(BASE.learner, **fields))


@dataclass(frozen=True)
class Linear:
    """A user's network as a class of their own."""

    scale: float = 1.0

    def init(self, key, n, init):
        return init.dense(key, n, 1)

    def apply(self, params, x):
        return self.scale * (x @ params["w"])[:, 0]


@pytest.mark.parametrize("network", [Linear(), pl.Network(lambda key, n: jnp.ones(n), lambda params, x: x @ params)])
def test_a_document_cannot_be_turned_back_into_a_users_network(network):
    with pytest.raises(InvalidInput, match="pass it, or its module, in functions=") as caught:
        pl.Setup.from_json(with_learner(network=network).to_json())
    assert "\n" not in str(caught.value)


# --- mistakes ---------------------------------------------------------------------------------------------------


def raising(params, x):
    raise RuntimeError("my mistake\nin two lines")


@pytest.mark.parametrize(
    ("forward", "says"),
    [
        (raising, r"network .*\.raising, given params by .*<lambda>, failed: my mistake$"),
        (lambda params, x: x @ jnp.ones(9), "network .*<lambda>, given params by .*<lambda>, failed: dot_"),
        (lambda params, x: x, r"must return floating-point numbers of shape \(32,\), not float32 of shape \(32, 8\)"),
        (lambda params, x: x[:, :1], r"not float32 of shape \(32, 1\)"),
        (lambda params, x: x.sum(), r"not float32 of shape \(\)"),
        (lambda params, x: (x[:, 0],), "must return .*, not a tuple"),
        (lambda params, x: None, "must return .*, not None"),
    ],
)
def test_a_users_network_that_fails_is_named(forward, says):
    setup = with_learner(network=pl.Network(lambda key, n: jnp.zeros(n), forward))
    with pytest.raises(InvalidInput, match=says) as caught:
        setup.check()
    assert "\n" not in str(caught.value)


def test_a_users_params_that_fail_are_named():
    with pytest.raises(InvalidInput, match=r"network .*<lambda> failed: division by zero"):
        with_learner(network=pl.Network(lambda key, n: 1 / 0, raising)).check()
    with pytest.raises(InvalidInput, match=r"init .*<lambda> failed: .* takes 1 positional argument"):
        with_learner(init=lambda key: jnp.zeros(1)).check()


@pytest.mark.parametrize(
    "setup",
    [
        with_learner(loss=lambda f, y: raising(f, y)),
        with_learner(loss=lambda f: f),
        replace(BASE, problem=pl.Parity(8, 2, inputs=lambda key, count, n: jnp.zeros((count, n + 1)))),
        replace(BASE, problem=pl.Parity(8, 2, inputs=lambda key, count, n: 1 / 0)),
        with_learner(optimiser=pl.SGD(schedule=lambda: 1.0)),
    ],
    ids=["loss raises", "loss takes one argument", "inputs of a wrong shape", "inputs raise", "schedule without step"],
)
def test_a_users_loss_inputs_or_schedule_that_fail_are_refused_by_check(setup):
    with pytest.raises(InvalidInput):
        setup.check()
