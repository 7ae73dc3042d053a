"""What the trained claims share: the five-task problem, the wide network, strengths along runs."""

from __future__ import annotations

from typing import Any

import numpy as np

from paritylab import MLP, Problem, multitask
from paritylab.aliases import Floats
from paritylab.engines.curves import Curves

Row = dict[str, Any]
BITS, DEGREE = 32, 3
TARGET = 5.0
"""S, the scale of the labels."""
ALPHA = 0.6
"""Task t comes up in proportion to t^-(ALPHA + 1)."""


def problem(tasks: int, scale: float = TARGET, alpha: float = ALPHA, **more: Any) -> Problem:
    """Parities of three of 32 bits, no two of the same bits, times S."""
    return multitask(BITS, tasks, DEGREE, alpha=alpha + 1, overlap="disjoint", scale=scale, **more)


def network(width: int) -> MLP:
    """Two layers that read bits."""
    return MLP(width, inputs="bits")


def strengths(curves: Curves) -> Floats:
    """R/S of each run, point and task."""
    assert curves.task_skill is not None
    return curves.task_skill


def crossing(x: Floats, y: Floats, level: float) -> float:
    """Where y first reaches a level, linearly between points; infinite where it does not.

    >>> crossing(np.array([0.0, 10.0, 20.0]), np.array([0.0, 0.4, 0.6]), 0.5)
    15.0
    """
    reached = np.asarray(y) >= level
    if not reached.any():
        return float("inf")
    i = int(reached.argmax())
    if i == 0:
        return float(x[0])
    return float(x[i - 1] + (x[i] - x[i - 1]) * (level - y[i - 1]) / (y[i] - y[i - 1]))


def power(y: Floats) -> float:
    """The exponent of y as a power of the rank 1, 2, ..., by least squares of logarithms; NaN where a y is infinite.

    >>> round(power(np.array([3.0, 6.0, 9.0])), 9)
    1.0
    """
    if not np.isfinite(y).all():
        return float("nan")
    return float(np.polyfit(np.log(np.arange(1, len(y) + 1)), np.log(y), 1)[0])
