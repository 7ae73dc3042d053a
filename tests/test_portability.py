"""What Windows and macOS have not, nobody needs."""

from __future__ import annotations

import ast
import ctypes
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from commands import TINY

import paritylab
from paritylab import interrupts
from paritylab.storage import status

PACKAGE = Path(paritylab.__file__).parent

ELSEWHERE = """
import sys
for name in ("fcntl", "grp", "pty", "pwd", "resource", "syslog", "termios", "tty"):
    sys.modules[name] = None
import jax, os, polars, scipy, signal
for name in ("fork", "getuid", "kill", "sched_getaffinity", "uname"):
    vars(os).pop(name, None)
vars(signal).pop("pthread_sigmask", None)
from paritylab.cli import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.long
def test_a_measurement_needs_nothing_that_only_posix_has(tmp_path: Path) -> None:
    quiet = "ignore:only soft file lock is available:UserWarning"  # JAX imports filelock where PyTorch brought it
    command = [sys.executable, "-W", quiet, "-c", ELSEWHERE, "measure", *TINY, "--out", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert "of 5" in done.stdout


def unencoded(tree: ast.AST) -> Iterator[ast.Call]:
    """Where text is read or written in whatever encoding the machine prefers."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        modes = [str(each.value) for each in node.args if isinstance(each, ast.Constant)]
        told = name == "read_text" and node.args  # the encoding; or it is not the method of a path
        opens = name in ("read_text", "write_text") or (isinstance(node.func, ast.Name) and name == "open")
        told = told or "encoding" in {each.arg for each in node.keywords}
        if opens and not told and not any("b" in mode for mode in modes):
            yield node


def test_text_files_are_read_and_written_in_a_said_encoding() -> None:
    assert [call.lineno for call in unencoded(ast.parse("open('a', 'rb')\npath.read_text()\nopen('a')"))] == [2, 3]
    found = [f"{path.relative_to(PACKAGE)}:{call.lineno}" for path in PACKAGE.rglob("*.py")
             for call in unencoded(ast.parse(path.read_text(encoding="utf-8")))]
    assert found == []


def test_names_of_files_are_allowed_everywhere() -> None:
    assert [str(path) for path in PACKAGE.rglob("*") if set(path.name) & set('<>:"|?*\\')] == []


@pytest.mark.parametrize("case", ["running", "ended", "never there", "of somebody else"])
def test_on_windows_nobody_is_interrupted_to_see_whether_they_live(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """There ``os.kill(pid, 0)`` is Ctrl-C."""
    kernel = SimpleNamespace(
        OpenProcess=lambda *_: 7 if case in ("running", "ended") else 0,
        WaitForSingleObject=lambda handle, _: {"running": 258, "ended": 0}[case],
        CloseHandle=lambda handle: closed.append(handle),
    )
    closed: list[int] = []
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setattr(os, "kill", None)
    monkeypatch.setattr(ctypes, "WinDLL", lambda *_, **__: kernel, raising=False)
    monkeypatch.setattr(ctypes, "get_last_error", lambda: 87 if case == "never there" else 5, raising=False)
    told = {"pid": 4711, "host": socket.gethostname()}
    assert status._alive(told) == (case in ("running", "of somebody else"))
    assert closed == [7] * (case in ("running", "ended"))


def test_on_windows_a_lost_interruption_comes_again_and_does_not_end_the_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """There ``os.kill(pid, SIGINT)`` ends it at once."""
    sent: list[int] = []
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setattr(os, "kill", None)
    monkeypatch.setattr(signal, "raise_signal", sent.append)
    interrupts._interrupt_oneself()
    assert sent == [signal.SIGINT]
