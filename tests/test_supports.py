"""Searches for supports against brute force, on every instruction set, and what they do when time is up."""

from __future__ import annotations

import itertools
import math
import time

import numpy as np
import pytest

from paritylab import provenance
from paritylab.baselines import supports
from paritylab.baselines.packed import Packed
from paritylab.baselines.supports import Chosen, Until, enumerate_all, limits, meet, meet_by_chosen

KERNEL = provenance.kernel()
ISAS = KERNEL.search_isas() if KERNEL else []
needs_kernel = pytest.mark.skipif(KERNEL is None, reason="the native kernel was not built")


def table(rows, n, seed, support=(), noise=0.0):
    generator = np.random.default_rng(seed)
    x = generator.integers(0, 2, (rows, n)).astype(bool)
    y = x[:, list(support)].sum(axis=1) % 2 == 1 if len(support) else generator.integers(0, 2, rows).astype(bool)
    return x, y ^ (generator.random(rows) < noise)


def every(x, y, size):
    """Errors of each support, or of its opposite where those are fewer, and whether they are."""
    found = {}
    for support in itertools.combinations(range(x.shape[1]), size):
        wrong = int(((x[:, support].sum(axis=1) % 2 == 1) ^ y).sum())
        found[support] = (min(wrong, len(y) - wrong), 2 * wrong > len(y))
    return found


def best(found):
    fewest = min(errors for errors, _ in found.values())
    return fewest, [(support, negated) for support, (errors, negated) in sorted(found.items()) if errors == fewest]


def run(search, threads=1):
    search.advance(threads, 1e3, 1e3)
    assert search.done == search.total
    assert not search.cut
    errors, number, some = search.hits()
    return errors, number, [(tuple(members), negated) for members, negated in some]


@needs_kernel
@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize(("rows", "n", "size"), [
    (1, 3, 1), (63, 20, 1), (64, 17, 2), (65, 9, 3), (130, 12, 4), (300, 11, 5), (12, 9, 2), (7, 9, 3), (40, 8, 8)])
def test_enumeration_is_brute_force(isa, rows, n, size):
    for seed in range(5):
        x, y = table(rows, n, seed)
        packed = Packed.of(x, y)
        fewest, ties = best(every(x, y, size))
        none = np.full(packed.words, rows, np.uint32)
        for first, threads in ((1, 1), (packed.words, 2), (9, 3)):
            search = KERNEL.Search.enumerate(*packed, none, size, first, isa)
            assert run(search, threads) == (fewest, len(ties), ties[:8])


@needs_kernel
@pytest.mark.parametrize("isa", ISAS)
def test_limits_leave_out_what_exceeds_them_after_any_word(isa):
    x, y = table(200, 12, 3)
    packed = Packed.of(x, y)
    limit = np.array([30, 58, 86, 93], np.uint32)

    def keeps(support):
        wrong = (x[:, support].sum(axis=1) % 2 == 1) ^ y
        ends = [(int(wrong[:end].sum()), end) for end in (64, 128, 192, 200)]
        return all(min(w, end - w) <= most for (w, end), most in zip(ends, limit, strict=True))

    kept = {support: value for support, value in every(x, y, 3).items() if keeps(support)}
    assert 0 < len(kept) < math.comb(12, 3)
    fewest, ties = best(kept)
    for first in (1, 2, 3, 4):
        assert run(KERNEL.Search.enumerate(*packed, limit, 3, first, isa)) == (fewest, len(ties), ties[:8])
    impossible = np.zeros(4, np.uint32)
    assert run(KERNEL.Search.enumerate(*packed, impossible, 3, 1, isa)) == (-1, 0, [])


@needs_kernel
@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("size", [3, 4])
def test_what_meets_is_every_support_whose_keys_add_up(isa, size):
    """Keys of few bits, so that many meet that are wrong, and of 64: of those that add up, those of fewest errors."""
    for seed, bits in itertools.product(range(8), (2, 3, 7, 64)):
        generator = np.random.default_rng([seed, bits])
        x, y = table(100, 14, seed)
        packed = Packed.of(x, y)
        keys = packed.hashes(generator)[0] & np.uint64(2**bits - 1)
        chosen = sorted(generator.choice(14, size, replace=False).tolist())
        target = int(np.bitwise_xor.reduce(keys[chosen])) if seed % 2 else 0
        sums = {support: value for support, value in every(x, y, size).items()
                if int(np.bitwise_xor.reduce(keys[list(support)])) == target}
        fewest, ties = best(sums) if sums else (-1, [])
        for threads in (1, 2):
            search = KERNEL.Search.meet(*packed, np.full(2, 100, np.uint32), size, keys, target, bits, isa)
            assert run(search, threads) == (fewest, len(ties), ties[:8])


