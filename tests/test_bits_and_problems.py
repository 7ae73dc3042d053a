"""Packed inputs, parities over the whole cube, the random streams, and what a Parity refuses."""

from __future__ import annotations

import math

import jax
import numpy as np
import oracle
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paritylab import rng
from paritylab.errors import InvalidInput
from paritylab.setups.problems import Parity, bits

quick = settings(max_examples=30, deadline=None)


def cube(n: int) -> np.ndarray:
    """All 2^n inputs, packed."""
    return np.arange(2**n, dtype=np.uint32)[:, None]


@st.composite
def two_supports(draw):
    n = draw(st.sampled_from([1, 4, 10]))
    subsets = st.sets(st.integers(0, n - 1))
    return n, draw(subsets), draw(subsets)


@quick
@given(two_supports())
def test_parities_are_orthonormal_over_the_cube(drawn):
    n, first, second = drawn
    chi, psi = (np.asarray(bits.parity(cube(n), bits.mask(s, n))) for s in (first, second))
    assert np.mean(chi * psi) == (first == second)


@quick
@given(st.sampled_from([1, 32, 33, 130]), st.integers(0, 2**32 - 1))
def test_packing_undoes_unpacking(n, seed):
    x = 1.0 - 2.0 * np.random.default_rng(seed).integers(0, 2, (3, n))
    packed = np.asarray(bits.pack(x))
    assert packed.shape == (3, bits.words(n))
    assert np.array_equal(bits.unpack(packed, n), x)
    # the bits beyond n stay clear, so masks and counts may look at whole words
    assert np.array_equal(packed & ~bits.mask(range(n), n), np.zeros_like(packed))


@quick
@given(st.data())
def test_a_mask_has_exactly_the_bits_of_its_support(data):
    n = data.draw(st.integers(1, 200))
    support = data.draw(st.sets(st.integers(0, n - 1)))
    mask = bits.mask(support, n)
    found = {32 * w + b for w, word in enumerate(mask) for b in range(32) if int(word) >> b & 1}
    assert found == support


