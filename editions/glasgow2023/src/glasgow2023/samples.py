"""How many samples: Theorem 3.1, the network's exponent, and the tangent kernel's."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from glasgow2023.common import network, strip_plot
from paritylab import Protocol, plots
from paritylab.aliases import Floats
from paritylab.baselines import kernels
from paritylab.claims import (
    Findings,
    Lab,
    Trial,
    at_least,
    at_most,
    between,
    claim,
    computation,
    holds,
    rng,
    size,
)
from paritylab.claims.intervals import mean, share
from paritylab.claims.medians import exponent, samples, spread
from paritylab.running.sweeps import Result


@claim(
    "glasgow2023.thm3-1",
    where="Theorem 3.1",
    kind="theory",
    title="Minibatch SGD learns XOR to vanishing loss with d polylog(d) samples",
    statement="""Jointly training both layers with batches of order d for O(log d / eta) steps brings the population
    loss down to o(1).""",
    published="loss o(1) with probability 1 - d^(-omega(1)) (Theorem 3.1); 2 ln 2 = 1.386 at the start (computed here)",
)
class Thm31(Trial):
    """Loss and accuracy after 12 ln(d) / eta steps."""

    d = size(quick=[32, 64, 128], full=[32, 64, 128, 256, 512])
    width = size(quick=128, full=256)
    theta = size(quick=0.3, full=0.1)
    eta = size(quick=0.25, full=0.1)
    seeds = size(quick=12, full=10)
    accuracy = at_least("share of runs with accuracy >= 0.999 and loss <= 0.15, all d", 0.9, claimed=1.0)
    loss = at_most("mean loss, d = {d}", 0.15)
    falling = at_most("slope of log median loss on log d", 0)

    def steps(self, d: int) -> int:
        return math.ceil(12 * math.log(d) / self.eta)

    def work(self, lab: Lab) -> list[Result]:
        return lab.sweep([network(d, self.width, self.theta, self.eta, 4 * d,
                                  Protocol(self.steps(d), self.steps(d), 10_000)) for d in self.d], self.seeds)

    def judge(self, got: list[Result]) -> Findings:
        found = [result.records for result in got]
        good = np.concatenate([(each.accuracy >= 0.999) & (each.loss <= 0.15) for each in found])
        losses = [np.asarray(each.loss, float) for each in found]
        checks = [self.accuracy(*share(good)),
                  *(self.loss(*mean(each), d=d) for d, each in zip(self.d, losses, strict=True)),
                  self.falling(*exponent(self.d, losses))]
        rows = [{"d": d, "run": int(run), "steps": self.steps(d), "accuracy": float(accuracy), "loss": float(loss)}
                for d, each in zip(self.d, found, strict=True)
                for run, accuracy, loss in zip(each.run, each.accuracy, each.loss, strict=True)]
        return Findings(checks, rows)

    def draw(self, got: list[Result]) -> plots.Figure:
        groups = {f"d = {d}": result.records.loss for d, result in zip(self.d, got, strict=True)}
        bounds = {"at the start, 2 ln 2": 2 * math.log(2), "asked: 0.15": 0.15}
        return strip_plot(groups, "test loss at $T$ = 12 ln($d$)/$\\eta$", bounds)


# --- exponents --------------------------------------------------------------------------------------------------------


class NetworkSamples(Trial):
    """Samples to reach an accuracy with batches of d: one array over seeds for each d."""

    network_d = size(quick=[20, 40, 80, 160], full=[25, 50, 100, 200, 400, 800], label="d of the network")
    width = size(quick=128, full=256)
    network_seeds = size(quick=10, full=20, label="seeds of the network")

    def network_runs(self, lab: Lab, threshold: float = 0.99) -> list[Result]:
        protocol = Protocol(max_steps=1000, eval_every=1, eval_size=4000, threshold=threshold)
        return lab.sweep([network(d, self.width, 0.3, 0.25, d, protocol) for d in self.network_d], self.network_seeds)

    def network_samples(self, got: list[Result]) -> list[Floats]:
        return [samples(result.records, d) for d, result in zip(self.network_d, got, strict=True)]


@claim(
    "glasgow2023.sample-complexity",
    where="Theorem 3.1; Abstract",
    kind="empirical",
    title="Samples to learn XOR scale almost linearly in d",
    statement="The number of samples m*t to reach 99% accuracy grows like d times logarithms.",
    published="""d polylog(d) samples (Abstract); about 8e2 (d=20), 2e3 (40), 4.8e3 (80) with m=d, theta=0.3, eta=0.25
    (computed here)""",
)
class SampleComplexity(NetworkSamples):
    """Samples to 99 % against d, with batches of d, and with batches of d/4 down to d = 16 and beyond the paper's."""

    noisy_d = size(quick=[16, 32, 64, 128, 256], full=[16, 32, 64, 128, 256, 512, 1024], label="d at kappa = 1")
    noisy_seeds = size(quick=10, full=20, label="seeds at kappa = 1")

    slope = between("slope of log median samples on log d", 0.9, 1.5)
    divided = between("slope after division by ln d", 0.8, 1.25)
    upper = holds("bootstrap 95 % upper end of the slope", "< 1.7", exact=True)

    def work(self, lab: Lab) -> tuple[list[Result], list[Result], list[Result]]:
        protocol = Protocol(max_steps=1000, eval_every=1, eval_size=4000, threshold=0.99)
        noisy = [network(d, 512, 0.5, 0.25, d // 4, protocol) for d in self.noisy_d]
        return self.network_runs(lab), self.network_runs(lab, 0.95), lab.sweep(noisy, self.noisy_seeds)

    def curves(self, got: tuple[list[Result], ...]) -> dict[str, tuple[list[int], list[Floats]]]:
        times, weaker = (self.network_samples(results) for results in got[:2])
        noisy = [samples(result.records, d // 4) for d, result in zip(self.noisy_d, got[2], strict=True)]
        return {"$m = d$, 99 %": (self.network_d, times), "$m = d$, 95 %": (self.network_d, weaker),
                "$m = d/4$, 99 %": (self.noisy_d, noisy)}

    def judge(self, got: tuple[list[Result], ...]) -> Findings:
        curves = self.curves(got)
        (sizes, times), (_, weaker), (wide, noisy) = curves.values()
        slope, interval = exponent(sizes, times)
        noisy_slope, noisy_interval = exponent(wide, noisy)
        checks = [
            self.slope(slope, interval),
            self.divided(*exponent(sizes, times, np.log(sizes))),
            self.upper(interval[1] < 1.7, interval[1]),
        ]
        numbers = {
            "slope, samples to 95 %": exponent(sizes, weaker)[0],
            "slope at kappa = 1": noisy_slope, "its lower end": noisy_interval[0], "its upper end": noisy_interval[1],
            "share solved at kappa = 1": float(np.mean(np.isfinite(np.concatenate(noisy)))),
        }
        rows = [{"curve": name.replace("$", ""), "d": d, "run": run,
                 "samples": float(value) if value < np.inf else None}
                for name, (dimensions, values) in curves.items() for d, found in zip(dimensions, values, strict=True)
                for run, value in enumerate(found)]
        return Findings(checks, rows, numbers)

    def draw(self, got: tuple[list[Result], ...]) -> plots.Figure:
        curves = self.curves(got)
        wide, noisy = curves["$m = d/4$, 99 %"]
        law = np.array([16.0, max(wide)])
        start = float(np.median(noisy[0])) / (16 * math.log(16))
        return plots.scaling_plot({name: spread(*curve) for name, curve in curves.items()}, "inputs $d$", "samples",
                                  {r"$\propto d\,\ln d$": (law, start * law * np.log(law))})


@claim(
    "glasgow2023.ntk-d2",
    where="Section 1; Section 1.1",
    kind="empirical",
    title="The NTK needs about d^2 samples for XOR",
    statement="""Kernel regression with the two-layer ReLU NTK (or random features) reaches fixed accuracy only with
    order d^2 samples.""",
    published="Theta(d^2) samples (Section 1), which is a slope of 2",
)
class NtkD2(NetworkSamples):
    """Samples with which the tangent kernel's ridge regression gets 90 % right, against d."""

    d = size(quick=[10, 14, 20, 28], full=[10, 14, 20, 28, 40, 56])
    further_d = size(quick=[16, 24, 32, 48], full=[16, 24, 32, 48, 64, 96], label="further d")
    seeds = size(5)

    slope = between("slope of log N_90 on log d", 1.6, 2.4)
    above = holds("its 95 % lower end exceeds the network's slope", "> {slope:.3g}", exact=True)

    def work(self, lab: Lab) -> tuple[list[dict[str, Floats]], list[Result]]:
        asked = [{"d": d, "seeds": self.seeds, "level": 0.9} for d in self.all_d]
        return lab.compute_each(kernel_samples, asked), self.network_runs(lab)

    @property
    def all_d(self) -> list[int]:
        return sorted({*self.d, *self.further_d})

    def needed(self, got: tuple[list[dict[str, Floats]], list[Result]]) -> tuple[dict[int, Floats], list[Floats]]:
        """Samples of the kernel, for each d, and of the network."""
        kernel = {d: arrays["samples"] for d, arrays in zip(self.all_d, got[0], strict=True)}
        return kernel, self.network_samples(got[1])

    def judge(self, got: tuple[list[dict[str, Floats]], list[Result]]) -> Findings:
        needed, times = self.needed(got)
        slope, interval = exponent(self.d, [needed[d] for d in self.d])
        theirs = exponent(self.network_d, times)[0]
        further, further_interval = exponent(self.further_d, [needed[d] for d in self.further_d])
        checks = [self.slope(slope, interval), self.above(interval[0] > theirs, interval[0], slope=theirs)]
        numbers = {"network's slope": theirs, "slope over the further d": further,
                   "its lower end": further_interval[0], "its upper end": further_interval[1]}
        rows = [{"learner": "ntk", "d": d, "seed": seed, "samples": float(value)}
                for d, values in needed.items() for seed, value in enumerate(values)]
        rows += [{"learner": "network", "d": d, "seed": seed, "samples": float(value) if value < np.inf else None}
                 for d, values in zip(self.network_d, times, strict=True) for seed, value in enumerate(values)]
        return Findings(checks, rows, numbers)

    def draw(self, got: tuple[list[dict[str, Floats]], list[Result]]) -> plots.Figure:
        needed, times = self.needed(got)
        law = np.array([10.0, max(self.further_d)])
        return plots.scaling_plot(
            {"NTK, 90 %": spread(list(needed), list(needed.values())), "network, 99 %": spread(self.network_d, times)},
            "inputs $d$", "samples", {r"$\propto d^2$": (law, np.median(needed[10]) * (law / 10) ** 2)})


@computation
def kernel_samples(seed: int, d: int, seeds: int, level: float) -> dict[str, Any]:
    """N_90 of each seed: interpolated between the sizes d^2/4 ... 4 d^2 where the test accuracy first passes 0.90."""
    grid = np.unique(np.round(d * d / 4 * 16 ** (np.arange(8) / 7)).astype(int))
    return {"samples": [crossing(rng(seed, d, each), d, grid, level) for each in range(seeds)]}


def crossing(generator: np.random.Generator, d: int, grid: Floats, level: float, test: int = 2000) -> float:
    """The interpolated size of a sample, grown along the grid, at which the tangent kernel reaches the level."""
    x = 1.0 - 2.0 * generator.integers(0, 2, (int(grid[-1]), d))
    z = 1.0 - 2.0 * generator.integers(0, 2, (test, d))
    y, truth = x[:, 0] * x[:, 1], z[:, 0] * z[:, 1]
    before = (0.0, 0.5)  # log N and accuracy: at chance with one sample
    for count in grid:
        scores = kernels.kernel_classifier(kernels.ntk, x[:count], y[:count], 1e-6 * count)(z)
        accuracy = float(np.mean(scores * truth > 0))
        if accuracy >= level:
            share = (level - before[1]) / (accuracy - before[1])
            return math.exp(before[0] + share * (math.log(count) - before[0]))
        before = (math.log(count), accuracy)
    return math.inf
