"""Noisy population gradient descent of two-layer ReLU networks on a parity, under the correlation loss -y f.

This is Definition 3 of Abbe et al. (2024), with exact expectations over all 2^d inputs. The gradient of one neuron
needs only the Fourier coefficients of its threshold at S and at S with one input swapped:

    c = E chi(x) 1[z > 0],  g_j = E chi(x) x_j 1[z > 0],  z = w.x + b;
    by w: -v g,  by b: -v c,  by v: -E chi(x) relu(z) = -(w.g + b c).

They come from the 2^(d/2) sums of each half of the inputs, sorted together: d 2^(d/2) operations for each neuron in
place of 2^d, all neurons of all draws at once. All 2^d inputs are visited for the accuracy only. Everything is float64.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from paritylab.aliases import Floats
from paritylab.errors import require
from paritylab.measures.alignment.laws import bias_law, law
from paritylab.measures.coefficients import character, sums
from paritylab.measures.fourier import cube

MOST_INPUTS = 24
BLOCK = 2**16
"""Numbers held at once in one work array."""
HALF = 16
"""Bits of a packed count: |counts| <= 2^12."""
LOW = 10
"""Inputs whose 2^10 patterns share one array when outputs are computed."""


class Networks(NamedTuple):
    """sum_i v_i relu(w_i.x + b_i) for many draws: w (draws, width, d), b and v (draws, width)."""

    w: Floats
    b: Floats
    v: Floats


def draw_networks(
    d: int, width: int, draws: int, init: Any = "gaussian", bias: Any = "gaussian", output: Any = "gaussian",
    scale: float | None = None, seed: int | np.random.Generator = 0,
) -> Networks:
    """Independent networks: w of law ``init`` times ``scale``, v of law ``output`` over sqrt(width), b of law ``bias``.

    The scale is 1/sqrt(d) unless told; a bias or output may also be a number.

    >>> [part.shape for part in draw_networks(5, 3, 2)]
    [(2, 3, 5), (2, 3), (2, 3)]
    """
    require(1 <= d <= MOST_INPUTS, f"d must be from 1 to {MOST_INPUTS}, not {d}")
    require(width >= 1 and draws >= 1, "a width and a number of draws are at least 1")
    generator = np.random.default_rng(seed)
    w = law(init).sample(generator, (draws, width, d)) * (1 / math.sqrt(d) if scale is None else scale)
    b = bias_law(bias).sample(generator, (draws, width))
    return Networks(w, b, bias_law(output).sample(generator, (draws, width)) / math.sqrt(width))


def noisy_gd(
    d: int,
    width: int,
    init: Any = "gaussian",
    degree: int | None = None,
    *,
    rate: float,
    tau: float,
    steps: int | Sequence[int],
    draws: int = 20,
    bias: Any = "gaussian",
    output: Any = "gaussian",
    scale: float | None = None,
    seed: int = 0,
    threads: int | None = None,
) -> Floats:
    """Accuracies on all 2^d inputs after ``steps`` of theta <- theta - rate (Gamma(theta) + N(0, tau^2)), (draws,).

    The target is the parity of the first ``degree`` inputs, all unless told; each draw has its own start
    (:func:`draw_networks`) and noise. Several numbers of steps, increasing, give one row for each.

    >>> noisy_gd(6, 2000, "rademacher", rate=1.0, tau=0.01, steps=5, draws=3, bias=0)
    array([1., 1., 1.])
    """
    generator = np.random.default_rng(seed)
    networks = draw_networks(d, width, draws, init, bias, output, scale, generator)
    asked = [steps] if isinstance(steps, int) else list(steps)
    require(bool(asked) and asked[0] >= 0 and asked == sorted(set(asked)), "numbers of steps must increase from 0")
    found, now = [], 0
    for step in asked:
        networks = descend(networks, degree, rate, tau, step - now, generator, threads)
        found.append(accuracies(networks, degree, threads))
        now = step
    return found[0] if isinstance(steps, int) else np.array(found)


def descend(
    networks: Networks, degree: int | None, rate: float, tau: float, steps: int,
    seed: int | np.random.Generator = 0, threads: int | None = None,
) -> Networks:
    """The networks after so many steps; with tau = 0 nothing is random."""
    require(rate >= 0 and tau >= 0, "the rate and the noise level must not be negative")
    generator = np.random.default_rng(seed)
    for _ in range(steps):
        slopes = gradient(networks, degree, threads)
        noise = [tau * generator.standard_normal(part.shape) if tau else 0.0 for part in networks]
        parts = zip(networks, slopes, noise, strict=True)
        networks = Networks(*(part - rate * (slope + extra) for part, slope, extra in parts))
    return networks


def gradient(networks: Networks, degree: int | None = None, threads: int | None = None) -> Networks:
    """Gamma = -E chi(x) grad f(x) by each parameter; the slope of the ReLU at 0 is 0.

    >>> gradient(Networks(np.ones((1, 1, 2)), np.ones((1, 1)), np.ones((1, 1)))).w
    array([[[-0.25, -0.25]]])
    """
    w, b, v = networks
    d = w.shape[-1]
    inside = np.arange(d) < (d if degree is None else degree)
    g, c = threshold_coefficients(w.reshape(-1, d), b.ravel(), inside, threads)
    g, c = g.reshape(w.shape), c.reshape(b.shape)
    return Networks(-v[..., None] * g, -v * c, -((w * g).sum(-1) + b * c))


def threshold_coefficients(
    weights: Floats, bias: ArrayLike, inside: NDArray[np.bool_], threads: int | None = None
) -> tuple[Floats, Floats]:
    """E chi(x) x_j 1[w.x + b > 0], (m, d), and E chi(x) 1[w.x + b > 0], (m,), for m neurons; exact counts over 2^d.

    A sum within rounding of 0 counts as not above 0.

    >>> threshold_coefficients(np.ones((1, 2)), [1.0], np.ones(2, bool))
    (array([[0.25, 0.25]]), array([-0.25]))
    """
    m, d = weights.shape
    require(1 <= d <= MOST_INPUTS, f"d must be from 1 to {MOST_INPUTS}, not {d}")
    biases = np.broadcast_to(np.asarray(bias, float), m)
    half = d // 2
    near, far = cube(half) if half else np.ones((1, 0)), cube(d - half)
    chi_near, chi_far = character(inside[:half]), character(inside[half:])
    by_near = chi_near[:, None] * np.hstack([near, np.ones((len(near), 1))])
    by_far = chi_far[:, None] * far
    size = len(near) + len(far)
    signs = np.concatenate([2**HALF * chi_near, chi_far]).astype(np.int32)
    low_bits = 2 ** (size - 1).bit_length() - 1
    found = np.empty((m, d + 1))

    def count(rows: slice) -> None:
        """Pairs of halves with near + b > -far, by one sort of both; a key's last bits say which half it is."""
        w, b = weights[rows], biases[rows, None]
        rounding = 4 * (low_bits + d) * np.finfo(np.float64).eps * (np.abs(w).sum(1, keepdims=True) + np.abs(b))
        keys = np.empty((len(w), size))
        keys[:, : len(near)] = w[:, :half] @ near.T + (b - rounding)
        keys[:, len(near) :] = -w[:, half:] @ far.T
        number = keys.view(np.int64)
        number &= ~low_bits
        number |= np.arange(size)
        keys.sort(axis=1)
        number &= low_bits
        # Sums of chi over the near and over the far halves up to each key, packed into one number.
        packed = np.cumsum(signs.take(number), axis=1, dtype=np.int32)
        number += size * np.arange(len(w))[:, None]
        unsorted = np.empty(packed.size, np.int32)
        unsorted[number.ravel()] = packed.ravel()
        unsorted = unsorted.reshape(packed.shape)
        lower = unsorted.astype(np.int16)
        beyond = chi_near.sum() - ((unsorted[:, len(near) :] - lower[:, len(near) :]) >> HALF)
        by_half = lower[:, : len(near)].astype(np.float64) @ by_near
        found[rows] = np.hstack([by_half[:, :half], beyond @ by_far, by_half[:, half:]]) / 2**d

    _in_parts(count, m, max(1, BLOCK // size), threads)
    return found[:, :d], found[:, d]


def accuracies(networks: Networks, degree: int | None = None, threads: int | None = None) -> Floats:
    """The share of the 2^d inputs at which the sign of the output is the parity; an output of 0 is wrong."""
    draws, _, d = networks.w.shape
    chi = character(np.arange(d) < (d if degree is None else degree)).reshape(-1, 2 ** min(d, LOW))
    found = np.empty(draws)

    def judge(rows: slice) -> None:
        for draw in range(rows.start, min(rows.stop, draws)):
            w, b, v = (part[draw] for part in networks)
            rounding = 4 * d * float(np.finfo(np.float64).eps * (np.abs(v) @ (np.abs(w).sum(1) + np.abs(b))))
            low, high = sums(w[:, :LOW]), sums(w[:, LOW:]) + b[:, None]
            work, right = np.empty_like(low), 0
            for place, signs in enumerate(chi):
                # relu(low + high) = max(low, -high) + high
                np.maximum(low, -high[:, place, None], out=work)
                right += int(np.count_nonzero(signs * (v @ work + v @ high[:, place]) > rounding))
            found[draw] = right / 2**d

    _in_parts(judge, draws, 1, threads)
    return found


def _in_parts(work: Any, count: int, size: int, threads: int | None) -> None:
    """Call ``work`` on slices that cover range(count)."""
    parts = [slice(start, start + size) for start in range(0, count, size)]
    threads = threads or os.cpu_count() or 1
    if threads == 1 or len(parts) == 1:
        for part in parts:
            work(part)
        return
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, parts))
