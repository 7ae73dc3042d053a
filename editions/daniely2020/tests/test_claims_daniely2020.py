"""The claims of daniely2020: helpers, those that take no time, and rules on made-up data."""

from __future__ import annotations

import math
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from daniely2020 import contrast, linear_methods, second_phase
from daniely2020.common import Trained, best, practical
from daniely2020.contrast import DEPTHS, relevant_gradient
from daniely2020.exact import best_margin, largest_margin, logistic, needed
from daniely2020.features import Lemma10, bump_chances, distances
from daniely2020.first_step import Lemma3, Lemma7, all_units, good_row
from daniely2020.linear_methods import METHODS, no_leak, one_step
from daniely2020.linear_methods import tested as judged
from daniely2020.theory.leaky import Leaky
from lengths import long_but

from paritylab.claims import Lab, find, reproduce, size
from paritylab.claims.verdicts import CONTRADICTED, HOLDS, UNDECIDED, results
from paritylab.engines.curves import Curves


def test_every_claim_has_a_trial():
    claims = find(["daniely2020.*"])
    assert len(claims) == 16
    assert all(claim.trial.claim == claim.id for claim in claims)


@pytest.mark.parametrize("name", long_but(["lemma5", "lemma6", "lemma12", "uniform-contrast"], "lemma6", "lemma12"))
def test_fast_claims_hold(name, tmp_path):
    (claim,) = find([f"daniely2020.{name}"])
    assert set(reproduce(claim, Lab("quick", tmp_path, progress=False)).result["results"].values()) == {HOLDS}


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


# --- rules on made-up data ----------------------------------------------------------------------------------------


def test_all_units_have_the_draws_means():
    drawn = relevant_gradient(Leaky(51, 3), 20_000, np.random.default_rng(0))
    assert contrast.mean_gradient(Leaky(51, 3)) == pytest.approx(drawn, rel=5e-3)
    units, chance = all_units(Leaky(301, 5))
    assert chance.sum() == pytest.approx(1.0, abs=1e-12)
    assert float(chance @ units.others) == pytest.approx(2 / 3 * 296)


def test_small_lemmas_hold():
    assert set(results(Lemma3("quick").judge(None).checks).values()) == {HOLDS}
    assert set(results(Lemma7("quick").judge(None).checks).values()) == {HOLDS}
    assert good_row(Leaky(101, 7), 50)["smallest alpha"] < 0.25 + 0.03


def test_bumps_are_met_and_cut_off_bumps_are_not():
    found = bump_chances(0, 7, list(distances(7)), 21)
    assert np.min(found["near"]) > 0.5 / (8 * 49)
    assert max(found["cut"]) == 0


class FewerDegrees(Lemma10):
    regime = size([7])


@pytest.mark.parametrize(("power", "expected"), [(-0.5, HOLDS), (-1.0, CONTRADICTED)])
def test_norms_of_separators(power, expected):
    trial = FewerDegrees("full")
    vars(trial)["limits"] = {k: [1.0] * 3 for k in trial.k}
    rng = np.random.default_rng(0)
    got = [{"norm": q**power * rng.uniform(0.95, 1.05)} for _ in trial.k for q in trial.q for _ in range(trial.seeds)]
    found = results(trial.judge(got).checks)
    assert found["drawn units, k = 3 and 5"] == expected
    assert found["weights as printed"] == CONTRADICTED
    assert found["weights corrected"] == found["many units, k = 7 to 11, n = k^10"] == HOLDS


def test_embeddings_are_found_where_there_are_some():
    signs = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
    hadamard = np.concatenate([np.ones((4, 1)), signs, signs.prod(1, keepdims=True)], axis=1)
    margins = {d: best_margin(hadamard, d, np.random.default_rng(0)) for d in (1, 4)}
    assert margins[1] <= 0 < margins[4]
    assert needed(6, 3) == math.ceil(math.sqrt(20))
    assert largest_margin(signs, signs[:, 1]) == 1.0


def rows(errors, n=61, k=3, name="error") -> Any:
    return SimpleNamespace(rows=[[{"n": n, "k": k, "seed": seed, "step": 0, name: error}
                                  for seed, error in enumerate(errors)]])


