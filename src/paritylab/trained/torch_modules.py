"""Trained networks as PyTorch modules: ``Linear`` and the usual activations, and the few that PyTorch lacks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from paritylab.errors import InvalidInput
from paritylab.setups.networks import MLP, DisjointPolyNet, Neuron, PolyNet, Transformer
from paritylab.setups.networks.activations import Activation


class Power(nn.Module):
    """z^q."""

    def __init__(self, q: int) -> None:
        super().__init__()
        self.q = q

    def forward(self, z: Tensor) -> Tensor:
        return torch.pow(z, self.q)

    def extra_repr(self) -> str:
        return str(self.q)


class Zigzag(nn.Module):
    """The piecewise linear wave through (k - 2j, (-1)^j); finite: j = 0..k, with the end pieces extended."""

    def __init__(self, k: int, finite: bool) -> None:
        super().__init__()
        self.k, self.finite = k, finite

    def forward(self, z: Tensor) -> Tensor:
        s = (z - self.k) / 2
        piece = torch.floor(s).detach()
        if self.finite:
            piece = torch.clamp(piece, -self.k, -1)
        return (1 - 2 * torch.remainder(piece, 2)) * (1 - 2 * (s - piece))

    def extra_repr(self) -> str:
        return f"{self.k}, finite={self.finite}"


class Polynomial(nn.Module):
    """The polynomial with these coefficients, constant first."""

    def __init__(self, coefficients: tuple[float, ...]) -> None:
        super().__init__()
        self.coefficients = coefficients

    def forward(self, z: Tensor) -> Tensor:
        value = torch.full_like(z, self.coefficients[-1])
        for c in self.coefficients[-2::-1]:
            value = value * z + c
        return value

    def extra_repr(self) -> str:
        return str(self.coefficients)


class Sinusoid(nn.Module):
    """cos(pi/2 (scale z - degree))."""

    def __init__(self, scale: float, degree: float) -> None:
        super().__init__()
        self.scale, self.degree = scale, degree

    def forward(self, z: Tensor) -> Tensor:
        return torch.cos(torch.pi / 2 * (self.scale * z - self.degree))

    def extra_repr(self) -> str:
        return f"scale={self.scale:g}, degree={self.degree:g}"


class Product(nn.Module):
    """The product over the last axis."""

    def forward(self, z: Tensor) -> Tensor:
        return torch.prod(z, dim=-1)


class Blocks(nn.Module):
    """w_i . x_(P_i) for consecutive blocks P_i of inputs; ``weight`` has a row for each."""

    def __init__(self, weight: Tensor) -> None:
        super().__init__()
        self.weight = nn.Parameter(weight)

    def forward(self, x: Tensor) -> Tensor:
        blocks = x.reshape(*x.shape[:-1], *self.weight.shape)
        return torch.sum(blocks * self.weight, dim=-1)


class ReadAtCls(nn.Module):
    """The parity Transformer: one attention block read at [CLS], then one MLP block."""

    def __init__(self, network: Transformer, params: Mapping[str, np.ndarray]) -> None:
        super().__init__()
        self.heads, self.d_attn = network.heads, network.d_attn
        self.token, self.position = (nn.Parameter(_tensor(params[name])) for name in ("token", "position"))
        self.query, self.key, self.value, self.out, self.head = (
            _linear(params[name], None) for name in ("query", "key", "value", "out", "head"))
        up, down = (_linear(params[f"mlp.{i}.w"], params[f"mlp.{i}.b"]) for i in (0, 1))
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
    """The module of a network with these params; its outputs are (rows,)."""
    if isinstance(network, MLP):
        layers: list[nn.Module] = []
        for i in range(len(network.widths)):
            layers += [_layer(params, i), _activation(network.activation)]
        return nn.Sequential(*layers, _layer(params, len(network.widths)), nn.Flatten(-2))
    if isinstance(network, Neuron):
        return nn.Sequential(_layer(params, 0), nn.Flatten(-2), _activation(network.activation))
    if isinstance(network, PolyNet):
        return nn.Sequential(_layer(params, 0), Product())
    if isinstance(network, DisjointPolyNet):
        return nn.Sequential(Blocks(_tensor(params["0.w"].T)), Product())
    if isinstance(network, Transformer):
        return ReadAtCls(network, params)
    raise InvalidInput(f"a {type(network).__name__} is made of functions of your own, of which no PyTorch module can be"
                       " made; allowed: MLP, Neuron, PolyNet, DisjointPolyNet, Transformer")


def _layer(params: Mapping[str, np.ndarray], i: int) -> nn.Linear:
    return _linear(params[f"{i}.w"], params.get(f"{i}.b"))


def _linear(w: np.ndarray, b: np.ndarray | None) -> nn.Linear:
    made = nn.Linear(*w.shape, bias=b is not None, device="meta")  # which uses up no random numbers of PyTorch's
    made.weight = nn.Parameter(_tensor(w.T))
    if b is not None:
        made.bias = nn.Parameter(_tensor(b))
    return made


def _tensor(array: np.ndarray) -> Tensor:
    return torch.from_numpy(np.array(array, order="C"))


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
