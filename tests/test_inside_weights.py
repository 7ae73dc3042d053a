"""Units that carry a parity, movement, sharpness and gradient alignment of networks, against brute force.

Statistical tests have fixed seeds; a correct function would fail one with probability at most ``FALSE_ALARM``.
"""

from __future__ import annotations

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from test_inside import FALSE_ALARM, alarms, setup_of, start

import paritylab as pl
from paritylab.measures.fourier import cube
from paritylab.measures.inside.sharpness import lanczos
from paritylab.measures.precision import double

WIDTH = 8


@pytest.fixture(scope="module")
def trained():
    learner = pl.Learner(pl.MLP(WIDTH), optimiser=pl.SGD(0.3))
    result = pl.measure(pl.Parity(7, 3), learner, pl.Protocol(max_steps=3000, eval_size=512), runs=10)
    return result.networks(omit_missing=True)


# --- units ------------------------------------------------------------------------------------------------------------


def hidden(params, x):
    for layer in params[:-1]:
        x = np.maximum(x @ layer["w"] + layer["b"], 0)
    return x


def accuracies(params, n, k, ablation):
    """The accuracy with every set of units alone, one input and one set after the other."""
    x = cube(n).astype(np.float32)
    y, h, output = x[:, :k].prod(1), hidden(params, x), params[-1]
    found = {}
    for left in itertools.product([False, True], repeat=h.shape[1]):
        kept = np.where(left, h, h.mean(0) if ablation == "mean" else 0)
        found[left] = float((y * (kept @ output["w"][:, 0] + output["b"][0]) > 0).mean())
    return found


@pytest.mark.parametrize("width", [5, (4, 5)])
def test_units_of_bits_are_those_of_signs_with_the_same_sums(width):
    bits, signs = (setup_of(pl.MLP(width, inputs=inputs)) for inputs in ("bits", "signs"))
    first, *rest = start(bits)
    same = [{"w": -first["w"] / 2, "b": first["b"] + first["w"].sum(0) / 2}, *rest]
    for samples in (None, 500):
        found, other = (pl.inside.subnetwork((setup, params), samples=samples)
                        for setup, params in ((bits, [first, *rest]), (signs, same)))
        assert found.whole == other.whole
        np.testing.assert_allclose(found.carried, other.carried, atol=1e-6)


@pytest.mark.parametrize("ablation", ["zero", "mean"])
def test_the_fewest_units_are_those_of_all_sets(trained, ablation):
    found = pl.inside.subnetwork(trained, 0.9, ablation=ablation)
    quick = pl.inside.subnetwork(trained, 0.9, ablation=ablation, effort=0)
    assert np.all(found.minimal)
    for i, network in enumerate(trained):
        every = accuracies(network.tree, 7, 3, ablation)
        whole = every[(True,) * WIDTH]
        fewest = min(sum(left) for left, accuracy in every.items() if accuracy >= 0.9 * whole)
        assert found.whole[i] == whole
        assert found.size[i] == found.units[i].sum() == fewest
        assert found.accuracy[i] == every[tuple(found.units[i].tolist())] >= 0.9 * whole
        assert quick.at_least[i] == 0
        assert quick.size[i] >= fewest
        assert every[tuple(quick.units[i].tolist())] >= 0.9 * whole
    assert quick.size.mean() <= 1.15 * found.size.mean()  # what greed costs here


def test_what_units_carry_sums_to_the_correlation_with_the_target(trained):
    found = pl.inside.subnetwork(trained)
    correlation = pl.inside.fourier(trained, sets=[(0, 1, 2)]).coefficients[:, 0]
    np.testing.assert_allclose(found.carried.sum(-1), correlation, rtol=1e-4)
    x = cube(7).astype(np.float32)
    for i, network in enumerate(trained):
        parts = hidden(network.tree, x) * network.params["1.w"][:, 0]
        np.testing.assert_allclose(found.carried[i], (parts.T * x[:, :3].prod(1)).mean(1), atol=1e-5)


