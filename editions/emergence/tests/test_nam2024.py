"""nam2024: rules against data whose verdict is known, shipped tables, the decoder."""

import csv
import itertools
from pathlib import Path

import jax
import numpy as np
import pytest
from paritylab_emergence import skills as theory
from paritylab_emergence.nam2024 import decoder, samples, times, widths

from paritylab.engines.curves import Curves


def test_the_shipped_predictions_are_the_models():
    with (Path(times.__file__).parent / "data" / "predictions.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        skills, skill = int(row["skills"]), int(row["skill"])
        frequency = theory.frequencies(0.6, skills)[skill - 1]
        assert frequency == pytest.approx(float(row["frequency"]), abs=5e-6)
        assert times.half_times(skills)[skill - 1] == pytest.approx(float(row["steps_50_percent"]), abs=0.5)
        for level in (5, 50, 95):  # the steps are rounded
            step = float(row[f"steps_{level}_percent"])
            assert times.predicted(np.array([step]), frequency) == pytest.approx(level / 100, abs=0.0025)
        assert theory.with_data(float(row["examples_50_percent"]) * frequency) == pytest.approx(0.5, abs=1e-3)
    assert pytest.approx(1 + np.log(19) / np.log(1 / times.START - 1), abs=5e-4) == times.MODEL_RATIO


def curves(steps, strength):
    """Curves with these strengths, (runs, points, tasks)."""
    other = np.zeros(strength.shape[:2])
    return Curves(np.asarray(steps), other, other, task_skill=strength)


def sigmoids(trial, constants, slower=1.0):
    """Strengths of runs that follow the model with these constants; above a half they are so many times slower."""
    steps = np.arange(0, trial.steps + 1, trial.every)
    tasks = getattr(trial, "tasks", 1)
    half = times.half_times(tasks)

    def run(constant):
        middle = half * constant / 22
        late = np.where(steps[:, None] > middle, middle + (steps[:, None] - middle) / slower, steps[:, None])
        return np.stack([times.predicted(late[:, task], p, constant)
                         for task, p in enumerate(theory.frequencies(0.6, tasks))], axis=1)

    return curves(steps, np.stack([run(constant) for constant in constants]))


@pytest.mark.parametrize(("constants", "result"), [((22, 22.5, 21.5), "holds"), ((40, 41, 42), "contradicted"),
                                                    ((17, 19, 21), "undecided")])
def test_time_calibration_finds_the_constant(constants, result):
    trial = times.TimeCalibration("full")
    (fit, end) = trial.judge(sigmoids(trial, constants)).checks
    assert fit.value == pytest.approx(np.mean(constants), abs=0.3)
    assert (fit.result, end.passed) == (result, True)


def test_five_skills_hold_where_networks_follow_the_model_and_not_where_they_lag():
    trial = times.TimeEmergence("full")
    constants = 22 + np.random.default_rng(0).normal(0, 0.3, 40)
    assert all(check.result == "holds" for check in trial.judge(sigmoids(trial, constants)).checks)
    slow = {check.name: check.result for check in trial.judge(sigmoids(trial, 1.3 * constants)).checks}
    assert slow["step of half strength / the model's, skill 1"] == "contradicted"
    assert slow["exponent of these steps in the rank"] == "holds"
    assert trial.draw(sigmoids(trial, constants)) is not None


def test_a_late_tail_is_told_from_the_models():
    trial = times.SlowTail("full")
    constants = 22 + np.random.default_rng(0).normal(0, 0.3, 40)
    late, same = (trial.judge(sigmoids(trial, constants, slower)).checks for slower in (1.3, 0.99))
    assert [check.result for check in late] == ["holds"] * 4
    assert [check.result for check in same] == ["undecided"] * 4


def finals(strength):
    """Curves of runs with these strengths in the end, (runs, tasks)."""
    return curves([1], np.asarray(strength, float)[:, None, :])


def test_samples_are_judged_by_where_the_mean_is_a_half():
    trial = samples.DataCalibration("full")
    got = [finals(np.full((3, 1), strength)) for strength in np.where(
        np.array(trial.examples) < 300, 0.0, theory.with_data(trial.examples))]
    assert [check.result for check in trial.judge(got).checks] == ["holds"] * 4
    assert trial.judge(got).checks[0].value == pytest.approx(600)


def test_samples_of_several_tasks_scale_with_their_frequency():
    trial = samples.DataEmergence("full")
    got = [finals(np.tile(np.clip((count * trial.frequencies - 300) / 600, 0, 1), (3, 1))) for count in trial.examples]
    found = {check.name: check for check in trial.judge(got).checks}
    assert all(check.result == "holds" for check in found.values())
    assert found["exponent of these D in the rank"].value == pytest.approx(1.6, abs=0.02)


def test_passes_end_where_examples_can_no_longer_be_numbered():
    trial = samples.DataEmergence("full")
    setup, steps = trial.setup(35_000)
    assert setup.learner.batch == 2058
    assert steps * 2058 < 2**31 <= (steps + 1) * 2058
    assert trial.setup(7000)[1] == round(100_000 * 7000 / 2333)


def test_width_calibration_takes_the_better_variant():
    trial = widths.WidthCalibration("full")
    got = {name: [finals(np.full((3, 1), float(theory.with_units(width, enough)))) for width in trial.widths]
           for name, enough in (("A", 4.5), ("B", 9.0))}
    found = trial.judge(got)
    assert found.checks[0].value == pytest.approx(4.5, abs=1e-3)
    assert found.numbers["N_c, variant B (text)"] == pytest.approx(9.0, abs=1e-3)


def test_table_5_is_read_with_its_misprint_and_agrees_with_itself():
    theirs = widths.published()
    assert theirs.shape == (10, 5)
    assert theirs[0, 1] == 0.45
    trial = widths.WidthTable5("full")
    checks = trial.checks(theirs)
    assert [check.value for check in checks] == [1.0] * 5
    assert [check.result for check in trial.checks(np.zeros((200, 5)))][:3] == ["contradicted"] * 3


def test_the_decoder_is_causal_and_reads_bits_at_their_place():
    """In plain NumPy, example by example; what a position puts out does not change with later inputs."""
    d, heads, n = 8, 2, 5
    params = jax.tree.map(np.asarray, decoder.make(jax.random.key(0), n, d))
    x = np.random.default_rng(0).choice([-1.0, 1.0], (3, n)).astype(np.float32)
    expected = [by_hand(params, example, d, heads) for example in x]
    assert np.asarray(decoder.forward(params, x, heads)) == pytest.approx(expected, abs=1e-5)


def by_hand(params, x, d, heads):
    def dense(name, z):
        return z @ params[name]["w"] + params[name]["b"]

    def normed(z):
        return (z - z.mean()) / np.sqrt(z.var() + 1e-5)

    n = len(x)
    z = [np.maximum(0, dense("embed", np.concatenate([[x[i] > 0, x[i] < 0], np.eye(n)[i]]))) for i in range(n)]
    parts = [np.split(dense("queries, keys, values", normed(each)), 3) for each in z]
    out = []
    for i in range(n):
        mixed = []
        for h in range(heads):
            own = slice(h * d // heads, (h + 1) * d // heads)
            logits = np.array([parts[i][0][own] @ parts[j][1][own] for j in range(i + 1)]) / np.sqrt(d / heads)
            weights = np.exp(logits) / np.exp(logits).sum()
            mixed.append(sum(weight * parts[j][2][own] for j, weight in enumerate(weights)))
        y = z[i] + dense("out", np.concatenate(mixed))
        out.append(normed(y + dense("down", np.maximum(0, dense("up", normed(y))))))
    return dense("read", np.concatenate(out))[0]


def test_three_units_are_enough_for_a_parity_of_three_bits():
    """As the remark on width-calibration writes it."""
    x = np.array(list(itertools.product([-1, 1], repeat=3)))
    hidden = np.maximum(0, x.sum(axis=1)[:, None] + np.array([3, 1, -1]))
    assert (hidden @ [1, -2, 2] - 1 == x.prod(axis=1)).all()
