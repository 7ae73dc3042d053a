"""The Store through kills, compaction and concurrent writers."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import pytest
from blocks import SETUP, block, filled, same

from paritylab.storage import files, shelf
from paritylab.storage.store import Store


@pytest.fixture(autouse=True)
def _warnings_are_errors():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


WRITER = """
import sys
from blocks import SETUP, Store, block
store, first, step = Store(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
for number in range(first, first + step * int(sys.argv[4]), step):
    store.append("abc", SETUP, "jax", 0, block(number))
    print(number, flush=True)
"""


def writer(root: Path, *arguments: int) -> subprocess.Popen[str]:
    here = Path(__file__).parent
    path = os.pathsep.join([str(here), str(here.parent / "src")])
    command = [sys.executable, "-c", WRITER, str(root), *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ | {"PYTHONPATH": path})


@pytest.mark.long
def test_a_killed_writer_loses_no_block_that_was_acknowledged(tmp_path):
    delays = random.Random(0)
    for attempt in range(4):
        root = tmp_path / str(attempt)
        with writer(root, 0, 10, 10**6) as process:
            assert process.stdout is not None
            process.stdout.readline()
            time.sleep(delays.uniform(0, 0.2))
            process.send_signal(signal.SIGKILL)
            acknowledged = [0, *map(int, process.stdout.read().split())]
        records = Store(root).records("abc", "jax", 0)
        assert len(records) // 10 - len(acknowledged) in (0, 1)  # the block in flight may have made it
        assert same(records, block(0, len(records)))
        Store(root).append("abc", SETUP, "jax", 0, block(len(records)))
        assert same(Store(root).records("abc", "jax", 0), block(0, len(records) + 10))


def test_two_writers_of_the_same_runs_and_a_compacting_reader_agree(tmp_path):
    writers = [writer(tmp_path, 0, 5, 60), writer(tmp_path, 0, 10, 30)]
    store = Store(tmp_path)
    while any(process.poll() is None for process in writers):
        records = store.records("abc", "jax", 0)
        assert same(records, block(0, 305).take(records.run))
        store.compact()
    for process in writers:
        output, _ = process.communicate()
        assert process.returncode == 0
        assert output
    assert same(store.records("abc", "jax", 0), block(0, 305))


def test_compaction_leaves_one_block_and_the_same_records(tmp_path):
    store, paths = filled(tmp_path, 0, 10, 20)
    (merged,) = store.compact()
    assert sorted((tmp_path / "blocks").iterdir()) == [merged]
    assert merged not in paths
    assert same(store.records("abc", "jax", 0), block(0, 30))
    assert store.compact() == []


def test_a_listing_that_misses_blocks_during_a_compaction_does_not_lose_them(tmp_path, monkeypatch):
    store, _ = filled(tmp_path, 0, 10)
    listings, listing = iter([[]]), shelf.listing  # what the first listing finds
    empty = tmp_path / "blocks"
    monkeypatch.setattr(shelf, "listing", lambda folder: next(listings, listing(folder)) if folder == empty
                        else listing(folder))
    assert same(store.records("abc", "jax", 0), block(0, 20))


class Killed(BaseException):
    """Stands for the end of the process."""


@pytest.mark.parametrize("survivors", [0, 1, 2])
def test_compaction_killed_before_any_deletion_loses_nothing(tmp_path, monkeypatch, survivors):
    store, _ = filled(tmp_path, 0, 10, 20)
    unlink, deleted = Path.unlink, []

    def dying_unlink(path: Path, missing_ok: bool = False) -> None:
        if len(deleted) == survivors:
            raise Killed
        deleted.append(path)
        unlink(path, missing_ok=missing_ok)

    monkeypatch.setattr(Path, "unlink", dying_unlink)
    with pytest.raises(Killed):
        store.compact()
    monkeypatch.undo()
    assert len(list((tmp_path / "blocks").glob("*.parquet"))) == 4 - survivors
    assert same(Store(tmp_path).records("abc", "jax", 0), block(0, 30))
    store.compact()
    assert same(Store(tmp_path).records("abc", "jax", 0), block(0, 30))
    assert len(list((tmp_path / "blocks").glob("*.parquet"))) == 1


def test_temporary_files_are_ignored_and_removed_when_an_hour_old(tmp_path):
    store, (path,) = filled(tmp_path, 0)
    fresh, stale = path.with_name(".fresh.tmp"), path.with_name(".stale.tmp")
    setups = tmp_path / "setups" / ".stale.tmp"
    for file in (fresh, stale, setups):
        file.write_bytes(b"half a block")
    past = time.time() - files.STALE_SECONDS - 1
    for file in (stale, setups):
        os.utime(file, (past, past))
    assert same(store.records("abc", "jax", 0), block(0))
    store.append("abc", SETUP, "jax", 0, block(10))
    assert fresh.exists()
    assert not stale.exists()
    assert not setups.exists()
