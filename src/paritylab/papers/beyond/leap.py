"""The leap of a target against its degree: how long networks take."""

from __future__ import annotations

import numpy as np

from paritylab import MLP, SGD, Learner, Problem, Protocol, Setup, plots
from paritylab.aliases import Floats
from paritylab.claims import Findings, Lab, Trial, at_least, at_most, claim, size
from paritylab.claims.intervals import estimate, share
from paritylab.papers.glasgow2023.common import exponent, samples
from paritylab.papers.glasgow2023.samples import spread
from paritylab.running.sweeps import Result

TARGETS = {"staircase:3": 1, "leap:2,1": 2, "leap:1,2": 2, "parity:3": 3}
"""Targets of degree 3, with their leaps."""


@claim(
    "beyond.leap-time",
    where="barak2022, Section 6: other targets than parities; the literature on staircases and leaps",
    kind="empirical",
    title="The leap decides the time, not the degree",
    statement="""Of four targets of degree 3 on n bits, x1 + x1x2 + x1x2x3 (leap 1), x1x2 + x1x2x3 and x1 + x1x2x3
    (leap 2) and x1x2x3 (leap 3), a ReLU network takes steps that grow the faster with n the larger the leap: by a power
    of n that is at least 0.5 larger for the bare parity than for the staircase, and below 1 for the staircase.""",
    published="none: a study of our own",
)
class LeapTime(Trial):
    """Steps until 99 % of inputs are within 0.5, width 64, squared error, batch 32, rate 0.02."""

    n = size(quick=[12, 24], full=[16, 24, 32, 48, 64, 96])
    seeds = size(quick=50, full=1000)
    width, rate, batch, steps = 64, 0.02, 32, 300_000

    solved = at_least("share of runs that are solved, {target}", 0.99)
    staircase = at_most("exponent of the median steps in n, staircase:3", 1.0)
    gap = at_least("exponent of parity:3 less that of staircase:3", 0.5)
    first = at_least("exponent of leap:1,2 less that of staircase:3", 0.0, only=("full",))
    last = at_least("exponent of parity:3 less that of leap:1,2", 0.0, only=("full",))
    other = at_least("exponent of parity:3 less that of leap:2,1", 0.0, only=("full",))

    def work(self, lab: Lab) -> list[Result]:
        learner = Learner(MLP(self.width), loss="square", optimiser=SGD(self.rate), batch=self.batch)
        protocol = Protocol(self.steps, eval_every=25, eval_size=1024, threshold=0.99, within=0.5)
        problems = [Problem(n, target) for target in TARGETS for n in self.n]
        return lab.sweep([Setup(problem, learner, protocol) for problem in problems], self.seeds)

    def times(self, got: list[Result]) -> dict[str, list[Floats]]:
        """Steps of each run, for each n, of each target."""
        every = [samples(result.records, 1) for result in got]
        count = len(self.n)
        return {target: every[i * count : (i + 1) * count] for i, target in enumerate(TARGETS)}

    def judge(self, got: list[Result]) -> Findings:
        times, count = self.times(got), len(self.n)

        def apart(*values: Floats) -> float:
            return slope(self.n, values[:count]) - slope(self.n, values[count:])

        def less(one: str, other: str) -> tuple[float, tuple[float, float]]:
            return estimate(apart, *times[one], *times[other], rng=np.random.default_rng(0))

        checks = [self.solved(*share(np.isfinite(np.concatenate(each))), target=target)
                  for target, each in times.items()]
        checks += [self.staircase(*exponent(self.n, times["staircase:3"])),
                   self.gap(*less("parity:3", "staircase:3"))]
        if self.size == "full":
            checks += [self.first(*less("leap:1,2", "staircase:3")), self.last(*less("parity:3", "leap:1,2")),
                       self.other(*less("parity:3", "leap:2,1"))]
        numbers = {f"exponent of the median steps in n, {target} (leap {leap})": exponent(self.n, times[target])[0]
                   for target, leap in TARGETS.items()}
        rows = [{"target": target, "leap": TARGETS[target], "n": n, "run": run,
                 "steps": float(value) if np.isfinite(value) else None}
                for target, each in times.items() for n, values in zip(self.n, each, strict=True)
                for run, value in enumerate(values)]
        return Findings(checks, rows, numbers)

    def draw(self, got: list[Result]) -> plots.Figure:
        series = {f"{target}, leap {TARGETS[target]}": spread(self.n, values)
                  for target, values in self.times(got).items()}
        return plots.scaling_plot(series, "inputs $n$", "steps to 99 %")


def slope(sizes: list[int], values: tuple[Floats, ...]) -> float:
    """The slope of log median on log size; NaN where a median is not known.

    >>> slope([2, 4], (np.array([4.0]), np.array([16.0])))
    2.0
    """
    x = np.log(np.asarray(sizes, float))
    x -= x.mean()
    with np.errstate(invalid="ignore"):
        found = float(np.log([np.median(each) for each in values]) @ x / (x @ x))
    return round(found, 12) if np.isfinite(found) else np.nan
