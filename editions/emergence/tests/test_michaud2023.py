"""michaud2023: published data and what is read off them, the rules at full size, what is asked of a machine."""

import itertools

import numpy as np
import pytest
from paritylab_emergence import michaud2023
from paritylab_emergence.fits import Exponent, censored_exponent, exponent
from paritylab_emergence.logits import BIT
from paritylab_emergence.michaud2023.common import frequencies, mean_bits, published, theory, zipf
from paritylab_emergence.michaud2023.samples import SIZES, AlphaD, LearnedCount
from paritylab_emergence.michaud2023.scaling import ALPHAS, AlphaN, AlphaS
from paritylab_emergence.michaud2023.times import StepExponent, SubtaskTimes, published_slope

from paritylab import Setup
from paritylab.claims import size
from paritylab.claims.published import table
from paritylab.claims.registry import find, registry
from paritylab.claims.reproduction import plan
from paritylab.engines.curves import Curves

CLAIMS = [id for id in registry() if id.startswith("michaud2023.")]


def constant(bits: float, subtasks: int, steps: list[int]) -> Curves:
    """Curves of one run whose subtasks all have one loss at all points."""
    loss = np.full((1, len(steps)), bits * BIT)
    return Curves(np.array(steps), loss, loss, task_loss=np.repeat(loss[..., None], subtasks, axis=-1))


# --- the published data -----------------------------------------------------------------------------------------------


def test_the_published_points_give_the_published_exponents():
    width, learned, steps = (table(michaud2023.__file__, name) for name in ("width", "learned", "steps"))
    for alpha in ALPHAS:
        here = width.filter(width["alpha"] == alpha)
        fit = exponent(here["parameters"], here["loss_bits"])
        assert (round(-fit.value, 3), round(fit.error, 3)) == pytest.approx(
            (published("N")[alpha].value, published("N")[alpha].error), abs=6e-4)
        counts = learned.filter(learned["alpha"] == alpha)
        fit = exponent(counts["examples"], counts["subtasks_learned"])
        assert (fit.value, fit.error) == pytest.approx(
            (published("n")[alpha].value, published("n")[alpha].error), abs=1e-3)
        runs = steps.filter(steps["alpha"] == alpha)["exponent"].to_numpy()
        assert runs.mean() == pytest.approx(published("S")[alpha].value, abs=3e-4)


def test_the_published_losses_on_samples_give_the_published_exponents():
    data = table(michaud2023.__file__, "data")
    for alpha, theirs in published("D").items():
        here = data.filter(data["alpha"] == alpha)
        rows = [{"D": d, "loss in bits": loss} for d, loss in zip(here["examples"], here["loss_bits"], strict=True)]
        used = list(itertools.dropwhile(lambda row: row["loss in bits"] >= 0.95, rows))
        fit = exponent([row["D"] for row in used], [row["loss in bits"] for row in used])
        assert -fit.value == pytest.approx(theirs.value, abs=5e-4)
        assert fit.error == pytest.approx(theirs.error, abs=5e-4)


def test_theory_is_that_of_the_table():
    rows = table(michaud2023.__file__, "exponents").rows(named=True)
    assert all(abs(theory(row["law"], row["alpha"]) - row["theory"]) < 1e-4 for row in rows)


def test_sizes_are_those_of_the_figure():
    drawn = set(table(michaud2023.__file__, "data")["examples"].to_list())
    assert all(min(abs(size - each) for each in drawn) <= 1 for size in SIZES)


def test_unlearned_subtasks_make_the_published_slope_steeper_than_minus_one():
    """45 of 500 subtasks were learned; the others were not learned sooner."""
    points = table(michaud2023.__file__, "subtasks")
    often = frequencies(zipf(500, 100, 3, 0.4, 9, 10, seed=0))
    hidden = np.delete(often, points["subtask"].to_numpy() - 1)
    fit = censored_exponent(points["frequency"].to_numpy(), points["steps"].to_numpy(), hidden, 1e5)
    assert published_slope().interval()[0] > -1 > fit.interval()[1]


def test_a_censored_fit_is_right_about_as_often_as_it_says():
    """40 samples with slope 1: at a level of 95 %, 5 or more intervals without it have a chance of 5 %."""
    rng, x = np.random.default_rng(1), np.geomspace(1, 1e3, 80)
    missed = 0
    for _ in range(40):
        y = x * np.exp(0.8 * rng.normal(size=80))
        low, high = censored_exponent(x[y < 60], y[y < 60], x[y >= 60], 60).interval()
        missed += not low <= 1 <= high
    assert missed < 6


# --- the problem ------------------------------------------------------------------------------------------------------


def test_frequencies_are_zipfs_and_the_mean_loss_is_weighted_by_them():
    setup = zipf(500, 100, 3, 0.4, 9, 10, seed=0)
    theirs = table(michaud2023.__file__, "subtasks")
    assert frequencies(setup)[theirs["subtask"].to_numpy() - 1] == pytest.approx(theirs["frequency"], rel=1e-3)
    losses = np.zeros((1, 1, 500))
    losses[..., 0] = BIT
    curves = Curves(np.array([1]), np.zeros((1, 1)), np.zeros((1, 1)), task_loss=losses)
    assert mean_bits(setup, curves) == pytest.approx(frequencies(setup)[0])


