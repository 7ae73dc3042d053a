"""Gradient alignment: every method against the others, brute force on small cases and sampling on large ones.

Statistical tests have fixed seeds; a correct function would fail one with probability at most 1e-5 (4.5 sigma).
"""

from __future__ import annotations

import itertools
import json
import math
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import paritylab as pl
from paritylab.cli import main
from paritylab.errors import InvalidInput
from paritylab.measures.alignment.enumerate import enumerate_weights
from paritylab.measures.alignment.integral import integrate
from paritylab.measures.alignment.lattice import lattice_sum
from paritylab.measures.alignment.laws import Law, bias_law, law
from paritylab.measures.alignment.pairs import pair_sum, rational_sum
from paritylab.measures.alignment.units import HINGE, RELU, THRESHOLD
from paritylab.measures.alignment.waves import smooth_tail, tail
from paritylab.setups import inits

UNITS = {"threshold": THRESHOLD, "relu": RELU, "hinge": HINGE}
FOUR_AND_A_HALF_SIGMA = 4.5 / 1.96

TABLE = {
    11: (1.51405334e-2, 1.50018271e-2, 9.13241290e-3, 4.52327675e-4, 4.77250020e-5, 3.31135027e-5, 3.22166665e-5),
    21: (7.76097285e-3, 6.94264735e-3, 1.93569095e-3, 5.07362406e-6, 4.10436509e-8, 2.11505371e-8, 2.03789944e-8),
}


@pytest.mark.parametrize("d", TABLE)
def test_the_published_values_to_eight_digits(d):
    laws = [*(f"perturbed-rademacher:{s}" for s in (0.05, 0.1, 0.2, 0.5, 1, 2)), "gaussian"]
    found = [pl.alignment(name, d) for name in laws]
    assert [f.value for f in found] == pytest.approx(TABLE[d], rel=5e-9)
    assert all(f.method == "integral" and f.error < 1e-12 * f.value for f in found)


def test_exact_rationals():
    assert pl.alignment("rademacher", 7).exact == Fraction(25, 1024)
    assert pl.alignment("discrete:-2,-1,1,2", 7).exact == Fraction(14275, 2097152)
    half = Fraction(math.comb(10, 5), 2**10)
    assert pl.alignment("rademacher", 10).exact == (half / 2) ** 2  # only ties count: chi is constant on them
    assert pl.alignment("rademacher", 10).value == pytest.approx(0.0151405334)


@pytest.mark.parametrize("name", ["rademacher", "discrete:-2,-1,1,2", "sparse-rademacher:0.2", "discrete:1,3",
                                  "discrete:0.5,-1,0.25"])
@pytest.mark.parametrize("unit", UNITS)
def test_lattice_and_rationals_are_what_enumeration_finds(name, unit):
    for d, bias in itertools.product((1, 2, 3), (None, 0.3, 1, "rademacher", "discrete:-1,0,0.5")):
        for k in range(d + 1):
            case = law(name), bias_law(bias), d, k, UNITS[unit]
            exact = float(rational_sum(*case))
            assert enumerate_weights(*case).value == pytest.approx(exact, rel=1e-12, abs=1e-30)
            assert lattice_sum(*case).value == pytest.approx(exact, rel=1e-11, abs=1e-18)


@pytest.mark.parametrize(("name", "d", "k"), [
    ("rademacher", 60, 60), ("rademacher", 61, 61), ("rademacher", 61, 60), ("discrete:-2,-1,1,2", 40, 40),
    ("discrete:-2,-1,1,2", 41, 39), ("discrete:-3,-1,1,3", 31, 31), ("sparse-rademacher:0.5", 41, 41),
])
@pytest.mark.parametrize("unit", UNITS)
def test_the_lattice_sum_is_the_exact_rational_at_larger_sizes(name, d, k, unit):
    case = law(name), Law(), d, k, UNITS[unit]
    assert lattice_sum(*case).value == pytest.approx(float(rational_sum(*case)), rel=1e-10, abs=1e-17)


