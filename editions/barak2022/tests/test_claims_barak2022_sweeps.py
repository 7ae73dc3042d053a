"""The claims of barak2022 that are sweeps of runs: their helpers against known answers, and two small trials."""

import itertools
import math

import jax
import numpy as np
import pytest
from barak2022 import (
    common,
    deep,
    distributions,
    noise,
    phases,
    plateaus,
    repeats,
    robustness,
    scaling,
    weak,
)
from scipy import stats

from paritylab import MLP, SGD, Learner, Parity, Setup
from paritylab.claims import Findings, Lab, find, size
from paritylab.claims.intervals import bootstrap
from paritylab.claims.reproduction import tried
from paritylab.claims.verdicts import CONTRADICTED, HOLDS, results
from paritylab.measures.fourier import cube, fourier_coefficients
from paritylab.running.sweeps import Result
from paritylab.storage.records import Records

CLAIMS = ["fig1-left", "fig6-row1", "fig6-row2", "fig6-row3", "fig6-row4", "fig17", "robust-space", "less-robust",
          "loss-interchangeable", "c7-deep-quadratic", "c7-sanity", "c2-bias-needed", "d1-low-degree-fails",
          "d2-weak-to-strong", "fig16", "fig2-center"]


@pytest.mark.parametrize("name", CLAIMS)
def test_claim_has_a_trial(name):
    assert find([f"barak2022.{name}"])[0].trial.rules()


def records(*times: float) -> Records:
    t_c = np.array([t if math.isfinite(t) else -1 for t in times])
    steps = np.where(t_c > 0, t_c, 1000)
    return Records(np.arange(len(t_c)), t_c < 0, t_c, steps, t_c > 0, t_c < 0)


def test_unsolved_runs_are_infinite_not_the_limit():
    assert common.times(records(10, math.inf, 30)).tolist() == [10, math.inf, 30]
    assert common.by_run(records(10, math.inf)) == [{"run": 0, "t_c": 10}, {"run": 1, "t_c": None}]


@pytest.mark.parametrize(
    ("first", "second", "ratio"),
    [(30.0, 10.0, 3.0), (math.inf, 10.0, math.inf), (10.0, math.inf, 0.0), (math.inf, math.inf, math.nan)],
)
def test_ratio_of_medians_with_unsolved_runs(first, second, ratio):
    found = common.ratio_of_medians(np.array([first]), np.array([second]))
    assert found == ratio or (math.isnan(found) and math.isnan(ratio))


def test_bootstrap_covers_the_median():
    # Of 200 intervals that cover with probability 0.93 or more, 170 at least do; false alarms: 3 in 10^5.
    rng = np.random.default_rng(0)
    ends = [bootstrap(common.median, rng.normal(size=30), rng=rng, resamples=200) for _ in range(200)]
    assert sum(low <= 0 <= high for low, high in ends) >= 170


def test_bootstrap_says_nothing_where_the_statistic_is_undefined():
    nothing = np.full(5, math.inf)
    assert bootstrap(common.ratio_of_medians, nothing, nothing, rng=np.random.default_rng(0)) == (
        -math.inf, math.inf)
    assert bootstrap(common.median, np.empty(0), rng=np.random.default_rng(0)) == (-math.inf, math.inf)


@pytest.mark.slow
@pytest.mark.long
def test_straightness_covers_r_squared_where_percentiles_do_not():
    """By 100 samples of 100 runs at 16 sizes, whose true R^2 is known: at 95 % or more. Seed 0; 95 % intervals cover
    fewer than 88 of 100 truths with a chance of 0.2 %. Each holds its estimate."""
    rng, n = np.random.default_rng(0), np.arange(10, 26)
    setups = [Setup(Parity(int(each), 3), Learner(MLP(10), batch=32)) for each in n]
    x = np.log(n) - np.log(n).mean()
    for curve, spread in ((0.0, 0.5), (1.0, 0.5), (1.0, 0.05)):
        centre = 7 + x + curve * (x**2 - np.mean(x**2))
        truth = np.corrcoef(x, centre)[0, 1] ** 2
        covered = {"percentile": 0, "straightness": 0}
        for _ in range(100):
            times = np.exp(centre + spread * rng.normal(size=(100, len(n))))
            line = scaling.Line([Result(setup, "jax", 0, records(*column), 0.0)
                                 for setup, column in zip(setups, times.T, strict=True)], resamples=200)
            for kind, (value, (low, high)) in (("percentile", line.r_squared), ("straightness", line.straightness)):
                assert low <= value <= high <= 1
                covered[kind] += low <= truth + 1e-9 and truth <= high + 1e-4
        assert covered["straightness"] >= 88
        assert covered["percentile"] <= 60 or spread < 0.5


