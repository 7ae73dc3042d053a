"""Results with a basis: whole intervals decide, parts stand alone, and every value says where it comes from."""

import math
from dataclasses import replace
from pathlib import Path

import pytest
from scipy import stats

from paritylab.claims import Findings, Lab, Trial, at_least, at_most, between, significant
from paritylab.claims.basis import NOT_SAID, SOURCES, read
from paritylab.claims.library import papers
from paritylab.claims.power import POWER, times_to_decide
from paritylab.claims.reproduction import tried
from paritylab.claims.verdicts import CONTRADICTED, HOLDS, UNDECIDED, results

NOWHERE = Path("nowhere")
ROOT = Path(__file__).parents[1]


# --- checks and parts -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("interval", "result"), [
    ((0.3, 0.6), HOLDS), ((0.1, 0.6), UNDECIDED), ((0.3, 0.9), UNDECIDED), ((0.2, 0.8), HOLDS),
])
def test_a_pass_needs_the_whole_interval(interval, result):
    assert between("share", 0.2, 0.8)(0.5, interval).result == result


@pytest.mark.parametrize(("interval", "result"), [((0.05, 0.1), CONTRADICTED), ((0.05, 0.3), UNDECIDED)])
def test_a_failure_needs_it_too(interval, result):
    assert at_least("share", 0.2)(0.08, interval).result == result


def test_a_large_p_value_contradicts_nothing():
    rule = significant("p", 0.01)
    assert [rule(p).result for p in (0.001, 0.02, math.nan)] == [HOLDS, UNDECIDED, UNDECIDED]


def test_parts_stand_alone():
    rule = at_least("share", 0.2, part="B = {batch}")
    checks = [rule(0.5, (0.4, 0.6), batch=32), rule(0.01, (0, 0.1), batch=1), rule(0.9, (0.8, 1), batch=32)]
    assert results(checks) == {"B = 32": HOLDS, "B = 1": CONTRADICTED}


class Points(Trial):
    sampled = at_least("a share that was sampled", 0.2)
    ended = at_least("the end of its interval", 0.2, exact=True)
    tested = significant("p", 0.05)

    def work(self, lab):
        return None

    def judge(self, got):
        return Findings([self.sampled(0.5), self.ended(0.4), self.tested(0.01)], [{}])


def test_a_point_estimate_decides_nothing(tmp_path):
    outcome = tried(Points(), Lab("quick", tmp_path))
    assert [check.result for check in outcome.checks] == [UNDECIDED, HOLDS, HOLDS]


def test_rules_know_their_checks():
    rule = at_most("slope, eta = {eta:g}, {{a}} (all)", 2)
    assert rule.made(rule(1.0, eta=0.25).name)
    assert not rule.made("slope, eta = 0.25")


# --- power ------------------------------------------------------------------------------------------------------------


def test_so_many_runs_decide_four_times_of_five():
    """A mean of n normal values against a bound: the promised power, within four standard errors (6e-5)."""
    n, bound, effect = 10, 0.0, 0.4
    half = float(stats.norm.ppf(0.975)) / math.sqrt(n)
    times = times_to_decide(effect, (bound, math.inf), effect, (effect - half, effect + half))
    assert times is not None
    means = stats.norm(effect, 1 / math.sqrt(n * times)).rvs(20_000, random_state=0)
    decided = (means - stats.norm.ppf(0.975) / math.sqrt(n * times) > bound).mean()
    assert decided == pytest.approx(POWER, abs=4 * math.sqrt(POWER * (1 - POWER) / 20_000))


def test_no_number_of_runs_decides_on_the_bound():
    assert times_to_decide(0.2, (0.2, math.inf), 0.2, (0.1, 0.3)) is None


# --- where values come from -------------------------------------------------------------------------------------------


def test_what_a_part_says_of_a_value_counts_for_it_alone():
    table = {"printed": {"B": "1", "n": "50"}, "parts": {"(x)": {"chosen": {"scale": "2"}, "changed": {"B": "32"}}}}
    assert read(table).basis == "as printed"
    assert read(table, "(x)").basis == "printed value changed: B"
    assert read(table, "(x)").sources == {"printed": {"n": "50"}, "chosen": {"scale": "2"}, "changed": {"B": "32"}}
    assert read({}).basis == NOT_SAID
    assert read({"corrected": "with k + 1"}).basis == "corrected statement: with k + 1"


def test_a_bad_table_of_values_is_one_line_and_the_paper_stays(tmp_path):
    from paritylab.claims.library import PaperWarning

    paper = next(iter(papers().values()))
    (tmp_path / "values.toml").write_text("[fig1]\nguessed = { n = '1' }\n")
    moved = replace(paper, place=replace(paper.place, folder=tmp_path))
    with pytest.warns(PaperWarning, match="unknown source of values of fig1 'guessed'"):
        assert moved.values == {}
    assert SOURCES[0] == "printed"
