"""The rate of the alignment and its expansion, against exact alignments at growing dimension."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from scipy.special import gammaln

import paritylab as pl
from paritylab.errors import InvalidInput
from paritylab.measures.fourier import majority_coefficient
from paritylab.setups import inits
from paritylab.theory.alignment_rate import alignment_rate
from paritylab.theory.perturbed_signs import least_alignment, least_rate, scaling

GAUSSIAN = {11: 3.22166665141904e-05, 21: 2.03789944389265e-08, 61: 9.4347418206861e-21, 201: 3.30259339367655e-63}
"""E_k (-1)^k asin(1 - 2k/d) / (2 pi) with 80 digits, by mpmath."""


def lattice(points: list[int], d: int, k: int | None = None) -> float:
    """E_w (E_x chi_T 1[w.x >= 0])^2 for integer weights, |T| = k odd: an exact trigonometric sum."""
    count = d * max(map(abs, points)) + 1
    t = 2 * np.pi * (np.arange(count) + 0.5) / count
    phases = np.outer(t, points)
    sine = np.sin(phases) @ np.sin(phases).T / len(points)
    cosine = np.cos(phases) @ np.cos(phases).T / len(points)
    odd = d if k is None else k
    return float(1 / np.tan(t / 2) @ (sine**odd * cosine ** (d - odd)) @ (1 / np.tan(t / 2))) / (4 * count**2)


def smooth(phi, d: int, step: float, end: float) -> float:
    """The double integral by the midpoint rule, for laws whose phi is negligible beyond ``end``."""
    s = (np.arange(int(end / step)) + 0.5) * step
    k = (phi(np.subtract.outer(s, s)) - phi(np.add.outer(s, s))) / 2
    return float((k**d / np.multiply.outer(s, s)).sum()) * step**2 / np.pi**2


def two_sizes(d: int, ratio: float) -> float:
    """The alignment of weights +-1, +-ratio by summing over how many have which size: exact for any real ratio."""
    def log_binomial(n, k):
        return gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)

    total = 0.0
    for small in range(1, d + 1):
        j = np.arange(d - small + 1)
        last = np.floor((small + ratio * (d - small - 2 * j)) / 2).astype(int)
        inside = (last >= 0) & (last < small)
        logs = log_binomial(d - small, j) + log_binomial(small - 1, np.clip(last, 0, small - 1)) - d * math.log(2)
        inner = np.where(inside, (-1.0) ** (j + last) * np.exp(logs), 0.0).sum()
        total += math.exp(log_binomial(d, small) - d * math.log(2)) * inner**2
    return total


def test_the_lattice_sum_is_right_where_the_alignment_is_known():
    assert lattice([-1, 1], 7) == pytest.approx(25 / 1024, rel=1e-12)
    assert lattice([-2, -1, 1, 2], 7) == pytest.approx(14275 / 2097152, rel=1e-12)
    assert two_sizes(21, 2.0) == pytest.approx(lattice([-2, -1, 1, 2], 21), rel=1e-3)  # ties aside
    assert lattice([-1, 1], 21, 9) == pytest.approx(majority_coefficient(21, 9) ** 2 / 4, rel=1e-10)


def test_the_rate_of_a_perturbed_sign():
    sigmas = [0.05, 0.1, 0.2, 0.5, 1, 2]
    rates = [alignment_rate(f"perturbed-rademacher:{s}").rate for s in sigmas]
    assert np.round(rates, 6).tolist() == [0.006134, 0.024131, 0.090412, 0.379543, 0.638217, 0.692747]
    for sigma, rate in zip(sigmas, rates, strict=True):
        assert least_rate(sigma) < rate < min(math.log(2), math.pi**2 * sigma**2 / 4)
    fourth = math.pi**2 / 4 + math.pi**4 / 32
    assert alignment_rate("perturbed-rademacher:0.01").rate == pytest.approx(
        math.pi**2 * 1e-4 / 4 - fourth * 1e-8, rel=1e-6
    )


@pytest.mark.parametrize(
    ("init", "floor", "saddle"),
    [
        ("discrete:-2,-1,1,2", -9 / 16, math.acos(-1 / 4)),
        ("discrete:-20,-10,10,20", -9 / 16, math.acos(-1 / 4) / 10),
        ("sparse-rademacher:0.3", -0.4, math.pi),
        ("uniform", -0.21723362821122166, 4.493409457909064),
        ("discrete:-3,-1,1,3", -1, math.pi),
        ("mirrored kaiming", 0, math.inf),
    ],
)
def test_the_infimum_of_known_laws(init, floor, saddle):
    found = pl.alignment_rate(init)
    assert found.floor == pytest.approx(floor, abs=1e-12)
    assert found.saddle == pytest.approx(saddle, rel=1e-6)
    assert found.error < 1e-12
    assert found.bounds[0] <= found.rate == found.bounds[1]
    assert found.rate == pytest.approx(-math.log((1 - floor) / 2), abs=1e-11)


@pytest.mark.parametrize("init", ["discrete:1,2,5", "discrete:-7,-2,3,4,11", "uniform-perturbed:0.3", "discrete:0.3,1"])
def test_no_value_of_phi_is_below_the_certified_infimum(init):
    found = alignment_rate(init)
    u = np.random.default_rng(0).uniform(0, 400, 10**6)
    assert found.law.even(u).min() >= found.floor - found.error


def test_the_rate_is_zero_exactly_for_odd_multiples():
    for law in ("sign", "discrete:-3,-1,1,3", "discrete:0.5,-1.5,2.5", "discrete:7,11"):
        assert alignment_rate(law).zero
    for law in ("discrete:1,2", "sparse-rademacher:0.01", "discrete:0.999,1.001,1", "perturbed-rademacher:1e-3"):
        assert not alignment_rate(law).zero
        assert alignment_rate(law).bounds[0] > 0


@pytest.mark.parametrize("points", [[-1, 1], [-3, -1, 1, 3], [-2, -1, 1, 2], [1, 2, 3], [0, 0, 0, 1, -1], [1, 2, 4]])
def test_both_terms_of_the_expansion_for_lattice_laws(points):
    init = "sparse-rademacher:0.6" if 0 in points else inits.discrete(*points)
    found = alignment_rate(init)
    assert found.correction is not None
    near, far = (found.expansion(d) / lattice(points, d) - 1 for d in (161, 321))
    assert abs(far) < 2e-4
    assert far / near == pytest.approx(1 / 4, abs=0.08)  # what is left is of order d^-2
    second = 321 * (lattice(points, 321) / found.leading(321) - 1)
    assert second == pytest.approx(found.correction, abs=5 / 321)


def test_closed_forms_of_the_coefficients():
    rademacher, triple = alignment_rate("rademacher"), alignment_rate("discrete:-3,-1,1,3")
    assert (rademacher.coefficient, rademacher.correction) == pytest.approx((1 / (2 * math.pi), 1 / 2))
    # odd multiples: 1 / (2 pi E w^2) and E w^4 / (2 (E w^2)^2) - 1 + 1 / E w^2
    assert (triple.coefficient, triple.correction) == pytest.approx((1 / (10 * math.pi), 41 / 50 - 1 + 1 / 5))
    sparse = alignment_rate("sparse-rademacher:0.25")
    for d in (5, 9):
        exact = Fraction(3, 4) ** d * Fraction(math.comb(d - 1, (d - 1) // 2), 2**d) ** 2
        assert sparse.expansion(d) == pytest.approx(float(exact), rel=0.2 / d**2)


@pytest.mark.parametrize("sigma", [0.2, 0.5])
@pytest.mark.parametrize("noise", ["normal", "uniform"])
def test_both_terms_of_the_expansion_for_perturbed_signs(sigma, noise):
    found = alignment_rate(f"perturbed-rademacher:{sigma}" if noise == "normal" else f"uniform-perturbed:{sigma}")
    end = 9 / sigma if noise == "normal" else 30
    assert found.correction is not None
    near, far = (smooth(found.law.even, d, 0.05, end) for d in (161, 321))
    assert 321 * (far / found.leading(321) - 1) == pytest.approx(found.correction, abs=0.01)
    ratio = (far / found.expansion(321) - 1) / (near / found.expansion(161) - 1)
    assert ratio == pytest.approx(1 / 4, abs=0.05)


@pytest.mark.parametrize("d", GAUSSIAN)
def test_the_reduced_integral_of_the_gaussian(d):
    assert alignment_rate("gaussian").reduced(d) == pytest.approx(GAUSSIAN[d], rel=0.02 / d**2)


@pytest.mark.parametrize(
    ("d", "sigma", "exact"),
    [(11, 0.5, 4.52327675e-4), (11, 1, 4.77250020e-5), (11, 2, 3.31135027e-5), (21, 0.2, 1.93569095e-3),
     (21, 0.5, 5.07362406e-6), (21, 1, 4.10436509e-8), (21, 2, 2.11505371e-8)],
)
def test_the_reduced_integral_is_uniform_in_sigma(d, sigma, exact):
    assert alignment_rate(f"perturbed-rademacher:{sigma}").reduced(d) == pytest.approx(exact, rel=5e-4)


@pytest.mark.parametrize("init", ["gaussian", "uniform", "perturbed-rademacher:0.3", "discrete:-2,-1,1,2", "sign"])
def test_the_reduced_integral_against_the_exact_alignment(init):
    assert alignment_rate(init).reduced(301) == pytest.approx(pl.alignment(init, 301).value, rel=0.2 / 301**2)


@pytest.mark.parametrize("lam", [0.3, 0.8, 1.3])
@pytest.mark.parametrize("noise", ["perturbed-rademacher", "uniform-perturbed"])
def test_the_scaling_law(lam, noise):
    gaps = []
    for d in (51, 101, 201):
        law = alignment_rate(f"{noise}:{lam / math.sqrt(d)}").law
        exact = smooth(law.even, d, 0.05, 30)
        gaps.append(d * (2 * math.pi * d * exact / float(scaling(lam)) - 1))
    assert max(map(abs, gaps)) < 20  # the error is of order 1/d ...
    assert gaps[2] == pytest.approx(gaps[1], rel=0.1, abs=0.05)  # ... with one constant


def test_the_two_series_of_the_scaling_function_agree():
    lam = np.array([0.7 - 1e-9, 0.7 + 1e-9])
    early, late = np.sqrt(scaling(lam))
    assert early == pytest.approx(late, abs=1e-8)
    draws = np.random.default_rng(1).standard_normal(10**6)
    mean = np.sign(np.cos(math.pi * 0.9 * draws / 2)).mean()
    assert mean == pytest.approx(math.sqrt(scaling(0.9)), abs=5e-3)  # 5 standard errors
    assert float(scaling(3.0)) == pytest.approx(16 / math.pi**2 * math.exp(-9 * math.pi**2 / 4), rel=1e-12)


@pytest.mark.slow
@pytest.mark.long
def test_the_proved_bounds_hold_and_are_not_far_off():
    for points in ([-1, 1], [-3, -1, 1, 3], [-2, -1, 1, 2], [1, 2, 3]):
        found = alignment_rate(inits.discrete(*points))
        for d in (3, 7, 21, 81):
            assert lattice(points, d) <= found.bound(d) <= 300 * d * lattice(points, d)
    for d, exact in GAUSSIAN.items():
        assert exact <= alignment_rate("gaussian").bound(d) <= 400 * exact
    for sigma in (0.05, 0.2, 0.5):
        found = alignment_rate(f"perturbed-rademacher:{sigma}")
        for d in (5, 21, 101):
            exact = smooth(found.law.even, d, 0.05, 9 / sigma)
            assert least_alignment(sigma, d) <= exact <= found.bound(d)
    for noise in ("uniform", "uniform-perturbed:0.5"):
        found = alignment_rate(noise)
        assert found.reduced(61) <= found.bound(61) <= 1e3 * found.reduced(61)


def test_incommensurable_weights_have_no_rate_but_less_alignment_than_one_over_d():
    found = alignment_rate(f"discrete:{-math.sqrt(2)},-1,1,{math.sqrt(2)}")
    assert found.kind == "incommensurable"
    assert found.bounds[0] == 0 < found.bounds[1] < 1e-3
    assert not found.zero
    scaled = [d**2 * two_sizes(d, math.sqrt(2)) for d in (11, 21, 41, 81, 161, 321, 641)]
    assert 0.3 < min(scaled) < max(scaled) < 2  # order d^-2 over 1.8 decades
    with pytest.raises(InvalidInput, match="no expansion"):
        found.leading(11)


def test_the_rate_at_other_degrees_is_the_entropy_until_the_law_matters():
    rademacher, four = alignment_rate("rademacher"), alignment_rate("discrete:-2,-1,1,2")
    for d, k in ((401, 81), (401, 301), (401, 401)):
        exact = -2 * math.log(abs(majority_coefficient(d, k)) / 2) / d
        assert exact == pytest.approx(rademacher.at_degree(k / d), abs=5 * math.log(d) / d)
    for d, k in ((41, 21), (41, 31), (41, 37), (41, 41)):
        slope = -math.log(lattice([-2, -1, 1, 2], 3 * d, 3 * k) / lattice([-2, -1, 1, 2], d, k)) / (2 * d)
        assert slope == pytest.approx(four.at_degree(k / d), abs=0.03)
    assert four.at_degree(1) == four.rate


def test_a_users_law_is_searched_but_not_certified():
    law = inits.custom(lambda key, shape: None, lambda t: np.cos(t) * np.exp(-np.square(0.5 * t) / 2))
    found = alignment_rate(law)
    assert found.kind == "unknown"
    assert found.rate == pytest.approx(alignment_rate("perturbed-rademacher:0.5").rate, abs=1e-10)
    assert found.bounds[0] == 0


def test_errors_are_one_line():
    with pytest.raises(InvalidInput, match="odd d"):
        alignment_rate("rademacher").leading(10)
    with pytest.raises(InvalidInput):
        alignment_rate("sphere")
    with pytest.raises(InvalidInput, match="see reduced"):
        alignment_rate("gaussian").expansion(11)


def test_the_table_of_the_theory_page():
    page = Path(__file__).parents[1] / "docs" / "explanation" / "theory" / "alignment.md"
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in page.read_text().splitlines() if "| `" in line]
    table = [row for row in rows if not row[1].isdigit()]
    assert len(table) == 15
    for law, *shown in table:
        found = alignment_rate(law.strip("`"))
        values = found.floor, found.saddle, math.exp(-found.rate), found.rate, found.coefficient, found.correction
        for text, value in zip(shown, values, strict=True):
            assert text == "none" if value is None else float(text) == pytest.approx(value, rel=2e-4, abs=5.1e-5)
    for law, d, exact, leading, terms, reduced, _ in (row for row in rows if row[1].isdigit()):
        found = alignment_rate(law.strip("`"))
        for text, method in ((leading, found.leading), (terms, found.expansion), (reduced, found.reduced)):
            if text:
                assert method(int(d)) / float(exact) == pytest.approx(float(text), abs=3e-5)
