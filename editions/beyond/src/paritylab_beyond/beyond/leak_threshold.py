"""How weak the leak of daniely2020 may be: one gradient step, exact or on samples, and a ridge fit of the output."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from daniely2020.theory import leaky
from daniely2020.theory.leaky import Layer, Leaky

from paritylab import plots
from paritylab.aliases import Arrays, Floats, Interval
from paritylab.baselines.kernels import feature_classifier
from paritylab.claims import Findings, Lab, Trial, at_least, between, claim, computation, rng, size
from paritylab.claims.intervals import mean
from paritylab.claims.medians import exponent
from paritylab.plots import Series

FITTED = TEST = 4000
WIDTH = 15
"""Pairs of units over sqrt(n): units other than the good ones bend for a share of output weights that falls as that."""
LEVEL = 0.9
"""A critical leak is where the accuracy on uniform inputs passes this: above 3/4, which -sign(z) has at k = 3."""
Row = dict[str, Any]


@dataclass(frozen=True)
class Point:
    """A size, a leak, and how the first step is made: ``samples`` for its gradient (0: exact), its ``rate``."""

    n: int
    k: int
    leak: float
    samples: int
    rate: float


@claim(
    "beyond.leak-threshold",
    where="daniely2020, Section 5: other distributions, which properties make them learnable",
    kind="empirical",
    title="How weak may the leak be? As weak as the gradient is precise",
    statement="""With the exact first gradient and a rate of 1/(2p) every leak p is learned, far below n^(-(k-1)/2),
    where the uniform half's own gradient takes over; at the theorem's rate of 1 the critical p falls no faster than
    n^(-1/2) for any k; and with N samples in the first step it is near sqrt(n/N), times a factor that
    grows slowly with n at the widths tried.""",
    published="p = 1/2 alone",
)
class LeakThreshold(Trial):
    """Accuracy on uniform inputs after one step and a ridge fit, along log grids of p; where it passes 0.9."""

    k = size(quick=[3], full=[3, 5])
    exact_n = size(quick=[31, 101], full=[31, 101, 301, 901], label="n, exact step")
    n = size(quick=[51, 101], full=[51, 101, 201, 401], label="n, N = 16,000")
    samples = size(quick=[4000], full=[4000, 16_000, 64_000], label="N, n = 51")
    seeds = size(quick=2, full=12)
    points = size(quick=4, full=8, label="leaks in a grid")

    any_leak = at_least("mean accuracy, exact step at rate 1/(2p), p = n^(-(k-1)/2) / 10, n = {n}, k = {k}", 0.95)
    theorem = between("exponent of the critical p in n, exact step at rate 1, k = {k}", -0.75, -0.25, only=("full",))
    by_n = between("exponent of the critical p in n, N = 16,000, k = {k}", 0.35, 0.8, only=("full",))
    by_samples = between("exponent of the critical p in N, n = 51, k = {k}", -0.65, -0.35, only=("full",))

    def grid(self, n: int, k: int, samples: int) -> list[Point]:
        """Leaks around 0.2 n^(-1/2) at rate 1 with the exact step, around sqrt(n/N) at rate 1/(2p) with N samples."""
        if not samples:
            return [Point(n, k, leak, 0, 1.0) for leak in np.geomspace(0.03, 0.8, self.points) / math.sqrt(n)]
        leaks = np.geomspace(0.5, 3.5, self.points) * math.sqrt(n / samples)
        return [Point(n, k, leak, samples, 0.5 / leak) for leak in leaks if leak <= 0.5]

    def curves(self, k: int) -> dict[str, list[list[Point]]]:
        """The grids of each critical exponent."""
        found = {"exact": [self.grid(n, k, 0) for n in self.exact_n]} if self.size == "full" else {}
        return found | {"n": [self.grid(n, k, 16_000) for n in self.n],
                        "N": [self.grid(51, k, count) for count in self.samples]}

    def below(self, k: int) -> list[Point]:
        """Leaks a tenth of the uniform half's own gradient, and the exact step at the rate 1/(2p)."""
        leaks = [n ** (-(k - 1) / 2) / 10 for n in self.exact_n]
        return [Point(n, k, leak, 0, 0.5 / leak) for n, leak in zip(self.exact_n, leaks, strict=True)]

    def asked(self) -> list[Point]:
        grids = [grid for k in self.k for grids in self.curves(k).values() for grid in grids]
        return list(dict.fromkeys(itertools.chain(*grids, *(self.below(k) for k in self.k))))

    def work(self, lab: Lab) -> list[Arrays]:
        return lab.compute_each(accuracies, [asdict(point) | {"seeds": self.seeds} for point in self.asked()])

    def judge(self, got: list[Arrays]) -> Findings:
        found = {point: arrays["accuracy"] for point, arrays in zip(self.asked(), got, strict=True)}
        checks, numbers = [], {}
        for k in self.k:
            checks += [self.any_leak(*mean(found[point]), n=point.n, k=k) for point in self.below(k)]
            for name, rule in (("exact", self.theorem), ("n", self.by_n), ("N", self.by_samples)):
                grids = self.curves(k).get(name, [])
                critical = [self.critical(grid, found) for grid in grids]
                for grid, values in zip(grids, critical, strict=True):
                    where = "exact step, rate 1" if name == "exact" else f"N = {grid[0].samples}"
                    numbers[f"median critical p, {where}, n = {grid[0].n}, k = {k}"] = float(np.median(values))
                if self.size == "full":
                    sizes = [grid[0].samples if name == "N" else grid[0].n for grid in grids]
                    checks.append(rule(*fitted(sizes, critical), k=k))
        rows = [asdict(point) | {"seed": seed, "accuracy": float(value)}
                for point, values in found.items() for seed, value in enumerate(values)]
        return Findings(checks, rows, numbers)

    def critical(self, grid: Sequence[Point], found: dict[Point, Floats]) -> Floats:
        """Of each seed the leak at which its accuracy first passes LEVEL, interpolated in ln p; NaN if never."""
        leaks = np.log([point.leak for point in grid])
        return np.array([crossing(leaks, values) for values in np.stack([found[point] for point in grid], axis=1)])

    def draw(self, got: list[Arrays]) -> plots.Figure:
        found = {point: arrays["accuracy"] for point, arrays in zip(self.asked(), got, strict=True)}
        return draw_thresholds({k: self.curves(k) for k in self.k}, found)


