"""The classifier: scikit-learn's own checks, and parities hidden in data of several kinds."""

from __future__ import annotations

import itertools
import pickle

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from paritylab import InvalidInput, ParityClassifier
from paritylab.baselines import sparsest
from paritylab.baselines.classifier import METHODS, NoParity, Undetermined

SUPPORT = [2, 5, 7]
NOTED = [f"ignore::paritylab.baselines.classifier.{name}" for name in ("NoParity", "Undetermined")]
EXACT = [method for method in METHODS if method != "sgd"]
NOISY = [method for method in EXACT if method != "meet-in-the-middle"]
KEPT = [method for method in NOISY if method != "auto"]
"""Those that keep the best parity, also where it may be chance."""


def planted(rows=120, n=12, seed=0):
    bits = np.random.default_rng(seed).integers(0, 2, (rows, n))
    return bits, bits[:, SUPPORT].sum(axis=1) % 2


@pytest.mark.filterwarnings(*NOTED)
@parametrize_with_checks([ParityClassifier(k, method, time_budget=1) for method in EXACT for k in (None, 2)])
def test_scikit_learn_accepts_it(estimator, check):
    check(estimator)


@pytest.mark.long
@pytest.mark.filterwarnings(*NOTED)
@parametrize_with_checks([ParityClassifier(2, "sgd", random_state=0, steps=100)])
def test_scikit_learn_accepts_networks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("method", EXACT)
@pytest.mark.parametrize("k", [None, 3])
def test_two_valued_features_of_any_kind_and_any_labels(method, k):
    bits, y = planted()
    low, high = np.linspace(-3, 0.5, 12), np.linspace(1, 9, 12)
    for x in (bits, 1 - 2 * bits, np.where(bits, high, low), np.where(bits, low, high), bits.astype(bool)):
        for labels in (y, 1 - 2 * y, np.where(y, "yes", "no"), np.where(y, "no", "yes")):
            model = ParityClassifier(k, method).fit(x[:100], labels[:100])
            assert model.support_.tolist() == SUPPORT
            assert model.consistent_
            assert model.determined_
            assert model.score(x[100:], labels[100:]) == 1
            assert set(model.classes_) == set(labels)
            assert model.n_features_in_ == 12


@pytest.mark.parametrize("method", KEPT)
def test_noise_is_survived_and_reported(method):
    bits, y = planted(rows=400)
    noisy = np.where(np.random.default_rng(1).random(400) < 0.04, 1 - y, y)
    with pytest.warns(NoParity, match="explains 9"):
        model = ParityClassifier(3, method, random_state=0).fit(bits, noisy)
    assert model.support_.tolist() == SUPPORT
    assert not model.consistent_
    assert model.score(bits, y) == 1


@pytest.mark.parametrize("method", KEPT)
def test_labels_that_are_no_parity_are_said_to_be_none(method):
    """Random labels on 200 rows of 12 features: the best of 299 parities, or of 64 eliminations, is called chance."""
    generator = np.random.default_rng(3)
    bits = generator.integers(0, 2, (200, 12))
    with pytest.warns(NoParity, match="as chance might: they are most likely not a parity of these features"):
        ParityClassifier(3, method, random_state=0).fit(bits, generator.integers(0, 2, 200))


def test_a_majority_is_no_parity_but_no_chance_either():
    bits = np.random.default_rng(4).integers(0, 2, (400, 12))
    with pytest.warns(NoParity, match="more than chance: they are noisy, or more than one parity"):
        model = ParityClassifier(3, "low-degree").fit(bits, bits[:, [0, 1, 2]].sum(axis=1) > 1)
    assert not model.consistent_


@pytest.mark.long
def test_a_network_gives_its_support_away():
    bits, y = planted(rows=2000)
    signs = np.insert(1 - 2 * bits, 12, 1, axis=1)  # a feature that is constant as well
    model = ParityClassifier(3, "sgd", random_state=0).fit(signs, 1 - y)
    assert model.support_.tolist() == SUPPORT
    assert model.score(signs, 1 - y) == 1


