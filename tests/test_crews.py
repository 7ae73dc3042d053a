"""Runs trained by worker processes: the same records as in one process, whatever happens to the workers."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from sent_to_crews import alone, check_sent
from template import part

import paritylab as pl
from paritylab import baselines, engines
from paritylab.claims import Lab
from paritylab.cli import main
from paritylab.engines import Job
from paritylab.running import crews as module
from paritylab.running import keeping, sweeps
from paritylab.storage.records import COLUMNS, Records
from paritylab.storage.store import Store

pytest.importorskip("distributed", reason="the extra 'cluster' is not installed")
pytestmark = pytest.mark.usefixtures("whole_paper_all_along")  # workers look for papers where they are started


def setup(lr: float, n: int = 14) -> pl.Setup:
    return pl.Setup(pl.Parity(n, 2), pl.Learner(optimiser=pl.SGD(lr), batch=8), pl.Protocol(5000, eval_size=128))


def same(first: Records, second: Records) -> bool:
    return all(np.array_equal(getattr(first, name), getattr(second, name)) for name in COLUMNS)


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
    pids = list(hands.client.run(os.getpid).values())

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


@pytest.mark.long
def test_workers_record_curves_and_final_params_and_compute(hands: module.Crew, tmp_path: Path) -> None:
    """What is kept beside Records is made by workers too, and is what one process makes."""

    def asked(folder: Path) -> tuple[np.ndarray, ...]:
        lab = Lab("quick", folder, progress=False)
        curves = lab.curves_each([setup(0.1), setup(0.3)], 40, 20, runs=2, weights=True)
        records, params = lab.final_params(setup(0.3), 2)
        computed = lab.compute_each(part("guessing").guesses, [{"n": n, "k": 3, "searches": 20} for n in (6, 8)])
        return (*(each.loss for each in curves), *(each.weights[0]["w"] for each in curves), records.t_c,
                params[0]["w"], *(each["guesses"] for each in computed))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(keeping, "curves_each", lambda *_, **__: pytest.fail("this process makes something itself"))
        patch.setattr(keeping.engines, "final_params", lambda *_, **__: pytest.fail("this process trains"))
        helped = asked(tmp_path / "helped")
    token = module._CREW.set(None)
    try:
        alone = asked(tmp_path / "alone")
    finally:
        module._CREW.reset(token)
    for one, two in zip(helped, alone, strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("engine", ["auto", pytest.param("jax", marks=pytest.mark.long)])
def test_curves_are_recorded_by_workers(hands: module.Crew, engine: str) -> None:
    def asked() -> pl.Curves:
        return pl.curves(setup(0.3), 40, 20, range(3), seed=2, engine=engine, weights=True)

    helped = asked()
    with alone():
        for one, two in zip(jax.tree.leaves(vars(helped)), jax.tree.leaves(vars(asked())), strict=True):
            np.testing.assert_array_equal(one, two)


@pytest.mark.long
def test_curves_with_what_is_the_users_own_travel_and_go_on(hands: module.Crew) -> None:
    size = {"size": lambda params: abs(params[0]["w"]).max()}

    def asked() -> pl.Curves:
        begun = pl.curves(setup(0.3), [10], runs=range(2), metrics=size, checkpoint=True)
        return pl.curves(setup(0.3), [20], metrics=size, start=begun.checkpoint)

    helped = asked()
    assert helped.metrics is not None
    with alone():
        np.testing.assert_array_equal(helped.metrics["size"], (asked().metrics or {})["size"])


def test_a_learner_of_the_users_own_is_compared_by_workers(hands: module.Crew) -> None:
    @baselines.learner(limit=200)
    def most_correlated(examples: Any) -> Any:
        return np.argsort(-np.abs(examples.y @ examples.x))[: examples.k]

    def asked() -> list[Any]:
        found = baselines.compare([pl.Parity(n=8, k=1), pl.Parity(n=9, k=1)], ["exhaustive", most_correlated], runs=2)
        return [(each.learner, each.n, each.run, each.status, each.samples, each.support) for each in found]

    helped = asked()
    with alone():
        assert helped == asked()


@pytest.mark.parametrize("command", [
    "measure --n 10 --k 2 --runs 20 --max-steps 200",
    "curves --n 10 --k 2 --steps 40 --every 20 --runs 3",
    "theory learners --n 8 9 --k 2 --learners sgd,exhaustive --runs 2 --limit 5000",
    "theory alignment --d 5 8 --init rademacher gaussian",
    "me2025 guess --n 9",
    pytest.param("theory fourier --n 9 --k 2 --draws 20", marks=pytest.mark.long),
])
def test_whatever_takes_long_goes_to_the_crew_and_comes_back_the_same(
    command: str, hands: module.Crew, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    check_sent(command, hands, tmp_path, monkeypatch, capsys)


def test_a_network_of_the_users_own_travels_too(hands: module.Crew) -> None:
    loss = lambda f, y: (f - y) ** 2 / 2  # noqa: E731
    own = pl.Setup(pl.Parity(6, 2), pl.Learner(pl.MLP(8), loss=loss, batch=8), pl.Protocol(20, eval_size=64))
    assert isinstance(module.portable(own), bytes)
    assert isinstance(module.portable(setup(0.1)), str)
    assert len(pl.sweep([own], 4)[0].records) == 4


def test_blocks_hold_every_run_once_and_grow_towards_a_second() -> None:
    jobs = [Job(setup(0.1), 0, np.arange(1000)), Job(setup(0.2), 0, np.arange(50, 70))]
    blocks = module._Blocks(jobs)
    taken: list[list[module.Piece]] = []
    while blocks.left:
        taken.append(blocks.take(workers=2))
        for index, _ in taken[-1]:
            blocks.learn(index, 0.01)
    assert len(taken[0]) == 1
    assert len(taken[0][0][1]) == module.FIRST_RUNS
    assert 98 <= max(sum(len(runs) for _, runs in block) for block in taken) <= 102
    assert any(len(block) == 2 for block in taken)
    for index, job in enumerate(jobs):
        runs = [runs for block in taken for i, runs in block if i == index]
        np.testing.assert_array_equal(np.concatenate(runs), job.runs)
    names = {module._name(jobs, block, "lanes") for block in taken}
    assert len(names) == len(taken)


def test_small_cells_share_blocks() -> None:
    jobs = [Job(setup(0.1 + i / 1000), 0, np.arange(5)) for i in range(100)]
    blocks = module._Blocks(jobs)
    for index, _ in blocks.take(workers=2):
        blocks.learn(index, 0.001)
    assert len(blocks.take(workers=2)) > 20


def failing(number: int) -> int:
    if number == 3:
        raise FileNotFoundError("no such table")
    return number


@pytest.mark.long
def test_answers_come_together_and_a_failing_call_is_told_in_one_line(
    hands: module.Crew, monkeypatch: pytest.MonkeyPatch
) -> None:
    gathered: list[int] = []
    gather = hands.client.gather
    monkeypatch.setattr(hands.client, "gather", lambda futures: gathered.append(len(futures)) or gather(futures))
    monkeypatch.setattr(module, "AHEAD", 50)
    monkeypatch.setattr(module, "TOGETHER_SECONDS", 0.5)
    assert dict(hands.each(abs, [(-i,) for i in range(100)])) == {i: i for i in range(100)}
    assert sum(gathered) == 100
    assert len(gathered) < 50
    with pytest.raises(pl.InvalidInput, match="on a worker: no such table"):
        list(hands.each(failing, [(i,) for i in range(5)]))


def test_programs_are_tried_by_the_crew_where_there_are_many(hands: module.Crew) -> None:
    many = [pl.Setup(pl.Parity(n, 2)) for n in range(4, 4 + module.TRIED + 1)]
    assert list(module.in_parts(sweeps._checked, many)) == [None] * len(many)
    assert hands.choices(many) == engines.choices(many)


def test_a_cell_whose_function_fails_is_named_and_the_others_go_on(hands: module.Crew) -> None:
    def fails_in_training(f, y):
        if f.shape != (8,):
            raise RuntimeError("only batches of 8")
        return (f - y) ** 2

    bad = pl.Setup(pl.Parity(6, 2), pl.Learner(pl.MLP(8), loss=fails_in_training, batch=8), pl.Protocol(20))
    with pytest.warns(pl.CellFailed, match="fails_in_training"):
        good, failed = pl.sweep([setup(0.3, n=6), bad], 10)
    assert len(good.records) == 10
    assert len(failed.records) == 0
    assert "only batches of 8" in str(failed.failure)


@pytest.mark.parametrize("arguments", [
    ["--workers", "2", "--scheduler", "tcp://127.0.0.1:1"], ["--workers", "0"], ["--dry-run"],
    ["--slurm", "colour=red", "--dry-run"], ["--slurm", "nothing"],
])
def test_wrong_options_are_refused_in_one_line(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["measure", "--runs", "1", *arguments]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