def agree(case, rel=1e-10):
    """Certified digits and the method for this law."""
    certified, found = pair_sum(*case), (lattice_sum if case[0].discrete else integrate)(*case)
    if not certified.mantissa:
        assert found.value == 0
        return
    size = max(rel, 2 * found.error / abs(found.mantissa))
    assert found.log_value == pytest.approx(certified.log_value, abs=size)


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("bias", [None, 0.3, "gaussian:0.7", "rademacher", "perturbed-rademacher:0.1"])
@pytest.mark.parametrize(("d", "k"), [(1, 1), (2, 1), (5, 5), (5, 4), (6, 2)])
def test_gaussian_weights_against_certified_digits(unit, bias, d, k):
    agree((law("gaussian"), bias_law(bias), d, k, UNITS[unit]))


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("bias", [None, 0.3, 1, "gaussian:0.5"])
@pytest.mark.parametrize(("sigma", "d", "k"), [(0.05, 3, 3), (0.5, 4, 3), (0.5, 5, 5), (2, 4, 4), (0.3, 4, 1)])
def test_perturbed_weights_against_certified_digits(unit, bias, sigma, d, k):
    agree((law(f"perturbed-rademacher:{sigma}"), bias_law(bias), d, k, UNITS[unit]))


@pytest.mark.parametrize("k", [1, 2, 4, 5])
@pytest.mark.parametrize("bias", ["gaussian:0.7", "perturbed-rademacher:0.4"])
def test_lattice_weights_with_continuous_biases_against_certified_digits(k, bias):
    for unit in (THRESHOLD, RELU):
        agree((law("rademacher"), bias_law(bias), 5, k, unit))


@pytest.mark.parametrize(("d", "k"), [(0, 0), (1, 0)])
def test_degree_zero_coefficients_against_certified_digits(d, k):
    for bias in (0.3, "gaussian:0.7", None):
        agree((law("gaussian"), bias_law(bias), d + 3, k, THRESHOLD))
        agree((law("perturbed-rademacher:0.5"), bias_law(bias), d + 3, k, HINGE))


@pytest.mark.parametrize(("d", "k"), [(201, 201), (201, 3), (400, 200), (1001, 1001), (1000, 999)])
def test_large_gaussian_cases_against_certified_digits(d, k):
    for unit, bias in itertools.product((THRESHOLD, RELU), (None, "gaussian:0.7")):
        agree((law("gaussian"), bias_law(bias), d, k, unit))


def test_perturbed_eleven_inputs_against_certified_digits():
    agree((law("perturbed-rademacher:0.2"), Law(), 11, 11, THRESHOLD))


def test_uniform_weights_have_rational_alignments():
    # Three weights make a majority (coefficient 1/4) if they are sides of a triangle (probability 1/2), else the
    # largest decides (0); of two weights the larger decides (1/2).
    assert pl.alignment("uniform", 3).value == pytest.approx(1 / 32, rel=1e-9)
    found = pl.alignment("uniform", 2, 1)
    assert abs(found.value - 1 / 8) < 3 * found.error < 1e-5


@pytest.mark.slow
@pytest.mark.long
def test_tiny_noise_only_decides_ties():
    same = [pl.alignment(f"perturbed-rademacher:{s}", 101).value for s in (1e-6, 1e-3)]
    assert same == pytest.approx([pl.alignment("rademacher", 101).value] * 2, rel=1e-12)
    assert pl.alignment("uniform-perturbed:0.0001", 11).value == pytest.approx(
        pl.alignment("rademacher", 11).value, rel=1e-10)
    # Even d: the limit is another than at 0, and does not depend on how small the noise is.
    even = [pl.alignment(f"perturbed-rademacher:{s}", 6, 5).value for s in (1e-5, 1e-3, 0.03)]
    assert even[:2] == pytest.approx([even[2]] * 2, rel=1e-11)
    assert abs(even[0] - pl.alignment("rademacher", 6, 5).value) > 1e-4
    agree((law("perturbed-rademacher:0.03"), Law(), 6, 5, THRESHOLD))
    for d, k, bias in ((4, 4, None), (4, 3, 0.3), (5, 4, None), (3, 1, 1)):  # ramps: quadratic in the noise
        agree((law("perturbed-rademacher:0.003"), bias_law(bias), d, k, RELU))


