"""What the classifier does by itself: what it finds, what it refuses to name, and what it says of it."""

from __future__ import annotations

import itertools
import math
import subprocess
import sys
import warnings

import numpy as np
import pytest
from scipy import sparse, stats
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from paritylab import InvalidInput, ParityClassifier, provenance
from paritylab.baselines import cuts, votes
from paritylab.baselines.classifier import NoParity, Undetermined

QUIET = pytest.mark.filterwarnings("ignore::paritylab.baselines.classifier.NoParity",
                                   "ignore::paritylab.baselines.classifier.Undetermined")


def planted(rows, n, k, noise=0.0, seed=0, density=0.5):
    generator = np.random.default_rng(seed)
    x = generator.random((rows, n)) < density
    support = sorted(generator.choice(n, k, replace=False).tolist())
    return x, (x[:, support].sum(axis=1) + (generator.random(rows) < noise)) % 2, support


def fitted(x, y, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NoParity)
        return ParityClassifier(random_state=0, **options).fit(x, y)


# --- found ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("rows", "n", "k", "noise", "method"), [
    (400, 40, 5, 0.0, "gaussian-elimination"), (400, 40, 17, 0.0, "gaussian-elimination"),
    (100, 2000, 1, 0.0, "meet-in-the-middle"), (100, 2000, 2, 0.0, "meet-in-the-middle"),
    (300, 10_000, 3, 0.0, "meet-in-the-middle"), (300, 10_000, 4, 0.0, "meet-in-the-middle"),
    (300, 40, 3, 0.3, "correlation"), (200, 30, 5, 0.1, "correlation"), (400, 10_000, 2, 0.1, "correlation"),
    (400, 2000, 3, 0.1, "correlation"), (1500, 100, 40, 0.005, "pooled-elimination"),
])
def test_planted_parities_are_found(rows, n, k, noise, method):
    """The seed is fixed; with another, those of 10 % noise and 3 of 2,000 are missed with probability 1 %, pooled ones
    with (1 - 0.995^100)^64 < 1e-25, and 30 % noise leaves no other support a chance above 1e-4."""
    if provenance.kernel() is None and n * k > 2500:
        pytest.skip("the native kernel was not built")
    x, y, support = planted(rows, n, k, noise, seed=k)
    for labels in (y, 1 - y):
        model = fitted(x, labels, time_budget=60 if noise else 20, **({"k": k} if method == "correlation" else {}))
        assert model.support_.tolist() == support
        assert model.method_ == method
        assert model.found_
        assert model.determined_
        assert model.chance_ <= 0.01
        assert model.consistent_ == (noise == 0)
        assert model.noise_interval_[0] <= noise <= model.noise_interval_[1] or noise == 0.3
        unseen = np.random.default_rng(1).random((200, n)) < 0.5
        truth = (unseen[:, support].sum(axis=1) + (labels is not y)) % 2
        assert model.score(unseen, truth) == 1
        assert any(str(support[0]) in line or "a parity of" in line for line in model.report_)


def test_a_part_of_the_parity_that_explains_much_is_not_taken_for_it():
    """Features that are mostly 0: single ones, and pairs, are far beyond chance, and have more errors."""
    x, y, support = planted(2000, 40, 3, noise=0.05, density=0.05)
    model = fitted(x, y)
    assert model.support_.tolist() == support
    assert sum("; chance does so" in line for line in model.report_) > 1


def test_without_the_kernel(monkeypatch):
    monkeypatch.setattr(provenance, "kernel", lambda: None)
    for rows, n, k, noise in ((200, 300, 3, 0.0), (80, 100, 4, 0.0), (300, 60, 2, 0.1), (300, 30, 3, 0.2)):
        x, y, support = planted(rows, n, k, noise)
        assert fitted(x, y, k=k).support_.tolist() == support


def test_parities_larger_than_k_are_not_named():
    for rows in (200, 40):
        x, y, _ = planted(rows, 50, 3)
        assert not fitted(x, y, k=2).found_
        assert fitted(x, y, k=3).found_
    assert not fitted(x, y, k=0).found_


# --- not found --------------------------------------------------------------------------------------------------------


@QUIET
@pytest.mark.parametrize(("density", "ones"), [(0.5, 0.5), (0.1, 0.5), (0.1, 0.1), (0.5, 0.1)])
@pytest.mark.parametrize(("rows", "n"), [(60, 8), (30, 40)])
def test_labels_without_a_parity_are_seldom_given_one(rows, n, density, ones):
    """Labels that are independent of features, rare ones too: of 100 tables at most 1 % should be given a parity;
    6 or more have probability 6e-4. The bounds are far from sharp, so that there are none most often."""
    named = 0
    for seed in range(100):
        generator = np.random.default_rng([seed, rows])
        x, y = generator.random((rows, n)) < density, generator.random(rows) < ones
        named += ParityClassifier(k=3, random_state=0, n_jobs=1).fit(x, y).found_
    assert named < 6


