"""The claims of barak2022 about training curves: their helpers against known answers, and one small trial."""

import math

import numpy as np
import pytest
from barak2022 import finite, hidden_progress

from paritylab import Curves, Neuron
from paritylab.claims import Lab, find, reproduce


@pytest.mark.parametrize("name", ["fig3", "fig13", "fig4-right", "fig15"])
def test_claim_has_a_trial(name):
    assert find([f"barak2022.{name}"])[0].trial.rules()


def curves(accuracy, train=None) -> Curves:
    values = np.array(accuracy, float)
    return Curves(10 * np.arange(values.shape[1]), values, 1 - values, None, None if train is None else np.array(train))


def test_the_last_check_at_chance_lies_before_the_solution():
    found = hidden_progress.last_at_chance(curves([
        [0.5, 0.6, 0.5, 0.9, 1.0],  # back at chance once
        [0.5, 0.6, 1.0, 0.5, 1.0],  # back at chance after it was solved
        [0.5, 0.5, 0.5, 0.5, 0.5],  # never solved
        [0.5, 0.7, math.nan, math.nan, math.nan],  # diverged
    ]))
    assert found.tolist() == [2, 0, 4, 0]


def test_steps_between_the_first_and_the_last_neuron():
    leads = np.zeros((4, 3, 3), bool)  # points, runs, units
    leads[1:, 0, 0] = leads[3:, 0, 2] = True  # a third neuron never leads
    leads[2, 1, 1] = True  # a single one
    assert hidden_progress.between_neurons(np.array([0, 5, 10, 20]), leads).tolist() == [15, 0, 0]


def test_first_layer_is_a_path_of_every_unit():
    weights = np.arange(2 * 3 * 4 * 5.0).reshape(2, 3, 4, 5)  # runs, points, inputs, units
    path = hidden_progress.first_layer(Curves(np.arange(3), np.zeros((2, 3)), np.zeros((2, 3)), [{"w": weights}]))
    assert path.shape == (3, 2, 5, 4)
    assert path[2, 1, 4, 3] == weights[1, 2, 3, 4]


def test_progress_is_compared_after_as_many_steps(tmp_path):
    pair = hidden_progress.trained(Lab("quick", tmp_path), 10, Neuron("sinusoid:3"), 32, 0.05, 4, 300, every=10)
    found = hidden_progress.progress(*pair)
    assert found.solved == 1
    rho, random = found.at_last()
    for run, point in enumerate(found.last):
        weights = found.parity.weights[0]["w"][run, :, :, 0], found.random.weights[0]["w"][run, :, :, 0]
        assert np.array_equal(weights[0][0], weights[1][0])  # the same start
        assert [rho[run], random[run]] == pytest.approx([np.abs(w[point] - w[0]).max() for w in weights])


def test_delay_of_runs_that_did_not_get_there():
    found = curves([[0.5, 0.99, 1.0], [0.5, 0.5, 0.5], [0.5, 0.5, 0.5], [0.5, 0.5, 0.99]],
                   [[0.5, 1.0, 1.0], [0.5, 1.0, 1.0], [0.5, 0.9, 0.9], [0.5, 1.0, 1.0]])
    assert np.array_equal(finite.delay(found), [1, np.inf, np.nan, 2], equal_nan=True)


def test_grokking_needs_most_runs_to_generalise():
    late, prompt, never = (np.array([value]) for value in (9.0, 1.0, math.inf))
    assert finite.delayed({100: never, 300: late, 500: late, 900: prompt}, {100: 0, 300: 0.6, 500: 0.8, 900: 1}) == 500
    assert finite.delayed({100: prompt, 300: np.array([2.0])}, {100: 1, 300: 1}) == 300  # the longest delay there is
    assert finite.delayed({100: never}, {100: 0}) is None


def test_smallest_sample_at_which_four_of_five_generalise():
    some, most = curves([[1.0]] * 3 + [[0.5]] * 2), curves([[0.99]] * 4 + [[0.5]])
    assert finite.smallest_sample({100: some, 300: most, 500: some}) == 300
    assert finite.smallest_sample({100: some}) == math.inf


def test_steps_are_increasing_and_end_with_the_last():
    steps = finite.log_steps(1_000_000)
    assert steps[0] == 0
    assert steps[-1] == 1_000_000
    assert np.all(np.diff(steps) > 0)
    assert 1.035 < steps[-1] / steps[-2] < 1.036  # how finely late times are resolved


@pytest.mark.long
def test_hidden_progress_at_the_quick_size(tmp_path):
    result = reproduce("barak2022.fig3", Lab("quick", tmp_path, progress=False))
    assert len(result.outcome.checks) == 4
    assert all(check.passed is not None for check in result.outcome.checks)
    assert len(result.outcome.data) == 20
    assert (tmp_path / "claims/barak2022.fig3.amended/quick/figure.png").exists()
