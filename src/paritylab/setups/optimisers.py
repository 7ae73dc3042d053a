"""Optimisers: how a gradient moves the params.

Every optimiser has a learning rate ``lr``, a ``schedule`` that multiplies it, ``rates`` that multiply it per layer
(0 freezes a layer; one number for each top-level part of the params, by position or by name), gradient ``noise``
(the standard deviation tau of Gaussian noise added to every coordinate of the gradient), ``clip`` (the largest norm of
the whole gradient, frozen layers left out) and ``weight_decay`` in one of three forms:

- ``coupled``: decay times theta is added to the gradient (the ``weight_decay`` of PyTorch's SGD and Adam);
- ``decoupled``: theta shrinks by lr times decay beside the step (AdamW);
- ``plain``: theta shrinks by decay, which the learning rate does not enter (Barak et al. 2022, eq. 3).

With ``skip_satisfied`` an update on a batch whose gradient is exactly zero, such as one with all margins beyond the
hinge's, changes nothing: params do not decay, and momentum neither moves them nor fades.

An optimiser of its own kind says by :meth:`Optimiser.direct` where a gradient leads; the rest is the same for all. One
that asks for ``value``, ``grad`` or ``value_fn`` by these names, as many of optax do, is given the loss of the batch,
its gradient, and the loss as a function of params.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from paritylab.errors import InvalidInput, flag, require, single
from paritylab.functions.signatures import asked
from paritylab.later import jax, jnp
from paritylab.setups.schedules import ScheduleLike, schedule

Tree = Any
FORMS = ("coupled", "decoupled", "plain")
SEEN = ("value", "grad", "value_fn")


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
    clip: float | None = field(default=None, kw_only=True)
    weight_decay: float = field(default=0.0, kw_only=True)
    decay_form: str = field(default="coupled", kw_only=True)
    skip_satisfied: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        for name, words in (("lr", "the learning rate"), ("noise", "the gradient noise"),
                            ("weight_decay", "weight decay")):
            value = single(words, getattr(self, name))
            require(value >= 0, f"{words} must be at least 0, not {value:g}")
            object.__setattr__(self, name, value)
        object.__setattr__(self, "schedule", schedule(self.schedule))
        if self.rates is not None:
            object.__setattr__(self, "rates", _factors(self.rates))
        if self.clip is not None:
            object.__setattr__(self, "clip", single("clip", self.clip))
            require(self.clip > 0, f"clip must be above 0, not {self.clip:g}")
        object.__setattr__(self, "decay_form", str(self.decay_form))
        require(self.decay_form in FORMS, f"decay_form must be one of {', '.join(FORMS)}, not {self.decay_form!r}")
        object.__setattr__(self, "skip_satisfied", flag("skip_satisfied", self.skip_satisfied))
        require(not (self.skip_satisfied and self.noise),
                "skip_satisfied=True is about gradients that are exactly zero, which they are not with gradient noise")

    def start(self, params: Tree) -> Tree:
        """The optimiser's state before the first step."""
        return ()

    def direct(self, gradient: Tree, state: Tree, params: Tree, step: Any) -> tuple[Tree, Tree]:
        """Where a gradient leads, to be multiplied by the learning rate and taken off the params; and the new state."""
        raise TypeError("Optimiser is what all optimisers share; use SGD, Adam, RMSProp, SignSGD or Optax")

    @property
    def sees(self) -> tuple[str, ...]:
        """What of the loss, beside its gradient, :meth:`direct` asks for."""
        return asked(self.direct, 4, SEEN)

    def move(self, gradient: Tree, state: Tree, params: Tree, lr: Tree, step: Any, **seen: Any) -> tuple[Tree, Tree]:
        """New params and state; ``lr`` has the params' structure, one learning rate for each array.

        ``seen`` is what it :attr:`sees`.
        """
        moved = self._moved(gradient, state, params, lr, step, **seen)
        if not self.skip_satisfied:
            return moved
        satisfied = functools.reduce(jnp.logical_and, [jnp.all(leaf == 0) for leaf in jax.tree.leaves(gradient)])
        return jax.tree.map(lambda old, new: jnp.where(satisfied, old, new), (params, state), moved)

    def _moved(self, gradient: Tree, state: Tree, params: Tree, lr: Tree, step: Any, **seen: Any) -> tuple[Tree, Tree]:
        """The same, whatever the gradient."""
        rates = self.layer_rates(params)
        if self.clip is not None:
            gradient = _clipped(gradient, rates, self.clip)
        form = self._form()
        if form == "coupled":
            gradient = jax.tree.map(lambda g, p: g + self.weight_decay * p, gradient, params)
        direction, state = self.direct(gradient, state, params, step, **seen)
        if form == "plain":
            keep = jax.tree.map(lambda rate: 1 - self.weight_decay * (rate != 0), rates)
        elif form == "decoupled":
            keep = jax.tree.map(lambda a: 1 - a * self.weight_decay, lr)
        else:
            return jax.tree.map(lambda p, d, a: p - a * d, params, direction, lr), state
        return jax.tree.map(lambda p, d, a, k: p * k - a * d, params, direction, lr, keep), state

    def _form(self) -> str | None:
        """How weights decay, if they do."""
        return self.decay_form if self.weight_decay else None

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


