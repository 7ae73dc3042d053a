"""Ways in which a number can reach a user's function, and kinds of functions that it can reach.

A way makes, of a number, a function without arguments that returns it, or something made of it. Those that read a place
outside put the number there when they are made. A kind makes a Setup of such a function.
"""

from __future__ import annotations

import builtins
import collections
import ctypes
import dataclasses
import enum
import functools
import importlib
import inspect
import itertools
import json
import math
import operator
import os
import random
import sys
import tempfile
import threading
import time
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.extend
import jax.numpy as jnp
import numpy as np
import optax

import paritylab as pl
from paritylab.setups import inits

Value = Callable[[], Any]
Way = Callable[[float], Value]

G: Any = 1.0
NUMBERS = np.ones(3)
HERE = sys.modules[__name__]
OTHER = sys.modules.setdefault("ways_other", types.ModuleType("ways_other"))
LOCAL = threading.local()
PLACE = Path(tempfile.gettempdir()) / f"paritylab-ways-{os.getpid()}.json"
RNG = np.random.default_rng(0)
COUNT = itertools.count()

WAYS: dict[str, Way] = {}
"""A change must make another id."""
IMPURE: dict[str, Value] = {}
"""These must be refused."""


def way(make: Way) -> Way:
    WAYS[make.__name__.replace("_", " ")] = make
    return make


def placed(place: Any, name: str, value: Any) -> None:
    setattr(place, name, value)


# --- captured, by default, by attribute -------------------------------------------------------------------------------

way(lambda c: lambda: c)
WAYS["captured"] = WAYS.pop("<lambda>")


@way
def default(c):
    return lambda c=c: c


@way
def keyword_default(c):
    def g(*, c=c):
        return c

    return g


@way
def partial(c):
    return functools.partial(lambda c: c, c)


@way
def partial_of_keywords(c):
    return functools.partial(lambda c: c, c=c)


@way
def partial_method(c):
    class P:
        def held(self, c):
            return c

        g = functools.partialmethod(held, c)

    return P().g


class Callable_:
    def __init__(self, c):
        self.c = c

    def __call__(self):
        return self.c

    def method(self):
        return self.c


@way
def callable_object(c):
    return Callable_(c)


@way
def bound_method(c):
    return Callable_(c).method


@way
def attribute_of_a_function(c):
    def g():
        return g.c

    g.c = c
    return g


@way
def class_attribute(c):
    class P:
        held = c

    return lambda: P.held


@way
def static_method(c):
    class P:
        @staticmethod
        def g():
            return c

    return P.g


@way
def class_method(c):
    class P:
        held = c

        @classmethod
        def g(cls):
            return cls.held

    return P.g


@way
def property_of_an_object(c):
    class P:
        @property
        def held(self):
            return c

    return lambda: P().held


@way
def inherited(c):
    class P:
        held = c

    class Q(P):
        pass

    return lambda: Q().held


@way
def metaclass(c):
    class M(type):
        def __call__(cls):
            return c

    class P(metaclass=M):
        pass

    return lambda: P()


@way
def getattr_of_an_object(c):
    class P:
        def __getattr__(self, name):
            return c

    return lambda: P().anything


@way
def descriptor(c):
    class D:
        def __get__(self, owner, kind=None):
            return c

    class P:
        held = D()

    return lambda: P().held


@way
def slots(c):
    class P:
        __slots__ = ("held",)

    made = P()
    made.held = c
    return lambda: made.held


@way
def frozen_dataclass(c):
    made = dataclasses.make_dataclass("Made", [("held", float)], frozen=True)(c)
    return lambda: made.held


# --- containers and numbers -------------------------------------------------------------------------------------------


@way
def in_a_list(c):
    held = [[c]]
    return lambda: held[0][0]


@way
def in_a_dict(c):
    held = {"a": {"b": c}}
    return lambda: held["a"]["b"]


@way
def key_of_a_dict(c):
    held = {c: "a"}
    return lambda: next(iter(held))


@way
def in_a_set(c):
    held = {c}
    return lambda: sum(held)


@way
def default_dict(c):
    held = collections.defaultdict(lambda: c)
    return lambda: held["any"]


@way
def chain_map(c):
    held = collections.ChainMap({}, {"a": c})
    return lambda: held["a"]


@way
def counter(c):
    held = collections.Counter({"a": c})
    return lambda: held["a"]


@way
def deque(c):
    held = collections.deque([c])
    return lambda: held[0]


@way
def simple_namespace(c):
    held = types.SimpleNamespace(c=c)
    return lambda: held.c


@way
def mapping_proxy(c):
    held = types.MappingProxyType({"c": c})
    return lambda: held["c"]


@way
def named_tuple_with_a_method(c):
    class T(NamedTuple):
        one: float = 1.0

        def g(self):
            return self.one * c

    return T().g


