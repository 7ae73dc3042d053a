"""Stores of several machines become one: nothing twice, nothing overwritten."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from paritylab.cli import main
from paritylab.errors import InvalidInput
from paritylab.running.merging import merge
from paritylab.storage.kept import KeptWarning, load_arrays, save_arrays
from paritylab.storage.records import Records
from paritylab.storage.store import Store

TEXT = '{"n": 30}'


def records(runs: range, t_c: int = 100) -> Records:
    count = len(runs)
    return Records(list(runs), [0] * count, [t_c] * count, [t_c] * count, [1.0] * count, [np.nan] * count)


def store(folder: Path, runs: range, t_c: int = 100, engine: str = "lanes", seed: int = 0) -> Path:
    Store(folder / "store").append("4f2a", TEXT, engine, seed, records(runs, t_c))
    return folder


def test_stores_are_joined_and_what_is_known_is_not_added_again(tmp_path: Path) -> None:
    here, there = store(tmp_path / "here", range(10)), store(tmp_path / "there", range(5, 20))
    store(there, range(3), engine="jax")
    other = store(tmp_path / "other", range(4), seed=7)
    done = merge(here, [there, other / "store"])
    assert (done.added, done.known, done.conflicts) == (10 + 3 + 4, 5, [])
    joined = Store(here / "store")
    assert joined.runs("4f2a", "lanes", 0).tolist() == list(range(20))
    assert joined.series("4f2a") == [("jax", 0), ("lanes", 0), ("lanes", 7)]
    again = merge(here, [there, other])
    assert (again.added, again.known) == (0, 15 + 3 + 4)


def test_records_keep_where_they_come_from(tmp_path: Path) -> None:
    theirs = Store(tmp_path / "there" / "store")
    far = {"processor": "theirs", "time": "2026-01-01"}
    theirs.extend([("4f2a", TEXT, "lanes", 0, records(range(5)))], [far])
    theirs.append("4f2a", TEXT, "lanes", 0, records(range(5, 8)))
    here = store(tmp_path / "here", range(8, 12))
    merge(here, [tmp_path / "there"])
    merge(tmp_path / "again", [here])  # and keep it when they are merged once more
    source = str(tmp_path / "there")
    for root in (here, tmp_path / "again"):
        Store(root / "store").compact()
        found = {tuple(part.run.tolist()): origin for _, origin, part in Store(root / "store").by_origin({"4f2a"})}
        assert found.keys() == {(0, 1, 2, 3, 4), (5, 6, 7), (8, 9, 10, 11)}
        assert found[0, 1, 2, 3, 4] == far | {"merged_from": source}
        assert found[5, 6, 7]["merged_from"] == source
        assert found[8, 9, 10, 11]["engine"] == "lanes"


def test_records_that_contradict_are_reported_and_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    here, there = store(tmp_path / "here", range(10)), store(tmp_path / "there", range(8, 12), t_c=120)
    assert main(["store", "merge", str(there), "--out", str(here), "--json"]) == 2
    out, err = capsys.readouterr()
    told = json.loads(out)
    assert (told["added"], told["known"]) == (2, 0)
    (conflict,) = told["conflicts"]
    assert (conflict["setup_id"], conflict["engine"], conflict["seed"]) == ("4f2a", "lanes", 0)
    assert conflict["runs"] == [8, 9]
    assert err.startswith("paritylab: error: 2 conflicts")
    assert len(err.splitlines()) == 1
    kept = Store(here / "store").records("4f2a", "lanes", 0)
    np.testing.assert_array_equal(kept.t_c, [100] * 10 + [120] * 2)


def test_an_id_that_stands_for_two_setups_is_a_conflict(tmp_path: Path) -> None:
    here = store(tmp_path / "here", range(3))
    Store(tmp_path / "there").append("4f2a", '{"n": 31}', "lanes", 0, records(range(3, 5)))
    done = merge(here, [tmp_path / "there"])
    assert done.added == 0
    assert done.conflicts[0]["runs"] == [3, 4]
    assert "differs from the one" in done.conflicts[0]["why"]


def test_curves_are_copied_once_and_compared_after(tmp_path: Path) -> None:
    here, there = store(tmp_path / "here", range(1)), store(tmp_path / "there", range(1))
    (there / "kept").mkdir()
    file = there / "kept" / "curves-1.npz"
    curves = {"loss": np.array([1.0, np.nan]), "engine": np.array("jax"), "seconds": np.array(2.0)}
    save_arrays(file, curves)
    assert merge(here, [there]).curves == 1
    save_arrays(file, curves | {"seconds": np.array(3.0)})
    nothing = {"added": 0, "curves": 0, "counts": 0, "networks": 0, "conflicts": []}
    assert merge(here, [there]).to_dict() == nothing | {"known": 1}
    save_arrays(file, curves | {"loss": np.array([1.0, 2.0])})
    assert merge(here, [there]).conflicts == [{"file": "curves-1.npz", "why": "the curves differ"}]
    assert np.isnan(load_arrays(here / "kept" / "curves-1.npz")["loss"][1])


KEPT = {"curves-1": "kept", "counts-1": "campaign", "4f2a-0-3": "."}


def elsewhere(folder: Path, name: str) -> Path:
    """A folder with records, and a file of the kind that ``name`` begins with."""
    file = store(folder, range(1)) / KEPT[name] / f"{name}.npz"
    save_arrays(file, {"loss": np.array([1.0, np.nan]), "engine": np.array("jax"), "seconds": np.array(2.0)})
    return file


@pytest.mark.parametrize("name", KEPT)
def test_a_damaged_file_elsewhere_is_noted_and_the_rest_is_merged(name: str, tmp_path: Path) -> None:
    here, file = tmp_path / "here", elsewhere(tmp_path / "there", name)
    data = file.read_bytes()
    for damaged in (data[:50], b"", data.replace(b"P", b"Q"), data[:40] + b"\xff" + data[41:]):
        file.write_bytes(damaged)
        with pytest.warns(KeptWarning, match=f"not used: .*{name}.npz is damaged"):
            done = merge(here, [tmp_path / "there"])
        assert (done.added + done.known, done.curves, done.counts, done.conflicts) == (1, 0, 0, [])
    assert not list(here.rglob("*.npz"))


@pytest.mark.parametrize("name", ["curves-1", "counts-1"])
def test_a_damaged_file_here_is_noted_and_replaced(name: str, tmp_path: Path) -> None:
    here, file = tmp_path / "here", elsewhere(tmp_path / "there", name)
    assert merge(here, [tmp_path / "there"]).conflicts == []
    target = here / KEPT[name] / file.name
    sound = target.read_bytes()
    target.write_bytes(sound[:40] + b"\xff" + sound[41:])
    with pytest.warns(KeptWarning, match=f"not used: {target} is damaged"):
        done = merge(here, [tmp_path / "there"])
    assert (done.curves + done.counts, done.conflicts) == (1, [])
    assert np.isnan(load_arrays(target)["loss"][1])


@pytest.mark.parametrize("name", ["nowhere", "empty", "here", "here/store"])
def test_folders_without_records_or_the_target_itself_are_refused(name: str, tmp_path: Path) -> None:
    store(tmp_path / "here", range(2))
    (tmp_path / "empty").mkdir()
    with pytest.raises(InvalidInput):
        merge(tmp_path / "here", [tmp_path / name])


def test_a_damaged_block_elsewhere_is_noted_and_not_merged(tmp_path: Path) -> None:
    here, there = store(tmp_path / "here", range(2)), store(tmp_path / "there", range(5))
    (block,) = there.glob("store/blocks/*.parquet")
    data = bytearray(block.read_bytes())
    data[len(data) // 2] ^= 1
    block.write_bytes(data)
    with pytest.warns(UserWarning, match="is damaged"):
        assert merge(here, [there]).added == 0


def test_losses_that_are_not_numbers_agree_with_each_other(tmp_path: Path) -> None:
    here = store(tmp_path / "here", range(2))
    there = Store(tmp_path / "there")
    there.append("4f2a", TEXT, "lanes", 0, replace(records(range(2)), loss=np.array([np.nan, 0.5])))
    assert merge(here, [tmp_path / "there"]).conflicts[0]["runs"] == [1]
