"""The public API: arguments that explain themselves, Results that show themselves, and doors for others."""

from __future__ import annotations

import copy
import inspect
import pickle
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib import metadata
from typing import Any

import numpy as np
import pytest

import paritylab as pl
from paritylab import engines
from paritylab.engines import registry
from paritylab.engines.jax_engine import JaxEngine, JaxPool
from paritylab.setups.losses import Loss
from paritylab.setups.networks.activations import Activation
from paritylab.setups.schedules import Schedule

FUNCTIONS: tuple[Callable[..., Any], ...] = (
    pl.measure, pl.sweep, pl.race, pl.curves, pl.compare, pl.alignment, pl.crew
)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_every_argument_is_named_typed_and_documented(function: Callable[..., Any]) -> None:
    signature = inspect.signature(function)
    for name, parameter in signature.parameters.items():
        assert parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL), name
        assert parameter.annotation not in (parameter.empty, "Any"), name
        assert f"        {name}: " in (function.__doc__ or ""), name
    for name in {"seed", "engine", "threads", "store", "progress"} & set(signature.parameters):
        assert signature.parameters[name].kind is inspect.Parameter.KEYWORD_ONLY, name


@pytest.fixture(scope="module")
def result() -> pl.Result:
    return pl.measure(pl.Parity(n=8, k=2), protocol=pl.Protocol(max_steps=60, eval_size=128), runs=20, engine="jax")


def test_a_result_is_short_in_a_terminal(result: pl.Result) -> None:
    assert repr(result).startswith(f"<Result {result.setup.id}, {engines.label('jax')}, seed 0: solved ")
    assert len(repr(result)) < 300
    (entry,) = pl.race([result.setup], runs=5, engine="jax").rates
    assert repr(entry).startswith("<Entry ")


def html(result: pl.Result) -> str:
    """As a notebook asks for it."""
    return str(getattr(result, "_repr_html_")())  # noqa: B009


def test_a_result_shows_itself_in_a_notebook(result: pl.Result) -> None:
    shown = html(result)
    assert shown.startswith("<table>")
    assert "parity: k 2, n 8" in shown
    assert "<svg" in shown
    assert "<script" not in shown
    empty = pl.measure(pl.Parity(n=8, k=2), runs=0, engine="jax")
    assert "no runs" in html(empty)


def test_a_result_is_a_frame(result: pl.Result) -> None:
    frame = result.to_frame()
    assert frame.columns == ["run", "status", "t_c", "steps", "accuracy", "loss"]
    assert frame["run"].to_list() == list(range(20))
    unsolved = frame.filter(frame["status"] != "solved")
    assert unsolved["t_c"].null_count() == len(unsolved) == 20 - result.summary.solved


# --- names that are others' -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("learner", [
    lambda: pl.Learner(init=replace(pl.inits.gaussian(), scale=pl.inits.rademacher().sample)),
    lambda: pl.Learner(init=replace(pl.inits.init("mirrored kaiming"), mirrored=False)),
    lambda: pl.Learner(loss=Loss("hinge", lambda f, y: f)),
    lambda: pl.Learner(loss=Loss("of my own", lambda f, y: f)),
    lambda: pl.Learner(pl.MLP(10, Activation("relu", np.tanh))),
    lambda: pl.Learner(optimiser=pl.SGD(schedule=Schedule("constant", lambda t: 0.5))),
])
def test_what_goes_by_anothers_name_is_refused(learner: Callable[[], pl.Learner]) -> None:
    """It would have the other's id, and share its records."""
    with pytest.raises(pl.InvalidInput, match=r"named .* must be the built-in one; pass your function itself"):
        learner()


@pytest.mark.parametrize("spec", ["torch", "xavier", "kaiming", "gaussian", "mirrored kaiming", "fixed:3 torch",
                                  "released discrete:-2,-1,1,2", "mean-field:0.3", "sparse-rademacher:0.5"])
def test_a_copy_is_what_its_name_says(spec: str) -> None:
    law = pl.inits.init(spec)
    for again in (copy.copy(law), pickle.loads(pickle.dumps(law))):
        assert pl.Learner(init=again).init == law
        assert not again.is_own


# --- engines of others ------------------------------------------------------------------------------------------------


class OtherEngine(JaxEngine):
    """Trains as ``jax`` does, and only parities of two bits."""

    name = "other"
    pools = 0

    def refusal(self, setup: pl.Setup) -> str | None:
        return None if setup.problem.k == 2 else "it has two bits only"

    def label(self) -> str:
        return "other"

    def pool(self, program: pl.Setup, runs: int, threads: int | None = None, slots: int | None = None,
             keep_params: bool = False) -> JaxPool:
        type(self).pools += 1
        return super().pool(program, runs, threads, slots, keep_params)


class Entry:
    """An entry point that loads something."""

    name = "other"
    module = __name__

    def __init__(self, found: Callable[[], Any]) -> None:
        self.load = lambda: found


@pytest.fixture
def another(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    entries = [Entry(OtherEngine), Entry(lambda: 1 / 0)]

    def found(group: str) -> list[Entry]:
        return entries if group == registry.GROUP else []

    monkeypatch.setattr(metadata, "entry_points", found)
    registry.engines.cache_clear()
    yield
    monkeypatch.undo()
    registry.engines.cache_clear()


def test_an_engine_of_others_is_chosen_where_it_can_and_a_bad_one_is_noted(another: None) -> None:
    with pytest.warns(engines.EngineNotice, match="engine other, not used: division by zero"):
        assert registry.names() == ("auto", "jax", "lanes", "other", "warps")
    setups = [pl.Setup(pl.Parity(8, k), protocol=pl.Protocol(max_steps=40, eval_size=64)) for k in (2, 3)]
    assert [engines.choose(setup) == "other" for setup in setups] == [True, False]
    results = pl.sweep(setups, 4)
    code = results[0].engine.removeprefix("other_2_")
    assert len(code) == 12  # a digest of its code, which curves and params are kept under too
    assert engines.known("other") == f"other_2_{code}"
    assert results[1].engine != "other"
    assert OtherEngine.pools == 1
    alone = pl.sweep(setups[:1], 4, engine="jax")[0]
    assert np.array_equal(alone.records.t_c, results[0].records.t_c)
    with pytest.raises(pl.InvalidInput, match="engine 'other' cannot train this: it has two bits only"):
        engines.choose(setups[1], "other")


def test_a_built_in_engine_that_another_package_has_changed_is_known_by_that_package(
    monkeypatch: pytest.MonkeyPatch
) -> None:
    def changed() -> JaxEngine:
        made = JaxEngine()
        made.name = "changed"
        return made

    def found(group: str) -> list[Entry]:
        return [Entry(changed)]

    monkeypatch.setattr(metadata, "entry_points", found)
    registry.engines.cache_clear()
    try:
        assert re.fullmatch("changed_2_[0-9a-f]{12}", engines.label("changed"))
    finally:
        monkeypatch.undo()
        registry.engines.cache_clear()
