"""Alignment with sums of parities: all weights and inputs one by one, and sampled weights where there are many.

Statistical tests have fixed seeds; a correct function would fail one with probability at most 1e-5 (4.5 sigma).
"""

from __future__ import annotations

import itertools
import json
import math
from fractions import Fraction

import numpy as np
import pytest
from commands import run

import paritylab as pl
from paritylab.errors import InvalidInput
from paritylab.measures.alignment.laws import bias_law, law
from paritylab.measures.alignment.polynomials import cross
from paritylab.measures.alignment.units import HINGE, RELU, THRESHOLD
from paritylab.measures.fourier import cube
from paritylab.measures.population import unit_gradient

SIGMAS = 4.5
UNITS = {"threshold": THRESHOLD, "relu": RELU}
SYMMETRIC = {"rademacher": (1, -1), "discrete:-2,-1,1,2": (-2, -1, 1, 2)}
OTHERS = {"discrete:1,3": (1, 3), "discrete:-1,2": (-1, 2), "discrete:0.5,-1,0": (0.5, -1, 0)}
SUMS = [
    [(1.0, (0,)), (1.0, (0, 1))],
    [(0.5, (0, 1, 2)), (-2.0, (1,)), (1.0, (1, 2))],
    [(1.5, (0, 2)), (1.0, (1,)), (-1.0, (0, 1, 2, 3))],
]


def vectors(atoms, d):
    return np.array(list(itertools.product(atoms, repeat=d)), float)


def values(terms, x):
    return sum(c * x[:, list(support)].prod(1) for c, support in terms)


def brute(atoms, d, terms, unit, bias):
    """E_w (E_x f u)^2, one weight vector at a time."""
    x = cube(d)
    f = values(terms, x)
    return np.mean([np.mean(f * unit(x @ w + bias)) ** 2 for w in vectors(atoms, d)])


@pytest.mark.parametrize("name", [*SYMMETRIC, *OTHERS])
@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("bias", [None, 0.3, 1, -0.5])
def test_units_are_what_visiting_all_weights_and_inputs_finds(name, unit, bias):
    atoms = {**SYMMETRIC, **OTHERS}[name]
    for terms in SUMS:
        expected = brute(atoms, 4, terms, UNITS[unit], bias or 0)
        found = pl.alignment(name, 4, terms=terms, unit=unit, bias=bias)
        assert found.value == pytest.approx(expected, rel=1e-11, abs=1e-15)
        assert (found.exact is not None) == (name in SYMMETRIC)


@pytest.mark.parametrize("name", SYMMETRIC)
def test_terms_of_two_parities_vanish_if_the_law_is_symmetric(name):
    """Also where the bias is not; the exact value is the sum of squares times those of single parities."""
    x = cube(4)
    for unit, bias in itertools.product((THRESHOLD, RELU, HINGE), (0.0, 0.3, 1.0)):
        z = vectors(SYMMETRIC[name], 4) @ x.T + bias
        table = np.array([unit(z) @ x[:, list(support)].prod(1) / 16
                          for size in range(5) for support in itertools.combinations(range(4), size)])
        products = table @ table.T
        np.testing.assert_allclose(products, np.diag(np.diag(products)), atol=1e-12)
    parts = [pl.alignment(name, 4, k).exact for k in (3, 1, 2)]
    weights = Fraction(1, 4), Fraction(4), Fraction(1)
    assert pl.alignment(name, 4, terms=SUMS[1]).exact == sum(c * part for c, part in zip(weights, parts, strict=True))


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("bias", [None, 0.3, "rademacher", "gaussian:0.7"])
def test_single_terms_of_two_parities_of_other_laws(name, bias):
    x, biases = cube(4), bias_law(bias)
    if biases.discrete:
        points, chances = (np.array([float(each) for each in part]) for part in (biases.atoms, biases.probabilities))
    else:  # cells whose ends are whole numbers and halves: coefficients are smooth inside
        points = (np.arange(-1750, 1750) + 0.5) / 500
        chances = np.exp(-np.square(points / biases.normal) / 2) / math.sqrt(2 * math.pi) / biases.normal / 500
    z = (vectors(OTHERS[name], 4) @ x.T)[:, :, None] + points
    for (one, other), unit in itertools.product([((0, 1), (1, 2)), ((0,), (1, 2, 3)), ((0,), ())], (THRESHOLD, RELU)):
        first, second = (np.einsum("x,wxb->wb", x[:, list(each)].prod(1), unit(z)) / 16 for each in (one, other))
        expected = (first * second).mean(0) @ chances
        sizes = len({*one} & {*other}), len({*one} - {*other}), len({*other} - {*one})
        found = cross(law(name), biases, 4, sizes, unit)
        assert found.value == pytest.approx(expected, rel=1e-10 if biases.discrete else 1e-4, abs=1e-14)


