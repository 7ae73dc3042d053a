"""Work for another machine outlives the processes that do it, and they do not outlive it."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from faults import counted
from faults.bench import Bench

pytestmark = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs /proc")


@pytest.mark.slow
@pytest.mark.long
def test_work_for_another_machine_outlives_its_processes_and_they_do_not_outlive_it(bench: Bench, tmp_path: Path):
    outcome = counted.offload_cut_short(Random(2), tmp_path, bench)
    assert outcome.clean, outcome
    assert outcome.faults == 3
