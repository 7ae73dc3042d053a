"""``paritylab demo``: a table, figures and the site, in a folder."""

from __future__ import annotations

import json

from commands import run


def test_it_trains_draws_and_writes_the_site(tmp_path, capsys):
    status, out, _ = run(capsys, "demo", "--runs", "10", "--json", "--out", str(tmp_path))
    assert status == 0
    told = json.loads(out)
    assert {row["k"] for row in told["table"]} == {2, 3}
    assert len(told["table"]) == 10
    assert all(row["p10"] is None or row["p10"] > 0 for row in told["table"])
    names = {path.name for path in tmp_path.glob("*.svg")}
    assert names == {"survival.svg", "histogram.svg", "training-curve.svg"}
    assert (tmp_path / "site" / "index.html").is_file()
    status, out, _ = run(capsys, "demo", "--runs", "10", "--out", str(tmp_path))
    assert status == 0
    assert "100 networks in the table" in out
    assert "PolyNet" in out


def test_too_few_runs_are_one_line(tmp_path, capsys):
    status, out, error = run(capsys, "demo", "--runs", "9", "--out", str(tmp_path))
    assert (status, out, error) == (2, "", "paritylab: error: --runs must be at least 10, not 9\n")
