"""How much bias in the inputs buys, against the exact gradient of a start."""

from __future__ import annotations

import numpy as np

from paritylab import MLP, SGD, Learner, Problem, Protocol, Setup, plots
from paritylab.aliases import Floats
from paritylab.claims import Findings, Lab, Trial, at_least, at_most, between, claim, size
from paritylab.claims.intervals import estimate, share
from paritylab.claims.medians import exponent, ratio_of_medians, samples, spread
from paritylab.running.sweeps import Result
from paritylab.theory.bias_gap import BiasGap, bias_gap

BUYS, PREDICTED = "what bias buys", "the exact gradient's prediction"
LEFT, SOLVED = 0.6, 0.99
"""Shares of inputs: a run has left its plateau, and is solved."""


@claim(
    "beyond.bias-buys",
    where="barak2022, Section 4: the Fourier gap of a start; the literature on curricula and biased inputs",
    kind="empirical",
    title="What bias in the inputs buys, and what the exact gradient says",
    statement="""On a (31, 6) parity whose inputs are +1 with probability p, a ReLU network that starts from signs
    leaves its plateau at p = 0.7 at least five times as early as at p = 0.6, is solved at least twice as early, and on
    uniform inputs does not leave it within 100,000 steps. The exact first gradient predicts how much bias buys: steps
    on the plateau are in proportion to a power of its signal between -2 (noise decides) and -1 (weights must only
    travel).""",
    published="none: a study of our own",
)
class BiasBuys(Trial):
    """Steps to 60 %, and to 99 %, of inputs of the same law: width 50, hinge loss, batch 32, rate 0.1."""

    p = size(quick=[0.6, 0.7], full=[0.6, 0.625, 0.65, 0.675, 0.7, 0.75, 0.8])
    seeds = size(quick=50, full=1000)
    n, k, width, rate, batch, steps = 31, 6, 50, 0.1, 32, 100_000

    left = at_least("smallest share of runs that leave the plateau, over p", 0.95, part=BUYS)
    faster = at_least("median steps on the plateau at p = 0.6 over those at p = 0.7", 5.0, part=BUYS)
    sooner = at_least("median steps to 99 % at p = 0.6 over those at p = 0.7", 2.0, only=("full",), part=BUYS)
    uniform = at_most("share of runs that leave it on uniform inputs", 0.05, only=("full",), part=BUYS)
    power = between("exponent of the median steps in the signal of the first gradient", -2.0, -1.0, part=PREDICTED)

    def work(self, lab: Lab) -> list[Result]:
        learner = Learner(MLP(self.width), init="rademacher", optimiser=SGD(self.rate), batch=self.batch)
        asked = [(p, LEFT) for p in self.p]
        if self.size == "full":
            asked += [(p, SOLVED) for p in self.p] + [(0.5, LEFT)]
        setups = [Setup(Problem(self.n, range(self.k), f"biased:{p}"), learner,
                        Protocol(self.steps, eval_every=25, eval_size=4096, threshold=level)) for p, level in asked]
        return lab.sweep(setups, self.seeds)

    def predicted(self) -> list[BiasGap]:
        return [bias_gap(self.n, self.k, p) for p in self.p]

    def times(self, got: list[Result]) -> tuple[list[Floats], list[Floats], list[Floats]]:
        """Steps of each run to leave the plateau and to be solved, for each p; and to leave it on uniform inputs."""
        every, count = [samples(result.records) for result in got], len(self.p)
        return every[:count], every[count : 2 * count], every[2 * count :]

    def judge(self, got: list[Result]) -> Findings:
        (times, solved, uniform), gaps = self.times(got), self.predicted()
        signal = [gap.signal for gap in gaps]
        worst = min(times, key=lambda each: np.isfinite(each).mean())
        less, more = self.p.index(0.6), self.p.index(0.7)
        checks = [self.left(*share(np.isfinite(worst))),
                  self.faster(*estimate(ratio_of_medians, times[less], times[more], rng=self.rng(0))),
                  self.power(*exponent(signal, times))]
        if self.size == "full":
            checks += [self.sooner(*estimate(ratio_of_medians, solved[less], solved[more], rng=self.rng(1))),
                       self.uniform(*share(np.isfinite(uniform[0])))]
        numbers = {f"signal of the first gradient, p = {p:g}": s for p, s in zip(self.p, signal, strict=True)}
        numbers["signal of the first gradient, p = 0.5"] = bias_gap(self.n, self.k).signal
        for level, each in ((LEFT, times), (SOLVED, solved)):
            numbers |= {f"median steps to {level:.0%}, p = {p:g}": float(np.median(values))
                        for p, values in zip(self.p, each, strict=False)}
        cases = [(p, LEFT, values) for p, values in zip(self.p, times, strict=True)]
        cases += [(p, SOLVED, values) for p, values in zip(self.p, solved, strict=False)]
        cases += [(0.5, LEFT, values) for values in uniform]
        rows = [{"p": p, "level": level, "run": run, "steps": float(value) if np.isfinite(value) else None}
                for p, level, values in cases for run, value in enumerate(values)]
        return Findings(checks, rows, numbers)

    def draw(self, got: list[Result]) -> plots.Figure:
        (times, solved, _), gaps = self.times(got), self.predicted()
        signal, noise = np.array([gap.signal for gap in gaps]), np.array([gap.steps(self.batch) for gap in gaps])
        middle = len(times) // 2
        steps = float(np.median(times[middle]))
        laws = {"noise decides": (signal, noise * steps / noise[middle]),
                "weights travel": (signal, steps * signal[middle] / signal)}
        series = {f"to {level:.0%}": spread(signal.tolist(), each)
                  for level, each in ((LEFT, times), (SOLVED, solved)) if each}
        return plots.scaling_plot(series, "signal of the exact first gradient", "steps", laws)
