"""What the claims share: four parities and that of all their bits, the networks that learn them, and when they do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from paritylab import Problem, Protocol, Setup, Tasks
from paritylab.aliases import Floats, Interval
from paritylab.claims import Lab, Trial, size
from paritylab.claims.published import Count, table
from paritylab.engines.curves import Curves
from paritylab_emergence.logits import BIT, two_logits

PARTS = 4
LEARNED = 0.1
"""A task is learned where its loss is below so many bits."""
LAST = 100
"""Of so many last steps the smallest loss decides whether a run has converged."""
JUDGED = 2000
"""Fresh examples of each task that a loss is taken on."""
TOGETHER = 20
"""So many runs are recorded at a time: what is lost if a machine is."""
EPS = 1e-5
Row = dict[str, Any]


def problem(bits: int, task_bits: int, alone: bool = False) -> Problem:
    """Four parities of ``bits`` bits, each behind a control bit of its own, and that of all their bits behind all four.

    Each step has equally many examples of each; ``alone``, only of the last.

    >>> problem(4, 64).n, problem(4, 64).tasks, problem(4, 64, alone=True).tasks
    (68, 5, 1)
    """
    parts = [tuple(range(PARTS + i * bits, PARTS + (i + 1) * bits)) for i in range(PARTS)]
    whole, all_ = tuple(range(PARTS, PARTS + PARTS * bits)), tuple(range(PARTS))
    if alone:
        return Problem(PARTS + task_bits, Tasks([whole], controls=[all_]))
    controls = [*((i,) for i in range(PARTS)), all_]
    return Problem(PARTS + task_bits, Tasks([*parts, whole], controls=controls, in_turn=True))


def points(steps: int, every: int) -> list[int]:
    """Where losses are taken: each ``every`` steps, and at each of the last hundred.

    >>> points(300, 100)[:3], len(points(300, 100))
    ([0, 100, 200], 103)
    """
    return sorted({*range(0, steps, every), *range(max(0, steps - LAST) + 1, steps + 1)})


@dataclass(frozen=True)
class Losses:
    """Losses in bits of runs (runs, points, tasks) after ``steps`` (points,) steps; the composite is the last task."""

    steps: np.ndarray
    bits: Floats

    @classmethod
    def of(cls, blocks: Sequence[Curves]) -> Losses:
        """Those of runs that were recorded in blocks."""
        found = [curves.loss[..., None] if curves.task_loss is None else curves.task_loss for curves in blocks]
        return cls(blocks[0].steps, np.concatenate(found) / BIT)

    @property
    def last(self) -> Floats:
        """Losses at the last hundred steps."""
        return self.bits[:, self.steps > self.steps[-1] - LAST]

    @property
    def converged(self) -> np.ndarray:
        """(runs,): whether the smallest of the last hundred losses on the composite is below 0.1 bits."""
        return self.last[..., -1].min(axis=1) < LEARNED

    @property
    def times(self) -> Floats:
        """(runs, tasks): the first check with a loss below 0.1 bits, which is where the smallest of the last hundred
        first is; infinite where there is none.
        """
        below = self.bits < LEARNED
        return np.where(below.any(axis=1), self.steps[below.argmax(axis=1)], np.inf)

    @property
    def final(self) -> list[tuple[float, Interval]]:
        """Of each run the mean loss on the composite over the last hundred steps, each on fresh examples: 95 %."""
        return [_mean(run[:, -1]) for run in self.last]


def _mean(losses: Floats) -> tuple[float, Interval]:
    """A mean and its interval over stretches of ten steps, which are longer than losses of one step hang together."""
    stretches = losses[: len(losses) // 10 * 10].reshape(-1, 10).mean(axis=1)
    half = float(stats.t.ppf(0.975, len(stretches) - 1) * stats.sem(stretches))
    centre = float(stretches.mean())
    return centre, (centre - half, centre + half)


class Composite(Trial):
    """A trial on the four configurations of Figure 2. At 'standard' the problem is that of 'quick', with more runs."""

    part_bits = size(quick=3, standard=3, full=4, label="bits of a part")
    task_bits = size(quick=32, standard=32, full=64, label="task bits")
    width = size(quick=64, standard=64, full=128)
    each = size(quick=400, standard=400, full=2000, label="examples of each task a step")
    steps = size(quick=8000, standard=12_000, full=40_000)
    every = size(50, label="steps from check to check")
    runs = size(quick=2, standard=20, full=200)

    def setup(self, widths: Sequence[int], alone: bool = False) -> Setup:
        tasks = 1 if alone else PARTS + 1
        learner = two_logits(widths, tasks * self.each, eps=EPS)
        return Setup(problem(self.part_bits, self.task_bits, alone), learner,
                     Protocol(eval_size=tasks * JUDGED, fresh=True))

    def record(self, lab: Lab, setup: Setup, steps: int, every: int, runs: int) -> list[Curves]:
        """Training curves, in blocks of runs."""
        return [lab.curves(setup, points(steps, every), runs=range(first, min(first + TOGETHER, runs)))
                for first in range(0, runs, TOGETHER)]

    def broad(self, lab: Lab) -> list[Curves]:
        """Runs of two hidden layers on parts and composite, which all claims share."""
        return self.record(lab, self.setup([self.width] * 2), self.steps, self.every, self.runs)

    def examples(self, steps: Any) -> Any:
        """Examples of all five tasks that so many steps take."""
        return steps * (PARTS + 1) * self.each


def counts(hidden_layers: int, width: int, alone: bool = False) -> Count:
    """How many of how many published runs converged.

    >>> counts(2, 128), counts(1, 361)
    ((27, 40), (16, 40))
    """
    rows = table(__file__, "counts").rows(named=True)
    (found,) = [row for row in rows if (row["hidden_layers"], row["width"]) == (hidden_layers, width)
                and row["training"].startswith("composite") == alone]
    return found["converged"], found["runs"]


def difference(first: Count, second: Count) -> tuple[float, Interval]:
    """The difference of two shares, and Newcombe's interval of it (from Wilson's of each).

    >>> value, (low, high) = difference((56, 70), (48, 80))  # Newcombe (1998), Table II (a)
    >>> round(value, 4), round(low, 4), round(high, 4)
    (0.2, 0.0524, 0.3339)
    """
    shares = [count / total for count, total in (first, second)]
    ends = [stats.binomtest(*each).proportion_ci(method="wilson") for each in (first, second)]
    value = shares[0] - shares[1]
    low = np.hypot(shares[0] - ends[0].low, ends[1].high - shares[1])
    high = np.hypot(ends[0].high - shares[0], shares[1] - ends[1].low)
    return value, (float(value - low), float(value + high))
