"""The leap of a target against its degree: how long networks take."""

from __future__ import annotations

import numpy as np

from paritylab import MLP, SGD, Learner, Problem, Protocol, Setup, plots
from paritylab.aliases import Floats, Interval
from paritylab.claims import Findings, Lab, Trial, at_least, at_most, claim, size
from paritylab.claims.intervals import estimate, share
from paritylab.claims.medians import exponent, ratio_of_medians, samples, slope, spread
from paritylab.measures.boolean import named, spectrum
from paritylab.running.sweeps import Result

TARGETS = ("staircase:3", "leap:2,1", "leap:1,2", "parity:3")
"""Targets of degree 3, of leaps 1, 2, 2 and 3."""
HIGHER = "staircase:4"
"""A target of degree 4, of leap 1."""


@claim(
    "beyond.leap-time",
    where="barak2022, Section 6: other targets than parities; the literature on staircases and leaps",
    kind="empirical",
    title="The leap decides the time, not the degree",
    statement="""Of four targets of degree 3 on n bits, x1 + x1x2 + x1x2x3 (leap 1), x1x2 + x1x2x3 and x1 + x1x2x3
    (leap 2) and x1x2x3 (leap 3), the steps of a ReLU network grow with n fastest for the bare parity: by a power that
    is at least 0.5 larger than that of the staircase, which is below 1, and larger than those of leap 2, of which the
    second is not below the staircase's. A staircase of degree 4 grows more slowly than the parity of degree 3 too.""",
    published="none: a study of our own",
)
class LeapTime(Trial):
    """Steps until 99 % of inputs are within 0.5, width 64, squared error, batch 32, rate 0.02."""

    n = size(quick=[12, 24], full=[16, 24, 32, 48, 64, 96, 128])
    seeds = size(quick=50, full=1000)
    width, rate, batch, steps = 64, 0.02, 32, 300_000

    solved = at_least("share of runs that are solved, {target}", 0.99)
    staircase = at_most("exponent of the median steps in n, staircase:3", 1.0)
    gap = at_least("exponent of parity:3 less that of staircase:3", 0.5)
    first = at_least("exponent of leap:1,2 less that of staircase:3", 0.0, only=("full",))
    last = at_least("exponent of parity:3 less that of leap:1,2", 0.0, only=("full",))
    other = at_least("exponent of parity:3 less that of leap:2,1", 0.0, only=("full",))
    degree = at_least("exponent of parity:3 less that of staircase:4", 0.5, only=("full",))
    later = at_least("median steps of parity:3 / of staircase:4, n = {n}", 5.0, only=("full",))

    @property
    def targets(self) -> list[str]:
        return [*TARGETS, HIGHER] if self.size == "full" else [*TARGETS]

    def work(self, lab: Lab) -> list[Result]:
        learner = Learner(MLP(self.width), loss="square", optimiser=SGD(self.rate), batch=self.batch)
        protocol = Protocol(self.steps, eval_every=25, eval_size=1024, threshold=0.99, within=0.5)
        problems = [Problem(n, target) for target in self.targets for n in self.n]
        return lab.sweep([Setup(problem, learner, protocol) for problem in problems], self.seeds)

    def times(self, got: list[Result]) -> dict[str, list[Floats]]:
        """Steps of each run, for each n, of each target."""
        every = [samples(result.records) for result in got]
        count = len(self.n)
        return {target: every[i * count : (i + 1) * count] for i, target in enumerate(self.targets)}

    def judge(self, got: list[Result]) -> Findings:
        times, count = self.times(got), len(self.n)

        def apart(*values: Floats) -> float:
            return slope(self.n, values[:count]) - slope(self.n, values[count:])

        def less(one: str, other: str) -> tuple[float, Interval]:
            return estimate(apart, *times[one], *times[other], rng=self.rng(0))

        checks = [self.solved(*share(np.isfinite(np.concatenate(each))), target=target)
                  for target, each in times.items()]
        checks += [self.staircase(*exponent(self.n, times["staircase:3"])),
                   self.gap(*less("parity:3", "staircase:3"))]
        if self.size == "full":
            longest = times["parity:3"][-1], times[HIGHER][-1]
            checks += [self.first(*less("leap:1,2", "staircase:3")), self.last(*less("parity:3", "leap:1,2")),
                       self.other(*less("parity:3", "leap:2,1")), self.degree(*less("parity:3", HIGHER)),
                       self.later(*estimate(ratio_of_medians, *longest, rng=self.rng(1)), n=self.n[-1])]
        numbers = {f"exponent of the median steps in n, {target} (leap {leap_of(target)})": exponent(self.n, each)[0]
                   for target, each in times.items()}
        rows = [{"target": target, "leap": leap_of(target), "n": n, "run": run,
                 "steps": float(value) if np.isfinite(value) else None}
                for target, each in times.items() for n, values in zip(self.n, each, strict=True)
                for run, value in enumerate(values)]
        return Findings(checks, rows, numbers)

    def draw(self, got: list[Result]) -> plots.Figure:
        series = {f"{target}, leap {leap_of(target)}": spread(self.n, values)
                  for target, values in self.times(got).items()}
        return plots.scaling_plot(series, "inputs $n$", "steps to 99 %")


def leap_of(target: str) -> int:
    """
    >>> [leap_of(target) for target in (*TARGETS, HIGHER)]
    [1, 2, 2, 3, 1]
    """
    return spectrum(named(target)).leap
