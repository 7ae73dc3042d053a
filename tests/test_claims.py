"""Claims: the registry, verdicts, the Lab, evidence, and the commands that show and try them."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

import paritylab as pl
from paritylab import papers
from paritylab.claims import evidence, find, reproduce
from paritylab.claims.lab import Lab, Planned
from paritylab.claims.registry import EXECUTABLE, PAPERS, method, registry, remarks
from paritylab.claims.verdicts import Check, at_least, at_most, between, finite, holds, verdict
from paritylab.cli import main
from paritylab.errors import InvalidInput
from paritylab.running import offload
from paritylab.running.tasks import Task, from_text, to_text
from paritylab.storage.kept import KeptWarning

FAST = "barak2022.fig2-left"


def setup(n=8, k=2, **protocol):
    learner = pl.Learner(pl.MLP(10), optimiser=pl.SGD(1.0))
    return pl.Setup(pl.Parity(n, k), learner, pl.Protocol(eval_size=128, **protocol))


# --- the registry -------------------------------------------------------------------------------------------


def test_the_registry_holds_every_claim_of_the_four_papers():
    counts = {paper: sum(claim.paper == paper for claim in registry().values()) for paper in PAPERS}
    assert counts == {"barak2022": 51, "abbe2024": 40, "glasgow2023": 16, "daniely2020": 16}
    for claim in registry().values():
        assert claim.id.startswith(claim.paper + ".")
        assert claim.kind in ("empirical", "theory", "exact")
        assert claim.tier in ("minutes", "hours", "gpu")
        assert claim.cost > 0


def test_every_claim_of_an_executable_paper_has_a_method():
    assert [claim.id for claim in registry().values() if claim.paper in EXECUTABLE and method(claim) is None] == []


def test_remarks_are_about_known_claims():
    assert set(remarks()) <= set(registry())


def test_claims_are_found_by_id_and_glob_and_mistakes_are_named():
    assert [claim.id for claim in find(["barak2022.fig3", "barak2022.fig[38]"])] == ["barak2022.fig3", "barak2022.fig8"]
    with pytest.raises(InvalidInput, match=r"did you mean 'barak2022\.fig7'"):
        find(["barak2022.figg7"])
    with pytest.raises(InvalidInput, match="no claim matches"):
        find(["nothing.*"])


# --- verdicts -----------------------------------------------------------------------------------------------


def test_a_verdict_is_reproduced_only_if_every_check_passes_as_stated():
    passes = at_least("a", 2.0, 1.0)
    assert verdict([passes]) == "reproduced"
    assert verdict([passes, at_most("b", 2.0, 1.0)]) == "not reproduced"
    assert verdict([]) == "inconclusive"


def test_what_cannot_be_decided_is_inconclusive():
    assert verdict([at_least("a", math.nan, 1.0)]) == "inconclusive"
    assert verdict([holds("a", None)]) == "inconclusive"
    doubtful = between("a", 0.9, 1.0, 2.0, (0.5, 1.5))
    assert doubtful.passed is False
    assert not doubtful.certain
    assert verdict([doubtful]) == "inconclusive"
    assert verdict([between("a", 0.5, 1.0, 2.0, (0.4, 0.6))]) == "not reproduced"
    assert verdict([doubtful, at_least("b", 0.0, 1.0)]) == "not reproduced"


def test_an_interval_that_reaches_the_bound_never_helps_a_check_to_pass():
    assert at_least("a", 1.2, 1.0, (0.8, 1.6)).passed is True
    assert at_least("a", 0.999, 1.0, (0.8, 1.6)).passed is False


def test_numbers_survive_json():
    assert json.loads(json.dumps([finite(x) for x in (1.5, math.inf, math.nan, None)])) == [1.5, "inf", None, None]
    assert Check("a", math.inf, "", True, (0.0, math.inf)).to_dict()["interval"] == [0.0, "inf"]


# --- the Lab ------------------------------------------------------------------------------------------------


def test_a_trial_is_full_only_if_nothing_was_smaller(tmp_path):
    lab = Lab("standard", tmp_path)
    assert (lab.pick("n", quick=1, full=3), lab.size_reached) == (3, "full")
    assert (lab.pick("runs", quick=1, standard=2, full=3), lab.size_reached) == (2, "standard")
    lab = Lab("standard", tmp_path)
    lab.leave_out("the Transformer")
    assert lab.size_reached == "standard"
    assert lab.parameters == {"left out": ["the Transformer"]}
    with pytest.raises(InvalidInput, match="unknown size"):
        Lab("huge", tmp_path)


def test_what_was_trained_is_not_trained_again(tmp_path):
    first, second = Lab("quick", tmp_path), Lab("quick", tmp_path)
    a, b = (lab.measure(setup(), 20) for lab in (first, second))
    assert np.array_equal(a.records.t_c, b.records.t_c)
    assert (first.reused, second.reused) == (0, 20)
    assert first.flops == second.flops == a.model_steps * 32 * (4 * 8 * 10 + 6 * 10)


def test_kept_arrays_come_back_and_a_damaged_file_is_made_anew(tmp_path):
    lab, made = Lab("quick", tmp_path), []

    def make():
        made.append(1)
        return {"x": np.arange(3)}

    for _ in range(2):
        assert lab.kept("thing", {"n": 1}, make)["x"].tolist() == [0, 1, 2]
    assert len(made) == 1
    (path,) = (tmp_path / "kept").glob("*.npz")
    path.write_bytes(path.read_bytes()[:40])
    with pytest.warns(KeptWarning, match="is damaged"):
        assert lab.kept("thing", {"n": 1}, make)["x"].tolist() == [0, 1, 2]
    assert lab.kept("thing", {"n": 1}, make)["x"].tolist() == [0, 1, 2]
    assert len(made) == 2


@pytest.mark.parametrize("engine", ["jax", "lanes"])
def test_curves_come_back_from_disk_as_they_were(tmp_path, engine):
    made = [Lab("quick", tmp_path, engine=engine).curves(setup(), 20, 10, runs=2, weights=True) for _ in range(2)]
    assert np.array_equal(made[0].accuracy, made[1].accuracy)
    assert np.array_equal(made[0].weights[0]["w"], made[1].weights[0]["w"])
    assert made[1].train_accuracy is None


def test_a_chain_ends_with_its_first_unsolved_median(tmp_path):
    hard, easy = setup(20, 5, max_steps=20), setup()
    results = Lab("quick", tmp_path).chains({"a": [easy, hard, easy], "b": [easy, easy]}, 10)
    assert {name: len(found) for name, found in results.items()} == {"a": 2, "b": 2}


def test_a_chain_with_a_goal_ends_where_it_is_reached(tmp_path):
    hard, easy = setup(20, 5, max_steps=20), setup()
    lab = Lab("quick", tmp_path)
    results = lab.chains({"a": [hard, easy, easy], "b": [hard, hard]}, 10, until=0.2)
    assert {name: len(found) for name, found in results.items()} == {"a": 2, "b": 2}
    plan: list[Task] = []
    more = {"a": [hard, easy, setup(9)], "b": [hard, setup(9)]}
    with pytest.raises(Planned):
        Lab("quick", tmp_path, plan=plan).chains(more, 10, until=0.2)
    assert [(task.chain, task.until) for task in plan] == [("b", 0.2)]  # the other is known to end before
    assert from_text(to_text(plan)) == plan


def test_a_dear_chain_reaches_as_far_as_its_records_or_its_end(tmp_path):
    hard, easy = setup(20, 5, max_steps=20), setup()
    lab = Lab("standard", tmp_path)
    assert lab.reach([easy, hard, setup(9)], 10) == 0
    lab.measure(easy, 10)
    assert lab.reach([easy, hard, setup(9)], 10) == 1
    lab.measure(hard, 10)
    assert lab.reach([easy, hard, setup(9)], 10) == 3  # nothing is asked for beyond the second
    assert Lab("full", tmp_path / "empty").reach([easy, hard], 10) == 2


# --- work for other machines --------------------------------------------------------------------------------


def test_planned_work_done_elsewhere_completes_the_trial(tmp_path, capsys):
    plan: list[Task] = []
    curves = {"a": [setup(), setup(20, 5, max_steps=20), setup(9)]}
    with pytest.raises(Planned):
        Lab("quick", tmp_path, plan=plan).chains(curves, 10)
    assert [task.chain for task in plan] == ["a"] * 3
    there = tmp_path / "there"
    there.mkdir()
    assert offload.work(from_text(to_text(plan)), there) == 0
    assert len(list(there.glob("*.npz"))) == 2  # the chain ended with the second
    assert main(["merge", str(there), "--out", str(tmp_path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["added"] == 20
    lab = Lab("quick", tmp_path)
    assert len(lab.chains(curves, 10)["a"]) == 2
    assert lab.reused == lab.runs == 20


def test_tasks_that_share_programs_or_chains_go_to_one_process():
    tasks = [Task(setup(n, k), 0, 5, f"k={k}") for n in (8, 9) for k in (2, 3)]
    tasks.append(Task(setup(10, 2), 0, 5))
    batches = offload.batches_of(tasks)
    assert [len(batch) for batch in batches] == [4, 1]
    assert [task.setup.problem.n for task in batches[0]] == [8, 8, 9, 9]


def test_a_file_that_holds_no_tasks_is_refused():
    with pytest.raises(InvalidInput, match="not a file of tasks"):
        from_text("[]")


# --- evidence and commands ----------------------------------------------------------------------------------


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A place for shipped evidence that is not the package's own."""
    monkeypatch.setattr(evidence, "shipped_directory", lambda claim: tmp_path / "shipped")
    return tmp_path


