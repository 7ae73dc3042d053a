"""Theorem 13 of Barak et al.: online SGD with adaptive rates on the disjoint-PolyNet, from sign weights."""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from barak2022.theory.disjoint import error
from paritylab.aliases import Floats
from paritylab.errors import require

CHUNK = 4096


def horizon(block: int, k: int, epsilon: float = 0.05, delta: float = 0.1) -> int:
    """The least T with T >= 6 log(2nT/delta) log(2k/epsilon) (3n' - 2)^(2k - 1), where n = k n'.

    >>> horizon(2, 2), horizon(3, 3)
    (24371, 10302965)
    """
    require(block >= 1 and k >= 1, f"a net has at least one block of one input, not {k} of {block}")
    require(0 < epsilon < 0.5 and 0 < delta < 1, "Theorem 13 is about errors below 1/2 and probabilities below 1")
    low = k < 500 and (2 * k - 1) * math.log(3 * block - 2) < 600
    require(low, f"{k} blocks of {block} inputs take more than 10^260 steps")
    scale = 6 * (math.log(2 * k) - math.log(epsilon)) * (3 * block - 2) ** (2 * k - 1)
    steps, last = scale, 0.0
    while abs(steps - last) > 1e-12 * steps:  # a contraction: the logarithm moves by far less than T
        steps, last = scale * (math.log(2 * k * block * steps) - math.log(delta)), steps
    return math.ceil(steps)


def base_rate(block: int, k: int, steps: int, delta: float = 0.1) -> float:
    """1 / (2 sqrt(2T log(2nT/delta))): block i learns at this rate over the product of the other blocks' l1 norms.

    The theorem prints the product under the root; its martingale bound needs it outside.
    """
    return 1 / (2 * math.sqrt(2 * steps * (math.log(2 * k * block * steps) - math.log(delta))))


@dataclass(frozen=True)
class Trained:
    """Nets (nets, k, n') before and after, the exact error after, and max |irrelevant weight| on the way."""

    initial: Floats
    weights: Floats
    error: Floats
    largest_irrelevant: Floats

    @property
    def promising(self) -> NDArray[np.bool_]:
        """Which nets the theorem speaks about: those whose relevant weights started with a positive product."""
        return self.initial[..., 0].prod(-1) > 0


def train(
    block: int,
    k: int,
    nets: int,
    batch: int = 1,
    epsilon: float = 0.05,
    delta: float = 0.1,
    steps: int | None = None,
    seed: int = 0,
) -> Trained:
    """Train nets from random signs for ``steps`` (the theorem's horizon unless given), all at once, in float64.

    >>> trained = train(2, 2, nets=16)
    >>> bool(np.all(trained.error[trained.promising] <= 0.05))
    True
    """
    import jax
    import jax.experimental

    require(nets >= 1, f"there must be at least one net, not {nets}")
    require(1 <= batch <= 32, f"a batch has from 1 to 32 samples here, as its steps are unrolled, not {batch}")
    require(k >= 2 and k * block <= 32, f"this takes 2 blocks at least and 32 inputs at most, not {k} of {block}")
    steps = horizon(block, k, epsilon, delta) if steps is None else steps
    initial = np.random.default_rng(seed).choice(np.array([-1.0, 1.0]), (nets, k, block))
    experimental: Any = jax.experimental
    double = jax.enable_x64 if hasattr(jax, "enable_x64") else experimental.enable_x64  # where it was before JAX 0.8
    with double(True):
        rate = base_rate(block, k, steps, delta)
        weights, largest = _run(np.moveaxis(initial, 0, -1), rate, steps, batch, jax.random.key(seed))
        weights, largest = np.moveaxis(np.asarray(weights), -1, 0), np.asarray(largest)
    return Trained(initial, weights, error(weights), largest)


def _run(initial: Floats, rate: float, steps: int, batch: int, key: Any) -> tuple[Any, Any]:
    """Weights are k n' vectors of one number for each net, so that a step is one loop over the nets' lanes.

    One random word holds all inputs of a sample.
    """
    import jax
    import jax.numpy as jnp

    k, block, nets = initial.shape

    def step(words: Any, t: Any, state: Any) -> Any:
        w, largest = state
        norms = [sum(abs(weight) for weight in row) for row in w]
        moves = [[jnp.zeros(nets) for _ in row] for row in w]
        for b in range(batch):
            word = words[t, b]
            x = [[1.0 - 2.0 * ((word >> (i * block + j)) & 1) for j in range(block)] for i in range(k)]
            sums = [sum(map(operator.mul, *pair)) / norm for *pair, norm in zip(w, x, norms, strict=True)]
            label = math.prod(row[0] for row in x)
            for i in range(k):
                signal = label * math.prod(sums[j] for j in range(k) if j != i)
                moves[i] = [move + signal * sign for move, sign in zip(moves[i], x[i], strict=True)]
        w = [[a + rate / batch * move for a, move in zip(*pair, strict=True)] for pair in zip(w, moves, strict=True)]
        for row in w:
            for weight in row[1:]:
                largest = jnp.maximum(largest, abs(weight))
        return w, largest

    @jax.jit
    def chunk(state: Any, number: Any, count: Any) -> Any:
        words = jax.random.bits(jax.random.fold_in(key, number), (CHUNK, batch, nets), np.uint32)
        return jax.lax.fori_loop(0, count, partial(step, words), state)

    weights = [[jnp.asarray(weight) for weight in row] for row in initial]
    state = weights, jnp.ones(nets)
    for number, start in enumerate(range(0, steps, CHUNK)):
        state = chunk(state, number, min(CHUNK, steps - start))
    return state
