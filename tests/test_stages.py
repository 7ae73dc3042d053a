"""What a store knows of runs that were trained under several step limits: no choice of fast or of slow ones."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from simulated import sample

import paritylab as pl
from paritylab import statistics
from paritylab.running.races import Entry, enter, extend
from paritylab.site import results as site
from paritylab.storage import stages
from paritylab.storage.records import CENSORED, SOLVED, Records
from paritylab.storage.store import Store

TIMES = np.array([20, 40, 40, 60, 90, 110, 170, 300, 310, 900])


def setup(limit, every=10):
    return pl.Setup(pl.Parity(8, 2), protocol=pl.Protocol(limit, every))


def put(store, limit, records, every=10):
    mine = setup(limit, every)
    store.append(mine.id, mine.to_json(), "jax", 0, records)
    return mine.id


def completed(store):
    about = store.parameters().select("setup_id", "family", "max_steps", "eval_every").collect()
    return {key[0]: records for key, records in stages.completed(store.gather(), about).split()}


def told(store):
    limits = dict(store.parameters().select("setup_id", "max_steps").collect().iter_rows())
    return {limits[setup_id]: records for setup_id, records in completed(store).items()}


@pytest.fixture
def raced(tmp_path):
    """A race that stopped after 160 steps: six runs had ended, four stopped."""
    store = Store(tmp_path / "store")
    ended = sample(TIMES, 160)
    put(store, 1000, ended.take(ended.status == SOLVED))
    put(store, 160, ended.take(ended.status == CENSORED))
    return store


def test_runs_that_a_race_keeps_apart_are_put_together_again(raced):
    complete = statistics.summary(sample(TIMES, 160))
    assert complete.median == 100
    for records in told(raced).values():
        assert statistics.summary(records) == complete


def test_the_store_of_a_real_race_says_what_the_race_says(tmp_path):
    store = Store(tmp_path / "store")
    mine = pl.Setup(pl.Parity(8, 2), pl.Learner(pl.MLP(8), optimiser=pl.SGD(0.05), batch=16), pl.Protocol(700, 2, 64))
    (entry,) = enter([mine], 10, 12, engine="jax")
    for steps in (100, 200):
        entry = extend(entry, steps, engine="jax", store=store)
    assert isinstance(entry, Entry)
    assert 0 < entry.solved_fraction < 1
    assert statistics.summary(completed(store)[mine.id]) == entry.summary
    assert len(store.records(mine.id, "jax", 0)) < 12


def test_results_and_the_site_count_stopped_runs(raced, capsys, tmp_path):
    from paritylab.cli import main

    assert main(["results", "--out", str(tmp_path), "--json", "--setup", setup(1000).id]) == 0
    (row,) = json.loads(capsys.readouterr().out)["results"]
    assert (row["runs"], row["solved"], row["median"], row["p90"]) == (10, 6, 100, None)
    assert [row["runs"] for row in site.summaries(tmp_path)] == [10, 10]
    assert main(["results", "--out", str(tmp_path), "--json", "--records"]) == 0
    assert len(json.loads(capsys.readouterr().out)["results"]) == 10


def test_sweeps_with_different_step_limits_are_left_as_they_are(tmp_path):
    store = Store(tmp_path)
    short, long = sample(TIMES, 160), sample(TIMES[:3], 1000)
    put(store, 160, short)
    put(store, 1000, long)
    assert [len(told(store)[limit]) for limit in (160, 1000)] == [10, 3]


def test_a_longer_run_tells_how_a_shorter_one_ended_as_far_as_both_were_checked(tmp_path):
    store = Store(tmp_path)
    put(store, 95, sample(np.array([500]), 95))  # checks at 10, ..., 90 and 95
    long = sample(np.array([40, 100, 300]), 1000)
    put(store, 1000, Records(long.run + 1, long.status, long.t_c, long.steps, long.accuracy, long.loss))
    short = told(store)[95]
    assert short.run.tolist() == [0, 1, 2, 3]
    assert short.t_c.tolist() == [-1, 40, -1, -1]
    assert short.steps.tolist() == [95, 40, 90, 90]
    assert math.isnan(short.accuracy[2])
    assert told(store)[1000].steps.tolist() == [95, 40, 100, 300]
