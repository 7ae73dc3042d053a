"""``paritylab theory learners``: a table, one JSON object, files, and one line for what is wrong."""

from __future__ import annotations

import json

import polars as pl
import pytest
from commands import run

SMALL = ["theory", "learners", "--k", "2", "--runs", "3"]


@pytest.mark.long
def test_a_table_a_figure_and_the_data(capsys, tmp_path):
    learners = "sgd,gaussian-elimination,goldreich-levin,ntk"
    status, out, err = run(capsys, *SMALL, "--n", "8", "10", "--learners", learners, "--out", str(tmp_path))
    assert (status, err) == (0, "")
    rows = [line.split() for line in out.splitlines() if line.split()[:1] and line.split()[0] in learners.split(",")]
    assert [(row[0], row[1]) for row in rows] == [(name, n) for n in ("8", "10") for name in learners.split(",")]
    for suffix in ("csv", "parquet", "png", "svg", "pdf"):
        assert (tmp_path / f"learners.{suffix}").stat().st_size > 0
    data = pl.read_parquet(tmp_path / "learners.parquet")
    assert len(data) == 2 * 4 * 3
    assert data.columns == pl.read_csv(tmp_path / "learners.csv").columns
    again = run(capsys, *SMALL, "--n", "8", "10", "--learners", learners, "--out", str(tmp_path))
    assert again[1] == out  # nothing is computed twice: also the seconds are those of the first time


def test_json_is_one_object_in_which_what_is_not_reached_is_null(capsys, tmp_path):
    status, out, _ = run(capsys, *SMALL, "--n", "20", "--noise", "0.2", "--learners", "gaussian-elimination,low-degree",
                         "--out", str(tmp_path), "--json")
    assert status == 0
    refused, solved = json.loads(out)["rows"]
    assert (refused["solved"], refused["median"]) == (0, None)
    assert refused["refused"] > 0
    assert solved["solved"] == 3
    assert solved["solved_interval"][0] > 0.4


def test_the_learners_are_listed(capsys):
    status, out, _ = run(capsys, "theory", "learners", "--list")
    assert status == 0
    assert out.startswith("gaussian-elimination")
    assert "sgd" in json.loads(run(capsys, "theory", "learners", "--list", "--json")[1])["learners"]


@pytest.mark.parametrize(("arguments", "message"), [
    (["--learners", "sgd,ntkk"], "unknown learner 'ntkk' (did you mean 'ntk'?)"),
    (["--learners", "sgd,sgd"], "say each learner once"),
    (["--n", "2", "--k", "3"], "k must be in 0..n=2"),
    (["--n", "8", "8"], "--n values must differ"),
    (["--noise", "1.5"], "noise must be a probability"),
    (["--noise", "0.5", "--learners", "exhaustive"], "noise below 1/2"),
    (["--runs", "0"], "runs must be at least 1"),
    (["--limit", "0"], "sgd takes from 1"),
    (["--lr", "-1"], "the learning rate"),
    (["--n", "5000", "--k", "6", "--learners", "low-degree"], "supports"),
    (["--threshold", "2"], "threshold"),
])
def test_mistakes_are_one_line_and_status_2(capsys, tmp_path, arguments, message):
    status, out, err = run(capsys, "theory", "learners", "--out", str(tmp_path), *arguments)
    assert (status, out) == (2, "")
    assert err.count("\n") == 1
    assert message in err
