"""A decoder Transformer of one block that reads a string of bits, as in Section 5.4 and its released code."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from paritylab import Network


def decoder(d: int, heads: int) -> Network:
    """One pre-norm block of width d, causal attention, and a linear read-out of what all positions put out."""
    return Network(partial(make, d=d), partial(forward, heads=heads))


def make(key: Any, n: int, d: int) -> Any:
    """Params as PyTorch starts linear layers; weights that end a branch are divided by the root of their number, 2."""
    keys = iter(jax.random.split(key, 6))

    def linear(fan_in: int, fan_out: int, divisor: float = 1.0) -> dict[str, Any]:
        most = fan_in**-0.5
        w, b = (jax.random.uniform(each, shape, minval=-most, maxval=most) for each, shape in
                zip(jax.random.split(next(keys)), ((fan_in, fan_out), (fan_out,)), strict=True))
        return {"w": w / divisor, "b": b}

    norm = {"gain": jnp.ones(d), "shift": jnp.zeros(d)}
    return {"embed": linear(n + 2, d), "norms": [norm] * 3, "queries, keys, values": linear(d, 3 * d),
            "out": linear(d, d, 2**0.5), "up": linear(d, 4 * d), "down": linear(4 * d, d, 2**0.5),
            "read": linear(n * d, 1)}


def forward(params: Any, x: Any, heads: int) -> Any:
    """Inputs (batch, n), -1 for a bit that is on, to outputs (batch,)."""
    def dense(name: str, z: Any) -> Any:
        return z @ params[name]["w"] + params[name]["b"]

    before_attention, before_mlp, last = params["norms"]
    z = jax.nn.relu(embedded(params["embed"], x))
    z = z + dense("out", attention(dense("queries, keys, values", normed(before_attention, z)), heads))
    z = z + dense("down", jax.nn.relu(dense("up", normed(before_mlp, z))))
    return dense("read", normed(last, z).reshape(len(x), -1))[:, 0]


def embedded(layer: Any, x: Any) -> Any:
    """A linear map of [bit is 0, bit is 1, one-hot position], which picks rows of its matrix: (batch, n, d)."""
    off, on, *_ = layer["w"]
    position = layer["w"][2:] + layer["b"]
    return position + jnp.where(x[..., None] > 0, off, on)


def attention(z: Any, heads: int) -> Any:
    """Causal attention, from queries, keys and values in a row (batch, n, 3 d)."""
    batch, n, width = z.shape
    q, k, v = (part.reshape(batch, n, heads, -1) for part in jnp.split(z, 3, axis=-1))
    return jax.nn.dot_product_attention(q, k, v, is_causal=True).reshape(batch, n, width // 3)


def normed(layer: Any, z: Any, eps: float = 1e-5) -> Any:
    centred = z - z.mean(-1, keepdims=True)
    return centred / jnp.sqrt(jnp.mean(centred**2, -1, keepdims=True) + eps) * layer["gain"] + layer["shift"]
