"""Questions to a store: summaries of many samples at once, conditions, groups, pivots."""

from __future__ import annotations

import json
import math

import numpy as np
import polars as pl
import pytest
from blocks import block
from hypothesis import given, settings
from hypothesis import strategies as st

import paritylab
from paritylab import statistics
from paritylab.cli import main
from paritylab.errors import InvalidInput
from paritylab.setups import parameters
from paritylab.setups.setup import CLASSES
from paritylab.statistics.filters import conditions
from paritylab.statistics.percentiles import ranks
from paritylab.statistics.results import answer, pivot
from paritylab.statistics.tables import summaries
from paritylab.storage.gathered import Gathered, merged, to_frame
from paritylab.storage.records import Records
from paritylab.storage.store import Store

# --- many summaries at once are those of each sample -----------------------------------------------------------------

run = st.tuples(st.integers(0, 2), st.integers(1, 30), st.sampled_from([30, 30, 30, 40]))
runs = st.lists(run, min_size=1, max_size=25)


def records(rows) -> Records:
    status, t_c, limit = (np.array(column) for column in zip(*rows, strict=True))
    steps = np.where(status == 0, t_c, np.where(status == 1, limit, t_c))
    return Records(np.arange(len(rows)), status, np.where(status == 0, t_c, -1), steps, status == 0, status)


@settings(max_examples=150, deadline=None)
@given(samples=st.lists(runs, min_size=1, max_size=6), scale=st.sampled_from([1, 10, 2**40]))
def test_they_are_equal_to_the_last_digit(samples, scale):
    samples = [records(rows) for rows in samples]
    samples = [Records(each.run, each.status, np.where(each.t_c < 0, -1, each.t_c * scale), each.steps * scale,
                       each.accuracy, each.loss) for each in samples]
    parts = [Gathered.of((f"s{place}", "jax", 0), to_frame(each)) for place, each in enumerate(samples)]
    table = summaries(merged(parts))
    for row, sample in zip(table.iter_rows(named=True), samples, strict=True):
        summary = statistics.summary(sample)
        for name, value in vars(summary).items():
            if name.endswith("_interval"):
                stem = name.removesuffix("_interval")
                assert (row[f"{stem}_low"], row[f"{stem}_high"]) == value, name
            else:
                assert row[name] == value, name


def test_of_nothing_there_is_an_empty_table():
    empty, one = summaries(Gathered.empty()), summaries(Gathered.of(("a", "jax", 0), to_frame(block(0, 3))))
    assert empty.height == 0
    assert empty.schema == one.schema


def test_ranks_are_quantiles_of_the_binomial_law():
    from scipy import stats

    for size in (*range(0, 60), 1000, 99_999):
        for q in (0, 0.5, 10, 50, 90, 100):
            for level in (0.5, 0.95, 0.99):
                tail = (1 - level) / 2
                first, last = stats.binom.ppf([tail, 1 - tail], size, q / 100)
                assert ranks(size, q, level) == (int(first), int(last) + 1), (size, q, level)


# --- conditions ------------------------------------------------------------------------------------------------------

TABLE = pl.DataFrame({"n": [20, 30, 30, 40], "k": [3, 3, None, 2], "lr": [0.1, 1.0, 10.0, 1.0],
                      "loss": ["hinge", "square", "hinge", None], "fresh": [True, False, False, True]})


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("n == 30", [1, 2]), ("n != 30", [0, 3]), ("20 < n <= 30", [1, 2]), ("n == 30 and lr >= 2", [2]),
        ("n == 20 or lr == 10", [0, 2]), ("not n == 30", [0, 3]), ("n in (20, 40)", [0, 3]),
        ("n not in [20, 40]", [1, 2]),
        ("k == 3", [0, 1]), ("k == None", [2]), ("k is not None", [0, 1, 3]), ("k != 3", [3]),
        ("loss == 'hinge'", [0, 2]),
        ('loss in ("square", "hinge")', [0, 1, 2]), ("fresh", [0, 3]), ("not fresh", [1, 2]), ("fresh == True", [0, 3]),
        ("lr > -1e0", [0, 1, 2, 3]), ("n == lr", []), ("n > 99999999999999999999", []), ("n in ()", []),
        ("(n == 20 or n == 40) and (k == 2)", [3]), ("10 < n", [0, 1, 2, 3]), ("loss > 'i'", [1]),
    ],
)
def test_conditions_select_rows(text, rows):
    found = TABLE.with_row_index().filter([each.expression for each in conditions(text, TABLE.schema)])
    assert found["index"].to_list() == rows


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("losss == 3", "did you mean 'loss'?"), ("n = 3", "cannot read"), ("n ==", "cannot read"),
        ("__import__('os')", "allowed: "),
        ("n.real == 3", "allowed: "), ("(lambda: 1)() == n", "allowed: "), ("n + 1 == 3", "allowed: "),
        ("n", "is a number"),
        ("loss == 3", "cannot be compared"), ("n == 'x'", "cannot be compared"), ("n in 3", "values in brackets"),
        ("n == 1j", "allowed: "), ("n == b'x'", "allowed: "), ("[n for n in (1,)]", "allowed: "),
        ("n == nan", "unknown column"),
        ("n is 3", "'is' is for None"), ("n; n", "cannot read"), ("\x00", "cannot read"),
        ("(" * 900 + ")" * 900, "condition"),
        ("not " * 400 + "fresh" + " " * 1000, "at most 2000"), ("f'{n}' == loss", "allowed: "),
        ("n == 2 ** 9 ** 9", "allowed: "),
        ("n and (n := 3)", "is a number"), ("fresh if n == 3 else fresh", "allowed: "),
        ("n < None", "cannot be compared"),
    ],
)
def test_anything_else_is_refused_in_one_line(text, why):
    with pytest.raises(InvalidInput) as caught:
        conditions(text, TABLE.schema)
    assert why in str(caught.value)
    assert "\n" not in str(caught.value)


