"""The width that one step on the output layer needs: each step of the proofs against enumeration."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from abbe2024.one_step import Trials
from abbe2024.theory.high_degree import recommended_bias
from abbe2024.theory.one_step import cube_outputs
from paritylab_beyond.beyond import one_step as trials
from paritylab_beyond.beyond.theory import one_step_width as width

from paritylab.claims import find
from paritylab.measures.fourier import cube


def units(d):
    """chi(s) and h(s) over the cube."""
    s = cube(d)
    return s.prod(1), np.maximum(s.sum(1) + recommended_bias(d), 0)


@pytest.mark.parametrize("d", range(2, 13))
def test_moments_are_those_of_the_cube_and_within_the_proofs_bounds(d):
    chi, h = units(d)
    mean, variance = width.moments(d)
    assert mean == pytest.approx(abs(np.mean(chi * h)))
    assert variance == pytest.approx(np.var(chi * h))
    m = (d - 1) // 2
    assert mean == pytest.approx(math.comb(2 * m, m) / 4**m / 2)
    assert mean**2 >= 1 / (2 * math.pi * (d if d % 2 else d - 1))
    assert np.mean(h**2) == pytest.approx(d / 2 if d % 2 == 0 else (d + 1) / 2 - 2 * d * mean)
    assert np.mean(h.astype(float) ** 4) <= 1.5 * d**2
    assert np.max(mean - np.sign(np.mean(chi * h)) * chi * h) <= d + recommended_bias(d) + mean


@pytest.mark.parametrize("d", [2, 3, 4, 5])
@pytest.mark.parametrize("kept", [0.0, 0.25])
def test_bernsteins_bound_is_above_the_exact_chance_of_one_input(d, kept):
    chi, h = units(d)
    mean, _ = width.moments(d)
    values = (np.sign(np.mean(chi * h)) * chi * h).astype(int)
    law = np.bincount(values + d, minlength=2 * d + 1) / 2**d
    total = np.ones(1)
    for n in range(1, 61):
        total = np.convolve(total, law)
        sums = np.arange(len(total)) - n * d
        exact = total[sums <= kept * n * mean + 1e-9].sum()
        assert exact <= math.exp(-n * width._exponent(d, kept)) + 1e-12


def test_the_constants_cover_every_dimension():
    dims = [*range(2, 130), 200, 201, 400]
    assert max(width.sufficient_width(d) / d**3 for d in dims) <= width.ALL_RIGHT
    assert max(width.sufficient_width(d, width.kept_by_equation_4(d)) / d**3 for d in dims) <= width.WIDE_MARGIN
    assert max(width.sufficient_width(d, 0.5) / d**3 for d in dims) <= width.NOISY
    even = np.arange(2, 10**5, 2)
    for theta, most in ((1, 10.83), (1 - math.sqrt(2 * math.pi) / 18, 14.55), (0.5, 42.75)):
        root = 2 * math.sqrt(2 * math.pi) / 3 / theta * np.sqrt(even - 1) / even
        assert (1 + math.log(2)) * np.max(2 * math.pi / theta**2 * (1 - 1 / even) + root) <= most
    for d in dims:
        n, (mean, _) = width.NOISY * d**3, width.moments(d)
        assert width.noise(d, n) ** 2 <= n * mean**4 / (8 * (1 + math.log(2)) * d**2)
        assert n / (12 + 4 * d / 3) >= d * (1 + math.log(2))


def columns(weights):
    """eps and u of the lower bound's proof."""
    eps = width._outputs(weights).astype(float)
    return eps, eps[:, None] * weights


def test_turning_sign_vectors_by_their_parity_is_a_bijection_for_even_d():
    w = cube(6)
    assert len({tuple(row) for row in w.prod(1)[:, None] * w}) == 2**6


