"""A progress bar on standard error for work that lasts over two seconds, where someone is watching."""

from __future__ import annotations

import sys
import time
from typing import Any

PATIENCE = 2.0


class Bar:
    """Runs done, solved, model-steps per second and time left; silent where standard error is not a terminal.

    Use as a context manager; ``show`` may be called as often as one likes.
    """

    def __init__(self, title: str, total: int, wanted: bool | None = None) -> None:
        self._title, self._total = title, total
        self._wanted = sys.stderr.isatty() if wanted is None else wanted
        self._start = time.perf_counter()
        self._progress: Any = None
        self._task: Any = None

    def __enter__(self) -> Bar:
        return self

    def __exit__(self, *_: object) -> None:
        if self._progress is not None:
            self._progress.stop()

    def announce(self, text: str) -> None:
        """A line before the work begins."""
        if self._wanted:
            print(text, file=sys.stderr, flush=True)

    def show(self, done: int, note: str = "") -> None:
        if not self._wanted or time.perf_counter() - self._start < PATIENCE:
            return
        if self._progress is None:
            self._progress = self._open()
        self._progress.update(self._task, completed=done, note=note)

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


def duration(seconds: float) -> str:
    """A time in words.

    >>> duration(5400)
    '1.5 hours'
    """
    for unit, size in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 1.5 * size:
            return f"{seconds / size:.2g} {unit}" if seconds < 100 * size else f"{seconds / size:.0f} {unit}"
    return f"{max(seconds, 1):.0f} s"