def test_where_none_is_found_the_commoner_label_is_predicted_and_it_is_said():
    generator = np.random.default_rng(0)
    x, y = generator.random((300, 20)) < 0.5, np.where(generator.random(300) < 0.7, "b", "a")
    with pytest.warns(NoParity, match=r"no parity was found \(report_ says what was tried\).* that of 7\d\.\d %"):
        model = ParityClassifier(random_state=0).fit(x, y)
    assert (model.found_, model.method_, model.support_.tolist(), model.chance_) == (False, "", [], 1.0)
    assert set(model.predict(x)) == {"b"}
    assert model.report_[0].startswith("elimination (")
    assert all(line.endswith(": none") for line in model.report_[1:] if line.startswith("supports"))
    assert model.predict_proba(x)[:, 1] == pytest.approx(np.mean(y == "b"), abs=0.01)


def test_what_there_was_no_time_for_is_said():
    x, y, _ = planted(400, 3000, 3, noise=0.2)
    model = fitted(x, y, time_budget=0.05)
    assert not model.found_
    assert any("not searched for lack of time: supports of" in line or "time was up" in line for line in model.report_)


def test_too_few_rows_name_no_parity():
    x, y, _ = planted(14, 1000, 3)
    model = fitted(x, y)
    assert not model.found_
    assert "too few" in model.report_[-1]
    assert "contradict" not in " ".join(model.report_)


@pytest.mark.parametrize("budget", [0, -1, math.nan, "long"])
def test_budgets_that_are_none_are_refused(budget):
    with pytest.raises(InvalidInput, match="time_budget must be"):
        ParityClassifier(time_budget=budget).fit(*planted(50, 5, 2)[:2])


# --- chance -----------------------------------------------------------------------------------------------------------


def test_the_law_of_labels_in_random_order():
    for values, labels in itertools.product(itertools.product((False, True), repeat=5), repeat=2):
        v, y = np.array(values), np.array(labels)
        agree = int((v == y).sum())
        orders = {tuple(order) for order in itertools.permutations(labels)}
        agreements = np.array([int((v == np.array(order)).sum()) for order in orders])
        tail = np.mean(agreements >= agree) if 2 * agree >= 5 else np.mean(agreements <= agree)
        assert math.exp(votes.log_chance(v, y)) == pytest.approx(min(1, 2 * tail))


def test_the_errors_that_are_told_from_chance():
    for rows, supports, alarm in itertools.product((5, 30, 400), (1, 1e4, 1e12), (0.05, 0.001)):
        most = votes.most_errors(rows, math.log(supports), alarm)
        assert most < 0 or 2 * supports * stats.binom.cdf(most, rows, 0.5) <= alarm * (1 + 1e-9)
        assert 2 * supports * stats.binom.cdf(most + 1, rows, 0.5) > alarm


# --- probabilities and weights ----------------------------------------------------------------------------------------


def test_probabilities_come_from_the_noise_rate_and_its_interval_is_exact():
    x, y, support = planted(500, 12, 3, noise=0.1)
    model = fitted(x, y)
    wrong = int((x[:, support].sum(axis=1) % 2 != y).sum())
    assert model.noise_rate_ == wrong / 500
    assert model.noise_interval_ == pytest.approx(tuple(stats.binomtest(wrong, 500).proportion_ci(method="exact")))
    less = (wrong + 0.5) / 501
    assert set(np.unique(model.predict_proba(x).round(12))) == {round(less, 12), round(1 - less, 12)}
    odds = model.predict_proba(x)[:, 1] / model.predict_proba(x)[:, 0]
    np.testing.assert_allclose(model.decision_function(x), np.log(odds))
    np.testing.assert_array_equal(model.predict(x), model.decision_function(x) > 0)
    sure = fitted(x, x[:, support].sum(axis=1) % 2)
    assert sure.noise_interval_ == pytest.approx(tuple(stats.binomtest(0, 500).proportion_ci(method="exact")))


@QUIET
def test_a_weight_of_two_is_two_rows_and_order_does_not_matter():
    x, y, support = planted(150, 10, 3, noise=0.2)
    generator = np.random.default_rng(1)
    weight = generator.integers(0, 4, 150)
    for method in ("auto", "gaussian-elimination", "low-degree", "exhaustive"):
        model = ParityClassifier(3, method, random_state=0)
        weighed = clone(model).fit(x, y, weight)
        order = generator.permutation(weight.sum())
        repeated = clone(model).fit(np.repeat(x, weight, axis=0)[order], np.repeat(y, weight)[order])
        assert weighed.support_.tolist() == repeated.support_.tolist() == support
        assert weighed.chance_ == pytest.approx(repeated.chance_)
        np.testing.assert_allclose(weighed.predict_proba(x), repeated.predict_proba(x))


def test_weights_decide_between_two_parities():
    x, _, _ = planted(400, 10, 1)
    half = np.arange(400) < 200
    y = np.where(half, x[:, 1] ^ x[:, 2], x[:, 3] ^ x[:, 4] ^ x[:, 5])
    for heavy, support in ((half, [1, 2]), (~half, [3, 4, 5])):
        model = ParityClassifier(random_state=0).fit(x, y, np.where(heavy, 2.5, 1.0))
        assert model.support_.tolist() == support


