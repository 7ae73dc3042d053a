"""The layout `samples` in plain single precision: every product and sum in its order, number by number, bit for bit."""

# ruff: noqa: C408 - options are keyword arguments, as in native_pools.py

import jax
import numpy as np
import pytest
from kernel_reference import batches, bits, parity, signs, stream
from lengths import long_but
from native_pools import DEFAULTS, ISAS, _lanes, add, make_run

F = np.float32
BLOCK = 1024  # samples whose sums are one whole number


def fused(a, b, c):
    """a b + c, rounded once: a sum in double precision that is not exact is made odd, and then rounded."""
    product, c = np.asarray(a, float) * b, np.asarray(c, float)
    total = product + c
    other = total - product
    error = (product - (total - other)) + (c - other)
    even = (total.view(np.int64) & 1) == 0
    return np.where((error != 0) & even, np.nextafter(total, np.copysign(np.inf, error)), total).astype(F)


def rounded_twice(a, b, c):
    return (a * b + c).astype(F)


def outputs(theta, x, fma):
    """Outputs, and in which samples each unit is active.

    Five inputs are one sum, which is added to z. Even and odd units are summed apart.
    """
    W, b, u, c = theta
    n, width = W.shape
    z = np.broadcast_to(b, (len(x), width))
    W, x = np.pad(W, ((0, -n % 5), (0, 0))), np.pad(x, ((0, 0), (0, -n % 5)))
    for i in range(0, n, 5):
        t = x[:, i + 4, None] * W[i + 4]
        for j in range(i, i + 4):
            t = t + x[:, j, None] * W[j]  # the product is exact
        z = z + t
    f = [np.zeros(len(x), F), np.zeros(len(x), F)]
    for j in range(width):
        f[j % 2] = fma(u[j], np.maximum(z[:, j], F(0)), f[j % 2])
    return c + (f[0] + f[1]), z > 0


def slopes(cfg, f, y):
    if cfg["loss"] == "hinge":
        return np.where(y * f < F(cfg["loss_params"][0]), -y, F(0))
    return -y if cfg["loss"] == "correlation" else np.sign(f - y)


def mean_loss(cfg, run, theta, fma):
    """On the inputs that the run is judged on: it shows every bit of every output."""
    words = bits(jax.random.fold_in(stream(run["key"], "evaluation"), 0), cfg["eval_size"], len(run["mask"]))
    y = parity(words, run["mask"]).astype(F)
    f, _ = outputs(theta, signs(words, cfg["n"]).astype(F), fma)
    if cfg["loss"] == "hinge":
        values = np.maximum(F(cfg["loss_params"][0]) - y * f, F(0))
    else:
        values = -(y * f) if cfg["loss"] == "correlation" else np.abs(y - f)
    return values.astype(float).mean()


def over_inputs(W, counts, fma):
    """The sum of W counts for each unit: octets of inputs number by number, even and odd ones apart."""
    chains = np.zeros((2, 8, W.shape[1]), F)
    for row in range(0, len(W), 8):
        chains[row // 8 % 2] = fma(W[row : row + 8], counts[row : row + 8], chains[row // 8 % 2])
    s = chains[0] + chains[1]
    return ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]))


def step(cfg, theta, x, y, lr, fma):
    n, width = theta[0].shape  # the bias is that of an input behind the last five, which is always +1
    bias, rows = -(-n // 5) * 5, -(-n // 5) * 5 // 8 * 8 + 8
    W = np.zeros((rows, width), F)
    W[:n], W[bias] = theta[0], theta[1]
    u, c = theta[2], theta[3]
    plain, coupled = F(cfg["decay_plain"]), F(cfg["decay_coupled"])
    rates = [F(lr) * F(rate) for rate in cfg["rates"]]
    keeps = [F(1) - rate * coupled - plain for rate in rates]
    share = F(1) / F(len(x))
    wide = np.zeros((len(x), rows), F)
    wide[:, :n], wide[:, bias] = x, 1
    parts = [slice(first, first + BLOCK) for first in range(0, len(x), BLOCK)]
    gradient = np.zeros_like(W), np.zeros_like(u), F(0)
    for part in parts:
        f, active = outputs(theta, x[part], fma)
        slope = slopes(cfg, f, y[part])
        counts = (wide[part].T @ (active * slope[:, None])).astype(F)  # whole numbers
        sums, balance = over_inputs(W, counts, fma), F(slope.sum())
        if len(parts) > 1:
            terms = (counts, share * u), (share, sums), (share, balance)
            gradient = tuple(fma(*term, before) for term, before in zip(terms, gradient, strict=True))
    if len(parts) > 1:
        W = fma(-rates[0], gradient[0], W * keeps[0])
        u, c = fma(-rates[1], gradient[1], u * keeps[1]), fma(-rates[1], gradient[2], c * keeps[1])
    else:
        W = fma(counts, -(rates[0] * share) * u, W * keeps[0])
        u, c = fma(-(rates[1] * share), sums, u * keeps[1]), fma(-rates[1], share * balance, c * keeps[1])
    return W[:n], W[bias], u, c


def trained(cfg, run, steps, fma):
    theta = tuple(np.asarray(run["start"][name], F) for name in "Wbuc")
    x, y = batches(cfg, run, np.arange(steps))
    for t in range(steps):
        theta = step(cfg, theta, x[t].astype(F), y[t].astype(F), run["lr"], fma)
    return theta


CASES = {
    "W1": dict(n=30, width=10, batch=32, steps=300),
    "n 7": dict(n=7, width=5, batch=20),
    "n 29": dict(n=29, width=2, batch=31, loss="correlation", loss_params=[]),
    "n 31": dict(n=31, width=1, batch=33),
    "n 32": dict(n=32, width=7, batch=64, loss="l1", loss_params=[]),
    "n 33": dict(n=33, width=16, batch=20, loss_params=[0.5]),
    "n 45": dict(n=45, width=3, batch=100),
    "n 60": dict(n=60, width=33, batch=32),
    "n 64": dict(n=64, width=6, batch=300, loss="l1", loss_params=[]),
    "n 100": dict(n=100, width=9, batch=64),
    "one word": dict(n=24, width=11, batch=32),
    "two blocks": dict(n=30, width=4, batch=1500, steps=20),
    "decay": dict(n=40, width=8, batch=40, decay_coupled=0.3, decay_plain=0.01, rates=(0.5, 2.0)),
    "finite sample": dict(n=33, width=5, batch=64, sample=100, replacement=False),
}


@pytest.mark.parametrize("name", long_but(CASES, "W1", "n 45", "n 64", "two blocks", "decay"))
def test_the_kernel_adds_in_the_order_that_is_said(name):
    options = dict(CASES[name])
    steps = options.pop("steps", 60)
    cfg = DEFAULTS | dict(eval_every=10**6, layout="samples") | options
    run = make_run(cfg, seed=len(name), lr=0.2)
    rounding = {isa: rounded_twice if isa == "baseline" else fused for isa in ISAS}
    wanted = {fma: trained(cfg, run, steps, fma) for fma in set(rounding.values())}
    losses = {fma: mean_loss(cfg, run, theta, fma) for fma, theta in wanted.items()}
    for isa in ISAS:
        pool = _lanes.Pool(**cfg | dict(isa=isa))
        add(pool, [run], [0], [steps])
        got = pool.advance(600.0)
        for array, want in zip("Wbuc", wanted[rounding[isa]], strict=True):
            assert (got[array][0].reshape(want.shape) == want).all(), (isa, array)
        assert got["loss"][0] == pytest.approx(losses[rounding[isa]], rel=1e-13), isa
