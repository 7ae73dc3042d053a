"""A crew: worker processes, here or elsewhere, that train what a sweep asks for. Same commands, same records.

    with pl.crew(workers=4):                        # processes on this machine
        pl.measure(pl.Parity(n=30, k=3), runs=10_000)
    with pl.crew(scheduler="tls://host:8786"): ...  # a running Dask cluster
    with pl.crew(slurm={"partition": "cpu"}): ...   # jobs of a Slurm allocation

Runs go out in blocks of about a second of work, sized by what blocks before them took. What a run does depends on its
Setup, seed and number alone, so a block that is tried again (its worker died, say) gives the same records, and a sweep
asks for each block under one name: it cannot come twice. One process, the one that asks, writes the store.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import itertools
import logging
import math
import pickle
import time
import uuid
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from paritylab import engines
from paritylab.errors import CellFailed, InvalidInput, in_a_line, require
from paritylab.running import clusters, luggage
from paritylab.running.interfaces import Trainer
from paritylab.setups.setup import Setup
from paritylab.storage.records import COLUMNS, Records

BLOCK_SECONDS = 1.0
FIRST_RUNS = 8
AHEAD = 2  # blocks in flight for each worker, so that none waits for the next
BLOCKS_A_SECOND = 200  # what one scheduler should be asked for at most: with more workers, blocks last longer
SENT_TOGETHER = 200  # blocks in one message to the scheduler; the first workers begin while the next one is made
TOGETHER_SECONDS = 0.02  # for which answers are collected: one message brings them all
CHOSEN = 1000  # programs whose engines one worker chooses
TRIED = 20  # programs that are tried on shapes by one worker, or here if there are no more: a second's work

T = TypeVar("T")
Piece = tuple[int, np.ndarray]
"""Some runs of a job: its position and their numbers."""

_CREW: ContextVar[Crew | None] = ContextVar("crew", default=None)


def current() -> Crew | None:
    """The crew that sweeps use now, if any."""
    return _CREW.get()


def trainer() -> Trainer:
    """What trains now: the crew, or the engines of this process."""
    return current() or engines


class Crew:
    """Workers behind a Dask client; ``work`` is what they do with a block."""

    def __init__(self, client: Any, work: Callable[..., Any] | None = None) -> None:
        self.client = client
        self._work = work or globals()["work"]
        self._size, self._asked = 1, -math.inf

    @property
    def size(self) -> int:
        """How many blocks can be worked on at a time, as of a second ago or less: asking costs as much as a block."""
        if time.monotonic() - self._asked > 1:
            with contextlib.suppress(OSError):  # one that is gone is noticed by whoever waits for a block
                self._size = max(1, sum(self.client.nthreads().values()))
            self._asked = time.monotonic()
        return self._size

    def choices(self, setups: Sequence[Setup], engine: str = "auto") -> list[tuple[str, str]]:
        """As :func:`paritylab.engines.choices`, by a worker: it may have a GPU where this process has none."""
        programs = {setup.program: setup for setup in setups}  # those of one program are trained by one engine
        chosen = self.of_setups(functools.partial(engines.choices, engine=engine), list(programs.values()), CHOSEN)
        known = dict(zip(programs, chosen, strict=True))
        return [known[setup.program] for setup in setups]

    def of_setups(self, function: Callable[..., Sequence[T]], setups: Sequence[Setup], together: int) -> list[T]:
        """What a function gives for each of these Setups; a worker does some ``together``."""
        sent = [portable(setup) for setup in setups]
        parts = [(function, sent[i : i + together]) for i in range(0, len(sent), together)]
        found: dict[int, Sequence[T]] = dict(self.each(_of_setups, parts))
        return [one for place in range(len(parts)) for one in found[place]]

    def each(self, function: Callable[..., Any], calls: Iterable[tuple[Any, ...]]) -> Iterator[tuple[int, Any]]:
        """What a function gives for each of these arguments, as workers have done it."""
        import cloudpickle

        asked = (_Call(place, f"paritylab-{uuid.uuid4().hex}", cloudpickle.dumps(call))
                 for place, call in enumerate(calls))
        for answers in self._through(function, asked):
            yield from answers

    def attempt(
        self, jobs: Sequence[engines.Job], engine: str = "auto", threads: int | None = None
    ) -> Iterator[Sequence[tuple[int, Records | CellFailed]]]:
        """As :func:`paritylab.engines.attempt`, by the workers, of any jobs; ``threads`` of each, one unless said."""
        blocks = _Blocks(jobs)

        def calls() -> Iterator[_Call]:
            while blocks.left:
                pieces = blocks.take(self.size)
                block = [(portable(jobs[index].setup), jobs[index].seed, runs) for index, runs in pieces]
                yield _Call(pieces, _name(jobs, pieces, engine), pickle.dumps((block, engine, threads or 1)))

        for answers in self._through(self._work, calls()):
            ended: list[tuple[int, Records | CellFailed]] = []
            for pieces, outcome in answers:
                for (index, runs), (found, seconds) in zip(pieces, outcome, strict=True):
                    blocks.learn(index, seconds / len(runs))
                    ended.append((index, CellFailed(found) if isinstance(found, str) else Records(*found)))
            yield ended

    def _through(self, function: Callable[..., Any], calls: Iterator[_Call]) -> Iterator[list[tuple[Any, Any]]]:
        """Answers to calls as they come. So many are under way that no worker waits for the next one.

        Calls go out and answers come back by the hundred where there are many: a message costs more than what is in it,
        and a connection for each answer, all at once, more than a busy machine accepts in time.
        """
        from distributed import as_completed

        going: dict[Any, Any] = {}
        packed, done = functools.partial(_answer, function), as_completed(loop=self.client.loop)

        def send() -> None:
            while more := list(itertools.islice(calls, min(SENT_TOGETHER, max(0, AHEAD * self.size - len(going))))):
                futures = self.client.map(packed, [call.data for call in more], key=[call.name for call in more],
                                          pure=False)
                going.update(zip(futures, (call.what for call in more), strict=True))
                done.update(futures)

        with _explained():
            try:
                send()
                while going:
                    ended = [next(done)]
                    time.sleep(TOGETHER_SECONDS)
                    ended += done.next_batch(block=False)
                    for future in ended:
                        if future.status == "error" and isinstance(error := future.exception(), OSError):
                            raise InvalidInput(f"on a worker: {in_a_line(error)}") from error
                        if future.status != "finished":
                            future.result()  # raises
                    answers = self.client.gather(ended)
                    yield [(going.pop(future), pickle.loads(answer))
                           for future, answer in zip(ended, answers, strict=True)]
                    send()
            finally:
                self.client.cancel(list(going))


class _Call(NamedTuple):
    """A call for a worker: what it is to whoever asks, its name, and its arguments, packed."""

    what: Any
    name: str
    data: bytes


def _answer(function: Callable[..., Any], data: bytes) -> bytes:
    """On a worker. Arguments and answers are packed: Dask would look through lists for something of its own."""
    return pickle.dumps(function(*pickle.loads(data)))


def each(function: Callable[..., Any], calls: Iterable[tuple[Any, ...]]) -> Iterator[tuple[int, Any]]:
    """What a function gives for each of these arguments, with their place: by the crew, as it is done, or here.

    The one way by which everything that takes long and is not a sweep goes to a crew.
    """
    if (crew := current()) is not None:
        yield from crew.each(function, calls)
    else:
        for place, call in enumerate(calls):
            yield place, function(*call)


def in_parts(function: Callable[..., Sequence[T]], setups: Sequence[Setup]) -> Sequence[T]:
    """What a function of Setups gives, for each of many that take a while: by the crew, in parts, or here."""
    crew = current()
    return function(setups) if crew is None or len(setups) <= TRIED else crew.of_setups(function, setups, TRIED)


def once(function: Callable[..., T], *arguments: Any, **options: Any) -> T:
    """What a function gives for these arguments: by a worker of the crew, or here."""
    [(_, answer)] = each(functools.partial(function, **options), [arguments])
    return answer


@contextlib.contextmanager
def _explained() -> Generator[None, None, None]:
    """What Dask raises where a worker or the scheduler is lost for good, in one line."""
    from distributed import CancelledError, KilledWorker
    from distributed.client import ClosedClientError

    try:
        yield
    except KilledWorker as error:
        raise InvalidInput(f"a block of runs killed its worker again and again: {error}") from error
    except (CancelledError, ClosedClientError, OSError) as error:
        raise InvalidInput("the scheduler is gone; the same command goes on from what is stored") from error


@contextlib.contextmanager
def _quiet() -> Generator[None, None, None]:
    """No lines of Dask on standard error: what a user should know comes as an exception."""
    loggers = [logging.getLogger(name) for name in ("distributed", "distributed.client", "tornado.application")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


class _Blocks:
    """The runs still to be sent, and how many of them make about a second of work."""

    def __init__(self, jobs: Sequence[engines.Job]) -> None:
        runs = enumerate(np.asarray(job.runs, np.int64) for job in jobs)
        self._waiting = deque((index, numbers) for index, numbers in runs if len(numbers))
        self._seconds: dict[int, float] = {}  # of one run of a job
        self._usual: float | None = None
        self.left = sum(len(runs) for _, runs in self._waiting)

    def take(self, workers: int) -> list[Piece]:
        """The next block, of one job or several: fewer runs towards the end, so that all workers end together."""
        seconds = max(BLOCK_SECONDS, workers / BLOCKS_A_SECOND)
        most = FIRST_RUNS
        if self._usual is not None:
            least = min(FIRST_RUNS, max(1, int(seconds / 4 / max(self._usual, 1e-9))))
            most = max(least, self.left // (AHEAD * workers))
        pieces: list[Piece] = []
        while self._waiting and seconds > 0 and most > 0:
            index, runs = self._waiting.popleft()
            each = max(self._seconds.get(index, self._usual or 0.0), 1e-9)
            size = min(len(runs), most, max(1, int(seconds / each)))
            pieces.append((index, runs[:size]))
            if size < len(runs):
                self._waiting.appendleft((index, runs[size:]))
            seconds -= size * each
            most -= size
            self.left -= size
        return pieces

    def learn(self, index: int, seconds: float) -> None:
        """What one run of a job took, averaged with what came before."""
        self._seconds[index] = 0.7 * self._seconds.get(index, seconds) + 0.3 * seconds
        self._usual = 0.7 * (seconds if self._usual is None else self._usual) + 0.3 * seconds


def work(
    block: Sequence[tuple[bytes | str, int, np.ndarray]], engine: str, threads: int
) -> list[tuple[list[np.ndarray] | str, float]]:
    """One block on a worker: of each piece the columns of its Records, or why there are none, and its seconds."""
    jobs = [engines.Job(made(setup), seed, runs) for setup, seed, runs in block]
    parts: list[list[Records]] = [[] for _ in jobs]
    failures: dict[int, str] = {}
    seconds = np.zeros(len(jobs))
    for group in engines.together(jobs):
        start = time.perf_counter()
        for ended in engines.attempt([jobs[i] for i in group], engine, threads):
            for position, found in ended:
                if isinstance(found, CellFailed):
                    failures[group[position]] = str(found)
                else:
                    parts[group[position]].append(found)
        runs = np.array([len(jobs[i].runs) for i in group])
        seconds[group] = (time.perf_counter() - start) * runs / runs.sum()
    return [(failures.get(i) or _columns(part), float(seconds[i])) for i, part in enumerate(parts)]


def _columns(parts: Sequence[Records]) -> list[np.ndarray]:
    records = Records.concatenate(parts)
    ordered = records.take(np.argsort(records.run))
    return [np.asarray(getattr(ordered, name)) for name in COLUMNS]


def _of_setups(function: Callable[..., Sequence[T]], setups: Sequence[bytes | str]) -> Sequence[T]:
    return function([made(setup) for setup in setups])


def made(setup: bytes | str) -> Setup:
    """What :func:`portable` packed."""
    return Setup.from_json(setup) if isinstance(setup, str) else luggage.unpacked(setup)


def sent(task: T) -> T:
    """A task on its way to another process: its Setup as :func:`portable` packs it."""
    setup = getattr(task, "setup", None)
    return task if setup is None else replace(task, setup=portable(setup))  # pyright: ignore


def received(task: T) -> T:
    """What :func:`sent` packed."""
    setup = getattr(task, "setup", None)
    return task if setup is None else replace(task, setup=made(setup))  # pyright: ignore


def portable(setup: Setup) -> bytes | str:
    """A Setup as text; one that holds functions of the user's own is packed."""
    return luggage.packed(setup) if setup.functions else setup.to_json()


