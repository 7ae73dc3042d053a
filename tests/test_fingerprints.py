"""Fingerprints of users' functions: another whenever anything that a function computes with is, or a refusal."""

from __future__ import annotations

import copy
import enum
import functools
import math
import sys
import threading
from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import paritylab as pl
from paritylab.errors import InvalidInput
from paritylab.functions.fingerprints import fingerprint, moment
from paritylab.running import luggage
from paritylab.setups import inits

BASE = pl.Setup(pl.Parity(8, 2))


def with_learner(**fields):
    return replace(BASE, learner=replace(BASE.learner, **fields))


def optax_id(transformation) -> str:
    return with_learner(optimiser=pl.Optax(1.0, transformation=transformation)).id


# --- deep in a transformation -----------------------------------------------------------------------------------


def chained(lr):
    return optax.chain(optax.clip(1.0), optax.chain(optax.clip(1.0), optax.sgd(lr)))


def guarded(lr):
    return optax.apply_if_finite(optax.chain(optax.clip(1.0), optax.adam(lr)), 5)


def joined(lr):
    schedules = [optax.linear_schedule(0.0, 0.1, 10), optax.constant_schedule(lr)]
    return optax.adamw(optax.join_schedules(schedules, [10]))


def warmed(steps):
    return optax.adam(optax.warmup_cosine_decay_schedule(0.0, 0.1, 10, int(steps)))


@pytest.mark.parametrize(
    ("make", "values"), [(chained, (1e-6, 0.5)), (guarded, (1e-6, 0.5)), (joined, (1e-6, 0.5)), (warmed, (100, 200))]
)
def test_what_is_deep_in_a_transformation_enters_the_id(make, values):
    first, second = (optax_id(make(value)) for value in values)
    assert first != second
    assert first == optax_id(make(values[0]))


def test_how_a_transformation_starts_enters_the_id():
    def started(value):
        update = optax.sgd(0.1).update
        return optax.GradientTransformation(lambda params: value, update)

    assert optax_id(started(0)) != optax_id(started(1))


def nested(depth, value):
    function = lambda x: value * x  # noqa: E731
    for _ in range(depth):
        function = functools.partial(lambda inner, x: inner(x), function)
    return function


def test_no_depth_is_too_deep():
    deep = 3_000  # beyond what recursion could follow
    assert fingerprint(nested(deep, 1.0)) != fingerprint(nested(deep, 2.0))
    assert fingerprint(nested(deep, 1.0)) == fingerprint(nested(deep, 1.0))


# --- rules of differentiation -----------------------------------------------------------------------------------


def with_backward(slope):
    @jax.custom_vjp
    def activation(z):
        return jnp.maximum(z, 0)

    activation.defvjp(lambda z: (jnp.maximum(z, 0), z), lambda z, g: (slope * g,))
    return activation


def with_tangent(slope, wrapper=jax.custom_jvp, **options):
    @functools.partial(wrapper, **options)
    def activation(z):
        return jnp.maximum(z, 0)

    activation.defjvp(lambda primals, tangents: (activation(*primals), slope * tangents[0]))
    return activation


@pytest.mark.parametrize("make", [with_backward, with_tangent])
def test_activations_that_differ_only_backwards_have_different_ids_and_programs(make):
    first, second = (with_learner(network=pl.MLP(3, make(slope))) for slope in (1.0, 2.0))
    assert first.id != second.id
    assert first.program != second.program
    assert first == with_learner(network=pl.MLP(3, make(1.0)))


def test_which_arguments_have_no_derivative_enters_the_fingerprint():
    assert fingerprint(with_tangent(1.0)) != fingerprint(with_tangent(1.0, nondiff_argnums=()).fun)
    powers = [jax.custom_jvp(lambda x, y: x * y, nondiff_argnums=which) for which in ((0,), (1,))]
    assert fingerprint(powers[0]) != fingerprint(powers[1])


# --- classes ----------------------------------------------------------------------------------------------------


def hierarchy(inherited=1.0, constant=2.0, slot=3.0, own=4.0):
    class Grandparent:
        __slots__ = ("slot",)
        scale = constant

        def factor(self):
            return inherited * self.scale * self.slot

    class Parent(Grandparent):
        pass

    class Child(Parent):
        def __call__(self, params, x):
            return (x @ params) * self.factor() * self.own

    made = Child()
    made.slot, made.own = slot, own
    return made


@pytest.mark.parametrize("changed", [{"inherited": 9.0}, {"constant": 9.0}, {"slot": 9.0}, {"own": 9.0}])
def test_inherited_methods_class_constants_slots_and_attributes_enter_the_fingerprint(changed):
    assert fingerprint(hierarchy(**changed)) != fingerprint(hierarchy())
    assert fingerprint(hierarchy()) == fingerprint(hierarchy())