def test_intraclass_correlation_of_shrout_and_fleiss():
    """Six targets, four judges (Shrout and Fleiss 1979, tables 2-4): ICC(1, 1) = 0.17, F = 1.79."""
    table = [[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]]
    found = distributions.intraclass(table)
    assert found.correlation == pytest.approx(0.1657, abs=1e-4)
    assert found.f == pytest.approx(1.79, abs=0.01)
    assert found.interval == pytest.approx((-0.1329, 0.7226), abs=1e-3)


def test_intraclass_intervals_cover_the_share_of_variance():
    # For groups of one size the interval is exact: 176 to 199 of 200 cover at 95 %; false alarms: 6 in 10^5.
    rng = np.random.default_rng(1)
    found = [distributions.intraclass(rng.normal(0, 2, (10, 1)) + rng.normal(size=(10, 10))) for _ in range(200)]
    assert 176 <= sum(each.interval[0] <= 0.8 <= each.interval[1] for each in found) <= 199


def test_intraclass_correlation_of_groups_of_several_sizes():
    # The estimate has a standard deviation of 0.013 here, so 0.06 is more than four of them: below 1 in 10^4.
    rng = np.random.default_rng(2)
    groups = [mean + rng.normal(size=rng.integers(5, 12)) for mean in rng.normal(0, 2, size=400)]
    assert distributions.intraclass(groups).correlation == pytest.approx(0.8, abs=0.06)
    assert math.isnan(distributions.intraclass([[1.0, 2.0]]).correlation)


def test_triple_coefficients_are_the_fourier_coefficients():
    rng = np.random.default_rng(2)
    values, x = rng.normal(size=2**6), cube(6)
    expected = [fourier_coefficients(values, 6)[sum(1 << j for j in T)] for T in itertools.combinations(range(6), 3)]
    np.testing.assert_allclose(weak.triple_coefficients(values, x), expected, atol=1e-12)


def test_unbiased_network_is_the_mlp_with_its_biases_at_zero():
    setup = Setup(Parity(6, 3), Learner(deep.Unbiased(5)))
    params = setup.params(jax.random.key(0))
    biased = [layer | {"b": np.zeros(layer["w"].shape[1])} for layer in params]
    assert [set(layer) for layer in params] == [{"w"}, {"w"}]
    np.testing.assert_allclose(deep.Unbiased(5).apply(params, cube(6)), MLP(5).apply(biased, cube(6)), rtol=1e-6)
    assert setup.id != Setup(Parity(6, 3), Learner(MLP(5))).id


def test_gradient_without_bias_vanishes_for_odd_degrees_only():
    assert np.all(deep.unbiased_gradients(7, 3) == 0)
    assert np.abs(deep.unbiased_gradients(7, 4)).max() > 0.01


def test_growth_of_medians():
    grows = [np.array([1.0, 2.0, 3.0]) * scale for scale in (1, 2, 10)]
    assert noise.smallest_growth(*grows) == 2
    assert math.isnan(noise.smallest_growth(*grows, np.full(3, math.inf), np.full(3, math.inf)))


def test_horizons_end_at_the_limit():
    assert robustness.horizons(3000) == [1000, 3000]
    assert robustness.horizons(500) == [500]


