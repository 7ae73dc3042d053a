"""More steps on the output layer, and other biases: Theorem 4.3 and the remark on biases of Section 4.1."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from abbe2024.one_step import Case, PerfectNetworks, Trials, smallest
from abbe2024.theory.one_step import cube_outputs, population_step, sgd_steps
from paritylab import plots
from paritylab.claims import Findings, Lab, Trial, at_least, at_most, claim, computation, rng, size
from paritylab.plots import Series

Place = tuple[int, int, bool]
"""The dimension, the batch size, and whether there is noise."""
FACTORS = (1 / 16, 1 / 4, 1, 4, 16)
"""Of the number of samples seen, to d^5."""
SCANS = {"recommended bias": "", "N(0, 1) biases": "normal"}
"""The biases drawn, as :func:`perfect_networks` names them."""


@claim(
    "abbe2024.thm4-3",
    where="Theorem 4.3",
    kind="theory",
    title="Plain SGD on the top layer also reaches perfection",
    statement="""With any batch size the accumulated stochastic updates classify all inputs after polynomially many
    steps, tolerating noise that grows like sqrt(T)/d^2.""",
    published=""""after some T >= poly(d) steps, the network predicts correctly", no number given (Theorem 4.3).
    (Computed here: at T B of a few times d^5.)""",
)
class Thm43(Trial):
    """Networks that classify all inputs after SGD on the output layer, against the number of samples seen."""

    d = size([6, 8, 10])
    seeds = size(quick=100, full=1000)
    share = at_least("share of perfect networks at T B = 16 d^5, smallest over d, B = {batch}, {noise}", 0.9,
                     part="B = {batch}, {noise}")

    @property
    def places(self) -> list[Place]:
        return list(itertools.product(self.d, (1, 64), (False, True)))

    def work(self, lab: Lab) -> list[dict[str, np.ndarray]]:
        return lab.compute_each(sgd_networks, [
            {"d": d, "batch": batch, "noisy": noisy, "factor": factor, "seeds": self.seeds}
            for (d, batch, noisy), factor in itertools.product(self.places, FACTORS)])

    def found(self, got: list[dict[str, np.ndarray]]) -> dict[Place, dict[float, Trials]]:
        counted = map(Trials.of, got)
        return {place: {factor: next(counted) for factor in FACTORS} for place in self.places}

    def judge(self, got: list[dict[str, np.ndarray]]) -> Findings:
        found = self.found(got)
        kinds = dict.fromkeys((batch, noisy) for _, batch, noisy in found)
        checks = [smallest(self.share, [found[d, batch, noisy][FACTORS[-1]] for d in self.d], batch=batch,
                           noise="noise" if noisy else "no noise") for batch, noisy in kinds]
        data = [each.row(d=d, batch=batch, noise=noisy, samples=round(factor * d**5))
                for (d, batch, noisy), points in found.items() for factor, each in points.items()]
        return Findings(checks, data, {f"smallest share at T B = {factor:g} d^5":
                                       min(points[factor].share[0] for points in found.values()) for factor in FACTORS})

    def draw(self, got: list[dict[str, np.ndarray]]) -> plots.Figure:
        return draw_sgd(self.found(got))


@computation
def sgd_networks(seed: int, d: int, batch: int, noisy: bool, factor: float, seeds: int) -> dict[str, int]:
    """How many are perfect. The widths' and samples' seeds are those of the other numbers of steps."""
    steps = round(factor * d**5 / batch)
    tau = 0.2 * math.sqrt(steps) / d**2 if noisy else 0.0
    runs = (sgd_steps(d, d**4, steps, batch, tau, rng(seed, 43, d, batch, each)) for each in range(seeds))
    return {"perfect": sum(run.errors == 0 for run in runs), "seeds": seeds}


@plots.styled
def draw_sgd(found: Mapping[Place, Mapping[float, Trials]]) -> plots.Figure:
    figure = plots.blank(2.6)
    axes = figure.add_subplot(xlabel="samples $TB\\ /\\ d^5$", ylabel="share of perfect networks", xscale="log",
                              ylim=(-0.04, 1.04))
    dims = sorted({d for d, _, _ in found})
    for (d, batch, noisy), points in found.items():
        shares, ends = zip(*(each.share for each in points.values()), strict=True)
        axes.errorbar(list(points), shares, np.abs(np.array(ends).T - shares), color=plots.COLOURS[dims.index(d)],
                      linestyle="dashed" if noisy else "solid", marker="o" if batch == 1 else "s", markersize=3,
                      fillstyle="none", elinewidth=0.8, capsize=1.5,
                      label=f"d = {d}" if batch == 1 and not noisy else None)
    for style, label in (("o", "B = 1"), ("s", "B = 64"), ("--", "with noise")):
        axes.plot([], [], style, color=plots.GREY, markersize=3, fillstyle="none", label=label)
    plots.legend_above(figure, axes)
    return figure


@claim(
    "abbe2024.thm4-bias", where="Section 4.1 (remark on biases)", kind="empirical",
    title="Random biases work, unlucky ones do not",
    statement="Learning in one step survives generic random biases but fails where Delta is zero.",
    published=""""learning still holds for random biases for most reasonable distributions (which could be continuous,
    e.g., standard normal)", except for "unlucky" ones where Delta is near 0 (Section 4.1)""",
)
class Thm4Bias(PerfectNetworks):
    """One step at width d^4 with the recommended bias, with normal ones, and with one where Delta is 0."""

    d = size([10, 11])
    seeds = size(quick=1000, full=5000)
    perfect = at_least("share of perfect networks, {biases} biases, n = {width}, d = {d}", 0.9, part="{biases} biases")
    silent = at_most("|output|, largest over inputs, bias 0, d = {d}", 1e-9, part="an unlucky bias", exact=True)

    def cases(self) -> dict[Case, dict[str, Any]]:
        kinds = (("recommended", 1, self.seeds // 10, ""), ("normal", 1, self.seeds, "normal"),
                 ("wider", 2, self.seeds // 10, "normal"), ("first ten", 1, 10, "normal"))
        cases = {(kind, d, factor * d**4): {"d": d, "width": factor * d**4, "seeds": seeds, "bias": bias}
                 for kind, factor, seeds, bias in kinds for d in self.d}
        first, few = self.d[0], max(40, self.seeds // 100)
        widths = [round(first**4 * 2**power) for power in np.arange(-3, 2.1, 0.5)]
        return cases | {(kind, first, width): {"d": first, "width": width, "seeds": few, "bias": bias}
                        for kind, bias in SCANS.items() for width in widths}

    def largest_silent_output(self, d: int) -> float:
        """With bias 0, where Delta is 0."""
        codes = self.rng(45).integers(0, 2**d, d**4)
        return float(np.abs(cube_outputs(d, codes, 0.0, population_step(d, codes, 0.0))).max())

    def judge(self, got: list[dict[str, np.ndarray]]) -> Findings:
        unlucky = max(d for d in self.d if d % 2)
        asked = (("recommended", "recommended", "d^4"), ("N(0, 1)", "wider", "2 d^4"))
        checks = [smallest(self.perfect, [each], biases=name, width=width, d=d)
                  for name, kind, width in asked for d, each in self.counted(got, kind).items()]
        checks.append(self.silent(self.largest_silent_output(unlucky), d=unlucky))
        data = [each.row(bias="normal" if kind == "wider" else kind, d=d, n=n)
                for kind in ("recommended", "normal", "wider", *SCANS)
                for d, points in self.scans(got, kind).items() for n, each in points.items()]
        return Findings(checks, data, {f"share of perfect networks, N(0, 1) biases, n = d^4, d = {d}": each.share[0]
                                       for d, each in self.counted(got, "normal").items()})

    def draw(self, got: list[dict[str, np.ndarray]]) -> plots.Figure:
        first = self.d[0]
        return draw_biases({kind: self.scans(got, kind)[first] for kind in SCANS}, first)


def draw_biases(scans: Mapping[str, Mapping[int, Trials]], d: int) -> plots.Figure:
    series = {}
    for name, points in scans.items():
        shares, ends = zip(*(each.share for each in points.values()), strict=True)
        series[f"{name}, d = {d}"] = Series(list(points), shares, *zip(*ends, strict=True))
    every = [width for points in scans.values() for width in points]
    laws = {"$n = d^4$": ([d**4] * 2, [0, 1]), "asked for": ([d**4, max(every)], [0.9, 0.9])}
    return plots.scaling_plot(series, "width n", "share of perfect networks", laws, log="x")
