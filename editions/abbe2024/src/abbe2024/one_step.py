"""One population step on the output layer: Theorem 4.1 and 4.2, Remark 1."""

from __future__ import annotations

import functools
import math
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from itertools import cycle
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import norm

from abbe2024.common import fit
from abbe2024.theory.high_degree import activation_moments, critical_width, delta, margin_bound, recommended_bias
from abbe2024.theory.one_step import one_step
from paritylab import plots
from paritylab.aliases import Floats, Interval
from paritylab.claims import Check, Findings, Lab, Trial, at_least, at_most, between, claim, computation, rng, size
from paritylab.claims.intervals import proportion
from paritylab.claims.rules import Bounds

Case = tuple[str, int, int]
"""What networks are for, their d and their width."""


class Trials(NamedTuple):
    """How many of the networks of one kind classify all 2^d inputs."""

    perfect: int
    seeds: int

    @classmethod
    def of(cls, arrays: Mapping[str, Any]) -> Trials:
        """As :func:`perfect_networks` counts them."""
        return cls(int(arrays["perfect"]), int(arrays["seeds"]))

    @property
    def share(self) -> tuple[float, Interval]:
        return proportion(self.perfect, self.seeds)

    def row(self, **where: Any) -> dict[str, Any]:
        share, (low, high) = self.share
        return {**where, "seeds": self.seeds, "perfect": self.perfect, "share": share, "low": low, "high": high}


@computation
def perfect_networks(seed: int, d: int, width: int, seeds: int, bias: str = "", tau: float = 0.0,
                     clip: float | None = None) -> dict[str, Any]:
    """One population step from random signs, so many times; biases as recommended, or ``normal``."""
    perfect = 0
    for each in range(seeds):
        generator = rng(seed, 4, d, width, each)
        biases = generator.standard_normal(width) if bias == "normal" else None
        perfect += one_step(d, width, biases, tau, clip, generator).errors == 0
    return {"perfect": perfect, "seeds": seeds}


class PerfectNetworks(Trial):
    """Networks of several kinds, each counted if it classifies all inputs after one step."""

    @abstractmethod
    def cases(self) -> dict[Case, dict[str, Any]]:
        """The arguments of :func:`perfect_networks`."""

    def work(self, lab: Lab) -> list[dict[str, np.ndarray]]:
        return lab.compute_each(perfect_networks, list(self.cases().values()))

    def counted(self, got: Sequence[Mapping[str, Any]], kind: str) -> dict[int, Trials]:
        """Those of one kind by d."""
        return {d: points[max(points)] for d, points in self.scans(got, kind).items()}

    def scans(self, got: Sequence[Mapping[str, Any]], kind: str = "scan") -> dict[int, dict[int, Trials]]:
        """Those of one kind by d and width."""
        found: dict[int, dict[int, Trials]] = {}
        for (name, d, width), arrays in zip(self.cases(), got, strict=True):
            if name == kind:
                found.setdefault(d, {})[width] = Trials.of(arrays)
        return found


def smallest(rule: Bounds, found: Iterable[Trials], **fields: Any) -> Check:
    """The smallest share is at least so large."""
    share, interval = min(found, key=lambda each: each.perfect / each.seeds).share
    return rule(share, interval, **fields)


def largest(rule: Bounds, found: Iterable[Trials], **fields: Any) -> Check:
    """The largest share is at most so large."""
    share, interval = max(found, key=lambda each: each.perfect / each.seeds).share
    return rule(share, interval, **fields)


def predicted_success(d: int, width: float, clip: float | None = None) -> float:
    """The chance that all 2^d margins are positive, were they independent and normal.

    >>> predicted_success(10, critical_width(10) / 10) < 0.01 < 0.99 < predicted_success(10, 3 * critical_width(10))
    True
    """
    mean, square = activation_moments(d, recommended_bias(d), clip)
    ratio = math.sqrt(width * float(mean**2 / (square - mean**2)))
    return float(np.exp(2.0**d * norm.logsf(-ratio)))


# --- Theorem 4.1 and 4.2 ------------------------------------------------------------------------------------------


