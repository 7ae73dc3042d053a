"""The claims of barak2022 about runs and training curves: helpers against known answers, rules on made-up runs."""

import math

import numpy as np
import pytest
from barak2022 import coarse, distributions, finite, fourier, hidden_progress, phases, scaling, widths
from scipy import stats

from paritylab import MLP, Curves, Learner, Neuron, Parity, Setup
from paritylab.claims import Lab, reproduce
from paritylab.claims.verdicts import CONTRADICTED, HOLDS, results
from paritylab.running.races import Entry, Race
from paritylab.running.sweeps import Result
from paritylab.storage.records import CENSORED, SOLVED, Records

SETUP = Setup(Parity(10, 3))


def records(times) -> Records:
    times = np.asarray(times, float)
    t_c = np.where(np.isfinite(times), times, -1).astype(int)
    zeros = np.zeros(len(times))
    return Records(np.arange(len(times)), np.where(t_c > 0, SOLVED, CENSORED), t_c,
                   np.where(t_c > 0, t_c, 100_000), zeros, zeros)


def result(times, setup: Setup = SETUP) -> Result:
    return Result(setup, "lanes", 0, records(times), 0.0, 0)


def spread(median: float, runs: int = 200, width: float = 0.1, seed: int = 0):
    """Times around a median; the wider, the heavier their upper tail."""
    return np.round(median * np.exp(width * np.random.default_rng(seed).standard_normal(runs)))


def curves(accuracy, train=None, weights=None) -> Curves:
    values = np.array(accuracy, float)
    train = None if train is None else np.array(train)
    return Curves(10 * np.arange(values.shape[1]), values, 1 - values, weights, train)


# --- helpers ------------------------------------------------------------------------------------------------------


def test_the_last_check_at_chance_lies_before_the_solution():
    found = hidden_progress.last_at_chance(curves([
        [0.5, 0.6, 0.5, 0.9, 1.0],  # back at chance once
        [0.5, 0.6, 1.0, 0.5, 1.0],  # back at chance after it was solved
        [0.5, 0.5, 0.5, 0.5, 0.5],  # never solved
        [0.5, 0.7, math.nan, math.nan, math.nan],  # diverged
    ]))
    assert found.tolist() == [2, 0, 4, 0]


def test_steps_between_the_first_and_the_last_neuron():
    leads = np.zeros((4, 3, 3), bool)  # points, runs, units
    leads[1:, 0, 0] = leads[3:, 0, 2] = True  # a third neuron never leads
    leads[2, 1, 1] = True  # a single one
    assert hidden_progress.between_neurons(np.array([0, 5, 10, 20]), leads).tolist() == [15, 0, 0]


def test_first_layer_is_a_path_of_every_unit():
    weights = np.arange(2 * 3 * 4 * 5.0).reshape(2, 3, 4, 5)  # runs, points, inputs, units
    path = hidden_progress.first_layer(Curves(np.arange(3), np.zeros((2, 3)), np.zeros((2, 3)), [{"w": weights}]))
    assert path.shape == (3, 2, 5, 4)
    assert path[2, 1, 4, 3] == weights[1, 2, 3, 4]


def test_progress_is_compared_after_as_many_steps(tmp_path):
    pair = hidden_progress.trained(Lab("quick", tmp_path), 10, Neuron("sinusoid:3"), 32, 0.05, 4, 300, every=10)
    found = hidden_progress.progress(*pair)
    assert found.solved == 1
    rho, random = found.at_last()
    for run, point in enumerate(found.last):
        weights = found.parity.weights[0]["w"][run, :, :, 0], found.random.weights[0]["w"][run, :, :, 0]
        assert np.array_equal(weights[0][0], weights[1][0])  # the same start
        assert [rho[run], random[run]] == pytest.approx([np.abs(w[point] - w[0]).max() for w in weights])


