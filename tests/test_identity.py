"""The same id means the same computation: every change of what a user's function computes is another id, or refused."""

from __future__ import annotations

import copy
import json
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest
import ways

import paritylab as pl
from paritylab.setups import identity

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


def test_rules_of_differentiation_that_cannot_be_traced_are_refused_where_training_asks_for_them() -> None:
    """A rule for params, beside something of the inputs that has no derivative."""
    ruled = jax.custom_vjp(lambda params: params)
    ruled.defvjp(lambda params: (params, None), lambda _, g: (2 * g,))

    def bounded(x: Any) -> Any:
        return jax.lax.while_loop(lambda x: jnp.sum(x) > 100.0, lambda x: x / 2, x)

    def network(forward: Any) -> pl.Setup:
        return ways.setup(network=pl.Network(lambda key, n: jax.random.normal(key, (n,)), forward))

    with pytest.raises(pl.InvalidInput, match="rules of differentiation, but no derivative by all its arguments"):
        network(lambda params, x: bounded(x) @ ruled(params)).now()
    assert network(lambda params, x: bounded(x) @ params).id
    assert ways.setup(pl.Problem(4, lambda x: ruled(bounded(x))[:, 0])).id  # nobody asks for its derivative
    assert measured(network(pl.named("bounded v1", lambda params, x: bounded(x) @ ruled(params))))


@pytest.mark.parametrize("kind", ways.KINDS)
def test_training_calls_functions_with_no_other_arguments_than_the_id_knows(kind: str) -> None:
    setup = ways.KINDS[kind](lambda: 0.5).now()
    measured(setup)
    pl.curves(setup, steps=[0, 4], runs=range(2), engine="jax")
    found: list[Any] = []
    identity.mapped(setup, lambda place, it: found.append(it) or it)
    traced = [function for it in found for function in identity.functions_in(it)]
    assert traced
    assert not [function.what for function in traced if function.later]


def test_a_setup_in_another_process_has_the_functions_of_that_process() -> None:
    make = ways.WAYS["function that reads a global"]
    make(FIRST)
    setup = ways.setup(loss=ways.loss_of_a_global)
    known = setup.now()
    for each in (setup, known):
        assert pickle.loads(pickle.dumps(each)) == copy.deepcopy(each) == known
    data = pickle.dumps(known)
    make(SECOND)
    assert pickle.loads(data).id == setup.id != known.id


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
