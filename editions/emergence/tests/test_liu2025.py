"""Training with targets 0 and 1 against a plain loop, times read from accuracies, and rules on made-up runs."""

import jax
import numpy as np
import pytest
from paritylab_emergence.liu2025 import common, composite, domino

import paritylab as pl
from paritylab import rng
from paritylab.engines.gradient import make_step


def plain(params, x, y, steps, rate=0.001, b1=0.9, b2=0.999, eps=1e-8):
    """Full-batch Adam on the mean squared error of a ReLU network, in double precision: w, b, v, c after the steps."""
    params = [np.array(each, float) for each in params]
    first, second = ([np.zeros_like(each) for each in params] for _ in range(2))
    for step in range(1, steps + 1):
        w, b, v, c = params
        z = x @ w + b
        h = np.maximum(z, 0)
        error = 2 * (h @ v + c - y) / y.size
        back = error @ v.T * (z > 0)
        for i, g in enumerate((x.T @ back, back.sum(0), h.T @ error, error.sum(0))):
            first[i] = b1 * first[i] + (1 - b1) * g
            second[i] = b2 * second[i] + (1 - b2) * g * g
            params[i] -= rate * (first[i] / (1 - b1**step)) / (np.sqrt(second[i] / (1 - b2**step)) + eps)
    return params


def test_training_is_that_of_bits_with_targets_zero_and_one():
    sample, steps = 200, 20
    setup = common.setup([(0, 1), (2, 3)], sample)
    found = pl.curves(setup, [0, steps], train=True, weights=True)
    key = rng.run_keys(np.array([0]), np.array([0]))[0]
    drawn, labels = make_step(setup.program)[1](key, np.uint32(0), setup.problem.mask)
    x = (np.asarray(setup.problem.signs(drawn)) < 0).astype(float)
    y = np.stack([x[:, :2].sum(1) % 2, x[:, 2:4].sum(1) % 2], axis=1)
    np.testing.assert_array_equal(labels, 0.5 - y)
    layers = [jax.tree.map(lambda leaf, point=point: leaf[0, point], found.weights) for point in (0, 1)]
    start, end = ([each[0]["w"], each[0]["b"], -each[1]["w"], 0.5 - each[1]["b"]] for each in layers)  # f is 1/2 - f
    assert np.abs(start[3]).max() < 50**-0.5
    expected = plain(start, x, y, steps)
    for ours, theirs in zip(end, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=2e-5)  # single precision, of weights that moved by 0.02
    w, b, v, c = expected
    right = ((np.maximum(x @ w + b, 0) @ v + c > 0.5) == (y > 0)).mean(axis=0)
    np.testing.assert_allclose(found.train_task_accuracy[0, 1], right, atol=0.011)  # two of 200 on the threshold


def test_a_tenth_of_the_sample_counts_and_the_divisor_is_that_of_all():
    problem = common.setup([(0, 1), (2, 3)], 1000, (1.0, 0.1)).problem
    assert problem.target.counts(1000) == (1000, 100)


def accuracies(*curves, steps=(0, 5, 10, 15)):
    """Of one run: a list for each output."""
    return common.Accuracies(np.array(steps), np.array(curves, float).T[None])


def test_times_are_the_first_steps_there_and_infinite_where_there_is_none():
    found = accuracies([0.5, 0.8, 0.99, 1], [0.5, 0.5, 0.6, 0.7])
    assert found.times().tolist() == [[10, np.inf]]
    assert found.times(0.6).tolist() == [[5, 10]]
    assert found.at(10).tolist() == [[0.99, 0.6]]


def test_the_whole_is_looked_at_when_the_slower_half_is_there():
    found = accuracies([0.5, 0.95, 1, 1], [0.5, 0.7, 0.91, 1], [0.5, 0.55, 0.65, 0.9])
    assert composite.whole_when_halves(found).tolist() == [0.65]
    assert np.isnan(composite.whole_when_halves(accuracies([1, 1, 1, 1], [0, 0, 0, 0.5], [0, 0, 0, 0]))).all()


def recorded(values, steps):
    """Curves of runs whose outputs have these accuracies, (runs, points, outputs)."""
    blank = np.zeros(values.shape[:2])
    return pl.Curves(np.array(steps), blank, blank, train_task_accuracy=values)


@pytest.mark.parametrize(("factor", "expected"), [(2.0, ["holds"] * 5), (8.0, ["contradicted"] * 2)])
def test_rules_on_two_tasks_hold_and_fail(factor, expected):
    """400 made-up runs that learn task 1 near step 195, and task 2 so many times as late."""
    generator, steps = np.random.default_rng(0), np.arange(0, 4000, 5)
    first = generator.normal(195, 25, 400)
    times = np.stack([first, factor * first * generator.normal(1.05, 0.1, 400)], axis=1)
    values = np.where(steps[:, None] >= times[:, None], 1.0, 0.5)
    checks = domino.Domino("full").judge([recorded(values, steps)]).checks
    assert [check.result for check in checks][: len(expected)] == expected


def test_published_times_are_those_of_the_figures():
    shares = (1, 0.5, 0.2, 0.1, 0.05)
    assert [common.published("2 bottom", 2, p, accuracy=75) for p in shares] == [188, 206, 278, 335, 413]
    assert [common.published("16 bottom", task) for task in (1, 2, 3)] == [278, 290, 2431]
