"""Claims and evidence of all editions are what those of every paper must be."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from every_claim import *  # noqa: F403
from every_claim import CLAIMS, NOWHERE, PUBLISHED, shipped

from paritylab.claims import evidence, find
from paritylab.claims.registry import registry
from paritylab.claims.reproduction import committed, plan
from paritylab.claims.rules import SIZES
from paritylab.claims.standing import standing, told
from paritylab.claims.texts import request_lines, size_lines
from paritylab.claims.verdicts import CONTRADICTED
from paritylab.claims.verifying.entries import entries
from paritylab.claims.verifying.words import differences
from paritylab.cli import main
from paritylab.errors import InvalidInput

ROOT = Path(__file__).parents[2]
FIRST = {
    ("barak2022.fig10-misc", "quick"): ["R^2 of (xiv), k = 3"],
    ("barak2022.fig10-misc", "standard"): ["R^2 of (xv), k = 3", "R^2 of (xiv), k = 3", "R^2 of (xiv), k = 4"],
    ("barak2022.fig10-mlp", "standard"): ["R^2 of (iv), k = 3"],
    ("barak2022.fig10-mlp", "full"): ["R^2 of (iv), k = 3"],
}
"""Evidence of first rules is frozen: percentiles of resampled R^2 that lie below their estimates. By these rules a
value passes by itself, so no verdict rests on them; remarks say what was wrong."""


@pytest.fixture
def slow_to_plan():
    """160,380 Setups in full: a quarter of a minute."""
    return ("barak2022.robust-space",)


@pytest.fixture
def unsaid():
    """To be said."""
    return {"liu2025.composite", "liu2025.unrelated", "nam2024.data-emergence", "nam2024.slow-tail",
            "nam2024.transformer-times", "nam2024.width-calibration", "sutro.n-curriculum"}


@pytest.fixture
def odd_intervals():
    return FIRST


def test_every_claim_of_the_four_papers_is_there():
    counts: dict[str, int] = {}
    for each in CLAIMS:
        counts[each.paper.id] = counts.get(each.paper.id, 0) + 1
    published = {"barak2022": 51, "abbe2024": 40, "glasgow2023": 16, "daniely2020": 16}
    assert {name: counts[name] for name in published} == published
    assert {each.id for each in CLAIMS if each.paper.id in published} == {
        name for paper in {each.paper for each in CLAIMS} for name in paper.first}


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
    assert line.startswith("5 runs of 3 Setups: parity: k 2, n 32 | 64 | 128; mlp: ")
    assert "d: [32, 64, 128] (quick), [32, 64, 128, 256, 512] (standard and full)" in size_lines(thm31)


def test_an_interval_that_does_not_hold_its_value_is_found_unless_the_rule_no_longer_counts():
    claim = registry()["barak2022.fig2-left"]
    entry = evidence.shipped(claim.current.key)["full"]
    check = next(check for check in entry["checks"] if check["interval"])
    check["interval"] = [check["value"] + 1, check["value"] + 2]
    assert "does not hold" in "\n".join(differences(claim.current, entry))
    assert claim.current is not claim
    first = evidence.shipped(claim.id)["full"]
    check = next(check for check in first["checks"] if check["interval"])
    check["interval"] = [check["value"] + 1, check["value"] + 2]
    assert "does not hold" not in "\n".join(differences(claim, first))


def test_both_counts_are_told():
    standings = [standing(NOWHERE, claim) for claim in PUBLISHED if claim.paper.first]
    assert told(standings).startswith("first rules: 96 of 123 reproduced; by those that count now (")


@pytest.mark.parametrize("claim", [claim for claim in PUBLISHED if claim.amended], ids=lambda claim: claim.id)
def test_an_amendment_is_dated_quotes_the_paper_and_differs(claim):
    amended, first = claim.amended.trial, claim.trial
    assert amended.claim == first.claim == claim.id
    assert (amended.amended, first.amended) == (True, False)
    assert claim.amended.amendment.date >= "2026-11-16"

    def rules(trial):
        return [str(rule) for rule in trial.rules()]

    def sizes(trial):
        return {label: each.values for label, each in trial.sizes().items()}

    changed = rules(amended) != rules(first) or sizes(amended) != sizes(first) or amended.judge is not first.judge
    assert changed or amended.work is not first.work


def amended_evidence():
    for path in shipped():
        document = json.loads(path.read_text(encoding="utf-8"))
        claim = registry()[document["claim"]]
        if path.stem.endswith(".amended") or claim.paper.own:
            for size in SIZES:
                if size in document["sizes"]:
                    yield pytest.param(claim.current, document["sizes"][size], id=f"{path.stem}-{size}")


@pytest.mark.parametrize(("claim", "entry"), list(amended_evidence()))
def test_a_rule_was_committed_before_its_run(claim, entry):
    """The commit that the evidence names holds the amendment, and is older than the day after the run."""
    assert entry["seed"] > 0 or claim.paper.own
    known = subprocess.run(["git", "cat-file", "-e", entry["commit"]], cwd=ROOT, capture_output=True, check=False)
    if known.returncode:
        pytest.skip("there is no history here")
    now = claim.path.relative_to(ROOT).as_posix()
    texts = [subprocess.run(["git", "show", f"{entry['commit']}:{path}"], cwd=ROOT, capture_output=True, text=True,
                            check=False).stdout
             for path in (now, now.replace("editions/", "packs/"), f"src/paritylab/papers/{claim.path.parent.name}/"
                          f"{claim.path.name}")]  # where papers were before they were editions
    text = next(filter(None, texts))
    assert f'"{claim.id}"' in text
    day = subprocess.run(["git", "show", "-s", "--format=%cs", entry["commit"]], cwd=ROOT, capture_output=True,
                         text=True, check=True).stdout.strip()
    assert day <= entry["date"]


def test_an_amended_rule_is_recorded_from_a_commit_and_with_fresh_seeds(tmp_path):
    claim = registry()["barak2022.fig6-row1"].amended
    assert claim is not None
    with pytest.raises(InvalidInput, match="fresh seeds"):
        committed(claim, seed=0)
    elsewhere = replace(claim, paper=replace(claim.paper, place=replace(claim.paper.place, folder=tmp_path)))
    with pytest.raises(InvalidInput, match="git checkout"):
        committed(elsewhere, seed=1)


def test_the_first_rule_can_be_tried_again(tmp_path, capsys):
    assert main(["reproduce", "barak2022.fig6-row1", "--quick", "--first", "--json", "--out", str(tmp_path)]) == 0
    (result,) = json.loads(capsys.readouterr().out)["claims"]
    assert result["parameters"]["runs"] == 10
    assert (tmp_path / "claims" / "barak2022.fig6-row1" / "quick" / "result.json").is_file()


def test_all_claims_are_listed_on_one_page(capsys):
    assert main(["claims", "--markdown"]) == 0
    page = capsys.readouterr().out
    assert all(claim.id in page for claim in CLAIMS)


def test_the_first_setup_and_rule_are_history_that_can_be_shown(capsys):
    assert main(["claims", "show", "barak2022.fig11", "--first"]) == 0
    page = capsys.readouterr().out
    assert "as first written down" in page
    assert "500 draws" in page


def test_a_contradiction_quotes_what_it_contradicts():
    standings = [standing(NOWHERE, claim) for claim in PUBLISHED if claim.paper.first]
    contradicted = [each for each in standings if CONTRADICTED in each.results.values() and not each.untried]
    assert all(each.claim.amendment and each.claim.amendment.quote for each in contradicted)