def test_what_python_notes_on_a_class_with_its_use_does_not_matter():
    made, flags = hierarchy(), enum.IntFlag("Flags", ["A", "B"])
    before = fingerprint([made, flags])
    copy.copy(made)  # notes the names of its slots
    assert flags(3)  # notes the new value
    assert fingerprint([made, flags]) == before


class Metaclass(type):
    def scale(cls):
        return 1.0


def decorated(getter=1.0, static=2.0, of_class=3.0, colour=1):
    colours = enum.Enum("Colour", {"RED": colour})

    class Decorated(metaclass=Metaclass):
        red = colours.RED

        @property
        def one(self):
            return getter

        @staticmethod
        def two():
            return static

        @classmethod
        def three(cls):
            return of_class

    return Decorated


@pytest.mark.parametrize("changed", [{"getter": 9.0}, {"static": 9.0}, {"of_class": 9.0}, {"colour": 9}])
def test_all_kinds_of_attributes_of_a_class_enter_the_fingerprint(changed):
    assert fingerprint(decorated(**changed)) != fingerprint(decorated())
    assert fingerprint(decorated()) == fingerprint(decorated())


WIDTH = 3


@dataclass(frozen=True)
class Computing:
    """A network that computes something when it is made."""

    scale: float = 1.0

    def __post_init__(self):
        object.__setattr__(self, "offset", WIDTH * self.scale)

    def init(self, key, n, init):
        return init.dense(key, n, 1)

    def apply(self, params, x):
        return (x @ params["w"])[:, 0] + self.offset  # pyright: ignore[reportAttributeAccessIssue]


def test_what_an_object_holds_beside_its_fields_enters_the_id(monkeypatch):
    first = Computing()
    monkeypatch.setattr(sys.modules[__name__], "WIDTH", 4)
    assert with_learner(network=first).id != with_learner(network=Computing()).id


@dataclass(frozen=True)
class Holding:
    """A network with fields that are no numbers."""

    table: object

    def init(self, key, n, init):
        return init.dense(key, n, 1)

    def apply(self, params, x):
        return (x @ params["w"])[:, 0]


@pytest.mark.parametrize("tables", [({"a": 1}, {"a": 2}), (np.arange(3), np.arange(3) + 1), (math.nan, math.inf)])
def test_a_field_of_a_users_network_may_hold_anything(tables):
    first, second = (with_learner(network=Holding(table)) for table in tables)
    assert first.id != second.id
    assert first.program == with_learner(network=Holding(tables[0])).program


# --- values -----------------------------------------------------------------------------------------------------


def test_values_that_look_alike_are_told_apart():
    class Pair(tuple):
        pass

    alike = [1, 1.0, True, "1", b"1", np.float32(1), np.float64(1), np.int64(1), jnp.asarray(1.0), jnp.float32(1), 0.0,
             -0.0, math.nan, None, ..., (), [], {}, set(), frozenset(), (1,), [1], {1}, {1: 1}, {"1": 1}, {1.0: 1}, 1j,
             Pair((1,)), range(1), slice(1), np.array([1]), np.array([1.0]), np.array([[1]]), np.array([1], object),
             np.dtype("f4"), np.dtype("f8"), jax.random.key(1), jax.random.key(2), bytearray(b"1"), int, float]
    assert len({fingerprint([value]) for value in alike}) == len(alike)


def test_the_order_of_a_set_does_not_matter_and_that_of_a_dictionary_does():
    words = [f"word {i}" for i in range(100)]
    assert fingerprint(set(words)) == fingerprint({*words[50:], *words[:50]})
    assert fingerprint(dict.fromkeys(words)) != fingerprint(dict.fromkeys(reversed(words)))


def test_circles_end():
    circle: list = [1]
    circle.append({"back": circle})
    other: list = [2]
    other.append({"back": other})
    assert fingerprint(circle) != fingerprint(other)

    def even(n):
        return n == 0 or odd(n - 1)

    def odd(n):
        return n != 0 and even(n - 1)

    assert fingerprint(even) != fingerprint(odd)


def test_an_empty_cell_is_told_from_a_full_one():
    def make(full):
        def function():
            return later

        if full:
            later = 1
        return function

    assert fingerprint(make(True)) != fingerprint(make(False))


LOCK = threading.Lock()


def calling(function):
    return lambda f, y: function(f) * y


