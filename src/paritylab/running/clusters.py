"""The Dask clusters of crews, and who may talk to them.

Whoever can talk to a process of Dask can run code in it, as its owner. So the processes that a crew starts talk TLS,
with credentials made for that crew alone; they show no pages; and the folders that they work in are their owner's
alone, because Dask imports modules from there.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import ipaddress
import os
import re
import shlex
import signal
import stat
import subprocess
import tempfile
import threading
import warnings
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any

from paritylab.errors import InvalidInput, in_a_line, require, unknown
from paritylab.running.pools import spared

STARTS = 3  # attempts to start workers on this machine
DEATHS = 20  # workers that a block may lose before it is given up
CONNECT_SECONDS = 10  # for a scheduler to answer at all
PATIENCE_SECONDS = 120  # for any connection after that: on a busy machine, a handshake alone can take half a minute
WATCH_SECONDS = 20  # between looks at the queue of Slurm
SLURM_OPTIONS = ("partition", "account", "cores", "memory", "walltime", "gpus", "jobs", "prologue")
TLS_SETTINGS = ("ca-file", "client.cert", "client.key")

# Dask starts a web server with every process. It gets no pages, and listens on loopback.
NO_PAGES = {"dashboard": False, "dashboard_address": "127.0.0.1:0"}
SETTINGS: dict[str, Any] = {
    "distributed.scheduler.allowed-failures": DEATHS,
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
    "distributed.worker.profile.enabled": False,  # it takes 3 % of a worker
    "distributed.comm.timeouts.connect": f"{PATIENCE_SECONDS}s",
    "distributed.comm.timeouts.tcp": f"{PATIENCE_SECONDS}s",  # for the other end to read what was sent
}


class CrewNotice(UserWarning):
    """A crew works, in a way that its user should know of."""


@contextlib.contextmanager
def _prepared() -> Generator[None, None, None]:
    """Dask with settings of ours, in a folder of ours; its usual one in /tmp may have been made by anybody."""
    from dask import config

    folder = _own_folder(config.get("temporary-directory") or tempfile.gettempdir())
    with config.set(SETTINGS | {"temporary-directory": folder}):
        yield


def _own_folder(within: str) -> str:
    """A folder that only its owner can enter, the same each time: Dask clears away what killed processes left there."""
    user = os.getuid() if hasattr(os, "getuid") else 0
    folder = Path(within) / f"paritylab-{user}"
    with contextlib.suppress(FileExistsError):
        folder.mkdir(0o700)
    about = folder.lstat()
    ours = stat.S_ISDIR(about.st_mode) and about.st_uid == user and not about.st_mode & 0o077
    return str(folder) if ours else tempfile.mkdtemp(prefix="paritylab-", dir=within)


@contextlib.contextmanager
def local(workers: int) -> Generator[Any, None, None]:
    """Processes on this machine that listen on loopback; the credentials never leave memory."""
    require(1 <= workers <= 1024, f"workers must be from 1 to 1024, not {workers}")
    with _prepared(), _started(workers, _temporary_credentials()) as cluster:
        yield cluster


def _started(workers: int, credentials: Any) -> Any:
    """Such processes; one may die while it starts, which Dask does not survive, so there is another try."""
    from distributed import LocalCluster

    for left in reversed(range(STARTS)):
        try:
            with spared():
                return LocalCluster(
                    n_workers=workers, threads_per_worker=1, processes=True, host="127.0.0.1", security=credentials,
                    dashboard_address=NO_PAGES["dashboard_address"], scheduler_kwargs=NO_PAGES, silence_logs=50,
                )
        except (RuntimeError, OSError) as error:
            if not left:
                raise InvalidInput(f"the workers do not start: {in_a_line(error)}") from error


def client(target: Any) -> Any:
    """Dask's client of a cluster of ours, or of one that runs already at an address."""
    from distributed import Client
    from distributed.comm.core import CommClosedError

    address = target if isinstance(target, str) else None
    if address is not None and _scheme(address) == "tls":
        _need_credentials()
    try:
        made = Client(target, timeout=CONNECT_SECONDS if address else PATIENCE_SECONDS, set_as_default=False)
    except (OSError, ValueError, TypeError, RuntimeError) as error:
        cut = isinstance(error, CommClosedError) and _scheme(target) != "tls"
        hint = "; perhaps it wants tls://" if cut else ""
        raise InvalidInput(f"no Dask scheduler answers at {target}: {in_a_line(error)}{hint}") from error
    made.rpc.timeout = PATIENCE_SECONDS  # else every connection that it makes later has as little time as the first
    if address is not None and _scheme(address) != "tls" and not _on_loopback(address):
        warnings.warn(f"the connection to {address} is not protected: everybody who reaches that scheduler can run code"
                      " on its workers and here; better use one at tls://", CrewNotice, stacklevel=4)
    return made


