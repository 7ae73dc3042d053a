"""How convergence times grow with n in every cell of the table: Figure 9."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy import stats

from barak2022 import figure7, settings
from barak2022.common import times, with_interval
from barak2022.repeats import p10_of_few
from paritylab import Parity, Protocol, Setup, plots
from paritylab.aliases import Floats, Interval
from paritylab.claims import Findings, Lab, Trial, at_least, claim, size
from paritylab.claims.intervals import share_of_cases
from paritylab.running.races import Race

Point = tuple[str, int, int]
"""Setting, k and batch."""
SIZES = (10, 20, 30)
# --- Figure 9 -------------------------------------------------------------------------------------------------------

FIRST, SIXTH = 0, 5
"""Of 25 runs, the order statistics between which the true 10th percentile is taken to lie."""
TOO_LATE, TOO_EARLY = 0.9**25, float(stats.binom.sf(SIXTH, 25, 0.1))
"""The chances that the first comes after it, and that the sixth comes before it, whatever the law of t_c."""
WRONG = (TOO_LATE + TOO_EARLY, 2 * TOO_LATE + TOO_EARLY)
"""The chances that a cell is wrongly sure to have a small exponent, and a large one: of two ratios to n = 10."""


def exponent_ends(*ordered: Floats) -> Interval:
    """Between what an exponent lies, from the ordered times at n = 10, 20, 30: 25 of each, at the chosen rates.

    >>> low, high = exponent_ends(*(np.arange(25.0) + first for first in (100, 200, 300)))
    >>> round(low, 2), round(high, 2)
    (0.34, 0.37)

    Where the sixth was not solved, nothing is known on that side:

    >>> five = np.r_[100.0, 110.0, 120.0, 130.0, 140.0, np.full(20, np.inf)]
    >>> exponent_ends(five, 2 * five, 3 * five)
    (-inf, inf)
    """
    start, ends = ordered[0], list(zip(SIZES[1:], ordered[1:], strict=True))
    with np.errstate(divide="ignore"):
        return (max(float(np.log(times[FIRST] / start[SIXTH])) / math.log(n - 9) for n, times in ends),
                max(float(np.log(times[SIXTH] / start[FIRST])) / math.log(n - 9) for n, times in ends))


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
    max_steps = size(quick=1500, full=100_000)
    batches = size(quick=[32, 128], full=[1, 4, 32, 128, 1024], label="B")
    most = at_least("cells with alpha <= k / 2", 0.9)
    grows = at_least("median alpha at k={next} - at k={k}", 0)

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
        alphas, (inside, outside) = self.exponents(got), self.sure(got)
        within = np.concatenate([values[0] <= k / 2 for k, values in alphas.items()])
        medians = {k: np.median(values, axis=1) for k, values in alphas.items()}
        checks = [self.most(*share_of_cases(int(within.sum()), inside, outside, len(within), WRONG))]
        checks += [self.grows(*with_interval(medians[after] - medians[k]), k=k, next=after)
                   for k, after in itertools.pairwise(self.degrees)]
        numbers = {f"median alpha, k={k}": float(each[0]) for k, each in medians.items()}
        numbers |= {"cells judged": float(len(within)), "cells with alpha surely <= k / 2": float(inside),
                    "cells with alpha surely > k / 2": float(outside)}
        return Findings(checks, self.rows(got), numbers)

    def draw(self, got: list[list[Race]]) -> plots.Figure:
        return draw_exponents(self.rows(got), 0.5)

    def exponents(self, got: list[list[Race]]) -> dict[int, Floats]:
        """For each k, the exponents (resamples, cells), those measured first, of cells that have them."""
        found: dict[int, list[Floats]] = {k: [] for k in self.degrees}
        for place, ((_, k, _), races) in enumerate(zip(self.points(), got, strict=True)):
            p10 = {}
            for n, race in zip(SIZES, races, strict=True):
                drawn = p10_of_few(times(race.best.records), self.rng(place, n))
                p10[n] = np.append(race.best.percentile, drawn)
            if all(np.isfinite(values[0]) for values in p10.values()):
                with np.errstate(invalid="ignore"):
                    each = [np.log(p10[n] / p10[10]) / math.log(n - 9) for n in (20, 30)]
                found[k].append(np.where(np.isnan(np.max(each, axis=0)), np.inf, np.max(each, axis=0)))
        return {k: np.transpose(values) for k, values in found.items()}

    def sure(self, got: list[list[Race]]) -> tuple[int, int]:
        """How many cells have an exponent that is surely at most k / 2, and surely above."""
        inside = outside = 0
        for (_, k, _), races in zip(self.points(), got, strict=True):
            if all(math.isfinite(race.best.percentile) for race in races):
                low, high = exponent_ends(*(np.sort(times(race.best.records)) for race in races))
                inside, outside = inside + (high <= k / 2), outside + (low > k / 2)
        return inside, outside


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
