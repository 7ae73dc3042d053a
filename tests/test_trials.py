"""Trials: declared sizes and rules, the Lab as the only door, requests that are planned, exported and answered."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from glasgow2023.samples import kernel_samples
from lengths import long_but

import paritylab as pl
from paritylab import engines
from paritylab.claims import Findings, Lab, Rule, Trial, at_least, at_most, between, claim, evidence, find, holds, size
from paritylab.claims.registry import registry
from paritylab.claims.reproduction import plan, tried
from paritylab.claims.requests import Planned
from paritylab.claims.texts import request_lines, rule_lines, size_lines
from paritylab.claims.verdicts import Check, finite, verdict
from paritylab.cli import main
from paritylab.errors import InvalidInput
from paritylab.running import keeping, offload
from paritylab.running.tasks import AnyTask, ComputeTask, CurveTask, ParamsTask, Task, from_text, to_text
from paritylab.storage.kept import KeptWarning

CLAIMS = list(registry().values())
SLOW_TO_PLAN = ("barak2022.robust-space",)
"""160,380 Setups in full: a quarter of a minute."""


def setup(n=8, k=2, lr=1.0, **protocol):
    learner = pl.Learner(pl.MLP(10), optimiser=pl.SGD(lr))
    return pl.Setup(pl.Parity(n, k), learner, pl.Protocol(eval_size=128, **protocol))


# --- every claim ------------------------------------------------------------------------------------------------------


def test_every_claim_of_the_four_papers_is_there():
    counts: dict[str, int] = {}
    for each in CLAIMS:
        counts[each.paper.id] = counts.get(each.paper.id, 0) + 1
    published = {"barak2022": 51, "abbe2024": 40, "glasgow2023": 16, "daniely2020": 16}
    assert {name: counts[name] for name in published} == published
    assert {each.id for each in CLAIMS if not each.paper.own} == {
        name for paper in {each.paper for each in CLAIMS} for name in paper.first}


def test_remarks_and_headlines_are_about_known_claims():
    for paper in {each.paper for each in CLAIMS}:
        assert set(paper.remarks) <= set(registry())
        assert set(paper.headlines) <= set(paper.claims)


@pytest.mark.parametrize("size", long_but(["quick", "standard", "full"], "quick", slow=["standard"]))
def test_no_claim_trains_or_computes_under_a_plan(size, tmp_path, monkeypatch):
    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("something is trained")

    for name in ("train", "final_params", "make_pool"):
        monkeypatch.setattr(engines, name, refuse)
    monkeypatch.setattr(keeping, "_made", refuse)
    for each in CLAIMS:
        if size == "quick" or each.id not in SLOW_TO_PLAN:
            tasks, all_ = plan(each, size, tmp_path / "nowhere")
            assert all_ or tasks, each.id
            assert len({task.name for task in tasks}) == len(tasks)
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize("each", CLAIMS, ids=lambda each: each.id)
def test_what_is_printed_is_what_was_recorded(each):
    """Sizes as declared are those of the evidence, and every recorded check is of a declared rule for that size."""
    trial = each.trial
    assert trial.claim == each.id
    printed = "\n".join(size_lines(each))
    assert all(label in printed for label in trial.sizes())
    for name, entry in evidence.shipped(each.id).items():
        sizes = {label: json.loads(json.dumps(one.values[name])) for label, one in trial.sizes().items()}
        recorded = {label: value for label, value in entry["parameters"].items() if label != "left out"}
        assert recorded == sizes
        rules = [rule for rule in trial.rules() if name in rule.only]
        for check in entry["checks"]:
            assert any(could_be(rule, check) for rule in rules), check["name"]


def could_be(rule: Rule, check: dict[str, Any]) -> bool:
    """Whether a recorded check can come from a rule: its name fits the template, its bound the rule's."""
    def fits(template: str, text: str) -> bool:
        parts = re.split(r"(?<!\{)\{[^{}]+\}(?!\})", template)
        pattern = ".+".join(re.escape(part.replace("{{", "{").replace("}}", "}")) for part in parts)
        return re.fullmatch(pattern, text) is not None

    said = any(isinstance(getattr(rule, end, None), str) for end in ("low", "high"))
    return fits(rule.name, check["name"]) and (said or fits(rule.asked, check["rule"]))


def test_a_plan_says_whether_it_lists_everything(tmp_path):
    """A race asks for its later stages once the first are known."""
    complete = {each.id: plan(each, "quick", tmp_path)[1] for each in find(["glasgow2023.thm3-1", "barak2022.fig9"])}
    assert complete == {"glasgow2023.thm3-1": True, "barak2022.fig9": False}


