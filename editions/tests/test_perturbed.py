"""Every rule can fail: what is found when a trial's data are damaged (``tools/perturb.py``)."""

import json
import sys
from pathlib import Path

import pytest
from lengths import long_but

from paritylab.claims import Lab
from paritylab.claims.registry import registry
from paritylab.claims.verdicts import HOLDS, UNDECIDED

FILE = Path(__file__).parents[2] / "docs" / "data" / "perturbed.json"
SEEN = json.loads(FILE.read_text(encoding="utf-8"))
DAMAGED = {key.partition(".")[0] for key in SEEN}
"""The papers that were tried: those on emergence, scaling laws and grokking were not."""
CLAIMS = [claim for claim in registry().values() if claim.paper.id in DAMAGED]


FEW = {
    (f"abbe2024.fig4-{side}", "largest less smallest log10 N at accuracy 0.75"):
        "three runs of two starts, one of which does not reach 0.75: a quick trial never decides it;"
        " test_claims_abbe2024_training.py gives it data with which it holds and others with which it is contradicted"
    for side in ("left", "right")
}
"""Rules that quick trials leave undecided whatever the damage, and why."""


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.id)
def test_no_rule_holds_whatever_the_data_say(claim):
    rules = {rule.name for rule in claim.trial("quick", 0).rules() if "quick" in rule.only}
    assert rules <= set(SEEN[claim.id]), "run tools/perturb.py"
    for name in rules:
        same = set(SEEN[claim.id][name]) in ({HOLDS}, {UNDECIDED}, set())
        assert same == ((claim.id, name) in FEW), name


UNTRIED = {
    ("daniely2020.thm2", "share of runs with error <= 0.05, n = 101, k = 5"):
        "its runs take 40 minutes, and shorter ones learn nothing, damaged or not; test_claims_daniely2020.py"
        " gives it errors with which it holds and others with which it is contradicted",
}
"""Rules of larger sizes without data that could be damaged, and why."""
STUCK = {
    ("daniely2020.uniform-contrast", "mean best error without the leak, n = {n}, k = {k}, T = {steps}"):
        "weights that are damaged learn no parity; test_claims_daniely2020.py gives it some that have learned",
    ("beyond.leak-threshold", "exponent of the critical p in n, exact step at rate 1, k = {k}"):
        "damaged curves have no crossing at some n, and the exponent is unknown",
    ("beyond.signs-special", "d = {d}: least widths with accuracy 0.75 from odd lattices by variance, {widths}"):
        "has no interval, so it is undecided whatever is found; the claim is decided by its other rules",
    ("beyond.growth", "signs and {{±1, ±1.4}} at d = 100: the one learnt by the end, the other not, as predicted"):
        "has no interval, so it is undecided whatever is found; the claim is decided by its other rules",
    ("beyond.growth", "the same less that of the network's alignment"):
        "a difference of two correlations: unknown where all accuracies are alike, and else its interval holds 0",
}
"""Rules of larger sizes with one result for all damage, and why."""


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.id)
def test_rules_that_only_larger_sizes_have_were_tried_too(claim):
    for rule in claim.trial("full", 0).rules():
        if (claim.id, rule.name) in UNTRIED:
            continue
        assert rule.name in SEEN[claim.id], f"{rule.name}; run tools/perturb.py --size full"
        same = set(SEEN[claim.id][rule.name]) in ({HOLDS}, {UNDECIDED}, set())
        assert same == ((claim.id, rule.name) in STUCK | FEW), rule.name


@pytest.mark.parametrize("name", long_but(["barak2022.lemma5", "glasgow2023.lemma-c2", "daniely2020.lemma5"],
                                          "glasgow2023.lemma-c2", "daniely2020.lemma5"))
def test_the_tool_still_finds_what_it_wrote(name, tmp_path):
    sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))
    import perturb
    claim = registry()[name]
    assert perturb.outcomes(claim, Lab("quick", tmp_path, progress=False)).keys() <= SEEN[claim.id].keys()
