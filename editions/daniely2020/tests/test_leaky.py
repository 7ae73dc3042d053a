"""Leaky parities: the problem, the exact first step, what its units express, and the second phase."""

from __future__ import annotations

import itertools
import json
import math

import jax
import numpy as np
import pytest
from daniely2020.theory import leaky
from daniely2020.theory.leaky import Leaky
from daniely2020.theory.leaky import binomials as leaky_binomials
from daniely2020.theory.leaky import features as leaky_features
from daniely2020.theory.leaky import flow as leaky_flow
from daniely2020.theory.leaky import theorem as leaky_theorem
from daniely2020.theory.leaky.network import LeakyNet, pattern_errors
from scipy import optimize

import paritylab as pl
from paritylab import engines
from paritylab.cli import main
from paritylab.errors import InvalidInput
from paritylab.measures.fourier import cube


def law_of_inputs(n, k, leak):
    s = cube(n)
    return s, (1 - leak) / 2**n + leak * (np.abs(s[:, :k].sum(1)) == k) / 2 ** (n - k + 1)


# --- the problem ------------------------------------------------------------------------------------------------


def test_inputs_have_the_law_of_the_paper():
    """Every pattern of 3 signs on the support and 2 beside it, over 2^18 inputs; fails by chance in 1 of 10^4 seeds."""
    from scipy import stats

    problem = pl.LeakyParity(40, support=[3, 17, 39], leak=0.3)
    drawn = problem.draw(jax.random.key(5), 2**18)
    x = np.asarray(problem.signs(drawn, problem.mask))
    assert np.array_equal(np.asarray(problem.labels(drawn, problem.mask)), x[:, [3, 17, 39]].prod(1))
    patterns, law = law_of_inputs(5, 3, 0.3)
    counts = np.bincount(((x[:, [3, 17, 39, 0, 38]] < 0) @ (1 << np.arange(5))).astype(int), minlength=32)
    assert stats.chisquare(counts, len(x) * law).pvalue > 1e-4
    assert len(patterns) == 32


def test_blocks_are_consecutive_rows_and_a_leak_of_zero_is_uniform():
    problem = pl.LeakyParity(70, 3)
    key = jax.random.key(1)
    rows = problem.draw(key, 96)
    assert np.array_equal(np.concatenate([problem.draw_block(key, i, 32) for i in range(3)]), rows)
    none = pl.LeakyParity(70, 3, leak=0.0)
    assert np.array_equal(none.signs(rows, none.mask), pl.Parity(70, 3).signs(rows[:, :-1], none.mask))
    always = pl.LeakyParity(70, 3, leak=1.0)
    assert np.all(np.abs(np.asarray(always.signs(rows, always.mask))[:, :3].sum(1)) == 3)


def test_a_leaky_parity_is_part_of_a_setup_like_any_other():
    setup = pl.Setup(pl.LeakyParity(20, 3, leak=0.25, sample=50), pl.Learner(pl.MLP(4)))
    assert pl.Setup.from_json(setup.to_json()) == setup
    assert setup.id != pl.Setup(pl.LeakyParity(20, 3, sample=50), pl.Learner(pl.MLP(4))).id
    assert setup.problem != pl.Parity(20, 3, sample=50)
    assert engines.choose(setup) == "lanes"
    for wrong in ({"leak": 1.5}, {"inputs": lambda key, count, n: None}):
        with pytest.raises(InvalidInput):
            pl.LeakyParity(20, 3, **wrong)


@pytest.mark.long
def test_an_engine_learns_a_leaky_parity(tmp_path):
    result = pl.measure(pl.LeakyParity(10, 3), pl.Learner(pl.MLP(20), optimiser=pl.SGD(0.3)),
                        pl.Protocol(eval_size=512), runs=4, store=pl.Store(tmp_path))
    assert result.summary.solved == 4


# --- sums of signs ----------------------------------------------------------------------------------------------


def test_sums_of_signs_against_enumeration():
    rng = np.random.default_rng(0)
    for _ in range(200):
        n = int(rng.integers(2, 10))
        r = int(rng.integers(2, n + 1))
        low = rng.uniform(-n - 1, n)
        high = low + rng.choice([rng.uniform(0, 1), rng.uniform(0, 2 * n), 40])
        s = cube(n)
        total, chi = s.sum(1), s[:, :r].prod(1)
        inside, ramp = (total > low) & (total < high), np.clip(total - low, 0, high - low)
        want = [(chi * inside).mean(), inside.mean(), (chi * ramp).mean(), ramp.mean()]
        found = [leaky_binomials.slab_coefficient(n, r, low, high), leaky_binomials.slab_probability(n, low, high),
                 leaky_binomials.ramp_coefficient(n, r, low, high), leaky_binomials.ramp_mean(n, low, high)]
        np.testing.assert_allclose(found, want, atol=1e-14)


