"""The JAX engine's slots: their state, how runs enter them and how updates move them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from paritylab.engines.gradient import make_step
from paritylab.engines.starts import initial_params
from paritylab.engines.work import Rows
from paritylab.later import jax, jnp
from paritylab.setups.setup import Setup

EMPTY, ACTIVE = -2, -1  # beside the final statuses SOLVED, CENSORED, DIVERGED


class Slots(NamedTuple):
    """The state of all slots; every leaf has a leading axis of slots."""

    params: Any
    optimiser: Any
    sample: Any  # the finite training sample, or ()
    key: Any
    lr: Any
    noise: Any
    flip: Any
    mask: Any
    max_steps: Any
    step: Any
    streak: Any
    status: Any
    tag: Any


class Moves(NamedTuple):
    """Pure functions of one program: ``fresh(rows)`` completes entering rows, the others train.

    ``until_check(slots)`` goes on to the next check, ``by(slots, updates)`` makes so many updates, any number.
    """

    fresh: Callable[[Slots], Slots]
    until_check: Callable[[Slots], Slots]
    by: Callable[[Slots, Any], Slots]


def entering(program: Setup, rows: Rows, count: int) -> Slots:
    """Rows as slots, repeated to ``count`` of them so that few shapes are compiled; in NumPy, which compiles none."""
    pad = np.resize(np.arange(len(rows)), count)
    return Slots(
        params=initial_params(program, rows.key[pad], chunk=count),
        optimiser=(),
        sample=(),
        key=rows.key[pad],
        lr=rows.lr[pad],
        noise=rows.noise[pad],
        flip=rows.flip[pad],
        mask=rows.mask[pad],
        max_steps=rows.max_steps[pad].astype(np.int32),
        step=np.zeros(count, np.int32),
        streak=np.zeros(count, np.int32),
        status=np.full(count, ACTIVE, np.int32),
        tag=rows.tag[pad].astype(np.int32),
    )


def make_moves(program: Setup) -> Moves:
    """How the slots of a program move."""
    step, make_sample = make_step(program)

    def fresh(rows: Slots) -> Slots:
        return rows._replace(
            optimiser=jax.vmap(program.learner.optimiser.start)(rows.params),
            sample=jax.vmap(make_sample)(rows.key, rows.flip, rows.mask),
        )

    def until_check(state: Slots) -> Slots:
        """``eval_every`` updates of every active slot, or what it has left; no blocks that nobody needs."""
        left = jnp.where(state.status == ACTIVE, state.max_steps - state.step, 0)
        updates = jnp.minimum(program.protocol.eval_every, left.max())
        # A fixed number of updates: a GPU then need not ask the host whether to go on.
        return in_blocks(state, updates, lambda done: step.block)

    def by(state: Slots, updates: Any) -> Slots:
        return in_blocks(state, updates, lambda done: jnp.minimum(step.block, updates - done))

    def in_blocks(state: Slots, updates: Any, size: Callable[[Any], Any]) -> Slots:
        """At least ``updates`` updates of every active slot in blocks, which share an order; ``size(done)`` of each."""

        def block(carry: Any) -> Any:
            done, state = carry
            orders = jax.vmap(step.orders)(state.key, state.step)
            return done + size(done), jax.lax.fori_loop(0, size(done), functools.partial(once, orders), state)

        return jax.lax.while_loop(lambda carry: carry[0] < updates, block, (jnp.int32(0), state))[1]

    def once(orders: Any, i: Any, state: Slots) -> Slots:
        """One update of every slot that is active and below its step limit."""
        going = (state.status == ACTIVE) & (state.step < state.max_steps)
        order = jax.tree.map(lambda o: o[:, i], orders)
        params, optimiser = jax.vmap(step.update)(state, order)
        keep = functools.partial(select, going)
        return state._replace(
            params=jax.tree.map(keep, params, state.params),
            optimiser=jax.tree.map(keep, optimiser, state.optimiser),
            step=state.step + going,
        )

    return Moves(fresh, until_check, by)


def select(condition: Any, yes: Any, no: Any) -> Any:
    """``where`` over the leading axis."""
    return jnp.where(condition.reshape((-1,) + (1,) * (yes.ndim - 1)), yes, no)
