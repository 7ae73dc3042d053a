"""Versions of an engine's arithmetic: records of two are kept apart, used together only if asked, compared by law."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from commands import run
from hypothesis import given, settings
from hypothesis import strategies as st

import paritylab as pl
from paritylab import engines
from paritylab.claims import sources
from paritylab.claims.verifying import Verification
from paritylab.claims.verifying.records import Listed, check_listed
from paritylab.claims.verifying.report import Report
from paritylab.engines.arithmetic import LABEL, earlier, labelled, parsed
from paritylab.errors import InvalidInput
from paritylab.running import crews, downloads, keeping, offload
from paritylab.running.merging import merge
from paritylab.running.retraining import Lot, compared, trained_again
from paritylab.running.tasks import CurveTask, Recorded, Task
from paritylab.statistics import compare_accuracy, p_value_of_sum
from paritylab.storage.records import Records

SETUP = pl.Setup(pl.Parity(n=8, k=2), pl.Learner(), pl.Protocol(eval_size=128))
ENGINE = engines.choose(SETUP)
NEW = f"{ENGINE}_2"
AGAIN = "are trained again: the store has them by arithmetic 1"


@pytest.fixture(autouse=True)
def _first(monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine has its first arithmetic."""
    monkeypatch.setattr(type(engines.named(ENGINE)), "arithmetic", 1)


@pytest.fixture
def second(monkeypatch: pytest.MonkeyPatch) -> None:
    """From here on the engine has its second arithmetic."""
    monkeypatch.setattr(type(engines.named(ENGINE)), "arithmetic", 2)


def marked(records: Records) -> Records:
    """Records that no arithmetic makes."""
    return replace(records, loss=records.loss + 7)


@pytest.fixture
def store(tmp_path: Path) -> pl.Store:
    """With 20 runs of the first arithmetic, which cannot be mistaken for others."""
    kept = pl.Store(tmp_path / "store")
    kept.append(SETUP.id, SETUP.to_json(), ENGINE, 0, marked(pl.sweep([SETUP], 20, engine=ENGINE)[0].records))
    return kept


def of_the_first(result: pl.Result) -> list[int]:
    return result.records.run[result.records.loss >= 7].tolist()


def measured(store: pl.Store, runs: int | range = 20, **options: Any) -> pl.Result:
    return pl.measure(SETUP.problem, SETUP.learner, SETUP.protocol, runs, store=store, engine=ENGINE, **options)


# --- labels -----------------------------------------------------------------------------------------------------------

NAMES = st.sampled_from(["lanes", "jax", "warps", "mine3"])
DEVICES = st.sampled_from(["", "_NVIDIA_H200", "_TPU_v2", "_123456789012"])


@given(NAMES, st.integers(1, 999), DEVICES)
def test_a_label_tells_engine_version_and_device(name: str, version: int, device: str) -> None:
    label = labelled(name + device, version)
    assert LABEL.fullmatch(label)
    assert parsed(label) == (name, version, device)
    assert str(parsed(label)) == label
    assert labelled(label, 1) == name + device
    assert [parsed(each).version for each in earlier(label)] == list(range(version - 1, 0, -1))


@pytest.mark.parametrize("name", ["lanes", "jax", "warps"])
def test_the_version_of_an_engine_is_in_the_label_of_its_records(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(engines.named(name)), "arithmetic", 1)
    first = engines.label(name)
    assert parsed(first).version == 1
    monkeypatch.setattr(type(engines.named(name)), "arithmetic", 3)
    assert engines.label(name) == labelled(first, 3) != first


# --- sweeps and races -------------------------------------------------------------------------------------------------


def test_runs_of_an_earlier_arithmetic_are_trained_again_and_a_line_says_so(store: pl.Store, second: None) -> None:
    with pytest.warns(engines.EngineNotice, match=f"^20 runs of 1 Setup {AGAIN}") as said:
        again = measured(store, 30)
    assert len(said) == 1
    assert "\n" not in str(said[0].message)
    assert (again.engine, again.reused, again.earlier, of_the_first(again)) == (NEW, 0, (), [])
    assert store.series(SETUP.id) == [(ENGINE, 0), (NEW, 0)]
    assert len(store.records(SETUP.id, ENGINE, 0)) == 20
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert measured(store, 30).reused == 30


def test_the_id_of_a_setup_has_no_arithmetic(second: None) -> None:
    assert pl.Setup.from_json(SETUP.to_json()).id == pl.Setup(SETUP.problem, SETUP.learner, SETUP.protocol).id
    assert "arithmetic" not in SETUP.to_json()


def test_runs_of_two_versions_are_in_one_result_only_if_asked_for(store: pl.Store, second: None) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        both = measured(store, range(10, 40), any_arithmetic=True)
    assert (both.engine, both.earlier, both.reused) == (NEW, (ENGINE,), 10)
    assert both.records.run.tolist() == list(range(10, 40))
    assert of_the_first(both) == list(range(10, 20))
    assert both.to_dict()["earlier"] == [ENGINE]
    assert store.runs(SETUP.id, NEW, 0).tolist() == list(range(20, 40))
    newest = measured(store, range(20, 40), any_arithmetic=True)
    assert (newest.engine, newest.earlier, newest.reused) == (NEW, (), 20)
    with pytest.warns(engines.EngineNotice, match="20 runs"):
        assert of_the_first(measured(store, 40)) == []