def test_tiny_coefficients_have_all_their_digits():
    """Against integers: the sum over c of (-1)^i C(7, i) C(m, c - i), which cancels to 10^-10 of its terms."""
    m, r, low = 10_000, 7, -12.5
    first, last = leaky_binomials.slab(m + r, low, 10**6)
    exact = sum((-1) ** i * math.comb(r - 1, i) * math.comb(m, int(last) - i) for i in range(r))
    assert first == 0
    found = float(leaky_binomials.slab_coefficient(m + r, r, low, math.inf))
    assert found == pytest.approx(float(exact / 2 ** (m + r)) if exact < 2**1000 else exact / 2 ** (m + r), rel=1e-11)


# --- the first step ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "k", "leak", "upper"), [(9, 3, 0.5, 6.0), (10, 5, 0.3, 6.0), (11, 7, 0.5, 6.0),
                                                       (9, 3, 0.5, 1.2), (9, 3, 0.0, 6.0), (10, 3, 0.5, math.inf)])
def test_first_step_against_enumeration(n, k, leak, upper):
    sizes = Leaky(n, k, leak, upper)
    s, law = law_of_inputs(n, k, leak)
    layer = leaky.start(sizes, 40, np.random.default_rng(n))
    f, z = s[:, :k].prod(1), s @ layer.w.T / math.sqrt(n) + layer.b
    pull = ((z > 0) & (z < upper)) * (f * law)[:, None]
    step = leaky.first_step(sizes, layer)
    np.testing.assert_allclose(step.w, layer.u[:, None] * (pull.T @ s) / math.sqrt(n), atol=1e-14)
    np.testing.assert_allclose(step.b, layer.b + layer.u * pull.sum(0), atol=1e-14)
    np.testing.assert_allclose(step.u, (f * law) @ np.clip(z, 0, upper), atol=1e-14)


@pytest.mark.long
def test_first_step_against_a_sample():
    """Means over 2 * 10^5 inputs at n = 201; the largest of about 2000 z-scores exceeds 5.5 in 1 of 10^4 seeds."""
    sizes, rng = Leaky(201, 5), np.random.default_rng(3)
    layer = leaky.start(sizes, 5, rng)
    s, y, _ = leaky.draw_inputs(sizes, 200_000, rng)
    exact, sampled = leaky.first_step(sizes, layer), leaky.sampled_step(layer, s, y)
    error = np.abs(layer.u[:, None]) / math.sqrt(sizes.n * len(s))
    assert np.all(np.abs(sampled.w - exact.w) < 5.5 * error)
    assert np.all(np.abs(sampled.b - exact.b) < 5.5 * np.abs(layer.u) / math.sqrt(len(s)))
    assert np.all(np.abs(sampled.u - exact.u) < 5.5 * leaky.UPPER / math.sqrt(len(s)))


def test_good_units_in_the_theorem_regime():
    sizes = Leaky(7**10, 7)
    units, u = leaky.draw_units(sizes, 4000, np.random.default_rng(0))
    good = leaky.good(sizes, units)
    assert abs(good.mean() - leaky.balanced_share(7)) < 5 * math.sqrt(0.18 * 0.82 / 4000)
    gradient = leaky.first_gradient(sizes, units)
    assert all(np.all(part[good] == 0) for part in (gradient.bias, gradient.off, gradient.output))
    assert np.all((gradient.relevant[good] > 0.2543) & (gradient.relevant[good] < 0.2544))
    layer = leaky_flow.reduced(sizes, units, u)
    np.testing.assert_allclose(layer.slope[:4000][good], gradient.relevant[good] * u[good] / sizes.n)
    assert layer.noise.max() < 1e-6