def test_best_share_stops_at_the_first_rate_that_suffices(tmp_path):
    lab = Lab("quick", tmp_path, progress=False)
    easy = robustness.Combination("xv", n=8, k=2, batch=32)
    hopeless = robustness.Combination("xv", n=16, k=3, batch=1, loss="square")
    ladder = robustness.Ladder(max_steps=20, rates=(0.1, 1e-9))
    found = ladder.best([easy, hopeless], lab.chains(ladder.chains([easy, hopeless]), runs=5, until=robustness.SHARE))
    assert found[easy].enough
    assert found[easy].lr == 0.1
    assert found[hopeless].share == 0
    assert lab.runs == 3 * 5


class Relu(plateaus.Phased):
    runs = size(8)

    def panels(self):
        return {"relu": Setup(Parity(10, 3), Learner(MLP(10), optimiser=SGD(0.5)), common.FIXED_8192)}

    def judge(self, got):
        return Findings([], [])


def test_plateau_never_outlasts_the_run(tmp_path):
    trial = Relu()
    panels = trial.phases(trial.work(Lab("quick", tmp_path, progress=False)))
    rows = plateaus.rows(panels)
    assert len(rows) == 8
    assert all(0 < row["t_55"] <= row["t_c"] and row["t_55"] % 10 == 0 for row in rows if row["t_c"])
    assert panels["relu"].interval[0] <= panels["relu"].fraction <= panels["relu"].interval[1]


def test_polynets_claim_as_a_trial(tmp_path):
    outcome = tried(phases.Fig6Row2("quick"), Lab("quick", tmp_path, progress=False))
    assert outcome.results["solved from B = 1 to 1024"] == HOLDS
    assert outcome.figure is not None


# --- many more runs than were published --------------------------------------------------------------------


def test_percentiles_of_few_runs_are_as_often_infinite_as_the_binomial_law_says():
    """25 runs have a 10th percentile if four are solved; of 4,000 draws, within four standard errors (6e-5)."""
    values = np.where(np.arange(1000) < 150, 10.0, math.inf)
    drawn = repeats.p10_of_few(values, np.random.default_rng(0))
    share = stats.binom(25, 0.15).cdf(3)
    assert np.mean(np.isinf(drawn)) == pytest.approx(share, abs=4 * math.sqrt(share * (1 - share) / len(drawn)))
    assert set(drawn) == {10.0, math.inf}
    order = np.sort(np.random.default_rng(1).choice(np.arange(50.0), (repeats.DRAWS, 25)), axis=1)
    again = repeats.p10_of_few(np.arange(50.0), np.random.default_rng(1))
    np.testing.assert_allclose(again, np.percentile(order, 10, axis=1))


@pytest.mark.parametrize(("solved", "printed", "chance"), [(1.0, 100, 1.0), (1.0, 96, 0.0), (0.5, 48, 1.0),
                                                           (0.5, 0, 2 * 0.5**25), (0.5, 100, 2 * 0.5**25)])
def test_how_likely_a_printed_percentage_is(solved, printed, chance):
    runs = records(*[10.0 if i < 1000 * solved else math.inf for i in range(1000)])
    repeat = repeats.Repeat(Result(Setup(Parity(8, 2)), "lanes", 0, runs, 0.0))
    assert repeat.chance_of_percent(printed) == pytest.approx(chance)


@pytest.mark.long
def test_smaller_trials_of_the_robust_space_leave_wide_networks_out(tmp_path, monkeypatch):
    trial = robustness.RobustSpace("standard")
    solved = Result(Setup(Parity(8, 2)), "lanes", 0, records(*[10.0] * 25), 0.0)
    monkeypatch.setattr(Lab, "chains", lambda lab, asked, runs, until: {name: [solved] for name in asked})
    got = trial.work(Lab("standard", tmp_path, progress=False))
    best = trial.best(got)
    assert len(best) == 2 * 300 + 4 * 100
    assert {point.setting for point in best} == set(robustness.ROBUST) - {"iii", "vi"}
    found = trial.judge(got)
    assert found.note == "combinations drawn at random; without width-1000 networks"
    assert CONTRADICTED not in results(found.checks).values()
    full = robustness.RobustSpace("full").strata.values()
    assert {point.setting for points in full for point in points} == set(robustness.ROBUST)
