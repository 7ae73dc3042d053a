"""How many choices work: the robust space of Section 3.1, its exceptions, and the choice of loss."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from barak2022 import settings
from barak2022.common import FIXED_8192, times, times_plot
from barak2022.distributions import quotient
from paritylab import Learner, Parity, Setup, plots
from paritylab.aliases import Floats, Interval
from paritylab.claims import Findings, Lab, Trial, at_least, at_most, claim, size
from paritylab.claims.intervals import Estimate, largest, proportion, together
from paritylab.running.sweeps import Result
from paritylab.statistics.fractions import share_interval
from paritylab.statistics.percentiles import percentiles
from paritylab.storage.records import CENSORED, SOLVED

RATES = (0.1, 1.0, 0.01, 0.001)
"""The paper's grid, the rate that works most often first."""
LOSSES = ["hinge", "square", "logistic"]
INITS = {"uniform": "torch", "Gaussian": "kaiming", "Bernoulli": "sign"}
BATCHES = [2**i for i in range(11)]
ROBUST = [name for name in settings.BARAK2022 if not name.startswith("*")]
NARROW = [name for name in ROBUST if name not in ("iii", "vi")]
SHARE = 0.2
"""A fifth of the runs must be solved."""


@dataclass(frozen=True)
class Combination:
    """One point of the factorial, learning rate left open."""

    setting: str
    n: int
    k: int
    batch: int
    init: str = "uniform"
    loss: str = "hinge"

    def setup(self, lr: float, max_steps: int) -> Setup:
        learner = learner_of(self.setting, self.k, lr, self.batch, self.init, self.loss)
        return Setup(Parity(self.n, self.k), learner, replace(FIXED_8192, max_steps=max_steps))


@functools.cache
def learner_of(setting: str, k: int, lr: float, batch: int, init: str, loss: str) -> Learner:
    """The whole factorial has 160,380 Setups and a ninth as many Learners."""
    return replace(settings.barak2022(setting, k, lr, batch), init=INITS[init], loss=loss)


@dataclass(frozen=True)
class Best:
    """The largest share of runs that one rate solves: exact below SHARE, at or above it a lower bound."""

    share: float = -1.0
    lr: float = math.nan
    within: int = 0
    """The step limit under which the share was measured."""

    @property
    def enough(self) -> bool:
        return self.share >= SHARE


@dataclass(frozen=True)
class Ladder:
    """What is tried for each Combination until SHARE of the runs is solved: short runs first, rate after rate.

    A run solved within fewer steps is solved within ``max_steps``, so the answer is that of the longest runs.
    """

    max_steps: int
    rates: Sequence[float] = RATES

    @property
    def tries(self) -> list[tuple[int, float]]:
        return [(limit, lr) for limit in horizons(self.max_steps) for lr in self.rates]

    def chains(self, points: Iterable[Combination]) -> dict[str, list[Setup]]:
        """To be followed until SHARE."""
        return {str(point): [point.setup(lr, limit) for limit, lr in self.tries] for point in points}

    def best(self, points: Iterable[Combination], found: Mapping[str, Sequence[Result]]) -> dict[Combination, Best]:
        """Of those points that were followed."""
        return {point: best_of(self.tries, found[str(point)]) for point in points if str(point) in found}


def best_of(tries: Sequence[tuple[int, float]], results: Sequence[Result]) -> Best:
    """The largest share among the longest runs that were tried."""
    shares = [Best(result.summary.solved_fraction, lr, limit)
              for (limit, lr), result in zip(tries, results, strict=False)]
    return max((best for best in shares if best.within == shares[-1].within), key=lambda best: best.share)


