"""Ctrl-C, which some libraries lose: what they make of it is known, and it comes again."""

from __future__ import annotations

import os
import signal
import sys
import threading
from importlib.machinery import ExtensionFileLoader
from types import FrameType
from typing import Any

AGAIN_SECONDS = 0.05


class Interrupts:
    """While it is entered, ``came`` says whether there was an interruption.

    A KeyboardInterrupt that arrives within a callback from C (JAX has one for every garbage collection) is dropped with
    a traceback: it is sent again. Within the conversion of an argument it becomes another error: hence ``came``. Where
    a compiled library is being loaded it may crash that (jaxlib), so it waits.
    """

    def __init__(self) -> None:
        self.came = False
        self._default = signal.getsignal(signal.SIGINT) is signal.default_int_handler
        self._default &= threading.current_thread() is threading.main_thread()
        self._hook = sys.unraisablehook
        self._again: list[threading.Timer] = []

    def __enter__(self) -> Interrupts:
        if self._default:
            signal.signal(signal.SIGINT, self._interrupt)
            sys.unraisablehook = self._unraisable
        return self

    def __exit__(self, *_: object) -> None:
        if not self._default:
            return
        signal.signal(signal.SIGINT, lambda *_: None)  # one that is on its way comes too late
        for timer in self._again:
            timer.cancel()
            timer.join()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.unraisablehook = self._hook

    def _interrupt(self, _: int, frame: FrameType | None) -> None:
        if _loads_a_library(frame):
            self._send_again()
            return
        self.came = True
        raise KeyboardInterrupt

    def _unraisable(self, lost: Any) -> None:
        if issubclass(lost.exc_type, KeyboardInterrupt):
            self._send_again()
        else:
            self._hook(lost)

    def _send_again(self) -> None:
        self._again.append(threading.Timer(AGAIN_SECONDS, _interrupt_oneself))
        self._again[-1].start()


def _interrupt_oneself() -> None:
    if sys.platform == "win32":  # where os.kill would end the process
        signal.raise_signal(signal.SIGINT)
    else:
        os.kill(os.getpid(), signal.SIGINT)  # unlike raise_signal in this thread, it wakes the main one


def _loads_a_library(frame: FrameType | None) -> bool:
    while frame is not None and not isinstance(frame.f_locals.get("self"), ExtensionFileLoader):
        frame = frame.f_back
    return frame is not None