@way
def string_enum(c):
    class E(str, enum.Enum):  # noqa: UP042
        A = "a"

        def g(self):
            return c

    return E.A.g


@way
def integer_enum(c):
    held = enum.IntEnum("held", {"A": int(4 * c)})
    return lambda: held.A * 0.25


@way
def subclass_of_int(c):
    class I(int):  # noqa: E742
        def g(self):
            return self * c

    return I(1).g


@way
def subclass_of_str(c):
    class S(str):
        def g(self):
            return len(self) * c

    return S("a").g


@way
def subclass_of_list(c):
    class L(list):
        def g(self):
            return c

    return L().g


@way
def subclass_of_tuple(c):
    class T(tuple):
        def g(self):
            return c

    return T().g


@way
def subclass_of_dict(c):
    class D(dict):
        def __missing__(self, key):
            return c

    return lambda: D()["any"]


@way
def subclass_of_float(c):
    class F(float):
        def __mul__(self, other):
            return other * c

        __rmul__ = __mul__

    return lambda: F(1.0) * jnp.float32(1.0)


@way
def numpy_scalar(c):
    held = np.float32(c)
    return lambda: held


@way
def numpy_array(c):
    held = np.array([1.0, c])
    return lambda: held[1]


@way
def one_element_of_many(c):
    held = np.zeros(5000, np.float32)
    held[2500] = c
    return lambda: jnp.sum(jnp.asarray(held))


@way
def jax_array(c):
    held = jnp.array([1.0, c])
    return lambda: held[1]


@way
def array_of_objects(c):
    held = np.array([None, c], dtype=object)
    return lambda: held[1]


@way
def bytes_of_a_number(c):
    held = np.float32(c).tobytes()
    return lambda: np.frombuffer(held, np.float32)[0]


@way
def memory_view(c):
    held = memoryview(np.array([c], np.float32))
    return lambda: held[0]


@way
def ctypes_number(c):
    held = ctypes.c_double(c)
    return lambda: held.value


@way
def text_of_a_number(c):
    held = f"{c}"
    return lambda: float(held)


@way
def mutable_cell(c):
    held = [0.0]

    def g():
        return held[0]

    held[0] = c
    return g


# --- globals, modules, frames -----------------------------------------------------------------------------------------


@way
def module_global(c):
    placed(HERE, "G", c)
    return lambda: G


@way
def array_that_is_a_global(c):
    NUMBERS[1] = c
    return lambda: NUMBERS[1]


@way
def function_that_reads_a_global(c):
    placed(HERE, "G", c)
    return lambda: _read()


def _read():
    return G


@way
def sys_modules(c):
    placed(OTHER, "C", c)
    return lambda: sys.modules["ways_other"].C


@way
def import_module(c):
    placed(OTHER, "C", c)
    return lambda: importlib.import_module("ways_other").C


@way
def import_within(c):
    placed(OTHER, "C", c)

    def g():
        import ways_other  # type: ignore[import-not-found]

        return ways_other.C

    return g


@way
def import_by_builtin(c):
    placed(OTHER, "C", c)
    return lambda: __import__("ways_other").C


@way
def vars_of_a_module(c):
    placed(OTHER, "C", c)
    return lambda: vars(OTHER)["C"]


@way
def dict_of_a_module(c):
    placed(OTHER, "C", c)
    return lambda: OTHER.__dict__["C"]


@way
def attribute_getter(c):
    placed(OTHER, "C", c)
    get = operator.attrgetter("C")
    return lambda: get(OTHER)


@way
def getattr_by_a_made_name(c):
    placed(OTHER, "C", c)
    return lambda: getattr(OTHER, "cC"[1])


@way
def globals_of_a_function(c):
    placed(HERE, "G", c)
    return lambda: _read.__globals__["G"]


@way
def builtin_globals(c):
    placed(HERE, "G", c)
    return lambda: builtins.globals()["G"]


@way
def frame(c):
    placed(HERE, "G", c)
    return lambda: sys._getframe().f_globals["G"]


@way
def current_frame(c):
    placed(HERE, "G", c)
    return lambda: inspect.currentframe().f_globals["G"]  # type: ignore[union-attr]


@way
def evaluated(c):
    placed(HERE, "G", c)
    return lambda: eval("G")


@way
def executed(c):
    names: dict[str, Any] = {}
    exec(f"def g(): return {c}", names)
    return names["g"]


@way
def annotations(c):
    def g():
        return g.__annotations__["return"]

    g.__annotations__["return"] = c
    return g


@way
def documentation(c):
    def g():
        return float(g.__doc__ or 0)

    g.__doc__ = str(c)
    return g


@way
def code_replaced(c):
    def g():
        return 0.0

    g.__code__ = compile(f"lambda: {c}", "", "eval").co_consts[0]
    return g