def _need_credentials() -> None:
    """Refuse where Dask's configuration has none, or has some that cannot be used."""
    from dask import config
    from distributed import Security

    if config.get("distributed.client.security-loader"):  # they come from a function of the user's
        return
    try:
        ready = Security().get_connection_args("client")["ssl_context"] is not None
    except (OSError, ValueError) as error:
        raise InvalidInput(f"the TLS settings of Dask's configuration cannot be used: {in_a_line(error)}") from error
    require(ready, "a scheduler at tls:// needs your credentials: set"
            f" {', '.join('distributed.comm.tls.' + name for name in TLS_SETTINGS)} in Dask's configuration, or"
            " DASK_DISTRIBUTED__COMM__TLS__CA_FILE and so on in the environment")


def _scheme(address: Any) -> str:
    scheme, sign, _ = str(address).partition("://")
    return scheme if sign else "tcp"


def _on_loopback(address: str) -> bool:
    """Whether a host is written as this machine itself; names are not looked up."""
    host = address.partition("://")[2] or address
    host = host.rpartition(":")[0].strip("[]")
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host == "localhost"


@contextlib.contextmanager
def slurm(options: Mapping[str, Any], folder: Path) -> Generator[Any, None, None]:
    """Jobs of Slurm, which print to files in a folder and find their credentials in a part of it that is the owner's.

    The scheduler, in this process, and the workers must reach each other through the network.
    """
    from dask import config

    jobs, job, module = _at_least_one("jobs", options.get("jobs", 1)), _job(options, folder), _jobqueue()
    _try_submission(slurm_script(options, folder))
    folder.mkdir(parents=True, exist_ok=True)
    submitted: list[str | None] = []
    with tempfile.TemporaryDirectory(prefix=".credentials-", dir=folder.resolve()) as private, _prepared():
        scheduler = config.get("jobqueue.slurm.scheduler-options", {}) | NO_PAGES
        cluster = module.SLURMCluster(job_cls=_job_class(submitted), security=_kept_credentials(Path(private)),
                                      scheduler_options=scheduler, **job)
        with cluster as made, _watched(made, submitted, jobs, folder):
            made.scale(jobs=jobs)
            yield made


@contextlib.contextmanager
def _watched(cluster: Any, submitted: list[str | None], jobs: int, folder: Path) -> Generator[None, None, None]:
    """End the scheduler, and with it the sweep, once all jobs have ended: Dask would wait for workers for ever."""
    left, over = threading.Event(), threading.Event()

    def watch() -> None:
        while not left.wait(WATCH_SECONDS):
            if len(submitted) >= jobs and (queue := _queue()) is not None and not queue & set(submitted):
                over.set()
                cluster.loop.add_callback(cluster.scheduler.close)
                return

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    except InvalidInput as error:
        if not over.is_set():
            raise
        raise InvalidInput("all Slurm jobs have ended; the same command goes on from what is stored, and what they"
                           f" printed is in {folder}") from error
    finally:
        left.set()
        watcher.join()


