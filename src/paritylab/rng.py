"""The random numbers of a Run: threefry, exactly as ``jax.random`` draws them, for every engine.

A Run has one key, made from its seed and number, and one stream for each purpose. What a stream yields at step t
depends on (seed, run, t) alone, so a Record never depends on how Runs were grouped or interrupted.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.random import threefry_2x32

from paritylab.errors import require

INIT, DATA, LABELS, EVALUATION, SAMPLE, ORDER, NOISE = range(7)


def wrap(data: Any) -> Any:
    """Two words as a threefry key."""
    return jax.random.wrap_key_data(data, impl="threefry2x32")


def stream(key: Any, purpose: int) -> Any:
    """The key of one of a run's streams."""
    return jax.random.fold_in(wrap(key), purpose)


@jax.jit
def _fold(seeds: Any, runs: Any) -> Any:
    roots = jnp.stack([jnp.zeros_like(seeds), seeds], axis=-1)
    return jax.vmap(lambda root, run: jax.random.key_data(jax.random.fold_in(wrap(root), run)))(roots, runs)


def run_keys(seeds: np.ndarray, runs: np.ndarray) -> np.ndarray:
    """The keys, (count, 2) words, of the runs with these seeds and numbers."""
    require(bool(jax.config.jax_threefry_partitionable),  # type: ignore[attr-defined]
            "paritylab needs JAX's default jax_threefry_partitionable=True")
    for name, values in (("seed", seeds), ("run number", runs)):
        require(bool(np.all((values >= 0) & (values < 2**32))), f"a {name} must be in [0, 2^32)")
    count = len(runs)
    padded = 1 << max(count - 1, 0).bit_length()  # few distinct shapes, so few compilations
    columns = (np.resize(v.astype(np.uint32), padded) for v in (seeds, runs))
    return np.asarray(_fold(*columns))[:count]


def bits_at(key: Any, start: Any, count: int) -> Any:
    """``jax.random.bits(key, (size,))[start : start + count]`` without drawing the rest."""
    counters = jnp.asarray(start, jnp.uint32) + jnp.arange(count, dtype=jnp.uint32)
    words = threefry_2x32(jax.random.key_data(key), jnp.concatenate([jnp.zeros_like(counters), counters]))
    return words[:count] ^ words[count:]
