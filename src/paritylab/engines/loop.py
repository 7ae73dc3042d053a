"""The one training loop: slots take runs from the queue, finished runs leave as Records."""

from __future__ import annotations

from collections.abc import Iterator

from paritylab.engines.interface import Pool
from paritylab.engines.work import Outcomes, Queue


def train(queue: Queue, pool: Pool) -> Iterator[Outcomes]:
    """Train every run of the queue, yielding outcomes as they come; a pause between two is a fraction of a second."""
    while len(queue) or pool.busy:
        if len(queue) and pool.room:
            pool.load(queue.take(pool.room))
        yield pool.advance(more=len(queue) > 0)
