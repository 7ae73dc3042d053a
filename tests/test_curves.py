"""Training curves: both engines against the float64 oracle, each other and the Records of the same runs."""

from __future__ import annotations

import functools
from dataclasses import replace

import jax
import numpy as np
import oracle
import pytest
from lengths import long_but

import paritylab as pl
from paritylab import engines
from paritylab.engines import Job, lanes, recorder
from paritylab.engines import curves as module
from paritylab.engines.curves import curves
from paritylab.engines.starts import initial_params
from paritylab.errors import InvalidInput
from paritylab.rng import run_keys
from paritylab.storage.records import SOLVED

SEED, RUNS = 4, (2, 9, 5)
STEPS = (0, 1, 2, 9, 40)
SIZE = 150  # more than one block of inputs on either engine, and no multiple of one
built = pytest.mark.skipif(lanes.kernel() is None, reason="the native kernel was not built")
ENGINES = ["jax", pytest.param("lanes", marks=built)]

PARITY = pl.Parity(n=7, k=2)
MLP = pl.Learner(pl.MLP(5), optimiser=pl.SGD(lr=0.05), batch=6)
DECAYING = pl.SGD(0.1, weight_decay=0.05)
CASES = {
    "mlp": pl.Setup(replace(PARITY, sample=131, noise=0.2), replace(MLP, optimiser=DECAYING)),
    "within": pl.Setup(pl.Parity(40, 2, sample=30, replacement=True, noise=0.1), replace(MLP, network=pl.MLP(96))),
    "three hidden layers": pl.Setup(
        replace(PARITY, sample=80, noise=0.1), replace(MLP, network=pl.MLP((6, 21, 5)), optimiser=DECAYING, batch=70)
    ),
    "neuron": pl.Setup(replace(PARITY, noise=0.1), replace(MLP, network=pl.Neuron("sinusoid:2"), loss="square")),
    "polynet, fresh": pl.Setup(PARITY, replace(MLP, network=pl.PolyNet(2), batch=1), pl.Protocol(fresh=True)),
}
JAX_ONLY = {"deep": pl.Setup(replace(PARITY, sample=20), replace(MLP, network=pl.MLP((6, 5)), optimiser=pl.Adam(0.01)))}
CASES, JAX_ONLY = (
    {name: replace(s, protocol=replace(s.protocol, eval_size=SIZE)) for name, s in cases.items()}
    for cases in (CASES, JAX_ONLY)
)


@functools.cache
def traced(name: str, engine: str) -> module.Curves:
    return curves((CASES | JAX_ONLY)[name], STEPS, runs=RUNS, seed=SEED, engine=engine, weights=True, train=True)


def start(setup, run):
    params = initial_params(setup.program, run_keys(np.array([SEED]), np.array([run])), chunk=1)
    return jax.tree.map(lambda leaf: np.asarray(leaf[0]), params)


def assert_near(accuracy, loss, expected, size) -> None:
    assert accuracy == pytest.approx(expected[0], abs=1.01 / size)  # an output near 0 may be rounded across it
    assert loss == pytest.approx(expected[1], rel=1e-3, abs=1e-5)


@pytest.mark.parametrize(
    ("name", "engine"),
    [pytest.param(name, "jax", marks=[pytest.mark.long] if name != "mlp" else []) for name in (*CASES, *JAX_ONLY)]
    + [pytest.param(name, "lanes", marks=built) for name in CASES],
)
def test_curves_follow_the_oracle_at_unequal_steps(name, engine):
    setup, got = (CASES | JAX_ONLY)[name], traced(name, engine)
    assert got.steps.tolist() == list(STEPS)
    assert got.accuracy.shape == got.loss.shape == (len(RUNS), len(STEPS))
    assert (got.train_loss is None) == (setup.problem.sample is None)
    for i, run in enumerate(RUNS):
        first = start(setup, run)
        history = [first, *oracle.train(setup, SEED, run, first, STEPS[-1])]
        for j, t in enumerate(STEPS):
            want = oracle.tree_map(np.float64, history[t])
            weights = jax.tree.map(lambda leaf, i=i, j=j: leaf[i, j], got.weights)
            scale = max(np.abs(leaf).max() for leaf in oracle.leaves(want))
            for a, b in zip(oracle.leaves(weights), oracle.leaves(want), strict=True):
                np.testing.assert_allclose(a, b, rtol=0, atol=1e-4 * scale)
            assert_near(got.accuracy[i, j], got.loss[i, j], oracle.evaluate(setup, SEED, run, want, t), SIZE)
            if got.train_loss is not None and got.train_accuracy is not None:
                expected = oracle.evaluate_train(setup, SEED, run, want)
                assert_near(got.train_accuracy[i, j], got.train_loss[i, j], expected, setup.problem.sample)


