"""What other processes see of a sweep while it lasts."""

from __future__ import annotations

import errno
import json
import os
import socket
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import run
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import paritylab as pl
from paritylab.cli import main
from paritylab.engines import Job
from paritylab.progress import Bar
from paritylab.running import cost, sweeps
from paritylab.site.results import going_on
from paritylab.site.serve import Watcher, _stamps
from paritylab.storage import status
from paritylab.storage.store import Store


def looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], act: Any) -> Any:
    """What ``paritylab store status`` says each time that a sweep writes its records."""
    seen: list[tuple[str, Any]] = []
    extend = Store.extend

    def spy(self: Store, *arguments: Any) -> Path:
        path = extend(self, *arguments)
        told = [main(["store", "status", "--out", str(tmp_path), *more]) for more in ([], ["--json"])]
        text, document = capsys.readouterr().out.rsplit("\n", 2)[:2]
        assert told == [0, 0]
        seen.append((text, json.loads(document)["sweeps"]))
        return path

    monkeypatch.setattr(Store, "extend", spy)
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
    assert main(["store", "status", "--out", str(tmp_path)]) == 0
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

    def vanished(*_: Any) -> Any:
        raise FileNotFoundError

    monkeypatch.setattr(os, "scandir", vanished)
    assert list(status.sweeps(tmp_path / "store")) == []
    assert list(_stamps(tmp_path, "*.svg")) == []


