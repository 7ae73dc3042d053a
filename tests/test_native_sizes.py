"""The native kernel at the largest sizes it accepts: all is right there, and what is beyond is refused."""

# ruff: noqa: C408 - options are keyword arguments everywhere else, so they are here

import numpy as np
import pytest
from kernel_reference import batches, evaluation, one_step
from native_pools import DEFAULTS, ISAS, _lanes, add, make_run

import paritylab as pl
from paritylab.engines import lanes

MOST = 2**20  # units, and inputs
LR = np.float32(0.5)


def sizes(*usual, most):
    """Usual sizes, and in the long tests the extreme ones."""
    return [*usual, *(pytest.param(*extreme, marks=pytest.mark.long) for extreme in most)]


def after_one_step(cfg, run):
    """The only record of a pool with this run, stopped after its first update."""
    pool = _lanes.Pool(**cfg)
    add(pool, [run], [0], [1])
    return {name: column[0] for name, column in pool.advance(600.0).items()}


def signs(rng, *shape):
    return 1 - 2 * rng.integers(0, 2, shape).astype(np.float32)


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("degree", sizes(150_000, most=[(300_000,), (MOST,)]))
def test_a_polynet_of_many_factors_is_exact(degree, isa):
    cfg = DEFAULTS | dict(eval_size=1, n=1, family="polynet", width=degree, batch=1, isa=isa)
    cfg |= dict(loss="correlation", loss_params=[])
    run = make_run(cfg | dict(n=3)) | dict(lr=LR, mask=np.ones(1, np.uint32))
    rng = np.random.default_rng(0)
    W, b = signs(rng, 1, degree), 2 * (rng.random(degree, np.float32) < 10 / degree)  # b = 2: a factor of 1 or 3
    run["start"] |= dict(W=W, b=b.astype(np.float32), u=np.zeros(degree, np.float32))
    x, y = (part.astype(float) for part in batches(cfg, run, [0]))
    z = (x[0] @ W + b)[0]
    others = np.prod(z) / z  # d f / d z, small whole numbers: every float on the way is exact
    record = after_one_step(cfg, run)
    assert (record["b"] == b + LR * y[0, 0] * others).all()
    assert (record["W"] == W + LR * y[0, 0] * others * x[0, 0, 0]).all()


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize(
    ("layout", "width"),
    sizes(("lanes", 150_000), ("within", 700_000), most=[("lanes", MOST), ("within", MOST), ("deep", MOST)]),
)
def test_wide_mlps_follow_the_reference(layout, width, isa):
    cfg = DEFAULTS | dict(eval_size=1, n=2, width=width, batch=1, isa=isa, layout=layout)
    run = make_run(cfg | dict(n=3)) | dict(mask=np.full(1, 3, np.uint32))
    start = run["start"]
    start |= dict(W=start["W"][:2], u=start["u"] / np.float32(width))  # an output of order 1
    x, y = batches(cfg, run, [0])
    before = {name: value[None].astype(float) for name, value in start.items()}
    expected = one_step(cfg, before, x, y, float(run["lr"]), np.arange(1), {})
    record = after_one_step(cfg, run)
    for name in "Wbuc":
        np.testing.assert_allclose(record[name], expected[name][0], rtol=0, atol=1e-6, err_msg=name)
    assert np.abs(record["u"] - start["u"]).max() > 0.01  # the step was one


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.long
@pytest.mark.parametrize(("layout", "width"), [("lanes", 1), pytest.param("within", 16, marks=pytest.mark.slow),
                                               ("deep", 1)])
def test_many_inputs_follow_the_reference(layout, width, isa):
    cfg = DEFAULTS | dict(eval_size=1, n=MOST, width=width, batch=1, isa=isa, layout=layout)
    run = make_run(cfg)
    x, y = batches(cfg, run, [0])
    before = {name: value[None].astype(float) for name, value in run["start"].items()}
    expected = one_step(cfg, before, x, y, float(run["lr"]), np.arange(1), {})
    record = after_one_step(cfg, run)
    for name in "Wbuc":
        np.testing.assert_allclose(record[name], expected[name][0], rtol=0, atol=1e-4, err_msg=name)