TRAVELLERS = {
    "calls jit": lambda: calling(jax.jit(lambda x: 2 * x)),
    "jit": lambda: jax.jit(lambda f, y: f * y),
    "jit of a library": lambda: jnp.tanh,
    "derivative of a library": lambda: jax.nn.relu,
    "ufunc": lambda: calling(jnp.add),
    "numpy": lambda: calling(np.sin),
    "custom_vjp": lambda: with_backward(1.0),
    "custom_jvp": lambda: with_tangent(1.0),
    "vmap": lambda: jax.vmap(calling(jnp.sin)),
    "object": hierarchy,
    "name": lambda: pl.named("mine", calling(jnp.sin)),
}


@pytest.mark.parametrize("name", TRAVELLERS)
def test_what_is_sent_to_a_worker_keeps_its_id(name):
    pytest.importorskip("cloudpickle")
    setup = with_learner(loss=TRAVELLERS[name]())
    assert luggage.unpacked(luggage.packed(setup)).id == setup.id


def test_what_cannot_be_sent_is_refused_in_one_line():
    pytest.importorskip("cloudpickle")
    with pytest.raises(InvalidInput, match="locked cannot be sent to workers: cannot pickle") as caught:
        luggage.packed(with_learner(loss=pl.named("locked", calling(LOCK))))
    assert "\n" not in str(caught.value)


# --- names that users vouch for -----------------------------------------------------------------------------------


def setup_of_names(*names):
    """Something that cannot be described in every place for a user's function, under names."""
    locked_in = [pl.named(name, functools.partial(lambda lock, *arguments: arguments[-1], LOCK)) for name in names]
    inputs, activation, law, loss, schedule, make, forward = locked_in[:7]
    networks = pl.MLP(3, activation), pl.Network(make, forward)
    return [
        pl.Setup(pl.Parity(8, 2, inputs=inputs), pl.Learner(network, law, loss, pl.SGD(schedule=schedule)))
        for network in networks
    ]


def test_a_name_stands_for_a_function_in_every_place():
    names = [f"part {i}" for i in range(7)]
    for i, setup in enumerate(setup_of_names(*names)):
        parts = [0, 1, 2, 3, 4] if i == 0 else [0, 2, 3, 4, 5, 6]
        assert setup.functions == [names[part] for part in parts]
        assert all(f'"@{names[part]}"' in setup.to_json() for part in parts)
        for part in parts:
            other = [f"other {name}" if j == part else name for j, name in enumerate(names)]
            assert setup_of_names(*other)[i].id != setup.id
        assert setup_of_names(*names)[i].id == setup.id
        with pytest.raises(InvalidInput, match="cannot be rebuilt"):
            pl.Setup.from_json(setup.to_json())


def test_networks_transformations_and_what_a_function_uses_may_have_names():
    first = with_learner(network=pl.named("net v1", Holding(LOCK)), optimiser=pl.Optax(
        1.0, transformation=pl.named("rule v1", optax.sgd(0.1))))
    assert first.functions == ["net v1", "rule v1"]
    first.check()
    lock = pl.named("lock", LOCK)
    assert fingerprint(lambda x: lock) == fingerprint(lambda x: lock)


def test_a_named_law_can_be_mirrored_and_is_not_mistaken_for_another():
    plain = with_learner(init=inits.mirrored(pl.named("bell", jax.random.normal)))
    other = with_learner(init=pl.named("mirrored bell", jax.random.normal))
    assert '"mirrored @bell"' in plain.to_json()
    assert plain.id != other.id


@pytest.mark.parametrize("name", ["", " a", "a@b", "two\nlines", "x" * 101, 3])
def test_a_name_that_cannot_be_used_is_refused(name):
    with pytest.raises(InvalidInput, match="a name must be"):
        pl.named(name, abs)


def test_what_has_a_name_is_not_named_again():
    with pytest.raises(InvalidInput, match="has a name already: 'a'"):
        pl.named("b", pl.named("a", abs))


# --- moments ----------------------------------------------------------------------------------------------------


def test_within_a_moment_everything_is_described_once():
    values = [1.0]
    function = lambda x: values  # noqa: E731
    with moment():
        before = fingerprint(function)
        values.append(2.0)
        with moment():
            assert fingerprint(function) == before
    assert fingerprint(function) != before


def test_a_setup_keeps_its_id_and_has_another_one_now():
    values = [1.0]
    setup = with_learner(loss=lambda f, y: values[0] * f * y)
    before, known = setup.id, {setup: "known"}
    values[0] = 2.0
    assert setup.id == before
    assert known[setup] == "known"
    assert setup.now().id != before
    assert BASE.now() is BASE
