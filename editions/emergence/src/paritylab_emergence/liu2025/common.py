"""What the claims share: parities of 32 bits learned side by side by one network, and when each of them is learned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from paritylab import MLP, Adam, Curves, Learner, Outputs, Problem, Protocol, Setup
from paritylab.aliases import Floats
from paritylab.claims import Lab, Trial, size
from paritylab.claims.published import table

BITS = 32
LEARNED = 0.99
"""A task is learned where so large a share of the sample is right."""
INSIDE = 0.005
"""A published number lies between our 0.5 % and 99.5 % quantiles where so large a share of runs is on either side."""
TOGETHER = 20
"""So many runs are recorded at a time: what is lost if a machine is."""
EVERY = "Accuracies are taken at every fifth step, where the paper has each."


def setup(supports: Sequence[Sequence[int]], sample: int, counted: Sequence[float] | None = None) -> Setup:
    """Full-batch Adam on a sample of uniform bits, the squared error of each output counted in a share of examples.

    The targets 0 and 1 are labels of 1/2 and -1/2 here, and an output f is 1/2 - f: it starts near 1/2. Squared errors,
    gradients and sides of the threshold are those of the paper, and the law of the start is, which knows no sign.
    """
    problem = Problem(BITS, Outputs(supports, counted), sample=sample, scale=0.5)
    network = MLP(50, inputs="bits", outputs=len(supports))
    learner = Learner(network, init="raised:0.5 torch", loss="square", optimiser=Adam(0.001), batch=sample)
    return Setup(problem, learner, Protocol(eval_size=128))


@dataclass(frozen=True)
class Accuracies:
    """Of each output on the sample, (runs, points, outputs), after ``steps`` (points,) steps."""

    steps: np.ndarray
    values: Floats

    @classmethod
    def of(cls, blocks: Sequence[Curves]) -> Accuracies:
        """Those of runs that were recorded in blocks."""
        found = [curves.train_task_accuracy for curves in blocks]
        return cls(blocks[0].steps, np.concatenate([each for each in found if each is not None]))

    def times(self, threshold: float = LEARNED) -> Floats:
        """(runs, outputs): the first step with at least this accuracy; infinite where there is none."""
        there = self.values >= threshold
        return np.where(there.any(axis=1), self.steps[there.argmax(axis=1)], np.inf)

    def at(self, step: int) -> Floats:
        """(runs, outputs): the accuracies at a recorded step."""
        return self.values[:, int(np.searchsorted(self.steps, step))]


class Skills(Trial):
    """A trial on several parities at once."""

    every = size(5, label="steps from check to check")

    def record(self, lab: Lab, setup: Setup, steps: int, runs: int) -> list[Curves]:
        """Training curves, in blocks of runs."""
        return [lab.curves(setup, steps, self.every, runs=range(first, min(first + TOGETHER, runs)), train=True)
                for first in range(0, runs, TOGETHER)]


def published(figure: str, task: int, share: float | None = None, accuracy: int = 99) -> float:
    """A published time.

    >>> published("2 top, case 1", 2), published("2 bottom", 2, 0.05, accuracy=75)
    (411.0, 413.0)
    """
    (row,) = [row for row in table(__file__, "times").rows(named=True) if row["figure"] == figure
              and row["task"].startswith(str(task)) and (share is None or row["frequency_of_task_2"] == share)]
    return float(row[f"steps_{accuracy}_percent"])


def finite(value: float | np.floating[Any]) -> float | None:
    """A number for tables, which have none that is infinite."""
    return float(value) if np.isfinite(value) else None