def test_texts_are_made_from_code():
    (each,) = find(["barak2022.fig11"])
    assert rule_lines(each) == [str(rule) for rule in each.trial.rules()]
    (thm31,) = find(["glasgow2023.thm3-1"])
    (line,) = request_lines(thm31, "quick")
    assert line.startswith("5 runs of 3 Setups: parity: k 2, n 32 | 64 | 128; mlp: ")
    assert "d: [32, 64, 128] (quick), [32, 64, 128, 256, 512] (standard and full)" in size_lines(thm31)


# --- declarations -----------------------------------------------------------------------------------------------------


class Small(Trial):
    n = size(quick=8, standard=9, full=10)
    runs = size(5, label="runs of each")
    share = at_least("share of {runs} runs", 0.5)
    seldom = at_most("something", 1.0, only=("full",))

    def work(self, lab: Lab) -> pl.Result:
        return lab.measure(setup(self.n), self.runs)

    def judge(self, got: pl.Result) -> Findings:
        return Findings([self.share(got.summary.solved_fraction, runs=self.runs)], [{"n": self.n}])


class Careless(Small):
    def judge(self, got: pl.Result) -> Findings:
        return Findings([Check("share", 1.0, ">= 0.5", True)], [])


class TooSoon(Small):
    def judge(self, got: pl.Result) -> Findings:
        return Findings([self.seldom(0.5)], [])


def test_sizes_are_values_of_a_trial_and_listed():
    assert (Small("quick").n, Small("standard").n, Small("full").n, Small("full").runs) == (8, 9, 10, 5)
    assert Small("standard").parameters == {"n": 9, "runs of each": 5}
    assert [Small(name).reduced for name in ("quick", "standard", "full")] == [True, True, False]
    with pytest.raises(InvalidInput, match="unknown size"):
        Small("huge")
    with pytest.raises(InvalidInput, match="needs one value"):
        size(quick=3)


def test_checks_come_from_declared_rules_of_that_size(tmp_path):
    outcome = tried(Small("quick"), Lab("quick", tmp_path))
    assert [check.name for check in outcome.checks] == ["share of 5 runs"]
    with pytest.raises(InvalidInput, match="'share' is not a declared rule"):
        tried(Careless("quick"), Lab("quick", tmp_path))
    with pytest.raises(InvalidInput, match="'something' is no rule for quick"):
        tried(TooSoon("quick"), Lab("quick", tmp_path))


def test_a_claim_needs_work_judgement_and_a_rule():
    words = {"where": "w", "kind": "exact", "title": "t", "statement": "s", "published": "p"}

    class Idle(Trial):
        rule = at_least("a", 1.0)

    with pytest.raises(InvalidInput, match=r"me2025.a: Idle has no work\(\)"):
        claim("me2025.a", **words)(Idle)
    with pytest.raises(InvalidInput, match="unknown kind of claim 'guess'"):
        claim("me2025.a", **words | {"kind": "guess"})(Small)


# --- rules and verdicts -----------------------------------------------------------------------------------------------


def test_a_verdict_is_reproduced_only_if_every_check_passes_as_stated():
    passes = at_least("a", 1.0)(2.0)
    assert verdict([passes]) == "reproduced"
    assert verdict([passes, at_most("b", 1.0)(2.0)]) == "not reproduced"
    assert verdict([]) == "inconclusive"


def test_what_cannot_be_decided_is_inconclusive():
    assert verdict([at_least("a", 1.0)(math.nan)]) == "inconclusive"
    assert verdict([holds("a")(None)]) == "inconclusive"
    within = between("a", 1.0, 2.0)
    doubtful = within(0.9, (0.5, 1.5))
    assert doubtful.passed is False
    assert not doubtful.certain
    assert verdict([doubtful]) == "inconclusive"
    assert verdict([within(0.5, (0.4, 0.6))]) == "not reproduced"
    assert verdict([doubtful, at_least("b", 1.0)(0.0)]) == "not reproduced"


def test_an_interval_that_reaches_the_bound_never_helps_a_check_to_pass():
    assert at_least("a", 1.0)(1.2, (0.8, 1.6)).passed is True
    assert at_least("a", 1.0)(0.999, (0.8, 1.6)).passed is False


def test_rules_say_what_they_ask():
    assert str(between("slope, d = {d:g}", 1, 2)) == "slope, d = {d}: 1 to 2"
    assert str(at_most("law {{-1, 1}}", "three standard errors", only=("full",))) == \
        "law {-1, 1}: <= three standard errors  (full only)"
    assert at_most("gap", "three standard errors")(0.2, high=0.3).rule == "<= 0.3"
    with pytest.raises(AssertionError, match="say where the bound is"):
        at_most("gap", "three standard errors")(0.2)


