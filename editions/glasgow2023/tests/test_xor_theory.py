"""The theory of XOR: exact gradients against enumeration and sampling, and the numbers of a network by hand."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest
from glasgow2023.theory import xor
from glasgow2023.theory.xor import gradients as xor_gradients
from glasgow2023.theory.xor import phases as xor_phases

import paritylab as pl
from paritylab.cli import main
from paritylab.errors import InvalidInput


def cube(d):
    return np.array(list(itertools.product([1.0, -1.0], repeat=d)))


def clusters_of(x):
    return np.argmax(np.all(x[:, None, :2] == xor.CLUSTERS, axis=2), axis=1)


def brute_force(w, c):
    x = cube(len(w))
    return np.mean((c[clusters_of(x)] * (x @ w > 0))[:, None] * x, axis=0)


def neuron(seed, d):
    w = np.random.default_rng(seed).standard_normal(d)
    return w / np.linalg.norm(w)


def network(seed, p, d, theta=0.5):
    generator = np.random.default_rng(seed)
    w = generator.standard_normal((p, d))
    return xor.Neurons(theta * w / np.linalg.norm(w, axis=1, keepdims=True), theta * generator.choice([-1.0, 1.0], p))


@pytest.mark.parametrize("d", [3, 4, 7, 10, 14])
def test_exact_means_are_those_of_enumeration(d):
    for seed in range(3):
        c = np.random.default_rng(seed).standard_normal(4)
        np.testing.assert_allclose(xor_gradients.active_mean(neuron(seed, d), c), brute_force(neuron(seed, d), c),
                                   atol=1e-13)


def test_ties_count_as_inactive():
    w = np.array([1.0, 1.0, 2.0, 0.0, 2.0])
    np.testing.assert_allclose(xor_gradients.active_mean(w), brute_force(w, xor.LABELS), atol=1e-15)


def test_the_fourier_integral_meets_the_exact_sum(monkeypatch):
    w, c = neuron(5, 32), np.array([0.3, -1.0, 2.0, 0.5])
    exact = xor_gradients.active_mean(w, c)
    monkeypatch.setattr(xor_gradients, "MOST_EXACT", 3)
    np.testing.assert_allclose(xor_gradients.active_mean(w, c), exact, atol=2e-6)


def test_the_fourier_integral_meets_sampling():
    # 2e5 samples, 100 coordinates, 6 standard errors: false alarms below 1e-6
    w, generator = neuron(6, 100), np.random.default_rng(7)
    x = generator.choice([-1.0, 1.0], (200_000, 100))
    drawn = (x[:, 0] * x[:, 1] * (x @ w > 0))[:, None] * x
    error = drawn.std(axis=0) / np.sqrt(len(x))
    assert np.all(np.abs(drawn.mean(axis=0) - xor_gradients.active_mean(w)) < 6 * error)


def test_gradients_of_a_network_are_derivatives_of_its_loss():
    neurons, x = network(0, 4, 5), cube(5)
    y = x[:, 0] * x[:, 1]

    def loss(w, a):
        return np.mean(2 * np.log1p(np.exp(-y * xor.Neurons(w, a)(x))))

    by_w, by_a = xor_gradients.network_gradients(neurons)
    for j, i in itertools.product(range(4), range(5)):
        step = np.zeros((4, 5))
        step[j, i] = 1e-6
        slope = (loss(neurons.w + step, neurons.a) - loss(neurons.w - step, neurons.a)) / 2e-6
        assert 4 * slope == pytest.approx(by_w[j, i], abs=1e-6)
    step = np.eye(4)[2] * 1e-6
    slope = (loss(neurons.w, neurons.a + step) - loss(neurons.w, neurons.a - step)) / 2e-6
    assert 4 * slope == pytest.approx(by_a[2], abs=1e-6)


def test_a_small_network_has_the_linearised_gradients():
    small = network(1, 6, 8, theta=1e-4)
    both = xor_gradients.network_gradients(small), xor_gradients.linear_gradients(small)
    for exact, linear in zip(*both, strict=True):
        np.testing.assert_allclose(exact, linear, atol=1e-11)


def test_a_network_of_signal_alone_has_the_clean_gradients():
    w = np.zeros((4, 6))
    w[:, :2] = 1.3 * xor.CLUSTERS
    w[:, 2] = 1e-9  # decides nothing
    neurons = xor.Neurons(w, 2 * xor.LABELS)
    both = xor_gradients.network_gradients(neurons), xor_gradients.clean_gradients(neurons)
    for exact, clean in zip(*both, strict=True):
        np.testing.assert_allclose(exact, clean, atol=1e-8)


def test_lemma_c4_holds_and_its_coordinates_add_up():
    sides = xor_gradients.lemma_c4(network(2, 20, 9))
    for name, (left, right) in sides.items():
        np.testing.assert_allclose(left, right, atol=1e-14, err_msg=name)
    np.testing.assert_allclose(sides["B4"][1].sum(axis=1), sides["B3"][1], atol=1e-14)


def test_growth_at_finite_size_is_that_of_the_exact_gradient():
    # w.xi is nearly Gaussian at d = 200
    w = neuron(3, 200)
    sig = (w[0] + w[1]) / np.sqrt(2)
    exact = xor_gradients.active_mean(w)[:2].sum() / np.sqrt(2) / sig
    assert exact == pytest.approx(float(xor.growth(1.0, np.linalg.norm(w[2:]), sig)), rel=0.02)


def test_parts_margins_and_slopes_by_hand():
    neurons = xor.Neurons(np.array([[1.0, 1.0, 2.0], [1.0, 3.0, 0.0]]), np.array([2.0, -4.0]))
    np.testing.assert_allclose(neurons.sig, [np.sqrt(2), -np.sqrt(2)])
    np.testing.assert_allclose(neurons.opp, [0, 4 / np.sqrt(2)])
    np.testing.assert_allclose(neurons.perp, [2, 0])
    np.testing.assert_allclose(xor.margins(neurons), [(2 * 2 - 4 * 4) / 2, 0, 0, 4 * 2 / 2])
    np.testing.assert_allclose(xor.slope([0.0, np.log(3)]), [1.0, 0.5])


def test_a_network_of_signal_alone_is_perfectly_heavy():
    w = np.zeros((4, 5))
    w[:, :2] = xor.CLUSTERS
    heavy = xor.heaviness(xor.Neurons(w, np.sqrt(2) * xor.LABELS))
    assert heavy.zeta == pytest.approx(0.0, abs=1e-12)
    assert heavy.members.all()
    assert heavy.outside == pytest.approx(0.0, abs=1e-12)
    assert heavy.margin == pytest.approx(2 * np.sqrt(2) / 4)


@pytest.mark.parametrize("strict", [True, False])
def test_the_smallest_zeta_is_the_smallest_that_satisfies_the_definition(strict):
    neurons = network(4, 40, 6)
    neurons = xor.Neurons(neurons.w * np.where(np.arange(6) < 2, 20.0, 0.02), neurons.a * 20)
    squares = neurons.size**2
    height = max(1.0, squares.mean() / 2)
    factor = np.exp(min(6 * height, 700)) if strict else 1.0
    ratio = (factor * neurons.perp + np.abs(neurons.opp)) / np.abs(neurons.sig)

    def holds(zeta):
        members = ratio <= zeta
        gains = np.maximum(neurons.a[:, None] * xor.LABELS, 0) * np.maximum(neurons.w[:, :2] @ xor.CLUSTERS.T, 0)
        margin = np.mean(gains * members[:, None], axis=0).min()
        balanced = squares.mean() <= np.mean(neurons.a**2) + zeta * height
        return np.mean(squares * ~members) <= zeta * margin and balanced

    found = xor.heaviness(neurons, strict)
    assert holds(found.zeta * (1 + 1e-9))
    assert not holds(found.zeta * (1 - 1e-6))
    assert xor.light_share(neurons, found.members) == pytest.approx(found.outside / found.margin)


def test_minibatch_noise_widens_neurons_as_predicted():
    # kappa = 2, one network of 256 neurons
    setup = pl.Setup(pl.Parity(128, 2), xor.learner(256, 0.1, 0.1, 26), pl.Protocol(eval_size=64))
    phases = xor_phases.track(setup, [0, 20])
    assert phases["perp"][0, 1] / phases["perp"][0, 0] == pytest.approx(
        float(xor.widening(2.0, 26 / 12.8)), rel=0.05)


def test_the_lower_bound_with_constants():
    assert xor.rotation_bound(64, 3) == 0.0
    assert 0.03 < xor.rotation_bound(2048, 35) <= 0.0375
    assert xor.rotation_bound(512, 4) >= xor.rotation_bound(512, 9)


def test_tracks_do_not_depend_on_how_runs_are_grouped(monkeypatch):
    setup = pl.Setup(pl.Parity(16, 2), xor.learner(8), pl.Protocol(eval_size=64))
    together = xor_phases.track(setup, 20, 5, runs=range(3))
    monkeypatch.setattr(xor_phases, "MOST_BYTES", 4 * 8 * 17 * 6)  # one run's
    apart = xor_phases.track(setup, 20, 5, runs=range(3))
    for name, values in together.items():
        np.testing.assert_array_equal(values, apart[name], err_msg=name)


@pytest.mark.long
def test_the_command_writes_figure_table_and_json(tmp_path, capsys):
    arguments = ["glasgow2023", "xor", "--d", "16", "--width", "32", "--theta", "0.5", "--eta", "0.25", "--out",
                 str(tmp_path)]
    assert main([*arguments, "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["accuracy"] > 0.9
    assert result["samples_to_99"] == result["steps_to_99"] * 128
    assert {path.name for path in tmp_path.iterdir()} >= {"xor-phases.png", "xor-phases.csv"}
    assert main(arguments) == 0
    assert "phase 2" in capsys.readouterr().out


@pytest.mark.parametrize("wrong", [["--eta", "-1"], ["--d", "2"], ["--theta", "0"], ["--time", "0"], ["--engine", "x"]])
def test_wrong_options_are_one_line(wrong, capsys):
    assert main(["glasgow2023", "xor", *wrong]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_neurons_must_have_three_weights():
    with pytest.raises(InvalidInput):
        xor_gradients.active_mean([1.0, 2.0])
