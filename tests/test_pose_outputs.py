"""Networks and targets with several outputs."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import paritylab as pl
from paritylab import engines
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
    assert result.engine == "jax"
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


@pytest.mark.parametrize(("problem", "learner", "message"), [
    (PROBLEM, pl.Learner(), r"network MLP .* must return .* of shape \(32, 2\), as the target does, not float32"),
    (pl.Problem(6, [0, 1]), LEARNER, r"must return .* of shape \(32,\), not float32 of shape \(32, 2\)"),
    (pl.Problem(6, lambda x: x[:, :0]), LEARNER, r"target .* must return .* of shape \(32,\) or \(32, outputs\), not"),
    (pl.Problem(6, lambda x: x[:, :, None]), LEARNER, r"target .* must return real numbers of shape \(32,\) or"),
    (PROBLEM, pl.Learner(LEARNER.network, loss=lambda f, y: jnp.sum(f)), r"loss .* of shape \(32, 2\) or \(32,\), not"),
])
def test_mistakes_are_said_in_a_line(problem, learner, message):
    with pytest.raises(InvalidInput, match=message):
        pl.Setup(problem, learner).check()


def test_the_native_engine_refuses_them():
    with pytest.raises(InvalidInput, match="engine 'lanes' cannot train this: it has no"):
        engines.choose(pl.Setup(PROBLEM, LEARNER), "lanes")
