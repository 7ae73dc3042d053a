"""Grids of Setups by the names of their parameters, and sweeps as tables."""

from __future__ import annotations

import json

import numpy as np
import pytest

import paritylab as pl
from paritylab import plots
from paritylab.errors import InvalidInput
from paritylab.setups.parameters import flattened
from paritylab.setups.setup import encode
from paritylab.statistics.results import answer


def test_every_combination_comes_once_the_last_name_fastest():
    setups = pl.grid(problem=pl.Parity(8, 2), width=[4, 8], lr=[0.1, 0.5], batch=16, max_steps=50)
    assert [(setup.learner.network.width, setup.learner.optimiser.lr) for setup in setups] == [
        (4, 0.1), (4, 0.5), (8, 0.1), (8, 0.5)]
    assert {(setup.learner.batch, setup.protocol.max_steps) for setup in setups} == {(16, 50)}
    assert setups[0].learner.network is setups[1].learner.network
    same = pl.Setup(pl.Parity(8, 2), pl.Learner(pl.MLP(8), optimiser=pl.SGD(0.1), batch=16), pl.Protocol(50))
    assert setups[2].id == same.id


def test_values_are_those_that_tables_show():
    wanted = {"n": 12, "k": 3, "noise": 0.1, "width": 6, "activation": "relu", "loss": "square", "lr": 0.25,
              "optimiser_noise": 0.5, "batch": 8, "eval_size": 64, "momentum": 0.5}
    (setup,) = pl.grid(**wanted)
    found = flattened(json.loads(setup.to_json()))
    assert {name: found[name] for name in wanted} == wanted


def test_parts_may_vary_and_learners_be_given():
    setups = pl.grid(problem=[pl.Parity(8, 2), pl.LeakyParity(8, 2)], optimiser=[pl.SGD(), pl.Adam()], lr=[0.1, 0.2])
    assert len({setup.id for setup in setups}) == 8
    learner = pl.Learner(pl.MLP(5), loss="square", batch=7)
    (setup,) = pl.grid(problem=pl.Parity(8, 2), learner=learner, lr=3)
    assert (setup.learner.network.width, setup.learner.loss.spec, setup.learner.batch) == (5, "square", 7)
    assert setup.learner.optimiser.lr == 3
    assert [setup.learner.optimiser.lr for setup in pl.grid(n=8, k=2, lr=np.array([0.5, 1.0]))] == [0.5, 1.0]
    assert pl.grid(n=8, k=2, support=(1, 3))[0].problem.support == (1, 3)


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({"widht": 3}, "did you mean 'width'?"), ({"n": 8, "k": 2, "lr": []}, "lr has no values"),
        ({"n": 8, "k": 2, "network": pl.PolyNet(2), "width": 3}, "cannot be given"), ({"n": 8}, "needs k"),
        ({"n": 8, "k": 2, "batch": 0}, "at least 1"), ({"n": range(10**6), "k": 2, "lr": [0.1] * 10**4}, "this grid"),
    ],
)
def test_what_cannot_be_is_refused(values, why):
    with pytest.raises(InvalidInput) as caught:
        pl.grid(**values)
    assert why in str(caught.value)


@pytest.mark.long
def test_a_sweep_is_a_table_and_a_figure(tmp_path):
    setups = pl.grid(problem=pl.Parity(8, 2), width=[4, 8], lr=[0.2, 0.5], batch=8, max_steps=200, eval_size=32)
    results = pl.sweep(setups, 5, engine="jax", store=pl.Store(tmp_path))
    table = results.to_frame()
    assert table.select("width", "lr", "runs").rows() == [(4, 0.2, 5), (4, 0.5, 5), (8, 0.2, 5), (8, 0.5, 5)]
    assert table["setup_id"].to_list() == [setup.id for setup in setups]
    for row, result in zip(table.iter_rows(named=True), results, strict=True):
        assert (row["median"], row["median_low"]) == (result.summary.median, result.summary.median_interval[0])
    rows = results.to_frame(records=True)
    assert rows.height == 20
    assert {"learner_loss", "loss", "lr", "run"} <= set(rows.columns)
    assert table.drop("solved_fraction").equals(
        answer(pl.Store(tmp_path)).join(table.select("setup_id"), on="setup_id", how="right")
        .select(table.columns).drop("solved_fraction"))
    figure = plots.lines(table, "lr", "max_horizon", by="width")
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["width = 4", "width = 8"]
    for arguments, why in (((table, "lr"), "several rows"), ((table, "zz"), "unknown column"),
                           ((table, "network"), "not a column of numbers")):
        with pytest.raises(InvalidInput, match=why):
            plots.lines(*arguments)


def test_no_results_are_a_table_too():
    assert pl.sweep([], 5).to_frame().height == 0


def test_the_fast_way_to_canonical_json_is_the_plain_one():
    problems = [pl.Parity(8, 2), pl.Parity(8, 2, noise=0.1, support=(1, 3)), pl.Problem(12, "majority:5", "biased:0.3"),
                pl.Polynomial(8, terms=[(1.5, (0, 1)), (2, (3,))]), pl.LeakyParity(9, 2), pl.Parity(8, 2, sample=50)]
    learners = [pl.Learner(), pl.Learner(pl.Transformer(), optimiser=pl.Adam(0.1)),
                pl.Learner(pl.PolyNet(2), "kaiming", "square"),
                pl.Learner(optimiser=pl.SGD(1.0, momentum=0.5, schedule="linear:100"))]
    for setup in (pl.Setup(problem, learner) for problem in problems for learner in learners):
        plain = json.dumps({"conventions": 1, **encode(setup)}, sort_keys=True, separators=(",", ":"))
        assert setup._plain is not None
        assert setup.to_json() == plain
    own = pl.Setup(pl.Parity(8, 2), pl.Learner(loss=lambda f, y: (f - y) ** 2))
    assert own._plain is None
    assert own.functions
