"""``paritylab networks`` and ``paritylab zoo``: the networks themselves, from a shell."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import polars
import pytest

import paritylab as pl
from paritylab.cli import main
from paritylab.running import zoo
from paritylab.storage.kept import digest_of, load_document

COMMON = ["--n", "8", "--k", "2", "--runs", "6", "--batch", "8", "--eval-size", "200"]


def run(capsys, *words: str) -> dict:
    assert main([*words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_networks_are_written_and_not_made_again(tmp_path, capsys, monkeypatch):
    words = ["networks", *COMMON, "--at", "before", "solved", "30", "--out", str(tmp_path)]
    told = run(capsys, *words)
    assert [file["at"] for file in told["files"]] == ["before", "solved", 30]
    assert all(file["networks"] == 6 and file["exact"] for file in told["files"])
    result = pl.measure(pl.Parity(8, 2), pl.Learner(batch=8), pl.Protocol(eval_size=200), runs=6)
    for file in told["files"]:
        found = pl.TrainedNetworks.load(file["path"])
        want = result.networks(at=file["at"])
        assert np.array_equal(found.steps, want.steps)
        assert np.array_equal(found.params["0.w"], want.params["0.w"])
    monkeypatch.setattr(pl.Result, "networks", None)  # whoever trains again fails
    assert run(capsys, *words)["files"] == told["files"]
    assert main(words) == 0
    assert "6 networks of 101 params at 30" in capsys.readouterr().out


@pytest.mark.filterwarnings("default::paritylab.storage.kept.KeptWarning")
def test_a_damaged_file_is_made_again(tmp_path, capsys):
    words = ["networks", *COMMON, "--out", str(tmp_path)]
    (file,) = run(capsys, *words)["files"]
    with open(file["path"], "r+b") as stream:
        whole = stream.read()
        stream.truncate(len(whole) - 5)
    assert main(words) == 0
    assert "note: not used" in capsys.readouterr().err
    with open(file["path"], "rb") as stream:
        assert stream.read()[-100:] == whole[-100:]


@pytest.mark.parametrize(("kind", "suffix"), [("torch", "pt"), ("onnx", "onnx")])
def test_other_formats_are_a_file_for_each_run(tmp_path, capsys, kind, suffix):
    library = pytest.importorskip(kind)
    (file,) = run(capsys, "networks", *COMMON, "--format", kind, "--out", str(tmp_path))["files"]
    result = pl.measure(pl.Parity(8, 2), pl.Learner(batch=8), pl.Protocol(eval_size=200), runs=6)
    path = f"{file['path']}/run-3.{suffix}"
    x = np.ones((2, 8), np.float32)
    if kind == "torch":
        module = result.network(3).to_torch()
        module.load_state_dict(library.load(path, weights_only=True))
        got = module(library.from_numpy(x)).detach().numpy()
    else:
        reference = pytest.importorskip("onnx.reference")
        (got,) = reference.ReferenceEvaluator(library.load(path)).run(None, {"x": x})
    np.testing.assert_allclose(got, result.network(3).apply(x), rtol=1e-5)


@pytest.mark.parametrize(("words", "said"), [
    (["--at", "sovled"], "unknown moment 'sovled' (did you mean 'solved'?); allowed: start, before, solved, after"),
    (["--format", "pickle"], "unknown format 'pickle'"),
    (["--runs", "0"], "--runs must be at least 1, not 0"),
    (["--threads", "0"], "--threads must be at least 1, not 0"),
    (["--max-steps", "10"], "was censored at step 10, so it has no network at='solved'; omit_missing leaves"),
])
def test_what_cannot_be_had_is_one_line(tmp_path, capsys, words, said):
    assert main(["networks", *COMMON, *words, "--out", str(tmp_path)]) == 2
    err = capsys.readouterr().err
    assert err.startswith("paritylab: error: ")
    assert said in err
    assert err.count("\n") == 1


def test_unsolved_runs_are_left_out_on_request(tmp_path, capsys):
    words = ["networks", *COMMON, "--max-steps", "10", "--omit-missing", "--out", str(tmp_path)]
    (file,) = run(capsys, *words)["files"]
    assert file["networks"] == 0


# --- the zoo ----------------------------------------------------------------------------------------------------------


def test_the_zoo_has_twelve_different_settings_and_ten_thousand_runs():
    assert len(zoo.SETTINGS) == 12
    assert len({setting.setup.id for setting in zoo.SETTINGS}) == 12
    assert 12 * zoo.RUNS >= 10_000
    assert len({setting.name for setting in zoo.chosen(None)}) == 12


def test_a_zoo_is_built_once_and_its_index_is_right(tmp_path, capsys, monkeypatch):
    words = ["zoo", "pair", "polynet", "--runs", "5", "--out", str(tmp_path)]
    told = run(capsys, *words)
    folder = tmp_path / "zoo"
    index = load_document(folder / "zoo.json")
    assert index == {name: told[name] for name in index}
    assert told["networks"] == 30
    table = polars.read_csv(folder / "zoo.csv")
    assert table.height == 30
    for entry in index["settings"]:
        data = (folder / entry["file"]).read_bytes()
        assert (len(data), digest_of(data)) == (entry["bytes"], entry["digest"])
        networks = pl.TrainedNetworks.load(folder / entry["file"])
        rows = table.filter(polars.col("setting") == entry["name"])
        assert rows["run"].to_list() == networks.runs.tolist() == 3 * list(range(5))
        assert rows["step"].to_list() == networks.steps.tolist()
        assert rows["moment"].to_list() == [moment for moment in zoo.MOMENTS for _ in range(5)]
        assert entry["accuracy"]["before"] < 0.9 < 0.99 < entry["accuracy"]["solved"]
    monkeypatch.setattr(pl.Result, "networks", None)
    again = run(capsys, *words)
    assert {name: again[name] for name in index} == index
    assert main(words) == 0
    assert "30 networks" in capsys.readouterr().out


def test_an_unknown_setting_is_one_line(tmp_path, capsys):
    assert main(["zoo", "pairs", "--out", str(tmp_path)]) == 2
    assert "unknown setting 'pairs' (did you mean 'pair'?)" in capsys.readouterr().err
    assert main(["zoo", "pair", "--runs", "0", "--out", str(tmp_path)]) == 2


def test_unsolved_runs_are_not_in_the_zoo(tmp_path):
    setting = zoo.chosen(["pair"])[0]
    protocol = replace(setting.setup.protocol, max_steps=150)
    short = replace(setting, setup=replace(setting.setup, protocol=protocol))
    index = zoo.build(tmp_path, 12, [short])
    (entry,) = index["settings"]
    assert 0 < entry["solved"] < 12
    assert entry["networks"] == 3 * entry["solved"]
