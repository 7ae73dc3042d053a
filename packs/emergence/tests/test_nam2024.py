"""nam2024: the solvable model against brute force, and the rules against data whose verdict is known."""

import numpy as np
import pytest
from paritylab_emergence.nam2024 import model
from scipy import optimize


def test_the_sigmoid_solves_its_equation_of_motion():
    """dR/dt = 2 eta P B^2 R (S - R) for half the squared error, with eta = P = B = 1."""
    steps, target, start = 200_000, 1.0, 0.01
    strength, h = start, 10 / steps
    for _ in range(steps):
        strength += h * 2 * strength * (target - strength)
    assert model.sigmoid(2 * target * 10, start) == pytest.approx(strength, rel=1e-4)
    assert model.missing(3.0, start) == pytest.approx((1 - model.sigmoid(3.0, start)) ** 2)


@pytest.mark.parametrize("a", [0.6, 0.9])
def test_laws_are_the_sums_limits(a):
    """With many skills the ratio of loss and law goes to 1 along each resource."""
    def off(end):
        ratios = [model.loss_after(end, a, 10**6) / (model.time_prefactor(a) * end ** (-a / (a + 1))),
                  model.loss_with_data(end, a, 10**6) / (model.data_prefactor(a) * end ** (-a / (a + 1))),
                  model.loss_with_skills(round(end**0.5), a, 10**6) / (model.skills_prefactor(a) * end ** (-a / 2))]
        return np.abs(np.array(ratios) - 1)

    assert off(1e4).max() < 0.02


def test_data_loss_is_the_chance_that_a_skill_is_unseen():
    """Sampled 4,000 times: false alarm once in 10^5."""
    p, generator = model.frequencies(0.6, 50), np.random.default_rng(0)
    losses = p @ (generator.multinomial(30, p, 4000) == 0).T / 2
    assert model.loss_with_data(30, 0.6, 50) == pytest.approx(losses.mean(), abs=4.5 * losses.std() / 4000**0.5)


def test_the_best_split_is_the_best_of_all():
    p = model.frequencies(0.6, 300)
    losses = [12.5 * (p[:n] @ model.missing(10 * p[:n] * 2000 / n, 0.002) + p[n:].sum()) for n in range(1, 251)]
    held, loss = model.best_split(2000, 0.6, skills=300, most=250)
    assert (held, loss) == (int(np.argmin(losses)) + 1, pytest.approx(min(losses)))


def test_half_time_is_where_the_sigmoid_is_a_half():
    rate, target, square, start, frequency = 0.02, 5.0, 1 / 22, 0.01**2 / 18, 0.1955
    found = optimize.brentq(lambda t: model.sigmoid(4 * rate * target * square * frequency * t, start) - 0.5, 1, 1e5)
    assert model.half_time(frequency, rate, target, square, start) == pytest.approx(found)
