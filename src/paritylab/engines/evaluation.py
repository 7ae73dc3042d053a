"""Checks of accuracy for the JAX engine, with exact screening.

At a check only one question matters: does a run make more errors on its evaluation sample than allowed? Almost every
run answers with its first few inputs. The others, few, are gathered and walk through the sample in blocks until they
fail or reach its end; the answer is the one a full evaluation would give, up to rounding. So a run that seems to have
ended is evaluated in full, as many runs at a time as walk, and that evaluation has the last word.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from paritylab import rng
from paritylab.later import jax, jnp
from paritylab.setups.checks import BLOCK, FIRST
from paritylab.setups.losses import Loss
from paritylab.setups.setup import Setup


class Score(NamedTuple):
    """Outputs, labels, where they agree, and losses: (inputs,), or (inputs, outputs) where there are several."""

    f: Any
    y: Any
    right: Any
    losses: Any

    @property
    def all_right(self) -> Any:
        """Which inputs are right in all outputs."""
        return self.right if self.right.ndim == 1 else jnp.all(self.right, axis=1)

    @property
    def mean_losses(self) -> Any:
        """One loss for each input."""
        return self.losses if self.losses.ndim == 1 else jnp.mean(self.losses, axis=1)


class Parts(NamedTuple):
    """Sums over a sample, apart for each task or output: (slots, parts); no losses where a loss is that of them all."""

    errors: Any
    losses: Any
    f: Any
    signs: Any
    products: Any


class Evaluation:
    """The checks of one program with a given number of slots, by the loss that is trained unless said."""

    def __init__(self, program: Setup, slots: int, loss: Loss | None = None) -> None:
        self._program = program
        self._loss = loss or program.learner.loss
        self._size = program.protocol.eval_size
        self._allowed = program.protocol.allowed_errors
        self._tasks = program.problem.tasks
        sliceable = program.problem.packed  # the first inputs are then a part of the first block
        self._screens = sliceable and self._allowed < FIRST // 2 and self._size > FIRST
        self.rows = max(1, slots // 8)  # that are evaluated in full at a time
        self._gathered = self.rows if self._screens else slots

    def passed(self, slots: Any, asked: Any) -> Any:
        """Which of the ``asked`` slots make at most the allowed number of errors."""
        if self._program.protocol.until_loss is not None:
            return asked & jax.lax.cond(jnp.any(asked), lambda: self._fitted(slots), lambda: jnp.zeros_like(asked))
        if self._screens:
            # In a branch of its own: fused with its surroundings, XLA can take minutes to compile it.
            errors = jax.lax.cond(
                jnp.any(asked),
                lambda: jax.vmap(lambda slot: self._errors(slot, 0, FIRST)[0])(slots),
                lambda: self._none(asked.shape[0], jnp.int32),
            )
            asked = asked & self._few(errors)
        count = asked.shape[0]

        def body(carry: Any) -> Any:
            passed, left = carry
            (where,) = jnp.nonzero(left, size=self._gathered, fill_value=count)
            chosen = jax.tree.map(lambda leaf: leaf[jnp.minimum(where, count - 1)], slots)
            good = self._walk(chosen, where < count)
            return passed.at[where].set(good, mode="drop"), left.at[where].set(False, mode="drop")

        passed, _ = jax.lax.while_loop(lambda carry: jnp.any(carry[1]), body, (jnp.zeros_like(asked), asked))
        return passed

    def _walk(self, slots: Any, asked: Any) -> Any:
        """Blocks of the sample, until every asked slot has failed or the sample ends."""

        def going(carry: Any) -> Any:
            block, errors = carry
            return (block * BLOCK < self._size) & jnp.any(asked & self._few(errors))

        def body(carry: Any) -> Any:
            block, errors = carry
            more = jax.vmap(lambda slot: self._errors(slot, block, BLOCK)[0])(slots)
            return block + 1, errors + more

        start = (jnp.int32(0), self._none(asked.shape[0], jnp.int32))
        _, errors = jax.lax.while_loop(going, body, start)
        return asked & self._few(errors)

    def full(self, slots: Any) -> tuple[Any, Any, Any]:
        """Of each slot over the whole sample: whether it makes at most the allowed errors, accuracy and mean loss."""
        errors, losses = self.totals(slots)
        few = self._few(errors) if self._program.protocol.until_loss is None else self._fitted(slots)
        if self._tasks:
            errors, losses = errors.sum(-1), losses.sum(-1)
        accuracy = jnp.maximum(1 - errors / self._size, 0.0)  # XLA multiplies by 1 / size: 1000 errors are more
        return few, accuracy, losses / self._size

    def _fitted(self, slots: Any) -> Any:
        """Whether the loss of each slot on its training sample is below the one that is asked for."""
        _, losses, _ = self.train_totals(slots)
        return losses / self._program.problem.examples < self._program.protocol.until_loss

    def totals(self, slots: Any) -> tuple[Any, Any]:
        """Errors and summed loss of each slot over the whole sample; with tasks, of each task: (slots, tasks)."""
        return self._totals(slots, self._size, lambda slot, block: self._errors(slot, block, BLOCK))

    def report(self, slots: Any) -> tuple[tuple[Any, Any], Parts]:
        """The totals, and what each slot does apart for each task or output."""

        def of_block(slot: Any, block: Any) -> tuple[tuple[Any, Any], Parts]:
            score, inside = self._scored(slot, block, BLOCK)
            signs, summed = jnp.sign(score.y), functools.partial(self._sum_apart, block, inside)
            losses = summed(score.losses) if score.losses.ndim == score.f.ndim else None
            apart = Parts(summed(~score.right), losses, summed(score.f), summed(signs), summed(score.f * signs))
            return self._counted(score, inside, block), apart

        return self._totals(slots, self._size, of_block)

    def train_totals(self, slots: Any) -> tuple[Any, Any, Any]:
        """Errors and summed loss of each slot over its finite training sample, with the labels it trains on.

        Where there are several outputs, also the errors of each: (slots, outputs).
        """
        size = self._program.problem.examples

        def errors(slot: Any, block: Any) -> tuple[Any, Any, Any]:
            index = block * BLOCK + jnp.arange(BLOCK)
            drawn, y = (part[jnp.minimum(index, size - 1)] for part in slot.sample)
            score, inside = self._score(slot, drawn, y), index < size
            apart = None if score.right.ndim == 1 else jnp.sum(inside[:, None] & ~score.right, axis=0)
            return jnp.sum(inside & ~score.all_right), jnp.sum(jnp.where(inside, score.mean_losses, 0.0)), apart

        return self._totals(slots, size, errors)

    def _totals(self, slots: Any, size: int, of_block: Any) -> Any:
        """The sums of ``of_block(slot, block)`` over all blocks, for each slot."""

        def all_of(block: Any) -> Any:
            return jax.vmap(lambda slot: of_block(slot, block))(slots)

        start = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), jax.eval_shape(all_of, jnp.int32(0)))
        return jax.lax.fori_loop(0, -(-size // BLOCK), lambda block, done: jax.tree.map(jnp.add, done, all_of(block)),
                                 start)

    def _errors(self, slot: Any, block: Any, size: int) -> tuple[Any, Any]:
        """Errors and summed loss of one slot on a block of its sample."""
        return self._counted(*self._scored(slot, block, size), block)

    def _counted(self, score: Score, inside: Any, block: Any) -> tuple[Any, Any]:
        wrong, losses = inside & ~score.all_right, jnp.where(inside, score.mean_losses, 0.0)
        if not self._tasks:
            return jnp.sum(wrong), jnp.sum(losses)
        own = self._own(block, len(inside))
        return jnp.sum(own & wrong[:, None], axis=0), jnp.sum(jnp.where(own, losses[:, None], 0.0), axis=0)

    def _scored(self, slot: Any, block: Any, size: int) -> tuple[Score, Any]:
        """How one slot does on a block of its sample, and which inputs of the block are in it."""
        drawn = self._drawn(slot, block, size)
        inside = block * size + jnp.arange(size) < self._size
        return self._score(slot, drawn, self._program.problem.labels(drawn, slot.mask)), inside

    def _own(self, block: Any, size: int) -> Any:
        """(size, tasks): which inputs of a block are of which task."""
        return ((block * size + jnp.arange(size)) % self._tasks)[:, None] == jnp.arange(self._tasks)

    def _sum_apart(self, block: Any, inside: Any, values: Any) -> Any:
        """Values of the inputs in a block, (size,) or (size, outputs), summed for each task or output."""
        columns = values if values.ndim == 2 else values[:, None]
        kept = inside[:, None] & self._own(block, len(inside)) if self._tasks else inside[:, None]
        return jnp.sum(jnp.where(kept, columns, jnp.zeros((), columns.dtype)), axis=0)

    def _drawn(self, slot: Any, block: Any, size: int) -> Any:
        """A block of one slot's sample."""
        fresh = self._program.protocol.fresh
        key = jax.random.fold_in(rng.stream(slot.key, rng.EVALUATION), slot.step if fresh else 0)
        return self._program.problem.draw_block(key, block, size)

    def inputs(self, slot: Any) -> tuple[Any, Any]:
        """The whole sample of one slot as its network sees it, and its labels."""
        problem, blocks = self._program.problem, jnp.arange(-(-self._size // BLOCK))
        drawn = jax.vmap(lambda block: self._drawn(slot, block, BLOCK))(blocks)
        drawn = drawn.reshape(-1, *drawn.shape[2:])[: self._size]
        return problem.signs(drawn, slot.mask), problem.labels(drawn, slot.mask)

    def _score(self, slot: Any, drawn: Any, y: Any) -> Score:
        """How one slot does on drawn inputs; f = 0 and NaN are wrong."""
        learner, within = self._program.learner, self._program.protocol.within
        x = self._program.problem.signs(drawn, slot.mask)
        f = learner.network.apply(slot.params, x)
        right = f * y > 0 if within is None else jnp.abs(f - y) <= within
        return Score(f, y, right, self._loss(f, y, slot.params, x))

    def _few(self, errors: Any) -> Any:
        """Whether slots make at most the allowed errors; with tasks, in each that is judged."""
        if not self._tasks:
            return errors <= self._allowed
        allowed = [self._program.protocol.allowed_of(size) for size in task_sizes(self._size, self._tasks)]
        judged = np.array(self._program.problem.judged)
        return jnp.all(errors[..., judged] <= np.array(allowed)[judged], axis=-1)

    def _none(self, count: int, dtype: Any) -> Any:
        return jnp.zeros((count, self._tasks) if self._tasks else count, dtype)


def task_sizes(size: int, tasks: int) -> list[int]:
    """How many of ``size`` inputs, in turn, are of each task.

    >>> task_sizes(8, 3)
    [3, 3, 2]
    """
    return [-(-(size - task) // tasks) for task in range(tasks)]