@settings(max_examples=300, deadline=None)
@given(text=st.text(alphabet=" ()[]nklr=<>!'\"andotis0.1,+-*:_", max_size=40))
def test_any_text_is_a_condition_or_refused(text):
    why = ""
    try:
        TABLE.filter([each.expression for each in conditions(text, TABLE.schema)])
    except InvalidInput as error:
        why = str(error)
    assert "\n" not in why


# --- names of parameters ---------------------------------------------------------------------------------------------


def test_every_field_of_every_part_has_an_owner():
    import dataclasses

    parts = {"problem": ("parity", "polynomial", "leaky-parity", "problem", "data"), "learner": ("learner",),
             "protocol": ("protocol",),
             "network": ("mlp", "neuron", "polynet", "disjoint-polynet", "transformer", "network"),
             "optimiser": ("sgd", "adam", "rmsprop", "sign-sgd", "optax")}
    for part, kinds in parts.items():
        fields = {field.name for kind in kinds for field in dataclasses.fields(CLASSES[kind])}
        assert {name for name in fields if parameters.OWNER.get(name) != part} <= {"noise", "inputs"}


def test_a_users_part_may_use_any_name():
    network = {"type": "mine", "n": 2, "depth": 3, "k": [1, 2], "inner": {"type": "x", "n": 5}}
    setup = {"problem": {"type": "parity", "n": 8, "runs": 3}, "learner": {"network": network, "loss": "hinge"}}
    found = parameters.flattened(setup)
    assert (found["n"], found["network"], found["network_n"], found["depth"]) == (8, "mine", 2, 3)
    assert found["network_k"] == "[1,2]"
    assert (found["inner"], found["inner_n"], found["problem_runs"]) == ("x", 5, 3)


def test_long_values_are_named_by_a_digest():
    found = parameters.flattened({"problem": {"type": "data", "x": list(range(1000))}})
    assert str(found["x"]).startswith("1000 values, ")
    assert len(str(found["x"])) < 40


# --- tables ----------------------------------------------------------------------------------------------------------


def setup(n: int, lr: float, limit: int = 5000) -> paritylab.Setup:
    return paritylab.Setup(paritylab.Parity(n, 2), paritylab.Learner(optimiser=paritylab.SGD(lr)),
                           paritylab.Protocol(limit, eval_size=64))


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    folder = tmp_path_factory.mktemp("out")
    store = Store(folder / "store")
    for place, (n, lr) in enumerate((n, lr) for n in (8, 10, 12) for lr in (0.1, 0.5)):
        mine = setup(n, lr)
        store.append(mine.id, mine.to_json(), "jax", 0, block(0, 9 + 3 * place))
    return folder


def asked(capsys, out, *arguments, status=0):
    assert main(["results", "--out", str(out), *arguments]) == status
    return capsys.readouterr()


def test_rows_are_filtered_by_parameters_and_statistics_sorted_and_cut(out):
    store = Store(out / "store")
    table = answer(store, "n >= 10 and lr == 0.5 and runs > 20")
    assert table.select("n", "lr", "runs").rows() == [(12, 0.5, 24)]
    assert answer(store, sort=["runs"], descending=True, limit=2)["runs"].to_list() == [24, 21]
    for place, row in enumerate(answer(store, sort=["runs"]).iter_rows(named=True)):
        assert row["median"] == statistics.summary(block(0, 9 + 3 * place)).median
    assert answer(store, "n == 99").height == 0
    assert answer(store, qs=[25, 2.5], limit=1).columns[-9:-3] == ["p25", "p25_low", "p25_high", "p2.5", "p2.5_low",
                                                                 "p2.5_high"]


