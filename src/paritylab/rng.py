"""The random numbers of a Run: threefry, exactly as ``jax.random`` draws them, for every engine.

A Run has one key, made from its seed and number, and one stream for each purpose. What a stream yields at step t
depends on (seed, run, t) alone, so a Record never depends on how Runs were grouped or interrupted.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import numpy as np

from paritylab.errors import require
from paritylab.later import jax, jnp, random

INIT, DATA, LABELS, EVALUATION, SAMPLE, ORDER, NOISE, SUPPORT, FORWARD = range(9)
ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))


def wrap(data: Any) -> Any:
    """Two words as a threefry key."""
    return jax.random.wrap_key_data(data, impl="threefry2x32")


def stream(key: Any, purpose: int) -> Any:
    """The key of one of a run's streams."""
    return jax.random.fold_in(wrap(key), purpose)


def run_keys(seeds: np.ndarray, runs: np.ndarray) -> np.ndarray:
    """The keys, (count, 2) words, of the runs with these seeds and numbers: ``fold_in(key(seed), run)``.

    In NumPy, because JAX would compile it anew for every count.
    """
    require(_is_partitionable(), "paritylab needs JAX's default jax_threefry_partitionable=True")
    for name, values in (("seed", seeds), ("run number", runs)):
        require(bool(np.all((values >= 0) & (values < 2**32))), f"a {name} must be in [0, 2^32)")
    zeros = np.zeros(len(runs), np.uint32)
    return fold_in(np.stack([zeros, seeds.astype(np.uint32)], axis=-1), runs)


def _is_partitionable() -> bool:
    """JAX's default; it is asked only if its configuration or a variable may have changed that."""
    asked = "jax" in sys.modules or "JAX_THREEFRY_PARTITIONABLE" in os.environ
    return not asked or bool(jax.config.jax_threefry_partitionable)  # type: ignore[attr-defined]


def fold_in(keys: np.ndarray, data: Any) -> np.ndarray:
    """``jax.random.fold_in`` of each of the keys (count, 2), in NumPy; also element ``data`` of a key's ``split``."""
    k0, k1 = keys[:, 0], keys[:, 1]
    zeros = np.zeros_like(k0)
    return np.stack(threefry(k0, k1, zeros, zeros + np.asarray(data).astype(np.uint32)), axis=-1)


def threefry(k0: np.ndarray, k1: np.ndarray, x0: np.ndarray, x1: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Threefry-2x32 with 20 rounds (Salmon et al. 2011) of counters (x0, x1) under keys (k0, k1)."""
    schedule = (k0, k1, k0 ^ k1 ^ np.uint32(0x1BD11BDA))
    x0, x1 = x0 + k0, x1 + k1
    for group in range(5):
        for rotation in ROTATIONS[group % 2]:
            x0 = x0 + x1
            x1 = ((x1 << np.uint32(rotation)) | (x1 >> np.uint32(32 - rotation))) ^ x0
        x0 = x0 + schedule[(group + 1) % 3]
        x1 = x1 + schedule[(group + 2) % 3] + np.uint32(group + 1)
    return x0, x1


def bits_at(key: Any, start: Any, count: int) -> Any:
    """``jax.random.bits(key, (size,))[start : start + count]`` without drawing the rest."""
    counters = jnp.asarray(start, jnp.uint32) + jnp.arange(count, dtype=jnp.uint32)
    words = random.threefry_2x32(jax.random.key_data(key), jnp.concatenate([jnp.zeros_like(counters), counters]))
    return words[:count] ^ words[count:]
