"""Does the alignment with the parity stay below its start along the hinge loss's junk flow?"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import Any, NamedTuple

import numpy as np

from paritylab import alignment, plots
from paritylab.aliases import Floats, Interval
from paritylab.claims import Findings, Lab, Trial, at_least, at_most, between, claim, computation, rng, size
from paritylab_beyond.beyond.theory.hinge_neuron import HingeNeuron

TIMES = [0, 1, 2, 5, 10, 20, 50]
NORMAL = "N(0, 1/d)"
SIGMAS = (0.1, 0.5, 1.0)
SCALED, PLAIN = "signs + {:g}, variance 1/d", "signs + {:g}"
STARTS = [NORMAL, *(name.format(sigma) for name in (SCALED, PLAIN) for sigma in SIGMAS)]
TAUS = (0.0, 0.1)
SHRUNK = (0.95, 0.9, 0.8, 0.7, 0.6, 0.5, 0.3)
RESAMPLES = 1000
Kept = Sequence[Mapping[str, Floats]]


class Case(NamedTuple):
    """Where a flow starts, its dimension, its rate and its noise."""

    start: str
    d: int
    rate: float
    tau: float


class Ratio(NamedTuple):
    """An alignment over that at the start, with its interval."""

    value: float
    low: float
    high: float


@claim(
    "beyond.hinge-junk-flow",
    where="abbe2024, Remark 4 and Section 6 (Figure 2, left): why random labels do not increase the alignment under "
    "the hinge loss is left open",
    kind="empirical",
    title="The hinge loss's junk flow can raise the alignment, but by little",
    statement="""Along gradient descent on random labels (hinge loss, one ReLU neuron, N(0, 1/d) weights, no noise) the
    alignment with the full parity stays below that at the start for d to 10, at all times to 50 and all rates. It is no
    law: normal weights that shrink, as these do, have more alignment than at the start for some even d from 14 on, by a
    tenth at most; from perturbed signs and from weights of order 1 it rises more, by a factor that grows slowly.""",
    published="no increase at t = 2 and 5, rate 1, Gaussian weights, no noise; nothing for other starts",
)
class HingeJunkFlow(Trial):
    """The alignment of a neuron along the flow over its start; starts are drawn, inputs enumerated."""

    d = size(quick=[6, 7], full=[6, 7, 8, 9, 10])
    rates = size(quick=[1.0], full=[0.3, 1.0, 3.0])
    draws = size(quick=20_000, full=100_000, label="starts N(0, 1/d)")
    others = size(quick=2000, full=4000, label="other starts")
    exact = size(quick=[8, 12, 16, 20], full=[*range(6, 41), 60, 100], label="d of shrunk normal weights")

    below = at_most("ratio to the start from N(0, 1/d), no noise, largest over t > 0, rates and d", 1.0)
    shrunk = between("exact alignment of N(0, s^2/d) over that of N(0, 1/d), largest over s < 1 and d", 1.0, 1.25,
                     exact=True)
    rises = at_least("ratio to the start over all other starts and noise 0.1, largest", 1.0)
    growth = at_most("growth of the logarithm of that largest ratio per dimension, {parity} d", 0.25,
                     only=("standard", "full"))

    @property
    def cases(self) -> list[Case]:
        return [Case(start, d, rate, tau) for start in STARTS for d in self.d for rate in self.rates for tau in TAUS]

    def count(self, case: Case) -> int:
        return self.draws if (case.start, case.tau) == (NORMAL, 0.0) else self.others

    def work(self, lab: Lab) -> tuple[Kept, Kept]:
        return (lab.compute_each(flows, [case._asdict() | {"draws": self.count(case)} for case in self.cases]),
                lab.compute_each(shrunk_alignments, [{"d": d} for d in self.exact]))

    def ratios(self, got: Kept) -> dict[Case, list[Ratio]]:
        """By case, for each time after the start."""
        return {case: [Ratio(*each) for each in arrays["ratios"].tolist()]
                for case, arrays in zip(self.cases, got, strict=True)}

    def judge(self, got: tuple[Kept, Kept]) -> Findings:
        ratios = self.ratios(got[0])
        shrunk = {d: float(arrays["ratios"].max()) for d, arrays in zip(self.exact, got[1], strict=True)}
        normal = {case: each for case, each in ratios.items() if (case.start, case.tau) == (NORMAL, 0.0)}
        rest = {case: each for case, each in ratios.items() if case not in normal}
        checks = [applied(self.below, highest(normal)), self.shrunk(max(shrunk.values())),
                  applied(self.rises, highest(rest))]
        for parity, remainder in (("even", 0), ("odd", 1)):
            peaks = {d: highest({case: each for case, each in rest.items() if case.d == d})
                     for d in self.d if d % 2 == remainder}
            if self.size != "quick":
                checks.append(self.growth(*growth(peaks, self.rng(1, remainder)), parity=parity))
        numbers = {}
        for start, tau in itertools.product(STARTS, TAUS):
            chosen = {case: each for case, each in ratios.items() if (case.start, case.tau) == (start, tau)}
            numbers[f"largest ratio, {start}{', noise 0.1' if tau else ''}"] = highest(chosen).value
        numbers |= {f"largest ratio from signs, d = {d}": sign_ratio(d) for d in self.d if d % 2 == 0}
        numbers |= {f"largest ratio of shrunk normal weights, d = {d}": value for d, value in shrunk.items()}
        rows = [{**case._asdict(), "t": t, "draws": self.count(case), "ratio": each.value, "low": each.low,
                 "high": each.high} for case, found in ratios.items()
                for t, each in zip(TIMES[1:], found, strict=True)]
        return Findings(checks, rows, numbers, "biases and output weight are left out, as in Figure 2")

    def draw(self, got: tuple[Kept, Kept]) -> plots.Figure:
        shrunk = {d: arrays["ratios"] for d, arrays in zip(self.exact, got[1], strict=True)}
        return draw_ratios(self.ratios(got[0]), shrunk)


@computation
def flows(seed: int, start: str, d: int, rate: float, tau: float, draws: int) -> dict[str, Any]:
    """The mean alignment at each later time over that at the start, with the ends of its interval."""
    generator = rng(seed, 5, STARTS.index(start), d, round(100 * rate), round(100 * tau))
    found = HingeNeuron(d).flow(weights(start, d, draws, generator), TIMES, rate, tau, generator).astype(float)
    first = found[0].mean()
    ratios = found[1:].mean(axis=1) / first
    halves = 1.96 * np.std(found[1:] - ratios[:, None] * found[0], axis=1, ddof=1) / (first * math.sqrt(draws))
    return {"ratios": np.stack([ratios, ratios - halves, ratios + halves], axis=1)}


@computation
def shrunk_alignments(seed: int, d: int) -> dict[str, list[float]]:
    """The alignment of weights N(0, s^2/d) over that of N(0, 1/d), exactly, for each s of SHRUNK."""
    logs = [alignment("gaussian", d, unit="hinge-neuron", scale=s / math.sqrt(d)).log for s in (1.0, *SHRUNK)]
    return {"ratios": [math.exp(log - logs[0]) for log in logs[1:]]}


def weights(start: str, d: int, count: int, generator: np.random.Generator) -> Any:
    """Starts in single precision."""
    noise = generator.standard_normal((count, d))
    if start == NORMAL:
        return (noise / math.sqrt(d)).astype(np.float32)
    sigma, scaled = next((s, name == SCALED) for name in (SCALED, PLAIN) for s in SIGMAS if name.format(s) == start)
    drawn = generator.choice([-1.0, 1.0], (count, d)) + sigma * noise
    return (drawn / math.sqrt(d * (1 + sigma**2)) if scaled else drawn).astype(np.float32)


def sign_ratio(d: int) -> float:
    """The largest alignment on the ray of a sign vector over that at length 1, even d: (2 + 3 (d-2)/(d+2))^2.

    It is reached where 4 but not 2 times the weight is above 1, and tends to 25.

    >>> sign_ratio(6), sign_ratio(10)
    (12.25, 16.0)
    """
    return (2 + 3 * (d - 2) / (d + 2)) ** 2


def highest(ratios: Mapping[Case, Sequence[Ratio]]) -> Ratio:
    return max((each for found in ratios.values() for each in found), key=lambda each: each.value)


def applied(rule: Any, ratio: Ratio) -> Any:
    return rule(ratio.value, (ratio.low, ratio.high))


def growth(peaks: Mapping[int, Ratio], generator: np.random.Generator) -> tuple[float, Interval]:
    """The slope of the logarithm of a ratio on d, with its interval for normal errors.

    >>> round(growth({6: Ratio(1.0, 1.0, 1.0), 8: Ratio(1.5, 1.5, 1.5)}, np.random.default_rng(0))[0], 4)
    0.2027
    """
    dims = list(peaks)
    values = np.array([each.value for each in peaks.values()])
    errors = np.array([(each.high - each.low) / 3.92 for each in peaks.values()])
    drawn = values + errors * generator.standard_normal((RESAMPLES, len(dims)))
    slopes = [float(np.polyfit(dims, np.log(each), 1)[0]) for each in [values, *drawn]]
    low, high = np.quantile(slopes, [0.025, 0.975])
    return slopes[0], (float(low), float(high))


@plots.styled
def draw_ratios(ratios: Mapping[Case, Sequence[Ratio]], shrunk: Mapping[int, Floats]) -> plots.Figure:
    """Above, the ratio at rate 1 against time at the largest even and odd d, one line for each start; noise dotted.
    Below, the exact ratio of shrunk normal weights against d, even (solid) and odd (dotted)."""
    figure = plots.blank(5.2)
    grid = figure.add_gridspec(2, 2, height_ratios=(1.5, 1))
    dims = sorted({case.d for case in ratios})
    shown = [max(d for d in dims if d % 2 == remainder) for remainder in (0, 1)]
    first = figure.add_subplot(grid[0, 0])
    panels = [first, figure.add_subplot(grid[0, 1], sharey=first)]
    for axes, d in zip(panels, shown, strict=True):
        for start, colour, mark in zip(STARTS, cycle(plots.COLOURS), cycle("os^vDP*"), strict=False):
            for tau, line in zip(TAUS, ("solid", "dotted"), strict=True):
                found = ratios[Case(start, d, 1.0, tau)]
                values, low, high = np.array([Ratio(1, 1, 1), *found]).T
                axes.errorbar(TIMES, values, [values - low, high - values], color=colour, linestyle=line,
                              linewidth=0.9, marker=mark, markersize=2.5, fillstyle="none", elinewidth=0.6,
                              label=None if tau else start)
        axes.axhline(1, color=plots.GREY, linewidth=0.6)
        axes.set(xlabel="steps on random labels", title=f"d = {d}, rate 1")
        axes.set_xscale("symlog", linthresh=1, linscale=0.5)
        axes.set_xlim(-0.1, 60)
        axes.set_xticks([0, 1, 5, 20, 50], ["0", "1", "5", "20", "50"])
        axes.minorticks_off()
    first.set_ylabel("alignment / at the start")
    below = figure.add_subplot(grid[1, :], xlabel="input dimension d", ylabel="N(0, $s^2/d$) / N(0, 1/d)", xscale="log")
    for s, colour in zip((0.9, 0.7, 0.5), plots.COLOURS, strict=False):
        for remainder, line in ((0, "solid"), (1, "dotted")):
            chosen = [d for d in shrunk if d % 2 == remainder]
            below.plot(chosen, [shrunk[d][SHRUNK.index(s)] for d in chosen], color=colour, linestyle=line,
                       linewidth=0.9, label=None if remainder else f"s = {s:g}")
    below.axhline(1, color=plots.GREY, linewidth=0.6)
    below.legend()
    plots.readable_log(below)
    plots.legend_above(figure, first)
    return figure