@pytest.mark.long
def test_the_network_of_the_engines_starts_after_the_exact_step():
    sizes, key = Leaky(31, 3, 0.4), jax.random.key(1)
    params = LeakyNet(20, 3, leak=0.4).init(key, 31, None)
    start = LeakyNet(20, 3, stepped=False).init(key, 31, None)
    u = sizes.reach * np.asarray(jax.random.uniform(jax.random.split(key)[1], (20,), minval=-1, maxval=1), float)
    layer = leaky.Layer(np.asarray(start["hidden"]["w"], float).T, np.full(40, sizes.bias), np.concatenate([u, -u]))
    step = leaky.first_step(sizes, layer)
    np.testing.assert_allclose(params["hidden"]["w"], step.w.T, atol=1e-6)
    np.testing.assert_allclose(params["hidden"]["b"], step.b, atol=1e-6)
    np.testing.assert_allclose(params["output"], step.u, atol=1e-6)
    s, law = law_of_inputs(9, 3, 0.4)
    small = LeakyNet(5, 3, leak=0.4).init(key, 9, None)
    wrong = ~(np.asarray(LeakyNet(5, 3).apply(small, s)) * s[:, :3].prod(1) > 0)
    error, _ = pattern_errors(small, Leaky(9, 3, 0.4), np.random.default_rng(0), completions=20_000)
    assert error == pytest.approx(float(law @ wrong), abs=0.01)


# --- features ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [3, 5, 7, 9, 11])
def test_corrected_weights_make_the_parity_and_printed_ones_do_not(k):
    labels = Leaky(k + 1, k).labels
    assert np.array_equal(leaky_features.bump_sum(k, leaky_features.bump_coefficients(k)), labels)
    assert np.abs(leaky_features.bump_sum(k, leaky_features.bump_coefficients(k, printed=True)) - labels).max() > 1


def test_the_chance_of_a_bump_against_a_grid():
    sizes = Leaky(1001, 5)
    u = np.linspace(-sizes.reach, sizes.reach, 200_001)
    for r, eps in itertools.product((-5, -1, 3), (0.1, 0.5)):
        near = leaky_features.bump_distance(sizes, r, np.full(len(u), 0.26), u) <= eps
        assert leaky_features.bump_chance(sizes, r, np.array([0.26]), eps)[0] == pytest.approx(near.mean(), abs=2e-5)


def test_the_smallest_separator_against_a_solver():
    rng = np.random.default_rng(0)
    features, y = rng.normal(size=(60, 80)), np.sign(rng.normal(size=60))
    best = optimize.minimize(lambda u: u @ u / 2, np.zeros(80), jac=lambda u: u, method="SLSQP",
                             constraints={"type": "ineq", "fun": lambda u: y * (features @ u) - 1})
    assert leaky_features.smallest_separator(features, y) == pytest.approx(math.sqrt(2 * best.fun), rel=0.011)
    assert leaky_features.smallest_separator(np.ones((4, 2)), np.array([1.0, -1, 1, -1]), rounds=5) == math.inf


# --- the second phase -------------------------------------------------------------------------------------------


def test_the_limit_against_drawn_units():
    """Means over 10^5 pairs; a z-score above 5 in one of 28 entries comes in 1 of 10^5 seeds."""
    sizes = Leaky(5001, 5)
    units, u = leaky.draw_units(sizes, 100_000, np.random.default_rng(0))
    layer = leaky_flow.reduced(sizes, units, u)
    h = layer.features(sizes)
    means = leaky_flow.limit(sizes)
    products = h[:, :, None] * h[:, None, :]
    assert np.all(np.abs(products.mean(0) - means.kernel) < 5 * products.std(0) / math.sqrt(len(u)))
    assert np.all(np.abs((layer.u @ h) / len(h) - means.start) < 5 * (layer.u[:, None] * h).std(0) / math.sqrt(len(u)))
    assert np.mean(layer.u**2) == pytest.approx(means.output, rel=0.02)
    both = layer.u[: len(u), None] * (h[: len(u)] + h[len(u) :])
    np.testing.assert_allclose(both.T @ both / len(u) / 2, means.spread, rtol=0.05, atol=0.02 * means.spread.max())


@pytest.mark.long
def test_the_flow_against_small_steps():
    """A kernel of moderate condition, from 0 and from a bad start: descent with steps of 0.004 stays within 0.05."""
    sizes, rng = Leaky(101, 5), np.random.default_rng(2)
    root = rng.normal(size=(6, 6))
    kernel = root @ root.T + 0.3 * np.eye(6)
    for start in (np.zeros(6), 3 * rng.normal(size=6)):
        flow, g = leaky_flow.hinge_flow(sizes, kernel, start), start.copy()
        for t in range(1, 10_001):
            g = g + 4e-3 * kernel @ (sizes.labels * sizes.law * (sizes.labels * g < 1))
            if t % 500 == 0:
                np.testing.assert_allclose(flow.at([t * 4e-3])[0], g, atol=0.05)
    assert leaky_flow.loss(sizes, flow.outputs[-1]) < 1e-9


