"""A crew: worker processes, here or elsewhere, that train what a sweep asks for. Same commands, same records.

    with pl.crew(workers=4):                        # processes on this machine
        pl.measure(pl.Parity(n=30, k=3), runs=10_000)
    with pl.crew(scheduler="tcp://host:8786"): ...  # a running Dask cluster
    with pl.crew(slurm={"partition": "cpu"}): ...   # jobs of a Slurm allocation

Runs go out in blocks of about a second of work, sized by what blocks before them took. What a run does depends on its
Setup, seed and number alone, so a block that is tried again (its worker died, say) gives the same records, and a sweep
asks for each block under one name: it cannot come twice. One process, the one that asks, writes the store.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextvars import ContextVar
from typing import Any

import numpy as np

from paritylab import engines
from paritylab.errors import InvalidInput, require, unknown
from paritylab.records import COLUMNS, Records
from paritylab.setup import Setup

BLOCK_SECONDS = 1.0
FIRST_RUNS = 8
AHEAD = 2  # blocks in flight for each worker, so that none waits for the next
RETRIES = 5  # times that a block is tried again when its worker dies
SLURM_OPTIONS = ("partition", "account", "cores", "memory", "walltime", "gpus", "jobs", "prologue")

_CREW: ContextVar[Crew | None] = ContextVar("crew", default=None)


def current() -> Crew | None:
    """The crew that sweeps use now, if any."""
    return _CREW.get()


class Crew:
    """Workers behind a Dask client."""

    def __init__(self, client: Any) -> None:
        self._client = client

    @property
    def size(self) -> int:
        """How many blocks can be worked on at a time."""
        return max(1, sum(self._client.nthreads().values()))

    def train(
        self, jobs: Sequence[engines.Job], engine: str, threads: int | None = None
    ) -> Iterator[list[tuple[int, Records]]]:
        """As :func:`paritylab.engines.train`, by the workers; ``threads`` of each, one unless said."""
        from distributed import as_completed

        blocks = _Blocks(jobs)
        going: dict[Any, int] = {}
        done = as_completed(loop=self._client.loop)

        def send() -> None:
            while blocks.left and len(going) < AHEAD * self.size:
                index, runs = blocks.take(self.size)
                task = (_portable(jobs[index].setup), jobs[index].seed, runs, engine, threads or 1)
                future = self._client.submit(work, *task, key=_name(jobs[index], runs, engine), retries=RETRIES)
                going[future] = index
                done.add(future)

        try:
            send()
            while going:
                future = next(done)
                index = going.pop(future)
                columns, seconds = self._result(future)
                blocks.learn(seconds / max(1, len(columns[0])))
                yield [(index, Records(*columns))]
                send()
        finally:
            self._client.cancel(list(going))

    def _result(self, future: Any) -> Any:
        from distributed import CancelledError, KilledWorker

        try:
            return future.result()
        except KilledWorker as error:
            raise InvalidInput(f"a block of runs killed its worker {RETRIES + 1} times: {error}") from error
        except (CancelledError, OSError) as error:
            raise InvalidInput("the scheduler is gone; the same command goes on from what is stored") from error


class _Blocks:
    """The runs still to be sent, and how many of them make about a second of work."""

    def __init__(self, jobs: Sequence[engines.Job]) -> None:
        self._runs = [np.asarray(job.runs, np.int64) for job in jobs]
        self._seconds: float | None = None

    @property
    def left(self) -> int:
        return sum(map(len, self._runs))

    def take(self, workers: int) -> tuple[int, np.ndarray]:
        """The next block, of one job: fewer runs towards the end, so that all workers end together."""
        index = next(i for i, runs in enumerate(self._runs) if len(runs))
        size = FIRST_RUNS if self._seconds is None else int(BLOCK_SECONDS / max(self._seconds, 1e-9))
        size = min(max(1, size), max(FIRST_RUNS, self.left // (AHEAD * workers)))
        block, self._runs[index] = self._runs[index][:size], self._runs[index][size:]
        return index, block

    def learn(self, seconds: float) -> None:
        """What a run took on a worker, averaged over the last blocks."""
        self._seconds = seconds if self._seconds is None else 0.7 * self._seconds + 0.3 * seconds


def work(setup: Setup | str, seed: int, runs: np.ndarray, engine: str, threads: int) -> tuple[list[np.ndarray], float]:
    """One block on a worker: the columns of its Records, and the seconds they took."""
    start = time.perf_counter()
    made = setup if isinstance(setup, Setup) else Setup.from_json(setup)
    trained = engines.train([engines.Job(made, seed, runs)], engine, threads)
    records = Records.concatenate([records for ended in trained for _, records in ended])
    ordered = records.take(np.argsort(records.run))
    return [np.asarray(getattr(ordered, name)) for name in COLUMNS], time.perf_counter() - start


def _portable(setup: Setup) -> Setup | str:
    """A Setup as text; one that holds functions of the user's own travels as it is."""
    text = setup.to_json()
    with contextlib.suppress(InvalidInput):
        if Setup.from_json(text) == setup:
            return text
    return setup


