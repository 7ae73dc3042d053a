"""Polynomials as targets: terms with intervals, what counts as found, and who refuses them."""

from __future__ import annotations

import json
import math
import re

import jax.numpy as jnp
import numpy as np
import pytest
from commands import run
from hypothesis import given, settings
from hypothesis import strategies as st
from lengths import long_but

import paritylab as pl
from paritylab import InvalidInput, LeakyParity, Parity, Polynomial, baselines
from paritylab.baselines import low_degree, page
from paritylab.baselines.records import Record, frame
from paritylab.baselines.registry import METHODS, able
from paritylab.baselines.sources import Guess, Source
from paritylab.baselines.targets import KINDS, Target, Term, in_words, kind_of, target_of

TERMS = ((1.0, (0, 1)), (-0.5, (2,)), (0.7, (3, 4, 5)))
PROBLEM = Polynomial(12, terms=TERMS)
STAIRCASE = Polynomial(12, terms=[(1, (0,)), (1, (0, 1))])
FINDERS = ("low-degree", "goldreich-levin")
ENOUGH = {"low-degree": 2000, "goldreich-levin": 200_000}


MAJORITY = pl.Problem(8, lambda x: jnp.sign(x[..., :3].sum(-1)))
"""A target that is a function of the user's."""


# --- what is found ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FINDERS)
@pytest.mark.parametrize("noise", [0.0, 0.1])
@pytest.mark.parametrize("terms", [TERMS, ((-0.3, (2, 5)), (1.0, ())), ((-2.0, (1, 7)),), STAIRCASE.terms,
                                   ((1, (0,)), (0.5, (3,)), (0.5, (3,)), (1, (4,)), (-1, (4,)))])
def test_all_terms_are_found_with_their_signs_and_intervals(name, noise, terms):
    problem = Polynomial(12, terms=terms, noise=noise)
    target = target_of(problem)
    record = baselines.learn(name, problem, ENOUGH[name])
    assert record.status == "solved", record
    assert {term.support for term in record.terms} == set(target.terms)
    for term in record.terms:
        true = target.terms[term.support]
        assert term.low <= term.coefficient <= term.high
        assert abs(term.coefficient - true) < 4 * (term.high - term.low) / 2 + 1e-6  # eight standard errors: 1e-14


@pytest.mark.parametrize("name", FINDERS)
def test_what_is_needed_lies_between_a_failure_and_a_success(name):
    record = baselines.needed(name, PROBLEM, run=1)
    assert record.solved
    assert baselines.learn(name, PROBLEM, record.samples, run=1).solved
    few = baselines.learn(name, PROBLEM, 4, run=1)
    assert not few.solved
    assert few.note


@pytest.mark.long
@pytest.mark.parametrize("name", long_but(FINDERS, "low-degree"))
def test_intervals_hold_the_coefficient_as_often_as_they_say(name):
    """300 runs of 3 terms: 95 % within 4.5 standard errors of 300 runs, as if terms depended on each other: below 1e-5.
    Both intervals are approximate; the seed is fixed."""
    samples = {"low-degree": 400, "goldreich-levin": 13 * 1500}[name]
    true = target_of(PROBLEM).terms
    records = [baselines.learn(name, PROBLEM, samples, seed) for seed in range(300)]
    held = [term.low <= true[term.support] <= term.high for record in records if record.solved for term in record.terms]
    assert sum(record.solved for record in records) > 285
    assert abs(np.mean(held) - 0.95) < 4.5 * math.sqrt(0.95 * 0.05 / 300)


@settings(max_examples=30, deadline=None)
@given(n=st.integers(2, 6), m=st.integers(2, 30), seed=st.integers(0, 10**6), data=st.data())
def test_the_largest_coefficients_are_those_of_trying_every_support(n, m, seed, data):
    from itertools import combinations

    degree, count = data.draw(st.integers(0, n)), data.draw(st.integers(1, 5))
    generator = np.random.default_rng(seed)
    x, y = generator.choice([-1, 1], (m, n)), generator.normal(size=m)
    all_ = {T: float(np.mean(x[:, T].prod(axis=1) * y)) for size in range(degree + 1)
            for T in combinations(range(n), size)}
    found = low_degree.ranked(x, y, degree, count)
    sizes = sorted(map(abs, all_.values()), reverse=True)[:count]
    assert [abs(mean) for _, mean in found] == pytest.approx(sizes, abs=1e-5)
    assert [mean for _, mean in found] == pytest.approx([all_[T] for T, _ in found], abs=1e-5)
    for term in low_degree.estimates(x, y, [T for T, _ in found], 0.1):
        assert term.coefficient == pytest.approx(all_[term.support] / 0.8)


