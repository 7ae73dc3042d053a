"""Pruning against brute force, the constructions, and examples that are those of the engine."""

import itertools

import numpy as np
import pytest
from paritylab_grokking.merrill2023 import common, constructions, pruning, sparse

from paritylab import curves, rng
from paritylab.measures.fourier import cube


@pytest.mark.parametrize("k", range(1, 8))
def test_conjunctions_are_the_parity_itself(k):
    x = cube(k)
    assert np.array_equal(constructions.conjunctions(k)(x), x.prod(axis=1))


def test_six_and_four_units_have_the_sign_of_a_parity_of_three_bits():
    x = cube(3)
    six, four, y = constructions.six()(x), constructions.four()(x), x.prod(axis=1)
    assert set(six[y > 0]) == {10, 7}
    assert set(six[y < 0]) == {-1}
    assert np.array_equal(four, y)


@pytest.mark.parametrize("unit", range(4))
def test_four_units_need_all_four(unit):
    """What is left of the smallest construction is no parity: the brute force sees a missing unit."""
    four, x = constructions.four(), cube(3)
    left = np.arange(4) != unit
    assert np.any(constructions.Units(four.w[left], four.b[left], four.c[left])(x) * x.prod(axis=1) <= 0)


def network(generator, width=7, n=5):
    return [{"w": generator.normal(size=(n, width)).astype(np.float32), "b": generator.normal(size=width)},
            {"w": generator.normal(size=(width, 1)).astype(np.float32)}]


def alone(params, units, x):
    """Unit by unit, in plain loops."""
    total = np.zeros(len(x))
    for unit in units:
        z = x @ params[0]["w"][:, unit].astype(float) + params[0]["b"][unit]
        total += np.maximum(z, 0) * float(params[1]["w"][unit, 0])
    return np.sign(total)


@pytest.mark.parametrize("seed", range(30))
def test_the_fewest_units_are_those_of_going_through_all_numbers(seed):
    generator = np.random.default_rng(seed)
    params, x = network(generator), cube(5).astype(np.float32)
    y = x[:, :3].prod(axis=1)
    order = sorted(range(7), key=lambda unit: -float(np.sum(params[0]["w"][:, unit].astype(float) ** 2)))
    whole = alone(params, order, x)
    right = [k for k in range(1, 8) if np.sum(alone(params, order[:k], x) == y) == np.sum(whole == y)]
    same = [k for k in range(1, 8) if np.array_equal(alone(params, order[:k], x), whole)]
    assert pruning.fewest(params, x, y) == (right[0], same[0])


@pytest.mark.parametrize("seed", range(10))
def test_agreement_is_that_of_units_taken_one_by_one(seed):
    generator = np.random.default_rng(seed)
    params, x = network(generator), cube(5).astype(np.float32)
    sets = generator.integers(0, 2, (4, 7)).astype(bool)
    whole = alone(params, range(7), x)
    expected = [np.mean(alone(params, np.flatnonzero(each), x) == whole) for each in sets]
    assert pruning.agreement(params, x, sets) == pytest.approx(expected)


def test_no_units_agree_with_nothing():
    params, x = network(np.random.default_rng(0)), cube(5).astype(np.float32)
    agreement = pruning.agreement(params, x, np.zeros((1, 7), bool))
    assert agreement == pytest.approx([np.mean(alone(params, range(7), x) == 0)])


def test_examples_are_those_on_which_the_engine_trains_and_tests():
    """After two passes accuracies by these examples are those of the engine, in every run."""
    asked, runs = common.setup(), [0, 3]
    made = curves(asked, [2 * common.STEPS], runs=runs, seed=1, weights=True, train=True)
    for i, key in enumerate(rng.run_keys(np.ones(2, int), np.array(runs))):
        seen, params = common.examples(asked, key), common.at_run(common.at_run(made.weights, i), 0)
        v = params[1]["w"][:, 0]
        train, test = (np.mean(pruning.hidden(params, x) @ v * y > 0)
                       for x, y in ((seen.x, seen.y), (seen.test, seen.test[:, :3].prod(axis=1))))
        # one input at the edge may fall either way in another order of summation
        assert train == pytest.approx(made.train_accuracy[i, 0], abs=0.0011)
        assert test == pytest.approx(made.accuracy[i, 0], abs=0.0011)


def test_the_lead_is_between_its_ends_whatever_the_counts():
    for six, five, four in itertools.product((0, 3, 20), repeat=3):
        if total := six + five + four:
            value, (low, high) = sparse.lead({6: six, 5: five, 4: four}, total)
            assert low <= value <= high
            assert value == pytest.approx((six - max(five, four)) / total)


def test_an_undecided_transition_is_not_a_time():
    assert common.at(np.ones((1, 3)), np.array([25.0]), every=10)[0] != 1
    assert common.first(np.zeros((2, 3), bool)).tolist() == [np.inf, np.inf]