def test_a_trial_leaves_figure_data_result_and_if_asked_evidence(package):
    result = reproduce(FAST, Lab("quick", package / "out"), record=True)
    names = {path.name for path in result.files}
    assert names == {"figure.png", "figure.svg", "figure.pdf", "data.parquet", "data.csv", f"{FAST}.json"}
    assert all(path.stat().st_size > 0 for path in result.files)
    recorded = evidence.shipped(FAST)["quick"]
    assert recorded["verdict"] == result.verdict
    assert recorded["engines"] == ["lanes"]
    assert recorded["seed"] == 0
    assert {"jax", "numpy", "paritylab", "python"} <= set(recorded["versions"])
    assert (package / "shipped" / f"{FAST}.svg").read_bytes().startswith(b"<?xml")
    assert evidence.strongest(package / "out", FAST)["source"] == "local"
    assert evidence.strongest(package / "elsewhere", FAST)["source"] == "shipped"


def test_a_damaged_file_of_a_trial_of_ones_own_is_noted_and_not_shown(package):
    reproduce(FAST, Lab("quick", package / "out"))
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
    assert main(["claims", "--json", "--paper", "barak2022", "--out", str(package)]) == 0
    document = json.loads(capsys.readouterr().out)
    assert len(document["claims"]) == 51
    assert document["claims"][0]["verdict"] is None
    assert {"id", "paper", "kind", "tier", "verdict", "evidence"} <= set(document["claims"][0])


