"""Worker processes: none outlives who started it, none that dies takes work with it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from paritylab.errors import InvalidInput
from paritylab.running import pools
from paritylab.running.pools import done_apart

ASLEEP = """
import os, signal, sys, time
from pathlib import Path
from paritylab.running.pools import done_apart

def sleep(name):
    Path(name).write_text(str(os.getpid()))
    time.sleep(60)

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # in a shell's background Ctrl-C is ignored
    try:
        list(done_apart(sleep, [(name,) for name in sys.argv[1:]], 2))
    except KeyboardInterrupt:
        sys.exit(130)
"""


def dies_at_first(folder: Path, name: str) -> str:
    try:
        (folder / name).touch(exist_ok=False)
    except FileExistsError:
        return name.upper()
    os.kill(os.getpid(), signal.SIGKILL if name == "a" else signal.SIGTERM)
    raise AssertionError


def dies(_: int) -> None:
    os._exit(3)


def test_what_a_worker_did_that_died_is_done_again(tmp_path: Path) -> None:
    assert sorted(done_apart(dies_at_first, [(tmp_path, "a"), (tmp_path, "b")], 2)) == [(0, "A"), (1, "B")]


def test_workers_that_die_without_end_are_given_up_in_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pools, "DEATHS", 2)
    with pytest.raises(InvalidInput, match="2 worker processes died one after the other"):
        list(done_apart(dies, [(0,)], 1))


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_workers_end_with_the_process_that_started_them(number: signal.Signals, tmp_path: Path) -> None:
    (tmp_path / "asleep.py").write_text(ASLEEP)
    files = [tmp_path / "first", tmp_path / "second"]
    process = subprocess.Popen([sys.executable, tmp_path / "asleep.py", *files], stderr=subprocess.PIPE, text=True)
    until = time.monotonic() + 60
    while not all(path.exists() and path.read_text() for path in files) and time.monotonic() < until:
        time.sleep(0.02)
    workers = [int(path.read_text()) for path in files]
    process.send_signal(number)  # to that process alone
    _, err = process.communicate(timeout=30)
    assert process.returncode == (130 if number == signal.SIGINT else -number)
    assert err == "" or number == signal.SIGKILL  # Python's tracker of semaphores has a word to say then
    until = time.monotonic() + 30
    while any(map(alive, workers)) and time.monotonic() < until:
        time.sleep(0.02)
    assert not any(map(alive, workers))
