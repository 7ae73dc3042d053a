"""Optimisers: how a gradient moves the params.

Every optimiser has a learning rate ``lr``, a ``schedule`` that multiplies it, ``rates`` that multiply it per layer
(0 freezes a layer; one number for each top-level part of the params, by position or by name) and gradient ``noise``
(the standard deviation tau of Gaussian noise added to every coordinate of the gradient).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from paritylab.errors import InvalidInput, require, single
from paritylab.setups.schedules import ScheduleLike, schedule

Tree = Any


def _factors(rates: Any) -> tuple[Any, ...]:
    """Rates as a tuple: factors by position, or pairs of a name and a factor in the order of names."""
    try:
        given = list(rates.items() if isinstance(rates, Mapping) else rates)
        pairs = [(name, factor) for name, factor in given] if any(isinstance(each, tuple) for each in given) else None
    except (TypeError, ValueError):
        raise InvalidInput(f"rates must be numbers, by position or by name, not {rates!r}") from None
    if pairs is None:
        return tuple(single("a rate", factor) for factor in given)
    require(all(isinstance(name, str) for name, _ in pairs), f"rates must have the names of layers, not {rates!r}")
    return tuple(sorted((name, single(f"the rate of {name}", factor)) for name, factor in pairs))


@dataclass(frozen=True)
class Optimiser:
    """What all optimisers share; use one of the classes below."""

    lr: float = 0.1
    schedule: ScheduleLike = "constant"
    rates: Any = None  # a sequence, or a mapping from names
    noise: float = 0.0

    def __post_init__(self) -> None:
        for field, name in (("lr", "learning rate"), ("noise", "gradient noise")):
            value = single(f"the {name}", getattr(self, field))
            require(value >= 0, f"the {name} must be at least 0, not {value:g}")
            object.__setattr__(self, field, value)
        object.__setattr__(self, "schedule", schedule(self.schedule))
        if self.rates is not None:
            object.__setattr__(self, "rates", _factors(self.rates))

    def start(self, params: Tree) -> Tree:
        """The optimiser's state before the first step."""
        return ()

    def move(self, gradient: Tree, state: Tree, params: Tree, lr: Tree, step: Any) -> tuple[Tree, Tree]:
        """New params and state; ``lr`` has the params' structure, one learning rate for each array."""
        raise TypeError("Optimiser is what all optimisers share; use SGD, Adam, SignSGD or Optax")

    def layer_rates(self, params: Tree) -> Tree:
        """The factor of every array of the params."""
        if self.rates is None:
            return jax.tree.map(lambda _: 1.0, params)
        named = isinstance(params, Mapping)
        keys = list(params) if named else list(range(len(params)))
        given = isinstance(self.rates[0], tuple) if self.rates else named
        factors = dict(self.rates if given else enumerate(self.rates))
        if set(keys) != set(factors):
            raise InvalidInput(f"rates must give one factor for each part of the network: {keys}")
        spread = [jax.tree.map(lambda _, key=key: factors[key], params[key]) for key in keys]
        return dict(zip(keys, spread, strict=True)) if named else type(params)(spread)


@dataclass(frozen=True)
class SGD(Optimiser):
    """theta <- theta - lr (gradient + decay theta), as PyTorch does it.

    With ``decay_form="plain"`` weight decay is theta <- (1 - decay) theta - lr gradient (barak2022, eq. 3), which the
    learning rate does not enter. ``SGD(noise=tau)`` is noisy SGD.
    """

    weight_decay: float = 0.0
    decay_form: str = "coupled"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "weight_decay", single("weight decay", self.weight_decay))
        require(self.weight_decay >= 0, f"weight decay must be at least 0, not {self.weight_decay:g}")
        object.__setattr__(self, "decay_form", str(self.decay_form))
        require(self.decay_form in ("coupled", "plain"),
                f"decay_form must be 'coupled' or 'plain', not {self.decay_form!r}")

    def move(self, gradient: Tree, state: Tree, params: Tree, lr: Tree, step: Any) -> tuple[Tree, Tree]:
        if self.weight_decay == 0:
            return jax.tree.map(lambda p, g, a: p - a * g, params, gradient, lr), state
        keep = jax.tree.map(lambda a, rate: 1 - self._decay(a, rate), lr, self.layer_rates(params))
        return jax.tree.map(lambda p, g, a, k: p * k - a * g, params, gradient, lr, keep), state

    def _decay(self, lr: Any, rate: float) -> Any:
        if self.decay_form == "coupled":
            return lr * self.weight_decay
        return self.weight_decay * (rate != 0)


@dataclass(frozen=True)
class Adam(Optimiser):
    """Adam with bias correction."""

    b1: float = 0.9
    b2: float = 0.999
    eps: float = 1e-8

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("b1", "b2", "eps"):
            object.__setattr__(self, name, single(name, getattr(self, name)))
        require(0 <= self.b1 < 1 and 0 <= self.b2 < 1, f"b1 and b2 must be in [0, 1), not {self.b1:g}, {self.b2:g}")
        require(self.eps >= 0, f"eps must be at least 0, not {self.eps:g}")

    def start(self, params: Tree) -> Tree:
        zeros = jax.tree.map(jnp.zeros_like, params)
        return zeros, zeros

    def move(self, gradient: Tree, state: Tree, params: Tree, lr: Tree, step: Any) -> tuple[Tree, Tree]:
        first = jax.tree.map(lambda m, g: self.b1 * m + (1 - self.b1) * g, state[0], gradient)
        second = jax.tree.map(lambda v, g: self.b2 * v + (1 - self.b2) * g * g, state[1], gradient)
        t = jnp.asarray(step, jnp.float32) + 1
        c1, c2 = 1 - self.b1**t, 1 - self.b2**t
        moved = jax.tree.map(
            lambda p, m, v, a: p - a * (m / c1) / (jnp.sqrt(v / c2) + self.eps), params, first, second, lr
        )
        return moved, (first, second)


@dataclass(frozen=True)
class SignSGD(Optimiser):
    """theta <- theta - lr sign(gradient)."""

    def move(self, gradient: Tree, state: Tree, params: Tree, lr: Tree, step: Any) -> tuple[Tree, Tree]:
        return jax.tree.map(lambda p, g, a: p - a * jnp.sign(g), params, gradient, lr), state


@dataclass(frozen=True)
class Optax(Optimiser):
    """Any optax gradient transformation; its updates are multiplied by ``lr`` (1 unless said)."""

    lr: float = 1.0
    transformation: Any = None

    def __post_init__(self) -> None:
        super().__post_init__()
        require(hasattr(self.transformation, "init") and hasattr(self.transformation, "update"),
                "Optax needs transformation=, an optax gradient transformation")

    def start(self, params: Tree) -> Tree:
        return self.transformation.init(params)

    def move(self, gradient: Tree, state: Tree, params: Tree, lr: Tree, step: Any) -> tuple[Tree, Tree]:
        updates, state = self.transformation.update(gradient, state, params)
        return jax.tree.map(lambda p, u, a: p + a * u, params, updates, lr), state