def _queue() -> set[str] | None:
    """The jobs of this user that wait or run; None if Slurm does not answer."""
    try:
        asked = subprocess.run(["squeue", "--noheader", "--format=%i", f"--user={os.getuid()}"],
                               capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return set(asked.stdout.split()) if asked.returncode == 0 else None


def slurm_script(options: Mapping[str, Any], folder: Path) -> str:
    """The job script that would be submitted for each job."""
    job, made = _job(options, folder), _job_class([])
    credentials = _credentials_in(folder.resolve() / ".credentials-...")
    return made("tls://SCHEDULER:8786", "paritylab", security=credentials, protocol="tls://", **job).job_script()


def _try_submission(script: str) -> None:
    """Ask Slurm whether it would take a job. (What it says to Dask is lost, and Dask waits for workers for ever.)"""
    try:
        asked = subprocess.run(["sbatch", "--test-only"], input=script, capture_output=True, text=True)
    except FileNotFoundError as error:
        raise InvalidInput("there is no sbatch here: --slurm works where Slurm's commands are") from error
    said = "; ".join(asked.stderr.splitlines()) or "it does not say why"
    require(asked.returncode == 0, f"Slurm does not take the jobs: {said}")


def _jobqueue() -> Any:
    """Dask's clusters on Slurm. When imported they take Ctrl-C for themselves; it is given back."""
    need("dask_jobqueue")
    before = signal.getsignal(signal.SIGINT)
    module = importlib.import_module("dask_jobqueue.slurm")
    signal.signal(signal.SIGINT, before)
    return module


def _job_class(submitted: list[str | None]) -> Any:
    """Slurm jobs as dask-jobqueue makes them, but with the paths of credentials quoted for the shell.

    The numbers of jobs are added to ``submitted``, and None for one that Slurm did not take.
    """

    class Quoted:
        def __init__(self, credentials: Any) -> None:
            self._credentials = credentials

        def get_tls_config_for_role(self, role: str) -> dict[str, str]:
            found = self._credentials.get_tls_config_for_role(role)
            return {name: shlex.quote(str(value)) for name, value in found.items()}

    class Job(_jobqueue().SLURMJob):
        def __init__(self, *arguments: Any, security: Any, **options: Any) -> None:
            super().__init__(*arguments, security=Quoted(security), **options)

        async def start(self) -> None:
            try:
                await super().start()
            finally:
                submitted.append(self.job_id)

    return Job


def _job(options: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Options of a Slurm job as dask-jobqueue names them: one process for each core."""
    for name in options:
        if name not in SLURM_OPTIONS:
            raise unknown("Slurm option", name, SLURM_OPTIONS)
    cores = _at_least_one("cores", options.get("cores", 1))
    memory = str(options.get("memory", f"{2 * cores}GB"))
    require(re.fullmatch(r"\s*\d+(\.\d+)?\s*[kmgtp]?i?b?\s*", memory, re.I | re.A) is not None,
            f"the memory of Slurm jobs must be written as 16GB, not {memory!r}")
    printed = str(folder.resolve()).replace("%", "%%")
    require(printed.isprintable() and '"' not in printed, f"Slurm cannot write to {printed!r}")
    return {
        "queue": options.get("partition"),
        "account": options.get("account"),
        "cores": cores,
        "processes": cores,
        "memory": memory,
        "walltime": str(options.get("walltime", "01:00:00")),
        "job_extra_directives": [f'--output="{printed}/%j.out"']
        + ([f"--gpus={options['gpus']}"] if "gpus" in options else []),
        "job_script_prologue": [*str(options.get("prologue", "")).splitlines(), *PREPARED],
        "local_directory": '"$scratch"',
        "worker_extra_args": ["--no-dashboard", "--dashboard-address", NO_PAGES["dashboard_address"]],
    }


# Of a job, before its workers start: settings as above, and a folder of their own, on the node's disk.
PREPARED = (
    "export DASK_DISTRIBUTED__WORKER__HTTP__ROUTES='[]' DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED=False",
    f"export DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT={PATIENCE_SECONDS}s"
    f" DASK_DISTRIBUTED__COMM__TIMEOUTS__TCP={PATIENCE_SECONDS}s",
    "scratch=$(mktemp -d) || exit",
    "trap 'rm -rf \"$scratch\"' EXIT",
)


def _temporary_credentials() -> Any:
    """A key and a certificate, made just now, that a cluster of ours and its client share."""
    need("cryptography")
    from distributed import Security

    return Security.temporary()


def _kept_credentials(folder: Path) -> Any:
    """The same, in files that nobody else can read."""
    made, kept = _temporary_credentials(), _credentials_in(folder)
    for path, text in ((kept.tls_worker_cert, made.tls_worker_cert), (kept.tls_worker_key, made.tls_worker_key)):
        try:
            Path(path).touch(0o600)
            Path(path).write_text(text, encoding="utf-8")
        except OSError as error:
            raise InvalidInput(f"cannot write the credentials of Slurm jobs to {path}: {error.strerror}") from error
    return kept


def _credentials_in(folder: Path) -> Any:
    from distributed import Security

    certificate, key = str(folder / "certificate.pem"), str(folder / "key.pem")
    roles = {f"tls_{role}_{name}": path for role in ("client", "scheduler", "worker")
             for name, path in (("cert", certificate), ("key", key))}
    return Security(require_encryption=True, tls_ca_file=certificate, **roles)


def _at_least_one(name: str, text: Any) -> int:
    """A number of cores or jobs, from a command line or a file."""
    require(str(text).isdecimal() and int(text) >= 1, f"the {name} of Slurm must be a whole number, not {text!r}")
    return int(text)


def need(module: str) -> None:
    """Refuse in one line where an optional package is not installed."""
    require(importlib.util.find_spec(module) is not None,
            f"a crew needs {module.replace('_', '-')}: install paritylab[cluster]")
