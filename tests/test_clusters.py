"""Who may talk to the processes of a crew, what they listen on, and where their files are."""

from __future__ import annotations

import contextlib
import http.client
import os
import socket
import ssl
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import paritylab as pl
from paritylab.cli import main
from paritylab.errors import InvalidInput
from paritylab.running import clusters
from paritylab.running import crews as module
from paritylab.storage.records import COLUMNS, Records
from paritylab.storage.store import Store

pytest.importorskip("distributed", reason="the extra 'cluster' is not installed")
pytest.importorskip("cryptography", reason="the extra 'cluster' is not installed")

from dask import config
from distributed import LocalCluster
from distributed.comm import get_address_host_port

SETUP = pl.Setup(pl.Parity(12, 2), pl.Learner(optimiser=pl.SGD(0.3), batch=8), pl.Protocol(2000, eval_size=128))
MEASURE = ["measure", "--n", "12", "--k", "2", "--lr", "0.3", "--batch", "8", "--max-steps", "2000", "--eval-size",
           "128", "--runs", "40", "--json"]
linux = pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="needs /proc")

# Asks a process of Dask who it is; where that is answered, any function can be run. As another user if allowed to.
STRANGER = """
import asyncio, os, sys
from distributed import Security
from distributed.core import rpc
own = Security.temporary().get_connection_args("client")
if os.getuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
async def ask(address, **arguments):
    try:
        async with rpc(address, timeout=3, **arguments) as process:
            print(os.getuid(), address, await process.identity(), flush=True)
    except OSError as error:
        print("refused", flush=True)
for place in sys.argv[1:]:
    asyncio.run(ask(f"tcp://{place}"))
    asyncio.run(ask(f"tls://{place}", connection_args=own))
"""


@pytest.fixture(scope="module")
def hands() -> Iterator[module.Crew]:
    with module.crew(workers=1) as made:
        yield made
        [worker] = made.client.run(lambda: sys.path[0]).values()
        assert "dask-scratch-space" in worker
    assert not Path(worker).exists()


def scratch() -> list[str]:
    """Where Dask works in a process, and imports from."""
    return [path for path in sys.path if "dask-scratch-space" in path]


def private(crew: module.Crew) -> list[Path]:
    """The folder of the crew, as the nanny, which is in this process, and as the worker have it."""
    paths = scratch() + [path for found in crew.client.run(scratch).values() for path in found]
    return [Path(path.partition("dask-scratch-space")[0]) for path in paths]


def places(crew: module.Crew) -> list[str]:
    """Host and port of scheduler, worker and nanny."""
    info = crew.client.scheduler_info()
    addresses = [info["address"], *info["workers"], *(worker["nanny"] for worker in info["workers"].values())]
    return ["{}:{}".format(*get_address_host_port(address)) for address in addresses]


def listening(pids: list[int]) -> list[tuple[str, int]]:
    """The addresses on which processes listen, as Linux writes them in hexadecimal, and the ports."""
    sockets: set[str] = set()
    for pid in pids:
        for path in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                sockets.add(os.readlink(path))
    found = []
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            _, local, _, state, *rest = line.split()
            if state == "0A" and f"socket:[{rest[5]}]" in sockets:
                address, port = local.split(":")
                found.append((address, int(port, 16)))
    return found


def test_a_stranger_who_reaches_a_crew_is_not_answered(hands: module.Crew) -> None:
    asked = subprocess.run([sys.executable, "-c", STRANGER, *places(hands)], capture_output=True, text=True, timeout=60)
    assert asked.stdout.split() == ["refused"] * 6, asked
    assert hands.client.submit(sum, (1, 2)).result(timeout=20) == 3  # and the crew does not mind


def test_neither_is_one_who_says_tls_but_shows_no_certificate(hands: module.Crew) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    for place in places(hands):
        host, port = place.split(":")
        with pytest.raises((ssl.SSLError, ConnectionError)):
            greeted(context, host, int(port))


def greeted(context: ssl.SSLContext, host: str, port: int) -> None:
    """Reads what a process of Dask says first; a client hears of a refusal only then."""
    with socket.create_connection((host, port), 10) as plain, context.wrap_socket(plain) as connection:
        if not connection.recv(1):
            raise ConnectionError("closed")


@linux
def test_nothing_of_a_crew_listens_beyond_loopback_or_shows_pages(hands: module.Crew) -> None:
    found = listening([os.getpid(), *hands.client.run(os.getpid).values()])
    assert len(found) >= 5  # scheduler, nanny, worker, and two web servers
    assert {address for address, _ in found} == {"0100007F"}
    answers = []
    for _, port in found:
        for page in ("/status", "/health", "/metrics", "/info/main/workers.html", "/json/counts.json"):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
            with contextlib.suppress(OSError, http.client.HTTPException), contextlib.closing(connection):
                connection.request("GET", page)
                answers.append(connection.getresponse().status)
    assert answers
    assert set(answers) == {404}


def test_a_crew_imports_nothing_from_folders_of_others(hands: module.Crew) -> None:
    folders = private(hands)
    assert len(folders) >= 2
    for folder in folders:
        about = folder.stat()
        assert about.st_uid == os.getuid()
        assert stat.S_IMODE(about.st_mode) == 0o700
        assert folder.parent == Path(tempfile.gettempdir())


