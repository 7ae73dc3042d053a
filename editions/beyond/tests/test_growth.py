"""The model of growth: its beginning, its exponential, its end, and the order of laws."""

from __future__ import annotations

import math

import numpy as np
import pytest
from paritylab_beyond.beyond.growth import Cell, growth, log_alignment, moved_alignments, movement, network_alignment
from paritylab_beyond.beyond.robust import separation

import paritylab as pl

MOVED = [0.0, 0.1, 0.2]
D = 60


def table(law: str, d: int = D) -> dict[str, np.ndarray]:
    return {name: np.array(values) for name, values in moved_alignments(0, law=law, d=d, moved=MOVED).items()}


SIGNS, THREE = table("rademacher"), table("discrete:-3,-1,1,3")


def test_the_table_is_the_alignment_of_a_network() -> None:
    exact = pl.alignment("rademacher", D, unit="network", bias="same", width=100, scale="fan-in", moved=0.1)
    assert network_alignment(SIGNS, 100, 0.1) == pytest.approx(exact.log / math.log(10), abs=1e-9)


def test_a_law_too_fine_for_a_sum_has_no_value_at_the_start() -> None:
    found = table("discrete:-1.41421,-1,1,1.41421", 100)
    assert np.isnan(found["hidden"][0])
    assert log_alignment(found, "hidden", 0.0) == found["hidden"][1]


def test_the_beginning_is_the_rate_times_the_alignment() -> None:
    cell = Cell("rademacher", D, 10**6)
    found = growth([cell], [SIGNS], 100.0)
    expected = cell.lr * 100 * 10 ** network_alignment(SIGNS, cell.width, 0.0)
    assert found.signal[0, -1] == pytest.approx(expected, rel=0.02)


def test_a_wide_network_grows_exponentially() -> None:
    cell = Cell("rademacher", D, 10**6)
    gamma = math.exp(float(SIGNS["hidden"][0]) / 2)
    output = cell.width * math.exp(float(SIGNS["output"][0]))
    found = growth([cell], [SIGNS], 2000.0)
    expected = (gamma + output / gamma) / 2 * math.sinh(2 * cell.lr * gamma * 2000)
    assert found.signal[0, -1] == pytest.approx(expected, rel=0.02)


def test_a_narrow_network_stops_growing_and_a_larger_variance_needs_more_width() -> None:
    widths = [256, 1024, 4096, 16_384]
    first = {name: growth([Cell(law, D, width) for width in widths], [rows] * 4, 3e4).first()
             for name, law, rows in (("signs", "rademacher", SIGNS), ("three", "discrete:-3,-1,1,3", THREE))}
    assert np.isfinite(first["signs"]).all()
    assert np.isinf(first["three"][0])
    assert np.isfinite(first["three"][-1])
    assert (first["three"] > first["signs"]).all()


def test_noise_delays() -> None:
    cells = [Cell("discrete:-3,-1,1,3", D, 1024)]
    with_noise, without = (growth(cells, [THREE], 1e5, noise=noise).signal[0, -1] for noise in (True, False))
    assert with_noise < without


def test_the_walk_of_a_frozen_layer_is_as_derived() -> None:
    """One weight of a unit with a fixed output weight, labels drawn at random."""
    rng, d, width, batch, steps, lr = np.random.default_rng(0), 12, 30, 8, 400, 0.01
    walks = []
    for _ in range(40):
        w = rng.standard_normal((width, d)) / math.sqrt(d)
        start, a = w.copy(), rng.choice([-1.0, 1.0], width) / math.sqrt(width)
        for _ in range(steps):
            x = rng.choice([-1.0, 1.0], (batch, d))
            y = rng.choice([-1.0, 1.0], batch)
            w = w + lr / batch * a[:, None] * ((y[:, None] * (x @ w.T > 0)).T @ x)
        walks.append(d * np.square(w - start).mean())
    expected = float(movement(Cell("gaussian", d, width, lr, batch), steps))
    assert math.sqrt(np.mean(walks)) == pytest.approx(expected, rel=0.03)


def test_separation() -> None:
    score, learnt = np.array([3.0, 2.0, 1.0]), np.array([True, True, False])
    assert separation(score, learnt) == 1
    assert separation(-score, learnt) == 0
    assert math.isnan(separation(score, np.array([True] * 3)))
