"""``paritylab store verify``: what it finds in damaged copies of evidence and stores, and nothing elsewhere.

All comparisons here are exact, or of numbers that must be far apart; none can fail by chance.
"""

from __future__ import annotations

import gzip
import json
import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import paritylab as pl
from paritylab import engines
from paritylab.claims import Lab, evidence, reproduce, sources
from paritylab.claims.registry import registry
from paritylab.claims.verifying import Verification
from paritylab.claims.verifying.records import Listed, check_listed
from paritylab.claims.verifying.report import LEVEL, Report
from paritylab.claims.verifying.words import differences
from paritylab.cli import main
from paritylab.running import keeping
from paritylab.running.retraining import Lot, compared, sampled, trained_again
from paritylab.running.tasks import CurveTask, Recorded
from paritylab.setups.setup import Setup
from paritylab.storage.kept import sealed
from paritylab.storage.records import Records

FAST = "me2025.width"
SETUP = pl.Setup(pl.Parity(n=8, k=2), pl.Learner(), pl.Protocol(eval_size=128))
ENGINE = engines.choose(SETUP)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory) -> Path:
    """A folder with evidence of one claim as it is shipped, and with the trial as one's own."""
    folder = tmp_path_factory.mktemp("recorded")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(evidence, "shipped_directory", lambda claim: folder / "shipped")
        reproduce(registry()[FAST], Lab("quick", folder / "out"), record=True)
    return folder


@pytest.fixture
def copy(recorded, tmp_path, monkeypatch) -> Path:
    shutil.copytree(recorded, tmp_path, dirs_exist_ok=True)
    monkeypatch.setattr(evidence, "shipped_directory", lambda claim: tmp_path / "shipped")
    return tmp_path


def verified(folder: Path, share: float = 1.0) -> Report:
    return Verification([registry()[FAST]], folder / "out", share, progress=False).run()


def edit(path: Path, change) -> None:
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document, indent=1) + "\n")


def told(report: Report) -> str:
    return "\n".join(f"{each['where']}: {each['what']}" for each in report.differences)


# --- nothing is wrong -------------------------------------------------------------------------------------------------


def test_what_was_recorded_is_found_again(copy):
    report = verified(copy)
    assert report.differences == []
    assert report.checked["digests"] == 11  # two entries, tables, five files here and two shipped
    assert report.checked["stored records, the same to the last bit"] == 400
    assert report.checked["listed runs (records), the same to the last bit"] == 400
    assert report.checked["Setups of trials of one's own, compared with the store"] == 2


def test_evidence_says_where_it_comes_from_and_on_what_it_stands(copy):
    document = evidence.shipped_document(FAST)
    entry = document["sizes"]["quick"]
    assert {"paritylab", "processor", "libraries", "time", "builds"} <= entry["origin"].keys()
    assert set(document["files"]) == {f"{FAST}.svg", f"{FAST}.csv"}
    rows = sources.read(copy / "shipped" / entry["records"]["file"])
    assert len(rows) == 2
    for row in rows:
        source = sources.source_of(row)
        records = pl.sweep([source.task.setup], 200, engine=source.engine)[0].records
        assert records.digest == row["digest"]


def test_evidence_without_records_is_tried_again(copy):
    path = copy / "shipped" / f"{FAST}.json"

    def without(document) -> None:
        entry = document["sizes"]["quick"]
        left = entry.keys() - {"records", "digest", "origin"}
        document["sizes"]["quick"] = sealed({name: value for name, value in entry.items() if name in left})

    edit(path, without)
    report = verified(copy)
    assert report.differences == []
    assert report.checked["checks, the same"] == report.checked["checks, done again"] > 0


def test_a_shipped_claim_is_verified_in_a_moment(tmp_path, capsys):
    """The small sample of every test run; ``paritylab store verify`` takes a larger one."""
    assert main(["store", "verify", "me2025.guessing", "--out", str(tmp_path), "--json"]) == 0
    checked = json.loads(capsys.readouterr().out)["checked"]
    assert checked["checks, the same"] == checked["checks, done again"] > 0