@pytest.mark.parametrize(("error", "expected"), [(0.0, HOLDS), (0.3, CONTRADICTED)])
def test_theorem_2_has_parts(error, expected):
    trial = second_phase.Thm2("full")
    got = second_phase.Runs(
        [rows([error] * seeds, n, k) for n, k, *_, seeds in trial.networks],
        [rows([0.3, 0.31, 0.32], n, k) for n, k, *_ in trial.networks],
        [rows([0.37, 0.375, 0.376]) for _ in trial.printed], {"steps": np.array([1]), "error": np.array([0.2]),
                                                              "noise": np.array(0.0)})
    found = results(trial.judge(got).checks)
    assert found == {second_phase.OWN: HOLDS, second_phase.SMALL: CONTRADICTED,
                     second_phase.THREE: expected, second_phase.FIVE: expected}


@pytest.mark.parametrize(("cubic", "expected"), [(0.0, CONTRADICTED), (0.5, HOLDS)])
def test_linear_methods_have_a_budget(cubic, expected):
    trial = linear_methods.LinearFails("full")
    rng = np.random.default_rng(0)

    def answers(samplings, network):
        for _ in samplings:
            for each in trial.tries(network):
                wrong = {"network": 0.001, "cubic kernel": cubic}.get(each.method, 0.5) * 8000 + rng.integers(0, 9)
                yield {"inputs": 16000, "uniform": 8000, "wrong": int(wrong), "right": 16000 - int(wrong) - 1000 * (
                    each.method not in ("network", "network without leak"))}

    got = [list(answers(trial.samplings(), False)), list(answers(trial.same_samplings(), True))]
    found = results(trial.judge(got).checks)
    assert found["k = 3, more samples than C(n, k)"] == expected
    assert set(found) == {"k = 3, more samples than C(n, k)", "k = 3, fewer samples than C(n, k)",
                          "k = 5, fewer samples than C(n, k)", linear_methods.SAME}


def test_errors_fall_with_the_leak_or_do_not():
    trial = contrast.OpenLeakStrength("standard")

    def made(errors) -> list[Any]:
        parts = [rows([error] * 5, 101, name="uniform error").rows[0] for error in errors]
        return [SimpleNamespace(rows=parts)]

    assert results(trial.judge(made([0.5, 0.3, 0.1, 0.02, 0.01, 0.0])).checks) == {"k = 3": HOLDS}
    assert results(trial.judge(made([0.0, 0.1, 0.2, 0.3, 0.4, 0.5])).checks) == {"k = 3": CONTRADICTED}
    assert results(trial.judge(made([0.0] * 6)).checks) == {"k = 3": UNDECIDED}


@pytest.mark.parametrize(("relu", "expected"), [(1.0, CONTRADICTED), (0.5, HOLDS)])
def test_depth_is_separated_only_if_every_shallow_network_fails(relu, expected):
    trial = contrast.OpenDepth("full")
    accuracy = {"depth 3, z^2": 1.0, "depth 2, ReLU": relu}
    got: list[Any] = [SimpleNamespace(accuracy=np.full((trial.runs, 1), accuracy.get(network, 0.5)))
                      for _ in trial.n for network in DEPTHS]
    assert results(trial.judge(got).checks) == {contrast.QUADRATIC: HOLDS, contrast.EVERY: expected}


@pytest.mark.parametrize(("learned", "expected"), [(True, CONTRADICTED), (False, HOLDS)])
def test_a_network_that_learns_without_the_leak_is_seen(learned, expected):
    """Units on s, the sum of three signs: lines through (s, parity) of the four sums."""
    n, k = 101, 3
    w = np.zeros((n, 4))
    w[:k] = math.sqrt(n) / 2
    output = np.array([-1.0, 4.0, -8.0, 12.0]) if learned else np.ones(4)
    params = {"hidden": {"w": w, "b": np.array([2.0, 1.0, 0.0, -1.0])}, "output": output}
    weights = {"hidden": {name: np.tile(each, (3, 1, *[1] * each.ndim)) for name, each in params["hidden"].items()},
               "output": np.tile(output, (3, 1, 1))}
    curves = Curves(np.array([0]), np.zeros((3, 1)), np.zeros((3, 1)), weights)
    trial = contrast.UniformContrast("standard", 1)
    trial.networks, trial.large = [[n, k, 2, 0, 3]], [1001, 2001]  # the exponent is not what is asked here
    checks = trial.judge([Trained([practical(n, k, 2, leak=0.0)], [curves], 1)]).checks
    assert [check.result for check in checks if check.by is trial.chance] == [expected]