def test_reproduce_and_show_one_claim(package, capsys):
    out = ["--out", str(package)]
    assert main(["reproduce", "barak2022.fig2-l*", "--quick", "--json", *out]) == 0
    (result,) = json.loads(capsys.readouterr().out)["claims"]
    assert (result["claim"], result["size"], result["seed"]) == (FAST, "quick", 0)
    assert main(["claims", "show", FAST, *out]) == 0
    page = capsys.readouterr().out
    assert "pass rule:" in page
    assert f"{result['verdict']} (quick, local" in page


@pytest.mark.parametrize("arguments", [
    ["claims", "show"], ["claims", "tell", "x"], ["claims", "--paper", "smith1999"], ["claims", "show", "nothing"],
    ["reproduce"], ["reproduce", "nothing"], ["reproduce", FAST, "--quick", "--full"],
    ["reproduce", FAST, "--engine", "abacus"],
    ["reproduce", FAST, "--seed", "-1"], ["reproduce", FAST, "--threads", "0"], ["merge", "nowhere"],
])
def test_mistakes_are_one_line_and_exit_2(arguments, tmp_path, capsys):
    assert main([*arguments, "--out", str(tmp_path)]) == 2
    error = capsys.readouterr().err.strip().splitlines()[-1]
    assert error.startswith("paritylab: error: ")


def test_shipped_evidence_is_of_known_claims_and_was_written_by_the_program():
    for path in Path(papers.__file__).parent.glob("*/evidence/*.json"):
        document = json.loads(path.read_text())
        assert document["claim"] in registry()
        for size, entry in document["sizes"].items():
            assert entry["size"] == size
            assert entry["verdict"] in ("reproduced", "not reproduced", "inconclusive")
            assert entry["checks"]


def test_the_page_of_verdicts_is_current(capsys: pytest.CaptureFixture[str]) -> None:
    """After recording evidence: paritylab claims --markdown > docs/reproduction.md"""
    assert main(["claims", "--markdown"]) == 0
    page = Path(__file__).parents[1] / "docs" / "reproduction.md"
    assert capsys.readouterr().out == page.read_text(encoding="utf-8")
