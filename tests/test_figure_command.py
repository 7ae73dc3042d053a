"""``paritylab figure``, and the gallery that it makes."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from commands import run
from drawn_records import kept, setup

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def out(tmp_path_factory) -> Path:
    return kept(tmp_path_factory.mktemp("out"))


def test_the_command_writes_figure_data_and_origin_the_same_each_time(out, tmp_path, capsys):
    command = ["figure", "--kind", "scaling", "--x", "n", "--by", "k", "--where", "lr == 0.1", "--results", str(out)]
    status, shown, told = run(capsys, *command, "--out", str(tmp_path / "f.pdf"), "--json")
    assert (status, told) == (0, "")
    document = json.loads(shown)
    assert [Path(name).name for name in document["files"]] == ["f.pdf", "f.csv", "f.json"]
    assert document["rows"] == 6
    assert len(document["setups"]) == 6
    before = [Path(name).read_bytes() for name in document["files"]]
    made = json.loads((tmp_path / "f.json").read_text())
    assert made["setups"][setup(10, 2, 0.1).id] == json.loads(setup(10, 2, 0.1).to_json())
    assert shlex.split(made["command"])[:4] == ["paritylab", "figure", "--kind", "scaling"]
    status, _, _ = run(capsys, *shlex.split(made["command"])[1:])
    assert status == 0
    assert [Path(name).read_bytes() for name in document["files"]] == before


@pytest.mark.parametrize(("command", "why"), [
    ("--x nn", "unknown parameter 'nn'"),
    ("--x n", "several Setups have one n and differ in k, "),
    ("--x n --by k --y medan --where 'lr == 1'", "unknown statistic 'medan' (did you mean 'median'?)"),
    ("--x network --by k --where 'lr == 1'", "network is not a parameter of numbers"),
    ("--kind scaling --by k", "--kind scaling needs --x"),
    ("--kind scaling --x n --y solved_fraction --where 'lr == 1 and k == 3'", "a law is fitted to percentiles"),
    ("--kind survival --x n", "--x is for --kind lines, scaling, heat, not for survival"),
    ("--kind heat --x n --y n --pool", "the two parameters of a map must differ"),
    ("--kind compare --by k --level 2", "a confidence level must be between 0 and 1"),
    ("--x n --where 'n == 3'", "matches"),
    ("--x n --where 'n ==='", "cannot read the condition"),
    ("--kind pie", "invalid choice: 'pie'"),
    ("--kind curves", "there are no curves in"),
    ("--x n --results nowhere", "there is no store at nowhere"),
    ("--x n --out .", ". is a folder; --out is the figure's file"),
])
def test_what_cannot_be_drawn_is_refused_in_one_line(out, tmp_path, capsys, command, why, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = shlex.split(command)
    status, shown, told = run(capsys, "figure", *(() if "--results" in words else ("--results", str(out))), *words)
    assert (status, shown) == (2, "")
    assert why in told
    assert told.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_curves_of_the_command_are_drawn_by_their_parameters(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    record = ["curves", "--n", "6", "--k", "2", "--width", "4", "--steps", "20", "--every", "10", "--runs", "3",
              "--eval-size", "32"]
    for lr in ("0.1", "0.5"):
        assert run(capsys, *record, "--lr", lr)[0] == 0
    status, _, told = run(capsys, "figure", "--kind", "curves")
    assert (status, "which differ in lr" in told) == (2, True)
    status, shown, _ = run(capsys, "figure", "--kind", "curves", "--by", "lr", "--y", "loss", "--json")
    assert status == 0
    table = pl.read_csv("figure.csv")
    assert table["curve"].unique().sort().to_list() == ["lr = 0.1", "lr = 0.5"]
    kept = json.loads(shown)["setups"]
    losses = pl.concat([pl.read_parquet(f"out/curves-{each}.parquet") for each in kept])
    assert table["median"].sum() == pytest.approx(losses.select("run", "step", "loss").with_columns(
        place=pl.arange(pl.len()) // 9).group_by("place", "step").agg(pl.col("loss").median())["loss"].sum(), rel=1e-6)
    assert run(capsys, "figure", "--kind", "curves", "--where", "lr == 0.5", "--y", "speed")[0] == 2


def test_the_commands_of_the_gallery_are_those_of_its_figures():
    page = (ROOT / "docs" / "how-to" / "figures.md").read_text(encoding="utf-8")
    shown = re.findall(r"\(\.\./images/gallery/(\w+\.svg)\)", page)
    made = re.findall(r"gallery/(\w+\.svg)(?=$|\")", page, re.MULTILINE)
    kept = list((ROOT / "docs" / "images" / "gallery").iterdir())
    assert sorted(shown) == sorted(made) == sorted(path.name for path in kept)
    assert sum(path.stat().st_size for path in kept) < 10**6


@pytest.mark.long
def test_the_page_runs_from_its_top_to_its_end(tmp_path):
    """The lines and commands as they are printed, of few and short runs."""
    code = """import re, sys
from pathlib import Path
sys.path[:0] = ["tests", "tools"]
import gallery
from test_docs import smaller
folder = Path(sys.argv[1])
text = re.sub(r"--runs \\d+ --steps \\d+", "--runs 3 --steps 30", smaller(gallery.PAGE.read_text()))
gallery.PAGE, gallery.KEPT = folder / "page.md", folder / "kept"
gallery.PAGE.write_text(text)
gallery.make()
"""
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert len(list((tmp_path / "kept").iterdir())) == 9
