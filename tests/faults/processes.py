"""Faults of processes: kills and interruptions of commands, of their workers, of a scheduler."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import NamedTuple

from faults.bench import (
    COMMAND,
    INTERRUPTED,
    Bench,
    Child,
    Outcome,
    blocks,
    compared,
    differing,
    ended,
    records,
    wait_for,
)

from paritylab.running import clusters

CAMPAIGN = 8  # attempts to cut a command short before it is let through

# A process that sends itself a signal before or after a call.
STRIKE = """
import os
calls, real = [0], os.{call}
def strike(*arguments, **options):
    calls[0] += 1
    if calls[0] == {count} and {before}:
        os.{kill}(os.getpid(), {number})
    answer = real(*arguments, **options)
    if calls[0] == {count} and not {before}:
        os.{kill}(os.getpid(), {number})
    return answer
os.{call} = strike
"""


def struck(moments: Random, bench: Bench, out: Path, number: int, *options: str, group: bool = False) -> Child:
    """A command that got a signal at a random moment and ended: at one of its calls, after it wrote, or at any time."""
    if moments.random() < 0.5:
        call, before = moments.choice(["fsync", "replace", "unlink"]), moments.random() < 0.5
        strike = STRIKE.format(call=call, count=int(2 ** moments.uniform(0, 6)), before=before, number=int(number),
                               kill="killpg" if group else "kill")
        child = bench.start(out, *options, first=strike)
    else:
        child = bench.start(out, *options)
        moment(moments, bench, child, out)
        child.send(number, group)
    child.wait()
    return child


def moment(moments: Random, bench: Bench, child: Child, out: Path) -> None:
    """Wait for a random moment in the life of a command: any, or one soon after it wrote."""
    if moments.random() < 0.5:
        limit = time.monotonic() + moments.uniform(0, bench.usual)
        wait_for(lambda: child.status() is not None or time.monotonic() > limit, 60)
    else:
        after_a_block(moments, child, out)


def after_a_block(moments: Random, child: Child, out: Path) -> None:
    before = blocks(out)
    wait_for(lambda: child.status() is not None or bool(blocks(out) - before), 60)
    time.sleep(moments.uniform(0, 0.05))


def kill_command(moments: Random, folder: Path, bench: Bench, *options: str) -> Outcome:
    """Kill a command again and again, also when little or nothing is left to do, then let it through."""
    outcome = Outcome()
    for _ in range(CAMPAIGN // 2 if options else CAMPAIGN):
        child = struck(moments, bench, folder, signal.SIGKILL, *options)
        status = child.status()
        outcome.faults += status == -signal.SIGKILL
        outcome.expect(status in (0, -signal.SIGKILL) and not child.err, f"status {status}: {child.err}")
        outcome.different += differing(records(folder), bench.undisturbed)
        outcome.left += child.orphans()
    bench.complete(folder, outcome=outcome)
    outcome += compared(folder, bench.undisturbed)
    return outcome


def kill_command_with_workers(moments: Random, folder: Path, bench: Bench) -> Outcome:
    """The same with two worker processes, which must not outlive their command."""
    return kill_command(moments, folder, bench, "--workers", "2")


def interrupt_command(moments: Random, folder: Path, bench: Bench, *options: str) -> Outcome:
    """Ctrl-C: to the command alone, or, as a terminal does it, to all its processes."""
    outcome = Outcome()
    for _ in range(CAMPAIGN // 2):
        child = struck(moments, bench, folder, signal.SIGINT, *options, group=moments.random() < 0.5)
        status = 0 if child.status() == -signal.SIGINT and child.out.endswith("}\n") else child.status()  # it was done
        outcome.faults += status == 130
        said = (child.err == INTERRUPTED and not child.out) if status == 130 else (status == 0 and not child.err)
        outcome.expect(said, f"status {status}: {child.err}")
        outcome.left += child.orphans()
    bench.complete(folder, outcome=outcome)
    outcome += compared(folder, bench.undisturbed)
    return outcome


def interrupt_command_with_workers(moments: Random, folder: Path, bench: Bench) -> Outcome:
    """The same with two worker processes, which must not outlive their command."""
    return interrupt_command(moments, folder, bench, "--workers", "2")


def interrupt_cold_command(moments: Random, folder: Path, bench: Bench) -> Outcome:
    """Ctrl-C to a command that was not forked from anything: also while it imports its libraries."""
    outcome = Outcome()
    command = [sys.executable, "-m", "paritylab", *COMMAND, "--out", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        time.sleep(moments.uniform(0.3, 4))
        child.send_signal(signal.SIGINT)
        out, errors = child.communicate(timeout=120)
    interrupted = child.returncode == 130
    outcome.faults += interrupted
    said = (errors == INTERRUPTED and not out) if interrupted else (child.returncode == 0 and not errors)
    outcome.expect(said, f"status {child.returncode}: {errors}")
    bench.complete(folder, outcome=outcome)
    outcome += compared(folder, bench.undisturbed)
    return outcome


def kill_workers(moments: Random, folder: Path, bench: Bench) -> Outcome:
    """Kill workers under a command, which does not even mention it."""
    outcome = Outcome()
    child = bench.start(folder, "--workers", "2")
    with ended(child):
        for _ in range(moments.randint(1, 3)):
            wait_for(lambda: child.status() is not None or len(child.workers()) == 2, 60)
            moment(moments, bench, child, folder)
            workers = child.workers()
            if child.status() is None and workers:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(moments.choice(workers), signal.SIGKILL)
                    outcome.faults += 1
        status = child.wait()
        outcome.expect(status == 0 and not child.err, f"status {status}: {child.err}")
        outcome.left += child.orphans()
    outcome += compared(folder, bench.undisturbed)
    return outcome


class Cluster(NamedTuple):
    scheduler: Child
    workers: list[Child]
    address: str


@contextlib.contextmanager
def cluster(
    folder: Path, bench: Bench, workers: int = 1, port: int = 0, credentials: Path | None = None
) -> Iterator[Cluster]:
    """A Dask scheduler on a port of loopback, a free one unless said, with workers of its own; behind TLS if wanted."""
    file = folder / "scheduler.json"
    file.unlink(missing_ok=True)
    common = ["--host", "127.0.0.1", "--scheduler-file", str(file), "--no-dashboard"]
    if credentials is not None:
        certificate, key = str(credentials / "certificate.pem"), str(credentials / "key.pem")
        common += ["--protocol", "tls", "--tls-ca-file", certificate, "--tls-cert", certificate, "--tls-key", key]
    scheduler = Child(bench, [*common, "--port", str(port)], program="distributed.cli.dask_scheduler:main")
    with ended(scheduler):
        wait_for(lambda: file.is_file() and file.read_text().endswith("}"), 60)
        more = [*common, "--no-nanny", "--nthreads", "1", "--death-timeout", "5", "--local-directory", str(folder)]
        hands = [Child(bench, more, program="distributed.cli.dask_worker:main") for _ in range(workers)]
        with ended(*hands):
            yield Cluster(scheduler, hands, json.loads(file.read_text())["address"])


def kill_scheduler(moments: Random, folder: Path, bench: Bench) -> Outcome:
    """Kill the scheduler of a Dask cluster; the command then goes on with another one, or alone."""
    outcome = Outcome()
    out = folder / "out"
    with cluster(folder, bench) as (scheduler, _, address):
        child = bench.start(out, "--scheduler", address)
        moment(moments, bench, child, out)
        scheduler.send(signal.SIGKILL)
        outcome.faults += 1
        status = child.wait()
        outcome.expect(status == 0 or child.refused("scheduler"), f"status {status}: {child.err}")
    outcome.different += differing(records(out), bench.undisturbed)
    if moments.random() < 0.5:
        bench.complete(out, outcome=outcome)
    else:
        with cluster(folder, bench) as (*_, address):
            bench.complete(out, "--scheduler", address, outcome=outcome)
    outcome += compared(out, bench.undisturbed)
    return outcome


def restart_scheduler(moments: Random, folder: Path, bench: Bench) -> Outcome:
    """Kill the scheduler, and start another at its address at once; the command ends, the next one goes on with it."""
    outcome, out = Outcome(), folder / "out"
    with cluster(folder, bench) as (scheduler, _, address):
        child = bench.start(out, "--scheduler", address)
        after_a_block(moments, child, out)
        scheduler.send(signal.SIGKILL)
        scheduler.wait()
        outcome.faults += 1
        with cluster(folder, bench, 2, int(address.rpartition(":")[2])) as (*_, again):
            outcome.expect(again == address, f"not the same address: {again}")
            status = child.wait()
            outcome.expect(status == 0 or child.refused("scheduler"), f"status {status}: {child.err}")
            outcome.different += differing(records(out), bench.undisturbed)
            bench.complete(out, "--scheduler", address, outcome=outcome)
    outcome += compared(out, bench.undisturbed)
    return outcome


def still_scheduler(moments: Random, folder: Path, bench: Bench) -> Outcome:
    """The scheduler, or a worker, gets no time for longer than connections usually may take; nothing is said."""
    outcome, out = Outcome(), folder / "out"
    with cluster(folder, bench, 2) as (scheduler, workers, address):
        child = bench.start(out, "--scheduler", address)
        after_a_block(moments, child, out)
        still = moments.choice([scheduler, workers[0]])
        still.send(signal.SIGSTOP)
        time.sleep(moments.uniform(clusters.CONNECT_SECONDS + 1, clusters.CONNECT_SECONDS + 5))
        still.send(signal.SIGCONT)
        outcome.faults += 1
        status = child.wait()
        outcome.expect(status == 0 and not child.err, f"status {status}: {child.err}")
    outcome += compared(out, bench.undisturbed)
    return outcome


# The credentials of a user, as Dask's configuration has them.
CREDENTIALS = """
import dask
dask.config.set({{"distributed.comm.tls.ca-file": {certificate!r}, "distributed.comm.tls.client.cert": {certificate!r},
                  "distributed.comm.tls.client.key": {key!r}}})
