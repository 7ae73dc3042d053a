"""Goldreich-Levin, in the form of Kushilevitz and Mansour: large Fourier coefficients from membership queries.

All supports start in one bucket. Input by input, buckets are split by whether their supports hold it; a bucket whose
coefficients have a sum of squares below half the threshold's square is dropped. By Parseval few are ever kept.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from paritylab.errors import require

Values = np.ndarray
Function = Callable[[np.ndarray], Values]
BUCKETS_AT_ONCE = 64


def heavy(
    f: Function, n: int, threshold: float, queries: int, generator: np.random.Generator, degree: int | None = None
) -> dict[tuple[int, ...], float]:
    """The supports T, of at most ``degree`` members, where |E f chi_T| is at least ``threshold``; largest first.

    ``f`` maps signs (count, n) to values in [-1, 1]: labels, or the sign of a trained network. Coefficients are
    estimates; those between threshold / sqrt(2) and threshold may be listed or not. ``queries`` are spent evenly: one
    share for each of the n splits, one for the coefficients. A share of q queries tells the weight of a bucket without
    coefficients to about 1.4 q^-3/4.

    >>> def weak(x):
    ...     return np.where(x[:, 4] + x[:, 7] + x[:, 9] > 0, 1.0, -1.0)
    >>> found = heavy(weak, 12, 0.4, 50_000, np.random.default_rng(0))
    >>> sorted(found), round(found[4, 7, 9], 1)
    ([(4,), (4, 7, 9), (7,), (9,)], -0.5)
    """
    require(0 < threshold <= 1, f"the threshold must be above 0 and at most 1, not {threshold:g}")
    require(queries >= 2 * (n + 1), f"{n} inputs need at least {2 * (n + 1)} queries, not {queries}")
    most = n if degree is None else degree
    share = queries // (n + 1)
    order = generator.permutation(n)
    members = np.zeros((1, 0), bool)
    for split in range(1, n + 1):
        members = np.concatenate([np.pad(members, ((0, 0), (0, 1)), constant_values=held) for held in (False, True)])
        members = members[members.sum(axis=1) <= most]
        weights = bucket_weights(f, n, order[:split], members, share, generator)
        kept = np.flatnonzero(weights >= threshold**2 / 2)
        members = members[kept[np.argsort(-weights[kept])][: math.ceil(4 / threshold**2)]]
    x = signs(generator, share, n)
    sizes = f(x) @ characters(x[:, order], members) / share
    found = {tuple(sorted(order[row].tolist())): float(c) for row, c in zip(members, sizes, strict=True)}
    large = sorted((T for T in found if abs(found[T]) >= threshold / math.sqrt(2)), key=lambda T: -abs(found[T]))
    return {T: found[T] for T in large}


def bucket_weights(
    f: Function, n: int, inputs: np.ndarray, members: np.ndarray, queries: int, generator: np.random.Generator
) -> Values:
    """Estimates of the sum of squared coefficients in each bucket: of supports that meet ``inputs`` in given members.

    It is E_z [E_y f(y, z) chi(y)]^2, y on ``inputs`` and z on the rest: about sqrt(queries) of z, each with as many y,
    of which all pairs are used.
    """
    size = max(2, math.isqrt(queries))
    groups = max(1, queries // size)
    x = np.repeat(signs(generator, groups, n), size, axis=0)
    x[:, inputs] = signs(generator, groups * size, len(inputs))
    values = np.asarray(f(x), np.float32)
    squares = (values**2).reshape(groups, size).sum(axis=1)[:, None]
    weights = []
    for first in range(0, len(members), BUCKETS_AT_ONCE):
        chi = characters(x[:, inputs], members[first : first + BUCKETS_AT_ONCE])
        sums = (values[:, None] * chi).reshape(groups, size, -1).sum(axis=1)
        weights.append(((sums**2 - squares) / (size * (size - 1))).mean(axis=0))
    return np.concatenate(weights) if weights else np.zeros(0)


def characters(x: np.ndarray, members: np.ndarray) -> Values:
    """chi_T of each row of signs x (count, j), for each row T of members (buckets, j): (count, buckets)."""
    return 1 - 2 * ((x < 0).astype(np.float32) @ members.T.astype(np.float32) % 2)


def signs(generator: np.random.Generator, count: int, n: int) -> np.ndarray:
    return generator.integers(0, 2, (count, n), np.int8) * np.int8(2) - np.int8(1)