@claim(
    "abbe2024.thm4-1",
    where="Theorem 4.1",
    kind="theory",
    title="One population step on the top layer gives a perfect classifier",
    statement="""With n of order d^4 Rademacher ReLU neurons, zero output weights, bias 0 (d even) or -1 (d odd), a
    single gradient step on the correlation loss classifies all 2^d inputs, and still does with gradient noise up to
    order 1/d^2.""",
    published="""for n >= Omega(d^4), sign(N^1(x)) = f(x) for every x "except with probability at most 2 exp(-d)"
    (Theorem 4.1). (Computed here: the transition is near n = 2 d ln2 (d/2)/Delta^2, about 4.4 d^3.)""",
)
class Thm41(PerfectNetworks):
    """Networks that classify all inputs after one noisy population step, against their width."""

    d = size([6, 8, 10, 11, 12, 14])
    seeds = size(quick=200, full=2000)
    scanned = size(quick=40, full=400, label="seeds of the scan")

    wide = at_least("share of perfect networks at n = d^4, smallest over d", 0.95)
    noisy = at_least("the same with noise 0.5/d^2", 0.95)
    narrow = at_most("share of perfect networks at n = d^2, largest over d", 0.2)

    def noise(self, kind: str, d: int) -> float:
        return 0.5 / d**2 if kind == "noisy" else 0.0

    def cases(self) -> dict[Case, dict[str, Any]]:
        ends = {(kind, d, d**power): {"d": d, "width": d**power, "seeds": self.seeds, "tau": self.noise(kind, d)}
                for kind, power in (("wide", 4), ("noisy", 4), ("narrow", 2)) for d in self.d}
        return ends | {("scan", d, width): {"d": d, "width": width, "seeds": self.scanned}
                       for d in self.d for width in scan_widths(d)}

    def judge(self, got: list[dict[str, np.ndarray]]) -> Findings:
        checks = [smallest(self.wide, self.counted(got, "wide").values()),
                  smallest(self.noisy, self.counted(got, "noisy").values()),
                  largest(self.narrow, self.counted(got, "narrow").values())]
        rows = [each.row(d=d, n=n, tau=self.noise(kind, d)) for kind in ("scan", "wide", "noisy", "narrow")
                for d, points in self.scans(got, kind).items() for n, each in points.items()]
        numbers = {f"critical width / d^3, d = {d}": critical_width(d) / d**3 for d in self.d}
        return Findings(checks, rows, numbers, f"{self.seeds} seeds instead of 20; d = 11 is not drawn")

    def draw(self, got: list[dict[str, np.ndarray]]) -> plots.Figure:
        scans, narrow, wide = (self.scans(got, kind) for kind in ("scan", "narrow", "wide"))
        return draw_transition({d: scans[d] | narrow[d] | wide[d] for d in self.d if d != 11})


def scan_widths(d: int, clip: float | None = None) -> list[int]:
    """Widths about the critical one."""
    return [round(critical_width(d, clip) * 2**power) for power in np.arange(-3, 1.6, 0.5)]


@plots.styled
def draw_transition(scans: Mapping[int, Mapping[int, Trials]]) -> plots.Figure:
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


@claim(
    "abbe2024.thm4-2",
    where="Theorem 4.2, Equation (4)",
    kind="theory",
    title="Normalised margin after one step",
    statement="""The unit-norm version of the one-step output weights has entries +-1/sqrt(n) and margin at least
    sqrt(n)/(18 sqrt(d)) on every input.""",
    published="""|v_i| = 1/sqrt n and a margin of at least sqrt(n)/(18 sqrt d), "except with probability exp(-d)"
    (Equation 4). (Computed here: mean margin 0.41 to 0.46 sqrt(n/d), smallest 4 to 5 times the bound.)""",
)
class Thm42(Trial):
    """The smallest margin over all inputs, output weights scaled to norm 1, at width d^4."""

    d = size([6, 8, 10, 11, 12])
    seeds = size(quick=200, full=2000)

    even = at_most("| |v_i| sqrt(n) - 1 |, largest", 1e-9, exact=True)
    wide_margin = at_least("share of networks with margin at least sqrt(n/d)/18, smallest over d", 0.95)

    def work(self, lab: Lab) -> list[dict[str, Floats]]:
        return lab.compute_each(smallest_margins, [{"d": d, "seeds": self.seeds} for d in self.d])

    def margins(self, got: list[dict[str, Floats]]) -> dict[int, Floats]:
        return {d: arrays["margins"] for d, arrays in zip(self.d, got, strict=True)}

    def judge(self, got: list[dict[str, Floats]]) -> Findings:
        margins = self.margins(got)
        above = {d: Trials(int(np.sum(values >= margin_bound(d, d**4))), self.seeds) for d, values in margins.items()}
        checks = [self.even(max(float(arrays["uneven"]) for arrays in got)),
                  smallest(self.wide_margin, above.values())]
        rows = [{"d": d, "seed": seed, "margin": float(value), "bound": margin_bound(d, d**4)}
                for d, values in margins.items() for seed, value in enumerate(values)]
        numbers = {f"median margin / bound, d = {d}": float(np.median(values)) / margin_bound(d, d**4)
                   for d, values in margins.items()}
        numbers |= {f"mean over inputs / sqrt(n/d), d = {d}": mean_margin(d) for d in self.d}
        numbers |= {f"share above the bound, d = {d}": each.share[0] for d, each in above.items()}
        return Findings(checks, rows, numbers, f"{self.seeds} seeds instead of 20")

    def draw(self, got: list[dict[str, Floats]]) -> plots.Figure:
        return draw_margins(self.margins(got))


