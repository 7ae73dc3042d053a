"""What Section 5 leaves open: batches of one sample, and Gaussian inputs."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from paritylab import Parity, Protocol, plots
from paritylab.claims.lab import Lab
from paritylab.claims.registry import reproduces
from paritylab.claims.verdicts import Check, Outcome, at_least
from paritylab.papers.glasgow2023.common import exponent, network, samples, tracked
from paritylab.papers.glasgow2023.samples import spread
from paritylab.theory import xor
from paritylab.theory.xor_phases import Phases, growth_rate


@reproduces("glasgow2023.open-batch1")
def batch_of_one(lab: Lab) -> Outcome:
    """Samples to 99 % with one sample a step, at rates 0.25/d and 1/d."""
    sizes = lab.pick("d", quick=[20, 40, 80], full=[20, 40, 80, 160])
    runs = lab.pick("seeds", quick=10, full=10)
    rates = (0.25, 1.0)
    checks: list[Check] = []
    rows: list[dict[str, Any]] = []
    series: dict[str, plots.Series] = {}
    for rate in rates:
        setups = [network(d, 128, 0.3, rate / d, 1,
                          Protocol(max_steps=400 * d, eval_every=d // 4, eval_size=4000, threshold=0.99))
                  for d in sizes]
        needed = [samples(result.records, 1) for result in lab.sweep(setups, runs)]
        slope, interval = exponent(sizes, needed)
        supported = None if math.isnan(slope) else interval[0] >= 0.8 and interval[1] <= 1.7
        checks.append(Check(f"slope of log median samples on log d, eta = {rate:g}/d", slope,
                            "95 % interval in 0.8 to 1.7", supported, interval))
        rows += [{"eta": rate / d, "d": d, "run": run, "samples": float(value) if value < np.inf else None}
                 for d, values in zip(sizes, needed, strict=True) for run, value in enumerate(values)]
        series[rf"$\eta = {rate:g}/d$"] = spread(sizes, needed)
    law = np.array([min(sizes), max(sizes)], float)
    start = float(np.asarray(series[r"$\eta = 1/d$"].y)[0]) / (law[0] * math.log(law[0]))
    figure = plots.scaling_plot(series, "inputs $d$", "samples to 99 %, one a step",
                                {r"$\propto d\,\ln d$": (law, start * law * np.log(law))})
    return Outcome(checks, rows, figure)


@reproduces("glasgow2023.open-gaussian")
def gaussian_inputs(lab: Lab) -> Outcome:
    """Growth of |w_sig| and final accuracy with N(0, I) inputs, the label still the sign of x1 x2."""
    sizes = lab.pick("d", quick=[32], full=[32, 64, 128])
    runs, width = lab.pick("seeds", quick=3, full=10), lab.pick("width", quick=256, full=256)
    theta = eta = 0.1
    checks: list[Check] = []
    rows: list[dict[str, Any]] = []
    numbers: dict[str, float | None] = {}
    made: dict[str, Phases] = {}
    for d in sizes:
        setup = network(d, width, theta, eta, 4 * d, Protocol(eval_size=4000))
        setup = replace(setup, problem=Parity(d, 2, inputs=xor.gaussian_inputs))
        steps = math.ceil(12 * math.log(d) / eta)
        phases = made[f"d = {d}"] = tracked(lab, setup, steps, 5, runs)
        fits = [growth_rate(phases["time"], phases["sig"][run], theta) for run in range(runs)]
        checks.append(at_least(f"median R^2 of the log-linear fit of median |w_sig| up to theta, d = {d}",
                               float(np.median([fit[1] for fit in fits])), 0.98))
        accuracy = phases["accuracy"][:, -1]
        numbers[f"growth rate of |w_sig|, d = {d}"] = float(np.median([fit[0] for fit in fits]))
        numbers[f"final accuracy, median, d = {d}"] = float(np.median(accuracy))
        numbers[f"final accuracy, least, d = {d}"] = float(accuracy.min())
        rows += [{"d": d, "run": run, "rate": fits[run][0], "r_squared": fits[run][1], "accuracy": float(accuracy[run]),
                  "loss": float(phases["loss"][run, -1]), "margin_ratio": float(phases["margins"][run, -1].max()
                                                                                / phases["margins"][run, -1].min())}
                 for run in range(runs)]
    numbers["predicted growth rate, sqrt(2/pi) / pi"] = xor.GAUSSIAN_RATE
    return Outcome(checks, rows, gaussian_plot(made, theta), numbers)


@plots.styled
def gaussian_plot(made: dict[str, Phases], theta: float) -> Any:
    figure = plots.blank(2.3)
    left, right = figure.subplots(1, 2)
    for (name, phases), colour, line in zip(made.items(), plots.COLOURS, plots.LINES, strict=False):
        left.plot(phases["time"], np.median(phases["sig"], axis=0), color=colour, linestyle=line, label=name)
        right.plot(phases["time"], np.median(phases["accuracy"], axis=0), color=colour, linestyle=line)
    left.axhline(theta, color=plots.GREY, linewidth=0.8, linestyle="dotted")
    left.annotate(r"$\theta$", (0.97, theta), (0, 2), xycoords=("axes fraction", "data"), textcoords="offset points",
                  fontsize=7, color=plots.GREY)
    left.set(yscale="log", xlabel=r"time $\eta t$", ylabel="median $|w_{sig}|$")
    right.set(xlabel=r"time $\eta t$", ylabel="accuracy", ylim=(0.45, 1.02))
    figure.legend(*left.get_legend_handles_labels(), loc="outside upper center", ncols=3)
    return figure
