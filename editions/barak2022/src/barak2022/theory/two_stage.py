"""Theorem 10 of Barak et al.: one gradient step finds the support of an even parity, then the top layer is trained.

A two-layer ReLU network f(x) = sum_i u_i relu(w_i.x + b_i) on odd n and even k, from mirrored pairs of sign neurons.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from paritylab.aliases import Floats
from paritylab.errors import require
from paritylab.measures.fourier import majority_coefficient
from paritylab.memory import Part, require_room
from paritylab.theory.majority import sign_gradient

CHUNK = 2**13
MOST_WEIGHTS = 10**8


@dataclass(frozen=True)
class Layer:
    """Hidden weights (r, n), biases (r,) and output weights (r,) of one network."""

    w: Floats
    b: Floats
    u: Floats


def bias_grid(k: int) -> Floats:
    """The 2k - 1 initial biases: from -1 + 1/k to 1 - 1/k in steps of 1/k.

    >>> bias_grid(2)
    array([-0.5,  0. ,  0.5])
    """
    _check(k)
    return np.arange(1 - k, k) / k


def initialise(n: int, k: int, width: int, seed: int | np.random.Generator = 0) -> Layer:
    """Pairs of neurons with the same signs and bias and opposite output signs: the network starts at 0.

    >>> layer = initialise(5, 2, 8)
    >>> layer.w.shape, float(layer.u.sum()), bool(np.all(layer.w[:4] == layer.w[4:]))
    ((8, 5), 0.0, True)
    """
    _check(k)
    require(n % 2 == 1 and n > k, f"the theorem needs an odd n above k, not {n}")
    require(width >= 2 and width % 2 == 0, f"mirrored pairs need an even width, not {width}")
    require(n * width <= MOST_WEIGHTS, f"n times width must be at most {MOST_WEIGHTS}, not {n} times {width}")
    generator = np.random.default_rng(seed)
    half, signs = width // 2, np.array([-1.0, 1.0])
    w = generator.choice(signs, (half, n))
    b = generator.choice(bias_grid(k), half)
    u = generator.choice(signs, half)
    return Layer(np.concatenate([w, w]), np.concatenate([b, b]), np.concatenate([u, -u]))


def sampled_gradient(
    layer: Layer, support: Iterable[int], samples: int, seed: int | np.random.Generator = 0
) -> tuple[Floats, Floats]:
    """The hinge loss's mean gradient at f = 0 over fresh samples, by weights (r, n) and by biases (r,).

    All neurons share the samples, which stream through float32 matrix products (sums of signs are exact there);
    mirrored neurons are computed once.

    >>> w, b = sampled_gradient(initialise(5, 2, 4), [0, 1], 10**5)
    >>> w.shape, b.shape, bool(np.all(w[:2] == -w[2:]))
    ((4, 5), (4,), True)
    """
    require(samples >= 1, f"a batch has at least one sample, not {samples}")
    members, half = list(support), len(layer.u) // 2
    weights = layer.w[:half].T.astype(np.float32)
    bias = layer.b[:half].astype(np.float32)
    generator = np.random.default_rng(seed)
    n = weights.shape[0]
    total = np.zeros((n + 1, half))
    for start in range(0, samples, CHUNK):
        x = _signs(generator, min(CHUNK, samples - start), n)
        y = x[:, members].prod(1)
        active = (x @ weights + bias > 0).astype(np.float32)
        signed = np.concatenate([x * y[:, None], y[:, None]], axis=1)
        total += signed.T @ active
    gradient = -layer.u[:half] * total / samples
    gradient = np.concatenate([gradient, -gradient], axis=1)
    return gradient[:-1].T, gradient[-1]


def first_step(
    layer: Layer, support: Iterable[int], samples: int | None = None, seed: int | np.random.Generator = 0
) -> Layer:
    """The step at rate 1/(k |xi_(k-1)|) whose weight decay of 1 erases w and u; biases are moved, not decayed.

    With the population's gradient (Lemma 2), or with the mean over ``samples`` fresh ones.

    >>> layer = first_step(Layer(np.ones((1, 5)), np.zeros(1), np.ones(1)), [0, 1])
    >>> layer.w.round(3), layer.u
    (array([[ 0.25 ,  0.25 , -0.083, -0.083, -0.083]]), array([0.]))
    """
    members = list(support)
    k, n = len(members), layer.w.shape[1]
    _check(k)
    if samples is None:
        by_weight, by_bias = sign_gradient(layer.w, layer.u, members), np.zeros_like(layer.b)
    else:
        by_weight, by_bias = sampled_gradient(layer, members, samples, seed)
    rate = 1 / (k * abs(majority_coefficient(n, k - 1)))
    return Layer(-rate * by_weight, layer.b - rate * by_bias, np.zeros_like(layer.u))


def good_neurons(layer: Layer, support: Iterable[int]) -> NDArray[np.bool_]:
    """Which initial neurons become features of the support: w_j = u sign(xi_(k-1)) for all j in S."""
    members = list(support)
    sign = np.sign(majority_coefficient(layer.w.shape[1], len(members) - 1))
    return np.all(layer.w[:, members] == sign * layer.u[:, None], axis=1)


# --- the second stage -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TopTraining:
    """The trained network, and at each check the step, the accuracy and the hinge loss on one fixed sample."""

    layer: Layer
    steps: NDArray[np.int64]
    accuracy: Floats
    loss: Floats


def theorem_rate(n: int, k: int, width: int, steps: int) -> float:
    """The theorem's rate for the top layer, 4 k^1.5 / (n sqrt(r (T - 1)))."""
    return 4 * k**1.5 / (n * math.sqrt(width * (steps - 1)))


