"""The command line: one clear line for everything that is wrong."""

from __future__ import annotations

import json
import os
import warnings

import pytest
from commands import TINY, files, run, run_apart
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from paritylab.cli import main

BAD = [
    ("--k 7 --n 6", "k must be in 0..n=6, not 7"),
    ("--n x", "--n: not a whole number: 'x'"),
    ("--n 2.5", "not a whole number"),
    ("--n nan", "not a whole number"),
    ("--n 1e400", "not a whole number"),
    ("--n 0", "n must be in"),
    ("--n", "expected one argument"),
    ("--lr -1", "learning rate must be at least 0, not -1"),
    ("--lr nan", "learning rate"),
    ("--lr inf", "learning rate"),
    ("--lr fast", "--lr"),
    ("--lr 1 1.0", "--lr values must differ"),
    ("--activation rellu", "did you mean 'relu'"),
    ("--activation zigzag", "takes 1 number"),
    ("--activation oscillating:1e6", "oscillating"),
    ("--init tourch", "did you mean 'torch'"),
    ("--init perturbed-rademacher:1e300", "perturb"),
    ("--loss hing", "did you mean 'hinge'"),
    ("--schedule cosin:9", "did you mean 'cosine'"),
    ("--network mpl", "did you mean 'mlp'"),
    ("--network neuron --width 9", "a neuron has no --width"),
    ("--network polynet --activation relu", "a polynet has no --activation"),
    ("--network polynet --degree 0", "degree"),
    ("--network polynet --k 0", "degree of a PolyNet must be at least 1"),
    ("--network disjoint-polynet --k 4 --n 6", "cannot split n=6"),
    ("--degree 3", "a mlp has no --degree"),
    ("--optimiser sdg", "did you mean 'sgd'"),
    ("--optimiser adam --momentum 0.5", "--momentum belongs to sgd"),
    ("--optimiser lion --decay-form plain", "decay"),
    ("--weight-decay -1", "weight decay"),
    ("--weight-decay inf", "weight decay"),
    ("--decay-form torch", "decay_form"),
    ("--gradient-noise -1", "gradient noise"),
    ("--gradient-noise inf", "gradient noise"),
    ("--engine lane", "did you mean 'lanes'"),
    ("--engine lanes --network transformer", "lanes"),
    ("--threads 0", "--threads must be at least 1"),
    ("--setting me2025:pwers", "did you mean"),
    ("--setting me2026:powers", "--setting must be me2025:NAME with NAME in powers, quick"),
    ("--setting powers", "--setting must be me2025:NAME"),
    ("--setting me2025:powers --network mlp", "leave out --network"),
    ("--widht 3", "unknown option --widht (did you mean --width?)"),
    ("--lrs=3", "unknown option --lrs=3 (did you mean --lr?)"),
    ("extra", "extra"),
    ("--width 0", "width must be"),
    ("--width -3", "width must be"),
    ("--width", "expected at least one argument"),
    ("--batch 0", "batch must be"),
    ("--runs -1", "runs must be at least 0"),
    ("--runs 1e15", "runs"),
    ("--seed -1", "seed must be in"),
    ("--seed 4294967296", "seed must be in"),
    ("--max-steps 0", "max_steps"),
    ("--max-steps 3e9", "max_steps"),
    ("--eval-every 0", "eval_every"),
    ("--eval-every 1e12", "eval_every"),
    ("--eval-size 0", "eval_size"),
    ("--eval-size 1e12", "eval_size"),
    ("--consecutive 0", "consecutive"),
    ("--consecutive 1e12", "consecutive"),
    ("--threshold 0", "threshold"),
    ("--threshold 2", "threshold"),
    ("--noise 2", "noise must be a probability"),
    ("--sample 0", "at least 1 example"),
    ("--replacement", "needs a finite sample"),
    ("--support 0 0", "distinct"),
    ("--support 0 99", "distinct"),
    ("--k 3 --support 0 1", "contradicts"),
    ("--batch 1e5 --max-steps 1e5 --sample 9", "finite sample"),
]


