"""Losses of outputs f against labels y, by spec or as any function ``loss(f, y)``.

One of the user's own that has arguments ``params`` or ``x`` after these two is given the params and the inputs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from paritylab.errors import positive, require
from paritylab.functions.named import written
from paritylab.functions.signatures import asked
from paritylab.later import jax, jnp
from paritylab.setups import specs
from paritylab.setups.genuine import Specified, accepted, builtin

Function = Callable[[Any, Any], Any]
LossLike = Any
"""A spec, a Loss or a function of the user's own; a Loss once its owner is made."""


@dataclass(frozen=True, eq=False)
class Loss(Specified):
    """A loss with the name it goes by in files; ``native`` is its kind and numbers in the ``lanes`` engine."""

    spec: str
    function: Function = field(compare=False, repr=False)
    native: tuple[str, tuple[float, ...]] | None = field(default=None, compare=False, repr=False)

    def __call__(self, f: Any, y: Any, params: Any = None, x: Any = None) -> Any:
        function: Any = self.function
        seen = {"params": params, "x": x}
        return function(f, y, **{name: seen[name] for name in asked(function, 2, tuple(seen))})

    def each(self, f: Any, y: Any, params: Any = None, x: Any = None) -> Any:
        """One loss for each input: the mean over outputs where there are several."""
        losses = self(f, y, params, x)
        return losses if jnp.ndim(losses) < 2 else jnp.mean(losses, axis=1)


def hinge(margin: float) -> Function:
    """max(0, margin - y f); its derivative is 0 where the two are equal."""
    return lambda f, y: jnp.where(y * f < margin, margin - y * f, 0.0)


def logistic(scale: float) -> Function:
    """scale log(1 + exp(-y f))."""
    return lambda f, y: scale * jnp.logaddexp(0.0, -y * f)


def bounds(c: float) -> tuple[float, float]:
    """Between which a logistic loss is whose probabilities are clipped to [c, 1 - c]."""
    return -math.log(np.float32(1 - c)), -math.log(c)


def clipped_logistic(c: float) -> Function:
    """The logistic loss, but at least -log(1 - c) and at most -log(c); its derivative is 0 at and beyond either.

    That is the cross-entropy of the probability 1 / (1 + exp(-y f)) of the label, clipped to [c, 1 - c]; 1 - c is
    rounded to single precision, as it is where probabilities are: of c = 1e-7 the least loss is 2^-23 = 1.19e-7.
    """
    least, most = map(np.float32, bounds(c))

    def function(f: Any, y: Any) -> Any:
        loss = jnp.logaddexp(0.0, -y * f)
        inside = (loss > least) & (loss < most)
        return jnp.where(inside, loss, jax.lax.stop_gradient(jnp.clip(loss, least, most)))

    return function


def absolute(f: Any, y: Any) -> Any:
    """|y - f|; its derivative is 0 where the two are equal."""
    return (f - y) * jnp.sign(f - y)


ARITIES = {"hinge": (0, 1), "square": (0, 0), "logistic": (0, 1), "clipped-logistic": (1, 1), "correlation": (0, 0),
           "l1": (0, 0)}


def loss(given: str | Loss | Function) -> Loss:
    """The loss a user means: ``hinge[:margin]``, ``square``, ``logistic[:scale]``, ``correlation``, ``l1``.

    ``clipped-logistic:c`` is the cross-entropy of probabilities that are clipped to [c, 1 - c]. Or a function of your
    own, ``loss(f, y)``; ``loss(f, y, params)``, ``loss(f, y, x)`` or ``loss(f, y, params, x)`` also sees the params or
    the inputs, by these names.

    >>> float(loss("hinge")(0.25, -1.0)), float(loss("hinge:2")(0.25, 1.0))
    (1.25, 1.75)
    >>> [f"{loss('clipped-logistic:0.25')(f, 1.0):.3f}" for f in (-9.0, 0.0, 9.0)]  # log 4, log 2, log 4/3
    ['1.386', '0.693', '0.288']
    """
    if isinstance(given, Loss) and type(given) is Loss:
        return accepted("loss", given, lambda: loss(given.function))
    if not isinstance(given, str):
        require(callable(given), f"a loss must be a spec or a function, not {given!r}")
        return Loss(written(given), given)
    return builtin(_named(given))


def _named(given: str) -> Loss:
    name, numbers = specs.parse("loss", given, ARITIES)
    spec = specs.render(name, numbers)
    if name == "hinge":
        margin = numbers[0] if numbers else 1.0
        require(margin >= 0, f"the hinge margin must be at least 0, not {margin:g}")
        return Loss(spec, hinge(margin), ("hinge", (margin,)))
    if name == "logistic":
        scale = numbers[0] if numbers else 1.0
        positive("the logistic scale", scale)
        return Loss(spec, logistic(scale), ("logistic", (scale,)))
    if name == "clipped-logistic":
        require(1.2e-38 <= numbers[0] < 0.5, f"clipped-logistic clips at a c from 1.2e-38 to 0.5, not {numbers[0]:g}")
        return Loss(spec, clipped_logistic(numbers[0]), ("clipped-logistic", bounds(numbers[0])))
    if name == "square":
        return Loss(spec, lambda f, y: (y - f) ** 2, ("square", ()))
    if name == "correlation":
        return Loss(spec, lambda f, y: -y * f, ("correlation", ()))
    return Loss(spec, absolute, ("l1", ()))
