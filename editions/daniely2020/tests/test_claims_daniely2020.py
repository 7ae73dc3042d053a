"""The claims of daniely2020: each has a trial; those that take no time run."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from daniely2020.common import best, practical
from daniely2020.contrast import relevant_gradient
from daniely2020.exact import logistic
from daniely2020.linear_methods import METHODS, no_leak, one_step
from daniely2020.linear_methods import tested as judged
from daniely2020.theory.leaky import Leaky
from lengths import long_but

from paritylab.claims import Lab, find, reproduce


def test_every_claim_has_a_trial():
    claims = find(["daniely2020.*"])
    assert len(claims) == 16
    assert all(claim.trial.claim == claim.id for claim in claims)


@pytest.mark.parametrize("name", long_but(["lemma5", "lemma6", "lemma12", "uniform-contrast"], "lemma6", "lemma12"))
def test_fast_claims_are_reproduced(name, tmp_path):
    (claim,) = find([f"daniely2020.{name}"])
    assert reproduce(claim, Lab("quick", tmp_path, progress=False)).result["verdict"] == "reproduced"


def test_the_best_error_is_that_of_each_seed():
    runs = ((0, (0.5, 0.1, 0.2)), (1, (0.4, 0.3)))
    rows = [{"seed": seed, "error": error} for seed, errors in runs for error in errors]
    assert best(rows).tolist() == [0.1, 0.3]


def test_practical_setups_say_what_is_frozen():
    frozen = practical(21, 3, 4, frozen=True)
    assert frozen.learner.network.stepped is False
    assert dict(frozen.learner.optimiser.rates) == {"hidden": 0.0, "output": 1.0}
    frozen.check()
    assert frozen.id != practical(21, 3, 4).id


def test_logistic_regression_finds_a_direction():
    rng = np.random.default_rng(0)
    x, truth = rng.normal(size=(500, 4)), np.array([1.0, -2.0, 0.0, 0.5])
    weights = logistic(x, np.sign(x @ truth), ridge=1e-3)
    assert weights @ truth / np.linalg.norm(weights) / np.linalg.norm(truth) > 0.99


@pytest.mark.long
def test_methods_are_compared_on_the_same_samples():
    """A network of one step beats a linear method at n = 31, k = 3; without the leak it is at chance."""
    sizes = Leaky(31, 3)
    found = {name: judged(sizes, 3000, function, (0,)) for name, function in (("network", one_step), ("none", no_leak))}
    regression = partial(METHODS["logistic regression"], ridge=1.0)
    linear = judged(sizes, 3000, regression, (0,))
    assert found["network"]["uniform"] == linear["uniform"]
    assert found["network"]["wrong"] < 0.05 * linear["uniform"] < linear["wrong"]
    assert 0.4 < found["none"]["wrong"] / found["none"]["uniform"] < 0.6


def test_the_leak_makes_the_gradient():
    rng = np.random.default_rng(0)
    assert relevant_gradient(Leaky(101, 5), 100, rng) > 1e4 * relevant_gradient(Leaky(101, 5, 0.0), 100, rng)
