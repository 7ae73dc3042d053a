"""``pl.compare`` and ``paritylab compare``: two learners on the same runs."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

import paritylab as pl
from paritylab.cli import main


def setup(lr: float = 0.1, steps: int = 400, **learner) -> pl.Setup:
    protocol = pl.Protocol(steps, eval_size=128)
    return pl.Setup(pl.Parity(n=8, k=2), pl.Learner(optimiser=pl.SGD(lr), **learner), protocol)


@pytest.fixture(scope="module")
def found() -> pl.Compared:
    return pl.compare(setup(0.03), setup(0.2), runs=40)


def test_the_faster_learner_is_named(found):
    assert found.paired.decided
    assert found.paired.ratio > 2
    assert "faster: the second is faster (p = " in str(found)
    assert repr(found).startswith(f"<Compared {found.first.setup.id}, {found.second.setup.id}: the second is faster")
    assert found.paired == pl.statistics.paired(found.first.records, found.second.records, 400)


def test_runs_are_those_of_a_measurement(found):
    alone = pl.measure(found.first.setup.problem, found.first.setup.learner, found.first.setup.protocol, runs=40)
    assert alone.records.digest == found.first.records.digest
    again = pl.compare(alone, found.second)
    assert again.paired == found.paired
    fewer = pl.compare(alone, found.second.setup, runs=range(10, 30))
    assert fewer.paired.pairs == 20


def test_it_shows_itself(found):
    shown = found._repr_html_()
    assert shown.startswith("<table>")
    assert "lr 0.03 | 0.2" in shown
    frame = found.to_frame()
    assert frame.columns == ["run", "first_t_c", "first_status", "second_t_c", "second_status", "ratio"]
    assert len(frame) == 40
    unsolved = frame.filter(frame["first_status"] != "solved")
    assert len(unsolved) == 40 - found.first.summary.solved
    assert unsolved["ratio"].null_count() == len(unsolved)
    assert len(found.plot().axes) == 1
    json.dumps(found.to_dict(), allow_nan=False)


def test_alike_learners_are_not_told_apart_and_more_runs_are_named():
    """The same learner against itself differs in nothing; a batch of one example more does hardly."""
    same = pl.compare(setup(), setup(), runs=5)
    assert (same.paired.p_value, same.paired.ratio) == (1.0, 1.0)
    assert "no difference was seen" in same.verdict
    close = pl.compare(setup(), setup(batch=33), runs=12)
    assert not close.paired.decided
    assert close.paired.more > 12
    assert "more runs would" in close.verdict


def test_what_cannot_be_compared_is_said_in_a_line(found):
    with pytest.raises(pl.InvalidInput, match="compare takes two Setups, or Results, not 'a'"):
        pl.compare("a", found.first)
    other = pl.measure(found.first.setup.problem, runs=2, seed=1)
    with pytest.raises(pl.InvalidInput, match="pairs of runs share their seed, and it is 0 here and 1 there"):
        pl.compare(found.first, other)

    def broken(f, y):
        return np.nan_to_num(f)[:0]

    with pytest.raises(pl.CellFailed, match="broken"):
        pl.compare(setup(), setup(loss=broken), runs=2)


def test_compare_in_a_shell(tmp_path, capsys):
    words = ["compare", "--n", "8", "--k", "2", "--lr", "0.03", "--max-steps", "400", "--eval-size", "128", "--runs",
             "40", "--against", "--lr 0.2", "--out", str(tmp_path)]
    assert main([*words, "--figure"]) == 0
    assert "the second is faster" in capsys.readouterr().out
    assert list(tmp_path.glob("compare-*.png"))
    assert main([*words, "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["decided"]
    assert shown["first"]["lr"] == 0.03
    assert shown["second"]["lr"] == 0.2
    assert shown["second"]["seconds"] < 1  # from the store


@pytest.mark.parametrize(("against", "line"), [
    (None, "--against is missing"),
    ("--lr 0.1", "leaves the learner as it is"),
    ("--runs 3", "--runs is for both learners"),
    ("--lrr 3", "unknown option --lrr .did you mean --lr"),
    ("'", "No closing quotation"),
])
def test_compare_says_what_is_wrong(against, line, capsys, tmp_path):
    more = [] if against is None else [f"--against={against}"]
    assert main(["compare", "--n", "8", "--k", "2", "--out", str(tmp_path), *more]) == 2
    shown = capsys.readouterr().err
    assert shown.startswith("paritylab: error: ")
    assert shown.count("\n") == 1
    assert re.search(line, shown)
