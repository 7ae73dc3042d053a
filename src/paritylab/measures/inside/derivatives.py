"""Losses of a network as functions of all its params in one row, in double precision, with their derivatives.

Kinks have the derivatives that training has.
"""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from paritylab.aliases import Floats
from paritylab.measures.inside.outputs import Judged
from paritylab.measures.inside.subjects import Subjects
from paritylab.measures.inside.units import at
from paritylab.setups.losses import Loss, LossLike
from paritylab.setups.setup import Setup

ROWS = 2**13
"""Inputs whose derivatives are computed at once."""


class Examples(NamedTuple):
    """Inputs and labels in blocks of one size, with weights that sum to 1; 0 fills up the last block."""

    x: Floats
    y: Floats
    weights: Floats


def examples(judged: Judged, i: int, which: np.ndarray | None = None) -> Examples:
    """Those that network number i is judged by, or some of them."""
    places = judged.places
    numbers = np.arange(places.count) if which is None else which
    size = min(ROWS, len(numbers))
    count = -(-len(numbers) // size) * size
    some = np.resize(numbers, count)
    weights = np.where(np.arange(count) < len(numbers), 1 / len(numbers), 0.0)
    shape = count // size, size
    return Examples(at(places, some).astype(np.float64).reshape(*shape, places.n),
                    judged.labels[i][some].astype(np.float64).reshape(shape), weights.reshape(shape))


class Derivatives(NamedTuple):
    loss: Loss
    product: Any
    """From a row of params, a direction and examples to the Hessian's product with the direction."""
    excess: Any
    """From a row of params and examples to the gradient on the target less that on random labels."""


def row(subjects: Subjects, i: int) -> Floats:
    """The params of one network in one row, in double precision."""
    return np.concatenate([np.asarray(leaf, np.float64).reshape(-1) for leaf in jax.tree.leaves(subjects.one(i))])


def derivatives(subjects: Subjects, loss: LossLike | None) -> Derivatives:
    """The compiled derivatives of a loss, or of the one that is trained.

    Call them within :func:`paritylab.measures.precision.double`.
    """
    setup = subjects.setup
    if loss is not None:
        setup = replace(setup, learner=replace(setup.learner, loss=loss)).now()
    return _made(setup.program)


@functools.lru_cache(maxsize=32)
def _made(program: Setup) -> Derivatives:
    network, loss = program.learner.network, program.learner.loss
    shapes, tree = jax.tree.flatten(jax.eval_shape(program.params, jax.random.key(0)))
    ends = np.cumsum([leaf.size for leaf in shapes]).tolist()

    def unravel(theta: Any) -> Any:
        leaves = [theta[end - leaf.size : end].reshape(leaf.shape) for leaf, end in zip(shapes, ends, strict=True)]
        return jax.tree.unflatten(tree, leaves)

    def mean(theta: Any, block: Examples) -> Any:
        params = unravel(theta)
        f = network.apply(params, block.x)
        return (loss.each(f, block.y, params, block.x) * block.weights).sum()

    def excess(theta: Any, block: Examples) -> Any:
        """l(f, y) less the mean of l(f, y) and l(f, -y)."""
        return (mean(theta, block) - mean(theta, block._replace(y=-block.y))) / 2

    def added(function: Any) -> Any:
        """The sum of a function over blocks."""

        def total(theta: Any, rest: Any, blocks: Examples) -> Any:
            def add(sum_: Any, block: Examples) -> tuple[Any, None]:
                return sum_ + function(theta, rest, block), None

            return jax.lax.scan(add, jnp.zeros_like(theta), blocks)[0]

        return jax.jit(total)

    def product(theta: Any, direction: Any, block: Examples) -> Any:
        return jax.jvp(lambda at: jax.grad(mean)(at, block), (theta,), (direction,))[1]

    def gradient(theta: Any, _: Any, block: Examples) -> Any:
        return jax.grad(excess)(theta, block)

    return Derivatives(loss, added(product), added(gradient))
