"""Every field of everything that a Setup is made of is a part of its id, and no name stands for another function."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import paritylab as pl
from paritylab.errors import InvalidInput
from paritylab.setups import inits
from paritylab.setups.losses import Loss, loss
from paritylab.setups.networks.activations import Activation, activation
from paritylab.setups.problems import laws, targets
from paritylab.setups.schedules import Schedule, schedule
from paritylab.setups.setup import CLASSES
from paritylab.setups.weights import Init

Fields = dict[str, Any]
Make = Callable[..., pl.Setup]


def of_problem(problem: Any) -> pl.Setup:
    return pl.Setup(problem, pl.Learner(pl.MLP(3, outputs=2)) if isinstance(
        getattr(problem, "target", None), targets.Outputs) else pl.Learner(pl.MLP(3)))


def problem(kind: Any, **always: Any) -> Make:
    return lambda **fields: of_problem(kind(**always | fields))


def target(kind: Any) -> Make:
    return lambda **fields: of_problem(pl.Problem(8, kind(**fields)))


def law(kind: Any) -> Make:
    return lambda **fields: of_problem(pl.Problem(8, [0, 1], kind(**fields)))


def network(kind: Any) -> Make:
    return lambda **fields: pl.Setup(pl.Parity(8, 2), pl.Learner(kind(**fields)))


def optimiser(kind: Any, **always: Any) -> Make:
    return lambda **fields: pl.Setup(pl.Parity(8, 2), pl.Learner(pl.MLP(3), optimiser=kind(**always | fields)))


def drawn(key: Any, count: int, n: int) -> Any:
    return jax.random.normal(key, (count, n))


SAMPLE: Fields = {"noise": 0.1, "sample": 99, "replacement": (True, {"sample": 99}), "inputs": drawn,
                  "short_last": (True, {"sample": 99})}
DESCENT: Fields = {"lr": 0.2, "schedule": "linear:9", "rates": (1, 0), "noise": 0.1, "clip": 1.0, "weight_decay": 0.1,
                   "decay_form": ("plain", {"weight_decay": 0.1}), "skip_satisfied": True}
X = np.array([[1, 1], [1, -1], [-1, 1], [-1, -1]])
Y = X.prod(axis=1)
TERMS = [(1.0, (0,)), (0.5, (0, 1))]

TABLE: dict[str, tuple[Make, Fields, Fields]] = {
    "setup": (pl.Setup, {"problem": pl.Parity(8, 2)}, {
        "problem": pl.Parity(8, 3), "learner": pl.Learner(batch=33), "protocol": pl.Protocol(max_steps=9)}),
    "learner": (lambda **fields: pl.Setup(pl.Parity(8, 2), pl.Learner(**fields)), {}, {
        "network": pl.MLP(11), "init": "kaiming", "loss": "square", "optimiser": pl.SGD(0.2), "batch": 33}),
    "protocol": (lambda **fields: pl.Setup(pl.Parity(8, 2, sample=99), protocol=pl.Protocol(**fields)), {}, {
        "max_steps": 99, "eval_every": 11, "eval_size": 99, "threshold": 0.9, "consecutive": 2, "fresh": True,
        "within": 0.5, "until_loss": 0.1}),
    "parity": (problem(pl.Parity), {"n": 8, "k": 2}, {"n": 9, "k": 3, "support": (0, 2), **SAMPLE}),
    "polynomial": (problem(pl.Polynomial), {"n": 8, "terms": TERMS}, {"n": 9, "terms": TERMS[:1], **SAMPLE}),
    "leaky-parity": (problem(pl.LeakyParity), {"n": 9, "k": 3}, {
        "n": 11, "k": 5, "support": (0, 1, 3), "leak": 0.25, **SAMPLE}),
    "problem": (problem(pl.Problem), {"n": 8, "target": [0, 1]}, {
        "n": 9, "target": [0, 2], "scale": 2.0, "stages": [pl.Stage(5, lr=0.5)], "evaluation": "biased:0.3",
        **SAMPLE}),
    "data": (problem(pl.Data), {"x": X, "y": Y}, {
        "x": -X[:, ::-1] * [1, -1], "y": -Y, "eval_x": (X[2:], {"eval_x": X[:2], "eval_y": Y[:2]}),
        "eval_y": (Y[2:], {"eval_x": X[:2], "eval_y": Y[:2]}), "replacement": True, "short_last": True}),
    "stage": (lambda **fields: of_problem(pl.Problem(8, [0, 1], stages=[pl.Stage(**fields)])), {"until": 5, "lr": 0.5},
              {
        "until": 6, "inputs": "biased:0.3", "slide": (True, {"inputs": "biased:0.3"}), "lr": 0.25, "batch": 16,
        "noise": 0.1}),
    "product": (target(targets.Product), {"support": (0, 1)}, {"support": (0, 2)}),
    "sum": (target(targets.Sum), {"terms": TERMS}, {"terms": TERMS[:1], "sign": True}),
    "table": (target(targets.Table), {"places": (0, 1), "table": [1, -1, -1, 1]}, {
        "places": (0, 2), "table": [1, 1, -1, 1]}),
    "tasks": (target(targets.Tasks), {"supports": [(2, 3), (4, 5)]}, {
        "supports": [(2, 3), (4, 6)], "weights": (0.3, 0.7), "solved": (0,), "controls": [(0,), (0, 1)],
        "in_turn": True}),
    "outputs": (target(targets.Outputs), {"supports": [(0, 1), (2, 3)]}, {
        "supports": [(0, 1), (2, 4)], "counted": (0.5, 1.0)}),
    "biased": (law(laws.Biased), {"p": 0.3}, {"p": 0.2}),
    "mixture": (law(laws.Mixture), {"rho": 0.3, "first": "biased:0.3", "second": "uniform"}, {
        "rho": 0.2, "first": "biased:0.2", "second": "biased:0.4"}),
    "active": (law(laws.Active), {"bits": 3, "law": "biased:0.3"}, {"bits": 4, "law": "biased:0.2"}),
    "permuted": (law(laws.Permuted), {"places": (1, 0, 2, 3, 4, 5, 6, 7), "law": laws.Active(2, "biased:0.3")}, {
        "places": (0, 2, 1, 3, 4, 5, 6, 7), "law": laws.Active(2, "biased:0.2")}),
    "pairs": (law(laws.Pairs), {"pairs": [(0, 1)], "correlation": 0.5}, {
        "pairs": [(0, 2)], "correlation": 0.25, "law": "biased:0.3"}),
    "sampler": (law(laws.Sampler), {"function": drawn}, {"function": lambda key, count, n: drawn(key, count, n) + 1}),
    "mlp": (network(pl.MLP), {}, {
        "width": 11, "activation": "gelu", "output_bias": False, "bias": (False, {"output_bias": False}),
        "inputs": "bits", "outputs": 2}),
    "neuron": (network(pl.Neuron), {"activation": "relu"}, {"activation": "gelu"}),
    "polynet": (network(pl.PolyNet), {"degree": 2}, {"degree": 3}),
    "disjoint-polynet": (network(pl.DisjointPolyNet), {"degree": 2}, {"degree": 4}),
    "transformer": (network(pl.Transformer), {}, {"d_emb": 16, "d_attn": 4, "heads": 2, "d_mlp": 8}),
    "network": (network(pl.Network), {
        "make": lambda key, n: jax.random.normal(key, (n,)), "forward": lambda params, x: x @ params}, {
        "make": lambda key, n: jax.random.uniform(key, (n,)), "forward": lambda params, x: 2 * x @ params}),
    "sgd": (optimiser(pl.SGD), {}, {
        **DESCENT, "momentum": 0.5, "nesterov": (True, {"momentum": 0.5})}),
    "adam": (optimiser(pl.Adam), {}, {**DESCENT, "b1": 0.8, "b2": 0.8, "eps": 1e-5}),
    "rmsprop": (optimiser(pl.RMSProp), {}, {**DESCENT, "alpha": 0.8, "eps": 1e-5, "momentum": 0.5}),
    "sign-sgd": (optimiser(pl.SignSGD), {}, {
        **DESCENT, "b1": (0.8, {"b1": 0.7, "b2": 0.9}), "b2": (0.8, {"b1": 0.7, "b2": 0.9})}),
    "graph": (network(pl.Graph), {"steps": ["linear:4", "relu", "linear:1"]}, {
        "steps": ["linear:4", "tanh", "linear:1"],
        "weights": [np.ones((8, 4)), np.ones(4), np.ones((4, 1)), np.ones(1)]}),
    "optax": (optimiser(pl.Optax, transformation=optax.sgd(1.0)), {}, {**DESCENT, "transformation": optax.sgd(0.5)}),
}
"""Of each class, Setups with one, the fields of a first one, and another value of each field; where that needs values
of others, with those, which both have."""
DERIVED = {"polynomial": {"k", "support"}, "leaky-parity": {"inputs"}, "data": {"n"}}
"""Fields that follow from others, or have one value."""


def test_every_class_and_field_is_in_the_table() -> None:
    assert TABLE.keys() == CLASSES.keys() - {"uniform"}  # which has no fields
    for name, (_, _, fields) in TABLE.items():
        known = {field.name for field in dataclasses.fields(CLASSES[name])}
        assert fields.keys() - DERIVED.get(name, set()) == known - DERIVED.get(name, set()), name


@pytest.mark.parametrize(("name", "field"), [(name, field) for name in TABLE for field in TABLE[name][2]
                                             if field not in DERIVED.get(name, ())])
def test_another_value_of_a_field_is_another_id(name: str, field: str) -> None:
    make, base, fields = TABLE[name]
    given = fields[field]
    value, also = given if isinstance(given, tuple) and isinstance(given[-1], dict) else (given, {})
    assert make(**base | also).id != make(**base | also | {field: value}).id
    assert make(**base | also | {field: value}).id == make(**base | also | {field: value}).id


# --- what has a spec --------------------------------------------------------------------------------------------------


def sample(key: Any, shape: Any) -> Any:
    return jax.random.normal(key, shape)


def with_part(part: Any) -> pl.Setup:
    """A Setup with a loss, init, activation or schedule."""
    made: dict[type, Callable[[Any], pl.Learner]] = {
        Init: lambda it: pl.Learner(pl.MLP(4), it), Loss: lambda it: pl.Learner(pl.MLP(4), loss=it),
        Activation: lambda it: pl.Learner(pl.MLP(4, it)),
        Schedule: lambda it: pl.Learner(optimiser=pl.SGD(schedule=it)),
    }
    return pl.Setup(pl.Parity(8, 2), made[type(part)](part))


OWN = {
    "init": (inits.custom(sample), {
        "spec": "kaiming", "sample": lambda key, shape: 2 * sample(key, shape), "characteristic": np.cos,
        "scale": lambda fan_in, fan_out: 0.5, "mirrored": True, "biased": False, "fixed": 3,
        "output": inits.custom(lambda key, shape: jnp.ones(shape)), "logits": True, "raised": 0.5, "grain": 0.5}),
    "loss": (loss(lambda f, y: (f - y) ** 4), {
        "spec": "hinge", "function": lambda f, y: (f - y) ** 6, "native": ("square", ())}),
    "activation": (activation(lambda z: z**3), {
        "spec": "relu", "function": lambda z: z**5, "native": ("relu", ())}),
    "schedule": (schedule(lambda t: 0.5), {"spec": "constant", "function": lambda t: 0.25}),
}
BUILT_IN = {"init": inits.init("mirrored kaiming"), "loss": loss("hinge"), "activation": activation("relu"),
            "schedule": schedule("constant")}


@pytest.mark.parametrize(("kind", "field"), [(kind, field) for kind in OWN for field in OWN[kind][1]])
def test_a_changed_field_of_what_is_the_users_is_another_id_or_refused(kind: str, field: str) -> None:
    part, fields = OWN[kind]
    assert fields.keys() == {each.name for each in dataclasses.fields(part)}
    try:
        changed = with_part(replace(part, **{field: fields[field]})).id
    except InvalidInput:
        return
    assert changed != with_part(part).id


@pytest.mark.parametrize(("kind", "field"), [(kind, field) for kind in OWN for field in OWN[kind][1]])
def test_what_is_built_in_cannot_be_changed_under_its_name(kind: str, field: str) -> None:
    value = {"mirrored": False, "fixed": 4}.get(field, OWN[kind][1][field])
    with pytest.raises(InvalidInput, match="must be the built-in one"):
        with_part(replace(BUILT_IN[kind], **{field: value}))


class Doubled(Loss):
    def __call__(self, f: Any, y: Any, params: Any = None, x: Any = None) -> Any:
        return 2 * super().__call__(f, y, params, x)


class Wider(Init):
    def dense(self, key: Any, fan_in: int, fan_out: int) -> Any:
        return jax.tree.map(lambda leaf: 2 * leaf, super().dense(key, fan_in, fan_out))


def test_a_class_with_a_method_of_its_own_is_not_taken_for_its_base() -> None:
    doubled = pl.Learner(pl.MLP(4), loss=Doubled("hinge", loss("hinge").function))
    assert pl.Setup(pl.Parity(8, 2), doubled).id != pl.Setup(pl.Parity(8, 2), pl.Learner(pl.MLP(4))).id
    with pytest.raises(InvalidInput, match="subclass of Init"):
        pl.Learner(init=Wider("gaussian", sample))
    with pytest.raises(InvalidInput, match="a class of your own"):
        _ = pl.Setup(type("Mine", (pl.Parity,), {"labels": lambda self, drawn, mask: -1.0})(8, 2)).id


# --- numbers ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("one", "other"), [
    (pl.SGD(0.1), pl.SGD(np.float64(0.1))), (pl.SGD(1), pl.SGD(1.0)), (pl.SGD(1, noise=0.0), pl.SGD(1, noise=-0.0)),
    (pl.SGD(1, rates=[1, 0.5]), pl.SGD(1, rates=(1, 0.5))),
])
def test_numbers_that_no_code_could_tell_apart_have_one_id(one: Any, other: Any) -> None:
    first, second = (optimiser(lambda it=it: it)() for it in (one, other))
    assert first.id == second.id
    for field in dataclasses.fields(one):
        mine, theirs = getattr(one, field.name), getattr(other, field.name)
        assert (type(mine), repr(mine)) == (type(theirs), repr(theirs))


class Text(str):
    """A text that can be called, as a function can."""

    __slots__ = ()

    def __call__(self) -> None: ...


def test_a_subclass_of_text_is_no_function_and_gives_no_spec_a_class_of_its_own() -> None:
    with pytest.raises(InvalidInput, match="a Setup cannot hold 'bits', a Text"):
        _ = pl.Setup(pl.Parity(8, 2), pl.Learner(pl.MLP(4, inputs=Text("bits")))).id
    made = [loss(Text("square")), activation(Text("gelu")), inits.init(Text("kaiming")), schedule(Text("linear:9"))]
    assert [type(each.spec) for each in made] == [str] * 4


def test_integers_of_numpy_are_those_of_python() -> None:
    made = pl.Setup(pl.Parity(8, 2), pl.Learner(pl.MLP(np.uint8(200)), batch=np.uint8(200)))
    assert made.id == pl.Setup(pl.Parity(8, 2), pl.Learner(pl.MLP(200), batch=200)).id
    assert type(made.learner.batch) is type(made.learner.network.width) is int
