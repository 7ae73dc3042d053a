"""Stores that 0.1.0 wrote are read as they are and brought over by the next write, whatever happens meanwhile.

``data/store-0.1.0`` was written by that version; ``data/store-0.1.0.json`` says what is in it.
"""

from __future__ import annotations

import json
import os
import shutil
import warnings
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from blocks import block, same
from old_stores import write_old

import paritylab
from paritylab.cli import main
from paritylab.storage.records import COLUMNS, Records
from paritylab.storage.store import Store, StoreWarning

DATA = Path(__file__).parent / "data"
SAID = json.loads((DATA / "store-0.1.0.json").read_text())


class Killed(BaseException):
    """Stands for the end of the process."""


@pytest.fixture(autouse=True)
def _warnings_are_errors():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return shutil.copytree(DATA / "store-0.1.0", tmp_path / "store")


def everything(root: Path) -> bool:
    """Whether a store has all that the old one had."""
    store = Store(root)
    for name, columns in SAID["records"].items():
        setup_id, engine, seed = name.split()
        wanted = [np.array([np.nan if value is None else value for value in columns[each]]) for each in COLUMNS]
        if not same(store.records(setup_id, engine, int(seed)), Records(*wanted)):
            return False
    return store.texts() == SAID["setups"] and len(store.gather().records) == sum(
        len(columns["run"]) for columns in SAID["records"].values())


def test_an_old_store_is_read_as_it_is(root, capsys):
    files = sorted(root.rglob("*"))
    assert everything(root)
    store = Store(root)
    for name in SAID["records"]:
        setup_id, engine, seed = name.split()
        assert (engine, int(seed)) in store.series(setup_id)
    assert sorted(store.frame().collect()["lr"].unique()) == [0.1, 0.5]
    assert main(["results", "--out", str(root.parent), "--json", "--where", "lr == 0.1"]) == 0
    assert [row["runs"] for row in json.loads(capsys.readouterr().out)["results"]] == [9, 4]
    assert sorted(root.rglob("*")) == files


def test_compaction_brings_it_over_with_its_origin(root):
    Store(root).compact()
    assert {path.name for path in root.iterdir()} == {"blocks", "setups"}
    assert everything(root)
    (path,) = (root / "blocks").iterdir()
    (origin,) = pl.read_parquet(path)["origin"].unique()
    assert json.loads(pl.read_parquet_metadata(path)[f"paritylab.origin.{origin}"]) == {"version": "0.1.0"}


def test_the_next_write_brings_it_over(root):
    setups = [paritylab.Setup.from_json(text) for text in SAID["setups"].values()]
    results = paritylab.sweep(setups, 7, engine="jax", store=Store(root), any_arithmetic=True)
    assert sum(result.reused for result in results) == 13
    assert {path.name for path in root.iterdir()} == {"blocks", "setups"}
    assert Store(root).texts() == SAID["setups"]


@pytest.mark.parametrize("call", ["fsync", "replace", "unlink", "rmdir"])
@pytest.mark.parametrize("count", range(6))
def test_killed_midway_nothing_is_lost(root, monkeypatch, call, count):
    real, calls = getattr(os, call), []

    def dying(*arguments, **options):
        calls.append(arguments)
        if len(calls) > count:
            raise Killed
        return real(*arguments, **options)

    monkeypatch.setattr(os, call, dying)
    try:
        Store(root).compact()
    except Killed:
        assert len(calls) == count + 1
    monkeypatch.undo()
    assert everything(root)
    Store(root).compact()
    assert everything(root)
    assert {path.name for path in root.iterdir()} == {"blocks", "setups"}


def test_what_cannot_be_trusted_stays_where_it_is(root):
    damaged, setup = next(root.glob("*/jax-7-*.parquet")), next(root.glob("067c*/setup.json"))
    for path in (damaged, setup):
        path.write_bytes(path.read_bytes()[:-1])
    store = Store(root)
    with pytest.warns(StoreWarning, match="is damaged") as caught:
        store.compact()
    assert {path for path in (damaged, setup) for each in caught if str(path) in str(each.message)} == {damaged, setup}
    assert {path for path in root.rglob("*") if path.is_file() and path.parent.name not in ("blocks", "setups")} == {
        damaged, setup, damaged.parent / "setup.json"}
    assert len(store.records("fd65b247646e8c21", "jax", 0)) == 9
    assert len(store.records("067c98033b5792c0", "jax", 0)) == 6
    assert set(store.texts()) == {"fd65b247646e8c21"}
    store.append("067c98033b5792c0", SAID["setups"]["067c98033b5792c0"], "jax", 9, block(0))
    assert store.texts() == SAID["setups"]


def test_records_that_contradict_each_other_stay_too(root):
    setup = paritylab.Setup.from_json(SAID["setups"]["067c98033b5792c0"])
    other = Store(root).records(setup.id, "jax", 0)
    write_old(root, setup, "jax", 0, Records(other.run, other.status, other.t_c, other.steps, other.accuracy,
                                             other.loss + 1))
    with pytest.warns(StoreWarning, match="not brought over"):
        Store(root).compact()
    assert len(list((root / setup.id).glob("*.parquet"))) == 2
    assert len(Store(root).records("fd65b247646e8c21", "jax", 0)) == 9


def test_a_store_that_cannot_be_written_is_read_as_it_is(root, monkeypatch):
    def refused(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "replace", refused)
    with pytest.warns(StoreWarning, match="cannot be compacted: Permission denied"):
        Store(root).compact()
    monkeypatch.undo()
    assert everything(root)


def test_two_processes_bring_it_over_at_once(root, monkeypatch):
    first, second, write = Store(root), Store(root), Store._keep

    def meanwhile(self, texts):
        write(self, texts)
        if self is first:
            second.compact()

    monkeypatch.setattr(Store, "_keep", meanwhile)
    first.compact()
    assert everything(root)


def test_large_series_have_blocks_of_their_own(tmp_path, monkeypatch):
    monkeypatch.setattr("paritylab.storage.legacy.BATCH_RECORDS", 25)
    setups = [paritylab.Setup(paritylab.Parity(n, 2)) for n in (8, 9, 10)]
    for setup, count in zip(setups, (30, 10, 10), strict=True):
        write_old(tmp_path, setup, "jax", 0, block(0, count))
    written = Store(tmp_path)._bring_over(None)
    assert len(written) in (2, 3)  # how the others are grouped depends on the order of the ids
    assert setups[0].id in {path.name.partition("-")[0] for path in written}
    for setup, count in zip(setups, (30, 10, 10), strict=True):
        assert same(Store(tmp_path).records(setup.id, "jax", 0), block(0, count))
