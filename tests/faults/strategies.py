"""What the fuzz tests draw: descriptions of Setups and whole command lines, sensible, degenerate and hostile."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import strategies as st

import paritylab as pl

HOSTILE = st.sampled_from([
    0, 1, -1, -0.0, 0.5, 1.5, 2.0, 7, 2**20, 2**20 + 1, 2**31 - 1, 2**31, 2**63, 10**30, 10**400, math.nan, math.inf,
    -math.inf, 5e-324, 1e-300, 1e39, 1e300, None, True, False, "", "3", "relu", "nan", "a\nb", "\u00e9\U0001f4a5", b"3",
    (), [], {}, (1, 2), [0, 0], [[1]], [math.nan], ["a"], {"a": 1}, {1}, range(3), 1j, Fraction(1, 3), object, len,
    np.int64(3), np.float32(0.1), np.float64("nan"), np.array(2), np.array([1, 2]), np.arange(99).reshape(3, 33),
])
ODD_SPECS = [
    "", ":", "relu:", "relu:1", "rellu", "RELU", " relu", "relu ", "zigzag", "zigzag:0", "zigzag:-1", "zigzag:1.5",
    "zigzag:1e9", "zigzag:nan", "power:1e6", "power:" + "9" * 400, "oscillating:13", "clipped-relu:0",
    "clipped-relu:1e-300", "sinusoid:1,2,3", "sinusoid:1e30,1e30", "tourch", "perturbed-rademacher:-1",
    "perturbed-rademacher:1e6", "sparse-rademacher:1", "sparse-rademacher:0.9999999999999999", "discrete:0",
    "discrete:1,1", "discrete:1e-300", "discrete:1e-30", "sphere:0", "sphere:1e300", "sphere:1e30", "mean-field:1,2",
    "mirrored mirrored torch", "mirrored fixed:1 torch", "fixed:-1 torch", "fixed:4294967296 torch", "fixed: torch",
    "fixed:1", "fixed:\u00b2 torch", "fixed:1 fixed:2 torch", "released", "released torch", "released released torch",
    "hinge:-1", "hinge:1e300", "hinge:1e30", "logistic:0", "logistic:1e-300", "huber", "linear:0", "linear:1e-300",
    "linear:1e30", "cosine:inf", "steps:1", "steps:1,2,3", "steps:5,1,5,1", "steps:1e10,1", "steps:1.5,1",
    "steps:-1,1", "steps:1,1e30", "a\nb", "\U0001f4a5",
]

few = st.integers(1, 6)
factor = st.floats(0.01, 10)
ACTIVATIONS = st.one_of(
    st.sampled_from(["relu", "relu6", "clipped-relu", "clipped-relu:2", "gelu", "tanh", "sinusoid:3,0.5"]),
    st.builds("{}:{}".format, st.sampled_from(["power", "zigzag", "infinite-zigzag", "oscillating", "sinusoid"]), few),
)
INITS = st.builds(str.__add__, st.sampled_from(["", "", "", "mirrored ", "released ", "fixed:3 "]), st.sampled_from([
    "torch", "xavier", "kaiming", "sign", "uniform", "rademacher", "gaussian", "perturbed-rademacher:0.1",
    "uniform-perturbed:0.5", "sparse-rademacher:0.5", "discrete:-2,-1,1,2", "sphere", "sphere:2", "mean-field",
    "mean-field:0.5,0.3",
]))
LOSSES = st.sampled_from(["hinge", "hinge:0", "hinge:2", "square", "logistic", "logistic:2", "correlation", "l1"])
SCHEDULES = st.sampled_from(
    ["constant"] * 4 + ["linear:9", "cosine:5", "inverse-sqrt:3", "steps:3,0.5", "steps:0,0,5,2"])
rates = st.one_of(st.none(), st.none(), st.lists(factor, min_size=1, max_size=3), st.just({"a": 1, "b": 2}))
COMMON = {"lr": st.sampled_from([0, 1e-6, 0.1, 1, 10, 1e6, 1e30]), "schedule": SCHEDULES, "rates": rates,
          "noise": st.sampled_from([0, 0, 0.1, 1e6])}
SIZE = {"n": st.sampled_from([1, 2, 5, 6, 12, 31, 32, 33, 64, 70]), "k": st.sampled_from([0, 1, 2, 2, 3, 5])}
NOISY = {"noise": st.sampled_from([0, 0.1, 0.5, 1])}
POSITIONS = st.lists(st.integers(0, 4), max_size=3, unique=True)
FINITE = {"sample": st.sampled_from([1, 7, 100])}
TERMS = st.lists(st.tuples(st.floats(-2, 2), POSITIONS), min_size=1, max_size=3)
Fields = dict[str, Any]
PROBLEMS: list[tuple[Any, Fields, Fields]] = [
    (pl.Parity, SIZE, {**NOISY, **FINITE}),
    (pl.Parity, {"n": SIZE["n"], "support": POSITIONS}, NOISY),
    (pl.Parity, {**SIZE, **FINITE, "replacement": st.booleans()}, NOISY),
    (pl.LeakyParity, SIZE, {**NOISY, **FINITE, "leak": st.sampled_from([0, 0.5, 1])}),
    (pl.Polynomial, {"n": SIZE["n"], "terms": TERMS}, {**NOISY, **FINITE, "support": POSITIONS}),
]
NETWORKS: list[tuple[Any, Fields, Fields]] = [
    (pl.MLP, {}, {"width": st.one_of(few, few, st.just(16), st.lists(few, min_size=1, max_size=3)),
                  "activation": ACTIVATIONS, "output_bias": st.booleans(), "bias": st.booleans()}),
    (pl.Neuron, {}, {"activation": ACTIVATIONS}),
    (pl.PolyNet, {"degree": few}, {}),
    (pl.DisjointPolyNet, {"degree": st.sampled_from([1, 2, 3])}, {}),
    (pl.Transformer, {"d_emb": few, "d_attn": few, "heads": few}, {"d_mlp": few}),
]
OPTIMISERS: list[tuple[Any, Fields, Fields]] = [
    (pl.SGD, {}, {**COMMON, "weight_decay": st.sampled_from([0, 0, 0.1, 1e6]),
                  "decay_form": st.sampled_from(["coupled", "plain"])}),
    (pl.Adam, {}, {**COMMON, "b1": st.sampled_from([0, 0.9]), "b2": st.sampled_from([0, 0.999]),
                   "eps": st.sampled_from([0, 1e-8, 1])}),
    (pl.SignSGD, {}, COMMON),
]
LEARNER = {"init": INITS, "loss": LOSSES, "batch": st.sampled_from([1, 2, 8, 32, 33])}
PROTOCOL = {"max_steps": st.sampled_from([1, 2, 7, 20, 10**5]), "eval_every": st.sampled_from([1, 3, 10, 100]),
            "eval_size": st.sampled_from([1, 31, 64, 100, 1000]), "threshold": st.sampled_from([0.01, 0.5, 0.99, 1]),
            "consecutive": few, "fresh": st.booleans()}


@dataclass(frozen=True)
class Part:
    """A call that may fail: a class and its arguments, some of them Parts themselves."""

    make: Callable[..., Any]
    arguments: dict[str, Any] = field(default_factory=dict)

    def build(self) -> Any:
        given = {name: value.build() if isinstance(value, Part) else value for name, value in self.arguments.items()}
        return self.make(**given)


@st.composite
def parts(draw: Any, make: Any, always: Fields, sometimes: Fields, spoilt: Any) -> Part:
    """A class with some of its fields, the others left to their defaults; where ``spoilt``, one is hostile."""
    fields = {**always, **{name: drawn for name, drawn in sometimes.items() if draw(st.booleans())}}
    arguments = {name: draw(drawn) for name, drawn in fields.items()}
    if draw(spoilt):
        arguments[draw(st.sampled_from([*always, *sometimes]))] = draw(st.one_of(HOSTILE, st.sampled_from(ODD_SPECS)))
    return Part(make, arguments)


@st.composite
def setups(draw: Any) -> Part:
    """A Setup as Parts, in two of three cases with nothing hostile in any place."""
    spoilt = st.sampled_from([False, False, True]) if draw(st.integers(0, 2)) == 2 else st.just(False)

    def one(table: list[tuple[Any, Fields, Fields]]) -> Part:
        return draw(parts(*draw(st.sampled_from(table)), spoilt))

    learner = draw(parts(pl.Learner, {}, LEARNER, spoilt))
    learner.arguments.update(network=one(NETWORKS), optimiser=one(OPTIMISERS))
    protocol = draw(parts(pl.Protocol, {}, PROTOCOL, spoilt))
    made = Part(pl.Setup, {"problem": one(PROBLEMS), "learner": learner, "protocol": protocol})
    if draw(spoilt) and draw(st.booleans()):
        where = draw(st.sampled_from([made, learner]))
        where.arguments[draw(st.sampled_from(sorted(where.arguments)))] = draw(HOSTILE)
    return made
