"""Statements of our own about XOR and leaky parities: their formulas against enumeration, samples and known cases."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from daniely2020.theory.leaky import Leaky
from glasgow2023.theory import xor
from glasgow2023.theory.xor.phases import growth_rate
from paritylab_beyond.beyond.depth import ceiling
from paritylab_beyond.beyond.leak_threshold import accuracy, crossing
from paritylab_beyond.beyond.theory import xor_gaussian as gaussian
from paritylab_beyond.beyond.theory.sign_rank import dimension_with_errors, forster, parities, random_dimension
from paritylab_beyond.beyond.theory.threshold_degree import best_polynomial, errors, fewest_errors, levels
from paritylab_beyond.beyond.xor_batch_one import predicted

from paritylab.claims import Lab, find, reproduce
from paritylab.claims.verdicts import HOLDS

NAMES = ("depth", "leak-threshold", "sign-rank", "xor-batch1", "xor-gaussian")


@pytest.mark.parametrize("name", NAMES)
def test_every_statement_has_a_trial_with_rules(name):
    (claim,) = find([f"beyond.{name}"])
    assert claim.trial.claim == claim.id
    assert claim.trial.rules()


def test_the_fast_statement_holds(tmp_path):
    (claim,) = find(["beyond.sign-rank"])
    assert set(reproduce(claim, Lab("quick", tmp_path, progress=False)).outcome.results.values()) == {HOLDS}


@pytest.mark.parametrize("w", [(0.3, 0.5, 1.0), (1.0, 1.0, 0.3), (-0.7, 0.2, 0.5)])
def test_the_gaussian_gradient_agrees_with_samples(w):
    x = np.random.default_rng(0).standard_normal((10**6, 3))
    sampled = np.mean((np.sign(x[:, 0] * x[:, 1]) * (x @ np.array(w) > 0))[:, None] * x, axis=0)
    assert np.allclose(gaussian.active_mean(*w), sampled, atol=0.003)


def test_the_gaussian_gradient_starts_at_the_limiting_rate_and_bends_twice_as_much_as_on_the_cube():
    small = gaussian.active_mean(1e-5, 1e-5, 1.0)
    assert math.isclose(small[0] / 1e-5, xor.GAUSSIAN_RATE, rel_tol=1e-8)
    bends = [(1 - float(law(0.05, 1.0))) / 0.05**2 for law in (gaussian.correction, xor.correction)]
    assert np.allclose(bends, [2 / 3, 1 / 3], rtol=0.01)


def test_the_chain_grows_more_slowly_than_the_limit_and_still_more_so_with_noise():
    time = 0.1 * np.arange(417)
    rates = {noisy: [growth_rate(time, gaussian.median_signal(32, 256, 0.1, 0.1, 128, 416,
                                                              np.random.default_rng(seed), noisy), 0.1)[0]
                     for seed in range(5)] for noisy in (False, True)}
    assert 0.23 < np.mean(rates[True]) < np.mean(rates[False]) < xor.GAUSSIAN_RATE


def test_the_law_of_batch_one_solves_its_integral():
    d, rate = 640, 0.25
    time = rate * float(predicted(d, rate)) / d
    grid = np.linspace(0, time, 20_001)
    won = np.trapezoid(xor.RATE / xor.widening(grid, 1 / rate), grid)
    assert math.isclose(won, math.log(d) / 2 + 1, rel_tol=1e-6)


def test_no_quadratic_has_the_sign_of_the_parity_of_three_bits():
    """Of the 256 sign patterns on 3 bits, only the parity and its negation need degree 3."""
    from scipy.optimize import linprog

    inputs = np.array(list(itertools.product((1.0, -1.0), repeat=3)))
    monomials = np.stack([inputs[:, list(a)].prod(1) for r in range(3) for a in itertools.combinations(range(3), r)], 1)

    def representable(signs):
        made = linprog(np.zeros(7), A_ub=-signs[:, None] * monomials, b_ub=-np.ones(8), bounds=(None, None))
        return made.status == 0

    patterns = [np.array(signs) for signs in itertools.product((1.0, -1.0), repeat=8)]
    parity = inputs.prod(1)
    wrong = [int(np.sum(signs != parity)) for signs in patterns if representable(signs)]
    assert len(wrong) == 254
    assert min(wrong) == fewest_errors(3, 2) == 1


@pytest.mark.parametrize(("k", "degree"), [(3, 2), (5, 2), (5, 4), (7, 2), (8, 3), (9, 8)])
def test_the_fewest_errors_are_attained_by_a_polynomial_of_that_degree(k, degree):
    values = best_polynomial(k, degree)
    assert errors(k, values) == fewest_errors(k, degree)
    fit = np.polynomial.Polynomial.fit(levels(k)[0], values, degree)
    assert np.allclose(fit(levels(k)[0]), values)


def test_high_degrees_make_no_errors():
    assert ceiling(3, 4) == 1.0
    assert errors(5, best_polynomial(5, 5)) == 0


def test_sets_of_parities_have_forsters_bound_of_their_number():
    matrix = parities(7, [3])
    columns = np.random.default_rng(0).choice(matrix.shape[1], 9, replace=False)
    assert math.isclose(forster(matrix[:, columns]), 3.0)
    assert all((n - 1) ** 3 < count <= n**3 for count in (1, 8, 9, 1000, 10**6 + 1) for n in [random_dimension(count)])


def test_errors_lower_the_dimension():
    assert dimension_with_errors(2.0, 0.25) == 1.0
    assert dimension_with_errors(1e9, 0.01) < 50.001


def test_a_crossing_is_the_first_and_is_missing_where_there_is_none():
    logs = np.log([1.0, 2.0, 4.0, 8.0])
    assert math.isclose(crossing(logs, np.array([0.5, 0.8, 1.0, 0.8])), 2 * math.sqrt(2))
    assert math.isnan(crossing(logs, np.ones(4)))
    assert math.isnan(crossing(logs, np.full(4, 0.5)))


def test_an_exact_step_learns_a_weak_leak_at_a_large_rate_only():
    """p = 1e-4 at n = 31, far below 1/n."""
    slow, fast = (accuracy(Leaky(31, 3, 1e-4), 0, rate, np.random.default_rng(1)) for rate in (1.0, 0.5e4))
    assert slow < 0.9
    assert fast > 0.99