def _clipped(gradient: Tree, rates: Tree, most: float) -> Tree:
    """The gradient, shorter if it must be: its norm over all layers that are not frozen is at most ``most``."""
    squares = jax.tree.map(lambda g, rate: jnp.sum(g * g) * (rate != 0), gradient, rates)
    norm = jnp.sqrt(sum(jax.tree.leaves(squares)))
    factor = jnp.where(norm > most, most / norm, 1.0)
    return jax.tree.map(lambda g: g * factor, gradient)


def _fraction(owner: Optimiser, *names: str) -> None:
    """Fields that must lie in [0, 1), as single precision has them."""
    for name in names:
        value = single(name, getattr(owner, name))
        require(0 <= value < 1, f"{name} must be in [0, 1), not {value:g}")
        object.__setattr__(owner, name, value)


def _small(owner: Optimiser, name: str = "eps") -> None:
    value = single(name, getattr(owner, name))
    require(value >= 0, f"{name} must be at least 0, not {value:g}")
    object.__setattr__(owner, name, value)


@dataclass(frozen=True)
class SGD(Optimiser):
    """theta <- theta - lr (gradient + decay theta), as PyTorch does it, with momentum and Nesterov's if wanted.

    With momentum mu the step is v <- mu v + gradient; Nesterov's is gradient + mu v. ``SGD(noise=tau)`` is noisy SGD.
    """

    weight_decay: float = 0.0
    decay_form: str = "coupled"
    momentum: float = field(default=0.0, kw_only=True)
    nesterov: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        _fraction(self, "momentum")
        object.__setattr__(self, "nesterov", flag("nesterov", self.nesterov))
        require(self.momentum > 0 or not self.nesterov, "nesterov=True needs momentum")

    def start(self, params: Tree) -> Tree:
        return jax.tree.map(jnp.zeros_like, params) if self.momentum else ()

    def direct(self, gradient: Tree, state: Tree, params: Tree, step: Any) -> tuple[Tree, Tree]:
        if not self.momentum:
            return gradient, state
        state = jax.tree.map(lambda v, g: self.momentum * v + g, state, gradient)
        if not self.nesterov:
            return state, state
        return jax.tree.map(lambda v, g: g + self.momentum * v, state, gradient), state

    def _form(self) -> str | None:
        form = super()._form()  # without momentum coupled and decoupled are the same
        return "decoupled" if form == "coupled" and not self.momentum else form


@dataclass(frozen=True)
class Adam(Optimiser):
    """Adam with bias correction; :func:`AdamW` is the one with decoupled weight decay."""

    b1: float = 0.9
    b2: float = 0.999
    eps: float = 1e-8

    def __post_init__(self) -> None:
        super().__post_init__()
        _fraction(self, "b1", "b2")
        _small(self)

    def start(self, params: Tree) -> Tree:
        zeros = jax.tree.map(jnp.zeros_like, params)
        return zeros, zeros

    def direct(self, gradient: Tree, state: Tree, params: Tree, step: Any) -> tuple[Tree, Tree]:
        first = jax.tree.map(lambda m, g: self.b1 * m + (1 - self.b1) * g, state[0], gradient)
        second = jax.tree.map(lambda v, g: self.b2 * v + (1 - self.b2) * g * g, state[1], gradient)
        t = jnp.asarray(step, jnp.float32) + 1
        c1, c2 = 1 - self.b1**t, 1 - self.b2**t
        return jax.tree.map(lambda m, v: (m / c1) / (jnp.sqrt(v / c2) + self.eps), first, second), (first, second)


def AdamW(lr: float = 0.001, weight_decay: float = 0.01, **more: Any) -> Adam:
    """Adam with decoupled weight decay.

    >>> AdamW(0.01, weight_decay=0.1).decay_form
    'decoupled'
    """
    return Adam(lr, weight_decay=weight_decay, decay_form="decoupled", **more)


