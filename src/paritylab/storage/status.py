"""What sweeps are going on: a small file in the store while a sweep trains, for whoever looks on.

The file is written again as the sweep goes on, and touched twice a minute in any case: from when it was last written
(by the clock of the disk) one knows whether a process of another machine is still there. What is found in the folder
is checked before it is shown: anyone may have written it.
"""

from __future__ import annotations

import contextlib
import ctypes
import glob
import json
import math
import os
import re
import reprlib
import socket
import stat
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from paritylab.errors import require
from paritylab.storage.files import remove_stale, write_atomically
from paritylab.storage.kept import parse_json

FOLDER = ".sweeps"
STATES = ("running", "queued", "done")
HEARTBEAT_SECONDS = 30.0
QUIET_SECONDS = 120.0  # some heartbeats; network file systems show them up to a minute late
FORGOTTEN_SECONDS = 86400.0
LONG_SECONDS, SHARE = 0.2, 0.05  # of a sweep's time may go into announcements that take longer than so
LARGEST = 2**27  # bytes: a sweep of 10^4 Setups has 10^7


class StatusWarning(UserWarning):
    """Something among the announcements cannot be shown."""


class Announcement:
    """Says which jobs a sweep has and which of them train; without a root it says nothing."""

    def __init__(self, root: Path | None, jobs: Sequence[dict[str, Any]]) -> None:
        self._root = root
        self._path = root / FOLDER / f"{uuid.uuid4().hex}.json" if root is not None and jobs else None
        self._told = {"pid": os.getpid(), "host": socket.gethostname(), "started": round(time.time(), 1)}
        self._jobs = [_Job(_beginning({"known": 0, **job})) for job in jobs]
        self._next = -math.inf
        self._absent = [] if root is None else [folder for folder in (root, *root.parents) if not folder.exists()]
        self._over = threading.Event()
        self._heart = threading.Thread(target=self._beat, daemon=True)

    def __enter__(self) -> Announcement:
        self._sweep_away()
        self.train(())
        if self._path is not None:
            self._heart.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        if self._heart.ident is not None:
            self._heart.join()
        with contextlib.suppress(OSError):
            if self._path is not None:
                self._path.unlink(missing_ok=True)
        self._sweep_away()
        with contextlib.suppress(OSError):  # folders made for the announcement alone
            for folder in self._absent:
                folder.rmdir()

    def _beat(self) -> None:
        assert self._path is not None
        while not self._over.wait(HEARTBEAT_SECONDS):
            try:
                os.utime(self._path)
            except FileNotFoundError:  # forgotten while this machine slept, or its disk's clock jumped
                self.tell()
            except OSError:
                pass  # nobody's results depend on being watched

    def _sweep_away(self) -> None:
        """Delete what killed processes and vanished machines left behind, and the folder unless a sweep is going on."""
        if self._root is None or not (folder := self._root / FOLDER).is_dir():
            return
        now = _disk_time(folder)
        for path in _paths(folder):
            with contextlib.suppress(OSError, ValueError):
                about = path.lstat()
                forgotten = stat.S_ISREG(about.st_mode) and abs(now - about.st_mtime) > FORGOTTEN_SECONDS
                if forgotten or not _alive(_read(path)):
                    path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            folder.rmdir()

    def train(self, positions: Sequence[int]) -> None:
        """These jobs train from now on; those that trained before are done."""
        for job in self._jobs:
            job.state = "done" if job.state == "running" else job.state
        for i in positions if self._jobs else ():
            self._jobs[i].state = "running"
        self.tell()

    def count(self, position: int, ended: int, solved: int) -> None:
        """So many more runs of a job have ended; it is told with the next ``tell``."""
        if self._jobs:
            self._jobs[position].ended += ended
            self._jobs[position].solved += solved

    def tell(self) -> None:
        """Write the file; where that takes long (10^5 jobs: a second), not before twenty times as long has passed."""
        if self._path is None or (start := time.monotonic()) < self._next:
            return
        with contextlib.suppress(OSError):  # nobody's results depend on being watched
            self._path.parent.mkdir(parents=True, exist_ok=True)
            jobs = ", ".join(map(str, self._jobs))
            write_atomically(self._path, f'{json.dumps(self._told)[:-1]}, "jobs": [{jobs}]}}'.encode())
            remove_stale(self._path)
        if (took := time.monotonic() - start) > LONG_SECONDS:
            self._next = time.monotonic() + took / SHARE


@dataclass
class _Job:
    """What is told of a job: how its JSON begins, and what changes."""

    text: str
    state: str = "queued"
    ended: int = 0
    solved: int = 0

    def __str__(self) -> str:
        return f'{self.text}, "state": "{self.state}", "ended": {self.ended}, "solved": {self.solved}}}'


