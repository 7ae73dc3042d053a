"""What PyTorch lacks of our networks, as modules; and layers with given weights."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn


class Bits(nn.Module):
    """Signs as bits: +1 is 0, -1 is 1."""

    def forward(self, x: Tensor) -> Tensor:
        return (1 - x) / 2


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


def linear(w: np.ndarray, b: np.ndarray | None) -> nn.Linear:
    made = nn.Linear(*w.shape, bias=b is not None, device="meta")  # which uses up no random numbers of PyTorch's
    made.weight = nn.Parameter(tensor(w.T))
    if b is not None:
        made.bias = nn.Parameter(tensor(b))
    return made


def tensor(array: np.ndarray) -> Tensor:
    return torch.from_numpy(np.array(array, order="C"))
