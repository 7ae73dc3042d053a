"""Theorems 5 and 6 of Abbe et al.: SGD on max(0, beta - y f), one example at a time, makes few non-zero updates.

The rates of the theorem are so small that the hidden weights do not move, to about 1e-9: the outputs on the cube then
follow the Gram matrix of the hidden embedding, f += gamma y G[x], and gamma scales out. :func:`train_both_layers` is
the algorithm itself, to check that.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from abbe2024.theory.high_degree import recommended_bias
from abbe2024.theory.one_step import full_parity
from paritylab.aliases import Floats
from paritylab.errors import require, unknown
from paritylab.measures.fourier import cube

ORDERS = ("random", "cyclic", "worst")
CHUNK = 2**12


def initial_weights(d: int, width: int, sigma: float = 0.0, seed: int | np.random.Generator = 0) -> Floats:
    """Signs plus N(0, sigma^2), (width, d)."""
    generator = np.random.default_rng(seed)
    signs = generator.choice(np.array([-1.0, 1.0]), (width, d))
    return signs + sigma * generator.standard_normal((width, d)) if sigma else signs


def gram(weights: Floats, bias: float | None = None) -> Floats:
    """z_x . z_x' over all pairs of inputs, z_x = relu(W x + b), with the recommended bias unless told."""
    d = weights.shape[1]
    x, b = cube(d).T, recommended_bias(d) if bias is None else bias
    total = np.zeros((2**d, 2**d))
    for start in range(0, len(weights), CHUNK):
        z = np.maximum(weights[start : start + CHUNK] @ x + b, 0.0)
        total += z.T @ z
    return total


@dataclass(frozen=True)
class Updates:
    """Non-zero updates, all steps (0 for the order ``worst``, which never waits) and the final outputs over gamma."""

    count: int
    steps: int
    outputs: Floats = field(repr=False)

    def error(self, law: ArrayLike | None = None) -> float:
        """The probability of a wrong sign under a law on the inputs, uniform unless told."""
        masses = np.full(len(self.outputs), 1 / len(self.outputs)) if law is None else np.asarray(law, float)
        return float(masses[_labels(self.outputs) * self.outputs <= 0].sum())


def count_updates(
    embedding: Floats,
    margin: float = 0.0,
    order: str = "random",
    law: ArrayLike | None = None,
    patience: int | None = None,
    limit: int = 10**7,
    seed: int | np.random.Generator = 0,
) -> Updates:
    """Train from output weights 0 until no input of the law's support triggers an update, or as ``patience`` says.

    An input triggers one while y f / gamma <= ``margin`` (beta / gamma; at most 16 d^2 n in Theorem 6). The order is
    ``random`` (i.i.d. from the law), ``cyclic`` or ``worst`` (always the input with the smallest y f). With
    ``patience``, training stops after so many steps without update, as in Theorem 5. Waiting times between updates are
    drawn from their geometric law, not simulated.

    >>> run = count_updates(gram(initial_weights(4, 256)))
    >>> 0 < run.count <= 25920 * 4**3, run.error()
    (True, 0.0)
    """
    if order not in ORDERS:
        raise unknown("order", order, ORDERS)
    size = len(embedding)
    masses = np.full(size, 1 / size) if law is None else np.asarray(law, float)
    y, generator = _labels(embedding), np.random.default_rng(seed)
    signed = y[:, None] * embedding * y
    margins, support = np.zeros(size), masses > 0
    count = steps = position = 0
    while count < limit:
        triggers = np.flatnonzero(support & (margins <= margin))
        if not triggers.size:
            return Updates(count, steps + (patience or 0), y * margins)
        if order == "worst":
            chosen = triggers[margins[triggers].argmin()]
        elif order == "cyclic":
            later = triggers[triggers >= position]
            chosen = later[0] if later.size else triggers[0]
            steps += int((chosen - position) % size) + 1
            position = int(chosen) + 1
        else:
            share = masses[triggers]
            wait = int(generator.geometric(min(1.0, share.sum())))
            if patience is not None and wait > patience:
                return Updates(count, steps + patience, y * margins)
            steps += wait
            chosen = generator.choice(triggers, p=share / share.sum())
        margins = margins + signed[chosen]
        count += 1
    return Updates(count, steps, y * margins)


def train_both_layers(
    weights: Floats, inputs: ArrayLike, rate: float, beta: float = 0.0, bias: float | None = None
) -> tuple[int, Floats]:
    """The algorithm of Theorem 5 on a sequence of input numbers: its non-zero updates and the outputs on the cube.

    Hidden weights, hidden biases and output weights all move.
    """
    require(rate > 0 and beta >= 0, "the rate must be positive and the margin not negative")
    d = weights.shape[1]
    x = cube(d)
    y = _labels(x)
    w, b = weights.copy(), np.full(len(weights), float(recommended_bias(d) if bias is None else bias))
    v, count = np.zeros(len(weights)), 0
    for number in np.asarray(inputs):
        h = w @ x[number] + b
        z = np.maximum(h, 0.0)
        if y[number] * float(v @ z) <= beta:
            push = rate * y[number] * v * (h > 0)
            v = v + rate * y[number] * z
            w += push[:, None] * x[number]
            b += push
            count += 1
    return count, np.maximum(x @ w.T + b, 0.0) @ v


def _labels(rows: Floats) -> Floats:
    """The full parity of the 2^d inputs that these are the rows of."""
    return full_parity(len(rows).bit_length() - 1)
