"""The command line: one JSON object, tables and CSV."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from pathlib import Path

import pytest
from commands import TINY, files, run, run_apart

from paritylab import engines
from paritylab.cli import main

KEYS = {"setup_id", "engine", "runs", "solved", "censored", "diverged", "p10", "median", "p90", "median_interval",
        "seconds", "model_steps"}


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """A folder with records of two learning rates and two seeds, and the JSON that the commands printed."""
    out = tmp_path_factory.mktemp("measured")
    documents = []
    for extra in (["--lr", "0.2", "1"], ["--lr", "1", "--seed", "7", "--runs", "3"]):
        output = io.StringIO()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "stdout", output)
            assert main(["measure", *TINY, *extra, "--out", str(out), "--json"]) == 0
        documents.append(output.getvalue())
    return out, documents


# --- measure ----------------------------------------------------------------------------------------------------


def test_json_is_one_object_on_standard_output_and_nothing_else(measured):
    for text in measured[1]:
        assert text.count("\n") == 1
        document = json.loads(text)
        assert set(document) >= KEYS


def test_several_rates_are_listed_and_the_best_is_the_answer(measured):
    document = json.loads(measured[1][0])
    assert [entry["lr"] for entry in document["by_lr"]] == [0.2, 1]
    assert all(set(entry) >= KEYS for entry in document["by_lr"])
    assert len({entry["setup_id"] for entry in document["by_lr"]}) == 2
    assert document["p10"] == min(entry["p10"] or float("inf") for entry in document["by_lr"])
    assert "by_lr" not in json.loads(measured[1][1])


def test_the_module_runs_as_a_program_and_trains_nothing_twice(measured):
    out, documents = measured
    done = run_apart("measure", *TINY, "--lr", "0.2", "1", "--out", str(out), "--json")
    assert (done.returncode, done.stderr) == (0, "")
    first, again = json.loads(documents[0]), json.loads(done.stdout)
    for entry, before in zip(again.pop("by_lr"), first.pop("by_lr"), strict=True):
        assert {**entry, "seconds": 0} == {**before, "seconds": 0}
    assert {**again, "seconds": 0} == {**first, "seconds": 0}
    assert again["seconds"] < 0.5


def test_without_json_the_answer_is_in_words(measured, capsys):
    status, text, errors = run(capsys, "measure", *TINY, "--lr", "0.2", "1", "--out", str(measured[0]))
    assert (status, errors) == (0, "")
    lines = text.splitlines()
    assert lines[0].startswith("(6, 2) parity, 5 runs, engine jax")
    assert lines[1].startswith("lr 0.2: solved")
    assert lines[2].startswith("lr 1: solved")
    assert text.count("<- best 10th percentile") == 1
    assert lines[-1] == f"records: {measured[0] / 'store'}"


def test_a_race_names_the_best_rate_and_what_is_known_of_the_others(capsys, tmp_path):
    arguments = ("measure", *TINY, "--max-steps", "900", "--lr", "1e-4", "1", "--race", "--out", str(tmp_path))
    status, text, errors = run(capsys, *arguments)
    assert (status, errors) == (0, "")
    lines = text.splitlines()
    assert lines[0].startswith("(6, 2) parity, 5 runs, engine jax")
    assert lines[1].startswith("lr 0.0001: 10 % above ")
    assert lines[2].startswith("lr 1: 10 % ")
    assert lines[2].endswith("<- best 10th percentile")
    status, text, _ = run(capsys, *arguments, "--json", "--figure")
    document = json.loads(text)
    assert (status, document["lr"], document["known"]) == (0, 1, True)
    assert document["percentile"] == document["p10"]
    slow, best = document["by_lr"]
    assert (slow["known"], slow["percentile"]) == (False, None)
    assert 0 < slow["low"] <= slow["horizon"] < 900
    assert best == {name: value for name, value in document.items() if name not in ("by_lr", "figures")}
    assert all(Path(path).exists() for path in document["figures"])


def test_a_figure_is_written_under_out_and_named_in_the_json(measured, capsys):
    out = measured[0]
    status, text, _ = run(capsys, "measure", *TINY, "--lr", "0.2", "1", "--out", str(out), "--json", "--figure")
    assert status == 0
    figures = [Path(path) for path in json.loads(text)["figures"]]
    assert figures
    assert all(path.parent == out and path.stat().st_size > 0 for path in figures)


def test_zero_runs_are_answered(capsys, tmp_path):
    status, text, _ = run(capsys, "measure", *TINY, "--runs", "0", "--out", str(tmp_path), "--json")
    assert status == 0
    assert (json.loads(text)["runs"], json.loads(text)["median"]) == (0, None)
    assert files(tmp_path) == []


def test_numbers_may_be_written_as_1e1_or_1_0(capsys, tmp_path, measured):
    status, text, _ = run(capsys, "measure", *TINY, "--runs", "0.5e1", "--eval-size", "6_4", "--lr", "1", "--out",
                          str(measured[0]), "--json")
    assert status == 0
    assert json.loads(text)["setup_id"] == json.loads(measured[1][1])["setup_id"]


@pytest.mark.parametrize(
    ("arguments", "part", "value"),
    [
        (["--network", "polynet", "--k", "3"], "network", {"type": "polynet", "degree": 3}),
        (["--network", "disjoint-polynet"], "network", {"type": "disjoint-polynet", "degree": 2}),
        (["--network", "neuron"], "network", {"type": "neuron", "activation": "sinusoid:2"}),
        (["--network", "transformer"], "network", {"type": "transformer", "d_emb": 1024}),
        (["--width", "3", "4"], "network", {"type": "mlp", "width": [3, 4]}),
        (["--setting", "me2025:powers"], "network", {"type": "mlp", "width": 10, "activation": "power:2"}),
        (["--setting", "me2025:quick"], "optimiser", {"type": "adam", "lr": 0.1}),
        (["--optimiser", "sign-sgd"], "optimiser", {"type": "sign-sgd", "lr": 0.1}),
        (["--schedule", "linear:9"], "optimiser", {"type": "sgd", "schedule": "linear:9"}),
        (["--weight-decay", "0.1", "--decay-form", "plain"], "optimiser", {"weight_decay": 0.1, "decay_form": "plain"}),
        (["--gradient-noise", "2"], "optimiser", {"noise": 2}),
    ],
)
def test_options_make_the_setup_they_say(arguments, part, value, whole_paper):
    from paritylab.cli import build_parser
    from paritylab.cli.measure import make_setup

    options = build_parser().parse_args(["measure", "--n", "6", "--k", "2", *arguments])
    document = json.loads(make_setup(options, options.lr[0]).to_json())
    assert value.items() <= document["learner"][part].items()


def test_the_support_may_be_given_itself():
    from paritylab.cli import build_parser
    from paritylab.cli.measure import make_setup

    options = build_parser().parse_args(["measure", "--n", "9", "--support", "8", "1", "--noise", "0.1"])
    problem = make_setup(options, 0.1).problem
    assert (problem.support, problem.noise) == ((1, 8), 0.1)


# --- curves -----------------------------------------------------------------------------------------------------

SHORT = ["curves", "--n", "6", "--k", "2", "--width", "8", "--lr", "1", "--batch", "8", "--steps", "90",
         "--every", "30", "--eval-size", "64", "--engine", "jax"]
FINITE = ["--runs", "2", "--sample", "40", "--train"]


def test_curves_are_written_with_a_row_for_each_run_and_point(capsys, tmp_path):
    import polars as pl

    status, text, errors = run(capsys, *SHORT, *FINITE, "--weights", "--out", str(tmp_path), "--json")
    assert (status, errors) == (0, "")
    document = json.loads(text)
    assert [row["run"] for row in document["runs"]] == [0, 1]
    written = {Path(name).suffix: name for name in document["files"] if "curves-" in name}
    assert set(written) == {".parquet", ".csv", ".png", ".svg", ".pdf", ".json"}
    frame = pl.read_parquet(written[".parquet"])
    assert frame.columns == ["run", "step", "accuracy", "loss", "train_accuracy", "train_loss", "rho"]
    assert frame["step"].to_list() == [0, 30, 60, 90] * 2
    assert pl.read_csv(written[".csv"]).shape == frame.shape
    for row in document["runs"]:
        solved = frame.filter((pl.col("run") == row["run"]) & (pl.col("train_accuracy") >= 0.9))["step"]
        assert row["train_90"] == (solved[0] if len(solved) else None)
    (weights,) = (pl.read_parquet(name) for name in document["files"] if "weights-" in name)
    assert len(weights) == 2 * 4 * (6 * 8 + 8 + 8 + 1)
    assert weights.filter(pl.col("param") == "[0]['w']")["index"][-1] == "5,7"


def test_first_times_are_a_table_where_one_asks_in_words(capsys, tmp_path):
    status, text, errors = run(capsys, *SHORT, *FINITE, "--lr", "1e-9", "--out", str(tmp_path))
    assert (status, errors) == (0, "")
    lines = text.splitlines()
    assert lines[0] == "(6, 2) parity, 90 steps, engine jax"
    assert [line.split()[0] for line in lines[3:5]] == ["0", "1"]
    assert lines[3].split()[-1] == "never"
    assert all(Path(line).exists() for line in lines[5:])


@pytest.mark.parametrize(
    ("arguments", "says"),
    [("--train", "--train needs a finite sample"), ("--every 0", "--every must be at least 1"),
     ("--steps 0", "--steps must be at least 1"), ("--runs 0", "--runs must be at least 1"), ("--lr 1 2", "unknown"),
     ("--runs 1e15", "too many"), ("--seed -1", "seed"), ("--k 9", "k must be in"), ("--lr nan", "learning rate"),
     ("--steps 1e12 --every 1e9", "max_steps")],
)
def test_curves_with_bad_input_are_one_line_and_nothing_is_written(arguments, says, capsys, tmp_path):
    status, out, errors = run(capsys, *SHORT, "--out", str(tmp_path), *arguments.split())
    assert (status, out) == (2, "")
    assert errors.count("\n") == 1
    assert says in errors
    assert files(tmp_path) == []


# --- results ----------------------------------------------------------------------------------------------------


def results(capsys, measured, *arguments):
    return run(capsys, "results", "--out", str(measured[0]), *arguments)


def test_results_list_every_setup_engine_and_seed(measured, capsys):
    status, text, errors = results(capsys, measured, "--json")
    assert (status, errors) == (0, "")
    rows = json.loads(text)["results"]
    assert sorted((row["lr"], row["seed"], row["runs"]) for row in rows) == [(0.2, 0, 5), (1, 0, 5), (1, 7, 3)]
    document = json.loads(measured[1][1])
    (row,) = (row for row in rows if row["seed"] == 7)
    assert all(row[key] == document[key] for key in KEYS - {"seconds", "model_steps"})
    assert row["setup"]["problem"]["n"] == 6


@pytest.mark.parametrize(
    ("arguments", "count"),
    [([], 3), (["--n", "6"], 3), (["--n", "7"], 0), (["--k", "2"], 3), (["--k", "3"], 0), (["--seed", "7"], 1),
     (["--seed", "8"], 0), (["--setup", "zz"], 0), (["--engine", "jax"], 3), (["--engine", engines.label("jax")], 3),
     (["--engine", "jax_999"], 0), (["--engine", "lanes"], 0), (["--records", "--engine", "jax"], 13),
     (["--records"], 13), (["--records", "--seed", "7"], 3)],
)
def test_results_are_filtered(measured, capsys, arguments, count):
    assert len(json.loads(results(capsys, measured, "--json", *arguments)[1])["results"]) == count


def test_the_beginning_of_an_id_is_enough(measured, capsys):
    setup_id = json.loads(measured[1][1])["setup_id"]
    rows = json.loads(results(capsys, measured, "--json", "--setup", setup_id[:6])[1])["results"]
    assert {row["setup_id"] for row in rows} == {setup_id}
    assert len(rows) == 2


def test_results_as_csv_can_be_read_back(measured, capsys):
    status, text, _ = results(capsys, measured, "--csv")
    rows = list(csv.DictReader(io.StringIO(text)))
    assert status == 0
    assert {(row["network"], row["width"], row["activation"]) for row in rows} == {("mlp", "8", "relu")}
    assert [int(row["runs"]) for row in rows if row["seed"] == "7"] == [3]
    records = list(csv.DictReader(io.StringIO(results(capsys, measured, "--csv", "--records")[1])))
    assert len(records) == 13
    assert {row["status"] for row in records} <= {"solved", "censored", "diverged"}


def test_results_as_a_table_have_one_line_each(measured, capsys):
    status, text, _ = results(capsys, measured)
    lines = text.splitlines()
    assert status == 0
    assert len(lines) == 4
    assert lines[0].split()[:4] == ["setup_id", "n", "k", "network"]
    assert len(results(capsys, measured, "--records")[1].splitlines()) == 14
    assert results(capsys, measured, "--n", "99")[1] == "nothing matches\n"


def test_nothing_found_is_still_csv_and_json(measured, capsys):
    assert results(capsys, measured, "--n", "99", "--csv")[1].startswith("setup_id,n,k")
    assert json.loads(results(capsys, measured, "--n", "99", "--json")[1])["results"] == []


def test_a_closed_pipe_is_not_an_error(measured):
    command = f"{sys.executable} -m paritylab results --records --out {measured[0]} | head -n 0"
    done = subprocess.run(["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