# --- what counts as found ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("found", "right"), [
    ({(0, 1): 1.2, (2,): -0.3, (3, 4, 5): 0.9}, True),
    ({(0, 1): 1.2, (2,): -0.3}, False),
    ({(0, 1): 1.2, (2,): -0.3, (3, 4, 5): 0.9, (7,): 0.3}, False),
    ({(0, 1): 1.0, (2,): 0.5, (3, 4, 5): 0.7}, False),
    ({(0, 1): 1.3, (2,): -0.5, (3, 4, 5): 0.7}, False),
    ({}, False),
])
def test_supports_must_be_the_same_and_coefficients_close(found, right):
    guess = Guess(terms=tuple(Term(T, c) for T, c in found.items()))
    assert Source(PROBLEM).judge(guess, 0.99)[0] is right


def test_accuracy_is_of_signs_and_zeros_have_none():
    exact = Guess(terms=tuple(Term(T, c) for c, T in TERMS))
    assert Source(PROBLEM).accuracy(exact) == 1
    assert Source(PROBLEM).accuracy(Guess(terms=(Term((0, 1), -1.0),))) < 0.5
    right, accuracy = Source(STAIRCASE).judge(Guess(terms=(Term((0,), 1.0), Term((0, 1), 1.0))), 0.99)
    assert right
    assert abs(accuracy - 0.5) < 6 * math.sqrt(0.25 / 2048)  # six standard errors: below 1e-8
    assert Source(Parity(8, 2)).judge(Guess(support=(0, 1)), 0.99) == (True, 1.0)


def test_the_share_of_zeros_is_exact_for_few_inputs_and_estimated_for_many():
    assert target_of(STAIRCASE).zeros == 0.5
    assert target_of(PROBLEM).zeros == 0
    many = Target({(j,): 1.0 for j in range(20)})
    assert abs(many.zeros - math.comb(20, 10) / 2**20) < 6 * math.sqrt(0.18 * 0.82 / 2**16)  # below 1e-8


def test_examples_and_queries_have_the_polynomials_values_with_flips():
    source = Source(Polynomial(6, terms=[(2.0, (0, 1)), (0.5, (3,))], noise=0.25))
    examples, queries = source.examples(4000), source.queries(4000)
    assert (examples.k, examples.count, examples.least) == (2, 2, 0.5)
    assert (queries.k, queries.count, queries.least, queries.norm) == (2, 2, 0.5, math.sqrt(4.25))
    for x, y in ((examples.x, examples.y), (examples.x, queries.ask(examples.x))):
        clean = 2 * x[:, [0, 1]].prod(axis=1) + 0.5 * x[:, 3]
        assert set(np.unique(y / clean)) == {-1, 1}
        assert abs(np.mean(y == -clean) - 0.25) < 6 * math.sqrt(0.25 * 0.75 / 4000)  # below 1e-8


# --- who takes what ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("problem", [Parity(8, 2), LeakyParity(8, 2), Polynomial(8, terms=TERMS), MAJORITY],
                         ids=list(KINDS))
def test_every_learner_takes_a_target_or_names_those_that_do(name, problem):
    kind = kind_of(problem)
    if kind in METHODS[name].targets:
        assert baselines.learn(name, problem, 64).status in ("solved", "failed", "refused")
        return
    with pytest.raises(InvalidInput) as caught:
        baselines.learn(name, problem, 64)
    said = str(caught.value)
    assert said.startswith(f"{name} finds a Parity")
    assert f"not {in_words(problem)}" in said
    assert all(other in said for other in able(kind))
    assert "\n" not in said


@pytest.mark.parametrize("name", ["polynomial-kernel", "sgd"])
@pytest.mark.parametrize("problem", [Polynomial(8, terms=[(1, (0, 1)), (0.4, (2,))]), MAJORITY])
def test_learners_that_predict_are_right_about_signs(name, problem):
    assert baselines.needed(name, problem).accuracy >= 0.99


@pytest.mark.parametrize("name", ["ntk", "sgd"])
def test_signs_of_a_polynomial_that_is_often_0_cannot_be_predicted(name):
    with pytest.raises(InvalidInput, match=r"0, without a sign, on 50 % of inputs, .* by low-degree, goldreich-levin"):
        baselines.compare([STAIRCASE], [name], runs=1)


