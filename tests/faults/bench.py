"""What the scenarios share: commands that cost a fork, records to compare with, and what is counted."""

from __future__ import annotations

import contextlib
import glob
import json
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars

import paritylab as pl
from paritylab import engines
from paritylab.engines import lanes
from paritylab.storage.records import COLUMNS, Records
from paritylab.storage.status import Announcement
from paritylab.storage.store import Store

ENGINE, RUNS = ("jax", 600) if lanes.kernel() is None else ("lanes", 4_000)
LABEL = engines.label(ENGINE)
SETUP = pl.Setup(pl.Parity(12, 3), pl.Learner(optimiser=pl.SGD(0.3), batch=16), pl.Protocol(400, 20, 64))
COMMAND = ["measure", "--n", "12", "--k", "3", "--lr", "0.3", "--batch", "16", "--max-steps", "400", "--eval-every",
           "20", "--eval-size", "64", "--runs", str(RUNS), "--engine", ENGINE, "--threads", "1", "--json"]
INTERRUPTED = "paritylab: interrupted; the same command goes on from here\n"
PARITYLAB = "paritylab.cli:main"
MARK = "PARITYLAB_FAULTS"  # in the environment of every process that a command starts

# Imports once and forks for each command. Records are flushed as they come, many times a second.
NURSERY = """
import atexit, gc, importlib, json, os, sys, traceback, warnings
import paritylab.cli.measure, paritylab.cli.work
import paritylab.running.crews, paritylab.running.offload
import paritylab.engines, paritylab.storage.store, paritylab.running.sweeps
try:
    import distributed.cli.dask_scheduler, distributed.cli.dask_worker
except ImportError:
    pass
paritylab.running.sweeps.FLUSH_SECONDS = 0.0
paritylab.engines.lanes.CALL_SECONDS = 0.02
for name in sys.argv[1:]:
    importlib.import_module(name)
gc.freeze()
for line in sys.stdin:
    asked = json.loads(line)
    if "poll" in asked:
        pid, status = os.waitpid(asked["poll"], os.WNOHANG)
        answer = os.waitstatus_to_exitcode(status) if pid else None
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # JAX fears forks, but has not started anything yet
            answer = os.fork()
        if answer == 0:
            os.setsid()
            os.environ.update(asked["environment"])
            for number, path in enumerate(asked["streams"]):
                os.dup2(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), number)
            exec(asked["first"])
            module, function = asked["program"].split(":")
            sys.argv[1:] = asked["arguments"]
            try:
                status = getattr(importlib.import_module(module), function)()
            except SystemExit as end:
                status = end.code
            except BaseException:
                traceback.print_exc()
                status = 1
            atexit._run_exitfuncs()
            sys.stdout.flush()
            os._exit(status or 0)  # the rest would copy all the memory that is shared with this process
    print(json.dumps(answer), flush=True)
"""


@dataclass
class Outcome:
    """What a scenario did and found; all but ``faults`` and ``records`` should be nought."""

    faults: int = 0
    """How often something was broken."""
    records: int = 0
    """How many records were looked at in the end."""
    lost: int = 0
    doubled: int = 0
    different: int = 0
    left: int = 0
    """Files and processes left behind for good."""
    surprises: list[str] = field(default_factory=list)
    """Where a command did not say or do what it should."""

    def __iadd__(self, other: Outcome) -> Outcome:
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)
        return self

    def expect(self, condition: bool, what: str) -> None:
        if not condition:
            self.surprises.append(what)

    @property
    def clean(self) -> bool:
        return not (self.lost or self.doubled or self.different or self.left or self.surprises)


class Child:
    """A command that was started."""

    def __init__(self, bench: Bench, arguments: list[str], first: str = "", program: str = PARITYLAB) -> None:
        self._bench, self.mark = bench, uuid.uuid4().hex
        self._streams = [bench.folder / f"{self.mark}.{name}" for name in ("in", "out", "err")]
        for path in self._streams:
            path.touch(0o600)  # it may be killed before it opens them
        self._status: int | None = None
        self.pid: int = bench.ask(
            arguments=arguments, program=program, first=first, environment={MARK: self.mark},
            streams=[str(path) for path in self._streams],
        )

    @property
    def out(self) -> str:
        return self._streams[1].read_text()

    @property
    def err(self) -> str:
        return self._streams[2].read_text()

    def status(self) -> int | None:
        """Its exit status once it has ended; less than 0 if a signal ended it."""
        if self._status is None:
            self._status = self._bench.ask(poll=self.pid)
        return self._status

    def wait(self, seconds: float = 120.0) -> int:
        wait_for(lambda: self.status() is not None, seconds)
        assert self._status is not None
        return self._status

    def refused(self, why: str) -> bool:
        """Whether it ended with status 2 and one line that says why."""
        line = self.err.rstrip("\n")
        return self.status() == 2 and line.startswith("paritylab: error: ") and why in line and "\n" not in line

    def send(self, number: int, group: bool = False) -> None:
        if self.status() is None:
            with contextlib.suppress(ProcessLookupError):
                (os.killpg if group else os.kill)(self.pid, number)

    def family(self) -> list[int]:
        """The processes that it started and that are alive."""
        found = []
        for path in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if f"{MARK}={self.mark}".encode() in (path / "environ").read_bytes():
                    found.append(int(path.name))
        return found

    def workers(self) -> list[int]:
        """Those of them that are Dask workers."""
        found = []
        for pid in self.family():
            with contextlib.suppress(OSError):
                if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes():
                    found.append(pid)
        return found

    def orphans(self, seconds: float = 20.0) -> int:
        """How many processes outlive it by so many seconds; they are ended."""
        with contextlib.suppress(TimeoutError):
            wait_for(lambda: not self.family(), seconds)
        for pid in (left := self.family()):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return len(left)


