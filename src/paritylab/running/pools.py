"""Worker processes that end with whoever started them, that do not hear Ctrl-C, and whose death is made good.

For work that other machines do: those have no Dask, on which crews stand.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.connection import Connection
from typing import Any, TypeVar

from paritylab.errors import InvalidInput

T = TypeVar("T")

DEATHS = 20  # workers that may die one after the other, with nothing done in between


@contextlib.contextmanager
def spared() -> Generator[None, None, None]:
    """Ctrl-C waits meanwhile; threads made here, and the processes that they start now or later, never hear of it."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    from multiprocessing import resource_tracker

    resource_tracker.ensure_running()  # its start would let Ctrl-C through to the workers
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def done_apart(
    work: Callable[..., T], calls: Sequence[tuple[Any, ...]], count: int
) -> Iterator[tuple[int, T]]:
    """Call ``work`` with each of these arguments in ``count`` processes; yields positions and answers as they come.

    Calls whose worker died are made again. Left before its end, by an interruption say, it ends the workers at once.
    """
    waiting, deaths = dict(enumerate(calls)), 0
    while waiting:
        listener, lifeline = multiprocessing.Pipe(duplex=False)  # closed when this process ends, however it does
        context = multiprocessing.get_context("spawn")
        pool = ProcessPoolExecutor(count, context, _end_with, (listener,))
        try:
            with spared():
                running = {pool.submit(work, *arguments): place for place, arguments in waiting.items()}
            for future in as_completed(running):
                answer, place = future.result(), running[future]
                del waiting[place]
                deaths = 0
                yield place, answer
        except BrokenProcessPool as error:
            deaths += 1
            if deaths == DEATHS:
                raise InvalidInput(f"{DEATHS} worker processes died one after the other, with nothing done") from error
        finally:
            lifeline.close()
            pool.shutdown(cancel_futures=True)
            listener.close()


def _end_with(listener: Connection) -> None:
    """In a worker: end when the process at the other end does, or lets go."""

    def wait() -> None:
        with contextlib.suppress(EOFError, OSError):
            listener.recv_bytes()
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()
