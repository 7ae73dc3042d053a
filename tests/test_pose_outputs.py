"""Networks and targets with several outputs."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import paritylab as pl
from paritylab import engines, rng
from paritylab.engines.gradient import make_step
from paritylab.errors import InvalidInput


def pairs(x):
    """Two parities at once."""
    return jnp.stack([x[:, 0] * x[:, 1], x[:, 2] * x[:, 3]], axis=1)


def make(key, n):
    hidden, output = jax.random.split(key)
    return {"w": jax.random.normal(hidden, (n, 24)) / n**0.5, "v": jax.random.normal(output, (24, 2)) / 5}


def forward(params, x):
    return jax.nn.relu(x @ params["w"]) @ params["v"]


LEARNER = pl.Learner(pl.Network(make, forward), optimiser=pl.SGD(0.3))
PROBLEM = pl.Problem(6, pairs)
CUBE = np.array([[1 - 2 * (i >> j & 1) for j in range(6)] for i in range(64)], np.float32)


@pytest.mark.long
def test_both_are_learned():
    result = pl.measure(PROBLEM, LEARNER, pl.Protocol(max_steps=4000, eval_size=512), runs=4)
    assert result.engine == engines.label("jax")
    assert result.summary.solved == 4


def test_an_input_is_right_where_all_outputs_are_and_the_loss_is_their_mean():
    data = pl.Data(CUBE, pairs(CUBE))
    made = pl.curves(pl.Setup(data, LEARNER), [0, 50], weights=True, train=True)
    for point in range(2):
        f = forward(jax.tree.map(lambda leaf, point=point: leaf[0, point], made.weights), CUBE)
        right = np.all(f * pairs(CUBE) > 0, axis=1)
        assert made.accuracy[0, point] == right.mean()
        np.testing.assert_allclose(made.loss[0, point], np.maximum(0, 1 - f * pairs(CUBE)).mean(), rtol=1e-5, atol=1e-6)
        assert made.train_loss is not None
        np.testing.assert_allclose(made.train_loss[0, point], made.loss[0, point], rtol=1e-5)


def test_within_asks_all_outputs():
    network = pl.Network(lambda key, n: jnp.zeros((n, 2)), lambda params, x: x @ params + jnp.array([1.0, 0.0]))
    problem = pl.Problem(6, lambda x: jnp.stack([x[:, 0], 0.2 * x[:, 1]], axis=1))
    learner = pl.Learner(network, loss="square", optimiser=pl.SGD(0.0))
    made = pl.curves(pl.Setup(problem, learner, pl.Protocol(eval_size=4096, within=0.5)), [1])
    np.testing.assert_allclose(made.accuracy, 0.5, atol=0.03)  # the second always is within, four standard deviations


def test_a_loss_may_join_outputs():
    def choice(f, y):
        """The cross-entropy of the output that is +1."""
        return jax.nn.logsumexp(f, axis=1) - jnp.sum(jnp.where(y > 0, f, 0.0), axis=1)

    problem = pl.Problem(6, lambda x: jnp.stack([x[:, 0], -x[:, 0]], axis=1))
    learner = pl.Learner(pl.Network(make, forward), loss=choice, optimiser=pl.SGD(0.3))
    assert pl.measure(problem, learner, pl.Protocol(max_steps=2000, eval_size=512), runs=2).summary.solved == 2


def test_short_batches_and_noise():
    problem = pl.Problem(6, pairs, noise=0.1, stages=[pl.Stage(20, batch=4)])
    loss = pl.curves(pl.Setup(problem, LEARNER), [40], runs=range(3)).loss
    assert np.isfinite(loss).all()


def test_outputs_by_their_supports_are_those_of_a_function_of_ones_own():
    named = pl.Problem(6, pl.Outputs([(0, 1), (2, 3)]))
    learner = pl.Learner(pl.MLP(20, outputs=2), optimiser=pl.SGD(0.1))
    both = [pl.curves(pl.Setup(problem, learner, pl.Protocol(eval_size=300)), [0, 50, 300], runs=range(3),
                      engine="jax")
            for problem in (named, pl.Problem(6, pairs))]
    for name in ("accuracy", "loss", "task_accuracy", "task_loss", "task_skill"):
        np.testing.assert_array_equal(getattr(both[0], name), getattr(both[1], name))
    assert both[0].task_accuracy.shape == (3, 3, 2)
    assert (both[0].accuracy <= both[0].task_accuracy.min(axis=2)).all()
    np.testing.assert_allclose(both[0].task_loss.mean(axis=2), both[0].loss, rtol=1e-6)


@pytest.mark.long
def test_accuracies_of_outputs_on_the_training_sample_are_those_of_its_examples():
    problem = pl.Problem(6, pl.Outputs([(0, 1), (2, 3)]), sample=200)
    setup = pl.Setup(problem, pl.Learner(pl.MLP(20, outputs=2), optimiser=pl.SGD(0.1)), pl.Protocol(eval_size=64))
    found = pl.curves(setup, [0, 60], runs=range(2), train=True, weights=True)
    assert found.train_task_accuracy.shape == (2, 2, 2)
    for run in range(2):
        key = rng.run_keys(np.array([0]), np.array([run]))[0]
        drawn, y = make_step(setup.program)[1](key, np.uint32(problem.flip), problem.mask)
        for point in range(2):
            params = jax.tree.map(lambda leaf, at=(run, point): jnp.asarray(leaf[at]), found.weights)
            right = np.asarray(setup.learner.network.apply(params, problem.signs(drawn)) * y > 0)
            np.testing.assert_allclose(found.train_task_accuracy[run, point], right.mean(axis=0), atol=1e-12)
            np.testing.assert_allclose(found.train_accuracy[run, point], right.all(axis=1).mean(), atol=1e-12)
    assert pl.curves(setup, [0]).train_task_accuracy is None


@pytest.mark.long
def test_an_output_that_counts_less_is_learned_later():
    """Of 16 networks, in all of which the other one is first; by chance that would happen once in 65,536 times."""
    problem = pl.Problem(6, pl.Outputs([(0, 1), (2, 3)], counted=(1, 0.05)))
    setup = pl.Setup(problem, pl.Learner(pl.MLP(32, outputs=2), optimiser=pl.SGD(0.2), batch=40))
    found = pl.curves(setup, 600, 20, runs=range(16), engine="jax").task_accuracy >= 0.98
    first = np.where(found.any(axis=1), found.argmax(axis=1), 1000)
    assert (first[:, 0] < 1000).all()
    assert (first[:, 0] < first[:, 1]).all()


@pytest.mark.parametrize(("problem", "learner", "message"), [
    (pl.Problem(6, pl.Outputs([(0,), (1,)])), pl.Learner(pl.MLP(4, outputs=3)), r"of shape \(32, 2\), as the target"),
    (pl.Problem(6, pl.Outputs([(0,), (1,)], counted=(1, 0.5))),
     pl.Learner(pl.MLP(4, outputs=2), loss=lambda f, y: jnp.sum(f * y, axis=1)), r"counted=\) need a loss of each"),
    (PROBLEM, pl.Learner(), r"network MLP .* must return .* of shape \(32, 2\), as the target does, not float32"),
    (pl.Problem(6, [0, 1]), LEARNER, r"must return .* of shape \(32,\), not float32 of shape \(32, 2\)"),
    (pl.Problem(6, lambda x: x[:, :0]), LEARNER, r"target .* must return .* of shape \(32,\) or \(32, outputs\), not"),
    (pl.Problem(6, lambda x: x[:, :, None]), LEARNER, r"target .* must return real numbers of shape \(32,\) or"),
    (PROBLEM, pl.Learner(LEARNER.network, loss=lambda f, y: jnp.sum(f)), r"loss .* of shape \(32, 2\) or \(32,\), not"),
])
def test_mistakes_are_said_in_a_line(problem, learner, message):
    with pytest.raises(InvalidInput, match=message):
        pl.Setup(problem, learner).check()


def test_the_native_engine_refuses_targets_of_ones_own():
    with pytest.raises(InvalidInput, match="engine 'lanes' cannot train this: it has no"):
        engines.choose(pl.Setup(PROBLEM, LEARNER), "lanes")


@pytest.mark.parametrize("look", [pl.inside.fourier, pl.inside.subnetwork, pl.inside.margins, pl.inside.sharpness,
                                  pl.inside.influences, pl.inside.alignment])
def test_measures_of_one_output_refuse_several(look):
    setup = pl.Setup(pl.Problem(6, pl.Outputs([(0,), (1, 2)])), pl.Learner(pl.MLP(4, outputs=2)))
    with pytest.raises(InvalidInput, match="one output"):
        look((setup, setup.params(jax.random.key(0))))
