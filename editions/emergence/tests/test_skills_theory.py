"""The solvable model of nam2024 and the quantization model of michaud2023: sums, integrals and simulation.

Statistical tests fix their seeds and say how often they would fail by chance.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from paritylab_emergence import skills
from scipy import integrate, optimize, special

from paritylab.errors import InvalidInput

EXPONENTS = (0.3, 0.6, 0.9, 1.5)


def tail(a: float, first: int) -> float:
    """The share of all skills from number ``first`` on, of infinitely many."""
    return float(special.zeta(a + 1, first) / special.zeta(a + 1))


# --- one skill ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("start", [1e-5, 0.01, 0.4])
def test_the_sigmoid_solves_its_equation(start):
    times = np.linspace(0, 25, 11)
    solved = integrate.solve_ivp(lambda _, r: r * (1 - r), (0, 25), [start], t_eval=times, rtol=1e-10, atol=1e-12).y[0]
    np.testing.assert_allclose(skills.sigmoid(times, start), solved, rtol=1e-6)
    np.testing.assert_allclose(skills.missing(times, start), (1 - solved) ** 2, rtol=1e-4, atol=1e-9)


def test_the_sigmoid_is_that_of_gradient_descent_on_two_factors():
    """R = a b with a = b, trained on P (S - a b x)^2 / 2 by small steps: dR/dt = 2 P R (S - R), with B = 1."""
    rate, frequency, target, factor = 1e-4, 0.3, 5.0, math.sqrt(0.02)
    for _ in range(20_000):
        factor += rate * frequency * factor * (target - factor**2)
    folds = 2 * rate * frequency * target * 20_000
    assert skills.sigmoid(folds, 0.02 / target) == pytest.approx(factor**2 / target, rel=1e-3)


@pytest.mark.parametrize("level", [0.05, 0.5, 0.95])
def test_a_skill_emerges_where_the_sigmoid_has_the_level(level):
    found = skills.emergence_time([0.5927, 0.0451], 0.02, 5.0, 1 / 22, 0.01**2 / 18, level)
    folds = 4 * 0.02 * 5 / 22 * np.array([0.5927, 0.0451]) * found
    np.testing.assert_allclose(skills.sigmoid(folds, 0.01**2 / 18), level)


def test_emergence_times_are_the_published_ones():
    """Half strength of five skills at a = 0.6, to the step (nam2024, Equation 14 with 1/B^2 = 22)."""
    times = skills.emergence_time(skills.frequencies(0.6, 5), 0.02, 5.0, 1 / 22, 0.01**2 / 18)
    assert times.round().tolist() == [1123, 3404, 6513, 10319, 14747]


def test_units_go_to_the_frequent_skills_first():
    for units in (0, 3, 4, 10, 19, 40):
        left, expected = units, []
        for _ in range(5):
            taken = min(4, left)
            left -= taken
            expected.append(taken / 4)
        assert skills.shared_units(units, 5).tolist() == expected


# --- losses -------------------------------------------------------------------------------------------------------


def test_the_loss_after_a_time_is_that_of_strengths_one_by_one():
    p = [k**-1.6 for k in range(1, 41)]
    total = sum(p)
    expected = 0.0
    for weight in p:
        start = 0.01 / 3
        strength = 1 / (1 + (1 / start - 1) * math.exp(-2 * 3 * weight / total * 7.0))
        expected += weight / total * (3 - 3 * strength) ** 2 / 2
    assert skills.loss_after(7.0, 0.6, 40, 0.01, 3.0) == pytest.approx(expected)


def test_the_loss_with_data_is_the_chance_that_a_skill_is_unseen():
    """Sampled 4,000 times, within 4.5 standard errors: a false alarm in 10^5."""
    p, generator = skills.frequencies(0.6, 50), np.random.default_rng(0)
    losses = p @ (generator.multinomial(30, p, 4000) == 0).T / 2
    assert skills.loss_with_data(30, 0.6, 50) == pytest.approx(losses.mean(), abs=4.5 * losses.std() / 4000**0.5)
    assert [skills.loss_with_data(d, 0.6, 1) for d in (0, 1)] == [0.5, 0.0]


def test_the_best_split_is_the_best_of_all():
    p = skills.frequencies(0.6, 300)
    losses = [12.5 * (p[:n] @ skills.missing(10 * p[:n] * 2000 / n, 0.002) + p[n:].sum()) for n in range(1, 251)]
    held, loss = skills.best_split(2000, 0.6, skills=300, most=250)
    assert (held, loss) == (int(np.argmin(losses)) + 1, pytest.approx(min(losses)))


# --- laws: infinitely many skills, summed directly with the tail of the zeta function -----------------------------


@pytest.mark.parametrize("a", EXPONENTS)
@pytest.mark.parametrize("target", [1.0, 5.0])
def test_the_law_of_time_is_the_limit_of_the_sum(a, target):
    k = np.arange(1, 10**6 + 1)
    p, start = k ** -(a + 1.0) / special.zeta(a + 1), 0.01 / target

    def loss(time):
        rest = tail(a, 10**6 + 1) * skills.missing(0.0, start)  # they have hardly begun
        return target**2 / 2 * float(p @ skills.missing(2 * target * p * time, start) + rest)

    law = skills.time_law(a, 0.01, target)
    assert law.exponent == a / (a + 1)
    assert abs(loss(3e4) / law(3e4) - 1) < 0.02
    assert abs(math.log(loss(3e3) / loss(3e4)) / math.log(10) - law.exponent) < 0.01


def test_the_prefactors_of_time_are_the_printed_ones():
    assert [round(2 * skills.time_law(a).prefactor, 2) for a in (0.3, 0.6, 0.9)] == [1.29, 1.20, 1.06]


@pytest.mark.parametrize("a", EXPONENTS)
def test_the_law_of_data_is_the_limit_of_the_sum(a):
    k = np.arange(1, 10**6 + 1)
    p = k ** -(a + 1.0) / special.zeta(a + 1)
    loss = (p @ np.exp(3e4 * np.log1p(-p)) + tail(a, 10**6 + 1)) / 2
    law = skills.data_law(a)
    assert abs(loss / law(3e4) - 1) < 0.02
    # the integral of which it is the closed form: x = k^-(a+1) D / zeta
    area = integrate.quad(lambda x: x ** (-1 / (a + 1)) * math.exp(-x), 0, np.inf, limit=500)[0]
    assert law.prefactor == pytest.approx(special.zeta(a + 1) ** (-1 / (a + 1)) * area / (2 * (a + 1)), rel=1e-6)


@pytest.mark.parametrize("a", EXPONENTS)
def test_the_law_of_skills_is_the_tail_of_the_sum(a):
    assert skills.skills_law(a)(1000) == pytest.approx(tail(a, 1001) / 2, rel=2e-3)
    assert skills.loss_with_skills(100, a, 10**6) == pytest.approx((tail(a, 101) - tail(a, 10**6 + 1)) / (
        1 - tail(a, 10**6 + 1)) / 2)


@pytest.mark.parametrize("a", EXPONENTS)
@pytest.mark.parametrize("target", [1.0, 5.0])
def test_the_law_of_compute_is_the_limit_of_the_best_split(a, target):
    k = np.arange(1, 10**5 + 1)
    p, compute = k ** -(a + 1.0) / special.zeta(a + 1), 1e7

    def loss(held):
        held = max(1, round(held))
        learned = p[:held] @ skills.missing(2 * target * p[:held] * compute / held, 0.01 / target)
        return target**2 / 2 * (learned + tail(a, held + 1))

    grid = np.unique(np.geomspace(1, 10**5, 300).round())  # a minimum is flat
    best = min(loss(held) for held in grid)
    law = skills.compute_law(a, 0.01, target)
    assert law.exponent == a / (a + 2)
    assert abs(best / law(compute) - 1) < 0.02


# --- the quantization model ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("a", [0.4, 0.8])
def test_exponents_are_slopes_of_the_threshold_model(a):
    """A skill is learned with 100 examples of its own, or held with 10 parameters; local slopes over a decade."""
    count, predicted = 10**6, skills.exponents(a)

    def slope(f, low, high):
        return math.log(f(high) / f(low)) / math.log(high / low)

    held = lambda parameters: float(skills.loss_of_learned(parameters // 10, a, count))  # noqa: E731
    seen = lambda d: float(skills.learned(d, a, 100, count))  # noqa: E731
    left = lambda d: float(skills.loss_of_learned(seen(d), a, count))  # noqa: E731
    missing = tail(a, count + 1)  # of finitely many skills, less than of all

    def whole(loss):
        return lambda resource: loss(resource) * (1 - missing) + missing

    assert slope(seen, 1e6, 1e7) == pytest.approx(predicted.learned, abs=0.02)
    assert -slope(whole(left), 1e6, 1e7) == pytest.approx(predicted.examples, abs=0.02)
    assert -slope(whole(held), 1e4, 1e5) == pytest.approx(predicted.parameters, abs=0.02)
    assert predicted.steps == predicted.examples


def test_counts_of_learned_skills_are_those_of_drawn_examples():
    """Threshold 50 of 10^5 drawn examples; the mean of 400 draws has a standard error below 0.2 skills.

    Skills near the threshold have it or not by chance, which moves the mean by less than one. A false alarm would be
    more than two standard errors beyond even that, and the seed is fixed.
    """
    p, generator = skills.frequencies(0.6, 500), np.random.default_rng(1)
    drawn = (generator.multinomial(10**5, p, 400) >= 50).sum(axis=1)
    predicted = int(skills.learned(10**5, 0.6, 50, 500))
    assert predicted == sum(10**5 * each >= 50 for each in p)
    assert drawn.std() / 400**0.5 < 0.2
    assert abs(drawn.mean() - predicted) < 1.5


def test_a_level_between_is_found_by_bisection():
    folds = optimize.brentq(lambda s: skills.sigmoid(s, 0.01) - 0.3, 0, 20)
    assert skills.emergence_time(1.0, 1.0, 1.0, 1.0, 0.01, level=0.3, factor=1) == pytest.approx(folds)


@pytest.mark.parametrize("call", [lambda: skills.frequencies(0, 5), lambda: skills.frequencies(0.5, 0),
                                  lambda: skills.sigmoid(1.0, 0.0), lambda: skills.missing(1.0, 2.0),
                                  lambda: skills.compute_law(-1), lambda: skills.exponents(0)])
def test_what_makes_no_sense_is_refused_in_a_line(call):
    with pytest.raises(InvalidInput) as caught:
        call()
    assert "\n" not in str(caught.value)
