"""A private Slurm cluster of one node on loopback: daemons of its own, and all their files in one folder."""

from __future__ import annotations

import contextlib
import os
import pwd
import secrets
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

PROGRAMS = {
    "munged": "munge",
    "slurmctld": "slurmctld",
    "slurmd": "slurmd",
    "sbatch": "slurm-client",
    "scancel": "slurm-client",
    "scontrol": "slurm-client",
    "squeue": "slurm-client",
    "sinfo": "slurm-client",
}
"""What is needed, and the package of Debian that has it."""

SETTINGS = """
ClusterName=paritylab
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
SlurmdPort={node}
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
PropagateResourceLimits=NONE
KillWait=5
NodeName={host} NodeAddr=127.0.0.1 CPUs=2 RealMemory=8000 State=UNKNOWN
PartitionName=lab Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""


def path_of(program: str) -> str | None:
    """Where a program is; daemons are often in folders that users do not search."""
    return shutil.which(program, path=os.pathsep.join([os.environ.get("PATH", ""), "/usr/local/sbin", "/usr/sbin"]))


def missing() -> list[str]:
    """One line for each program that is not there."""
    return [f"{program} is missing (Debian's package {package})" for program, package in PROGRAMS.items()
            if path_of(program) is None]


def ports(count: int) -> list[int]:
    """So many ports of loopback that nobody listens on."""
    with contextlib.ExitStack() as stack:
        taken = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in taken:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in taken]


@contextlib.contextmanager
def cluster(folder: Path) -> Iterator[dict[str, str]]:
    """Such a cluster, with two cores and the partition ``lab``; the environment in which Slurm's commands find it."""
    (folder / "state").mkdir()
    (folder / "spool").mkdir()
    key = folder / "munge.key"
    key.touch(0o600)
    key.write_bytes(secrets.token_bytes(128))
    controller, node = ports(2)
    settings = folder / "slurm.conf"
    host, user = socket.gethostname().partition(".")[0], pwd.getpwuid(os.getuid()).pw_name
    settings.write_text(SETTINGS.format(host=host, user=user, folder=folder, controller=controller, node=node))
    environment = os.environ | {"SLURM_CONF": str(settings)}
    files = [f"--{name}={folder}/munge.{name.removesuffix('-file')}" for name in
             ("socket", "key-file", "pid-file", "log-file", "seed-file")]
    commands = {
        "munged": ["--foreground", "--force", *files],
        "slurmctld": ["-D", "-f", str(settings)],
        "slurmd": ["-D", "-f", str(settings)],
    }
    with contextlib.ExitStack() as stack:
        for program, arguments in commands.items():
            stack.enter_context(daemon(program, arguments, folder, environment))
            if program == "munged":
                wait_for((folder / "munge.socket").exists, 30, "munged made no socket")
        wait_for(lambda: said("squeue", "--noheader", environment=environment) is not None, 60, "slurmctld is silent")
        wait_for(lambda: "idle" in (said("sinfo", "-h", "-o", "%T", environment=environment) or ""), 60, "no idle node")
        yield environment


@contextlib.contextmanager
def daemon(program: str, arguments: list[str], folder: Path, environment: dict[str, str]) -> Iterator[None]:
    """A program in the background, ended by its process id whatever happens."""
    where = path_of(program)
    assert where is not None
    with open(folder / f"{program}.out", "wb") as out:
        process = subprocess.Popen([where, *arguments], stdout=out, stderr=out, env=environment, cwd=folder,
                                   stdin=subprocess.DEVNULL, start_new_session=True)
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def said(*command: str, environment: dict[str, str]) -> str | None:
    """What a command of Slurm prints; None if it fails."""
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    return done.stdout if done.returncode == 0 else None


def wait_for(condition: Callable[[], bool], seconds: float, otherwise: str) -> None:
    limit = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > limit:
            raise TimeoutError(otherwise)
        time.sleep(0.05)
