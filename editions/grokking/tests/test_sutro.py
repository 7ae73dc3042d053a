"""The published numbers, the rules on made-up runs, stages that grow, and how satisfied batches are left alone."""

import numpy as np
import pytest
from paritylab_grokking.sutro import common, curriculum, decay, signs, vote

import paritylab as pl
from paritylab.engines.gradient import make_step
from paritylab.storage.records import CENSORED, SOLVED, Records


def solved_after(setup, passes, each):
    """A Result as if runs were solved after so many passes of ``each`` steps, and those at infinity never."""
    done = np.isfinite(passes)
    steps = np.where(done, np.where(done, passes, 0) * each, setup.protocol.max_steps).astype(int)
    records = Records(run=np.arange(len(passes)), status=np.where(done, SOLVED, CENSORED),
                      t_c=np.where(done, steps, -1), steps=steps, accuracy=done + 0.0, loss=np.zeros(len(passes)))
    return pl.Result(setup, "made up", 0, records, 0.0)


def test_published_numbers():
    assert common.published("weight decay", "0.001").tolist() == [np.inf] * 5
    assert common.published("weight decay", "0.05").mean() == pytest.approx(45.8)
    assert common.published("curriculum", "10 30 50").tolist() == [20]
    assert common.published("sign gradient", "sign k=5").tolist() == [7, 8, 7]


def test_a_pass_ends_with_what_is_left_and_is_judged_by_all_test_inputs():
    setup = common.setup(20, 3, 1000, 200, pl.SGD(0.1), 200, 1.0)
    assert (setup.protocol.max_steps, setup.protocol.eval_every, setup.protocol.allowed_errors) == (6400, 32, 0)
    assert [int(setup.problem.batch_at(step, 32)) for step in (0, 30, 31, 32)] == [32, 32, 8, 32]


def test_the_start_is_he_normal_without_biases():
    params = common.setup(20, 3, 1000, 2000, pl.SGD(0.1), 1, 1.0).params(pl.rng.wrap(np.zeros(2, np.uint32)))
    assert not np.any(params[0]["b"])
    assert not np.any(params[1]["b"])
    for layer, fan_in in zip(params, (20, 2000), strict=True):  # 40,000 and 2,000 draws: six standard errors
        w = np.asarray(layer["w"])
        assert abs(np.mean(w**2) * fan_in / 2 - 1) < 6 * np.sqrt(2 / w.size)


def test_a_satisfied_batch_changes_nothing_and_another_decays():
    """Two networks on one example: the margin of the first is 3 already, that of the second is not reached."""
    optimiser = decay.optimiser(0.5)
    for margin, moves in ((3.0, False), (0.5, True)):
        params = [{"w": np.array([[margin]], np.float32), "b": np.zeros(1, np.float32)}]
        gradient = [{"w": np.array([[0.0 if margin > 1 else -1.0]], np.float32), "b": np.zeros(1, np.float32)}]
        rates = [{"w": 0.1, "b": 0.1}]
        moved, _ = optimiser.move(gradient, (), params, rates, 0)
        assert (float(moved[0]["w"][0, 0]) != margin) == moves


@pytest.mark.parametrize(("shares", "expected"), [((0, 1, 1, 0), {"holds"}), ((1, 1, 1, 1), {"contradicted"})])
def test_rules_on_the_window_hold_and_fail(shares, expected):
    """Of 200 made-up runs with each decay all are solved after 30 to 55 passes, or none."""
    trial = decay.DecayWindow("full")
    generator, setup = np.random.default_rng(0), common.setup(20, 3, 1000, 200, pl.SGD(0.1), 200, 1.0)
    got = [solved_after(setup, np.where(share, generator.integers(30, 55, 200), np.inf), 32)
           for share in (*shares, 0, 0, 0)]
    window = [check.result for check in trial.judge(got).checks if check.name.startswith("smallest share")]
    assert set(window) == expected
    agree = {check.name: check.result for check in trial.judge(got).checks if check.name.startswith("Fisher")}
    assert agree["Fisher's p of the share solved against the published count, decay 0.001"] == next(iter(expected))


def test_rules_on_signs_hold_for_runs_like_the_published_ones():
    generator, trial = np.random.default_rng(0), signs.Signs("full")
    setup = common.setup(20, 5, 5000, 500, pl.SGD(0.1), 500, 1.0)
    got = [solved_after(setup, generator.integers(low, high, 100).astype(float), 157)
           for low, high in ((12, 18), (20, 40), (6, 10), (11, 16))]
    assert {check.result for check in trial.judge(got).checks} == {"holds"}


@pytest.mark.parametrize("flips", [0, 3])
def test_a_vote_of_a_few_runs(flips):
    found = vote.voted(0, flips=flips, first=0, runs=5, n=8, k=2, examples=60, subsets=30)
    assert found["solved"].all()
    assert found["plain"].all() == (flips == 0)
    assert found["refused"].all() == (flips > 0)


def test_a_stage_keeps_what_was_learned_and_adds_small_weights():
    setup = curriculum.stage(10, 1)
    before = pl.curves(setup, [32], runs=range(2), engine="jax", checkpoint=True).checkpoint
    after = curriculum.next_stage(before, 30, seed=7)
    old, new = (each.params["[0]['w']"] for each in (before, after))
    assert (after.step, after.seed, new.shape) == (0, 7, (2, 30, 200))
    np.testing.assert_array_equal(new[:, :10], old)
    added = new[:, 10:]
    assert abs(np.mean(added**2) / (0.01 * 2 / 30) - 1) < 6 * np.sqrt(2 / added.size)  # six standard errors
    assert not np.array_equal(added[0], added[1])
    drawn = [make_step(curriculum.stage(30, 1).program)[1](pl.rng.run_keys(np.array([seed]), np.array([0]))[0],
                                                            np.uint32(0), curriculum.stage(30, 1).problem.mask)[0]
             for seed in (0, 7)]
    assert not np.array_equal(*drawn)  # a sample of its own


def test_runs_that_are_through_wait_with_the_weights_they_had():
    one, other = (pl.curves(curriculum.stage(10, 1), [step], runs=range(3), engine="jax", checkpoint=True).checkpoint
                  for step in (1, 2))
    mixed = curriculum.chosen(np.array([True, False, True]), other, one)
    for name, leaf in mixed.params.items():
        np.testing.assert_array_equal(leaf[[0, 2]], other.params[name][[0, 2]])
        np.testing.assert_array_equal(leaf[1], one.params[name][1])