def test_delay_of_runs_that_did_not_get_there():
    found = curves([[0.5, 0.99, 1.0], [0.5, 0.5, 0.5], [0.5, 0.5, 0.5], [0.5, 0.5, 0.99]],
                   [[0.5, 1.0, 1.0], [0.5, 1.0, 1.0], [0.5, 0.9, 0.9], [0.5, 1.0, 1.0]])
    assert np.array_equal(finite.delay(found), [1, np.inf, np.nan, 2], equal_nan=True)


def test_steps_are_increasing_and_end_with_the_last():
    steps = finite.log_steps(1_000_000)
    assert steps[0] == 0
    assert steps[-1] == 1_000_000
    assert np.all(np.diff(steps) > 0)
    assert 1.035 < steps[-1] / steps[-2] < 1.036  # how finely late times are resolved


# --- plateaus -------------------------------------------------------------------------------------------------------


def test_times_are_read_off_curves():
    traced = curves([[0.5, 0.6, 0.992, 1.0], [0.5, 0.5, 0.5, 0.5]])
    found = phases.read_off(traced, 0.99)
    assert found.t_c.tolist() == [20, -1]
    assert found.steps.tolist() == [20, 30]
    assert phases.first_run(traced).steps.tolist() == [0, 10, 20]


def test_plateaus_of_one_network_do_not_speak_for_another():
    trial = phases.Fig1Left("quick")
    ended = spread(1000)
    found = {"(i) B=32": (records(ended), records(0.7 * ended)), "(vii)": (records(ended), records(0.2 * ended)),
             "(xv)": (records(np.full(200, np.inf)), records(ended))}
    assert results(trial.judge((found, {})).checks) == {
        "ReLU MLPs": HOLDS, "zigzag neuron": CONTRADICTED, "PolyNet": CONTRADICTED}


def test_outliers_are_judged_apart_from_convergence():
    trial = phases.Fig6Row2("quick")
    got = [result(spread(4000, width=0.8)), result(spread(200, width=0.3)), result(spread(150, width=0.1))], []
    assert results(trial.judge(got).checks) == {
        "solved from B = 1 to 1024": HOLDS, "more outliers at small batches": HOLDS,
        "more outliers at large batches": CONTRADICTED}


def test_the_printed_batch_and_the_other_are_parts():
    trial = phases.Fig6Row3("quick")
    never, some = np.full(200, np.inf), np.where(np.arange(200) < 70, 900, np.inf)
    got = [result(never)] * 3 + [result(some), result(spread(300)), result(spread(300))], []
    assert results(trial.judge(got).checks) == {"B = 1": CONTRADICTED, "B = 32": HOLDS}


@pytest.mark.parametrize(("plateau", "expected"), [(0.2, HOLDS), (0.8, CONTRADICTED)])
def test_a_network_without_a_plateau(plateau, expected):
    trial = phases.Fig6Row4("quick")
    ended = spread(1000, runs=20)
    left = [result(0.7 * ended), result(plateau * ended)]
    found = results(trial.judge(([result(ended)] * 2, left, [])).checks)
    assert found == {"ReLU MLP (iii)": HOLDS, "z^3 MLP (vi)": expected}


def test_descents_are_ordered_by_width_and_by_batch():
    trial = phases.Fig17("quick")
    ended = {name: spread(1000, 20) for name in trial.panels()}
    ended["z^3, r=300, B=256"] = spread(800, 20)
    left = {name: (0.3 if "r=300, B=256" in name and "z^3" in name else 0.7) * each for name, each in ended.items()}
    got = [result(each) for each in ended.values()], [result(each) for each in left.values()], []
    assert set(results(trial.judge(got).checks).values()) == {HOLDS}
    swapped = got[0], [result(0.2 * each) for each in ended.values()], []
    assert results(trial.judge(swapped).checks)["ReLU keeps its plateau"] == CONTRADICTED


# --- slopes ---------------------------------------------------------------------------------------------------------


def line(law, sizes=(10, 15, 20, 25, 30), runs=400) -> list[Result]:
    return [result(spread(law(n), runs, 0.05, seed=n), Setup(Parity(n, 3))) for n in sizes]


