"""The C interface of the native kernel gives the records of the Python module, and refuses what it cannot train."""

# ruff: noqa: C408 - options are keyword arguments everywhere else, so they are here

import ctypes
from ctypes import POINTER, Structure, byref, c_char_p, c_double, c_float, c_int32, c_int64, c_uint32, c_void_p

import numpy as np
import pytest
from arm.cases import COMMON, FAMILIES, KINDS, LAYOUTS, LOSS_KINDS, cases, factors
from lengths import long_but
from native_pools import INF, ISAS, _lanes, add, make_run

import paritylab as pl
from paritylab import rng
from paritylab.engines.starts import initial_params, start_keys

STATE = ("tag", "status", "t_c", "steps", "accuracy", "loss")


RULES = ("sgd", "momentum", "adam", "rmsprop", "sign")
TARGETS = ("product", "sum", "table", "tasks")


class Floats(Structure):
    _fields_ = [("data", POINTER(c_float)), ("count", c_int64)]


class Words(Structure):
    _fields_ = [("data", POINTER(c_uint32)), ("count", c_int64)]


class Wholes(Structure):
    _fields_ = [("data", POINTER(c_int64)), ("count", c_int64)]


class Problem(Structure):
    _fields_ = [
        ("stride", c_int32), ("leak", c_int64), ("components", Wholes), ("uniform", Wholes), ("cumulative", Words),
        ("planes", Words), ("always", Words), ("copied", Wholes), ("copies", Words), ("law", c_int32),
        ("evaluation_law", c_int32), ("stages", Wholes), ("target", c_int32), ("scale", c_float),
        ("coefficients", Floats), ("terms", Words), ("sign", c_int32), ("places", Wholes), ("table", Words),
        ("task_cumulative", Words), ("task_masks", Words), ("task_allowed", Wholes),
        ("task_controls", Words), ("in_turn", c_int32),
    ]


class Law(Structure):
    _fields_ = [
        ("hidden", c_int32), ("output", c_int32), ("hidden_params", Floats), ("output_params", Floats),
        ("scales", Floats), ("biased", c_int32), ("mirrored", c_int32),
    ]


class Config(Structure):
    _fields_ = [
        ("family", c_int32), ("inputs", c_int32), ("layers", c_int32), ("widths", POINTER(c_int32)), ("bias", c_int32),
        ("activation", c_int32), ("activation_params", Floats), ("loss", c_int32), ("loss_params", Floats),
        ("batch", c_int32), ("schedule", Floats), ("rates", Floats), ("decay_coupled", c_float),
        ("decay_plain", c_float), ("sample", c_int64), ("replacement", c_int32), ("eval_every", c_int64),
        ("eval_size", c_int64), ("eval_fresh", c_int32), ("allowed_errors", c_int64), ("consecutive", c_int32),
        ("layout", c_int32), ("rule", c_int32), ("rule_params", Floats), ("clip", c_float), ("decay_gradient", c_float),
        ("problem", POINTER(Problem)), ("short_last", c_int32), ("within", c_float), ("bits", c_int32),
        ("skips_satisfied", c_int32),
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
        ("train", c_int64, [c_void_p, c_int64]),
        ("draw", c_char_p, [c_void_p, POINTER(Law), POINTER(c_uint32), POINTER(Weights)]),
        ("move", c_int64, [c_void_p, c_void_p]),
        ("survey", c_int32, [c_void_p, c_int64, c_int32, POINTER(Record)]),
        ("take", c_int32, [c_void_p, POINTER(Record), POINTER(Weights)]),
        ("look", c_int64, [c_void_p, c_int64, POINTER(Weights)]),
    ):
        function = getattr(found, f"paritylab_{name}")
        function.restype, function.argtypes = result, arguments
    return found


def floats(numbers):
    data = np.array([*([] if numbers is None else numbers), 0.0], np.float32)  # one more: none can be empty
    return Floats(pointer(data), data.size - 1)


def words(numbers):
    data = np.append(np.ravel(numbers), 0).astype(np.uint32)
    return Words(pointer(data, c_uint32), data.size - 1)


def wholes(numbers):
    data = np.append(np.ravel(numbers), 0).astype(np.int64)
    return Wholes(pointer(data, c_int64), data.size - 1)


