"""Figure 4 by an amended rule: how far the starts agree, with intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from paritylab import Curves
from paritylab.aliases import Floats
from paritylab.claims import Findings, amends, at_most
from paritylab.claims.intervals import bootstrap
from paritylab.papers.abbe2024.offline import Fig4Left, Fig4Right, SparseParity, crossing, tidy
from paritylab.papers.abbe2024.training import final, named


class Agreement(SparseParity):
    """The largest differences between starts, with bootstrap intervals over runs."""

    sizes_agree = at_most("largest less smallest log10 N at accuracy 0.75", 0.1)
    laws_agree = at_most("largest distance of a law's accuracy from the mean over laws", 0.05)

    def needed(self, means: Floats) -> list[float]:
        """log10 N at accuracy 0.75 by law, of mean accuracies by size and law."""
        return [crossing(self.samples, list(column)) for column in means.T]

    def by_size(self, accuracies: Sequence[Floats]) -> Floats:
        return np.array([np.mean(values) for values in accuracies]).reshape(len(self.samples), -1)

    def sizes_apart(self, *accuracies: Floats) -> float:
        needed = self.needed(self.by_size(accuracies))
        return max(needed) - min(needed) if all(map(math.isfinite, needed)) else math.nan

    def laws_apart(self, *accuracies: Floats) -> float:
        means = self.by_size(accuracies)
        return float(np.abs(means - means.mean(axis=1, keepdims=True)).max())

    def judge(self, got: list[Curves]) -> Findings:
        accuracies = [final(curves) for curves in got]
        checks = [rule(found(*accuracies), bootstrap(found, *accuracies, rng=self.rng(place)))
                  for place, (rule, found) in enumerate(((self.sizes_agree, self.sizes_apart),
                                                         (self.laws_agree, self.laws_apart)))]
        needed: dict[str, Any] = dict(zip(map(named, self.laws), self.needed(self.by_size(accuracies)), strict=True))
        return Findings(checks, tidy(dict(zip(self.cases, got, strict=True))),
                        {f"log10 N at accuracy 0.75, {name}": value for name, value in needed.items()})


@amends(
    "abbe2024.fig4-left",
    date="2026-11-16",
    kind="power",
    where="Section 6, Sparse Parities",
    quote="""We observe no significant difference between these initializations, unlike the full parity case.""",
    change="""Both differences have bootstrap intervals over runs, and the bounds are tighter: a factor 1.26 in N
    instead of 2.5, and 0.05 in accuracy instead of 0.15.""",
    known="""Seven runs of seed 0 gave a difference of 0.005 in log10 N and of 0.005 in accuracy.""",
)
class Fig4LeftAmended(Agreement, Fig4Left):
    """Degree 3."""


@amends(
    "abbe2024.fig4-right",
    date="2026-11-16",
    kind="power",
    where="Section 6, Sparse Parities",
    quote="""We observe no significant difference between these initializations, unlike the full parity case.""",
    change="""Both differences have bootstrap intervals over runs, and the bounds are tighter: a factor 1.26 in N
    instead of 2.5, and 0.05 in accuracy instead of 0.15.""",
    known="""Seven runs of seed 0 gave a difference of 0.029 in log10 N and of 0.024 in accuracy.""",
)
class Fig4RightAmended(Agreement, Fig4Right):
    """Degree 5."""