def test_values_below_the_least_float_keep_their_logarithm():
    found = pl.alignment("gaussian", 10001)
    assert found.value == 0
    assert -found.log / 10001 == pytest.approx(math.log(2), rel=2e-3)
    lattice = [pl.alignment("discrete:-2,-1,1,2", d) for d in (3001, 4001)]
    assert lattice[0].value < 1e-300
    assert (lattice[0].log - lattice[1].log) / 1000 == pytest.approx(math.log(32 / 25), rel=3e-3)


@pytest.mark.parametrize(("sigma", "rate"), [(0.1, 0.024131), (0.2, 0.090412), (0.5, 0.379543), (1, 0.638217)])
def test_the_rate_of_decay_is_that_of_the_saddle_point(sigma, rate):
    logs = [pl.alignment(f"perturbed-rademacher:{sigma}", d).log for d in (3001, 4001)]
    assert (logs[0] - logs[1]) / 1000 == pytest.approx(rate, abs=4e-4)


# --- whole networks -----------------------------------------------------------------------------------------------


def brute_network(atoms, d, k, width, bias, scale):
    """GAL of a two-layer network by visiting all weights (one hidden unit) and inputs, from the definition."""
    x = np.array(list(itertools.product((1.0, -1.0), repeat=d)))
    y = x[:, :k].prod(1)
    total = np.zeros(4)
    for *w, v in itertools.product(atoms, repeat=d + 1):
        z = scale * (x @ np.array(w)) + bias
        gate = (z >= 0).astype(float)
        by_weights, by_bias = v * (x * (y * gate)[:, None]).mean(0), v * (y * gate).mean()
        by_output = (y * z * gate).mean()
        total += [np.sum(by_weights[:k] ** 2), np.sum(by_weights[k:] ** 2), by_bias**2, by_output**2]
    return width * total / len(atoms) ** (d + 1)


@pytest.mark.parametrize(("d", "k", "bias", "scale"), [(3, 3, 0, 1), (4, 3, 0.3, 0.5), (4, 1, 1, 1), (4, 4, 0, 0.5)])
def test_network_parts_are_those_of_the_definition(d, k, bias, scale):
    for atoms in ((1, -1), (-2, -1, 1)):
        name = "discrete:" + ",".join(map(str, atoms))
        expected = brute_network(atoms, d, k, 7, bias, scale)
        found = pl.alignment(name, d, k, unit="network", width=7, bias=bias, scale=(scale, 1))
        assert list(found.parts.values()) == pytest.approx(expected, rel=1e-12)
        assert found.value == pytest.approx(expected.sum(), rel=1e-12)


def test_network_of_gaussian_weights_against_sampling_with_automatic_differentiation():
    settings = {"unit": "network", "bias": "gaussian:0.7", "width": 3, "scale": "fan-in"}
    exact = pl.alignment("gaussian", 5, 4, **settings)
    sampled = pl.alignment("gaussian", 5, 4, **settings, method="monte-carlo", draws=2000, seed=1)
    assert abs(sampled.value - exact.value) < FOUR_AND_A_HALF_SIGMA * sampled.error
    assert sampled.error < 0.2 * exact.value
    for part, value in exact.parts.items():
        assert sampled.parts[part] == pytest.approx(value, rel=0.3)


def test_network_of_any_loss_by_sampling():
    hinge = pl.alignment("rademacher", 6, unit="network", width=4, scale="fan-in", loss="hinge:100",
                         method="monte-carlo", draws=50)
    correlation = pl.alignment("rademacher", 6, unit="network", width=4, scale="fan-in", method="monte-carlo", draws=50)
    # A margin no output reaches makes the hinge loss the correlation loss.
    assert hinge.value == pytest.approx(correlation.value, rel=1e-4)
    square = pl.alignment("rademacher", 6, unit="network", width=4, scale="fan-in", loss="square",
                          method="monte-carlo", draws=50)
    assert square.value == pytest.approx(4 * correlation.value, rel=1e-4)


