"""Pools of the native kernel and runs for them, as its tests and those of the C interface make them."""

# ruff: noqa: C408 - options are keyword arguments everywhere else, so they are here

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

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