def horizons(max_steps: int) -> list[int]:
    """Step limits, each ten times the one before.

    >>> horizons(100_000)
    [1000, 10000, 100000]
    """
    limits = [max_steps]
    while limits[0] > 1000:
        limits.insert(0, max(limits[0] // 10, 1000))
    return limits


def rows(found: Mapping[Combination, Best]) -> list[dict[str, Any]]:
    return [{**vars(point), **vars(best)} for point, best in found.items()]


Chains = dict[str, list[Result]]
READINGS = {"PyTorch's default": INITS, "Xavier": INITS | {"uniform": "xavier", "Bernoulli": "xavier-sign"}}
"""The laws of Section 3.1's three initialisations; the Gaussian one is the same by both readings."""
PER_LOSS = 4455
"""Combinations of the paper's factorial with one loss."""
NONE_SEEN = proportion(0, PER_LOSS)[1][1]
"""None of so many failed in the paper: the share that may fail is at most this (95 %)."""


@dataclass(frozen=True)
class ReadCombination(Combination):
    """A point of the factorial with its init as one of the readings has it."""

    reading: str = "Xavier"

    def setup(self, lr: float, max_steps: int) -> Setup:
        setup = super().setup(lr, max_steps)
        return replace(setup, learner=replace(setup.learner, init=READINGS[self.reading][self.init]))


@plots.styled
def draw_readings(found: Mapping[Combination, Best]) -> plots.Figure:
    """The share of combinations that fail, for each setting: a panel for each reading, a marker for each loss."""
    names = list(dict.fromkeys(point.setting for point in found))
    figure = plots.blank(3.2)
    panels = figure.subplots(len(READINGS), 1, sharex=True, sharey=True)
    for axes, reading in zip(panels, READINGS, strict=True):
        axes.set_title(reading, fontsize=7)
        for loss, colour, marker, offset in zip(LOSSES, plots.COLOURS, "so^", (-0.2, 0.0, 0.2), strict=False):
            shares = [failing_share(best for point, best in found.items()
                                    if (vars(point)["reading"], point.loss, point.setting) == (reading, loss, name))
                      for name in names]
            axes.plot(np.arange(len(names)) + offset, shares, marker, color=colour, markersize=3.5, fillstyle="none",
                      label=loss)
        axes.set_ylim(-0.03, 1.03)
    panels[-1].set_xticks(range(len(names)), [f"({name})" for name in names], rotation=90, fontsize=6)
    figure.supylabel("share of combinations that fail", fontsize=8)
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=3)
    return figure


def failing_share(answers: Iterable[Best]) -> float:
    """NaN of nothing."""
    flags = [not best.enough for best in answers]
    return float(np.mean(flags)) if flags else float("nan")


@claim(
    "barak2022.robust-space",
    where="Section 3.1; Empirical Finding 1",
    kind="empirical",
    title="Robust space of positive results",
    statement="""For all n in {10,20,30}, k in {2,3,4}, batch sizes 1..1024, three initialisations, three losses and
    fifteen architectures at least one of four learning rates solves the task in at least 20% of 25 runs within 1e5
    steps.""",
    published="""'at least 20% of 25 random trials, for at least one choice of learning rate', for all combinations
    (Section 3.1): 13,365 of them (counted here).""",
)
class RobustSpace(Trial):
    """Does some learning rate solve a fifth of the runs, whatever else is chosen?"""

    degrees = size(quick=[2, 3], full=[2, 3, 4], label="k")
    batches = size(quick=[4, 32, 256], full=BATCHES)
    runs = size(quick=10, full=25)
    max_steps = size(quick=3000, full=100_000)
    names = size(quick=["i", "iv", "vii", "xi", "xv"], standard=NARROW, full=ROBUST, label="settings")
    n = size(quick=[10], full=[10, 20, 30])
    hinge = size(quick=20, standard=300, full=PER_LOSS, label="combinations with the hinge loss")
    combinations = size(quick=10, standard=100, full=600, label="combinations with each other loss")
    failing = at_most("share of combinations that no rate solves in 20 % of the runs, {reading}, {loss} loss",
                      NONE_SEEN, part="{reading}, {loss} loss", claimed=0.0)

    def work(self, lab: Lab) -> Chains:
        ladder = Ladder(self.max_steps)
        points = (point for each in self.strata.values() for point in each)
        return lab.chains(ladder.chains(points), self.runs, until=0.2)

    def best(self, got: Chains) -> dict[Combination, Best]:
        return Ladder(self.max_steps).best((point for each in self.strata.values() for point in each), got)

    def judge(self, got: Chains) -> Findings:
        found = self.best(got)
        checks, numbers = [], {}
        for (reading, loss), points in self.strata.items():
            failed = [point for point in points if not found[point].enough]
            checks.append(self.failing(*proportion(len(failed), len(points)), reading=reading, loss=loss))
            label = f"{reading}, {loss} loss"
            numbers |= {f"combinations tried, {label}": float(len(points)),
                        f"combinations that fail, {label}": float(len(failed)),
                        f"of these with B >= 8, {label}": float(sum(point.batch >= 8 for point in failed)),
                        f"of these no run solved at any rate, {label}":
                            float(sum(found[point].share == 0 for point in failed))}
        note = "" if self.size == "full" else "combinations drawn at random; without width-1000 networks"
        return Findings(checks, rows(found), numbers, note)

    def draw(self, got: Chains) -> plots.Figure:
        return draw_readings(self.best(got))

    @property
    def strata(self) -> dict[tuple[str, str], list[ReadCombination]]:
        """What is tried by each reading with each loss."""
        found: dict[tuple[str, str], list[ReadCombination]] = {}
        for place, (reading, loss) in enumerate(itertools.product(READINGS, LOSSES)):
            choices = itertools.product(self.names, self.n, self.degrees, self.batches, INITS)
            space = [ReadCombination(*values, loss=loss, reading=reading) for values in choices]
            asked = min(self.hinge if loss == "hinge" else self.combinations, len(space))
            drawn = self.rng(place).choice(len(space), asked, replace=False)
            found[reading, loss] = [space[i] for i in sorted(drawn)]
        return found


def smallest(found: Sequence[tuple[Best, Interval]]) -> tuple[float, Interval]:
    """The smallest share, with an interval for the smallest chance: all intervals are taken to hold.

    >>> smallest([(Best(0.3), (0.2, 0.4)), (Best(0.25), (0.21, 0.3))])
    (0.25, (0.2, 0.3))
    """
    return (min(best.share for best, _ in found),
            (min(low for _, (low, _) in found), min(high for _, (_, high) in found)))


@claim(
    "barak2022.less-robust",
    where="Section 3.1",
    kind="empirical",
    title="Minimal-width MLPs and the Transformer need B >= 16",
    statement="Settings (*i), (*ii) and (*iii) satisfy the same 20% rule only for batch sizes of 16 or more.",
    published="""'the same positive results as above only held for sufficiently large batch sizes: B >= 16' (Section
    3.1).""",
)
class LessRobust(Trial):
    """The same question for networks of the least width, and the Transformer: yes, if the batch is not small."""

    names = size(["*i", "*ii"], label="settings")
    degrees = size(quick=[2, 3], full=[2, 3, 4], label="k")
    batches = size(quick=[1, 32], standard=[1, 4, 16, 64, 1024], full=BATCHES)
    losses = size(quick=["hinge"], standard=["hinge"], full=LOSSES)
    runs = size(quick=40, standard=100, full=200)
    max_steps = size(quick=10_000, full=100_000)
    enough = at_least("smallest share that some rate solves, ({setting}), {loss} loss, B >= 16, over k and B", 0.2,
                      part="({setting}), B >= 16")
    small = at_most("smallest share that some rate solves, B <= 8", 0.2, part="not so for smaller B")

    def points(self, name: str) -> tuple[Ladder, list[Combination]]:
        """The combinations of a setting; for the Transformer there is one more rate."""
        choices = itertools.product((2, 3, 4), self.batches, self.losses)
        ladder = Ladder(100_000, (*RATES, 3e-4) if name == "*iii" else RATES)
        return ladder, [Combination(name, 30, k, batch, loss=loss) for k, batch, loss in choices]

    def work(self, lab: Lab) -> Any:
        return lab.sweep([cell.setup(lr, self.max_steps) for cell in self.cells() for lr in RATES], self.runs)

    def best(self, got: Chains) -> dict[Combination, Best]:
        found: dict[Combination, Best] = {}
        for ladder, points in map(self.points, self.names):
            found |= ladder.best(points, got)
        return found

    def judge(self, got: Any) -> Findings:
        found = self.largest(got)
        checks = []
        for name, loss in itertools.product(self.names, self.losses):
            chosen = [each for cell, each in found.items() if (cell.setting, cell.loss) == (name, loss)
                      and cell.batch >= 16]
            checks.append(self.enough(*smallest(chosen), setting=name, loss=loss))
        checks.append(self.small(*smallest([each for cell, each in found.items() if cell.batch <= 8])))
        data = [{**vars(cell), **vars(best), "low": ends[0], "high": ends[1]} for cell, (best, ends) in found.items()]
        below = sum(best.share < 0.2 for cell, (best, _) in found.items() if cell.batch >= 16)
        return Findings(checks, data, {"cells with B >= 16 below a fifth": float(below)}, "without the Transformer")

    def draw(self, got: Any) -> plots.Figure:
        return draw_shares({cell: best for cell, (best, _) in self.largest(got).items()}, "batch")

    def cells(self) -> list[Combination]:
        choices = itertools.product(self.names, self.degrees, self.batches, self.losses)
        return [Combination(name, 30, k, batch, loss=loss) for name, k, batch, loss in choices]

    def largest(self, got: list[Result]) -> dict[Combination, tuple[Best, Interval]]:
        """The largest share over rates in every cell; its intervals hold in all cells at once."""
        level = 1 - 0.05 / len(got)
        found: dict[Combination, tuple[Best, Interval]] = {}
        for place, cell in enumerate(self.cells()):
            counts = [int(np.sum(result.records.status == SOLVED))
                      for result in got[place * len(RATES) : (place + 1) * len(RATES)]]
            most = int(np.argmax(counts))
            ends = [share_interval(count, self.runs, level) for count in counts]
            best = Best(counts[most] / self.runs, RATES[most], self.max_steps)
            found[cell] = best, (max(low for low, _ in ends), max(high for _, high in ends))
        return found


@plots.styled
def draw_shares(found: Mapping[Combination, Best], axis: str) -> plots.Figure:
    """The share of combinations in which some rate solves a fifth of the runs, against one of their choices."""
    values = list(dict.fromkeys(getattr(point, axis) for point in found))
    losses = [loss for loss in LOSSES if any(point.loss == loss for point in found)]
    figure = plots.blank(2.4)
    axes = figure.add_subplot(xlabel=axis, ylabel="share of combinations solved", ylim=(-0.05, 1.05))
    for i, (loss, marker) in enumerate(zip(losses, "so^", strict=False)):
        answers = [[best.enough for point, best in found.items() if (getattr(point, axis), point.loss) == (value, loss)]
                   for value in values]
        drawn = {place: proportion(sum(each), len(each)) for place, each in enumerate(answers) if each}
        places = np.array(list(drawn)) + 0.25 * (i - (len(losses) - 1) / 2)
        shares = np.array([share for share, _ in drawn.values()])
        ends = np.array([ends for _, ends in drawn.values()])
        axes.errorbar(places, shares, np.abs(ends.T - shares), fmt=marker, color=plots.COLOURS[i], markersize=3,
                      linewidth=0.8, label=loss)
    axes.set_xticks(range(len(values)), [str(value) for value in values])
    plots.legend_above(figure, axes)
    return figure


# --- losses ---------------------------------------------------------------------------------------------------------


@claim(
    "barak2022.loss-interchangeable",
    where="Appendix D.1",
    kind="empirical",
    title="Hinge, square and cross-entropy behave alike",
    statement="Swapping the loss does not change the order of magnitude of convergence times.",
    published="'they appeared to be interchangeable upon running small experiments' (Appendix D.1); no numbers.",
)
class LossInterchangeable(Trial):
    """The 10th percentile of the convergence time at the best rate, for three losses."""

    n = size(quick=20, full=30)
    names = size(quick=["i", "xv"], full=["i", "iv", "xv"], label="settings")
    max_steps = size(quick=3000, full=100_000)
    spread = at_most("largest / smallest p10 over losses, ({setting})", 4)
    runs = size(quick=50, full=400)

    def points(self) -> list[tuple[str, str, float]]:
        """Settings, losses and rates."""
        return list(itertools.product(self.names, LOSSES, RATES))

    def work(self, lab: Lab) -> list[Result]:
        return lab.sweep([Combination(name, self.n, 3, 32, loss=loss).setup(lr, self.max_steps)
                          for name, loss, lr in self.points()], self.runs)

    def fastest(self, got: list[Result]) -> dict[str, dict[str, Result]]:
        """For each setting and loss, the rate with the smallest 10th percentile."""
        found = dict(zip(self.points(), got, strict=True))
        return {name: {loss: min((found[name, loss, lr] for lr in RATES), key=lambda result: result.summary.p10)
                       for loss in LOSSES} for name in self.names}

    def judge(self, got: list[Result]) -> Findings:
        checks = []
        for name, best in self.fastest(got).items():
            checks.append(self.spread(*self.apart([times(result.records) for result in best.values()]), setting=name))
        data = [{"setting": name, "loss": loss, "lr": lr, "p10": result.summary.to_dict()["p10"],
                 "solved": result.summary.solved, "runs": result.summary.runs}
                for (name, loss, lr), result in zip(self.points(), got, strict=True)]
        return Findings(checks, data)

    def apart(self, samples: list[Floats]) -> Estimate:
        level = together(len(samples))
        p10 = [percentiles(each, np.where(np.isfinite(each), SOLVED, CENSORED), [10], level=level)[0]
               for each in samples]
        if not all(math.isfinite(value) for value, _ in p10):
            return math.nan, (-math.inf, math.inf)
        return largest([quotient(one, other) for one, other in itertools.permutations(p10, 2)])

    def draw(self, got: list[Result]) -> plots.Figure:
        return times_plot({f"({name}) {loss}": result.records
                           for name, best in self.fastest(got).items() for loss, result in best.items()})


