"""Parities with flipped labels: Figure 16."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from paritylab import MLP, SGD, Learner, Parity, Setup, plots
from paritylab.claims.lab import Lab
from paritylab.claims.registry import reproduces
from paritylab.claims.verdicts import Outcome, at_least
from paritylab.papers.barak2022.common import FIXED_8192, Floats, bootstrap, converging, ratio_of_medians, times
from paritylab.plots import Series
from paritylab.storage.records import Records

Case = tuple[int, float]


@reproduces("barak2022.fig16")
def noisy_parities(lab: Lab) -> Outcome:
    """Steps to a clean accuracy of 75 %, and runs that reach 95 %, against the fraction p of flipped labels."""
    n = lab.pick("n", quick=20, full=50)
    width = lab.pick("width", quick=30, full=100)
    batches = lab.pick("batches", quick=[256], full=[32, 128, 1024])
    noises = lab.pick("p", quick=[0.0, 0.1, 0.25], full=[0.0, 0.1, 0.25, 0.4, 0.45, 0.49])
    runs = lab.pick("runs", quick=5, full=5)
    short = lab.pick("max_steps", quick=8000, full=100_000)
    long = lab.pick("max_steps for p > 0.4", quick=8000, full=1_000_000, standard=200_000)

    def reach(accuracy: float, cases: Sequence[Case]) -> dict[Case, Records]:
        setups = [
            Setup(Parity(n, 3, noise=p), Learner(MLP(width), optimiser=SGD(0.1), batch=batch),
                  replace(FIXED_8192, eval_every=100, threshold=accuracy, max_steps=short if p <= 0.4 else long))
            for batch, p in cases
        ]
        return {case: result.records for case, result in zip(cases, lab.sweep(setups, runs), strict=True)}

    cases = [(batch, p) for batch in batches for p in noises]
    left = reach(0.75, cases)
    high = reach(0.95, [(batch, p) for batch, p in cases if batch >= 128 and p <= 0.4])
    noisiest = reach(0.7, [(batch, p) for batch, p in cases if (batch, p) == (1024, 0.49)])
    checks = [converging(f"to 95 %, B={batch}, p={p:g}", records, 0.8) for (batch, p), records in high.items()]
    checks += [converging(f"to 70 %, B={batch}, p={p:g}", records, 0.8) for (batch, p), records in noisiest.items()]
    for batch in batches:
        samples = [times(left[batch, p]) for p in noises]
        growth, interval = smallest_growth(*samples), bootstrap(smallest_growth, *samples, rng=lab.rng(batch))
        resolved = math.nan if growth == 1 else growth  # equal at checks every 100 steps
        checks.append(at_least(f"smallest ratio of consecutive medians to 75 %, p growing, B={batch}", resolved, 1.0,
                               interval))
    data = [{"batch": batch, "p": p, "accuracy": accuracy, "run": int(run), "t": int(t) if t > 0 else None}
            for accuracy, found in ((0.75, left), (0.95, high), (0.7, noisiest))
            for (batch, p), records in found.items() for run, t in zip(records.run, records.t_c, strict=True)]
    note = "" if long == 1_000_000 or lab.size == "quick" else f"at most {long} steps for p > 0.4"
    return Outcome(checks, data, draw(left, batches, noises), note=note)


def smallest_growth(*samples: Floats) -> float:
    """The smallest ratio of the medians of consecutive samples; undefined where two are not reached.

    >>> smallest_growth(np.array([100.0, 200.0, 300.0]), np.array([300.0, np.inf, np.inf]))
    inf
    """
    ratios = [ratio_of_medians(later, earlier) for earlier, later in itertools.pairwise(samples)]
    return float(np.min(ratios))


def draw(found: Mapping[Case, Records], batches: Sequence[int], noises: Sequence[float]) -> Any:
    """The median over runs, with bars from the fastest to the slowest of them."""
    series = {}
    for batch in batches:
        samples = np.array([times(found[batch, p]) for p in noises])
        series[f"B = {batch}"] = Series(noises, np.median(samples, axis=1), samples.min(axis=1), samples.max(axis=1))
    return plots.scaling_plot(series, "fraction of labels flipped, p", "steps to 75 % correct (range)", log="y")
