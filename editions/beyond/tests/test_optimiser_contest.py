"""The comparison of optimisers: how a rate is chosen, what an update costs, the rules of its own, and the command."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from paritylab_beyond.beyond.contest import design, flops, playing, rules, table

import paritylab as pl
from paritylab.cli import main
from paritylab.storage.records import CENSORED, SOLVED, Records

HERE = Path(__file__).parents[1]
PAGES = (HERE / "src" / "paritylab_beyond" / "beyond" / "docs" / "optimisers.md",
         HERE.parents[1] / "docs" / "explanation" / "studies" / "optimisers.md")

QUICK = design.SIZES["quick"]


def records(times: list[float]) -> Records:
    """Runs that were solved at these times, or given up at step 100."""
    t = np.array(times)
    solved = np.isfinite(t)
    status, t_c = np.where(solved, SOLVED, CENSORED), np.where(solved, t, -1)
    return Records(np.arange(len(t)), status, t_c, np.where(solved, t, 100), solved, 0.0 * t_c)


def cell(optimiser: str, times: list[float], **more) -> table.Row:
    each = records(times)
    found = {"rate": 0.1, "place": 1, "tuning_steps": 10, "tuning_medians": np.array([np.inf, 8.0, 9.0]),
             "tuning_solved": np.array([0, 3, 3]), "status": each.status, "t_c": each.t_c, "steps": each.steps,
             "flops": np.array([100.0, 20.0]), "origin": np.array('{"engine": "lanes"}')}
    made = {name: np.asarray(value) for name, value in (found | more).items()}
    return table.row(design.Cell(optimiser, "narrow", 40, 2), made, [0.05, 0.1, 0.2], 100)


# --- how a rate is chosen -------------------------------------------------------------------------------------------


def test_the_choice_is_that_of_a_race_for_the_median():
    rates = [0.02, 0.2, 0.5, 8.0]
    setups = [design.setup(pl.SGD(rate), "narrow", 40, 2, 640) for rate in rates]
    raced = pl.race(setups, q=50, runs=31, seed=1)
    trained = {}

    def train(end: int) -> list[Records]:
        cut = [design.setup(pl.SGD(rate), "narrow", 40, 2, end) for rate in rates]
        trained[end] = [each.records for each in pl.sweep(cut, 31, seed=1)]
        return trained[end]

    place, tried, steps = playing.chosen(train, 640)
    assert raced.best.setup.learner.optimiser.lr == pytest.approx(rates[place])
    assert raced.best.percentile == playing.median(tried[place])
    assert list(trained) == [10, 40, 160][: len(trained)]
    assert steps == max(trained) < 640


def test_equals_go_to_the_smaller_rate_and_most_solved_wins_where_no_median_is_reached():
    nobody, few = records([np.inf] * 5), records([10, 20, np.inf, np.inf, np.inf])
    some = records([10, np.inf, np.inf, np.inf, np.inf])
    assert playing.chosen(lambda end: [nobody, some, few, few], 64)[0] == 2
    assert playing.chosen(lambda end: [nobody, nobody], 64)[::2] == (0, 64)
    half = records([10, 20, 30, np.inf, np.inf])
    place, _, steps = playing.chosen(lambda end: [few, half, half] if end == 64 else [nobody] * 3, 64)
    assert (place, steps) == (1, 64)


def test_a_cell_is_measured_on_fresh_runs():
    asked = []

    def train(setups, runs, seed):
        asked.append((len(setups), runs, seed))
        return [each.records for each in pl.sweep(setups, runs, seed=seed)]

    entrant = design.ENTRANTS["sgd"]
    found = playing.played(entrant, "narrow", 40, 2, [0.25, 0.5], 640, 5, 7, 0, train)
    assert asked[-1] == (1, 7, design.SEED)
    assert {seed for _, _, seed in asked[:-1]} == {design.SEED + 1}
    assert len(found["t_c"]) == 7


# --- what an update costs -------------------------------------------------------------------------------------------


def test_products_loops_and_sums_count_as_the_formula_says():
    a, b = jnp.zeros((3, 4)), jnp.zeros((4, 5))

    def program(a, b):
        def step(x, _):
            return x @ jnp.eye(5) + 1, None

        return jnp.sum(jax.lax.scan(step, a @ b, None, length=7)[0])

    counted = flops.counted(jax.make_jaxpr(program)(a, b).jaxpr)
    eye = 25  # a comparison for each entry of the identity
    assert counted in (2 * 3 * 4 * 5 + 7 * (2 * 3 * 5 * 5 + 15) + 15 + extra for extra in (0, eye, 7 * eye))


@pytest.mark.parametrize(("name", "each"), [("sgd", 2), ("momentum", 4), ("nesterov", 6), ("sign-sgd", 3), ("lion", 9)])
def test_simple_rules_cost_so_many_for_each_weight(name, each):
    setup = design.setup(design.ENTRANTS[name].at(0.1), "narrow", 40, 3, 100)
    assert flops.optimiser_flops(setup) == each * (40 * 10 + 10 + 10 + 1)


# --- rules of its own -----------------------------------------------------------------------------------------------


def test_the_inverse_root_is_that_of_the_eigenvalues():
    g = np.random.default_rng(0).normal(size=(12, 40)) * np.geomspace(1, 0.01, 12)[:, None]
    a = g @ g.T
    values, vectors = np.linalg.eigh(a + rules.RIDGE * np.trace(a) * np.eye(12))
    exact = vectors @ np.diag(values**-0.5) @ vectors.T
    np.testing.assert_allclose(rules.inverse_root(jnp.asarray(a, jnp.float32)), exact, atol=1e-4 * np.abs(exact).max())


@pytest.mark.parametrize("shape", [(4, 9), (9, 4), (5,)])
def test_shampoo_is_what_it_says(shape):
    generator, rule = np.random.default_rng(1), rules.shampoo().transformation
    state, total = rule.init(jnp.zeros(shape)), 0.0
    for _ in range(4):
        g = generator.normal(size=shape)
        update, state = rule.update(jnp.asarray(g, jnp.float32), state)
        if len(shape) == 1:
            total = total + g * g
            exact = -g / np.sqrt(total)
        else:
            wide = shape[0] < shape[1]
            total = total + (g @ g.T if wide else g.T @ g)
            values, vectors = np.linalg.eigh(total + rules.RIDGE * np.trace(total) * np.eye(4))
            root = vectors @ np.diag(values**-0.5) @ vectors.T
            exact = -(root @ g if wide else g @ root)
    np.testing.assert_allclose(update, exact, atol=1e-3)


def test_a_scaled_rule_is_the_rule_at_that_rate():
    rate, params = 0.03, {"w": jnp.array([1.0, -2.0, 0.5])}
    plain, scaled = optax.contrib.schedule_free_adamw(rate), rules.schedule_free().transformation

    def gradient(p):
        return {"w": jnp.sin(3 * p["w"]) + 0.2}

    one, two = params, params
    state, other = plain.init(params), scaled.init(params)
    for _ in range(30):
        updates, state = plain.update(gradient(one), state, one)
        one = optax.apply_updates(one, updates)
        updates, other = scaled.update(gradient(two), other, two)
        two = jax.tree.map(lambda p, u: p + rate * u, two, updates)
    np.testing.assert_allclose(one["w"], two["w"], rtol=1e-4)
    assert not np.allclose(one["w"], params["w"])


# --- the table ------------------------------------------------------------------------------------------------------


def test_what_is_not_reached_has_no_number_and_no_place():
    fast, slow = cell("sgd", [10.0] * 20 + [12.0] * 20), cell("adam", [30.0] * 40)
    never = cell("lion", [10.0] * 5 + [np.inf] * 35, place=0)
    ranked = table.ranked([never, slow, fast], "flops")
    assert [(row["optimiser"], row["place"], row["level"]) for row in ranked] == [
        ("sgd", 1, True), ("adam", 2, False), ("lion", None, False)]
    assert ranked[2]["flops"] is None
    assert ranked[2]["edge"]
    assert ranked[1]["flops"] == 30 * 120
    assert ranked[1]["examples"] == 30 * 32
    told = {row["optimiser"]: row for row in table.standings([never, slow, fast])}
    assert (told["sgd"]["best"], told["adam"]["best"], told["lion"]["reached"]) == (1, 0, 0)
    assert told["adam"]["ratio"] == pytest.approx(30 / 11)
    assert told["lion"]["ratio"] is None
    json.dumps(ranked, allow_nan=False)


def test_the_shipped_table_is_of_this_design():
    shipped, size = table.shipped(), design.SIZES["full"]
    assert (shipped["runs"], shipped["tuning"]) == (size.runs, size.tuning)
    known = {each.name for each in design.cells(size)}
    for row in shipped["rows"]:
        assert design.Cell(row["optimiser"], row["network"], row["n"], row["k"]).name in known
        assert row["tuning"]["rates"] == list(design.ENTRANTS[row["optimiser"]].rates)
        assert row["limit"] == design.LIMITS[row["k"]]
        assert row["runs"] == size.runs


def test_one_of_ones_own_is_placed():
    rows = table.place("mine", pl.SGD(), [0.25, 0.5], runs=10, tuning=5)
    assert rows[0]["solved"] == 10
    beside = table.beside(rows)
    assert {"mine", "sgd"} <= {row["optimiser"] for row in beside}
    for wrong in ({"cells": [("narrow", 41, 2)]}, {"cells": [("square", 40, 2)]}, {"rates": [2.0, 1.0]}, {"runs": 0}):
        with pytest.raises(pl.InvalidInput):
            table.place("mine", pl.SGD(), **({"rates": [0.5]} | wrong))
    with pytest.raises(pl.InvalidInput, match="already"):
        table.place("sgd", pl.SGD())


# --- the command ----------------------------------------------------------------------------------------------------


def test_cells_are_carried_to_another_machine_and_back(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    chosen = ["--quick", "--optimiser", "sgd", "momentum"]
    assert main(["beyond", "optimisers", *chosen, "--export", "cells.json", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["cells"] == 2
    assert main(["work", "cells.json", "there"]) == 0
    assert main(["store", "merge", "there", "--out", "here"]) == 0
    capsys.readouterr()
    monkeypatch.setattr(playing, "played", None)  # nothing is measured again
    assert main(["beyond", "optimisers", *chosen, "--out", "here", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["rows"]
    assert {row["optimiser"] for row in found} == {"sgd", "momentum"}
    assert all(row["runs"] == QUICK.runs and row["solved"] == QUICK.runs for row in found)
    rows, missing = table.gathered(design.cells(QUICK), QUICK, tmp_path / "here" / "kept")
    assert (len(rows), len(missing)) == (2, 10)
    table.record(rows, QUICK, tmp_path / "table.json")
    assert table.shipped(tmp_path / "table.json")["rows"] == rows


def test_the_command_lists_and_takes_ones_own(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine_here.py").write_text("import paritylab as pl\nrule = pl.SGD(momentum=0.5)\nother = 3\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    assert main(["beyond", "optimisers", "--network", "narrow", "--n", "40", "--k", "2"]) == 0
    assert "SGD" in capsys.readouterr().out
    own = ["beyond", "optimisers", "--quick", "--own", "mine_here:rule", "--rates", "0.1", "0.2", "--json"]
    monkeypatch.setattr(design, "ENTRANTS", {"sgd": design.ENTRANTS["sgd"]})
    assert main(own) == 0
    assert {row["optimiser"] for row in json.loads(capsys.readouterr().out)["rows"]} == {"sgd", "mine_here:rule"}


@pytest.mark.parametrize("words", [
    "--optimiser nobody", "--network deep", "--n 41", "--rates 1", "--own nothing", "--own math:pi",
    "--own math:pi --optimiser sgd", "--record --quick", "--record --out nowhere", "--own math:pi --record",
])
def test_what_is_wrong_is_said_in_one_line(words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["beyond", "optimisers", *words.split()]) == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 1


def test_a_cell_can_be_measured_with_jax_and_numpy_alone():
    blocked = "scipy", "polars", "matplotlib", "rich", "optax", "sklearn", "distributed"
    code = (f"import sys\nfor name in {blocked!r}: sys.modules[name] = None\n"
            "from paritylab_beyond.beyond.contest import design, playing\n"
            "print(playing.task(design.Cell('shampoo', 'narrow', 40, 2), design.SIZES['quick']).name)")
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown.startswith("computed-optimiser-cell-")


def test_the_page_of_the_study_says_what_the_shipped_table_says():
    rows = json.loads(table.SHIPPED.read_text())["rows"]
    by = {(row["optimiser"], row["network"], row["n"], row["k"]): row for row in rows}
    cells = sorted({place[1:] for place in by})
    best = {axis: {cell: min(row[axis] for place, row in by.items() if place[1:] == cell) for cell in cells}
            for axis in ("steps", "flops")}
    page = next(path for path in PAGES if path.is_file()).read_text()
    printed = [[cell.strip() for cell in line.strip("|").split("|")] for line in page.splitlines()
               if line.count("|") == 7 and "first" not in line and "---" not in line]
    names = {"Adam, AdamW": ("adam", "adamw"), "Shampoo, one-sided": ("shampoo",),
             "schedule-free AdamW": ("schedule-free",)}
    told = [(entrant, numbers) for name, *numbers in printed for entrant in names.get(name, (name.lower(),))]
    assert sorted(entrant for entrant, _ in told) == sorted({row["optimiser"] for row in rows})
    for entrant, numbers in told:
        ratios = [np.exp(np.mean([np.log(by[entrant, *cell]["steps"] / by["sgd", *cell]["steps"])
                                  for cell in cells if cell[0] == network]))
                  for network in ("narrow", "wide", "polynet")]
        first = [sum(by[entrant, *cell][axis] == best[axis][cell] for cell in cells) for axis in ("steps", "flops")]
        assert [f"{ratio:.2f}".removesuffix(".00") for ratio in ratios] == numbers[:3], entrant
        assert [str(count) for count in first] == numbers[3:], entrant