@pytest.mark.parametrize("ablation", ["zero", "mean"])
def test_units_of_the_last_hidden_layer_of_a_deep_network(ablation):
    setup = setup_of(pl.MLP((5, 6)), 6)
    params = start(setup, seed=4)
    found = pl.inside.subnetwork((setup, params), 0.9, ablation=ablation)
    every = accuracies(jax.tree.map(np.asarray, params), 6, 2, ablation)
    whole = every[(True,) * 6]
    assert found.minimal
    assert found.size == min(sum(left) for left, accuracy in every.items() if accuracy >= 0.9 * whole)
    assert found.accuracy == every[tuple(found.units.tolist())]


def test_a_lower_bound_is_as_high_as_the_effort_goes(trained):
    bounds = [pl.inside.subnetwork(trained[0], 0.95, effort=effort).at_least for effort in (0, 200, 2e3, 1e5, 1e6)]
    assert bounds == sorted(bounds)
    assert bounds[0] == 0 < bounds[-1]


def test_units_of_a_sample_have_an_accuracy_with_an_interval():
    """On a sample of the cube: of another one, the accuracy is right within its interval."""
    setup = setup_of(pl.MLP(WIDTH), 22, 2)
    w = np.zeros((22, WIDTH), np.float32)
    w[:2, :2] = [1, -1]
    params = [{"w": w, "b": np.r_[-1, -1, np.zeros(6)].astype(np.float32)},
              {"w": np.r_[2, 2, np.full(6, 0.01)].astype(np.float32)[:, None], "b": -np.ones(1, np.float32)}]
    found = pl.inside.subnetwork((setup, params), samples=1000)
    assert np.flatnonzero(found.units).tolist() == [0, 1]
    assert found.minimal
    assert not found.exact
    assert found.accuracy == found.whole == 1
    assert found.low == pytest.approx(0.025 ** (1 / 1000))


def test_units_are_those_of_perceptrons():
    setup = setup_of(pl.PolyNet(3))
    with pytest.raises(pl.InvalidInput, match=r"of pl\.MLP; this network is a PolyNet"):
        pl.inside.subnetwork((setup, start(setup)))
    setup = setup_of(pl.MLP(3))
    for options, message in (({"keep": 0}, "above 0"), ({"ablation": "none"}, "allowed: zero, mean"),
                             ({"effort": -1}, "at least 0")):
        with pytest.raises(pl.InvalidInput, match=message):
            pl.inside.subnetwork((setup, start(setup)), **options)


# --- movement ---------------------------------------------------------------------------------------------------------


def test_movement_is_from_the_start_of_the_same_run(trained):
    result = pl.measure(trained.setup.problem, trained.setup.learner, trained.setup.protocol, runs=10)
    begun = result.networks(trained.runs, at="start")
    found = pl.inside.movement(trained)
    assert np.array_equal(found.distance, pl.inside.movement(trained, begun).distance)
    assert found.arrays == ("0.b", "0.w", "1.b", "1.w")
    one = pl.inside.movement(trained[2])
    for place, name in enumerate(found.arrays):
        now, then = (each.params[name][2].astype(float).reshape(-1) for each in (trained, begun))
        change = now - then
        assert found.distance[2, place] == one.distance[place] == pytest.approx(np.linalg.norm(change))
        assert found.relative[2, place] == pytest.approx(np.linalg.norm(change) / np.linalg.norm(then))
        assert found.farthest[2, place] == np.abs(change).max()
        assert found.cosine[2, place] == pytest.approx(now @ then / np.linalg.norm(now) / np.linalg.norm(then))
    change = (trained.params["0.w"] - begun.params["0.w"]).astype(float)
    np.testing.assert_allclose(found.by_input, np.sqrt((change**2).mean(-1)), rtol=1e-6)
    np.testing.assert_allclose(found.relevant, np.sqrt((change[:, :3] ** 2).mean((1, 2))), rtol=1e-6)
    np.testing.assert_allclose(found.irrelevant, np.sqrt((change[:, 3:] ** 2).mean((1, 2))), rtol=1e-6)
    assert np.array_equal(found.leads, found.by_input[:, :3].min(1) > found.by_input[:, 3:].max(1))