def test_too_few_rows_give_a_parity_that_explains_them_and_say_so():
    bits, y = planted(rows=8)
    with pytest.warns(Undetermined, match="rank 8 of 13; this one, of . features, is the sparsest"):
        model = ParityClassifier(method="gaussian-elimination").fit(bits, y)
    assert model.consistent_
    assert not model.determined_
    assert len(model.support_) <= 3


def test_ties_between_supports_are_reported():
    bits, y = planted()
    for copied, methods in ((bits[:, 7], EXACT), (1 - bits[:, 7], EXACT), (bits[:, 7] ^ bits[:, 5], NOISY)):
        more = np.column_stack([bits, copied])
        for method in methods:
            with pytest.warns(Undetermined, match="the data do not determine the parity"):
                model = ParityClassifier(None, method).fit(more, y)
            assert model.consistent_
            assert not model.determined_
            assert len(model.support_) <= 3
            assert model.score(more, y) == 1


@pytest.mark.parametrize("method", EXACT)
@pytest.mark.parametrize("k", [None, 3])
def test_constant_features_are_never_part_of_the_support(method, k):
    bits, y = planted()
    x = np.insert(bits, [0, 3, 12], [0, 1, 1], axis=1)
    model = ParityClassifier(k, method).fit(x, 1 - y)
    assert model.support_.tolist() == [3, 7, 9]
    assert model.determined_
    x[:, [0, 4, 14]] ^= 1  # what was constant in training need not be so later
    assert model.score(x, 1 - y) == 1


def test_constant_labels_have_the_empty_parity():
    bits, _ = planted()
    for method in EXACT:
        constant = ParityClassifier(method=method).fit(bits, np.full(len(bits), "only"))
        assert constant.support_.tolist() == []
        assert constant.determined_
        assert set(constant.predict(bits)) == {"only"}
    nothing = np.ones((4, 3))
    for method in NOISY:
        with pytest.warns(NoParity, match=r"75\.0 %"):
            model = ParityClassifier(method=method).fit(nothing, [0, 1, 1, 1])
        assert model.predict(nothing).tolist() == [1] * 4


@pytest.mark.parametrize(("low", "high"), [
    (1.0, np.nextafter(1.0, 2)), (np.nextafter(1.0, 0), 1.0), (0.0, 5e-324), (5e-324, 1e-323), (-5e-324, 0.0),
    (-1e304, 1e304), (np.nextafter(3.0, 4), np.nextafter(np.nextafter(3.0, 4), 4)),
])
def test_two_values_are_told_apart_however_near_or_far(low, high):
    bits, y = planted()
    for method in EXACT:
        model = ParityClassifier(3, method, binarise=False).fit(np.where(bits, high, low), y)
        assert model.support_.tolist() == SUPPORT
        assert model.score(np.where(bits, high, low), y) == 1


# --- fewer rows than features -----------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_of_many_parities_that_explain_the_labels_the_sparsest_is_found(size):
    generator = np.random.default_rng(size)
    x = generator.integers(0, 2, (70, 150))
    support = sorted(generator.choice(150, size, replace=False).tolist())
    for labels in (x[:, support].sum(axis=1) % 2, 1 - x[:, support].sum(axis=1) % 2):
        with pytest.warns(Undetermined, match="the sparsest and the only one of its size"):
            model = ParityClassifier(method="gaussian-elimination", random_state=0).fit(x, labels)
        assert model.support_.tolist() == support
        assert model.consistent_
        unseen = generator.integers(0, 2, (100, 150))
        truth = (unseen[:, support].sum(axis=1) + labels[0] + x[0, support].sum()) % 2
        assert model.score(unseen, truth) == 1


def test_a_larger_parity_is_found_where_a_random_solution_holds_it_and_never_called_the_sparsest():
    """A share (65/100)^6 of random solutions holds the support: 65 of them all miss it with probability 0.6 %."""
    generator = np.random.default_rng(0)
    x = generator.integers(0, 2, (65, 100))
    support = [3, 20, 41, 57, 66, 98]
    with pytest.warns(Undetermined, match=r"has 6 features, a sparser one \(of 5 at least\) may explain"):
        model = ParityClassifier(method="gaussian-elimination", random_state=0).fit(x, x[:, support].sum(axis=1) % 2)
    assert model.support_.tolist() == support


