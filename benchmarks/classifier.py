"""What ParityClassifier takes on wide tables, beside what it did before and plain enumeration, and how far noise goes.

    python benchmarks/classifier.py [--rows 2000] [--seed 0]

Seconds are of CPU, in one thread, so that other work on the machine matters little. The old default is elimination with
a search for the sparsest solution in NumPy; plain enumeration correlates labels with all products of signs by matrix
products, and its time is that of its first second, extrapolated. The floor of a search that pairs features is one sum
of two keys for each pair, made by NumPy within the cache; that of an enumeration, to add and count the words that are
tested first, out of the first cache.
"""

from __future__ import annotations

import argparse
import math
import time
import warnings

import numpy as np

import paritylab as pl
from paritylab import provenance
from paritylab.baselines import supports
from paritylab.baselines.packed import Packed
from paritylab.baselines.search import correlations
from paritylab.baselines.supports import Chosen, Until

CASES = ((1000, 3, 0.0), (10_000, 3, 0.0), (10_000, 4, 0.0), (10_000, 2, 0.1), (1000, 3, 0.1), (10_000, 3, 0.1))
BUDGET = 120.0
"""Seconds of CPU in a minute on two cores."""


def planted(rows: int, n: int, k: int, noise: float, generator: np.random.Generator) -> tuple:
    x = generator.integers(0, 2, (rows, n), np.int8).astype(bool)
    support = sorted(generator.choice(n, k, replace=False).tolist())
    return x, (x[:, support].sum(axis=1) % 2 == 1) ^ (generator.random(rows) < noise), support


def seconds(work) -> tuple:
    start = time.process_time()
    found = work()
    return found, time.process_time() - start


def old_default(x, y) -> pl.ParityClassifier:
    """Without the kernel, elimination searches as it did before."""
    kernel, provenance.kernel = provenance.kernel, lambda: None
    try:
        return pl.ParityClassifier(method="gaussian-elimination", random_state=0, n_jobs=1).fit(x, y)
    finally:
        provenance.kernel = kernel


def plain(x, y, k: int) -> float:
    """Seconds for all supports, from those of the first second."""
    signs, labels = 1 - 2 * x.astype(np.int8), 1 - 2 * y.astype(np.int8)
    blocks = correlations(signs, labels, k)
    next(blocks)
    start, done = time.process_time(), 0
    while time.process_time() - start < 1:
        block = next(blocks, None)
        if block is None:
            break
        done += block[0].size
    return (time.process_time() - start) / max(done, 1) * math.comb(x.shape[1], k)


def pairs_floor(n: int) -> float:
    keys = np.random.default_rng(0).integers(0, 2**64, n, np.uint64)
    room = np.empty_like(keys)
    return seconds(lambda: [np.bitwise_xor(keys[i], keys[i + 1 :], out=room[i + 1 :]) for i in range(n - 1)])[1]


def table(rows: int, seed: int) -> None:
    print(f"{rows} rows; seconds of CPU\n")
    print("| features | k | noise | old default | plain enumeration | now | found | by |")
    print("|---|---|---|---|---|---|---|---|")
    for n, k, noise in CASES:
        x, y, support = planted(rows, n, k, noise, np.random.default_rng(seed))
        old, before = seconds(lambda x=x, y=y: old_default(x, y))
        said = f"{before:.2g}, {'found' if old.support_.tolist() == support else 'not found'}"
        model, now = seconds(lambda x=x, y=y: pl.ParityClassifier(random_state=0, n_jobs=1, time_budget=600).fit(x, y))
        print(f"| {n} | {k} | {100 * noise:.0f} % | {said} | {plain(x, y, k):.2g} | {now:.2g} |"
              f" {'yes' if model.support_.tolist() == support else 'no'} | {model.method_} |", flush=True)


def floors(rows: int, seed: int) -> None:
    n = 10_000
    floor = pairs_floor(n)
    for k in (3, 4):
        x, y, support = planted(rows, n, k, 0.0, np.random.default_rng(seed))
        packed = Packed.of(x, y)
        keys, target = packed.against_the_first_row().hashes(np.random.default_rng(1))
        found, spent = seconds(lambda k=k, packed=packed, keys=keys, target=target: supports.meet(
            packed, k, Until(), keys, target))
        assert found.supports[0][0] == tuple(support)
        print(f"meeting in the middle, {k} of {n}: {spent:.3f} s, floor {floor:.3f} s,"
              f" reached {100 * floor / spent:.0f} %")
    x, y, _ = planted(rows, 2000, 3, 0.5, np.random.default_rng(seed))
    packed = Packed.of(x, y)
    word = seconds(lambda: provenance.kernel().count_words(10**6))[1] / (1024 * 10**6)
    for noise in (0.1, 0.25):
        limit = supports.limits(packed, noise, rows)
        first = supports.first_test(packed, limit)
        spent = seconds(lambda limit=limit: supports.enumerate_all(packed, 3, Until(), limit))[1] / math.comb(2000, 3)
        print(f"enumeration, 3 of 2000 with up to {100 * noise:.0f} % noise: {1e9 * spent:.3f} ns for a support, floor"
              f" {1e9 * word * first:.3f} ns ({first} words), reached {100 * word * first / spent:.0f} %", flush=True)


def reach(rows: int, seed: int) -> None:
    """How many features a minute on two cores is enough for, at 10 % noise."""
    for n, k in ((200_000, 2), (4000, 3)):
        x, y, support = planted(rows // 4, n, k, 0.1, np.random.default_rng(seed))
        packed = Packed.of(x, y)
        limit = supports.limits(packed, 0.1, packed.rows)
        found, spent = seconds(lambda packed=packed, limit=limit, k=k:
                               supports.enumerate_all(packed, k, Until(), limit))
        assert found.supports[0][0] == tuple(support)
        print(f"all supports, {k} of {n} with up to 10 % noise: {spent:.1f} s; a minute on two cores: n ="
              f" {n * (BUDGET / spent) ** (1 / k):.2g}", flush=True)
    for n, k in ((30_000, 3), (5000, 4)):
        x, y, support = planted(rows // 4, n, k, 0.1, np.random.default_rng(seed))
        packed = Packed.of(x, y)
        chosen = Chosen.of(packed, k, 0.1, 1)
        limit = supports.limits(packed, 0.1, packed.rows)
        generator = np.random.default_rng(1)
        _, spent = seconds(lambda packed=packed, limit=limit, k=k, chosen=chosen, generator=generator:
                           supports.meet_by_chosen(packed, k, chosen._replace(trials=3), limit, Until(), generator))
        whole = spent / 3 * chosen.trials
        exponent = 2 + (k - 2) * math.log2(1 / 0.9)  # pairs, times trials: more keys take more rows, seldom all clean
        print(f"keys of chosen rows, {k} of {n} with up to 10 % noise: {whole:.1f} s for {chosen.trials} trials, which"
              f" miss 1 %; a minute on two cores: n = {n * (BUDGET / whole) ** (1 / exponent):.2g}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    kernel = provenance.kernel()
    assert kernel is not None, "the native kernel was not built"
    print(f"{provenance.processor()}, {kernel.search_isas()[0]}\n")
    table(options.rows, options.seed)
    print()
    floors(options.rows, options.seed)
    reach(options.rows, options.seed)


if __name__ == "__main__":
    main()
