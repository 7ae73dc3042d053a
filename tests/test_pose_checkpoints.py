"""Runs that go on from a checkpoint are the runs that were not interrupted, bit for bit."""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from lengths import long_but

import paritylab as pl
from paritylab.errors import InvalidInput
from paritylab.storage.kept import save_arrays

PROTOCOL = pl.Protocol(eval_size=200)


def setup(problem=None, optimiser=None, network=None):
    learner = pl.Learner(network or pl.MLP(6), optimiser=optimiser or pl.SGD(0.2, momentum=0.9), batch=16)
    return pl.Setup(problem or pl.Parity(8, 2), learner, PROTOCOL)


def noisy(params, x, key):
    h = jnp.tanh(x @ params["w"])
    return (h if key is None else h * jax.random.normal(key, h.shape)) @ params["u"]


NETWORK = pl.Network(lambda key, n: {"w": jax.random.normal(key, (n, 3)), "u": jnp.ones(3)}, noisy)
CASES = {
    "momentum": setup(),
    "adam, a sample in passes": setup(pl.Parity(8, 2, sample=50, noise=0.1), pl.Adam(0.01, schedule="cosine:60")),
    "optax": setup(optimiser=pl.Optax(transformation=optax.adamw(0.01))),
    "noise everywhere": setup(network=NETWORK, optimiser=pl.SGD(0.1, noise=0.1)),
    "stages": setup(pl.Problem(8, [0, 1], stages=[pl.Stage(33, "biased:0.8", lr=0.5)])),
}


def arrays(curves):
    return jax.tree.leaves((curves.accuracy, curves.loss, curves.train_loss, curves.weights))


@pytest.mark.parametrize("name", long_but(CASES, "adam, a sample in passes", "noise everywhere"))
def test_a_run_that_goes_on_is_the_run_that_was_not_interrupted(name, tmp_path):
    mine = CASES[name]
    how = {"engine": "jax", "weights": True, "train": True}
    whole = pl.curves(mine, [70, 90], runs=(2, 0, 5), seed=7, **how)
    first = pl.curves(mine, [37], runs=(2, 0, 5), seed=7, checkpoint=True, **how).checkpoint
    assert first is not None
    first.save(tmp_path / "at-37.npz")
    second = pl.curves(mine, [70], start=pl.Checkpoint.load(tmp_path / "at-37.npz"), checkpoint=True, **how)
    third = pl.curves(mine, [90], start=second.checkpoint, **how)
    for point, later in enumerate((second, third)):
        for a, b in zip(arrays(whole), arrays(later), strict=True):
            np.testing.assert_array_equal(a[:, point], b[:, 0])


@pytest.mark.long
def test_a_network_grows_and_keeps_what_it_has():
    small, large = setup(pl.Parity(8, 2), pl.Adam(0.01)), setup(pl.Parity(40, 2), pl.Adam(0.01))
    first = pl.curves(small, [30], runs=(2, 4, 9), seed=3, engine="jax", checkpoint=True).checkpoint
    more = first.grown(40, init="normal:0.1", seed=5)
    assert (more.seed, more.step, more.runs) == (5, 30, (2, 4, 9))
    for part in ("params", "optimiser"):
        for name, old in getattr(first, part).items():
            new = getattr(more, part)[name]
            assert new.dtype == old.dtype
            if not name.endswith("[0]['w']"):
                np.testing.assert_array_equal(new, old)
                continue
            assert new.shape == (3, 40, 6)
            np.testing.assert_array_equal(new[:, :8], old)
            if part == "optimiser":
                assert not new[:, 8:].any()
    drawn = more.params["[0]['w']"][:, 8:].ravel()
    assert abs(drawn.std() - 0.1) < 5 * 0.1 / (2 * len(drawn)) ** 0.5  # five standard errors: a false alarm in 2e6
    assert len(set(drawn.tolist())) == len(drawn)  # each run has its own
    alone = pl.curves(small, [30], runs=(4,), seed=3, engine="jax", checkpoint=True).checkpoint
    alone = alone.grown(40, "normal:0.1", 5)
    np.testing.assert_array_equal(alone.params["[0]['w']"][0, 8:], more.params["[0]['w']"][1, 8:])
    assert pl.curves(large, [30, 35], start=more).accuracy.shape == (3, 2)
    zero = first.grown(40, init=lambda key, shape: jnp.zeros(shape))
    x = np.where(np.random.default_rng(0).random((50, 40)) < 0.5, 1, -1).astype(np.float32)
    layers = [[{part: made.params[f"[{i}]['{part}']"][1] for part in "wb"} for i in (0, 1)] for made in (first, zero)]
    np.testing.assert_allclose(pl.MLP(6).apply(layers[0], x[:, :8]), pl.MLP(6).apply(layers[1], x), atol=1e-6)


def test_what_cannot_grow_is_refused_in_a_line():
    first = pl.curves(setup(), [1], engine="jax", checkpoint=True).checkpoint
    with pytest.raises(InvalidInput, match="n must be at least 8, the number of inputs there are, not 7"):
        first.grown(7)
    own = pl.curves(setup(network=NETWORK), [1], engine="jax", checkpoint=True).checkpoint
    with pytest.raises(InvalidInput, match="inputs can be added to networks of type mlp, neuron, polynet, not to a"):
        own.grown(9)