def test_where_an_earlier_arithmetic_has_all_runs_they_are_a_result_of_its_own(store: pl.Store, second: None) -> None:
    for arithmetic, engine in ((True, False), (False, True)):
        (result,) = pl.sweep([SETUP], 20, store=store, engine=ENGINE, any_arithmetic=arithmetic, any_engine=engine)
        assert (result.engine, result.earlier, result.reused) == (ENGINE, (), 20)


def test_a_race_takes_runs_of_an_earlier_arithmetic_only_if_asked_for(tmp_path: Path, request: Any) -> None:
    store = pl.Store(tmp_path / "store")
    setups = [replace(SETUP, learner=pl.Learner(optimiser=pl.SGD(lr))) for lr in (0.1, 1.0)]
    before = pl.race(setups, runs=10, store=store, engine=ENGINE)
    request.getfixturevalue("second")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        same = pl.race(setups, runs=10, store=store, engine=ENGINE, any_arithmetic=True)
    assert [entry.reused for entry in same.rates] == [10, 10]
    assert [(entry.engine, entry.earlier) for entry in same.rates] == [(ENGINE, ())] * 2
    assert same.best.percentile == before.best.percentile
    with pytest.warns(engines.EngineNotice, match=AGAIN) as said:
        anew = pl.race(setups, runs=10, store=store, engine=ENGINE)
    assert len(said) == 1
    assert [(entry.engine, entry.reused, entry.earlier) for entry in anew.rates] == [(NEW, 0, ())] * 2


def test_the_command_says_so_too_and_has_an_option(store: pl.Store, second: None, capsys: Any) -> None:
    command = ["measure", "--n", "8", "--k", "2", "--eval-size", "128", "--engine", ENGINE, "--out",
               str(store.root.parent)]
    _, out, err = run(capsys, *command, "--runs", "25", "--any-arithmetic")
    assert f"engine {NEW} and {ENGINE}, " in out
    assert err == ""
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        _, out, err = run(capsys, *command, "--runs", "20", "--json")
    assert AGAIN in err
    assert json.loads(out)["engine"] == NEW


