"""PyTorch modules as Networks: the same outputs, the same updates, and a line for what is not known."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import jax
import numpy as np
import pytest
import torch
import torch.nn.functional as F
from lengths import long_but
from torch import nn

import paritylab as pl
from paritylab import rng
from paritylab.adapters.torch_modules import ModuleNotice

N = 9


class Residual(nn.Module):
    """Two branches, a layer that is used twice, and all that may stand between them."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.again, self.norm = nn.Linear(N, 8), nn.Linear(8, 8), nn.LayerNorm(8, eps=1e-4)
        self.drop, self.output = nn.Dropout(0.25), nn.Linear(16, 1, bias=False)

    def forward(self, x):
        h = F.relu(self.first(x.flatten(1)))
        g = self.drop(F.gelu(self.norm(self.again(h) + h)))
        g = 1 - self.again(g) * 0.5 / 2
        return self.output(torch.cat([h, g], dim=-1)).squeeze(-1)


class Arithmetic(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.unused = nn.Linear(N, 6), nn.Linear(6, 6)

    def forward(self, x):
        h = self.first(x)
        self.unused(h)
        return ((torch.sin(h) - h.tanh()) ** 2 * h.abs()).mean(dim=1) + h[:, 2] + h.prod(-1) - h.sum(1)


def chain(*between: nn.Module, bias: bool = True) -> nn.Module:
    return nn.Sequential(nn.Linear(N, 8, bias=bias), *between, nn.Linear(8, 1, bias=bias))


MODULES: dict[str, Callable[[], nn.Module]] = {
    "relu": lambda: chain(nn.ReLU()),
    "deep, no biases": lambda: chain(nn.Tanh(), nn.Sequential(nn.Linear(8, 8, bias=False), nn.Tanh()), bias=False),
    "norms": lambda: chain(nn.LayerNorm(8), nn.SiLU(), nn.LayerNorm(8, elementwise_affine=False),
                           nn.LayerNorm(8, bias=False)),
    "activations": lambda: chain(nn.GELU(approximate="tanh"), nn.LeakyReLU(0.1), nn.ELU(0.5), nn.Softplus(), nn.SELU(),
                                 nn.Mish(), nn.Sigmoid(), nn.ReLU6(), nn.Identity(), nn.Flatten(), nn.Dropout(0.0)),
    "several outputs": lambda: nn.Sequential(nn.Linear(N, 8), nn.ReLU(), nn.Linear(8, 3)),
    "one layer": lambda: nn.Linear(N, 1),
    "residual": Residual,
    "arithmetic": Arithmetic,
}


@pytest.fixture(params=long_but(MODULES, "relu", "residual", "arithmetic"))
def module(request) -> nn.Module:
    """With random weights, not those of its start."""
    torch.manual_seed(len(request.param))
    made = MODULES[request.param]()
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return made


def test_outputs_are_those_of_torch(module):
    x = np.random.default_rng(1).choice([-1.0, 1.0], (64, N)).astype(np.float32)
    network = pl.from_torch(module, weights=True)
    assert module.training
    found = jax.jit(network.apply)(network.init(jax.random.key(0), N, pl.inits.torch()), x)
    wanted = module.eval()(torch.as_tensor(x)).detach().numpy().reshape(found.shape)
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-6)


def test_updates_are_those_of_torch(module):
    """Twenty steps of the engine on a run's own batches, against float64: what single precision rounds remains."""
    if isinstance(module, Residual):
        module.drop.p = 0.0
    network = pl.from_torch(module, weights=True)
    problem = pl.Problem(N, three) if "linear:3" in network.steps else pl.Parity(n=N, k=2)
    learner = pl.Learner(network, loss="square", optimiser=pl.SGD(0.02), batch=8)
    found = pl.curves(pl.Setup(problem, learner), [20], runs=[3], seed=5, weights=True, engine="jax").weights
    optimiser = torch.optim.SGD(module.double().parameters(), 0.02)
    key = rng.stream(rng.run_keys(np.array([5]), np.array([3]))[0], rng.DATA)
    for step in range(20):
        drawn = problem.draw(jax.random.fold_in(key, step), 8, step)
        x, y = (torch.tensor(np.asarray(each, np.float64)) for each in (problem.signs(drawn, problem.mask),
                                                                         problem.labels(drawn, problem.mask)))
        optimiser.zero_grad()
        torch.mean((module(x).reshape(y.shape) - y) ** 2).backward()
        optimiser.step()
    layers = [each for each in module.modules() if getattr(getattr(each, "weight", None), "grad", None) is not None]
    for mine, theirs in zip(found, layers, strict=True):
        np.testing.assert_allclose(mine["w"][0, 0], theirs.weight.detach().numpy().T, atol=2e-5)
        if theirs.bias is not None:
            np.testing.assert_allclose(mine["b"][0, 0], theirs.bias.detach().numpy(), atol=2e-5)


