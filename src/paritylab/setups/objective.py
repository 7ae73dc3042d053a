"""What training moves against: the loss of a batch, as a function of params."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from paritylab.later import jax, jnp
from paritylab.setups.problems import AnyProblem, Outputs

if TYPE_CHECKING:
    from paritylab.setups.setup import Setup


class Batch(NamedTuple):
    """What an update sees: inputs, labels, the step, and a key where the forward pass is random."""

    x: Any
    labels: Any
    step: Any
    key: Any = None


class Objective:
    """The loss of batches; examples that do not count at their step are left out."""

    def __init__(self, setup: Setup) -> None:
        self._problem, self._learner = setup.problem, setup.learner
        self._counted = counted_of(setup.problem, setup.learner.batch)

    def at(self, batch: Batch) -> Callable[[Any], Any]:
        """The loss of a batch as a function of params; a pytree, which optimisers can be given."""
        return jax.tree_util.Partial(self._of, batch)

    def _of(self, batch: Batch, params: Any) -> Any:
        learner = self._learner
        random = {} if batch.key is None else {"key": batch.key}
        f = learner.network.apply(params, batch.x, **random)
        if self._counted is not None:
            return jnp.mean(jnp.where(self._counted, learner.loss(f, batch.labels, params, batch.x), 0.0))
        return self._mean(learner.loss.each(f, batch.labels, params, batch.x), batch.step)

    def _mean(self, losses: Any, step: Any) -> Any:
        if self._problem.even:
            return jnp.mean(losses)
        count = self._problem.batch_at(step, self._learner.batch)
        return jnp.sum(jnp.where(jnp.arange(self._learner.batch) < count, losses, 0.0)) / count


def counted_of(problem: AnyProblem, batch: int) -> np.ndarray | None:
    """Which outputs count in which examples of a batch, (batch, outputs); None where all do."""
    target = getattr(problem, "target", None)
    if not isinstance(target, Outputs) or target.counted is None:
        return None
    found = np.arange(batch)[:, None] < np.array(target.counts(batch))
    return found if found.shape[1] > 1 else found[:, 0]
