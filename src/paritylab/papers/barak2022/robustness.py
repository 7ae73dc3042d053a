"""How many choices work: the robust space of Section 3.1, its exceptions, and the choice of loss."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from paritylab import Parity, Setup, plots
from paritylab.claims.intervals import proportion
from paritylab.claims.lab import Lab
from paritylab.claims.registry import reproduces
from paritylab.claims.verdicts import Outcome, at_least, at_most
from paritylab.papers.barak2022 import settings
from paritylab.papers.barak2022.common import FIXED_8192, Floats, bootstrap, times, times_plot
from paritylab.running.sweeps import Result
from paritylab.statistics import percentile

RATES = (0.1, 1.0, 0.01, 0.001)
"""The paper's grid, the rate that works most often first."""
LOSSES = ["hinge", "square", "logistic"]
INITS = {"uniform": "torch", "Gaussian": "kaiming", "Bernoulli": "sign"}
BATCHES = [2**i for i in range(11)]
ROBUST = [name for name in settings.BARAK2022 if not name.startswith("*")]
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
        learner = settings.barak2022(self.setting, self.k, lr, self.batch)
        learner = replace(learner, init=INITS[self.init], loss=self.loss)
        return Setup(Parity(self.n, self.k), learner, replace(FIXED_8192, max_steps=max_steps))


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


def best_shares(
    lab: Lab, points: Sequence[Combination], runs: int, max_steps: int, rates: Sequence[float] = RATES
) -> dict[Combination, Best]:
    """Whether some rate solves SHARE of the runs: short runs first, rates one after another, until one does.

    A run solved within fewer steps is solved within ``max_steps``, so the answer is that of the longest runs.
    """
    tries = [(limit, lr) for limit in horizons(max_steps) for lr in rates]
    asked = {str(point): [point.setup(lr, limit) for limit, lr in tries] for point in points}
    found = lab.chains(asked, runs, until=SHARE)
    return {point: best_of(tries, found[str(point)]) for point in points}


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


