"""How much bias in the inputs buys, against the exact gradient of a start."""

from __future__ import annotations

import numpy as np

from paritylab import MLP, SGD, Learner, Problem, Protocol, Setup, plots
from paritylab.aliases import Floats
from paritylab.claims import Findings, Lab, Trial, at_least, between, claim, size
from paritylab.claims.intervals import estimate, share
from paritylab.claims.medians import exponent, ratio_of_medians, samples, spread
from paritylab.running.sweeps import Result
from paritylab.theory.bias_gap import bias_gap

BUYS, PREDICTED = "what bias buys", "the exact gradient's prediction, {law}"
LEFT, SOLVED = 0.6, 0.99
"""Shares of inputs: a run has left its plateau, and is solved."""


@claim(
    "beyond.bias-buys",
    where="barak2022, Section 4: the Fourier gap of a start; the literature on curricula and biased inputs",
    kind="empirical",
    title="What bias in the inputs buys, and what the exact gradient says",
    statement="""On a (31, 6) parity whose inputs are +1 with probability p, a ReLU network that starts from signs
    leaves its plateau at p = 0.7 at least five times as early as at p = 0.6, and is solved at least twice as early as
    at p = 0.6 and four times as early as on uniform inputs. The exact first gradient predicts how much bias buys: steps
    on the plateau are in proportion to a power of its signal between -2 (noise decides) and -1 (weights must only
    travel), from p = 0.6 up and between uniform inputs and p = 0.6.""",
    published="none: a study of our own",
)
class BiasBuys(Trial):
    """Steps to 60 %, and to 99 %, of inputs of the same law: width 50, hinge loss, batch 32, rate 0.1."""

    p = size(quick=[0.6, 0.7], full=[0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8])
    seeds = size(quick=50, full=1000)
    n, k, width, rate, batch, steps = 31, 6, 50, 0.1, 32, 200_000

    left = at_least("smallest share of runs that leave the plateau, over p", 0.95, part=BUYS)
    faster = at_least("median steps on the plateau, p = 0.6 over p = 0.7", 5.0, part=BUYS)
    solved = at_least("smallest share of runs that reach 99 %, over p", 0.95, only=("full",), part=BUYS)
    sooner = at_least("median steps to 99 %, p = 0.6 over p = 0.7", 2.0, only=("full",), part=BUYS)
    soonest = at_least("median steps to 99 %, uniform inputs over p = 0.7", 4.0, only=("full",), part=BUYS)
    power = between("exponent of the median steps on the plateau in the signal of the first gradient, p >= 0.6", -2.0,
                    -1.0, part=PREDICTED)
    uniform = between("median steps on the plateau, uniform inputs over p = 0.6", "where weights travel",
                      "where noise decides", only=("full",), part=PREDICTED)

    def work(self, lab: Lab) -> list[Result]:
        learner = Learner(MLP(self.width), init="rademacher", optimiser=SGD(self.rate), batch=self.batch)
        setups = [Setup(Problem(self.n, range(self.k), f"biased:{p}"), learner,
                        Protocol(self.steps, eval_every=25, eval_size=4096, threshold=level))
                  for level in self.levels for p in self.p]
        return lab.sweep(setups, self.seeds)

    @property
    def levels(self) -> tuple[float, ...]:
        return (LEFT, SOLVED) if self.size == "full" else (LEFT,)

    def times(self, got: list[Result]) -> dict[float, dict[float, Floats]]:
        """Steps of each run to each level, by p."""
        every = iter(got)
        return {level: {p: samples(next(every).records) for p in self.p} for level in self.levels}

    def judge(self, got: list[Result]) -> Findings:
        every, gaps = self.times(got), {p: bias_gap(self.n, self.k, p) for p in self.p}
        left, biased = every[LEFT], [p for p in self.p if p >= 0.6]

        def least(times: dict[float, Floats]) -> np.ndarray:
            return min((np.isfinite(each) for each in times.values()), key=np.mean)

        checks = [self.left(*share(least(left))),
                  self.faster(*estimate(ratio_of_medians, left[0.6], left[0.7], rng=self.rng(0))),
                  self.power(*exponent([gaps[p].signal for p in biased], [left[p] for p in biased]), law="p >= 0.6")]
        if self.size == "full":
            solved = every[SOLVED]
            bounds = gaps[0.6].signal / gaps[0.5].signal, gaps[0.5].steps() / gaps[0.6].steps()
            checks += [self.solved(*share(least(solved))),
                       self.sooner(*estimate(ratio_of_medians, solved[0.6], solved[0.7], rng=self.rng(1))),
                       self.soonest(*estimate(ratio_of_medians, solved[0.5], solved[0.7], rng=self.rng(2))),
                       self.uniform(*estimate(ratio_of_medians, left[0.5], left[0.6], rng=self.rng(3)),
                                    low=bounds[0], high=bounds[1], law="uniform inputs")]
        numbers = {f"signal of the first gradient, p = {p:g}": gap.signal for p, gap in gaps.items()}
        numbers |= {f"median steps to {level:.0%}, p = {p:g}": float(np.median(values))
                    for level, times in every.items() for p, values in times.items()}
        rows = [{"p": p, "signal": gaps[p].signal, "level": level, "run": run,
                 "steps": float(value) if np.isfinite(value) else None}
                for level, times in every.items() for p, values in times.items() for run, value in enumerate(values)]
        return Findings(checks, rows, numbers)

    def draw(self, got: list[Result]) -> plots.Figure:
        every, gaps = self.times(got), [bias_gap(self.n, self.k, p) for p in self.p]
        signal, noise = np.array([gap.signal for gap in gaps]), np.array([gap.steps() for gap in gaps])
        middle = self.p.index(0.6)
        steps = float(np.median(every[LEFT][0.6]))
        laws = {"noise decides": (signal, noise * steps / noise[middle]),
                "weights travel": (signal, steps * signal[middle] / signal)}
        series = {f"to {level:.0%}": spread(signal.tolist(), list(times.values())) for level, times in every.items()}
        return plots.scaling_plot(series, "signal of the exact first gradient", "steps", laws)
