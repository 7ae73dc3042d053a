"""What other processes see of a sweep while it lasts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import paritylab as pl
from paritylab import status, sweeps
from paritylab.cli import main
from paritylab.engines import Job
from paritylab.progress import Bar
from paritylab.site.serve import _stamps
from paritylab.store import Store


def looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], act: Any) -> Any:
    """What ``paritylab status`` says each time that a sweep writes its records."""
    seen: list[tuple[str, Any]] = []
    append = Store.append

    def spy(self: Store, *arguments: Any) -> Path:
        path = append(self, *arguments)
        told = [main(["status", "--out", str(tmp_path), *more]) for more in ([], ["--json"])]
        text, document = capsys.readouterr().out.rsplit("\n", 2)[:2]
        assert told == [0, 0]
        seen.append((text, json.loads(document)["sweeps"]))
        return path

    monkeypatch.setattr(Store, "append", spy)
    monkeypatch.setattr(sweeps, "FLUSH_SECONDS", 0.0)
    act(Store(tmp_path / "store"))
    return seen


def setup(lr: float, n: int = 10) -> pl.Setup:
    return pl.Setup(pl.Parity(n, 2), pl.Learner(optimiser=pl.SGD(lr), batch=8), pl.Protocol(2000, eval_size=64))


def test_a_sweep_is_seen_while_it_lasts_and_gone_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    setups = [setup(0.1), setup(0.1, n=12)]
    seen = looked_at(tmp_path, monkeypatch, capsys, lambda store: pl.sweep(setups, 50, store=store))
    text, (sweep,) = seen[-1]
    assert [job["state"] for job in sweep["jobs"]] == ["done", "running"]
    assert sweep["jobs"][0]["done"] == sweep["jobs"][0]["wanted"] == 50
    assert "100 runs of 2 setups" in text
    assert main(["status", "--out", str(tmp_path)]) == 0
    assert capsys.readouterr().out.startswith("nothing is being trained")
    assert not (tmp_path / "store" / status.FOLDER).exists()


def test_the_stages_of_a_race_are_seen_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seen = looked_at(tmp_path, monkeypatch, capsys, lambda store: pl.race([setup(0.1), setup(0.01)], store=store))
    assert all(len(found) == 1 for _, found in seen)
    assert max(found[0]["jobs"][0]["done"] for _, found in seen) == 25


def test_a_folder_may_vanish_while_it_is_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "store" / status.FOLDER).mkdir(parents=True)
    gone = tmp_path / "a.svg"

    def vanished(*_: Any) -> Any:
        raise FileNotFoundError

    monkeypatch.setattr(os, "scandir", vanished)
    assert list(status.sweeps(tmp_path / "store")) == []
    assert list(_stamps([gone])) == []


def test_what_a_killed_process_left_is_not_shown(tmp_path: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    folder = tmp_path / status.FOLDER
    folder.mkdir()
    told = status.Announcement(None, [])._told | {"pid": process.pid, "jobs": []}
    (folder / "a.json").write_text(json.dumps(told))
    (folder / "b.json").write_text("{")
    assert list(status.sweeps(tmp_path)) == []


def test_a_long_sweep_says_before_it_starts_what_it_may_take(capsys: pytest.CaptureFixture[str]) -> None:
    long = pl.Setup(pl.Parity(30, 3), protocol=pl.Protocol(max_steps=10**6))
    text = sweeps._estimate([Job(long, 0, np.arange(1000))])
    assert text.startswith("at most 1.0e+09 updates, 4.0e+13 FLOP: 22 minutes on two cores")
    assert sweeps._estimate([Job(long, 0, np.arange(1))]) == ""
    Bar("training", 1, wanted=True).announce("at most")
    Bar("training", 1, wanted=False).announce("nothing")
    assert capsys.readouterr().err == "at most\n"
