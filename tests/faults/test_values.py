"""Weights that are no numbers, rates that explode, degenerate settings: trained, or refused in one line."""

from __future__ import annotations

from pathlib import Path
from random import Random

import numpy as np
import pytest
from faults import values
from faults.bench import ENGINE, Bench

import paritylab as pl
from paritylab.cli import main


@pytest.mark.parametrize(("engine", "value"), [(ENGINE, np.nan), pytest.param("jax", np.inf, marks=pytest.mark.long)])
def test_runs_with_broken_weights_diverge_and_the_others_go_on(engine: str, value: float):
    outcome = values.broken_weights(engine, value, compare=engine == ENGINE)  # another compilation for JAX
    assert outcome.clean, outcome


def spoken(command: list[str], folder: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    status = main([*command, "--out", str(folder)])
    return status, *capsys.readouterr()


@pytest.mark.parametrize("name", values.DEGENERATE)
def test_a_degenerate_setting_is_trained(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    command = values.arguments(ENGINE, **values.DEGENERATE[name])
    outcome = values.measured(command, *spoken(command, tmp_path, capsys))
    assert outcome.clean, outcome


@pytest.mark.parametrize("name", [name for name in values.REFUSED if "than fit" not in name])
def test_an_impossible_setting_is_refused_in_one_line(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    command = values.arguments(ENGINE, **values.REFUSED[name])
    outcome = values.refused(command, *spoken(command, tmp_path, capsys))
    assert outcome.clean, outcome


@pytest.mark.parametrize("name", [name for name in values.REFUSED if "than fit" in name])
def test_what_does_not_fit_into_memory_is_refused_in_one_line(name: str, bench: Bench, tmp_path: Path):
    command = values.arguments(ENGINE, **values.REFUSED[name])
    outcome = values.refused(command, *values.apart(command, tmp_path, bench))
    assert outcome.clean, outcome


def test_the_general_engine_trains_degenerate_settings_too():
    learner = pl.Learner(pl.MLP(1), optimiser=pl.SGD(1e30), batch=1)
    setups = [pl.Setup(pl.Parity(1, k), learner, pl.Protocol(20, eval_size=1)) for k in (0, 1)]
    for result in pl.sweep(setups, 5, engine="jax"):
        assert len(result.records) == 5
        assert result.failure is None


@pytest.mark.parametrize("seed", range(3))
def test_an_exploding_loss_is_recorded(seed: int, bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(values, "ENGINES", [ENGINE])
    outcome = values.exploding_loss(Random(seed), tmp_path, bench)
    assert outcome.clean, outcome
