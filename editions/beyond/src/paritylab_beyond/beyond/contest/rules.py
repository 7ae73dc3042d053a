"""Optimisers that the engines have not: three of optax, and Shampoo, which optax has not either.

They train on the ``jax`` engine. optax is imported when one of its rules is made, so everything else works without.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from paritylab.errors import InvalidInput
from paritylab.setups.optimisers import Optax

ROOT_STEPS = 20
RIDGE = 1e-6


class Rule(NamedTuple):
    """A gradient transformation, as optax has them."""

    init: Any
    update: Any


def _optax() -> Any:
    try:
        import optax
        import optax.contrib
    except ImportError as error:
        raise InvalidInput("this optimiser is one of optax, which is not installed: pip install optax") from error
    return optax


def muon() -> Optax:
    """Orthogonalised momentum for matrices, Adam at the same rate for vectors; no decay."""
    return Optax(transformation=_optax().contrib.muon(1.0, weight_decay=0.0, adam_weight_decay=0.0))


def adafactor() -> Optax:
    """With factored second moments for every matrix, and steps in proportion to the size of what they change."""
    return Optax(transformation=_optax().adafactor(1.0, min_dim_size_to_factor=2))


def schedule_free() -> Optax:
    """Schedule-free AdamW without decay, checked where it takes its gradients (y in its authors' notation)."""
    return Optax(transformation=scaled(_optax().contrib.schedule_free_adamw(1.0)))


def scaled(inner: Any) -> Rule:
    """A rule at rate 1 whose updates may be multiplied by any rate, though it looks at params.

    Params are start + rate u; the rule is shown u alone, which is right for one that steps by the gradient, wherever
    it starts. So all rates are one program.
    """

    def init(params: Any) -> Any:
        u = jax.tree.map(jnp.zeros_like, params)
        return inner.init(u), u

    def update(gradient: Any, state: Any, params: Any = None) -> tuple[Any, Any]:
        inside, u = state
        updates, inside = inner.update(gradient, inside, u)
        return updates, (inside, jax.tree.map(jnp.add, u, updates))

    return Rule(init, update)


def shampoo() -> Optax:
    """One-sided: L^(-1/2) G with L the sum of G G', on the shorter side of a matrix; Adagrad for vectors."""

    def init(params: Any) -> Any:
        return jax.tree.map(lambda p: jnp.zeros((min(p.shape),) * 2 if p.ndim == 2 else p.shape, p.dtype), params)

    def update(gradient: Any, state: Any, params: Any = None) -> tuple[Any, Any]:
        sums = jax.tree.map(lambda g, s: s + _outer(g), gradient, state)
        return jax.tree.map(_preconditioned, gradient, sums), sums

    return Optax(transformation=Rule(init, update))


def _outer(gradient: Any) -> Any:
    if gradient.ndim != 2:
        return gradient * gradient
    return gradient @ gradient.T if gradient.shape[0] <= gradient.shape[1] else gradient.T @ gradient


def _preconditioned(gradient: Any, sums: Any) -> Any:
    """The update: minus the gradient, so scaled."""
    if gradient.ndim != 2:
        return -gradient / jnp.sqrt(sums + 1e-30)
    root = inverse_root(sums)
    return -(root @ gradient if gradient.shape[0] <= gradient.shape[1] else gradient @ root)


def inverse_root(matrix: Any) -> Any:
    """(A + ridge)^(-1/2) of a positive semi-definite A by coupled Newton steps: products alone, which batch well.

    The ridge is RIDGE times the trace. M stays A X^2; both go to their limits, the identity and the root.
    """
    identity = jnp.eye(matrix.shape[0], dtype=matrix.dtype)
    size = jnp.trace(matrix) + 1e-30
    scale = 1.5 / size
    x, m = identity * jnp.sqrt(scale), (matrix + RIDGE * size * identity) * scale

    def step(pair: tuple[Any, Any], _: None) -> tuple[tuple[Any, Any], None]:
        x, m = pair
        t = 1.5 * identity - 0.5 * m
        return (x @ t, t @ t @ m), None

    return jax.lax.scan(step, (x, m), None, length=ROOT_STEPS)[0][0]