@reproduces("barak2022.robust-space")
def robust_space(lab: Lab) -> Outcome:
    """Does some learning rate solve a fifth of the runs, whatever else is chosen?"""
    narrow = [name for name in ROBUST if name not in ("iii", "vi")]
    names = lab.pick("settings", quick=narrow, full=ROBUST)
    sizes = lab.pick("n", quick=[10], full=[10, 20, 30])
    degrees = lab.pick("k", quick=[2, 3], full=[2, 3, 4])
    batches = lab.pick("batches", quick=[4, 32, 256], full=BATCHES)
    space = [Combination(*values) for values in itertools.product(names, sizes, degrees, batches, INITS, LOSSES)]
    count = lab.pick("combinations", quick=40, standard=1000, full=len(space))
    runs = lab.pick("runs", quick=10, full=25)
    max_steps = lab.pick("max_steps", quick=3000, full=100_000)
    drawn = lab.rng().choice(len(space), count, replace=False)
    wide = next((space[i] for i in drawn if space[i].setting not in narrow), None)
    if lab.size == "standard" and wide and not lab.affords(wide.setup(RATES[0], horizons(max_steps)[0]), runs):
        wide = None
        lab.leave_out("width-1000 networks, and four of five combinations: they take hours on a CPU")
        drawn = np.array([i for i in drawn if space[i].setting in narrow][: count // 5])
    chosen = [space[i] for i in np.sort(drawn)]
    found = best_shares(lab, chosen, runs, max_steps)
    good = sum(best.enough for best in found.values())
    share, interval = proportion(good, len(found))
    checks = [
        at_least("share of combinations in which some rate solves 20 % of the runs", share, 0.95, interval),
        at_least("lower end of its 95 % interval", interval[0], 0.9, interval),
    ]
    if lab.size == "full":
        worst = min(best.share for best in found.values())
        checks.append(at_least("smallest share", worst, SHARE - 2 * math.sqrt(SHARE * (1 - SHARE) / runs)))
    numbers = {"combinations that fail": float(len(found) - good), "combinations in all": float(len(space))}
    note = f"{len(chosen)} combinations drawn at random" + ("" if wide else ", width-1000 networks left out")
    return Outcome(checks, rows(found), draw(found, "setting"), numbers, note if lab.size != "full" else "")


@reproduces("barak2022.less-robust")
def less_robust(lab: Lab) -> Outcome:
    """The same question for networks of the least width, and the Transformer: yes, if the batch is not small."""
    names = lab.pick("settings", quick=["*i", "*ii"], standard=["*i", "*ii"], full=["*i", "*ii", "*iii"])
    batches = lab.pick("batches", quick=[1, 32], full=BATCHES)
    losses = lab.pick("losses", quick=["hinge"], full=LOSSES)
    n, degrees, runs, max_steps = 30, (2, 3, 4), 25, 100_000
    found: dict[Combination, Best] = {}
    for name in names:
        rates = (*RATES, 3e-4) if name == "*iii" else RATES
        points = [Combination(name, n, k, batch, loss=loss)
                  for k, batch, loss in itertools.product(degrees, batches, losses)]
        found |= best_shares(lab, points, runs, max_steps, rates)
    checks = []
    for batch in (batch for batch in batches if batch >= 16):
        answers = [best.enough for point, best in found.items() if point.batch == batch]
        share, interval = proportion(sum(answers), len(answers))
        checks.append(at_least(f"share of (setting, k, loss) in which some rate solves 20 %, B={batch}", share, 0.9,
                               interval))
    failing = sum(not best.enough for point, best in found.items() if point.batch <= 4)
    checks.append(at_least("combinations with B <= 4 in which no rate does", failing, 1))
    pooled = np.mean([best.enough for point, best in found.items() if point.batch >= 16])
    note = "" if "*iii" in names else "without the Transformer, which needs a GPU"
    return Outcome(checks, rows(found), draw(found, "batch"), {"the share over all B >= 16": float(pooled)}, note)


@plots.styled
def draw(found: Mapping[Combination, Best], axis: str) -> Any:
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


@reproduces("barak2022.loss-interchangeable")
def losses_alike(lab: Lab) -> Outcome:
    """The 10th percentile of the convergence time at the best rate, for three losses."""
    n = lab.pick("n", quick=20, full=30)
    names = lab.pick("settings", quick=["i", "xv"], full=["i", "iv", "xv"])
    runs = lab.pick("runs", quick=25, full=25)
    max_steps = lab.pick("max_steps", quick=3000, full=100_000)
    points = [(Combination(name, n, 3, 32, loss=loss), lr) for name in names for loss in LOSSES for lr in RATES]
    results = dict(zip(points, lab.sweep([point.setup(lr, max_steps) for point, lr in points], runs), strict=True))
    checks, data, shown = [], [], {}
    for name in names:
        best = {loss: fastest(results[point, lr] for point, lr in points if (point.setting, point.loss) == (name, loss))
                for loss in LOSSES}
        samples = [times(result.records) for result in best.values()]
        interval = bootstrap(spread_of_p10, *samples, rng=lab.rng())
        checks.append(at_most(f"largest / smallest p10 over losses, ({name})", spread_of_p10(*samples), 4, interval))
        shown |= {f"({name}) {loss}": result.records for loss, result in best.items()}
    for (point, lr), result in results.items():
        summary = result.summary
        data.append({"setting": point.setting, "loss": point.loss, "lr": lr, "p10": summary.to_dict()["p10"],
                     "solved": summary.solved, "runs": summary.runs})
    return Outcome(checks, data, times_plot(shown))


def fastest(results: Iterable[Result]) -> Result:
    """The rate with the smallest 10th percentile."""
    return min(results, key=lambda result: result.summary.p10)


def spread_of_p10(*samples: Floats) -> float:
    """The largest over the smallest 10th percentile; undefined where one is not reached."""
    p10 = [percentile(sample, np.where(np.isfinite(sample), 0, 1), 10) for sample in samples]
    return max(p10) / min(p10) if math.isfinite(max(p10)) else math.nan
