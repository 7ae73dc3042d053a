"""One hidden layer against two, as wide and with as many parameters (Figure 2, bottom right; Figure 7)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from scipy import stats

from paritylab import plots
from paritylab.claims import Check, Findings, Lab, at_least, claim, significant, size
from paritylab.claims.intervals import Estimate, estimate, largest, proportion, smallest
from paritylab.claims.published import Count, fisher
from paritylab.engines.curves import Curves
from paritylab_emergence.michaud2025.common import Composite, Losses, Row, counts, difference
from paritylab_emergence.michaud2025.composite import SMALLER, STOPPED
from paritylab_emergence.michaud2025.figures import shares

PUBLISHED = (("2 x 128", 2, 128), ("1 x 128", 1, 128), ("1 x 361", 1, 361))

LONGER = "Networks with one hidden layer have all 200,000 steps."
AS_LONG = "Networks with one hidden layer have no more steps than those with two: fewer that converge may mean later."


@claim(
    "michaud2025.depth",
    where="Figure 2 (bottom right), Figure 7; released figure notebook, counting cells",
    kind="empirical",
    title="A second hidden layer helps, width does not replace it",
    statement="""With one hidden layer fewer networks learn the composite, also when the layer is widened to the same
    number of parameters, and those that do need more examples.""",
    published="""19 of 40 (width 128) and 16 of 40 (width 361) against 27 of 40 with two hidden layers: the shares
    differ by 0.20 (95 % interval -0.02 to 0.39, Fisher p = 0.11) and by 0.28 (0.06 to 0.46, p = 0.02)""",
)
class Depth(Composite):
    """Shares of runs that converge, and examples they need, with two hidden layers and with one."""

    shallow = size(quick=[64], standard=[64, 171], full=[128, 361], label="widths of one hidden layer")
    shallow_steps = size(quick=8000, standard=12_000, full=200_000, label="steps with one hidden layer")

    agrees = at_least("Fisher's p of the share against the published, width {width}", 0.01, exact=True,
                      only=("full",))
    fewer = significant("one-sided Fisher's p: fewer converge than with two hidden layers, width {width}", 0.01,
                        only=("standard", "full"))
    slower = at_least("median examples to convergence / with two hidden layers, width {width}", 1.5,
                      only=("standard", "full"))
    ranks = significant("one-sided Mann-Whitney p: more examples than with two hidden layers, width {width}", 0.01,
                        only=("standard", "full"))
    worse = at_least("smallest loss on the composite in bits with one hidden layer less the largest with two", 0,
                     only=("quick",))

    def work(self, lab: Lab) -> list[list[Curves]]:
        one = [self.record(lab, self.setup([width]), self.shallow_steps, self.every, self.runs)
               for width in self.shallow]
        return [self.broad(lab), *one]

    def judge(self, got: list[list[Curves]]) -> Findings:
        two, *one = (Losses.of(each) for each in got)
        if self.size == "quick":
            checks = [self.worse(*_less(smallest(one[0].final), largest(two.final)))]
        else:
            pairs = zip(self.shallow, one, strict=True)
            checks = [check for width, losses in pairs for check in self._against(two, losses, width)]
        found, published = self._counts(got), {name: counts(layers, width) for name, layers, width in PUBLISHED}
        note = f"{SMALLER} {AS_LONG}" if self.size != "full" else f"{STOPPED} {LONGER}"
        return Findings(checks, [*_rows("here", found), *_rows("published", published)], note=note)

    def _against(self, two: Losses, one: Losses, width: int) -> list[Check]:
        """One hidden layer against two."""
        ours, theirs = ((int(each.converged.sum()), len(each.converged)) for each in (one, two))
        times = [each.times[each.converged, -1] for each in (one, two)]
        checks = [self.agrees(fisher(ours, counts(1, width)), width=width)] if self.size == "full" else []
        checks.append(self.fewer(fisher(ours, theirs, "less"), width=width))
        if not all(map(len, times)):
            return [*checks, self.slower(None, width=width), self.ranks(None, width=width)]
        ratio = estimate(lambda a, b: float(np.median(a) / np.median(b)), *times, rng=self.rng(width))
        rank = stats.mannwhitneyu(*times, alternative="greater").pvalue
        return [*checks, self.slower(*ratio, width=width), self.ranks(float(rank), width=width)]

    def _counts(self, got: list[list[Curves]]) -> dict[str, Count]:
        names = [f"2 x {self.width}", *(f"1 x {width}" for width in self.shallow)]
        converged = [Losses.of(each).converged for each in got]
        return {name: (int(each.sum()), len(each)) for name, each in zip(names, converged, strict=True)}

    def draw(self, got: list[list[Curves]]) -> plots.Figure:
        found, labels = self._counts(got), ["two hidden layers", "one, as wide", "one, as many\nparameters"]
        ours = dict(zip(labels, found.values(), strict=False))
        published = {label: counts(layers, width) for label, (_, layers, width) in zip(labels, PUBLISHED, strict=True)}
        return shares(ours, published, self.size != "full")


def _less(first: Estimate, second: Estimate) -> Estimate:
    """The difference of two estimates, with an interval that is right wherever both of theirs are."""
    (value, (low, high)), (other, (least, most)) = first, second
    return value - other, (low - most, high - least)


def _rows(whose: str, found: Mapping[str, Count]) -> list[Row]:
    """Shares with their intervals, and by how much they are below that of two hidden layers."""
    first = next(iter(found.values()))
    made: list[Row] = []
    for name, (count, total) in found.items():
        share, (low, high) = proportion(count, total)
        less, (least, most) = difference(first, (count, total))
        made.append({"whose": whose, "hidden layers": name, "converged": count, "runs": total, "share": share,
                     "low": low, "high": high, "less than two": less, "less, low": least, "less, high": most,
                     "Fisher p": fisher(first, (count, total))})
    return made
