"""A user's own network: a pair of functions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from paritylab.setups.inits import Init


@dataclass(frozen=True)
class Network:
    """Any network as a pair of pure functions.

    ``make(key, n)`` returns the initial params, any pytree of arrays; ``forward(params, x)`` maps inputs of shape
    (batch, n) to outputs of shape (batch,). What the functions compute with is part of the Setup's id.
    """

    make: Callable[[Any, int], Any]
    forward: Callable[[Any, Any], Any]

    def init(self, key: Any, n: int, init: Init) -> Any:
        return self.make(key, n)

    def apply(self, params: Any, x: Any) -> Any:
        return self.forward(params, x)
