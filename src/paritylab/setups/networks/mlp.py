"""Multi-layer perceptrons and single neurons."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from paritylab.errors import InvalidInput, flag, require, whole
from paritylab.later import jnp
from paritylab.setups.inits import Init
from paritylab.setups.networks.activations import ActivationLike, activation

INPUTS = ("signs", "bits")
"""How a network may read an input of +1 and of -1: as it is, or as 0 and 1."""


@dataclass(frozen=True)
class MLP:
    """A perceptron with one hidden layer per width and a linear output.

    f(x) = u . sigma(W x + b) + c for one hidden layer. Params are a list of layers ``{"w": (fan_in, fan_out),
    "b": (fan_out,)}``; without ``output_bias`` the last layer has no ``b``, without ``bias`` no layer has. With
    ``inputs="bits"`` an input of +1 is read as 0 and one of -1 as 1, that is x as (1 - x) / 2; problems stay as they
    are. With several ``outputs``, for a target of as many, they are (count, outputs).

    >>> import jax.numpy as jnp
    >>> layers = [{"w": jnp.array([[2.0], [3.0]]), "b": jnp.zeros(1)}, {"w": jnp.ones((1, 1)), "b": jnp.zeros(1)}]
    >>> x = jnp.array([[1.0, 1.0], [-1.0, 1.0], [-1.0, -1.0]])
    >>> MLP(1, inputs="bits").apply(layers, x).tolist(), MLP(1).apply(layers, x).tolist()
    ([0.0, 2.0, 5.0], [5.0, 1.0, 0.0])
    """

    width: Any = 10  # a width or several
    activation: ActivationLike = "relu"
    output_bias: bool = True
    bias: bool = True
    inputs: str = field(default="signs", kw_only=True)
    outputs: int = field(default=1, kw_only=True)

    def __post_init__(self) -> None:
        try:
            given = tuple(whole("width", width) for width in np.ravel(np.asarray(self.width, object)))
        except InvalidInput:
            given = ()
        require(len(given) > 0 and min(given) >= 1,
                f"width must be one or more whole numbers of at least 1, not {self.width!r}")
        for name in ("bias", "output_bias"):
            object.__setattr__(self, name, flag(name, getattr(self, name)))
        object.__setattr__(self, "outputs", whole("outputs", self.outputs))
        require(self.outputs >= 1, f"outputs must be at least 1, not {self.outputs}")
        require(self.inputs in INPUTS, f"inputs must be one of {', '.join(INPUTS)}, not {self.inputs!r}")
        object.__setattr__(self, "width", given[0] if len(given) == 1 else given)
        object.__setattr__(self, "activation", activation(self.activation))
        object.__setattr__(self, "output_bias", self.output_bias and self.bias)

    @property
    def widths(self) -> tuple[int, ...]:
        return (self.width,) if isinstance(self.width, int) else tuple(self.width)

    def read(self, x: Any) -> Any:
        """Inputs as the first layer has them."""
        return x if self.inputs == "signs" else (1 - x) / 2

    def init(self, key: Any, n: int, init: Init) -> Any:
        layers = init.layers(key, (n, *self.widths, self.outputs))
        require(self.output_bias or not init.raised, "a raised start needs a network with an output bias")
        for layer in [] if self.output_bias else layers[-1:] if self.bias else layers:
            del layer["b"]
        return layers

    def apply(self, params: Any, x: Any) -> Any:
        *hidden, output = params
        x = self.read(x)
        for layer in hidden:
            z = x @ layer["w"]
            x = activation(self.activation)(z + layer["b"] if self.bias else z)
        if self.outputs > 1:
            f = x @ output["w"]
            return f + output["b"] if self.output_bias else f
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
