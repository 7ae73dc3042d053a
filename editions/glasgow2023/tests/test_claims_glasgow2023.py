"""glasgow2023's claims: each has a trial, small ones are tried, helpers are checked against known answers,
rules on made-up data."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from glasgow2023 import gradients, invariance, phase_two, samples
from glasgow2023.gradients import INEQUALITIES, LemmaC2, LemmaC4, fresh
from glasgow2023.open_questions import OpenGaussian
from glasgow2023.phase_one import LemmaB13
from glasgow2023.phase_two import AS_PRINTED, CARRIED, Def42SignalHeavy, Phase2Margins, Remark43Frozen, carry
from glasgow2023.samples import Thm31
from glasgow2023.theory import xor

from paritylab.claims import Lab, find, reproduce
from paritylab.claims.medians import exponent
from paritylab.claims.verdicts import CONTRADICTED, HOLDS, results

CLAIMS = find(["glasgow2023.*"])


def test_every_claim_has_a_trial():
    assert len(CLAIMS) == 16
    assert all(claim.trial for claim in CLAIMS)


@pytest.mark.parametrize(("name", "false"), [
    ("lemma-c4", {"B4, as printed"}), ("lemma-c2", {"C.5's second line, as printed"}), ("lemma-b12", set())])
def test_exact_claims_hold_but_for_what_is_misprinted(name, false, tmp_path):
    found = reproduce(f"glasgow2023.{name}", Lab("quick", tmp_path, progress=False)).outcome.results
    assert {part for part, result in found.items() if result != HOLDS} == false
    assert {found[part] for part in false} <= {CONTRADICTED}
    assert (tmp_path / "claims" / f"glasgow2023.{name}" / "quick" / "figure.png").exists()


def test_exponents_of_power_laws_and_of_unsolved_runs():
    d = [10, 20, 40]
    values = [np.full(5, 3.0 * n**2) for n in d]
    assert exponent(d, values)[0] == pytest.approx(2.0)
    assert exponent(d, values, np.array(d) ** 0.5)[0] == pytest.approx(1.5)
    values[2][:4] = math.inf
    slope, interval = exponent(d, values)
    assert math.isnan(slope)
    assert interval == (-math.inf, math.inf)


def test_some_unsolved_runs_widen_the_interval():
    d = [10, 20, 40]
    values = [np.array([1.0, 1.1, 1.2, 1.3, 1.4]) * n for n in d]
    values[2][3:] = math.inf
    slope, interval = exponent(d, values)
    assert slope == pytest.approx(1.0)
    assert interval[1] == math.inf


def test_the_kernels_crossing_is_interpolated():
    size = samples.crossing(np.random.default_rng(0), 8, np.array([8, 16, 32, 64, 128]), 0.9, test=500)
    assert 16 < size < 128
    assert samples.crossing(np.random.default_rng(0), 8, np.array([2, 4]), 0.9, test=500) == math.inf


def test_fits_tell_lines_from_exponentials():
    x = np.arange(20.0)
    linear, exponential = phase_two.fit_both(x, 3 + x, np.arange(20))
    assert linear == pytest.approx(1.0)
    assert exponential < 0.99
    linear, exponential = phase_two.fit_both(x, np.exp(x / 5), np.arange(20))
    assert exponential == pytest.approx(1.0)
    assert linear < 0.9


def test_rises_are_relative_to_the_least_before():
    assert phase_two.rise(np.array([4.0, 2.0, 3.0, 1.0])) == 1.5
    assert math.isnan(phase_two.rise(np.array([1.0])))


def test_few_samples_leave_the_kernel_at_chance_and_the_best_pair_right():
    found = invariance.few_samples(0, 32, 30, 10, test=500)
    assert found["ntk"].mean() > 0.4
    assert found["pair"].mean() < 0.1


def test_inequalities_of_the_lemmas_hold_for_a_trained_network():
    generator = np.random.default_rng(1)
    neurons = gradients.trained(gradients.fresh(generator, 7, 12, 0.5), generator, 20)
    ratios = gradients.linearisation_ratios(neurons)
    del ratios["C.5, label flips"]
    assert max(ratios.values()) <= 1


def test_a_flip_of_the_label_breaks_the_printed_lemma_c5():
    assert gradients.linearisation_ratios(gradients.fresh(np.random.default_rng(2), 7, 12, 0.1))["C.5, label flips"] > 1


# --- rules on made-up data ----------------------------------------------------------------------------------------


def result(checks, name: str) -> str:
    (found,) = [check.result for check in checks if check.name.startswith(name)]
    return found


@pytest.mark.parametrize(("accuracy", "growth", "share", "slope"),
                         [(1.0, -0.3, HOLDS, HOLDS), (0.9, 0.3, CONTRADICTED, CONTRADICTED)])
def test_losses_fall_with_d(accuracy, growth, share, slope):
    trial = Thm31("full")
    rng = np.random.default_rng(0)
    got: list[Any] = [SimpleNamespace(records=SimpleNamespace(run=np.arange(10), accuracy=np.full(10, accuracy),
                                                              loss=0.01 * d**growth * rng.uniform(0.99, 1.01, 10)))
                      for d in trial.d]
    checks = trial.judge(got).checks
    assert result(checks, "share of runs") == share
    assert result(checks, "slope") == slope


def test_b4_and_c5_are_false_as_printed():
    assert results(LemmaC4("quick").judge(None).checks) == {
        "B1 to B3": HOLDS, "B4, exchanged": HOLDS, "B4, as printed": CONTRADICTED}
    trial = LemmaC2("quick")
    got: list[Any] = [{name: np.full(trial.networks, 5.0 if name == INEQUALITIES[-1] else 0.5) for name in INEQUALITIES}
                      | {"steps": np.zeros(trial.networks)} for _ in trial.points]
    assert sorted(results(trial.judge(got).checks).values()) == [CONTRADICTED, HOLDS, HOLDS]


@pytest.mark.parametrize(("violations", "expected"), [(0, HOLDS), (3, CONTRADICTED)])
def test_runs_without_a_violation_are_counted(violations, expected):
    trial = LemmaB13("full")
    got = [{"violations": np.full(10, violations), "ratio": np.full(10, 1.0), "pairs": np.full(10, 9),
            "drift": (5.0 if eta == trial.fast else 1.0) * np.linspace(0.9, 1.1, 10)} for _, eta in trial.points]
    checks = trial.judge(got).checks
    assert result(checks, "share of runs in which") == expected
    assert {check.result for check in checks if check.name.startswith("drift")} == {HOLDS}


def margins_of(trial, factor: float):
    """Two clusters whose margins grow at a factor times the lemma's rates."""
    made = []
    for eta in trial.eta:
        for _ in range(2):
            time = eta * 5 * np.arange(200)
            margins = np.empty((trial.seeds, 200, 4))
            margins[:, 0] = [0.2, 0.22, 0.24, 0.26]
            for i in range(199):
                rate = 2 * 5 * eta * xor.MARGIN_RATE * xor.slope(margins[:, i])
                margins[:, i + 1] = margins[:, i] * np.exp(factor * rate)
            quiet = np.ones((trial.seeds, 200))
            made.append({"time": time, "steps": 5 * np.arange(200), "margins": margins, "size2": quiet,
                         "rest2": 0.001 * quiet, "loss": quiet})
    return made