def problem(p):
    """What sources.told says, in the C interface's words."""
    laws = p["laws"]
    copies = [pairs for law in laws for pairs in law[3]]
    flat = [np.concatenate([np.ravel(law[i]) for law in laws]) for i in range(3)]
    return Problem(
        stride=p["stride"], leak=-1 if p["leak"] is None else p["leak"], law=p["law"],
        components=wholes([len(law[3]) for law in laws]), uniform=wholes([law[4] for law in laws]),
        cumulative=words(flat[0]), planes=words(flat[1]), always=words(flat[2]),
        copied=wholes([len(pairs) for pairs in copies]),
        copies=words([j for pairs in copies for pair in pairs for j in pair]), evaluation_law=p["evaluation_law"],
        stages=wholes(p["stages"]), target=TARGETS.index(p["target"]), scale=p["scale"],
        coefficients=floats([c for c, _ in p["terms"]]), terms=words([mask for _, mask in p["terms"]]),
        sign=p["sign"], places=wholes(p["places"]), table=words(p["table"]), task_masks=words(p["task_masks"]),
        task_cumulative=words(p["task_cumulative"]), task_allowed=wholes(p["task_allowed"]),
        task_controls=words(p["task_controls"]), in_turn=p["in_turn"],
    )


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
        decay_gradient=cfg.get("decay_gradient", 0), short_last=cfg.get("short_last", False),
        within=cfg.get("within", -1.0), bits=cfg.get("bits", False), skips_satisfied=cfg.get("skips_satisfied", False),
        problem=ctypes.pointer(problem(cfg["problem"])) if cfg.get("problem") else None,
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
    found = taken(library, pool, runs[0])
    library.paritylab_end(pool)
    return found


def taken(library, pool, run):
    """The records of a pool's finished runs, which have the shape of this one, with their final weights."""
    arrays, room = weights(run)
    found, record = [], Record()
    while library.paritylab_take(pool, byref(record), byref(room)):
        state = [getattr(record, name) for name in STATE]
        found.append((state, {name: array.copy() for name, array in arrays.items()}))
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
        dict(width=40, layout="tables", bits=True, batch=50),
        dict(width=7, n=33, layout="samples", batch=40),
    ],
    ids=["mlp", "neuron", "polynet", "adam", "within", "deep", "tables", "samples"],
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


def test_problems_of_every_kind_have_the_records_of_the_module(library):
    isa = ISAS[0]
    for cfg, runs, max_steps in cases()["problems"]:
        told = cfg["problem"]
        pool = _lanes.Pool(**cfg | dict(isa=isa, problem=told and _lanes.Problem(**told)))
        add(pool, runs, range(len(runs)), max_steps)
        expected = pool.advance(600.0)
        for row, (state, end) in enumerate(records(library, cfg, runs, max_steps, isa)):
            assert state == [expected[name][row] for name in STATE]
            assert all((end[name] == expected[name][row].reshape(end[name].shape)).all() for name in "Wbuc")


def test_runs_can_be_given_steps_and_surveyed_on_the_way(library):
    cfg = COMMON | dict(width=5, sample=20, eval_every=10, allowed_errors=0)
    pool, run = library.paritylab_start(byref(config(cfg)), None), make_run(cfg)
    found = (Record * 16)()
    assert library.paritylab_survey(pool, 48, 0, found) == 0
    for tag, steps in enumerate((25, 40)):
        add_run(library, pool, run, tag, steps)
    assert library.paritylab_train(pool, 7) == 2
    for of_sample, size in ((0, 48), (1, 20)):
        assert library.paritylab_survey(pool, 1000, of_sample, found) == 2
        assert [(each.tag, each.status, each.steps) for each in found[:2]] == [(0, 3, 7), (1, 3, 7)]
        assert (found[0].accuracy * size).is_integer()
        assert (found[0].accuracy, found[0].loss) == (found[1].accuracy, found[1].loss)  # the same run twice
    ((state, _),) = records(library, cfg, [run], [7], library.paritylab_isa(0).decode())
    assert library.paritylab_survey(pool, 1000, 0, found) == 2
    assert state[4:] == [found[0].accuracy, found[0].loss]
    assert library.paritylab_train(pool, 18) == 1
    assert library.paritylab_train(pool, 100) == 0
    library.paritylab_end(pool)


@pytest.mark.parametrize(
    "options",
    [dict(width=5, sample=20), dict(width=5, schedule=factors(30))],
    ids=["sample", "schedule"],
)
def test_a_run_that_moves_to_another_pool_goes_on_as_it_was(library, options):
    """A solved run has passed two checks in a row, one before it moves."""
    cfg = COMMON | dict(eval_every=5, allowed_errors=COMMON["eval_size"], consecutive=2) | options
    runs = [make_run(cfg, seed, lr=0.01, tau=0.1 * (seed % 2), flip=2**28, scale=0.5) for seed in range(3)]
    here, there = (library.paritylab_start(byref(config(cfg)), b"baseline") for _ in range(2))
    assert library.paritylab_move(here, there) == -1  # none has a slot
    for tag, run in enumerate(runs):
        assert add_run(library, here if tag < 2 else there, run, tag, 30) is None
    assert (library.paritylab_train(here, 7), library.paritylab_train(there, 7)) == (2, 1)
    moved = library.paritylab_move(here, there)
    assert moved in (0, 1)
    assert (library.paritylab_train(here, 100), library.paritylab_train(there, 100)) == (0, 0)
    found = [taken(library, pool, runs[0]) for pool in (here, there)]
    assert [state[0] for state, _ in found[1]] == [moved, 2]
    got = sorted(found[0] + found[1], key=lambda each: each[0][0])
    for (state, end), (wanted, params) in zip(got, records(library, cfg, runs, [30] * 3, "baseline"), strict=True):
        assert state == wanted
        assert wanted[3] == 10
        assert all((end[name] == params[name]).all() for name in "Wbuc")
    for pool in (here, there):
        library.paritylab_end(pool)


