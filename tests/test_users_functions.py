"""A user's own functions in a Setup: they enter its id, and what they do wrong is named."""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import paritylab as pl
from paritylab.errors import InvalidInput
from paritylab.functions import fingerprints
from paritylab.setups import inits

BASE = pl.Setup(pl.Parity(8, 2))


def with_learner(**fields):
    return replace(BASE, learner=replace(BASE.learner, **fields))


# --- ids --------------------------------------------------------------------------------------------------------


def network_id(forward) -> str:
    return with_learner(network=pl.Network(lambda key, n: jnp.zeros(n), forward)).id


def compiled(source: str):
    """A function whose source cannot be found, as one typed at a prompt."""
    names: dict = {}
    exec(source, names)
    return names["f"]


def capturing(value):
    return lambda params, x: x @ params * value


def with_default(value):
    def f(params, x, scale=value):
        return x @ params * scale

    return f


def with_keyword(value):
    def f(params, x, *, scale=value):
        return x @ params * scale

    return f


class Scaled:
    def __init__(self, scale):
        self.scale = scale

    def __call__(self, params, x):
        return x @ params * self.scale

    def method(self, params, x):
        return x @ params * self.scale


def long_array(last):
    values = np.zeros(5000)
    values[2500] = last
    return values


def outer(function):
    return lambda params, x: function(x @ params)


PAIRS = {
    "captured number": (capturing(1.0), capturing(2.0)),
    "captured array": (capturing(np.array([1.0])), capturing(np.array([2.0]))),
    "captured long array": (capturing(long_array(1.0)), capturing(long_array(2.0))),
    "captured close numbers in an array": (capturing(np.array([1.0])), capturing(np.array([1.0 + 1e-12]))),
    "captured jax array": (capturing(jnp.ones(3)), capturing(jnp.zeros(3))),
    "captured dictionary": (capturing({"a": 1}), capturing({"a": 2})),
    "captured function": (outer(capturing(1.0)), outer(capturing(2.0))),
    "captured object": (capturing(Scaled(1.0)), capturing(Scaled(2.0))),
    "default": (with_default(1.0), with_default(2.0)),
    "keyword default": (with_keyword(1.0), with_keyword(2.0)),
    "two lambdas on one line": (lambda params, x: x @ params, lambda params, x: -x @ params),
    "constant in code without source": (compiled("f = lambda p, x: 2 * x"), compiled("f = lambda p, x: 3 * x")),
    "partial": (functools.partial(with_default(0), scale=1), functools.partial(with_default(0), scale=2)),
    "partial of different code": (
        functools.partial(compiled("def f(p, x): return x")), functools.partial(compiled("def f(p, x): return -x"))
    ),
    "jit": (jax.jit(capturing(1.0)), jax.jit(capturing(2.0))),
    "callable object": (Scaled(1.0), Scaled(2.0)),
    "bound method": (Scaled(1.0).method, Scaled(2.0).method),
}


@pytest.mark.parametrize("name", PAIRS)
def test_the_id_changes_with_a_users_function_and_what_it_captured(name):
    first, second = PAIRS[name]
    assert network_id(first) != network_id(second)


def test_the_id_is_the_same_for_the_same_function_made_twice():
    assert network_id(capturing(1.0)) == network_id(capturing(1.0))
    assert network_id(with_default(1.0)) == network_id(with_default(1.0))
    assert network_id(outer(capturing(1.0))) == network_id(outer(capturing(1.0)))


def test_a_users_scale_is_a_part_of_the_id():
    def sample(key, shape):
        return jax.random.normal(key, shape)

    first = with_learner(init=inits.custom(sample, scale=lambda fan_in, fan_out: 1.0))
    second = with_learner(init=inits.custom(sample, scale=lambda fan_in, fan_out: 2.0))
    assert first.id != second.id
    assert first.program != second.program


def test_every_place_for_a_users_function_enters_the_id():
    def setup(c):
        return pl.Setup(
            pl.Parity(8, 2, inputs=lambda key, count, n: c[0] * jax.random.normal(key, (count, n))),
            pl.Learner(pl.MLP(3, lambda z: c[1] * z), lambda key, shape: c[2] * jax.random.normal(key, shape),
                       lambda f, y: -c[3] * f * y, pl.SGD(schedule=lambda t: c[4])),
        )

    ids = {setup([1, 1, 1, 1, 1]).id, *(setup([1 + (i == j) for j in range(5)]).id for i in range(5))}
    assert len(ids) == 6


@dataclass(frozen=True)
class Linear:
    """A user's network as a class of their own."""

    scale: float = 1.0

    def init(self, key, n, init):
        return init.dense(key, n, 1)

    def apply(self, params, x):
        return self.scale * (x @ params["w"])[:, 0]


def test_a_users_dataclass_is_a_network_whose_fields_enter_the_id():
    first, second = with_learner(network=Linear(1.0)), with_learner(network=Linear(2.0))
    first.check()
    assert first.id != second.id
    assert first.id == with_learner(network=Linear(1)).id


def test_the_code_of_a_users_class_enters_the_id():
    def define(sign):
        source = f"""
class Net:
    def init(self, key, n, init): return init.dense(key, n, 1)
    def apply(self, params, x): return {sign}(x @ params["w"])[:, 0]
"""
        names: dict = {"__name__": "user"}
        exec(source, names)
        return dataclass(frozen=True)(names["Net"])

    assert with_learner(network=define("+")()).id != with_learner(network=define("-")()).id


def test_a_fingerprint_names_the_function():
    assert fingerprints.fingerprint(capturing(1)).startswith(f"{__name__}.capturing.<locals>.<lambda>@")


@pytest.mark.parametrize("network", [Linear(), pl.Network(lambda key, n: 0, lambda params, x: x)])
def test_a_document_cannot_be_turned_back_into_a_users_network(network):
    with pytest.raises(InvalidInput) as caught:
        pl.Setup.from_json(with_learner(network=network).to_json())
    assert "\n" not in str(caught.value)


# --- mistakes ---------------------------------------------------------------------------------------------------


def raising(params, x):
    raise RuntimeError("my mistake\nin two lines")


@pytest.mark.parametrize(
    ("forward", "says"),
    [
        (raising, "raising, given params by .*<lambda>, failed: my mistake$"),
        (lambda params, x: x @ jnp.ones(9), "<lambda>, given params by .*<lambda>, failed"),
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
