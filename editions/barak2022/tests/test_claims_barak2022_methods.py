"""The rules of barak2022's tables, methods and theory, on made-up data of both outcomes."""

import dataclasses
import functools
from typing import Any

import numpy as np
import pytest
from barak2022 import figure7
from barak2022.deep import C7DeepQuadratic, C7Sanity
from barak2022.disjoint_flow import Cor12, needed_constant
from barak2022.finite import Fig4Right, Fig15
from barak2022.noise import Fig16
from barak2022.published import Cell
from barak2022.readings import CONVERGED, FASTEST, NEAREST, SLOWER, Measure, TableCell, likelihoods
from barak2022.robustness import Best, LessRobust, ReadCombination, RobustSpace, smallest
from barak2022.table import Fig7, Fig8
from barak2022.theory import two_stage
from barak2022.theory.expressing import expresses_parity, least_output
from barak2022.theory.large_batch import streamed_gradient
from barak2022.two_stage import Thm4TwoStage

from paritylab.claims.verdicts import CONTRADICTED, HOLDS, UNDECIDED, results
from paritylab.running.sweeps import Result
from paritylab.setups.inits import init
from paritylab.storage.records import Records


def records(*times: float, horizon: int = 1000) -> Records:
    t = np.asarray(times, float)
    solved = np.isfinite(t)
    return Records(run=np.arange(len(t)), status=np.where(solved, 0, 1), t_c=np.where(solved, t, -1).astype(int),
                   steps=np.where(solved, t, horizon).astype(int), loss=np.zeros(len(t)), accuracy=np.ones(len(t)))


def result(setup, *times: float) -> Result:
    return Result(setup, "test", 0, records(*times), 0.0, 0)


# --- the tables ---------------------------------------------------------------------------------------------------


def measured(cell: Cell, lr: float, *times: float) -> Measure:
    return Measure(result(figure7.cell_setups(cell, [lr])[0], *times))


def test_readings_take_different_rates():
    cell = Cell("iv", 2, 32, 400, certain=True)
    fast = measured(cell, 1.0, *[10] * 10, *[np.inf] * 15)
    sure = measured(cell, 0.1, *[100] * 25)
    slow = measured(cell, 0.01, *[400] * 24, np.inf)
    each = TableCell(cell, [fast, sure, slow], {})
    assert [each.read(reading).lr for reading in (FASTEST, SLOWER, CONVERGED, NEAREST)] == [1.0, 0.1, 0.1, 0.01]
    found = likelihoods([each], np.random.default_rng(0))
    assert found[NEAREST][0] == pytest.approx(np.log(1 / 3), abs=0.01)  # one rate of three gives the printed number
    assert found[FASTEST][0] < -8
    assert each.possible(NEAREST, np.random.default_rng(0))
    assert not each.possible(FASTEST, np.random.default_rng(0))


def table(trial, times) -> list[Result]:
    """Every rate of every cell with the same 25 times, made from the printed number."""
    return [result(setup, *times(cell)) for cell in trial.cells()
            for setup in figure7.cell_setups(cell, trial.rates, trial.max_steps)]


@pytest.mark.parametrize(("factor", "outcome"), [(1.0, UNDECIDED), (5.0, CONTRADICTED)])
def test_figure_7_is_judged_by_each_reading(factor, outcome):
    trial = Fig7("quick")  # 16 cells: too few to hold
    few = table(trial, lambda cell: [factor * cell.p10] * 25)
    found = trial.judge((few, []))
    assert set(results(found.checks).values()) == {outcome}
    assert len(results(found.checks)) == 4


@pytest.mark.parametrize(("solved", "outcome"), [(25, HOLDS), (5, CONTRADICTED)])
def test_figure_8_asks_all_runs_together(solved, outcome):
    trial = Fig8("quick")
    found = trial.judge(table(trial, lambda cell: [100.0] * solved + [np.inf] * (25 - solved)))
    assert {check.result for check in found.checks if check.by is trial.robust} == {outcome}


# --- the robust space ---------------------------------------------------------------------------------------------


def test_xavier_scales_uniform_and_bernoulli_weights_and_leaves_gaussian_ones():
    laws = {name: ReadCombination("i", 10, 2, 32, name).setup(0.1, 1000).learner.init.spec
            for name in ("uniform", "Gaussian", "Bernoulli")}
    assert laws == {"uniform": "xavier", "Gaussian": "kaiming", "Bernoulli": "xavier-sign"}
    law = init("xavier-sign")
    assert law.scale(10, 4) == init("xavier").scale(10, 4)
    assert law.sample is init("sign").sample


