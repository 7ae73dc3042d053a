"""The page shows the counts of the last soak, and they are what it says: nothing was lost."""

from __future__ import annotations

import json

from faults import soak


def test_the_page_has_the_current_table():
    page = soak.PAGE.read_text(encoding="utf-8")
    assert soak.with_table(page, json.loads(soak.COUNTS.read_text())) == page


def test_every_scenario_was_tried_and_nothing_was_lost():
    counts = json.loads(soak.COUNTS.read_text())
    assert counts["scenarios"].keys() >= soak.SCENARIOS.keys()
    assert all(row["times"] or name in counts["impossible"] for name, row in counts["scenarios"].items())
    assert sum(counts["scenarios"][name]["faults"] for name in soak.KILLS) >= 200
    everything = soak.total(counts)
    assert not any(everything[key] for key in ("lost", "doubled", "different", "left", "surprises"))
