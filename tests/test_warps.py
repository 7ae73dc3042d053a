"""The GPU engine's kernels, emulated on the CPU: every exchange between lanes happens as CUDA defines it."""

from __future__ import annotations

import ctypes
import shutil
import sys
import threading
from dataclasses import replace
from types import SimpleNamespace

import jax
import numpy as np
import pytest
from blocks import same
from lengths import SLOW, long_but, slow_but
from native_problems import PROBLEMS
from same_curves import assert_same
from warps.cases import CASES, assert_follows_oracle, train
from warps.emulator import Emulator

import paritylab as pl
from paritylab import engines
from paritylab.engines import Job, choose, lanes, loop, warps
from paritylab.engines.curves import curves
from paritylab.engines.warps import device as devices
from paritylab.engines.warps import pool as pools
from paritylab.engines.warps.plan import Trace, _text, prelude
from paritylab.engines.warps.tracer import WarpsTracer
from paritylab.engines.work import Queue
from paritylab.errors import InvalidInput
from paritylab.setups import schedules
from paritylab.setups.problems import Stage
from paritylab.storage.records import CENSORED, DIVERGED, SOLVED

pytestmark = pytest.mark.skipif(shutil.which("c++") is None, reason="no C++ compiler")
built = pytest.mark.skipif(lanes.kernel() is None, reason="the native kernel was not built")
SEED = 5


@pytest.fixture(scope="module")
def emulator(tmp_path_factory) -> Emulator:
    return Emulator(tmp_path_factory.mktemp("kernels"))


SHORT = ("polynet, adam, everything", "warp: clipped, everything", "warp: adam without eps", "warp: sample in passes",
         "lane: no biases, everything", "neuron, batch 40, everything", "warp: two tiles, 33 inputs, batch 100",
         "team: two, width 100", "lane: staged tasks", "warp: mixture of three", "team: many tasks",
         "deep: four layers, everything", "large: adam", "warp: bits, the bias in a word of its own",
         "warp: tasks in turn, bits")


@pytest.mark.parametrize("name", slow_but(CASES, *SHORT))
def test_a_run_follows_the_oracle(name, emulator):
    assert_follows_oracle(name, emulator)


@pytest.mark.parametrize("name", long_but(["lane: everything", "warp: everything", "team: a frozen layer"],
                                          "warp: everything"))
def test_a_schedule_comes_in_blocks_and_runs_wait_for_the_next(name, emulator, monkeypatch):
    monkeypatch.setattr(schedules, "BLOCK", 8)  # of 33 steps
    asked = []
    block = schedules.Schedule.block
    monkeypatch.setattr(schedules.Schedule, "block", lambda self, number: asked.append(number) or block(self, number))
    assert_follows_oracle(name, emulator)
    assert set(asked) | {5} == {0, 1, 2, 3, 4, 5}  # one ahead, and none of the steps that no run has


# Whole runs -----------------------------------------------------------------------------------------------------

# 7 divides neither 150 nor 400; some runs are solved, some not. Adam's eps is above what rounding leaves of gradients
# that vanish.
PROTOCOL = pl.Protocol(max_steps=150, eval_every=7, eval_size=70)
WHOLE = {
    "lane": pl.Setup(pl.Parity(10, 3), pl.Learner(pl.MLP(10), optimiser=pl.SGD(0.3), batch=8), PROTOCOL),
    "warp": pl.Setup(pl.Parity(10, 3), pl.Learner(pl.MLP(10), optimiser=pl.SGD(0.5)), PROTOCOL),
    "team": pl.Setup(pl.Parity(10, 3), pl.Learner(pl.MLP(20), optimiser=pl.SGD(0.5)), PROTOCOL),
    "lane, momentum": pl.Setup(pl.Parity(10, 2), pl.Learner(pl.PolyNet(2), optimiser=pl.SGD(0.002, momentum=0.9)),
                               PROTOCOL),
    "warp, sample": pl.Setup(pl.Parity(10, 3, sample=300), pl.Learner(pl.MLP(10), optimiser=pl.SGD(0.5)), PROTOCOL),
    "team, adam": pl.Setup(pl.Parity(10, 3), pl.Learner(pl.MLP(20), optimiser=pl.Adam(0.01, eps=1e-3)), PROTOCOL),
    "lane, staged": pl.Setup(
        pl.Problem(10, (1, 3, 4), stages=(Stage(60, "biased:0.8", slide=True), Stage(90, batch=5, noise=0.05))),
        pl.Learner(pl.MLP(10), optimiser=pl.SGD(0.3), batch=8), PROTOCOL),
    "warp, tasks": pl.Setup(
        pl.Problem(10, pl.Tasks([(3, 4), (5, 6), (7,)], weights=(0.5, 0.4, 0.1), solved=(0, 1))),
        pl.Learner(pl.MLP(16), optimiser=pl.SGD(0.2)), PROTOCOL),
    "warp, leaky": pl.Setup(pl.LeakyParity(10, 3, support="random", leak=0.3), pl.Learner(optimiser=pl.SGD(0.5)),
                            PROTOCOL),
    "deep": pl.Setup(pl.Parity(10, 3), pl.Learner(pl.MLP((16, 10)), optimiser=pl.SGD(0.2)), PROTOCOL),
    "large": pl.Setup(pl.Parity(10, 3), pl.Learner(pl.MLP((20, 10)), optimiser=pl.SGD(0.2), batch=40), PROTOCOL),
}
TUNING = {kind: {"tiles": 1} if kind.startswith("team") else {} for kind in WHOLE}
TUNING["large"] = {"kernel": "large", "tiles": 1, "warps": 2}


