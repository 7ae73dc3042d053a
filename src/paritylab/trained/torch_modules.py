"""Trained networks as PyTorch modules: ``Linear`` and the usual activations where there are such."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from paritylab.errors import InvalidInput
from paritylab.setups.networks import MLP, DisjointPolyNet, Graph, Neuron, PolyNet, Transformer
from paritylab.setups.networks.activations import Activation
from paritylab.trained.torch_graphs import Steps
from paritylab.trained.torch_parts import Bits, Blocks, Polynomial, Power, Product, Sinusoid, Zigzag, linear, tensor


class ReadAtCls(nn.Module):
    """The parity Transformer: one attention block read at [CLS], then one MLP block."""

    def __init__(self, network: Transformer, params: Mapping[str, np.ndarray]) -> None:
        super().__init__()
        self.heads, self.d_attn = network.heads, network.d_attn
        self.token, self.position = (nn.Parameter(tensor(params[name])) for name in ("token", "position"))
        self.query, self.key, self.value, self.out, self.head = (
            linear(params[name], None) for name in ("query", "key", "value", "out", "head"))
        up, down = (linear(params[f"mlp.{i}.w"], params[f"mlp.{i}.b"]) for i in (0, 1))
        self.mlp = nn.Sequential(up, nn.GELU(), down)

    def forward(self, x: Tensor) -> Tensor:
        plus, minus, cls = self.token
        tokens = torch.where(x[..., None] > 0, plus, minus) + self.position  # (rows, n, d)
        tokens = torch.cat([tokens, cls.expand(*x.shape[:-1], 1, -1)], dim=-2)
        keys, values = (part(tokens).unflatten(-1, (self.heads, self.d_attn)) for part in (self.key, self.value))
        query = self.query(cls).unflatten(-1, (self.heads, self.d_attn))
        logits = torch.einsum("...thd,hd->...th", keys, query) / self.d_attn**0.5
        attended = torch.einsum("...th,...thd->...hd", torch.softmax(logits, dim=-2), values)
        z = cls + self.out(attended.flatten(-2))
        return self.head(z + self.mlp(z)).squeeze(-1)


def module(network: Any, params: Mapping[str, np.ndarray]) -> nn.Module:
    """The module of a network with these params; its outputs are (rows,), or (rows, outputs) where it has several."""
    if isinstance(network, MLP):
        layers: list[nn.Module] = [] if network.inputs == "signs" else [Bits()]
        for i in range(len(network.widths)):
            layers += [_layer(params, i), _activation(network.activation)]
        layers.append(_layer(params, len(network.widths)))
        return nn.Sequential(*layers, *[nn.Flatten(-2)][: network.outputs == 1])
    if isinstance(network, Neuron):
        return nn.Sequential(_layer(params, 0), nn.Flatten(-2), _activation(network.activation))
    if isinstance(network, PolyNet):
        return nn.Sequential(_layer(params, 0), Product())
    if isinstance(network, DisjointPolyNet):
        return nn.Sequential(Blocks(tensor(params["0.w"].T)), Product())
    if isinstance(network, Transformer):
        return ReadAtCls(network, params)
    if isinstance(network, Graph):
        return Steps(network, params)
    raise InvalidInput(f"a {type(network).__name__} is made of functions of your own, of which no PyTorch module can be"
                       " made; allowed: MLP, Neuron, PolyNet, DisjointPolyNet, Transformer, Graph")


def _layer(params: Mapping[str, np.ndarray], i: int) -> nn.Linear:
    return linear(params[f"{i}.w"], params.get(f"{i}.b"))


def _activation(activation: Activation) -> nn.Module:
    if activation.spec == "tanh":
        return nn.Tanh()
    if activation.native is None:
        raise InvalidInput(f"no PyTorch module can be made of your activation {activation.spec}")
    kind, numbers = activation.native
    if kind == "clip":
        return nn.ReLU() if numbers[0] == np.inf else nn.Hardtanh(0.0, numbers[0])
    if kind in ("zigzag", "triangle"):
        return Zigzag(int(numbers[0]), kind == "zigzag")
    if kind == "gelu":
        return nn.GELU()
    if kind == "power":
        return Power(int(numbers[0]))
    return Polynomial(numbers) if kind == "polynomial" else Sinusoid(*numbers)
