"""``make slurm``: sweeps in real Slurm jobs give the records of one process, and a campaign its counts: where a job is
cancelled midway, where the command is killed, and where it cannot write any more.

Nothing is installed: what is missing is named, with exit status 2. The cluster is private: daemons of its own on
loopback, files in a temporary folder, all gone in the end.
"""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from slurm.daemons import cluster, missing, said, wait_for

import paritylab as pl
from paritylab.cli import build_parser
from paritylab.engines import lanes
from paritylab.storage.counts import Counted
from paritylab.storage.records import COLUMNS, Records
from paritylab.storage.store import Store

ENGINE, RUNS = ("jax", 2_000) if lanes.kernel() is None else ("lanes", 20_000)
SETUP = pl.Setup(pl.Parity(30, 3), pl.Learner(optimiser=pl.SGD(0.2)))
MEASURE = ["measure", "--n", "30", "--k", "3", "--lr", "0.2", "--runs", str(RUNS), "--engine", ENGINE, "--json"]
CAMPAIGN = ["--settings", "i", "--n", "10", "--k", "2", "--batch", "32", "4", "--runs", "2000", "--json"]
MOST_BYTES = 2**12  # of a file, where the disk is said to be full: credentials are smaller, blocks are not
JOBS = ["--slurm", "partition=lab,cores=1,jobs=2,walltime=00:30:00"]


def main() -> int:
    for line in (lines := missing()):
        print(f"make slurm: {line}", file=sys.stderr)
    if lines:
        return 2
    with tempfile.TemporaryDirectory(prefix="paritylab-slurm-") as name:
        folder = Path(name)
        try:
            with cluster(folder) as environment:
                check(folder, environment)
        except (AssertionError, TimeoutError) as error:
            print(f"make slurm: {error or 'something is not as it should be'}", file=sys.stderr)
            for path in (*folder.glob("*.log"), *folder.glob("out/slurm/*.out"), folder / "said"):
                if path.exists():
                    print(f"--- {path.name}", *path.read_text(errors="replace").splitlines()[-20:], sep="\n")
            return 1
    return 0


