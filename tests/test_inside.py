"""What networks compute, Fourier coefficients, influences and margins, against brute force.

Statistical tests have fixed seeds; a correct function would fail one with probability at most ``FALSE_ALARM``.
"""

from __future__ import annotations

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from lengths import long_but
from scipy import stats

import paritylab as pl
from paritylab.measures.fourier import cube
from paritylab.measures.inside.subjects import subjects

FALSE_ALARM = 1e-6
N = 7


def squared(params, x):
    return jnp.tanh(x @ params["w"]) ** 2 @ params["v"]


def made(key, n):
    one, other = jax.random.split(key)
    return {"w": jax.random.normal(one, (n, 3)), "v": jax.random.normal(other, (3,))}


NETWORKS = {
    "shallow": pl.MLP(5), "wide": pl.MLP(23, "zigzag:3"), "no-bias": pl.MLP(4, bias=False),
    "no-output-bias": pl.MLP(4, "gelu", output_bias=False), "deep": pl.MLP((4, 6)), "neuron": pl.Neuron(),
    "bits": pl.MLP(4, inputs="bits"),
    "polynet": pl.PolyNet(3), "transformer": pl.Transformer(8, 2, 2), "own": pl.Network(made, squared),
}


def setup_of(network, n=N, k=2, **problem):
    return pl.Setup(pl.Parity(n, k, **problem), pl.Learner(network))


def start(setup, count=None, seed=0):
    """Random params, of one network or with a leading axis."""
    if count is None:
        return setup.params(jax.random.key(seed))
    keys = jax.random.split(jax.random.key(seed), count)
    return jax.tree.map(lambda *leaves: np.stack(leaves), *(setup.params(key) for key in keys))


def values(setup, params):
    """Outputs at all inputs, by the network's own forward pass."""
    return np.asarray(setup.learner.network.apply(params, cube(setup.problem.n).astype(np.float32)), np.float64)


def character(members, n=N):
    return cube(n)[:, list(members)].prod(1)


def every_set(n=N):
    return [s for size in range(n + 1) for s in itertools.combinations(range(n), size)]


def alarms(trials, level):
    """More misses than this have a probability of at most FALSE_ALARM."""
    return stats.binom.ppf(1 - FALSE_ALARM, trials, 1 - level)


# --- Fourier ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("of", ["output", "sign"])
@pytest.mark.parametrize("name", long_but(NETWORKS, "wide", "deep", "own"))
def test_coefficients_are_means_over_all_inputs(name, of):
    setup = setup_of(NETWORKS[name])
    params = start(setup)
    f = values(setup, params)
    f = np.sign(f) if of == "sign" else f
    brute = {s: (f * character(s)).mean() for s in every_set()}
    found = pl.inside.coefficients((setup, params), of=of)
    tolerance = 0 if of == "sign" else 2e-6 * np.abs(f).max()
    for s, value in brute.items():
        assert abs(found[sum(1 << j for j in s)] - value) <= tolerance
    told = pl.inside.fourier((setup, params), of=of, largest=6)
    assert told.exact
    order = sorted(brute.values(), key=abs, reverse=True)[:6]
    np.testing.assert_allclose(np.abs(told.coefficients), np.abs(order), atol=tolerance)
    np.testing.assert_allclose(told.coefficients, [brute[s] for s in told.sets], atol=tolerance)
    by_degree = [sum(value**2 for s, value in brute.items() if len(s) == size) for size in range(N + 1)]
    np.testing.assert_allclose(told.weights, by_degree, rtol=1e-5, atol=1e-9)
    assert told.power == pytest.approx((f**2).mean(), rel=1e-5)
    named = pl.inside.fourier((setup, params), of=of, sets=[(0, 1), (), (2,)])
    np.testing.assert_allclose(named.coefficients, [brute[0, 1], brute[()], brute[2,]], atol=tolerance)


