"""Searches for the parity of few features with the fewest errors: all supports, or those that meet in the middle."""

from __future__ import annotations

import math
import os
import time
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from paritylab import provenance
from paritylab.baselines.packed import Packed, Words
from paritylab.baselines.search import correlations
from paritylab.progress import Bar

MOST_MEMBERS = 16
SLICE = 0.2
"""Seconds after which a search looks at the clock and at the keyboard."""
SURE = 5.0
"""Standard deviations by which errors may exceed their mean before a parity of a given noise is given up."""
RARE = 3.3
"""Standard deviations below chance at which errors are first tested: 1 support in 1,000 is looked at further."""
MISSED = 0.01
"""How often meeting by chosen rows misses a parity of the noise that it is sure of."""

NANOSECONDS = {"avx512": (0.1, 0.12), "avx2": (0.2, 0.3), "baseline": (1.0, 3.0)}
"""For one support, and for each of its words, by instruction set: measured, for estimates."""
PREFIX_NANOSECONDS = 15.0
PAIR_NANOSECONDS = {3: 1.5, 4: 4.5}
"""For a pair of features, by the size of supports."""
MET_NANOSECONDS = {3: 55.0, 4: 400.0}
"""For a support that is met, and verified."""


class Found(NamedTuple):
    """The supports of fewest errors, in order: some of them, and how many there are; which share was searched."""

    errors: int
    number: int
    supports: list[tuple[tuple[int, ...], bool]]
    share: float = 1.0

    @property
    def complete(self) -> bool:
        return self.share >= 1


NOTHING = Found(-1, 0, [])


class Until(NamedTuple):
    """When a search ends (by ``time.perf_counter``), with how many threads, and whether progress is shown."""

    end: float = math.inf
    threads: int = 1
    progress: bool | None = None

    def left(self) -> float:
        return self.end - time.perf_counter()


def cores(jobs: int | None) -> int:
    """Threads for ``n_jobs``: all cores for -1, one for None."""
    have = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return 1 if jobs is None else max(1, have + 1 + jobs if jobs < 0 else jobs)


def limits(packed: Packed, noise: float, most: int) -> NDArray[np.uint32]:
    """The most errors up to the end of each word of a parity with at most so much noise, and ``most`` in all."""
    rows = packed.ends()
    likely = noise * rows + SURE * np.sqrt(noise * (1 - noise) * rows)
    return np.minimum(np.ceil(likely), most).astype(np.uint32)


def first_test(packed: Packed, limit: NDArray[np.uint32]) -> int:
    """The words after which limits are first worth a look."""
    rows = packed.ends()
    rare = np.flatnonzero(rows / 2 - limit >= RARE * np.sqrt(rows) / 2)
    return int(rare[0]) + 1 if len(rare) else packed.words


def seconds_for_all(packed: Packed, size: int, first: int, threads: int) -> float:
    """About how long :func:`enumerate_all` takes."""
    kernel = provenance.kernel()
    number = math.comb(packed.features, size)
    if kernel is None:
        return number * packed.rows * 1e-10
    each, word = NANOSECONDS[kernel.search_isas()[0]]
    prefixes = math.comb(packed.features, size - 1)  # of which each is scanned once
    return (number * (each + word * first) + prefixes * PREFIX_NANOSECONDS) * 1e-9 / threads


def enumerate_all(packed: Packed, size: int, until: Until, limit: NDArray[np.uint32] | None = None) -> Found:
    """The fewest errors of all supports of a size; with ``limit``, of those that keep to it after each word.

    >>> x = np.random.default_rng(0).integers(0, 2, (200, 30)).astype(bool)
    >>> enumerate_all(Packed.of(x, ~(x[:, 3] ^ x[:, 8])), 2, Until())
    Found(errors=0, number=1, supports=[((3, 8), True)], share=1.0)
    """
    limit = np.full(packed.words, packed.rows, np.uint32) if limit is None else limit
    kernel = provenance.kernel()
    if kernel is None:
        return _by_products(packed, size, until, int(limit[-1]))
    search = kernel.Search.enumerate(*packed, limit, size, first_test(packed, limit))
    return _to_the_end(search, until, f"supports of {size}")


def meet(packed: Packed, size: int, until: Until, keys: Words, target: Any) -> Found:
    """Supports of 3 or 4 members without errors, in time of order n^2: 64-bit keys of pairs are looked up among those
    of single features, or of pairs. What meets is verified on all rows."""
    return _meeting(packed, size, keys, int(target), 64, np.zeros(packed.words, np.uint32), until)