@linux
def test_a_folder_that_somebody_else_prepared_is_not_used(tmp_path: Path) -> None:
    usual = Path(clusters._own_folder(str(tmp_path)))
    assert clusters._own_folder(str(tmp_path)) == str(usual)
    usual.chmod(0o777)
    assert clusters._own_folder(str(tmp_path)) != str(usual)
    (tmp_path / "elsewhere").mkdir(0o700)
    usual.rmdir()
    usual.symlink_to(tmp_path / "elsewhere")
    another = Path(clusters._own_folder(str(tmp_path)))
    assert another != usual
    assert stat.S_IMODE(another.stat().st_mode) == 0o700


@linux
def test_credentials_of_a_crew_are_not_on_command_lines_or_in_environments(hands: module.Crew) -> None:
    for pid in hands.client.run(os.getpid).values():
        for name in ("cmdline", "environ"):
            assert b"PRIVATE KEY" not in Path(f"/proc/{pid}/{name}").read_bytes()


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """A scheduler of somebody's at tls://, with a worker, and the folder of the credentials for it."""
    folder = tmp_path_factory.mktemp("credentials")
    cluster = LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, host="127.0.0.1", protocol="tls://",
        security=clusters._kept_credentials(folder), dashboard_address="127.0.0.1:0", silence_logs=50,
    )
    with cluster:
        yield cluster.scheduler_address, folder


def credentials_of(folder: Path, **more: str) -> dict[str, Any]:
    """Dask's configuration as from the environment of a user."""
    names = {"CA_FILE": "certificate.pem", "CLIENT__CERT": "certificate.pem", "CLIENT__KEY": "key.pem"}
    environment = {f"DASK_DISTRIBUTED__COMM__TLS__{name}": str(folder / file) for name, file in names.items()}
    return config.merge(config.config, config.collect(paths=[], env=environment | more))


def test_a_scheduler_at_tls_works_with_the_credentials_of_dasks_configuration(
    guarded: tuple[str, Path], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    address, folder = guarded
    with config.set(credentials_of(folder)):
        assert main([*MEASURE, "--scheduler", address, "--out", str(tmp_path)]) == 0
    assert not capfd.readouterr().err
    alone = pl.sweep([SETUP], 40)[0]
    kept = Store(tmp_path / "store").records(SETUP.id, alone.engine, 0)
    assert same(kept, alone.records)


def same(first: Records, second: Records) -> bool:
    return all(np.array_equal(getattr(first, name), getattr(second, name)) for name in COLUMNS)


@pytest.mark.parametrize(("settings", "says"), [
    ("none", "needs your credentials: set distributed.comm.tls.ca-file"),
    ("missing", "cannot be used: [Errno 2] No such file"),
    ("broken", "cannot be used: [X509"),
    ("others", "TLS certificate does not match"),
    ("plain", "perhaps it wants tls://"),
    ("required", "encryption required by Dask configuration"),
    ("gone", "Timed out trying to connect"),
])
def test_a_scheduler_that_cannot_be_used_is_refused_in_one_line(
    settings: str, says: str, guarded: tuple[str, Path], tmp_path: Path, capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    address, folder = guarded
    monkeypatch.setattr(clusters, "CONNECT_SECONDS", 1)
    more: dict[str, str] = {}
    if settings == "missing":
        folder = tmp_path
    if settings == "broken":
        folder = tmp_path
        (folder / "certificate.pem").write_text("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
    if settings == "others":
        folder = tmp_path
        clusters._kept_credentials(folder)
    if settings in ("plain", "required"):
        address = address.replace("tls://", "tcp://")
    if settings == "required":
        more = {"DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION": "True"}
    if settings == "gone":
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            address = f"tls://127.0.0.1:{free.getsockname()[1]}"
    with config.set({} if settings == "none" else credentials_of(folder, **more)):
        assert main([*MEASURE, "--scheduler", address, "--out", str(tmp_path / "out")]) == 2
    lines = capfd.readouterr().err.splitlines()
    assert len(lines) == 1, lines
    assert says in lines[0]


def test_a_connection_that_others_may_share_is_mentioned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("distributed.Client", lambda target, **_: SimpleNamespace(target=target, rpc=SimpleNamespace()))
    for address in ("tcp://head:8786", "10.0.0.1:8786", "tcp://[2001:db8::1]:8786", "ws://head:80"):
        with pytest.warns(clusters.CrewNotice, match="everybody who reaches that scheduler can run code"):
            assert clusters.client(address).target == address
    for address in ("tcp://127.0.0.1:8786", "localhost:8786", "tcp://[::1]:8786"):
        assert clusters.client(address).target == address


@pytest.mark.parametrize("absent", ["distributed", "cryptography"])
def test_what_is_not_installed_is_named_in_one_line(absent: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clusters.importlib.util, "find_spec", lambda name: None if name == absent else find_spec("os"))
    with pytest.raises(InvalidInput, match=rf"a crew needs {absent}: install paritylab\[cluster\]"):
        module.crew(workers=1).__enter__()
