"""The published sweep by the rules of the claims, and the start of its networks."""

import itertools
import math
from types import SimpleNamespace

import jax
import numpy as np
import pytest
from paritylab_grokking.pearce2023 import common, sweep
from paritylab_grokking.pearce2023.outcomes import (
    DIRECT,
    GROK,
    MEMORISE,
    NO_FIT,
    OUTCOMES,
    Networks,
    outcomes,
    published,
)

BY_DECAY = {GROK: [5, 82, 179, 136, 33], DIRECT: [20, 31, 42, 54, 1], MEMORISE: [199, 110, 3, 22, 56],
            NO_FIT: [1, 2, 1, 13, 135]}
BY_WIDTH = {DIRECT: [105, 36, 6, 1, 0], GROK: [24, 70, 96, 121, 124], NO_FIT: [62, 45, 45, 0, 0]}
BY_SAMPLE = {MEMORISE: [126, 101, 82, 46, 35], DIRECT: [0, 14, 30, 44, 60]}


def test_published_networks_have_the_published_counts():
    counts = {outcome: round(published().count(outcome, 1125)[0], 6) for outcome in OUTCOMES}
    assert counts == {GROK: 435, DIRECT: 148, MEMORISE: 390, NO_FIT: 152}
    deviations = [1125 * math.sqrt(published().share(outcome)[1]) for outcome in (GROK, DIRECT, MEMORISE, NO_FIT)]
    assert np.round(deviations, 1).tolist() == [6.8, 5.9, 5.8, 2.7]


@pytest.mark.parametrize(("axis", "values", "counts"), [
    ("weight decay", common.DECAYS, BY_DECAY), ("width", common.WIDTHS, BY_WIDTH),
    ("sample", common.SAMPLES, BY_SAMPLE)])
def test_published_counts_along_each_axis(axis, values, counts):
    for outcome, expected in counts.items():
        assert [round(published().at(axis, value).count(outcome, 225)[0], 6) for value in values] == expected


def test_two_published_networks_of_a_cell_end_alike_as_often_as_said():
    assert published().own_agreement() == pytest.approx(0.891, abs=5e-4)
    narrow = Networks({cell: found for cell, found in published().cells.items() if cell[1] <= 32})
    assert narrow.own_agreement() == pytest.approx(0.814, abs=5e-4)


def test_outcomes_at_the_thresholds():
    """A loss of 1e-5 is fitted and a ratio of 5e4 groks; one that is not a number is not fitted."""
    assert outcomes(1e-5, 1e-5, 5e4) == OUTCOMES.index(GROK)
    assert outcomes(1e-5, 1e-5, 4.9e4) == OUTCOMES.index(DIRECT)
    assert outcomes(1.01e-5, 0, 1e6) == OUTCOMES.index(NO_FIT)
    assert outcomes(math.nan, math.nan, math.nan) == OUTCOMES.index(NO_FIT)


def test_own_agreement_is_that_of_all_pairs():
    found = np.random.default_rng(0).integers(0, 4, 9)
    pairs = list(itertools.combinations(found, 2))
    assert Networks({(0.1, 16, 750): found}).own_agreement() == pytest.approx(np.mean([a == b for a, b in pairs]))


def curves_of(networks):
    """Curves of two checks with the outcomes of a cell: losses on the sample and on test inputs at each."""
    checks = {NO_FIT: ([1, 1], [1, 1]), MEMORISE: ([1e-6, 1e-7], [0.7, 0.5]), GROK: ([1e-6, 1e-7], [0.7, 1e-7]),
              DIRECT: ([1e-6, 1e-7], [1e-6, 1e-7])}
    train, test = zip(*(checks[OUTCOMES[each]] for each in networks), strict=True)
    return SimpleNamespace(train_loss=np.array(train, float), loss=np.array(test, float))


@pytest.mark.parametrize("trial", [sweep.Shares, sweep.WeightDecay, sweep.Width, sweep.Sample, sweep.Cells])
def test_the_published_networks_pass_every_full_rule_as_values(trial):
    """Their own intervals leave some open with nine seeds, and contradict none."""
    tried = trial("full")
    findings = tried.judge([curves_of(published().cells[cell]) for cell in tried.cells])
    assert findings.checks
    assert all(check.passed and check.result != "contradicted" for check in findings.checks)
    assert tried.draw([curves_of(published().cells[cell]) for cell in tried.cells]).axes


@pytest.mark.parametrize("trial", [sweep.Shares, sweep.WeightDecay, sweep.Width, sweep.Sample, sweep.Cells])
def test_the_published_networks_hold_by_the_quick_rule(trial):
    tried = trial("quick")
    findings = tried.judge([curves_of(published().cells[cell]) for cell in tried.cells])
    assert [check.result for check in findings.checks] == ["holds"]


def test_weights_start_cut_at_two_standard_deviations_with_one_more_input():
    params = common.setup(0.1, 258, 750).params(jax.random.key(0))
    first = np.concatenate([params[0]["w"].ravel(), params[0]["b"]]) * math.sqrt(31)
    last = params[1]["w"].ravel() * math.sqrt(258)
    assert set(params[1]) == {"w"}
    for drawn in (first, last):
        assert np.abs(drawn).max() <= 2.0001
    assert first.std() == pytest.approx(0.8796, abs=0.03)  # of 7,998 draws: 4.3 standard errors
    assert last.std() == pytest.approx(0.8796, abs=0.17)
