"""Learning-rate schedules: a factor for each step, by spec or as any function of the step (counted from 0)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from paritylab.errors import positive, require, whole
from paritylab.functions.named import written
from paritylab.later import jax, jnp
from paritylab.setups import specs
from paritylab.setups.genuine import Specified, accepted, builtin

Function = Callable[[Any], Any]
ScheduleLike = Any
"""A spec, a Schedule or a function of the user's own; a Schedule once its owner is made."""


BLOCK = 2**16
"""Steps whose factors an engine is handed at a time: a run may have 2^31 steps, and be solved at the tenth."""


@dataclass(frozen=True, eq=False)
class Schedule(Specified):
    """The factor on the learning rate at step t, with the name it goes by in files."""

    spec: str
    function: Function = field(compare=False, repr=False)

    def __call__(self, step: Any) -> Any:
        return self.function(step)

    def block(self, number: int) -> np.ndarray:
        """The factors at the steps of one block, of :data:`BLOCK` steps each, in single precision.

        >>> schedule("steps:65537,0.5").block(1)[:3]
        array([1. , 0.5, 0.5], dtype=float32)
        """
        steps = np.arange(number * BLOCK, (number + 1) * BLOCK)
        return np.asarray(jax.vmap(self.function)(steps), np.float32)

    @property
    def constant(self) -> bool:
        return self.spec == "constant"


ARITIES = {"constant": (0, 0), "linear": (1, 1), "cosine": (1, 1), "inverse-sqrt": (1, 1), "steps": (2, 999),
           "warmup": (1, 1), "warmup-linear": (2, 2), "warmup-cosine": (2, 2)}


def schedule(given: str | Schedule | Function) -> Schedule:
    """The schedule a user means.

    ``constant``; ``linear:T`` and ``cosine:T`` fall from 1 to 0 over T steps and stay there; ``inverse-sqrt:T`` is
    1 / sqrt(1 + t/T); ``steps:t1,f1,t2,f2,...`` is 1 before t1, f1 from t1 on, f2 from t2 on, and so forth.
    ``warmup:W`` rises from 1/W to 1 over the first W steps and stays; ``warmup-linear:W,T`` and ``warmup-cosine:W,T``
    fall from there to 0 at step T.

    >>> [float(schedule("steps:10,0.5")(t)) for t in (9, 10)]
    [1.0, 0.5]
    """
    if isinstance(given, Schedule) and type(given) is Schedule:
        return accepted("schedule", given, lambda: schedule(given.function))
    if not isinstance(given, str):
        require(callable(given), f"a schedule must be a spec or a function, not {given!r}")
        return Schedule(written(given), given)
    return builtin(_named(given))


def _named(given: str) -> Schedule:
    name, numbers = specs.parse("schedule", given, ARITIES)
    spec = specs.render(name, numbers)
    if name == "constant":
        return Schedule(spec, lambda t: jnp.ones_like(jnp.asarray(t, jnp.float32)))
    if name == "steps":
        require(len(numbers) % 2 == 0, f"schedule {spec!r}: give pairs of a step and a factor")
        starts, factors = numbers[::2], numbers[1::2]
        require(list(starts) == sorted(set(starts)), f"schedule {spec!r}: the steps must increase")
        steps = [whole("a step of a schedule", start) for start in starts]
        require(min(steps) >= 0 and max(steps) < 2**31, f"schedule {spec!r}: steps must be from 0 to 2^31 - 1")
        table = jnp.asarray((1.0, *factors), jnp.float32)
        return Schedule(spec, lambda t: table[jnp.searchsorted(jnp.asarray(steps, jnp.int32), t, side="right")])
    if name.startswith("warmup"):
        return Schedule(spec, _warmed(spec, name.removeprefix("warmup").removeprefix("-"), *numbers))
    length = numbers[0]
    positive(f"schedule {spec!r}: the number of steps", length)
    if name == "inverse-sqrt":
        return Schedule(spec, lambda t: 1 / jnp.sqrt(1 + t / length))
    fall = FALLS[name]
    return Schedule(spec, lambda t: fall(jnp.minimum(t / length, 1.0)))


FALLS: dict[str, Function] = {
    "": lambda t: jnp.ones_like(t),
    "linear": lambda part: 1 - part,
    "cosine": lambda part: 0.5 * (1 + jnp.cos(math.pi * part)),
}
"""What is left of a rate after this part of its fall."""


def _warmed(spec: str, fall: str, rise: float, end: float = math.inf) -> Function:
    """A rise over so many steps, and then a fall until the end."""
    require(rise >= 1, f"schedule {spec!r}: the rise must take at least 1 step")
    require(end > rise, f"schedule {spec!r}: the fall must end after the rise")

    def factor(t: Any) -> Any:
        part = jnp.clip((t - rise) / (end - rise), 0.0, 1.0)
        return jnp.where(t < rise, (t + 1) / rise, FALLS[fall](part))

    return factor
