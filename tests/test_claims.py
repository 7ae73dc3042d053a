"""Evidence of claims, and the commands that show and try them."""

import json

import pytest

from paritylab.claims import Lab, evidence, reproduce
from paritylab.claims.registry import registry
from paritylab.cli import main
from paritylab.engines import label
from paritylab.storage.kept import KeptWarning

FAST = "me2025.width"


# --- evidence and commands ----------------------------------------------------------------------------------


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A place for shipped evidence that is not the package's own."""
    monkeypatch.setattr(evidence, "shipped_directory", lambda claim: tmp_path / "shipped")
    return tmp_path


def test_a_trial_leaves_figure_data_result_and_if_asked_evidence(package):
    result = reproduce(registry()[FAST], Lab("quick", package / "out"), record=True)
    names = {path.name for path in result.files}
    files = {"figure.png", "figure.svg", "figure.pdf", "data.parquet", "data.csv", "records.csv.gz"}
    assert names == files | {f"{FAST}.json"}
    assert all(path.stat().st_size > 0 for path in result.files)
    recorded = evidence.shipped(FAST)["quick"]
    assert recorded["results"] == result.outcome.results
    assert recorded["engines"] == [label("lanes")]
    assert recorded["seed"] == 0
    assert {"jax", "numpy", "paritylab", "python"} <= set(recorded["versions"])
    assert (package / "shipped" / f"{FAST}.svg").read_bytes().startswith(b"<?xml")
    assert evidence.strongest(package / "out", FAST)["source"] == "local"
    assert evidence.strongest(package / "elsewhere", FAST)["source"] == "shipped"


def test_a_damaged_file_of_a_trial_of_ones_own_is_noted_and_not_shown(package):
    reproduce(registry()[FAST], Lab("quick", package / "out"))
    found = evidence.strongest(package / "out", FAST)
    directory = evidence.local_directory(package / "out", FAST, "quick")
    csv, parquet = evidence.data_of(package / "out", FAST, found)
    assert evidence.figure_of(package / "out", FAST, found) == directory / "figure.svg"
    for path in (directory / "figure.svg", csv, parquet, directory / "result.json"):
        data = path.read_bytes()
        path.write_bytes(data[:50] + bytes([data[50] ^ 1]) + data[51:])
    with pytest.warns(KeptWarning, match="figure.svg is damaged"):
        assert evidence.figure_of(package / "out", FAST, found) is None
    with pytest.warns(KeptWarning, match="data.(csv|parquet) is damaged"):
        assert evidence.data_of(package / "out", FAST, found) == []
    with pytest.warns(KeptWarning, match="result.json is damaged"):
        assert evidence.local(package / "out", FAST) == {}


def test_a_damaged_evidence_file_is_reported_and_not_used(package):
    (package / "shipped").mkdir()
    (package / "shipped" / f"{FAST}.json").write_text("{")
    with pytest.warns(evidence.EvidenceWarning, match="cannot be read"):
        assert evidence.shipped(FAST) == {}


def test_claims_are_listed_as_json(package, capsys):
    assert main(["claims", "--json", "--paper", "me2025", "--out", str(package)]) == 0
    document = json.loads(capsys.readouterr().out)
    assert len(document["claims"]) == 2
    assert document["claims"][0]["result"] == "open"
    assert {"id", "paper", "kind", "result", "results", "evidence"} <= set(document["claims"][0])


def test_reproduce_and_show_one_claim(package, capsys):
    out = ["--out", str(package)]
    assert main(["reproduce", "me2025.w*", "--quick", "--json", *out]) == 0
    (result,) = json.loads(capsys.readouterr().out)["claims"]
    assert (result["claim"], result["size"], result["seed"]) == (FAST, "quick", 0)
    assert main(["claims", "show", FAST, *out]) == 0
    page = capsys.readouterr().out
    assert "pass rule:" in page
    assert "me2025/width.py:" in page
    assert f"{result['results']['']}, " in page
    assert "quick, local (" in page


def test_all_claims_are_listed_on_one_page(capsys):
    assert main(["claims", "--markdown"]) == 0
    page = capsys.readouterr().out
    assert all(name in page for name in registry())


@pytest.mark.parametrize("arguments", [
    ["claims", "--first"], ["claims", "show"], ["claims", "tell", "x"],
    ["claims", "--paper", "smith1999"], ["claims", "show", "nothing"],
    ["reproduce"], ["reproduce", "nothing"], ["reproduce", FAST, "--quick", "--full"],
    ["reproduce", FAST, "--engine", "abacus"],
    ["reproduce", FAST, "--seed", "-1"], ["reproduce", FAST, "--threads", "0"], ["store", "merge", "nowhere"],
])
def test_mistakes_are_one_line_and_exit_2(arguments, tmp_path, capsys):
    assert main([*arguments, "--out", str(tmp_path)]) == 2
    error = capsys.readouterr().err.strip().splitlines()[-1]
    assert error.startswith("paritylab: error: ")