def test_what_a_checkpoint_says_of_itself(tmp_path):
    made = pl.curves(setup(), [5], runs=(2, 4), engine="jax", checkpoint=True, weights=True)
    found = made.checkpoint
    assert found is not None
    assert repr(found) == "Checkpoint(step=5, seed=0, runs=(2, 4))"
    assert sorted(found.optimiser) == sorted(found.params) == ["[0]['b']", "[0]['w']", "[1]['b']", "[1]['w']"]
    np.testing.assert_array_equal(found.params["[0]['w']"], made.weights[0]["w"][:, 0])
    assert pl.Setup.from_json(found.setup) == setup()
    found.save(tmp_path / "it.npz")
    with np.load(tmp_path / "it.npz", allow_pickle=False) as file:
        np.testing.assert_array_equal(file["params[0]['w']"], found.params["[0]['w']"])


def test_points_begin_where_the_checkpoint_is_and_a_run_can_go_on_alone():
    start = pl.curves(setup(), [10], runs=(2, 4), engine="jax", checkpoint=True).checkpoint
    assert pl.curves(setup(), 30, 15, start=start).steps.tolist() == [10, 25, 30]
    both, one = (pl.curves(setup(), [30], runs=runs, start=start) for runs in (None, [4]))
    np.testing.assert_allclose(both.loss[1:], one.loss, rtol=1e-5)


@pytest.mark.long
def test_parts_of_the_setup_may_change_from_there_on():
    mine = setup(pl.Problem(8, [0, 1], "biased:0.6"))
    start = pl.curves(mine, [40], engine="jax", checkpoint=True).checkpoint
    frozen = replace(mine, learner=replace(mine.learner, optimiser=pl.SGD(0.0, momentum=0.9)))
    weights = pl.curves(frozen, [40, 60], start=start, weights=True).weights
    jax.tree.map(lambda leaf: np.testing.assert_array_equal(leaf[:, 0], leaf[:, 1]), weights)
    other = setup(pl.Problem(8, [0, 1], "biased:0.9"))
    staged = setup(pl.Problem(8, [0, 1], "biased:0.9", stages=[pl.Stage(40, "biased:0.6")]))
    later, at_once = pl.curves(other, [60], start=start, weights=True), pl.curves(staged, [60], weights=True)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6), later.weights, at_once.weights)


def test_numbers_of_other_kinds_are_kept_on_disk(tmp_path):
    mine = setup(optimiser=pl.Optax(transformation=optax.adam(0.01, mu_dtype=jnp.bfloat16)))
    start = pl.curves(mine, [3], engine="jax", checkpoint=True).checkpoint
    assert start is not None
    start.save(tmp_path / "it.npz")
    again = pl.Checkpoint.load(tmp_path / "it.npz")
    name = "[0].mu[0]['w']"
    assert again.optimiser[name].dtype == jnp.bfloat16
    np.testing.assert_array_equal(again.optimiser[name], start.optimiser[name])
    assert pl.curves(mine, [5], start=again).loss == pl.curves(mine, [5]).loss


@pytest.fixture(scope="module")
def start():
    return pl.curves(setup(), [10], runs=(2, 4), engine="jax", checkpoint=True).checkpoint


@pytest.mark.parametrize(("mine", "options", "message"), [
    (setup(network=pl.MLP(7)), {}, r"does not fit: params\[0\]\['b'\] is .* \(6,\) in it, .* \(7,\) in the Setup"),
    (setup(network=pl.MLP((6, 1))), {}, r"does not fit: params\[2\]\['b'\] is absent in it, float32 of shape"),
    (setup(optimiser=pl.SGD(0.1)), {}, r"does not fit: optimiser.* is .* of shape \(6,\) in it, absent in the Setup"),
    (setup(optimiser=pl.Lion()), {}, "a checkpoint of sgd cannot go on with sign-sgd"),
    (setup(), {"seed": 1}, "the checkpoint has seed 0, not 1"),
    (setup(), {"runs": [2, 3]}, "the checkpoint has no run 3"),
    (setup(), {"steps": [9]}, "increasing whole numbers of at least 10"),
    (setup(), {"engine": "lanes"}, "engine 'lanes' has no checkpoints; use 'jax' or 'auto'"),
])
def test_mistakes_are_said_in_a_line(start, mine, options, message):
    with pytest.raises(InvalidInput, match=message) as caught:
        pl.curves(mine, **{"steps": [20], **options}, start=start)
    assert "\n" not in str(caught.value)


def test_files_that_are_none_are_refused(tmp_path):
    (tmp_path / "text.npz").write_text("no archive")
    save_arrays(tmp_path / "other.npz", {"a": np.ones(3)})
    for name, message in (("none", "no checkpoint at"), ("text", "damaged"), ("other", "is no checkpoint: 'about'")):
        with pytest.raises(InvalidInput, match=message):
            pl.Checkpoint.load(tmp_path / f"{name}.npz")


def test_runs_that_stop_have_none():
    with pytest.raises(InvalidInput, match="runs with stop end at different steps: no checkpoint"):
        pl.curves(setup(pl.Parity(8, 2, sample=20)), [5], stop=0.1, checkpoint=True)
