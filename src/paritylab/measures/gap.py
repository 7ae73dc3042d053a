"""Fourier gaps: how far the relevant coordinates of a neuron's population gradient stand out from the others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from paritylab.aliases import Floats
from paritylab.errors import require
from paritylab.measures.coefficients import character, first_order, sums, threshold, tolerance
from paritylab.measures.fourier import Function, population_gradient


def largest_gap(gradient: ArrayLike, support: Iterable[int]) -> Floats:
    """max_{i in S} |g_i| - max_{i not in S} |g_i|, the Gamma of Barak et al., Figure 11; g is (..., n).

    >>> float(largest_gap([0.3, -0.5, 0.1, -0.2], [0, 1]))
    0.3
    """
    relevant, others = _split(gradient, support)
    return relevant.max(-1) - others.max(-1)


class GapInterval(NamedTuple):
    """There is a gamma-gap for exactly the gammas from ``low`` to ``high`` (none where low > high)."""

    low: Floats
    high: Floats


def gap_interval(gradient: ArrayLike, support: Iterable[int]) -> GapInterval:
    """The gammas with |g_i| >= gamma for i in S and |g_i| <= gamma/2 elsewhere; g is (..., n).

    This is Definition 1 of Barak et al. where it matters for recovering S, at the sets S + {i}; as printed it asks
    for the same at every set of |S| + 1 inputs: see :func:`definition_interval`.

    >>> tuple(float(end) for end in gap_interval([0.3, -0.5, 0.1, -0.125], [0, 1]))
    (0.25, 0.3)
    """
    relevant, others = _split(gradient, support)
    return GapInterval(2 * others.max(-1), relevant.min(-1))


def definition_interval(coefficients: ArrayLike, support: Iterable[int]) -> GapInterval:
    """The gammas for which a function has a gamma-gap at S by Definition 1, from all its 2^n coefficients.

    >>> from paritylab.measures.fourier import fourier_coefficients
    >>> majority = fourier_coefficients(lambda x: (x.sum(1) > 0) * 1.0, 5)
    >>> tuple(float(end) for end in definition_interval(majority, [0, 1]))
    (0.125, 0.1875)
    """
    sizes = np.abs(np.asarray(coefficients, np.float64))
    members = list(support)
    whole = sum(1 << j for j in members)
    above = np.bitwise_count(np.arange(len(sizes))) == len(members) + 1
    require(len(members) > 0 and bool(above.any()), "a gap needs inputs inside and outside of the support")
    relevant = sizes[[whole ^ (1 << j) for j in members]]
    return GapInterval(2 * sizes[above].max(), relevant.min())


def gaps(
    weights: ArrayLike,
    support: Iterable[int],
    bias: ArrayLike = 0.0,
    unit: str | Function = "relu",
    method: str = "auto",
) -> Floats:
    """Gamma of the exact population gradient at each of many weight vectors (..., n): random ones, or a training path.

    >>> gaps([[1, 1, 1, 1, 1], [9, 1, 1, 1, 1]], [0, 1])
    array([0.125, 0.5  ])
    """
    members = list(support)
    return largest_gap(population_gradient(weights, members, bias, unit, method).weights, members)


def recover_support(gradient: ArrayLike, gamma: float) -> list[int]:
    """The inputs with |g_i| > 3 gamma / 4: S, where the gap is gamma and g off by less than gamma / 4 (Proposition 5).

    >>> recover_support([0.3, -0.5, 0.1, -0.125], 0.3)
    [0, 1]
    """
    return np.flatnonzero(np.abs(np.asarray(gradient)) > 0.75 * gamma).tolist()


def _split(gradient: ArrayLike, support: Iterable[int]) -> tuple[Floats, Floats]:
    sizes = np.abs(np.asarray(gradient, np.float64))
    inside = np.isin(np.arange(sizes.shape[-1]), list(support))
    require(0 < inside.sum() < len(inside), "a gap needs inputs inside and outside of the support")
    return sizes[..., inside], sizes[..., ~inside]


# --- sampling ---------------------------------------------------------------------------------------------------

GROUP = 16
"""Inputs are drawn as 16-bit words; sums over a word's inputs are looked up."""
CHUNK = 2**18


def sampled_gradient(
    weights: ArrayLike,
    support: Iterable[int],
    samples: int,
    seed: int | np.random.Generator = 0,
    bias: float = 0.0,
    derivative: Callable[[Any], Any] | None = None,
    noise: float = 0.0,
) -> Floats:
    """The mean of y x s(w.x + b) over fresh samples, for one weight vector; labels y = chi_S flip with rate ``noise``.

    ``derivative`` is s, of arrays; 1[z > 0] unless given.

    >>> sampled_gradient([1, 1, 1, 1, 1], [0, 1], 10**6).round(2) + 0.0
    array([ 0.19,  0.19, -0.06, -0.06, -0.06])
    """
    w = np.asarray(weights, np.float64)
    require(w.ndim == 1, "samples are drawn for one weight vector at a time")
    require(samples >= 1, f"a sample has at least one member, not {samples}")
    require(0 <= noise <= 1, f"a flip rate must be between 0 and 1, not {noise:g}")
    n = len(w)
    inside = np.isin(np.arange(n), list(support))
    generator = np.random.default_rng(seed)
    slack = tolerance(w, np.asarray(bias))
    cuts = [slice(start, min(start + GROUP, n)) for start in range(0, n, GROUP)]
    partial = [sums(w[cut]) for cut in cuts]
    labels = [character(inside[cut]) for cut in cuts]
    totals = [np.zeros(len(table)) for table in partial]
    for words in _words(generator, samples, [len(table) - 1 for table in partial]):
        z = sum(table[word] for table, word in zip(partial, words, strict=True)) + bias
        value = derivative(z) if derivative else threshold(z, slack)
        for table, word in zip(labels, words, strict=True):
            value = value * table[word]
        if noise:
            value = np.where(generator.random(len(value)) < noise, -value, value)
        for total, word in zip(totals, words, strict=True):
            total += np.bincount(word, value, len(total))
    found = [first_order(total, cut.stop - cut.start) for total, cut in zip(totals, cuts, strict=True)]
    return np.concatenate(found) / samples


def _words(generator: np.random.Generator, samples: int, masks: list[int]) -> Iterator[list[NDArray[np.intp]]]:
    for start in range(0, samples, CHUNK):
        count = min(CHUNK, samples - start)
        bits = generator.integers(0, 2**64, (len(masks), -(-count // 4)), np.uint64).view(np.uint16)
        yield [(row[:count] & mask).astype(np.intp) for row, mask in zip(bits, masks, strict=True)]