def _beginning(job: Mapping[str, Any]) -> str:
    """The JSON of what does not change, to be continued; a Setup may be there as text."""
    setup = job.get("setup")
    text = json.dumps({name: value for name, value in job.items() if name != "setup"})[:-1]
    return text if setup is None else f'{text}, "setup": {setup if isinstance(setup, str) else json.dumps(setup)}'


@dataclass
class Seen:
    """What is found in a store: sweeps, oldest first, and notes on what is no announcement of one.

    A sweep has ``pid``, ``host``, ``started`` and ``jobs``, and in ``quiet_since`` when it was last heard of, or None
    if that was just now. Sweeps of processes that died, and those not heard of for a day, are left out.
    """

    sweeps: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def look(root: Path) -> Seen:
    """The sweeps that train into the store at ``root``."""
    seen, folder = Seen(), root / FOLDER
    for path in _paths(folder):
        try:
            told, heard = _read(path), path.lstat().st_mtime
            quiet = _quiet(heard, folder)
            if _alive(told) and quiet <= FORGOTTEN_SECONDS:
                _check_jobs(told)
                seen.sweeps.append(told | {"quiet_since": heard if quiet > QUIET_SECONDS else None})
        except FileNotFoundError:
            continue  # it has ended meanwhile
        except (OSError, ValueError) as error:
            why = error.strerror or error if isinstance(error, OSError) else error
            seen.notes.append(f"not used: {path} is no announcement of a sweep: {why}")
    seen.sweeps.sort(key=lambda each: each["started"])
    return seen


def sweeps(root: Path) -> Iterator[dict[str, Any]]:
    """The sweeps alone."""
    yield from look(root).sweeps


def _paths(folder: Path) -> list[Path]:
    return [folder / name for name in sorted(glob.glob("*.json", root_dir=folder))]  # lets folders vanish meanwhile


# --- what a file says -----------------------------------------------------------------------------------------------


def _read(path: Path) -> dict[str, Any]:
    """Who announces something; ValueError if the file does not say."""
    about = path.lstat()
    require(stat.S_ISREG(about.st_mode), "it is not a file")
    require(about.st_size <= LARGEST, "it is too large")
    told = parse_json(path.read_bytes())
    _check(told, {"pid": _from(1, 2**31 - 1), "host": _text, "started": _number})
    return told


def _check_jobs(told: Mapping[str, Any]) -> None:
    require(isinstance(told.get("jobs"), list), "it has no jobs")
    count = _from(0, 2**53)
    for job in told["jobs"]:
        _check(job, {"setup_id": _name, "engine": _text, "seed": count, "first": count, "runs": count, "known": count,
                     "ended": count, "solved": count, "state": STATES.__contains__, "setup": _table})
        _check(job["setup"], {"problem": _table, "learner": _table})
        problem, learner = job["setup"]["problem"], job["setup"]["learner"]
        _check(problem, {"n": _plain, "k": _plain})
        _check(learner, {"network": _table, "batch": _plain})
        _check(learner["network"], dict.fromkeys(learner["network"], _shown) | {"type": _text})
        _check(learner.get("optimiser", {}), {"lr": _plain})


def _check(table: Any, rules: Mapping[str, Callable[[Any], bool]]) -> None:
    require(isinstance(table, dict), "it is not as a sweep writes it")
    for name, allowed in rules.items():
        value = table.get(name)
        require(allowed(value), f"its {name} is {reprlib.repr(value)}")


def _from(least: int, most: int) -> Callable[[Any], bool]:
    return lambda value: type(value) is int and least <= value <= most


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and abs(value) <= 1e12


def _text(value: Any) -> bool:
    return isinstance(value, str) and value.isprintable() and 0 < len(value) <= 1000


def _name(value: Any) -> bool:
    return _text(value) and re.fullmatch(r"[\w-]+", value, re.ASCII) is not None


def _plain(value: Any) -> bool:
    return value is None or _number(value) or _text(value)


def _shown(value: Any) -> bool:
    parts = value if isinstance(value, list) else [value]
    return all(_text(part) for part in parts if isinstance(part, str))


def _table(value: Any) -> bool:
    return isinstance(value, dict)


# --- whether it is still so -------------------------------------------------------------------------------------------


def _alive(told: Mapping[str, Any]) -> bool:
    """Whether a process is there, if it is of this machine."""
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


def _quiet(heard: float, folder: Path) -> float:
    """For how long a file has not been written: by the clock here or, should that say something odd, the disk's.

    A file of the future is as quiet as one of the past: a sweep that goes on would have written it again.
    """
    seconds = abs(time.time() - heard)
    return seconds if seconds <= QUIET_SECONDS else abs(_disk_time(folder) - heard)


def _disk_time(folder: Path) -> float:
    """What a file written now is dated; the time here where none can be written."""
    try:
        with tempfile.NamedTemporaryFile(prefix=".", suffix=".tmp", dir=folder) as file:
            return os.fstat(file.fileno()).st_mtime
    except OSError:
        return time.time()
