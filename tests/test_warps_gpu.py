"""The GPU engine on a real GPU, against the oracle, the other engines and compute-sanitizer."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
import pytest
from same_curves import assert_same
from warps import cases

import paritylab as pl
from paritylab.engines import Job, final_params, lanes
from paritylab.engines.warps import device as devices
from paritylab.engines.warps import pool as pools
from paritylab.setups.problems import Stage
from paritylab.storage.records import COLUMNS, SOLVED

pytestmark = pytest.mark.skipif(devices.current() is None, reason="no GPU, or no CuPy")
SEED = 7
W1 = pl.Setup(pl.Parity(30, 3), pl.Learner(optimiser=pl.SGD(1.0)), pl.Protocol(max_steps=10_000, eval_size=128))
KINDS = {
    "warp": W1,
    "team": replace(W1, learner=replace(W1.learner, network=pl.MLP(100))),
    "lane": replace(W1, learner=replace(W1.learner, batch=8, optimiser=pl.SGD(0.3))),
    "warp, momentum": replace(W1, learner=replace(W1.learner, optimiser=pl.SGD(0.1, momentum=0.9))),
    "warp, adam": replace(W1, learner=replace(W1.learner, optimiser=pl.Adam(0.01))),
    "team, adam": replace(W1, learner=replace(W1.learner, network=pl.MLP(100), optimiser=pl.Adam(0.003))),
    "warp, sample": replace(W1, problem=pl.Parity(30, 3, sample=4000)),
    "warp, sample with replacement": replace(W1, problem=pl.Parity(30, 3, sample=4000, replacement=True)),
    "lane, sample": pl.Setup(pl.Parity(20, 2, sample=2000), pl.Learner(pl.PolyNet(2), optimiser=pl.SGD(0.003)),
                             W1.protocol),
    "warp, lion": replace(W1, learner=replace(W1.learner, optimiser=pl.Lion(0.002))),
    "warp, biased": replace(W1, problem=pl.Problem(30, (0, 1, 2), "biased:0.7")),
    "warp, mixture, staged": replace(W1, problem=pl.Problem(30, (0, 1, 2), "uniform", stages=(
        Stage(200, "mixture:0.5,biased:0.9", slide=True), Stage(300, batch=20, noise=0.1)))),
    "warp, tasks": replace(W1, problem=pl.Problem(30, pl.Tasks([(3, 4), (5, 6), (7, 8, 9)], weights=(0.2, 0.3, 0.5))),
                           learner=replace(W1.learner, network=pl.MLP(16), optimiser=pl.SGD(0.5))),
    "deep": replace(W1, learner=replace(W1.learner, network=pl.MLP((32, 32)), optimiser=pl.SGD(0.3))),
    "deep, adam, three layers": replace(W1, learner=replace(W1.learner, network=pl.MLP((40, 32, 16), "gelu"),
                                                            optimiser=pl.Adam(0.003))),
    "large": replace(W1, learner=replace(W1.learner, network=pl.MLP((40, 32)), optimiser=pl.SGD(0.3), batch=64)),
    "large, adam": replace(W1, learner=replace(W1.learner, network=pl.MLP((40, 32, 16), "gelu"),
                                               optimiser=pl.Adam(0.003))),
    "team, majority": replace(W1, problem=pl.Problem(30, "majority:5"),
                              learner=replace(W1.learner, network=pl.MLP(100), optimiser=pl.SGD(0.01))),
    "lane, leaky": replace(W1, problem=pl.LeakyParity(30, 3, support="random", leak=0.1),
                           learner=replace(W1.learner, batch=8, optimiser=pl.SGD(0.3))),
    "warp, staircase within": replace(
        W1, problem=pl.Problem(20, "staircase:3"), protocol=replace(W1.protocol, within=0.9),
        learner=replace(W1.learner, loss="square", optimiser=pl.SGD(0.03))),
}
TUNING = {kind: {"kernel": "large"} if kind.startswith("large") else {} for kind in KINDS}


@pytest.mark.parametrize("name", cases.CASES)
def test_a_run_follows_the_oracle(name):
    cases.assert_follows_oracle(name, devices.current())


@pytest.mark.parametrize("kind", KINDS)
def test_times_are_distributed_as_those_of_another_engine(kind):
    """The medians and tenth percentiles of 2,000 runs agree to a tenth: four standard errors or more."""
    jobs = [Job(KINDS[kind], SEED, np.arange(2000))]
    got = cases.train(jobs, devices.current(), **TUNING[kind]).records
    want, _ = final_params(jobs, "jax" if lanes.kernel() is None else "lanes")
    assert np.mean(got.status == SOLVED) == pytest.approx(np.mean(want.status == SOLVED), abs=0.02)
    times = [np.where(records.status == SOLVED, records.t_c, 10**9) for records in (got, want)]
    for q in (10, 50):
        left, right = (np.percentile(t, q) for t in times)
        assert left == pytest.approx(right, rel=0.1)


@pytest.mark.parametrize("kind", KINDS)
def test_records_do_not_depend_on_company_or_interruptions(kind, monkeypatch):
    jobs = [Job(KINDS[kind], SEED, np.arange(500))]
    whole = cases.train(jobs, devices.current(), **TUNING[kind])
    monkeypatch.setattr(pools, "LAUNCH_SECONDS", 0.0)
    monkeypatch.setattr(pools, "MOST_ROWS", 77)
    sliced = cases.train(jobs, devices.current(), **TUNING[kind])
    for name in COLUMNS:
        assert np.array_equal(getattr(whole.records, name), getattr(sliced.records, name)), name
    assert all(map(np.array_equal, jax.tree.leaves(whole.params), jax.tree.leaves(sliced.params)))


RECORDED = ("warp", "lane", "team", "warp, momentum", "warp, tasks", "warp, sample", "lane, sample", "deep")


@pytest.mark.parametrize("kind", RECORDED)
def test_curves_are_those_of_another_engine(kind):
    """After a few steps rounding has moved no output far, and few across 0."""
    setup, other = KINDS[kind], "jax" if lanes.kernel() is None else "lanes"
    train = setup.problem.sample is not None
    got, want = (pl.curves(setup, [0, 3, 10], runs=range(20), engine=engine, train=train, weights=True)
                 for engine in ("warps", other))
    assert_same(got, want, 1e-7, lambda series: 0.05 if "accuracy" in series else 1e-3)


@pytest.mark.skipif(shutil.which("compute-sanitizer") is None, reason="compute-sanitizer is not installed")
@pytest.mark.parametrize("tool", ["memcheck", "racecheck", "synccheck"])
def test_compute_sanitizer_finds_nothing(tool):
    names = ["lane: batch in parts", "warp: 31 inputs, batch 32", "team: three, 64 inputs", "polynet, sample in passes",
             "polynet, adam, everything", "warp: sample in passes", "team: sample in passes", "team: two, clipped adam",
             "lane: staged tasks", "warp: mixture of three", "team: many tasks", "polynet: pairs", "warp: sum",
             "deep: a team of one", "deep: four layers, everything", "large: adam", "large: clipped, everything"]
    script = Path(cases.__file__)
    command = ["compute-sanitizer", "--tool", tool, "--error-exitcode", "9", sys.executable, str(script), *names]
    environment = {**os.environ, "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
