"""The classifier: scikit-learn's own checks, and parities hidden in data of several kinds."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from paritylab import ParityClassifier
from paritylab.classifier import METHODS, NoParity

SUPPORT = [2, 5, 7]
EXACT = [method for method in METHODS if method != "sgd"]


def planted(rows=120, n=12, seed=0):
    bits = np.random.default_rng(seed).integers(0, 2, (rows, n))
    return bits, bits[:, SUPPORT].sum(axis=1) % 2


@pytest.mark.filterwarnings("ignore::paritylab.classifier.NoParity")
@parametrize_with_checks([ParityClassifier(method=method) for method in EXACT])
def test_scikit_learn_accepts_it(estimator, check):
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


@pytest.mark.parametrize("method", EXACT)
def test_noise_is_survived_and_reported(method):
    bits, y = planted(rows=400)
    noisy = np.where(np.random.default_rng(1).random(400) < 0.04, 1 - y, y)
    with pytest.warns(NoParity, match="explains 9"):
        model = ParityClassifier(3, method, random_state=0).fit(bits, noisy)
    assert model.support_.tolist() == SUPPORT
    assert not model.consistent_
    assert model.score(bits, y) == 1


def test_a_network_gives_its_support_away():
    bits, y = planted(rows=2000)
    model = ParityClassifier(3, "sgd", random_state=0).fit(1 - 2 * bits, 1 - y)
    assert model.support_.tolist() == SUPPORT
    assert model.score(1 - 2 * bits, 1 - y) == 1


def test_too_few_rows_give_a_parity_that_explains_them_and_say_so():
    bits, y = planted(rows=8)
    model = ParityClassifier().fit(bits, y)
    assert model.consistent_
    assert not model.determined_


def test_ties_between_supports_are_reported():
    bits, y = planted()
    bits[:, 9] = bits[:, 7]
    for method in EXACT:
        model = ParityClassifier(3, method).fit(bits, y)
        assert model.consistent_
        assert not model.determined_


def test_constant_features_and_labels():
    bits, y = planted()
    bits[:, 4] = 1
    assert ParityClassifier().fit(bits, y).support_.tolist() == SUPPORT
    constant = ParityClassifier().fit(bits, np.full(len(y), "only"))
    assert constant.support_.tolist() == []
    assert set(constant.predict(bits)) == {"only"}


def test_features_of_more_values_are_cut_at_the_midpoint_or_refused():
    bits, y = planted()
    x = bits + np.random.default_rng(2).uniform(-0.3, 0.3, bits.shape)
    assert ParityClassifier().fit(x, y).support_.tolist() == SUPPORT
    with pytest.raises(ValueError, match="feature 0 has more than two values"):
        ParityClassifier(binarise=False).fit(x, y)
    assert ParityClassifier(binarise=False).fit(bits, y).support_.tolist() == SUPPORT


@pytest.mark.parametrize(("model", "message"), [
    (ParityClassifier(method="magic"), "unknown method 'magic'"),
    (ParityClassifier(k=13), "k must be in 0..12"),
    (ParityClassifier(k=-1, method="exhaustive"), "k must be in 0..12"),
])
def test_mistakes_are_named(model, message):
    with pytest.raises(ValueError, match=message):
        model.fit(*planted())


def test_searches_beyond_reach_are_refused():
    x = np.random.default_rng(0).integers(0, 2, (20, 200))
    with pytest.raises(ValueError, match="supports are too many"):
        ParityClassifier(6, "exhaustive").fit(x, x[:, 0])


def test_it_can_be_pickled():
    bits, y = planted()
    model = pickle.loads(pickle.dumps(ParityClassifier().fit(bits, y)))
    np.testing.assert_array_equal(model.predict(bits), y)
