"""Curves of several Setups at once, runs that end with their training loss, other losses, and curves from elsewhere."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
import pytest

import paritylab as pl
from paritylab.claims.lab import Lab
from paritylab.cli import main
from paritylab.engines import choose, known, lanes, loop
from paritylab.engines.curves import curves, curves_each
from paritylab.engines.work import Job, Queue
from paritylab.errors import InvalidInput
from paritylab.running import offload
from paritylab.running.tasks import CurveTask, Task, from_text, to_text
from paritylab.setups import inits
from paritylab.storage.kept import KeptWarning

built = pytest.mark.skipif(lanes.kernel() is None, reason="the native kernel was not built")
SMALL = pl.Setup(pl.Parity(8, 2, sample=60), pl.Learner(pl.MLP(16), optimiser=pl.SGD(0.2), batch=16),
                 pl.Protocol(eval_size=256))


def deep(init: str, lr: float = 0.05) -> pl.Setup:
    learner = pl.Learner(pl.MLP((8, 6)), init, optimiser=pl.SGD(lr), batch=16)
    return pl.Setup(pl.Parity(6, 6), learner, pl.Protocol(eval_size=200))


@pytest.mark.long
def test_setups_that_train_together_have_the_curves_they_have_alone() -> None:
    setups = [deep("rademacher"), deep("gaussian"), deep("gaussian", 0.2)]
    setups.append(replace(deep("torch"), problem=pl.Parity(7, 3)))
    together = curves_each(setups, 60, 20, runs=[3, 1], engine="jax")
    for setup, found in zip(setups, together, strict=True):
        alone = curves(setup, 60, 20, runs=[3, 1], engine="jax")
        np.testing.assert_allclose(found.loss, alone.loss, rtol=1e-5)
        np.testing.assert_array_equal(found.accuracy, alone.accuracy)


@pytest.mark.long
@pytest.mark.parametrize("engine", ["jax", pytest.param("lanes", marks=built)])
def test_a_run_ends_with_the_first_training_loss_below_stop(engine: str) -> None:
    stop = 0.3
    whole = curves(SMALL, 600, 50, runs=range(5), engine=engine, train=True)
    found = curves(SMALL, 600, 50, runs=range(5), engine=engine, stop=stop)
    assert whole.train_loss is not None
    assert found.train_loss is not None
    ends = [np.flatnonzero(losses < stop)[0] if (losses < stop).any() else len(losses) for losses in whole.train_loss]
    assert min(ends) < len(found.steps) - 1
    for name in ("accuracy", "loss", "train_accuracy", "train_loss"):
        for run, end in enumerate(ends):
            before, after = getattr(whole, name)[run], getattr(found, name)[run]
            np.testing.assert_array_equal(after[: end + 1], before[: end + 1])
            np.testing.assert_array_equal(after[end:], np.full_like(after[end:], before[min(end, len(before) - 1)]))


@built
@pytest.mark.parametrize("layout", ["lanes", "within", "tables"])
def test_a_run_that_has_learned_its_sample_is_trained_no_further(layout: str) -> None:
    """Where others go on beside it (sixteen in the lanes) and where it is alone."""
    points, stop = np.arange(0, 61, 5), 0.3
    setup = replace(SMALL, protocol=replace(SMALL.protocol, max_steps=60))

    def traced(stop: float) -> tuple[int, np.ndarray]:
        queue = Queue([Job(setup, 0, np.arange(5))])
        pool = lanes.LanesPool(setup.program, 1, layout=layout, trace=(points.tolist(), 5, True, stop))
        for _ in loop.train(queue, pool):
            pass
        return pool.model_steps, pool.take_trace()[0]["train_loss"]

    (_, whole), (steps, found) = traced(-math.inf), traced(stop)
    ends = [points[np.flatnonzero(losses < stop)[0]] if (losses < stop).any() else points[-1] for losses in whole]
    assert min(ends) < max(ends)
    assert steps == sum(ends)
    for before, after, end in zip(whole, found, ends, strict=True):
        np.testing.assert_array_equal(after[points <= end], before[points <= end])
        assert np.isnan(after[points > end]).all()


def test_stop_needs_a_finite_sample() -> None:
    with pytest.raises(InvalidInput, match="finite sample"):
        curves(deep("torch"), 10, 5, stop=0.1)


@pytest.mark.long
def test_another_loss_can_be_reported_than_the_one_that_is_trained() -> None:
    made = curves(SMALL, 40, 20, loss="square", engine="auto")
    trained = curves(SMALL, 40, 20, engine="jax")
    np.testing.assert_array_equal(made.accuracy, trained.accuracy)
    assert not np.allclose(made.loss, trained.loss)
    with pytest.raises(InvalidInput, match="lanes"):
        curves(SMALL, 40, 20, loss="square", engine="lanes")


TERMS = [(1.0, (0,)), (-0.5, (0, 1)), (2.0, (1, 2, 3))]


def test_a_polynomial_labels_inputs_by_its_values() -> None:
    problem = pl.Polynomial(n=40, terms=TERMS)
    drawn = problem.draw(jax.random.key(0), 50)
    labels = problem.labels(drawn, problem.mask)
    x = np.asarray(problem.signs(drawn))
    want = x[:, 0] - x[:, 0] * x[:, 1] / 2 + 2 * x[:, 1] * x[:, 2] * x[:, 3]
    np.testing.assert_allclose(labels, want, atol=1e-6)
    assert problem.support == (0, 1, 2, 3)
    setup = pl.Setup(problem, pl.Learner(pl.MLP((8, 8)), "gaussian", "l1"))
    assert pl.Setup.from_json(setup.to_json()) == setup
    assert setup != pl.Setup(pl.Polynomial(n=40, terms=TERMS[:2]), setup.learner)
    assert problem != pl.Parity(40, 4)
    assert lanes.refusal(replace(setup, learner=replace(setup.learner, network=pl.MLP(8)))) is None
    for terms in ((), [(1.0, (0, 0))], [(1.0, (40,))]):
        with pytest.raises(InvalidInput):
            pl.Polynomial(n=40, terms=terms)


@pytest.mark.parametrize(
    ("law", "variance"),
    [
        ("discrete:-2,-1,1,2", 0.75),
        ("sparse-rademacher:0.5", 0.75),
        ("sparse-rademacher:0.2", 0.8),
        ("perturbed-rademacher:0.1", 1.0),
    ],
)
def test_the_released_code_divides_by_the_sample_variance(law: str, variance: float) -> None:
    stated, released = inits.init(law), inits.init(f"released {law}")
    assert math.isclose(released.scale(50, 1) ** 2, variance * stated.scale(50, 1) ** 2)
    assert inits.init(released.spec) == released != stated


@pytest.mark.long
def test_curves_of_another_machine_are_used_as_if_made_here(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    plan: list[Task | CurveTask] = []
    Lab("quick", here, plan=plan).curves_each([deep("rademacher"), deep("gaussian")], 20, 10, 2)
    assert [type(task) for task in plan] == [CurveTask] * 2
    assert from_text(to_text(plan)) == plan
    assert len(offload.batches_of(plan)) == 1
    assert offload.work(from_text(to_text(plan)), there) == 0
    assert main(["store", "merge", str(there), "--out", str(here)]) == 0
    lab = Lab("quick", here, progress=False)
    found = lab.curves_each([deep("rademacher"), deep("gaussian")], 20, 10, 2)
    assert (lab.recalled, lab.runs, lab.engines) == (2, 4, {known(choose(deep("gaussian")))})
    assert lab.recalled_seconds > 0
    np.testing.assert_allclose(found[1].loss, curves(deep("gaussian"), 20, 10, range(2)).loss, rtol=1e-5)


def test_each_setup_may_have_runs_of_its_own(tmp_path: Path) -> None:
    lab, setups = Lab("quick", tmp_path, progress=False), [deep("rademacher"), deep("gaussian")]
    found = lab.curves_each(setups, 20, 10, [[3], [0, 1]])
    assert [len(each.loss) for each in found] == [1, 2]
    np.testing.assert_array_equal(found[0].loss, lab.curves(setups[0], 20, 10, [3]).loss)
    assert lab.recalled == 1
    for runs in ([[3]], [[3], 1], [[3], [0], 1]):
        with pytest.raises(InvalidInput, match="for each of 2 Setups"):
            lab.curves_each(setups, 20, 10, runs)


def test_a_damaged_file_of_curves_is_replaced(tmp_path: Path) -> None:
    lab = Lab("quick", tmp_path, progress=False)
    first = lab.curves(deep("gaussian"), 20, 10, 2)
    (file,) = (tmp_path / "kept").iterdir()
    file.write_bytes(file.read_bytes()[:100])
    with pytest.warns(KeptWarning, match="is damaged"):
        again = lab.curves(deep("gaussian"), 20, 10, 2)
    np.testing.assert_array_equal(first.loss, again.loss)
