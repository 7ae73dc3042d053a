"""Theorems of Abbe et al.: closed forms against enumeration, bounds against what they bound (fixed seeds)."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from abbe2024.theory import high_degree
from abbe2024.theory.hinge_updates import ORDERS, count_updates, gram, initial_weights, train_both_layers
from abbe2024.theory.junk_flow import alignment_gap, hinge_alignment, junk_flow, random_gradient
from abbe2024.theory.one_step import cube_outputs, full_parity, one_step, population_step, sgd_steps

from paritylab.errors import InvalidInput
from paritylab.measures.fourier import cube


@pytest.mark.parametrize("bias", [-3, -2, -1.5, -1, -0.3, 0, 0.4, 1, 2.5, 3])
def test_lemma_1_is_the_binomial_sum(bias):
    for d in range(2, 41):
        assert high_degree.delta(d, bias) == high_degree.activation_moments(d, bias)[0]


def test_corollary_3_and_the_unlucky_bias():
    for d in [*range(2, 200), 500, 1001, 2000]:
        size = float(abs(high_degree.delta(d, high_degree.recommended_bias(d)))) * math.sqrt(d)
        assert 1 / 3 <= size <= 1
        ratio = size * math.sqrt(2 * math.pi) - 1  # 1/(4d) for odd d, 3/(4d) for even d: below 1 % from 27 and 78 on
        assert ratio * d == pytest.approx(0.25 if d % 2 else 0.75, abs=3 / d)
        assert (ratio < 0.01) == (d >= (27 if d % 2 else 78))
    assert all(high_degree.delta(d, 0) == 0 for d in range(3, 60, 2))


@pytest.mark.parametrize("clip", [None, 2.5])
def test_the_outputs_on_the_cube_are_the_networks(clip):
    rng = np.random.default_rng(0)
    d, n = 7, 60
    codes, bias, v = rng.integers(0, 2**d, n), 3 * rng.standard_normal(n), rng.standard_normal(n)
    x = cube(d)
    hidden = np.clip(x @ x[codes].T + bias, 0, np.inf if clip is None else clip)
    assert cube_outputs(d, codes, bias, v, clip) == pytest.approx(hidden @ v, abs=1e-10)
    assert population_step(d, codes, bias, clip) == pytest.approx(x.prod(1) @ hidden / 2**d, abs=1e-12)
    assert population_step(d, codes, bias[0], clip) == pytest.approx(
        x.prod(1) @ np.clip(x @ x[codes].T + bias[0], 0, clip or np.inf) / 2**d, abs=1e-12
    )
    assert full_parity(d) == pytest.approx(x.prod(1))


@pytest.mark.parametrize("d", [6, 8, 10, 11, 12])
def test_one_step_is_perfect_at_width_d4_and_fails_at_d2(d):
    runs = [one_step(d, d**4, seed=s) for s in range(10)]
    assert sum(run.errors == 0 for run in runs) >= 9
    assert sum(run.margin >= high_degree.margin_bound(d, d**4) for run in runs) >= 9
    assert np.abs(runs[0].v).std() < 1e-15  # all output weights have one size
    assert sum(one_step(d, d**4, tau=0.5 / d**2, seed=s).accuracy == 1 for s in range(10)) >= 9
    assert sum(one_step(d, d**2, seed=s).errors > 0 for s in range(10)) >= 8


def test_one_step_at_twenty_inputs():
    run = one_step(20, 20**4)
    assert run.accuracy == 1
    assert run.margin >= high_degree.margin_bound(20, 20**4)


def test_biases():
    normal = np.random.default_rng(5).standard_normal(8**4 * 2)
    assert one_step(8, len(normal), bias=normal).accuracy == 1
    unlucky = one_step(7, 7**4, bias=0.0)
    assert unlucky.accuracy == 0
    assert np.abs(unlucky.v).max() == 0


def test_remark_1():
    d = np.arange(40, 201, 8)
    for clip, low, high in ((None, 2.9, 3.1), (5, 1.9, 2.3)):
        widths = [high_degree.critical_width(int(n), clip) for n in d]
        assert low < np.polyfit(np.log(d), np.log(widths), 1)[0] < high
        critical = high_degree.critical_width(10, clip)
        for factor, least, most in ((0.25, 0, 10), (2, 18, 20)):
            runs = [one_step(10, int(factor * critical), clip=clip, seed=s) for s in range(20)]
            assert least <= sum(run.errors == 0 for run in runs) <= most


def test_sgd_on_the_output_layer():
    d = 8
    for batch in (1, 64):
        steps = 16 * d**5 // batch
        for tau in (0.0, 0.2 * math.sqrt(steps) / d**2):
            assert sum(sgd_steps(d, d**4, steps, batch, tau, seed=s).errors == 0 for s in range(10)) >= 9
    assert sgd_steps(d, d**4, 10, 1).errors > 0


# --- updates ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sigma", [0.0, 1 / 360])
def test_the_gram_dynamics_are_those_of_the_network(sigma):
    d, n = 5, 625
    weights = initial_weights(d, n, sigma, seed=3)
    rate = high_degree.largest_rate(d)
    order = np.tile(np.arange(2**d), 60)
    count, outputs = train_both_layers(weights, order, rate)
    dual = count_updates(gram(weights), order="cyclic")
    assert dual.count == count
    assert outputs / rate == pytest.approx(dual.outputs, rel=1e-6)
    assert dual.error() == 0


@pytest.mark.parametrize("order", ORDERS)
def test_the_number_of_updates(order):
    for d in (4, 5, 6):
        embedding = gram(initial_weights(d, d**4, seed=d))
        few = count_updates(embedding, 0.0, order).count
        many = count_updates(embedding, high_degree.largest_margin(d, d**4, rate=1.0), order).count
        assert few < d**3 < 60 * d**3 < many < 110 * d**3 < high_degree.update_bound(d)


def test_theorem_5_on_three_laws():
    d, rng = 6, np.random.default_rng(7)
    x = cube(d)
    sparse = np.zeros(2**d)
    sparse[rng.choice(2**d, 2 ** (d - 2), replace=False)] = 2.0 ** -(d - 2)
    biased = np.where(x > 0, 0.8, 0.2).prod(1)
    embedding = gram(initial_weights(d, d**4, 1 / (72 * d), seed=1))
    wait = high_degree.patience(0.02, 0.1, high_degree.update_bound(d, perturbed=True))
    for law in (None, biased, sparse):
        runs = [count_updates(embedding, law=law, patience=wait, seed=s) for s in range(20)]
        assert np.mean([run.error(law) <= 0.02 for run in runs]) >= 0.9
        assert all(run.steps >= wait for run in runs)


def test_an_unknown_order_is_refused():
    with pytest.raises(InvalidInput, match="order"):
        count_updates(np.eye(4), order="best")


# --- bounds -------------------------------------------------------------------------------------------------------


def test_lemma_3_bounds_the_conditional_distance():
    rng = np.random.default_rng(0)
    gaps = np.linalg.norm(alignment_gap(rng.standard_normal((4000, 5))), axis=1)
    for tau in (0.01, 0.1, 1):
        truth = high_degree.total_variation(gaps, tau).mean()
        bound = high_degree.lemma3([np.mean(gaps**2)], tau)
        assert truth <= bound * math.sqrt(2 / math.pi)
        assert high_degree.accuracy_bound([np.mean(gaps**2)], tau) == 0.5 + bound
    shift = rng.standard_normal(10**6)
    best = np.mean(shift > -0.35) - np.mean(shift > 0.35)  # the best test between N(+-0.35, 1)
    assert high_degree.total_variation(0.7, 1.0) == pytest.approx(best, abs=4e-3)


def test_the_growth_factor_is_what_homogeneity_gives():
    rng = np.random.default_rng(1)
    x, y = cube(3), rng.standard_normal(8)
    for degree, sizes in ((1, (3, 5, 1)), (1, (3, 4, 4, 1)), (2, (3, 4, 4, 1))):
        layers = [rng.standard_normal((a, b)) for a, b in pairwise(sizes)]
        variances = [0.1, 0.5, 2.0][: len(layers)]
        scales = [math.sqrt(1 + 0.3 / v) for v in variances]

        def gradient(weights, degree=degree):
            hidden, slopes = [x], []
            for w in weights[:-1]:
                z = hidden[-1] @ w
                hidden.append(np.maximum(z, 0) ** degree)
                slopes.append(degree * np.maximum(z, 0) ** (degree - 1) * (z > 0))
            back, found = y[:, None] / len(y), []
            for level in reversed(range(len(weights))):
                found.append(np.square(hidden[level].T @ back).sum())
                if level:
                    back = back @ weights[level].T * slopes[level - 1]
            return np.array(found[::-1])

        before = gradient(layers)
        after = gradient([c * w for c, w in zip(scales, layers, strict=True)])
        factor = high_degree.growth_factor(variances, 0.3, degree)
        assert (after / before).max() == pytest.approx(factor)
        printed = high_degree.growth_factor(variances, 0.3, degree, printed=True)
        assert (printed < factor) == (degree == 2)


def test_the_corollaries_are_weaker_than_the_theorem():
    gal, steps, rate, tau = 1e-30, 20, 0.1, 0.5
    sharp = high_degree.corollary2(gal, steps, rate, tau, [0.1, 0.02])
    assert high_degree.accuracy_bound([gal] * steps, tau) < sharp
    assert sharp < high_degree.corollary2(gal, steps, rate, tau, [0.1, 0.02], printed=True)
    assert sharp < high_degree.corollary1(gal, steps, tau, 1.0)
    assert high_degree.corollary1_noise(0.5, 0.04, 100, 25, 0.1) == pytest.approx(0.5 * 0.2 / 50 / 0.1)
    assert high_degree.claim1(1e-9, 1.0) == pytest.approx(0.5)


# --- junk flow ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("d", [4, 5])
def test_the_gradients_of_a_hinge_neuron(d):
    rng = np.random.default_rng(d)
    x, w = cube(d), 0.8 * rng.standard_normal((30, d))
    z = x @ w.T

    def gradient(labels):
        return ((-labels[:, None] * (z > 0) * (labels[:, None] * np.maximum(z, 0) < 1)).T @ x) / 2**d

    random = (gradient(np.ones(2**d)) + gradient(-np.ones(2**d))) / 2
    assert random_gradient(w) == pytest.approx(random, abs=1e-12)
    assert alignment_gap(w) == pytest.approx(gradient(x.prod(1)) - random, abs=1e-12)


@pytest.mark.parametrize("d", [4, 8, 12])
def test_the_hinge_alignment_of_signs(d):
    signs = np.random.default_rng(d).choice([-1.0, 1.0], (5, d))
    exact = float(Fraction(math.comb(d - 2, d // 2 - 1), 2**d * d) ** 2)
    assert hinge_alignment(signs) == pytest.approx((exact, 0), rel=1e-12)
    assert hinge_alignment(signs[:, :-1])[0] == 0


def test_random_labels_do_not_raise_the_alignment():
    for d in (6, 8, 10):
        start = np.random.default_rng(d).standard_normal((600, d)) / math.sqrt(d)
        first, error = hinge_alignment(start)
        for steps in (2, 5):
            assert hinge_alignment(junk_flow(start, steps))[0] <= 1.3 * first + 4 * error
    noisy = junk_flow(np.zeros((4000, 4)), 1, rate=0.5, tau=0.2, seed=1)
    assert noisy.std() == pytest.approx(0.1, rel=0.05)


def test_the_variances_of_the_junk_flow_and_of_its_bias():
    assert high_degree.junk_variances(1.0, 5, 0.1, 0.5)[-1] == pytest.approx(1 + 4 * 0.0025)
    assert high_degree.normalised_bias_variance(10, 0.5, 0.0) == 0.5


def test_the_noisy_alignment_of_a_gaussian_network():
    d, n, noise, bias = 5, 3, 0.4, 0.3

    def parts(weight, bias):
        """One neuron's hidden and output alignment with the full parity, from the arc-sine and arc-cosine kernels."""
        total, gram = d * weight + bias, cube(d) @ cube(d).T
        rho = np.clip((gram * weight + bias) / total, -1, 1)
        fire = 0.25 + np.arcsin(rho) / (2 * np.pi)
        relu = total * (np.sqrt(1 - rho**2) + rho * (np.pi - np.arccos(rho))) / (2 * np.pi)
        chi = np.multiply.outer(full_parity(d), full_parity(d)) / 4**d
        return float((chi * fire * (1 + gram)).sum()), float((chi * relu).sum())

    hidden, output = parts(1 / d + noise, bias + noise)
    scaled = parts(1 / d, high_degree.normalised_bias_variance(d, bias, noise))
    found = high_degree.noisy_alignment(*scaled, d, n, noise)
    assert found == pytest.approx(n * ((1 / n + noise) * hidden + output))
    assert found <= (1 + d * noise) * (1 + n * noise) * high_degree.noisy_alignment(*scaled, d, n, 0.0)


def test_the_target_of_figure_8_has_no_part_below_degree_three():
    x = cube(5)
    values = high_degree.leap_target(x)
    assert np.abs(values @ x).max() == 0
    assert np.abs((values[:, None] * x).T @ x).max() == 0
    assert np.mean(values**2) == pytest.approx((1 + 9 + 4 + 4) / 64)