@built
@pytest.mark.parametrize("name", CASES)
def test_both_engines_record_the_same_curves(name):
    ours, theirs = traced(name, "lanes"), traced(name, "jax")
    assert jax.tree.structure(ours.weights) == jax.tree.structure(theirs.weights)
    for a, b in zip(jax.tree.leaves(ours.weights), jax.tree.leaves(theirs.weights), strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-4)
        assert np.array_equal(a[:, 0], b[:, 0])  # the start, to the last bit
    np.testing.assert_allclose(ours.loss, theirs.loss, rtol=1e-3, atol=1e-5)


# Solved in 20 to 200 steps; checks at 7, 14, ..., 56 and 60.
SMALL = pl.Setup(
    pl.Parity(7, 2),
    pl.Learner(pl.MLP(6), optimiser=pl.SGD(0.4), batch=8),
    pl.Protocol(max_steps=60, eval_every=7, eval_size=100),
)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_curve_is_first_perfect_at_the_records_t_c_and_goes_on(engine):
    runs = np.arange(40)
    records, final = engines.final_params([Job(SMALL, SEED, runs)], engine)
    got = curves(SMALL, 60, every=7, runs=range(40), seed=SEED, engine=engine, weights=True)
    assert got.steps.tolist() == [0, *range(7, 60, 7), 60]
    assert got.first(1.0).tolist() == records.t_c.tolist()
    solved = records.status == SOLVED
    assert 5 < solved.sum() < 40
    assert np.isfinite(got.loss).all()
    assert (got.first(2.0) == -1).all()
    place = np.searchsorted(got.steps, records.steps)
    np.testing.assert_allclose(got.accuracy[runs, place], records.accuracy, atol=1e-6)
    np.testing.assert_allclose(got.loss[runs, place], records.loss, rtol=1e-4, atol=1e-6)
    for kept, last in zip(jax.tree.leaves(got.weights), jax.tree.leaves(final), strict=True):
        np.testing.assert_allclose(kept[runs, place], last, rtol=1e-4, atol=1e-5)


@built
def test_a_curve_of_the_native_engine_does_not_depend_on_threads_or_company():
    together = curves(SMALL, 60, every=7, runs=range(40), seed=SEED, engine="lanes", threads=2)
    alone = curves(SMALL, 60, every=7, runs=[23], seed=SEED, engine="lanes", threads=1)
    assert np.array_equal(alone.accuracy[0], together.accuracy[23])
    assert np.array_equal(alone.loss[0], together.loss[23])
    apart = curves(SMALL, [14, 60], runs=[23], seed=SEED, engine="lanes")
    assert np.array_equal(apart.loss[0], together.loss[23][[2, -1]])


@pytest.mark.long
def test_more_runs_than_slots_are_recorded_in_turns(monkeypatch):
    monkeypatch.setattr(recorder, "default_slots", lambda program, runs: 2)
    in_turns = curves(SMALL, 14, every=7, runs=(0, 1, 2), engine="jax", weights=True)
    monkeypatch.undo()
    at_once = curves(SMALL, 14, every=7, runs=(0, 1, 2), engine="jax", weights=True)
    np.testing.assert_allclose(in_turns.loss, at_once.loss, rtol=1e-5)
    np.testing.assert_allclose(in_turns.weights[0]["w"], at_once.weights[0]["w"], rtol=1e-4, atol=1e-6)


# A rate at which some runs diverge and others do not.
DIVERGENT = pl.Setup(
    pl.Parity(6, 2, sample=20),
    pl.Learner(pl.MLP(6, "power:2"), loss="square", optimiser=pl.SGD(0.25), batch=16),
    pl.Protocol(eval_size=20),
)


@pytest.mark.parametrize("engine", [pytest.param("jax", marks=pytest.mark.long), ENGINES[-1]])
def test_a_diverging_run_is_nan_from_then_on_and_disturbs_no_other(engine):
    with np.errstate(over="ignore", invalid="ignore"):
        got = curves(DIVERGENT, 100, every=5, runs=range(20), engine=engine, weights=True, train=True)
    gone = np.isnan(got.loss)
    assert 0 < gone.any(axis=1).sum() < 20
    assert np.array_equal(gone, np.logical_or.accumulate(gone, axis=1))
    assert not gone[:, 0].any()
    for values in (got.accuracy, got.train_accuracy, got.train_loss, got.weights[0]["w"][..., 0, 0]):
        assert np.array_equal(np.isnan(values), gone)
    healthy = np.flatnonzero(~gone.any(axis=1))
    alone = curves(DIVERGENT, 100, every=5, runs=healthy, engine=engine)
    np.testing.assert_allclose(alone.loss, got.loss[healthy], rtol=1e-3)
    assert (got.first(1.0)[gone.all(axis=1)] == -1).all()


