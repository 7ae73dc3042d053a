"""The same id means the same computation: every change of what a user's function computes is another id, or refused."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import ways

import paritylab as pl
from paritylab.setups import ids
from paritylab.storage.store import StoreWarning

FIRST, SECOND = 0.5, 1.5


def changes(kind: str, name: str) -> None:
    make = ways.WAYS[name]
    first, second, again = (ways.identified(kind, make, c) for c in (FIRST, SECOND, FIRST))
    assert not first.startswith("refused")
    assert first == again
    assert first != second


@pytest.mark.parametrize(("name", "kind"), ways.spread())
def test_a_change_is_another_id_and_going_back_the_same(name: str, kind: str) -> None:
    changes(kind, name)


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("kind", ways.KINDS)
@pytest.mark.parametrize("name", ways.WAYS)
def test_that_holds_for_every_way_and_kind(name: str, kind: str) -> None:
    changes(kind, name)


@pytest.mark.parametrize(("name", "kind"), [(name, kind) for i, name in enumerate(ways.IMPURE)
                                           for kind in list(ways.KINDS)[i % 3 :: 3]])
def test_what_is_not_a_function_of_its_arguments_is_refused_in_one_line(name: str, kind: str) -> None:
    said = ways.identified(kind, lambda c: ways.IMPURE[name], FIRST)
    assert said.startswith("refused: ")
    assert "pl.named(" in said
    assert "\n" not in said


def test_ids_are_those_of_another_process() -> None:
    environment = {**os.environ, "PYTHONHASHSEED": "7"}
    command = [sys.executable, "-W", "ignore", str(Path(ways.__file__))]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    there = json.loads(done.stdout)
    assert there == {f"{name}, {kind}": ways.identified(kind, ways.WAYS[name], FIRST) for name, kind in ways.spread()}


# --- what is stored -----------------------------------------------------------------------------------------------


def measured(setup: pl.Setup, store: pl.Store | None = None) -> list[object]:
    (result,) = pl.sweep([setup], runs=3, engine="jax", store=store)
    return [result.setup.id, result.records.digest, result.reused]


@pytest.mark.long
@pytest.mark.parametrize("kind", ways.KINDS)
def test_no_records_of_before_a_change_are_shown_after_it(kind: str, tmp_path: Path) -> None:
    store, make = pl.Store(tmp_path), ways.WAYS["function that reads a global"]
    function = make(FIRST)
    setup = ways.KINDS[kind](function)
    before = measured(setup, store)
    make(SECOND)  # the same Setup, of the same objects
    after = measured(setup, store)
    assert after[2] == 0
    assert after == measured(ways.KINDS[kind](ways.WAYS["captured"](SECOND)))
    assert after[:2] != before[:2]
    make(FIRST)
    assert measured(setup, store) == [*before[:2], 3]


def test_a_setup_that_was_traced_trains_what_was_traced() -> None:
    make = ways.WAYS["function that reads a global"]
    setup = ways.KINDS["loss"](make(FIRST)).now()
    make(SECOND)
    assert measured(setup) == measured(ways.KINDS["loss"](ways.WAYS["captured"](FIRST)))


def test_records_under_ids_of_an_earlier_version_are_left_alone_and_the_store_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = ways.KINDS["loss"](lambda: 0.5).to_json()
    records = pl.Records([0], [0], [2], [2], [1.0], [0.0])
    with monkeypatch.context() as before:
        before.setattr(ids, "TRACED", "")
        pl.Store(tmp_path).append(ids.id_of(text), text, "jax", 0, records)
    store = pl.Store(tmp_path)
    with pytest.warns(StoreWarning, match="has 1 Setups with functions of your own under ids of an earlier"):
        assert store.frame().collect().is_empty()
    store.append(ids.id_of(text), text, "jax", 0, records)
    assert store.frame().collect()["setup_id"].to_list() == [ids.id_of(text)]
