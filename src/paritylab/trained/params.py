"""Params by name: the arrays of a network's own structure as a flat dict, and back; and what they compute."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import numpy as np

from paritylab.engines.jax_engine import accurate_products
from paritylab.errors import require
from paritylab.later import jax
from paritylab.setups.setup import Setup

MOST_NUMBERS = 2**24
"""Of hidden units over all networks and inputs that are computed at a time."""


def named(tree: Any) -> dict[str, np.ndarray]:
    """The arrays of params by their places, such as ``0.w``: layer 0, array ``w``.

    >>> sorted(named([{"w": np.zeros((3, 2)), "b": np.zeros(2)}, {"w": np.zeros((2, 1))}]))
    ['0.b', '0.w', '1.w']
    """
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    found = {_name(path): np.asarray(leaf) for path, leaf in leaves}
    require(len(found) == len(leaves), "networks are kept by the places of their arrays, which must have other names")
    return found


@functools.lru_cache(maxsize=64)
def shapes(setup: Setup) -> Any:
    """Shapes and kinds of a Setup's params, in the network's own structure."""
    return jax.eval_shape(setup.params, jax.random.key(0))


def size_of(setup: Setup) -> int:
    """Bytes of one network's params."""
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(shapes(setup)))


def tree_of(setup: Setup, params: Mapping[str, np.ndarray]) -> Any:
    """Named params, with any leading axes, in the network's own structure."""
    structure = shapes(setup)
    return jax.tree_util.tree_map_with_path(lambda path, _: params[_name(path)], structure)


def check(setup: Setup, params: Mapping[str, np.ndarray], leading: tuple[int, ...]) -> None:
    """Refuse params that are not those of the Setup's network, with these leading axes."""
    wanted = {_name(path): leaf for path, leaf in jax.tree_util.tree_leaves_with_path(shapes(setup))}
    for name in {**wanted, **params}:
        there = params.get(name)
        require(name in wanted, f"the network of this Setup has no array {name!r}; it has: {', '.join(wanted)}")
        right = (*leading, *wanted[name].shape)
        require(there is not None and there.shape == right and there.dtype == wanted[name].dtype,
                f"array {name!r} must be {wanted[name].dtype} of shape {right},"
                f" not {'absent' if there is None else f'{there.dtype} of shape {there.shape}'}")


def outputs(setup: Setup, params: Mapping[str, np.ndarray], x: Any) -> np.ndarray:
    """What networks, by a leading axis of params, make of the rows of x: (networks, rows), or with outputs after."""
    rows, n = np.asarray(x, np.float32), setup.problem.n
    require(rows.ndim >= 1 and rows.shape[-1] == n, f"inputs must be rows of {n} numbers, not of shape {rows.shape}")
    flat = rows.reshape(-1, n)
    tree, count = tree_of(setup, params), len(next(iter(params.values())))
    units = 1 + sum(leaf.size for leaf in params.values()) // max(1, count * n)
    some = min(count, max(1, MOST_NUMBERS // (units * max(1, len(flat)))))
    apply = _applier(setup.program)
    parts = []
    for first in range(0, count, max(1, some)):
        which = np.resize(np.arange(first, min(first + some, count)), some)  # one shape is compiled
        with accurate_products():
            parts.append(np.asarray(apply(jax.tree.map(lambda leaf, which=which: leaf[which], tree), flat)))
    made = np.concatenate(parts)[:count] if parts else np.zeros((0, len(flat)), np.float32)
    return made.reshape(count, *rows.shape[:-1], *made.shape[2:])


@functools.lru_cache(maxsize=32)
def _applier(program: Setup) -> Any:
    """The compiled function from params with a leading axis, and rows, to outputs."""
    network = program.learner.network
    each = jax.vmap(lambda params, x: network.apply(params, x), in_axes=(0, None))
    return jax.jit(each)


def _name(path: Any) -> str:
    return jax.tree_util.keystr(path, simple=True, separator=".") or "params"