def test_numbers_survive_json():
    assert json.loads(json.dumps([finite(x) for x in (1.5, math.inf, math.nan, None)])) == [1.5, "inf", None, None]
    assert Check("a", math.inf, "", True, (0.0, math.inf)).to_dict()["interval"] == [0.0, "inf"]


# --- the Lab ----------------------------------------------------------------------------------------------------------


def test_claims_are_found_by_id_and_glob_and_mistakes_are_named():
    assert [each.id for each in find(["barak2022.fig3", "barak2022.fig[38]"])] == ["barak2022.fig3", "barak2022.fig8"]
    with pytest.raises(InvalidInput, match=r"did you mean 'barak2022\.fig7'"):
        find(["barak2022.figg7"])
    with pytest.raises(InvalidInput, match="no claim matches"):
        find(["nothing.*"])


def test_what_was_trained_is_not_trained_again(tmp_path):
    first, second = Lab("quick", tmp_path), Lab("quick", tmp_path)
    a, b = (lab.measure(setup(), 20) for lab in (first, second))
    assert np.array_equal(a.records.t_c, b.records.t_c)
    assert (first.reused, second.reused) == (0, 20)
    assert first.flops == second.flops == a.model_steps * 32 * (4 * 8 * 10 + 6 * 10)


def test_computations_are_kept_and_a_damaged_file_is_made_anew(tmp_path):
    asked = {"d": 8, "seeds": 2, "level": 0.9}
    found = [Lab("quick", tmp_path, seed=seed).compute(kernel_samples, **asked)["samples"] for seed in (0, 0, 1)]
    assert np.array_equal(found[0], found[1])
    assert not np.array_equal(found[0], found[2])
    paths = sorted((tmp_path / "kept").glob("computed-kernel-samples-*.npz"))
    assert len(paths) == 2
    for path in paths:
        path.write_bytes(path.read_bytes()[:40])
    with pytest.warns(KeptWarning, match="is damaged"):
        assert np.array_equal(Lab("quick", tmp_path).compute(kernel_samples, **asked)["samples"], found[0])
    lab = Lab("quick", tmp_path)
    assert np.array_equal(lab.compute(kernel_samples, **asked)["samples"], found[0])
    assert lab.recalled == 1


@pytest.mark.parametrize("engine", ["jax", "lanes"])
def test_curves_come_back_from_disk_as_they_were(tmp_path, engine):
    made = [Lab("quick", tmp_path, engine=engine).curves(setup(), 20, 10, runs=2, weights=True) for _ in range(2)]
    assert np.array_equal(made[0].accuracy, made[1].accuracy)
    assert np.array_equal(made[0].weights[0]["w"], made[1].weights[0]["w"])
    assert made[1].train_accuracy is None


def test_final_params_come_back_from_disk_as_they_were(tmp_path):
    (records, params), (again, kept) = (Lab("quick", tmp_path, engine="jax").final_params(setup(), 3) for _ in range(2))
    assert np.array_equal(records.t_c, again.t_c)
    assert np.array_equal(params[0]["w"], kept[0]["w"])
    assert params[0]["w"].shape == (3, 8, 10)


def test_a_chain_ends_with_its_first_unsolved_median(tmp_path):
    hard, easy = setup(20, 5, max_steps=20), setup()
    results = Lab("quick", tmp_path).chains({"a": [easy, hard, easy], "b": [easy, easy]}, 10)
    assert {name: len(found) for name, found in results.items()} == {"a": 2, "b": 2}


def test_a_chain_with_a_goal_ends_where_it_is_reached(tmp_path):
    hard, easy = setup(20, 5, max_steps=20), setup()
    lab = Lab("quick", tmp_path)
    results = lab.chains({"a": [hard, easy, easy], "b": [hard, hard]}, 10, until=0.2)
    assert {name: len(found) for name, found in results.items()} == {"a": 2, "b": 2}
    more = {"a": [hard, easy, setup(9)], "b": [hard, setup(9)]}
    plan_: list[AnyTask] = []
    Lab("quick", tmp_path, plan=plan_).chains(more, 10, until=0.2)
    assert [(task.chain, task.until) for task in plan_ if isinstance(task, Task)] == [("b", 0.2)]  # the other has ended
    assert from_text(to_text(plan_)) == plan_