class Chosen(NamedTuple):
    """How supports meet where labels are noisy: by the bits of so many rows chosen at random, so many times; about how
    long that takes. A parity is met where none of these rows, or all, are flipped."""

    rows: int
    trials: int
    seconds: float

    @staticmethod
    def of(packed: Packed, size: int, noise: float, threads: int) -> Chosen:
        """The fastest for parities of this noise, of which a share :data:`MISSED` may be missed."""
        n = packed.features
        some = np.ascontiguousarray(packed.columns[:: 1 + n // 1000]).view(np.uint8)
        ones = np.unpackbits(some, axis=1).sum(axis=1) / packed.rows
        # How often a bit of a sum is as it should be, by chance; of features that are mostly 0, most often.
        alike = (1 + float(np.mean((1 - 2 * ones) ** 2)) ** size) / 2
        best = Chosen(0, 0, math.inf)
        for rows in range(3, min(packed.rows, 62) + 1):
            clean = (1 - noise) ** rows
            trials = max(1, math.ceil(math.log(MISSED) / math.log1p(-clean))) if clean < 1 else 1
            each = n**2 / 2 * PAIR_NANOSECONDS[size] + math.comb(n, size) * alike ** (rows - 1) * MET_NANOSECONDS[size]
            best = min(best, Chosen(rows, trials, trials * each * 1e-9 / threads), key=lambda way: way.seconds)
        return best


def meet_by_chosen(packed: Packed, size: int, chosen: Chosen, limit: NDArray[np.uint32], until: Until,
                   generator: np.random.Generator) -> Found:
    """Supports of 3 or 4 members that keep to ``limit``, where labels are noisy; ends with the first trial that meets
    one. Its share is that of the trials."""
    with Bar(f"supports of {size}, by chosen rows", chosen.trials, until.progress) as bar:
        for trial in range(chosen.trials):
            bar.show(trial)
            rows = generator.choice(packed.rows, chosen.rows, replace=False)
            keys, target = packed.bits_of(rows)
            found = _meeting(packed, size, keys, target, chosen.rows - 1, limit, until._replace(progress=False))
            if found.supports:
                return found._replace(share=1.0)
            if not found.complete:
                return NOTHING._replace(share=trial / chosen.trials)
    return NOTHING


def _meeting(packed: Packed, size: int, keys: Words, target: int, bits: int, limit: Any, until: Until) -> Found:
    kernel = provenance.kernel()
    assert kernel is not None
    search = kernel.Search.meet(*packed, limit, size, keys, target, bits)
    return _to_the_end(search, until, f"supports of {size}, by keys")


def _to_the_end(search: Any, until: Until, title: str) -> Found:
    with Bar(title, search.total, until.progress) as bar:
        while search.done < search.total and not search.cut and until.left() > 0:
            search.advance(until.threads, SLICE, until.left())
            bar.show(search.done)
    errors, number, some = search.hits()
    share = search.done / search.total if search.done < search.total else 1.0
    if search.cut:
        share = min(share, 0.999)
    return Found(errors, number, [(tuple(members), negated) for members, negated in some], share)


def _by_products(packed: Packed, size: int, until: Until, most: int) -> Found:
    """The same by products of signs, where there is no kernel."""
    def signs(words: Any) -> Any:
        bits = np.unpackbits(words.astype("<u8").view(np.uint8), axis=-1, count=packed.rows, bitorder="little")
        return 1 - 2 * bits.astype(np.int8)

    best, done, total = Found(most, 0, []), 0, math.comb(packed.features, size)
    with Bar(f"supports of {size}", total, until.progress) as bar:
        for means, heads, tails in correlations(signs(packed.columns).T, signs(packed.labels[None])[0], size):
            errors = np.rint(packed.rows * (1 - np.abs(means)) / 2).astype(int)
            fewest = int(errors.min())
            if fewest <= best.errors:
                places = np.argwhere(errors == fewest)
                some = [((*map(int, heads[i]), *map(int, tails[j])), bool(means[i, j] < 0)) for i, j in places[:64]]
                kept = best.supports if fewest == best.errors else []
                number = len(places) + (best.number if fewest == best.errors else 0)
                best = Found(fewest, number, sorted(kept + some)[:8])
            done += means.size
            bar.show(done)
            if until.left() < 0:
                break
    found = best if best.supports else NOTHING
    return found._replace(share=done / total)
