"""Every learner against brute force on small problems, planted parities and noise; one kind of Record for all."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paritylab import InvalidInput, LeakyParity, Parity, Polynomial, Setup, baselines, rng, statistics
from paritylab.baselines import comparison, elimination, gf2, guessing, low_degree
from paritylab.baselines.records import Record, as_records, frame
from paritylab.baselines.registry import METHODS
from paritylab.baselines.sources import Examples, Source
from paritylab.setups.setup import encode
from paritylab.storage.kept import KeptWarning

NAMES = tuple(METHODS)
SUPPORTS = tuple(name for name in NAMES if METHODS[name].find and not METHODS[name].predicts)
PLANTED = (1, 4)


def examples(x, y, k, noise=0.0, seed=0):
    return Examples(np.asarray(x, np.int8), np.asarray(y, np.int8), k, noise, np.random.default_rng(seed))


# --- the samples ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("noise", [0.0, 0.2])
def test_examples_are_those_that_a_network_with_that_finite_sample_trains_on(noise):
    from paritylab.engines.gradient import make_step

    problem = Parity(n=40, support=PLANTED, noise=noise, sample=300)
    key = rng.run_keys(np.array([5]), np.array([7]))[0]
    drawn, labels = make_step(Setup(problem).program)[1](key, np.uint32(problem.flip), problem.mask)
    source = Source(problem, run=7, seed=5)
    for m in (10, 300):
        given_ = source.examples(m)
        np.testing.assert_array_equal(given_.x, np.asarray(problem.signs(drawn))[:m])
        np.testing.assert_array_equal(given_.y, np.asarray(labels)[:m])


def test_queries_are_counted_and_answers_flip_at_the_rate_of_the_noise():
    queries = Source(Parity(n=6, support=PLANTED, noise=0.25)).queries(20_000)
    x = np.random.default_rng(0).choice([-1, 1], (20_000, 6))
    wrong = np.mean(queries.ask(x) != x[:, PLANTED].prod(axis=1))
    assert abs(wrong - 0.25) < 6 * math.sqrt(0.25 * 0.75 / 20_000)  # six standard errors: below 1e-8
    with pytest.raises(InvalidInput, match="only 20000 queries"):
        queries.ask(x[:1])


# --- the learners -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_every_learner_finds_a_planted_parity_and_says_what_it_took(name):
    record = baselines.needed(name, Parity(n=9, support=PLANTED), run=1)
    assert record.status == "solved", record
    assert (record.learner, record.n, record.k, record.noise, record.run) == (name, 9, 2, 0.0, 1)
    assert record.unit == ("queries" if name == "goldreich-levin" else "examples")
    assert record.support == (PLANTED if name in SUPPORTS else None)
    assert record.accuracy >= 0.99
    assert record.samples >= 1
    assert record.seconds is not None


@pytest.mark.parametrize("name", [name for name in SUPPORTS if name != "gaussian-elimination"])
def test_learners_that_name_a_support_find_it_under_noise(name):
    problem = Parity(n=12, support=PLANTED, noise=0.1)
    samples = 4000 if name == "goldreich-levin" else 400
    assert [baselines.learn(name, problem, samples, run).support for run in range(3)] == [PLANTED] * 3


def test_elimination_refuses_noisy_labels_and_says_what_is_undetermined():
    noisy = baselines.learn("gaussian-elimination", Parity(n=20, k=3, noise=0.2), samples=60)
    assert (noisy.status, noisy.support, noisy.note) == ("refused", None, elimination.NOISY)
    few = baselines.learn("gaussian-elimination", Parity(n=20, k=3), samples=19)
    assert (few.status, few.note) == ("failed", "undetermined: rank 19 of 20")
    assert baselines.needed("gaussian-elimination", Parity(n=20, k=3, noise=0.2)).status == "refused"


@settings(max_examples=40, deadline=None)
@given(n=st.integers(2, 6), m=st.integers(1, 12), seed=st.integers(0, 10**6), data=st.data())
def test_searches_agree_with_trying_every_support(n, m, seed, data):
    k = data.draw(st.integers(1, n))
    generator = np.random.default_rng(seed)
    x, y = generator.choice([-1, 1], (m, n)), generator.choice([-1, 1], m)
    correlation = {T: float(np.mean(x[:, T].prod(axis=1) * y)) for size in range(k + 1)
                   for T in itertools.combinations(range(n), size)}
    best = max(value for T, value in correlation.items() if len(T) == k)
    winners = [T for T, value in correlation.items() if len(T) == k and value == best]
    assert guessing.find_exhaustive(examples(x, y, k)).support == (winners[0] if len(winners) == 1 else None)
    perfect = {T for T in winners if best == 1} or {None}
    assert guessing.find_random(examples(x, y, k)).support in perfect
    sizes = sorted(map(abs, correlation.values()))
    found = low_degree.largest(x, y, k)
    assert found.correlation == pytest.approx(sizes[-1])
    assert abs(correlation[tuple(found.support)]) == pytest.approx(sizes[-1])
    assert found.runner_up == pytest.approx(sizes[-2])


def test_random_supports_are_uniform():
    # 6,000 draws of 3 of 5: each of 10 supports is expected 600 times; six standard errors, below 1e-7
    drawn = guessing.distinct(np.random.default_rng(0), 6000, 5, 3)
    supports, counts = np.unique(np.sort(drawn, axis=1), axis=0, return_counts=True)
    assert len(supports) == 10
    assert np.all(np.abs(counts - 600) < 6 * math.sqrt(600 * 0.9))


def test_pooled_elimination_survives_noise_and_rank_deficiency():
    generator = np.random.default_rng(3)
    x = generator.integers(0, 2, (300, 24)).astype(bool)
    x[:, 7] = x[:, 3]
    y = x[:, [3, 11]].sum(axis=1) % 2 == 1
    y ^= generator.random(300) < 0.04
    solution = gf2.pooled(x, y, generator, 0.9, 200)
    assert solution.rank == 23
    assert solution.support == [3, 11]


def test_an_odd_parity_needs_the_biases_of_the_tangent_kernel():
    record = baselines.learn("ntk", Parity(n=8, k=3), samples=1000)
    assert record.solved


# --- what is needed ---------------------------------------------------------------------------------------------


def test_the_search_ends_between_a_failure_and_a_success():
    problem = Parity(n=25, k=3)
    for run in range(4):
        needed = baselines.needed("gaussian-elimination", problem, run)
        assert needed.samples >= 25
        assert baselines.learn("gaussian-elimination", problem, needed.samples, run).solved
        fewer = needed.samples - 1
        assert fewer < 25 or not baselines.learn("gaussian-elimination", problem, fewer, run).solved


def test_what_is_not_solved_is_censored_at_what_was_given():
    records = [baselines.needed("ntk", Parity(n=20, k=3), run, limit=64) for run in range(3)]
    assert [(record.status, record.samples) for record in records] == [("failed", 64)] * 3
    row = baselines.summarise(records)[0]
    assert math.isinf(row["median"])
    assert row["solved"] == 0
    assert list(as_records(records).t_c) == [-1] * 3


def test_a_finite_sample_bounds_what_any_learner_gets():
    problem = Parity(n=30, k=3, sample=25)
    assert baselines.needed("gaussian-elimination", problem).samples == 25
    assert baselines.learn("gaussian-elimination", problem).samples == 25
    assert baselines.learn("gaussian-elimination", problem, samples=20).samples == 20


def test_networks_need_batch_times_steps():
    import paritylab as pl

    problem, learner = Parity(n=9, k=2), pl.Learner(pl.MLP(10), optimiser=pl.SGD(1.0), batch=32)
    measured = pl.measure(problem, learner, pl.Protocol(threshold=0.99), runs=4)
    records = baselines.compare([problem], ["sgd"], runs=4)
    assert [record.samples for record in records] == (32 * measured.records.t_c).tolist()


@pytest.mark.parametrize(("make", "message"), [
    (lambda: baselines.learn("gauss", Parity(5, 2), 10), "unknown learner 'gauss'"),
    (lambda: baselines.learn("exhaustive", Parity(5, 2)), "say how many samples"),
    (lambda: baselines.learn("exhaustive", Parity(5, 2), 0), "from 1 to"),
    (lambda: baselines.learn("exhaustive", Parity(5, 2, sample=9), 10), "has 9 examples, not 10"),
    (lambda: baselines.learn("ntk", Parity(5, 2), 10**6), "ntk takes from 1 to 16384 examples"),
    (lambda: baselines.learn("exhaustive", Parity(5, 2, noise=0.5), 10), "noise below 1/2"),
    (lambda: baselines.learn("low-degree", Parity(1000, 5), 10), "would try 8.3e\\+12 supports"),
    (lambda: baselines.learn("exhaustive", Polynomial(5, terms=[(1.0, (0, 1))]), 10), "not a Polynomial"),
    (lambda: baselines.needed("exhaustive", Parity(5, 2), threshold=0.5), "threshold"),
    (lambda: baselines.needed("exhaustive", Parity(5, 2), limit=0), "from 1 to"),
    (lambda: baselines.needed("exhaustive", Parity(5, 2), run=-1), "run number"),
    (lambda: baselines.learn("sgd", Parity(5, 2), 10), "fewer than a batch"),
    (lambda: baselines.compare([Parity(5, 2)], []), "one at least"),
    (lambda: baselines.compare([Parity(5, 2)], ["exhaustive"], runs=0), "runs must be at least 1"),
])
def test_mistakes_are_named_in_one_line(make, message):
    with pytest.raises(InvalidInput, match=message) as caught:
        make()
    assert "\n" not in str(caught.value)


# --- records and comparisons ------------------------------------------------------------------------------------


def test_records_survive_a_table_and_join_the_statistics_of_networks():
    rows = [Record("exhaustive", 9, 2, 0.1, 0, "solved", 20, "examples", 0.1, (1, 4), 1.0),
            Record("ntk", 9, 2, 0.1, 1, "failed", 64, "examples", None, None, 0.7, "why")]
    assert [Record.from_dict(row) for row in frame(rows).iter_rows(named=True)] == rows
    summary = statistics.summary(as_records(rows))
    assert (summary.solved, summary.censored, summary.max_horizon) == (1, 1, 64)


def test_runs_that_were_refused_or_diverged_are_never_solved_however_few_samples_they_had():
    ends = [("solved", 40, "")] * 3 + [("refused", 31, "noisy")] * 3 + [("failed", 32, "diverged")] * 2
    rows = [Record("sgd", 9, 2, 0.1, run, status, samples, "examples", 0.1, None, 0.7, note)
            for run, (status, samples, note) in enumerate(ends)]
    assert math.isinf(baselines.summarise(rows)[0]["median"])
    assert baselines.summarise(rows[:5])[0]["median"] == 40


def test_a_comparison_that_was_interrupted_goes_on_where_it_was(tmp_path, monkeypatch):
    done = []

    def counted(name, problem, run, *rest):
        if len(done) == 3:
            raise KeyboardInterrupt
        done.append(run)
        return baselines.needed(name, problem, run, *rest)

    monkeypatch.setattr(comparison, "needed", counted)
    problems = [Parity(n=8, k=2)]
    with pytest.raises(KeyboardInterrupt):
        baselines.compare(problems, ["exhaustive"], runs=5, out=tmp_path)
    assert done == [0, 1, 2]
    done.clear()
    records = baselines.compare(problems, ["exhaustive"], runs=5, out=tmp_path)
    assert done == [3, 4]
    assert [record.run for record in records] == [0, 1, 2, 3, 4]
    for path in (tmp_path / "kept").iterdir():
        path.write_bytes(b"damaged")
    done.clear()
    with pytest.warns(KeptWarning, match="is damaged"):
        assert len(baselines.compare(problems, ["exhaustive"], runs=2, out=tmp_path)) == 2
    assert done == [0, 1]


def test_no_flipped_bit_changes_a_comparison(tmp_path):
    def compared():
        return [(row.run, row.status, row.samples) for row in baselines.compare([Parity(8, 2)], ["exhaustive"], 2,
                                                                                out=tmp_path)]

    first = compared()
    (path,) = (tmp_path / "kept").iterdir()
    data = path.read_bytes()
    for place in range(0, 8 * len(data), 8 * len(data) // 40):
        damaged = bytearray(data)
        damaged[place // 8] ^= 1 << place % 8
        path.write_bytes(damaged)
        with pytest.warns(KeptWarning, match="is damaged"):
            assert compared() == first


def test_a_comparison_of_an_earlier_version_is_said_to_be_done_again(tmp_path):
    problems = [Parity(8, 2)]
    baselines.compare(problems, ["exhaustive"], runs=1, out=tmp_path)
    (path,) = (tmp_path / "kept").iterdir()
    path.rename(earlier := path.with_suffix(".parquet"))
    with pytest.warns(KeptWarning, match="no digest"):
        baselines.compare(problems, ["exhaustive"], runs=1, out=tmp_path)
    baselines.compare(problems, ["exhaustive"], runs=1, out=tmp_path)
    assert earlier.exists()


def test_both_forms_of_the_figure_are_drawn():
    records = baselines.compare([Parity(n, 2) for n in (8, 12)], ["exhaustive", "goldreich-levin"], runs=3)
    records += [baselines.needed("ntk", Parity(n, 2), limit=20) for n in (8, 12)]
    several = baselines.comparison_plot(records)
    assert several.axes[0].get_xlabel() == "input bits n"
    one = baselines.comparison_plot([record for record in records if record.n == 8])
    labels = [text.get_text() for text in one.axes[0].get_yticklabels()]
    assert labels == ["exhaustive", "goldreich-levin (queries)", "ntk"]


def test_problems_with_equal_n_k_and_noise_are_told_apart():
    problems = [Parity(9, 2), Parity(9, support=(3, 7)), Parity(9, 2, sample=200), LeakyParity(9, 2)]
    records = baselines.compare(problems, ["exhaustive", "gaussian-elimination"], runs=2)
    rows = baselines.summarise(records)
    assert [row["runs"] for row in rows] == [2] * 8
    assert [row["details"] for row in rows[::2]] == ["", "support 3 7", "sample 200", "leaky-parity, leak 0.5"]
    assert [row["problem"] for row in rows[::2]] == [encode(problem) for problem in problems]


def test_a_figure_draws_each_problem_by_itself():
    problems = [Parity(9, 2), Parity(9, support=(3, 7)), Parity(9, 3), Parity(9, 2, noise=0.1)]
    records = baselines.compare(problems, ["exhaustive"], runs=2)
    axes = baselines.comparison_plot(records).axes[0]
    assert [text.get_text() for text in axes.get_yticklabels()] == [
        "exhaustive, k 2, noise 0", "exhaustive, k 2, noise 0, support 3 7", "exhaustive, k 3, noise 0",
        "exhaustive, k 2, noise 0.1"]
    points = [line.get_xdata() for line in axes.lines if line.get_marker() == "o"]
    assert [sorted(drawn) for drawn in points] == [sorted(r.samples for r in records[i : i + 2]) for i in (0, 2, 4, 6)]
    records += baselines.compare([Parity(8, 2), Parity(8, support=(3, 7))], ["exhaustive"], runs=2)
    several = baselines.comparison_plot([r for r in records if (r.k, r.noise) == (2, 0)])
    curves = [line for line in several.axes[0].lines if not line.get_label().startswith("_")]
    assert {line.get_label(): list(line.get_xdata()) for line in curves} == {
        "exhaustive": [8, 9], "exhaustive, support 3 7": [8, 9]}