@pytest.mark.parametrize(("arguments", "says"), BAD, ids=[arguments for arguments, _ in BAD])
def test_bad_input_is_one_line_with_status_2_and_nothing_is_written(
    arguments, says, whole_paper, capsys, tmp_path, monkeypatch
):
    monkeypatch.setattr("paritylab.engines.train", lambda *_, **__: iter(()))  # it should not come to that
    base = ["measure", "--runs", "2", "--max-steps", "20", "--eval-size", "32", "--engine", "jax"]
    status, out, errors = run(capsys, *base, "--out", str(tmp_path), *arguments.split())
    assert (status, out) == (2, "")
    assert errors.startswith("paritylab: error: ")
    assert errors.count("\n") == 1
    assert says in errors
    assert files(tmp_path) == []


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("", "which command?"),
        ("measrue", "measure"),
        ("results --out nowhere", "there is no store at nowhere/store"),
        ("results --json --csv --out .", "exclude each other"),
        ("results --seeds 3", "did you mean --seed?"),
        ("results --n x", "not a whole number"),
    ],
)
def test_a_bad_command_is_one_line_with_status_2(arguments, says, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    status, out, errors = run(capsys, *arguments.split())
    assert (status, out) == (2, "")
    assert errors.startswith("paritylab: error: ")
    assert errors.count("\n") == 1
    assert says in errors
    assert files(tmp_path) == []


def test_bad_input_to_the_program_leaves_no_traceback(tmp_path):
    done = run_apart("measure", "--n", "30", "--k", "31", "--out", str(tmp_path / "out"))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "paritylab: error: k must be in 0..n=30, not 31\n"
    assert files(tmp_path) == []


@pytest.mark.parametrize("command", ["measure", "results"])
def test_out_in_place_of_a_file_is_one_line(command, capsys, tmp_path):
    (tmp_path / "file").write_text("mine")
    for out in (tmp_path / "file", tmp_path / "file" / "below"):
        status, text, errors = run(capsys, command, *(TINY if command == "measure" else []), "--out", str(out))
        assert (status, text) == (2, "")
        assert errors.startswith("paritylab: error: ")
        assert errors.count("\n") == 1
    assert (tmp_path / "file").read_text() == "mine"
    assert files(tmp_path) == ["file"]


@pytest.mark.parametrize("command", ["measure", "results"])
def test_a_store_that_is_a_file_is_one_line(command, capsys, tmp_path):
    (tmp_path / "store").write_text("mine")
    status, text, errors = run(capsys, command, *(TINY if command == "measure" else []), "--out", str(tmp_path))
    assert (status, text) == (2, "")
    assert "is not a directory" in errors
    assert errors.count("\n") == 1


@pytest.mark.skipif(os.geteuid() == 0, reason="root can read everything")
@pytest.mark.parametrize("command", ["measure", "results"])
def test_a_store_that_cannot_be_read_is_one_line(command, capsys, tmp_path):
    (tmp_path / "store").mkdir(mode=0)
    try:
        status, text, errors = run(capsys, command, *(TINY if command == "measure" else []), "--out", str(tmp_path))
    finally:
        (tmp_path / "store").chmod(0o700)
    assert (status, text) == (2, "")
    assert errors.count("\n") == 1


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["measure", "--help"], ["results", "--help"]])
def test_help_and_version_are_on_standard_output(arguments, capsys):
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 0
    assert "paritylab" in capsys.readouterr().out


# --- anything ---------------------------------------------------------------------------------------------------

number = st.sampled_from(["0", "1", "2", "3", "-1", "0.5", "1e1", "nan", "inf", "x", "", "1e9", "7"])
word = st.sampled_from(["relu", "zigzag:2", "power", "torch", "sphere:2", "hinge", "l1", "adam", "sgd", "mlp", "neuron",
                        "polynet", "constant", "cosine:5", "plain", "jax", "lanes", "me2025:powers", "-", "é", "a b"])
counts = st.sampled_from(["--n", "--k", "--noise", "--sample", "--degree", "--lr", "--weight-decay", "--threshold",
                          "--gradient-noise", "--consecutive", "--seed", "--threads", "--support", "--eval-every"])
names = st.sampled_from(["--activation", "--init", "--loss", "--optimiser", "--network", "--schedule", "--setting",
                         "--decay-form", "--engine"])
flags = st.sampled_from(["--replacement", "--fresh", "--json", "--figures", "--", "stray", "--n=4", "--json=1"])
option = st.one_of(st.tuples(counts, number), st.tuples(counts, word), st.tuples(names, word),
                   st.tuples(names, number), st.tuples(flags), st.tuples(counts))


@settings(max_examples=100, deadline=None, derandomize=True,
          suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(command=st.sampled_from(["measure", "measure", "measure", "results", ""]), options=st.lists(option, max_size=4))
def test_any_arguments_are_answered_with_status_0_or_2(command, options, whole_paper, capsys, monkeypatch, tmp_path):
    """No training: what is left to go wrong is everything before it and after it."""
    monkeypatch.setattr("paritylab.engines.train", lambda *_, **__: iter(()))
    monkeypatch.chdir(tmp_path)
    arguments = [part for option in options for part in option]
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        status, out, errors = run(capsys, *([command] if command else []), *arguments)
    assert status in (0, 2)
    if status == 2:
        assert out == ""
        assert errors.startswith("paritylab: error: ")
    assert "Traceback" not in errors
    if status == 0 and "--json" in arguments:
        json.loads(out)
    assert files(tmp_path) == []


@pytest.mark.parametrize(("text", "words"), [
    ("stage = 3", "there is no table [[stage]]"),
    ("", "there is no table [[stage]]"),
    ("[[stage]]\nlr = 2", "a stage says until which step"),
    ("[[stage]]\nuntil = 9\nwhat = 1", "unknown value of a stage 'what'; allowed: until, inputs, slide, lr, batch"),
    ("[[stage]]\nuntil = 9\ninputs = 'foo'", "unknown law of inputs 'foo'"),
    ("[[stage]", "Expected"),
    (None, "No such file"),
])
def test_a_file_of_stages_that_is_none_is_one_line(text, words, capsys, tmp_path):
    path = tmp_path / "stages.toml"
    if text is not None:
        path.write_text(text)
    status, out, error = run(capsys, "measure", "--stages", str(path), "--out", str(tmp_path / "out"))
    assert (status, out, error.count("\n")) == (2, "", 1)
    assert error.startswith(f"paritylab: error: --stages {path}: ")
    assert words in error
    assert "__init__" not in error


def test_the_spectrum_of_a_table_in_a_file(capsys, tmp_path):
    path = tmp_path / "table.txt"
    path.write_text("1 -1 -1 1\n")
    status, out, _ = run(capsys, "theory", "fourier", "--target", f"table:{path}", "--json")
    assert status == 0
    assert json.loads(out)["terms"] == [{"support": [0, 1], "coefficient": 1.0}]
    status, out, error = run(capsys, "theory", "fourier", "--target", f"table:{tmp_path / 'nothing'}")
    assert (status, out, error.count("\n")) == (2, "", 1)
