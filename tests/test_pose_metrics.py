"""Metrics of one's own along training curves."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

import paritylab as pl
from paritylab.errors import InvalidInput

SETUP = pl.Setup(pl.Parity(8, 2), pl.Learner(pl.MLP(6), optimiser=pl.SGD(0.2)), pl.Protocol(eval_size=200))


def norms(params):
    return jnp.stack([jnp.linalg.norm(layer["w"]) for layer in params])


def measured(metrics, setup=SETUP, steps=(0, 5, 20), runs=(0, 3), **options):
    return pl.curves(setup, list(steps), runs=runs, metrics=metrics, weights=True, **options)


def test_a_metric_of_params_is_recorded_at_each_point():
    made = measured({"norms": norms, "largest": lambda params: jnp.argmax(params[0]["b"])})
    assert made.metrics is not None
    expected = np.stack([np.linalg.norm(layer["w"], axis=(2, 3)) for layer in made.weights], axis=-1)
    np.testing.assert_allclose(made.metrics["norms"], expected, rtol=1e-6)
    np.testing.assert_array_equal(made.metrics["largest"], made.weights[0]["b"].argmax(axis=-1))


@pytest.mark.parametrize("problem", [pl.Parity(8, 2), pl.Problem(8, "majority:3", "biased:0.7")])
def test_a_metric_of_the_evaluation_sample_sees_what_accuracy_and_loss_are_of(problem):
    setup = pl.Setup(problem, SETUP.learner, SETUP.protocol)

    def accuracy(params, x, y):
        return jnp.mean(setup.learner.network.apply(params, x) * y > 0)

    made = measured({"accuracy": accuracy, "inputs": lambda params, x: jnp.array(x.shape)}, setup)
    assert made.metrics is not None
    np.testing.assert_allclose(made.metrics["accuracy"], made.accuracy, atol=1e-6)
    assert np.unique(made.metrics["inputs"], axis=1).tolist() == [[[200, 8]]] * 2


def test_recording_metrics_changes_nothing_else():
    made = pl.curves(SETUP, [0, 5, 20], runs=(0, 3), engine="jax")
    np.testing.assert_array_equal(measured({"norms": norms}).loss, made.loss)
    assert made.metrics is None


FACTOR = 1.0


def scaled(params):
    return FACTOR * params[0]["w"][0, 0]


def test_a_metric_is_the_one_of_now(monkeypatch):
    first = measured({"scaled": scaled}).metrics
    monkeypatch.setitem(globals(), "FACTOR", 3.0)
    second = measured({"scaled": scaled}).metrics
    assert first is not None
    assert second is not None
    np.testing.assert_allclose(second["scaled"], 3 * first["scaled"], rtol=1e-6)


def test_metrics_of_runs_that_diverge_and_of_runs_that_stop():
    wild = pl.Setup(pl.Parity(8, 2), pl.Learner(pl.MLP(6), loss="square", optimiser=pl.SGD(1e20)), SETUP.protocol)
    made = measured({"norms": norms}, wild)
    assert made.metrics is not None
    assert np.isfinite(made.metrics["norms"][:, 0]).all()
    assert np.isnan(made.metrics["norms"][:, -1]).all()
    small = pl.Setup(pl.Parity(8, 2, sample=20), SETUP.learner, SETUP.protocol)
    ended = measured({"norms": norms}, small, stop=10.0).metrics
    assert ended is not None
    np.testing.assert_array_equal(ended["norms"][:, 1:], ended["norms"][:, :1].repeat(2, axis=1))


@pytest.mark.parametrize(("metrics", "message"), [
    ({"wrong": lambda params: params["w"]}, "metric 'wrong' failed: list indices"),
    ({"wrong": lambda params: params}, "metric 'wrong' must return one array of numbers, not a list"),
    ({"wrong": lambda params, z: z}, "metric 'wrong' failed: .* missing 1 required"),
    ({1: norms}, "metrics must be functions by their names, not 1: "),
    ([norms], "metrics must be functions by their names, not "),
    ({"large": lambda params: jnp.zeros((10**5, 10**5))}, "the metrics of 1 runs at 1 points take 40.0 GB"),
])
def test_mistakes_are_said_in_a_line(metrics, message):
    with pytest.raises(InvalidInput, match=message) as caught:
        pl.curves(SETUP, [1], metrics=metrics)
    assert "\n" not in str(caught.value)


def test_only_jax_has_them():
    with pytest.raises(InvalidInput, match="engine 'lanes' has no metrics of one's own; use 'jax' or 'auto'"):
        pl.curves(SETUP, [1], metrics={"norms": norms}, engine="lanes")