class Bench:
    """Where commands are started from, with more modules imported if they need them; a context."""

    def __init__(self, folder: Path, imports: Iterable[str] = ()) -> None:
        self.folder = folder
        compiled = {"JAX_COMPILATION_CACHE_DIR": str(folder), "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}
        self._nursery = subprocess.Popen(
            [sys.executable, "-c", NURSERY, *imports], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env=os.environ | compiled,
        )

    def __enter__(self) -> Bench:
        return self

    def __exit__(self, *_: object) -> None:
        self._nursery.communicate()

    def ask(self, **question: Any) -> Any:
        assert self._nursery.stdin is not None
        assert self._nursery.stdout is not None
        self._nursery.stdin.write(json.dumps(question) + "\n")
        self._nursery.stdin.flush()
        return json.loads(self._nursery.stdout.readline())

    def start(self, out: Path, *more: str, first: str = "", command: list[str] = COMMAND) -> Child:
        """``paritylab measure`` with ``--out``; ``first`` is executed before."""
        return Child(self, [*command, "--out", str(out), *more], first)

    def complete(self, out: Path, *more: str, outcome: Outcome, says: str = "", **options: Any) -> None:
        """A command that should go well and say on standard error what matches ``says``."""
        child = self.start(out, *more, **options)
        status = child.wait()
        outcome.expect(status == 0 and (says in child.err if says else not child.err), f"{status}: {child.err}")

    @cached_property
    def undisturbed(self) -> Records:
        """What the command ends with in another process, with no store, in peace."""
        return pl.sweep([SETUP], RUNS, engine=ENGINE, threads=1)[0].records

    @cached_property
    def usual(self) -> float:
        """The seconds that the command takes in peace."""
        self.start(self.folder / "usual", "--runs", "0").wait()  # all is imported by then
        start = time.monotonic()
        self.start(self.folder / "usual").wait()
        return time.monotonic() - start


def wait_for(condition: Callable[[], bool], seconds: float) -> None:
    limit = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > limit:
            raise TimeoutError("waited in vain")
        time.sleep(0.005)


def records(out: Path) -> Records:
    return Store(out / "store").records(SETUP.id, LABEL, 0)


def blocks(out: Path) -> set[str]:
    return set(glob.glob("store/blocks/*.parquet", root_dir=out))


def differing(found: Records, undisturbed: Records) -> int:
    """How many records are not as in an undisturbed run; the runs of that one are 0, 1, 2 and so on."""
    mine = found.take(found.run < len(undisturbed))
    theirs = undisturbed.take(mine.run)
    wrong = np.zeros(len(mine), bool)
    for name in COLUMNS:
        left, right = getattr(mine, name), getattr(theirs, name)
        wrong |= (left != right) & ~((left != left) & (right != right))
    return int(wrong.sum())


def compared(out: Path, undisturbed: Records) -> Outcome:
    """What the store holds in the end beside what it should, as a reader sees it and, once it is compact, on disk."""
    found = records(out)
    missing, seen = np.setdiff1d(undisturbed.run, found.run), Store(out / "store").frame().collect().height
    left = len(leftovers(out))
    rows = sum(polars.read_parquet(path).height for path in out.glob("store/blocks/*.parquet"))
    return Outcome(records=len(found), lost=len(missing), doubled=seen + rows - 2 * len(np.unique(found.run)),
                   different=differing(found, undisturbed), left=left)


def leftovers(out: Path) -> list[Path]:
    """Files of killed processes that are there still when they are an hour old and another command has written."""
    for path in out.rglob(".*.tmp"):
        os.utime(path, (0, 0))
    store, found = Store(out / "store"), records(out)
    if len(found):
        store.append(SETUP.id, SETUP.to_json(), LABEL, 0, found.take(np.array([0])))
        store.compact()
    with Announcement(store.root, [{}]):
        pass
    kept = {*out.glob("store/blocks/*.parquet"), *out.glob("store/setups/*.parquet")}
    return [path for path in out.rglob("*") if path.is_file() and path not in kept]


@contextlib.contextmanager
def ended(*children: Child) -> Iterator[None]:
    """Whatever happens within, these are gone afterwards."""
    try:
        yield
    finally:
        for child in children:
            child.send(signal.SIGKILL, group=True)
            child.wait()
            child.orphans(5)
