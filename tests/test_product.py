"""Product laws: the biased basis and its transform against the definition, one input at a time."""

import itertools
import json
import math

import numpy as np
import pytest
from commands import run
from hypothesis import given, settings
from hypothesis import strategies as st

from paritylab.errors import InvalidInput
from paritylab.measures.boolean import named, spectrum
from paritylab.measures.fourier import cube, walsh_hadamard
from paritylab.measures.product import biased_coefficients, biased_values, chances, masses


def brute(values, p):
    """E f psi_T for every T, by visiting inputs and sets one by one."""
    n = len(p)
    found = np.zeros(2**n)
    for place, (value, x) in enumerate(zip(values, cube(n), strict=True)):
        assert place == sum(1 << j for j in range(n) if x[j] < 0)
        mass = math.prod(p[j] if x[j] > 0 else 1 - p[j] for j in range(n))
        for subset in range(2**n):
            psi = math.prod((x[j] - (2 * p[j] - 1)) / (2 * math.sqrt(p[j] * (1 - p[j])))
                            for j in range(n) if subset >> j & 1)
            found[subset] += mass * value * psi
    return found


@given(st.integers(1, 5), st.integers(0, 99))
@settings(max_examples=40, deadline=None)
def test_the_transform_is_the_definition_and_parseval_holds(n, seed):
    generator = np.random.default_rng(seed)
    values, p = generator.standard_normal(2**n), generator.uniform(0.02, 0.98, n)
    found = biased_coefficients(values, p)
    np.testing.assert_allclose(found, brute(values, p), atol=1e-12)
    assert np.sum(found**2) == pytest.approx(masses(p) @ values**2, rel=1e-12)
    np.testing.assert_allclose(biased_values(found, p), values, atol=1e-10)


def test_parseval_and_the_inverse_at_twenty_bits():
    generator = np.random.default_rng(0)
    values, p = generator.standard_normal(2**20), generator.uniform(0.2, 0.8, 20)
    found = biased_coefficients(values, p)
    assert np.sum(found**2) == pytest.approx(masses(p) @ values**2, rel=1e-11)
    np.testing.assert_allclose(biased_values(found, p), values, atol=1e-9)


def test_without_bias_it_is_the_transform_of_parities_and_arguments_are_left_alone():
    values = np.random.default_rng(1).standard_normal(2**8)
    kept = values.copy()
    np.testing.assert_allclose(biased_coefficients(values), walsh_hadamard(values) / 2**8, atol=1e-14)
    assert np.array_equal(values, kept)


def test_a_biased_parity_has_every_product_of_its_bits():
    p = 0.9
    mu, sigma = 2 * p - 1, 2 * math.sqrt(p * (1 - p))
    found = spectrum(named("parity:4"), p)
    for term in found.terms:
        assert term.coefficient == pytest.approx(sigma ** len(term.support) * mu ** (4 - len(term.support)))
    assert len(found.terms) == 16
    assert (found.degree, found.leap, found.information_exponent) == (4, 1, 1)
    assert found.weights.sum() == pytest.approx(1.0)
    assert spectrum(named("parity:4"), 0.5).leap == spectrum(named("parity:4")).leap == 4


@pytest.mark.parametrize("free", [1, 2, 3])
def test_the_leap_of_a_parity_is_the_number_of_its_bits_without_bias(free):
    """x_j = mu_j + sigma_j z_j: unbiased bits come together, and one biased bit at a time may join them."""
    p = [0.5] * free + [0.7] * (4 - free)
    found = spectrum(named("parity:4"), p)
    assert (found.leap, found.information_exponent) == (free, free)


def test_masses_are_those_of_independent_bits():
    p = np.array([0.1, 0.6, 0.9])
    for mass, x in zip(masses(p), cube(3), strict=True):
        assert mass == pytest.approx(math.prod(c if s > 0 else 1 - c for c, s in zip(p, x, strict=True)))


@pytest.mark.parametrize("p", [0, 1, -0.1, float("nan"), [0.5, 0.5], "often", [[0.5] * 3]])
def test_a_law_that_is_none_is_refused_in_one_line(p):
    with pytest.raises(InvalidInput, match="probabilit") as caught:
        chances(p, 3)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("values", [[], 1.0, [1, 2, 3], [[1, 2]]])
def test_a_table_of_a_wrong_size_is_refused(values):
    for function in (biased_coefficients, biased_values):
        with pytest.raises(InvalidInput, match="2\\^n"):
            function(values)


def test_a_shell_shows_the_biased_spectrum(capsys):
    status, out, _ = run(capsys, "theory", "fourier", "--target", "parity:2", "--bias", "0.75", "--json")
    found = json.loads(out)
    assert status == 0
    assert (found["bias"], found["leap"], found["information_exponent"], found["degree"]) == (0.75, 1, 1, 2)
    supports = [tuple(term["support"]) for term in found["terms"]]
    assert sorted(supports) == sorted(each for size in range(3) for each in itertools.combinations(range(2), size))
    assert found["terms"][0] == {"support": [0, 1], "coefficient": pytest.approx(0.75)}
    status, out, _ = run(capsys, "theory", "fourier", "--target", "parity:2", "--bias", "0.75")
    assert status == 0
    assert "z = (x - 0.5) / 0.866025" in out
    assert "z0 z1" in out
    for bias in ("0", "1", "1.5", "nan"):
        status, _, err = run(capsys, "theory", "fourier", "--target", "parity:2", "--bias", bias)
        assert status == 2
        assert "probability" in err
        assert len(err.strip().splitlines()) == 1