@pytest.mark.parametrize("n", [1, 32, 33, 1024])
def test_labels_are_products_of_signs_for_every_number_of_words(n):
    generator = np.random.default_rng(n)
    for k in sorted({0, 1, min(3, n), n // 2, n}):
        problem = Parity(n, support=generator.choice(n, k, replace=False))
        drawn = problem.draw(jax.random.key(k), 64)
        x = np.asarray(problem.signs(drawn))
        assert x.shape == (64, n)
        assert set(np.unique(x)) <= {-1.0, 1.0}
        assert np.array_equal(problem.labels(drawn, problem.mask), oracle.chi(x, problem.support))


def test_labels_of_real_inputs_are_products_of_their_signs():
    problem = Parity(5, support=(1, 4), inputs=lambda key, count, n: jax.random.normal(key, (count, n)))
    x = np.asarray(problem.draw(jax.random.key(0), 100))
    assert np.array_equal(problem.signs(x), x)
    assert np.array_equal(problem.labels(x, problem.mask), np.sign(x[:, 1] * x[:, 4]))


def test_the_inputs_are_those_the_oracle_draws():
    problem = Parity(40, k=2)
    drawn = np.asarray(problem.draw(jax.random.key(5), 9))
    assert np.array_equal(drawn, oracle.bits((0, 5), (9, 2)))
    assert np.array_equal(problem.signs(drawn), oracle.signs(drawn, 40))


def test_inputs_are_balanced():
    x = np.asarray(Parity(64, k=1).signs(Parity(64, k=1).draw(jax.random.key(1), 10_000)))
    # 64 means of 10^4 signs: |mean| > 5/100 has probability 64 * 6e-7 = 4e-5
    assert np.abs(x.mean(0)).max() < 0.05


# --- random streams ---------------------------------------------------------------------------------------------


@quick
@given(st.integers(0, 2**32 - 1), st.integers(0, 2000), st.sampled_from([1, 50]))
def test_bits_at_are_a_slice_of_all_bits(seed, start, count):
    key = jax.random.key(seed)
    everything = np.asarray(jax.random.bits(key, (2050,)))
    assert np.array_equal(rng.bits_at(key, start, count), everything[start : start + count])


@pytest.mark.parametrize("seed", [0, 12345, 2**32 - 1])
def test_a_run_key_is_its_number_folded_into_the_key_of_its_seed(seed):
    runs = np.array([0, 1, 2, 999, 2**31, 2**32 - 1])
    keys = rng.run_keys(np.full(len(runs), seed), runs)
    for key, run in zip(keys, runs, strict=True):
        assert np.array_equal(key, jax.random.key_data(jax.random.fold_in(jax.random.key(seed), int(run))))
        assert tuple(int(word) for word in key) == oracle.run_key(seed, int(run))


@pytest.mark.parametrize("count", [0, 1, 3, 9])
def test_run_keys_do_not_depend_on_how_many_are_asked_for(count):
    keys = rng.run_keys(np.full(9, 7), np.arange(9))
    assert np.array_equal(rng.run_keys(np.full(count, 7), np.arange(count)), keys[:count])


def test_the_streams_of_a_run_differ():
    key = rng.run_keys(np.array([0]), np.array([0]))[0]
    streams = [rng.INIT, rng.DATA, rng.LABELS, rng.EVALUATION, rng.SAMPLE, rng.ORDER, rng.NOISE]
    drawn = {tuple(jax.random.key_data(rng.stream(key, purpose)).tolist()) for purpose in streams}
    assert len(drawn) == len(streams) == 7


@pytest.mark.parametrize(("seed", "run"), [(-1, 0), (2**32, 0), (0, -1), (0, 2**32)])
def test_seeds_and_runs_outside_32_bits_are_refused(seed, run):
    with pytest.raises(InvalidInput, match="must be in"):
        rng.run_keys(np.array([seed]), np.array([run]))


@pytest.mark.parametrize(("n", "size"), [(7, 32), (70, 50)])
def test_blocks_are_consecutive_rows_of_the_whole_sample(n, size):
    problem, key = Parity(n, k=2), jax.random.key(n)
    whole = np.asarray(problem.draw(key, 4 * size))
    for block in range(4):
        rows = problem.draw_block(key, block, size)
        assert np.array_equal(rows, whole[block * size : (block + 1) * size])


def test_blocks_of_a_users_inputs_differ_and_depend_on_nothing_but_their_number():
    problem = Parity(3, k=1, inputs=lambda key, count, n: jax.random.normal(key, (count, n)))
    first, second = (np.asarray(problem.draw_block(jax.random.key(0), block, 10)) for block in (0, 1))
    assert not np.array_equal(first, second)
    assert np.array_equal(first, problem.draw_block(jax.random.key(0), 0, 10))


@pytest.mark.parametrize("noise", [0.0, 0.1, 0.5, 1.0])
def test_labels_are_flipped_at_the_rate_asked_for(noise):
    count = 100_000
    problem = Parity(4, k=1, noise=noise)
    rate = np.mean(np.asarray(jax.random.bits(jax.random.key(3), (count,))) < np.uint32(problem.flip))
    # five standard deviations: a false alarm in 2e6
    assert abs(rate - noise) <= 5 * math.sqrt(noise * (1 - noise) / count) + 1e-9


# --- validation -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"n": 0, "k": 0}, "n must be in"),
        ({"n": -3, "k": 1}, "n must be in"),
        ({"n": 2**20 + 1, "k": 1}, "n must be in"),
        ({"n": 5}, "needs k"),
        ({"n": 5, "k": 6}, "k must be in 0..n=5, not 6"),
        ({"n": 5, "k": -1}, "k must be in"),
        ({"n": 5, "support": (0, 5)}, "distinct positions in 0..4"),
        ({"n": 5, "support": (-1,)}, "distinct positions"),
        ({"n": 5, "support": (2, 2)}, "distinct positions"),
        ({"n": 5, "k": 3, "support": (0, 1)}, "k=3 contradicts"),
        ({"n": 5, "k": 2, "noise": -0.1}, "noise must be a probability"),
        ({"n": 5, "k": 2, "noise": 1.1}, "noise must be a probability"),
        ({"n": 5, "k": 2, "noise": math.nan}, "noise must be a finite number"),
        ({"n": 5, "k": 2, "sample": 0}, "at least 1 example"),
        ({"n": 5, "k": 2, "replacement": True}, "needs a finite sample"),
    ],
)
def test_an_impossible_parity_is_refused_in_one_line(arguments, says):
    with pytest.raises(InvalidInput, match=says) as caught:
        Parity(**arguments)
    assert "\n" not in str(caught.value)


def test_a_parity_knows_its_support_and_size():
    assert Parity(5, 2).support == (0, 1)
    assert Parity(5, support=[4, 0]).support == (0, 4)
    assert Parity(5, support=[4, 0]).k == 2
    assert Parity(5, 0).support == ()


def test_parities_are_equal_when_everything_about_them_is():
    assert Parity(5, 2) == Parity(5, support=(1, 0))
    assert hash(Parity(5, 2)) == hash(Parity(5, support=(1, 0)))
    different = [Parity(5, 3), Parity(6, 2), Parity(5, 2, noise=0.1), Parity(5, 2, sample=9),
                 Parity(5, 2, sample=9, replacement=True), Parity(5, 2, inputs=lambda key, count, n: None)]
    assert len({Parity(5, 2), *different}) == 7
