"""Commands in processes of their own, each the fork of one that has imported everything."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pkgutil
import resource
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import paritylab
from paritylab.cli import main

GRACE = 60.0
MEMORY = 4 * 2**30
MODULES = [
    *(module.name for module in pkgutil.walk_packages(paritylab.__path__, "paritylab.")
      if not module.name.endswith("__main__")),
    "jinja2", "markdown_it", "matplotlib.backends.backend_agg", "matplotlib.backends.backend_pdf",
    "matplotlib.backends.backend_svg", "rich.progress", "scipy.stats",
]


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    status: int
    out: str
    err: str
    late: bool
    """Whether it was interrupted, as by Ctrl-C, because it took too long."""


def run(arguments: Sequence[str], folder: Path, seconds: float) -> Ended:
    """Run a command in a folder; so many seconds after its start it is interrupted, and a minute later it is a hang."""
    streams = [folder.parent / name for name in ("stdout", "stderr")]
    for path in streams:
        path.unlink(missing_ok=True)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(MODULES)
    process = context.Process(target=begin, args=(list(arguments), folder, streams))
    process.start()
    while process.is_alive() and not streams[-1].exists():
        process.join(0.01)
    process.join(seconds)
    late = process.is_alive()
    if late:
        assert process.pid is not None
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGINT)
        process.join(GRACE)
    hangs = process.is_alive()
    process.kill()
    process.join()
    assert not hangs, f"{arguments} does not end {GRACE} s after Ctrl-C"
    assert process.exitcode is not None
    out, err = (path.read_bytes().decode(errors="surrogateescape") for path in streams)
    return Ended(process.exitcode, out, err, late)


def begin(arguments: list[str], folder: Path, streams: list[Path]) -> None:
    """What the process does."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    os.chdir(folder)
    for number, path in enumerate(streams, 1):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), number)
    sys.stdout.reconfigure(encoding="utf-8", errors="strict")  # pyright: ignore[reportAttributeAccessIssue]
    sys.exit(main(arguments))