@built
@pytest.mark.parametrize("kind", long_but(WHOLE, "lane, staged", "warp, tasks", slow=["large"]))
@pytest.mark.parametrize("strict", [True, pytest.param(False, marks=SLOW)])
def test_records_are_those_of_lanes(kind, strict, emulator):
    """Rounding differs, so that a run can be solved at another check; here no more than one in eight may."""
    setup = WHOLE[kind]
    if not strict:
        setup = replace(setup, protocol=replace(PROTOCOL, threshold=0.85, consecutive=2, fresh=True))
    longer = replace(setup, protocol=replace(setup.protocol, max_steps=400))
    support = {"k": 2, "support": (3, 5)} if not isinstance(setup.problem, pl.Problem) else {}
    other = replace(setup, problem=replace(setup.problem, **support))
    jobs = [Job(setup, SEED, np.arange(20)), Job(longer, SEED, np.arange(20, 30)), Job(other, SEED, np.arange(10))]
    got = train(jobs, emulator, **TUNING[kind]).records
    want, _ = engines.final_params(jobs, "lanes")
    assert {SOLVED, CENSORED} <= set(want.status)
    alike = (got.status == want.status) & (got.t_c == want.t_c)
    assert alike.mean() >= 7 / 8
    np.testing.assert_allclose(got.accuracy[alike], want.accuracy[alike], atol=2 / 70)
    assert np.median(np.abs(got.loss - want.loss)) < 1e-4


@pytest.mark.parametrize("kind", long_but(WHOLE, "lane, momentum", "warp, leaky", slow=["large"]))
@pytest.mark.parametrize("more", [{}, pytest.param({"threshold": 0.4, "consecutive": 3}, marks=SLOW)])
def test_records_do_not_depend_on_company_or_interruptions(kind, more, emulator, monkeypatch):
    protocols = [replace(PROTOCOL, max_steps=most, **more) for most in (60, 150)]
    jobs = [Job(replace(WHOLE[kind], protocol=p), SEED, np.arange(p.max_steps, p.max_steps + 12)) for p in protocols]
    whole = train(jobs, emulator, **TUNING[kind])
    monkeypatch.setattr(pools, "LAUNCH_SECONDS", 0.0)  # over at the first check
    sliced = train(jobs, emulator, **TUNING[kind])
    monkeypatch.setattr(pools, "MOST_ROWS", 5)  # runs wait for rows
    few = train(jobs, emulator, **TUNING[kind])
    for other in (sliced, few):
        assert same(other.records, whole.records)
        assert all(map(np.array_equal, jax.tree.leaves(other.params), jax.tree.leaves(whole.params)))