@pytest.mark.parametrize(("share", "outcome"), [(0.8, UNDECIDED), (0.0, CONTRADICTED)])
def test_combinations_that_fail_contradict_for_all(share, outcome, monkeypatch):
    trial = RobustSpace("quick")
    points = [point for each in trial.strata.values() for point in each]
    answers = {point: Best(share, 0.1, 1000) for point in points}
    monkeypatch.setattr(RobustSpace, "best", lambda self, got: answers)
    found = results(trial.judge({}).checks)
    assert set(found.values()) == {outcome}
    assert len(found) == 6


def test_all_combinations_with_one_loss_are_what_the_paper_has():
    trial = RobustSpace("full")
    assert [len(points) for points in trial.strata.values()] == [4455, 600, 600] * 2
    assert trial.failing.high == pytest.approx(1 - 0.025 ** (1 / 4455))


@pytest.mark.parametrize(("solved", "large", "small"), [(100, HOLDS, CONTRADICTED), (0, CONTRADICTED, HOLDS)])
def test_minimal_networks_need_a_fifth_in_every_cell(solved, large, small):
    trial = LessRobust("standard")
    times = [100.0] * solved + [np.inf] * (100 - solved)
    got = [result(cell.setup(lr, trial.max_steps), *times) for cell in trial.cells() for lr in (0.1, 1.0, 0.01, 0.001)]
    found = results(trial.judge(got).checks)
    assert found == {"(*i), B >= 16": large, "(*ii), B >= 16": large, "not so for smaller B": small}
    assert smallest([(Best(0.3), (0.2, 0.4))]) == (0.3, (0.2, 0.4))


# --- finite samples, noise, depth -----------------------------------------------------------------------------------


@dataclasses.dataclass
class Curve:
    """As much of Curves as the rules ask for."""

    test: list[int]
    train: list[int]
    steps: tuple[int, ...] = (0, 1000)

    def first(self, level: float):
        return np.array(self.test)

    def first_train(self, level: float):
        return np.array(self.train)

    @functools.cached_property
    def accuracy(self):
        return np.array([[0.5, 1.0 if t >= 0 else 0.5] for t in self.test])

    @functools.cached_property
    def train_accuracy(self):
        return np.array([[0.5, 1.0 if t >= 0 else 0.5] for t in self.train])


def judged(trial, curves: list[Any]):
    return results(trial.judge(curves).checks)


def test_grokking_is_a_delay_between_samples_without_one():
    trial = Fig4Right("full")
    memorised, late, at_once = (Curve([t] * 40, [100] * 40) for t in (-1, 900, 100))
    found = judged(trial, [memorised, late, late, at_once])
    assert set(found.values()) == {HOLDS}
    found = judged(trial, [memorised, at_once, at_once, late])
    assert found == {"large sample: no gap": CONTRADICTED, "between: grokking": CONTRADICTED,
                     "small sample: memorised": HOLDS}


def test_weight_decay_helps_and_then_hurts():
    trial = Fig15("full")

    def case(m: int, decay: float) -> Curve:
        learns = m == 5000 or (m == 1000 and decay == 0.01)
        return Curve([500 if learns and decay < 0.5 else -1] * 20, [100 if decay < 0.5 else -1] * 20)

    found = judged(trial, [case(*each) for each in trial.cases])
    assert set(found.values()) == {HOLDS}
    found = judged(trial, [Curve([500] * 20, [100] * 20) for _ in trial.cases])
    assert found["larger lambda generalises"] == found["largest lambda: training fails"] == CONTRADICTED


@pytest.mark.slow
@pytest.mark.long
def test_noise_and_small_batches_slow_learning_down():
    trial = Fig16("full")
    slower = [[result(trial.setup(accuracy, batch, p), *(1e4 * (1 + 10 * p) * 1024 / batch + 100 * np.arange(20)))
               for batch, p in cases] for accuracy, cases in trial.cases().items()]
    assert set(results(trial.judge(slower).checks).values()) == {HOLDS}
    alike = [[result(each.setup, *[np.inf] * 20) for each in part] for part in slower]
    found = results(trial.judge(alike).checks)
    assert found["large batches learn"] == found["B = 32 learns"] == CONTRADICTED
    assert found["slower with more noise"] == UNDECIDED


