"""The Store keeps what was appended, and says what is damaged or cannot be written."""

from __future__ import annotations

import errno
import hashlib
import io
import json
import os
import tempfile
import warnings
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from blocks import SETUP, block, filled, same
from hypothesis import given, settings
from hypothesis import strategies as st

from paritylab.errors import InvalidInput
from paritylab.storage.records import COLUMNS, STATUSES, Records
from paritylab.storage.store import Store, StoreConflict, StoreError, StoreWarning


def named_by_digest(path: Path, data: bytes) -> Path:
    digest = hashlib.blake2b(data, digest_size=16).hexdigest()
    target = path.with_name(f"abc-jax-0-0-{digest}.parquet")
    target.write_bytes(data)
    return target


@pytest.fixture(autouse=True)
def _warnings_are_errors():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


# --- what goes in comes out ---------------------------------------------------------------------------------

rows = st.lists(
    st.tuples(
        st.integers(0, 2**63 - 1),
        st.integers(0, 2),
        st.integers(0, 2**62),
        st.integers(0, 2**62),
        st.floats(width=32),
        st.floats(width=32),
    ),
    min_size=1,
    max_size=20,
    unique_by=lambda row: row[0],
)


@settings(max_examples=40, deadline=None)
@given(rows=rows, cut=st.integers(1, 20), shuffle=st.randoms(use_true_random=False))
def test_any_records_come_back_sorted_whatever_the_blocks_and_their_order(rows, cut, shuffle):
    run, status, t_c, steps, accuracy, loss = (np.array(column) for column in zip(*rows, strict=True))
    records = Records(run, status, np.where(status == 0, t_c, -1), steps, accuracy, loss)
    pieces = [
        records.take(np.arange(start, min(start + cut, len(rows)))) for start in range(0, len(rows), cut)
    ]
    shuffle.shuffle(pieces)
    with tempfile.TemporaryDirectory() as root:
        store = Store(root)
        for piece in [*pieces, pieces[0]]:
            store.append("abc", SETUP, "jax", 7, piece)
        expected = records.take(np.argsort(run))
        assert same(store.records("abc", "jax", 7), expected)
        store.compact()
        assert same(store.records("abc", "jax", 7), expected)
        assert np.array_equal(store.runs("abc", "jax", 7), expected.run)


def test_an_absent_store_is_empty(tmp_path):
    store = Store(tmp_path / "nowhere")
    assert len(store.records("abc", "jax", 0)) == 0
    assert store.runs("abc", "jax", 0).tolist() == []
    assert store.frame().collect().is_empty()
    assert list(store.frame().collect_schema()) == ["setup_id", "engine", "seed", *COLUMNS]
    assert list(store.setups()) == []
    assert store.compact() == []
    assert not store.root.exists()


def test_series_are_kept_apart_and_the_frame_holds_them_all(tmp_path):
    store = Store(tmp_path)
    for setup_id, engine, seed in [("a", "jax", 0), ("a", "jax", 1), ("a", "lanes", 0), ("b", "jax", 0)]:
        store.append(setup_id, f'{{"id":"{setup_id}"}}', engine, seed, block(0, 4))
    assert len(store.records("a", "jax", 1)) == 4
    frame = store.frame().collect()
    assert frame.height == 16
    assert frame["status"].dtype == pl.Enum(STATUSES)
    assert frame["t_c"].null_count() == 4 * 2
    assert store.frame("a").collect().height == 12
    assert store.frame(engine="lanes").select("setup_id", "engine", "seed").unique().collect().rows() == [
        ("a", "lanes", 0)
    ]
    assert list(store.setups()) == [("a", {"id": "a"}), ("b", {"id": "b"})]


@pytest.mark.parametrize(
    "runs", [range(3, 17), range(0, 20, 7), range(19, -1, -3), range(5, 5), range(10**15)]
)
def test_a_range_selects_its_runs(tmp_path, runs):
    store, _ = filled(tmp_path, 0, 10)
    assert store.records("abc", "jax", 0, runs).run.tolist() == [run for run in range(20) if run in runs]