@pytest.mark.parametrize(("network", "batch", "tuning"), [
    (pl.MLP(8), 8, {}), (pl.MLP(8), 32, {}),
    pytest.param(pl.MLP((8, 8)), 8, {}, marks=pytest.mark.long),
    pytest.param(pl.MLP((8, 8)), 8, {"kernel": "large", "warps": 1}, marks=pytest.mark.long),
])
def test_divergence_is_seen_and_rates_are_the_runs_own(network, batch, tuning, emulator):
    learner = pl.Learner(network, loss="square", batch=batch)
    jobs = [
        Job(pl.Setup(pl.Parity(10, 2), replace(learner, optimiser=pl.SGD(lr)), replace(PROTOCOL, max_steps=30)), 0, [3])
        for lr in (1e30, 1e-3, 0.0)
    ]
    outcomes = train(jobs, emulator, **tuning)
    assert outcomes.records.status.tolist() == [DIVERGED, CENSORED, CENSORED]
    assert outcomes.records.steps.tolist() == [7, 30, 30]
    assert np.isnan(outcomes.records.loss).tolist() == [True, False, False]
    assert outcomes.records.accuracy[0] == 0
    moved = [np.abs(leaf[1] - leaf[2]).max() for leaf in jax.tree.leaves(outcomes.params)]
    assert 0 < max(moved) < 0.1


@built
@pytest.mark.parametrize("law", ["fixed:3000000000 xavier", "rademacher", "kaiming"])
@pytest.mark.parametrize("widths", [(3,), (3, 5)])
def test_runs_start_from_the_weights_of_lanes(law, widths, emulator):
    learner = pl.Learner(pl.MLP(widths), init=law, optimiser=pl.SGD(0.0), batch=2)
    setup = pl.Setup(pl.Parity(4, 2), learner, pl.Protocol(max_steps=1, eval_size=8))
    jobs = [Job(setup, 2**32 - 1, np.array([0, 1, 2**32 - 1]))]
    _, want = engines.final_params(jobs, "lanes")
    assert all(map(np.array_equal, jax.tree.leaves(train(jobs, emulator).params), jax.tree.leaves(want)))


TRACED = {
    "lane: sample of tasks": pl.Setup(PROBLEMS["sample of tasks"], pl.Learner(pl.MLP(5), batch=6)),
    "warp: sample of a law": pl.Setup(PROBLEMS["sample of a law"], pl.Learner(pl.MLP(5), batch=16)),
    "warp: tasks, adam, fresh": pl.Setup(PROBLEMS["two tasks"], pl.Learner(pl.MLP(5, "gelu"), optimiser=pl.Adam(0.01)),
                                         pl.Protocol(fresh=True)),
    "deep: sample": pl.Setup(pl.Parity(9, 2, sample=40), pl.Learner(pl.MLP((5, 20)))),
    "lane: polynet, scheduled": pl.Setup(
        pl.Parity(9, 2), pl.Learner(pl.PolyNet(2), optimiser=pl.SGD(0.01, momentum=0.5, schedule="steps:2,0.5"))),
}


@pytest.mark.parametrize("name", long_but(TRACED, "warp: sample of a law"))
def test_curves_are_those_of_jax(name, emulator, monkeypatch):
    monkeypatch.setattr(devices, "current", lambda: emulator)
    setup = replace(TRACED[name], protocol=replace(TRACED[name].protocol, eval_size=130))
    train = setup.problem.sample is not None
    with monkeypatch.context() as within:
        within.setattr(pools, "MOST_ROWS", 2)  # the third waits
        got, want = (pl.curves(setup, steps=[0, 5, 6, 20], runs=range(3), engine=engine, train=train, weights=True)
                     for engine in ("warps", "jax"))
    assert_same(got, want)


def test_a_run_that_has_learned_its_sample_is_trained_no_further(emulator):
    learner = pl.Learner(pl.MLP(5), optimiser=pl.SGD(0.2), batch=16)
    setup = pl.Setup(pl.Parity(9, 2, sample=40), learner, pl.Protocol(max_steps=60, eval_size=64))
    points = np.array([0, 20, 40, 60])

    def traced(stop):
        queue = Queue([Job(setup, 0, np.arange(3))])
        pool = WarpsTracer(setup.program, 3, Trace(points, True, stop), False, emulator)
        for _ in loop.train(queue, pool):
            pass
        return pool.take_trace()[0]["train_loss"], pool.model_steps

    whole, steps = traced(None)
    assert steps == 3 * 60
    stop = np.sort(whole[:, 1])[1]  # one run is below it at step 20, another is at it
    found, steps = traced(stop)
    ends = [int(points[np.argmax(losses < stop)]) if (losses < stop).any() else 60 for losses in whole]
    assert 20 in ends
    assert steps == sum(ends) < 3 * 60
    for before, after, end in zip(whole, found, ends, strict=True):
        np.testing.assert_array_equal(after[points <= end], before[points <= end])