def test_deep_quadratic_networks_converge_or_some_do():
    trial = C7DeepQuadratic("quick")
    setups = [figure7.cell_setups(Cell("i", 2, 32, 100, certain=True))[0]] * len(trial.cases)
    some = [result(setup, *[10.0] * 10, *[np.inf] * 10) for setup in setups]
    assert results(trial.judge(some).checks) == {"L = 3": CONTRADICTED, "some runs succeed on every task": HOLDS}


@pytest.mark.parametrize(("shallow", "deep", "outcomes"),
                         [(0, 40, [HOLDS, HOLDS]), (40, 0, [CONTRADICTED, CONTRADICTED])])
def test_too_shallow_networks_fail_and_deep_enough_ones_do_not(shallow, deep, outcomes):
    trial = C7Sanity("full")
    setup = figure7.cell_setups(Cell("i", 2, 32, 100, certain=True))[0]
    got = [result(setup, *[10.0] * solved, *[np.inf] * (40 - solved)) for solved in (*[shallow] * 4, *[deep] * 2)]
    assert list(results(trial.judge(got).checks).values()) == outcomes


# --- theory ---------------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_plateaus_of_gaussian_starts_grow_with_the_block():
    trial = Cor12("quick")
    spread = np.random.default_rng(0).uniform(0.9, 1.1, 50)
    right = [{"rest": spread * block ** (1 - k / 2)} for k in (3, 4) for block in (50, 200, 1000)]
    assert set(results(trial.judge(right).checks).values()) == {HOLDS}
    wrong = [{"rest": spread * block**0.5} for _ in (3, 4) for block in (50, 200, 1000)]
    assert set(results(trial.judge(wrong).checks).values()) == {CONTRADICTED}


def test_constant_of_the_printed_lower_bound():
    row = {"k": 3, "block": 10, "ratio": 0.0, "error": 0.5 - 0.5 * 0.2**3}
    assert needed_constant(row) == pytest.approx(0.2 * 27)


@pytest.mark.parametrize(("accuracy", "outcome"), [(1.0, HOLDS), (0.5, CONTRADICTED)])
def test_two_stage_parts_are_judged_apart(accuracy, outcome):
    trial = Thm4TwoStage("full")
    got = [{"steps": np.array([100]), "accuracy": np.array([accuracy if net.samples == 10**9 else 1.0]),
            "loss": np.array([0.01]), "relevant": np.full(4, 0.5 / net.k), "irrelevant": np.zeros(4)}
           for net in trial.networks for _ in range(net.seeds)]
    assert results(trial.judge(got).checks) == {"k = 2": HOLDS, "k = 4, exact first gradient": HOLDS,
                                                "k = 4, sampled first gradient": outcome}


def test_streamed_gradient_is_the_population_gradient_but_for_noise():
    start = two_stage.initialise(11, 2, 8, 0)
    by_weight, by_bias = streamed_gradient(start, [0, 1], 2**18, seed=1)
    exact = two_stage.sign_gradient(start.w, start.u, [0, 1])
    assert np.abs(by_weight - exact).max() < 6 * np.sqrt(0.5 / 2**18)
    assert np.abs(by_bias).max() < 6 * np.sqrt(0.5 / 2**18)
    again, _ = streamed_gradient(start, [0, 1], 2**18, seed=1)
    assert np.array_equal(by_weight, again)


def test_least_output_is_the_hard_margin():
    features = np.random.default_rng(0).normal(size=(6, 20))
    labels = np.array([1.0, -1.0] * 3)
    found = least_output(features, labels)
    assert found is not None
    assert (labels * (features @ found)).min() == pytest.approx(1)
    nudged = found - 0.01 * found
    assert (labels * (features @ nudged)).min() < 1  # none shorter along the same direction


def test_features_of_aligned_neurons_express_the_parity_and_fewer_biases_do_not():
    w = np.ones((4, 5)) / 4
    layer = two_stage.Layer(w, np.array([0.0, 0.5, 0.5, 0.0]), np.zeros(4))
    mirrored = two_stage.Layer(np.concatenate([w, -w]), np.tile([0.0, 0.5, 0.0, 0.5], 2), np.zeros(8))
    assert expresses_parity(mirrored, 2)
    assert not expresses_parity(two_stage.Layer(layer.w, np.zeros(4), layer.u), 2)
