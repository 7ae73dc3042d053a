"""The studies of leaps, biased inputs and grokking: what their rules say of data whose answer is known."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from paritylab.claims import find
from paritylab.claims.medians import exponent, ratio_of_medians, slope
from paritylab.claims.trial import Trial
from paritylab.engines.curves import Curves
from paritylab.storage.records import CENSORED, SOLVED, Records
from paritylab.theory.bias_gap import bias_gap


def trial(name: str, size: str = "full") -> Trial:
    (claim,) = find([f"beyond.{name}"])
    return claim.trial(size, 0)


def results(medians, runs: int = 300, unsolved: float = 0.0) -> list[SimpleNamespace]:
    """Runs whose times lie around each median, the slowest of them censored."""
    spread = np.exp(np.linspace(-0.3, 0.3, runs))
    solved = np.arange(runs) < round(runs * (1 - unsolved))
    made = []
    for median in medians:
        t_c = np.where(solved, np.rint(1000 * median * spread).astype(int), -1)
        status = np.where(solved, SOLVED, CENSORED).astype(np.int8)
        made.append(SimpleNamespace(records=Records(np.arange(runs), status, t_c, np.abs(t_c), np.ones(runs),
                                                    np.zeros(runs))))
    return made


def outcomes(found) -> dict[str, str]:
    return {check.name: check.result for check in found.checks}


def leap_times(trial: Trial, powers: dict[str, float], **options) -> dict[str, str]:
    medians = [50 * n ** powers[target] for target in trial.targets for n in trial.n]
    return outcomes(trial.judge(results(medians, **options)))


POWERS = {"staircase:3": 0.4, "leap:2,1": 0.4, "leap:1,2": 0.5, "parity:3": 1.6, "staircase:4": 0.2}


@pytest.mark.slow
@pytest.mark.long
def test_powers_that_grow_with_the_leap_hold():
    assert set(leap_times(trial("leap-time"), POWERS).values()) == {"holds"}


def test_powers_that_are_alike_contradict():
    found = leap_times(trial("leap-time", "quick"), dict.fromkeys(POWERS, 1.2))
    assert found["exponent of the median steps in n, staircase:3"] == "contradicted"
    assert found["exponent of parity:3 less that of staircase:3"] == "contradicted"


def test_medians_that_are_not_reached_leave_the_exponents_open():
    found = leap_times(trial("leap-time", "quick"), POWERS, unsolved=0.6)
    assert found["share of runs that are solved, parity:3"] == "contradicted"
    assert found["exponent of parity:3 less that of staircase:3"] == "undecided"


def test_ratios_of_medians_that_are_not_reached():
    some, none = np.array([1.0, 2.0]), np.array([np.inf, np.inf])
    assert ratio_of_medians(none, some) == np.inf
    assert ratio_of_medians(some, none) == 0
    assert np.isnan(ratio_of_medians(none, none))


def test_a_slope_is_the_exponents_own():
    values = [np.array([4.0, 5.0]), np.array([16.0, 17.0]), np.array([70.0, 71.0])]
    assert slope([2, 4, 8], values) == exponent([2, 4, 8], values)[0]
    assert np.isnan(slope([2, 4], [np.array([1.0]), np.array([np.inf])]))


@pytest.mark.parametrize(("power", "expected"), [(-1.5, "holds"), (-0.7, "contradicted"), (-2.3, "contradicted")])
def test_the_power_of_the_signal_is_judged(power, expected):
    study = trial("bias-buys")
    signal = np.array([bias_gap(study.n, study.k, p).signal for p in study.p])
    found = outcomes(study.judge(results([*signal**power, *signal**power])))
    name = "exponent of the median steps on the plateau in the signal of the first gradient, p >= 0.6"
    assert found[name] == expected
    assert found["median steps on the plateau, uniform inputs over p = 0.6"] == expected


def test_what_bias_buys_is_judged_apart_from_the_prediction():
    study = trial("bias-buys")
    flat = study.judge(results([1.0] * 14))
    by_part = {check.part: check.result for check in flat.checks}
    assert set(by_part) == {"what bias buys", "the exact gradient's prediction, p >= 0.6",
                            "the exact gradient's prediction, uniform inputs"}
    assert outcomes(flat)["median steps to 99 %, p = 0.6 over p = 0.7"] == "contradicted"
    assert outcomes(flat)["smallest share of runs that leave the plateau, over p"] == "holds"


def cells(study: Trial, first: dict[tuple[int, float], tuple[int, int]]) -> list[Curves]:
    """Curves of cells whose runs fit, and generalise, from a step on (-1: never); at once unless said."""
    steps = np.array([20, 100, 1000, 10_000])

    def accuracy(step: int) -> np.ndarray:
        return np.tile(np.where((steps >= step) & (step > 0), 1.0, 0.6), (study.seeds, 1))

    made = []
    for cell in study.grid():
        fits, right = first.get(cell, (1000, 1000))
        made.append(Curves(steps, accuracy(right), 0 * accuracy(right), train_accuracy=accuracy(fits)))
    return made


def test_a_map_with_three_regions_holds_and_one_without_does_not():
    study = trial("grokking-map")
    band = {(200, decay): (100, -1) for decay in study.decay}
    band |= {(800, 0.1): (100, 1000), (800, 0.0): (100, -1), (1200, 0.0): (100, 10_000), (1200, 0.1): (1000, 1000)}
    assert set(outcomes(study.judge(cells(study, band))).values()) == {"holds"}
    at_once = outcomes(study.judge(cells(study, {})))
    assert at_once["share of runs that grok, m = 800, decay 0.1"] == "contradicted"
    assert at_once["largest share of runs with m = 200 that generalise, over decays"] == "contradicted"


def test_to_grok_is_to_fit_at_most_at_half_the_steps():
    study = trial("grokking-map", "quick")
    counts = study.counts(cells(study, {(800, 0.1): (100, 1000), (800, 0.0): (-1, 1000), (200, 0.0): (1000, 1000)}))
    assert counts["grok"] == {cell: study.seeds * (cell == (800, 0.1)) for cell in study.grid()}
    assert counts["generalise"][800, 0.0] == study.seeds
    assert counts["fit"][800, 0.0] == 0


@pytest.mark.parametrize("name", ["leap-time", "bias-buys", "grokking-map"])
def test_each_is_drawn(name):
    study = trial(name)
    if name == "grokking-map":
        figure = study.draw(cells(study, {}))
        assert [axes.get_title() for axes in figure.axes[:2]] == ["runs that generalise, in %",
                                                                  "runs that grok, in %"]
    else:
        count = len(study.targets) * len(study.n) if name == "leap-time" else 2 * len(study.p)
        assert study.draw(results(np.linspace(1, 2, count))).axes