def test_groups_pool_runs(out):
    store = Store(out / "store")
    table = answer(store, group=["n"])
    assert table.select("n", "runs").rows() == [(8, 21), (10, 33), (12, 45)]
    pooled = statistics.summary(Records.concatenate([block(0, 9), block(0, 12)]))
    assert table.row(0, named=True)["median"] == pooled.median
    assert (table["median_low"][0], table["median_high"][0]) == pooled.median_interval
    wide = pivot(answer(store, group=["n", "lr"]), "lr", "runs")
    assert wide.rows() == [(8, 9, 12), (10, 15, 18), (12, 21, 24)]
    assert wide.columns == ["n", "0.1", "0.5"]


def test_in_groups_a_run_counts_once_and_engines_apart(tmp_path):
    store = Store(tmp_path)
    for limit, engine in ((5000, "jax"), (6000, "jax"), (6000, "lanes")):
        mine = setup(8, 0.1, limit)
        store.append(mine.id, mine.to_json(), engine, 0, block(0, 6))
    assert answer(store, group=["n"]).select("engine", "runs").rows() == [("jax", 6), ("lanes", 6)]


def test_the_command_answers_in_every_format(out, capsys, tmp_path):
    lines = asked(capsys, out, "--where", "n > 8 and lr == 0.1", "--sort", "runs").out.splitlines()
    assert [line.split()[1] for line in lines] == ["n", "10", "12"]
    document = json.loads(asked(capsys, out, "--where", "n == 8", "--json").out)
    assert [row["setup"]["problem"]["n"] for row in document["results"]] == [8, 8]
    assert all(len(row["median_interval"]) == 2 for row in document["results"])
    text = asked(capsys, out, "--csv", "--columns", "n", "lr", "median", "--limit", "1").out
    assert text.splitlines()[0] == "n,lr,median"
    asked(capsys, out, "--parquet", str(tmp_path / "a.parquet"), "--percentiles", "25")
    assert pl.read_parquet(tmp_path / "a.parquet")["p25"].len() == 6
    wide = asked(capsys, out, "--group", "n", "--pivot", "lr", "--value", "solved").out.splitlines()
    assert wide[0].split() == ["n", "0.1", "0.5"]
    assert len(wide) == 4
    where = "t_c >= 0 and n == 8 and lr == 0.1"
    rows = asked(capsys, out, "--records", "--where", where, "--columns", "run", "lr", "--csv")
    assert rows.out.splitlines() == ["run,lr", "0,0.1", "3,0.1", "6,0.1"]


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--where", "m == 3"], "unknown column 'm'"), (["--sort", "medain"], "did you mean 'median'?"),
        (["--group", "widht"], "did you mean 'width'?"), (["--pivot", "lr", "--value", "no"], "unknown column 'no'"),
        (["--percentiles", "101"], "between 0 and 100"), (["--columns", "no"], "unknown column 'no'"),
        (["--records", "--group", "n"], "are not grouped"), (["--limit", "-1"], "at least 0"),
        (["--where", "n == 8", "--group", "n", "--sort", "lr"], "unknown column of groups 'lr'"),
        (["--records", "--where", "zz == 1"], "unknown column 'zz'"),
        (["--records", "--sort", "zz"], "unknown column 'zz'"),
        (["--parquet", "/nowhere/at/all.parquet"], "cannot write"), (["--pivot", "runs"], "group by"),
    ],
)
def test_what_cannot_be_asked_is_refused_in_one_line(out, capsys, arguments, why):
    errors = asked(capsys, out, *arguments, status=2).err
    assert why in errors
    assert errors.count("\n") == 1


def test_percentiles_that_are_not_reached_come_last(tmp_path):
    store = Store(tmp_path)
    for lr, solved in ((0.1, 0), (0.2, 9)):
        status = np.where(np.arange(9) < solved, 0, 1)
        t_c = np.where(status == 0, 50, -1)
        mine = setup(8, lr)
        steps = np.where(status == 0, 50, 5000)
        store.append(mine.id, mine.to_json(), "jax", 0, Records(np.arange(9), status, t_c, steps, status == 0, status))
    for descending in (False, True):
        assert answer(store, sort=["median"], descending=descending)["median"].to_list() == [50, math.inf]
