"""A global that users' functions read is changed: the numbers are those of a fresh process, with a store or without."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import changing
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import paritylab as pl
from paritylab import engines
from paritylab.errors import InvalidInput
from paritylab.running import luggage

FRESH = """
import json, sys
sys.path.insert(0, sys.argv[1])
import changing
changing.P = float(sys.argv[2])
print(json.dumps([changing.measured(sys.argv[3]), changing.drawn(sys.argv[3]) if "drawn" in sys.argv else None]))
"""


def in_a_fresh_process(*arguments):
    """Programs that were compiled here need not be compiled there."""
    environment = {**os.environ, "JAX_COMPILATION_CACHE_DIR": jax.config.jax_compilation_cache_dir,
                   "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.2"}
    command = [sys.executable, "-W", "ignore", "-c", FRESH, str(Path(__file__).parent), *arguments]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)


def changed_and_back(place, tmp_path, monkeypatch, drawn=lambda place: None):
    store = pl.Store(tmp_path)
    monkeypatch.setattr(changing, "P", 0.5)
    before, curves = changing.measured(place, store=store), drawn(place)
    changing.P = 0.05
    after = [changing.measured(place), drawn(place)]
    assert changing.measured(place, store=store) == after[0]
    assert after == in_a_fresh_process("0.05", place, drawn.__name__)
    assert after[0][0] != before[0]
    assert after[0][2] != before[2]
    changing.P = 0.5
    assert [changing.measured(place), changing.measured(place, store=store)] == [before, before]
    assert drawn(place) == curves


@pytest.mark.slow
@pytest.mark.long
def test_after_a_change_the_numbers_are_those_of_a_fresh_process(tmp_path, monkeypatch):
    changed_and_back("all", tmp_path, monkeypatch)


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("place", ["inputs", "network", "loss", "schedule"])
def test_that_holds_in_every_place_and_for_curves(place, tmp_path, monkeypatch):
    changed_and_back(place, tmp_path, monkeypatch, changing.drawn)


def final_params(setup):
    job = engines.Job(setup, 0, np.arange(2))
    return [np.asarray(leaf) for leaf in jax.tree.leaves(engines.final_params([job], "jax")[1])]


@pytest.mark.long
def test_a_setup_made_before_a_change_is_measured_as_it_is_after_it(tmp_path, monkeypatch):
    monkeypatch.setattr(changing, "P", 0.5)
    setup, store = pl.Setup(*changing.PLACES["all"], changing.PROTOCOL), pl.Store(tmp_path)
    first = pl.sweep([setup], runs=10, engine="jax", store=store)[0].setup.id
    assert setup.id == first
    changing.P = 0.05
    (result,) = pl.sweep([setup], runs=10, engine="jax", store=store)
    assert result.reused == 0
    assert [result.setup.id, result.records.t_c.tolist()] == changing.measured("all")[:2]
    assert setup.id == result.setup.id != first
    after = final_params(setup)
    changing.P = 0.5
    assert any(np.any(one != other) for one, other in zip(after, final_params(setup), strict=True))
    raced = pl.race([setup], runs=10, engine="jax")
    assert raced.best.setup.id == first


@pytest.mark.long
def test_an_object_that_has_changed_is_not_mistaken_for_another_that_is_as_it_was():
    class Loss:
        def __init__(self, scale):
            self.scale = scale

        def __call__(self, f, y):
            return jnp.maximum(0.0, self.scale - y * f)

    def losses(loss, runs):
        setup = pl.Setup(pl.Parity(6, 2), pl.Learner(pl.MLP(2), loss=loss), changing.PROTOCOL)
        return pl.curves(setup, steps=[0], runs=range(runs), engine="jax").loss

    first = Loss(1.0)
    before = losses(first, 1)
    first.scale = 2.0
    assert np.all(losses(first, 1) != before)
    # Equal to the first as it was, which the caches hold: what is traced for more runs must not be the first as it is.
    assert losses(Loss(1.0), 3)[0] == before[0]


def test_workers_refuse_a_function_that_is_another_one_there(monkeypatch):
    pytest.importorskip("cloudpickle")
    changing.P = 0.5
    setup = pl.Setup(*changing.PLACES["loss"])
    sent = luggage.packed(setup)
    assert luggage.unpacked(sent) == setup
    monkeypatch.setattr(changing, "P", 2.0)  # as if a worker had another module of this name
    with pytest.raises(InvalidInput, match=r"changing\.loss computes something else on a worker"):
        luggage.unpacked(sent)
