"""Trained networks elsewhere: modules and models that compute the same, files that come back as they were."""

from __future__ import annotations

import json
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lengths import long_but

import paritylab as pl
from paritylab import provenance
from paritylab.setups.networks.activations import ARITIES
from paritylab.setups.networks.graph import ARITIES as GRAPH_STEPS
from paritylab.trained import params as arrays
from paritylab.trained import regenerating

torch = pytest.importorskip("torch")
onnx_reference = pytest.importorskip("onnx.reference")

ACTIVATIONS = ["relu", "relu6", "clipped-relu:2.5", "power:1", "power:3", "zigzag:2", "zigzag:3", "infinite-zigzag:3",
               "oscillating:3", "sinusoid:3,2", "gelu", "tanh"]
ACTIVATED = ["relu6", "gelu-tanh", "tanh", "sigmoid", "selu", "mish", "softplus", "leaky-relu:0.1", "elu:0.7"]
NETWORKS = {f"{kind.__name__} {spec}": make(spec) for spec in ACTIVATIONS
            for kind, make in ((pl.MLP, lambda spec: pl.MLP((6, 5), spec)), (pl.Neuron, pl.Neuron))}
NETWORKS |= {
    "wide": pl.MLP(300),
    "no output bias": pl.MLP(7, output_bias=False),
    "no biases": pl.MLP((7, 4), bias=False),
    "four layers": pl.MLP((8, 7, 6, 5)),
    "bits": pl.MLP((7, 4), inputs="bits"),
    "two outputs": pl.MLP(7, outputs=2),
    "polynet": pl.PolyNet(3),
    "disjoint polynet": pl.DisjointPolyNet(3),
    "transformer": pl.Transformer(d_emb=12, d_attn=3, heads=5, d_mlp=9),
}
GRAPHS = {
    "residual": pl.Graph(["linear:12", "layer-norm", "relu", "linear-no-bias:12", "add of 3,4", "gelu", "linear:1"]),
    "activations": pl.Graph(["linear:8", *(step for step in ACTIVATED), "linear:1"]),
    "shared": pl.Graph(["linear:12", "silu", "again:1", "mul of 2,3", "layer-norm-no-bias:0.001", "dropout:0.5",
                        "cat of 6,2", "sub of 7,7", "cat of 8,3,0", "layer-norm-no-weights", "times:0.5", "plus:1",
                        "abs", "linear:4", "power:2", "mean"]),
    "selected": pl.Graph(["linear:5", "select:-2"]),
    "product": pl.Graph(["linear:3", "prod"]),
    "summed": pl.Graph(["linear-no-bias:3", "cos", "sum"]),
    "squeezed": pl.Graph(["linear:3", "sin", "linear:1", "squeeze"]),
}
X = np.where(np.random.default_rng(1).random((200, 12)) < 0.5, 1, -1).astype(np.float32)


def some(network, runs: int = 3, init: str = "torch") -> pl.TrainedNetworks:
    """Networks as they start: what they compute does not depend on how they were trained."""
    setup = pl.Setup(pl.Parity(n=12, k=3), pl.Learner(network, init))
    records = pl.Records(range(runs), [1] * runs, [-1] * runs, [1] * runs, [0.5] * runs, [1] * runs)
    return regenerating.networks(regenerating.Measured(setup, 4, "lanes", records), at="start")


def assert_close(got, want) -> None:
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-6 * max(1.0, float(np.abs(want).max())))


def test_all_activations_are_tried():
    assert {spec.partition(":")[0] for spec in ACTIVATIONS} == set(ARITIES)


QUICK = ("MLP relu", "MLP zigzag:3", "Neuron sinusoid:3,2", "no biases", "polynet", "disjoint polynet")


@pytest.mark.parametrize("name", long_but(NETWORKS, *QUICK))
def test_a_pytorch_module_and_an_onnx_model_compute_the_same(name):
    network = some(NETWORKS[name])[1]
    want = network.apply(X)
    module = network.to_torch()
    with torch.no_grad():
        assert_close(module(torch.from_numpy(X)).numpy(), want)
    assert sum(p.numel() for p in module.parameters()) == sum(leaf.size for leaf in network.params.values())
    model = network.to_onnx()
    (got,) = onnx_reference.ReferenceEvaluator(model).run(None, {"x": X})
    assert_close(got, want)
    assert {p.key: p.value for p in model.metadata_props}["setup"] == network.setup.to_json()


