"""The disjoint-PolyNet: exact errors, gradient flow and adaptive SGD against brute force and simulation.

Statistical tests have fixed seeds; a correct function would fail one with probability at most ``FALSE_ALARM``.
"""

from __future__ import annotations

import itertools
import json
import math

import numpy as np
import pytest
from barak2022.theory.adaptive_sgd import base_rate, horizon, train
from barak2022.theory.disjoint import SignSum, error, error_bounds, normal_error, sampled_error
from barak2022.theory.flow import (
    blow_up_bounds,
    descent_times,
    error_rise,
    ones_path,
    ones_time,
    plateau,
    rise_time,
    runge_kutta,
)
from commands import run
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from paritylab.errors import InvalidInput

FALSE_ALARM = 1e-6


def brute_error(weights):
    """One input at a time, in whole numbers where weights are whole."""
    k, block = weights.shape
    wrong = 0
    for x in itertools.product((-1, 1), repeat=k * block):
        inputs = np.array(x).reshape(k, block)
        output = math.prod((weights * inputs).sum(1))
        wrong += not output * math.prod(inputs[:, 0]) > 1e-12
    return wrong / 2 ** (k * block)


# --- errors -----------------------------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(k=st.integers(1, 3), block=st.integers(2, 4), seed=st.integers(0, 10**6), whole=st.booleans())
def test_small_nets_agree_with_trying_every_input(k, block, seed, whole):
    generator = np.random.default_rng(seed)
    weights = generator.integers(-2, 3, (k, block)) if whole else generator.standard_normal((k, block))
    assert float(error(weights)) == pytest.approx(brute_error(weights), abs=1e-12)


def test_sign_sums_are_binomial_at_any_size():
    law = SignSum(0.37 * np.random.default_rng(0).choice([-1, 1], 1000))
    for s in (0, 2, 30, 100, 1000):
        within = stats.binom.cdf(500 + s / 2, 1000, 0.5) - stats.binom.cdf(500 - s / 2 - 1, 1000, 0.5)
        assert law.within(0.37 * s) == pytest.approx(within, abs=1e-12)
        mass = stats.binom.pmf(500 + s / 2, 1000, 0.5) * (1 if s == 0 else 2)
        assert law.within(0.37 * s) - law.within(0.37 * s, closed=False) == pytest.approx(mass, abs=1e-12)


@pytest.mark.parametrize(("size", "margin"), [(21, 1e-4), (24, 1e-4), (50, 1e-8)])
def test_the_series_agrees_with_counting(size, margin):
    from paritylab.measures.coefficients import sums

    u = np.random.default_rng(size).standard_normal(size)
    law = SignSum(u)
    assert law.atoms is None
    if size <= 24:
        every = np.abs(sums(u[1:]) + u[0])
        for r in (0.1, 1.0, 4.0, 9.0):
            assert law.within(r) == pytest.approx((every <= r).mean(), abs=margin)
    else:  # two halves of a convolution
        left, right = (np.sort(sums(half)) for half in (u[:18], u[18:36]))
        shorter = SignSum(u[:36])
        for r in (0.5, 3.0, 10.0):
            count = (np.searchsorted(right, r - left, "right") - np.searchsorted(right, -r - left, "left")).sum()
            assert shorter.within(r) == pytest.approx(count / 2**36, abs=1e-6)
    assert law.within(law.largest) == 1
    values = [law.within(r) for r in np.linspace(0, law.largest, 200)]
    assert min(np.diff(values)) > -2 * margin


def test_large_nets_agree_with_samples():
    generator = np.random.default_rng(1)
    weights = generator.standard_normal((3, 40))
    weights[:, 0] = 6.0, -8.0, 7.0
    samples = 100_000
    exact, sampled = float(error(weights)), sampled_error(weights, samples, 2)
    assert abs(sampled - exact) < stats.norm.isf(FALSE_ALARM / 2) * math.sqrt(exact * (1 - exact) / samples)
    assert exact > 0.5
    assert float(normal_error(weights)) == pytest.approx(exact, abs=0.03)


def test_the_corrected_bounds_hold_and_the_printed_ones_do_not():
    generator = np.random.default_rng(3)
    for k, block in itertools.product((3, 4), (10, 50, 200)):
        for signs, ratio in itertools.product((True, False), (0.5, 1, 2, 3, 4)):
            u = generator.choice([-1.0, 1.0], (k, block)) if signs else generator.standard_normal((k, block))
            u[:, 0] = ratio * np.linalg.norm(u[:, 1:], axis=1)
            low, high = error_bounds(u)
            assert low - 1e-7 <= error(u) <= high + 1e-7
    weights = np.ones((3, 50))
    weights[:, 0] = 21.3
    assert float(error(weights)) == pytest.approx(2.1e-3, abs=5e-5)
    assert error_bounds(weights, printed=True)[1] < error(weights) < error_bounds(weights)[1]


