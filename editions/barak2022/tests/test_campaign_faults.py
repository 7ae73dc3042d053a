"""A campaign keeps what the page on reliability says of every command: killed, interrupted or damaged, it goes on."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import campaign_faults
import pytest
from faults import soak
from faults.bench import Bench, Outcome

pytestmark = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs /proc")


@pytest.mark.long
@pytest.mark.parametrize("scenario", [
    campaign_faults.kill_campaign, campaign_faults.interrupt_campaign, campaign_faults.damaged_counts,
])
def test_a_campaign_ends_with_the_counts_of_an_undisturbed_one(scenario, bench: Bench, tmp_path: Path):
    outcome: Outcome = scenario(Random(1), tmp_path, bench)
    assert outcome.clean, outcome
    assert outcome.faults >= 2
    assert outcome.records == campaign_faults.RUNS


def test_the_page_on_reliability_has_counts_of_every_fault():
    counts = json.loads(soak.COUNTS.read_text())
    assert counts["scenarios"].keys() >= soak.SCENARIOS.keys() | campaign_faults.SCENARIOS.keys()
    assert all(counts["scenarios"][name]["times"] for name in campaign_faults.SCENARIOS)