@pytest.mark.parametrize(("make", "message"), [
    (lambda: baselines.learn("low-degree", Polynomial(6, terms=[(1, (0,)), (-1, (0,))]), 9), "is 0 everywhere"),
    (lambda: baselines.learn("low-degree", Polynomial(6, terms=[(1, (0,))], inputs=lambda key, count, n: jnp.ones(
        (count, n))), 9), "low-degree needs uniform inputs to find the terms"),
    (lambda: baselines.learn("low-degree", "parity", 9), "a learner is given a Problem, not 'parity'"),
    (lambda: Source(MAJORITY).queries(9), "only sums of parities answer queries, not Problem"),
    (lambda: baselines.terms([[1]], [1], 1, 0), "number of terms must be at least 1"),
    (lambda: baselines.terms([[1]], [1], 1, 1, noise=0.5), "flip rate"),
])
def test_mistakes_are_named_in_one_line(make, message):
    with pytest.raises(InvalidInput, match=message) as caught:
        make()
    assert "\n" not in str(caught.value)


def test_a_single_example_has_no_interval():
    (term,) = baselines.terms([[1, 1]], [1], 1, 1)
    assert (term.low, term.high) == (-math.inf, math.inf)


# --- records, commands, pages -----------------------------------------------------------------------------------


def test_terms_survive_a_table_and_rows_without_them_are_read():
    rows = [baselines.learn("low-degree", PROBLEM, 500),
            Record("mine", 9, 2, 0.1, 1, "failed", 64, "examples", None, None, 0.7, terms=(Term((1,), 0.5),))]
    assert [Record.from_dict(row) for row in frame(rows).iter_rows(named=True)] == rows
    old = rows[0].to_dict()
    del old["terms"], old["function"]
    assert Record.from_dict(old).terms is None


def test_comparisons_are_kept_and_told_apart_by_their_terms(tmp_path):
    problems = [PROBLEM, STAIRCASE]
    first = baselines.compare(problems, FINDERS, runs=2, out=tmp_path)
    assert baselines.compare(problems, FINDERS, runs=2, out=tmp_path) == first
    rows = baselines.summarise(first)
    assert [row["solved"] for row in rows] == [2] * 4
    assert rows[0]["details"] == "polynomial, terms 1:0,1 -0.5:2 0.7:3,4,5"


def test_the_command_takes_terms(capsys, tmp_path):
    terms = ["--term", "1:0,1", "--term=-0.5:2"]
    status, out, err = run(capsys, "theory", "learners", "--n", "10", *terms, "--learners",
                           "low-degree,goldreich-levin", "--runs", "2", "--out", str(tmp_path))
    assert (status, err) == (0, "")
    assert out.startswith("sum of 2 parities of 10 bits, 2 runs")
    for options, message in ((["--learners", "exhaustive"], "finds a Parity or a LeakyParity, not a Polynomial"),
                             (["--k", "2"], "--term has its own supports")):
        status, out, err = run(capsys, "theory", "learners", *terms, *options, "--out", str(tmp_path))
        assert (status, out, err.count("\n")) == (2, "", 1)
        assert message in err


@pytest.mark.parametrize("target", ["majority:3", "mod:3,4", "address:1"])
def test_tables_are_the_polynomials_that_they_are(target):
    problem = pl.Problem(9, target)
    for name in FINDERS:
        record = baselines.learn(name, problem, 10 * ENOUGH[name])
        assert record.status == "solved", (name, record.note)
        assert {term.support for term in record.terms} == set(target_of(problem).terms)


@pytest.mark.parametrize(("problem", "words"), [
    (pl.Problem(9, [0, 1], "biased:0.7"), "not a Problem with inputs that are not uniform"),
    (pl.Problem(9, [0, 1], scale=2), "not a Problem with a scale"),
    (pl.multitask(9, 3, 2), "not a Problem with tasks"),
    (pl.Problem(9, pl.Sum([(1, (0,)), (1, (1, 2)), (1, (3,))], sign=True)), "not a Problem with a Sum"),
])
def test_what_a_learner_cannot_find_is_said(problem, words):
    with pytest.raises(InvalidInput, match=words):
        baselines.learn("low-degree", problem, 100)


def test_the_list_and_the_page_say_what_each_can_find(capsys):
    out = run(capsys, "theory", "learners", "--list")[1]
    assert re.search(r"^exhaustive .*; finds a Parity or a LeakyParity$", out, flags=re.MULTILINE)
    targets = json.loads(run(capsys, "theory", "learners", "--list", "--json")[1])["targets"]
    assert targets["low-degree"] == ["parity", "leaky-parity", "polynomial"]
    text = page.markdown()
    for name, method in METHODS.items():
        (row,) = (line for line in text.splitlines() if line.startswith(f"| `{name}` |"))
        assert [cell != "-" for cell in row.strip("| ").split(" | ")[2:]] == [kind in method.targets for kind in KINDS]