def test_an_interval_that_does_not_hold_its_value_is_found():
    claim = registry()[FAST]
    entry = evidence.shipped(claim.id)["quick"]
    assert list(differences(claim, entry)) == []
    check = next(check for check in entry["checks"] if check["interval"])
    check["interval"] = [check["value"] + 1, check["value"] + 2]
    assert "does not hold" in "\n".join(differences(claim, entry))


# --- something is -----------------------------------------------------------------------------------------------------


def shift(document) -> None:
    check = document["sizes"]["quick"]["checks"][0]
    check["value"] *= 1.0001


def reword(document) -> None:
    document["sizes"]["quick"]["results"] = {"": "contradicted"}


@pytest.mark.parametrize(("change", "what"), [(shift, "its numbers or words are not those that were recorded"),
                                              (reword, "results {'': 'contradicted'}: by its checks they are")])
def test_an_edited_number_or_word_is_found(copy, change, what):
    edit(copy / "shipped" / f"{FAST}.json", change)
    assert what in told(verified(copy, 0.001))


@pytest.mark.parametrize("name", [f"{FAST}.csv", f"{FAST}.svg", f"{FAST}.quick.records.csv.gz"])
def test_an_edited_file_is_found(copy, name):
    path = copy / "shipped" / name
    data = path.read_bytes()
    path.write_bytes(data[:-3] + bytes([data[-3] ^ 1]) + data[-2:])
    assert f"{name} is not what it was" in told(verified(copy, 0.001))


def test_curves_of_before_they_had_skills_are_the_same_again(tmp_path):
    setup = pl.Setup(pl.Parity(8, 2), protocol=pl.Protocol(eval_size=64))
    task = CurveTask(setup, 3, Recorded(20, 10, (0, 1)))
    keeping.keep([task], tmp_path, "jax", progress=False)
    arrays = keeping.find(task, tmp_path, "jax")
    assert "task_skill" in arrays
    now, before = (sources.of_arrays(task, arrays, leaving) for leaving in ((), sources.LATER))
    assert now.digest != before.digest
    for source in (now, before, replace(now, digest="another")):
        report = Report()
        line = Listed(SimpleNamespace(where="here"), source, Lot(setup, 3, np.arange(2), "jax"))
        check_listed([line], lambda: False, report, progress=False)
        assert bool(report.differences) == (source.digest == "another")


def test_a_missing_file_is_found(copy):
    (copy / "shipped" / f"{FAST}.csv").unlink()
    assert f"{FAST}.csv is missing" in told(verified(copy, 0.001))


def test_records_that_nobody_trained_are_found_though_all_digests_are_right(copy):
    """Evidence that is sealed anew by whoever changed it: only training tells."""
    table = copy / "shipped" / f"{FAST}.quick.records.csv.gz"
    rows = gzip.decompress(table.read_bytes()).decode().replace('""seed"":0', '""seed"":7')
    entry = evidence.shipped(FAST)["quick"]
    entry = {name: value for name, value in entry.items() if name not in ("digest", "records")}
    evidence.record(FAST, entry, None, [], gzip.compress(rows.encode(), mtime=0))
    assert "records of 200 runs have another digest, trained again" in told(verified(copy))


def test_a_number_that_no_trial_gives_is_found_where_no_records_are_listed(copy):
    path = copy / "shipped" / f"{FAST}.json"

    def lie(document) -> None:
        entry = document["sizes"]["quick"]
        (check,) = entry["checks"]
        check["value"] *= 1.5
        check["interval"] = [1.5 * end for end in check["interval"]]
        for name in ("records", "digest", "origin"):
            entry.pop(name)

    edit(path, lie)
    assert "tried again" in told(verified(copy))


@pytest.mark.parametrize("change", [{"t_c": 10}, {"loss": 1e-6}])
def test_a_changed_stored_record_is_found(copy, change):
    store = pl.Store(copy / "out" / "store")
    result = pl.measure(SETUP.problem, SETUP.learner, SETUP.protocol, 20, seed=3)
    records = result.records
    columns = {name: getattr(records, name).copy() for name in change}
    for name, by in change.items():
        columns[name][7] += by
    if "t_c" in change:
        columns["steps"] = columns["t_c"]
    store.append(SETUP.id, SETUP.to_json(), result.engine, 3, replace(records, **columns))
    if result.engine == "lanes":
        assert f"{SETUP.id}, lanes, seed 3: 1 of 20 records differ: run 7 solved" in told(verified(copy))


