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
from paritylab import Learner, Parity, Setup, plots
from paritylab.aliases import Floats, Interval
from paritylab.claims import Findings, Lab, Trial, at_least, at_most, claim, size
from paritylab.claims.intervals import bootstrap, proportion
from paritylab.running.sweeps import Result
from paritylab.statistics import percentile

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

    names = size(quick=NARROW, full=ROBUST, label="settings")
    n = size(quick=[10], full=[10, 20, 30])
    degrees = size(quick=[2, 3], full=[2, 3, 4], label="k")
    batches = size(quick=[4, 32, 256], full=BATCHES)
    combinations = size(quick=40, standard=1000, full=13_365)
    runs = size(quick=10, full=25)
    max_steps = size(quick=3000, full=100_000)

    share = at_least("share of combinations in which some rate solves 20 % of the runs", 0.95)
    lower_end = at_least("lower end of its 95 % interval", 0.9)
    worst = at_least("smallest share", "20 % less two standard errors", only=("full",))

    @property
    def space(self) -> list[Combination]:
        factors = (self.names, self.n, self.degrees, self.batches, INITS, LOSSES)
        return [Combination(*values) for values in itertools.product(*factors)]

    def work(self, lab: Lab) -> Chains:
        space, ladder = self.space, Ladder(self.max_steps)
        drawn = [space[i] for i in self.rng().choice(len(space), self.combinations, replace=False)]
        wide = next((point for point in drawn if point.setting not in NARROW), None)
        if self.size == "standard" and wide and not lab.affords(ladder.chains([wide])[str(wide)][0], self.runs):
            lab.leave_out("width-1000 networks, and four of five combinations: they take hours on a CPU")
            drawn = [point for point in drawn if point.setting in NARROW][: self.combinations // 5]
        chosen = set(drawn)
        return lab.chains(ladder.chains(point for point in space if point in chosen), self.runs, until=SHARE)

    def best(self, got: Chains) -> dict[Combination, Best]:
        return Ladder(self.max_steps).best(self.space, got)

    def judge(self, got: Chains) -> Findings:
        found = self.best(got)
        good = sum(best.enough for best in found.values())
        share, interval = proportion(good, len(found))
        checks = [self.share(share, interval), self.lower_end(interval[0], interval)]
        if self.size == "full":
            least = SHARE - 2 * math.sqrt(SHARE * (1 - SHARE) / self.runs)
            checks.append(self.worst(min(best.share for best in found.values()), low=least))
        numbers = {"combinations that fail": float(len(found) - good), "combinations in all": float(len(self.space))}
        note = f"{len(found)} combinations drawn at random"
        if all(point.setting in NARROW for point in found):
            note += ", width-1000 networks left out"
        return Findings(checks, rows(found), numbers, note if self.size != "full" else "")

    def draw(self, got: Chains) -> plots.Figure:
        return draw_shares(self.best(got), "setting")


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

    names = size(quick=["*i", "*ii"], standard=["*i", "*ii"], full=["*i", "*ii", "*iii"], label="settings")
    batches = size(quick=[1, 32], full=BATCHES)
    losses = size(quick=["hinge"], full=LOSSES)

    share = at_least("share of (setting, k, loss) in which some rate solves 20 %, B={batch}", 0.9)
    failing = at_least("combinations with B <= 4 in which no rate does", 1)

    def points(self, name: str) -> tuple[Ladder, list[Combination]]:
        """The combinations of a setting; for the Transformer there is one more rate."""
        choices = itertools.product((2, 3, 4), self.batches, self.losses)
        ladder = Ladder(100_000, (*RATES, 3e-4) if name == "*iii" else RATES)
        return ladder, [Combination(name, 30, k, batch, loss=loss) for k, batch, loss in choices]

    def work(self, lab: Lab) -> Chains:
        asked: dict[str, list[Setup]] = {}
        for ladder, points in map(self.points, self.names):
            asked |= ladder.chains(points)
        return lab.chains(asked, runs=25, until=SHARE)

    def best(self, got: Chains) -> dict[Combination, Best]:
        found: dict[Combination, Best] = {}
        for ladder, points in map(self.points, self.names):
            found |= ladder.best(points, got)
        return found

    def judge(self, got: Chains) -> Findings:
        found = self.best(got)
        checks = []
        for batch in (batch for batch in self.batches if batch >= 16):
            answers = [best.enough for point, best in found.items() if point.batch == batch]
            checks.append(self.share(*proportion(sum(answers), len(answers)), batch=batch))
        checks.append(self.failing(sum(not best.enough for point, best in found.items() if point.batch <= 4)))
        pooled = np.mean([best.enough for point, best in found.items() if point.batch >= 16])
        note = "" if "*iii" in self.names else "without the Transformer, which needs a GPU"
        return Findings(checks, rows(found), {"the share over all B >= 16": float(pooled)}, note)

    def draw(self, got: Chains) -> plots.Figure:
        return draw_shares(self.best(got), "batch")


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
    runs = size(25)
    max_steps = size(quick=3000, full=100_000)

    spread = at_most("largest / smallest p10 over losses, ({setting})", 4)

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

    def apart(self, samples: list[Floats]) -> tuple[float, Interval]:
        """The largest over the smallest 10th percentile, with its interval."""
        return spread_of_p10(*samples), bootstrap(spread_of_p10, *samples, rng=self.rng())

    def draw(self, got: list[Result]) -> plots.Figure:
        return times_plot({f"({name}) {loss}": result.records
                           for name, best in self.fastest(got).items() for loss, result in best.items()})


def spread_of_p10(*samples: Floats) -> float:
    """The largest over the smallest 10th percentile; undefined where one is not reached."""
    p10 = [percentile(sample, np.where(np.isfinite(sample), 0, 1), 10) for sample in samples]
    return max(p10) / min(p10) if math.isfinite(max(p10)) else math.nan
