"""What an engine is. A package adds its own by an entry point of the group ``paritylab.engines`` (docs/how-to)."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from paritylab.engines.work import Outcomes, Queue, Rows
from paritylab.memory import Part
from paritylab.setups.setup import Setup


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


class TracingPool(Pool, Protocol):
    """One that does not judge its runs but records them at given steps."""

    def take_trace(self) -> tuple[dict[str, np.ndarray], Any]:
        """The series by name, and the params if kept, with leading axes (runs, points)."""
        ...


class Engine(Protocol):
    """Something that trains runs.

    It may also have ``arithmetic``, the version of its sums (1 by default; see :mod:`paritylab.engines.arithmetic`),
    and ``compiles``, whether it compiles a program before it trains (no by default).
    """

    name: str
    side_by_side: bool
    """Whether programs gain from being trained at the same time."""
    records_curves: bool
    """Whether it records training curves: it has a tracer, or (``jax``) is the one that needs none."""

    def absence(self) -> str | None:
        """Why it cannot be used on this machine, as the beginning of a sentence; None if it can."""
        ...

    def refusal(self, setup: Setup) -> str | None:
        """Why it cannot train this Setup; None if it can."""
        ...

    def first_choice(self) -> bool:
        """Whether ``auto`` should ask it here, before those after it in the registry."""
        ...

    def label(self) -> str:
        """The name under which its Records are kept: another device may round differently."""
        ...

    def parts(self, program: Setup, runs: int, threads: int | None) -> dict[str, Part]:
        """What training takes of this machine's memory; nothing where the device's own allocator refuses."""
        ...

    def pool(
        self, program: Setup, runs: int, threads: int | None = None, slots: int | None = None, keep_params: bool = False
    ) -> Pool:
        """Slots for so many runs of a program; with ``keep_params`` its Outcomes have final params."""
        ...

    def tracer(
        self, queue: Queue, points: np.ndarray, train: bool, keep_params: bool, threads: int | None,
        stop: float | None = None,
    ) -> TracingPool | None:
        """Slots that record all runs of a queue at these steps; None if it has no tracer.

        Nobody looks at what it records of a run after the first point with a training loss below ``stop``.
        """
        ...
