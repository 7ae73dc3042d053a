"""Hidden progress: how far weights move while the loss is flat, on a parity and on random labels (Figures 3 and 13)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from matplotlib.ticker import EngFormatter
from numpy.typing import NDArray
from scipy import stats

from barak2022.common import median, ratio_of_medians
from barak2022.plateaus import ENOUGH, LEAVES_CHANCE
from paritylab import MLP, SGD, Curves, Learner, Neuron, Parity, Setup, plots
from paritylab.aliases import Floats
from paritylab.claims import Check, Findings, Lab, Trial, at_least, claim, significant, size
from paritylab.claims.intervals import bootstrap, share
from paritylab.claims.rules import Bounds, Significance
from paritylab.measures.progress import displacement, support_leads, walk_maximum

NEURON = Neuron("sinusoid:3")
Pair = list[Curves]
"""Runs on a parity, and the same on random labels."""
PARITY = "median rho / median rho on random labels, last check at chance, {setting}"


def plateaus(found: Progress) -> Floats:
    """(Last check at chance) / t_c of the runs that were solved."""
    solved = np.isfinite(found.t_c)
    return found.parity.steps[found.last[solved]] / found.t_c[solved]


@claim(
    "barak2022.fig3",
    where="Figure 3; Section 5",
    kind="empirical",
    title="Hidden progress measure rises while the loss is flat",
    statement="""During the plateau the loss does not move, yet the largest coordinate displacement rho = max_i |w_t,i
    - w_0,i| grows steadily when labels are the parity and only diffuses when labels are random.""",
    published="""'a long plateau and sharp phase transition (top), hiding gradual progress in the SGD iterates' (Figure
    3, caption); rho is not in numbers in the text.""",
)
class Fig3(Trial):
    """The largest displacement of a sinusoidal neuron's weights, on a parity and on random labels."""

    n = size(quick=30, full=50)
    cases = size(quick=[[32, 0.01, 3000, 10]], full=[[1, 0.0003, 60_000, 50], [32, 0.01, 10_000, 10]],
                 label="B, lr, steps, every")
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

    def draw(self, got: list[Pair]) -> plots.Figure:
        return draw_one(*list(self.found(got).items())[-1])


@claim(
    "barak2022.fig13",
    where="Figure 13; Appendix C.3",
    kind="empirical",
    title="Weight trajectories and rho for neurons and width-10 MLPs",
    statement="""The separation of relevant weights and the growth of rho is seen at several batch sizes and also in a
    width-10 MLP, where neurons pick up the features at different times.""",
    published="""'clearly distinguishable from the maximum of n unbiased random walks, even when SGD appears to make no
    progress in terms of loss and accuracy' (Appendix C.3).""",
)
class Fig13(Trial):
    """The same for several batches, and for the first layer of an MLP, whose neurons find the support one by one."""

    n = size(quick=30, full=50)
    width = size(10)
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

    def work(self, lab: Lab) -> list[Pair]:
        return [trained(lab, self.n, network, batch, lr, self.runs, steps, every)
                for network, cases in ((NEURON, self.neurons), (MLP(self.width), self.networks))
                for batch, lr, steps, every in cases]

    def found(self, got: list[Pair]) -> dict[str, Progress]:
        names = [f"{kind}, B={batch}" for kind, cases in (("neuron", self.neurons), ("MLP", self.networks))
                 for batch, *_ in cases]
        return {name: progress(*pair) for name, pair in zip(names, got, strict=True)}

    def judge(self, got: list[Pair]) -> Findings:
        settings = self.found(got)
        checks: list[Check] = []
        for place, (name, found) in enumerate(settings.items()):
            kind = name.partition(",")[0]
            checks += found.separates(self.ratio, self.p_value, name, self.rng(place), part=kind)
            if kind == "MLP":
                checks.append(self.apart(*share(found.between_neurons >= 0.1 * found.t_c), setting=name))
        return Findings(checks, rows(settings), numbers(settings), note(settings))

    def draw(self, got: list[Pair]) -> plots.Figure:
        return draw_grid(self.found(got))


