"""How convergence times grow with n in every cell of the table: Figure 9."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from barak2022 import figure7, settings
from paritylab import Parity, Protocol, Setup, plots
from paritylab.claims import Findings, Lab, Rule, Trial, at_least, claim, size
from paritylab.claims.intervals import proportion
from paritylab.running.races import Race

Point = tuple[str, int, int]
"""Setting, k and batch."""
SIZES = (10, 20, 30)


@claim(
    "barak2022.fig9",
    where="Figure 9; Appendix D.2",
    kind="empirical",
    title="Coarse scaling constants c, alpha",
    statement="""For every architecture the p10 convergence time over n in {10,20,30} is bounded by c (n-9)^alpha with
    a small alpha.""",
    published="""'small architecture-dependent constants c, alpha' (Section 3.1); the numbers in the boxes of the
    figure are not in the text.""",
)
class Fig9(Trial):
    """The smallest alpha with p10(n) <= p10(10) (n - 9)^alpha over n = 10, 20, 30, for every cell."""

    names = size(quick=["i", "iv", "xv"], standard=[name for name in settings.BARAK2022 if name != "*iii"],
                 full=list(settings.BARAK2022), label="settings")
    degrees = size(quick=[2, 3], full=[2, 3, 4], label="k")
    batches = size(quick=[32], full=[1, 4, 32, 128, 1024], label="B")
    max_steps = size(quick=1500, full=100_000)

    most = at_least("cells with B >= 32 and alpha <= 1.2 k", 0.9)
    grows = Rule("median alpha at k={next} - at k={k}", "> 0")

    def points(self) -> list[Point]:
        return list(itertools.product(self.names, self.degrees, self.batches))

    def work(self, lab: Lab) -> list[list[Race]]:
        return [[lab.race(self.setups(n, *point), runs=25) for n in SIZES] for point in self.points()]

    def setups(self, n: int, name: str, k: int, batch: int) -> list[Setup]:
        """One for each rate."""
        rates = (1.0, 0.1) if self.size == "quick" else figure7.grid(name)
        protocol = Protocol(max_steps=self.max_steps, eval_size=128)
        return [Setup(Parity(n, k), settings.barak2022(name, k, lr, batch), protocol) for lr in rates]

    def rows(self, got: list[list[Race]]) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = []
        for (name, k, batch), races in zip(self.points(), got, strict=True):
            p10 = {n: race.best.percentile for n, race in zip(SIZES, races, strict=True)}
            alpha = max(math.log(p10[n] / p10[10]) / math.log(n - 9) for n in (20, 30)) if p10[10] < math.inf else None
            rows.append({"setting": name, "k": k, "batch": batch, "alpha": alpha}
                        | {f"p10 at {n}": value for n, value in p10.items()})
        return rows

    def judge(self, got: list[list[Race]]) -> Findings:
        rows = self.rows(got)
        judged = [row for row in rows if row["batch"] >= 32 and row["alpha"] is not None]
        good = sum(row["alpha"] <= 1.2 * row["k"] for row in judged)
        checks = [self.most(*proportion(good, len(judged)))]
        medians = [float(np.median([row["alpha"] for row in judged if row["k"] == k])) for k in self.degrees]
        for k, (low, high) in zip(self.degrees, itertools.pairwise(medians), strict=False):
            checks.append(self.grows(high - low, passed=high > low, k=k, next=k + 1))
        return Findings(checks, rows)

    def draw(self, got: list[list[Race]]) -> plots.Figure:
        return draw_exponents(self.rows(got))


@plots.styled
def draw_exponents(rows: Sequence[Mapping[str, Any]], bound: float = 1.2) -> plots.Figure:
    """Every cell's alpha for each k, the median of those with B >= 32 marked, beside the bound on alpha / k."""
    figure = plots.blank(2.2)
    axes = figure.add_subplot(xlabel="parity degree k", ylabel=r"exponent $\alpha$")
    degrees = sorted({row["k"] for row in rows})
    spread = np.random.default_rng(0)
    for k in degrees:
        kinds = ((True, plots.COLOURS[0], "o", "B >= 32"), (False, plots.COLOURS[1], "x", "B < 32"))
        for wide, colour, marker, label in kinds:
            values = [row["alpha"] for row in rows
                      if row["k"] == k and (row["batch"] >= 32) == wide and row["alpha"] is not None]
            values = [value for value in values if math.isfinite(value)]
            places = k + spread.uniform(-0.18, 0.18, len(values))
            axes.plot(places, values, marker, color=colour, markersize=3, fillstyle="none",
                      label=label if k == degrees[0] and values else None)
            if wide and values:
                axes.plot([k - 0.25, k + 0.25], [np.median(values)] * 2, color="black")
    ends = np.array([degrees[0] - 0.3, degrees[-1] + 0.3])
    axes.plot(ends, bound * ends, color=plots.GREY, linestyle="dashed", label=f"{bound:g} k")
    axes.set_xticks(degrees)
    axes.legend(loc="upper left")
    return figure