def test_sampled_inputs_are_unbiased():
    exact = pl.alignment("perturbed-rademacher:0.1", 6, unit="network", width=2).value
    found = pl.alignment("perturbed-rademacher:0.1", 6, unit="network", width=2, method="monte-carlo", inputs=200)
    assert abs(found.value - exact) < FOUR_AND_A_HALF_SIGMA * found.error


# --- hinge neurons ------------------------------------------------------------------------------------------------


def test_hinge_neuron_of_rademacher_weights_is_the_closed_form():
    for d in (4, 6, 8, 12, 30):
        expected = (Fraction(math.comb(d - 2, d // 2 - 1), 2**d * d)) ** 2
        assert pl.alignment("rademacher", d, unit="hinge-neuron").exact == expected
    assert pl.alignment("rademacher", 9, unit="hinge-neuron").value == 0


@pytest.mark.parametrize(("atoms", "d", "k", "scale"), [((1, -1), 4, 4, 1), ((1, -1), 4, 3, 0.5), ((1, 2), 4, 3, 1)])
def test_hinge_neuron_against_automatic_differentiation_of_the_loss(atoms, d, k, scale):
    x = jnp.array(list(itertools.product((1.0, -1.0), repeat=d)))
    y = x[:, :k].prod(1)

    def excess(w):
        z = scale * (x @ w)
        f = jnp.where(z >= 0, z, 0.0)
        losses = [jnp.where(label * f < 1, 1 - label * f, 0.0) for label in (y, 1.0, -1.0)]
        return jnp.mean(losses[0] - (losses[1] + losses[2]) / 2)

    w = jnp.array(list(itertools.product(map(float, atoms), repeat=d)))
    expected = np.square(np.asarray(jax.vmap(jax.grad(excess))(w), np.float64) / scale).mean(0)
    found = pl.alignment("discrete:" + ",".join(map(str, atoms)), d, k, unit="hinge-neuron", scale=scale)
    assert found.value == pytest.approx(expected[0], rel=1e-5)
    assert found.parts["all coordinates"] == pytest.approx(expected.sum(), rel=1e-5)


def test_hinge_neuron_ties_with_the_scale_of_its_fan_in():
    # 1/sqrt(9): z = 1 is met exactly by w.x = 3, although neither is a float.
    by_scale = pl.alignment("rademacher", 9, unit="hinge-neuron", scale="fan-in").value
    assert by_scale == pl.alignment("rademacher", 9, unit="hinge-neuron", scale=Fraction(1, 3)).value
    assert by_scale > 0


# --- sampling -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "d", "k", "bias"), [
    ("perturbed-rademacher:0.1", 11, 11, None), ("uniform-perturbed:0.3", 9, 9, None), ("uniform", 7, 6, 0.5),
    ("uniform-perturbed:1", 6, 3, "uniform"), ("discrete:1,-2,4", 8, 7, "gaussian:2"), ("rademacher", 8, 7, "uniform"),
])
@pytest.mark.parametrize("unit", ["threshold", "relu", "hinge-neuron"])
def test_small_cases_against_sampled_weights(name, d, k, bias, unit):
    exact = pl.alignment(name, d, k, unit=unit, bias=bias)
    sampled = pl.alignment(name, d, k, unit=unit, bias=bias, method="monte-carlo", draws=2000, seed=3)
    assert abs(sampled.value - exact.value) <= FOUR_AND_A_HALF_SIGMA * sampled.error + 3 * exact.error + 1e-18


@pytest.mark.parametrize(("name", "d", "bias"), [("rademacher", 51, None), ("perturbed-rademacher:0.03", 101, None),
                                                  ("uniform-perturbed:0.05", 50, 1)])
def test_large_cases_against_sampled_weights_and_inputs(name, d, bias):
    exact = pl.alignment(name, d, bias=bias)
    sampled = pl.alignment(name, d, bias=bias, method="monte-carlo", draws=800, inputs=2000, seed=5)
    assert abs(sampled.value - exact.value) < FOUR_AND_A_HALF_SIGMA * sampled.error
    assert sampled.error < 0.2 * exact.value


def test_a_law_of_ones_own():
    own = inits.custom(lambda key, shape: jax.random.normal(key, shape), lambda t: np.exp(-np.square(t) / 2))
    assert pl.alignment(own, 21).value == pytest.approx(TABLE[21][-1], rel=5e-9)


def test_tails_are_the_sums_they_stand_for():
    p, wave = np.linspace(0, 3, 40), {(0.7, 1): 0.3 - 0.4j}
    q = 10 + (np.arange(2_000_000) + 0.5) * 0.2
    values = (np.real((0.3 - 0.4j) * np.exp(0.7j * q)) / q)
    direct = [(values / (q**2 - x**2) ** 2).sum() for x in p]
    assert tail(p, wave, 2, 10.0, 0.2) == pytest.approx(direct, rel=1e-11)
    assert smooth_tail(p, wave, 2, 10.0, 0.2) == pytest.approx(direct, rel=1e-11)


# --- what is refused, and the command -----------------------------------------------------------------------------


@pytest.mark.parametrize(("arguments", "text"), [
    ({"d": 0}, "from 1 to"),
    ({"d": 5, "degree": 6}, "from 1 to d = 5"),
    ({"d": 5, "degree": 0}, "from 1 to d = 5"),
    ({"d": 5, "unit": "tanh"}, "unknown unit"),
    ({"d": 5, "method": "quick"}, "unknown method"),
    ({"d": 5, "width": 3}, "only a network"),
    ({"d": 5, "scale": "big"}, "a scale is"),
    ({"d": 5, "scale": -1}, "positive"),
    ({"d": 5, "loss": "hinge"}, "monte-carlo"),
    ({"d": 5, "method": "integral"}, "use 'lattice'"),
    ({"d": 5, "init": "gaussian", "method": "lattice"}, "use 'integral'"),
    ({"d": 5, "init": "gaussian", "method": "enumerate"}, "discrete"),
    ({"d": 50, "init": "perturbed-rademacher:0.1", "method": "pairs"}, "use 'integral'"),
    ({"d": 5, "init": "sphere"}, "independent"),
    ({"d": 5, "bias": "nonsense"}, "unknown init"),
])
def test_what_cannot_be_is_refused_in_one_line(arguments, text):
    with pytest.raises(InvalidInput, match=text) as caught:
        pl.alignment(**{"init": "rademacher", **arguments})
    assert "\n" not in str(caught.value)


def test_degenerate_cases():
    assert pl.alignment("rademacher", 1).exact == Fraction(1, 4)
    assert pl.alignment("gaussian", 1).value == pytest.approx(0.25, rel=1e-12)
    assert pl.alignment("perturbed-rademacher:0", 7).exact == Fraction(25, 1024)
    assert pl.alignment("gaussian", 8).value == 0  # no ties, and sign(w.x) is odd
    assert pl.alignment("gaussian", 7, unit="relu").value == 0


def test_the_command(capsys):
    assert main(["theory", "alignment", "--init", "perturbed-rademacher:0.1", "--d", "201", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["value"] == pytest.approx(1.0158921312e-5, rel=1e-9)
    assert found["method"] == "integral"
    assert main(["theory", "alignment", "--d", "7", "--unit", "network", "--width", "2", "--scale", "0.5,0.25"]) == 0
    shown = capsys.readouterr().out
    assert "weights in S" in shown
    assert "method: lattice" in shown
    assert main(["theory", "alignment", "--d", "7", "--degree", "9"]) == 2
    assert "from 1 to d = 7" in capsys.readouterr().err
