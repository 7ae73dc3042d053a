"""XOR with Gaussian inputs: the population gradient of a neuron in closed form, and phase 1 as a chain of four numbers.

Inputs are N(0, I), labels sign(x1 x2). A neuron enters only through w1, w2 and p = |w_perp|. With h = sign(x1 x2)
1(w.x > 0), Stein's identity E[x h] = E[grad h] turns m = E[h x] into probabilities of wedges, which are angles:

    m_1 = R (arctan(w2/p) - (w1/|w|) q),  m_2 with 1 and 2 exchanged,  m_perp = -R (p/|w|) q along w_perp,

R = sqrt(2/pi)/pi, sin q = w1 w2 / sqrt((w1^2 + p^2)(w2^2 + p^2)). For small w1 and w2 it is R (w2, w1, 0)/p.
"""

from __future__ import annotations

import math

import numpy as np
from glasgow2023.theory.xor import GAUSSIAN_RATE
from numpy.typing import ArrayLike

from paritylab.aliases import Floats
from paritylab.errors import require


def active_mean(w1: ArrayLike, w2: ArrayLike, perp: ArrayLike) -> tuple[Floats, Floats, Floats]:
    """E[sign(x1 x2) 1(w.x > 0) x] along e1, e2 and w_perp.

    >>> [float(part.round(4)) for part in active_mean(1.0, 1.0, 0.3)]
    [0.1209, 0.1209, -0.0612]
    """
    first, second, p = (np.asarray(part, np.float64) for part in (w1, w2, perp))
    size = np.sqrt(first**2 + second**2 + p**2)
    sine = first * second / np.sqrt((first**2 + p**2) * (second**2 + p**2))
    q = np.arcsin(np.clip(sine, -1.0, 1.0))
    return (GAUSSIAN_RATE * (np.arctan2(second, p) - first / size * q),
            GAUSSIAN_RATE * (np.arctan2(first, p) - second / size * q), -GAUSSIAN_RATE * p / size * q)


def correction(sig: ArrayLike, perp: ArrayLike) -> Floats:
    """How much slower |w_sig| grows than at its start, where w_opp = 0: 1 - (2/3) (sig/perp)^2 for a small signal.

    On the cube it is 1 - (1/3) (sig/perp)^2: Gaussian inputs feel the bend of the ReLU earlier.

    >>> correction([1e-6, 0.3, 1.0], 1.0).round(4)
    array([1.    , 0.9441, 0.6301])
    """
    half = np.asarray(sig, np.float64) / math.sqrt(2)
    along = active_mean(half, half, perp)[0]
    return along * np.asarray(perp, np.float64) / (GAUSSIAN_RATE * half)


def median_signal(
    d: int, width: int, theta: float, eta: float, batch: int, steps: int, rng: np.random.Generator, noisy: bool = True
) -> Floats:
    """Median |w_sig| after 0, 1, ..., ``steps`` steps of the linearised loss, in O(width) a step whatever d is.

    A step moves w by eta a (m + noise), a by eta (w.m + noise); a coordinate's noise has variance 1/(2 batch), that of
    a |w|^2 / (2 batch). The d - 3 directions across w and the signal only widen w_perp, by a chi-square.

    >>> signal = median_signal(64, 256, 0.1, 0.1, 256, 50, np.random.default_rng(0), noisy=False)
    >>> round(float(np.log(signal[50] / signal[0]) / 5), 3)
    0.251
    """
    require(d >= 4, f"d must be at least 4, not {d}")
    w = rng.standard_normal((width, d))
    w *= theta / np.linalg.norm(w, axis=1, keepdims=True)
    w1, w2, p = w[:, 0], w[:, 1], np.linalg.norm(w[:, 2:], axis=1)
    a = theta * np.where(np.arange(width) % 2, 1.0, -1.0)
    scale = 1 / math.sqrt(2 * batch) if noisy else 0.0
    medians = np.empty(steps + 1)
    for step in range(steps + 1):
        medians[step] = np.median(np.abs(w1 + np.sign(a) * w2)) / math.sqrt(2)
        m1, m2, along = active_mean(w1, w2, p)
        noise = scale * rng.standard_normal((4, width))
        across = scale**2 * rng.chisquare(d - 3, width)
        pull = w1 * m1 + w2 * m2 + p * along + np.sqrt(w1**2 + w2**2 + p**2) * noise[3]
        p = np.sqrt((p + eta * a * (along + noise[2])) ** 2 + (eta * a) ** 2 * across)
        w1, w2, a = w1 + eta * a * (m1 + noise[0]), w2 + eta * a * (m2 + noise[1]), a + eta * pull
    return medians