def test_all_steps_of_graphs_are_tried():
    assert {step.name for graph in GRAPHS.values() for step in graph.parsed} == set(GRAPH_STEPS)


@pytest.mark.parametrize("name", long_but(GRAPHS, "residual"))
def test_a_graph_is_a_pytorch_module_again(name):
    network = some(GRAPHS[name])[1]
    with torch.no_grad():
        assert_close(network.to_torch()(torch.from_numpy(X)).numpy(), network.apply(X))
    assert sum(p.numel() for p in network.to_torch().parameters()) == sum(a.size for a in network.params.values())
    with pytest.raises(pl.InvalidInput, match="no ONNX model can be made of a Graph"):
        network.to_onnx()


@pytest.mark.long
@pytest.mark.parametrize("name", ["wide", "four layers", "MLP relu6", "MLP zigzag:3", "polynet", "transformer"])
def test_a_pytorch_module_has_the_same_gradient(name):
    network = some(NETWORKS[name])[0]
    module, x = network.to_torch(), X[:20]
    module(torch.from_numpy(x)).square().sum().backward()
    kind = network.setup.learner.network
    want = jax.grad(lambda params: jnp.sum(kind.apply(params, x) ** 2))(network.tree)
    got = sorted(float(p.grad.square().sum()) for p in module.parameters())
    total = sum(float(jnp.sum(leaf**2)) for leaf in jax.tree.leaves(want))
    assert sum(got) == pytest.approx(total, rel=1e-4)


def test_a_state_dict_is_readable():
    module = some(pl.MLP((6, 5), "gelu"))[0].to_torch()
    assert list(module.state_dict()) == ["0.weight", "0.bias", "2.weight", "2.bias", "4.weight", "4.bias"]
    assert [type(part).__name__ for part in module] == ["Linear", "GELU", "Linear", "GELU", "Linear", "Flatten"]


def test_making_a_module_leaves_the_random_numbers_of_pytorch_alone():
    network, state = some(pl.MLP(5))[0], torch.get_rng_state()
    network.to_torch()
    assert torch.equal(torch.get_rng_state(), state)


def test_functions_of_ones_own_are_refused_in_a_line():
    def bent(z):
        return z / (1 + abs(z))

    def make(key, n):
        return {"w": jnp.ones(n)}

    own = pl.Network(make, lambda params, x: x @ params["w"])
    for network in (pl.MLP(5, bent), own):
        for way in ("to_torch", "to_onnx"):
            with pytest.raises(pl.InvalidInput, match=r"^[^\n]*(of your|your activation|of a Network)[^\n]*$"):
                getattr(some(network)[0], way)()


# --- files ------------------------------------------------------------------------------------------------------------


def assert_same(one, other) -> None:
    for name in ("setup", "seed", "engine", "exact", "origin"):
        assert getattr(one, name) == getattr(other, name)
    assert one.params.keys() == other.params.keys()
    for name, leaf in one.params.items():
        assert leaf.dtype == other.params[name].dtype
        assert np.array_equal(leaf, other.params[name], equal_nan=True)


@pytest.mark.parametrize("name", long_but(["MLP relu", "no biases", "disjoint polynet", "transformer"], "no biases"))
def test_files_come_back_as_they_were(name, tmp_path):
    networks = some(NETWORKS[name])
    networks.save(tmp_path / "many.safetensors")
    back = pl.TrainedNetworks.load(tmp_path / "many.safetensors")
    assert_same(networks, back)
    assert np.array_equal(back.runs, networks.runs)
    assert np.array_equal(back.steps, networks.steps)
    networks[2].save(tmp_path / "deep" / "one.safetensors")
    one = pl.TrainedNetwork.load(tmp_path / "deep" / "one.safetensors")
    assert_same(networks[2], one)
    assert (one.run, one.step) == (2, 0)
    assert len(pl.TrainedNetworks.load(tmp_path / "deep" / "one.safetensors")) == 1
    with pytest.raises(pl.InvalidInput, match="holds 3 networks; read it with TrainedNetworks"):
        pl.TrainedNetwork.load(tmp_path / "many.safetensors")


