"""Commands that are killed or interrupted at any moment lose nothing and double nothing."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from paritylab.engines import lanes
from paritylab.records import COLUMNS
from paritylab.store import Store

ENGINE, RUNS = ("jax", 1000) if lanes.kernel() is None else ("lanes", 80_000)
COMMAND = ["measure", "--n", "12", "--k", "3", "--lr", "0.3", "--batch", "16", "--max-steps", "400", "--json",
           "--eval-size", "64", "--eval-every", "20", "--runs", str(RUNS), "--engine", ENGINE, "--threads", "1"]
KILLS = 20

# Imports once and forks for each command, so that a rerun costs no second of imports; records are flushed as they come.
NURSERY = """
import os, sys
import paritylab.cli.measure, paritylab.engines, paritylab.store, paritylab.sweeps
paritylab.sweeps.FLUSH_SECONDS = 0.0
for line in sys.stdin:
    child = os.fork()
    if child == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os._exit(paritylab.cli.main(line.split()))
    print(child, flush=True)
    print(os.waitpid(child, 0)[1], flush=True)
"""


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """Compiled programs are kept between the processes of these tests."""
    cache = tmp_path_factory.mktemp("compiled")
    return {**os.environ, "JAX_COMPILATION_CACHE_DIR": str(cache), "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}


def complete(out: Path, environment) -> None:
    command = [sys.executable, "-m", "paritylab", *COMMAND, "--out", str(out)]
    subprocess.run(command, env=environment, check=True, capture_output=True)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory, environment):
    out = tmp_path_factory.mktemp("undisturbed")
    complete(out, environment)
    return records(out)


def records(out: Path):
    store = Store(out / "store")
    ((setup_id, _),) = store.setups()
    return store.records(setup_id, ENGINE, 0)


def blocks(out: Path) -> set[str]:
    return {path.name for path in out.glob("store/*/*.parquet")}


def wait_for(condition, seconds: float = 60.0) -> None:
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit, "waited in vain"
        time.sleep(0.01)


def same(left, right) -> bool:
    return all(np.array_equal(getattr(left, name), getattr(right, name), equal_nan=True) for name in COLUMNS)


def ended(child: int) -> bool:
    try:
        return Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_a_command_killed_twenty_times_ends_with_the_records_of_an_undisturbed_one(tmp_path, environment, undisturbed):
    moments = random.Random(20)
    nursery = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", NURSERY], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, env=environment,
    )
    killed = partial = 0
    with nursery:
        for i in range(KILLS):
            before = blocks(tmp_path)
            nursery.stdin.write(" ".join([*COMMAND, "--out", str(tmp_path)]) + "\n")
            nursery.stdin.flush()
            child = int(nursery.stdout.readline())
            if i % 2:  # while it starts
                time.sleep(moments.uniform(0, 1))
            else:  # while it trains and writes
                wait_for(lambda child=child, before=before: ended(child) or blocks(tmp_path) - before)
                time.sleep(moments.uniform(0, 0.3))
            with contextlib.suppress(ProcessLookupError):  # it was done before
                os.kill(child, signal.SIGKILL)
            status = int(nursery.stdout.readline())
            assert status in (0, signal.SIGKILL)
            killed += status != 0
            partial += bool(blocks(tmp_path)) and len(records(tmp_path)) < RUNS
        nursery.stdin.close()
        assert nursery.stderr.read() == ""
    assert killed >= KILLS // 2
    assert partial >= 1
    complete(tmp_path, environment)
    assert same(records(tmp_path), undisturbed)
    assert undisturbed.run.tolist() == list(range(RUNS))
    # a kill may leave temporary files; they are few, hidden, and go once they are an hour old
    left = [path for path in tmp_path.rglob("*") if path.is_file() and path.suffix != ".parquet"]
    assert all(path.name == "setup.json" or (path.name.startswith(".") and path.suffix == ".tmp") for path in left)
    assert len(left) <= 1 + KILLS
    for path in left:
        if path.name.startswith("."):
            os.utime(path, (0, 0))
    Store(tmp_path / "store").append(*resave(tmp_path))
    assert not list(tmp_path.rglob(".*.tmp"))


def resave(out: Path):
    """What appending the first record again takes: any write sweeps up what is stale."""
    ((path,),) = [list(out.glob("store/*/setup.json"))]
    return path.parent.name, path.read_text(), ENGINE, 0, records(out).take(np.array([0]))


def test_an_interrupted_command_says_so_in_one_line_and_goes_on_from_there(tmp_path, environment, undisturbed):
    command = [sys.executable, "-m", "paritylab", *COMMAND, "--out", str(tmp_path)]
    command[command.index("--runs") + 1] = str(20 * RUNS)  # more than it can do before the interruption
    child = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    with child:
        wait_for(lambda: blocks(tmp_path) or child.poll() is not None)
        child.send_signal(signal.SIGINT)
        out, errors = child.communicate(timeout=60)
    assert child.returncode == 130
    assert out == ""
    assert errors == "paritylab: interrupted; the same command goes on from here\n"
    kept = records(tmp_path)
    assert len(kept) > 0
    common = kept.run < RUNS
    assert same(kept.take(common), undisturbed.take(kept.run[common]))
    before = len(kept)
    complete(tmp_path, environment)
    again = records(tmp_path)
    assert len(again) >= before
    assert same(again.take(again.run < RUNS), undisturbed)
