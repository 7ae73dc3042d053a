"""Gaussian elimination over GF(2): the support of a parity with little noise, or none, from about n samples."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from paritylab.errors import require


class Solution(NamedTuple):
    """A support that explains every label (None where there is none); the only one where rank = n."""

    support: list[int] | None
    rank: int


def solve(x: ArrayLike, y: ArrayLike) -> Solution:
    """Solve sum_{j in S} x_j = y (mod 2) for S; x (samples, n) and y (samples,) are bits, 1 where a sign is -1.

    Where the samples leave inputs undetermined, those are left out of the support.

    >>> x = np.random.default_rng(0).integers(0, 2, (40, 30))
    >>> solve(x, x[:, [3, 8, 21]].sum(1) % 2)
    Solution(support=[3, 8, 21], rank=30)
    >>> solve([[1, 0], [1, 0]], [0, 1])
    Solution(support=None, rank=1)
    """
    bits, labels = np.asarray(x), np.asarray(y)
    require(bits.ndim == 2 and labels.shape == bits.shape[:1], "samples are (samples, n) bits with one label each")
    for values in (bits, labels):
        require(bool(np.all((values == 0) | (values == 1))), "samples and labels are bits, 0 or 1; use x < 0 for signs")
    n = bits.shape[1]
    rows = pack(np.concatenate([bits, labels[:, None]], axis=1).astype(bool))
    found = _reduce(rows, n)
    ones = _bit(rows, n)
    if bool(ones[len(found) :].any()):
        return Solution(None, len(found))
    return Solution([column for column, one in zip(found, ones, strict=False) if one], len(found))


def pivots(x: ArrayLike) -> list[int]:
    """The first columns of a matrix of bits that are linearly independent and span all columns.

    >>> pivots([[1, 1, 0], [0, 0, 1]])
    [0, 2]
    """
    bits = np.asarray(x)
    require(bits.ndim == 2, "a matrix of bits has two axes")
    return _reduce(pack(bits.astype(bool)), bits.shape[1])


def pooled(x: np.ndarray, y: np.ndarray, generator: np.random.Generator, enough: float, trials: int) -> Solution:
    """The best of solutions from random subsets of examples: bits x (m, n) and y (m,); with noise p a subset is clean
    with probability (1 - p)^rank.

    Ends early with a solution that explains a share ``enough`` of all labels. Where x has not full rank, a solution is
    one of several.

    >>> generator = np.random.default_rng(0)
    >>> x = generator.integers(0, 2, (200, 20))
    >>> y = (x[:, [3, 8]].sum(1) + (generator.random(200) < 0.05)) % 2
    >>> pooled(x, y, generator, 0.8, 100).support
    [3, 8]
    """
    best, most = Solution([], 0), -1.0
    for _ in range(trials):
        rows = generator.permutation(len(x))
        subset = _independent(x, rows)
        solution = solve(x[subset], y[subset])
        right = float(np.mean(x[:, solution.support or []].sum(axis=1) % 2 == y))
        if right > most:
            best, most = solution, right
        if most >= enough:
            break
    return best


class Vote(NamedTuple):
    """The support that most subsets of examples give (None where all contradict themselves), how many do, of how many
    that give one."""

    support: list[int] | None
    votes: int
    voters: int


def vote(x: ArrayLike, y: ArrayLike, generator: np.random.Generator, subsets: int = 100) -> Vote:
    """The most frequent solution of random subsets of n examples: bits x (m, n) and y (m,), m at least n.

    What a subset leaves undetermined is left out of its support. One that no support explains is tried with all labels
    negated before it abstains. Of solutions with as many votes the one found first wins.

    >>> generator = np.random.default_rng(0)
    >>> x = generator.integers(0, 2, (100, 20))
    >>> y = (x[:, [3, 8]].sum(1) + (np.arange(100) < 10)) % 2
    >>> vote(x, y, generator)
    Vote(support=[3, 8], votes=5, voters=80)
    """
    bits, labels = np.asarray(x).astype(bool), np.asarray(y).astype(bool)
    (m, n), labels = bits.shape, labels[:, None]
    require(m >= n, f"a vote over subsets of n = {n} examples needs as many, not {m}")
    chosen = np.argsort(generator.random((subsets, m)), axis=1)[:, :n]
    systems = pack(np.concatenate([bits, labels, ~labels], axis=1))[chosen]
    ranks, columns = _reduce_each(systems, n)
    given, negated = (_bit(systems, n + side) for side in (0, 1))
    free = np.arange(n) >= ranks[:, None]
    wrong = (given & free).any(axis=1)
    right = np.where(wrong[:, None], negated, given)
    solved = ~(right & free).any(axis=1)
    if not solved.any():
        return Vote(None, 0, 0)
    solutions = np.zeros((subsets, n), bool)
    which, row = np.nonzero(right & ~free)
    solutions[which, columns[which, row]] = True
    distinct, first, counts = np.unique(solutions[solved], axis=0, return_index=True, return_counts=True)
    best = min(range(len(counts)), key=lambda i: (-counts[i], first[i]))
    return Vote(np.flatnonzero(distinct[best]).tolist(), int(counts[best]), int(solved.sum()))


def _independent(x: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """The first of ``rows`` of x that are linearly independent and span all of them: no labels on them contradict."""
    few = rows[: x.shape[1] + 20]
    return few[pivots(x[few].T)]


def _reduce(rows: NDArray[np.uint64], columns: int) -> list[int]:
    """Bring packed rows to reduced echelon form over their first ``columns`` bits, in place; the pivots' columns."""
    pivots: list[int] = []
    for column in range(columns):
        if len(pivots) == len(rows):
            break
        word, has = column // 64, _bit(rows, column)
        below = np.flatnonzero(has[len(pivots) :])
        if len(below) == 0:
            continue
        rank = len(pivots)
        pivot = rank + int(below[0])
        rows[[rank, pivot]] = rows[[pivot, rank]]
        has[[rank, pivot]] = has[[pivot, rank]]
        has[rank] = False
        # Earlier pivot columns of this row are 0 already, and rows above are cleared too: the reduced form.
        rows[has, word:] ^= rows[rank, word:]
        pivots.append(column)
    return pivots


