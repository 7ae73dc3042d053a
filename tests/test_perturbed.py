"""Every rule can fail: what is found when the template's data are damaged (``tools/perturb.py``)."""

import sys
from pathlib import Path

import pytest

from paritylab.claims import Lab, find
from paritylab.claims.verdicts import CONTRADICTED, HOLDS


@pytest.mark.parametrize("name", ["me2025.width", "me2025.guessing"])
def test_no_rule_of_the_template_holds_whatever_the_data_say(name, tmp_path):
    sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))
    import perturb

    (claim,) = find([name])
    seen = perturb.outcomes(claim, Lab("quick", tmp_path, progress=False))
    assert set(seen) == {rule.name for rule in claim.trial.rules()}
    assert all({HOLDS, CONTRADICTED} <= set(results) for results in seen.values())
