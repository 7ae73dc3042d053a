"""The GPU engine on several GPUs of one process, emulated."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
import pytest
from blocks import same
from commands import run
from test_warps import WHOLE
from warps.cases import train
from warps.emulator import Emulator

import paritylab as pl
from paritylab import engines
from paritylab.engines import Job, rates
from paritylab.engines.warps import device as devices
from paritylab.engines.warps import pool as pools
from paritylab.engines.warps.spread import SpreadPool
from paritylab.engines.work import Queue

compiled = pytest.mark.skipif(shutil.which("c++") is None, reason="no C++ compiler")
SETUP = replace(WHOLE["warp"], protocol=replace(WHOLE["warp"].protocol, max_steps=60))


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("kernels")


@pytest.fixture
def three(folder, monkeypatch) -> tuple[Emulator, ...]:
    """GPUs of one kind; each trains eight networks of SETUP at once."""
    found = tuple(Emulator(folder, number=number) for number in range(3))
    monkeypatch.setattr(devices, "search", lambda: found)
    return found


@compiled
@pytest.mark.parametrize(("runs", "used"), [(5, 1), pytest.param(13, 2, marks=pytest.mark.long), (50, 3)])
def test_records_do_not_depend_on_how_many_gpus_train(runs, used, three, monkeypatch):
    monkeypatch.setattr(pools, "MOST_ROWS", 12)  # of each: with 50 runs some wait
    jobs = [Job(SETUP, 1, np.arange(runs))]
    pool = engines.make_pool(Queue(jobs), "warps")
    assert isinstance(pool, SpreadPool)
    assert len(pool._pools) == used
    records, params = engines.final_params(jobs, "warps")
    alone = train(jobs, three[0])
    assert same(records, alone.records)
    assert all(map(np.array_equal, jax.tree.leaves(params), jax.tree.leaves(alone.params)))


@compiled
@pytest.mark.long
def test_programs_take_gpus_in_turn(three, monkeypatch):
    trained = []
    kernels = Emulator.kernels
    monkeypatch.setattr(Emulator, "kernels", lambda self, plan: trained.append(self.number) or kernels(self, plan))
    setups = [replace(SETUP, problem=pl.Parity(n, 3)) for n in (8, 9, 10)]
    results = pl.sweep(setups, 4, engine="warps")
    assert set(trained) == {0, 1, 2}
    for setup, result in zip(setups, results, strict=True):
        assert same(result.records, train([Job(setup, 0, np.arange(4))], three[0]).records)


@compiled
def test_what_fails_on_one_gpu_reaches_whoever_asked(three, monkeypatch):
    load = pools.WarpsPool.load
    monkeypatch.setattr(pools.WarpsPool, "load",
                        lambda pool, rows: 1 / 0 if pool._device is three[1] else load(pool, rows))
    with pytest.raises(ZeroDivisionError):
        engines.final_params([Job(SETUP, 1, np.arange(50))], "warps")


def test_gpus_of_another_kind_are_listed_and_left_alone(tmp_path, monkeypatch, capsys):
    found = tuple(Emulator(tmp_path, number=number) for number in range(3))
    found[1].name = "another GPU"
    monkeypatch.setattr(devices, "search", lambda: found)
    monkeypatch.setattr(rates, "steady_rate", lambda name, seconds: 1.0)
    assert devices.alike() == (found[0], found[2])
    assert engines.at_once() == 2 * engines.AT_ONCE
    _, out, _ = run(capsys, "doctor", "--json")
    assert [(gpu["name"], gpu["trains"]) for gpu in json.loads(out)["gpus"]] == [
        ("emulated GPU", True), ("another GPU", False), ("emulated GPU", True)]
    _, out, _ = run(capsys, "doctor")
    assert "GPU 1: another GPU, compute capability 9.0, 132 processors, 141 GB, not used by warps\n" in out
