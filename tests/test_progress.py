"""Displacements by hand, and the random-walk references against simulated walks (fixed seeds)."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from paritylab.errors import InvalidInput
from paritylab.measures.progress import displacement, support_leads, walk_maximum

FALSE_ALARM = 1e-6


def test_displacement_and_lead_of_many_neurons_at_once():
    path = np.random.default_rng(0).standard_normal((5, 3, 7))
    rho, leads = displacement(path), support_leads(path, [1, 4])
    assert rho.shape == leads.shape == (5, 3)
    for t in range(5):
        for neuron in range(3):
            moved = np.abs(path[t, neuron] - path[0, neuron])
            assert rho[t, neuron] == moved.max()
            assert leads[t, neuron] == (t > 0 and set(np.argsort(moved)[-2:].tolist()) == {1, 4})
    assert not leads[0].any()


@pytest.mark.parametrize(("n", "drift", "drifting"), [(1, 0.0, 0), (50, 0.0, 0), (50, 0.03, 3), (10, 0.5, 10)])
def test_expected_maxima_agree_with_simulated_walks(n, drift, drifting):
    generator = np.random.default_rng(n)
    walks = 1000
    steps = 0.1 * generator.choice([-1.0, 1.0], (100, walks, n))
    steps[..., :drifting] += drift
    positions = steps.cumsum(0)
    times = np.array([50, 100])
    found = np.abs(positions[times - 1]).max(-1)
    expected = walk_maximum(times, 0.1, n, drift, drifting)
    margin = stats.norm.isf(FALSE_ALARM / 4) * found.std(1) / np.sqrt(walks)
    # Sums of 50 and 100 signs are not quite Gaussian: 3 % is far more than their maxima differ by.
    assert np.all(np.abs(found.mean(1) - expected) < margin + 0.03 * expected)


def test_expected_maxima_of_gaussian_walks_are_exact():
    draws = np.random.default_rng(1).standard_normal((200_000, 20))
    draws[:, :2] += 1.5
    found = np.abs(draws).max(1)
    margin = stats.norm.isf(FALSE_ALARM / 2) * found.std() / np.sqrt(len(found))
    assert abs(found.mean() - walk_maximum(1, 1.0, 20, 1.5, 2)) < margin


def test_limits_of_the_reference():
    assert walk_maximum(0, 1.0, 5) == 0
    assert walk_maximum(10**6, 1e-3, 100, drift=1.0, drifting=1) == pytest.approx(1e6, rel=1e-9)
    assert walk_maximum(1, 1.0, 2) == pytest.approx(2 / np.sqrt(np.pi), rel=1e-12)  # E max(|X|, |Y|)
    with pytest.raises(InvalidInput, match="cannot drift"):
        walk_maximum(1, 1.0, 2, 1.0, 3)
