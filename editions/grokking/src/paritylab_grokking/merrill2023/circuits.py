"""Figures 3 and 5: the final subnetwork, its complement and random units along training."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from paritylab import plots
from paritylab.aliases import Arrays, Floats
from paritylab.claims import Findings, at_least, at_most, claim
from paritylab.claims.intervals import median
from paritylab_grokking.merrill2023.common import COMPARED, Traces, Watched, at, known

RISEN = 200
"""The pass by which the quick rule asks for a rise."""


@claim(
    "merrill2023.norm-growth",
    where="Figure 3 (left); Section 3.2; Figure 5",
    kind="empirical",
    title="The winning neurons grow while the others decay",
    statement="""The neurons of the final subnetwork have ordinary norms until shortly before the transition, then grow
    fast, while all others decay.""",
    published="equal norms early, separation just before the transition; curves without numbers",
)
class NormGrowth(Watched):
    """Mean norms over the final subnetwork, its complement and as many random units."""

    ordinary = at_most("median norm of subnetwork / random units at t_mem", 2)
    apart = at_least("median norm of subnetwork / random units at the end", 10)
    grows = at_least("median norm of the subnetwork, at t_gen / at t_mem", 1.5)
    decays = at_most("median norm of the complement, at t_gen / at t_mem", 0.6)

    def judge(self, got: list[Arrays]) -> Findings:
        traces = Traces.of(got)
        memorised, general, end = at(traces.norms, traces.t_mem), at(traces.norms, traces.t_gen), traces.norms[:, -1]
        ratios = {"ordinary": memorised[:, 0] / memorised[:, 2], "apart": end[:, 0] / end[:, 2],
                  "grows": general[:, 0] / memorised[:, 0], "decays": general[:, 1] / memorised[:, 1]}
        checks = [getattr(self, name)(*median(values)) for name, values in ratios.items()]
        rows = [{"run": run, "subnetwork / random at t_mem": known(ratios["ordinary"][run]),
                 "subnetwork / random at the end": known(ratios["apart"][run]),
                 "subnetwork, t_gen / t_mem": known(ratios["grows"][run]),
                 "complement, t_gen / t_mem": known(ratios["decays"][run])} for run in range(len(traces))]
        return Findings(checks, rows)

    def draw(self, got: list[Arrays]) -> Figure:
        traces = Traces.of(got)
        return along(traces.passes, traces.norms, "mean norm of incoming weights", log="y")


@claim(
    "merrill2023.takeover",
    where="Figure 3 (right); Section 3.2",
    kind="empirical",
    title="The sparse subnetwork takes over the predictions",
    statement="""Before the transition the final subnetwork alone says nothing about the network's predictions and its
    complement nearly everything; afterwards the subnetwork alone determines them and the complement has lost its
    hold.""",
    published="the subnetwork from chance to 1, the complement from nearly 1 downwards; curves without numbers",
)
class Takeover(Watched):
    """Shares of test inputs at which some units alone have the sign of the whole network, every 5 passes."""

    rises = at_least("median agreement of the subnetwork at pass 200", 0.85, only=("quick",))
    nothing = at_most("median agreement of the subnetwork at t_mem", 0.65, only=("standard", "full"))
    everything = at_least("median agreement of the complement at t_mem", 0.9, only=("standard", "full"))
    determines = at_least("median agreement of the subnetwork at the end", 0.99, only=("standard", "full"))
    lost = at_most("median of the smallest agreement of the complement from t_gen on", 0.75, only=("standard", "full"))
    random = at_most("median of the largest agreement of random units", 0.65, only=("standard", "full"))

    def judge(self, got: list[Arrays]) -> Findings:
        traces = Traces.of(got)
        found = traces.agreement
        memorised = at(found, traces.t_mem, COMPARED)
        passes = np.arange(found.shape[1]) * COMPARED
        later = passes >= traces.t_gen[:, None]
        smallest = np.where(later, found[..., 1], np.inf).min(axis=1)
        smallest = np.where(later.any(axis=1), smallest, np.nan)
        values = {"nothing": memorised[:, 0], "everything": memorised[:, 1], "determines": found[:, -1, 0],
                  "lost": smallest, "random": found[..., 2].max(axis=1)}
        if self.size == "quick":
            checks = [self.rises(*median(found[:, RISEN // COMPARED, 0]))]
        else:
            checks = [getattr(self, name)(*median(each)) for name, each in values.items()]
        rows: list[dict[str, Any]] = [
            {"run": run, "subnetwork at t_mem": known(values["nothing"][run]),
             "complement at t_mem": known(values["everything"][run]),
             "subnetwork at the end": known(values["determines"][run]),
             "complement at the end": float(found[run, -1, 1]),
             "smallest of complement from t_gen on": known(values["lost"][run]),
             "largest of random units": known(values["random"][run])} for run in range(len(traces))]
        numbers = {"median agreement of the complement at the end": median(found[:, -1, 1])[0],
                   "largest median agreement of random units at a check": float(np.median(found[..., 2], axis=0).max())}
        return Findings(checks, rows, numbers)

    def draw(self, got: list[Arrays]) -> Figure:
        found = Traces.of(got).agreement
        return along(np.arange(found.shape[1]) * COMPARED, found, "agreement with the whole network")


def along(passes: np.ndarray, values: Floats, ylabel: str, log: str = "") -> Figure:
    """The three sets of units along training."""
    labels = ("final subnetwork", "all other units", "as many random units")
    shown = {label: (passes, values[..., i]) for i, label in enumerate(labels)}
    return plots.bands_plot(shown, ylabel, "passes over the sample", log=log)
