"""Activations, by spec (``relu``, ``zigzag:3``, ...) or as any function of one array.

Every derivative is the right-hand one at a kink of the zigzags, and 0 at the kinks of the rectifiers; all engines
and the float64 oracle of the tests use the same conventions.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from paritylab.errors import InvalidInput, positive, require, whole
from paritylab.functions.named import written
from paritylab.later import jax, jnp
from paritylab.setups import specs
from paritylab.setups.genuine import Specified, accepted, builtin

Function = Callable[[Any], Any]
ActivationLike = Any
"""A spec, an Activation or a function of the user's own; an Activation once its owner is made."""


@dataclass(frozen=True, eq=False)
class Activation(Specified):
    """A function applied to every pre-activation, with the name it goes by in files.

    ``native`` says how the ``lanes`` engine spells it: a kind and its numbers; None for a user's function.
    """

    spec: str
    function: Function = field(compare=False, repr=False)
    native: tuple[str, tuple[float, ...]] | None = field(default=None, compare=False, repr=False)

    def __call__(self, z: Any) -> Any:
        return self.function(z)


def clip(upper: float) -> Function:
    """min(max(z, 0), upper)."""
    if upper == math.inf:
        return lambda z: jnp.where(z > 0, z, 0.0)
    return lambda z: jnp.where(z > 0, jnp.where(z < upper, z, upper), 0.0)


def power(q: int) -> Function:
    return lambda z: jax.lax.integer_pow(z, q)


def zigzag(k: int, finite: bool) -> Function:
    """The piecewise linear wave through (k - 2j, (-1)^j); finite: j = 0..k, with the end pieces extended."""

    def function(z: Any) -> Any:
        s = (z - k) / 2
        piece = jnp.floor(s)
        if finite:
            piece = jnp.clip(piece, -k, -1)
        piece = jax.lax.stop_gradient(piece)
        sign = 1 - 2 * jnp.mod(piece, 2)
        return sign * (1 - 2 * (s - piece))

    return function


def oscillating_coefficients(k: int) -> tuple[float, ...]:
    """Coefficients (constant first) of the degree-k polynomial through (k - 2j, (-1)^j), j = 0..k.

    >>> oscillating_coefficients(2)
    (-1.0, 0.0, 0.5)
    """
    nodes = k - 2.0 * np.arange(k + 1)
    vandermonde = np.vander(nodes, increasing=True)
    solution = np.linalg.solve(vandermonde, (-1.0) ** np.arange(k + 1))
    solution[(np.arange(k + 1) + k) % 2 == 1] = 0.0  # the polynomial has the parity of k
    return tuple(float(c) for c in solution)


def polynomial(coefficients: tuple[float, ...]) -> Function:
    def function(z: Any) -> Any:
        value = jnp.full_like(z, coefficients[-1])
        for c in coefficients[-2::-1]:
            value = value * z + c
        return value

    return function


def sinusoid(degree: float, scale: float) -> Function:
    """cos(pi/2 (scale z - degree)) = sin(pi scale z / 2 + beta) with the shift beta = pi (1 - degree) / 2."""
    return lambda z: jnp.cos(math.pi / 2 * (scale * z - degree))


MOST_DEGREE = 10**6 - 1
MOST_OSCILLATIONS = 12
"""Beyond this degree float32 cannot evaluate the oscillating polynomial at its own nodes."""

ARITIES = {
    "relu": (0, 0),
    "relu6": (0, 0),
    "clipped-relu": (0, 1),
    "power": (1, 1),
    "zigzag": (1, 1),
    "infinite-zigzag": (1, 1),
    "oscillating": (1, 1),
    "sinusoid": (1, 2),
    "gelu": (0, 0),
    "tanh": (0, 0),
}


def activation(given: str | Activation | Function) -> Activation:
    """The activation a user means by a spec, or by a function of their own.

    ``relu``; ``relu6``; ``clipped-relu[:upper]`` (1 unless said); ``power:q``; ``zigzag:k``; ``infinite-zigzag:k``;
    ``oscillating:k`` (the polynomial through the zigzag's points); ``sinusoid:k[,scale]``; ``gelu``; ``tanh``.

    >>> import jax.numpy as jnp
    >>> activation("zigzag:3")(jnp.array([3.0, 1.0, -1.0, -3.0, -5.0])).tolist()
    [1.0, -1.0, 1.0, -1.0, -3.0]
    """
    if isinstance(given, Activation) and type(given) is Activation:
        return accepted("activation", given, lambda: activation(given.function))
    if not isinstance(given, str):
        if not callable(given):
            raise InvalidInput(f"an activation must be a spec or a function, not {given!r}")
        return Activation(written(given), given)
    return builtin(_named(given))


def _named(given: str) -> Activation:
    name, numbers = specs.parse("activation", given, ARITIES)
    if name in ("relu", "relu6", "clipped-relu"):
        upper = {"relu": math.inf, "relu6": 6.0}.get(name) or (numbers[0] if numbers else 1.0)
        positive("the upper end of clipped-relu", upper)
        return Activation(specs.render(name, numbers), clip(upper), ("clip", (upper,)))
    if name == "gelu":
        return Activation(name, lambda z: jax.nn.gelu(z, approximate=False), ("gelu", ()))
    if name == "tanh":
        return Activation(name, lambda z: jnp.tanh(z))
    if name == "sinusoid":
        degree, scale = (*numbers, 1.0)[:2]
        return Activation(specs.render(name, numbers), sinusoid(degree, scale), ("sinusoid", (scale, degree)))
    k = whole(f"the degree of activation {name!r}", numbers[0])
    most = MOST_OSCILLATIONS if name == "oscillating" else MOST_DEGREE
    require(1 <= k <= most, f"the degree of activation {name!r} must be at least 1 and at most {most}, not {k}")
    spec = specs.render(name, (k,))
    if name == "power":
        return Activation(spec, power(k), ("power", (k,)))
    if name == "oscillating":
        coefficients = oscillating_coefficients(k)
        return Activation(spec, polynomial(coefficients), ("polynomial", coefficients))
    finite = name == "zigzag"
    return Activation(spec, zigzag(k, finite), ("zigzag" if finite else "triangle", (k,)))