def test_the_sparsest_parity_is_that_of_brute_force():
    generator = np.random.default_rng(1)
    for _ in range(60):
        rows, n = int(generator.integers(2, 8)), int(generator.integers(1, 9))
        x = generator.integers(0, 2, (rows, n)).astype(bool)
        y = (x @ generator.integers(0, 2, n) + generator.integers(2)) % 2 == 1
        fits = [set(support) for size in range(n + 1) for support in itertools.combinations(range(n), size)
                if len(set((x[:, list(support)].sum(axis=1) + y) % 2)) == 1]
        least = min(map(len, fits))
        found = sparsest.sparsest(x, y, generator)
        assert set(found.support) in fits
        assert found.least <= least
        if least <= 4:
            same = sum(len(each) == least for each in fits)
            assert (len(found.support), found.least, found.alone) == (least, least, same == 1)


def test_a_wide_table_is_searched_as_far_as_the_budget_goes(monkeypatch):
    generator = np.random.default_rng(2)
    x = generator.integers(0, 2, (40, 120)).astype(bool)
    monkeypatch.setattr("paritylab.provenance.kernel", lambda: None)
    monkeypatch.setattr(sparsest, "MOST_PAIRS_MET", 100)
    found = sparsest.sparsest(x, x[:, [1, 2, 3]].sum(axis=1) % 2 == 1, generator)
    assert (found.least, found.alone) == (3, None)
    assert sparsest.sparsest(x, x[:, 1] ^ x[:, 2], generator) == ([1, 2], 2, True)


def test_features_of_more_values_are_cut_at_the_midpoint_or_refused():
    bits, y = planted()
    x = bits + np.random.default_rng(2).uniform(-0.3, 0.3, bits.shape)
    assert ParityClassifier().fit(x, y).support_.tolist() == SUPPORT
    with pytest.raises(ValueError, match="feature 0 has more than two values"):
        ParityClassifier(binarise=False).fit(x, y)
    assert ParityClassifier(binarise=False).fit(bits, y).support_.tolist() == SUPPORT


@pytest.mark.parametrize(("model", "message"), [
    (ParityClassifier(method="magic"), "unknown method 'magic'"),
    (ParityClassifier(k=13, method="gaussian-elimination"), "k must be in 0..12"),
    (ParityClassifier(k=-1, method="exhaustive"), "k must be in 0..12"),
    (ParityClassifier(k=-1, method="low-degree"), "k must be in 0..12"),
    *((ParityClassifier(k, method), "k must be a whole number in 0..12, or None, not")
      for k in ("3", 2.0, [2], True) for method in METHODS),
])
def test_mistakes_are_named(model, message):
    with pytest.raises(InvalidInput, match=message) as caught:
        model.fit(*planted())
    assert "\n" not in str(caught.value)


def test_a_size_beyond_the_features_is_a_bound_or_refused():
    bits, y = planted()
    assert ParityClassifier(np.int64(3), "exhaustive").fit(bits, y).support_.tolist() == SUPPORT
    assert ParityClassifier(13, "low-degree").fit(bits[:, :8], y).support_.tolist() == SUPPORT
    with pytest.raises(InvalidInput, match="no support has 3 members: only 2 features vary"):
        ParityClassifier(3, "exhaustive").fit(np.insert(bits[:, :2], 1, 0, axis=1), y)


def test_values_that_are_missing_are_refused():
    bits, y = planted()
    with pytest.raises(ValueError, match="contains NaN"):
        ParityClassifier().fit(np.where(bits == 1, np.nan, 0.0), y)


def test_searches_beyond_reach_are_refused():
    x = np.random.default_rng(0).integers(0, 2, (20, 200))
    with pytest.raises(ValueError, match=r"too many, they would take about .*; lower k or raise time_budget"):
        ParityClassifier(8, "exhaustive").fit(x, x[:, 0])


def test_it_can_be_pickled():
    bits, y = planted()
    model = pickle.loads(pickle.dumps(ParityClassifier().fit(bits, y)))
    np.testing.assert_array_equal(model.predict(bits), y)
