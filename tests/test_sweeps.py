"""Sweeps: nothing is trained twice, nothing that ended is lost, and Results say what they hold."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from blocks import same

import paritylab as pl
from paritylab import engines
from paritylab.engines import lanes
from paritylab.errors import InvalidInput
from paritylab.running.sweeps import sweep
from paritylab.storage.records import Records

SETUP = pl.Setup(
    pl.Parity(6, 2), pl.Learner(pl.MLP(8), optimiser=pl.SGD(1.0), batch=8), pl.Protocol(max_steps=100, eval_size=64)
)
OTHER = replace(SETUP, learner=replace(SETUP.learner, optimiser=pl.SGD(0.3)))
DEEP = replace(SETUP, learner=pl.Learner(pl.MLP((3, 3))))
LABEL = engines.label("jax")


class Trainer:
    """Stands in for engines.train: ends three runs at a time, remembers what it was asked for, may be interrupted."""

    def __init__(self, patience=None):
        self.asked: list[list[tuple[str, int, tuple[int, ...]]]] = []
        self.patience = patience

    def __call__(self, jobs, engine, threads=None):
        self.asked.append([(job.setup.id, job.seed, tuple(job.runs.tolist())) for job in jobs])
        rows = [(i, run) for i, job in enumerate(jobs) for run in job.runs]
        for first in range(0, len(rows), 3):
            if self.patience is not None:
                self.patience -= 1
                if self.patience < 0:
                    raise KeyboardInterrupt
            parts = []
            for i in {i for i, _ in rows[first : first + 3]}:
                run = np.array([run for j, run in rows[first : first + 3] if j == i])
                t_c = 10 * (1 + run % 4)
                parts.append((i, Records(run, np.zeros_like(run), t_c, t_c, np.ones(len(run)), np.zeros(len(run)))))
            yield parts


@pytest.fixture
def trainer(monkeypatch):
    trainer = Trainer()
    monkeypatch.setattr(engines, "train", trainer)
    return trainer


@pytest.fixture
def store(tmp_path):
    return pl.Store(tmp_path / "store")


def test_a_second_identical_sweep_trains_nothing(store, monkeypatch):
    first = sweep([SETUP, OTHER], runs=6, engine="jax", store=store)

    def fail(*_, **__):
        raise AssertionError("nothing should be trained")

    monkeypatch.setattr(engines, "train", fail)
    second = sweep([SETUP, OTHER], runs=6, engine="jax", store=store)
    for before, after in zip(first, second, strict=True):
        assert same(before.records, after.records)
        assert before.setup == after.setup
    assert len(first[0].records) == 6
    assert not same(first[0].records, first[1].records)


def test_more_runs_train_only_the_missing_ones(store, trainer):
    sweep([SETUP], runs=4, engine="jax", store=store)
    (result,) = sweep([SETUP], runs=9, engine="jax", store=store)
    assert trainer.asked == [[(SETUP.id, 0, (0, 1, 2, 3))], [(SETUP.id, 0, (4, 5, 6, 7, 8))]]
    assert result.records.run.tolist() == list(range(9))
    (fewer,) = sweep([SETUP], runs=2, engine="jax", store=store)
    assert fewer.records.run.tolist() == [0, 1]
    assert len(trainer.asked) == 2


def test_runs_may_be_a_range(store, trainer):
    sweep([SETUP], runs=range(3, 6), engine="jax", store=store)
    (result,) = sweep([SETUP], runs=range(2, 10, 2), engine="jax", store=store)
    assert trainer.asked[1] == [(SETUP.id, 0, (2, 6, 8))]
    assert result.records.run.tolist() == [2, 4, 6, 8]


def test_seeds_and_setups_are_kept_apart(store, trainer):
    sweep([SETUP], runs=2, seed=0, engine="jax", store=store)
    sweep([SETUP, OTHER], runs=2, seed=1, engine="jax", store=store)
    assert trainer.asked[1] == [(SETUP.id, 1, (0, 1)), (OTHER.id, 1, (0, 1))]
    assert store.runs(SETUP.id, LABEL, 0).tolist() == store.runs(OTHER.id, LABEL, 1).tolist() == [0, 1]


def test_setups_of_one_program_train_together_and_results_keep_their_order(trainer):
    results = sweep([SETUP, DEEP, OTHER], runs=4, engine="jax")
    assert [[setup_id for setup_id, *_ in call] for call in trainer.asked] == [[SETUP.id, OTHER.id], [DEEP.id]]
    assert [result.setup for result in results] == [SETUP, DEEP, OTHER]
    assert all(result.records.run.tolist() == [0, 1, 2, 3] for result in results)


def test_a_program_is_checked_once(trainer, monkeypatch):
    checked: list[str] = []
    monkeypatch.setattr(pl.Setup, "check", lambda setup: checked.append(setup.program.id))
    monkeypatch.setattr(lanes, "fits", lambda setup: False)
    sweep([SETUP, DEEP, OTHER], runs=1, engine="jax")
    assert sorted(checked) == sorted([SETUP.program.id, DEEP.program.id])


def test_what_the_kernel_takes_needs_no_check(trainer, monkeypatch):
    own = replace(SETUP, learner=replace(SETUP.learner, network=pl.MLP(4, "tanh")))
    two = pl.Problem(6, pl.Outputs([[0, 1], [2, 3]]))
    outputs = replace(SETUP, problem=two, learner=pl.Learner(pl.MLP(4, outputs=2)))
    checked: list[pl.Setup] = []
    monkeypatch.setattr(pl.Setup, "check", lambda setup: checked.append(setup))
    sweep([SETUP, DEEP, own, outputs], runs=1, engine="jax")
    assert checked == [own, outputs]


def test_what_is_stored_is_not_checked_again(store, trainer, monkeypatch):
    sweep([SETUP, DEEP], runs=2, engine="jax", store=store)
    checked: list[pl.Setup] = []
    monkeypatch.setattr(pl.Setup, "check", lambda setup: checked.append(setup))
    monkeypatch.setattr(lanes, "fits", lambda setup: False)
    sweep([SETUP, DEEP], runs=2, engine="jax", store=store)
    assert checked == []
    sweep([SETUP, OTHER, DEEP], runs=2, engine="jax", store=store)
    assert checked == [OTHER]


def test_without_a_store_everything_is_trained(trainer):
    for _ in range(2):
        sweep([SETUP], runs=3, engine="jax")
    assert len(trainer.asked) == 2


def test_no_runs_and_no_setups_are_fine(store, trainer):
    (result,) = sweep([SETUP], runs=0, engine="jax", store=store)
    assert len(result.records) == 0
    assert str(result) == "no runs"
    assert result.to_dict()["runs"] == result.model_steps == 0
    assert json.loads(json.dumps(result.to_dict(), allow_nan=False))["median"] is None
    assert sweep([], runs=5) == []
    assert trainer.asked == []
    assert not store.root.exists()


def test_an_interruption_keeps_what_was_finished(store, monkeypatch):
    monkeypatch.setattr(engines, "train", Trainer(patience=3))
    with pytest.raises(KeyboardInterrupt):
        sweep([SETUP, OTHER], runs=10, engine="jax", store=store)
    assert store.runs(SETUP.id, LABEL, 0).tolist() == list(range(9))
    trainer = Trainer()
    monkeypatch.setattr(engines, "train", trainer)
    results = sweep([SETUP, OTHER], runs=10, engine="jax", store=store)
    assert trainer.asked == [[(SETUP.id, 0, (9,)), (OTHER.id, 0, tuple(range(10)))]]
    assert all(result.records.run.tolist() == list(range(10)) for result in results)


def test_records_reach_the_store_while_the_sweep_goes_on(store, monkeypatch):
    seen = []

    class Watched(Trainer):
        def __call__(self, jobs, engine, threads=None):
            for parts in super().__call__(jobs, engine, threads):
                seen.append(len(store.runs(SETUP.id, LABEL, 0)))
                yield parts

    monkeypatch.setattr(engines, "train", Watched())
    monkeypatch.setattr("paritylab.running.sweeps.FLUSH_SECONDS", 0.0)
    sweep([SETUP], runs=12, engine="jax", store=store)
    assert seen == [0, 3, 6, 9]
    assert len(list(store.root.glob("blocks/*.parquet"))) == 1  # compacted at the end


def test_the_store_holds_the_setup_it_was_made_from(store, trainer):
    sweep([SETUP], runs=1, engine="jax", store=store)
    ((setup_id, document),) = store.setups()
    assert setup_id == SETUP.id
    assert pl.Setup.from_json(json.dumps(document)) == SETUP


def test_a_result_says_everything_in_plain_json(trainer):
    (result,) = sweep([SETUP], runs=8, engine="jax")
    document = result.to_dict()
    wanted = {"setup_id", "engine", "seed", "lr", "runs", "solved", "censored", "diverged", "p10", "median", "p90",
              "median_interval", "seconds", "model_steps"}
    assert wanted <= set(document)
    assert json.loads(json.dumps(document, allow_nan=False)) == document
    assert document["setup_id"] == SETUP.id
    assert document["engine"] == LABEL
    assert (document["runs"], document["solved"], document["censored"], document["diverged"]) == (8, 8, 0, 0)
    assert document["median"] == 25
    assert document["model_steps"] == result.model_steps == 200
    assert "solved 100.0 %" in str(result)


def test_a_result_can_be_drawn(trainer):
    (result,) = sweep([SETUP], runs=8, engine="jax")
    assert result.plot().axes


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"runs": -1}, "runs must be at least 0"),
        ({"runs": range(-2, 3)}, "at least 0"),
        ({"seed": -1}, "seed must be in"),
        ({"seed": 2**32}, "seed must be in"),
        ({"engine": "lane"}, "did you mean 'lanes'"),
        ({"store": "out/store"}, "store must be a paritylab.Store"),
    ],
)
def test_impossible_sweeps_are_refused(arguments, says, trainer):
    with pytest.raises(InvalidInput, match=says):
        sweep([SETUP], **{"runs": 2, "engine": "jax", **arguments})
    assert trainer.asked == []


def test_a_number_of_runs_may_come_from_numpy(trainer):
    assert len(sweep([SETUP], runs=np.int64(3), engine="jax")[0].records) == 3


def test_a_network_that_fails_is_refused_before_anything_is_trained(trainer):
    bad = replace(SETUP, learner=pl.Learner(pl.DisjointPolyNet(4)))
    with pytest.raises(InvalidInput, match="cannot split"):
        sweep([SETUP, bad], runs=2, engine="jax")
    assert trainer.asked == []


def test_measure_needs_nothing_but_a_problem(trainer):
    result = pl.measure(pl.Parity(6, 2), runs=3, engine="jax")
    assert result.setup == pl.Setup(pl.Parity(6, 2))
    assert not math.isnan(result.seconds)
