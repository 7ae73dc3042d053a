"""daniely2020's network as engines train it, and its error, exactly over the signs that matter."""

from __future__ import annotations

import functools
import itertools
import math
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from daniely2020.theory.leaky import UPPER, FirstGradient, Leaky, Units, first_gradient
from paritylab.errors import require


@dataclass(frozen=True)
class LeakyNet:
    """2 ``pairs`` ReLU6 units on x = signs / sqrt(n), without an output bias, for a parity of the first k signs.

    With ``stepped`` params start where the population's first step on D_A (with this ``leak``) leaves mirrored pairs of
    units; otherwise they start at the random hidden units themselves, with output weights 0. Params are
    ``{"hidden": {"w": (n, units), "b": (units,)}, "output": (units,)}``; the init's law plays no role.

    >>> net = LeakyNet(pairs=4, k=3)
    >>> net.init(jax.random.key(0), 11, None)["hidden"]["w"].shape
    (11, 8)
    """

    pairs: int
    k: int
    leak: float = 0.5
    stepped: bool = True

    def __post_init__(self) -> None:
        require(self.pairs >= 1, f"the number of pairs must be at least 1, not {self.pairs}")

    def init(self, key: Any, n: int, init: Any) -> Any:
        sizes = Leaky(n, self.k, self.leak)
        weight_key, output_key = jax.random.split(key)
        w = jax.random.randint(weight_key, (n, self.pairs), -1, 2).astype(jnp.float32)
        b = jnp.full(2 * self.pairs, sizes.bias)
        if not self.stepped:
            return {"hidden": {"w": jnp.tile(w, 2), "b": b}, "output": jnp.zeros(2 * self.pairs)}
        u = sizes.reach * jax.random.uniform(output_key, (self.pairs,), minval=-1, maxval=1)
        on, off = w[: self.k], w[self.k :]
        counts = (on == 1).sum(0), (on == -1).sum(0), (off != 0).sum(0)
        arrays: list[Any] = [jnp.asarray(table)[counts] for table in _tables(sizes)]
        g = FirstGradient(*arrays)
        relevant = g.relevant + jnp.where(on == 0, g.at_zero, g.along * on)
        moved = u * jnp.concatenate([relevant, g.off * off]) / math.sqrt(n)
        shift = u * g.bias
        hidden = {"w": jnp.concatenate([moved, -moved], axis=1), "b": b + jnp.concatenate([shift, -shift])}
        return {"hidden": hidden, "output": jnp.tile(g.output, 2)}

    def apply(self, params: Any, x: Any) -> Any:
        hidden = params["hidden"]
        z = x @ hidden["w"] / math.sqrt(x.shape[-1]) + hidden["b"]
        return jnp.where(z > 0, jnp.where(z < UPPER, z, UPPER), 0.0) @ params["output"]


@functools.lru_cache(maxsize=8)
def _tables(sizes: Leaky) -> tuple[Any, ...]:
    """The first gradient of every possible unit, by its counts: +1s on A, -1s on A, non-zeros off A."""
    shape = sizes.k + 1, sizes.k + 1, sizes.n - sizes.k + 1
    plus, minus, others = (axis.ravel() for axis in np.indices(shape))
    real = plus + minus <= sizes.k
    gradient = first_gradient(sizes, Units(np.where(real, plus, 0), np.where(real, minus, 0), others))
    return tuple(np.asarray(getattr(gradient, name), np.float32).reshape(shape)
                 for name in FirstGradient.__dataclass_fields__)


def pattern_errors(params: Any, sizes: Leaky, rng: np.random.Generator, completions: int = 2000) -> tuple[float, float]:
    """P[sign g != f] on D_A and on its uniform half: all 2^k signs on A, each with the same random signs off A."""
    w, b = np.asarray(params["hidden"]["w"], np.float32), np.asarray(params["hidden"]["b"], np.float32)
    u, root = np.asarray(params["output"], np.float32), np.float32(math.sqrt(sizes.n))
    rest = 1 - 2 * rng.integers(0, 2, (completions, sizes.n - sizes.k)).astype(np.float32)
    base = rest @ w[sizes.k :] / root + b
    uniform = equal = 0.0
    for signs in itertools.product((1.0, -1.0), repeat=sizes.k):
        pattern = np.array(signs, np.float32)
        g = np.clip(base + pattern @ w[: sizes.k] / root, 0, UPPER) @ u
        wrong = float(np.mean(~(g * pattern.prod() > 0)))
        uniform += wrong / 2**sizes.k
        equal += wrong / 2 * (abs(pattern.sum()) == sizes.k)
    return (1 - sizes.leak) * uniform + sizes.leak * equal, uniform