@way
def defaults_replaced(c):
    def g(c=0.0):
        return c

    g.__defaults__ = (c,)
    return g


@way
def context_variable(c):
    import contextvars

    held = contextvars.ContextVar("held", default=c)
    return held.get


@way
def thread_local(c):
    placed(LOCAL, "c", c)
    return lambda: LOCAL.c


@way
def environment_variable(c):
    os.environ["PARITYLAB_WAYS"] = str(c)
    return lambda: float(os.environ["PARITYLAB_WAYS"])


@way
def file(c):
    PLACE.write_text(json.dumps(c))
    return lambda: json.loads(PLACE.read_text())


@way
def monkeypatched_library(c):
    placed(math, "ways_constant", c)
    return lambda: math.ways_constant  # type: ignore[attr-defined]


@way
def memoised(c):
    @functools.lru_cache
    def held():
        return c

    return lambda: held()


@way
def generator_that_starts_anew(c):
    return lambda: next(x for x in (c,))


@way
def wrapped(c):
    @functools.wraps(_read)
    def g():
        return c

    return g


@way
def single_dispatch(c):
    @functools.singledispatch
    def held(x):
        return 0.0

    held.register(int, lambda x: c)
    return lambda: held(1)


@way
def numpy_function_of_python(c):
    held = np.frompyfunc(lambda x: x * c, 1, 1)
    return lambda: float(held(1.0))


@way
def vectorised_by_numpy(c):
    held = np.vectorize(lambda x: x * c)
    return lambda: held(1.0)


# --- by JAX -----------------------------------------------------------------------------------------------------------


@way
def jitted(c):
    return jax.jit(lambda: jnp.float32(c))


@way
def jitted_helper_that_reads_a_global(c):
    placed(HERE, "G", c)
    return lambda: _jitted(1.0)


@jax.jit
def _jitted(x):
    return x * G


@way
def static_argument(c):
    held = jax.jit(lambda x, c: x * c, static_argnums=1)
    return lambda: held(1.0, c)


@way
def checkpointed(c):
    held = jax.checkpoint(lambda x: x * c)
    return lambda: held(jnp.float32(1.0))


@way
def scanned(c):
    return lambda: jax.lax.scan(lambda s, _: (s * c, None), jnp.float32(1.0), None, length=3)[0]


@way
def looped(c):
    return lambda: jax.lax.fori_loop(0, 3, lambda i, s: s * c, jnp.float32(1.0))


@way
def branched(c):
    return lambda: jax.lax.cond(jnp.float32(1.0) > 0, lambda: jnp.float32(c), lambda: jnp.float32(0.0))


@way
def mapped(c):
    return lambda: jnp.sum(jax.vmap(lambda x: x * c)(jnp.ones(3)))


@way
def derived(c):
    return lambda: jax.grad(lambda x: x * c)(1.0)


@way
def rule_forward(c):
    held = jax.custom_jvp(lambda x: x)
    held.defjvp(lambda primals, tangents: (held(*primals), tangents[0] * c))
    return lambda: jax.grad(held)(1.0)


@way
def rule_backward(c):
    held = jax.custom_vjp(lambda x: x)
    held.defvjp(lambda x: (x, None), lambda _, g: (g * c,))
    return lambda: jax.grad(held)(1.0)


@way
def drawn_from_a_key(c):
    return lambda: jax.random.uniform(jax.random.key(int(4 * c)))


@way
def drawn_from_an_old_key(c):
    return lambda: jax.random.uniform(jax.random.PRNGKey(int(4 * c)))


@way
def pytree_node(c):
    held = jax.tree_util.Partial(lambda c: c, c)
    return lambda: held()


# --- impure -----------------------------------------------------------------------------------------------------------

IMPURE |= {
    "numpy's global random state": lambda: np.random.random(),  # noqa: NPY002
    "a generator of numpy": lambda: RNG.random(),
    "python's random": lambda: random.random(),
    "the time": lambda: time.perf_counter(),
    "a counter": lambda: float(next(COUNT)),
    "the identity of a new object": lambda: float(id([]) % 1009 + next(COUNT)),
    "system randomness": lambda: os.urandom(4)[0] / 256 + next(COUNT),
    "a pure callback": lambda: jax.pure_callback(lambda: np.float32(G), jax.ShapeDtypeStruct((), np.float32)),
    "an io callback": lambda: jax.experimental.io_callback(lambda: np.float32(G), jax.ShapeDtypeStruct((), np.float32)),
    "a debug callback": lambda: _debugged(),
    "an operation of one's own": lambda: OPERATION.bind(),
    "compiled code": lambda: jax.ffi.ffi_call("any", jax.ShapeDtypeStruct((), jnp.float32))(),
}

