"""Theorem 4 of Abbe et al. with a width of order d^3, which is also needed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import Any

import numpy as np
from abbe2024.one_step import Trials, smallest
from abbe2024.theory.high_degree import critical_width, margin_bound
from abbe2024.theory.one_step import one_step

from paritylab import plots
from paritylab.aliases import Interval
from paritylab.claims import Findings, Lab, Trial, at_least, between, claim, computation, rng, size
from paritylab_beyond.beyond.theory.one_step_width import (
    ALL_RIGHT,
    NOISY,
    WIDE_MARGIN,
    hard_input,
    margin,
    noise,
    sufficient_width,
)

WIDTHS = {"right": ALL_RIGHT, "margin": WIDE_MARGIN, "noisy": NOISY}
"""What is asked of networks, and the width in d^3 at which the theorem promises it."""
NARROW = 0.25
"""In d^3: where the proof's input is asked to be wrong."""
POWERS = np.arange(-2.5, 0.6, 0.5)
Kept = Sequence[Mapping[str, np.ndarray]]
Scan = dict[int, Trials]
"""Networks without error, by width."""


@claim(
    "beyond.thm4-cubic",
    where="abbe2024, Theorem 4 and Remark 1: the width n = Omega(d^4), called somewhat loose",
    kind="theory",
    title="One step on the top layer needs a width of order d^3, no more and no less",
    statement="""With n >= 11 d^3 sign neurons one population step on the correlation loss classifies all 2^d inputs,
    but for a chance e^-d; with n >= 15 d^3 with the margin of equation (4); with n >= 43 d^3 also under gradient noise
    sqrt(n)/(24 d^2), of order 1/sqrt(d), but for a chance 3 e^-d. With n from d^2 to (1 - eps) d^3 and even d it errs
    on some input with a chance that tends to 1.""",
    published="n = Omega(d^4) suffices, noise up to O(1/d^2); no lower bound on the width",
)
class Thm4Cubic(Trial):
    """One-step networks at the widths of the theorem, at the width where half of them make no error, and below d^3."""

    even = size(quick=[6, 8, 10], full=[6, 8, 10, 12, 14], label="even d")
    odd = size(quick=[7, 9], full=[7, 9, 11, 13], label="odd d")
    large = size(quick=[60], full=[60, 80, 100], label="d of the hard input")
    seeds = size(quick=400, full=2000)
    scanned = size(quick=80, full=400, label="seeds of the scan")
    networks = size(quick=80, full=120, label="networks at the hard input")

    right = at_least("share of networks without error at n = 11 d^3, smallest over d", 0.99)
    margins = at_least("share with all margins >= sqrt(n/d)/18 at n = 15 d^3, smallest over d", 0.99)
    noisy = at_least("share without error at n = 43 d^3 under noise sqrt(n)/(24 d^2), smallest over d", 0.99)
    cubic = between("exponent of the width at which half make no error, even d", 2.5, 3.5)
    level = between("exponent of that width over the finite-d prediction n_c, odd d", -0.5, 0.5)
    narrow = at_least("share that err at the proof's input at n = d^3/4, smallest over d", 0.95)

    @property
    def d(self) -> list[int]:
        return sorted([*self.even, *self.odd])

    def work(self, lab: Lab) -> tuple[Kept, Kept, Kept]:
        return (lab.compute_each(sound_networks, [{"d": d, "kind": kind, "seeds": self.seeds}
                                                  for d in self.d for kind in WIDTHS]),
                lab.compute_each(scanned_networks, [{"d": d, "seeds": self.scanned} for d in self.d]),
                lab.compute_each(hard_inputs, [{"d": d, "seeds": self.networks} for d in self.large]))

    def scans(self, got: Kept) -> dict[int, Scan]:
        """Networks without error by d and width."""
        counts = {d: zip(arrays["widths"].tolist(), arrays["perfect"].tolist(), strict=True)
                  for d, arrays in zip(self.d, got, strict=True)}
        return {d: {n: Trials(perfect, self.scanned) for n, perfect in each} for d, each in counts.items()}

    def judge(self, got: tuple[Kept, Kept, Kept]) -> Findings:
        kinds = [(d, kind) for d in self.d for kind in WIDTHS]
        sound = {key: Trials.of(arrays) for key, arrays in zip(kinds, got[0], strict=True)}
        wrong = {d: Trials(int(np.sum(arrays["margins"] < 0)), self.networks)
                 for d, arrays in zip(self.large, got[2], strict=True)}
        scans = self.scans(got[1])
        checks = [smallest(rule, [each for (_, name), each in sound.items() if name == kind])
                  for kind, rule in (("right", self.right), ("margin", self.margins), ("noisy", self.noisy))]
        checks.append(self.cubic(*self.exponent({d: scans[d] for d in self.even}, lambda d: 1.0)))
        checks.append(self.level(*self.exponent({d: scans[d] for d in self.odd}, critical_width)))
        checks.append(smallest(self.narrow, wrong.values()))
        numbers: dict[str, float | None] = {}
        for d, scan in scans.items():
            value, (low, high) = half_width(scan), self.half_interval(d, scan)
            numbers |= {f"width where half make no error / d^3, d = {d}": value / d**3,
                        f"its lower end, d = {d}": low / d**3, f"its upper end, d = {d}": high / d**3}
        numbers |= {f"width of the proof / d^3, d = {d}": sufficient_width(d) / d**3 for d in self.d}
        numbers |= {f"margin at the proof's input / mean, n = d^3/4, d = {d}, largest": float(arrays["margins"].max())
                    for d, arrays in zip(self.large, got[2], strict=True)}
        rows = [each.row(kind=kind, d=d, n=WIDTHS[kind] * d**3) for (d, kind), each in sound.items()]
        rows += [each.row(kind="scan", d=d, n=n) for d, scan in scans.items() for n, each in scan.items()]
        rows += [each.row(kind="wrong at the hard input", d=d, n=round(NARROW * d**3)) for d, each in wrong.items()]
        return Findings(checks, rows, numbers)

    def half_interval(self, d: int, scan: Scan) -> Interval:
        values = [half_width(each) for each in resampled(scan, self.rng(1, d))]
        low, high = np.quantile(values, [0.025, 0.975])
        return float(low), float(high)

    def exponent(self, scans: Mapping[int, Scan], law: Any) -> tuple[float, Interval]:
        """Of the width at which half make no error, over a law, and its bootstrap interval."""
        dims = list(scans)
        drawn = [resampled(scans[d], self.rng(2, d)) for d in dims]
        slopes = [slope(dims, [half_width(each) / law(d) for d, each in zip(dims, chosen, strict=True)])
                  for chosen in zip(*drawn, strict=True)]
        low, high = np.quantile(slopes, [0.025, 0.975])
        return slope(dims, [half_width(scans[d]) / law(d) for d in dims]), (float(low), float(high))

    def draw(self, got: tuple[Kept, Kept, Kept]) -> plots.Figure:
        scans = self.scans(got[1])
        return draw_widths(scans, {d: self.half_interval(d, scan) for d, scan in scans.items()})