@settings(max_examples=20, deadline=None, derandomize=True, database=None)
@given(st.data())
def test_any_numbers_come_back_as_they_were(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("networks") / "some.safetensors"
    networks = some(pl.MLP(2), runs=2)
    words = {name: data.draw(st.lists(st.integers(0, 2**32 - 1), min_size=leaf.size, max_size=leaf.size))
             for name, leaf in networks.params.items()}
    params = {name: np.array(words[name], np.uint32).view(np.float32).reshape(leaf.shape[::-1]).T
              for name, leaf in networks.params.items()}  # not as they lie in memory, infinite, not numbers
    given_ = replace(networks, params=params, steps=data.draw(st.lists(st.integers(0, 2**40), min_size=2, max_size=2)))
    given_.save(path)
    back = pl.TrainedNetworks.load(path)
    for name, leaf in params.items():
        assert back.params[name].tobytes() == np.ascontiguousarray(leaf).tobytes()
    assert np.array_equal(back.steps, given_.steps)


def test_other_programs_read_the_file_and_where_it_comes_from(tmp_path):
    from safetensors import safe_open
    from safetensors.torch import load_file

    networks = some(pl.MLP(5))
    networks.save(tmp_path / "some.safetensors")
    tensors = load_file(tmp_path / "some.safetensors")
    assert tensors["0.w"].shape == (3, 12, 5)
    with safe_open(tmp_path / "some.safetensors", "np") as file:
        about = file.metadata()
    assert pl.Setup.from_json(about["setup"]) == networks.setup
    assert (about["seed"], json.loads(about["runs"]), json.loads(about["steps"])) == ("4", [0, 1, 2], [0, 0, 0])
    assert about["paritylab"] == pl.__version__
    assert json.loads(about["origin"])["processor"] == provenance.processor()


def test_functions_of_ones_own_are_asked_for(tmp_path):
    def bent(z):
        return z / (1 + abs(z))

    networks = some(pl.MLP(5, bent))
    networks.save(tmp_path / "own.safetensors")
    with pytest.raises(pl.InvalidInput, match="bent"):
        pl.TrainedNetworks.load(tmp_path / "own.safetensors")
    assert_same(pl.TrainedNetworks.load(tmp_path / "own.safetensors", functions=[bent]), networks)


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(st.data())
def test_a_damaged_file_is_refused_in_a_line(tmp_path_factory, data):
    folder = tmp_path_factory.getbasetemp() / "damaged"
    path = folder / "some.safetensors"
    if not path.exists():
        some(pl.MLP(2), runs=2).save(path)
    whole = path.read_bytes()
    at = data.draw(st.integers(0, len(whole) - 1))
    if data.draw(st.booleans()):
        broken = whole[:at]
    else:
        broken = whole[:at] + bytes([whole[at] ^ data.draw(st.integers(1, 255))]) + whole[at + 1 :]
    other = folder / "broken.safetensors"
    other.write_bytes(broken)
    with pytest.raises(pl.InvalidInput, match=r"^[^\n]*(damaged|not written by paritylab)[^\n]*$"):
        pl.TrainedNetworks.load(other)


def test_what_is_no_such_file_is_refused_in_a_line(tmp_path):
    from safetensors.numpy import save_file

    save_file({"w": np.zeros(3)}, tmp_path / "other.safetensors")
    refused = {"none": "no networks at", ".": "not a file", "other.safetensors": "not written by paritylab"}
    for name, words in refused.items():
        with pytest.raises(pl.InvalidInput, match=words):
            pl.TrainedNetworks.load(tmp_path / name)
    (tmp_path / "file").touch()
    with pytest.raises(pl.InvalidInput, match="cannot write"):
        some(pl.MLP(2)).save(tmp_path / "file" / "x.safetensors")


def test_params_that_are_not_the_networks_are_refused():
    networks = some(pl.MLP(5))
    for params, words in (
        ({name: leaf for name, leaf in networks.params.items() if name != "0.b"}, "'0.b' must be float32.*not absent"),
        ({**networks.params, "2.w": np.zeros(3)}, "has no array '2.w'; it has"),
        ({**networks.params, "0.b": np.zeros((3, 5))}, "not float64 of shape"),
        ({**networks.params, "0.b": np.zeros((2, 5), np.float32)}, r"of shape \(3, 5\), not"),
    ):
        with pytest.raises(pl.InvalidInput, match=words):
            replace(networks, params=params)
    assert arrays.named([{"w": 1}]).keys() == {"0.w"}
