"""Faults of a user's functions: they raise, or return wrong shapes, wrong types, NaN or no arrays at all."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from faults.bench import Bench, Outcome, differing

import paritylab as pl
from paritylab.errors import CellFailed, InvalidInput
from paritylab.storage.records import SOLVED
from paritylab.storage.store import Store

PROBLEM, PROTOCOL = pl.Parity(6, 2), pl.Protocol(20, eval_size=16)
MLP = pl.MLP(4)

Function = Callable[..., Any]


def with_learner(**parts: Any) -> pl.Setup:
    return pl.Setup(PROBLEM, pl.Learner(**{"network": MLP, "batch": 8, **parts}), PROTOCOL)


def make(key: Any, n: int) -> Any:
    return jax.random.normal(key, (n,))


def forward(params: Any, x: Any) -> Any:
    return x @ params


def squared(f: Any, y: Any) -> Any:
    return (f - y) ** 2


def inputs(key: Any, count: int, n: int) -> Any:
    return jax.random.normal(key, (count, n))


def sampler(key: Any, shape: tuple[int, ...]) -> Any:
    return jax.random.normal(key, shape)


# Where a function of the user's own may stand: one that works, and the Setup with it.
PLACES: dict[str, tuple[Function, Callable[[Function], pl.Setup]]] = {
    "make": (make, lambda f: with_learner(network=pl.Network(f, forward))),
    "forward": (forward, lambda f: with_learner(network=pl.Network(make, f))),
    "loss": (squared, lambda f: with_learner(loss=f)),
    "activation": (lambda z: z * (z > 0), lambda f: with_learner(network=pl.MLP(4, f))),
    "init": (sampler, lambda f: with_learner(init=f)),
    "inputs": (inputs, lambda f: pl.Setup(pl.Parity(6, 2, inputs=f), pl.Learner(MLP, batch=8), PROTOCOL)),
    "schedule": (lambda t: 1 / (1 + t), lambda f: with_learner(optimiser=pl.SGD(schedule=f))),
}

# What may be wrong with it, as a function of the one that works.
MISTAKES: dict[str, Callable[[Function], Function]] = {
    "raises": lambda right: lambda *given: [][1],
    "takes other arguments": lambda right: lambda: 0,
    "decides by a value": lambda right: lambda *given: right(*given) if jnp.sum(right(*given)) > 0 else 0,
    "has a wrong shape": lambda right: lambda *given: jnp.zeros((3, 1, 2)),
    "has complex numbers": lambda right: lambda *given: right(*given) + 1j,
    "has whole numbers": lambda right: lambda *given: jnp.asarray(right(*given)).astype(int),
    "is a truth value": lambda right: lambda *given: jnp.asarray(right(*given)) > 0,
    "is text": lambda right: lambda *given: "half",
    "is nothing": lambda right: lambda *given: None,
    "is a list": lambda right: lambda *given: [right(*given), "and more"],
    "fails at run time": lambda right: lambda *given: jax.pure_callback(
        _refuse, jax.ShapeDtypeStruct(np.shape(right(*given)), jnp.float32), vmap_method="sequential"),
}


def _refuse(*_: Any) -> Any:
    raise RuntimeError("a function of mine gave up")


ACCEPTED = {(place, "has whole numbers") for place in ("init", "inputs", "schedule")}  # not differentiated
LATE = "fails at run time"  # the only mistake that costs a compilation
RUNS = 20


def named(place: str, mistake: str) -> Function:
    """The function for a place with a mistake, by a name that says both."""
    function = MISTAKES[mistake](PLACES[place][0])
    function.__name__ = function.__qualname__ = f"my_{place}_that_{mistake.replace(' ', '_')}"
    return function


@functools.cache
def neighbours() -> list[pl.Result]:
    """The cells beside one that fails, in a sweep of their own."""
    return pl.sweep([with_learner(optimiser=pl.SGD(lr)) for lr in (0.1, 0.3)], RUNS)


def beside_neighbours(setup: pl.Setup, folder: Path, outcome: Outcome) -> tuple[pl.Result, list[str]]:
    """The result of a cell in a sweep with others, which must not mind, and what was said of it."""
    before, after = neighbours()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        first, mine, last = pl.sweep([before.setup, setup, after.setup], RUNS, store=Store(folder / "store"))
    for result, expected in ((first, before), (last, after)):
        outcome.records += len(result.records)
        outcome.lost += len(expected.records) - len(result.records)
        outcome.different += differing(result.records, expected.records)
    return mine, [str(each.message) for each in caught if each.category is CellFailed]


def failing(place: str, mistake: str, folder: Path) -> Outcome:
    """A cell with a function that is wrong: it is named in one line, and the other cells of the sweep go on."""
    outcome = Outcome(faults=1)
    function = named(place, mistake)
    setup = PLACES[place][1](function)
    result, said = beside_neighbours(setup, folder, outcome)
    failure = result.failure or "nothing"
    outcome.expect(function.__name__ in failure and "\n" not in failure, f"{function.__name__}: {failure}")
    outcome.expect(said == [failure] and len(result.records) == 0, f"{function.__name__}: {said}")
    try:
        pl.sweep([setup], RUNS)
        outcome.expect(False, f"{function.__name__} was let through")
    except InvalidInput as error:
        outcome.expect(str(error) == failure, str(error))
    return outcome


def failing_function(moments: Random, folder: Path, bench: Bench) -> Outcome:
    """One of all functions and mistakes."""
    return failing(*moments.choice(sorted({(p, m) for p in PLACES for m in MISTAKES} - ACCEPTED)), folder)


def not_a_number(place: str, folder: Path) -> Outcome:
    """A function that returns NaN: nobody can know beforehand, but its runs are not solved, and the others go on."""
    outcome = Outcome(faults=1)
    right, build = PLACES[place]
    result, said = beside_neighbours(build(lambda *given: right(*given) * jnp.nan), folder, outcome)
    outcome.expect(result.failure is None and not said, f"{place}: {said}")
    outcome.expect(len(result.records) == RUNS and not (result.records.status == SOLVED).any(), f"{place}: {result}")
    return outcome


def function_of_nan(moments: Random, folder: Path, bench: Bench) -> Outcome:
    """The same for one of all functions."""
    return not_a_number(moments.choice(sorted(PLACES)), folder)
