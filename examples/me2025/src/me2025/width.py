"""Wider networks are solved in fewer steps."""

from __future__ import annotations

import numpy as np

from paritylab import MLP, SGD, Learner, Parity, Protocol, Result, Setup, plots
from paritylab.claims import Findings, Lab, Trial, at_least, claim, size
from paritylab.claims.intervals import estimate
from paritylab.claims.published import table


@claim(
    "me2025.width",
    where="Figure 1",
    kind="empirical",
    title="Wider networks learn a parity in fewer steps",
    statement="The median number of steps to learn a sparse parity falls as the hidden layer grows.",
    published="a factor of three from width 10 to width 100 at n = 20",
)
class Width(Trial):
    """Medians of t_c against the width, at one learning rate."""

    n = size(quick=12, full=20)
    widths = size(quick=[10, 100], full=[10, 30, 100, 300])
    runs = size(quick=200, full=1000)

    sooner = at_least("median t_c at the smallest width / at the largest", 1.5)

    def work(self, lab: Lab) -> list[Result]:
        problem, protocol = Parity(self.n, 3), Protocol(max_steps=20_000, eval_size=512)
        return lab.sweep([Setup(problem, Learner(MLP(width), optimiser=SGD(0.5)), protocol) for width in self.widths],
                         self.runs)

    def judge(self, got: list[Result]) -> Findings:
        medians = [result.summary.median for result in got]
        rows = [{"width": width, "run": int(run), "t_c": int(t_c) if t_c >= 0 else None}
                for width, result in zip(self.widths, got, strict=True)
                for run, t_c in zip(result.records.run, result.records.t_c, strict=True)]
        numbers = {f"median t_c at width {width}": value for width, value in zip(self.widths, medians, strict=True)}
        numbers |= {f"published, n = 20: median t_c at width {width}": published(width) for width in self.widths}
        slowest, fastest = (np.where(records.t_c > 0, records.t_c, np.inf)
                            for records in (got[0].records, got[-1].records))
        ratio = estimate(lambda a, b: np.median(a) / np.median(b), slowest, fastest, rng=self.rng(0))
        return Findings([self.sooner(*ratio)], rows, numbers)

    def draw(self, got: list[Result]) -> plots.Figure:
        return plots.survival_plot({f"width {width}": result.records
                                    for width, result in zip(self.widths, got, strict=True)})


def published(width: int) -> float:
    """The median that the paper prints, of ``data/medians.csv``.

    >>> published(10) / published(100)
    3.0
    """
    rows = table(__file__, "medians")
    return float(rows.filter(rows["width"] == width)["median"].item())