# --- gradient flow ----------------------------------------------------------------------------------------------


@settings(max_examples=25, deadline=None)
@given(k=st.integers(3, 6), seed=st.integers(0, 10**6), far=st.sampled_from([1.5, 3.0, 10.0]))
def test_times_agree_with_runge_kutta_and_lemma_5(k, seed, far):
    generator = np.random.default_rng(seed)
    v = generator.uniform(0.2, 2, k) * generator.choice([-1, 1], k)
    v[0] *= np.sign(v.prod())
    b = far * np.abs(v).max()
    i = int(generator.integers(k))
    time, end = rise_time(v, b**2 - v[i] ** 2), rise_time(v, math.inf)
    low, rest = blow_up_bounds(v, i, b)
    assert low <= time * (1 + 1e-12)
    assert end - time <= rest * (1 + 1e-9)
    reached = runge_kutta(v, 0.5 * time, 400)
    assert rise_time(v, float(reached[i] ** 2 - v[i] ** 2)) == pytest.approx(0.5 * time, rel=1e-6)
    np.testing.assert_allclose(reached**2 - v**2, reached[0] ** 2 - v[0] ** 2, rtol=1e-6)


@pytest.mark.parametrize("k", [3, 4, 5, 8])
def test_equal_starts_have_the_closed_form_and_turn_the_bounds_into_equalities(k):
    for start, b in itertools.product((1.0, 0.01, 3.0), (1.0001, 2.0, 50.0)):
        v = np.full(k, start)
        time = rise_time(v, (start * b) ** 2 - start**2)
        assert time == pytest.approx(start ** (2 - k) * ones_time(k, b), rel=1e-11)
        low, rest = blow_up_bounds(v, 0, start * b)
        assert low == pytest.approx(time, rel=1e-9)
        end = rise_time(v, math.inf)
        assert rest == pytest.approx(end - time, abs=1e-12 * end)
    assert float(ones_path(k, ones_time(k, 7.0))) == pytest.approx(7.0, rel=1e-9)


def test_two_blocks_grow_exponentially():
    assert rise_time([1.0, 1.0], math.exp(4) - 1) == pytest.approx(2.0, rel=1e-12)
    assert ones_time(2, float(ones_path(2, 1.3))) == pytest.approx(1.3)
    with pytest.raises(InvalidInput, match="never blows up"):
        rise_time([1.0, 1.0], math.inf)


def test_very_unequal_starts():
    # dv_1/dt ~ v_2 v_3 with v_2, v_3 ~ 1: the small weight catches up in about one unit of time.
    v = np.array([1e-9, 1.0, 1.0])
    time = rise_time(v, 1e-6)
    assert time == pytest.approx(math.atan(1e-3), rel=1e-5)  # d tan/dt with v_2 = v_3 = sqrt(1 + v_1^2)
    assert rise_time(v, math.inf) == pytest.approx(math.pi / 2, rel=1e-8)


@pytest.mark.parametrize("k", [3, 4, 5])
def test_theorem_7_and_its_rate(k):
    sizes, left = [21, 51, 101, 201, 401, 1001, 2001], []
    for block in sizes:
        found = plateau(np.ones((k, block)))
        # By hand: the first sum s such that once v > s the error is below .49.
        sums = np.arange(0, block, 2)
        overruled = stats.binom.sf((block - 1 + sums) / 2, block - 1, 0.5)
        reach = sums[np.argmax(0.5 - 0.5 * (1 - 2 * overruled) ** k < 0.49)]
        assert found.level_time == pytest.approx(ones_time(k, reach), rel=1e-9)
        assert found.zero_time == pytest.approx(ones_time(k, block - 1), rel=1e-9)
        left.append(1 - found.fraction)
    assert np.polyfit(np.log(sizes), np.log(left), 1)[0] == pytest.approx(1 - k / 2, abs=0.2)


def test_the_error_is_at_its_level_when_the_flow_says_so():
    generator = np.random.default_rng(4)
    for block in (8, 60):
        weights = np.abs(generator.standard_normal((3, block)))
        blocks = [SignSum(row[1:]) for row in weights]
        rise = error_rise(weights[:, 0], blocks, 0.3)
        for factor, below in ((1 - 1e-6, False), (1 + 1e-6, True)):
            moved = weights.copy()
            moved[:, 0] = np.sqrt(weights[:, 0] ** 2 + factor * rise)
            assert bool(error(moved) < 0.3) == below