def test_the_first_step_of_a_threshold():
    accuracy = np.array([[0.5, 0.9, 0.8, 1.0], [0.5, 0.6, np.nan, np.nan]])
    made = module.Curves(np.array([0, 3, 10, 20]), accuracy, loss=accuracy, train_accuracy=accuracy[::-1])
    assert made.first(0.9).tolist() == [3, -1]
    assert made.first().tolist() == [20, -1]
    assert made.first(0.5).tolist() == [0, 0]
    assert made.first_train(0.6).tolist() == [3, 3]
    with pytest.raises(InvalidInput, match="train=True"):
        replace(made, train_accuracy=None).first_train()


@pytest.mark.parametrize("engine", ENGINES)
def test_the_start_alone_and_a_schedule(engine):
    scheduled = replace(SMALL, learner=replace(SMALL.learner, optimiser=pl.SGD(0.4, schedule="cosine:20")))
    start_only = curves(scheduled, [0], engine=engine)
    assert start_only.loss.shape == (1, 1)
    assert start_only.loss[0, 0] == curves(scheduled, 20, every=20, engine=engine).loss[0, 0]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"steps": 10}, "needs every"),
        ({"steps": 10, "every": 0}, "needs every"),
        ({"steps": -1, "every": 2}, "at least 0"),
        ({"steps": [0, 5], "every": 2}, "every is for one number"),
        ({"steps": []}, "increasing"),
        ({"steps": [3, 3]}, "increasing"),
        ({"steps": [-1, 3]}, "increasing"),
        ({"steps": [0.5, 3]}, "increasing"),
        ({"steps": 10, "every": 5, "runs": ()}, "at least one run"),
        ({"steps": 2**31, "every": 2**30}, "below 2"),
        ({"steps": 10**6, "every": 1, "runs": range(100), "weights": True}, r"take 22.0 GB; allowed: 4 GB"),
        ({"steps": 10, "every": 5, "engine": "lane"}, "did you mean 'lanes'"),
    ],
    ids=str,
)
def test_what_cannot_be_recorded_is_refused_in_one_line(options, says):
    with pytest.raises(InvalidInput, match=says) as caught:
        curves(SMALL, **options)
    assert "\n" not in str(caught.value)


SKILLED = {
    "parity": pl.Setup(PARITY, MLP),
    "tasks": pl.Setup(pl.Problem(9, pl.Tasks([(3, 4), (5, 6, 7), (4, 8)], (1, 2, 3)), scale=-5.0),
                      replace(MLP, network=pl.MLP(6, inputs="bits"), loss="square", optimiser=pl.SGD(0.01))),
    "outputs": pl.Setup(pl.Problem(9, pl.Outputs([(0,), (2, 3)])), replace(MLP, network=pl.MLP(5, outputs=2))),
    "composed tasks": pl.Setup(pl.Problem(9, pl.Tasks([(3, 4), (5, 6), (4, 8)], controls=[(0,), (1,), (0, 1)])), MLP),
}


@pytest.mark.parametrize("name", long_but(SKILLED, "tasks"))
def test_skills_are_covariances_of_outputs_and_label_signs(name):
    setup = replace(SKILLED[name], protocol=pl.Protocol(eval_size=200))
    found = curves(setup, [0, 7, 40], runs=[2, 5], seed=SEED, engine="jax", weights=True)
    tasks = max(setup.problem.tasks, setup.learner.network.outputs)
    assert found.task_skill.shape == (2, 3, tasks)
    for i, run in enumerate((2, 5)):
        for point, step in enumerate(found.steps):
            params = jax.tree.map(lambda leaf, i=i, point=point: np.asarray(leaf[i, point], np.float64), found.weights)
            expected = oracle.skills(setup, SEED, run, params, step)
            np.testing.assert_allclose(found.task_skill[i, point], expected, rtol=1e-4, atol=1e-6)


def test_the_label_itself_has_skill_1():
    learner = pl.Learner(pl.MLP(16), optimiser=pl.Adam(0.01), loss="square")
    found = curves(pl.Setup(pl.Problem(6, (0, 1), scale=2.0), learner, pl.Protocol(eval_size=512)), [0, 2500],
                   engine="jax")
    assert abs(found.task_skill[0, 0, 0]) < 0.3
    assert found.task_skill[0, 1, 0] == pytest.approx(1, abs=0.01)
