"""What sweeps are going on: a small file in the store while a sweep trains, for whoever looks on."""

from __future__ import annotations

import contextlib
import ctypes
import glob
import json
import os
import socket
import sys
import time
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from paritylab.files import remove_stale, write_atomically

FOLDER = ".sweeps"


class Announcement:
    """Says which jobs a sweep has and which of them train; without a root it says nothing."""

    def __init__(self, root: Path | None, jobs: Sequence[dict[str, Any]]) -> None:
        self._root = root
        self._path = root / FOLDER / f"{uuid.uuid4().hex}.json" if root is not None and jobs else None
        self._told = {"pid": os.getpid(), "host": socket.gethostname(), "started": round(time.time(), 1)}
        self._jobs = [{"known": 0, **job, "state": "queued", "ended": 0, "solved": 0} for job in jobs]
        self._absent = [] if root is None else [folder for folder in (root, *root.parents) if not folder.exists()]

    def __enter__(self) -> Announcement:
        self._sweep_away()
        self.train(())
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            if self._path is not None:
                self._path.unlink(missing_ok=True)
        self._sweep_away()
        with contextlib.suppress(OSError):  # folders made for the announcement alone
            for folder in self._absent:
                folder.rmdir()

    def _sweep_away(self) -> None:
        """Delete what killed processes left behind, and the folder unless another sweep is going on."""
        if self._root is None or not (folder := self._root / FOLDER).is_dir():
            return
        with contextlib.suppress(OSError):
            for path, told in _read(folder):
                if not _alive(told):
                    path.unlink(missing_ok=True)
            folder.rmdir()

    def train(self, positions: Sequence[int]) -> None:
        """These jobs train from now on; those that trained before are done."""
        for job in self._jobs:
            job["state"] = "done" if job["state"] == "running" else job["state"]
        for i in positions if self._jobs else ():
            self._jobs[i]["state"] = "running"
        self.tell()

    def count(self, position: int, ended: int, solved: int) -> None:
        """So many more runs of a job have ended; it is told with the next ``tell``."""
        if self._jobs:
            self._jobs[position]["ended"] += ended
            self._jobs[position]["solved"] += solved

    def tell(self) -> None:
        if self._path is None:
            return
        with contextlib.suppress(OSError):  # nobody's results depend on being watched
            self._path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(self._path, json.dumps(self._told | {"jobs": self._jobs}).encode())
            remove_stale(self._path)


def sweeps(root: Path) -> Iterator[dict[str, Any]]:
    """The sweeps that train into the store at ``root``, oldest first; those of processes that died are left out."""
    found = [told for _, told in _read(root / FOLDER) if _alive(told)]
    yield from sorted(found, key=lambda each: each["started"])


def _read(folder: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    for name in glob.glob("*.json", root_dir=folder):  # unlike Path.glob, lets folders vanish meanwhile
        path = folder / name
        with contextlib.suppress(OSError, ValueError):
            told = json.loads(path.read_text(encoding="utf-8"))
            if isinstance(told, dict) and {"pid", "host", "started", "jobs"} <= told.keys():
                yield path, told


def _alive(told: dict[str, Any]) -> bool:
    if told["host"] != socket.gethostname():
        return True
    if sys.platform == "win32":
        return _alive_on_windows(told["pid"])
    try:
        os.kill(told["pid"], 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _alive_on_windows(pid: int) -> bool:
    """There ``os.kill`` with 0 would send Ctrl-C."""
    kernel = ctypes.WinDLL("kernel32", use_last_error=True)  # pyright: ignore[reportAttributeAccessIssue]
    synchronize, no_such_process, signalled = 0x100000, 87, 0
    handle = kernel.OpenProcess(synchronize, False, pid)
    if not handle:
        return ctypes.get_last_error() != no_such_process  # pyright: ignore[reportAttributeAccessIssue]
    ended = kernel.WaitForSingleObject(handle, 0) == signalled
    kernel.CloseHandle(handle)
    return not ended
