"""What must be true of every claim of whatever papers are here, and of their shipped evidence.

The tests of the laboratory ask it of the template, those of the editions of all editions:
``from every_claim import *``.
"""

from __future__ import annotations

import datetime
import json
import math
import re
import subprocess
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from lengths import long_but

from paritylab import engines
from paritylab.claims import Rule, evidence, papers
from paritylab.claims.library import REASONS
from paritylab.claims.registry import registry
from paritylab.claims.reproduction import plan
from paritylab.claims.rules import Significance
from paritylab.claims.standing import standing
from paritylab.claims.texts import size_lines
from paritylab.claims.verdicts import CONTRADICTED, RESULTS, UNDECIDED
from paritylab.claims.verifying.entries import entries
from paritylab.claims.verifying.words import differences
from paritylab.running import keeping

NOWHERE = Path("nowhere")
CLAIMS = list(registry().values())
PUBLISHED = [claim for claim in CLAIMS if not claim.paper.own]


@pytest.fixture
def slow_to_plan() -> tuple[str, ...]:
    """Claims whose larger sizes take long even to list."""
    return ()


def test_remarks_and_headlines_are_about_known_claims():
    for paper in {each.paper for each in CLAIMS}:
        assert set(paper.remarks) <= set(registry())
        assert set(paper.headlines) <= set(paper.claims)


@pytest.mark.parametrize("size", long_but(["quick", "standard", "full"], "quick", slow=["standard"]))
def test_no_claim_trains_or_computes_under_a_plan(size, slow_to_plan, tmp_path, monkeypatch):
    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("something is trained")

    for name in ("train", "final_params", "make_pool"):
        monkeypatch.setattr(engines, name, refuse)
    monkeypatch.setattr(keeping, "_made", refuse)
    for paper in papers().values():
        paper.place.make_importable()  # another test may have had another paper of its name
    for each in CLAIMS:
        if size == "quick" or each.id not in slow_to_plan:
            tasks, all_ = plan(each, size, tmp_path / "nowhere")
            assert all_ or tasks, each.id
            assert len({task.name for task in tasks}) == len(tasks)
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize("each", CLAIMS, ids=lambda each: each.id)
def test_what_is_printed_is_what_was_recorded(each):
    """Sizes as declared are those of the evidence, and every recorded check is of a declared rule for that size."""
    trial = each.trial
    assert trial.claim == each.id
    printed = "\n".join(size_lines(each))
    assert all(label in printed for label in trial.sizes())
    for name, entry in evidence.shipped(each.id).items():
        sizes = {label: json.loads(json.dumps(one.values[name])) for label, one in trial.sizes().items()}
        recorded = {label: value for label, value in entry["parameters"].items() if label != "left out"}
        assert recorded == sizes
        rules = [rule for rule in trial.rules() if name in rule.only]
        for check in entry["checks"]:
            assert any(could_be(rule, check) for rule in rules), check["name"]


def could_be(rule: Rule, check: dict[str, Any]) -> bool:
    """Whether a recorded check can come from a rule: its name fits the template, its bound the rule's."""
    def fits(template: str, text: str) -> bool:
        parts = re.split(r"(?<!\{)\{[^{}]+\}(?!\})", template)
        pattern = ".+".join(re.escape(part.replace("{{", "{").replace("}}", "}")) for part in parts)
        return re.fullmatch(pattern, text) is not None

    said = any(isinstance(getattr(rule, end, None), str) for end in ("low", "high"))
    return fits(rule.name, check["name"]) and (said or fits(rule.asked, check["rule"]))


def test_shipped_evidence_is_of_known_claims_and_was_written_by_the_program():
    for path in shipped():
        document = json.loads(path.read_text())
        claim = registry()[document["claim"]]
        assert path.stem == claim.id
        for size, entry in document["sizes"].items():
            assert entry["size"] == size
            assert entry["checks"]
            assert {check["result"] for check in entry["checks"]} <= set(RESULTS)
            assert list(entry["results"]) == list(dict.fromkeys(check["part"] for check in entry["checks"]))


def shipped() -> list[Path]:
    folders = [paper.folder / "evidence" for paper in papers().values()]
    return [path for folder in folders for path in sorted(folder.glob("*.json"))]


def test_shipped_intervals_hold_their_estimates():
    odd = []
    for path in shipped():
        for size, entry in json.loads(path.read_text())["sizes"].items():
            for check in entry["checks"]:
                if check["value"] is not None and check["interval"] is not None:
                    value, low, high = (float(each) for each in (check["value"], *check["interval"]))
                    room = 1e-9 * abs(value) if math.isfinite(value) else 0.0
                    if not low - room <= value <= high + room:
                        odd.append((path.stem, size, check["name"]))
    assert odd == []


def test_the_words_of_all_shipped_evidence_follow_from_its_numbers():
    found = [entry for entry in entries(CLAIMS, NOWHERE) if entry.source == "shipped"]
    assert found
    told = {entry.where: list(differences(entry.claim, entry.found)) for entry in found}
    assert {where: lines for where, lines in told.items() if lines} == {}


@pytest.mark.parametrize("claim", PUBLISHED, ids=lambda claim: claim.id)
def test_every_value_of_a_setup_says_where_it_comes_from(claim):
    values = claim.values()
    assert values.sources
    assert values.unsaid(claim.trial.sizes()) == []


@pytest.mark.parametrize("claim", PUBLISHED, ids=lambda claim: claim.id)
def test_no_check_is_decided_by_a_point_estimate_alone(claim):
    """Checks of the evidence that counts have an interval, or are p-values, or are computed."""
    found = standing(NOWHERE, claim).found
    if claim.kind == "exact" or found is None:
        return
    rules = claim.trial.rules()
    for check in found["checks"]:
        rule = next(rule for rule in rules if rule.made(check["name"]))
        decided = check["result"] != UNDECIDED
        assert check["interval"] or rule.exact or isinstance(rule, Significance) or not decided, check["name"]


CHANGED = [claim for claim in CLAIMS if claim.history]


@pytest.mark.parametrize("claim", CHANGED, ids=lambda claim: claim.id)
def test_a_change_says_what_was_asked_before_and_why_it_was_made(claim):
    for change in claim.history:
        assert change.reason in REASONS
        assert datetime.date.fromisoformat(change.date) <= datetime.date.today()
        assert [name for name, text in asdict(change).items() if not text.strip() and name != "paper"] == []
    dates = [change.date for change in claim.history]
    assert dates == sorted(dates)


def test_the_code_before_a_change_is_in_git():
    for paper in {claim.paper for claim in CHANGED}:
        commits = {change.commit for changes in paper.history.values() for change in changes}
        if (shallow := git(paper.folder, "rev-parse", "--is-shallow-repository")) != "false":
            pytest.skip(f"there is no history here: {shallow or 'no git checkout'}")
        assert {commit for commit in commits if git(paper.folder, "cat-file", "-t", commit) != "commit"} == set()


def git(folder: Path, *words: str) -> str:
    """What git answers in a folder; nothing where it fails."""
    done = subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


def test_a_contradicted_claim_that_was_changed_quotes_the_paper():
    contradicted = [claim for claim in PUBLISHED if CONTRADICTED in standing(NOWHERE, claim).results.values()]
    assert [claim.id for claim in contradicted if claim.history and not any(c.paper for c in claim.history)] == []
