"""The native kernel against an independent float64 implementation, and against itself.

The reference takes the parameters the kernel had before a step and makes that step in float64, with random numbers from
jax.random; so every step is judged by itself and rounding errors cannot pile up.
"""

# ruff: noqa: C408 - options are keyword arguments everywhere else, so they are here

import itertools
import math

import jax
import numpy as np
import pytest
from kernel_reference import (
    Factors,
    activate,
    batches,
    bits,
    lose,
    network,
    normal_of_steps,
    one_step,
    parity,
    signs,
    stream,
)

_lanes = pytest.importorskip("paritylab._lanes")

INF = math.inf
ISAS = _lanes.supported_isas()
DEFAULTS = dict(
    n=5, family="mlp", width=3, batch=4, activation="clip", activation_params=[INF],
    loss="hinge", loss_params=[1.0], schedule=None, rates=(1.0, 1.0), decay_coupled=0.0, decay_plain=0.0,
    sample=0, replacement=True, eval_every=10, eval_size=64, eval_fresh=False,
    allowed_errors=0, consecutive=1, keep_params=True, threads=1, isa="auto", layout="auto",
)
ACTIVATIONS = [
    ("clip", [INF]), ("clip", [0.7]), ("power", [1]), ("power", [3]), ("zigzag", [2]), ("zigzag", [3]),
    ("triangle", [3]), ("polynomial", [0.1, -0.5, 0.3, 0.2]), ("sinusoid", [1.3, 2.0]), ("gelu", []),
]
LOSSES = [("hinge", [0.8]), ("square", []), ("logistic", [1.5]), ("correlation", []), ("l1", []),
          ("clipped-logistic", [0.4, 1.1])]

# --- the kernel ----------------------------------------------------------------------------------------------------