def test_units_are_in_the_proportion_of_votes():
    x = np.eye(4, dtype=bool)
    found = votes.count(x[[0, 1, 1, 2, 3]], np.array([1, 0, 0, 1, 1], bool), np.array([1.5, 0.75, 0.75, 3.0, 0.5]))
    units, labels = found.units()
    times = [int((units == row).all(axis=1).sum()) for row in x]
    assert times == [3, 3, 6, 1]
    assert [set(labels[(units == row).all(axis=1)].tolist()) for row in x] == [{True}, {False}, {True}, {True}]


def test_ties_among_noisy_parities_are_reported():
    x, y, support = planted(300, 12, 3, noise=0.1)
    with pytest.warns(Undetermined, match="another one explains as many labels"):
        model = ParityClassifier(random_state=0).fit(np.column_stack([x, ~x[:, support[0]]]), y)
    assert model.support_.tolist() == support
    assert not model.determined_


def test_repeated_rows_are_no_evidence():
    """8 rows a thousand times each, or with large weights, still do not tell a parity of 40 features."""
    x, y, _ = planted(8, 40, 2)
    assert not fitted(np.repeat(x, 1000, axis=0), np.repeat(y, 1000)).found_
    with pytest.warns(NoParity):
        assert not ParityClassifier(random_state=0).fit(x, y, np.full(8, 1000.0)).found_


def test_rows_that_contradict_one_another_are_noise():
    x, y, support = planted(300, 12, 3)
    model = fitted(np.vstack([x, x[:30]]), np.concatenate([y, 1 - y[:30]]))
    assert model.report_[0] == "the same inputs have different labels: no parity explains all"
    assert model.support_.tolist() == support
    assert model.noise_rate_ == pytest.approx(30 / 330)


@pytest.mark.parametrize(("weight", "message"), [(np.zeros(60), "[Ss]ample.weights? must"),
                                                 (np.full(60, -1.0), "Negative values")])
def test_weights_that_are_none_are_refused(weight, message):
    x, y, _ = planted(60, 5, 2)
    with pytest.raises(ValueError, match=message):
        ParityClassifier().fit(x, y, weight)


# --- tables of other kinds --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.csc_array, sparse.coo_matrix])
@pytest.mark.parametrize("values", [(0, 1), (-1, 1), (0, 2.5), (-3, 0)])
def test_sparse_tables_are_dense_ones(kind, values, monkeypatch):
    monkeypatch.setattr(cuts, "ENTRIES", 1000)  # several parts
    x, y, support = planted(120, 60, 3, density=0.2)
    dense = np.where(x, values[1], values[0]).astype(float)
    model = ParityClassifier(random_state=0, binarise=False).fit(kind(dense), y)
    assert model.support_.tolist() == support
    np.testing.assert_array_equal(model.predict(kind(dense)), y)
    np.testing.assert_array_equal(model.predict(dense), y)
    dense[3, 50] = 0.5 * (values[0] + values[1])
    with pytest.raises(InvalidInput, match="feature 50 has more than two values"):
        ParityClassifier(binarise=False).fit(kind(dense), y)


def test_grids_pipelines_and_clones():
    x, y, support = planted(300, 15, 3, noise=0.05)
    model = make_pipeline(FunctionTransformer(), ParityClassifier(random_state=0))
    grid = GridSearchCV(model, {"parityclassifier__" + name: values for name, values in (
        ("k", [1, 2, 3]), ("method", ["auto", "low-degree"]))}, cv=3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        grid.fit(x, y)
    assert grid.best_params_["parityclassifier__k"] == 3
    assert grid.best_estimator_[-1].support_.tolist() == support
    given = {"k": 2, "method": "sgd", "binarise": False, "time_budget": 3.0, "n_jobs": 1, "random_state": 4,
             "width": 20, "lr": 0.1, "weight_decay": 0.01, "batch": 16, "steps": 100}
    assert clone(ParityClassifier(**given)).get_params() == given


@pytest.mark.long
@QUIET
def test_parameters_of_networks_are_used():
    x, y, support = planted(2000, 12, 3)
    grid = GridSearchCV(ParityClassifier(3, "sgd", random_state=0), {"lr": [1e-6, 0.5], "steps": [3000]}, cv=2)
    grid.fit(x, y)
    assert grid.best_params_ == {"lr": 0.5, "steps": 3000}
    assert grid.best_estimator_.support_.tolist() == support
    wide = ParityClassifier(3, "sgd", random_state=0, width=64, lr=0.3, weight_decay=1e-4, batch=64, steps=3000)
    assert wide.fit(x, y).support_.tolist() == support


def test_a_fit_imports_no_jax():
    code = ("import sys, numpy as np, paritylab as pl; x = np.random.default_rng(0).integers(0, 2, (90, 30));"
            "pl.ParityClassifier().fit(x, x[:, :3].sum(1) % 2);"
            "pl.ParityClassifier(k=2, time_budget=1).fit(x, np.arange(90) % 3 == 0);"
            "print(sorted({'jax', 'polars', 'matplotlib', 'pandas'} & set(sys.modules)))")
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