@dataclass(frozen=True)
class Progress:
    """Runs on a parity and the same runs on random labels; arrays have one entry for each run unless said."""

    parity: Curves
    random: Curves
    moved: Floats
    """|w_t - w_0| on the parity: (points, runs, units, n)."""
    rho: Floats
    """Its maximum: (points, runs)."""
    rho_random: Floats
    t_c: Floats
    """``inf`` where not reached."""
    last: NDArray[np.int64]
    """The point of the last check at chance."""
    support: NDArray[np.bool_]
    """Whether the weights that moved farthest until then (of one neuron) are those of the support."""
    between_neurons: Floats
    """Steps from the first to the last neuron whose weights that moved farthest are those of the support."""

    @property
    def solved(self) -> float:
        return float(np.isfinite(self.t_c).mean())

    @property
    def plateau(self) -> float:
        """The median of (last check at chance) / t_c; undefined where too few runs were solved."""
        solved = np.isfinite(self.t_c)
        return median(self.parity.steps[self.last[solved]] / self.t_c[solved]) if self.solved >= ENOUGH else math.nan

    def at_last(self, which: NDArray[np.bool_] | None = None) -> tuple[Floats, Floats]:
        """rho at the last check at chance, and on random labels after as many steps; of some runs if said."""
        runs = np.arange(len(self.last)) if which is None else np.nonzero(which)[0]
        return self.rho[self.last[runs], runs], self.rho_random[self.last[runs], runs]

    def separates(
        self, ratio: Bounds, p_value: Significance, name: str, rng: np.random.Generator, **fields: Any
    ) -> list[Check]:
        """At the last check at chance, rho is larger than on random labels."""
        parity, random = self.at_last()
        test: Any = stats.mannwhitneyu(parity, random)
        interval = bootstrap(ratio_of_medians, parity, random, rng=rng)
        return [ratio(ratio_of_medians(parity, random), interval, setting=name, **fields),
                p_value(float(test.pvalue), setting=name, **fields)]


def trained(
    lab: Lab, n: int, network: Neuron | MLP, batch: int, lr: float, runs: int, steps: int, every: int
) -> Pair:
    setup = Setup(Parity(n, 3), Learner(network, optimiser=SGD(lr), batch=batch))
    control = replace(setup, problem=Parity(n, 3, noise=0.5))
    return lab.curves_each([setup, control], steps, every, runs, weights=True)


def progress(parity: Curves, random: Curves) -> Progress:
    path, control_path = first_layer(parity), first_layer(random)
    rho, rho_random = (displacement(each).max(-1) for each in (path, control_path))
    leads = support_leads(path, range(3))
    first = parity.first(1.0)
    last = last_at_chance(parity)
    return Progress(
        parity, random, np.abs(path - path[0]), rho, rho_random,
        t_c=np.where(first >= 0, first, np.inf), last=last, support=np.any(leads[last, np.arange(len(last))], axis=-1),
        between_neurons=between_neurons(parity.steps, leads),
    )


def first_layer(curves: Curves) -> Floats:
    """The weights of the first layer as paths: (points, runs, units, n)."""
    return np.transpose(curves.weights[0]["w"], (1, 0, 3, 2))


def last_at_chance(curves: Curves) -> NDArray[np.int64]:
    """The point of each run's last check with an accuracy of at most 55 %, before it was solved if it ever was."""
    solved = np.maximum.accumulate(curves.accuracy >= 1.0, axis=1)
    at_chance = (curves.accuracy <= LEAVES_CHANCE) & ~solved
    return at_chance.shape[1] - 1 - at_chance[:, ::-1].argmax(axis=1)


def between_neurons(steps: NDArray[np.int64], leads: NDArray[np.bool_]) -> Floats:
    """From ``leads`` (points, runs, units): steps between the first and the last neuron that ever leads; 0 if fewer."""
    first = np.where(leads.any(0), steps[leads.argmax(0)], -1)
    earliest = np.where(first >= 0, first, np.inf).min(-1)
    return np.where(np.isfinite(earliest), first.max(-1) - earliest, 0.0)


def rows(settings: Mapping[str, Progress]) -> list[dict[str, Any]]:
    """One row for each run; t_c None where it was not solved."""
    out: list[dict[str, Any]] = []
    for name, found in settings.items():
        for run, (rho, random) in enumerate(zip(*found.at_last(), strict=True)):
            t_c, last = found.t_c[run], found.parity.steps[found.last[run]]
            out.append({"setting": name, "run": run, "last_at_chance": int(last), "rho": float(rho),
                        "rho_random": float(random), "support_leads": bool(found.support[run]),
                        "t_c": int(t_c) if math.isfinite(t_c) else None,
                        "between_neurons": float(found.between_neurons[run])})
    return out


def numbers(settings: Mapping[str, Progress]) -> dict[str, float]:
    """How many runs were solved, and the ratio of those alone."""
    out: dict[str, float] = {}
    for name, found in settings.items():
        out[f"share of runs solved, {name}"] = found.solved
        out[f"ratio of medians of solved runs, {name}"] = ratio_of_medians(*found.at_last(np.isfinite(found.t_c)))
    return out


def note(settings: Mapping[str, Progress]) -> str:
    stuck = [name for name, found in settings.items() if found.solved <= 0.5]
    if not stuck:
        return ""
    return f"most runs are never solved at {'; '.join(stuck)}: they are at chance to the end, where they are compared"