def _name(job: engines.Job, runs: np.ndarray, engine: str) -> str:
    digest = hashlib.blake2b(runs.tobytes(), digest_size=8).hexdigest()
    return f"paritylab-{job.setup.id}-{engine}-{job.seed}-{digest}"


@contextlib.contextmanager
def crew(
    workers: int | None = None, scheduler: str | None = None, slurm: Mapping[str, Any] | None = None
) -> Generator[Crew, None, None]:
    """Let sweeps within be trained by worker processes; say one of the three.

    Args:
        workers: so many processes on this machine, bound to loopback.
        scheduler: the address of a running Dask scheduler, whose workers can import paritylab.
        slurm: options of Slurm jobs, each a worker: ``partition``, ``account``, ``cores``, ``memory``, ``walltime``,
            ``gpus``, ``jobs`` (how many) and ``prologue`` (shell lines run first, such as activating an environment).
    """
    given = [name for name, value in (("workers", workers), ("scheduler", scheduler), ("slurm", slurm))
             if value is not None]  # fmt: skip
    require(len(given) == 1, f"a crew needs one of workers, scheduler, slurm, not {', '.join(given) or 'none'}")
    _need("distributed")
    from distributed import Client, LocalCluster

    with contextlib.ExitStack() as stack:
        if workers is not None:
            require(1 <= workers <= 1024, f"workers must be from 1 to 1024, not {workers}")
            target: Any = stack.enter_context(
                LocalCluster(n_workers=workers, threads_per_worker=1, processes=True, host="127.0.0.1",
                             dashboard_address="127.0.0.1:0", silence_logs=50)
            )
        elif slurm is not None:
            _need("dask_jobqueue")
            from dask_jobqueue.slurm import SLURMCluster

            target = stack.enter_context(SLURMCluster(**_job(slurm), scheduler_options={"dashboard_address": ":0"}))
            target.scale(jobs=int(slurm.get("jobs", 1)))
        else:
            target = scheduler
        try:
            client = stack.enter_context(Client(target, timeout=10, set_as_default=False))
        except (OSError, ValueError) as error:
            raise InvalidInput(f"no Dask scheduler answers at {target}: {error}") from error
        made = Crew(client)
        token = _CREW.set(made)
        try:
            yield made
        finally:
            _CREW.reset(token)


def slurm_script(options: Mapping[str, Any]) -> str:
    """The job script that would be submitted for each job."""
    _need("dask_jobqueue")
    from dask_jobqueue.slurm import SLURMJob

    return SLURMJob("tcp://SCHEDULER:8786", "paritylab", **_job(options)).job_script()


def _job(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options of a Slurm job as dask-jobqueue names them: one process for each core."""
    for name in options:
        if name not in SLURM_OPTIONS:
            raise unknown("Slurm option", name, SLURM_OPTIONS)
    cores = int(options.get("cores", 1))
    return {
        "queue": options.get("partition"),
        "account": options.get("account"),
        "cores": cores,
        "processes": cores,
        "memory": str(options.get("memory", f"{2 * cores}GB")),
        "walltime": str(options.get("walltime", "01:00:00")),
        "job_extra_directives": [f"--gpus={options['gpus']}"] if "gpus" in options else [],
        "job_script_prologue": str(options.get("prologue", "")).splitlines(),
    }


def _need(module: str) -> None:
    require(importlib.util.find_spec(module) is not None,
            f"a crew needs {module.replace('_', '-')}: install paritylab[cluster]")