@needs_kernel
@pytest.mark.parametrize("size", [3, 4])
def test_all_supports_without_errors_meet(size):
    """Few rows, so that there are many."""
    for seed in range(6):
        x, y = table(6 + seed, 16, seed, support=range(size))
        packed = Packed.of(x, ~y if seed % 2 else y)
        fewest, ties = best(every(x, ~y if seed % 2 else y, size))
        assert fewest == 0
        keys, target = packed.against_the_first_row().hashes(np.random.default_rng(seed))
        found = meet(packed, size, Until(threads=2), keys, target)
        assert (found.errors, found.number, found.supports) == (0, len(ties), ties[:8])


@needs_kernel
@pytest.mark.parametrize("size", [3, 4])
def test_noisy_parities_are_met_as_often_as_stated(size):
    """30 tables with 10 % noise: each is missed with probability 1 %, or less; four or more are with 2e-4."""
    missed = 0
    for seed in range(30):
        support = tuple(sorted(np.random.default_rng(seed).choice(60, size, replace=False).tolist()))
        x, y = table(250, 60, seed, support, noise=0.1)
        packed = Packed.of(x, y)
        chosen = Chosen.of(packed, size, 0.1, 1)
        found = meet_by_chosen(packed, size, chosen, limits(packed, 0.1, 80), Until(), np.random.default_rng(seed))
        assert found.supports in ([], [(support, False)])
        missed += not found.supports
    assert missed < 4


@needs_kernel
def test_words_are_counted_alike_on_every_instruction_set():
    words = np.arange(1024, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    expected = sum(int(word ^ np.uint64(mask)).bit_count() for mask in range(5) for word in words)
    assert [KERNEL.count_words(5, isa) for isa in ISAS] == [expected] * len(ISAS)


def test_keys_of_sums_are_sums_of_keys():
    x, y = table(150, 9, 0, support=(1, 4, 7))
    packed = Packed.of(x, y)
    keys, target = packed.hashes(np.random.default_rng(1))
    assert int(keys[1] ^ keys[4] ^ keys[7]) == target
    assert len(set(keys.tolist())) == 9
    rows = np.array([3, 149, 64, 70])
    keys, target = packed.bits_of(rows)
    expected = [sum(int(x[rows[i + 1], j] ^ x[rows[0], j]) << i for i in range(3)) for j in range(9)]
    assert keys.tolist() == expected
    assert target == expected[1] ^ expected[4] ^ expected[7]


def test_without_the_kernel_the_same_is_found(monkeypatch):
    cases = [(table(70, 12, seed), size) for seed in range(4) for size in (1, 2, 3)]
    cases += [(table(100, 12, 9, support=(1, 5, 6), noise=0.1), 3)]
    with_kernel = [enumerate_all(Packed.of(x, y), size, Until()) for (x, y), size in cases]
    monkeypatch.setattr(provenance, "kernel", lambda: None)
    for ((x, y), size), expected in zip(cases, with_kernel, strict=True):
        assert enumerate_all(Packed.of(x, y), size, Until()) == expected
    assert enumerate_all(Packed.of(*table(70, 12, 0)), 2, Until(), np.array([1, 1], np.uint32)) == supports.NOTHING


def test_a_search_ends_when_time_is_up_and_says_how_far_it_came():
    x, y = table(500, 400, 0)
    packed = Packed.of(x, y)
    start = time.perf_counter()
    found = enumerate_all(packed, 5, Until(end=start + 0.3))
    assert not found.complete
    assert found.share < 0.5
    assert enumerate_all(packed, 5, Until(end=start)) == supports.NOTHING._replace(share=0.0)


@needs_kernel
@pytest.mark.parametrize(("change", "message"), [
    ({"rows": 65}, "evidence: wrong shape"), ({"rows": 0}, "evidence: wrong shape"),
    ({"labels": np.zeros(2, np.uint64)}, "evidence: wrong shape"), ({"size": 5}, "size: out of range"),
    ({"bits": 1}, "bits: expected 2 to 64"), ({"target": 8}, "more bits than stated"),
    ({"keys": np.zeros(3, np.uint64)}, "keys: wrong shape"), ({"isa": "abacus"}, "cannot run 'abacus'")])
def test_what_does_not_fit_is_refused(change, message):
    given = {"columns": np.zeros((4, 1), np.uint64), "labels": np.zeros(1, np.uint64), "rows": 60,
             "limits": np.zeros(1, np.uint32), "size": 3, "keys": np.zeros(4, np.uint64), "target": 0, "bits": 3}
    with pytest.raises(ValueError, match=message):
        KERNEL.Search.meet(**{**given, **change})
