"""Runs trained in Slurm jobs, with commands of Slurm that are played; ``make slurm`` has real ones."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from slurm import check, daemons

import paritylab as pl
from paritylab.cli import main
from paritylab.cli.crews import slurm_options
from paritylab.errors import InvalidInput
from paritylab.running import clusters
from paritylab.storage.records import COLUMNS
from paritylab.storage.store import Store

pytest.importorskip("dask_jobqueue", reason="the extra 'cluster' is not installed")
pytest.importorskip("cryptography", reason="the extra 'cluster' is not installed")

from dask import config

SETUP = pl.Setup(pl.Parity(12, 2), pl.Learner(optimiser=pl.SGD(0.3), batch=8), pl.Protocol(2000, eval_size=128))
MEASURE = ["measure", "--n", "12", "--k", "2", "--lr", "0.3", "--batch", "8", "--max-steps", "2000", "--eval-size",
           "128", "--runs", "40", "--json"]
posix = pytest.mark.skipif(sys.platform != "linux", reason="needs a shell and an interface called lo")

# Jobs are processes. What Slurm would have been told is kept, and how private the credentials are.
COMMANDS = {
    "sbatch": """
if [ "$1" = --test-only ]; then
    grep -q 'SBATCH -p nowhere' || exit 0
    printf 'sbatch: error: invalid partition specified: nowhere\\nallocation failure\\n' >&2
    exit 1
fi
cp "$1" "$PLAYED/script-$$"
find "$PLAYED" -path '*credentials*' -printf '%m %f\\n' >"$PLAYED/modes"
setsid bash "$PLAYED/script-$$" >"$PLAYED/printed" 2>&1 &
echo "$!" >>"$PLAYED/jobs"
echo "Submitted batch job $!"
""",
    "scancel": 'kill -TERM -- "-$1"',
    "squeue": 'while read job; do kill -0 "$job" 2>/dev/null && echo "$job"; done <"$PLAYED/jobs"; exit 0',
}


def test_options_of_slurm_are_pairs_or_a_file(tmp_path: Path) -> None:
    assert slurm_options("partition=gpu, gpus=1") == {"partition": "gpu", "gpus": "1"}
    file = tmp_path / "slurm.toml"
    file.write_text('partition = "cpu"\ncores = 8\n')
    assert slurm_options(str(file)) == {"partition": "cpu", "cores": 8}
    for bad in ("gpu", "=1", str(tmp_path / "none.toml")):
        with pytest.raises(InvalidInput):
            slurm_options(bad)


def test_slurm_leaves_ctrl_c_alone() -> None:
    code = ("import pathlib, signal; from paritylab.running.clusters import slurm_script;"
            "before = signal.getsignal(signal.SIGINT); slurm_script({}, pathlib.Path('out'));"
            "assert signal.getsignal(signal.SIGINT) is before")
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_a_dry_run_prints_the_job_script_and_makes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "a folder, 100%"
    options = ["--slurm", "partition=gpu,gpus=1,cores=2,walltime=00:30:00", "--dry-run", "--out", str(out)]
    assert main(["measure", *options]) == 0
    script = capsys.readouterr().out
    for line in ("#SBATCH -p gpu", "#SBATCH --gpus=1", "#SBATCH -t 00:30:00",
                 f'#SBATCH --output="{tmp_path}/a folder, 100%%/slurm/%j.out"'):
        assert line in script
    assert f"--tls-key '{out}/slurm/.credentials-.../key.pem'" in script
    assert "tls://SCHEDULER:8786" in script
    assert not out.exists()


@pytest.fixture
def played(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder where commands of Slurm are played; the current folder and that of the node's files are in it."""
    for folder in ("bin", "here", "node"):
        (tmp_path / folder).mkdir()
    for name, text in COMMANDS.items():
        (tmp_path / "bin" / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / "bin" / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PLAYED", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "node"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "node"))
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path


@posix
@pytest.mark.long
def test_slurm_jobs_get_credentials_that_are_the_owners_alone_and_leave_nothing_behind(
    played: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    out = played / "a folder, 100%"
    with config.set({"jobqueue.slurm.interface": "lo"}):
        assert main([*MEASURE, "--slurm", "partition=lab", "--out", str(out)]) == 0, (played / "printed").read_text()
    assert not capfd.readouterr().err
    alone = pl.sweep([SETUP], 40)[0]
    kept = Store(out / "store").records(SETUP.id, alone.engine, 0)
    assert all(np.array_equal(getattr(kept, name), getattr(alone.records, name)) for name in COLUMNS)
    modes = sorted(line.split()[0] for line in (played / "modes").read_text().splitlines())
    assert modes == ["600", "600", "700"]
    assert not list((out / "slurm").iterdir())  # what jobs print would be here
    wait_until(lambda: os.listdir(played / "node") == [f"paritylab-{os.getuid()}"])  # of the process that asked
    assert not list((played / "here").iterdir())


def wait_until(condition: Callable[[], bool]) -> None:
    limit = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < limit
        time.sleep(0.05)


@posix
@pytest.mark.long
def test_jobs_that_all_end_end_the_command_in_one_line(
    played: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clusters, "WATCH_SECONDS", 0.3)
    monkeypatch.setitem(clusters.SETTINGS, "distributed.comm.timeouts.connect", "1s")
    with config.set({"jobqueue.slurm.interface": "lo"}):
        assert main([*MEASURE, "--slurm", "jobs=2,prologue=exit 1", "--out", str(played / "out")]) == 2
    [line] = capfd.readouterr().err.splitlines()
    assert "all Slurm jobs have ended; the same command goes on" in line
    assert str(played / "out" / "slurm") in line


@posix
def test_jobs_that_slurm_does_not_take_are_refused_in_its_words(
    played: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main([*MEASURE, "--slurm", "partition=nowhere", "--out", str(played / "out")]) == 2
    monkeypatch.setenv("PATH", str(played))
    assert main([*MEASURE, "--slurm", "partition=lab", "--out", str(played / "out")]) == 2
    first, second = capfd.readouterr().err.splitlines()
    assert "invalid partition specified: nowhere; allocation failure" in first
    assert "there is no sbatch here" in second
    assert not (played / "out" / "slurm").exists()


@posix
def test_make_slurm_names_what_is_missing_one_in_a_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(daemons, "path_of", lambda name: None if name in ("munged", "slurmd") else "/usr/bin/true")
    assert check.main() == 2
    first, second = capsys.readouterr().err.splitlines()
    assert first == "make slurm: munged is missing (Debian's package munge)"
    assert second == "make slurm: slurmd is missing (Debian's package slurmd)"
