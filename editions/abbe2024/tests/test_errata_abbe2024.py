"""Slips of abbe2024 that the errata list: what is printed fails, what is meant holds."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from abbe2024.theory.high_degree import claim1, largest_margin
from abbe2024.theory.junk_flow import alignment_gap
from scipy import stats

from paritylab.measures.fourier import cube


@pytest.mark.parametrize("rho", [0.3, -0.7])
def test_hermite_polynomials_of_correlated_normals_have_a_power_of_the_correlation(rho):
    """Equation (139) prints m!; it is m! rho^m."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(20)
    weights = weights / weights.sum()
    x, y = np.meshgrid(nodes, nodes, indexing="ij")
    second = rho * x + math.sqrt(1 - rho**2) * y
    for m, n in itertools.product(range(5), repeat=2):
        one, two = (np.polynomial.hermite_e.hermeval(z, np.eye(6)[k]) for z, k in ((x, m), (second, n)))
        found = np.sum(np.multiply.outer(weights, weights) * one * two)
        assert found == pytest.approx(math.factorial(m) * rho**m if m == n else 0, abs=1e-9)


def relu_product(rho):
    """E relu(G) relu(G') for standard normals of this correlation."""
    return (math.sqrt(1 - rho**2) + rho * (math.pi - math.acos(rho))) / (2 * math.pi)


def test_the_bound_of_lemma_6_needs_the_weights_of_the_binomial_law():
    """The sums of equations (144) to (148) are means: with 2^-d they bound the left side, and without they do not
    come from it. Their middle part is at most a mean of |ReLU product - 1/(2 pi) - rho/4|."""
    d, alpha = 16, 0.8
    k = np.arange(d + 1)
    signed = (-1.0) ** k * stats.binom.pmf(k, d, 0.5)
    rest = np.array([relu_product(r) - 1 / (2 * math.pi) - r / 4 for r in alpha * (1 - 2 * k / d)])
    whole = abs(signed @ (rest + 1 / (2 * math.pi) + alpha * (1 - 2 * k / d) / 4))
    assert whole == pytest.approx(abs(signed @ rest))
    middle = (k >= d / 4) & (k <= 3 * d / 4)
    bound = abs(signed[middle] @ rest[middle])
    assert whole <= stats.binom.pmf(k[~middle], d, 0.5).sum() + bound
    assert bound * 2**d > 1 > whole


def test_theorem_6_states_the_margin_of_weights_without_perturbation():
    """Lemma 2 allows 4 R_z^2 gamma: R_z = 2 d sqrt(n) gives the statement's 16, the proof's 3 d sqrt(n) gives 36."""
    d, n, rate = 10, 100, 1e-3
    assert largest_margin(d, n, rate) == pytest.approx(4 * (2 * d * math.sqrt(n)) ** 2 * rate)
    assert 4 * (3 * d * math.sqrt(n)) ** 2 * rate == pytest.approx(36 * d**2 * n * rate)


def test_claim_1_fails_for_variances_that_shrink():
    """F = 1 near the mean: small in expectation, but 1 for a narrow law, which the printed condition allows."""
    radius, narrow = 1e-8, 1e-9
    mean = float(2 * stats.norm.cdf(radius) - 1)
    shrunk = 2 * stats.norm.cdf(radius / narrow) - 1
    assert shrunk > 0.999 > claim1(mean, 1.0)


def test_a_target_without_information_has_an_alignment_under_the_l1_loss():
    """Definition 2 compares with labels +-1, whatever the target: 0 is further from them than many a function is."""
    d, rng = 6, np.random.default_rng(0)
    x, w = cube(d), rng.standard_normal((500, d)) / d
    outputs = np.maximum(w @ x.T, 0)
    active = 1.0 * (w @ x.T > 0)

    def gradient(slope):
        return (slope * active) @ x / 2**d

    random = gradient((np.sign(outputs - 1) + np.sign(outputs + 1)) / 2)
    zero, parity = gradient(np.sign(outputs)), gradient(np.sign(outputs - x.prod(1)))
    alignments = [np.mean(np.sum((each - random) ** 2, axis=1)) for each in (zero, parity)]
    assert alignments[0] > 10 * alignments[1]


def pairs(d, distance):
    """w.x and w.x' at this distance of x and x', with their chances over signs w."""
    for first, second in itertools.product(range(d - distance + 1), range(distance + 1)):
        chance = math.comb(d - distance, first) * math.comb(distance, second) / 2**d
        yield chance, d - 2 * (first + second), d - 2 * (first + distance - second)


def sign_alignment(d, last_counts):
    """The alignment of one coordinate of a sign neuron under the hinge loss, by pairs of inputs."""

    def slope(label, z):
        return label * (z >= 0) * (1 - label * max(z, 0) >= 0)

    total = 0.0
    for others in range(d):
        for x, y in itertools.product((1, -1), repeat=2):
            share = math.comb(d - 1, others) / 2 ** (d + 1)
            for chance, a, b in pairs(d, others + (last_counts and x != y)):
                for sign in (1, -1):
                    labels = sign * x, sign * (-1) ** others * y
                    gaps = [slope(f, z) - (slope(1, z) + slope(-1, z)) / 2 for f, z in zip(labels, (a, b), strict=True)]
                    total += share * chance * x * y * gaps[0] * gaps[1] / 2
    return total


@pytest.mark.parametrize("d", [4, 6, 8])
def test_the_released_alignment_of_signs_forgets_the_last_coordinate(d):
    exact = float(np.square(alignment_gap(np.ones((1, d)))).mean())
    assert sign_alignment(d, True) == pytest.approx(exact)
    assert sign_alignment(d, False) > 50 * exact
    if d == 8:
        assert (exact, sign_alignment(8, False)) == pytest.approx((9.5367e-5, 4.2152e-2), rel=1e-4)
