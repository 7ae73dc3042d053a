"""Disks that are full, read-only, failing, damaged or shared: one line each, nothing lost, the same command goes on."""

from __future__ import annotations

import os
import time
from pathlib import Path
from random import Random

import pytest
from faults import disk
from faults.bench import COMMAND, Bench, Child

from paritylab.storage.files import remove_stale, write_atomically

CASES = [
    (disk.full_disk, 1), (disk.no_room_for_a_file, 0), (disk.read_only_disk, 0), (disk.failing_disk, 0),
    (disk.damaged_block, 0), (disk.newer_block, 0), (disk.damaged_setup, 0),
    (disk.shared_store, 0), (disk.jumping_clock, 0),
]


@pytest.mark.parametrize(("scenario", "seed"), CASES, ids=[f"{case.__name__}-{seed}" for case, seed in CASES])
def test_nothing_is_lost_and_what_happened_is_said(scenario, seed: int, bench: Bench, tmp_path: Path):
    try:
        outcome = scenario(Random(seed), tmp_path, bench)
    except disk.Unavailable as why:
        pytest.skip(str(why))
    assert outcome.clean, outcome
    assert outcome.faults


def test_a_temporary_file_that_another_process_takes_for_stale_is_written_again(tmp_path: Path, monkeypatch):
    replace, taken = os.replace, []

    def late(temporary: Path, path: Path) -> None:
        if not taken:
            taken.append(temporary)
            temporary.unlink()
        replace(temporary, path)

    monkeypatch.setattr(os, "replace", late)
    write_atomically(tmp_path / "file", b"whole")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").read_bytes() == b"whole"
    assert taken


def test_what_is_stale_depends_on_the_disk_and_not_on_the_clock(tmp_path: Path, monkeypatch):
    for jump in (-1e9, 1e9):
        monkeypatch.setattr(time, "time", lambda jump=jump: 1.7e9 + jump)
        live, stale, written = tmp_path / ".live.tmp", tmp_path / ".stale.tmp", tmp_path / "written"
        for path in (live, stale, written):
            path.write_bytes(b"")
        os.utime(stale, (0, 0))
        remove_stale(written)
        assert live.exists()
        assert not stale.exists()


def test_a_store_below_a_file_is_refused_in_one_line(bench: Bench, tmp_path: Path):
    (tmp_path / "file").write_text("")
    child = Child(bench, [*COMMAND, "--out", str(tmp_path / "file" / "below")])
    child.wait()
    assert child.refused("Not a directory"), child.err
