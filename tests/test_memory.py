"""What would not fit into memory is refused in one line, with what would, before anything is allocated."""

from __future__ import annotations

import re

import numpy as np
import pytest
from short_of_memory import check_refused

import paritylab as pl
from paritylab import baselines, memory
from paritylab.engines.registry import named
from paritylab.errors import CellFailed, InvalidInput
from paritylab.memory import Part, TooLarge, require_room

resource = pytest.importorskip("resource")

COMMANDS = {
    "measure --n 5 --k 2 --runs 1e9": "runs",
    "measure --n 5 --k 2 --runs 1e7 --lr 1 0.1 0.01": "runs of each of 3 Setups",
    "measure --n 5 --k 2 --runs 1e9 --race": "runs",
    "measure --n 5 --k 2 --sample 2e9 --max-steps 1": "examples of the sample",
    "measure --n 5 --k 2 --sample 2e9 --max-steps 1 --replacement": "examples of the sample",
    "measure --n 5 --k 2 --sample 2e8 --max-steps 1 --engine jax": "examples of the sample",
    "measure --n 5 --k 2 --width 1e9": "weights",
    "measure --n 1e6 --k 2 --width 1e6": "weights",
    "measure --n 30 --k 2 --width 1e5 1e5": "weights",
    "measure --n 1e6 --k 2 --network polynet --degree 1e6": "weights",
    "measure --n 30 --k 2 --batch 2e9": "examples of a batch",
    "demo --runs 1e9": "runs of each of 2 Setups",
    "curves --n 30 --k 2 --steps 1e5 --every 1 --runs 10 --weights": "points times weights",
    "curves --n 5 --k 2 --sample 2e9 --steps 10": "examples of the sample",
    "curves --n 1e6 --k 2 --width 1e4 --steps 10": "weights",
    "theory alignment --method monte-carlo --d 1e9": "inputs times d",
    "theory alignment --method monte-carlo --d 51 --inputs 1e12": "inputs times d",
    "theory alignment --method monte-carlo --d 51 --draws 1e12": "draws",
    "theory alignment --method monte-carlo --d 51 --unit network --width 1e12": "inputs times width",
    "theory learners --n 30 --learners gaussian-elimination,sgd --runs 1e9": "runs of each of 2 cells",
    "theory learners --n 30 --learners sgd --width 1e9 --runs 1": "weights",
}


@pytest.mark.parametrize("line", COMMANDS)
def test_a_command_that_would_not_fit_is_refused_with_what_would(line, little, tmp_path, capsys):
    check_refused(capsys, tmp_path, line, COMMANDS[line])


SETUP = pl.Setup(pl.Parity(5, 2), protocol=pl.Protocol(max_steps=1, eval_size=8))


@pytest.mark.parametrize("act", [
    lambda: pl.sweep([SETUP], runs=10**9),
    lambda: pl.sweep([SETUP], runs=range(0, 2**32, 2)),
    lambda: pl.race([SETUP], runs=10**9),
    lambda: pl.curves(SETUP, steps=2**31 - 1, every=1),
    lambda: pl.curves(SETUP, steps=10**5, every=1, runs=range(10**4)),
    lambda: pl.alignment("gaussian", d=10**6, method="monte-carlo", inputs=10**9),
    lambda: baselines.compare([pl.Parity(5, 2)], ["exhaustive"], runs=10**9),
    lambda: baselines.learn("low-degree", pl.Parity(10**5, 1), samples=10**7),
], ids=["sweep", "numbers", "race", "points", "points of runs", "inputs", "compare", "samples"])
def test_the_same_is_refused_in_python(act, little):
    with pytest.raises(InvalidInput, match=r"of memory, and there are 4.0 GB; allowed: .* up to"):
        act()


def test_a_setup_that_does_not_fit_leaves_the_others_of_a_sweep_alone(little):
    large = pl.Setup(pl.Parity(5, 2, sample=10**9), SETUP.learner, SETUP.protocol)
    with pytest.warns(CellFailed, match="examples of the sample up to"):
        results = pl.sweep([SETUP, large], runs=2, threads=1)
    assert [len(result.records) for result in results] == [2, 0]
    assert "of memory" in str(results[1].failure)


# --- the arithmetic -----------------------------------------------------------------------------------------------


def test_the_largest_number_that_is_allowed_fits_and_one_more_does_not(little):
    parts = {"small": Part(10, 1e6), "large": Part(10**9, 7.0)}
    with pytest.raises(TooLarge) as error:
        require_room("it", parts)
    most = int(re.search(r"large up to (\S+),", str(error.value))[1].replace(",", ""))
    require_room("it", parts | {"large": Part(most, 7.0)})
    with pytest.raises(TooLarge):
        require_room("it", parts | {"large": Part(most + 1, 7.0)})


def test_where_the_rest_is_too_large_already_all_must_be_less(little):
    with pytest.raises(TooLarge, match=r"takes about 12 GB .* allowed: b up to 333,333,333, not 1,000,000,000$"):
        require_room("it", {"a": Part(5, 1e9), "b": Part(10**9, 7.0)})


@pytest.mark.parametrize("engine", ["jax", "lanes"])
def test_what_is_trained_every_day_is_far_from_any_limit(engine):
    setup = pl.Setup(pl.Parity(50, 3, sample=10**4), pl.Learner(pl.MLP(1000), batch=1024))
    assert sum(part.bytes for part in named(engine).parts(setup.program, 1000, None).values()) < 5e8


# --- what there is ------------------------------------------------------------------------------------------------

MEMINFO = "MemTotal:  16000000 kB\nMemAvailable:   8000000 kB\n"


@pytest.fixture
def told(monkeypatch):
    """The files of a system, by path; others are not there."""
    files: dict[str, str] = {}
    monkeypatch.setattr(memory, "_text", lambda path: files.get(path.as_posix(), ""))
    monkeypatch.setattr(memory, "_by_its_limit", lambda: np.inf)
    return files


def test_a_container_of_version_2_counts_with_all_above_it_and_its_cache_can_be_had(told):
    told |= {"/proc/meminfo": MEMINFO, "/proc/self/cgroup": "0::/a/b\n", "/sys/fs/cgroup/a/b/memory.max": "max"}
    assert memory.free() == 8e6 * 1024
    told |= {"/sys/fs/cgroup/a/memory.max": "3000000000", "/sys/fs/cgroup/a/memory.current": "1000000000"}
    assert memory.free() == 2e9
    told |= {"/sys/fs/cgroup/a/memory.stat": "anon 5\ninactive_file 500000000\n"}
    assert memory.free() == 2.5e9
    told |= {"/sys/fs/cgroup/a/b/memory.max": "100", "/sys/fs/cgroup/a/b/memory.current": "300"}
    assert memory.free() == 0


def test_a_container_of_version_1_counts(told):
    told |= {"/proc/meminfo": MEMINFO, "/proc/self/cgroup": "4:memory:/job\n1:cpu:/\n"}
    folder = "/sys/fs/cgroup/memory"
    told |= {f"{folder}/memory.limit_in_bytes": "9000", f"{folder}/memory.usage_in_bytes": "1000"}
    assert memory.free() == 8000  # the job's own folder is not seen from inside


def test_a_system_that_tells_nothing_refuses_nothing(told, monkeypatch):
    def unknown(name):
        raise ValueError(name)

    monkeypatch.setattr(memory.os, "sysconf", unknown)
    assert memory.free() == np.inf
    require_room("it", {"a": Part(10**30, 1.0)})


def test_a_limit_of_the_process_counts():
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (2**40, hard))
    try:
        assert 0 < memory._by_its_limit() < 2**40
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