def three(x):
    return x[:, :3]


def test_linear_layers_with_one_activation_are_an_mlp():
    made = pl.from_torch(nn.Sequential(nn.Linear(30, 10), nn.ReLU(), nn.Linear(10, 1)))
    assert made == pl.MLP(10)
    assert pl.from_torch(MODULES["deep, no biases"]()) == pl.MLP((8, 8), "tanh", bias=False)
    assert pl.from_torch(nn.Sequential(nn.Linear(5, 7), nn.GELU(), nn.Linear(7, 1, bias=False))) == pl.MLP(
        7, "gelu", output_bias=False)
    for other in (chain(nn.ReLU(), nn.Linear(8, 8), nn.Tanh()), chain(nn.ReLU(), nn.Dropout()),
                  nn.Sequential(nn.Linear(5, 7, bias=False), nn.ReLU(), nn.Linear(7, 1))):
        assert isinstance(pl.from_torch(other), pl.Graph)


def test_a_graph_starts_as_the_mlp_of_its_layers_does():
    """And so by PyTorch's law, or any other."""
    key = jax.random.key(4)
    for law in (pl.inits.torch(), pl.inits.mean_field(), pl.inits.kaiming()):
        mine = pl.Graph(["linear:6", "relu", "linear:1"]).init(key, 5, law)
        theirs = pl.MLP(6).init(key, 5, law)
        assert jax.tree.all(jax.tree.map(lambda a, b: bool((a == b).all()), mine, theirs))


def test_the_id_is_that_of_the_structure():
    """In every process: steps and weights are text."""
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        setups = [pl.Setup(pl.Parity(N, 2), pl.Learner(pl.from_torch(Residual()))) for _ in range(2)]
    assert setups[0].id == setups[1].id == "49754ad650ad0cf7"
    assert setups[0].functions == []
    module = chain(nn.ReLU())
    fixed = pl.Setup(pl.Parity(N, 2), pl.Learner(pl.from_torch(module, weights=True)))
    assert pl.Setup.from_json(fixed.to_json()) == fixed
    with torch.no_grad():
        module[0].weight[0, 0] += 0.125
    assert pl.Setup(pl.Parity(N, 2), pl.Learner(pl.from_torch(module, weights=True))).id != fixed.id


def test_runs_differ_in_their_starts_unless_the_weights_are_given():
    module = chain(nn.SiLU())
    setups = [pl.Setup(pl.Parity(N, 2), pl.Learner(pl.from_torch(module, weights))) for weights in (False, True)]
    drawn, given = (pl.curves(setup, [0], runs=range(2), weights=True).weights[0]["w"] for setup in setups)
    assert not (drawn[0] == drawn[1]).any()
    np.testing.assert_array_equal(given[0, 0], module[0].weight.detach().numpy().T)
    np.testing.assert_array_equal(given[0], given[1])


def test_dropout_drops_in_training_alone():
    network = pl.Graph(["dropout:0.25", "linear-no-bias:1"])
    params = [{"w": np.ones((20000, 1), np.float32)}]
    x = np.ones((1, 20000), np.float32)
    assert network.apply(params, x) == 20000
    kept = float(network.apply(params, x, key=jax.random.key(0))[0]) * 0.75 / 20000
    assert abs(kept - 0.75) < 5 * np.sqrt(0.75 * 0.25 / 20000)  # false alarms: 6e-7
    assert network.takes_key


@pytest.mark.long
def test_networks_with_dropout_learn():
    result = pl.measure(pl.Parity(8, 1), pl.Learner(pl.Graph(["linear:8", "relu", "dropout:0.1", "linear:1"])),
                        pl.Protocol(max_steps=300, eval_size=128), runs=3)
    assert result.summary.solved == 3


class Branching(Arithmetic):
    def forward(self, x):
        return self.first(x) if x.sum() > 0 else x


