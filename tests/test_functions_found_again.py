"""Setups with functions of the user's own from JSON: a caller offers functions or modules, fingerprints decide."""

from __future__ import annotations

import importlib
import json
import sys

import jax
import pytest
from commands import run, run_apart
from lengths import long_but

import paritylab as pl
from paritylab.errors import InvalidInput
from paritylab.functions import finding
from paritylab.running.tasks import Task, to_text
from paritylab.setups import inits

SOURCE = """
from dataclasses import dataclass
import jax, jax.numpy as jnp, optax
import paritylab as pl

STEEP = 2.0

def loss(f, y): return jnp.where(y * f < STEEP, STEEP - y * f, 0.0)
def cube(z): return z**3
def law(key, shape): return jax.random.normal(key, shape)
def inputs(key, count, n): return 1.0 - 2.0 * jax.random.bernoulli(key, 0.3, (count, n))
def slower(step): return 1 / (1 + step)
def make(key, n): return {"w": jax.random.normal(key, (n, 4))}
def forward(params, x): return jnp.cos(x @ params["w"]).sum(1)
half = pl.inits.custom(law, scale=lambda fan_in, fan_out: 0.5)
rule = optax.sgd(0.1)
vouched = pl.named("my loss v1", lambda f, y: (f - y)**2)

@dataclass(frozen=True)
class Linear:
    scale: float = 1.0
    def init(self, key, n, init): return init.dense(key, n, 1)
    def apply(self, params, x): return self.scale * (x @ params["w"])[:, 0]

class Plain:
    def init(self, key, n, init): return init.dense(key, n, 1)
    def apply(self, params, x): return (x @ params["w"])[:, 0]

plain = Plain()
"""


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """A user's module."""
    (tmp_path / "mine_of_the_test.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "mine_of_the_test", raising=False)
    importlib.invalidate_caches()
    yield importlib.import_module("mine_of_the_test")
    sys.modules.pop("mine_of_the_test", None)


def setups(mine):
    problem, L = pl.Parity(8, 2), pl.Learner
    learners = {
        "loss": L(loss=mine.loss), "activation": L(pl.MLP(4, mine.cube)), "law": L(init=mine.law),
        "mirrored": L(init=inits.mirrored(mine.law)), "fixed": L(init=inits.fixed(inits.mirrored(mine.law), 3)),
        "scaled law": L(init=mine.half), "mirrored scaled law": L(init=inits.mirrored(mine.half)),
        "schedule": L(optimiser=pl.SGD(schedule=mine.slower)), "network": L(pl.Network(mine.make, mine.forward)),
        "optax": L(optimiser=pl.Optax(transformation=mine.rule)), "named": L(loss=mine.vouched),
        "dataclass": L(mine.Linear(0.5)), "object": L(mine.plain),
        "several": L(mine.Linear(), mine.law, mine.loss, pl.Optax(0.1, transformation=mine.rule)),
    }
    return {name: pl.Setup(problem, learner) for name, learner in learners.items()} | {
        "inputs": pl.Setup(pl.Parity(8, 2, inputs=mine.inputs))}


NAMES = ("loss", "activation", "law", "mirrored", "fixed", "scaled law", "mirrored scaled law", "schedule", "network",
         "optax", "named", "dataclass", "object", "several", "inputs")


@pytest.mark.parametrize("name", NAMES)
def test_a_setup_is_rebuilt_from_the_module_that_has_its_functions(mine, name):
    setup = setups(mine)[name]
    again = pl.Setup.from_json(setup.to_json(), functions=[mine])
    assert (again, again.id, again.functions) == (setup, setup.id, setup.functions)
    again.check()
    with pytest.raises(InvalidInput, match="cannot be rebuilt") as caught:
        pl.Setup.from_json(setup.to_json())
    assert "\n" not in str(caught.value)


def test_all_places_are_covered(mine):
    assert set(setups(mine)) == set(NAMES)


def test_functions_themselves_do_as_well_and_train_to_the_same_records(mine):
    setup = pl.Setup(pl.Parity(6, 2), pl.Learner(pl.MLP(4, mine.cube), loss=mine.loss), pl.Protocol(20, eval_size=64))
    again = pl.Setup.from_json(setup.to_json(), functions=[mine.loss, mine.cube])
    first, second = pl.sweep([setup, again], 3)
    assert first.records.accuracy.tolist() == second.records.accuracy.tolist()
    with pytest.raises(InvalidInput, match=r"rebuilt from its name: mine_of_the_test\.cube@"):
        pl.Setup.from_json(setup.to_json(), functions=[mine.loss])


@pytest.mark.parametrize("name", ["loss", "mirrored", "dataclass", "several"])
def test_what_has_changed_is_refused_by_name(mine, name, monkeypatch):
    text = setups(mine)[name].to_json()
    monkeypatch.setattr(mine, "STEEP", 3.0)
    monkeypatch.setattr(mine.law, "__code__", (lambda key, shape: jax.random.uniform(key, shape)).__code__)
    monkeypatch.setattr(mine.Linear, "apply", lambda self, params, x: -x[:, 0])
    with pytest.raises(InvalidInput, match=r"not what it was: it is mine_of_the_test\.\w+@\w+( and .*)? now") as caught:
        pl.Setup.from_json(text, functions=[mine])
    assert "\n" not in str(caught.value)


def test_nothing_that_a_text_names_is_imported(mine, monkeypatch):
    text = setups(mine)["several"].to_json().replace("mine_of_the_test", "antigravity")
    monkeypatch.delitem(sys.modules, "antigravity", raising=False)
    for offered in ([], [mine]):
        with pytest.raises(InvalidInput, match="cannot be rebuilt"):
            pl.Setup.from_json(text, functions=offered)
    assert "antigravity" not in sys.modules


def test_fields_of_a_users_class_are_read_and_wrong_ones_refused(mine):
    text = setups(mine)["dataclass"].to_json()
    document = json.loads(text)
    document["learner"]["network"]["scale"] = "many"
    with pytest.raises(InvalidInput, match=r"network mine_of_the_test\.Linear failed"):
        pl.Setup.from_json(json.dumps(document), functions=[mine])
    document["learner"]["network"]["sclae"] = 1
    with pytest.raises(InvalidInput, match="wrong fields"):
        pl.Setup.from_json(json.dumps(document), functions=[mine])


def test_names_in_place_of_modules_are_refused():
    with pytest.raises(InvalidInput, match="takes functions and modules, not the name 'mine'"):
        pl.Setup.from_json(pl.Setup(pl.Parity(8, 2)).to_json(), functions=["mine"])


def test_modules_that_are_named_outside_are_looked_into_and_forgotten(mine):
    setup = setups(mine)["loss"]
    with finding.also_in(["mine_of_the_test"]):
        assert pl.Setup.from_json(setup.to_json()) == setup
    with pytest.raises(InvalidInput, match="cannot be rebuilt"):
        pl.Setup.from_json(setup.to_json())


@pytest.mark.long
@pytest.mark.parametrize("processes", long_but(["1", "2"], "2"))
def test_work_and_merge_take_the_module_with_the_functions(mine, tmp_path, capsys, processes):
    setup = pl.Setup(pl.Parity(6, 2), pl.Learner(pl.MLP(4), loss=mine.loss), pl.Protocol(20, eval_size=64))
    tasks, records, out = tmp_path / "tasks.json", tmp_path / "records", tmp_path / "out"
    tasks.write_text(to_text([Task(setup, 0, 3)]))
    status, _, err = run(capsys, "work", str(tasks), str(records))
    assert (status, err.count("\n")) == (2, 1)
    assert "mine_of_the_test.loss@" in err
    assert "--functions MODULE" in err
    done = run_apart("work", str(tasks), str(records), "--functions", "mine_of_the_test", "--processes", processes,
                     "--json", cwd=tmp_path)
    assert (done.returncode, json.loads(done.stdout)["left"]) == (0, 0), done.stderr
    status, shown, _ = run(capsys, "store", "merge", str(records), "--out", str(out))
    assert (status, shown.split()[:3]) == (0, ["3", "new", "records"])
    assert len(pl.Store(out / "store").records(setup.id, pl.Store(out / "store").series(setup.id)[0][0], 0)) == 3
    status, _, err = run(capsys, "work", str(tasks), str(records), "--functions", "no_such_module")
    assert (status, err.count("\n")) == (2, 1)
    assert "the module 'no_such_module' cannot be imported" in err