def words_of(positions, n):
    mask = np.zeros((n + 31) // 32, np.uint32)
    for j in positions:
        mask[j // 32] |= np.uint32(1 << (j % 32))
    return mask


def make_run(cfg, seed=0, lr=0.05, tau=0.0, flip=0, scale=1.0):
    rng = np.random.default_rng(seed)
    n, r = cfg["n"], cfg["width"]
    sizes = [n, *cfg.get("below", []), r]
    W = [rng.uniform(-1, 1, shape) * scale / math.sqrt(shape[0]) for shape in itertools.pairwise(sizes)]
    start = {"W": W[0] if len(W) == 1 else np.concatenate([w.ravel() for w in W])}
    start |= {"b": rng.uniform(0.1, 1, sum(sizes[1:])) * scale}
    start |= {"u": rng.uniform(-1, 1, r), "c": rng.uniform(-1, 1)}
    start = {name: np.asarray(value, np.float32) for name, value in start.items()}
    support = rng.choice(n, 3, replace=False)
    key = rng.integers(0, 2**32, 2, dtype=np.uint32)
    return dict(start=start, key=key, lr=np.float32(lr), tau=np.float32(tau), flip=flip, mask=words_of(support, n))


def add(pool, runs, tags, max_steps):
    columns = {name: np.stack([r["start"][name] for r in runs]) for name in "Wbuc"}
    pool.add(
        tag=np.asarray(tags, np.int64),
        key=np.stack([r["key"] for r in runs]),
        lr=np.array([r["lr"] for r in runs], np.float32),
        tau=np.array([r["tau"] for r in runs], np.float32),
        flip=np.array([r["flip"] for r in runs], np.uint32),
        mask=np.stack([r["mask"] for r in runs]),
        max_steps=np.asarray(max_steps, np.int64),
        **columns,
    )


def trajectory(cfg, run, steps):
    """The kernel's records of the same run stopped after 1, 2, ..., steps updates."""
    pool = _lanes.Pool(**cfg)
    add(pool, [run] * steps, range(1, steps + 1), range(1, steps + 1))
    return pool.advance(60.0)


def layouts_of(cfg):
    if cfg["family"] != "mlp":
        return ("lanes",)
    relu = (cfg["activation"], list(cfg["activation_params"])) == ("clip", [INF])
    return ("lanes", "within", "deep", "tables") if relu else ("lanes", "within", "deep")


def check_steps(run_options=None, steps=50, isas=("auto",), layouts=None, **options):
    cfg = DEFAULTS | dict(eval_every=10**6, eval_size=8) | options
    run = make_run(cfg, **(run_options or {}))
    times = np.arange(steps)
    x, y = batches(cfg, run, times)
    names = "Wbuc" if cfg["family"] == "mlp" else "Wb"
    noise = {}
    if run["tau"] > 0:
        for name in names:
            noise[name] = run["tau"] * normal_of_steps(run["key"], times, "bWcu".index(name), run["start"][name].shape)
    for isa in isas:
        for layout in layouts or layouts_of(cfg):
            got = trajectory(cfg | dict(isa=isa, layout=layout), run, steps)
            assert list(got["tag"]) == list(times + 1)
            before = {k: np.concatenate([run["start"][k][None], got[k][:-1]]).astype(float) for k in "Wbuc"}
            expected = one_step(cfg, before, x, y, float(run["lr"]), times, noise)
            for name in names:
                scale = max(1e-3, np.abs(expected[name]).max())
                assert np.isfinite(expected[name]).all()
                assert np.abs(got[name] - expected[name]).max() < 1e-4 * scale, (name, isa, layout)
                assert np.abs(got[name] - before[name]).max() > 0 or cfg["rates"][name in "uc"] == 0


# --- tests ---------------------------------------------------------------------------------------------------------


def test_threefry_is_that_of_jax():
    for seed in range(3):
        key = jax.random.key(seed)
        data = tuple(int(w) for w in jax.random.key_data(key))
        for number in (0, 1, 6, 2**31, 2**32 - 1):
            folded = jax.random.fold_in(key, np.uint32(number))
            assert list(_lanes.fold_in(data, number)) == list(np.asarray(jax.random.key_data(folded)))
        for isa in ISAS:
            words = _lanes.random_bits(np.array([data, (1, 2)], np.uint32), 27, isa)
            assert (words[0] == bits(key, 27)).all()
            assert (words[1] == bits(jax.random.wrap_key_data(np.array([1, 2], np.uint32)), 27)).all()


@pytest.mark.parametrize("loss", LOSSES, ids=lambda p: p[0])
@pytest.mark.parametrize("activation", ACTIVATIONS, ids=lambda p: f"{p[0]}{p[1]}")
def test_steps_of_mlp_and_neuron(activation, loss):
    n = (5, 33, 70)[(ACTIVATIONS.index(activation) + LOSSES.index(loss)) % 3]
    options = dict(activation=activation[0], activation_params=activation[1], loss=loss[0], loss_params=loss[1], n=n)
    run_options = dict(scale=0.5, lr=0.01) if activation[0] in ("power", "polynomial") else {}
    check_steps(run_options, family="mlp", width=7, **options)
    check_steps(run_options, family="neuron", width=1, **options)


@pytest.mark.parametrize("loss", LOSSES, ids=lambda p: p[0])
def test_steps_of_polynet(loss):
    for n, width in ((5, 3), (33, 4), (70, 13)):
        options = dict(run_options=dict(scale=0.8, lr=0.02), n=n, width=width)
        check_steps(family="polynet", loss=loss[0], loss_params=loss[1], **options)


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("batch", [*(pytest.param(size, marks=pytest.mark.long) for size in (2, 32, 70)), 1, 7, 33])
def test_steps_of_all_shapes(isa, batch):
    for n, width in ((5, 1), (31, 2), (32, 11), (33, 3), (40, 64), (64, 23), (70, 17), (1024, 2)):
        check_steps(isas=[isa], n=n, width=width, batch=batch, steps=10)


@pytest.mark.long
@pytest.mark.parametrize("isa", ISAS)
def test_steps_with_options(isa):
    isas = [isa]
    for batch in (1, 8, 40):
        check_steps({"flip": 2**30}, isas=isas, n=33, batch=batch)
        check_steps({"tau": 0.3}, isas=isas, n=33, width=9, batch=batch)
        check_steps(decay_coupled=0.3, decay_plain=0.01, rates=(0.5, 2.0), isas=isas, batch=batch)
        check_steps(decay_plain=0.01, rates=(1.0, 0.0), isas=isas, batch=batch)
        check_steps(rates=(0.0, 1.0), isas=isas, batch=batch)
        check_steps(schedule=Factors(np.linspace(1, 0.1, 50), _lanes.SCHEDULE_BLOCK), isas=isas, batch=batch)
        for replacement in (True, False):
            check_steps({"flip": 2**29}, sample=30, replacement=replacement, n=40, batch=batch, isas=isas)
    check_steps({"tau": 0.1}, family="polynet", n=33, width=3, isas=isas)
    check_steps({"tau": 0.1}, family="neuron", width=1, n=33, isas=isas)


def lone_neurons(z, lr, **options):
    """Neurons on one input with weight 0 and bias z, and y = 1: after one step, -f as the loss, and the bias."""
    cfg = DEFAULTS | dict(n=1, family="neuron", width=1, loss="correlation", loss_params=[], eval_size=1) | options
    pool, count = _lanes.Pool(**cfg), len(z)
    zeros, words = np.zeros(count, np.float32), np.zeros((count, 1), np.uint32)
    pool.add(
        tag=np.arange(count), key=np.zeros((count, 2), np.uint32), W=np.zeros((count, 1, 1), np.float32),
        b=z[:, None], u=zeros[:, None], c=zeros, lr=np.full(count, lr, np.float32), tau=zeros,
        flip=np.zeros(count, np.uint32), mask=words, max_steps=np.ones(count, np.int64),
    )
    got = pool.advance(10)
    return got["loss"], got["b"][:, 0]


@pytest.mark.parametrize("isa", ISAS)
def test_functions_are_accurate(isa):
    z = np.linspace(-4.01, 3.99, 4001, dtype=np.float32) + np.float32(1e-3 / 3)  # no kink is on the grid
    for name, params in ACTIVATIONS:
        options = dict(activation=name, activation_params=params, isa=isa)
        value, slope = activate(name, params, z.astype(float))
        scale = max(1, np.abs(value).max() / 3)
        assert np.abs(-lone_neurons(z, 0, **options)[0] - value).max() < 1e-6 * scale
        assert np.abs(lone_neurons(z, 1, **options)[1] - z - slope).max() < 2e-6 * scale
    wide = np.linspace(-100, 100, 4001, dtype=np.float32)
    for name, params in LOSSES:
        options = dict(activation="power", activation_params=[1], loss=name, loss_params=params, isa=isa)
        value, slope = lose(name, params, wide.astype(float), 1.0)
        assert np.allclose(lone_neurons(wide, 0, **options)[0], value, rtol=1e-6, atol=1e-6)
        assert np.allclose(lone_neurons(wide, 1, **options)[1], wide - slope, rtol=1e-6, atol=1e-6)


def test_layout_follows_the_shape():
    def layout(**options):
        return _lanes.Pool(**DEFAULTS | options).layout

    assert layout(n=30, width=10, batch=32) == "lanes"
    assert layout(n=30, width=100, batch=32) == "lanes"
    assert layout(n=30, width=1000, batch=32) == layout(n=30, width=1000, batch=1) == "within"
    assert layout(n=4096, width=50, family="polynet") == "lanes"
    assert layout(n=10, width=5, below=[7], rates=[1.0] * 3) == "deep"
    assert layout(n=30, width=16, batch=1000) == layout(n=37, width=1000, batch=4000) == "tables"
    assert layout(n=30, width=1000, batch=4000, activation="gelu", activation_params=[]) == "within"


def evaluation(cfg, run, theta, t):
    """Accuracy and mean loss on the evaluation sample after t updates."""
    key = jax.random.fold_in(stream(run["key"], "evaluation"), t if cfg["eval_fresh"] else 0)
    words = bits(key, cfg["eval_size"], len(run["mask"]))
    y = parity(words, run["mask"])
    f, _ = network(cfg, {k: v.astype(float) for k, v in theta.items()}, signs(words, cfg["n"]))
    return np.mean(y * f > 0), np.mean(lose(cfg["loss"], cfg["loss_params"], f, y)[0])


@pytest.mark.parametrize("layout", ["lanes", "within", "deep", "tables"])
@pytest.mark.parametrize("loss", LOSSES, ids=lambda p: p[0])
def test_evaluation(loss, layout):
    for fresh in (False, True):
        cfg = DEFAULTS | dict(n=40, width=20, eval_size=101, eval_fresh=fresh, loss=loss[0], loss_params=loss[1])
        cfg["layout"] = layout
        run = make_run(cfg)
        got = trajectory(cfg, run, 5)
        for i in range(5):
            accuracy, loss_value = evaluation(cfg, run, {k: got[k][i] for k in "Wbuc"}, i + 1)
            assert got["accuracy"][i] == pytest.approx(accuracy, abs=1e-12)
            assert got["loss"][i] == pytest.approx(loss_value, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("fresh", [False, True])
def test_when_a_run_is_solved(fresh):
    cfg = DEFAULTS | dict(n=6, width=16, batch=16, eval_every=10**6, eval_size=50, eval_fresh=fresh)
    run = make_run(cfg, seed=1, lr=0.3)
    accuracy = trajectory(cfg, run, 400)["accuracy"]  # after 1, 2, ... updates
    for every, allowed, consecutive in ((1, 0, 1), (7, 3, 1), (10, 5, 3), (3, 0, 4), (150, 0, 5)):
        streak, expected = 0, -1
        for t in range(1, 401):
            if t % every == 0 or t == 400:
                streak = streak + 1 if round(50 * (1 - accuracy[t - 1])) <= allowed else 0
                if streak == consecutive and expected < 0:
                    expected = t
        pool = _lanes.Pool(**cfg | dict(eval_every=every, allowed_errors=allowed, consecutive=consecutive))
        add(pool, [run], [9], [400])
        record = pool.advance(10)
        assert (record["tag"][0], record["t_c"][0]) == (9, expected)
        assert record["status"][0] == (1 if expected < 0 else 0)
        steps = 400 if expected < 0 else expected
        assert record["steps"][0] == steps
        assert record["accuracy"][0] == accuracy[steps - 1]
    assert accuracy.max() == 1


def many_runs(cfg, count=75):
    rng = np.random.default_rng(5)
    runs = [
        make_run(cfg, seed=i, lr=0.3 * rng.random(), tau=0.1 * (i % 5 == 0), flip=2**28 * (i % 3 == 0))
        for i in range(count)
    ]
    return runs, rng.integers(1, 300, count)


def records(cfg, runs, max_steps, chunks=1, seconds=60.0):
    pool = _lanes.Pool(**cfg)
    parts = []
    for chunk in np.array_split(np.arange(len(runs)), chunks):
        add(pool, [runs[i] for i in chunk], chunk, max_steps[chunk])
        parts.append(pool.advance(seconds))
    while pool.stock + pool.active:
        parts.append(pool.advance(seconds))
    joined = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    order = np.argsort(joined["tag"])
    return {name: column[order].tobytes() for name, column in joined.items()}


@pytest.mark.parametrize(
    "options",
    [
        dict(n=33, width=12, batch=5, eval_every=20),
        dict(n=20, width=5, batch=1, eval_every=7, layout="lanes"),
        dict(n=20, width=21, batch=40, layout="within", activation="gelu", activation_params=[]),
        dict(n=20, width=21, batch=70, layout="deep"),
        dict(n=20, width=100, below=[35, 113], rates=[1.0] * 4, batch=5, loss_params=[0.3]),
        dict(n=20, width=50, batch=70, layout="tables"),
        dict(n=40, width=17, batch=60, sample=60, replacement=False, layout="tables", bits=True, rule="adam",
             rule_params=[0.9, 0.99, 1e-8], clip=0.5),
        dict(n=12, width=9, batch=8, sample=50, replacement=False, eval_every=64, bits=True),
        dict(n=12, width=4, batch=8, family="polynet", loss="logistic", decay_coupled=0.01, eval_fresh=True),
        dict(n=33, width=12, batch=5, rule="adam", rule_params=[0.9, 0.999, 1e-8], decay_gradient=0.1),
        dict(n=20, width=21, batch=40, layout="within", rule="momentum", rule_params=[0.9, 1.0], clip=0.5),
        dict(n=20, width=5, batch=1, layout="lanes", rule="rmsprop", rule_params=[0.99, 1e-8, 0.5], clip=0.5),
        dict(n=20, width=40, below=[35], rates=[1.0] * 3, batch=70, rule="sign", rule_params=[0.9, 0.99], clip=0.5),
        dict(n=20, width=40, below=[35], rates=[1.0] * 3, rule="adam", rule_params=[0.9, 0.99, 1e-8], clip=0.5),
    ],
    ids=["online", "single", "within", "deep of one", "deep", "tables", "tables of a whole sample", "sample", "polynet",
         "adam", "momentum", "rmsprop", "sign", "deep adam"],
)
def test_records_do_not_depend_on_company(options):
    cfg = DEFAULTS | dict(eval_size=32, allowed_errors=5) | options
    runs, max_steps = many_runs(cfg)
    expected = records(cfg, runs, max_steps)
    for threads in (2, 3):
        assert records(cfg | dict(threads=threads), runs, max_steps) == expected
    assert records(cfg, runs, max_steps, chunks=4) == expected
    assert records(cfg | dict(threads=2), runs, max_steps, chunks=75, seconds=0.0005) == expected
    assert records(cfg, runs, max_steps, seconds=0.01) == expected
    if "avx512" in ISAS:
        assert records(cfg | dict(isa="avx2"), runs, max_steps) == expected


def test_discard_forgets_runs_waiting_and_running():
    cfg = DEFAULTS | dict(n=30, width=8, allowed_errors=0)
    runs = [make_run(cfg, seed=i, lr=1e-7) for i in range(60)]
    long = np.full(60, 10**9)
    pool = _lanes.Pool(**cfg | dict(isa=ISAS[-1]))  # four slots
    add(pool, runs, np.arange(60), long)
    kept = [1, 30, 59]
    assert len(pool.advance(0.01)["tag"]) == 0
    assert (pool.active, pool.stock, pool.slots) == (4, 56, 4)
    assert pool.model_steps > 0
    assert pool.model_steps % 4 == 0
    pool.discard([t for t in range(60) if t not in kept])
    assert pool.stock + pool.active == 3
    add(pool, [runs[3]], [100], [50])
    first = pool.advance(0.02)
    assert list(first["tag"]) == [100]
    alone = _lanes.Pool(**cfg | dict(isa=ISAS[-1]))
    add(alone, [runs[3]], [100], [50])
    assert all((v == first[k]).all() for k, v in alone.advance(10).items())
    pool.discard(kept)
    assert pool.stock + pool.active == 0
    assert len(pool.advance(10)["tag"]) == 0


@pytest.mark.parametrize("layout", ["lanes", "within", "deep"])
def test_divergence_is_seen(layout):
    cfg = DEFAULTS | dict(n=10, activation="power", activation_params=[3], loss="square", loss_params=[], layout=layout)
    wild, tame = make_run(cfg, lr=1e6), make_run(cfg, lr=1e-3)
    pool = _lanes.Pool(**cfg)
    add(pool, [wild, tame], [0, 1], [100, 100])
    got = pool.advance(10)
    assert list(got["status"]) == [2, 1]
    assert list(got["t_c"]) == [-1, -1]
    assert list(got["steps"]) == [10, 100]
    assert math.isfinite(got["loss"][1])
    assert np.isfinite(got["W"][1]).all()


@pytest.mark.parametrize(
    "options",
    [
        dict(family="cnn"), dict(n=0), dict(width=0), dict(batch=0), dict(activation="tanh"), dict(loss="0-1"),
        dict(activation_params=[]), dict(loss_params=[1.0, 2.0]), dict(family="neuron", width=2), dict(threads=0),
        dict(isa="mmx"), dict(layout="diagonal"), dict(eval_every=0), dict(consecutive=0),
        dict(family="polynet", layout="within"), dict(family="neuron", width=1, layout="deep"), dict(rates=[1.0]),
        dict(below=[3]), dict(below=[0], rates=[1.0] * 3), dict(below=[3], rates=[1.0] * 3, layout="within"),
        dict(family="polynet", below=[3], rates=[1.0] * 3), dict(sample=-1),
        dict(activation_params=[1.0], layout="tables"),
    ],
    ids=str,
)
def test_bad_configurations_are_refused(options):
    with pytest.raises(ValueError):
        _lanes.Pool(**DEFAULTS | options)


def test_bad_runs_are_refused():
    run = make_run(DEFAULTS)
    pool = _lanes.Pool(**DEFAULTS)
    with pytest.raises(ValueError, match="max_steps"):
        add(pool, [run], [0], [0])
    run["mask"] = np.zeros(2, np.uint32)
    with pytest.raises(ValueError, match="mask"):
        add(pool, [run], [0], [5])
    assert pool.stock == 0


@pytest.mark.parametrize(
    ("trace", "options"),
    [(([], 1, False, 0.0), {}), (([3, 3], 1, False, 0.0), {}), (([-1, 3], 1, False, 0.0), {}),
     (([0, 3], 0, False, 0.0), {}), (([0, 3], 1, True, 0.0), dict(sample=0))],
)
def test_bad_traces_are_refused(trace, options):
    with pytest.raises(ValueError, match="trace"):
        _lanes.Pool(**DEFAULTS | options, trace=trace)


def test_a_trace_takes_the_runs_it_has_rows_for_and_is_given_when_all_are_done():
    pool = _lanes.Pool(**DEFAULTS, trace=([0, 3], 2, False, 0.0))
    run = make_run(DEFAULTS)
    for tag, max_steps in ((2, 3), (-1, 3), (0, 2)):
        with pytest.raises(ValueError, match=r"tag|max_steps"):
            add(pool, [run], [tag], [max_steps])
    add(pool, [run], [1], [3])
    with pytest.raises(ValueError, match="not all runs are done"):
        pool.take_trace()
    assert len(pool.advance(60.0)["tag"]) == 0
    traced = pool.take_trace()
    assert np.isnan(traced["loss"][0]).all()  # nobody wrote this row
    assert np.isfinite(traced["loss"][1]).all()
    assert (traced["W"][1, 0] == run["start"]["W"]).all()
    with pytest.raises(ValueError, match="has none"):
        pool.take_trace()
    with pytest.raises(ValueError, match="trace"):
        _lanes.Pool(**DEFAULTS).take_trace()


def test_factors_are_asked_for_where_runs_are_and_forgotten_behind_them():
    size = _lanes.SCHEDULE_BLOCK
    first = np.linspace(1, 0.5, 2 * size, dtype=np.float32)
    first[size + 7 :] = 0  # from there on nothing moves
    cfg = DEFAULTS | dict(n=3, width=1, batch=1, eval_every=10**9, eval_size=1)
    moving, standing = Factors(first, size), Factors(np.concatenate([first, np.zeros(size)]), size)
    ends = []
    for factors, steps in ((moving, size + 7), (standing, 2 * size + 9)):
        pool = _lanes.Pool(**cfg | dict(schedule=factors))
        add(pool, [make_run(cfg)] * 3, range(3), [5, steps, steps])
        ends.append(pool.advance(60.0)["W"][1:])
    assert moving.asked == [0, 1]
    assert standing.asked == [0, 1, 2]  # not one for each run, and none of the steps up to the limit
    assert np.array_equal(*ends)


@pytest.mark.parametrize("block", [np.ones(5, np.float32), "none"], ids=str)
def test_a_schedule_that_gives_something_else_is_refused(block):
    pool = _lanes.Pool(**DEFAULTS | dict(schedule=lambda number: block))
    add(pool, [make_run(DEFAULTS)], [0], [5])
    with pytest.raises((ValueError, RuntimeError, TypeError)):
        pool.advance(1.0)
