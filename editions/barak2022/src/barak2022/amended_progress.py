"""Figures 3, 12-right and 13 by amended rules: rates at which networks learn, and enough runs to tell."""

from __future__ import annotations

import math
from typing import Any, cast

import numpy as np

from barak2022.common import median
from barak2022.fourier import Fig12Right, gap_paths
from barak2022.hidden_progress import (
    NEURON,
    Fig3,
    Fig13,
    Pair,
    Progress,
    note,
    numbers,
    progress,
    rows,
    trained,
)
from paritylab import SGD, Curves, Learner, Neuron, Parity, Setup, plots
from paritylab.aliases import Floats
from paritylab.claims import Check, Findings, Lab, amends, at_least, at_most, significant, size
from paritylab.claims.intervals import bootstrap, share
from paritylab.measures.gap import gaps
from paritylab.theory.majority import majority_gap

PARITY = "median rho / median rho on random labels, last check at chance, {setting}"


def plateaus(found: Progress) -> Floats:
    """(Last check at chance) / t_c of the runs that were solved."""
    solved = np.isfinite(found.t_c)
    return found.parity.steps[found.last[solved]] / found.t_c[solved]


@amends(
    "barak2022.fig3",
    date="2026-11-16",
    kind="unprinted",
    where="Figure 3, caption",
    quote="""Black-box losses and accuracies exhibit a long plateau and sharp phase transition (top), hiding gradual
    progress in the SGD iterates (bottom). Right: A hidden progress measure which distinguishes gradual feature
    amplification (top) from training on noise (bottom).""",
    change="""At B = 1 the rate, which is not printed, is 0.0003 over 60,000 steps instead of 0.01 over 10,000, at
    which no run learns. 100 runs instead of 20; the plateau has an interval. Each batch is a part.""",
    known="""20 runs of seed 0 at B = 1 and 0.0003 were all solved, with a ratio of 2.5 and the support found in 95 %;
    the first trial at B = 32.""",
)
class Fig3Amended(Fig3):
    """The same neuron, with a rate at B = 1 at which it learns."""

    cases = size(quick=[[32, 0.01, 3000, 10]], full=[[1, 0.0003, 60_000, 50], [32, 0.01, 10_000, 10]],
                 label="B, lr, steps, every")
    batches = None
    steps = None
    runs = size(quick=20, full=100)

    plateau = at_least("median (last check at chance) / t_c, {setting}", 0.5, part="{setting}")
    ratio = at_least(PARITY, 1.5, part="{setting}")
    p_value = significant("Mann-Whitney p-value of the two, {setting}", 1e-3, part="{setting}")
    support = at_least("share of runs whose farthest weights are the support, {setting}", 0.8, part="{setting}")

    def work(self, lab: Lab) -> list[Pair]:
        return [trained(lab, self.n, NEURON, batch, lr, self.runs, steps, every)
                for batch, lr, steps, every in self.cases]

    def found(self, got: list[Pair]) -> dict[str, Progress]:
        return {f"B={batch}": progress(*pair) for (batch, *_), pair in zip(self.cases, got, strict=True)}

    def judge(self, got: list[Pair]) -> Findings:
        settings = self.found(got)
        checks: list[Check] = []
        for place, (name, found) in enumerate(settings.items()):
            checks += [
                self.plateau(found.plateau, bootstrap(median, plateaus(found), rng=self.rng(place)), setting=name),
                *found.separates(self.ratio, self.p_value, name, self.rng(place, 1)),
                self.support(*share(found.support), setting=name),
            ]
        return Findings(checks, rows(settings), numbers(settings), note(settings))


@amends(
    "barak2022.fig13",
    date="2026-11-16",
    kind="unprinted",
    where="Appendix C.3",
    quote="""We do not attempt to characterize the dynamics of rho; we only note that they are clearly distinguishable
    from the maximum of n unbiased random walks, even when SGD appears to make no progress in terms of loss and
    accuracy.""",
    change="""Rates, which are not printed, at which most runs are solved: for the neuron 0.0003, 0.001, 0.01 and 0.05
    at B = 1, 4, 32, 128, for the MLP 0.05, 0.01, 0.5 and 0.1. A ratio of 1.3, which the paper does not ask for, gives
    way to an interval above 1 with p < 0.001 instead of 0.01, over 40 runs instead of 10. That neurons find the
    support at different times, which the paper says elsewhere, is a part of its own.""",
    known="""10 or 20 runs of seed 0 at these rates: ratios of 2.5, 2.8, 2.2 and 2.1 for the neuron and of 1.6, 1.4,
    1.3 and 2.5 for the MLP, with p of at most 0.0006 but for the MLP at B = 4 (0.01, ten runs); 90 to 100 % were
    solved.""",
)
class Fig13Amended(Fig13):
    """The same networks, with smaller rates."""

    neurons = size(quick=[[4, 0.005, 3000, 10], [32, 0.01, 3000, 10]],
                   full=[[1, 0.0003, 60_000, 100], [4, 0.001, 30_000, 50], [32, 0.01, 10_000, 10],
                         [128, 0.05, 10_000, 10]], label="neuron: B, lr, steps, every")
    networks = size(quick=[[32, 0.5, 3000, 10]],
                    full=[[1, 0.05, 100_000, 200], [4, 0.01, 200_000, 400], [32, 0.5, 10_000, 20],
                          [128, 0.1, 20_000, 40]], label="MLP: B, lr, steps, every")
    runs = size(quick=20, full=40)

    ratio = at_least(PARITY, 1, part="{part}")
    p_value = significant("Mann-Whitney p-value of the two, {setting}", 1e-3, part="{part}")
    apart = at_least("share of runs with >= 0.1 t_c between first and last neuron, {setting}", 0.7,
                     part="neurons at different times")

    def judge(self, got: list[Pair]) -> Findings:
        settings = self.found(got)
        checks: list[Check] = []
        for place, (name, found) in enumerate(settings.items()):
            kind = name.partition(",")[0]
            checks += found.separates(self.ratio, self.p_value, name, self.rng(place), part=kind)
            if kind == "MLP":
                checks.append(self.apart(*share(found.between_neurons >= 0.1 * found.t_c), setting=name))
        return Findings(checks, rows(settings), numbers(settings), note(settings))


