"""Inputs of {-1, +1}^n as packed bits: input j is bit j % 32 of word j // 32, and bit 1 means -1."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from paritylab.later import jax, jnp


def words(n: int) -> int:
    """How many 32-bit words hold n inputs."""
    return -(-n // 32)


def mask(support: Iterable[int], n: int) -> np.ndarray:
    """The words with exactly the bits of ``support`` set.

    >>> mask([0, 33], 40)
    array([1, 2], dtype=uint32)
    """
    packed = np.zeros(words(n), np.uint32)
    for j in support:
        packed[j // 32] |= np.uint32(1) << np.uint32(j % 32)
    return packed


def unpack(packed: Any, n: int) -> Any:
    """Words (..., words) to signs (..., n) in float32."""
    bits = (packed[..., None] >> np.arange(32, dtype=np.uint32)) & 1
    return 1.0 - 2.0 * bits.reshape(*packed.shape[:-1], -1)[..., :n].astype(jnp.float32)


def pack(x: Any) -> Any:
    """Signs (..., n) to words: a negative input is a set bit."""
    n = x.shape[-1]
    bits = jnp.pad((x < 0).astype(jnp.uint32), [(0, 0)] * (x.ndim - 1) + [(0, words(n) * 32 - n)])
    return (bits.reshape(*x.shape[:-1], words(n), 32) << jnp.arange(32, dtype=jnp.uint32)).sum(-1, dtype=jnp.uint32)


def parity(packed: Any, support: Any) -> Any:
    """chi_S of packed inputs (..., words) for the support's mask (words,): +1 or -1 in float32."""
    counts = jax.lax.population_count(packed & support).sum(-1)
    return 1.0 - 2.0 * (counts & 1).astype(jnp.float32)
