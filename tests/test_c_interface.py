"""The C interface of the native kernel gives the records of the Python module, and refuses what it cannot train."""

# ruff: noqa: C408 - options are keyword arguments everywhere else, so they are here

import ctypes
from ctypes import POINTER, Structure, byref, c_char_p, c_double, c_float, c_int32, c_int64, c_uint32, c_void_p

import numpy as np
import pytest
from arm.cases import COMMON, FAMILIES, KINDS, LAYOUTS, LOSS_KINDS, factors
from test_native_kernel import INF, ISAS, _lanes, add, make_run

STATE = ("tag", "status", "t_c", "steps", "accuracy", "loss")


RULES = ("sgd", "momentum", "adam", "rmsprop", "sign")


class Floats(Structure):
    _fields_ = [("data", POINTER(c_float)), ("count", c_int64)]


class Config(Structure):
    _fields_ = [
        ("family", c_int32), ("inputs", c_int32), ("layers", c_int32), ("widths", POINTER(c_int32)), ("bias", c_int32),
        ("activation", c_int32), ("activation_params", Floats), ("loss", c_int32), ("loss_params", Floats),
        ("batch", c_int32), ("schedule", Floats), ("rates", Floats), ("decay_coupled", c_float),
        ("decay_plain", c_float), ("sample", c_int64), ("replacement", c_int32), ("eval_every", c_int64),
        ("eval_size", c_int64), ("eval_fresh", c_int32), ("allowed_errors", c_int64), ("consecutive", c_int32),
        ("layout", c_int32), ("rule", c_int32), ("rule_params", Floats), ("clip", c_float), ("decay_gradient", c_float),
    ]


class Weights(Structure):
    _fields_ = [(name, POINTER(c_float)) for name in "Wbuc"]


class Run(Structure):
    _fields_ = [
        ("tag", c_int64), ("key", c_uint32 * 2), ("lr", c_float), ("noise", c_float), ("flip", c_uint32),
        ("max_steps", c_int64), ("mask", POINTER(c_uint32)), ("start", Weights),
    ]


class Record(Structure):
    _fields_ = [
        ("tag", c_int64), ("status", c_int32), ("t_c", c_int64), ("steps", c_int64), ("accuracy", c_double),
        ("loss", c_double),
    ]


@pytest.fixture(scope="module")
def library():
    found = ctypes.CDLL(_lanes.__file__)
    for name, result, arguments in (
        ("isa", c_char_p, [c_int32]),
        ("refusal", c_char_p, [POINTER(Config)]),
        ("start", c_void_p, [POINTER(Config), c_char_p]),
        ("end", None, [c_void_p]),
        ("add", c_char_p, [c_void_p, POINTER(Run)]),
        ("advance", c_int64, [c_void_p, c_double]),
        ("take", c_int32, [c_void_p, POINTER(Record), POINTER(Weights)]),
        ("look", c_int64, [c_void_p, c_int64, POINTER(Weights)]),
    ):
        function = getattr(found, f"paritylab_{name}")
        function.restype, function.argtypes = result, arguments
    return found


def floats(numbers):
    data = np.array([*([] if numbers is None else numbers), 0.0], np.float32)  # one more: none can be empty
    return Floats(pointer(data), data.size - 1)


def pointer(data, kind=c_float):
    """A pointer that keeps its array alive, in structures too."""
    return ctypes.cast((kind * data.size).from_buffer(data), POINTER(kind))


def config(cfg):
    widths = np.array([*cfg.get("below", []), cfg["width"]], np.int32)
    alike = ("batch", "decay_coupled", "decay_plain", "sample", "replacement", "eval_every", "eval_size", "eval_fresh",
             "allowed_errors", "consecutive")
    return Config(
        family=FAMILIES.index(cfg["family"]), inputs=cfg["n"], layers=len(widths), widths=pointer(widths, c_int32),
        bias=cfg.get("bias", True), activation=KINDS.index(cfg["activation"]), loss=LOSS_KINDS.index(cfg["loss"]),
        layout=LAYOUTS.index(cfg["layout"]), **{name: cfg[name] for name in alike},
        **{name: floats(cfg[name]) for name in ("activation_params", "loss_params", "rates")},
        schedule=floats(cfg["schedule"] and cfg["schedule"].factors), rule=RULES.index(cfg.get("rule", "sgd")),
        rule_params=floats(cfg.get("rule_params", [])), clip=cfg.get("clip", 0),
        decay_gradient=cfg.get("decay_gradient", 0),
    )


def weights(run):
    arrays = {name: np.array(run["start"][name], np.float32) for name in "Wbuc"}
    return arrays, Weights(*(pointer(array) for array in arrays.values()))


def add_run(library, pool, run, tag, steps):
    key = (c_uint32 * 2)(*run["key"])
    given = Run(tag, key, run["lr"], run["tau"], run["flip"], steps, pointer(run["mask"], c_uint32), weights(run)[1])
    return library.paritylab_add(pool, byref(given))


