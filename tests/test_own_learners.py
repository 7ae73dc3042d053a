"""Learners of the user's own: what they may return, what is kept of them, and what they do wrong."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from commands import run

import paritylab as pl
from paritylab import InvalidInput, Parity, Polynomial, baselines
from paritylab.baselines import own
from paritylab.baselines.registry import METHODS

SHIFT = 0


def first_bits(examples):
    return range(SHIFT, SHIFT + examples.k)


def by_search(examples):
    return METHODS["exhaustive"].find(examples).support


class Regression:
    """An object in place of a function."""

    name, limit = "least squares", 512

    def __init__(self, ridge):
        self.ridge = ridge

    def find(self, examples):
        x, y = examples.x.astype(float), examples.y
        weights = np.linalg.solve(x.T @ x + self.ridge * np.eye(x.shape[1]), x.T @ y)
        return lambda z: z @ weights


@baselines.learner(name="all pairs", unit="queries", targets=["parity"], start=2, limit=lambda problem: 4 * problem.n)
def pairs(queries):
    return None if queries.budget < 40 else np.array([1, 4])


# --- what they are ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("returned", "problem", "solved"), [
    ((1, 4), Parity(9, support=(1, 4)), True),
    ([4, 1], Parity(9, support=(1, 4)), True),
    (np.array([1, 4]), Parity(9, support=(1, 4)), True),
    ({4, 1}, Parity(9, support=(1, 4)), True),
    ({(1, 4): 1.0}, Parity(9, support=(1, 4)), True),
    (lambda x: x[:, 1] * x[:, 4], Parity(9, support=(1, 4)), True),
    (lambda x: x[:, 1], Parity(9, support=(1, 4)), False),
    (baselines.Guess((1, 4)), Parity(9, support=(1, 4)), True),
    (None, Parity(9, support=(1, 4)), False),
    ((1,), Parity(9, support=(1, 4)), False),
    ({(0,): 1.1, (1, 2): -0.4}, Polynomial(9, terms=[(1, (0,)), (-0.5, (1, 2))]), True),
    ({(0,): 1.1}, Polynomial(9, terms=[(1, (0,)), (-0.5, (1, 2))]), False),
    ((0, 1, 2), Polynomial(9, terms=[(1, (0,)), (-0.5, (1, 2))]), False),
    (lambda x: x[:, 0] - 0.5 * x[:, 1] * x[:, 2], Polynomial(9, terms=[(1, (0,)), (-0.5, (1, 2))]), True),
])
def test_what_a_function_may_return(returned, problem, solved):
    record = baselines.learn(baselines.learner(lambda examples: returned, name="mine"), problem, 20)
    assert record.status == ("solved" if solved else "failed")
    assert record.learner == "mine"
    assert "@" in record.function


def test_own_learners_stand_beside_others_in_tables_and_figures():
    records = baselines.compare([Parity(9, 1), Parity(9, 2)], ["exhaustive", by_search, Regression(0.1), "sgd"], runs=3)
    rows = baselines.summarise(records)
    assert [row["learner"] for row in rows] == ["exhaustive", "by_search", "least squares", "sgd"] * 2
    assert [row["solved"] for row in rows] == [3, 3, 3, 3, 3, 3, 0, 3]
    assert rows[0]["median"] == rows[1]["median"]
    assert rows[6]["given"] == 512
    for theirs, mine in zip(records[:3], records[3:6], strict=True):
        assert (theirs.samples, theirs.support, theirs.accuracy) == (mine.samples, mine.support, mine.accuracy)
        assert (theirs.function, mine.function.partition("@")[0]) == ("", f"{__name__}.by_search")
    labels = [text.get_text() for text in baselines.comparison_plot(records[:9]).axes[0].get_yticklabels()]
    assert labels == ["exhaustive", "by_search", "least squares"]


def test_queries_are_bounded_and_counted():
    record = baselines.needed(pairs, Parity(12, support=(1, 4)))
    assert (record.samples, record.unit, record.status) == (40, "queries", "solved")
    assert baselines.needed(pairs, Parity(9, support=(1, 4))).status == "failed"  # 36 at most
    greedy = baselines.learner(lambda queries: queries.ask(np.ones((9, queries.n))), name="greedy", unit="queries")
    with pytest.raises(InvalidInput, match="only 5 queries are allowed"):
        baselines.learn(greedy, Parity(9, 2), 5)
    assert pairs(baselines.Queries(9, 2, 0.0, 9, None, None)) is None


def test_a_generator_makes_runs_repeatable():
    drawn = baselines.learner(lambda examples: examples.generator.permutation(9)[:2], name="lottery")
    problem = Parity(9, 2)
    first, second = ([baselines.learn(drawn, problem, 5, each).support for each in range(4)] for _ in range(2))
    assert first == second
    assert len(set(first)) > 1


# --- what is kept -----------------------------------------------------------------------------------------------


def test_records_are_kept_until_the_function_changes(tmp_path, monkeypatch):
    problems, calls = [Parity(8, 2)], []
    attempt = baselines.needed

    def counted(*arguments):
        calls.append(arguments)
        return attempt(*arguments)

    monkeypatch.setattr("paritylab.baselines.comparison.needed", counted)
    first = baselines.compare(problems, [first_bits], runs=3, out=tmp_path)
    assert baselines.compare(problems, [first_bits], runs=3, out=tmp_path) == first
    assert len(calls) == 3
    monkeypatch.setitem(globals(), "SHIFT", 1)
    second = baselines.compare(problems, [first_bits], runs=3, out=tmp_path)
    assert len(calls) == 6
    assert [record.status for record in first + second] == ["solved"] * 3 + ["failed"] * 3
    rows = baselines.summarise(first + second)
    assert [row["runs"] for row in rows] == [3, 3]
    assert len({row["function"] for row in rows}) == 2
    labels = [text.get_text() for text in baselines.comparison_plot(first + second).axes[0].get_yticklabels()]
    assert labels == [f"first_bits {row['function']}" for row in rows]
    for options in ({"precision": 0.5}, {"limit": 9}, {"start": 3}):
        baselines.compare(problems, [baselines.learner(first_bits, **options)], runs=1, out=tmp_path)
    assert len(calls) == 9


def test_objects_are_told_apart_by_what_they_hold():
    functions = {baselines.learn(Regression(ridge), Parity(8, 1), 30).function for ridge in (0.1, 0.2, 0.1)}
    assert len(functions) == 2


def test_what_is_kept_must_be_told_from_others_or_named(tmp_path):
    lock = threading.Lock()

    def guarded(examples):
        with lock:
            return (0, 1)

    assert baselines.learn(guarded, Parity(8, 2), 5).function.endswith("guarded@")
    with pytest.raises(InvalidInput, match=r"guarded cannot be told from others: .*lock; vouch for it by a name"):
        baselines.compare([Parity(8, 2)], [guarded], runs=1, out=tmp_path)
    record = baselines.learn(pl.named("guarded v1", guarded), Parity(8, 2), 5)
    assert (record.learner, record.function, record.status) == ("guarded v1", "@guarded v1", "solved")


# --- mistakes ---------------------------------------------------------------------------------------------------


def failing(examples):
    raise ZeroDivisionError("my mistake\nin two lines")


def learn(function):
    return lambda: baselines.learn(baselines.learner(function, name="mine"), Parity(8, 2), 5)


@pytest.mark.parametrize(("make", "message"), [
    (lambda: baselines.learn(lambda examples: (), Parity(8, 2), 5), "a learner needs a name"),
    (lambda: baselines.learn(7, Parity(8, 2), 5), "a name or a function of examples, not 7"),
    (lambda: baselines.learner([]), "a learner is a function of examples, or has a method find"),
    (lambda: baselines.learner(first_bits, name="sgd"), "'sgd' is the name of a learner of paritylab"),
    (lambda: baselines.learner(first_bits, name="a@b"), "a learner needs a name"),
    (lambda: baselines.learner(first_bits, unit="bits"), "given examples or queries, not 'bits'"),
    (lambda: baselines.learner(first_bits, targets=["parities"]), "unknown kind of target 'parities'"),
    (lambda: baselines.learner(first_bits, unit="queries", targets=["other"]), "unknown kind of target 'other'"),
    (lambda: baselines.learner(first_bits, limit=0), "limit must be at least 1"),
    (lambda: baselines.learner(first_bits, precision=1), "precision must be at least 0 and below 1"),
    (lambda: baselines.compare([Parity(8, 2)], [first_bits, baselines.learner(by_search, name="first_bits")]),
     "say each learner once"),
    (lambda: baselines.learn(pairs, Polynomial(8, terms=[(1, (0,))]), 5), "all pairs finds a Parity, not a Polynomial"),
    (learn(failing), "mine failed with 5 samples: ZeroDivisionError: my mistake"),
    (learn(lambda examples: 3.5), "mine returned 3.5"),
    (learn(lambda examples: "01"), "mine returned '01'"),
    (learn(lambda examples: (0, 8)), "the support of mine must hold distinct positions in 0..7"),
    (learn(lambda examples: {(0, 0): 1}), "a support of mine must hold distinct positions"),
    (learn(lambda examples: lambda x: x), r"predictions of mine must have shape \(2048,\), not \(2048, 8\)"),
    (learn(lambda examples: lambda x: x[:, 9]), "the predictions of mine failed: IndexError"),
])
def test_mistakes_are_named_in_one_line(make, message):
    with pytest.raises(InvalidInput, match=message) as caught:
        make()
    assert "\n" not in str(caught.value)


def test_every_option_of_an_object_is_read():
    made = own.made(Regression(1.0))
    assert (made.name, made.limit(Parity(8, 2)), made.unit) == ("least squares", 512, "examples")


# --- the command ------------------------------------------------------------------------------------------------


def test_the_command_takes_functions_of_an_importable_module(capsys, tmp_path, monkeypatch):
    (tmp_path / "learners_of_the_test.py").write_text("def mine(examples):\n    return range(examples.k)\n")
    monkeypatch.syspath_prepend(tmp_path)
    compare = ["theory", "learners", "--n", "8", "--k", "2", "--runs", "2", "--out", str(tmp_path / "out"),
               "--learners"]
    status, out, err = run(capsys, *compare, "exhaustive,learners_of_the_test:mine")
    assert (status, err) == (0, "")
    assert any(line.startswith("mine ") for line in out.splitlines())
    for learners, message in (("learners_of_the_test:yours", "has no 'yours'"), ("no_such:mine", "cannot be imported")):
        status, out, err = run(capsys, *compare, learners)
        assert (status, out, err.count("\n")) == (2, "", 1)
        assert message in err