def test_a_power_law_is_told_from_an_exponential_one():
    trial = scaling.Fig1Right("quick")
    power = {"k = 2": line(lambda n: 10 * n**0.8), "k = 3": line(lambda n: 10 * n**1.5)}
    assert results(trial.judge(power).checks) == {"": HOLDS}
    assert results(trial.judge(power | {"k = 3": line(lambda n: 2 ** (n / 2))}).checks) == {"": CONTRADICTED}
    assert results(trial.judge({"k = 2": power["k = 3"], "k = 3": power["k = 2"]}).checks) == {"": CONTRADICTED}


def test_bends_upwards_and_downwards():
    trial = scaling.Fig2Right("quick")
    sizes = (10, 14, 20, 28, 40)
    assert results(trial.judge({"k = 3": line(lambda n: n * np.exp(n / 20), sizes)}).checks) == {"k = 3": HOLDS}
    assert results(trial.judge({"k = 3": line(lambda n: 300 * np.log(n), sizes)}).checks) == {"k = 3": CONTRADICTED}


def test_settings_at_small_n():
    trial = scaling.Fig10Mlp("quick")
    straight = {f"({name}) k={k}": line(lambda n, k=k: 20 * n ** (k / 2)) for name in ("i", "iv") for k in (2, 3)}
    assert set(results(trial.judge(straight).checks).values()) == {HOLDS}
    crooked = straight | {"(iv) k=2": line(lambda n: 200 + 100 * (n % 2))}
    assert results(trial.judge(crooked).checks)["power laws at small n, z^k"] == CONTRADICTED


# --- laws of times --------------------------------------------------------------------------------------------------


def test_early_successes_and_heavy_tails():
    trial = distributions.Fig2Left("quick")
    heavy, light = spread(400, 20_000, 0.3), spread(400, 20_000, 0.02)
    lucky = np.random.default_rng(0).geometric(1 / 500, 20_000)
    assert set(results(trial.judge([result(heavy)]).checks).values()) == {HOLDS}
    assert results(trial.judge([result(light)]).checks) == {
        "no success near t = 0": HOLDS, "heavy upper tail of a small network": CONTRADICTED}
    assert results(trial.judge([result(lucky)]).checks)["no success near t = 0"] == CONTRADICTED


def test_few_solved_runs_leave_the_correlation_undecided():
    trial = distributions.Fig2Center("quick")
    starts = [result(spread(1000 * 1.5**i, 10, 0.02, i)) for i in range(10)]
    assert results(trial.judge([starts]).checks) == {"width 10": HOLDS}
    unsolved = [result(np.full(10, np.inf))] * 4
    assert all(check.passed is None for check in trial.judge([starts[:6] + unsolved]).checks)


def swept(law) -> tuple[list[Result], list[Result]]:
    widths = (3, 10, 30, 100, 300)
    return [result(spread(law(width), 100, 1 / width**0.5, width), Setup(Parity(20, 3), Learner(MLP(width))))
            for width in widths], []


def test_widths_that_help_little_and_much():
    trial = widths.Fig4Left("quick")
    assert set(results(trial.judge(swept(lambda width: 1000)).checks).values()) == {HOLDS}
    assert results(trial.judge(swept(lambda width: 1e6 / width)).checks)["no parallel speed-up"] == CONTRADICTED
    other = widths.Fig14("quick")
    assert set(results(other.judge(swept(lambda width: 1000)).checks).values()) == {HOLDS}
    assert results(other.judge(swept(lambda width: 1e6 / width)).checks)["no parallel speed-up"] == CONTRADICTED


def race(p10: float) -> Race:
    return Race((Entry(SETUP, "lanes", 0, records(spread(p10, 25, 0.02)), 0.0, 0, runs=range(25)),), 0.0)