@pytest.mark.parametrize(("factor", "expected"), [(1.0, HOLDS), (1.5, CONTRADICTED)])
def test_margins_grow_at_the_lemmas_rates(factor, expected):
    trial = Phase2Margins("full")
    checks = trial.judge(margins_of(trial, factor)).checks
    assert set(results(checks)) == {"50/50 signs", "70/30 signs"}
    assert {check.result for check in checks if check.name.startswith("mean growth of gamma_max")} == {expected}


@pytest.mark.parametrize(("rise", "expected"), [(1.0, HOLDS), (2.0, CONTRADICTED)])
def test_a_carried_set_stays_heavy_and_the_printed_definition_never_holds(rise, expected):
    trial = Def42SignalHeavy("full")
    shape, spread = (trial.seeds, 20), np.linspace(0.99, 1.0, trial.seeds)[:, None]
    quiet = np.ones(shape)
    kept = spread * np.concatenate([np.full(10, 0.05), np.full(10, 0.05 * rise)])
    phases = {"time": np.arange(20.0), "loss": quiet, "size2": quiet, "rest2": 0.001 * quiet, "relaxed": 0.05 * quiet,
              "zeta": quiet, "asked": np.exp(-10) * quiet, "kept": kept, "followed": kept, "ratio": quiet}
    assert results(trial.judge([phases] * 4).checks) == {CARRIED: expected, AS_PRINTED: CONTRADICTED}


def test_the_carried_set_is_that_of_the_first_heavy_network():
    light = fresh(np.random.default_rng(0), 8, 40, 0.3)
    along = np.sign(light.w[:, :1]) * np.where(light.a[:, None] > 0, [1.0, 1.0], [1.0, -1.0])
    heavy = xor.Neurons(np.concatenate([along, 1e-3 * light.w[:, 2:]], axis=1), np.sqrt(2) * np.sign(light.a))
    records = carry([light, heavy, heavy])
    assert np.isnan(records[0]["kept"])
    assert records[1]["kept"] == records[2]["kept"] < 0.1
    assert records[2]["asked"] <= np.exp(-10)


@pytest.mark.parametrize(("rate", "error", "first", "second"), [
    (xor.GAUSSIAN_RATE, 0.5, HOLDS, HOLDS), (0.15, -0.5, CONTRADICTED, CONTRADICTED)])
def test_gaussian_inputs_in_both_phases(rate, error, first, second):
    trial = OpenGaussian("full")
    rng, time = np.random.default_rng(0), 0.5 * np.arange(30)
    got = []
    for d in trial.d:
        sig = 0.01 * np.exp(rate * time) * rng.uniform(0.99, 1.01, (trial.seeds, 1))
        wrong = 0.1 * (32 / d) ** error * 32**-0.3 * rng.uniform(0.9, 1.1, (trial.seeds, 1))
        got.append({"time": time, "sig": sig, "accuracy": 1 - wrong + 0 * sig, "loss": sig,
                    "margins": np.ones((trial.seeds, 30, 4))})
    checks = trial.judge(got).checks
    assert results(checks)["phase 1"] == first
    assert result(checks, "slope of log median error") == second


def test_frozen_runs_are_compared_run_by_run():
    trial = Remark43Frozen("full")
    steps = np.arange(0, 401, 5)
    rng = np.random.default_rng(0)
    got = []
    for _, name in trial.points:
        growth = np.exp(steps / 50) if name == "joint" else 1 + steps / 50
        sig = growth * rng.uniform(0.99, 1.01, (trial.seeds, 1))
        margins = np.full((trial.seeds, len(steps), 4), 0.9 if name == "joint" else 0.01)
        got.append({"steps": steps, "sig": sig, "margins": margins, "accuracy": sig, "size2": np.ones_like(sig),
                    "rest2": np.full_like(sig, 0.1 if name == "joint" else 0.2)})
    assert results(trial.judge(got).checks) == {"growth": HOLDS, "non-signal mass": HOLDS}
    swapped = [got[i ^ 1] for i in range(len(got))]
    assert results(trial.judge(swapped).checks) == {"growth": CONTRADICTED, "non-signal mass": CONTRADICTED}