def test_descent_with_small_steps_follows_the_flow():
    weights = np.random.default_rng(5).standard_normal((4, 3, 12))
    weights[:, 0, 0] *= np.sign(weights[:, :, 0].prod(1))
    steps = descent_times(weights, 1e-3, [0.45, 1e-3], chunk=1000)
    for net, found in zip(weights, steps, strict=True):
        blocks = [SignSum(row[1:]) for row in net]
        times = [rise_time(net[:, 0], error_rise(net[:, 0], blocks, level)) for level in (0.45, 1e-3)]
        np.testing.assert_allclose(found, np.array(times) / 1e-3, rtol=0.05, atol=3)
    assert np.all(np.isinf(descent_times(weights, 1e-3, [1e-3], most_steps=10)))


def test_the_flow_refuses_starts_it_does_not_cover():
    with pytest.raises(InvalidInput, match="positive product"):
        plateau(np.array([[1, 1], [-1, 1], [1, 1]]))


# --- adaptive SGD -----------------------------------------------------------------------------------------------


def test_the_horizon_is_the_fixed_point():
    for block, k in ((2, 2), (5, 2), (3, 3)):
        steps = horizon(block, k)
        scale = 6 * math.log(2 * k / 0.05) * (3 * block - 2) ** (2 * k - 1)
        assert steps == pytest.approx(scale * math.log(2 * k * block * steps / 0.1), abs=1.5)


@pytest.mark.parametrize(("block", "k", "batch"), [(3, 2, 1), (2, 3, 3)])
def test_compiled_steps_are_those_of_the_definition(block, k, batch):
    import jax

    nets, steps, seed = 4, 30, 7
    trained = train(block, k, nets, batch, steps=steps, seed=seed)
    rate = base_rate(block, k, steps)
    key = jax.random.fold_in(jax.random.key(seed), 0)
    words = np.asarray(jax.random.bits(key, (4096, batch, nets), np.uint32))
    w, largest = trained.initial.copy(), np.ones(nets)
    for t in range(steps):
        for net in range(nets):
            move = np.zeros((k, block))
            norms = np.abs(w[net]).sum(1)
            for word in words[t, :, net]:
                x = 1.0 - 2.0 * ((word >> np.arange(k * block, dtype=np.uint32)) & 1).reshape(k, block)
                sums, label = (w[net] * x).sum(1), x[:, 0].prod()
                for i in range(k):
                    gradient = -label * np.delete(sums, i).prod() * x[i]
                    move[i] -= rate / np.delete(norms, i).prod() * gradient / batch
            w[net] += move
            largest[net] = max(largest[net], np.abs(w[net][:, 1:]).max())
    np.testing.assert_allclose(trained.weights, w, rtol=1e-12)
    np.testing.assert_allclose(trained.largest_irrelevant, largest, rtol=1e-12)
    np.testing.assert_allclose(trained.error, error(w), atol=1e-12)


def test_theorem_13_at_its_smallest():
    trained = train(2, 2, nets=40)
    good = trained.promising
    assert 5 < good.sum() < 35
    assert np.all(trained.error[good] <= 0.05)
    assert np.all(trained.largest_irrelevant <= 1.5)


# --- the command ------------------------------------------------------------------------------------------------


def test_the_command_reports_times_and_their_ratio(capsys, tmp_path):
    status, out, err = run(capsys, "barak2022", "flow", "--k", "3", "--block", "101", "--json", "--out", str(tmp_path))
    document = json.loads(out)
    assert (status, err, document["starts"]) == (0, "", 1)
    assert document["fraction"]["median"] == pytest.approx(plateau(np.ones((3, 101))).fraction)
    assert document["fraction"]["interval"] is None
    status, out, _ = run(capsys, "barak2022", "flow", "--init", "gaussian", "--block", "50", "--draws", "20", "--out",
                         str(tmp_path))
    assert status == 0
    assert "T(0.49): " in out
    assert "(median)" in out
    assert np.loadtxt(tmp_path / "flow-times.csv", delimiter=",", skiprows=1).shape == (20, 3)


@pytest.mark.parametrize("wrong", ["--k 1", "--block 1", "--gamma 0.5", "--init onse", "--draws 0"])
def test_the_command_refuses_in_one_line(capsys, tmp_path, wrong):
    status, out, err = run(capsys, "barak2022", "flow", *wrong.split(), "--out", str(tmp_path))
    assert (status, out, err.count("\n")) == (2, "", 1)
