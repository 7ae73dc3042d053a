"""Elimination over GF(2) against the definition: every solution explains the data, and none is missed."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paritylab.baselines.gf2 import solve, vote
from paritylab.errors import InvalidInput


@settings(max_examples=100, deadline=None)
@given(n=st.integers(1, 6), samples=st.integers(1, 9), seed=st.integers(0, 10**6), consistent=st.booleans())
def test_small_systems_agree_with_trying_every_support(n, samples, seed, consistent):
    generator = np.random.default_rng(seed)
    x = generator.integers(0, 2, (samples, n))
    y = x @ generator.integers(0, 2, n) % 2 if consistent else generator.integers(0, 2, samples)
    solutions = [s for s in itertools.product((0, 1), repeat=n) if np.array_equal(x @ np.array(s) % 2, y)]
    found = solve(x, y)
    spanned = {tuple(np.array(rows).sum(0) % 2) for size in range(1, samples + 1)
               for rows in itertools.combinations(x.tolist(), size)} | {(0,) * n}
    assert 2**found.rank == len(spanned)
    if found.support is None:
        assert solutions == []
    else:
        assert tuple(int(j in found.support) for j in range(n)) in solutions
        assert len(solutions) == 2 ** (n - found.rank)


@pytest.mark.parametrize("n", [63, 64, 65, 200])
def test_supports_are_found_across_words(n):
    generator = np.random.default_rng(n)
    x = generator.integers(0, 2, (n + 30, n)).astype(bool)
    support = sorted(generator.permutation(n)[:5].tolist())
    y = x[:, support].sum(1) % 2
    assert solve(x, y) == (support, n)
    y[n + 3] ^= 1  # one wrong label: no support explains all, but for a chance of 2^-30
    assert solve(x, y).support is None


@settings(max_examples=60, deadline=None)
@given(n=st.sampled_from([1, 2, 5, 20, 63, 70]), more=st.integers(0, 12), wrong=st.integers(0, 5),
       seed=st.integers(0, 10**6))
def test_a_vote_counts_what_elimination_says_of_each_subset(n, more, wrong, seed):
    generator, subsets = np.random.default_rng(seed), 12
    x = generator.integers(0, 2, (n + more, n))
    y = (x @ (generator.random(n) < 0.3) + (np.arange(n + more) < wrong)) % 2
    chosen = np.argsort(np.random.default_rng(seed + 1).random((subsets, n + more)), axis=1)[:, :n]
    counted: dict[tuple[int, ...], int] = {}
    for rows in chosen:
        found = [solve(x[rows], y[rows] ^ negated).support for negated in (0, 1)]
        support = found[1] if found[0] is None else found[0]
        if support is not None:
            counted[tuple(support)] = counted.get(tuple(support), 0) + 1
    said = vote(x, y, np.random.default_rng(seed + 1), subsets)
    winner = max(counted, key=lambda each: counted[each], default=None)
    assert said.support == (None if winner is None else list(winner))
    assert (said.votes, said.voters) == (counted.get(winner, 0) if winner is not None else 0, sum(counted.values()))


def test_a_vote_needs_a_subset():
    with pytest.raises(InvalidInput, match="needs as many, not 2"):
        vote(np.zeros((2, 3)), np.zeros(2), np.random.default_rng(0))


def test_signs_are_refused_with_the_remedy():
    with pytest.raises(InvalidInput, match="x < 0"):
        solve([[1, -1]], [1])
    with pytest.raises(InvalidInput, match="one label each"):
        solve([[1, 0]], [1, 0])