def _reduce_each(systems: NDArray[np.uint64], columns: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The same for many systems (systems, rows, words) at once: their ranks, and the pivot's column of each row."""
    count, size, _ = systems.shape
    ranks, found = np.zeros(count, np.intp), np.zeros((count, size), np.intp)
    for column in range(columns):
        has = _bit(systems, column)
        below = has & (np.arange(size) >= ranks[:, None])
        some = np.flatnonzero(below.any(axis=1))
        rank, pivot = ranks[some], below[some].argmax(axis=1)
        lines = systems[some, pivot].copy()
        systems[some, pivot] = systems[some, rank]
        has[some, pivot] = has[some, rank]
        has[some, rank] = False
        systems[some] ^= np.where(has[some, :, None], lines[:, None], np.uint64(0))
        systems[some, rank] = lines
        found[some, rank] = column
        ranks[some] += 1
    return ranks, found


def _bit(rows: NDArray[np.uint64], column: int) -> NDArray[np.bool_]:
    return (rows[..., column // 64] >> np.uint64(column % 64)) & np.uint64(1) != 0


def pack(bits: NDArray[np.bool_]) -> NDArray[np.uint64]:
    """Rows of bits as rows of 64-bit words: bit j of a row is bit j % 64 of its word j // 64.

    >>> pack(np.ones((1, 65), bool)).tolist()
    [[18446744073709551615, 1]]
    """
    width = -(-bits.shape[1] // 64) * 8
    packed = np.packbits(bits, axis=1, bitorder="little")
    padded = np.zeros((len(bits), width), np.uint8)
    padded[:, : packed.shape[1]] = packed
    return padded.view("<u8").astype(np.uint64)
