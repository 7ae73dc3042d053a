"""Everything about one sample of runs in a few numbers."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from paritylab.aliases import Interval
from paritylab.statistics.fractions import horizon_of, solved_fraction
from paritylab.statistics.percentiles import percentiles
from paritylab.storage.records import CENSORED, DIVERGED, SOLVED, Records


@dataclass(frozen=True)
class Summary:
    """What a sample of Runs says. A percentile of ``inf`` is not reached; ``fastest`` is the smallest t_c.

    ``min_horizon`` is the first step at which a run was censored (``max_horizon`` where none was),
    ``max_horizon`` the largest number of steps any run was trained. Where they differ, percentiles come from the
    Kaplan-Meier curve; the solved fraction is always that of the runs there are, each as far as it was followed.
    """

    runs: int
    solved: int
    censored: int
    diverged: int
    solved_fraction: float
    solved_interval: Interval
    p10: float
    p10_interval: Interval
    median: float
    median_interval: Interval
    p90: float
    p90_interval: Interval
    fastest: float
    min_horizon: int
    max_horizon: int

    @property
    def horizons_differ(self) -> bool:
        """Whether a run was given up before another one ended."""
        return self.min_horizon < self.max_horizon

    def to_dict(self) -> dict[str, Any]:
        """The summary as plain JSON values; what is not reached (or not defined) is None."""

        def plain(value: Any) -> Any:
            if isinstance(value, tuple):
                return [plain(part) for part in value]  # pyright: ignore[reportUnknownVariableType]
            return None if isinstance(value, float) and not math.isfinite(value) else value

        return {name: plain(value) for name, value in asdict(self).items()}

    def __str__(self) -> str:
        if self.runs == 0:
            return "no runs"
        low, high = (100 * end for end in self.solved_interval)
        text = (
            f"solved {100 * self.solved_fraction:.1f} % [{low:.1f}, {high:.1f}] of {self.runs}"
            f", median t_c {_shown(self.median, self.median_interval)}"
            f", 10 % {_shown(self.p10, self.p10_interval)}"
            f", 90 % {_shown(self.p90, self.p90_interval)}"
        )
        if self.horizons_differ:
            text += f"\ncensored from step {self.min_horizon} on: percentiles are those of the Kaplan-Meier curve"
        return text


def summary(records: Records, level: float = 0.95) -> Summary:
    """Summarise a sample of Runs.

    >>> t_c = np.repeat([300, 600, 700, -1], [150, 400, 400, 50])
    >>> steps, status = np.where(t_c < 0, 5000, t_c), np.where(t_c < 0, 1, 0)
    >>> print(summary(Records(range(1000), status, t_c, steps, status == 0, status)))
    solved 95.0 % [93.5, 96.2] of 1000, median t_c 600 [600, 600], 10 % 300 [300, 300], 90 % 700 [700, 700]
    """
    counts = np.bincount(records.status, minlength=3)
    fraction, interval = solved_fraction(records.status, level)
    horizon = horizon_of(records)
    p10, median, p90 = percentiles(records.t_c, records.status, (10, 50, 90), records.steps, level)
    return Summary(
        runs=len(records),
        solved=int(counts[SOLVED]),
        censored=int(counts[CENSORED]),
        diverged=int(counts[DIVERGED]),
        solved_fraction=fraction,
        solved_interval=interval,
        p10=p10[0],
        p10_interval=p10[1],
        median=median[0],
        median_interval=median[1],
        p90=p90[0],
        p90_interval=p90[1],
        fastest=float(records.t_c[records.status == SOLVED].min()) if counts[SOLVED] else math.inf,
        min_horizon=int(records.steps[records.status == CENSORED].min(initial=horizon)),
        max_horizon=horizon,
    )


def _shown(value: float, interval: Interval) -> str:
    if math.isinf(interval[0]):
        return "not reached"
    low, high = (_number(end) for end in interval)
    return f"{'not reached' if math.isinf(value) else _number(value)} [{low}, {high}]"


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
