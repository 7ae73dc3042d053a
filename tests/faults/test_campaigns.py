"""A campaign keeps what the page on reliability says of every command: killed, interrupted or damaged, it goes on."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from faults import campaigns
from faults.bench import Bench, Outcome

pytestmark = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs /proc")


@pytest.mark.long
@pytest.mark.parametrize("scenario", [
    campaigns.kill_campaign, campaigns.interrupt_campaign, campaigns.damaged_counts,
])
def test_a_campaign_ends_with_the_counts_of_an_undisturbed_one(scenario, bench: Bench, tmp_path: Path):
    outcome: Outcome = scenario(Random(1), tmp_path, bench)
    assert outcome.clean, outcome
    assert outcome.faults >= 2
    assert outcome.records == campaigns.RUNS


@pytest.mark.slow
@pytest.mark.long
def test_work_for_another_machine_outlives_its_processes_and_they_do_not_outlive_it(bench: Bench, tmp_path: Path):
    outcome = campaigns.offload_cut_short(Random(2), tmp_path, bench)
    assert outcome.clean, outcome
    assert outcome.faults == 3
