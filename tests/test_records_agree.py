"""A Record does not contradict itself: status, t_c, accuracy and loss are those of one evaluation, on every engine."""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import oracle
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import paritylab as pl
from paritylab import engines
from paritylab.engines import Job, jax_engine, lanes
from paritylab.engines.evaluation import Evaluation
from paritylab.engines.starts import initial_params
from paritylab.rng import run_keys
from paritylab.storage.records import CENSORED, DIVERGED, SOLVED, STATUSES, Records

built = pytest.mark.skipif(lanes.kernel() is None, reason="the native kernel was not built")
few = settings(max_examples=20, deadline=None, derandomize=True, database=None,
               suppress_health_check=[HealthCheck.too_slow])


def assert_consistent(setup: pl.Setup, records: Records, params=None) -> None:
    """What docs/explanation/engines.md says of a check, of the one that ended each run."""
    protocol = setup.protocol
    errors = np.rint(protocol.eval_size * (1 - records.accuracy.astype(np.float64)))
    passed = errors <= protocol.allowed_errors
    solved, diverged = records.status == SOLVED, records.status == DIVERGED
    assert np.all(passed[solved])
    assert not np.any(passed[records.status == CENSORED]) or protocol.consecutive > 1
    assert np.all(records.steps[records.status == CENSORED] == protocol.max_steps)
    assert np.array_equal(records.t_c, np.where(solved, records.steps, -1))
    assert np.all((records.steps % protocol.eval_every == 0) | (records.steps == protocol.max_steps))
    if params is not None:
        leaves = [np.asarray(leaf).reshape(len(records), -1) for leaf in jax.tree.leaves(params)]
        assert np.array_equal(diverged, ~np.isfinite(np.concatenate(leaves, axis=1)).all(axis=1))


def trained(setup: pl.Setup, runs, engine: str, **options) -> Records:
    return engines.final_params([Job(setup, 0, np.asarray(runs))], engine, **options)[0]


# Sums of outputs overflow on the way, in one order and not in another.
OVERFLOWS = pl.Setup(
    pl.Parity(2, 1),
    pl.Learner(init=lambda key, shape: 4e19 * jax.random.normal(key, shape), optimiser=pl.SGD(0.0), batch=1),
    pl.Protocol(max_steps=1, eval_every=1, eval_size=40),
)


@pytest.mark.long
def test_outputs_that_overflow_leave_no_record_that_contradicts_itself():
    found = [576, 1045, 3738, 5263, 5284]  # were censored with an accuracy of 1
    assert_consistent(OVERFLOWS, trained(OVERFLOWS, found, "jax"))


SMALL = pl.Setup(
    pl.Parity(7, 2),
    pl.Learner(pl.MLP(6), optimiser=pl.SGD(0.4), batch=8),
    pl.Protocol(max_steps=60, eval_every=7, eval_size=100),
)


@pytest.mark.long
def test_the_evaluation_that_a_record_shows_decides_whatever_the_check_said(monkeypatch):
    def lying(self: Evaluation, slots, asked):
        """Of three runs one passes all its checks, one none, and one those that it should."""
        return asked & jnp.where(slots.tag % 3 == 2, passed(self, slots, asked), slots.tag % 3 == 0)

    passed = Evaluation.passed
    monkeypatch.setattr(Evaluation, "passed", lying)
    jax_engine.compiled.cache_clear()
    records = trained(SMALL, range(24), "jax", slots=8)
    jax_engine.compiled.cache_clear()
    assert records.run.tolist() == list(range(24))
    assert_consistent(SMALL, records)
    assert np.all(records.steps[1::3] == SMALL.protocol.max_steps)
    for run in range(0, 24, 3):  # what is not confirmed goes on, and is solved in the end
        start = initial_params(SMALL.program, run_keys(np.array([0]), np.array([run])))
        judged = oracle.judge(SMALL, 0, run, jax.tree.map(lambda leaf: np.asarray(leaf[0]), start))
        assert (STATUSES[records.status[run]], records.t_c[run], records.steps[run]) == judged


# --- random extremes ----------------------------------------------------------------------------------------------

rates = st.one_of(st.floats(-3, 38).map(lambda x: 10.0**x), st.sampled_from([0.0, 1e19, 3e38]))


EXTREME = replace(
    OVERFLOWS,
    problem=pl.Parity(4, 2, sample=20),
    protocol=pl.Protocol(eval_every=3, eval_size=40, threshold=0.9, consecutive=2),
)


@pytest.mark.long
@few
@given(rates, st.integers(0, 4), st.integers(1, 12), st.integers(0, 2**32 - 1))
def test_records_of_jax_are_consistent_at_any_rate(lr, k, steps, seed):
    setup = pl.Setup(
        replace(EXTREME.problem, k=k, support=tuple(range(k))),
        replace(EXTREME.learner, optimiser=pl.SGD(lr)),
        replace(EXTREME.protocol, max_steps=steps),
    )
    records, params = engines.final_params([Job(setup, seed, np.arange(32))], "jax")
    assert_consistent(setup, records, params)


numbers = st.integers(1, 7)
setups = st.builds(
    lambda n, k, sample, network, loss, lr, batch, protocol, law: pl.Setup(
        pl.Parity(n, min(k, n), sample=sample), pl.Learner(network, law, loss, pl.SGD(lr), batch), protocol
    ),
    numbers, st.integers(0, 3), st.none() | numbers,
    st.one_of(numbers.map(pl.MLP), st.tuples(numbers, numbers).map(pl.MLP), numbers.map(pl.PolyNet),
              st.just(pl.Neuron("power:3"))),
    st.sampled_from(["hinge", "square", "logistic", "correlation", "l1"]), rates, numbers,
    st.builds(pl.Protocol, max_steps=st.integers(1, 20), eval_every=numbers, eval_size=st.integers(1, 40),
              threshold=st.sampled_from([0.3, 0.5, 0.9, 1.0]), fresh=st.booleans()),
    st.sampled_from(["torch", "rademacher"]),
)


@built
@few
@given(setups, st.integers(0, 2**32 - 1))
def test_records_of_lanes_are_consistent_in_any_setup(setup, seed):
    records, params = engines.final_params([Job(setup, seed, np.arange(20))], "lanes", threads=1)
    assert_consistent(setup, records, params)