@computation
def sound_networks(seed: int, d: int, kind: str, seeds: int) -> dict[str, int]:
    """Networks that do what the theorem promises at the width of one kind."""
    width = WIDTHS[kind] * d**3
    tau, least = (noise(d, width) if kind == "noisy" else 0.0), (margin_bound(d, width) if kind == "margin" else 0.0)
    runs = [one_step(d, width, tau=tau, seed=rng(seed, 1, d, width, each)) for each in range(seeds)]
    return {"perfect": sum(run.errors == 0 and run.margin >= least for run in runs), "seeds": seeds}


@computation
def scanned_networks(seed: int, d: int, seeds: int) -> dict[str, list[int]]:
    """Networks without error, at widths about the one where half have none."""
    widths = [round(critical_width(d) * 2**power) for power in POWERS.tolist()]
    perfect = [sum(one_step(d, n, seed=rng(seed, 2, d, n, each)).errors == 0 for each in range(seeds)) for n in widths]
    return {"widths": widths, "perfect": perfect}


@computation
def hard_inputs(seed: int, d: int, seeds: int) -> dict[str, list[float]]:
    """The margin at the hard input over the mean margin, for networks of width d^3/4."""
    found = []
    for each in range(seeds):
        bits = rng(seed, 3, d, each).integers(0, 2, (round(NARROW * d**3), d), dtype=np.int8)
        weights = 1 - 2 * bits
        found.append(margin(weights, hard_input(weights)) / len(weights))
    return {"margins": found}


def half_width(scan: Mapping[int, Trials]) -> float:
    """Where the share of networks without error, made monotone and joined by lines in ln n, passes one half.

    >>> round(half_width({100: Trials(0, 10), 400: Trials(10, 10)}))
    200
    """
    widths = sorted(scan)
    shares = np.maximum.accumulate([scan[n].perfect / scan[n].seeds for n in widths])
    above = int(np.argmax(shares >= 0.5))
    if above == 0:
        return math.nan if shares[0] < 0.5 else float(widths[0])
    low, high = shares[above - 1], shares[above]
    return float(widths[above - 1] * (widths[above] / widths[above - 1]) ** ((0.5 - low) / (high - low)))


def resampled(scan: Scan, generator: np.random.Generator, times: int = 1000) -> list[Scan]:
    """The scan with each count drawn anew from a binomial law."""
    drawn = {n: generator.binomial(each.seeds, each.perfect / each.seeds, times) for n, each in scan.items()}
    return [{n: Trials(int(drawn[n][i]), scan[n].seeds) for n in scan} for i in range(times)]


def slope(dims: Sequence[int], values: Sequence[float]) -> float:
    return float(np.polyfit(np.log(dims), np.log(values), 1)[0])


@plots.styled
def draw_widths(scans: Mapping[int, Scan], intervals: Mapping[int, Interval]) -> plots.Figure:
    """Widths over d^3: proved to suffice, proved to be needed, and where half of the networks make no error."""
    figure = plots.blank(2.7)
    axes = figure.add_subplot(xlabel="input dimension d", ylabel="width / $d^3$", yscale="log")
    for remainder, name, colour, mark in zip((0, 1), ("even", "odd"), plots.COLOURS, cycle("os"), strict=False):
        dims = [d for d in scans if d % 2 == remainder]
        values = np.array([half_width(scans[d]) / d**3 for d in dims])
        ends = np.array([intervals[d] for d in dims]).T / np.array(dims, float) ** 3
        axes.errorbar(dims, values, np.abs(ends - values), fmt=mark, color=colour, markersize=3, fillstyle="none",
                      elinewidth=0.8, capsize=1.5, label=f"half without error, {name} d")
        axes.plot(dims, [critical_width(d) / d**3 for d in dims], color=colour, linestyle="dashed", linewidth=0.8,
                  label=f"$n_c$, {name} d")
    dims = sorted(scans)
    axes.plot(dims, [sufficient_width(d) / d**3 for d in dims], ".", color=plots.GREY, markersize=3,
              label="suffices but for $e^{-d}$")
    axes.axhline(ALL_RIGHT, color=plots.GREY, linewidth=0.8, label="proved enough for every d")
    axes.axhline(1, color=plots.GREY, linewidth=0.8, linestyle="dotted", label="proved needed, large even d")
    plots.readable_log(axes)
    plots.legend_above(figure, axes)
    return figure
