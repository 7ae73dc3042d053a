"""The first gradient of Theorem 10 of Barak et al. over very large batches, streamed through JAX."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any

import numpy as np

from barak2022.theory.two_stage import Layer
from paritylab.aliases import Floats
from paritylab.errors import require

CHUNK = 2**14
CALL = 64
"""Chunks of one call of the device: its sums are whole numbers below 2^31."""


def streamed_gradient(layer: Layer, support: Iterable[int], samples: int, seed: int = 0) -> tuple[Floats, Floats]:
    """As :func:`barak2022.theory.two_stage.sampled_gradient`, on a GPU where there is one, with other random numbers.

    ``samples`` is rounded up to whole chunks. Products of signs and their sums are exact in whatever precision the
    device takes for them.

    >>> from barak2022.theory.two_stage import initialise
    >>> w, b = streamed_gradient(initialise(5, 2, 4), [0, 1], 10**5)
    >>> w.shape, b.shape, bool(np.all(w[:2] == -w[2:]))
    ((4, 5), (4,), True)
    """
    import jax

    require(samples >= 1, f"a batch has at least one sample, not {samples}")
    half = len(layer.u) // 2
    weights, bias = layer.w[:half].T.astype(np.float32), layer.b[:half].astype(np.float32)
    chunks = -(-samples // CHUNK)
    total = np.zeros((len(weights) + 1, half))
    add = _compiled(tuple(support))
    for first in range(0, chunks, CALL):
        total += np.asarray(add(weights, bias, jax.random.key(seed), first, min(first + CALL, chunks)))
    gradient = -layer.u[:half] * total / (chunks * CHUNK)
    gradient = np.concatenate([gradient, -gradient], axis=1)
    return gradient[:-1].T, gradient[-1]


@functools.cache
def _compiled(support: tuple[int, ...]) -> Any:
    """The sums over chunks first .. last - 1 of y x and y where each neuron is active: (n + 1, neurons)."""
    import jax
    import jax.numpy as jnp

    def run(weights: Any, bias: Any, key: Any, first: Any, last: Any) -> Any:
        n, half = weights.shape

        def chunk(number: Any, total: Any) -> Any:
            words = jax.random.bits(jax.random.fold_in(key, number), (CHUNK, -(-n // 32)))
            bits = (words[:, :, None] >> jnp.arange(32, dtype=jnp.uint32)) & 1
            x = 1 - 2 * bits.reshape(CHUNK, -1)[:, :n].astype(jnp.float32)
            y = jnp.prod(x[:, jnp.array(support)], axis=1, keepdims=True)
            active = (x @ weights + bias > 0).astype(jnp.float32)
            signed = jnp.concatenate([x * y, y], axis=1)
            return total + (signed.T @ active).astype(jnp.int32)

        return jax.lax.fori_loop(first, last, chunk, jnp.zeros((n + 1, half), jnp.int32))

    return jax.jit(run)
