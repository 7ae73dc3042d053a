"""Emergence in the number of hidden units: Figures 1(c) and 11(c), Table 5."""

# matplotlib leaves its keyword arguments untyped.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.optimize  # pyright: ignore[reportMissingTypeStubs]

from paritylab import Adam, Learner, Protocol, Setup, plots
from paritylab.aliases import Floats
from paritylab.claims import Check, Findings, Lab, Trial, at_least, between, claim, size
from paritylab.claims.intervals import Estimate, jackknife, mean, median, together
from paritylab.claims.published import fisher
from paritylab.engines.curves import Curves
from paritylab_emergence import skills as theory
from paritylab_emergence.nam2024.common import Row, network, problem, strengths

optimize: Any = scipy.optimize
TABLE = Path(__file__).parent / "data" / "table5.csv"
LEVELS = (0.975, 0.9, 0.5, 0.5, 0.5)
"""From which strength on a skill of Table 5 counts: the first as printed (0.98) or more."""


@dataclass(frozen=True)
class Variant:
    """How the narrow networks are trained: text and released code say different things."""

    name: str
    rate: float
    decay: float
    spread: float
    fall: float = 1.0
    """What the rate is multiplied by every 500 steps."""

    def setup(self, tasks: int, width: int, batch: int, steps: int, inputs: int) -> Setup:
        falls = ",".join(f"{500 * i},{self.fall**i:.9g}" for i in range(1, -(-steps // 500)))
        optimiser = Adam(self.rate, schedule=f"steps:{falls}" if self.fall != 1 else "constant",
                         weight_decay=self.decay)
        learner = Learner(network(width), init=f"normal:{self.spread}", loss="square", optimiser=optimiser, batch=batch)
        return Setup(problem(tasks), learner, Protocol(max_steps=steps, eval_size=inputs * tasks))


TEXT = Variant("B (text)", 0.001, 5e-5, 0.001)
CALIBRATION = {"A": Variant("A (released plot)", 0.05, 0.005, 0.05, 0.995), "B": TEXT}
TABLE5 = {"A": Variant("A (released plot)", 0.05, 5e-4, 0.05), "B": TEXT}


@claim(
    "nam2024.width-calibration",
    where="Figure 11(c); Section 5.3, Equation 21",
    kind="empirical",
    title="A skill needs four hidden units",
    statement="""With unlimited data and time, the strength of one parity skill grows linearly in the number N of hidden
    units up to N_c = 4 and is full from there on.""",
    published="N_c = 4",
)
class WidthCalibration(Trial):
    """The strength of one skill in networks of growing width, in one variant of training or in both."""

    widths = size(quick=[1, 2, 3, 4, 6, 8], full=[*range(1, 13)], label="N")
    variants = size(quick=["A"], standard=["A"], full=["A", "B"])
    batch = size(quick=500, full=4000)
    steps = size(quick={"A": 8000}, full={"A": 50_000, "B": 500_000})
    runs = size(quick=4, standard=25, full=50)
    inputs = size(quick=4000, full=20_000, label="inputs of a check")

    enough = between("N_c of the nearest min(1, N/N_c), in the variant where it is nearer to 4", 3, 5.5)

    def work(self, lab: Lab) -> dict[str, list[Curves]]:
        found: dict[str, list[Curves]] = {}
        for name in self.variants:
            steps = self.steps[name]
            setups = [CALIBRATION[name].setup(1, width, self.batch, steps, self.inputs) for width in self.widths]
            found[name] = lab.curves_each(setups, [steps], runs=self.runs)
        return found

    def ends(self, got: list[Curves]) -> Floats:
        """R/S of each run and width."""
        return np.stack([strengths(curves)[:, -1, 0] for curves in got], axis=1)

    def judge(self, got: dict[str, list[Curves]]) -> Findings:
        found: dict[str, Estimate] = {}
        rows: list[Row] = []
        for name in self.variants:
            ends = self.ends(got[name])
            found[name] = jackknife(lambda runs: nearest(self.widths, runs.mean(0)), ends,
                                    together(len(self.variants)))
            for width, each in zip(self.widths, ends.T, strict=True):
                value, (low, high) = mean(each)
                rows.append({"variant": name, "N": width, "R/S": value, "low": low, "high": high,
                             "model": float(theory.with_units(width))})
        best = min(found, key=lambda name: abs(found[name][0] - 4))
        numbers = {f"N_c, variant {CALIBRATION[name].name}": value for name, (value, _) in found.items()}
        return Findings([self.enough(*found[best])], rows, numbers)

    @plots.styled
    def draw(self, got: dict[str, list[Curves]]) -> plots.Figure:
        figure = plots.blank(2.5)
        axes = figure.add_subplot(xlabel="hidden units N", ylabel="strength R/S", ylim=(-0.15, 1.1),
                                  xticks=self.widths)
        for name, colour in zip(self.variants, plots.COLOURS, strict=False):
            ends = self.ends(got[name])
            spots = np.array(self.widths) + np.linspace(-0.12, 0.12, len(ends))[:, None]
            axes.plot(spots.ravel(), ends.ravel(), "o", color=colour, markersize=2, alpha=0.4)
            axes.plot(self.widths, ends.mean(0), color=colour, label=f"mean of {len(ends)} runs, {name}")
        along = np.linspace(0, self.widths[-1], 200)
        axes.plot(along, theory.with_units(along), color=plots.GREY, linestyle="dashed", label="min(1, N/4)")
        plots.legend_above(figure, axes)
        return figure


def nearest(widths: list[int], strength: Floats) -> float:
    """N_c of the law min(1, N/N_c) that is nearest to strengths, by least squares."""
    def apart(enough: float) -> float:
        return float(np.sum((theory.with_units(widths, enough) - strength) ** 2))

    grid = np.linspace(0.5, 40, 396)
    place = grid[int(np.argmin([apart(each) for each in grid]))]
    return float(optimize.minimize_scalar(apart, bounds=(place - 0.1, place + 0.1), method="bounded").x)


@claim(
    "nam2024.width-table5",
    where="Table 5 (Appendix I); Figure 1(c)",
    kind="empirical",
    title="Ten hidden units: two and a half skills",
    statement="""With ten hidden units and five tasks, nearly every run learns the two most frequent skills fully and
    the third partly; a run in ten or so serves a rarer skill at the expense of a more frequent one.""",
    published="""R_1/S = 0.98 in 10 of 10 runs; R_2/S >= 0.9 in 8; R_3/S >= 0.5 in 9; R_4/S >= 0.5 in 1; R_5/S >= 0.5 in
    none""",
)
class WidthTable5(Trial):
    """How many runs have each skill, against the published ten, in both variants of training; one must agree."""

    tasks = size(quick=2, full=5)
    width = size(quick=6, full=10)
    batch = size(quick=500, full=4000)
    steps = size(quick=40_000, full=500_000)
    runs = size(quick=8, standard=20, full=200)
    inputs = size(quick=4000, full=20_000, label="inputs of each task in a check")

    share = at_least("p-value of as many runs with R_k/S >= {level} as published, skill {k}", 0.01, exact=True,
                     only=("standard", "full"))
    first = at_least("median R_1/S", 0.9, only=("quick",))
    second = between("median R_2/S", 0.2, 0.9, only=("quick",))

    def work(self, lab: Lab) -> list[Curves]:
        setups = [each.setup(self.tasks, self.width, self.batch, self.steps, self.inputs) for each in TABLE5.values()]
        return lab.curves_each(setups, [self.steps], runs=self.runs)

    def judge(self, got: list[Curves]) -> Findings:
        ends = {name: strengths(curves)[:, -1] for name, curves in zip(TABLE5, got, strict=True)}
        by_variant = {name: self.quick_checks(each) if self.size == "quick" else self.checks(each)
                      for name, each in ends.items()}
        best = max(by_variant, key=lambda name: sum(bool(check.passed) for check in by_variant[name]))
        rows: list[Row] = [{"variant": name, "run": run, "skill": task + 1, "R/S": float(each[run, task])}
                           for name, each in ends.items() for run in range(self.runs) for task in range(self.tasks)]
        numbers = {f"{check.name}, variant {TABLE5[name].name}": check.value for name, checks in by_variant.items()
                   for check in checks if self.size != "quick"}
        numbers |= {f"median R/S of skill {task + 1}, variant {TABLE5[name].name}": float(np.median(each[:, task]))
                    for name, each in ends.items() for task in range(self.tasks)}
        return Findings(by_variant[best], rows, numbers, f"The checks are those of variant {TABLE5[best].name}.")

    def checks(self, ends: Floats) -> list[Check]:
        theirs = published()
        found: list[Check] = []
        for task, level in enumerate(LEVELS):
            counts = [(int(np.sum(each[:, task] >= level)), len(each)) for each in (ends, theirs)]
            found.append(self.share(fisher(counts[0], counts[1]), level=level, k=task + 1))
        return found

    def quick_checks(self, ends: Floats) -> list[Check]:
        estimates = [median(each) for each in ends.T]
        return [self.first(*estimates[0]), self.second(*estimates[1])]

    @plots.styled
    def draw(self, got: list[Curves]) -> plots.Figure:
        figure = plots.blank(2.4, "double")
        groups = {each.name: strengths(curves)[:, -1] for each, curves in zip(TABLE5.values(), got, strict=True)}
        if self.size != "quick":
            groups = {"published": published()} | groups
        panels = figure.subplots(1, len(groups), sharey=True)
        for axes, (name, ends) in zip(panels, groups.items(), strict=True):
            axes.set(xlabel="skill", title=name, xticks=range(1, self.tasks + 1), ylim=(-0.15, 1.1))
            at = np.arange(1, self.tasks + 1) + np.linspace(-0.2, 0.2, len(ends))[:, None]
            axes.plot(at.ravel(), ends.ravel(), "o", color=plots.COLOURS[0], markersize=2.5, alpha=0.6)
            capacity = theory.shared_units(self.width, self.tasks)
            axes.hlines(capacity, np.arange(1, self.tasks + 1) - 0.3, np.arange(1, self.tasks + 1) + 0.3,
                        color=plots.GREY, linestyle="dashed", label="model: four units a skill")
        panels[0].set_ylabel("strength R/S")
        plots.legend_above(figure, panels[0])
        return figure


def published() -> Floats:
    """Table 5, (runs, skills); a 4.5, which no strength can be, counts as it should read at most: 0.45."""
    with TABLE.open(encoding="utf-8") as file:
        rows = [[float(row[f"skill_{k}"]) for k in range(1, 6)] for row in csv.DictReader(file)]
    table = np.array(rows)
    return np.where(table > 1, table / 10, table)
