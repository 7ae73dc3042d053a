"""Figure 2, left and centre: memorising first, generalising much later."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from paritylab import plots
from paritylab.aliases import Arrays
from paritylab.claims import Findings, at_least, at_most, claim
from paritylab.claims.intervals import median, proportion
from paritylab.claims.published import fisher
from paritylab_grokking.merrill2023.common import PUBLISHED, Traces, Watched, at, known


@claim(
    "merrill2023.grokking",
    where="Figure 2 (left, centre); Section 3",
    kind="empirical",
    title="A wide network memorises (40,3), then groks",
    statement="""A network of width 1000 fits 1000 examples of the (40,3) parity while its test accuracy is at chance,
    and generalises perfectly much later, in every run.""",
    published="5 of 5 runs generalise; curves without numbers",
)
class Grokking(Watched):
    """When runs fit the sample, how good they are on fresh inputs then, and when they generalise."""

    generalise = at_least("Fisher's p of the share that generalises against 5 of 5", 0.01, exact=True)
    chance = at_most("median test accuracy at t_mem", 0.6)
    later = at_least("median t_gen / t_mem", 2)

    def judge(self, got: list[Arrays]) -> Findings:
        traces = Traces.of(got)
        t_mem, t_gen = traces.t_mem, traces.t_gen
        general = int(np.isfinite(t_gen).sum())
        accuracy = at(traces.test, t_mem)
        with np.errstate(invalid="ignore"):
            ratio = t_gen / t_mem
        checks = [self.generalise(fisher((general, len(traces)), (PUBLISHED, PUBLISHED))),
                  self.chance(*median(accuracy)), self.later(*median(ratio))]
        share, (low, high) = proportion(general, len(traces))
        numbers = {"share that generalises": share, "lower end": low, "upper end": high,
                   "lower end of 5 of 5": proportion(PUBLISHED, PUBLISHED)[1][0],
                   "median t_mem": float(np.median(t_mem)), "median t_gen": float(np.median(t_gen)),
                   "smallest t_gen / t_mem": float(np.min(ratio)), "largest t_gen": float(np.max(t_gen))}
        rows = [{"run": run, "t_mem": known(t_mem[run]), "test accuracy at t_mem": known(accuracy[run]),
                 "t_gen": known(t_gen[run]), "last train accuracy": float(traces.train[run, -1]),
                 "last test accuracy": float(traces.test[run, -1])} for run in range(len(traces))]
        return Findings(checks, rows, numbers)

    def draw(self, got: list[Arrays]) -> Figure:
        traces = Traces.of(got)
        shown = {"training sample": (traces.passes[1:], traces.train[:, 1:]),
                 "fresh inputs": (traces.passes[1:], traces.test[:, 1:])}
        return plots.bands_plot(shown, "accuracy", "passes over the sample", log="x")