def test_twenty_inputs_are_looked_at_everywhere():
    """A parity of all sign patterns of one unit, where the sums are known: f = relu(x_3 + x_19)."""
    setup = setup_of(pl.MLP(1, output_bias=False), 20)
    w = np.zeros((20, 1), np.float32)
    w[[3, 19]] = 1
    params = [{"w": w, "b": np.zeros(1, np.float32)}, {"w": np.ones((1, 1), np.float32)}]
    found = pl.inside.fourier((setup, params), largest=4)
    assert sorted(found.sets) == [(), (3,), (3, 19), (19,)]
    assert found.coefficients.tolist() == [0.5] * 4
    influence = pl.inside.influences((setup, params), of="output").values
    assert influence[[3, 19]].tolist() == [0.5, 0.5]
    assert influence.sum() == 1


def test_many_networks_are_each_alone_and_keep_their_axes():
    setup = setup_of(pl.MLP(5))
    params = start(setup, 6)
    many = pl.inside.fourier((setup, params), largest=3)
    grid = pl.inside.fourier((setup, jax.tree.map(lambda leaf: leaf.reshape(2, 3, *leaf.shape[1:]), params)), largest=3)
    assert many.coefficients.shape == (6, 3)
    assert grid.coefficients.shape == (2, 3, 3)
    assert np.array_equal(grid.coefficients.reshape(6, 3), many.coefficients)
    for i in range(6):
        alone = pl.inside.fourier((setup, jax.tree.map(lambda leaf, i=i: leaf[i], params)), largest=3)
        assert alone.sets == many.sets[i]
        assert np.array_equal(alone.coefficients, many.coefficients[i])
    frame = grid.to_frame()
    assert frame.columns == ["network", "point", "set", "degree", "coefficient", "low", "high"]
    assert frame["network"].to_list() == [0] * 9 + [1] * 9


@pytest.mark.long
@pytest.mark.parametrize("of", ["output", "sign"])
def test_intervals_of_sampled_coefficients_hold_together(of):
    setup = setup_of(pl.MLP(5))
    params, sets = start(setup, seed=3), every_set()[:29]
    exact = pl.inside.fourier((setup, params), of=of, sets=sets).coefficients
    missed, trials = 0, 150
    for seed in range(trials):
        found = pl.inside.fourier((setup, params), of=of, sets=sets, samples=500, seed=seed, level=0.9)
        missed += bool(np.any((found.low > exact) | (exact > found.high)))
    assert missed <= alarms(trials, 0.9)
    assert not found.exact
    assert np.all((found.low <= found.coefficients) & (found.coefficients <= found.high))


def parity_network(n, support):
    """sum_j of rectifiers that is the parity of two of n inputs, and the Setup."""
    setup = setup_of(pl.MLP(2), n, None, support=support)
    w = np.zeros((n, 2), np.float32)
    w[list(support)] = [1, -1]
    return setup, [{"w": w, "b": np.full(2, -1, np.float32)},
                   {"w": np.full((2, 1), 2, np.float32), "b": np.full(1, -1, np.float32)}]


@pytest.mark.parametrize("of", ["output", "sign"])
def test_beyond_twenty_inputs_large_coefficients_are_searched_for(of):
    found = pl.inside.fourier(parity_network(30, (7, 23)), of=of, largest=3, queries=300_000)
    assert found.sets == [(7, 23)]
    assert found.coefficients == pytest.approx([1.0])
    assert found.weights is None
    assert found.samples == 2**17


def test_a_search_that_finds_different_numbers_of_sets_fills_up_with_nothing():
    setup, one = parity_network(24, (1, 2))
    still = jax.tree.map(np.zeros_like, one)
    both = jax.tree.map(lambda *leaves: np.stack(leaves), one, still)
    found = pl.inside.fourier((setup, both), queries=100_000)
    assert found.coefficients.shape == (2, 1)
    assert np.isnan(found.coefficients[1, 0])
    assert len(found.to_frame()) == 1


