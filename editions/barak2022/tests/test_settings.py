"""The 18 settings have the networks that the paper gives them."""

from __future__ import annotations

import json

import jax
import pytest
from barak2022 import settings
from commands import run

import paritylab as pl
from paritylab.cli import build_parser
from paritylab.cli.measure import make_setup
from paritylab.errors import InvalidInput
from paritylab.setups.inits import init

N, K = 8, 3


def shapes(network, n=N):
    params = jax.eval_shape(lambda key: network.init(key, n, init("torch")), jax.random.key(0))
    return jax.tree.map(lambda leaf: leaf.shape, params, is_leaf=lambda leaf: hasattr(leaf, "shape"))


WIDTHS = {"i": 10, "ii": 100, "iii": 1000, "iv": 10, "v": 100, "vi": 1000, "vii": 1, "viii": 1, "ix": 1, "x": 1,
          "*i": K, "*ii": K}
ACTIVATIONS = {"i": "relu", "ii": "relu", "iii": "relu", "*i": "relu", "iv": f"power:{K}", "v": f"power:{K}",
               "vi": f"power:{K}", "*ii": f"power:{K}", "vii": f"zigzag:{K}", "viii": f"oscillating:{K}",
               "ix": f"infinite-zigzag:{K}", "x": f"sinusoid:{K}", "xi": f"zigzag:{K}", "xii": f"oscillating:{K}",
               "xiii": f"infinite-zigzag:{K}", "xiv": f"sinusoid:{K}"}


def test_barak2022_has_18_settings():
    assert len(settings.BARAK2022) == 18


@pytest.mark.parametrize("setting", settings.BARAK2022)
def test_a_setting_of_barak2022_has_the_shape_the_paper_gives_it(setting):
    learner = settings.barak2022(setting, K, lr=0.5, batch=16)
    network = learner.network
    assert (learner.batch, learner.loss.spec, learner.init.spec) == (16, "hinge", "torch")
    assert type(learner.optimiser) is (pl.Adam if setting == "*iii" else pl.SGD)
    assert learner.optimiser.lr == 0.5
    assert learner.optimiser.schedule.constant
    if setting in ACTIVATIONS:
        assert network.activation.spec == ACTIVATIONS[setting]
    if setting in WIDTHS:
        w = WIDTHS[setting]
        assert shapes(network) == [{"w": (N, w), "b": (w,)}, {"w": (w, 1), "b": (1,)}]
    elif setting == "xv":
        assert shapes(network) == [{"w": (N, K), "b": (K,)}]
    elif setting == "*iii":
        sizes = shapes(network)
        assert (sizes["token"], sizes["position"], sizes["query"]) == ((3, 1024), (N, 1024), (1024, 1024))
        assert sizes["mlp"][0]["w"] == (1024, 4096)
    else:
        assert shapes(network) == [{"w": (N, 1), "b": (1,)}]
    pl.Setup(pl.Parity(N, K), learner).check()


def test_unknown_settings_are_refused_with_the_nearest():
    with pytest.raises(InvalidInput, match="did you mean"):
        settings.barak2022("xvv", 3)
    with pytest.raises(InvalidInput, match="k of at least 1"):
        settings.barak2022("i", 0)


@pytest.mark.parametrize(("setting", "part", "value"), [
    ("iv", "network", {"type": "mlp", "width": 10, "activation": "power:2"}),
    ("*iii", "optimiser", {"type": "adam", "lr": 0.1}),
])
def test_a_measurement_may_ask_for_one_by_name(setting, part, value):
    options = build_parser().parse_args(["measure", "--k", "2", "--setting", f"barak2022:{setting}"])
    assert value.items() <= json.loads(make_setup(options, 0.1).to_json())["learner"][part].items()


@pytest.mark.parametrize(("line", "says"), [
    ("--setting barak2022:xvv", "did you mean"),
    ("--setting barak2023:i", "--setting must be barak2022:NAME"),
    ("--setting i", "--setting must be barak2022:NAME"),
    ("--setting barak2022:i --network mlp", "leave out --network"),
])
def test_a_wrong_name_is_one_line(line, says, tmp_path, capsys):
    status, out, error = run(capsys, "measure", *line.split(), "--out", str(tmp_path / "out"))
    assert (status, out, error.count("\n")) == (2, "", 1)
    assert says in error
    assert not (tmp_path / "out").exists()