def test_a_crew_of_another_version_keeps_its_records_under_its_label(
    store: pl.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What workers answer to the question for engines is what counts, whatever version this process has."""
    class Crew:
        def choices(self, setups: list[pl.Setup], engine: str = "auto") -> list[tuple[str, str]]:
            return [(ENGINE, NEW) for _ in setups]

        attempt = staticmethod(engines.attempt)

    monkeypatch.setattr(crews, "trainer", Crew)
    with pytest.warns(engines.EngineNotice, match=AGAIN):
        assert (measured(store).engine, measured(store).reused) == (NEW, 20)


def test_an_engine_is_found_by_the_label_of_its_records(second: None) -> None:
    assert engines.choose(SETUP, NEW) == ENGINE
    with pytest.raises(InvalidInput, match=f"the engine '{ENGINE}' has arithmetic 2 here, not 3"):
        engines.choose(SETUP, f"{ENGINE}_3")
    with pytest.raises(InvalidInput, match="unknown engine 'warps_No_Such_GPU'"):
        engines.choose(SETUP, "warps_No_Such_GPU")


# --- files ------------------------------------------------------------------------------------------------------------


def test_merging_keeps_two_versions_apart(store: pl.Store, second: None, tmp_path: Path) -> None:
    there = pl.Store(tmp_path / "there" / "store")
    measured(there)
    done = merge(store.root.parent, [tmp_path / "there"])
    assert (done.added, done.known, done.conflicts) == (20, 0, [])
    assert store.records(SETUP.id, ENGINE, 0).digest != store.records(SETUP.id, NEW, 0).digest


def test_records_of_work_elsewhere_carry_the_version(second: None, tmp_path: Path) -> None:
    offload.work([Task(SETUP, 0, 5)], tmp_path)
    (path,) = tmp_path.glob("*.npz")
    assert offload.read_records(path)[1] == engines.label(engines.choose(SETUP)) == NEW


def test_records_of_the_page_carry_the_version(store: pl.Store, tmp_path: Path) -> None:
    records = store.records(SETUP.id, ENGINE, 0)
    path = tmp_path / "records.json"
    columns = {name: getattr(records, name).tolist() for name in ("run", "t_c", "steps", "accuracy", "loss")}
    status = ["solved", "censored", "diverged"]
    for label in ("lanes", "lanes_2"):
        path.write_text(json.dumps({"paritylab": "records", "format": 1, "setup": json.loads(SETUP.to_json()),
                                    "engine": label, "seed": 0, **columns,
                                    "status": [status[each] for each in records.status]}))
        assert downloads.read(path)[1] == label


def test_kept_curves_of_two_versions_are_two_files_and_the_newer_ones_count(tmp_path: Path, request: Any) -> None:
    task = CurveTask(SETUP, 0, Recorded(20, 10))
    keeping.keep([task], tmp_path, ENGINE, progress=False)
    request.getfixturevalue("second")
    found = keeping.find(task, tmp_path, ENGINE)
    assert found is not None
    assert str(found["engine"]) == ENGINE
    keeping.keep([task], tmp_path, ENGINE, progress=False)
    found = keeping.find(task, tmp_path, ENGINE)
    assert found is not None
    assert str(found["engine"]) == NEW
    assert len(list(tmp_path.glob("*.npz"))) == 2


def test_networks_of_an_earlier_arithmetic_are_refused_in_a_line(store: pl.Store, second: None) -> None:
    (result,) = pl.sweep([SETUP], 20, store=store, engine=ENGINE, any_arithmetic=True)
    with pytest.raises(InvalidInput, match=f"earlier arithmetic measured these runs \\('{ENGINE}'; here it is '{NEW}'"):
        result.networks()


# --- verification -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("change", "differs"), [({}, False), ({"t_c": 500, "steps": 500}, True)])
def test_stored_records_of_an_earlier_arithmetic_are_compared_by_distribution(
    store: pl.Store, second: None, tmp_path: Path, change: dict[str, int], differs: bool
) -> None:
    """The seeds are fixed, and p-values are 1 or below 1e-5: no false alarm."""
    records = store.records(SETUP.id, ENGINE, 0)
    moved = {name: getattr(records, name) + by for name, by in change.items()}
    other = pl.Store(tmp_path / "other" / "store")
    other.append(SETUP.id, SETUP.to_json(), ENGINE, 0, replace(records, **moved))  # marked: no loss is the same
    report = Verification([], tmp_path / "other", 1.0, progress=False).run()
    assert report.checked["stored records of an earlier arithmetic, trained again and compared by distribution"] == 20
    assert report.checked["stored records, the same to the last bit"] == 0
    assert bool(report.differences) == differs
    assert "with a chance of at most 0.001 that one of them is a false alarm" in str(report)


def test_accuracies_of_an_earlier_arithmetic_are_compared_by_distribution(second: None) -> None:
    lot = Lot(SETUP, 0, np.arange(50), ENGINE)
    assert lot.earlier
    assert not lot.exact
    ((_, again),) = trained_again([lot])
    assert isinstance(again, Records)
    worse = replace(again, accuracy=again.accuracy - 0.25)
    assert compared(lot, marked(again), again).accuracy_p_value == 1
    assert (compared(lot, worse, again).accuracy_p_value or 0) < 1e-9
    assert compare_accuracy(again, replace(again, accuracy=np.full(50, np.nan))) == 1


@pytest.mark.parametrize(("shift", "differs"), [(0, False), (10**6, True)])
def test_listed_runs_of_an_earlier_arithmetic_are_compared_by_their_steps(
    second: None, shift: int, differs: bool
) -> None:
    records = marked(pl.sweep([SETUP], 50, engine=ENGINE)[0].records)
    source = sources.of_records(Task(SETUP, 0, 50), ENGINE, records)
    lot = Lot(SETUP, 0, np.arange(50), ENGINE)
    entry: Any = SimpleNamespace(where="somewhere")
    report = Report()
    check_listed([Listed(entry, replace(source, steps=source.steps + shift), lot)], lambda: False, report, False)
    assert report.checked["listed runs of an earlier arithmetic, trained again and compared by distribution"] == 50
    assert bool(report.differences) == differs


@settings(max_examples=10, deadline=None)  # a sum out of reach is looked for in twenty million numbers
@given(st.integers(0, 2**32 - 1), st.sampled_from([3, 10, 25]), st.sampled_from([0.0, 0.05, 0.5]))
def test_a_sum_is_never_less_likely_than_its_place_among_the_possible_ones(seed: int, runs: int, rare: float) -> None:
    random = np.random.default_rng(seed)
    values = np.where(random.random(runs) < rare, 10_000, random.integers(100, 900, runs))
    assert p_value_of_sum(values.sum(), values, 10_000) > 0.3
    assert p_value_of_sum(0, values, 10_000) <= p_value_of_sum(values.sum(), values, 10_000)


@pytest.mark.parametrize("rare", [0.0, 0.04, 0.3])
def test_false_alarms_of_sums_are_rarer_than_stated(rare: float) -> None:
    """At 5 % a thousand pairs of independent samples give at most 50 on average; 90 is six deviations above."""
    random = np.random.default_rng(0)
    alarms = 0
    for _ in range(1000):
        first, second = np.where(random.random((2, 25)) < rare, 10_000, random.integers(100, 900, (2, 25)))
        alarms += p_value_of_sum(first.sum(), second, 10_000) < 0.05
    assert alarms < 90