def shown_run(found: Progress) -> tuple[int, int]:
    """The run with the middle t_c, and the point up to which it is drawn."""
    run = int(np.argsort(found.t_c, kind="stable")[(len(found.t_c) - 1) // 2])
    t_c, steps = found.t_c[run], found.parity.steps
    return run, int(np.searchsorted(steps, min(1.2 * t_c, steps[-1])))


@plots.styled
def draw_one(title: str, found: Progress) -> plots.Figure:
    """One run: loss, weights, and rho beside random labels and the maximum of unbiased random walks."""
    run, end = shown_run(found)
    steps, left = found.parity.steps[: end + 1], found.parity.steps[found.last[run]]
    weights = first_layer(found.parity)[: end + 1, run, 0]
    figure = plots.blank(3.6)
    above, middle, below = figure.subplots(3, 1, sharex=True)
    above.plot(steps, found.parity.loss[run, : end + 1], color=plots.COLOURS[0])
    above.set(ylabel="loss", ylim=(0, 1.15), title=title)
    middle.plot(steps, weights[:, 3:], color="#BBBBBB", linewidth=0.4, rasterized=True)
    middle.plot(steps, weights[:, :3], color=plots.COLOURS[1], linewidth=0.9)
    middle.plot([], [], color=plots.COLOURS[1], label="relevant")
    middle.plot([], [], color="#BBBBBB", label="irrelevant")
    middle.set(ylabel="weights")
    below.plot(steps, found.rho[: end + 1, run], color=plots.COLOURS[0], label="parity")
    below.plot(steps, found.rho_random[: end + 1, run], color=plots.COLOURS[1], linestyle="dashed",
               label="random labels")
    last = int(found.random.steps[end])
    moved = first_layer(found.random)
    deviation = float(np.sqrt(np.mean((moved[end] - moved[0]) ** 2) / last))
    below.plot(steps, walk_maximum(steps, deviation, weights.shape[1]), color=plots.GREY, linestyle="dotted",
               label="random walks")
    below.set(ylabel=r"$\rho$", xlabel="steps", xlim=(0, steps[-1]), ylim=(0, None))
    for axes in (middle, below):
        axes.legend(loc="upper left")
    for axes in (above, middle, below):
        axes.axvline(left, color=plots.GREY, linestyle="dotted", linewidth=0.8)
    above.annotate("last check at chance", (left, 0.08), (-3, 0), xycoords=("data", "axes fraction"),
                   textcoords="offset points", ha="right", fontsize=7, color=plots.GREY)
    figure.align_ylabels()
    return figure


@plots.styled
def draw_grid(settings: Mapping[str, Progress]) -> plots.Figure:
    """A panel for each setting: how far each weight of one run moved, and rho on random labels."""
    lines = math.ceil(len(settings) / 2)
    figure = plots.blank(0.75 + 1.05 * lines)
    grid = np.atleast_2d(figure.subplots(lines, 2))
    order = np.arange(grid.size).reshape(2, lines).T.ravel()  # neurons at the left, networks at the right
    names = dict(zip(order.argsort(), settings.items(), strict=False))
    for place, axes in enumerate(grid.flat):
        axes.set_visible(place in names)
        if place in names:
            name, found = names[place]
            draw_moved(axes, found)
            axes.set_title(name, fontsize=7)
    handles = {line.get_label(): line for line in grid.flat[0].lines if not line.get_label().startswith("_")}
    figure.legend(handles.values(), handles.keys(), loc="outside upper center", ncols=2, columnspacing=1.0)
    figure.supxlabel("steps", fontsize=8)
    figure.supylabel(r"$|w_t - w_0|$ of each weight", fontsize=8)
    return figure


def draw_moved(axes: Any, found: Progress) -> None:
    run, end = shown_run(found)
    points = np.unique(np.linspace(0, end, 150).round().astype(int))
    steps, moved = found.parity.steps[points], found.moved[points, run]
    for unit in range(moved.shape[1]):
        axes.plot(steps, moved[:, unit, 3:], color="#BBBBBB", linewidth=0.3, rasterized=True)
    for unit in range(moved.shape[1]):
        axes.plot(steps, moved[:, unit, :3], color=plots.COLOURS[1], linewidth=0.5, rasterized=True)
    axes.plot([], [], color=plots.COLOURS[1], label="relevant")
    axes.plot([], [], color="#BBBBBB", label="irrelevant")
    axes.plot(steps, found.rho_random[points, run], color=plots.COLOURS[0], linestyle="dashed", linewidth=1,
              label=r"$\rho$, random labels")
    axes.axvline(found.parity.steps[found.last[run]], color=plots.GREY, linestyle="dotted", linewidth=0.8,
                 label="last check at chance")
    axes.set(xlim=(0, steps[-1]), ylim=(0, None))
    axes.locator_params(nbins=4)
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
