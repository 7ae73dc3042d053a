"""A pool of the native kernel: its runs, whose company changes nothing, what it refuses, records and asks for."""

# ruff: noqa: C408 - options are keyword arguments everywhere else, so they are here

from __future__ import annotations

import math

import numpy as np
import pytest
from kernel_reference import Factors
from native_pools import DEFAULTS, ISAS, _lanes, add, make_run


def many_runs(cfg, count=75):
    rng = np.random.default_rng(5)
    runs = [
        make_run(cfg, seed=i, lr=0.3 * rng.random(), tau=0.1 * (i % 5 == 0), flip=2**28 * (i % 3 == 0))
        for i in range(count)
    ]
    return runs, rng.integers(1, 300, count)


def records(cfg, runs, max_steps, chunks=1, seconds=60.0):
    pool = _lanes.Pool(**cfg)
    parts = []
    for chunk in np.array_split(np.arange(len(runs)), chunks):
        add(pool, [runs[i] for i in chunk], chunk, max_steps[chunk])
        parts.append(pool.advance(seconds))
    while pool.stock + pool.active:
        parts.append(pool.advance(seconds))
    joined = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    order = np.argsort(joined["tag"])
    return {name: column[order].tobytes() for name, column in joined.items()}


@pytest.mark.parametrize(
    "options",
    [
        dict(n=33, width=12, batch=5, eval_every=20),
        dict(n=20, width=5, batch=1, eval_every=7, layout="lanes"),
        dict(n=20, width=21, batch=40, layout="within", activation="gelu", activation_params=[]),
        dict(n=20, width=21, batch=70, layout="deep"),
        dict(n=20, width=100, below=[35, 113], rates=[1.0] * 4, batch=5, loss_params=[0.3]),
        dict(n=20, width=50, batch=70, layout="tables"),
        dict(n=40, width=17, batch=60, sample=60, replacement=False, layout="tables", bits=True, rule="adam",
             rule_params=[0.9, 0.99, 1e-8], clip=0.5),
        dict(n=12, width=9, batch=8, sample=50, replacement=False, eval_every=64, bits=True),
        dict(n=12, width=4, batch=8, family="polynet", loss="logistic", decay_coupled=0.01, eval_fresh=True),
        dict(n=33, width=12, batch=5, rule="adam", rule_params=[0.9, 0.999, 1e-8], decay_gradient=0.1),
        dict(n=20, width=21, batch=40, layout="within", rule="momentum", rule_params=[0.9, 1.0], clip=0.5),
        dict(n=20, width=5, batch=1, layout="lanes", rule="rmsprop", rule_params=[0.99, 1e-8, 0.5], clip=0.5),
        dict(n=20, width=40, below=[35], rates=[1.0] * 3, batch=70, rule="sign", rule_params=[0.9, 0.99], clip=0.5),
        dict(n=20, width=40, below=[35], rates=[1.0] * 3, rule="adam", rule_params=[0.9, 0.99, 1e-8], clip=0.5),
    ],
    ids=["online", "single", "within", "deep of one", "deep", "tables", "tables of a whole sample", "sample", "polynet",
         "adam", "momentum", "rmsprop", "sign", "deep adam"],
)
def test_records_do_not_depend_on_company(options):
    cfg = DEFAULTS | dict(eval_size=32, allowed_errors=5) | options
    runs, max_steps = many_runs(cfg)
    expected = records(cfg, runs, max_steps)
    for threads in (2, 3):
        assert records(cfg | dict(threads=threads), runs, max_steps) == expected
    assert records(cfg, runs, max_steps, chunks=4) == expected
    assert records(cfg | dict(threads=2), runs, max_steps, chunks=75, seconds=0.0005) == expected
    assert records(cfg, runs, max_steps, seconds=0.01) == expected
    if "avx512" in ISAS:
        assert records(cfg | dict(isa="avx2"), runs, max_steps) == expected


@pytest.mark.parametrize("layout", ["lanes", "within", "deep", "samples", "tables"])
@pytest.mark.parametrize(
    "options",
    [{}, dict(activation="power", activation_params=[3.0]), dict(sample=40, batch=40), dict(family="polynet", width=5)],
    ids=str,
)
def test_runs_that_fail_late_are_judged_alike_at_every_check(layout, options):
    """A guess has error 801 in a block of hundreds of inputs, which from then on is the first that is looked at."""
    cfg = DEFAULTS | dict(n=30, width=300, batch=32, eval_size=4096, allowed_errors=800, layout=layout) | options
    runs, last = [make_run(cfg, seed, lr=0.0) for seed in range(4)], np.full(4, 200)
    try:
        once = records(cfg | dict(eval_every=200), runs, last)
    except ValueError:
        pytest.skip("this layout is not for this network")
    assert records(cfg | dict(eval_every=10), runs, last) == once


def test_discard_forgets_runs_waiting_and_running():
    cfg = DEFAULTS | dict(n=30, width=8, allowed_errors=0)
    runs = [make_run(cfg, seed=i, lr=1e-7) for i in range(60)]
    long = np.full(60, 10**9)
    pool = _lanes.Pool(**cfg | dict(isa=ISAS[-1]))  # four slots
    add(pool, runs, np.arange(60), long)
    kept = [1, 30, 59]
    assert len(pool.advance(0.01)["tag"]) == 0
    assert (pool.active, pool.stock, pool.slots) == (4, 56, 4)
    assert pool.model_steps > 0
    assert pool.model_steps % 4 == 0
    pool.discard([t for t in range(60) if t not in kept])
    assert pool.stock + pool.active == 3
    add(pool, [runs[3]], [100], [50])
    first = pool.advance(0.02)
    assert list(first["tag"]) == [100]
    alone = _lanes.Pool(**cfg | dict(isa=ISAS[-1]))
    add(alone, [runs[3]], [100], [50])
    assert all((v == first[k]).all() for k, v in alone.advance(10).items())
    pool.discard(kept)
    assert pool.stock + pool.active == 0
    assert len(pool.advance(10)["tag"]) == 0