"""


def kill_worker_behind_tls(moments: Random, folder: Path, bench: Bench) -> Outcome:
    """Kill one of two workers of a cluster that talks TLS; the other does its runs."""
    outcome, out, private = Outcome(), folder / "out", folder / "private"
    private.mkdir(0o700)
    kept = clusters._kept_credentials(private)
    first = CREDENTIALS.format(certificate=kept.tls_client_cert, key=kept.tls_client_key)
    with cluster(folder, bench, 2, credentials=private) as (_, workers, address):
        outcome.expect(address.startswith("tls://"), address)
        child = bench.start(out, "--scheduler", address, first=first)
        after_a_block(moments, child, out)
        moments.choice(workers).send(signal.SIGKILL)
        outcome.faults += 1
        status = child.wait()
        outcome.expect(status == 0 and not child.err, f"status {status}: {child.err}")
    outcome += compared(out, bench.undisturbed)
    return outcome


def mixture(moments: Random, folder: Path, bench: Bench, workers: int = 4) -> Outcome:
    """One sweep in one process, then in several, then on a Dask cluster; all but the last end before their time."""
    outcome = Outcome()
    out = folder / "out"
    for options in ([], ["--workers", str(workers)]):
        child = bench.start(out, *options)
        after_a_block(moments, child, out)
        number = moments.choice((signal.SIGKILL, signal.SIGINT))
        child.send(number, group=number == signal.SIGINT)
        status = child.wait()
        said = {0: "", -signal.SIGKILL: "", 130: INTERRUPTED}.get(status)
        outcome.faults += status != 0
        outcome.expect(child.err == said, f"status {status}: {child.err}")
        outcome.left += child.orphans()
    with cluster(folder, bench) as (scheduler, _, address):
        child = bench.start(out, "--scheduler", address)
        after_a_block(moments, child, out)
        scheduler.send(signal.SIGKILL)
        status = child.wait()
        outcome.faults += status != 0
        outcome.expect(status == 0 or child.refused("scheduler"), f"status {status}: {child.err}")
    with cluster(folder, bench, 2) as (*_, address):
        bench.complete(out, "--scheduler", address, outcome=outcome)
    outcome += compared(out, bench.undisturbed)
    return outcome
