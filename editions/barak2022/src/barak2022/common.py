"""What several claims share: the paper's protocol, and statistics of runs that may not have been solved."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.ticker import NullFormatter

from paritylab import plots
from paritylab.aliases import Floats
from paritylab.setups.setup import Protocol
from paritylab.storage.records import SOLVED, Records

FRESH_128 = Protocol(eval_size=128, fresh=True)
"""A fresh batch of 128 inputs every 10 steps; at most 10^5 steps."""
FIXED_8192 = Protocol()
"""One sample of 8192 inputs, drawn before training and checked every 10 steps; at most 10^5 steps."""


def times(records: Records) -> Floats:
    """Convergence times, ``inf`` for a run that was not solved."""
    return np.where(records.status == SOLVED, records.t_c, np.inf)


def by_run(records: Records) -> list[dict[str, Any]]:
    """One row for each run; None where it was not solved."""
    ended = zip(records.run, records.t_c, strict=True)
    return [{"run": int(run), "t_c": int(t) if t > 0 else None} for run, t in ended]


def median(values: Floats) -> float:
    return float(np.median(values)) if len(values) else math.nan


def ratio_of_medians(first: Floats, second: Floats) -> float:
    """Undefined where both are not reached."""
    below = median(second)
    return median(first) / below if math.isfinite(below) else 0.0 if math.isfinite(median(first)) else math.nan


def tail(values: Floats) -> float:
    """The 95 % quantile in medians, an order statistic: unsolved runs count as the slowest."""
    return float(np.quantile(values, 0.95, method="higher")) / median(values)


def longer_tail(first: Floats, second: Floats) -> float:
    """By how many medians the tail of the first is longer."""
    return tail(first) - tail(second)


def with_interval(values: np.ndarray) -> tuple[float, tuple[float, float]]:
    """The first value, with the central 95 % of the others."""
    if np.isnan(values).all():
        return math.nan, (math.nan, math.nan)
    low, high = np.nanquantile(values[1:], [0.025, 0.975])
    return float(values[0]), (float(low), float(high))


@plots.styled
def times_plot(samples: Mapping[str, Records]) -> plots.Figure:
    """A circle for each solved run, one line of them for each sample; how many were solved at the right."""
    figure = plots.blank(0.7 + 0.17 * max(3, len(samples)))
    axes = figure.add_subplot(xscale="log", xlabel="steps to convergence", ylim=(len(samples) - 0.5, -0.5))
    axes.set_yticks(range(len(samples)), list(samples))
    every = np.concatenate([records.steps for records in samples.values()])
    axes.set_xlim(10 ** math.floor(math.log10(every.min())), 1.2 * every.max())
    axes.xaxis.set_minor_formatter(NullFormatter())
    for place, records in enumerate(samples.values()):
        solved = records.t_c[records.status == SOLVED]
        axes.plot(solved, np.full(len(solved), place), "o", markersize=3, fillstyle="none", color=plots.COLOURS[0])
        axes.annotate(f"{len(solved)}/{len(records)}", (1.01, place), xycoords=("axes fraction", "data"), fontsize=7,
                      va="center")
    return figure