# Parts ----------------------------------------------------------------------------------------------------------

PROBE = """
extern "C" void draws(const u32* key, int count, u32* words, float* normals) {
    for (int i = 0; i < count; ++i) {
        words[i] = random_bits(fold_in({key[0], key[1]}, 7), i);
        normals[i] = random_normal(fold_in({key[0], key[1]}, 7), i);
    }
}
"""


@pytest.mark.parametrize("by_products", [False, True])
def test_random_numbers_are_those_of_jax(by_products, emulator):
    constants = {"FAMILY": "MLP", "N": 1, "WIDTH": 1, "BIAS": 1, "sizes": (1.0, 1.0, 1.0), "BY_PRODUCTS": by_products}
    library = emulator.library(prelude(constants) + _text("base") + _text("threefry") + PROBE)
    key, count = np.array([17, 4_000_000_000], np.uint32), 20_000
    words, normals = np.zeros(count, np.uint32), np.zeros(count, np.float32)
    at = [ctypes.c_void_p(array.ctypes.data) for array in (key, words, normals)]
    library.draws(at[0], count, at[1], at[2])
    folded = jax.random.fold_in(jax.random.wrap_key_data(key), 7)
    assert np.array_equal(words, jax.random.bits(folded, (count,)))
    np.testing.assert_allclose(normals, jax.random.normal(folded, (count,)), rtol=2e-6, atol=1e-6)


START = "typedef unsigned u32;\nvoid start(const Table*, const u32*, int) {}\n"
MISTAKES = {
    "lanes diverge": "if (threadIdx.x < 5) __syncwarp();\n    __shfl_sync(0xffffffffu, 1, 0);",
    "never come": "if (threadIdx.x > 0) __syncthreads();",
    "shared memory": "float* s = emulator::shared_memory; s[threadIdx.x + 1] = 0;",
    "an array": "rows->idle[1] = 0;",
}


@pytest.mark.long
@pytest.mark.parametrize("mistake", MISTAKES)
def test_the_emulator_notices_mistakes(mistake, tmp_path):
    head = "struct Table { unsigned* idle; };\n"
    body = f"void train(const Table* rows, const int*, int, int, int) {{\n{MISTAKES[mistake]}\n}}\n"
    plan = SimpleNamespace(source=head + body, start_source=head + START, threads=32, shared=4 * 32)
    emulator = Emulator(tmp_path)
    array = emulator.array(np.zeros(1, np.uint32))
    table = emulator.array(np.array([emulator.address(array)], np.uint64))
    with pytest.raises(AssertionError, match=mistake):
        emulator.kernels(plan).train(1, table, array, 0, 0, 0)


# The choice -----------------------------------------------------------------------------------------------------


def test_where_there_is_a_gpu_it_is_chosen(emulator, monkeypatch):
    monkeypatch.setattr(devices, "current", lambda: emulator)
    assert choose(WHOLE["warp"]) == choose(WHOLE["warp"], "warps") == "warps"
    assert choose(WHOLE["warp"], curves=True) == "warps"
    assert engines.label("warps") == "warps_2_emulated_GPU"
    assert choose(WHOLE["team, adam"]) == choose(WHOLE["warp, sample"]) == choose(WHOLE["deep"]) == "warps"
    assert choose(WHOLE["lane, staged"]) == choose(WHOLE["warp, tasks"]) == choose(WHOLE["warp, leaky"]) == "warps"
    drawn = replace(WHOLE["warp"], problem=pl.Problem(10, lambda x: x[:, 0]))
    assert choose(drawn) != "warps"
    with pytest.raises(InvalidInput, match="'warps' cannot train this: it has no target by a function"):
        choose(drawn, "warps")
    result = pl.sweep([WHOLE["warp"]], 8, engine="warps")[0]
    assert same(result.records, train([Job(WHOLE["warp"], 0, np.arange(8))], emulator).records)


