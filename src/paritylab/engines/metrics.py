"""Metrics of the user's own along training curves."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np

from paritylab.engines.evaluation import Evaluation
from paritylab.errors import require
from paritylab.functions.signatures import asked
from paritylab.functions.traced import Traced
from paritylab.later import jax, jnp
from paritylab.setups.setup import Setup

Metric = Callable[..., Any]


def checked(given: Mapping[str, Metric] | None) -> dict[str, Metric]:
    """The metrics that a user gave, by name."""
    require(given is None or isinstance(given, Mapping), f"metrics must be functions by their names, not {given!r}")
    for name, function in (given or {}).items():
        require(isinstance(name, str) and callable(function),
                f"metrics must be functions by their names, not {name!r}: {function!r}")
    return {name: Traced(function, f"metric {name!r}") for name, function in (given or {}).items()}


def shapes(metrics: Mapping[str, Metric], setup: Setup) -> dict[str, Any]:
    """The shape and kind of each metric for one run; InvalidInput names one that fails."""
    evaluation, params = Evaluation(setup, 1), jax.eval_shape(setup.params, jax.random.key(0))
    found = {}
    for name, function in metrics.items():
        of_one = functools.partial(jax.eval_shape, lambda p, f=function: _of(f, evaluation, _run(setup, p)))
        made = of_one(params)
        numbers = isinstance(made, jax.ShapeDtypeStruct) and not jnp.issubdtype(made.dtype, jax.dtypes.extended)
        require(numbers, f"metric {name!r} must return one array of numbers, not a {type(made).__name__}")
        found[name] = jax.ShapeDtypeStruct(made.shape, np.result_type(made.dtype, np.float32))  # a kind with NaN
    return found


def measuring(metrics: Mapping[str, Metric], program: Setup, slots: int) -> Callable[[Any], dict[str, Any]]:
    """The compiled function from slots to the metrics of each.

    Metrics of inputs go from slot to slot: the evaluation samples of all at once would be large.
    """
    evaluation = Evaluation(program, slots)

    def all_of(state: Any) -> dict[str, Any]:
        return {name: _over(state, function, evaluation) for name, function in metrics.items()}

    return jax.jit(all_of) if metrics else lambda state: {}


def _over(slots: Any, metric: Metric, evaluation: Evaluation) -> Any:
    of_one = functools.partial(_of, metric, evaluation)
    return jax.lax.map(of_one, slots) if _sees(metric) else jax.vmap(of_one)(slots)


def _sees(metric: Metric) -> tuple[str, ...]:
    return asked(metric, 1, ("x", "y"))


def _of(metric: Metric, evaluation: Evaluation, slot: Any) -> Any:
    """A metric of one run; what it asks for of the evaluation sample it is given."""
    if not (names := _sees(metric)):
        return metric(slot.params)
    x, y = evaluation.inputs(slot)
    return metric(slot.params, **{name: {"x": x, "y": y}[name] for name in names})


def _run(setup: Setup, params: Any) -> Any:
    """A run with these params, for shapes."""
    return SimpleNamespace(params=params, key=np.zeros(2, np.uint32), step=0, mask=setup.problem.mask)
