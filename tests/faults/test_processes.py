"""Commands that are killed or interrupted at any moment, with whatever helps them, lose nothing and double nothing."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from faults import processes
from faults.bench import Bench, Outcome

pytestmark = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs /proc")


@pytest.mark.slow
@pytest.mark.long
def test_a_command_killed_twenty_times_ends_with_the_records_of_an_undisturbed_one(bench: Bench, tmp_path: Path):
    outcome, moments = Outcome(), Random(20)
    for number in range(20):
        outcome += processes.kill_command(moments, tmp_path / str(number), bench)
        if outcome.faults >= 20:
            break
    assert outcome.clean, outcome
    assert outcome.faults >= 20


@pytest.mark.long
def test_an_interrupted_command_says_so_in_one_line_and_goes_on_from_there(bench: Bench, tmp_path: Path):
    outcome, moments = Outcome(), Random(3)
    for number in range(3):
        outcome += processes.interrupt_command(moments, tmp_path / str(number), bench)
        if outcome.faults >= 3:
            break
    assert outcome.clean, outcome
    assert outcome.faults >= 2


@pytest.mark.long
def test_one_process_then_several_then_a_cluster_each_cut_short_give_the_same_records(bench: Bench, tmp_path: Path):
    pytest.importorskip("distributed", reason="the extra 'cluster' is not installed")
    outcome = processes.mixture(Random(1), tmp_path, bench, workers=2)
    assert outcome.clean, outcome
    assert outcome.faults >= 2
