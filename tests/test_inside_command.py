"""``paritylab inside``: measures of saved networks, from a shell."""

from __future__ import annotations

import json

import numpy as np
import pytest
from commands import run

import paritylab as pl


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("inside") / "some.safetensors"
    learner = pl.Learner(pl.MLP(8), optimiser=pl.SGD(0.3))
    protocol = pl.Protocol(max_steps=500, eval_size=128)
    networks = pl.measure(pl.Parity(7, 2), learner, protocol, runs=5).networks(at="end")
    networks.save(path)
    return path, networks


def test_measures_of_a_file_are_those_of_its_networks(saved, capsys):
    path, networks = saved
    measures = ["fourier", "influences", "subnetwork", "movement", "margins", "sharpness", "alignment"]
    status, out, err = run(capsys, "inside", str(path), "--measures", *measures, "--keep", "0.9", "--json")
    assert (status, err) == (0, "")
    told = json.loads(out)
    assert told["networks"] == 5
    assert told["setup_id"] == networks.setup.id
    assert [len(told[name]["rows"]) for name in measures] == [25, 35, 5, 20, 5, 5, 25]
    assert all(told[name]["samples"] is None for name in measures)
    assert [row["size"] for row in told["subnetwork"]["rows"]] == pl.inside.subnetwork(networks, 0.9).size.tolist()
    accuracy = pl.inside.margins(networks).accuracy
    assert np.array_equal([row["accuracy"] for row in told["margins"]["rows"]], accuracy)
    assert {row["run"] for row in told["fourier"]["rows"]} == set(range(5))


def test_tables_for_people_and_samples(saved, capsys):
    path, _ = saved
    status, out, _ = run(capsys, "inside", str(path), "--first", "2", "--samples", "500")
    assert status == 0
    assert "2 TrainedNetworks" in out
    assert "fourier, of 500 inputs" in out
    assert "margins, of 500 inputs" in out


@pytest.mark.parametrize(("words", "message"), [
    (["--measures", "forier"], "unknown measure 'forier' (did you mean 'fourier'?)"),
    (["--first", "0"], "--first must be at least 1"), (["--of", "outputs"], "did you mean 'output'"),
])
def test_mistakes_are_one_line(saved, capsys, words, message):
    status, out, err = run(capsys, "inside", str(saved[0]), *words)
    assert (status, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


def test_a_file_that_is_none_is_one_line(tmp_path, capsys):
    status, _, err = run(capsys, "inside", str(tmp_path / "none.safetensors"))
    assert status == 2
    assert err == f"paritylab: error: no networks at {tmp_path / 'none.safetensors'}\n"
