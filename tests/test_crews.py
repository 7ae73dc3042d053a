"""Runs trained by worker processes: the same records as in one process, whatever happens to the workers."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import paritylab as pl
from paritylab import crews as module
from paritylab.cli import main
from paritylab.cli.crews import slurm_options
from paritylab.engines import Job
from paritylab.errors import InvalidInput
from paritylab.records import COLUMNS, Records
from paritylab.store import Store

pytest.importorskip("distributed", reason="the extra 'cluster' is not installed")


def setup(lr: float, n: int = 14) -> pl.Setup:
    return pl.Setup(pl.Parity(n, 2), pl.Learner(optimiser=pl.SGD(lr), batch=8), pl.Protocol(5000, eval_size=128))


def same(first: Records, second: Records) -> bool:
    return all(np.array_equal(getattr(first, name), getattr(second, name)) for name in COLUMNS)


@pytest.fixture(scope="module")
def hands() -> Iterator[module.Crew]:
    with module.crew(workers=2) as made:
        yield made


def test_workers_give_the_records_of_one_process(hands: module.Crew, tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    setups = [setup(0.1), setup(0.3)]
    helped = pl.sweep(setups, 120, seed=3, store=store)
    token = module._CREW.set(None)
    try:
        alone = pl.sweep(setups, 120, seed=3)
        again = pl.sweep(setups, 120, seed=3, store=store)
    finally:
        module._CREW.reset(token)
    assert hands.size == 2
    for one, two, three in zip(helped, alone, again, strict=True):
        assert same(one.records, two.records)
        assert same(one.records, three.records)
        assert three.reused == 120


def test_a_worker_that_is_killed_loses_nothing(hands: module.Crew) -> None:
    pids = list(hands._client.run(os.getpid).values())

    def strike() -> None:
        time.sleep(0.3)
        os.kill(pids[0], signal.SIGKILL)

    striker = threading.Thread(target=strike)
    striker.start()
    slow = setup(0.01, n=40)
    helped = pl.sweep([slow], 200, seed=1, engine="auto")[0]
    striker.join()
    token = module._CREW.set(None)
    try:
        alone = pl.sweep([slow], 200, seed=1)[0]
    finally:
        module._CREW.reset(token)
    assert same(helped.records, alone.records)


def test_a_network_of_the_users_own_travels_too(hands: module.Crew) -> None:
    loss = lambda f, y: (f - y) ** 2 / 2  # noqa: E731
    own = pl.Setup(pl.Parity(6, 2), pl.Learner(pl.MLP(8), loss=loss, batch=8), pl.Protocol(20, eval_size=64))
    assert isinstance(module._portable(own), pl.Setup)
    assert isinstance(module._portable(setup(0.1)), str)
    assert len(pl.sweep([own], 4)[0].records) == 4


def test_blocks_hold_every_run_once_and_grow_towards_a_second() -> None:
    jobs = [Job(setup(0.1), 0, np.arange(1000)), Job(setup(0.2), 0, np.arange(50, 70))]
    blocks = module._Blocks(jobs)
    taken: list[tuple[int, np.ndarray]] = []
    while blocks.left:
        taken.append(blocks.take(workers=2))
        blocks.learn(0.01)
    assert len(taken[0][1]) == module.FIRST_RUNS
    assert max(len(runs) for _, runs in taken) == 100
    for index, job in enumerate(jobs):
        np.testing.assert_array_equal(np.concatenate([runs for i, runs in taken if i == index]), job.runs)
    names = {module._name(jobs[index], runs, "lanes") for index, runs in taken}
    assert len(names) == len(taken)


def test_options_of_slurm_are_pairs_or_a_file(tmp_path: Path) -> None:
    assert slurm_options("partition=gpu, gpus=1") == {"partition": "gpu", "gpus": "1"}
    file = tmp_path / "slurm.toml"
    file.write_text('partition = "cpu"\ncores = 8\n')
    assert slurm_options(str(file)) == {"partition": "cpu", "cores": 8}
    for bad in ("gpu", "=1", str(tmp_path / "none.toml")):
        with pytest.raises(InvalidInput):
            slurm_options(bad)


def test_a_dry_run_prints_the_job_script(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("dask_jobqueue")
    assert main(["measure", "--slurm", "partition=gpu,gpus=1,cores=2,walltime=00:30:00", "--dry-run"]) == 0
    script = capsys.readouterr().out
    for line in ("#SBATCH -p gpu", "#SBATCH --gpus=1", "#SBATCH -t 00:30:00"):
        assert line in script


@pytest.mark.parametrize("arguments", [
    ["--workers", "2", "--scheduler", "tcp://127.0.0.1:1"], ["--workers", "0"], ["--dry-run"],
    ["--slurm", "colour=red", "--dry-run"], ["--slurm", "nothing"],
])  # fmt: skip
def test_wrong_options_are_refused_in_one_line(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["measure", "--runs", "1", *arguments]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