@computation
def smallest_margins(seed: int, d: int, seeds: int) -> dict[str, Any]:
    """The margin of each network of width d^4 after one step, and how far its output weights are from one size."""
    runs = [one_step(d, d**4, seed=rng(seed, 4, d, d**4, each)) for each in range(seeds)]
    sizes = [np.abs(run.v) * d**2 / np.linalg.norm(run.v) for run in runs]
    return {"margins": [run.margin for run in runs], "uneven": max(float(np.abs(each - 1).max()) for each in sizes)}


def mean_margin(d: int) -> float:
    """The mean margin over sqrt(n/d) is |Delta| sqrt(d), whatever the width."""
    return math.sqrt(d) * float(abs(delta(d, recommended_bias(d))))


@plots.styled
def draw_margins(margins: Mapping[int, Floats]) -> plots.Figure:
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


@claim(
    "abbe2024.remark1-clipped-relu",
    where="Remark 1",
    kind="theory",
    title="Bounded activation reduces the width requirement to order d^2",
    statement="""For sigma(z)=max(0,min(z,5)) the one-step argument needs only order d^2 neurons (against d^3-d^4 for
    ReLU).""",
    published=""""a bounded activation would give n >= Omega(d^2) bound" (Remark 1). (Computed here: slopes of the
    critical width of 2.1, clipped, and 3.05, ReLU; 5.4e5 against 2.2e6 at d=80.)""",
)
class Remark1ClippedRelu(PerfectNetworks):
    """The critical width of clipped and plain ReLU units against d, and networks on either side of it."""

    d = size(list(range(10, 201)))
    simulated = size([8, 10, 12], label="d simulated")
    seeds = size(quick=100, full=1000)

    clipped = between("slope of ln n_c on ln d from 40 to 200, clipped at 5", 1.9, 2.3, exact=True)
    plain = between("the same, ReLU", 2.9, 3.1, exact=True)
    wide = at_least("share of perfect networks at 2 n_c, clipped, smallest over d", 0.9)
    narrow = at_most("share of perfect networks at n_c/4, clipped, largest over d", 0.5)

    def cases(self) -> dict[Case, dict[str, Any]]:
        widths = {(kind, d, round(factor * critical_width(d, CLIP))): self.seeds
                  for kind, factor in (("narrow", 0.25), ("wide", 2)) for d in self.simulated}
        widths |= {("scan", d, width): max(40, self.seeds // 5)
                   for d in self.simulated for width in scan_widths(d, CLIP)}
        return {case: {"d": case[1], "width": case[2], "seeds": seeds, "clip": CLIP} for case, seeds in widths.items()}

    @functools.cached_property
    def widths(self) -> dict[str, dict[int, float]]:
        """The critical ones, by unit and d."""
        return {name: {d: critical_width(d, clip) for d in self.d}
                for name, clip in (("clipped", CLIP), ("ReLU", None))}

    def judge(self, got: list[dict[str, np.ndarray]]) -> Findings:
        fitted = [d for d in self.d if 40 <= d <= 200]
        slopes = {name: fit(np.log(fitted), np.log([found[d] for d in fitted])).slope
                  for name, found in self.widths.items()}
        checks = [
            self.clipped(slopes["clipped"]),
            self.plain(slopes["ReLU"]),
            smallest(self.wide, self.counted(got, "wide").values()),
            largest(self.narrow, self.counted(got, "narrow").values()),
        ]
        numbers = {f"n_c(80), {name}": found[80] for name, found in self.widths.items()}
        rows: list[dict[str, Any]] = [{"unit": name, "d": d, "critical width": n}
                                      for name, found in self.widths.items() for d, n in found.items()]
        rows += [each.row(unit="clipped", d=d, n=n) for kind in ("narrow", "wide", "scan")
                 for d, points in self.scans(got, kind).items() for n, each in points.items()]
        return Findings(checks, rows, numbers, f"{self.seeds} seeds instead of 20")

    def draw(self, got: list[dict[str, np.ndarray]]) -> plots.Figure:
        return draw_clipped(self.widths, self.scans(got))


@plots.styled
def draw_clipped(widths: Mapping[str, Mapping[int, float]], scans: Mapping[int, Mapping[int, Trials]]) -> plots.Figure:
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
