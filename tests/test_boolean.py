"""Boolean functions by name against their definitions, and their expansions against brute force."""

import itertools
import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paritylab.cli import main
from paritylab.cli.fourier import FUNCTIONS
from paritylab.errors import InvalidInput
from paritylab.measures.boolean import Spectrum, named, spectrum
from paritylab.measures.fourier import cube
from paritylab.setups.problems.functions import NAMED

DEFINITIONS = {
    "parity:4": math.prod,
    "majority:5": lambda x: 1 if sum(x) > 0 else -1,
    "mod:3,6": lambda x: 1 if x.count(-1) % 3 == 0 else -1,
    "tribes:2,3": lambda x: -1 if any(x[i] == x[i + 1] == -1 for i in (0, 2, 4)) else 1,
    "address:2": lambda x: x[2 + (x[0] == -1) + 2 * (x[1] == -1)],
    "staircase:4": lambda x: x[0] + x[0] * x[1] + x[0] * x[1] * x[2] + x[0] * x[1] * x[2] * x[3],
    "leap:2,1,3": lambda x: x[0] * x[1] + x[0] * x[1] * x[2] + math.prod(x),
}


@pytest.mark.parametrize("spec", DEFINITIONS)
def test_values_are_those_of_the_definition(spec):
    values = named(spec)
    x = cube(len(values).bit_length() - 1).astype(int).tolist()
    assert values.tolist() == [DEFINITIONS[spec](row) for row in x]


@pytest.mark.parametrize("spec", [*DEFINITIONS, "random:5,3"])
def test_the_expansion_is_that_of_brute_force(spec):
    values = named(spec)
    found = spectrum(values)
    x = cube(found.bits)
    for place in range(len(values)):
        support = [j for j in range(found.bits) if place >> j & 1]
        assert found.coefficients[place] == pytest.approx(np.mean(values * x[:, support].prod(axis=1)), abs=1e-12)
    together = sum(term.coefficient * x[:, list(term.support)].prod(axis=1) for term in found.terms)
    np.testing.assert_allclose(together, values, atol=1e-12)
    assert found.weights.sum() == pytest.approx(np.mean(values**2))


@pytest.mark.parametrize(("spec", "degree", "leap", "exponent"), [
    ("parity:4", 4, 4, 4), ("staircase:5", 5, 1, 1), ("leap:2,1,3", 6, 3, 2), ("leap:1,4", 5, 4, 1),
    ("majority:7", 7, 1, 1), ("mod:2,5", 5, 5, 5), ("address:2", 3, 1, 1),
])
def test_degree_leap_and_exponent(spec, degree, leap, exponent):
    found = spectrum(named(spec))
    assert (found.degree, found.leap, found.information_exponent) == (degree, leap, exponent)


def test_a_constant_has_no_exponent():
    found = spectrum(np.ones(8))
    assert (found.degree, found.leap, found.information_exponent) == (0, 0, None)


@given(st.sets(st.integers(1, 31), min_size=1, max_size=6))
@settings(max_examples=60, deadline=None)
def test_the_leap_is_the_best_over_all_orders(places):
    coefficients = np.zeros(32)
    coefficients[list(places)] = 1.0
    supports = [{j for j in range(5) if place >> j & 1} for place in places]
    best = min(max(len(support - set().union(*order[:i])) for i, support in enumerate(order))
               for order in itertools.permutations(supports))
    assert Spectrum(coefficients).leap == best


@pytest.mark.parametrize(("spec", "says"), [
    ("maj:3", "majority"), ("majority:4", "odd"), ("majority", "majority:K"), ("majority:x", "whole numbers"),
    ("parity:0", "at least 1"), ("parity:21", "at most 20"), ("address:5", "at most 20"), ("mod:1,3", "at least 2"),
    ("parity:3,4", "parity:K"), ("leap:", "leap:K1"),
])
def test_a_function_that_is_none_is_refused_in_one_line(spec, says):
    with pytest.raises(InvalidInput, match=says) as caught:
        named(spec)
    assert "\n" not in str(caught.value)


def test_a_table_of_a_wrong_size_is_refused():
    with pytest.raises(InvalidInput, match="2\\^n"):
        spectrum(np.ones(6))


def test_a_shell_shows_the_spectrum(capsys):
    assert ", ".join([*(kind.words for kind in NAMED.values()), "table:FILE"]) == FUNCTIONS
    assert main(["theory", "fourier", "--target", "leap:2,1", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["bits"], found["degree"], found["leap"], found["information_exponent"]) == (3, 3, 2, 2)
    assert found["terms"] == [{"support": [0, 1], "coefficient": 1.0}, {"support": [0, 1, 2], "coefficient": 1.0}]
    assert main(["theory", "fourier", "--target", "majority:5"]) == 0
    assert "leap 1" in capsys.readouterr().out
    assert main(["theory", "fourier", "--target", "majority:5", "--n", "7"]) == 2
    assert "leave out --n" in capsys.readouterr().err