def test_every_file_says_what_it_holds(tmp_path):
    _, (path,) = filled(tmp_path, 30)
    assert path.name.startswith("abc-jax-0-30-")
    stamp = pl.read_parquet_metadata(path)
    assert stamp["paritylab.format"] == "1"
    assert (stamp["paritylab.setup_id"], stamp["paritylab.engine"], stamp["paritylab.seed"]) == (
        "abc",
        "jax",
        "0",
    )
    (made,) = pl.read_parquet(path)["origin"].unique()
    about = json.loads(stamp[f"paritylab.origin.{made}"])
    assert about.keys() >= {"paritylab", "engine", "build", "processor", "libraries", "time"}


def test_a_million_records_in_many_blocks_are_read(tmp_path):
    store = Store(tmp_path)
    for first in range(0, 10**6, 50_000):
        store.append("abc", SETUP, "jax", 0, block(first, 50_000))
    assert len(store.records("abc", "jax", 0)) == 10**6


# --- duplicates and conflicts -------------------------------------------------------------------------------


def test_identical_duplicates_are_dropped_nan_included(tmp_path):
    store, _ = filled(tmp_path, 0, 5, 0)
    assert same(store.records("abc", "jax", 0), block(0, 15))
    assert store.frame().collect().height == 15


def test_duplicates_that_differ_raise_and_name_the_files(tmp_path):
    store, (first, _) = filled(tmp_path, 0, 20)
    other = block(5)
    other.loss[1] += 1
    second = store.append("abc", SETUP, "jax", 0, other)
    for read in (lambda: store.records("abc", "jax", 0), lambda: store.gather()):
        with pytest.raises(StoreConflict, match="run 6 ") as caught:
            read()
        assert first.name in str(caught.value)
        assert second.name in str(caught.value)
    with pytest.warns(StoreWarning, match="not merged: .* run 6 "):
        store.compact()
    assert first.exists()
    assert second.exists()


def test_another_setup_under_the_same_id_is_refused(tmp_path):
    store, _ = filled(tmp_path, 0)
    with pytest.raises(StoreConflict, match="differs from"):
        store.append("abc", '{"n":31}', "jax", 0, block(10))


# --- damage -------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_every_flipped_bit_is_noticed(tmp_path):
    _, (path,) = filled(tmp_path, 0)
    data = path.read_bytes()
    for position in range(len(data)):
        damaged = bytearray(data)
        damaged[position] ^= 1 << (position % 8)
        path.write_bytes(damaged)
        with pytest.warns(StoreWarning, match="is damaged"):
            assert len(Store(tmp_path).records("abc", "jax", 0)) == 0


def damage_truncated(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def damage_zero_bytes(path: Path) -> None:
    path.write_bytes(b"")


def damage_foreign_name(path: Path) -> None:
    path.rename(path.with_name("results.parquet"))


def damage_foreign_contents(path: Path) -> None:
    path.unlink()
    named_by_digest(path, b"these are not the records you are looking for")


def damage_foreign_parquet(path: Path) -> None:
    path.unlink()
    buffer = io.BytesIO()
    pl.DataFrame({"a": [1]}).write_parquet(buffer)
    named_by_digest(path, buffer.getvalue())


def rewrite(path: Path, frame: pl.DataFrame, **changes: str) -> None:
    stamp = {
        name: text for name, text in pl.read_parquet_metadata(path).items() if name.startswith("paritylab")
    }
    stamp |= {f"paritylab.{name}": text for name, text in changes.items()}
    buffer = io.BytesIO()
    frame.write_parquet(buffer, metadata=stamp)
    path.unlink()
    named_by_digest(path, buffer.getvalue())


def damage_newer_format(path: Path) -> None:
    rewrite(path, pl.read_parquet(path), format="3")


def damage_other_setup(path: Path) -> None:
    rewrite(path, pl.read_parquet(path), setup_id="xyz")


def damage_other_columns(path: Path) -> None:
    rewrite(path, pl.read_parquet(path).drop("loss"))


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (damage_truncated, "is damaged"),
        (damage_zero_bytes, "is damaged"),
        (damage_foreign_name, "not named like a file"),
        (damage_foreign_contents, "not used"),
        (damage_foreign_parquet, "not written by paritylab"),
        (damage_newer_format, "is in format 3"),
        (damage_other_setup, "belongs elsewhere"),
        (damage_other_columns, "other columns"),
    ],
)
def test_a_file_that_cannot_be_trusted_is_reported_once_by_name_and_left_alone(tmp_path, damage, reason):
    store, (path, *_) = filled(tmp_path, 0, 10, 20)
    damage(path)
    files = {file: file.read_bytes() for file in path.parent.iterdir()}
    with pytest.warns(StoreWarning, match=reason) as caught:
        assert store.runs("abc", "jax", 0).tolist() == list(range(10, 30))
    assert len(caught) == 1
    assert any(str(file) in str(caught[0].message) for file in files)
    assert same(store.records("abc", "jax", 0), block(10, 20))  # a second warning would be an error here
    assert {file: file.read_bytes() for file in path.parent.iterdir()} == files
    store.compact()
    assert same(store.records("abc", "jax", 0), block(10, 20))


