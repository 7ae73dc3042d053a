"""One update of one run, for the JAX engine: its batch, its gradient, its optimiser."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from paritylab import rng
from paritylab.later import jax, jnp
from paritylab.setups.networks import takes_key
from paritylab.setups.objective import Batch, Objective
from paritylab.setups.setup import Setup

ORDER_POSITIONS = 2**16
MOST_UPDATES = 64
MOST_ORDERED = 1024


class Step(NamedTuple):
    """One update, ``update(slot, order)``.

    ``orders(key, step)`` says which examples the next ``block`` updates use; updates are made in such blocks, a whole
    number of them between two checks, because shuffling a sample costs more than an update.
    """

    block: int
    orders: Callable[[Any, Any], Any]
    update: Callable[[Any, Any], Any]


def make_step(program: Setup) -> tuple[Step, Callable[..., Any]]:
    """The update of a program, and the function that draws a run's finite sample (``()`` for an online stream)."""
    problem, learner = program.problem, program.learner
    optimiser, network, batch = learner.optimiser, learner.network, learner.batch
    noisy, random = problem.noisy, takes_key(network)
    objective = Objective(program)

    def flipped(labels: Any, key: Any, flip: Any) -> Any:
        return jnp.where(jax.random.bits(key, labels.shape) < flip, -labels, labels) if noisy else labels

    def online(slot: Any, order: Any) -> tuple[Any, Any]:
        drawn = problem.draw(jax.random.fold_in(rng.stream(slot.key, rng.DATA), slot.step), batch, slot.step)
        label_key = jax.random.fold_in(rng.stream(slot.key, rng.LABELS), slot.step)
        return drawn, flipped(problem.labels(drawn, slot.mask), label_key, problem.flip_at(slot.step, slot.flip))

    def make_sample(key: Any, flip: Any, mask: Any) -> Any:
        if problem.sample is None:
            return ()
        root = rng.stream(key, rng.SAMPLE)
        drawn = problem.draw(jax.random.fold_in(root, 0), problem.sample)
        return drawn, flipped(problem.labels(drawn, mask), jax.random.fold_in(root, 1), flip)

    def finite(slot: Any, order: Any) -> tuple[Any, Any]:
        return slot.sample[0][order], slot.sample[1][order]

    def seen(slot: Any, order: Any) -> Batch:
        """The slot's batch as the network sees it."""
        drawn, labels = (online if problem.sample is None else finite)(slot, order)
        x = problem.signs(drawn, slot.mask)
        if problem.packed and jax.default_backend() != "cpu":
            # Signs fit in bfloat16; storing them so halves the traffic that limits small networks on a GPU.
            x = jax.lax.optimization_barrier(x.astype(jnp.bfloat16)).astype(jnp.float32)
        key = jax.random.fold_in(rng.stream(slot.key, rng.FORWARD), slot.step) if random else None
        return Batch(x, labels, slot.step, key)

    def update(slot: Any, order: Any) -> tuple[Any, Any]:
        loss = objective.at(seen(slot, order))
        value, g = jax.value_and_grad(loss)(slot.params)
        if optimiser.noise > 0:
            g = add_noise(g, jax.random.fold_in(rng.stream(slot.key, rng.NOISE), slot.step), slot.noise)
        scheduled = slot.lr * (optimiser.schedule(slot.step) * problem.rate_at(slot.step))
        lr = jax.tree.map(lambda rate: scheduled * rate, optimiser.layer_rates(slot.params))
        told = {"value": value, "grad": g, "value_fn": loss}
        more = {name: told[name] for name in optimiser.sees}
        return optimiser.move(g, slot.optimiser, slot.params, lr, slot.step, **more)

    every = program.protocol.eval_every
    most = max(1, min(every, MOST_UPDATES if problem.sample is None else MOST_ORDERED, ORDER_POSITIONS // batch))
    block = max(size for size in range(1, most + 1) if every % size == 0)
    return Step(block, make_orders(program, block), update), make_sample


def add_noise(gradient: Any, key: Any, tau: Any) -> Any:
    """Independent N(0, tau^2) on every coordinate; each array of the tree draws from its own key."""
    leaves, tree = jax.tree.flatten(gradient)
    noised = [g + tau * jax.random.normal(jax.random.fold_in(key, i), g.shape) for i, g in enumerate(leaves)]
    return jax.tree.unflatten(tree, noised)


def make_orders(program: Setup, updates: int) -> Callable[[Any, Any], Any]:
    """``orders(key, step)``: for each of the next ``updates`` updates, its examples' positions in the sample.

    With replacement each update draws afresh. Otherwise the updates walk through an endless row of permutations, one
    for each pass over the sample.
    """
    problem, batch = program.problem, program.learner.batch
    m = problem.examples

    def online(key: Any, step: Any) -> Any:
        return ()

    def with_replacement(key: Any, step: Any) -> Any:
        root = rng.stream(key, rng.ORDER)
        draw = jax.vmap(lambda t: jax.random.bits(jax.random.fold_in(root, t), (batch,)) % m)
        return draw(step + jnp.arange(updates))

    def with_short_last(key: Any, step: Any) -> Any:
        root, each = rng.stream(key, rng.ORDER), -(-m // batch)
        shuffle = jax.vmap(lambda e: jnp.argsort(jax.random.bits(jax.random.fold_in(root, e), (m,)), stable=True))
        orders = shuffle(step // each + jnp.arange((updates - 1) // each + 2))
        passed, done = jnp.divmod(step + jnp.arange(updates), each)
        places = jnp.minimum(done[:, None] * batch + jnp.arange(batch), m - 1)
        return orders[(passed - step // each)[:, None], places]

    def in_passes(key: Any, step: Any) -> Any:
        root = rng.stream(key, rng.ORDER)
        passes = updates * batch // m + 2
        first, offset = jnp.divmod(step * batch, m)
        shuffle = jax.vmap(lambda e: jnp.argsort(jax.random.bits(jax.random.fold_in(root, e), (m,)), stable=True))
        row = shuffle(first + jnp.arange(passes)).reshape(-1)
        return jax.lax.dynamic_slice(row, (offset,), (updates * batch,)).reshape(updates, batch)

    if not m:
        return online
    if problem.short_last:
        return with_short_last
    return with_replacement if problem.replacement else in_passes
