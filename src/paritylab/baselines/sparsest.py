"""The smallest support that explains all labels, where the samples leave many: search by size, in hashed columns."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from paritylab import provenance
from paritylab.baselines import gf2, supports
from paritylab.baselines.packed import Bits, Packed, Words
from paritylab.baselines.supports import Until
from paritylab.baselines.votes import parity

ALWAYS = Until()
MOST_PAIRS_MET = 6 * 10**7
MOST_PAIRS_KEPT = 4 * 10**6
MOST_WORK = 2 * 10**9
TABLE_BITS = 22


class Sparse(NamedTuple):
    """A support that explains every label, the least size that one can have as far as is known, and whether it is the
    only one of its size (None: not known)."""

    support: list[int]
    least: int
    alone: bool | None


def sparsest(x: Bits, y: Bits, generator: np.random.Generator, until: Until = ALWAYS) -> Sparse:
    """The sparsest parity, or its opposite, that explains all labels: bits x (m, n) and y (m,) that have a solution.

    All supports of up to 4 members are tried while there is time; without the native kernel, of 3 where n is at most
    10,954 and of 4 where n is at most 2,828. Where none of them explains the labels, the sparsest of a few random
    solutions is returned.

    >>> x = np.random.default_rng(0).integers(0, 2, (40, 200)).astype(bool)
    >>> sparsest(x, ~(x[:, 3] ^ x[:, 8] ^ x[:, 21]), np.random.default_rng(1))
    Sparse(support=[3, 8, 21], least=3, alone=True)
    """
    found = few(x, y, generator, 4, until)
    return found if found.alone is not None else found._replace(support=_solution(x, y, generator))


def few(x: Bits, y: Bits, generator: np.random.Generator, most: int, until: Until = ALWAYS) -> Sparse:
    """The sparsest parity of up to ``most`` members, at most 4, that explains all labels. Where there is none, its
    ``alone`` is None and ``least`` is the first size that was not searched."""
    packed = Packed.of(x, y)
    relative = packed.against_the_first_row()
    if not relative.labels.any():
        return Sparse([], 0, True)
    hashes, target = relative.hashes(generator)
    size = 0
    for size, matches in enumerate(_by_size(packed, hashes, np.uint64(target), most, until), 1):
        right = [support for support in matches.supports if len(set(parity(x, support) ^ y)) == 1]
        if right:
            return Sparse(right[0], size, matches.total == matches.times)
    return Sparse([], size + 1, None)


class _Matches(NamedTuple):
    """Some supports whose hashes add up to the target's, how many were met, and how often each of them is."""

    supports: list[list[int]]
    total: int
    times: int


def _by_size(packed: Packed, hashes: Words, target: np.uint64, most: int, until: Until) -> Iterator[_Matches]:
    """Supports of 1, 2, ... members; whoever asks for a size knows that there is none of a smaller one."""
    if most < 1:
        return
    alone = np.flatnonzero(hashes == target)
    yield _Matches([[int(j)] for j in alone[:1]], len(alone), 1)
    if most < 2:
        return
    known = _Known(hashes)
    yield _met(known, [((i,), hashes[i : i + 1] ^ target) for i in known.likely(hashes ^ target)], 2)
    if provenance.kernel() is None:
        yield from itertools.islice(_without_kernel(known, hashes, target), most - 2)
        return
    for size in range(3, min(most, len(hashes)) + 1):
        found = supports.meet(packed, size, until, hashes, target)
        if not found.supports and not found.complete:
            return
        number = found.number if found.complete else found.number + 1  # there may be more
        yield _Matches([list(members) for members, _ in found.supports], number, 1)


def _without_kernel(known: _Known, hashes: Words, target: np.uint64) -> Iterator[_Matches]:
    """Those of 3 and 4 members, as far as memory and patience go."""
    n = len(hashes)
    pairs = n * (n - 1) // 2
    if pairs > MOST_PAIRS_MET:
        return
    found = []
    for i in range(n - 1):
        needed = hashes[i + 1 :] ^ (hashes[i] ^ target)
        found += [((i, i + 1 + j), needed[j : j + 1]) for j in known.likely(needed).tolist()]
    yield _met(known, found, 3)
    if pairs > MOST_PAIRS_KEPT:
        return
    first, second = np.triu_indices(n, 1)
    sums = hashes[first] ^ hashes[second]
    known = _Known(sums)
    met = _met(known, [((i,), sums[i : i + 1] ^ target) for i in known.likely(sums ^ target)], 6)
    yield met._replace(supports=[[int(end[pair]) for pair in each for end in (first, second)] for each in met.supports])


def _met(known: _Known, candidates: list[tuple[tuple[int, ...], Words]], times: int) -> _Matches:
    """Those of the candidates (members, and the hash that is missing) that a known hash completes."""
    supports, total = [], 0
    for members, needed in candidates:
        places = known.places(needed[0])
        total += len(places)
        if len(places) and len(supports) < 8:
            supports.append([*map(int, members), int(places[0])])
    return _Matches(supports, total, times)


class _Known:
    """Hashes that can be looked up: a table of their first bits tells at once that most others are not among them."""

    def __init__(self, hashes: Words) -> None:
        self._order = np.argsort(hashes, kind="stable")
        self._sorted = hashes[self._order]
        self._table = np.zeros(2**TABLE_BITS, bool)
        self._table[hashes >> np.uint64(64 - TABLE_BITS)] = True

    def likely(self, needed: Words) -> NDArray[np.intp]:
        """Positions of the needed hashes that are known."""
        some = np.flatnonzero(self._table[needed >> np.uint64(64 - TABLE_BITS)])
        places = np.minimum(np.searchsorted(self._sorted, needed[some]), len(self._sorted) - 1)
        return some[self._sorted[places] == needed[some]]

    def places(self, needed: np.uint64) -> NDArray[np.intp]:
        low, high = (np.searchsorted(self._sorted, needed, side=side) for side in ("left", "right"))
        return self._order[low:high]


def _solution(x: Bits, y: Bits, generator: np.random.Generator) -> list[int]:
    """The sparsest of solutions whose support lies within random independent columns (Prange's decoding)."""
    m, n = x.shape
    best = list(range(n))
    for trial in range(1 + int(min(64, MOST_WORK // (m * min(m, n) * (n // 64 + 1))))):
        order = generator.permutation(n) if trial else np.arange(n)
        # The first column, a constant, lets the parity be negated.
        found = gf2.solve(np.column_stack([np.ones(m, bool), x[:, order]]), y).support
        best = min(best, sorted(int(order[j - 1]) for j in found or [] if j > 0), key=len)
    return best
