"""Networks: the shapes they have, the functions they compute, the parities they can represent."""

from __future__ import annotations

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import oracle
import pytest

import paritylab as pl
from paritylab.errors import InvalidInput
from paritylab.setups.inits import init

N, K = 8, 3
X = np.array(list(itertools.product([-1.0, 1.0], repeat=N)), np.float32)
CHI = X[:, :K].prod(1)


NETWORKS = {
    "mlp": pl.MLP((5, 3), "zigzag:3"),
    "mlp without output bias": pl.MLP(3, output_bias=False),
    "mlp with three outputs": pl.MLP((5, 3), output_bias=False, outputs=3),
    "mlp of bits": pl.MLP((5, 3), inputs="bits"),
    "neuron": pl.Neuron("oscillating:3"),
    "polynet": pl.PolyNet(3),
    "disjoint polynet": pl.DisjointPolyNet(2),
    "transformer": pl.Transformer(d_emb=6, d_attn=2, heads=3, d_mlp=5),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_outputs_are_those_of_the_naive_oracle(name):
    network = NETWORKS[name]
    params = jax.jit(lambda key: network.init(key, N, init("kaiming")))(jax.random.key(1))
    exact = oracle.tree_map(lambda leaf: np.asarray(leaf, np.float64), params)
    want = oracle.forward(network, exact, X.astype(np.float64))
    got = jax.jit(network.apply)(params, X)
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=0, atol=2e-5 * np.abs(want).max())


def test_an_attention_weight_that_dominates_does_not_overflow():
    network = pl.Transformer(d_emb=4, d_attn=2, heads=2, d_mlp=3)
    params = jax.jit(lambda key: network.init(key, 3, init("torch")))(jax.random.key(0))
    params["key"] = 1e4 * params["key"]
    assert np.isfinite(jax.jit(network.apply)(params, X[:8, -3:])).all()


# --- what they can represent ------------------------------------------------------------------------------------


def test_a_polynet_of_unit_vectors_is_the_parity():
    params = [{"w": jnp.eye(N)[:, :K], "b": jnp.zeros(K)}]
    assert np.array_equal(pl.PolyNet(K).apply(params, X), CHI)


def test_a_disjoint_polynet_of_unit_vectors_is_the_parity_of_one_input_per_block():
    w = jnp.zeros((4, 2)).at[1, 0].set(1.0).at[3, 1].set(1.0)
    assert np.array_equal(pl.DisjointPolyNet(2).apply([{"w": w}], X), X[:, 1] * X[:, 7])


@pytest.mark.parametrize("name", ["zigzag", "infinite-zigzag", "oscillating", "sinusoid"])
def test_a_neuron_with_the_indicator_of_the_support_is_the_parity(name):
    params = [{"w": jnp.zeros((N, 1)).at[:K].set(1.0), "b": jnp.zeros(1)}]
    np.testing.assert_allclose(pl.Neuron(f"{name}:{K}").apply(params, X), CHI, atol=1e-5)


@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_a_relu_network_of_width_k_plus_1_represents_the_parity(k):
    # The zigzag through (k - 2j, (-1)^j) as a sum of k + 1 ramps in s = x_1 + ... + x_k.
    s = np.arange(-k, k + 1, 2.0)
    heights = (-1.0) ** ((k - s) / 2)
    slopes = np.diff(heights) / 2
    knees, u = [-k - 1.0, *s[:-1]], [heights[0], slopes[0] - heights[0], *np.diff(slopes)]
    w = np.zeros((N, k + 1), np.float32)
    w[:k] = 1
    params = [{"w": w, "b": -np.float32(knees)}, {"w": np.float32(u)[:, None], "b": np.zeros(1, np.float32)}]
    np.testing.assert_allclose(pl.MLP(k + 1).apply(params, X), X[:, :k].prod(1), atol=1e-4)


def test_an_mlp_of_powers_represents_the_parity_by_polarisation():
    # k! x_1...x_k = sum over signs a of prod(a) (a . x)^k / 2^k; opposite signs coincide, so 2^(k-1) units suffice.
    signs = np.array([a for a in itertools.product([-1, 1], repeat=K) if a[0] == 1], np.float32)
    w = np.zeros((N, 4), np.float32)
    w[:K] = signs.T
    u = signs.prod(1) / (6 * 2 ** (K - 1))
    params = [{"w": w, "b": np.zeros(4)}, {"w": u[:, None], "b": np.zeros(1)}]
    np.testing.assert_allclose(pl.MLP(4, f"power:{K}").apply(params, X), CHI, atol=1e-5)


# --- refusals ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: pl.MLP(0), "width must be"),
        (lambda: pl.MLP(()), "width must be"),
        (lambda: pl.MLP((3, -1)), "width must be"),
        (lambda: pl.MLP(2.5), "width must be"),
        (lambda: pl.MLP(3, "rellu"), "did you mean 'relu'"),
        (lambda: pl.MLP(3, outputs=0), "outputs must be at least 1, not 0"),
        (lambda: pl.MLP(3, inputs="zeros"), "inputs must be one of signs, bits, not 'zeros'"),
        (lambda: pl.PolyNet(0), "degree"),
        (lambda: pl.DisjointPolyNet(0), "degree"),
        (lambda: pl.Transformer(heads=0), "heads must be at least 1"),
        (lambda: pl.Setup(pl.Parity(7, 2), pl.Learner(pl.DisjointPolyNet(2))).check(), "cannot split n=7"),
    ],
)
def test_an_impossible_network_is_refused_in_one_line(make, says):
    with pytest.raises(InvalidInput, match=says) as caught:
        make()
    assert "\n" not in str(caught.value)


def test_a_width_of_one_layer_is_the_same_however_it_is_given():
    assert pl.MLP(7) == pl.MLP([7]) == pl.MLP((7,)) == pl.MLP(np.int64(7))
    assert pl.MLP([4, 5]) == pl.MLP((4, 5))
    assert hash(pl.MLP([4, 5])) == hash(pl.MLP((4, 5)))
