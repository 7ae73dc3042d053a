"""Claims and evidence of all editions are what those of every paper must be."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from every_claim import *  # noqa: F403
from every_claim import CLAIMS, NOWHERE, PUBLISHED, shipped

from paritylab.claims import evidence, find
from paritylab.claims.registry import registry
from paritylab.claims.reproduction import committed, plan
from paritylab.claims.standing import standing, tally, told
from paritylab.claims.texts import request_lines, size_lines
from paritylab.claims.verifying.entries import entries
from paritylab.claims.verifying.words import differences
from paritylab.cli import main
from paritylab.errors import InvalidInput

ROOT = Path(__file__).parents[2]
FOUR = {"barak2022": 43, "abbe2024": 24, "glasgow2023": 12, "daniely2020": 13}
"""The papers that came first: how many of their claims were changed."""


@pytest.fixture
def slow_to_plan():
    """160,380 Setups in full: a quarter of a minute."""
    return ("barak2022.robust-space",)


def test_every_claim_of_the_four_papers_is_there():
    counts: dict[str, int] = {}
    for each in CLAIMS:
        counts[each.paper.id] = counts.get(each.paper.id, 0) + 1
    published = {"barak2022": 51, "abbe2024": 40, "glasgow2023": 16, "daniely2020": 16}
    assert {name: counts[name] for name in published} == published


def test_there_is_much_evidence():
    assert len([entry for entry in entries(CLAIMS, NOWHERE) if entry.source == "shipped"]) > 200
    assert len(shipped()) > 150


def test_a_plan_says_whether_it_lists_everything(tmp_path):
    """A race asks for its later stages once the first are known."""
    complete = {each.id: plan(each, "quick", tmp_path)[1] for each in find(["glasgow2023.thm3-1", "barak2022.fig9"])}
    assert complete == {"glasgow2023.thm3-1": True, "barak2022.fig9": False}


def test_texts_are_made_from_code():
    (thm31,) = find(["glasgow2023.thm3-1"])
    (line,) = request_lines(thm31, "quick")
    assert line.startswith("12 runs of 3 Setups: parity: k 2, n 32 | 64 | 128; mlp: ")
    assert "d: [32, 64, 128] (quick), [32, 64, 128, 256, 512] (standard and full)" in size_lines(thm31)


def test_an_interval_that_does_not_hold_its_value_is_found():
    claim = registry()["barak2022.fig2-left"]
    entry = evidence.shipped(claim.id)["full"]
    assert "does not hold" not in "\n".join(differences(claim, entry))
    check = next(check for check in entry["checks"] if check["interval"])
    check["interval"] = [check["value"] + 1, check["value"] + 2]
    assert "does not hold" in "\n".join(differences(claim, entry))


def test_what_holds_is_told_in_one_line():
    standings = [standing(NOWHERE, claim) for claim in PUBLISHED]
    counts = tally(standings)
    assert sum(counts.values()) == len(PUBLISHED)
    assert told(standings).startswith(f"{counts['holds']} holds, {counts['in parts']} in parts (")


def test_the_four_papers_say_what_was_asked_before():
    counts = {paper.id: len(paper.history) for paper in {each.paper for each in CLAIMS}}
    assert {name: counts[name] for name in FOUR} == FOUR


def recorded_from_a_commit():
    """Evidence by rules that were changed, and of our own statements: ``--record`` asks for a commit there."""
    for claim in CLAIMS:
        for size, entry in evidence.shipped(claim.id).items():
            if "commit" in entry:
                yield pytest.param(claim, entry, id=f"{claim.id}-{size}")


def test_all_evidence_by_changed_rules_of_the_four_papers_is_from_a_commit():
    changed = [claim for claim in CLAIMS if claim.paper.own or (claim.paper.id in FOUR and claim.history)]
    entries = [(claim.id, size, entry) for claim in changed for size, entry in evidence.shipped(claim.id).items()]
    assert len(entries) > 100
    assert [entry[:2] for entry in entries if "commit" not in entry[2] or not entry[2]["seed"]] == []


@pytest.mark.parametrize(("claim", "entry"), list(recorded_from_a_commit()))
def test_a_rule_was_committed_before_its_run(claim, entry):
    """The commit that the evidence names holds the claim, and is older than the day after the run."""
    known = subprocess.run(["git", "cat-file", "-e", entry["commit"]], cwd=ROOT, capture_output=True, check=False)
    if known.returncode:
        pytest.skip("there is no history here")
    package = claim.paper.folder.name
    held = subprocess.run(["git", "grep", "-lF", f'"{claim.id}"', entry["commit"], "--", f"*/{package}/*.py"],
                          cwd=ROOT, capture_output=True, text=True, check=False).stdout
    assert held
    day = subprocess.run(["git", "show", "-s", "--format=%cs", entry["commit"]], cwd=ROOT, capture_output=True,
                         text=True, check=True).stdout.strip()
    assert day <= entry["date"]


def test_a_changed_rule_is_recorded_from_a_commit_and_with_fresh_seeds(tmp_path):
    claim = registry()["barak2022.fig6-row1"]
    with pytest.raises(InvalidInput, match="fresh seeds"):
        committed(claim, seed=0)
    elsewhere = replace(claim, paper=replace(claim.paper, place=replace(claim.paper.place, folder=tmp_path)))
    with pytest.raises(InvalidInput, match="git checkout"):
        committed(elsewhere, seed=1)


def test_what_was_asked_before_is_shown(capsys):
    assert main(["claims", "show", "barak2022.fig6-row1"]) == 0
    page = capsys.readouterr().out
    (change,) = registry()["barak2022.fig6-row1"].history
    assert " ".join(change.asked.split()) in " ".join(page.split())
    assert change.commit[:7] in page


def test_all_claims_are_listed_on_one_page(capsys):
    assert main(["claims", "--markdown"]) == 0
    page = capsys.readouterr().out
    assert all(claim.id in page for claim in CLAIMS)
