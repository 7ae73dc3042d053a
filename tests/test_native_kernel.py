"""The native kernel against an independent float64 implementation, and against itself.

The reference takes the parameters the kernel had before a step and makes that step in float64, with random numbers from
jax.random; so every step is judged by itself and rounding errors cannot pile up.
"""

# ruff: noqa: C408 - options are keyword arguments everywhere else, so they are here


import jax
import numpy as np
import pytest
from kernel_reference import (
    Factors,
    activate,
    batches,
    bits,
    evaluation,
    lose,
    normal_of_steps,
    one_step,
)
from native_pools import ACTIVATIONS, DEFAULTS, INF, ISAS, LOSSES, _lanes, add, make_run


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

    assert layout(n=30, width=10, batch=32) == layout(n=30, width=1000, batch=32) == "samples"
    assert layout(n=30, width=10, batch=15) == layout(n=30, width=10, batch=32, bits=True) == "lanes"
    assert layout(n=30, width=1000, batch=8) == "samples"
    assert layout(n=30, width=100, batch=32, loss="square", loss_params=[]) == "lanes"
    assert layout(n=30, width=1000, batch=1) == "within"
    assert layout(n=4096, width=50, family="polynet") == "lanes"
    assert layout(n=10, width=5, below=[7], rates=[1.0] * 3) == "deep"
    assert layout(n=30, width=16, batch=1000, loss="square", loss_params=[]) == "tables"
    assert layout(n=30, width=1000, batch=4000, activation="gelu", activation_params=[]) == "within"


@pytest.mark.parametrize("layout", ["lanes", "within", "deep", "tables", "samples"])
@pytest.mark.parametrize("loss", LOSSES, ids=lambda p: p[0])
def test_evaluation(loss, layout):
    if layout == "samples" and loss[0] not in ("hinge", "correlation", "l1"):
        pytest.skip("slopes of one size alone are counted")
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
