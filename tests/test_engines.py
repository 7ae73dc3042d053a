"""Engines: outcomes that depend on nothing but the run, and that the float64 oracle confirms."""

from __future__ import annotations

import warnings
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import optax
import oracle
import pytest
from blocks import same
from lengths import long_but

import paritylab as pl
from paritylab import engines, statistics
from paritylab.engines import EngineNotice, Job, choose, jax_engine, lanes
from paritylab.engines.starts import initial_params
from paritylab.errors import InvalidInput
from paritylab.rng import run_keys
from paritylab.running.sweeps import sweep
from paritylab.setups import inits
from paritylab.storage.records import CENSORED, DIVERGED, SOLVED, STATUSES, Records

SEED = 5
built = pytest.mark.skipif(lanes.kernel() is None, reason="the native kernel was not built")
ENGINES = ["jax", pytest.param("lanes", marks=built)]

# Solved in 20 to 200 steps; 60 steps leave some runs censored, and 7 divides neither 60 nor 100.
SMALL = pl.Setup(
    pl.Parity(7, 2),
    pl.Learner(pl.MLP(6), optimiser=pl.SGD(0.4), batch=8),
    pl.Protocol(max_steps=60, eval_every=7, eval_size=100),
)


def train(jobs, engine="jax", **options) -> list[Records]:
    """The Records of each job, by run number."""
    parts: list[list[Records]] = [[] for _ in jobs]
    for ended in engines.train(jobs, engine, **options):
        for index, records in ended:
            parts[index].append(records)
    merged = [Records.concatenate(part) for part in parts]
    return [records.take(np.argsort(records.run)) for records in merged]


def runs_of(setup, runs, **options) -> Records:
    return train([Job(setup, SEED, np.asarray(runs))], **options)[0]


def start(setup, run):
    params = initial_params(setup.program, run_keys(np.array([SEED]), np.array([run])))
    return jax.tree.map(lambda leaf: np.asarray(leaf[0]), params)


def assert_judged_as_by_the_oracle(setup, records: Records) -> None:
    for i, run in enumerate(records.run):
        with np.errstate(over="ignore", invalid="ignore"):
            status, t_c, steps = oracle.judge(setup, SEED, int(run), start(setup, run))
        got = STATUSES[records.status[i]], records.t_c[i], records.steps[i]
        assert got == (status, t_c, steps), f"run {run}"


# --- what a record does not depend on ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def small() -> Records:
    return runs_of(SMALL, range(40), slots=8)


def test_the_small_setup_is_solved_by_some_runs_and_not_by_all(small):
    assert small.run.tolist() == list(range(40))
    assert 5 < np.sum(small.status == SOLVED) < 40


@pytest.fixture(scope="module", params=[1, 64])
def with_other_slots(request) -> Records:
    return runs_of(SMALL, range(40), slots=request.param)


@pytest.mark.long
def test_an_outcome_does_not_depend_on_the_number_of_slots(small, with_other_slots):
    for name in ("run", "status", "t_c", "steps", "accuracy"):
        assert np.array_equal(getattr(with_other_slots, name), getattr(small, name)), name


def test_a_loss_depends_on_the_number_of_slots_only_by_rounding(small, with_other_slots):
    np.testing.assert_allclose(with_other_slots.loss, small.loss, rtol=1e-4, atol=1e-6)


def test_the_number_of_slots_depends_on_the_program_alone():
    # so that whole records, to the last bit, do not depend on how many runs were asked for
    assert len({jax_engine.default_slots(SMALL.program, runs) for runs in (1, 25, 10**6)}) == 1


def test_a_record_does_not_depend_on_the_order_or_the_company_of_runs(small):
    other = replace(SMALL, learner=replace(SMALL.learner, optimiser=pl.SGD(0.9)), problem=pl.Parity(7, support=(3, 6)))
    backwards, rest, _ = train(
        [Job(SMALL, SEED, np.arange(20)[::-1]), Job(SMALL, SEED, np.arange(20, 40)), Job(other, 9, np.arange(7))],
        slots=8,
    )
    assert same(Records.concatenate([backwards, rest]), small)
    assert same(runs_of(SMALL, [17], slots=8), small.take(np.array([17])))


@built
@pytest.mark.parametrize("threads", [1, 2])
def test_a_record_of_the_native_engine_does_not_depend_on_threads_order_or_company(threads):
    alone = Records.concatenate([runs_of(SMALL, [run], engine="lanes", threads=1) for run in range(0, 40, 5)])
    first, rest = train(
        [Job(SMALL, SEED, np.arange(39)[::-1]), Job(SMALL, SEED, np.array([39]))], "lanes", threads=threads
    )
    together = Records.concatenate([first, rest])
    assert together.run.tolist() == list(range(40))
    assert same(together.take(np.arange(0, 40, 5)), alone)