def train_top(
    layer: Layer,
    support: Iterable[int],
    steps: int,
    rate: float,
    batch: int = 256,
    test: int = 8192,
    check_every: int = 100,
    seed: int | np.random.Generator = 0,
) -> TopTraining:
    """Online SGD on the hinge loss by the output weights alone, from the layer's own u.

    >>> layer = first_step(initialise(31, 2, 64), [0, 1])
    >>> float(train_top(layer, [0, 1], steps=500, rate=0.5).accuracy[-1])
    1.0
    """
    require(steps >= 1 and rate > 0, "training needs a step at least and a positive rate")
    width, n = layer.w.shape
    require_room("a step of the top layer", {"examples of a batch": Part(max(batch, test), 13 * n + 12 * width)})
    members = list(support)
    generator = np.random.default_rng(seed)
    weights, bias, u = layer.w.T.astype(np.float32), layer.b.astype(np.float32), layer.u.copy()

    def features(count: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        x = _signs(generator, count, len(weights))
        return np.maximum(x @ weights + bias, 0.0), x[:, members].prod(1)

    shown, truth = features(test)
    checks: list[tuple[int, float, float]] = []
    for t in range(1, steps + 1):
        h, y = features(batch)
        u += rate / batch * ((y * (y * (h @ u.astype(np.float32)) < 1)) @ h)
        if t % check_every == 0 or t == steps:
            margin = truth * (shown @ u.astype(np.float32))
            checks.append((t, float((margin > 0).mean()), float(np.maximum(0.0, 1 - margin).mean())))
    at, accuracy, loss = zip(*checks, strict=True)
    return TopTraining(replace(layer, u=u), np.array(at), np.array(accuracy), np.array(loss))


def _signs(generator: np.random.Generator, count: int, n: int) -> NDArray[np.float32]:
    raw = np.frombuffer(generator.bytes(-(-count * n // 8)), np.uint8)
    bits = np.unpackbits(raw, count=count * n)
    return 1 - 2 * bits.reshape(count, n).astype(np.float32)


def _check(k: int) -> None:
    require(k >= 2 and k % 2 == 0, f"the theorem needs an even k, not {k}")
