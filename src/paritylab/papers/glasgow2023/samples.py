"""How many samples: Theorem 3.1, the network's exponent, and the tangent kernel's."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from paritylab import Protocol, plots
from paritylab.baselines import kernels
from paritylab.claims.lab import Lab
from paritylab.claims.registry import reproduces
from paritylab.claims.verdicts import Check, Outcome, at_least, at_most, between, holds
from paritylab.papers.glasgow2023.common import Floats, exponent, network, samples, strip_plot


@reproduces("glasgow2023.thm3-1")
def learns(lab: Lab) -> Outcome:
    """Loss and accuracy after 12 ln(d) / eta steps."""
    sizes = lab.pick("d", quick=[32, 64, 128], full=[32, 64, 128, 256, 512])
    width = lab.pick("width", quick=128, full=256)
    theta, eta = lab.pick("theta", quick=0.3, full=0.1), lab.pick("eta", quick=0.25, full=0.1)
    runs = lab.pick("seeds", quick=5, full=10)
    last = {d: math.ceil(12 * math.log(d) / eta) for d in sizes}
    setups = [network(d, width, theta, eta, 4 * d, Protocol(last[d], last[d], 10_000)) for d in sizes]
    results = lab.sweep(setups, runs)
    checks: list[Check] = []
    for d, result in zip(sizes, results, strict=True):
        checks.append(at_least(f"lowest test accuracy of {runs} seeds, d = {d}", result.records.accuracy.min(), 0.999))
        checks.append(at_most(f"highest mean loss of {runs} seeds, d = {d}", result.records.loss.max(), 0.15))
    rows = [{"d": d, "run": int(run), "steps": last[d], "accuracy": float(accuracy), "loss": float(loss)}
            for d, records in ((d, result.records) for d, result in zip(sizes, results, strict=True))
            for run, accuracy, loss in zip(records.run, records.accuracy, records.loss, strict=True)]
    groups = {f"d = {d}": result.records.loss for d, result in zip(sizes, results, strict=True)}
    bounds = {"at the start, 2 ln 2": 2 * math.log(2), "asked: 0.15": 0.15}
    return Outcome(checks, rows, strip_plot(groups, "test loss at $T$ = 12 ln($d$)/$\\eta$", bounds))


# --- exponents --------------------------------------------------------------------------------------------------------


def network_samples(lab: Lab, threshold: float = 0.99) -> tuple[list[int], list[Floats]]:
    """Samples to reach an accuracy with batches of d: one array over seeds for each d."""
    sizes = lab.pick("d of the network", quick=[20, 40, 80, 160], full=[25, 50, 100, 200, 400, 800])
    width = lab.pick("width", quick=128, full=256)
    runs = lab.pick("seeds of the network", quick=10, full=20)
    protocol = Protocol(max_steps=1000, eval_every=1, eval_size=4000, threshold=threshold)
    results = lab.sweep([network(d, width, 0.3, 0.25, d, protocol) for d in sizes], runs)
    return sizes, [samples(result.records, d) for d, result in zip(sizes, results, strict=True)]


@reproduces("glasgow2023.sample-complexity")
def almost_linear(lab: Lab) -> Outcome:
    """Samples to 99 % against d, with batches of d, and with batches of d/4 down to d = 16 and beyond the paper's."""
    sizes, times = network_samples(lab)
    slope, interval = exponent(sizes, times)
    divided, divided_interval = exponent(sizes, times, np.log(sizes))
    checks = [
        between("slope of log median samples on log d", slope, 0.9, 1.5, interval),
        between("slope after division by ln d", divided, 0.8, 1.25, divided_interval),
        holds("bootstrap 95 % upper end of the slope", interval[1] < 1.7, "< 1.7", interval[1]),
    ]
    weaker = network_samples(lab, 0.95)[1]
    wide = lab.pick("d at kappa = 1", quick=[16, 32, 64, 128, 256], full=[16, 32, 64, 128, 256, 512, 1024])
    runs = lab.pick("seeds at kappa = 1", quick=10, full=20)
    protocol = Protocol(max_steps=1000, eval_every=1, eval_size=4000, threshold=0.99)
    results = lab.sweep([network(d, 512, 0.5, 0.25, d // 4, protocol) for d in wide], runs)
    noisy = [samples(result.records, d // 4) for d, result in zip(wide, results, strict=True)]
    noisy_slope, noisy_interval = exponent(wide, noisy)
    numbers = {
        "slope, samples to 95 %": exponent(sizes, weaker)[0],
        "slope at kappa = 1": noisy_slope, "its lower end": noisy_interval[0], "its upper end": noisy_interval[1],
        "share solved at kappa = 1": float(np.mean(np.isfinite(np.concatenate(noisy)))),
    }
    curves = {"$m = d$, 99 %": (sizes, times), "$m = d$, 95 %": (sizes, weaker), "$m = d/4$, 99 %": (wide, noisy)}
    rows = [{"curve": name.replace("$", ""), "d": d, "run": run, "samples": float(value) if value < np.inf else None}
            for name, (dimensions, values) in curves.items() for d, found in zip(dimensions, values, strict=True)
            for run, value in enumerate(found)]
    law = np.array([16.0, max(wide)])
    start = float(np.median(noisy[0])) / (16 * math.log(16))
    figure = plots.scaling_plot({name: spread(*curve) for name, curve in curves.items()}, "inputs $d$", "samples",
                                {r"$\propto d\,\ln d$": (law, start * law * np.log(law))})
    return Outcome(checks, rows, figure, numbers)


def spread(sizes: Sequence[int], values: Sequence[Floats]) -> plots.Series:
    """Medians, with the middle half of the runs."""
    low, middle, high = (np.array([np.quantile(each, q, method="lower") for each in values]) for q in (0.25, 0.5, 0.75))
    return plots.Series(sizes, middle, low, high)


@reproduces("glasgow2023.ntk-d2")
def kernel_needs_squares(lab: Lab) -> Outcome:
    """Samples with which the tangent kernel's ridge regression gets 90 % right, against d."""
    sizes = lab.pick("d", quick=[10, 14, 20, 28], full=[10, 14, 20, 28, 40, 56])
    wide = lab.pick("further d", quick=[16, 24, 32, 48], full=[16, 24, 32, 48, 64, 96])
    seeds = lab.pick("seeds", quick=5, full=5)
    needed = {d: kernel_samples(lab, d, seeds) for d in sorted({*sizes, *wide})}
    slope, interval = exponent(sizes, [needed[d] for d in sizes])
    dimensions, times = network_samples(lab)
    theirs = exponent(dimensions, times)[0]
    further, further_interval = exponent(wide, [needed[d] for d in wide])
    checks = [
        between("slope of log N_90 on log d", slope, 1.6, 2.4, interval),
        holds("its 95 % lower end exceeds the network's slope", interval[0] > theirs, f"> {theirs:.3g}", interval[0]),
    ]
    numbers = {"network's slope": theirs, "slope over the further d": further, "its lower end": further_interval[0],
               "its upper end": further_interval[1]}
    rows = [{"learner": "ntk", "d": d, "seed": seed, "samples": float(value)}
            for d, values in needed.items() for seed, value in enumerate(values)]
    rows += [{"learner": "network", "d": d, "seed": seed, "samples": float(value) if value < np.inf else None}
             for d, values in zip(dimensions, times, strict=True) for seed, value in enumerate(values)]
    law = np.array([10.0, max(wide)])
    figure = plots.scaling_plot(
        {"NTK, 90 %": spread(list(needed), list(needed.values())), "network, 99 %": spread(dimensions, times)},
        "inputs $d$", "samples", {r"$\propto d^2$": (law, np.median(needed[10]) * (law / 10) ** 2)})
    return Outcome(checks, rows, figure, numbers)


def kernel_samples(lab: Lab, d: int, seeds: int, level: float = 0.9) -> Floats:
    """N_90 of each seed: interpolated between the sizes d^2/4 ... 4 d^2 where the test accuracy first passes 0.90."""
    grid = np.unique(np.round(d * d / 4 * 16 ** (np.arange(8) / 7)).astype(int))

    def make() -> dict[str, Any]:
        return {"samples": np.array([crossing(lab.rng(d, seed), d, grid, level) for seed in range(seeds)])}

    return lab.kept("xor-ntk", {"d": d, "seeds": seeds, "level": level}, make)["samples"]


def crossing(generator: np.random.Generator, d: int, grid: Floats, level: float, test: int = 2000) -> float:
    """The interpolated size of a sample, grown along the grid, at which the tangent kernel reaches the level."""
    x = 1.0 - 2.0 * generator.integers(0, 2, (int(grid[-1]), d))
    z = 1.0 - 2.0 * generator.integers(0, 2, (test, d))
    y, truth = x[:, 0] * x[:, 1], z[:, 0] * z[:, 1]
    before = (0.0, 0.5)  # log N and accuracy: at chance with one sample
    for size in grid:
        scores = kernels.kernel_classifier(kernels.ntk, x[:size], y[:size], 1e-6 * size)(z)
        accuracy = float(np.mean(scores * truth > 0))
        if accuracy >= level:
            share = (level - before[1]) / (accuracy - before[1])
            return math.exp(before[0] + share * (math.log(size) - before[0]))
        before = (math.log(size), accuracy)
    return math.inf