def test_a_dear_chain_reaches_as_far_as_its_records_or_its_end(tmp_path):
    hard, easy = setup(20, 5, max_steps=20), setup()
    lab = Lab("standard", tmp_path)
    assert lab.reach([easy, hard, setup(9)], 10) == 0
    lab.measure(easy, 10)
    assert lab.reach([easy, hard, setup(9)], 10) == 1
    lab.measure(hard, 10)
    assert lab.reach([easy, hard, setup(9)], 10) == 3  # nothing is asked for beyond the second
    assert Lab("full", tmp_path / "empty").reach([easy, hard], 10) == 2


# --- work for other machines ------------------------------------------------------------------------------------------


def done_elsewhere(tasks: list[AnyTask], out: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """Do tasks from their file in another folder, and merge what comes back."""
    there = out / "there"
    there.mkdir(exist_ok=True)
    assert offload.work(from_text(to_text(tasks)), there) == 0
    assert main(["merge", str(there), "--out", str(out), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_planned_work_done_elsewhere_completes_the_trial(tmp_path, capsys):
    curves = {"a": [setup(), setup(20, 5, max_steps=20), setup(9)]}
    tasks: list[AnyTask] = []
    answer = Lab("quick", tmp_path, plan=tasks).chains(curves, 10)
    with pytest.raises(Planned):
        answer["a"]
    assert [task.chain for task in tasks if isinstance(task, Task)] == ["a"] * 3
    assert done_elsewhere(tasks, tmp_path, capsys)["added"] == 20  # the chain ended with the second
    lab = Lab("quick", tmp_path)
    assert len(lab.chains(curves, 10)["a"]) == 2
    assert lab.reused == lab.runs == 20


def test_every_kind_of_request_is_planned_done_elsewhere_and_found(tmp_path, capsys):
    def ask(lab: Lab) -> Any:
        return (lab.curves(setup(), 20, 10, runs=2), lab.final_params(setup(), 3),
                lab.compute(kernel_samples, d=8, seeds=2, level=0.9), lab.measure(setup(9), 4))

    tasks: list[AnyTask] = []
    ask(Lab("quick", tmp_path, plan=tasks))
    assert [type(task) for task in tasks] == [CurveTask, ParamsTask, ComputeTask, Task]
    assert from_text(to_text(tasks)) == tasks
    assert done_elsewhere(tasks, tmp_path, capsys)["curves"] == 3
    again: list[AnyTask] = []
    found = ask(Lab("quick", tmp_path, plan=again))
    assert again == []
    alone = ask(Lab("quick", tmp_path / "alone"))
    assert np.array_equal(found[0].loss, alone[0].loss)
    assert np.array_equal(found[1][1][0]["w"], alone[1][1][0]["w"])
    assert np.array_equal(found[2]["samples"], alone[2]["samples"])
    assert np.array_equal(found[3].records.t_c, alone[3].records.t_c)


@pytest.mark.long
def test_a_race_is_exported_stage_by_stage_and_ends_as_it_does_here(tmp_path):
    setups = [setup(10, 3, lr, max_steps=2000, eval_every=2) for lr in (1.0, 0.1, 0.001)]
    stages = []
    for _ in range(10):
        tasks: list[AnyTask] = []
        raced = Lab("quick", tmp_path, engine="jax", plan=tasks).race(setups, 15)
        if not tasks:
            break
        stages.append(len(tasks))
        assert all(isinstance(task, Task) for task in tasks)
        done_elsewhere_on_jax(tasks, tmp_path)
    assert stages[0] == 3
    assert len(stages) > 1
    here = Lab("quick", tmp_path / "here", engine="jax").race(setups, 15)
    assert raced.best.setup == here.best.setup
    assert (raced.best.percentile, raced.best.interval) == (here.best.percentile, here.best.interval)


def done_elsewhere_on_jax(tasks: list[AnyTask], out: Path) -> None:
    for task in tasks:
        assert isinstance(task, Task)
        pl.sweep([task.setup], task.runs, engine="jax", store=pl.Store(out / "store"))


def test_a_computation_is_found_by_name_in_papers_alone():
    for name in ("os:getcwd", "glasgow2023.samples:crossing", "paritylab.running.offload:work"):
        with pytest.raises(InvalidInput, match="computation"):
            ComputeTask(name, "{}", 0, "").do()


def test_tasks_that_share_programs_or_chains_go_to_one_process():
    tasks = [Task(setup(n, k), 0, 5, f"k={k}") for n in (8, 9) for k in (2, 3)]
    tasks.append(Task(setup(10, 2), 0, 5))
    batches = offload.batches_of(tasks)
    assert [len(batch) for batch in batches] == [4, 1]
    assert [task.setup.problem.n for task in batches[0]] == [8, 8, 9, 9]


def test_a_file_that_holds_no_tasks_is_refused():
    with pytest.raises(InvalidInput, match="not a file of tasks"):
        from_text("[]")