@pytest.mark.long
def test_movement_along_curves_and_of_other_networks():
    setup = setup_of(pl.MLP(4))
    curves = pl.curves(setup, steps=20, every=10, runs=range(2), weights=True)
    found = pl.inside.movement((setup, curves.weights))
    assert found.distance.shape == (2, 3, 4)
    w = curves.weights[0]["w"].astype(float)
    np.testing.assert_allclose(found.farthest[..., 1], np.abs(w - w[:, :1]).max((2, 3)))
    own = setup_of(pl.Transformer(8, 2, 2))
    still = pl.inside.movement((own, start(own, 2)), (own, start(own, 2)))
    assert still.by_input is None
    assert still.distance.max() == 0
    with pytest.raises(pl.InvalidInput, match="do not say how they started"):
        pl.inside.movement((setup, start(setup)))
    with pytest.raises(pl.InvalidInput, match="of one network or of 3, not of 2"):
        pl.inside.movement((setup, start(setup, 3)), (setup, start(setup, 2)))


# --- sharpness --------------------------------------------------------------------------------------------------------


def full_hessian(setup, params, x, y):
    """Every entry, by differentiating twice in double precision."""
    with double():
        leaves, tree = jax.tree.flatten(params)
        flat = jnp.concatenate([jnp.asarray(leaf, jnp.float64).reshape(-1) for leaf in leaves])
        cuts = np.cumsum([leaf.size for leaf in leaves])[:-1]

        def loss(theta):
            parts = [part.reshape(leaf.shape) for part, leaf in zip(jnp.split(theta, cuts), leaves, strict=True)]
            f = setup.learner.network.apply(jax.tree.unflatten(tree, parts), jnp.asarray(x, jnp.float64))
            return setup.learner.loss(f, jnp.asarray(y, jnp.float64)).mean()

        return np.asarray(jax.hessian(loss)(flat))


@pytest.mark.parametrize(("network", "loss"), [
    (pl.MLP(4), "square"), *(pytest.param(*each, marks=pytest.mark.long) for each in (
        (pl.MLP(4), "hinge"), (pl.MLP((3, 4), "tanh"), "logistic"), (pl.PolyNet(3), "square"))),
])
def test_sharpness_is_the_largest_eigenvalue_of_the_whole_hessian(network, loss):
    setup = pl.Setup(pl.Parity(6, 2), pl.Learner(network, loss=loss))
    params = start(setup, 3)
    found = pl.inside.sharpness((setup, params), tolerance=1e-9)
    assert found.exact
    x = cube(6)
    for i in range(3):
        matrix = full_hessian(setup, jax.tree.map(lambda leaf, i=i: leaf[i], params), x, x[:, :2].prod(1))
        eigenvalues = np.linalg.eigvalsh(matrix)
        scale = np.abs(eigenvalues).max()
        assert found.value[i] == pytest.approx(eigenvalues[-1], abs=1e-8 * scale)
        assert found.residual[i] <= 1e-9 * scale
        assert found.smallest[i] >= eigenvalues[0] - 1e-9 * scale


def test_a_flat_loss_has_no_curvature():
    """Every margin is above that of the hinge."""
    setup = setup_of(pl.MLP(1))
    params = [{"w": np.zeros((7, 1)), "b": np.ones(1)}, {"w": np.ones((1, 1)), "b": np.zeros(1)}]
    flat = pl.inside.sharpness((setup, params), loss=lambda f, y: 0 * f)
    assert flat.value == 0
    assert flat.products == 1


def test_lanczos_finds_eigenvalues_that_are_close_or_negative():
    rotation = np.linalg.qr(np.random.default_rng(0).standard_normal((60, 60)))[0]
    close = np.r_[1.0, 1 - 1e-4, np.linspace(-0.5, 0.9, 58)]
    for eigenvalues in (close, np.linspace(-3, -1, 60), np.r_[1.0, [0] * 59]):
        matrix = rotation * eigenvalues @ rotation.T
        found = lanczos(lambda v, matrix=matrix: matrix @ v, np.random.default_rng(1).standard_normal(60), 1e-10)
        assert found.value == pytest.approx(eigenvalues.max(), abs=1e-9)