def test_a_run_depends_on_its_seed(small):
    assert not same(train([Job(SMALL, SEED + 1, np.arange(40))], slots=8)[0], small)


def test_a_shorter_limit_censors_and_changes_nothing_else(small):
    short = runs_of(replace(SMALL, protocol=replace(SMALL.protocol, max_steps=31)), range(40), slots=8)
    early = (small.status == SOLVED) & (small.t_c <= 28)
    assert early.any()
    assert same(short.take(early), small.take(early))
    assert np.all(short.steps[~early] == 31)
    assert set(short.t_c[~early]) <= {-1, 31}
    shortest = runs_of(replace(SMALL, protocol=replace(SMALL.protocol, max_steps=3)), range(8), slots=8)
    assert shortest.steps.tolist() == [3] * 8  # one check, at the last step


# --- what a record is -------------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("engine", ENGINES)
def test_runs_end_as_the_oracle_says(small, engine):
    records = small if engine == "jax" else runs_of(SMALL, range(40), engine=engine)
    assert_judged_as_by_the_oracle(SMALL, records)
    for i in (0, 7, 21):
        params = oracle.train(SMALL, SEED, i, start(SMALL, i), int(records.steps[i]))[-1]
        accuracy, loss = oracle.evaluate(SMALL, SEED, i, params, int(records.steps[i]))
        assert records.accuracy[i] == pytest.approx(accuracy, abs=1e-6)
        assert records.loss[i] == pytest.approx(loss, rel=1e-3, abs=1e-5)