def test_seeds_have_subsets_of_their_own():
    first, second = (zipf(20, 30, 3, 0.4, 9, 10, seed=seed).problem.target.supports for seed in (0, 1))
    assert first != second
    assert len(set(first)) == 20


# --- the rules at full size, with few subtasks ------------------------------------------------------------------------


class FewN(AlphaN):
    subtasks = size(4)


class FewS(AlphaS):
    subtasks = size(4)


class FewLearned(LearnedCount):
    subtasks = size(100)


def test_the_published_losses_pass_the_rule_of_alpha_n():
    trial = FewN("full")
    width = table(michaud2023.__file__, "width")
    got = []
    for alpha in trial.alphas:
        here = width.filter(width["alpha"] == alpha)
        drawn = {w: here.filter(here["width"] == w)["loss_bits"].to_list() for w in trial.widths}
        nearest = {w: drawn[min((v for v in drawn if drawn[v]), key=lambda v, w=w: abs(v - w))] for w in trial.widths}
        got.extend(constant(nearest[w][seed % len(nearest[w])], trial.subtasks, [trial.steps])
                   for w, seed, _ in trial.setups(alpha))
    results = {check.name: check.result for check in trial.judge(got).checks}
    assert set(results.values()) == {"holds"}, results
    assert len(results) == 6


def test_losses_that_follow_the_theory_contradict_alpha_s():
    trial, steps = FewS("full"), np.arange(500, 14_501, 500)
    rng = np.random.default_rng(0)
    got = []
    for alpha in trial.alphas:
        slopes = theory("S", alpha) + 0.01 * rng.normal(size=trial.seeds)
        losses = [(steps / 500.0) ** -slope for slope in slopes]
        got.extend(Curves(steps, loss[None], loss[None], task_loss=np.repeat(BIT * loss[None, :, None], 4, axis=-1))
                   for loss in losses)
    checks = trial.judge(got).checks
    assert checks[0].result == "contradicted"
    assert not any(check.result == "holds" and "99 %" in check.name for check in checks)


def test_counts_that_follow_the_theory_pass_the_rule_of_learned_count():
    trial = FewLearned("full")
    got = []
    for alpha in trial.alphas:
        counts = [max(1, round(2 * (d / 1e5) ** theory("n", alpha))) for d in trial.samples]
        got.extend(_learned(count, trial.subtasks) for count in counts)
    results = [check.result for check in trial.judge(got).checks]
    assert results[-1] == "holds"
    assert results.count("contradicted") <= 3  # where the published exponents differ from the theory's


def _learned(count: int, subtasks: int) -> Curves:
    losses = np.full((1, 2, subtasks), BIT)
    losses[:, 1, :count] = 0.0
    flat = losses.mean(axis=-1)
    return Curves(np.array([0, 500]), flat, flat, task_loss=losses)


def test_times_in_proportion_to_frequency_contradict_subtask_times():
    trial = SubtaskTimes("full", seed=0)
    steps = np.arange(0, 200_001, 100)
    got = []
    for setup in trial.setups:
        at = 240 / frequencies(setup)
        losses = np.where(steps[None, :, None] >= at, 0.0, BIT)
        flat = losses.mean(axis=-1)
        got.append(Curves(steps, flat, flat, task_loss=losses))
    results = {check.name: check.result for check in trial.judge(got).checks}
    assert next(iter(results.values())) == "contradicted"
    exponents = StepExponent("full").judge(got)
    assert len(exponents.checks) == 1 + StepExponent("full").runs


def test_fits_begin_where_losses_leave_chance():
    trial = AlphaD("quick")
    losses = [1.0, 0.8, 0.4, 0.2]
    got = [constant(loss, trial.subtasks, [0, 50]) for _ in trial.alphas for loss in losses]
    low, high = trial.judge(got).checks[0].interval
    assert high - low < 2  # three points, one degree of freedom
    numbers = trial.judge(got).numbers
    assert numbers["alpha_D at 0.2"] == pytest.approx(exponent([10_000, 30_000, 100_000], [0.8, 0.4, 0.2]).value * -1)


# --- fits -------------------------------------------------------------------------------------------------------------


def test_differences_of_exponents_have_welchs_freedom():
    gap = Exponent(0.5, 0.03, 6).minus(Exponent(0.2, 0.04, 6))
    assert gap.error == pytest.approx(0.05)
    assert 6 < gap.freedom < 12
    assert Exponent(0.5, 0.03, 0).minus(Exponent(0.2, 0.04, 6)).interval() == (-np.inf, np.inf)


# --- what is asked for ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("id", [pytest.param(id, marks=pytest.mark.long) if id.endswith("-N") else id for id in CLAIMS])
def test_everything_can_be_planned_at_full_size(id, tmp_path):
    claim = find([id])[0]
    tasks, all_ = plan(claim, "full", tmp_path)
    assert tasks
    assert all_
    assert Setup.from_json(tasks[0].setup.to_json()) == tasks[0].setup
    assert set(claim.trial.sizes()) <= claim.values().names


def test_there_are_six_claims():
    assert len(CLAIMS) == 6