@pytest.mark.long
def test_the_interval_of_a_sampled_sharpness_holds_the_true_one():
    setup = pl.Setup(pl.Parity(8, 2), pl.Learner(pl.MLP(4), loss="square"))
    params = start(setup, seed=2)
    exact = pl.inside.sharpness((setup, params)).value
    missed, trials = 0, 40
    for seed in range(trials):
        found = pl.inside.sharpness((setup, params), samples=256, seed=seed, level=0.9)
        missed += not found.low <= exact <= found.high
    assert missed <= alarms(trials, 0.9)
    assert found.samples == 256


# --- gradient alignment -----------------------------------------------------------------------------------------------


def test_the_alignment_is_the_square_of_the_population_gradient():
    setup = setup_of(pl.MLP(5), 7, 3)
    params = start(setup, 3)
    found = pl.inside.alignment((setup, params), loss="correlation")
    for i in range(3):
        own = jax.tree.map(lambda leaf, i=i: np.asarray(leaf[i]), params)
        gradient = pl.population_gradient(setup.learner.network, own, "parity:3")
        squares = [np.square(gradient[0]["w"][:3]).sum(), np.square(gradient[0]["w"][3:]).sum(),
                   np.square(gradient[0]["b"]).sum() + np.square(gradient[1]["b"]).sum(),
                   np.square(gradient[1]["w"]).sum()]
        np.testing.assert_allclose(found.parts[i], squares, rtol=1e-9, atol=1e-15)
    np.testing.assert_allclose(found.total, found.parts.sum(-1))


def test_random_labels_are_taken_off_for_every_loss():
    setup = pl.Setup(pl.Parity(6, 2), pl.Learner(pl.MLP(4), loss="logistic"))
    params = start(setup)
    x = cube(6).astype(np.float32)

    def mean(params, y):
        return setup.learner.loss(setup.learner.network.apply(params, x), y).mean()

    def random(params):
        return (mean(params, jnp.ones(64)) + mean(params, -jnp.ones(64))) / 2

    on_target, on_noise = jax.grad(mean)(params, x[:, :2].prod(1)), jax.grad(random)(params)
    square = sum(float(((a - b) ** 2).sum()) for a, b in zip(*map(jax.tree.leaves, (on_target, on_noise)), strict=True))
    assert pl.inside.alignment((setup, params)).total == pytest.approx(square, rel=1e-4)


def test_over_random_starts_it_is_the_alignment_of_the_initialisation():
    """Its mean is pl.alignment's, within a normal interval."""
    width, d, k = 6, 5, 3
    learner = pl.Learner(pl.MLP(width, output_bias=False), init="gaussian")
    setup = pl.Setup(pl.Parity(d, k), learner)
    found = pl.inside.alignment((setup, start(setup, 400)), loss="correlation").total
    expected = pl.alignment("gaussian", d, k, unit="network", width=width, bias="same", scale="fan-in").value
    error = found.std(ddof=1) / math.sqrt(len(found))
    assert abs(found.mean() - expected) < stats.norm.ppf(1 - FALSE_ALARM / 2) * error


@pytest.mark.long
def test_a_sampled_alignment_is_unbiased_and_its_intervals_hold():
    setup = setup_of(pl.MLP(5), 7, 2)
    params = start(setup, seed=5)
    exact = pl.inside.alignment((setup, params))
    missed, totals, trials = 0, [], 100
    for seed in range(trials):
        found = pl.inside.alignment((setup, params), samples=320, seed=seed, level=0.9)
        missed += not found.low[-1] <= exact.total <= found.high[-1]
        totals.append(float(found.total))
    assert missed <= alarms(trials, 0.9)
    bound = stats.norm.ppf(1 - FALSE_ALARM / 2) * np.std(totals, ddof=1) / math.sqrt(trials)
    assert abs(np.mean(totals) - exact.total) < bound


def test_alignment_along_training_and_of_other_networks():
    setup = setup_of(pl.MLP(4))
    curves = pl.curves(setup, steps=20, every=10, runs=range(2), weights=True)
    found = pl.inside.alignment((setup, curves.weights))
    assert found.total.shape == (2, 3)
    assert found.to_frame().columns == ["network", "point", "part", "alignment", "low", "high"]
    own = setup_of(pl.PolyNet(2))
    assert pl.inside.alignment((own, start(own))).names == ("0.b", "0.w")