def check(folder: Path, environment: dict[str, str]) -> None:
    """Everything that is claimed of sweeps in Slurm jobs, one thing after the other."""
    here, node, out = folder / "here", folder / "node", folder / "out"
    here.mkdir()
    node.mkdir()
    environment |= {"TMPDIR": str(node), "DASK_JOBQUEUE__SLURM__INTERFACE": "lo"}

    def paritylab(*arguments: str, under: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*under, sys.executable, "-m", "paritylab", *arguments], cwd=here, env=environment,
                              capture_output=True, text=True)

    tell("a dry run, and a partition that does not exist")
    dry = paritylab(*MEASURE, *JOBS, "--dry-run", "--out", str(out))
    assert dry.returncode == 0, dry.stderr
    assert "#SBATCH -p lab" in dry.stdout, dry.stdout
    wrong = paritylab(*MEASURE, "--slurm", "partition=nowhere", "--out", str(out))
    assert wrong.returncode == 2, wrong
    assert len(wrong.stderr.splitlines()) == 1, wrong.stderr
    assert "invalid partition specified: nowhere" in wrong.stderr, wrong.stderr
    assert not out.exists(), "a dry run or a refused job left something"

    def begun(*arguments: str) -> subprocess.Popen[str]:
        with open(folder / "said", "w") as errors:
            return subprocess.Popen([sys.executable, "-m", "paritylab", *arguments, *JOBS], cwd=here, env=environment,
                                    stdout=subprocess.PIPE, stderr=errors, text=True)

    tell(f"{RUNS} runs in two jobs")
    sweep = begun(*MEASURE, "--out", str(out))
    try:
        first = cancelled_midway(out, sweep, environment, paritylab)
        shown, _ = sweep.communicate(timeout=1200)
    finally:
        sweep.kill()
        sweep.wait()
    assert sweep.returncode == 0, f"status {sweep.returncode}"
    assert not (folder / "said").read_text(), "a cancelled job was mentioned"
    assert json.loads(shown)["runs"] == RUNS, shown

    tell("the same runs in one process")
    alone = pl.sweep([SETUP], RUNS, engine=ENGINE)[0].records
    assert same(records(out), alone), "the records differ"

    tell("what is left")
    wait_for(lambda: not queue(environment), 60, "jobs are left in the queue")
    printed = sorted(path.name for path in (out / "slurm").iterdir())
    assert len(printed) == 2, f"not two files of output: {printed}"
    assert "CANCELLED" in (out / "slurm" / f"{first}.out").read_text()
    assert not list(here.iterdir()), "files in the current folder"
    mine = [f"paritylab-{os.getuid()}"]  # of the process that asked
    wait_for(lambda: os.listdir(node) == mine, 30, f"files on the node: {os.listdir(node)}")
    tell(f"job {first} was cancelled midway; {len(alone)} records are those of one process")

    out = folder / "killed"
    sweep = begun(*MEASURE, "--out", str(out))
    wait_for(lambda: sweep.poll() is not None or len(records(out)) > 0, 300, "no records")
    sweep.kill()
    assert sweep.wait() == -signal.SIGKILL, f"it ended before: {sweep.returncode}"
    there = len(records(out))
    wait_for(lambda: not queue(environment), 240, "jobs outlive their command by minutes")
    tell(f"the command was killed with {there} records; its jobs have ended")

    full = paritylab(*MEASURE, *JOBS, "--out", str(out), under=["prlimit", f"--fsize={MOST_BYTES}"])
    assert full.returncode == 2, full
    assert len(full.stderr.splitlines()) == 1, full.stderr
    assert "cannot write" in full.stderr, full.stderr
    assert "File too large" in full.stderr, full.stderr
    tell(f"the same command could not write: {full.stderr.strip()}")
    again = paritylab(*MEASURE, *JOBS, "--out", str(out))
    assert again.returncode == 0, again
    assert same(records(out), alone), "the records differ"
    tell("the same command went on, and all records are those of one process")

    (command,) = (name for name in build_parser().parsers if name.endswith(" campaign"))  # of whichever paper has one
    done = [paritylab(*command.split(), *CAMPAIGN, *more, "--out", str(folder / name))
            for name, more in (("campaign", JOBS), ("alone", []))]
    assert [each.returncode for each in done] == [0, 0], done
    counts = [{path.name: Counted.load(path).counts for path in (folder / name / "campaign").glob("counts-*")}
              for name in ("campaign", "alone")]
    assert counts[0].keys() == counts[1].keys() != set(), counts
    assert all(str(counts[0][name]) == str(counts[1][name]) for name in counts[0]), "the counts differ"
    tell("a campaign in two jobs has the counts of one process")


def cancelled_midway(out: Path, sweep: subprocess.Popen[str], environment: dict[str, str], paritylab: Any) -> str:
    """Looks at a sweep while it goes on, and cancels one of its jobs; the job's number."""
    wait_for(lambda: sweep.poll() is not None or len(records(out)) > 0, 300, "no records")
    wait_for(lambda: sweep.poll() is not None or len(queue(environment, "running")) == 2, 60, "not two jobs")
    assert sweep.poll() is None, "the sweep ended too soon"
    for path in (out / "slurm").glob(".credentials-*"):
        modes = {oct(stat.S_IMODE(each.stat().st_mode)) for each in path.iterdir()}
        assert (oct(stat.S_IMODE(path.stat().st_mode)), modes) == ("0o700", {"0o600"}), "others can read credentials"
    status = json.loads(paritylab("store", "status", "--json", "--out", str(out)).stdout)
    [[job]] = [each["jobs"] for each in status["sweeps"]]
    assert (job["wanted"], job["state"]) == (RUNS, "running"), status
    assert 0 < job["done"] < RUNS, status
    first = queue(environment, "running")[0]
    assert said("scancel", first, environment=environment) is not None
    wait_for(lambda: first not in queue(environment, "running"), 60, f"job {first} does not end")
    assert sweep.poll() is None, "the sweep ended before its job"
    tell(f"job {first} cancelled after {len(records(out))} records")
    return first


def records(out: Path) -> Records:
    return Store(out / "store").records(SETUP.id, ENGINE, 0)


def same(first: Records, second: Records) -> bool:
    return all(np.array_equal(getattr(first, name), getattr(second, name)) for name in COLUMNS)


def queue(environment: dict[str, str], state: str = "all") -> list[str]:
    states = "pending,running,completing" if state == "all" else state
    return (said("squeue", "--noheader", "--format=%i", f"--states={states}", environment=environment) or "").split()


def tell(what: str) -> None:
    print(f"{time.strftime('%H:%M:%S')}  {what}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