def test_what_a_killed_process_left_is_not_shown(tmp_path: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    folder = tmp_path / status.FOLDER
    folder.mkdir()
    told = status.Announcement(None, [])._told | {"pid": process.pid, "jobs": []}
    (folder / "a.json").write_text(json.dumps(told))
    (folder / "b.json").write_text("{")
    assert list(status.sweeps(tmp_path)) == []


# --- what else may be found there -----------------------------------------------------------------------------------


def announced(store: Path, host: str = "elsewhere", **changes: Any) -> Path:
    """The file of a sweep on another machine."""
    told = {"setup_id": "feed", "setup": json.loads(setup(0.1).to_json()), "engine": "jax", "seed": 0, "first": 0,
            "runs": 20, "known": 0, "state": "running", "ended": 5, "solved": 3}
    (store / status.FOLDER).mkdir(parents=True, exist_ok=True)
    path = store / status.FOLDER / "a.json"
    path.write_text(json.dumps({"pid": 12, "host": host, "started": time.time() - 9, "jobs": [told]} | changes))
    return path


ODD = st.one_of(
    st.none(), st.booleans(), st.integers(), st.integers(-(10**400), 10**400), st.floats(), st.text(max_size=5),
    st.sampled_from([[], {}, [[]], [{}], "\x1b[2J", "../..", -1, 0, 2**64, 1e308, {"type": 1}, {"network": {}}]),
)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where something can be put into a JSON value."""
    yield path
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield from places(value[key], (*path, key))


def changed(value: Any, path: tuple[Any, ...], new: Any, remove: bool) -> Any:
    if not path:
        return new
    copy = value.copy()
    if remove and len(path) == 1:
        del copy[path[0]]
    else:
        copy[path[0]] = changed(copy[path[0]], path[1:], new, remove)
    return copy


def looked(out: Path, capsys: pytest.CaptureFixture[str]) -> tuple[dict[str, Any], str]:
    """What ``paritylab store status`` tells in both forms, which it always does."""
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        for more in ([], ["--json"]):
            code, text, err = run(capsys, "store", "status", "--out", str(out), *more)
            assert code == 0, err
            assert all(line.startswith("paritylab: note: ") for line in err.splitlines()), err
            assert text.isascii() or more == []
            assert all(line.isprintable() for line in text.splitlines())
    return json.loads(text, parse_constant=pytest.fail), err


@pytest.mark.slow
@pytest.mark.long
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=80)
@given(data=st.data())
def test_whatever_an_announcement_holds_it_is_shown_or_noted(data: Any, tmp_path: Path, capsys: Any) -> None:
    path = announced(tmp_path / "store")
    told = json.loads(path.read_text())
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.sampled_from(list(places(told))))
        told = changed(told, place, data.draw(ODD), data.draw(st.booleans()))
        if not isinstance(told, dict):
            break
    path.write_text(json.dumps(told))
    found, err = looked(tmp_path, capsys)
    assert len(found["sweeps"]) + len(found["notes"]) == 1 or told.get("host") == socket.gethostname()
    assert err.count("\n") == len(found["notes"])


@pytest.mark.parametrize(
    "content", [b"", b"\xff\xfe", b"\x80abc", b"[" * 10**5, b"1" * 5000, b"{}", b"[]", b"null", b'"text"', b"NaN",
                b'{"pid": 1e999}', '{"pid": 1}'.encode("utf-16"), b"\x00" * 100]
)
def test_what_is_no_announcement_is_noted_by_the_command_and_the_server(content: bytes, tmp_path: Path, capsys) -> None:
    announced(tmp_path / "store")
    (tmp_path / "store" / status.FOLDER / "b.json").write_bytes(content)
    found, _ = looked(tmp_path, capsys)
    assert len(found["sweeps"]) == 1
    (note,) = found["notes"]
    assert "b.json is no announcement of a sweep" in note
    assert going_on(tmp_path)["notes"] == found["notes"]
    json.dumps(going_on(tmp_path), allow_nan=False)


def test_what_is_no_file_is_noted_and_not_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    folder = announced(tmp_path / "store").parent
    (folder / "folder.json").mkdir()
    (folder / "link.json").symlink_to("/dev/zero")
    (folder / "loop.json").symlink_to(folder / "loop.json")
    os.mkfifo(folder / "pipe.json")
    (folder / "large.json").touch()
    os.truncate(folder / "large.json", status.LARGEST + 1)
    unreadable = folder / "unreadable.json"
    unreadable.touch()
    read = Path.read_bytes

    def refused(path: Path) -> bytes:  # root may read everything
        if path == unreadable:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return read(path)

    monkeypatch.setattr(Path, "read_bytes", refused)
    found, err = looked(tmp_path, capsys)
    assert len(found["sweeps"]) == 1
    assert err.count("\n") == len(found["notes"]) == 6
    with status.Announcement(tmp_path / "store", [{}]):  # nor does another sweep stumble over them
        pass
    assert len(list(folder.iterdir())) == 7


def test_a_store_that_cannot_be_read_is_noted(tmp_path: Path, capsys, monkeypatch: pytest.MonkeyPatch) -> None:
    announced(tmp_path / "store")
    (tmp_path / "store" / "blocks").write_text("not a folder")
    found, _ = looked(tmp_path, capsys)
    assert found["sweeps"] == []
    assert "not shown: a sweep of 1 setups: cannot read the store" in found["notes"][0]
    monkeypatch.setattr(Watcher, "refresh", lambda _: "")
    (note,) = Watcher(tmp_path).live()["notes"]
    assert "cannot read the store" in note
    assert str(tmp_path) not in note


# --- sweeps that are not heard of ----------------------------------------------------------------------------------


def aged(path: Path, seconds: float) -> Path:
    os.utime(path, (time.time() - seconds, time.time() - seconds))
    return path


@pytest.mark.parametrize("jump", [0.0, 1e9, -1e9])
def test_a_sweep_of_a_vanished_machine_is_shown_as_such_then_forgotten_whatever_clocks_say(
    jump: float, tmp_path: Path, capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, now = tmp_path / "store", time.time
    path = announced(store, jobs=[])
    for age, quiet, shown in ((0, False, 1), (100, False, 1), (200, True, 1), (-200, True, 1), (80000, True, 1),
                              (100000, None, 0), (-1e6, None, 0)):
        monkeypatch.undo()
        heard = aged(path, age).stat().st_mtime
        monkeypatch.setattr(time, "time", lambda: now() + jump)
        found, _ = looked(tmp_path, capsys)
        assert len(found["sweeps"]) == shown, age
        if shown:
            assert found["sweeps"][0]["quiet_since"] == (heard if quiet else None), age
        run(capsys, "store", "status", "--out", str(tmp_path))
        assert run(capsys, "store", "status", "--out", str(tmp_path))[1].count("not heard of since") == bool(quiet)
        with status.Announcement(store, [{}]):
            assert path.exists() == bool(shown)
        path = path if shown else announced(store, jobs=[])


def test_a_quiet_sweep_does_not_keep_the_site_from_showing_its_records(tmp_path: Path) -> None:
    records = pl.Records([0], [0], [10], [10], [1.0], [0.0])
    Store(tmp_path / "store").append("feed", setup(0.1).to_json(), "jax", 0, records)
    watcher = Watcher(tmp_path)
    states = []
    for age in (0, 300):
        aged(announced(tmp_path / "store"), age)
        states.append(watcher._state())
    assert states[0] != states[1]


def test_a_sweep_is_heard_of_while_it_says_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status, "HEARTBEAT_SECONDS", 0.01)
    with status.Announcement(tmp_path, [{}]):
        (path,) = (tmp_path / status.FOLDER).glob("*.json")
        for wound in (lambda: aged(path, 1000), path.unlink):  # its machine slept; another forgot it
            wound()
            until = time.monotonic() + 20
            while time.monotonic() < until and not (path.exists() and abs(time.time() - path.stat().st_mtime) < 100):
                time.sleep(0.01)
            assert abs(time.time() - path.stat().st_mtime) < 100
    assert not (tmp_path / status.FOLDER).exists()


def test_a_long_sweep_says_before_it_starts_what_it_may_take(capsys: pytest.CaptureFixture[str]) -> None:
    long = pl.Setup(pl.Parity(30, 3), protocol=pl.Protocol(max_steps=10**6))
    text = cost.estimate([Job(long, 0, np.arange(1000))])
    assert text.startswith("at most 1.0e+09 updates, 4.0e+13 FLOP: 2.2 minutes on two cores")
    assert cost.estimate([Job(long, 0, np.arange(1))]) == ""
    Bar("training", 1, wanted=True).announce("at most")
    Bar("training", 1, wanted=False).announce("nothing")
    assert capsys.readouterr().err == "at most\n"