def test_a_run_stays_where_there_is_no_room_or_its_optimiser_remembers(library):
    for options, others in ((dict(width=5), 4), (dict(width=5, rule="momentum", rule_params=[0.9, 0.0]), 0)):
        cfg = COMMON | options
        here, there = (library.paritylab_start(byref(config(cfg)), b"baseline") for _ in range(2))
        for tag in range(1 + others):
            add_run(library, there if tag else here, make_run(cfg), tag, 30)
        assert library.paritylab_train(here, 3) == 1
        assert library.paritylab_train(there, 3) == others
        assert library.paritylab_move(here, there) == -1
        for pool in (here, there):
            library.paritylab_end(pool)


START_LAWS = {  # kind, numbers, kind and numbers of the output, whether biases are drawn
    "torch": (0, [], None, True), "sign": (1, [], None, True), "gaussian": (2, [], None, True),
    "kaiming": (2, [], None, True), "perturbed-rademacher:0.1": (3, [0.1], None, True),
    "uniform-perturbed:0.5": (4, [0.5 * 3**0.5], None, True),
    "sparse-rademacher:0.2": (5, [0.2], None, True), "discrete:-2,-1,1,2": (6, [-2, -1, 1, 2], None, True),
    "discrete:-1.5,-1,1,1.5": (6, [-3, -2, 2, 3], None, True),
    "sphere:0.7": (7, [], None, False), "mean-field:0.5,0.3": (7, [], (8, [0.3]), False),
    "mirrored gaussian": (2, [], None, True),
}
QUICK = ("torch", "sign")
"""Laws that XLA compiles nothing for; the others are compared with the passes that users have (make test-long)."""


@pytest.mark.parametrize("law", long_but(START_LAWS, *QUICK, slow=["kaiming", "perturbed-rademacher:0.1", "sphere:0.7",
                                                                   "uniform-perturbed:0.5", "sparse-rademacher:0.2"]))
def test_start_weights_are_those_of_jax_to_the_last_bit(library, law):
    """JAX's compiler fuses multiply-adds where the processor can; on one that cannot it rounds otherwise."""
    if ISAS[0] == "baseline":
        pytest.skip("this processor has no fused multiply-add")
    count, n, widths = 64, 30, (12, 10)
    setup = pl.Setup(pl.Parity(n, 2), pl.Learner(pl.MLP(widths), law))
    keys = rng.run_keys(np.zeros(count, np.int64), np.arange(count))
    expected, init = initial_params(setup.program, keys), setup.learner.init
    cfg = COMMON | dict(n=n, below=[12], width=10, rates=[1.0] * 3)
    pool, sizes = library.paritylab_start(byref(config(cfg)), None), (n, *widths, 1)
    kind, numbers, output, biased = START_LAWS[law]
    laws = [init, init, init.output or init]
    scales = [each.level(a, b) for each, a, b in zip(laws, sizes, sizes[1:], strict=False)]
    last = output or (kind, numbers)
    given = Law(kind, last[0], floats(numbers), floats(last[1]), floats(scales), biased, init.mirrored)
    arrays, room = weights(make_run(cfg))
    for run, key in enumerate(start_keys(init, keys)):
        assert library.paritylab_draw(pool, byref(given), (c_uint32 * 2)(*key.tolist()), byref(room)) is None
        W = np.concatenate([np.ravel(expected[layer]["w"][run]) for layer in (0, 1)])
        # Norms on the sphere: XLA takes the processor's own approximate root, which differs between makes.
        assert np.allclose(arrays["W"], W, rtol=1e-6) if kind == 7 else np.array_equal(arrays["W"], W)
        assert np.array_equal(arrays["b"], np.concatenate([expected[layer]["b"][run] for layer in (0, 1)]))
        u = np.ravel(expected[2]["w"][run])
        assert np.allclose(arrays["u"], u, rtol=1e-6) if last[0] == 7 else np.array_equal(arrays["u"], u)
        assert arrays["c"] == expected[2]["b"][run]
    library.paritylab_end(pool)


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
        (dict(family=3), "family"), (dict(activation=-1), "activation"), (dict(loss=6), "loss"),
        (dict(layout=6), "layout"), (dict(layout=4, bits=1), "layout"),
        (dict(layout=4, loss=1, loss_params=floats([])), "layout"),
        (dict(layers=0), "layers"), (dict(inputs=0), "n: expected"),
        (dict(family=2, layout=1), "layout"), (dict(batch=2**20 + 1), "batch"), (dict(sample=2**62), "sample"),
        (dict(rates=Floats(None, 2)), "floats"), (dict(rates=floats([1.0])), "rates"),
        (dict(schedule=Floats(None, -1)), "floats"), (dict(within=-2.0), "within"), (dict(short_last=1), "short_last"),
        (dict(problem=ctypes.pointer(Problem(leak=-1))), "laws"),
        (dict(problem=ctypes.pointer(Problem(leak=-1, components=wholes([1]), uniform=wholes([1])))), "copies"),
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