@pytest.mark.long
@pytest.mark.parametrize("layout", ["lanes", "within", "deep"])
@pytest.mark.parametrize(("batch", "sample"), [(2**20, 0), (3, 2**22 + 3)])
def test_large_batches_and_samples_follow_the_reference(batch, sample, layout):
    cfg = DEFAULTS | dict(eval_size=1, n=33, width=2, layout=layout, batch=batch, sample=sample, replacement=False)
    run = make_run(cfg, flip=2**30)
    x, y = batches(cfg, run, [0])
    before = {name: value[None].astype(float) for name, value in run["start"].items()}
    expected = one_step(cfg, before, x, y, float(run["lr"]), np.arange(1), {})
    record = after_one_step(cfg, run)
    for name in "Wbuc":
        np.testing.assert_allclose(record[name], expected[name][0], rtol=0, atol=1e-6, err_msg=name)


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("layout", ["lanes", "within", "deep"])
def test_the_largest_evaluation_counts_every_error(layout):
    cfg = DEFAULTS | dict(n=3, width=2, batch=1, layout=layout, eval_size=2**24)
    run = make_run(cfg)
    record = after_one_step(cfg, run)
    accuracy, loss = evaluation(cfg, run, {name: record[name] for name in "Wbuc"}, 1)
    assert record["accuracy"] == accuracy
    assert record["loss"] == pytest.approx(loss, rel=1e-6)


@pytest.mark.parametrize(
    "options",
    [
        dict(n=MOST + 1), dict(width=MOST + 1), dict(n=65, width=MOST), dict(batch=2**20 + 1), dict(eval_size=2**30),
        dict(n=MOST, eval_size=2**17), dict(n=MOST, batch=2**17), dict(n=MOST, sample=2**17), dict(n=96, sample=2**62),
        dict(sample=2**32), dict(n=64, sample=2**63 - 1), dict(below=[MOST + 1], rates=[1.0] * 3),
        dict(below=[2**14], width=2**14, rates=[1.0] * 3),
    ],
    ids=str,
)
def test_sizes_beyond_the_limits_are_refused(options):
    with pytest.raises(ValueError, match=r"expected|too (large|many)"):
        _lanes.Pool(**DEFAULTS | options)


def test_steps_that_the_streams_cannot_number_are_refused():
    pool = _lanes.Pool(**DEFAULTS)
    for steps in (2**31, 2**62):
        with pytest.raises(ValueError, match=r"max_steps: expected 1 to 2\^31 - 1"):
            add(pool, [make_run(DEFAULTS)], [0], [steps])
    with pytest.raises(ValueError, match="trace: too many points"):
        _lanes.Pool(**DEFAULTS, trace=([0, 1, 2, 3], 2**62, False, 0.0))


@pytest.mark.parametrize(
    ("largest", "beyond"),
    [
        (dict(network=pl.PolyNet(MOST)), dict(network=pl.PolyNet(MOST + 1))),
        (dict(network=pl.MLP(MOST), n=64), dict(network=pl.MLP(MOST), n=65)),
        (dict(batch=2**20), dict(batch=2**20 + 1)),
        (dict(batch=2**17 - 1, n=MOST), dict(batch=2**17, n=MOST)),
        (dict(sample=2**17 - 1, n=MOST), dict(sample=2**17, n=MOST)),
    ],
)
def test_the_engine_refuses_what_the_kernel_does(largest, beyond):
    def refusal(network=pl.MLP(2), n=3, batch=1, sample=None):  # noqa: B008 - a frozen value
        setup = pl.Setup(pl.Parity(n, 1, sample=sample), pl.Learner(network, batch=batch), pl.Protocol(9))
        return lanes.refusal(setup)

    assert refusal(**largest) is None
    assert "too large for it" in refusal(**beyond)
