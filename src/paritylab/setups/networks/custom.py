"""A user's own network: a pair of functions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from paritylab.functions.signatures import asked
from paritylab.setups.inits import Init


@dataclass(frozen=True)
class Network:
    """Any network as a pair of pure functions.

    ``make(key, n)`` returns the initial params, any pytree of arrays; ``forward(params, x)`` maps inputs of shape
    (batch, n) to outputs of shape (batch,), or (batch, outputs) for a target with as many. A third argument called
    ``key``, ``forward(params, x, key)``, is a random key of the run and step in training, for dropout or noise, and
    None at evaluation. What the functions compute with is part of the Setup's id.
    """

    make: Callable[[Any, int], Any]
    forward: Callable[..., Any]

    def init(self, key: Any, n: int, init: Init) -> Any:
        return self.make(key, n)

    @property
    def takes_key(self) -> bool:
        """Whether the forward pass is random in training."""
        return bool(asked(self.forward, 2, ("key",)))

    def apply(self, params: Any, x: Any, key: Any = None) -> Any:
        return self.forward(params, x, key=key) if self.takes_key else self.forward(params, x)


def takes_key(network: Any) -> bool:
    """Whether any network's forward pass is random in training: it, or its ``apply``, has an argument ``key``."""
    own = getattr(network, "takes_key", None)
    return bool(asked(network.apply, 2, ("key",))) if own is None else own