def test_a_sweep_of_several_programs_trains_them_side_by_side(emulator, monkeypatch):
    monkeypatch.setattr(devices, "current", lambda: emulator)
    setups = [replace(WHOLE["warp"], problem=pl.Parity(n, 3)) for n in (9, 10, 9)]
    setups[2] = replace(setups[2], learner=replace(setups[2].learner, optimiser=pl.SGD(0.1)))
    results = pl.sweep(setups, 6, engine="warps")
    for setup, result in zip(setups, results, strict=True):
        assert result.setup == setup
        assert same(result.records, train([Job(setup, 0, np.arange(6))], emulator).records)


def test_what_fails_side_by_side_reaches_whoever_asked(emulator, monkeypatch):
    monkeypatch.setattr(devices, "current", lambda: emulator)
    monkeypatch.setattr(warps.WarpsPool, "load", lambda pool, rows: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        pl.sweep([replace(WHOLE["warp"], problem=pl.Parity(n, 3)) for n in (9, 10)], 6, engine="warps")


def test_a_sweep_can_be_left_while_programs_train_side_by_side(emulator, monkeypatch):
    monkeypatch.setattr(devices, "current", lambda: emulator)
    monkeypatch.setattr(pools, "LAUNCH_SECONDS", 0.0)
    launches = []
    advance = warps.WarpsPool.advance
    monkeypatch.setattr(warps.WarpsPool, "advance", lambda pool, more: launches.append(0) or advance(pool, more))
    idle = replace(WHOLE["warp"].learner, optimiser=pl.SGD(0.0))
    jobs = [Job(pl.Setup(pl.Parity(n, 3), idle, replace(PROTOCOL, max_steps=7000)), 0, np.arange(3)) for n in (9, 10)]
    training = engines.attempt(jobs, "warps")
    next(training)
    training.close()  # at once, not after a thousand launches of each
    assert len(launches) < 500
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("ThreadPoolExecutor")]


@pytest.mark.skipif(devices.current() is not None, reason="CuPy is installed")
def test_a_folder_named_cupy_is_not_cupy(tmp_path, monkeypatch):
    (tmp_path / "cupy").mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    assert devices.search.__wrapped__() == "CuPy is not installed"
    assert "cupy" not in sys.modules


def test_without_one_it_cannot_be_had(monkeypatch):
    monkeypatch.setattr(devices, "current", lambda: None)
    assert choose(WHOLE["warp"]) != "warps"
    with pytest.raises(InvalidInput, match="needs an NVIDIA GPU"):
        choose(WHOLE["warp"], "warps")
    with pytest.raises(InvalidInput, match="needs an NVIDIA GPU"):
        curves(WHOLE["warp"], [10], engine="warps")


@pytest.mark.parametrize(
    ("network", "n", "why"),
    [(pl.MLP((1500, 8)), 30, "does not fit"), (pl.MLP(5), 257, "at most 256 inputs"),
     (pl.MLP(1025), 30, "does not fit"), (pl.PolyNet(70), 30, "does not fit"), (pl.MLP(5, "tanh"), 9, "tanh"),
     (pl.MLP(5, outputs=2), 9, "several outputs are for Outputs")],
)
def test_what_it_cannot_train_is_refused_with_a_reason(network, n, why):
    assert why in warps.refusal(pl.Setup(pl.Parity(n, 2), pl.Learner(network)))


@pytest.mark.parametrize(
    ("problem", "learner", "why"),
    [(pl.Problem(9, pl.Outputs([(0, 1)])), pl.Learner(), "Outputs"),
     (pl.Parity(9, 2), pl.Learner(optimiser=pl.SGD(skip_satisfied=True)), "skip_satisfied"),
     (pl.Problem(9, pl.Tasks([(3,), (4, 5)], controls=[(0,), (0, 1)])), pl.Learner(pl.MLP(5, inputs="bits")), None),
     (pl.Parity(9, 2), pl.Learner(loss="clipped-logistic:1e-7"), None)],
)
def test_what_it_takes_of_the_newer_things(problem, learner, why):
    found = warps.refusal(pl.Setup(problem, learner))
    assert found is None if why is None else why in found


@pytest.mark.parametrize(("sample", "why"), [({"sample": 2**21}, "at most 1048576"), ({"sample": 31}, "larger than")])
def test_samples_that_it_cannot_go_through_are_refused(sample, why):
    setup = pl.Setup(pl.Parity(9, 2, **sample), pl.Learner())
    assert why in warps.refusal(setup)
    assert warps.refusal(replace(setup, problem=pl.Parity(9, 2, replacement=True, **sample))) is None
