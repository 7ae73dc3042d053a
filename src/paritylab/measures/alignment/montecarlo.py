"""The paper's own estimator: draw weights, take the expectation over inputs exactly or by sampling, average squares.

With sampled inputs the square of an expectation is estimated without bias, by the product of the means of two
independent samples. Errors are half-widths of 95 % intervals.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from paritylab.aliases import Floats
from paritylab.errors import require
from paritylab.measures.alignment.found import Found
from paritylab.measures.alignment.laws import Law
from paritylab.measures.alignment.units import Unit
from paritylab.measures.coefficients import character, sums
from paritylab.memory import Part, require_room

MOST_ENUMERATED = 14
BLOCK = 2**22
HALF_WIDTH = 1.96


class Sampling(NamedTuple):
    """How many weight vectors, how many inputs for each (None: all up to d = 14, then 2048), and the seed."""

    draws: int = 1000
    inputs: int | None = None
    seed: int = 0

    def exact(self, d: int) -> bool:
        return self.inputs is None and d <= MOST_ENUMERATED

    @property
    def half(self) -> int:
        return (self.inputs or 2048) // 2


def interval(squares: Floats) -> Found:
    """The mean of independent draws and the half-width of its interval."""
    return Found.of(float(squares.mean()), HALF_WIDTH * float(squares.std(ddof=1)) / len(squares) ** 0.5)


def _require_room(d: int, width: int, sampling: Sampling) -> None:
    """Numbers of 8 bytes: the weights of one network, twice; its inputs, and what each unit makes of them; results."""
    inputs = 2**d if sampling.exact(d) else 2 * sampling.half
    require_room("sampling", {
        "weights": Part(d * width, 8 * 2),
        "inputs times d": Part(inputs * d, 8 * 2),
        "inputs times width": Part(inputs * width, 8),
        "draws": Part(sampling.draws, 8 * 4),
    })


def sample_weights(law: Law, bias: Law, d: int, k: int, unit: Unit, sampling: Sampling) -> Found:
    """G by sampling weights and biases."""
    require(sampling.draws >= 2, f"sampling needs at least 2 draws, not {sampling.draws}")
    require(sampling.half >= 1, f"sampling needs at least 2 inputs, not {sampling.inputs}")
    _require_room(d, 1, sampling)
    generator = np.random.default_rng(sampling.seed)
    exact = sampling.exact(d)
    size = max(1, BLOCK // (2**d if exact else 2 * d * sampling.half))
    chi = character(np.arange(d) < k) if exact else np.ones(1)
    squares = []
    for start in range(0, sampling.draws, size):
        count = min(size, sampling.draws - start)
        w, b = law.sample(generator, (count, d)), bias.sample(generator, (count, 1))
        if exact:
            squares.append((unit(sums(w) + b) @ chi / 2**d) ** 2)
            continue
        x = 1.0 - 2.0 * generator.integers(0, 2, (count, d, 2 * sampling.half))
        seen = x[:, :k].prod(1) * unit((w[:, None] @ x)[:, 0] + b)
        squares.append(seen[:, : sampling.half].mean(1) * seen[:, sampling.half :].mean(1))
    return interval(np.concatenate(squares))


# --- whole networks -----------------------------------------------------------------------------------------------


class Network(NamedTuple):
    """sum_i v_i ReLU(scale w_i.x + b_i) with ``width`` hidden units; scales of the hidden and the output weights."""

    law: Law
    bias: Law
    width: int
    hidden: float
    output: float


def sample_networks(network: Network, d: int, k: int, loss: Any, sampling: Sampling) -> dict[str, Found]:
    """The parts of GAL for any loss, by automatic differentiation."""
    import jax
    import jax.numpy as jnp

    from paritylab.setups.losses import loss as named

    _require_room(d, network.width, sampling)
    function = named(loss)
    generator = np.random.default_rng(sampling.seed)
    exact = sampling.exact(d)
    require(sampling.draws >= 2, f"sampling needs at least 2 draws, not {sampling.draws}")
    size = 2**d if exact else sampling.half

    def excess(params: Any, x: Any) -> Any:
        """Its gradient is Gamma_f - Gamma_r. Hidden weights enter unscaled, so that ties of whole numbers are ties."""
        w, b, v = params
        z = network.hidden * (x @ w.T) + b
        f = jnp.where(z >= 0, z, 0.0) @ v  # derivative 1 at a tie, as in the paper
        y = x[:, :k].prod(1)
        return jnp.mean(function(f, y) - (function(f, 1.0) + function(f, -1.0)) / 2)

    def parts(params: Any, first: Any, second: Any) -> Any:
        one, two = (jax.grad(excess)(params, x) for x in (first, second))
        weights = one[0] * two[0] / network.hidden**2
        return jnp.stack([weights[:, :k].sum(), weights[:, k:].sum(), (one[1] * two[1]).sum(), (one[2] * two[2]).sum()])

    compiled = jax.jit(parts)
    squares = []
    every = 1.0 - 2.0 * ((np.arange(2**d)[:, None] >> np.arange(d)) & 1) if exact else None
    for _ in range(sampling.draws):
        w, b = network.law.sample(generator, (network.width, d)), network.bias.sample(generator, (network.width,))
        v = network.output * network.law.sample(generator, (network.width,))
        batches = [every if every is not None else 1.0 - 2.0 * generator.integers(0, 2, (size, d)) for _ in range(2)]
        squares.append(np.asarray(compiled(*jax.tree.map(jnp.float32, ((w, b, v), *batches))), np.float64))
    table = np.array(squares)
    found = {name: interval(column) for name, column in zip(PARTS, table.T, strict=True)}
    return {**found, "total": interval(table.sum(1))}


PARTS = ("weights in S", "weights outside S", "biases", "output weights")