def fitted(sizes: Sequence[float], critical: Sequence[Floats]) -> tuple[float | None, Interval | None]:
    """The exponent and its interval; None where a run never passed the level."""
    if any(np.isnan(values).any() for values in critical):
        return None, None
    return exponent(sizes, critical)


def crossing(logs: Floats, accuracy: Floats) -> float:
    """exp of where the accuracy first rises through LEVEL, along rising logs; NaN if it does not, or begins above.

    >>> round(crossing(np.log([1.0, 2.0, 4.0]), np.array([0.5, 0.8, 1.0])), 3)
    2.828
    """
    above = np.flatnonzero(accuracy >= LEVEL)
    if len(above) == 0 or above[0] == 0:
        return math.nan
    i = int(above[0]) - 1
    part = (LEVEL - accuracy[i]) / (accuracy[i + 1] - accuracy[i])
    return math.exp(logs[i] + part * (logs[i + 1] - logs[i]))


@computation
def accuracies(seed: int, n: int, k: int, leak: float, samples: int, rate: float, seeds: int) -> dict[str, Any]:
    """On uniform inputs, after one step and a ridge fit of the output weights on 4000 further samples, of each seed."""
    sizes = Leaky(n, k, leak)
    return {"accuracy": [accuracy(sizes, samples, rate, rng(seed, 41, n, k, samples, each)) for each in range(seeds)]}


def accuracy(sizes: Leaky, samples: int, rate: float, generator: np.random.Generator) -> float:
    start = leaky.start(sizes, round(WIDTH * math.sqrt(sizes.n)), generator)
    if samples:
        s, y, _ = (part.astype(np.float32) for part in leaky.draw_inputs(sizes, samples, generator))
        single = Layer(start.w.astype(np.float32), start.b.astype(np.float32), start.u)
        stepped = leaky.sampled_step(single, s, y)
    else:
        stepped = leaky.first_step(sizes, start)
    w, b = rate * stepped.w, start.b + rate * (stepped.b - start.b)
    layer = Layer(w.astype(np.float32), b.astype(np.float32), start.u)
    x, labels, _ = (part.astype(np.float32) for part in leaky.draw_inputs(sizes, FITTED, generator))
    scores = feature_classifier(layer.features, x, labels, 1e-3, intercept=True)
    uniform = Leaky(sizes.n, sizes.k, 0.0)
    z, truth, _ = (part.astype(np.float32) for part in leaky.draw_inputs(uniform, TEST, generator))
    return float(np.mean(np.sign(scores(z)) == truth))


@plots.styled
def draw_thresholds(curves: dict[int, dict[str, list[list[Point]]]], found: dict[Point, Floats]) -> plots.Figure:
    """Mean accuracies of sampled steps against p sqrt(N/n), one panel for each k."""
    figure = plots.blank(2.7)
    panels = np.ravel(figure.subplots(1, len(curves), sharey=True, squeeze=False))
    for axes, (k, grids) in zip(panels, curves.items(), strict=True):
        shown = {(grid[0].n, grid[0].samples): grid for grid in (*grids["n"], *grids["N"])}
        series = {f"n = {n}, N = {count}": Series([point.leak * math.sqrt(count / n) for point in grid],
                                                  [found[point].mean() for point in grid])
                  for (n, count), grid in sorted(shown.items())}
        for (label, curve), colour, marker in zip(series.items(), itertools.cycle(plots.COLOURS), "osD^v*P",
                                                  strict=False):
            axes.plot(np.asarray(curve.x), np.asarray(curve.y), marker=marker, markersize=3, color=colour,
                      linewidth=0.8, label=label)
        axes.axhline(LEVEL, color=plots.GREY, linestyle="dotted", linewidth=0.8)
        axes.set(xscale="log", xlabel="$p\\,\\sqrt{N/n}$", title=f"k = {k}")
        axes.set_xticks(ticks := [0.5, 1, 2, 3], [f"{tick:g}" for tick in ticks])
        axes.minorticks_off()
    panels[0].set_ylabel("accuracy on uniform inputs")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=2, fontsize=6)
    return figure
