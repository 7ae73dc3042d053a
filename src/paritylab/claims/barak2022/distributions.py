"""How convergence times are distributed: Figure 2, left and centre."""

from __future__ import annotations

import math

import numpy as np
from scipy import stats

from paritylab import MLP, SGD, Learner, Parity, Protocol, Setup, plots
from paritylab.claims.lab import Lab
from paritylab.claims.registry import reproduces
from paritylab.claims.verdicts import Outcome, at_least, at_most
from paritylab.statistics import percentile, percentile_interval

CHECKS = Protocol(eval_size=128, fresh=True)
"""A fresh batch of 128 inputs every 10 steps, at most 10^5 steps."""


@reproduces("barak2022.fig2-left")
def no_lucky_convergence(lab: Lab) -> Outcome:
    """Convergence times of very many runs, beside random search with the same median."""
    n = lab.pick("n", quick=20, full=30)
    widths = lab.pick("widths", quick=[10], standard=[10], full=[10, 100])
    runs = lab.pick("runs", quick=1000, full=1_000_000)
    samples, data, checks, numbers = {}, [], [], {}
    for width in widths:
        setup = Setup(Parity(n, 3), Learner(MLP(width), optimiser=SGD(1.0)), CHECKS)
        records = lab.measure(setup, runs).records
        low, median, high = (percentile(records.t_c, records.status, q) for q in (0.1, 50, 99))
        ends = [percentile_interval(records.t_c, records.status, q) for q in (0.1, 99)]
        test = stats.kstest(records.t_c[records.t_c > 0], geometric(median).cdf)
        samples[f"width {width}"] = records
        checks += [
            at_least(f"0.1 % quantile / median, width {width}", low / median, 0.25, ratio(ends[0], median)),
            at_least(f"99 % quantile / median, width {width}", high / median, 1.5, ratio(ends[1], median)),
            at_most(f"p-value of a geometric law, width {width}", test.pvalue, 1e-6),
        ]
        times, counts = np.unique(records.t_c[records.t_c > 0], return_counts=True)
        data += [{"width": width, "t_c": int(t), "runs": int(c)} for t, c in zip(times, counts, strict=True)]
        data.append({"width": width, "t_c": None, "runs": int(np.sum(records.t_c < 0))})
        numbers |= {f"median, width {width}": median, f"smallest t_c, width {width}": float(times[0])}
    figure = plots.histogram_plot(samples, reference=float(math.comb(n, 3)), bins=60)
    return Outcome(checks, data, figure, numbers)


def geometric(median: float) -> stats.rv_frozen:
    """Random search rescaled to a median: the law of the first success of independent trials."""
    return stats.geom(1 - 0.5 ** (1 / median))


def ratio(interval: tuple[float, float], median: float) -> tuple[float, float]:
    return interval[0] / median, interval[1] / median
