"""The one training loop: slots take runs from the queue, finished runs leave as Records."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from paritylab.engines.work import Outcomes, Queue, Rows


class Pool(Protocol):
    """An engine at work on one program: a number of slots, each training one run."""

    @property
    def room(self) -> int:
        """How many runs can be loaded now."""
        ...

    @property
    def busy(self) -> bool:
        """Whether any run is under way."""
        ...

    @property
    def model_steps(self) -> int:
        """Updates done so far, over all runs."""
        ...

    def load(self, rows: Rows) -> None:
        """Put runs into free slots."""
        ...

    def advance(self, more: bool) -> Outcomes:
        """Train for a moment (well under a second); ``more`` says whether other runs wait for slots."""
        ...


def train(queue: Queue, pool: Pool) -> Iterator[Outcomes]:
    """Train every run of the queue, yielding outcomes as they come; a pause between two is a fraction of a second."""
    while len(queue) or pool.busy:
        if len(queue) and pool.room:
            pool.load(queue.take(pool.room))
        yield pool.advance(more=len(queue) > 0)