def test_a_damaged_block_is_found(copy):
    blocks = sorted((copy / "out" / "store").rglob("*.parquet"))
    blocks[0].write_bytes(blocks[0].read_bytes()[:-1] + b"x")
    assert "store: not used:" in told(verified(copy))


def test_a_store_that_is_not_the_one_of_the_trial_is_found(copy):
    """All records of another seed, under the name of this one."""
    row = sources.read(copy / "out" / "claims" / FAST / "quick" / evidence.RECORDS)[0]
    setup = sources.source_of(row).task.setup
    other = pl.sweep([setup], 200, seed=5, engine=row["engine"])[0].records
    shutil.rmtree(copy / "out" / "store")
    pl.Store(copy / "out" / "store").append(setup.id, setup.to_json(), row["engine"], 0, other)
    assert "the store has other records than those that the trial stood on" in told(verified(copy, 0.001))


# --- how it is found --------------------------------------------------------------------------------------------------


def test_records_are_the_same_in_any_company():
    whole = pl.sweep([SETUP], 40, engine=ENGINE)[0].records
    chosen = np.array([3, 11, 12, 39])
    lot = Lot(SETUP, 0, chosen, engines.label(ENGINE))
    ((_, again),) = trained_again([lot])
    assert isinstance(again, Records)
    assert compared(lot, whole.take(chosen), again).identical


def test_records_of_an_engine_that_is_not_here_are_compared_by_law():
    """Seeds are fixed, and the p-values 1 and below 1e-6: no false alarm."""
    lot = Lot(SETUP, 0, np.arange(100), "warps_No_Such_GPU")
    assert (lot.engine, lot.exact) == ("auto", False)
    ((_, again),) = trained_again([lot])
    assert isinstance(again, Records)
    slow = replace(again, t_c=again.t_c + 200, steps=again.steps + 200)
    assert compared(lot, again, again).p_value == 1
    assert compared(lot, slow, again).p_value < 1e-6


@pytest.mark.long
def test_a_sample_is_of_the_share_that_was_asked_for(tmp_path):
    """60 Setups of 50 records, a tenth: 300 expected, and 160 to 440 is eight standard deviations of a binomial."""
    store = pl.Store(tmp_path)
    for number in range(60):
        setup = Setup(SETUP.problem, SETUP.learner, replace(SETUP.protocol, max_steps=1000 + number))
        runs = np.arange(50)
        store.append(setup.id, setup.to_json(), "lanes", 0,
                     Records(runs, runs * 0, runs + 10, runs + 10, runs * 0 + 1, runs * 0))
    drawn = list(sampled(store, 0.1, np.random.default_rng(0)))
    assert 160 < sum(len(each.records) for each in drawn) < 440
    assert all(each.lot is not None and each.lot.setup.id == each.setup_id for each in drawn)
    assert len(list(sampled(store, 1e-9, np.random.default_rng(0)))) == 1
    assert sum(len(each.records) for each in sampled(store, None, np.random.default_rng(0))) == 60 * 16


def test_the_level_is_shared_by_all_comparisons():
    report = Report()
    for p_value in (LEVEL / 2, 0.4):
        report.weigh("somewhere", "something", p_value)
    assert report.differences == []
    report.weigh("somewhere", "something", LEVEL / 4)
    assert len(report.differences) == 1


# --- the command ------------------------------------------------------------------------------------------------------


def test_the_command_prints_and_exits_by_what_it_found(copy, capsys):
    command = ["store", "verify", FAST, "--out", str(copy / "out"), "--seed", "0"]
    assert main(command) == 0
    assert "0 differences" in capsys.readouterr().out
    edit(copy / "shipped" / f"{FAST}.json", reword)
    assert main([*command, "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert len(document["differences"]) == 2
    assert document["seed"] == 0


@pytest.mark.parametrize("options", [["--share", "0"], ["--share", "2"], ["--minutes", "-1"], ["--minutes", "x"],
                                     ["--share", "0.1", "--minutes", "1"], ["no.such-claim"]])
def test_what_cannot_be_asked_for_is_one_line(options, capsys):
    assert main(["store", "verify", *options]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