@amends(
    "barak2022.fig12-right",
    date="2026-11-16",
    kind="unprinted",
    where="Figure 12, caption",
    quote="""The Fourier gap is consistently positive at initialization, but somewhat smaller than that of majority
    (red dashed line). Interestingly, it amplifies through the course of training.""",
    change="""k = 4 instead of 3, because the gap of majority, to which the caption compares, is 0 for odd k; so that
    comparison is judged too. The activation is not printed for this figure: both forms of Section D.1.2 are tried, with
    their shift, at rate 0.03 over 10,000 steps, and are parts. 100 runs instead of 10, and shares of 90 % instead of
    80 %.""",
    known="""30 runs of seed 0 with sin(z) were all solved; all had a gap > 0 at the start, of 0.57 majority gaps in the
    median, and all doubled it. With sin(pi z / 2), as in the paper's experiments, the median was 2.7 majority gaps.
    k = 2, tried too, starts above majority with both.""",
)
class Fig12RightAmended(Fig12Right):
    """The same for an even k, beside the gap of majority."""

    k = size(4)
    units = size({"sin(z)": 2 / math.pi, "sin(pi z / 2)": 1.0}, label="activation, z in units of 2/pi")
    steps = size(quick=4000, full=10_000)
    runs = size(quick=20, full=100)

    positive = at_least("share of runs with a gap > 0 at the start", 0.9, part="{unit}")
    smaller = at_most("median gap at the start / gap of majority", 1, part="{unit}")
    doubled = at_least("share of runs with a gap twice that at the start by t_c", 0.9, part="{unit}")

    def spec(self, unit: str) -> str:
        """The activation with the shift for k."""
        return f"sinusoid:{self.k},{self.units[unit]!r}"

    def work(self, lab: Lab) -> Any:
        setups = [Setup(Parity(self.n, self.k), Learner(Neuron(self.spec(unit)), optimiser=SGD(0.03)))
                  for unit in self.units]
        return lab.curves_each(setups, self.steps, 50, self.runs, weights=True)

    def gaps(self, unit: str, got: Curves) -> Floats:
        """The gap of each run at each recorded step."""
        layer = got.weights[0]
        return gaps(layer["w"][..., 0], range(self.k), layer["b"][..., 0], self.spec(unit))

    def judge(self, got: Any) -> Findings:
        checks, numbers, data = [], {}, []
        for place, (unit, curves) in enumerate(zip(self.units, cast("list[Curves]", got), strict=True)):
            found, solved = self.gaps(unit, curves), curves.first()
            until = np.where(solved < 0, self.steps, solved)
            largest = np.array([gap[curves.steps <= end].max() for gap, end in zip(found, until, strict=True)])
            relative = found[:, 0] / majority_gap(self.n, self.k)
            checks += [self.positive(*share(found[:, 0] > 0), unit=unit),
                       self.smaller(median(relative), bootstrap(median, relative, rng=self.rng(place)), unit=unit),
                       self.doubled(*share(largest >= 2 * found[:, 0]), unit=unit)]
            numbers |= {f"median gap at the start, {unit}": median(found[:, 0]),
                        f"median largest gap by t_c, {unit}": median(largest),
                        f"runs solved, {unit}": float(np.sum(solved >= 0))}
            data += [{"unit": unit, "run": run, "step": int(step), "gap": float(gap),
                      "t_c": int(end) if end >= 0 else None}
                     for run, end in enumerate(solved) for step, gap in zip(curves.steps, found[run], strict=True)]
        return Findings(checks, data, numbers)

    def draw(self, got: Any) -> plots.Figure:
        return beside_majority(got[0], self.gaps(next(iter(self.units)), got[0]), majority_gap(self.n, self.k))


@plots.styled
def beside_majority(got: Curves, found: Floats, majority: float) -> plots.Figure:
    """The first ten runs, and the gap of majority."""
    figure = gap_paths(got.steps, found[:10], got.first()[:10])
    axes = figure.axes[0]
    axes.axhline(majority, color=plots.COLOURS[3], linestyle="dashed", linewidth=0.9, label="majority")
    axes.legend(loc="upper right")
    return figure
