"""One population step on the output layer: Theorem 4.1 and 4.2, Remark 1."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from itertools import cycle
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import norm

from paritylab import plots
from paritylab.claims.intervals import proportion
from paritylab.claims.lab import Lab
from paritylab.claims.registry import reproduces
from paritylab.claims.verdicts import Check, Interval, Outcome, at_least, at_most, between
from paritylab.papers.abbe2024.common import fit
from paritylab.theory.abbe2024 import activation_moments, critical_width, delta, margin_bound, recommended_bias
from paritylab.theory.one_step import one_step


class Trials(NamedTuple):
    """How many of the networks of one kind classify all 2^d inputs."""

    perfect: int
    seeds: int

    @property
    def share(self) -> tuple[float, Interval]:
        return proportion(self.perfect, self.seeds)

    def row(self, **where: Any) -> dict[str, Any]:
        share, (low, high) = self.share
        return {**where, "seeds": self.seeds, "perfect": self.perfect, "share": share, "low": low, "high": high}


def trials(lab: Lab, seeds: int, d: int, width: int, bias: str = "", tau: float = 0.0,
           clip: float | None = None) -> Trials:
    """One population step from random signs, so many times; biases as recommended, or ``normal``."""
    perfect = 0
    for seed in range(seeds):
        rng = lab.rng(4, d, width, seed)
        biases = rng.standard_normal(width) if bias == "normal" else None
        perfect += one_step(d, width, biases, tau, clip, rng).errors == 0
    return Trials(perfect, seeds)


def smallest(name: str, found: Iterable[Trials], bound: float) -> Check:
    """The smallest share is at least so large."""
    share, interval = min(found, key=lambda each: each.perfect / each.seeds).share
    return at_least(name, share, bound, interval)


def largest(name: str, found: Iterable[Trials], bound: float) -> Check:
    """The largest share is at most so large."""
    share, interval = max(found, key=lambda each: each.perfect / each.seeds).share
    return at_most(name, share, bound, interval)


def predicted_success(d: int, width: float, clip: float | None = None) -> float:
    """The chance that all 2^d margins are positive, were they independent and normal.

    >>> predicted_success(10, critical_width(10) / 10) < 0.01 < 0.99 < predicted_success(10, 3 * critical_width(10))
    True
    """
    mean, square = activation_moments(d, recommended_bias(d), clip)
    ratio = math.sqrt(width * float(mean**2 / (square - mean**2)))
    return float(np.exp(2.0**d * norm.logsf(-ratio)))


# --- Theorem 4.1 and 4.2 ------------------------------------------------------------------------------------------


@reproduces("abbe2024.thm4-1")
def perfect_in_one_step(lab: Lab) -> Outcome:
    """Networks that classify all inputs after one noisy population step, against their width."""
    dims = lab.pick("d", quick=[6, 8, 10, 11, 12, 14], full=[6, 8, 10, 11, 12, 14])
    seeds = lab.pick("seeds", quick=200, full=2000)
    scanned = lab.pick("seeds of the scan", quick=40, full=400)
    noise = {d: 0.5 / d**2 for d in dims}
    wide = {d: trials(lab, seeds, d, d**4) for d in dims}
    noisy = {d: trials(lab, seeds, d, d**4, tau=noise[d]) for d in dims}
    narrow = {d: trials(lab, seeds, d, d**2) for d in dims}
    checks = [
        smallest("share of perfect networks at n = d^4, smallest over d", wide.values(), 0.95),
        smallest("the same with noise 0.5/d^2", noisy.values(), 0.95),
        largest("share of perfect networks at n = d^2, largest over d", narrow.values(), 0.2),
    ]
    scans = {d: scan(lab, scanned, d) for d in dims}
    data = [each.row(d=d, n=n, tau=0.0) for d, points in scans.items() for n, each in points.items()]
    for found, exponent, tau in ((wide, 4, {}), (noisy, 4, noise), (narrow, 2, {})):
        data += [each.row(d=d, n=d**exponent, tau=tau.get(d, 0.0)) for d, each in found.items()]
    numbers = {f"critical width / d^3, d = {d}": critical_width(d) / d**3 for d in dims}
    figure = draw_transition({d: scans[d] | {d**2: narrow[d], d**4: wide[d]} for d in dims if d != 11})
    return Outcome(checks, data, figure, numbers, f"{seeds} seeds instead of 20; d = 11 is not drawn")


def scan(lab: Lab, seeds: int, d: int, clip: float | None = None) -> dict[int, Trials]:
    """Widths about the critical one."""
    widths = [round(critical_width(d, clip) * 2**power) for power in np.arange(-3, 1.6, 0.5)]
    return {width: trials(lab, seeds, d, width, clip=clip) for width in widths}


@plots.styled
def draw_transition(scans: Mapping[int, Mapping[int, Trials]]) -> Any:
    figure = plots.blank(2.7)
    axes = figure.add_subplot()
    transition(axes, scans)
    plots.legend_above(figure, axes)
    return figure


def transition(axes: Any, scans: Mapping[int, Mapping[int, Trials]], clip: float | None = None) -> None:
    """Shares of perfect networks against the width, the prediction for independent margins, and n_c (bars on top)."""
    axes.set(xlabel="width n", ylabel="share of perfect networks", xscale="log", ylim=(-0.04, 1.12))
    for (d, points), colour, marker in zip(scans.items(), plots.COLOURS, cycle("osD^v"), strict=False):
        widths = sorted(points)
        shares, ends = zip(*(points[n].share for n in widths), strict=True)
        axes.errorbar(widths, shares, np.abs(np.array(ends).T - shares), fmt=marker, color=colour, markersize=3,
                      fillstyle="none", elinewidth=0.8, capsize=1.5, label=f"d = {d}")
        grid = np.geomspace(widths[0], widths[-1], 200)
        axes.plot(grid, [predicted_success(d, n, clip) for n in grid], color=colour, linewidth=0.8)
        axes.plot([critical_width(d, clip)] * 2, [1.05, 1.1], color=colour)
    axes.plot([], [], color=plots.GREY, linewidth=0.8, label="independent margins")
    axes.plot([], [], "|", color=plots.GREY, label="$n_c$ (top)")


@reproduces("abbe2024.thm4-2")
def margin_after_one_step(lab: Lab) -> Outcome:
    """The smallest margin over all inputs, output weights scaled to norm 1, at width d^4."""
    dims = lab.pick("d", quick=[6, 8, 10, 11, 12], full=[6, 8, 10, 11, 12])
    seeds = lab.pick("seeds", quick=200, full=2000)
    margins: dict[int, np.ndarray] = {}
    uneven = 0.0
    for d in dims:
        runs = [one_step(d, d**4, seed=lab.rng(4, d, d**4, seed)) for seed in range(seeds)]
        margins[d] = np.array([run.margin for run in runs])
        sizes = [np.abs(run.v) * d**2 / np.linalg.norm(run.v) for run in runs]
        uneven = max(uneven, *(float(np.abs(size - 1).max()) for size in sizes))
    above = {d: Trials(int(np.sum(values >= margin_bound(d, d**4))), seeds) for d, values in margins.items()}
    checks = [at_most("| |v_i| sqrt(n) - 1 |, largest", uneven, 1e-9),
              smallest("share of networks with margin at least sqrt(n/d)/18, smallest over d", above.values(), 0.95)]
    data = [{"d": d, "seed": seed, "margin": float(value), "bound": margin_bound(d, d**4)}
            for d, values in margins.items() for seed, value in enumerate(values)]
    numbers = {f"median margin / bound, d = {d}": float(np.median(values)) / margin_bound(d, d**4)
               for d, values in margins.items()}
    numbers |= {f"mean over inputs / sqrt(n/d), d = {d}": mean_margin(d) for d in dims}
    numbers |= {f"share above the bound, d = {d}": each.share[0] for d, each in above.items()}
    return Outcome(checks, data, draw_margins(margins), numbers, f"{seeds} seeds instead of 20")


def mean_margin(d: int) -> float:
    """The mean margin over sqrt(n/d) is |Delta| sqrt(d), whatever the width."""
    return math.sqrt(d) * float(abs(delta(d, recommended_bias(d))))


@plots.styled
def draw_margins(margins: Mapping[int, np.ndarray]) -> Any:
    figure = plots.blank(2.4)
    axes = figure.add_subplot(xlabel="input dimension d", ylabel="margin $/\\ \\sqrt{n/d}$")
    dims = list(margins)
    boxes = [margins[d] / d**1.5 for d in dims]
    axes.boxplot(boxes, positions=dims, widths=0.5, whis=(0, 100), medianprops={"color": plots.COLOURS[0]})
    axes.plot([], [], color=plots.COLOURS[0], label="smallest over inputs (all seeds)")
    axes.plot(dims, [mean_margin(d) for d in dims], "D", markersize=3, color=plots.COLOURS[1], label="mean over inputs")
    axes.axhline(1 / 18, color=plots.GREY, linestyle="dashed", linewidth=0.8, label="bound 1/18")
    axes.set_ylim(min(0.0, min(box.min() for box in boxes)) - 0.02, 0.48)
    plots.legend_above(figure, axes)
    return figure


# --- Remark 1 -----------------------------------------------------------------------------------------------------

CLIP = 5


@reproduces("abbe2024.remark1-clipped-relu")
def clipped_units(lab: Lab) -> Outcome:
    """The critical width of clipped and plain ReLU units against d, and networks on either side of it."""
    dims = lab.pick("d", quick=list(range(10, 201)), full=list(range(10, 201)))
    simulated = lab.pick("d simulated", quick=[8, 10, 12], full=[8, 10, 12])
    seeds = lab.pick("seeds", quick=100, full=1000)
    widths = {name: {d: critical_width(d, clip) for d in dims} for name, clip in (("clipped", CLIP), ("ReLU", None))}
    fitted = [d for d in dims if 40 <= d <= 200]
    slopes = {name: fit(np.log(fitted), np.log([found[d] for d in fitted])).slope for name, found in widths.items()}
    scans = {d: scan(lab, max(40, seeds // 5), d, CLIP) for d in simulated}
    ends = {factor: {d: trials(lab, seeds, d, round(factor * critical_width(d, CLIP)), clip=CLIP) for d in simulated}
            for factor in (0.25, 2)}
    checks = [
        between("slope of ln n_c on ln d from 40 to 200, clipped at 5", slopes["clipped"], 1.9, 2.3),
        between("the same, ReLU", slopes["ReLU"], 2.9, 3.1),
        smallest("share of perfect networks at 2 n_c, clipped, smallest over d", ends[2].values(), 0.9),
        largest("share of perfect networks at n_c/4, clipped, largest over d", ends[0.25].values(), 0.5),
    ]
    numbers = {f"n_c(80), {name}": found[80] for name, found in widths.items()}
    data: list[dict[str, Any]] = [{"unit": name, "d": d, "critical width": n} for name, found in widths.items()
                                  for d, n in found.items()]
    data += [each.row(unit="clipped", d=d, n=round(factor * critical_width(d, CLIP)))
             for factor, found in ends.items() for d, each in found.items()]
    data += [each.row(unit="clipped", d=d, n=n) for d, points in scans.items() for n, each in points.items()]
    return Outcome(checks, data, draw_clipped(widths, scans), numbers, f"{seeds} seeds instead of 20")


@plots.styled
def draw_clipped(widths: Mapping[str, Mapping[int, float]], scans: Mapping[int, Mapping[int, Trials]]) -> Any:
    """Critical widths above, networks on either side of them below."""
    figure = plots.blank(4.6)
    above, below = figure.add_subplot(2, 1, 1), figure.add_subplot(2, 1, 2)
    above.set(xlabel="input dimension d", ylabel="critical width $n_c$", xscale="log", yscale="log")
    for (name, found), colour, line, power in zip(widths.items(), plots.COLOURS, plots.LINES, (2, 3), strict=False):
        dims = np.array(list(found), float)
        above.plot(dims, list(found.values()), color=colour, linestyle=line, label=name)
        above.plot(dims, found[80] * (dims / 80) ** power, color=plots.GREY, linestyle="dotted", linewidth=0.8,
                   label=f"$\\propto d^{power}$")
    above.legend()
    plots.readable_log(above)
    transition(below, scans, CLIP)
    below.legend(loc="center left", bbox_to_anchor=(0, 0.6))
    return figure
