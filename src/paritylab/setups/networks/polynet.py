"""PolyNets: products of linear functions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from paritylab.errors import require, whole
from paritylab.later import jnp
from paritylab.setups.inits import Init


@dataclass(frozen=True)
class PolyNet:
    """f(x) = prod_i (w_i . x + b_i), i = 1..degree."""

    degree: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "degree", whole("the degree of a PolyNet", self.degree))
        require(self.degree >= 1, f"the degree of a PolyNet must be at least 1, not {self.degree}")

    def init(self, key: Any, n: int, init: Init) -> Any:
        return init.layers(key, (n, self.degree))

    def apply(self, params: Any, x: Any) -> Any:
        return jnp.prod(x @ params[0]["w"] + params[0]["b"], axis=-1)


@dataclass(frozen=True)
class DisjointPolyNet:
    """f(x) = prod_i w_i . x_(P_i) over ``degree`` consecutive blocks P_i of n / degree inputs; no biases."""

    degree: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "degree", whole("the degree of a disjoint PolyNet", self.degree))
        require(self.degree >= 1, f"the degree of a disjoint PolyNet must be at least 1, not {self.degree}")

    def init(self, key: Any, n: int, init: Init) -> Any:
        require(not init.mirrored, "a disjoint PolyNet has no mirrored pairs")
        require(not init.logits, "a disjoint PolyNet has no output layer for a law of logits")
        require(not init.raised, "a disjoint PolyNet has no output bias for a raised start")
        require(n % self.degree == 0, f"a disjoint PolyNet of degree {self.degree} cannot split n={n} evenly")
        layer = init.dense(key, n // self.degree, self.degree)
        return [{"w": layer["w"]}]

    def apply(self, params: Any, x: Any) -> Any:
        blocks = x.reshape(*x.shape[:-1], self.degree, -1)
        return jnp.prod(jnp.einsum("...ij,ji->...i", blocks, params[0]["w"]), axis=-1)
