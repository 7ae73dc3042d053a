"""Trials: declared sizes and rules, the Lab as the only door, requests that are planned, exported and answered."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from template import part

import paritylab as pl
from paritylab.claims import Findings, Lab, Trial, at_least, at_most, between, claim, find, holds, size
from paritylab.claims.reproduction import plan, tried
from paritylab.claims.requests import Planned
from paritylab.claims.texts import request_lines, rule_lines, size_lines
from paritylab.claims.verdicts import CONTRADICTED, HOLDS, UNDECIDED, Check, finite, results
from paritylab.cli import main
from paritylab.errors import InvalidInput
from paritylab.running import offload
from paritylab.running.tasks import AnyTask, ComputeTask, CurveTask, ParamsTask, Task, from_text, to_text
from paritylab.storage.kept import KeptWarning


def setup(n=8, k=2, lr=1.0, **protocol):
    learner = pl.Learner(pl.MLP(10), optimiser=pl.SGD(lr))
    return pl.Setup(pl.Parity(n, k), learner, pl.Protocol(eval_size=128, **protocol))


# --- plans and texts --------------------------------------------------------------------------------------------------


def test_a_plan_says_whether_it_lists_everything(tmp_path):
    """A race asks for its later stages once the first are known."""
    complete = {each.id: plan(each, "quick", tmp_path)[1] for each in find(["me2025.*"])}
    assert complete == {"me2025.width": True, "me2025.guessing": True}
    raced: list[AnyTask] = []
    lab = Lab("quick", tmp_path, plan=raced)
    with pytest.raises(Planned):
        lab.race([setup(lr=lr) for lr in (0.1, 1.0)], 40).best.percentile  # noqa: B018
    assert raced


def test_texts_are_made_from_code():
    (width,) = find(["me2025.width"])
    assert rule_lines(width) == [str(rule) for rule in width.trial.rules()]
    (line,) = request_lines(width, "quick")
    assert line.startswith("200 runs of 2 Setups: parity: k 3, n 12; mlp: ")
    assert "widths: [10, 100] (quick), [10, 30, 100, 300] (standard and full)" in size_lines(width)


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


def test_a_claim_holds_only_if_every_check_does():
    passes = at_least("a", 1.0)(2.0)
    assert results([passes]) == {"": HOLDS}
    assert results([passes, at_most("b", 1.0)(2.0)]) == {"": CONTRADICTED}
    assert results([]) == {}


def test_what_cannot_be_decided_is_undecided():
    assert results([at_least("a", 1.0)(math.nan)]) == {"": UNDECIDED}
    assert results([holds("a")(None)]) == {"": UNDECIDED}
    within = between("a", 1.0, 2.0)
    doubtful = within(0.9, (0.5, 1.5))
    assert doubtful.passed is False
    assert results([doubtful]) == {"": UNDECIDED}
    assert results([within(0.5, (0.4, 0.6))]) == {"": CONTRADICTED}
    assert results([doubtful, at_least("b", 1.0)(0.0)]) == {"": CONTRADICTED}


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
    assert [each.id for each in find(["me2025.width", "me2025.[gw]*"])] == ["me2025.width", "me2025.guessing"]
    with pytest.raises(InvalidInput, match=r"did you mean 'me2025\.width'"):
        find(["me2025.wdith"])
    with pytest.raises(InvalidInput, match="no claim matches"):
        find(["nothing.*"])


def test_what_was_trained_is_not_trained_again(tmp_path):
    first, second = Lab("quick", tmp_path), Lab("quick", tmp_path)
    a, b = (lab.measure(setup(), 20) for lab in (first, second))
    assert np.array_equal(a.records.t_c, b.records.t_c)
    assert (first.reused, second.reused) == (0, 20)
    assert first.flops == second.flops == a.model_steps * 32 * (4 * 8 * 10 + 6 * 10)


def test_computations_are_kept_and_a_damaged_file_is_made_anew(tmp_path):
    guesses, asked = part("guessing").guesses, {"n": 8, "k": 3, "searches": 20}
    found = [Lab("quick", tmp_path, seed=seed).compute(guesses, **asked)["guesses"] for seed in (0, 0, 1)]
    assert np.array_equal(found[0], found[1])
    assert not np.array_equal(found[0], found[2])
    paths = sorted((tmp_path / "kept").glob("computed-guesses-*.npz"))
    assert len(paths) == 2
    for path in paths:
        path.write_bytes(path.read_bytes()[:40])
    with pytest.warns(KeptWarning, match="is damaged"):
        assert np.array_equal(Lab("quick", tmp_path).compute(guesses, **asked)["guesses"], found[0])
    lab = Lab("quick", tmp_path)
    assert np.array_equal(lab.compute(guesses, **asked)["guesses"], found[0])
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
    assert main(["store", "merge", str(there), "--out", str(out), "--json"]) == 0
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
                lab.compute(part("guessing").guesses, n=8, k=3, searches=20), lab.measure(setup(9), 4))

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
    assert np.array_equal(found[2]["guesses"], alone[2]["guesses"])
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
    for name in ("os:getcwd", "me2025.width:published", "paritylab.running.offload:work"):
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
