"""Users' functions that read a global through compiled helpers, and what is measured with them."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

import paritylab as pl

P = 0.5


@jax.jit
def below(words: Any) -> Any:
    return jnp.where(words < P, 1.0, -1.0)


@jax.jit
def scaled(z: Any) -> Any:
    return P * z


def uniform(key: Any, shape: tuple[int, int]) -> Any:
    """Nearly random, and compiled in a moment, which what JAX draws is not."""
    words = jax.random.key_data(key).sum() + jnp.arange(shape[0] * shape[1], dtype=jnp.uint32) * jnp.uint32(40503)
    return (words % 1009 / 1009).reshape(shape)


def inputs(key: Any, count: int, n: int) -> Any:
    return below(uniform(key, (count, n)))


def make(key: Any, n: int) -> Any:
    return scaled(uniform(key, (n, 4)) - 0.5)


def forward(params: Any, x: Any) -> Any:
    return scaled(jnp.square(x @ params).sum(axis=-1) - 1.0)


def loss(f: Any, y: Any) -> Any:
    return jnp.maximum(0.0, scaled(1.0) - y * f)


def schedule(step: Any) -> Any:
    return scaled(1.0)


PLACES = {
    "inputs": (pl.Parity(6, 2, inputs=inputs), pl.Learner(pl.MLP(3))),
    "network": (pl.Parity(6, 2), pl.Learner(pl.Network(make, forward))),
    "loss": (pl.Parity(6, 2), pl.Learner(pl.MLP(3), loss=loss)),
    "schedule": (pl.Parity(6, 2), pl.Learner(pl.MLP(3), optimiser=pl.SGD(schedule=schedule))),
    "all": (pl.Parity(6, 2, inputs=inputs),
            pl.Learner(pl.Network(make, forward), loss=loss, optimiser=pl.SGD(schedule=schedule))),
}
PROTOCOL = pl.Protocol(max_steps=30, eval_every=10, eval_size=16)


def measured(place: str, **options: Any) -> list[Any]:
    """What can be told of ten runs."""
    result = pl.measure(*PLACES[place], PROTOCOL, runs=10, engine="jax", **options)
    return [result.setup.id, result.records.t_c.tolist(), [float(each).hex() for each in result.records.loss]]


def drawn(place: str) -> list[str]:
    """The losses of a few training curves."""
    curves = pl.curves(pl.Setup(*PLACES[place], PROTOCOL), steps=[0, 5], runs=range(2), engine="jax")
    return [float(each).hex() for each in curves.loss.ravel()]