# --- influences -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", long_but(["wide", "deep", "transformer"], "wide", "deep"))
def test_influences_are_what_flipping_a_bit_does(name):
    setup = setup_of(NETWORKS[name])
    params = start(setup)
    f = values(setup, params)
    flipped = [f[np.arange(2**N) ^ (1 << j)] for j in range(N)]
    sign = pl.inside.influences((setup, params)).values
    np.testing.assert_allclose(sign, [(np.sign(f) != np.sign(g)).mean() for g in flipped], atol=1e-12)
    output = pl.inside.influences((setup, params), of="output")
    rounding = 1e-7 * np.abs(f).max() ** 2  # of outputs in single precision, whose small differences are squared
    wanted = [((f - g) ** 2 / 4).mean() for g in flipped]
    np.testing.assert_allclose(output.values, wanted, rtol=1e-5, atol=rounding)
    weights = pl.inside.fourier((setup, params)).weights
    assert output.total == pytest.approx(float(weights @ np.arange(N + 1)), rel=1e-5)


@pytest.mark.long
@pytest.mark.parametrize("of", ["output", "sign"])
def test_intervals_of_sampled_influences_hold_together(of):
    setup = setup_of(pl.MLP(5))
    params = start(setup, seed=3)
    exact = pl.inside.influences((setup, params), of=of).values
    missed, trials = 0, 100
    for seed in range(trials):
        found = pl.inside.influences((setup, params), of=of, samples=400, seed=seed, level=0.9)
        missed += bool(np.any((found.low > exact) | (exact > found.high)))
    assert missed <= alarms(trials, 0.9)
    assert found.to_frame().columns == ["input", "influence", "low", "high"]


def test_influences_beyond_twenty_inputs():
    found = pl.inside.influences(parity_network(40, (0, 39)), samples=500)
    assert found.values[[0, 39]].tolist() == [1, 1]
    assert found.values[1:39].max() == 0
    assert found.low[0] > 0.98
    assert found.high[1] < 0.02


# --- margins ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["wide", "polynet"])
def test_margins_are_those_of_all_inputs(name):
    setup = setup_of(NETWORKS[name])
    params = start(setup)
    margin = values(setup, params) * character((0, 1))
    found = pl.inside.margins((setup, params), levels=(0.01, 0.25, 0.5))
    ordered, ranks = np.sort(margin), [math.ceil(share * 2**N) - 1 for share in (0.01, 0.25, 0.5)]
    np.testing.assert_allclose(found.quantiles, ordered[ranks], rtol=1e-4)
    assert found.accuracy == (margin > 0).mean()
    assert found.mean == pytest.approx(margin.mean(), rel=1e-3)
    assert found.smallest == pytest.approx(ordered[0], rel=1e-4)
    np.testing.assert_allclose(found.normalised(), found.quantiles / np.sqrt((margin**2).mean()), rtol=1e-5)
    if name == "polynet":
        with pytest.raises(pl.InvalidInput, match="normalise by 'output'"):
            found.normalised("weights")
    else:
        norms = [math.sqrt(sum(float((leaf**2).sum()) for leaf in layer.values())) for layer in params]
        assert found.weight_norm == pytest.approx(math.prod(norms), rel=1e-5)


def test_normalised_margins_do_not_depend_on_the_scale_of_weights():
    setup = setup_of(pl.MLP(5, bias=False))
    params = start(setup)
    doubled = jax.tree.map(lambda leaf: 2 * leaf, params)
    one, other = (pl.inside.margins((setup, each)) for each in (params, doubled))
    np.testing.assert_allclose(other.quantiles, 4 * one.quantiles, rtol=1e-5)
    for by in ("output", "weights"):
        np.testing.assert_allclose(other.normalised(by), one.normalised(by), rtol=1e-5)


@pytest.mark.long
def test_intervals_of_sampled_margins_hold_together():
    """Margins are equal to single precision: other sums of the same numbers round otherwise."""
    setup = setup_of(pl.MLP(5))
    params = start(setup, seed=1)
    exact = pl.inside.margins((setup, params))
    missed, wrong, trials = 0, 0, 150
    for seed in range(trials):
        found = pl.inside.margins((setup, params), samples=600, seed=seed, level=0.9)
        missed += bool(np.any((found.low > exact.quantiles + 1e-6) | (exact.quantiles > found.high + 1e-6)))
        wrong += not found.accuracy_low <= exact.accuracy <= found.accuracy_high
    assert max(missed, wrong) <= alarms(trials, 0.9)


