"""Samples that are given as arrays."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import paritylab as pl
from paritylab import engines
from paritylab.errors import InvalidInput
from paritylab.setups.words import problem_in_words, setups_in_words

CUBE = np.array(list(itertools.product([1, -1], repeat=6)))
PARITY = CUBE[:, 0] * CUBE[:, 1]
RNG = np.random.default_rng(0)
CHOSEN = RNG.permutation(64)[:40]
LEARNER = pl.Learner(pl.MLP(16), optimiser=pl.SGD(0.2), batch=8)
DATA = pl.Data(CUBE[CHOSEN], PARITY[CHOSEN], CUBE, PARITY)


@pytest.mark.long
def test_it_is_learned_and_judged_on_all_of_the_evaluation_arrays():
    result = pl.measure(DATA, LEARNER, pl.Protocol(max_steps=3000), runs=4)
    assert result.engine == engines.label("jax")
    assert result.setup.protocol.eval_size == 64
    assert result.summary.solved > 0
    made = pl.curves(result.setup, [0, 500], weights=True, train=True)
    for point in range(2):
        params = jax.tree.map(lambda leaf, point=point: leaf[0, point], made.weights)
        right = LEARNER.network.apply(params, CUBE.astype(np.float32)) * PARITY > 0
        assert made.accuracy[0, point] == np.mean(right)
        assert made.train_accuracy is not None
        assert made.train_accuracy[0, point] == np.mean(right[CHOSEN])


def test_a_batch_in_passes_sees_each_example_once():
    """A network of one weight for each input, trained by what it is shown: the sum of the examples of a pass."""
    network = pl.Network(lambda key, n: jnp.zeros(n), lambda params, x: x @ params)
    learner = pl.Learner(network, loss="correlation", optimiser=pl.SGD(1.0), batch=8)
    shown = pl.curves(pl.Setup(DATA, learner), [5, 10], runs=[0, 1], weights=True).weights
    total = (CUBE[CHOSEN] * PARITY[CHOSEN][:, None]).sum(axis=0) / 8
    np.testing.assert_allclose(shown[:, 0], np.tile(total, (2, 1)), atol=1e-5)
    np.testing.assert_allclose(shown[:, 1], np.tile(2 * total, (2, 1)), atol=1e-5)


def test_numbers_that_are_no_signs_and_several_labels():
    x = RNG.normal(size=(30, 5))
    y = np.stack([x.sum(axis=1), x[:, 0]], axis=1)
    network = pl.Network(lambda key, n: jax.random.normal(key, (n, 2)), lambda params, x: x @ params)
    learner = pl.Learner(network, loss="square", optimiser=pl.SGD(0.2), batch=10)
    result = pl.measure(pl.Data(x, y), learner, pl.Protocol(max_steps=2000, within=0.01), runs=2)
    assert result.summary.solved == 2


def test_its_json_is_what_it_holds():
    setup = pl.Setup(DATA, LEARNER)
    again = pl.Setup.from_json(setup.to_json())
    assert again == setup
    assert again.id == setup.id
    assert again.problem == DATA
    np.testing.assert_array_equal(again.problem.signs(jnp.arange(40)), CUBE[CHOSEN])
    assert json.loads(setup.to_json())["problem"]["n"] == 6
    assert pl.Setup(replace(DATA, x=CUBE[CHOSEN].astype(np.float64)), LEARNER).id == setup.id
    assert setup.functions == []


def test_data_that_differ_have_different_ids():
    flipped, moved = PARITY[CHOSEN].copy(), CUBE[CHOSEN].astype(float)
    flipped[7] *= -1
    moved[3, 2] *= 1 + 1e-6
    found = [DATA, replace(DATA, y=flipped), replace(DATA, x=moved), replace(DATA, eval_x=-CUBE),
             replace(DATA, eval_x=None, eval_y=None), replace(DATA, x=CUBE[CHOSEN][::-1]),
             pl.Data(CUBE[CHOSEN], PARITY[CHOSEN].reshape(-1, 1), CUBE, PARITY.reshape(-1, 1))]
    assert len({pl.Setup(each, LEARNER).id for each in found}) == len(found)


def test_words():
    assert problem_in_words(DATA) == "40 examples of 6 inputs"
    assert len(setups_in_words([pl.Setup(DATA, LEARNER)])) < 300
    assert repr(DATA) == "Data(replacement=False, short_last=False, n=6)"


@pytest.mark.parametrize(("make", "message"), [
    (lambda: pl.Data(CUBE, PARITY[:-1]), "there must be a label for each input, not 63 for 64"),
    (lambda: pl.Data(CUBE[0], PARITY), r"x must have the shape \(examples, n\)"),
    (lambda: pl.Data(CUBE, PARITY, CUBE), "eval_x and eval_y come together"),
    (lambda: pl.Data(CUBE, PARITY, CUBE[:, 1:], PARITY), "eval_x must have 6 inputs, as x has, not 5"),
    (lambda: pl.Data(CUBE, PARITY, CUBE, PARITY[:, None]), "y and eval_y must have the same outputs"),
    (lambda: pl.Data(CUBE * np.nan, PARITY), "x must hold finite numbers"),
    (lambda: pl.Data([["a"]], [1]), "x must be an array of numbers"),
    (lambda: pl.Data("signs 4x2 ???", [1]), "x must be an array of numbers"),
    (lambda: pl.Data(np.zeros((0, 3)), []), r"x must be an array of one or two axes, not \(0, 3\)"),
    (lambda: pl.Data(CUBE, PARITY, n=5), "n must be 6, as x has it, not 5"),
    (lambda: pl.Setup(DATA, LEARNER, pl.Protocol(eval_size=100)), "eval_size must be 64, .* not 100"),
    (lambda: pl.Setup(DATA, LEARNER, pl.Protocol(fresh=True)), "fresh=True draws inputs anew"),
    (lambda: engines.choose(pl.Setup(DATA, LEARNER), "lanes"), "it has no Data"),
])
def test_mistakes_are_said_in_a_line(make, message):
    with pytest.raises(InvalidInput, match=message):
        make()


def test_results_list_what_was_measured_on_them(tmp_path, capsys):
    from paritylab.cli import main

    pl.measure(DATA, LEARNER, pl.Protocol(max_steps=20), runs=2, store=pl.Store(tmp_path / "store"))
    assert main(["results", "--out", str(tmp_path), "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["results"]
    assert (row["n"], row["k"], row["runs"]) == (6, None, 2)
