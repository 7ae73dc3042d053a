"""Fourier coefficients of one threshold unit, E chi_T(x) 1[w.x + b > 0], at T = S and at every T that differs from S
by one input: the bias and weight coordinates of a ReLU neuron's population gradient. x is uniform on {-1, +1}^n.

A sum that is 0 counts as not above 0; sums within the rounding error of 0 are taken to be 0. Every function takes
weights (draws, n), the mask of S and biases (draws,), and returns weight coordinates (draws, n), bias coordinates
(draws,) and an estimate of the absolute error (draws,), which is 0 where only rounding is left.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paritylab.aliases import Floats

Result = tuple[Floats, Floats, Floats]
BLOCK = 2**21
"""Numbers held at once in one work array."""
MOST_NODES = 2**15


def threshold(z: Any, tolerance: Any = 0.0) -> Any:
    """1[z > 0]."""
    return (z > tolerance).astype(np.float64)


def tolerance(weights: Floats, bias: Floats) -> Floats:
    """What rounding can add to w.x + b."""
    return 2 * weights.shape[-1] * np.finfo(np.float64).eps * (np.abs(weights).sum(-1) + np.abs(bias))


def sums(weights: Floats) -> Floats:
    """w.x for all x, in the order of binary counting: bit j of the index is set where x_j = -1.

    >>> sums(np.array([1.0, 10.0])).tolist()
    [11.0, 9.0, -9.0, -11.0]
    """
    z = np.zeros((*weights.shape[:-1], 1))
    for j in range(weights.shape[-1]):
        w = weights[..., j : j + 1]
        z = np.concatenate([z + w, z - w], axis=-1)
    return z


def character(inside: NDArray[np.bool_]) -> Floats:
    """chi_S for all x, in the order of :func:`sums`."""
    chi = np.ones(1)
    for j in inside:
        chi = np.concatenate([chi, -chi if j else chi])
    return chi


def first_order(values: Floats, n: int) -> Floats:
    """Sum over all x of values(x) x_j, for each j, in O(2^n).

    >>> first_order(np.array([1.0, 2.0, 4.0, 8.0]), 2)
    array([-5., -9.])
    """
    found = np.empty(n)
    for j in reversed(range(n)):
        half = 2**j
        found[j] = values[:half].sum() - values[half:].sum()
        values = values[:half] + values[half:]
    return found


# --- all inputs -------------------------------------------------------------------------------------------------


def enumerate_inputs(
    weights: Floats, inside: NDArray[np.bool_], bias: Floats, function: Callable[[Any], Any]
) -> Result:
    """For any function of w.x + b. Of each pair x, -x only one is visited; the rest is matrix products."""
    draws, n = weights.shape
    half = 2 ** (n - 1)
    chi = character(inside)[:half]
    table = np.stack([chi * character(np.arange(n) == j)[:half] for j in range(n)], axis=1)
    odd_weights = inside.sum() % 2 == 0  # the parity of |S| - 1 and |S| + 1
    gradient, constant = np.empty((draws, n)), np.empty(draws)
    size = max(1, BLOCK // half)
    for start in range(0, draws, size):
        part = slice(start, start + size)
        z, b = sums(weights[part]), bias[part, None]
        plus, minus = function(z[:, :half] + b), function(b - z[:, :half])
        odd, even = plus - minus, plus + minus
        gradient[part] = (odd if odd_weights else even) @ table
        constant[part] = (even if odd_weights else odd) @ chi
    return gradient / 2**n, constant / 2**n, np.zeros(draws)


def enumerate_threshold(weights: Floats, inside: NDArray[np.bool_], bias: Floats) -> Result:
    # Dividing by the largest sum makes one tolerance serve all draws; a threshold does not see the scale.
    scale = np.abs(weights).sum(-1) + np.abs(bias)
    scale = np.where(scale > 0, scale, 1.0)
    limit = 2 * weights.shape[-1] * np.finfo(np.float64).eps
    return enumerate_inputs(weights / scale[:, None], inside, bias / scale, lambda z: threshold(z, limit))


# --- meeting in the middle --------------------------------------------------------------------------------------


def meet_in_the_middle(weights: Floats, inside: NDArray[np.bool_], bias: Floats) -> Result:
    """Exact integer counts from the 2^(n/2) sums of each half: O(n 2^(n/2)) for each draw."""
    draws, n = weights.shape
    middle = n // 2
    gradient, constant = np.empty((draws, n)), np.empty(draws)
    sides = (slice(0, middle), slice(middle, n))
    for d, limit in enumerate(tolerance(weights, bias) - bias):
        totals = [sums(weights[d, side]) for side in sides]
        characters = [character(inside[side]) for side in sides]
        orders = [np.argsort(total) for total in totals]
        for here, there in ((0, 1), (1, 0)):
            # For each half input here: the sum of chi over the half inputs there that lift the total above 0.
            order = orders[there]
            above = np.append(np.cumsum(characters[there][order][::-1])[::-1], 0.0)
            found = np.empty_like(totals[here])
            wanted = limit - totals[here][orders[here]]
            found[orders[here]] = above[np.searchsorted(totals[there][order], wanted, side="right")]
            found *= characters[here]
            gradient[d, sides[here]] = first_order(found, sides[here].stop - sides[here].start)
            constant[d] = found.sum()
    return gradient / 2.0**n, constant / 2.0**n, np.zeros(draws)


# --- integrals --------------------------------------------------------------------------------------------------


def products(angles: Floats, inside: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """prod_{j in T} sin(a_j) prod_{j not in T} cos(a_j) at T = S with one input swapped (..., n), and at T = S (...).

    The products that leave one factor out come from both ends, without a division.
    """
    kept = np.where(inside, np.sin(angles), np.cos(angles))
    swapped = np.where(inside, np.cos(angles), np.sin(angles))
    left, right = np.ones_like(kept), np.ones_like(kept)
    np.cumprod(kept[..., :-1], axis=-1, out=left[..., 1:])
    right[..., :-1] = np.cumprod(kept[..., :0:-1], axis=-1)[..., ::-1]
    return left * swapped * right, kept.prod(-1)


def sine(weights: Floats, inside: NDArray[np.bool_], bias: Any) -> tuple[Floats, Floats]:
    """E chi_T(x) sin(w.x + b) = Im(i^|T| e^(ib) prod_T sin(w_j) prod_{not T} cos(w_j)), at the sets of `products`."""
    k = int(inside.sum())
    less, same, more = (np.sin(np.asarray(bias) + math.pi / 2 * (order % 4)) for order in (k - 1, k, k + 1))
    swapped, plain = products(weights, inside)
    return np.where(inside, less[..., None], more[..., None]) * swapped, same * plain


def integrate(weights: Floats, inside: NDArray[np.bool_], bias: Floats) -> Result:
    """By the transform of the sign function: 1[z > 0] = 1/2 + (1/pi) int_0^inf sin(tz) dt/t.

    Weights on a lattice (all multiples of one number, such as signs) have a finite exact sum instead. Elsewhere the
    midpoint rule is exact up to aliasing (below 1e-15) and the tail; nodes are added until the products at the last
    ones are negligible, which they become where n is large and S sparse. The error is estimated from what is left.
    """
    gradient, constant, error = np.empty_like(weights), np.empty(len(weights)), np.zeros(len(weights))
    for d, (w, b) in enumerate(zip(weights, bias, strict=True)):
        spacing = lattice_spacing(w)
        if spacing:
            nodes, factors, b = lattice_rule(w, b, spacing)
        else:
            nodes, factors, error[d] = midpoint_rule(w, inside, b)
        by_node, constants = sine(nodes[:, None] * w, inside, nodes * b)
        gradient[d], constant[d] = factors @ by_node, factors @ constants
    k = int(inside.sum())
    if k == 0:
        constant += 0.5
    if k == 1:
        gradient[:, inside] += 0.5
    return gradient, constant, error


def lattice_spacing(weights: Floats) -> float:
    """The largest c of which all weights are multiples, if it is the least |weight| over 1..6; otherwise 0.

    >>> lattice_spacing(np.array([0.5, -1.0, 0.75])), lattice_spacing(np.array([1.0, 1.1415]))
    (0.25, 0.0)
    """
    sizes = np.abs(weights[weights != 0])
    if len(sizes) == 0:
        return 1.0
    for part in range(1, 7):
        spacing = sizes.min() / part
        multiples = sizes / spacing
        if multiples.sum() < MOST_NODES and np.abs(multiples - np.round(multiples)).max() < 1e-9:
            return float(spacing)
    return 0.0


def lattice_rule(weights: Floats, bias: float, spacing: float) -> tuple[Floats, Floats, float]:
    """Nodes, factors and a bias halfway between two lattice points with the same threshold.

    For odd |m| < 2M, sign(m) = (1/M) sum_{j<M} sin(m t_j) / sin(t_j) with t_j = pi (j + 1/2) / M.
    """
    bias = -math.floor(-bias / spacing + 1e-9) - 0.5
    M = round(np.abs(weights).sum() / spacing + abs(bias)) + 1
    t = math.pi * (np.arange(M) + 0.5) / M
    return 2 * t / spacing, 0.5 / (M * np.sin(t)), bias * spacing


def midpoint_rule(
    weights: Floats, inside: NDArray[np.bool_], bias: float, most: int = MOST_NODES
) -> tuple[Floats, Floats, float]:
    """Nodes, factors and the estimated error."""
    norm = float(np.sqrt((weights**2).sum()))
    reach = min(float(np.abs(weights).sum()), 8.5 * norm) + abs(bias)  # P(|w.x| > 8.5 norm) < 1e-15 (Hoeffding)
    step = 2 * math.pi / (reach * (1 + 1e-9))
    count = math.ceil(18 / norm / step)
    while True:
        t = (np.arange(count) + 0.5) * step
        swapped, plain = products(t[count // 2 :, None] * weights, inside)
        error = 1e-15 + float(np.abs(swapped).mean(0).max() + np.abs(plain).mean())
        if error < 1e-13 or 2 * count > most:
            return t, step / (math.pi * t), error
        count *= 2