def test_damaged_setups_are_reported_left_alone_and_written_anew(tmp_path):
    store, _ = filled(tmp_path, 0)
    (path,) = (tmp_path / "setups").iterdir()
    store.append("other", SETUP, "jax", 0, block(0))
    path.write_bytes(path.read_bytes()[:-9])
    again = Store(tmp_path)
    with pytest.warns(StoreWarning, match="is damaged") as caught:
        assert list(again.setups()) == [("other", {"n": 30})]
    assert len(caught) == 1
    assert same(again.records("abc", "jax", 0), block(0))
    again.append("abc", SETUP, "jax", 0, block(10))
    assert list(again.setups()) == [("abc", {"n": 30}), ("other", {"n": 30})]
    assert path.exists()


# --- what cannot be written ---------------------------------------------------------------------------------


def test_a_file_in_place_of_the_root_is_an_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="is not a directory"):
        Store(tmp_path / "file")
    with pytest.raises(StoreError, match="Not a directory"):
        Store(tmp_path / "file" / "below").append("abc", SETUP, "jax", 0, block(0))


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EACCES, errno.EROFS])
@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_write_that_fails_is_one_clear_line_and_leaves_nothing(tmp_path, monkeypatch, code, call):
    store, _ = filled(tmp_path, 0)
    before = sorted(tmp_path.rglob("*"))

    def fail(*_: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, call, fail)
    with pytest.raises(StoreError) as caught:
        store.append("abc", SETUP, "jax", 0, block(10))
    assert str(caught.value) == f"cannot write to the store at {tmp_path}: {os.strerror(code)}"
    monkeypatch.undo()
    assert sorted(tmp_path.rglob("*")) == before
    assert same(store.records("abc", "jax", 0), block(0))


@pytest.mark.parametrize(
    "change",
    [
        {"setup_id": "../elsewhere"},
        {"engine": "jax-2"},
        {"seed": -1},
        {"records": Records.empty()},
        {"records": Records([0], [0], [-1], [5], [1], [0])},
        {"records": Records([0], [1], [3], [5], [1], [0])},
        {"records": Records([0], [3], [-1], [5], [1], [0])},
        {"records": Records([-1], [1], [-1], [5], [1], [0])},
    ],
)
def test_what_could_not_be_read_back_is_refused(tmp_path, change):
    good = {"setup_id": "abc", "setup_json": SETUP, "engine": "jax", "seed": 0, "records": block(0)}
    with pytest.raises(InvalidInput):
        Store(tmp_path).append(**(good | change))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("text", ["[]", '{"n":', "7"])
def test_a_setup_that_is_no_object_is_refused(tmp_path, text):
    with pytest.raises(InvalidInput):
        Store(tmp_path).append("abc", text, "jax", 0, block(0))
    assert list(tmp_path.rglob("*.parquet")) == []
