"""A trained Graph as a PyTorch module: a layer, an activation or a function for each of its steps."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterator, Mapping

import numpy as np
import torch
from torch import Tensor, nn

from paritylab.setups.networks import Graph
from paritylab.setups.networks.graph import LAYERS, Step
from paritylab.trained.torch_parts import Power, linear, tensor

MODULES: dict[str, Callable[..., nn.Module]] = {
    "relu": nn.ReLU, "relu6": nn.ReLU6, "gelu": nn.GELU, "gelu-tanh": lambda: nn.GELU("tanh"), "tanh": nn.Tanh,
    "sigmoid": nn.Sigmoid, "silu": nn.SiLU, "selu": nn.SELU, "mish": nn.Mish, "softplus": nn.Softplus,
    "leaky-relu": nn.LeakyReLU, "elu": nn.ELU, "dropout": nn.Dropout, "power": lambda q: Power(int(q)),
}
FUNCTIONS: dict[str, Callable[..., Tensor]] = {
    "sin": torch.sin, "cos": torch.cos, "abs": torch.abs,
    "layer-norm-no-weights": lambda x, eps=1e-5: nn.functional.layer_norm(x, x.shape[-1:], eps=eps),
    "plus": lambda x, number: x + number, "times": lambda x, number: x * number,
    "sum": lambda x: x.sum(-1), "mean": lambda x: x.mean(-1), "prod": lambda x: x.prod(-1),
    "squeeze": lambda x: x.squeeze(-1), "select": lambda x, place: x[..., int(place)],
    "add": lambda *parts: functools.reduce(operator.add, parts),
    "mul": lambda *parts: functools.reduce(operator.mul, parts),
    "sub": operator.sub, "cat": lambda *parts: torch.cat(parts, dim=-1),
}


class Function(nn.Module):
    """A function without weights, by the name it has in a Graph."""

    def __init__(self, step: Step) -> None:
        super().__init__()
        self.name, self.numbers = step.name, step.numbers

    def forward(self, *values: Tensor) -> Tensor:
        return FUNCTIONS[self.name](*values, *self.numbers)

    def extra_repr(self) -> str:
        return ", ".join([self.name, *(f"{number:g}" for number in self.numbers)])


class Steps(nn.Module):
    """The steps of a Graph, of which ``parts[i]`` is the i-th; one that applies a layer again has none of its own."""

    def __init__(self, network: Graph, params: Mapping[str, np.ndarray]) -> None:
        super().__init__()
        places = iter(range(len(params)))
        self.steps = network.parsed
        self.parts = nn.ModuleList(_part(step, params, places) for step in self.steps)

    def forward(self, x: Tensor) -> Tensor:
        made = [x]
        for step, part in zip(self.steps, self.parts, strict=True):
            chosen = self.parts[int(step.numbers[0]) - 1] if step.name == "again" else part
            made.append(chosen(*(made[place] for place in step.of)))
        f = made[-1]
        return f.squeeze(-1) if f.ndim == x.ndim and f.shape[-1] == 1 else f


def _part(step: Step, params: Mapping[str, np.ndarray], places: Iterator[int]) -> nn.Module:
    if step.name in LAYERS:
        place = next(places)
        return _layer(step, params[f"{place}.w"], params.get(f"{place}.b"))
    if step.name == "again":
        return nn.Identity()
    return MODULES[step.name](*step.numbers) if step.name in MODULES else Function(step)


def _layer(step: Step, w: np.ndarray, b: np.ndarray | None) -> nn.Module:
    if step.name.startswith("linear"):
        return linear(w, b)
    (eps,) = step.numbers or (1e-5,)
    made = nn.LayerNorm(len(w), eps, bias=b is not None)
    made.weight = nn.Parameter(tensor(w))
    if b is not None:
        made.bias = nn.Parameter(tensor(b))
    return made