def brute_network(atoms, d, terms, width, bias, scale):
    """GAL of a two-layer network by visiting all weights (one hidden unit) and inputs, from the definition."""
    x = cube(d)
    y, union = values(terms, x), sorted({j for _, support in terms for j in support})
    total = np.zeros(4)
    for *w, v in itertools.product(atoms, repeat=d + 1):
        z = scale * (x @ np.array(w)) + bias
        gate = (z >= -1e-12).astype(float)
        by_weights, by_bias = v * (x * (y * gate)[:, None]).mean(0), v * (y * gate).mean()
        by_output = (y * z * gate).mean()
        inside = np.isin(np.arange(d), union)
        total += [np.sum(by_weights[inside] ** 2), np.sum(by_weights[~inside] ** 2), by_bias**2, by_output**2]
    return width * total / len(atoms) ** (d + 1)


@pytest.mark.parametrize("atoms", [(1, -1), (-2, -1, 1), (1, 3)])
@pytest.mark.parametrize(("bias", "scale"), [(0, 1), (0.3, 0.5)])
def test_network_parts_are_those_of_the_definition(atoms, bias, scale):
    name = "discrete:" + ",".join(map(str, atoms))
    for terms, d in ((SUMS[0], 4), (SUMS[1], 3), (SUMS[2], 4)):
        expected = brute_network(atoms, d, terms, 7, bias, scale)
        found = pl.alignment(name, d, unit="network", width=7, bias=bias, scale=(scale, 1), terms=terms)
        assert list(found.parts.values()) == pytest.approx(expected, rel=1e-10, abs=1e-14)
        assert found.value == pytest.approx(expected.sum(), rel=1e-10)


@pytest.mark.parametrize(("name", "d", "bias", "draws"), [
    ("rademacher", 61, 0.0, 400), ("discrete:1,3,-1", 41, 0.0, 400), ("discrete:1,-3", 31, 0.5, 400),
    pytest.param("uniform", 61, 0.5, 60, marks=pytest.mark.long),
    pytest.param("gaussian", 61, 0.0, 200, marks=[pytest.mark.slow, pytest.mark.long]),
    pytest.param("perturbed-rademacher:0.3", 51, 1.0, 20, marks=pytest.mark.long)])
def test_large_cases_agree_with_sampled_weights(name, d, bias, draws):
    """Each draw's expectation over inputs is exact, by another module. No sum of these weights is a tie."""
    terms = [(1.0, (0,)), (0.5, (1, 2)), (-2.0, (0, 1, 3))]
    exact = pl.alignment(name, d, bias=bias, terms=terms)
    weights = law(name).sample(np.random.default_rng(d), (draws, d))
    squares = unit_gradient(weights, terms, bias=bias).bias ** 2
    error = squares.std(ddof=1) / math.sqrt(len(squares))
    assert abs(squares.mean() - exact.value) < SIGMAS * error
    assert error < 0.2 * exact.value


def test_without_symmetry_two_parities_do_matter():
    single = sum(pl.alignment("discrete:1,3", 5, k).value for k in (1, 3))
    together = [pl.alignment("discrete:1,3", 5, terms=[(1, (0,)), (sign, (0, 1, 2))]).value for sign in (1, -1)]
    assert sum(together) == pytest.approx(2 * single)
    assert abs(together[0] - together[1]) > 0.1 * single


def test_one_term_is_the_parity():
    for name, unit in itertools.product(("gaussian", "rademacher", "discrete:1,3"), ("threshold", "relu", "network")):
        one = pl.alignment(name, 9, 4, unit=unit, bias=0.3)
        other = pl.alignment(name, 9, unit=unit, bias=0.3, terms=[(1, (2, 3, 5, 8))])
        assert other.value == pytest.approx(one.value, rel=1e-12)
        assert other.parts == pytest.approx(one.parts, rel=1e-12)


@pytest.mark.parametrize(("arguments", "says"), [
    ({"degree": 2}, "not both"), ({"unit": "hinge-neuron"}, "sums of parities"), ({"method": "enumerate"}, "sums of"),
    ({"terms": []}, "at least one"), ({"terms": [(1, ())]}, "at least one"), ({"terms": [(1, (0, 5))]}, "from 0 to 4"),
    ({"terms": "parity:2"}, "pairs"), ({"init": "discrete:1,3", "moved": 0.1}, "symmetric about 0, or discrete"),
])
def test_what_cannot_be_is_refused_in_one_line(arguments, says):
    with pytest.raises(InvalidInput, match=says) as caught:
        pl.alignment(**{"init": "rademacher", "d": 5, "terms": SUMS[0], **arguments})
    assert "\n" not in str(caught.value)


def test_the_command(capsys):
    status, out, _ = run(capsys, "theory", "alignment", "--d", "7", "--term", "2:0", "--term", "1:0,1,2", "--json")
    assert status == 0
    assert json.loads(out)["exact"] == "101/1024"
    status, out, _ = run(capsys, "theory", "alignment", "--d", "7", "--term", "2:0")
    assert "a sum of parities of 7 inputs" in out
    for arguments in (("--term", "2:9"), ("--term", "x"), ("--degree", "2", "--term", "1:0")):
        status, _, err = run(capsys, "theory", "alignment", "--d", "7", *arguments)
        assert status == 2
        assert len(err.strip().splitlines()) == 1
