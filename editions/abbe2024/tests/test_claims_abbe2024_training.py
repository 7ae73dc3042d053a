"""What the training figures of abbe2024 are made of, and the atlas, on curves that are made up."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from abbe2024 import atlas, offline, online, other_losses, predictions, training, twenty_bits

from paritylab.claims import Lab, find, intervals
from paritylab.claims.reproduction import tried
from paritylab.claims.trial import Trial
from paritylab.claims.verdicts import CONTRADICTED, HOLDS, UNDECIDED, Outcome, Result, joined, results
from paritylab.cli import main
from paritylab.engines.curves import Curves

TRAINING = ("fig1-left", "fig1-right", "fig3-left", "fig3-right", "fig4-left", "fig4-right", "fig5", "fig7-left",
            "fig7-right", "fig8-left", "fig8-right", "almost-full", "summary-exp1", "summary-exp2", "summary-exp3",
            "open-threshold", "open-gal-predicts", "open-other-losses")


class Pretended(Lab):
    """A Lab in which every run of a Setup ends with the accuracy that ``ends`` gives it, and fits its sample if it has
    one."""

    def __init__(self, ends: Any, out: Path, size: str = "full") -> None:
        super().__init__(size, out, progress=False)
        self.ends = ends

    def curves_each(self, setups: Any, steps: Any, every: Any = None, runs: Any = 10, *args: Any, **kwargs: Any) -> Any:
        points = np.append(np.arange(0, steps, every), steps)
        rng = np.random.default_rng(0)
        found = []
        for setup in setups:
            end = self.ends(setup) + 0.004 * rng.standard_normal((runs, 1))
            accuracy = np.clip(0.5 + (end - 0.5) * np.minimum(1, 5 * points / steps), 0, 1)
            loss = 1.2 - accuracy
            train_loss = loss if setup.problem.sample is None else np.zeros_like(loss)
            found.append(Curves(points, accuracy, loss, None, accuracy, train_loss))
        return found


def learns_like_the_paper(setup: Any) -> float:
    """Signs and small perturbations learn, until d is large; the rest does not; sparse parities need data alone.

    The larger perturbation learns a little less."""
    init, problem = setup.learner.init.spec, setup.problem
    if problem.sample is not None and problem.k < 10:
        return 0.5 + 0.5 * min(1.0, problem.sample / (20_000 if problem.k == 3 else 200_000))
    good = init in ("rademacher", "uniform-perturbed:0.1", "perturbed-rademacher:0.05")
    small = init in ("perturbed-rademacher:0.1", "perturbed-rademacher:0.2") and problem.n <= 50
    rise = 1 if problem.sample is None else min(1.0, 0.3 + problem.sample / 100_000)
    less = 0.1 if init == "perturbed-rademacher:0.2" else 0
    return 0.5 + 0.499 * rise - less if good or small else 0.5 - less


def outcome_of(name: str, lab: Lab) -> Outcome:
    return tried(find([f"abbe2024.{name}"])[0].trial(lab.size, lab.seed), lab)


@pytest.mark.parametrize("name", TRAINING)
def test_every_training_claim_has_a_trial(name: str) -> None:
    assert issubclass(find([f"abbe2024.{name}"])[0].trial, Trial)


def judged(trial: Trial, got: Any) -> dict[str, Result]:
    return results(trial.judge(got).checks)


@pytest.mark.parametrize("name", ["fig1-left", "fig1-right", "fig3-left", "fig3-right", "fig4-left", "fig4-right",
                                  "fig5", "fig7-left", "fig7-right", "almost-full", "summary-exp2", "summary-exp3"])
def test_networks_that_learn_as_published_hold_in_every_part(name: str, tmp_path: Path) -> None:
    outcome = outcome_of(name, Pretended(learns_like_the_paper, tmp_path))
    assert set(outcome.results.values()) == {HOLDS}, [str(check) for check in outcome.checks]
    assert outcome.figure is not None
    assert outcome.data


@pytest.mark.parametrize("name", ["fig1-left", "fig1-right", "fig3-left", "fig3-right", "fig5", "fig7-left",
                                  "fig7-right", "almost-full", "summary-exp1", "summary-exp2", "summary-exp3"])
def test_networks_that_learn_from_any_start_contradict(name: str, tmp_path: Path) -> None:
    found = outcome_of(name, Pretended(lambda setup: 0.7, tmp_path)).results
    assert joined(list(found.values())) == CONTRADICTED


def test_parts_of_a_figure_are_judged_apart(tmp_path: Path) -> None:
    found = outcome_of("fig1-left", Pretended(lambda setup: 0.9, tmp_path)).results
    assert found["signs learn"] == HOLDS
    assert found["chance at sigma = 1 and from Gaussian weights"] == CONTRADICTED
    assert found["accuracy falls as sigma grows"] == UNDECIDED


@pytest.mark.parametrize(("later", "sizes", "laws"), [(1, "holds", "holds"), (3, "contradicted", "contradicted")])
def test_starts_of_a_sparse_parity_that_need_more_examples_are_seen(
    later: float, sizes: str, laws: str, tmp_path: Path
) -> None:
    """Accuracy rises with log N, and from Gaussian weights only at so many times as many examples."""
    def ends(setup: Any) -> float:
        needed = 3000 * (later if setup.learner.init.spec == "gaussian" else 1)
        return float(np.clip(0.75 + 0.25 * np.log10(setup.problem.sample / needed), 0.5, 1))

    found = outcome_of("fig4-left", Pretended(ends, tmp_path)).checks
    assert [check.result for check in found] == [sizes, laws], [str(check) for check in found]


def test_what_perturbed_starts_learn_is_measured_by_what_signs_learn(tmp_path: Path) -> None:
    def ends(setup: Any) -> float:
        lost = setup.learner.init.spec != "rademacher" and setup.problem.n > 120
        return 0.5 + (0.01 if lost else 0.1)

    found = outcome_of("fig5", Pretended(ends, tmp_path)).results
    assert found["sigma = 0.1 does not learn at d = 100"] == "contradicted"
    assert found["sigma = 0.1 does not learn at d = 200"] == found["learning becomes hard as d grows"] == "holds"
    assert np.isnan(online.learned_share(np.array([0.6]), np.array([0.5])))


def test_gaussian_weights_that_learn_at_one_rate_are_contradicted_there(tmp_path: Path) -> None:
    found = outcome_of("summary-exp2", Pretended(
        lambda setup: 0.7 if setup.learner.optimiser.lr > 0.02 else 0.5, tmp_path)).results
    assert found == {"rate 0.01": "holds", "rate 0.05": "contradicted"}


def test_sizes_needed_are_interpolated_in_the_logarithm() -> None:
    assert offline.crossing([100, 1000, 10_000], [0.5, 0.5, 1.0]) == pytest.approx(3.5)
    assert offline.crossing([100, 1000], [0.5, 0.6]) == math.inf
    assert offline.crossing([100, 1000], [0.8, 0.9]) == -math.inf


def test_the_critical_perturbation_is_censored_at_the_ends_of_the_grid() -> None:
    assert predictions.crossing([0.1, 1.0], [0.9, 0.8]) == math.inf
    assert predictions.crossing([0.1, 1.0], [0.6, 0.5]) == 0
    trial = predictions.OpenThreshold("quick")

    def accuracy(perturbation: float) -> list[np.ndarray]:
        return [np.array([0.9 if sigma < perturbation / d else 0.6]) for d in trial.d for sigma in trial.sigmas]

    assert trial.slope(*accuracy(8)) < 0
    assert math.isnan(trial.slope(*accuracy(1000)))
    assert trial.least(*accuracy(0.1)) == 0


@pytest.mark.long
def test_the_threshold_claim_counts_a_slope_below_zero(tmp_path: Path) -> None:
    def ends(setup: Any) -> float:
        _, _, sigma = setup.learner.init.spec.partition(":")
        return 0.5 + 0.5 / (1 + (float(sigma) * setup.problem.n / 8) ** 4)

    outcome = outcome_of("open-threshold", Pretended(ends, tmp_path, "quick"))
    assert outcome.results == {"sigma* falls with d": HOLDS, "sigma = 1/d is learned from": HOLDS}
    assert outcome.checks[0].value == pytest.approx(-1, abs=0.15)


def test_times_to_half_an_error_are_censored() -> None:
    curves = Curves(np.array([0, 10, 20]), np.zeros((2, 3)), np.array([[1.0, 0.6, 0.4], [1.0, 0.9, 0.8]]))
    assert other_losses.half_times(curves).tolist() == [20, math.inf]
    assert other_losses.half_times(curves, 1.3).tolist() == [10, math.inf]


def test_times_that_never_end_have_an_infinite_ratio() -> None:
    assert other_losses.ratio_of_times(np.array([np.inf] * 3), np.array([10.0] * 3)) == np.inf
    assert np.isnan(other_losses.ratio_of_times(np.array([1.0]), np.array([np.inf])))


def curves(times: list[float], steps: int = 1000) -> Curves:
    """Runs whose squared error falls from 0.3 to 0.001 and whose accuracy rises from 0.5 to 1 at these steps."""
    points = np.arange(0, steps + 1, 10)
    done = points[None] >= np.array(times)[:, None]
    loss, accuracy = np.where(done, 0.001, 0.3), np.where(done, 1.0, 0.5)
    return Curves(points, accuracy, loss, None, accuracy, loss)


def test_the_sooner_loss_is_told_for_each_start() -> None:
    soon, late = curves([100.0] * 10), curves([400.0] * 10)
    assert judged(other_losses.Fig8Left("full"), [soon, late, late, soon, soon, soon]) == {
        "signs": "holds", "Gaussian weights": "contradicted", "PyTorch's default": "undecided"}


def test_alignments_are_compared_for_fair_labels() -> None:
    draws = np.random.default_rng(0).uniform(1, 2, 20)
    got = [{name: draws * (3 if name == "l1, 0" else 0.5 if name.startswith("l1") else 1)
            for name in other_losses.CASES}] * 5
    assert judged(other_losses.Fig8Right("full"), got) == {"random labels: the target's law": "contradicted",
                                                   "random labels: 0": "holds"}
    assert other_losses.VALUES.mean() == 0


@pytest.mark.long
def test_labels_of_one_size_make_an_alignment_of_their_own() -> None:
    found = other_losses.label_alignments(seed=0, d=6, widths=[8], inputs=8000, draws=2)
    assert set(found) == set(other_losses.CASES)
    assert np.mean(found["l1, target 0"]) > np.mean(found["l1, the target's law"])


def test_a_mean_has_a_student_t_interval() -> None:
    value, (low, high) = intervals.mean(np.array([1.0, 2.0, 3.0]))
    assert (value, low, high) == (2, pytest.approx(2 - 2.4841, abs=1e-3), pytest.approx(2 + 2.4841, abs=1e-3))
    assert training.apart(np.array([1.0, 1.1]), np.array([0.0, 0.1])) < 0


def test_moving_neurons_are_all_or_none() -> None:
    assert twenty_bits.moving_neurons(10, 9) == twenty_bits.moving_neurons(10, 8) == 1


def test_the_atlas_ranks_laws_by_their_alignment(tmp_path: Path) -> None:
    def ends(setup: Any) -> float:
        return 0.9 if setup.learner.init.spec == "rademacher" else 0.5

    rows = atlas.atlas(Pretended(ends, tmp_path, "quick"))
    assert len(rows) == 2 * len(atlas.LAWS) >= 24
    signs = [row for row in rows if row["init"] == "rademacher"]
    assert all(row["rate"] == 0 and row["low"] > 0.51 for row in signs)
    assert atlas.agreement(rows).keys() == {"two layers, d = 10", "two layers, d = 20"}
    assert "| Rademacher | 0.000 |" in atlas.table(rows, "two layers")


def test_the_shipped_atlas_is_complete() -> None:
    lines = atlas.SHIPPED.read_text(encoding="utf-8").splitlines()
    assert len(lines) == 1 + 2 * 5 * len(atlas.LAWS)


def test_the_atlas_can_be_exported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["abbe2024", "atlas", "--quick", "--export", str(tmp_path / "work.json"), "--out", str(tmp_path)]) == 0
    assert len(json.loads((tmp_path / "work.json").read_text())["tasks"]) == 2 * len(atlas.LAWS)
    assert "tasks" in capsys.readouterr().out