OPERATION = jax.extend.core.Primitive("doubled")
OPERATION.def_abstract_eval(lambda: jax.core.ShapedArray((), np.dtype(np.float32)))


def _debugged():
    jax.debug.callback(lambda: None)
    return 1.0


# --- kinds of functions -----------------------------------------------------------------------------------------------

PROTOCOL = pl.Protocol(max_steps=4, eval_every=2, eval_size=16)
SMALL = pl.MLP(2)


def setup(problem: Any = None, **learner: Any) -> pl.Setup:
    return pl.Setup(problem or pl.Parity(4, 2), pl.Learner(**{"network": SMALL, "batch": 4} | learner), PROTOCOL)


def times(g: Value, x: Any) -> Any:
    return x * jnp.asarray(g(), jnp.float32)


class Linear:
    """A user's class of network."""

    def __init__(self, g: Value) -> None:
        self.g = g

    def init(self, key: Any, n: int, init: Any) -> Any:
        return init.dense(key, n, 1)

    def apply(self, params: Any, x: Any) -> Any:
        return times(self.g, x @ params["w"])[:, 0]


class Scheduled(pl.SGD):
    """A user's class of optimiser, with a schedule of theirs."""


class Descent(pl.SGD):
    """A user's class of optimiser."""

    def __init__(self, g: Value) -> None:
        super().__init__(0.1)
        object.__setattr__(self, "g", g)

    def move(self, gradient: Any, state: Any, params: Any, lr: Any, step: Any, **seen: Any) -> Any:
        return jax.tree.map(lambda p, d: p - times(self.g, d), params, gradient), state  # type: ignore[attr-defined]


def moved(g: Value) -> optax.GradientTransformation:
    """Updates scaled by the number."""
    return optax.GradientTransformation(lambda params: (), lambda u, state, params=None: (
        jax.tree.map(lambda d: -times(g, d), u), state))


def started(g: Value) -> optax.GradientTransformation:
    """A state that starts at the number."""
    return optax.GradientTransformation(lambda params: times(g, jnp.ones(())), lambda u, state, params=None: (
        jax.tree.map(lambda d: -state * d, u), state))


def loss_of_a_global(f: Any, y: Any) -> Any:
    return G * (f - y) ** 2


KINDS: dict[str, Callable[[Value], pl.Setup]] = {
    "forward": lambda g: setup(network=pl.Network(lambda key, n: jax.random.normal(key, (n,)),
                                                  lambda params, x: times(g, x @ params))),
    "make": lambda g: setup(network=pl.Network(lambda key, n: times(g, jax.random.normal(key, (n,))),
                                               lambda params, x: x @ params)),
    "network class": lambda g: setup(network=Linear(g)),
    "init": lambda g: setup(init=lambda key, shape: times(g, jax.random.normal(key, shape))),
    "scale": lambda g: setup(init=inits.custom(jax.random.normal, scale=lambda fan_in, fan_out: times(g, 1.0))),
    "loss": lambda g: setup(loss=lambda f, y: (times(g, f) - y) ** 2),
    "activation": lambda g: setup(network=pl.MLP(2, lambda z: jnp.maximum(times(g, z), 0.0))),
    "schedule": lambda g: setup(optimiser=pl.SGD(0.1, schedule=lambda t: times(g, 1.0))),
    "inputs": lambda g: setup(pl.Parity(4, 2, inputs=lambda key, count, n: (
        times(g, jax.random.normal(key, (count, n)))))),
    "target": lambda g: setup(pl.Problem(4, lambda x: times(g, x[:, 0]))),
    "optax": lambda g: setup(optimiser=pl.Optax(0.1, transformation=moved(g))),
    "optax start": lambda g: setup(optimiser=pl.Optax(0.1, transformation=started(g))),
    "optimiser class": lambda g: setup(optimiser=Descent(g)),
    "its schedule": lambda g: setup(optimiser=Scheduled(0.1, schedule=lambda t: times(g, 1.0))),
}


def identified(kind: str, make: Way, c: float) -> str:
    """The id of a Setup with the number c, or why it is refused."""
    try:
        return KINDS[kind](make(c)).id
    except pl.InvalidInput as error:
        return f"refused: {error}"


def spread(kinds: tuple[str, ...] = tuple(KINDS)) -> list[tuple[str, str]]:
    """Every way with one kind of function, in turn, and every kind with one way."""
    turns = [(name, kinds[i % len(kinds)]) for i, name in enumerate(WAYS)]
    return turns + [("captured", kind) for kind in kinds if ("captured", kind) not in turns]


if __name__ == "__main__":  # the ids of all, in another process or with another version of JAX
    print(json.dumps({f"{name}, {kind}": identified(kind, WAYS[name], 0.5) for name, kind in spread()}))
