"""Equinox modules as Networks: their floating-point arrays are the params, all else stays as it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from paritylab.errors import InvalidInput, require
from paritylab.functions.signatures import asked
from paritylab.setups.networks import Network


def from_equinox(make: Callable[[Any, int], Any]) -> Network:
    """A Network of Equinox modules: ``make(key, n)`` returns one for ``n`` inputs, with a random start from ``key``.

    The module maps one input, (n,), to a number, or to as many as the target has. Where its ``__call__`` takes a
    ``key``, as dropout does, it is given one in training; at evaluation it is in inference mode. It trains on ``jax``,
    and the Setup's id covers ``make`` and all that it computes with.

    Args:
        make: a function of a key and the number of inputs, such as ``lambda key, n: eqx.nn.MLP(n, "scalar", 16, 1,
            key=key)``.

    >>> import equinox as eqx
    >>> network = from_equinox(lambda key, n: eqx.nn.MLP(n, "scalar", 16, 1, key=key))
    >>> params = network.make(jax.random.key(0), 30)
    >>> params.layers[0].weight.shape, network.forward(params, jnp.ones((5, 30))).shape
    ((16, 30), (5,))
    """
    require(callable(make) and not isinstance(make, _equinox().Module),
            "from_equinox takes a function make(key, n) that returns a module: every run draws a start of its own")

    def start(key: Any, n: int) -> Any:
        module = make(key, n)
        equinox = _equinox()
        arrays = [leaf for leaf in jax.tree.leaves(module) if equinox.is_array(leaf)]
        require(isinstance(module, equinox.Module), f"make(key, n) must return an equinox.Module, not {module!r:.60}")
        require(all(equinox.is_inexact_array(leaf) for leaf in arrays),
                "the arrays of a module must all be floating-point: those are trained")
        return equinox.filter(module, equinox.is_inexact_array)

    def forward(params: Any, x: Any, key: Any = None) -> Any:
        equinox = _equinox()
        shapes = equinox.filter_eval_shape(make, jax.random.key(0), x.shape[-1])
        rest = equinox.filter(shapes, lambda leaf: not isinstance(leaf, jax.ShapeDtypeStruct))
        module = equinox.nn.inference_mode(equinox.combine(params, rest), key is None)
        if key is not None and asked(type(module).__call__, 2, ("key",)):
            f = jax.vmap(lambda x, key: module(x, key=key))(x, jax.random.split(key, len(x)))
        else:
            f = jax.vmap(module)(x)
        return f[:, 0] if jnp.ndim(f) == 2 and f.shape[1] == 1 else f

    return Network(start, forward)


def _equinox() -> Any:
    try:
        import equinox
    except ImportError:
        raise InvalidInput("from_equinox needs Equinox: pip install equinox") from None
    return equinox
