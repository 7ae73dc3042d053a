"""Setups: JSON there and back, ids that say everything and nothing else, programs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace

import jax
import numpy as np
import optax
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import paritylab as pl
from paritylab.errors import InvalidInput

BASE = pl.Setup(pl.Parity(8, 2))

# --- there and back ---------------------------------------------------------------------------------------------

numbers = st.floats(1e-3, 1e3)
small = st.integers(1, 6)
activations = st.one_of(
    st.sampled_from(["relu", "relu6", "clipped-relu", "gelu", "tanh"]),
    st.builds("{}:{}".format, st.sampled_from(["power", "zigzag", "infinite-zigzag", "oscillating"]), small),
    st.builds("sinusoid:{},{}".format, small, numbers),
    st.builds("clipped-relu:{}".format, numbers),
)
networks = st.one_of(
    st.builds(pl.MLP, st.one_of(small, st.lists(small, min_size=1, max_size=3)), activations, st.booleans()),
    st.builds(pl.Neuron, activations),
    st.builds(pl.PolyNet, small),
    st.builds(pl.DisjointPolyNet, small),
    st.builds(pl.Transformer, small, small, small, st.one_of(st.none(), small)),
)
laws = st.one_of(
    st.sampled_from(["torch", "xavier", "kaiming", "sign", "uniform", "rademacher", "gaussian", "sphere"]),
    st.builds("{}:{}".format, st.sampled_from(["perturbed-rademacher", "uniform-perturbed", "sphere"]), numbers),
    st.builds("sparse-rademacher:{}".format, st.floats(0, 0.99)),
    st.lists(numbers, min_size=1, max_size=4, unique=True).map(lambda ps: "discrete:" + ",".join(map(str, ps))),
)
all_laws = st.one_of(laws, laws.map("mirrored {}".format))
losses = st.one_of(
    st.sampled_from(["hinge", "square", "logistic", "correlation", "l1"]),
    st.builds("{}:{}".format, st.sampled_from(["hinge", "logistic"]), numbers),
)
schedules = st.one_of(
    st.just("constant"),
    st.builds("{}:{}".format, st.sampled_from(["linear", "cosine", "inverse-sqrt"]), numbers),
    st.builds("steps:{},{},{},{}".format, st.integers(1, 9), numbers, st.integers(10, 99), numbers),
)
common = {
    "lr": st.one_of(st.floats(0, 1e6), st.integers(0, 9)),
    "schedule": schedules,
    "rates": st.one_of(
        st.none(), st.lists(numbers, max_size=3), st.dictionaries(st.sampled_from("abc"), numbers, min_size=1)
    ),
    "noise": st.one_of(st.just(0), numbers),
}
unit = st.floats(0, 0.99)
optimisers = st.one_of(
    st.builds(pl.SGD, **common, weight_decay=numbers, decay_form=st.sampled_from(["coupled", "plain"])),
    st.builds(pl.Adam, **common, b1=unit, b2=unit, eps=st.floats(0, 1)),
    st.builds(pl.SignSGD, **common),
    st.builds(pl.SGD, **common, momentum=unit, clip=st.none() | st.floats(0.01, 10)),
    st.builds(pl.RMSProp, **common, alpha=unit, momentum=unit),
)
problems = st.one_of(
    st.builds(pl.Parity, st.integers(6, 70), st.integers(0, 6), noise=st.floats(0, 1)),
    st.builds(pl.Parity, st.just(9), support=st.sets(st.integers(0, 8))),
    st.builds(pl.Parity, st.just(9), st.just(2), sample=st.integers(1, 99), replacement=st.booleans()),
)
protocols = st.builds(
    pl.Protocol, st.integers(1, 10**6), small, st.integers(1, 10**5), st.floats(0.01, 1), small, st.booleans()
)
learners = st.builds(pl.Learner, networks, all_laws, losses, optimisers, st.integers(1, 64))
setups = st.builds(pl.Setup, problems, learners, protocols)


@settings(max_examples=150, deadline=None)
@given(setups)
def test_any_setup_comes_back_from_its_json(setup):
    again = pl.Setup.from_json(setup.to_json())
    assert again == setup
    assert again.to_json() == setup.to_json()
    assert again.id == setup.id
    assert again.program == setup.program
    assert hash(again.program) == hash(setup.program)


@settings(max_examples=50, deadline=None)
@given(setups, setups)
def test_setups_have_equal_ids_when_they_are_equal_and_only_then(first, second):
    assert (first == second) == (first.id == second.id)


@settings(max_examples=50, deadline=None)
@given(setups)
def test_canonical_json_is_compact_sorted_and_without_whole_floats(setup):
    text = setup.to_json()
    document = json.loads(text)
    assert text == json.dumps(document, sort_keys=True, separators=(",", ":"))
    assert document["conventions"] == 1

    def walk(value):
        if isinstance(value, dict):
            return any(walk(item) for item in value.values())
        if isinstance(value, list):
            return any(walk(item) for item in value)
        return isinstance(value, float) and value.is_integer()

    assert not walk(document)


# --- ids --------------------------------------------------------------------------------------------------------


def test_the_id_of_the_first_example_never_changes():
    # A golden value: the ids of all stored records depend on it. Change CONVENTIONS before changing this.
    assert len(BASE.id) == 16
    assert set(BASE.id) <= set("0123456789abcdef")
    assert pl.Setup(pl.Parity(n=30, k=3)).id == pl.Setup.from_json(GOLDEN_JSON).id
    assert pl.Setup(pl.Parity(n=30, k=3)).to_json() == GOLDEN_JSON


GOLDEN_JSON = (
    '{"conventions":1,"learner":{"batch":32,"init":"torch","loss":"hinge","network":{"activation":"relu","bias":tru'
    'e,"inputs":"signs","output_bias":true,"outputs":1,"type":"mlp","width":10},"optimiser":{"clip":null,"decay_for'
    'm":"coupled","lr":0.1,"momentum":0,"nesterov":false,"noise":0,"rates":null,"schedule":"constant","skip_satisfi'
    'ed":false,"type":"sgd","weight_decay":0},"type":"learner"},"problem":{"inputs":null,"k":3,"n":30,"noise":0,"re'
    'placement":false,"sample":null,"short_last":false,"support":[0,1,2],"type":"parity"},"protocol":{"consecutive"'
    ':1,"eval_every":10,"eval_size":8192,"fresh":false,"max_steps":100000,"threshold":1,"type":"protocol","until_lo'
    'ss":null,"within":null},"type":"setup"}'
)

MINE = '''
import numpy as np
SCALES = np.array([1.0, 2.0])
def factory(c):
    def forward(params, x):
        return (x @ params)[:, 0] * c[1]
    return forward
def make(key, n):
    import jax
    return jax.random.normal(key, (n, 1))
def draw(key, count, n, spread=2.0):
    import jax
    return spread * jax.random.normal(key, (count, n))
'''
SCRIPT = """
import sys
sys.path.insert(0, sys.argv[1])
import mine, paritylab as pl
setups = [
    pl.Setup(pl.Parity(30, 3)),
    pl.Setup(pl.Parity(9, support={8, 1, 5}), pl.Learner(optimiser=pl.SGD(rates={"b": 1, "a": 0}))),
    pl.Setup(pl.Parity(9, 2, inputs=mine.draw), pl.Learner(pl.Network(mine.make, mine.factory(mine.SCALES)))),
]
print(*(setup.id for setup in setups))
"""


def ids_in_another_process(folder, hash_seed):
    environment = {**os.environ, "PYTHONHASHSEED": str(hash_seed)}
    command = [sys.executable, "-c", SCRIPT, str(folder)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_ids_are_the_same_in_every_process_and_follow_a_users_code(tmp_path):
    (tmp_path / "mine.py").write_text(MINE)
    first = ids_in_another_process(tmp_path, 1)
    assert first == ids_in_another_process(tmp_path, 2)
    assert first[0] == pl.Setup(pl.Parity(30, 3)).id
    assert first[1] == replace(BASE, problem=pl.Parity(9, support=(1, 5, 8)),
                               learner=pl.Learner(optimiser=pl.SGD(rates={"a": 0, "b": 1}))).id
    (tmp_path / "mine.py").write_text(MINE.replace("* c[1]", "* 2 * c[1]"))
    changed = ids_in_another_process(tmp_path, 1)
    assert changed[:2] == first[:2]
    assert changed[2] != first[2]


def test_an_id_does_not_depend_on_how_a_number_is_spelled():
    def setup(one, two, half):
        return pl.Setup(
            pl.Parity(n=one * 8, k=two, noise=half),
            pl.Learner(pl.MLP(4, f"sinusoid:{two},{one}"), f"sphere:{one}", f"hinge:{two}",
                       pl.SGD(lr=one, weight_decay=two, rates=(one, half)), batch=two),
            pl.Protocol(max_steps=100 * one, threshold=one),
        )

    plain, numpy = setup(1, 2, 0.5), setup(np.int64(1), np.int32(2), np.float64(0.5))
    assert plain.id == numpy.id
    assert pl.Setup(BASE.problem, pl.Learner(optimiser=pl.SGD(lr=1))).id == (
        pl.Setup(BASE.problem, pl.Learner(optimiser=pl.SGD(lr=1.0))).id
    )
    assert pl.SGD(lr=1) == pl.SGD(lr=1.0)
    assert pl.Setup(pl.Parity(8, support=[1, 0])).id == BASE.id


def with_learner(**fields):
    return replace(BASE, learner=replace(BASE.learner, **fields))


def with_sgd(**fields):
    return with_learner(optimiser=pl.SGD(**fields))


VARIANTS = {
    "n": replace(BASE, problem=pl.Parity(9, 2)),
    "k": replace(BASE, problem=pl.Parity(8, 3)),
    "support": replace(BASE, problem=pl.Parity(8, support=(0, 2))),
    "label noise": replace(BASE, problem=pl.Parity(8, 2, noise=0.1)),
    "sample": replace(BASE, problem=pl.Parity(8, 2, sample=99)),
    "replacement": replace(BASE, problem=pl.Parity(8, 2, sample=99, replacement=True)),
    "inputs": replace(BASE, problem=pl.Parity(8, 2, inputs=lambda key, count, n: jax.random.normal(key, (count, n)))),
    "width": with_learner(network=pl.MLP(11)),
    "depth": with_learner(network=pl.MLP((10, 10))),
    "activation": with_learner(network=pl.MLP(10, "gelu")),
    "output bias": with_learner(network=pl.MLP(10, output_bias=False)),
    "outputs": with_learner(network=pl.MLP(10, outputs=2)),
    "bits": with_learner(network=pl.MLP(10, inputs="bits")),
    "neuron": with_learner(network=pl.Neuron("relu")),
    "polynet": with_learner(network=pl.PolyNet(10)),
    "disjoint polynet": with_learner(network=pl.DisjointPolyNet(2)),
    "transformer": with_learner(network=pl.Transformer()),
    "transformer size": with_learner(network=pl.Transformer(heads=2)),
    "init": with_learner(init="kaiming"),
    "mirrored": with_learner(init="mirrored torch"),
    "unbiased": with_learner(init="unbiased torch"),
    "logits": with_learner(init="logits torch"),
    "loss": with_learner(loss="square"),
    "margin": with_learner(loss="hinge:2"),
    "batch": with_learner(batch=33),
    "lr": with_sgd(lr=0.2),
    "weight decay": with_sgd(weight_decay=0.1),
    "decay form": with_sgd(weight_decay=0.1, decay_form="plain"),
    "schedule": with_sgd(schedule="linear:9"),
    "rates": with_sgd(rates=(1, 0)),
    "gradient noise": with_sgd(noise=0.1),
    "satisfied": with_sgd(skip_satisfied=True),
    "clipped": with_learner(loss="clipped-logistic:0.001"),
    "adam": with_learner(optimiser=pl.Adam()),
    "b1": with_learner(optimiser=pl.Adam(b1=0.8)),
    "sign sgd": with_learner(optimiser=pl.SignSGD()),
    "optax": with_learner(optimiser=pl.Optax(0.1, transformation=optax.sgd(1.0))),
    "optax numbers": with_learner(optimiser=pl.Optax(0.1, transformation=optax.sgd(2.0))),
    "max steps": replace(BASE, protocol=pl.Protocol(max_steps=99)),
    "eval every": replace(BASE, protocol=pl.Protocol(eval_every=11)),
    "eval size": replace(BASE, protocol=pl.Protocol(eval_size=99)),
    "threshold": replace(BASE, protocol=pl.Protocol(threshold=0.9)),
    "consecutive": replace(BASE, protocol=pl.Protocol(consecutive=2)),
    "fresh": replace(BASE, protocol=pl.Protocol(fresh=True)),
}


def test_every_field_changes_the_id():
    ids = {"nothing": BASE.id, **{name: setup.id for name, setup in VARIANTS.items()}}
    assert len(set(ids.values())) == len(ids), sorted(ids.items(), key=lambda item: item[1])


# --- refusals ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "",
        "not json",
        "[]",
        "3",
        "null",
        "{}",
        '{"type": "setup"}',
        BASE.to_json().replace('"conventions":1', '"conventions":0'),
        BASE.to_json().replace('"conventions":1,', ""),
        BASE.to_json().replace('"type":"mlp"', '"type":"resnet"'),
        BASE.to_json().replace('"type":"mlp",', ""),
        BASE.to_json().replace('"width":10', '"height":10'),
        BASE.to_json().replace('"width":10', '"width":-1'),
        BASE.to_json().replace('"width":10', '"width":null'),
        BASE.to_json().replace('"activation":"relu"', '"activation":3'),
        BASE.to_json().replace('"lr":0.1', '"lr":"fast"'),
        BASE.to_json().replace('"n":8', '"n":"eight"'),
        BASE.to_json().replace('"loss":"hinge"', '"loss":"hing"'),
        '{"conventions":1,"type":"mlp","width":10}',
        with_learner(loss=lambda f, y: f * y).to_json(),
        VARIANTS["optax"].to_json(),
        VARIANTS["inputs"].to_json(),
    ],
)
def test_a_foreign_old_or_unbuildable_document_is_refused_in_one_line(text):
    with pytest.raises(InvalidInput) as caught:
        pl.Setup.from_json(text)
    assert "\n" not in str(caught.value)


def test_a_check_computes_nothing():
    huge = replace(BASE, problem=pl.Parity(2**20, 2), learner=pl.Learner(pl.MLP(10**6), batch=10**6))
    huge.check()


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: pl.Learner(batch=0), "batch must be at least 1"),
        (lambda: pl.Learner(network="mlp"), "needs init and apply"),
        (lambda: pl.Learner(init="tourch"), "did you mean 'torch'"),
        (lambda: pl.Learner(loss="hing"), "did you mean 'hinge'"),
        (lambda: pl.Protocol(max_steps=0), "max_steps must be at least 1"),
        (lambda: pl.Protocol(max_steps=2**31), "below 2"),
        (lambda: pl.Protocol(eval_every=0), "eval_every"),
        (lambda: pl.Protocol(eval_every=2**31), "eval_every"),
        (lambda: pl.Protocol(eval_size=0), "eval_size"),
        (lambda: pl.Protocol(eval_size=2**40), "eval_size"),
        (lambda: pl.Setup(pl.Parity(2**20, 3), protocol=pl.Protocol(eval_size=2**17)), r"eval_size.*at most 131068"),
        (lambda: pl.Protocol(consecutive=0), "consecutive"),
        (lambda: pl.Protocol(consecutive=2**40), "consecutive"),
        (lambda: pl.Protocol(threshold=0), "threshold"),
        (lambda: pl.Protocol(threshold=1.01), "threshold"),
        (lambda: pl.Setup(pl.Parity(8, 2, sample=9), protocol=pl.Protocol(max_steps=2**30)), "finite sample"),
    ],
)
def test_an_impossible_part_of_a_setup_is_refused_in_one_line(make, says):
    with pytest.raises(InvalidInput, match=says) as caught:
        make()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("threshold", "size", "allowed"),
    [(1.0, 100, 0), (0.99, 100, 1), (0.9, 100, 10), (0.7, 10, 3), (0.999, 100, 0), (0.5, 3, 1), (0.9, 70, 7)],
)
def test_the_allowed_errors_are_those_that_leave_the_threshold(threshold, size, allowed):
    assert pl.Protocol(threshold=threshold, eval_size=size).allowed_errors == allowed


# --- programs ---------------------------------------------------------------------------------------------------


def test_what_a_run_carries_by_itself_does_not_change_the_program():
    noisy = replace(BASE, problem=pl.Parity(8, 2, noise=0.1), learner=pl.Learner(optimiser=pl.SGD(0.1, noise=0.1)))
    same = replace(
        BASE,
        problem=pl.Parity(8, support=(1, 4, 7), noise=0.4),
        learner=pl.Learner(optimiser=pl.SGD(3.0, noise=7.0)),
        protocol=pl.Protocol(max_steps=77),
    )
    assert noisy.program == same.program
    assert hash(noisy.program) == hash(same.program)
    assert noisy.program != BASE.program
    assert BASE.program == replace(BASE, protocol=pl.Protocol(max_steps=5)).program


CARRIED = {"k", "support", "lr", "max steps"}


@pytest.mark.parametrize("name", VARIANTS)
def test_everything_else_changes_the_program(name):
    assert (VARIANTS[name].program == BASE.program) == (name in CARRIED)