class InPlace(Arithmetic):
    def forward(self, x):
        h = self.first(x)
        return (F.relu(h, inplace=True) + h).sum(-1)


class Softmax(Arithmetic):
    def forward(self, x):
        return torch.softmax(self.first(x), -1).sum(-1)


class Loose(Arithmetic):
    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(6))

    def forward(self, x):
        return (self.first(x) * self.scale).sum(-1)


class Two(Arithmetic):
    def forward(self, x, y):
        return self.first(x) + y


class Pair(Arithmetic):
    def forward(self, x):
        return self.first(x), x


def frozen() -> nn.Module:
    made = chain(nn.ReLU())
    made[0].weight.requires_grad_(False)
    return made


def hooked() -> nn.Module:
    made = chain(nn.ReLU())
    made[1].register_forward_hook(lambda *_: None)
    return made


@pytest.mark.parametrize(("make", "line"), [
    (lambda: chain(nn.BatchNorm1d(8)), r"unsupported layer BatchNorm1d \('1'\); allowed: Linear, LayerNorm, Dropout"),
    (lambda: nn.Conv1d(1, 2, 3), r"unsupported layer Conv1d \('0'\); allowed: Linear"),
    (lambda: chain(nn.Softplus(beta=2)), r"unsupported layer Softplus \('1'\)"),
    (Branching, "torch.fx cannot trace the forward of Branching: symbolically traced"),
    (InPlace, "the forward of InPlace computes something else than what torch.fx saw"),
    (Softmax, r"forward calls softmax\(first, -1\); allowed beside layers: add, sub"),
    (Loose, "'scale' is a weight outside of a layer; allowed: Linear"),
    (Two, "forward must take one array, not also 'y'"),
    (Pair, "forward must return one array"),
    (nn.ReLU, "a module needs weights"),
    (frozen, r"0\.weight is frozen .* SGD\(rates=...\)"),
    (hooked, r"ReLU \('1'\) has hooks"),
    (lambda: chain(nn.Linear(7, 7)), "the module fails on inputs of shape"),
    (lambda: "a module", "from_torch takes a torch.nn.Module, not str"),
])
def test_what_is_not_known_is_said_in_a_line(make, line):
    with pytest.raises(pl.InvalidInput, match=line):
        pl.from_torch(make())


def test_a_start_of_the_modules_own_is_noticed():
    module = chain(nn.ReLU())
    nn.init.kaiming_normal_(module[0].weight)
    with pytest.warns(ModuleNotice, match=r"Linear\(in_features=9.*runs start by the Learner's init"):
        pl.from_torch(module)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pl.from_torch(module, weights=True)


@pytest.mark.parametrize(("steps", "line"), [
    ("linear:3", "a Graph has one or more steps"),
    ([], "a Graph has one or more steps"),
    (["relu"], "a Graph needs a layer; allowed: linear"),
    (["linear:8", "rleu"], "unknown step of a Graph 'rleu' .did you mean 'relu'"),
    (["linear:8", "add of 1,2"], "may take steps 0 to 1"),
    (["linear:8", "add"], "must take 2 steps, not 1"),
    (["linear:8", "again:2"], "must name a step that is a layer: one of 1"),
    (["linear:0"], "at least 1 output"),
    (["linear:8", "dropout:1"], r"must be in \[0, 1\)"),
    ([3], "must be a spec such as 'linear:64', not 3"),
])
def test_a_graph_says_what_it_takes(steps, line):
    with pytest.raises(pl.InvalidInput, match=line):
        pl.Graph(steps)


def test_sizes_that_do_not_fit_are_said_in_a_line():
    setup = pl.Setup(pl.Parity(N, 2), pl.Learner(pl.Graph(["linear:8", "linear:7", "add of 1,2", "linear:1"])))
    with pytest.raises(pl.InvalidInput, match=r"step 3 of a Graph, 'add of 1,2', cannot take \(8,\), \(7,\)"):
        setup.check()
    with pytest.raises(pl.InvalidInput, match="this Graph has 2 arrays of weights, not 1"):
        pl.Graph(["linear:1"], [np.ones((N, 1))])
    with pytest.raises(pl.InvalidInput, match=r"weights of linear have the shape \(4, 1\), not \(9, 1\)"):
        pl.Setup(pl.Parity(N, 2), pl.Learner(pl.Graph(["linear:1"], [np.ones((4, 1)), [0.5]]))).check()