def records(library, cfg, runs, max_steps, isa):
    pool = library.paritylab_start(byref(config(cfg)), isa.encode())
    for tag, (run, steps) in enumerate(zip(runs, max_steps, strict=True)):
        assert add_run(library, pool, run, tag, int(steps)) is None
    assert library.paritylab_advance(pool, 600.0) == 0
    arrays, room = weights(runs[0])
    found, record = [], Record()
    while library.paritylab_take(pool, byref(record), byref(room)):
        state = [getattr(record, name) for name in STATE]
        found.append((state, {name: array.copy() for name, array in arrays.items()}))
    library.paritylab_end(pool)
    return found


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize(
    "options",
    [
        dict(width=5, sample=20, eval_fresh=True),
        dict(width=1, family="neuron", activation="sinusoid", activation_params=[1.3, 2.0], loss="l1", loss_params=[]),
        dict(width=3, family="polynet", loss="square", loss_params=[], batch=1),
        dict(width=7, rule="adam", rule_params=[0.9, 0.999, 1e-8], clip=0.5, decay_gradient=0.1),
        dict(width=40, layout="within", activation="gelu", activation_params=[], loss="logistic", decay_plain=0.01),
        dict(width=9, below=[20, 7], rates=[1.0, 0.5, 1.0, 2.0], schedule=factors(30)),
    ],
    ids=["mlp", "neuron", "polynet", "adam", "within", "deep"],
)
def test_the_c_interface_gives_the_records_of_the_module(library, options, isa):
    cfg = COMMON | options
    runs = [make_run(cfg, seed, lr=0.01, tau=0.1 * (seed % 2), flip=2**28, scale=0.5) for seed in range(20)]
    max_steps = 30 - np.arange(20) % 7
    pool = _lanes.Pool(**cfg | dict(isa=isa))
    add(pool, runs, range(20), max_steps)
    expected = pool.advance(600.0)
    got = records(library, cfg, runs, max_steps, isa)
    assert len(got) == 20
    for row, (state, end) in enumerate(got):
        assert state == [expected[name][row] for name in STATE]
        assert all((end[name] == expected[name][row].reshape(end[name].shape)).all() for name in "Wbuc")


def test_weights_can_be_looked_at_on_the_way(library):
    cfg = COMMON | dict(width=64, batch=200, eval_every=10**6)
    run = make_run(cfg)
    pool = library.paritylab_start(byref(config(cfg)), None)
    arrays, room = weights(run)
    assert library.paritylab_look(pool, 7, byref(room)) == -1
    assert add_run(library, pool, run, 7, 10**6) is None
    assert library.paritylab_look(pool, 7, byref(room)) == -1  # it waits
    assert library.paritylab_advance(pool, 0.0) == 1
    steps = library.paritylab_look(pool, 7, byref(room))
    library.paritylab_end(pool)
    assert steps > 0
    ((state, end),) = records(library, cfg, [run], [steps], library.paritylab_isa(0).decode())
    assert state[3] == steps
    assert all((arrays[name] == end[name]).all() for name in "Wbuc")


def test_the_c_interface_names_the_instruction_sets(library):
    assert [library.paritylab_isa(i).decode() for i in range(len(ISAS))] == ISAS
    assert library.paritylab_isa(len(ISAS)) is None
    assert library.paritylab_isa(-1) is None


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        (dict(family=3), "family"), (dict(activation=-1), "activation"), (dict(loss=5), "loss"),
        (dict(layout=4), "layout"), (dict(layers=0), "layers"), (dict(inputs=0), "n: expected"),
        (dict(family=2, layout=1), "layout"), (dict(batch=2**20 + 1), "batch"), (dict(sample=2**62), "sample"),
        (dict(rates=Floats(None, 2)), "floats"), (dict(rates=floats([1.0])), "rates"),
        (dict(schedule=Floats(None, -1)), "floats"),
    ],
)
def test_the_c_interface_refuses_in_a_line(library, changes, says):
    given = config(COMMON)
    assert library.paritylab_refusal(byref(given)) is None
    for name, value in changes.items():
        setattr(given, name, value)
    why = library.paritylab_refusal(byref(given)).decode()
    assert says in why
    assert "\n" not in why
    assert library.paritylab_start(byref(given), None) is None


def test_the_c_interface_refuses_runs_and_machines_it_cannot_have(library):
    cfg = COMMON | dict(activation_params=[INF], schedule=factors(9))
    assert library.paritylab_start(byref(config(cfg)), b"mmx") is None
    pool, run = library.paritylab_start(byref(config(cfg)), None), make_run(cfg)
    for steps in (0, 10, 2**31):
        assert b"steps" in add_run(library, pool, run, 0, steps)
    nothing = Run(max_steps=5)
    assert b"mask" in library.paritylab_add(pool, byref(nothing))
    assert library.paritylab_advance(pool, 1.0) == 0
    library.paritylab_end(pool)