def _name(jobs: Sequence[engines.Job], pieces: Sequence[Piece], engine: str) -> str:
    """A block by its contents: asked for again, it is the same block."""
    digest = hashlib.blake2b(engine.encode(), digest_size=16)
    for index, runs in pieces:
        digest.update(f"{jobs[index].setup.id} {jobs[index].seed} {len(runs)} ".encode() + runs.tobytes())
    return f"paritylab-{digest.hexdigest()}"


@contextlib.contextmanager
def crew(
    workers: int | None = None,
    scheduler: str | None = None,
    slurm: Mapping[str, Any] | None = None,
    out: str | Path = "out",
) -> Generator[Crew, None, None]:
    """Let sweeps within be trained by worker processes; say one of the first three.

    Args:
        workers: so many processes on this machine, bound to loopback.
        scheduler: the address of a running Dask scheduler, whose workers can import paritylab. For ``tls://`` the
            credentials are those of Dask's configuration; on ``tcp://`` everybody who reaches it can run code.
        slurm: options of Slurm jobs, each a worker: ``partition``, ``account``, ``cores``, ``memory``, ``walltime``,
            ``gpus``, ``jobs`` (how many) and ``prologue`` (shell lines run first, such as activating an environment).
        out: where Slurm jobs write what they print, in its folder ``slurm``; all nodes must see it.
    """
    given = [name for name, value in (("workers", workers), ("scheduler", scheduler), ("slurm", slurm))
             if value is not None]
    require(len(given) == 1, f"a crew needs one of workers, scheduler, slurm, not {', '.join(given) or 'none'}")
    clusters.need("distributed")
    with contextlib.ExitStack() as stack:
        stack.enter_context(_quiet())
        if workers is not None:
            target: Any = stack.enter_context(clusters.local(workers))
        elif slurm is not None:
            target = stack.enter_context(clusters.slurm(slurm, Path(out) / "slurm"))
        else:
            target = scheduler
        made = Crew(stack.enter_context(clusters.client(target)))
        token = _CREW.set(made)
        try:
            yield made
        finally:
            _CREW.reset(token)