@pytest.mark.parametrize("d", [4, 6])
def test_the_weighted_average_of_outputs_is_signal_less_linear_part_and_rest(d):
    rng = np.random.default_rng(d)
    w = (1 - 2 * rng.integers(0, 2, (17, d))).astype(np.int8)
    eps, u = columns(w)
    g, x, delta = u.sum(0), cube(d), 0.7
    sigma = -np.sign(g)
    weight = (1 + x.prod(1)) * np.prod(1 + delta * sigma * x, axis=1)
    direct = np.mean(weight * (np.maximum(x @ w.T, 0) @ eps))
    full = sigma.prod()
    expected = len(w) * width.moments(d)[0] * (1 + delta**d * full)
    expected -= (delta + delta ** (d - 1) * full) / 2 * np.abs(g).sum()
    for size in range(0, d, 2):
        chi, h = x[:, :size].prod(1), np.maximum(x.sum(1), 0)
        for chosen in itertools.combinations(range(d), size):
            rest = [j for j in range(d) if j not in chosen]
            factor = delta**size * sigma[list(chosen)].prod() + delta ** (d - size) * sigma[rest].prod()
            expected += np.mean(chi * h) * factor * (eps * w[:, list(chosen)].prod(1)).sum()
    assert direct == pytest.approx(expected)


def test_products_of_columns_have_the_means_of_the_proof():
    """All 2^12 draws of three neurons of four inputs."""
    u = cube(12).reshape(-1, 3, 4)
    sigma, beta = -np.sign(u.sum(1)), np.mean(np.abs(u[:, :, 0].sum(1))) / 3
    subsets = [set(c) for size in range(5) for c in itertools.combinations(range(4), size)]
    for one, two in itertools.product(subsets, repeat=2):
        differ = len(one ^ two)
        for i, k in ((0, 0), (0, 1)):
            outside = [list({0, 1, 2, 3} - each) for each in (one, two)]
            signs = sigma[:, list(one)].prod(1) * sigma[:, list(two)].prod(1)
            found = np.mean(signs * u[:, i, outside[0]].prod(1) * u[:, k, outside[1]].prod(1))
            assert found == pytest.approx((-beta) ** differ if i == k or len(one | two) == 4 else 0)
            found = np.mean(signs * u[:, i, list(one)].prod(1) * u[:, k, list(two)].prod(1))
            assert found == pytest.approx((-beta) ** differ if i == k or not one & two else 0)


def test_the_hard_input_has_parity_one_and_the_margin_of_the_whole_cube():
    d, rng = 8, np.random.default_rng(1)
    codes = rng.integers(0, 2**d, 50)
    w = cube(d)[codes].astype(np.int8)
    x = width.hard_input(w)
    assert x.prod() == 1
    place = int(np.flatnonzero((cube(d) == x).all(1))[0])
    whole = cube_outputs(d, codes, 0.0, width._outputs(w).astype(float))
    assert width.margin(w, x) == pytest.approx(whole[place] / width.moments(d)[0], rel=1e-5)


def test_narrow_networks_err_at_the_hard_input_and_wide_ones_do_not():
    arrays = trials.hard_inputs(0, d=60, seeds=5)
    assert max(arrays["margins"]) < 0
    assert np.mean(arrays["margins"]) == pytest.approx(-1, abs=5 * 2.5 / math.sqrt(60 * 5))
    w = (1 - 2 * np.random.default_rng(0).integers(0, 2, (width.ALL_RIGHT * 20**3, 20))).astype(np.int8)
    assert width.margin(w, width.hard_input(w)) > 0


def test_the_claim_finds_the_width_where_half_make_no_error():
    scan = {100: Trials(1, 10), 200: Trials(0, 10), 400: Trials(9, 10)}
    assert 200 < trials.half_width(scan) < 400
    assert trials.slope([2, 4, 8], [8, 64, 512]) == pytest.approx(3)
    assert find(["beyond.thm4-cubic"])[0].trial.claim == "beyond.thm4-cubic"
    counted = trials.sound_networks(3, d=6, kind="margin", seeds=5)
    assert counted == {"perfect": 5, "seeds": 5}