@pytest.mark.long
def test_networks_are_judged_on_the_law_of_their_problem():
    """Where all inputs are +1 nearly always, a constant has a parity right."""
    learner = pl.Learner(pl.MLP(1))
    setup = pl.Setup(pl.Problem(8, (0, 1), "biased:0.99"), learner)
    params = [{"w": np.zeros((8, 1)), "b": np.zeros(1)}, {"w": np.zeros((1, 1)), "b": np.ones(1)}]
    found = pl.inside.margins((setup, params), samples=20_000)
    right = 0.99**2 + 0.01**2
    assert abs(found.accuracy - right) < stats.norm.ppf(1 - FALSE_ALARM / 2) * math.sqrt(right * (1 - right) / 20_000)
    assert found.accuracy_low < right < found.accuracy_high
    leaky = pl.Setup(pl.LeakyParity(8, 2, leak=1.0), learner)
    assert pl.inside.margins((leaky, params), samples=500).accuracy == 1


# --- what is given ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def result():
    learner = pl.Learner(pl.MLP(12), optimiser=pl.SGD(0.3))
    return pl.measure(pl.Parity(8, 3, support="random"), learner, pl.Protocol(max_steps=3000, eval_size=512), runs=6)


def test_trained_networks_know_their_supports_and_numbers(result):
    networks = result.networks(omit_missing=True)
    assert len(networks) >= 3
    found = pl.inside.margins(networks)
    assert np.all(found.accuracy >= 0.95)
    assert found.to_frame()["run"].to_list() == networks.runs.tolist()
    assert found.to_frame()["step"].to_list() == networks.steps.tolist()
    alone = pl.inside.margins(networks[1])
    assert alone.accuracy == found.accuracy[1]
    influence = pl.inside.influences(networks).values
    inside = subjects(networks).supports()
    assert inside.sum(1).tolist() == [3] * len(networks)
    assert np.all(influence[inside] > influence[~inside].max())
    assert "<table" in found._repr_html_()
    assert "accuracy" in repr(found)


@pytest.mark.parametrize(("given", "message"), [
    (lambda: pl.MLP(3), "networks are a TrainedNetwork, TrainedNetworks or a pair"),
    (lambda: (setup_of(pl.MLP(5)), start(setup_of(pl.MLP(6)))), "params must be those of the Setup's network"),
    (lambda: (setup_of(pl.MLP(5)), start(setup_of(pl.MLP(5), 8))), "params must be those of the Setup's network"),
    (lambda: (setup_of(pl.MLP(5)), {"w": 3}), "params must be those of the Setup's network"),
    (lambda: (setup_of(pl.MLP(5)), jax.tree.map(lambda leaf: leaf[:0], start(setup_of(pl.MLP(5)), 3))), "no network"),
    (lambda: (setup_of(pl.MLP(5)), jax.tree.map(lambda leaf: leaf * np.nan, start(setup_of(pl.MLP(5))))), "not finite"),
    (lambda: (setup_of(pl.MLP(5), k=2, support="random"), start(setup_of(pl.MLP(5)))), "each run has its own support"),
])
def test_what_is_no_network_is_refused(given, message):
    with pytest.raises(pl.InvalidInput, match=message):
        pl.inside.margins(given())


@pytest.mark.parametrize(("options", "message"), [
    ({"of": "outputs"}, "did you mean 'output'"), ({"sets": [(0, 7)]}, "distinct positions in 0..6"),
    ({"sets": []}, "name at least one set"), ({"sets": 3}, "sets are lists"), ({"largest": 0}, "at least 1"),
    ({"samples": 1}, "at least 2 inputs"), ({"samples": 10, "level": 1.0}, "between 0 and 1"),
])
def test_wrong_options_are_refused(options, message):
    setup = setup_of(pl.MLP(5))
    with pytest.raises(pl.InvalidInput, match=message):
        pl.inside.fourier((setup, start(setup)), **options)