def test_separator_norm_against_a_solver():
    sizes, rng = Leaky(101, 5), np.random.default_rng(4)
    root = rng.normal(size=(6, 6))
    kernel = root @ root.T + 0.1 * np.eye(6)
    inverse = np.linalg.inv(kernel)
    best = optimize.minimize(lambda g: g @ inverse @ g, sizes.labels, jac=lambda g: 2 * inverse @ g, method="SLSQP",
                             constraints={"type": "ineq", "fun": lambda g: sizes.labels * g - 1})
    assert leaky_flow.separator_norm(sizes, kernel) == pytest.approx(best.fun, rel=1e-5)


def test_descent_in_reduced_coordinates_is_descent_of_the_whole_network():
    """Units that are 0 on A are exactly functions of z; population steps over all inputs, both layers, with decay."""
    sizes, rng = Leaky(9, 3), np.random.default_rng(0)
    start = leaky.start(sizes, 6, rng)
    start.w[:, :3] = 0
    s, law = law_of_inputs(9, 3, 0.5)
    y, x = s[:, :3].prod(1), s / 3.0
    step = leaky.first_step(sizes, start)
    w, b, u = step.w.copy(), step.b.copy(), step.u.copy()
    layer = leaky_flow.reduced(sizes, leaky.counted(start.w[:6], 3), start.u[:6])
    made = leaky_flow.descend(sizes, layer, 40, 0.3, decay=0.01, checks=40)
    for t in range(41):
        z = x @ w.T + b
        g = np.clip(z, 0, 6) @ u
        assert law @ np.maximum(1 - y * g, 0) == pytest.approx(made.loss[t], abs=1e-9)
        pull = law * y * (y * g < 1)
        active = ((z > 0) & (z < 6)) * pull[:, None]
        w, b, u = (w * (1 - 0.006) + 0.3 * u[:, None] * (active.T @ x), b + 0.3 * u * active.sum(0),
                   u * (1 - 0.006) + 0.3 * np.clip(z, 0, 6).T @ pull)


def test_the_schedule_follows_the_flow():
    """300 units at the theorem's rate with many steps: errors and loss are those of the flow with their own kernel."""
    sizes = Leaky(3**10, 3)
    units, u = leaky.draw_units(sizes, 300, np.random.default_rng(1))
    layer = leaky_flow.reduced(sizes, units, u)
    h = layer.features(sizes)
    made = leaky_flow.descend(sizes, layer, 20_000, leaky_theorem.schedule_rate(3, 300, 20_000), checks=4)
    flow = leaky_flow.hinge_flow(sizes, h.T @ h / len(h), layer.u @ h)
    end = leaky_theorem.schedule_time(3, 300)
    np.testing.assert_allclose(made.loss, leaky_flow.loss(sizes, flow.at(end * np.arange(5) / 4)), atol=0.01)


def test_the_theorem_regime():
    found = leaky_theorem.regime(Leaky(7**10, 7))
    q = found.needed
    assert found.error(1.01 * q) == (0.0, 0.0)
    assert found.error(0.99 * q)[0] > 0
    bounds, values = leaky_theorem.bound_terms(7**10, 7, q, 7**4 * q), found.proof_terms(q, 7**4 * q)
    assert all(values[name] < bounds[name] for name in leaky_theorem.TERMS)


# --- the command ------------------------------------------------------------------------------------------------


def test_the_command(tmp_path, capsys):
    assert main(["daniely2020", "leaky", "--k", "3", "--json", "--out", str(tmp_path)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["n"], found["curve"][-1]["error"]) == (3**10, 0)
    assert found["needed_q"] > 1e8
    assert main(["daniely2020", "leaky", "--k", "3", "--q", "50", "--steps", "200", "--out", str(tmp_path)]) == 0
    assert "50 pairs" in capsys.readouterr().out
    assert len(list(tmp_path.glob("*.csv"))) == 2
    for wrong in (["--k", "4"], ["--q", "few"], ["--q", "1e9"], ["--n", "2"], ["--leak", "0"], ["--steps", "9"]):
        assert main(["daniely2020", "leaky", *wrong, "--out", str(tmp_path)]) == 2
        assert capsys.readouterr().err.count("\n") == 1