@pytest.mark.parametrize(("exponent", "expected"), [(0.2, HOLDS), (0.9, CONTRADICTED)])
def test_exponents_of_cells(exponent, expected):
    trial = coarse.Fig9("standard")  # a wrong one among a handful of cells is no wonder
    got = [[race(100 * (n - 9) ** (exponent * k)) for n in (10, 20, 30)] for _, k, _ in trial.points()]
    assert results(trial.judge(got).checks) == {"": expected}


# --- hidden progress ------------------------------------------------------------------------------------------------


def moving(rate: float, runs: int = 40, n: int = 30) -> Curves:
    """Curves that leave chance after 80 of 100 points; the weights of the support drift, the others diffuse."""
    noise = np.random.default_rng(int(100 * rate)).standard_normal((runs, 101, n, 1))
    weights = 0.01 * np.cumsum(noise, axis=1)
    weights[:, :, :3] += rate * np.arange(101)[None, :, None, None]
    accuracy = np.where(np.arange(101) < 80, 0.5, 1.0) * np.ones((runs, 1))
    return curves(accuracy, weights=[{"w": weights, "b": np.zeros((runs, 101, 1))}])


def test_progress_is_told_from_noise():
    trial = hidden_progress.Fig3("quick")
    assert results(trial.judge([[moving(0.02), moving(0.0)]]).checks) == {"B=32": HOLDS}
    assert results(trial.judge([[moving(0.0, 200), moving(0.0, 200)]]).checks) == {"B=32": CONTRADICTED}


def test_the_network_and_the_neuron_are_parts():
    trial = hidden_progress.Fig13("quick")
    clear, noise = [moving(0.02), moving(0.0)], [moving(0.0), moving(0.02)]
    found = results(trial.judge([clear, clear, noise]).checks)
    assert found["neuron"] == HOLDS
    assert found["MLP"] == CONTRADICTED


def test_gaps_are_compared_with_those_of_majority():
    trial = fourier.Fig12Right("quick")
    generator = np.random.default_rng(0)
    start = generator.uniform(0.1, 0.25, (60, 1, 15, 1)) * np.ones((60, 3, 1, 1))
    start[:, 1:, :4] *= 3
    bias = np.zeros((60, 3, 1))

    def judged(weights) -> str:
        traced = curves(np.full((60, 3), 0.5), weights=[{"w": weights, "b": bias}])
        return results(trial.judge([traced, traced]).checks)["sin(z)"]

    assert all(Neuron(trial.spec(unit)) for unit in trial.units)
    assert judged(start) == HOLDS
    assert judged(np.where(np.arange(15)[:, None] < 4, 3, 1) * start) == CONTRADICTED  # more than majority's
    assert judged(start[:, :1] * np.ones((1, 3, 1, 1))) == CONTRADICTED  # not amplified


def test_exponents_are_wrong_no_oftener_than_is_said():
    """Of times whose true exponent is known: 25 at n = 10, 20, 30. Seed 3; twice as many in 1,000 by chance: < 1e-9."""
    rng, wrong = np.random.default_rng(3), np.zeros(2)
    p10 = stats.norm.ppf(0.1)
    for _ in range(1000):
        times = [np.sort(np.exp(spread * (rng.normal(size=25) - p10) + 0.8 * math.log(n - 9)))
                 for n, spread in ((10, 0.3), (20, 0.5), (30, 0.4))]
        low, high = coarse.exponent_ends(*times)
        wrong += high < 0.8, low > 0.8
    assert (wrong <= 1000 * np.array(coarse.WRONG)).all()


@pytest.mark.long
def test_hidden_progress_at_the_quick_size(tmp_path):
    result = reproduce("barak2022.fig3", Lab("quick", tmp_path, progress=False))
    assert len(result.outcome.checks) == 4
    assert list(result.outcome.results) == ["B=32"]
    assert all(check.passed is not None for check in result.outcome.checks)
    assert len(result.outcome.data) == 20
    assert (tmp_path / "claims/barak2022.fig3/quick/figure.png").exists()