@pytest.mark.parametrize("layout", ["lanes", "within", "deep"])
def test_divergence_is_seen(layout):
    cfg = DEFAULTS | dict(n=10, activation="power", activation_params=[3], loss="square", loss_params=[], layout=layout)
    wild, tame = make_run(cfg, lr=1e6), make_run(cfg, lr=1e-3)
    pool = _lanes.Pool(**cfg)
    add(pool, [wild, tame], [0, 1], [100, 100])
    got = pool.advance(10)
    assert list(got["status"]) == [2, 1]
    assert list(got["t_c"]) == [-1, -1]
    assert list(got["steps"]) == [10, 100]
    assert math.isfinite(got["loss"][1])
    assert np.isfinite(got["W"][1]).all()


@pytest.mark.parametrize(
    "options",
    [
        dict(family="cnn"), dict(n=0), dict(width=0), dict(batch=0), dict(activation="tanh"), dict(loss="0-1"),
        dict(activation_params=[]), dict(loss_params=[1.0, 2.0]), dict(family="neuron", width=2), dict(threads=0),
        dict(isa="mmx"), dict(layout="diagonal"), dict(eval_every=0), dict(consecutive=0),
        dict(family="polynet", layout="within"), dict(family="neuron", width=1, layout="deep"), dict(rates=[1.0]),
        dict(below=[3]), dict(below=[0], rates=[1.0] * 3), dict(below=[3], rates=[1.0] * 3, layout="within"),
        dict(family="polynet", below=[3], rates=[1.0] * 3), dict(sample=-1),
        dict(activation_params=[1.0], layout="tables"),
    ],
    ids=str,
)
def test_bad_configurations_are_refused(options):
    with pytest.raises(ValueError):
        _lanes.Pool(**DEFAULTS | options)


def test_bad_runs_are_refused():
    run = make_run(DEFAULTS)
    pool = _lanes.Pool(**DEFAULTS)
    with pytest.raises(ValueError, match="max_steps"):
        add(pool, [run], [0], [0])
    run["mask"] = np.zeros(2, np.uint32)
    with pytest.raises(ValueError, match="mask"):
        add(pool, [run], [0], [5])
    assert pool.stock == 0


@pytest.mark.parametrize(
    ("trace", "options"),
    [(([], 1, False, 0.0), {}), (([3, 3], 1, False, 0.0), {}), (([-1, 3], 1, False, 0.0), {}),
     (([0, 3], 0, False, 0.0), {}), (([0, 3], 1, True, 0.0), dict(sample=0))],
)
def test_bad_traces_are_refused(trace, options):
    with pytest.raises(ValueError, match="trace"):
        _lanes.Pool(**DEFAULTS | options, trace=trace)


def test_a_trace_takes_the_runs_it_has_rows_for_and_is_given_when_all_are_done():
    pool = _lanes.Pool(**DEFAULTS, trace=([0, 3], 2, False, 0.0))
    run = make_run(DEFAULTS)
    for tag, max_steps in ((2, 3), (-1, 3), (0, 2)):
        with pytest.raises(ValueError, match=r"tag|max_steps"):
            add(pool, [run], [tag], [max_steps])
    add(pool, [run], [1], [3])
    with pytest.raises(ValueError, match="not all runs are done"):
        pool.take_trace()
    assert len(pool.advance(60.0)["tag"]) == 0
    traced = pool.take_trace()
    assert np.isnan(traced["loss"][0]).all()  # nobody wrote this row
    assert np.isfinite(traced["loss"][1]).all()
    assert (traced["W"][1, 0] == run["start"]["W"]).all()
    with pytest.raises(ValueError, match="has none"):
        pool.take_trace()
    with pytest.raises(ValueError, match="trace"):
        _lanes.Pool(**DEFAULTS).take_trace()


def test_factors_are_asked_for_where_runs_are_and_forgotten_behind_them():
    size = _lanes.SCHEDULE_BLOCK
    first = np.linspace(1, 0.5, 2 * size, dtype=np.float32)
    first[size + 7 :] = 0  # from there on nothing moves
    cfg = DEFAULTS | dict(n=3, width=1, batch=1, eval_every=10**9, eval_size=1)
    moving, standing = Factors(first, size), Factors(np.concatenate([first, np.zeros(size)]), size)
    ends = []
    for factors, steps in ((moving, size + 7), (standing, 2 * size + 9)):
        pool = _lanes.Pool(**cfg | dict(schedule=factors))
        add(pool, [make_run(cfg)] * 3, range(3), [5, steps, steps])
        ends.append(pool.advance(60.0)["W"][1:])
    assert moving.asked == [0, 1]
    assert standing.asked == [0, 1, 2]  # not one for each run, and none of the steps up to the limit
    assert np.array_equal(*ends)


@pytest.mark.parametrize("block", [np.ones(5, np.float32), "none"], ids=str)
def test_a_schedule_that_gives_something_else_is_refused(block):
    pool = _lanes.Pool(**DEFAULTS | dict(schedule=lambda number: block))
    add(pool, [make_run(DEFAULTS)], [0], [5])
    with pytest.raises((ValueError, RuntimeError, TypeError)):
        pool.advance(1.0)