PROTOCOLS = {
    # with a threshold below 1, checks in a row, new inputs for each, and blocks that do not fill up
    "fresh, in a row": pl.Protocol(44, eval_every=4, eval_size=300, threshold=0.95, consecutive=3, fresh=True),
    # too many errors allowed for the first inputs to decide
    "lenient": pl.Protocol(max_steps=50, eval_every=6, eval_size=130, threshold=0.8),
    # several blocks of inputs, a few errors allowed, a check at every step
    "blocks": pl.Protocol(max_steps=40, eval_every=1, eval_size=257, threshold=0.97, consecutive=2),
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", long_but(PROTOCOLS, "blocks"))
def test_screening_changes_no_outcome(name, engine):
    """The oracle evaluates everything at every check."""
    noisy = pl.Parity(7, 2, noise=0.02) if name == "fresh, in a row" else SMALL.problem
    setup = replace(SMALL, problem=noisy, protocol=PROTOCOLS[name])
    records = runs_of(setup, range(16), engine=engine, **({"slots": 16} if engine == "jax" else {}))
    assert_judged_as_by_the_oracle(setup, records)
    assert len(set(records.status)) > 1
    solved = records.status == SOLVED
    assert np.all(records.accuracy[solved] >= setup.protocol.threshold - 1e-6)


DIVERGENT = pl.Setup(
    pl.Parity(6, 2),
    pl.Learner(pl.MLP(6, "power:2"), loss="square", optimiser=pl.SGD(0.02), batch=16),
    pl.Protocol(max_steps=150, eval_every=10, eval_size=20),  # fewer inputs than a first look takes
)


def at_rate(setup, lr):
    return replace(setup, learner=replace(setup.learner, optimiser=replace(setup.learner.optimiser, lr=lr)))


@pytest.mark.parametrize("engine", ENGINES)
def test_runs_are_solved_censored_and_diverged_as_the_oracle_says(engine):
    setups = [DIVERGENT, at_rate(DIVERGENT, 1e-4), at_rate(DIVERGENT, 30.0)]
    options = {"slots": 16} if engine == "jax" else {}
    solved, censored, diverged = train([Job(setup, SEED, np.arange(8)) for setup in setups], engine, **options)
    for setup, records in zip(setups, (solved, censored, diverged), strict=True):
        assert_judged_as_by_the_oracle(setup, records)
    assert np.all(solved.status == SOLVED)
    assert np.all(solved.accuracy == 1)
    assert np.all(solved.t_c == solved.steps)
    assert np.all(censored.status == CENSORED)
    assert np.all(censored.steps == 150)
    assert np.all(censored.accuracy < 1)
    assert np.all(np.isfinite(censored.loss))
    assert np.all(diverged.status == DIVERGED)
    assert np.all(diverged.steps < 150)
    assert np.all((censored.t_c == -1) & (diverged.t_c == -1))


@pytest.mark.parametrize("engine", ENGINES)
def test_final_params_are_those_of_the_oracle_under_the_runs_own_numbers(engine):
    jobs = [Job(DIVERGENT, SEED, np.array([3, 8]))]
    records, params = engines.final_params(jobs, engine, **({"slots": 16} if engine == "jax" else {}))
    assert len(records) == 2
    for i, run in enumerate((3, 8)):
        want = oracle.train(DIVERGENT, SEED, run, start(DIVERGENT, run), int(records.steps[i]))[-1]
        got = jax.tree.map(lambda leaf, i=i: np.asarray(leaf[i]), params)
        for a, b in zip(oracle.leaves(got), oracle.leaves(want), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-2, atol=1e-4)
    assert records.run.tolist() == [3, 8]


@pytest.mark.long
@built
@pytest.mark.parametrize(("k", "share"), [(2, 0.9), pytest.param(3, 0.7, marks=pytest.mark.long)])
def test_both_engines_converge_at_the_same_steps(k, share):
    # The same random numbers, so only rounding tells the engines apart. Training amplifies it with every step: all runs
    # agree at k = 2 (30 steps), about four of five at k = 3 (400 steps), and no statistic moves.
    setup = pl.Setup(pl.Parity(30, k), pl.Learner(pl.MLP(10), optimiser=pl.SGD(1.0)), pl.Protocol(5000, eval_size=128))
    ours, theirs = (runs_of(setup, range(200), engine=engine) for engine in ("jax", "lanes"))
    assert np.mean(ours.t_c == theirs.t_c) >= share
    assert statistics.compare(ours, theirs).p_value > 0.01  # the samples are paired, so alarms are rarer than 1 %


# Solved in 20 to 70 steps.
DEEP = replace(SMALL, learner=replace(SMALL.learner, network=pl.MLP((20, 17, 9)), batch=70),
               protocol=replace(SMALL.protocol, max_steps=45))


@pytest.mark.long
@built
def test_both_engines_judge_runs_of_three_hidden_layers_alike():
    ours, theirs = (runs_of(DEEP, range(40), engine=engine) for engine in ("lanes", "jax"))
    assert 5 < np.sum(ours.status == SOLVED) < 40
    assert np.mean(ours.t_c == theirs.t_c) >= 0.9
    assert_judged_as_by_the_oracle(DEEP, ours.take(np.arange(3)))
    alone = runs_of(DEEP, [17], engine="lanes", threads=1)
    assert same(alone, ours.take(np.array([17])))


@pytest.mark.long
@built
@pytest.mark.parametrize("engine", ["jax", "lanes"])
def test_a_deep_network_that_diverges_is_seen(engine):
    wild = replace(DEEP, learner=replace(DEEP.learner, optimiser=pl.SGD(1e12), loss="square"))
    assert (runs_of(wild, range(3), engine=engine).status == DIVERGED).all()


@pytest.mark.long
@pytest.mark.parametrize("engine", ENGINES)
def test_a_network_that_is_always_wrong_has_accuracy_0(engine):
    """Its output is 0 everywhere, which counts as wrong."""
    learner = replace(SMALL.learner, init=lambda key, shape: jnp.zeros(shape), optimiser=pl.SGD(0.0))
    setup = replace(SMALL, learner=learner, protocol=pl.Protocol(max_steps=1, eval_size=1000))
    assert runs_of(setup, range(2), engine=engine).accuracy.tolist() == [0.0, 0.0]


# --- compiled once ----------------------------------------------------------------------------------------------


def test_a_sweep_over_rates_targets_noise_and_limits_compiles_once():
    grid = [
        replace(
            SMALL,
            problem=pl.Parity(7, support=support, noise=noise),
            learner=replace(SMALL.learner, optimiser=pl.SGD(lr)),
            protocol=replace(PROTOCOLS["fresh, in a row"], max_steps=limit),
        )
        for support, noise, lr, limit in [((0, 1), 0.02, 0.4, 20), ((2, 5, 6), 0.1, 0.2, 9), ((), 0.3, 1.0, 13)]
    ]
    before = jax_engine.compiled.cache_info()
    sweep(grid, runs=5, engine="jax")
    after = jax_engine.compiled.cache_info()
    assert after.hits + after.misses - before.hits - before.misses == 1
    made = jax_engine.compiled(grid[0].program, jax_engine.default_slots(grid[0].program, 5))
    sweep([replace(grid[0], problem=pl.Parity(7, 3, noise=0.4)), grid[1]], runs=range(7, 14), engine="jax")
    assert [getattr(made, part)._cache_size() for part in ("load", "advance", "finish")] == [1, 1, 1]


def test_jobs_of_different_programs_are_refused():
    with pytest.raises(InvalidInput, match="share one program"):
        train([Job(SMALL, 0, np.arange(2)), Job(DIVERGENT, 0, np.arange(2))])


def test_no_runs_need_no_engine():
    assert list(engines.train([Job(SMALL, 0, np.arange(0))], "jax")) == []


# --- the choice of an engine ------------------------------------------------------------------------------------


def mine(z):
    return jnp.maximum(z, 0)


REFUSED = {
    "inputs": (replace(SMALL, problem=pl.Parity(7, 2, inputs=lambda key, count, n: None)), "no inputs by a function"),
    "network": (replace(SMALL, learner=pl.Learner(pl.DisjointPolyNet(1))), "no DisjointPolyNet"),
    "activation": (replace(SMALL, learner=pl.Learner(pl.MLP(3, mine))), "no activation"),
    "tanh": (replace(SMALL, learner=pl.Learner(pl.Neuron("tanh"))), "no activation tanh"),
    "loss": (replace(SMALL, learner=pl.Learner(loss=lambda f, y: f * y)), "no loss"),
    "optimiser": (replace(SMALL, learner=pl.Learner(optimiser=pl.Optax(transformation=optax.sgd(1.0)))), "no Optax"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_the_native_engine_cannot_do_goes_to_jax_or_is_refused(name, monkeypatch):
    monkeypatch.setattr(lanes, "kernel", lambda: object())
    setup, why = REFUSED[name]
    assert choose(setup, "auto") == choose(setup, "jax") == "jax"
    with pytest.raises(InvalidInput, match=f"'lanes' cannot train this: .*{why}"):
        choose(setup, "lanes")


@pytest.mark.parametrize("network", [pl.MLP(3), pl.MLP((4, 3)), pl.Neuron("sinusoid:2"), pl.PolyNet(2)])
def test_the_native_engine_is_chosen_for_what_it_can_do(network, monkeypatch):
    monkeypatch.setattr(lanes, "kernel", lambda: object())
    monkeypatch.setattr(jax, "default_backend", lambda: "cpu")
    setup = replace(SMALL, learner=pl.Learner(network))
    assert choose(setup, "auto") == choose(setup, "lanes") == "lanes"
    assert choose(setup, "jax") == "jax"
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    assert choose(setup, "auto") == "jax"
    assert choose(setup, "lanes") == "lanes"


def test_a_missing_kernel_is_noticed_and_jax_is_used(monkeypatch):
    monkeypatch.setattr(lanes, "kernel", lambda: None)
    with pytest.warns(EngineNotice, match="not installed"):
        assert choose(SMALL, "auto") == "jax"
    with pytest.raises(InvalidInput, match="not installed"):
        choose(SMALL, "lanes")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert choose(SMALL, "jax") == "jax"
        assert choose(REFUSED["network"][0], "auto") == "jax"  # nothing was missed


def test_an_unknown_engine_is_refused_with_the_nearest():
    with pytest.raises(InvalidInput, match=r"unknown engine 'lane'.*did you mean 'lanes'"):
        choose(SMALL, "lane")


# --- a user's own parts -----------------------------------------------------------------------------------------


@pytest.mark.long
def test_a_users_own_network_and_input_distribution_run_end_to_end():
    def make(key, n):
        return {"w": 0.5 * jax.random.normal(key, (n, 8)), "u": jnp.linspace(-1, 1, 8)}

    def forward(params, x):
        return jnp.tanh(x @ params["w"]) ** 2 @ params["u"]

    def gaussian(key, count, n):
        return jax.random.normal(key, (count, n))

    setup = pl.Setup(
        pl.Parity(4, 2, inputs=gaussian),
        pl.Learner(pl.Network(make, forward), optimiser=pl.Adam(0.03, rates={"w": 1, "u": 0}), batch=32),
        pl.Protocol(max_steps=300, eval_size=150, threshold=0.9),
    )
    result = pl.measure(setup.problem, setup.learner, setup.protocol, runs=6, engine="auto")
    assert result.engine == engines.label("jax")
    assert result.summary.solved == 6
    assert np.all(result.records.accuracy >= 0.9)
    _, params = engines.final_params([Job(setup, 0, np.arange(6))], "jax", slots=8)
    np.testing.assert_allclose(params["u"], np.tile(np.linspace(-1, 1, 8), (6, 1)), rtol=1e-6)


def test_a_users_own_loss_init_activation_and_schedule_are_used(small):
    def bounded(key, shape):
        return jax.random.uniform(key, shape, minval=-1.0, maxval=1.0)

    setup = replace(
        SMALL,
        learner=pl.Learner(
            pl.MLP(6, lambda z: jnp.where(z > 0, z, 0.0)),
            init=inits.custom(bounded, scale=inits.fan_in_scale(1.0)),
            loss=lambda f, y: jnp.where(y * f < 1, 1 - y * f, 0.0),
            optimiser=pl.SGD(0.4, schedule=lambda t: 1.0 + 0.0 * t),
            batch=8,
        ),
    )
    # spelled out, these are the built-in torch, hinge and relu, so the outcomes are those of the built-in ones
    assert same(runs_of(setup, range(40), slots=8), small)
