"""A progress bar for work that lasts over two seconds, where someone is watching: a terminal, or a notebook's cell."""

from __future__ import annotations

import sys
import threading
import time
from html import escape
from typing import Any, Protocol

from paritylab import notebooks
from paritylab.interrupts import Interrupts

PATIENCE = 2.0
SOON = 0.5
"""Seconds after which the bar says what it waits for."""
COMPILING = "compiling ..."
BETWEEN = 0.25
"""Seconds from one change of a notebook's bar to the next."""


class _Shown(Protocol):
    def announce(self, text: str) -> None: ...
    def update(self, done: int, note: str) -> None: ...
    def close(self) -> None: ...


class Bar:
    """Runs done, solved, model-steps per second and time left; silent in a script whose standard error is no terminal.

    Use as a context manager; ``show`` may be called as often as one likes. Meanwhile an interruption of a notebook's
    cell that a library loses comes again, as it does for commands.
    """

    def __init__(self, title: str, total: int, wanted: bool | None = None) -> None:
        cell = notebooks.shell() is not None
        self._start = time.perf_counter()
        self._interrupts = Interrupts() if cell else None
        self._shown: _Shown | None = None
        self._done, self._open = 0, False
        self._alarm: threading.Timer | None = None
        if wanted if wanted is not None else cell or sys.stderr.isatty():
            self._shown = _Cell(title, total) if cell else _Terminal(title, total)

    def __enter__(self) -> Bar:
        if self._interrupts is not None:
            self._interrupts.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._disarm()
        if self._interrupts is not None:
            self._interrupts.__exit__()
        if self._shown is not None:
            self._shown.close()
        if self._interrupts is not None and self._interrupts.came and kind is not None and issubclass(kind, Exception):
            raise KeyboardInterrupt  # which a library had made another error of

    def announce(self, text: str) -> None:
        """A line before the work begins."""
        if self._shown is not None:
            self._shown.announce(text)

    def wait(self, note: str) -> None:
        """Say what it waits for, unless :meth:`show` is called within half a second."""
        self._disarm()
        if self._shown is not None:
            self._alarm = threading.Timer(SOON, self._update, (self._done, note))
            self._alarm.daemon = True
            self._alarm.start()

    def show(self, done: int, note: str = "") -> None:
        self._disarm()
        self._done = done
        if self._open or time.perf_counter() - self._start >= PATIENCE:
            self._update(done, note)

    def _update(self, done: int, note: str) -> None:
        if self._shown is not None:
            self._open = True
            self._shown.update(done, note)

    def _disarm(self) -> None:
        """Let the alarm say nothing from here on."""
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm.join()
            self._alarm = None


class _Terminal:
    """On standard error."""

    def __init__(self, title: str, total: int) -> None:
        self._title, self._total = title, total
        self._progress: Any = None
        self._task: Any = None

    def announce(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    def update(self, done: int, note: str) -> None:
        if self._progress is None:
            self._progress = self._open()
        self._progress.update(self._task, completed=done, note=note)

    def close(self) -> None:
        if self._progress is not None:
            self._progress.stop()

    def _open(self) -> Any:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

        columns = (
            TextColumn("{task.description}"),
            BarColumn(bar_width=30),
            TextColumn("{task.completed}/{task.total}"),
            TextColumn("{task.fields[note]}"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
        )
        progress = Progress(*columns, console=Console(stderr=True), transient=True)
        progress.start()
        self._task = progress.add_task(self._title, total=self._total, note="")
        return progress


class _Cell:
    """In the output of a notebook's cell: one line, which is gone when the work is done."""

    def __init__(self, title: str, total: int) -> None:
        self._title, self._total = title, total
        self._line = notebooks.Line()
        self._start = time.perf_counter()
        self._last = 0.0
        self._said = ""

    def announce(self, text: str) -> None:
        self._said = text
        self._line.write(text)

    def update(self, done: int, note: str) -> None:
        now = time.perf_counter()
        if now - self._last < BETWEEN:
            return
        self._last, elapsed = now, now - self._start
        left = [f"{duration(elapsed * (self._total - done) / done)} left"] if 0 < done < self._total else []
        text = ", ".join(filter(None, [f"{self._title} {done}/{self._total}", note, duration(elapsed), *left]))
        said = f"{escape(self._said)}<br>" if self._said else ""
        self._line.write(text, f'{said}<progress value="{done}" max="{max(self._total, 1)}"></progress> {escape(text)}')

    def close(self) -> None:
        self._line.clear()


def duration(seconds: float) -> str:
    """A time in words.

    >>> duration(5400)
    '1.5 hours'
    """
    for unit, size in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 1.5 * size:
            return f"{seconds / size:.2g} {unit}" if seconds < 100 * size else f"{seconds / size:.0f} {unit}"
    return f"{max(seconds, 1):.0f} s"
