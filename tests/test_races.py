"""Races: the answer of an exhaustive sweep, for less; nothing that ended is lost, nothing is trained twice."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from blocks import same
from hypothesis import given, settings
from hypothesis import strategies as st

import paritylab as pl
from paritylab import engines, statistics
from paritylab.engines import lanes
from paritylab.errors import InvalidInput
from paritylab.running.races import decide, enter, extend, race
from paritylab.running.sweeps import Result, sweep
from paritylab.storage.records import CENSORED, DIVERGED, SOLVED, Records

NATIVE = pytest.mark.skipif(lanes.kernel() is None, reason="the native kernel was not built")
PROTOCOL = pl.Protocol(max_steps=700, eval_size=64)


def grid(problem, network, *rates, batch=16, protocol=PROTOCOL):
    return [pl.Setup(problem, pl.Learner(network, optimiser=pl.SGD(lr), batch=batch), protocol) for lr in rates]


SETUPS = grid(pl.Parity(8, 2), pl.MLP(8), 0.001, 0.05, 0.15, protocol=pl.Protocol(700, 2, 64))


def answer(results):
    """Position, 10th percentile and interval of the best of exhaustive Results."""
    best = min(range(len(results)), key=lambda i: results[i].summary.p10)
    return best, results[best].summary.p10, results[best].summary.p10_interval


def raced(result):
    position = [entry is result.best for entry in result.rates].index(True)
    return position, result.best.percentile, result.best.interval


def no_training(*_, **__):
    raise AssertionError("nothing should be trained")


# --- the rule, on made-up times -----------------------------------------------------------------------------

EVERY, LAST = 10, 400
TEMPLATE = replace(SETUPS[0], protocol=pl.Protocol(max_steps=LAST, eval_every=EVERY))
# A run is solved or diverges at a check, or (0) neither
FATES = st.tuples(st.sampled_from([SOLVED, SOLVED, SOLVED, DIVERGED]), st.integers(0, LAST // EVERY))


def outcome(fates, limit):
    """Records of runs with these fates after ``limit`` steps."""
    status, steps = (np.array(column) for column in zip(*fates, strict=True))
    steps = EVERY * steps
    ended = (steps > 0) & (steps <= limit)
    status, steps = np.where(ended, status, CENSORED), np.where(ended, steps, limit)
    return Records(range(len(fates)), status, np.where(status == SOLVED, steps, -1), steps, 0 * steps, 0 * steps)


@given(
    fates=st.integers(1, 30).flatmap(
        lambda runs: st.lists(st.lists(FATES, min_size=runs, max_size=runs), min_size=1, max_size=4)
    ),
    q=st.sampled_from([0, 10, 25, 50, 90, 100]),
    follow=st.sampled_from([0, 0, 35, 200, 10_000]),
)
@settings(max_examples=60, deadline=None)
def test_the_answer_is_that_of_complete_runs(fates, q, follow):
    def extended(entry, steps):
        limit = min(-(-steps // EVERY) * EVERY, LAST)
        assert limit > entry.horizon, "each stage must make progress"
        return replace(entry, records=outcome(fates[int(entry.seconds)], limit))

    start = enter([TEMPLATE], q, len(fates[0]), engine="jax") * len(fates)
    entries = decide([replace(entry, seconds=i) for i, entry in enumerate(start)], extended, follow)
    complete = [outcome(each, LAST) for each in fates]
    truth = [statistics.percentile(records.t_c, records.status, q) for records in complete]
    best = truth.index(min(truth))
    assert pl.Race(tuple(entries), 0.0).best is entries[best]
    assert entries[best].percentile == truth[best]
    assert entries[best].interval == statistics.percentile_interval(complete[best].t_c, complete[best].status, q)
    for entry, value, records in zip(entries, truth, complete, strict=True):
        assert entry.low <= value <= entry.percentile
        assert entry.known or entry.low >= follow
        low, high = statistics.percentile_interval(records.t_c, records.status, q)
        assert entry.interval[0] <= low <= high <= entry.interval[1]


def test_a_rate_that_cannot_win_is_followed_no_further_than_the_best_percentile():
    fates = [[(SOLVED, 12)] * 25, [(SOLVED, 0)] * 25]
    stages = []

    def extended(entry, steps):
        stages.append((int(entry.seconds), steps))
        return replace(entry, records=outcome(fates[int(entry.seconds)], -(-steps // EVERY) * EVERY))

    start = enter([TEMPLATE] * 2, 10, 25, engine="jax")
    decide([replace(entry, seconds=i) for i, entry in enumerate(start)], extended)
    assert stages == [(0, 160), (1, 120)]


def test_a_percentile_between_a_known_and_an_unknown_time_can_still_win():
    # 25 runs: 0.6 t(3) + 0.4 t(4). The second rate has three runs at 10; it wins if its fourth is solved before 235.
    for fourth, winner in ((23, 1), (24, 0)):
        fates = [[(SOLVED, 10)] * 25, [(SOLVED, 1)] * 3 + [(SOLVED, fourth)] + [(SOLVED, 0)] * 21]

        def extended(entry, steps, fates=fates):
            return replace(entry, records=outcome(fates[int(entry.seconds)], -(-steps // EVERY) * EVERY))

        start = enter([TEMPLATE] * 2, 10, 25, engine="jax")
        entries = decide([replace(entry, seconds=i) for i, entry in enumerate(start)], extended)
        assert pl.Race(tuple(entries), 0.0).best is entries[winner]
        assert entries[1].horizon == (LAST if winner else 240)


# --- with engines -------------------------------------------------------------------------------------------

GRIDS = {
    "relu": grid(pl.Parity(10, 3), pl.MLP(20), 0.001, 0.1, 1.0),
    "slow first": SETUPS,
    "diverging": grid(pl.Parity(8, 3), pl.MLP(10, "power:3"), 100.0, 1.0, 0.1, 0.01),
    "all diverge": grid(pl.Parity(8, 3), pl.MLP(4, "power:3"), 1000.0, 100.0),
    "nothing solved": grid(pl.Parity(12, 3), pl.MLP(2), 1e-5, 1e-4, protocol=pl.Protocol(max_steps=45, eval_size=64)),
    "neuron": grid(pl.Parity(12, 2), pl.Neuron("sinusoid:2"), 1.0, 0.1, 0.01),
    "polynet": grid(pl.Parity(9, 3), pl.PolyNet(3), 1.0, 0.1, 0.01),
    "unequal programs": [*grid(pl.Parity(8, 2), pl.MLP(8), 0.1), *grid(pl.Parity(8, 2), pl.MLP(16), 1.0)],
    "long checks": grid(pl.Parity(8, 2), pl.MLP(8), 0.01, 1.0, protocol=pl.Protocol(500, 70, 64, 0.9, 2, True)),
}


FURTHER = ("relu", "all diverge", "neuron", "polynet")


@pytest.mark.parametrize(
    ("name", "engine"),
    [*(pytest.param(name, "jax", marks=pytest.mark.long) for name in ("slow first", "diverging", "long checks")),
     *(pytest.param(name, "lanes", marks=[NATIVE, pytest.mark.long] if name in FURTHER else NATIVE) for name in GRIDS)],
)
def test_a_race_has_the_answer_of_the_exhaustive_sweep(name, engine):
    for seed in range(2 if engine == "jax" else 10):
        results = sweep(GRIDS[name], runs=21, seed=seed, engine=engine)
        result = race(GRIDS[name], runs=21, seed=seed, engine=engine)
        assert raced(result) == answer(results)
        for entry, complete in zip(result.rates, results, strict=True):
            ended = ~entry.pending
            assert same(entry.records.take(ended), complete.records.take(ended))
            assert (complete.records.steps >= entry.records.steps).all()
            assert entry.low <= complete.summary.p10 <= entry.percentile


@pytest.mark.long
def test_the_race_costs_less_than_the_sweep():
    result = race(SETUPS, runs=25, engine="jax")
    assert not result.rates[0].known
    assert result.rates[0].horizon < 700 / 4
    assert result.rates[0].low == result.rates[0].horizon


@pytest.mark.long
def test_a_followed_rate_is_known_or_beyond():
    result = race(SETUPS, runs=25, engine="jax", follow=300)
    assert all(entry.known or entry.low >= 300 for entry in result.rates)
    assert result.rates[1].known


def test_an_entry_whose_runs_all_ended_is_the_exhaustive_result():
    result = race(SETUPS, runs=10, engine="jax", follow=math.inf)
    for entry, complete in zip(result.rates, sweep(SETUPS, runs=10, engine="jax"), strict=True):
        assert same(extend(entry, 700, "jax").records, complete.records)
        assert entry.summary.p10 == complete.summary.p10


# --- and a store --------------------------------------------------------------------------------------------


@pytest.fixture
def store(tmp_path):
    return pl.Store(tmp_path / "store")


def told(result: pl.Race):
    """What a race says, less how long it took."""
    return [{**entry.to_dict(), "seconds": 0} for entry in result.rates]


def test_only_ended_runs_are_stored_under_the_setups_of_the_race(store):
    result = race(SETUPS, runs=12, engine="jax", store=store)
    assert result.rates[0].pending.all()
    assert len(store.records(SETUPS[0].id, engines.label("jax"), 0)) == 0
    for entry in result.rates:
        assert same(store.records(entry.setup.id, engines.label("jax"), 0), entry.records.take(~entry.pending))
        assert entry.reused == 0


def test_a_repeated_race_trains_nothing(store, monkeypatch):
    first = race(SETUPS, runs=12, engine="jax", store=store)
    monkeypatch.setattr(engines, "train", no_training)
    again = race(SETUPS, runs=12, engine="jax", store=store)
    assert told(again) == told(first) == told(race(SETUPS, runs=12, engine="jax", store=store))
    assert [entry.reused for entry in again.rates] == [12, 12, 12]


def test_a_race_after_a_sweep_trains_nothing_and_says_the_same(store, monkeypatch):
    fresh = race(SETUPS, runs=12, engine="jax")
    sweep(SETUPS, runs=12, engine="jax", store=store)
    monkeypatch.setattr(engines, "train", no_training)
    assert told(race(SETUPS, runs=12, engine="jax", store=store)) == told(fresh)


@pytest.mark.parametrize("patience", [*(pytest.param(turns, marks=pytest.mark.long) for turns in (1, 30, 45)), 7])
def test_an_interrupted_race_goes_on_where_it_stopped_and_loses_nothing(store, monkeypatch, patience):
    train, ended = engines.train, 0

    def one_by_one(*arguments):
        nonlocal ended
        for items in train(*arguments):
            for job, records in items:
                for i in range(len(records)):
                    ended += 1
                    yield [(job, records.take(np.array([i])))]
                    if ended == patience:
                        raise KeyboardInterrupt

    monkeypatch.setattr(engines, "train", one_by_one)
    with pytest.raises(KeyboardInterrupt):
        race(SETUPS, runs=12, engine="jax", store=store)
    resumed = race(SETUPS, runs=12, engine="jax", store=store)
    total, ended = ended, patience  # so that the next is not interrupted
    fresh = race(SETUPS, runs=12, engine="jax")
    assert told(resumed) == told(fresh)
    assert total == ended - patience


# --- what it says -------------------------------------------------------------------------------------------


def test_a_race_says_everything_in_plain_json():
    result = race(SETUPS, runs=12, engine="jax", seed=3)
    document = result.to_dict()
    assert json.loads(json.dumps(document, allow_nan=False)) == document
    assert [entry["lr"] for entry in document["rates"]] == [0.001, 0.05, 0.15]
    slow, best = document["rates"][0], document["best"]
    assert (slow["known"], slow["percentile"], slow["low"]) == (False, None, slow["horizon"])
    assert best["known"]
    assert best["percentile"] == best["p10"] == best["low"]
    assert str(result.rates[0]) == f"10 % above {slow['horizon']}, solved 0 % of 12 by step {slow['horizon']}"
    assert str(result.best).startswith(f"10 % {best['percentile']:g} [")
    assert isinstance(result.best, Result)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [({"runs": 0}, "at least one run"), ({"q": 101}, "between 0 and 100"), ({"seed": -1}, "seed must be in"),
     ({"engine": "lane"}, "did you mean 'lanes'"), ({"runs": range(-3, 2)}, "at least 0")],
)
def test_impossible_races_are_refused(arguments, says):
    with pytest.raises(InvalidInput, match=says):
        race(SETUPS, **{"engine": "jax", **arguments})


def test_a_race_needs_a_setup():
    with pytest.raises(InvalidInput, match="at least one setup"):
        race([])
