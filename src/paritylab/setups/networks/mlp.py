"""Multi-layer perceptrons and single neurons."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import jax.numpy as jnp
import numpy as np

from paritylab.errors import InvalidInput, flag, require, whole
from paritylab.setups.inits import Init
from paritylab.setups.networks.activations import ActivationLike, activation


@dataclass(frozen=True)
class MLP:
    """A perceptron with one hidden layer per width and a linear output.

    f(x) = u . sigma(W x + b) + c for one hidden layer. Params are a list of layers ``{"w": (fan_in, fan_out),
    "b": (fan_out,)}``; without ``output_bias`` the last layer has no ``b``, without ``bias`` no layer has.
    """

    width: Any = 10  # a width or several
    activation: ActivationLike = "relu"
    output_bias: bool = True
    bias: bool = field(default=True, metadata={"late": True})

    def __post_init__(self) -> None:
        try:
            given = tuple(whole("width", width) for width in np.ravel(np.asarray(self.width, object)))
        except InvalidInput:
            given = ()
        require(len(given) > 0 and min(given) >= 1,
                f"width must be one or more whole numbers of at least 1, not {self.width!r}")
        for name in ("bias", "output_bias"):
            object.__setattr__(self, name, flag(name, getattr(self, name)))
        object.__setattr__(self, "width", given[0] if len(given) == 1 else given)
        object.__setattr__(self, "activation", activation(self.activation))
        object.__setattr__(self, "output_bias", self.output_bias and self.bias)

    @property
    def widths(self) -> tuple[int, ...]:
        return (self.width,) if isinstance(self.width, int) else tuple(self.width)

    def init(self, key: Any, n: int, init: Init) -> Any:
        layers = init.layers(key, (n, *self.widths, 1))
        for layer in [] if self.output_bias else layers[-1:] if self.bias else layers:
            del layer["b"]
        return layers

    def apply(self, params: Any, x: Any) -> Any:
        *hidden, output = params
        for layer in hidden:
            z = x @ layer["w"]
            x = activation(self.activation)(z + layer["b"] if self.bias else z)
        f = jnp.sum(x * output["w"][:, 0], axis=-1)  # a product with one column is faster as a sum
        return f + output["b"][0] if self.output_bias else f


@dataclass(frozen=True)
class Neuron:
    """A single neuron sigma(w . x + b), without a second layer."""

    activation: ActivationLike = "sinusoid:3"

    def __post_init__(self) -> None:
        object.__setattr__(self, "activation", activation(self.activation))

    def init(self, key: Any, n: int, init: Init) -> Any:
        return init.layers(key, (n, 1))

    def apply(self, params: Any, x: Any) -> Any:
        layer = params[0]
        return activation(self.activation)(jnp.sum(x * layer["w"][:, 0], axis=-1) + layer["b"][0])
