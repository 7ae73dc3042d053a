"""Optax chains, closures, class hierarchies and partials grown from recipes: plain JSON values, so that another process
can grow the same ones."""

from __future__ import annotations

import functools
import json
from typing import Any

import numpy as np
import optax

import paritylab as pl

SCHEDULES = {
    "constant": optax.constant_schedule,
    "linear": optax.linear_schedule,
    "cosine": optax.cosine_decay_schedule,
    "warmup": lambda start, peak, steps, more: optax.warmup_cosine_decay_schedule(start, peak, steps, steps + more),
    "joined": lambda first, second, at: optax.join_schedules([schedule(first), schedule(second)], [at]),
}
RULES = {
    "sgd": lambda rate: optax.sgd(schedule(rate)),
    "adam": lambda rate, b1: optax.adam(schedule(rate), b1=b1),
    "adamw": lambda rate, decay: optax.adamw(schedule(rate), weight_decay=decay),
    "clip": optax.clip,
    "scale": optax.scale,
    "finite": lambda rule, errors: optax.apply_if_finite(transformation(rule), errors),
    "masked": lambda rule, where: optax.masked(transformation(rule), {"w": where > 0.5}),
    "chain": lambda *rules: optax.chain(*map(transformation, rules)),
}


def schedule(recipe: Any) -> Any:
    return recipe if isinstance(recipe, float) else SCHEDULES[recipe[0]](*recipe[1:])


def transformation(recipe: Any) -> Any:
    return RULES[recipe[0]](*recipe[1:])


def value(recipe: Any) -> Any:
    """Something to be captured; lists stand for containers of some kind."""
    if not isinstance(recipe, list):
        return recipe
    kind, *items = recipe
    found = [value(item) for item in items]
    return {"list": lambda: found, "tuple": lambda: tuple(found), "dict": lambda: dict(enumerate(found)),
            "array": lambda: np.array(found, object), "set": lambda: {json.dumps(pair) for pair in enumerate(items)},
            "function": lambda: closure(["closure", ["list", *items]])}[kind]()


def closure(recipe: Any) -> Any:
    captured = [value(each) for each in recipe[1:]]

    def function(x: Any, *, scale: Any = captured[-1]) -> Any:
        def inner() -> Any:
            return captured

        return inner(), x, scale

    return function


def with_default(default: Any) -> Any:
    def function(self: Any, first: Any = None, second: Any = default) -> Any:
        return first, second

    return function


def partial(recipe: Any) -> Any:
    first, second, named = (value(each) for each in recipe[1:4])
    return functools.partial(functools.partial(closure(["closure", 0]), first, second), named=named)


def hierarchy(recipe: Any) -> Any:
    """An object of the last of several classes, each with a constant, a method, a property and a slot of its own."""
    base: type = object
    for i, (constant, method, getter, _) in enumerate(recipe[1:]):
        body = {
            "__slots__": (f"slot{i}",),
            f"constant{i}": value(constant),
            f"method{i}": with_default(value(method)),
            f"property{i}": property(closure(["closure", getter])),
        }
        base = type(f"Level{i}", (base,), body)
    made = type("Last", (base,), {})()
    for i, (*_, slot) in enumerate(recipe[1:]):
        setattr(made, f"slot{i}", value(slot))
        setattr(made, f"attribute{i}", value(slot))
    return made


KINDS = {"rule": transformation, "closure": closure, "partial": partial, "hierarchy": hierarchy}


def grown(kind: str, recipe: Any) -> Any:
    return KINDS[kind](recipe)


def setup_id(kind: str, recipe: Any) -> str:
    """The id of a Setup with what was grown in a place for a user's function."""
    made = grown(kind, recipe)
    if kind == "rule":
        return pl.Setup(pl.Parity(8, 2), pl.Learner(optimiser=pl.Optax(1.0, transformation=made))).id
    return pl.Setup(pl.Parity(8, 2, inputs=lambda key, count, n: made)).id