@dataclass(frozen=True)
class RMSProp(Optimiser):
    """The gradient over the root of the running mean of its squares, as PyTorch does it, with momentum if wanted."""

    alpha: float = 0.99
    eps: float = 1e-8
    momentum: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        _fraction(self, "alpha", "momentum")
        _small(self)

    def start(self, params: Tree) -> Tree:
        zeros = jax.tree.map(jnp.zeros_like, params)
        return (zeros, zeros) if self.momentum else (zeros,)

    def direct(self, gradient: Tree, state: Tree, params: Tree, step: Any) -> tuple[Tree, Tree]:
        squares = jax.tree.map(lambda v, g: self.alpha * v + (1 - self.alpha) * g * g, state[0], gradient)
        scaled = jax.tree.map(lambda v, g: g / (jnp.sqrt(v) + self.eps), squares, gradient)
        if not self.momentum:
            return scaled, (squares,)
        moving = jax.tree.map(lambda m, d: self.momentum * m + d, state[1], scaled)
        return moving, (squares, moving)


@dataclass(frozen=True)
class SignSGD(Optimiser):
    """theta <- theta - lr sign(b1 m + (1 - b1) gradient), where m <- b2 m + (1 - b2) gradient after the step.

    Without momentum (b1 = b2 = 0) it is the sign of the gradient; with b1 = b2 that of its running mean (signum);
    :func:`Lion` has two different ones.
    """

    b1: float = field(default=0.0, kw_only=True)
    b2: float = field(default=0.0, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        _fraction(self, "b1", "b2")
        require((self.b1 > 0) == (self.b2 > 0), f"b1 and b2 are both 0 or both above, not {self.b1:g} and {self.b2:g}")

    def start(self, params: Tree) -> Tree:
        return jax.tree.map(jnp.zeros_like, params) if self.b1 else ()

    def direct(self, gradient: Tree, state: Tree, params: Tree, step: Any) -> tuple[Tree, Tree]:
        if not self.b1:
            return jax.tree.map(jnp.sign, gradient), state
        signs = jax.tree.map(lambda m, g: jnp.sign(self.b1 * m + (1 - self.b1) * g), state, gradient)
        return signs, jax.tree.map(lambda m, g: self.b2 * m + (1 - self.b2) * g, state, gradient)


def Lion(lr: float = 0.0001, b1: float = 0.9, b2: float = 0.99, **more: Any) -> SignSGD:
    """Sign-SGD with two running means, and decoupled weight decay if any.

    >>> Lion(0.001, weight_decay=0.1).b2
    0.99
    """
    return SignSGD(lr, b1=b1, b2=b2, decay_form="decoupled", **more)


@dataclass(frozen=True)
class Optax(Optimiser):
    """Any optax gradient transformation; its updates are multiplied by ``lr`` (1 unless said).

    One that takes extra arguments is given ``value``, the loss of the batch, with ``grad`` and ``value_fn``: so a rate
    can follow the loss, ``optax.chain(optax.sgd(0.1), optax.contrib.reduce_on_plateau(patience=10))``.
    """

    lr: float = 1.0
    transformation: Any = None

    def __post_init__(self) -> None:
        super().__post_init__()
        require(hasattr(self.transformation, "init") and hasattr(self.transformation, "update"),
                "Optax needs transformation=, an optax gradient transformation")

    def start(self, params: Tree) -> Tree:
        return self.transformation.init(params)

    @property
    def sees(self) -> tuple[str, ...]:
        return asked(self.transformation.update, 3, SEEN, rest=True)

    def direct(self, gradient: Tree, state: Tree, params: Tree, step: Any, **seen: Any) -> tuple[Tree, Tree]:
        updates, state = self.transformation.update(gradient, state, params, **seen)
        return jax.tree.map(jnp.negative, updates), state


@dataclass(frozen=True)
class OwnOptimiser(Optimiser):
    """An optimiser of the user's own class as it was traced; rates and the like are still those of its fields."""

    rule: Any = None

    @classmethod
    def of(cls, rule: Any) -> OwnOptimiser:
        """One with the methods of a traced optimiser and its fields."""
        return cls(rule=rule, **{each.name: getattr(rule, each.name) for each in fields(Optimiser)})

    def start(self, params: Tree) -> Tree:
        return self.rule.start(params)

    @property
    def sees(self) -> tuple[str, ...]:
        return self.rule.sees

    def layer_rates(self, params: Tree) -> Tree:
        return self.rule.layer_rates(params)

    def move(self, gradient: Tree, state: Tree, params: Tree, lr: Tree, step: Any, **seen: Any) -> tuple[Tree, Tree]:
        return self.rule.move(gradient, state, params, lr, step, **seen)


def is_builtin(optimiser: Optimiser) -> bool:
    """Whether it is one of this module's, and no class of the user's own."""
    return type(optimiser) in (SGD, Adam, RMSProp, SignSGD, Optax)
