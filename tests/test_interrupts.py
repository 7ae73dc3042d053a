"""Ctrl-C that a library loses comes again, but not after the command has ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from importlib.machinery import ExtensionFileLoader
from types import SimpleNamespace
from typing import Any

import pytest

from paritylab.interrupts import AGAIN_SECONDS, Interrupts


@pytest.fixture(autouse=True)
def in_the_foreground():
    """Shells start commands in the background with Ctrl-C ignored, and what is ignored is left so."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def lose() -> None:
    """What Python does with an exception that nothing can catch."""
    lost: Any = SimpleNamespace(exc_type=KeyboardInterrupt)
    sys.unraisablehook(lost)


def test_a_lost_interruption_comes_again():
    with Interrupts() as interrupts:
        lose()
        with pytest.raises(KeyboardInterrupt):
            time.sleep(5)
    assert interrupts.came


def test_it_waits_while_a_compiled_library_is_loaded():
    class Slow(ExtensionFileLoader):
        def exec_module(self, module):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.2)

    with Interrupts() as interrupts:
        Slow("slow", "slow.so").exec_module(None)
        assert not interrupts.came
        with pytest.raises(KeyboardInterrupt):
            time.sleep(5)
    assert interrupts.came


INTERRUPTED = """
import sys
from paritylab import cli
def interrupt(name):
    exec("raise KeyboardInterrupt")  # as where a dataclass is made
cli.importlib.import_module = interrupt
sys.exit(cli.main(["store", "status"]))
"""


def test_the_exit_status_is_130_wherever_it_came(tmp_path):
    (tmp_path / "interrupted.py").write_text(INTERRUPTED)
    done = subprocess.run([sys.executable, "-m", "interrupted"], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr.count("\n")) == (130, 1)


def test_none_comes_after_the_end():
    before = sys.unraisablehook
    for wait in (0, AGAIN_SECONDS):  # before they are sent again, and just then
        with Interrupts() as interrupts:
            lose()
            lose()
            signal.signal(signal.SIGINT, lambda *_: None)
            time.sleep(wait)
        time.sleep(2 * AGAIN_SECONDS)
        assert not interrupts.came
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert sys.unraisablehook is before
