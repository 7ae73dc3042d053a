"""How much bias in the inputs buys, against the exact gradient of a start."""

from __future__ import annotations

import numpy as np

from paritylab import MLP, SGD, Learner, Problem, Protocol, Setup, plots
from paritylab.aliases import Floats
from paritylab.claims import Findings, Lab, Trial, at_least, at_most, between, claim, size
from paritylab.claims.intervals import estimate, share
from paritylab.papers.glasgow2023.common import exponent, ratio_of_medians, samples
from paritylab.running.sweeps import Result
from paritylab.theory.bias_gap import BiasGap, bias_gap


@claim(
    "beyond.bias-buys",
    where="barak2022, Section 4: the Fourier gap of a start; the literature on curricula and biased inputs",
    kind="empirical",
    title="What bias in the inputs buys, and what the exact gradient says",
    statement="""On a (31, 6) parity whose inputs are +1 with probability p, a ReLU network that starts from signs
    leaves its plateau after steps in proportion to a power of the exact signal of its first gradient between -2 (noise
    decides) and -1 (weights must only travel). At p = 0.7 it does so at least five times as early as at p = 0.6, and on
    uniform inputs, where the signal is 21 times smaller than at p = 0.7, not within 100,000 steps.""",
    published="none: a study of our own",
)
class BiasBuys(Trial):
    """Steps to 60 % of inputs of the same law, width 50, hinge loss, batch 32, rate 0.1."""

    p = size(quick=[0.6, 0.7], full=[0.6, 0.625, 0.65, 0.675, 0.7, 0.75, 0.8])
    seeds = size(quick=50, full=1000)
    n, k, width, rate, batch, steps = 31, 6, 50, 0.1, 32, 100_000

    solved = at_least("smallest share of runs that leave the plateau, over p", 0.95)
    power = between("exponent of the median steps in the signal of the first gradient", -2.0, -1.0)
    faster = at_least("median steps at p = 0.6 over those at p = 0.7", 5.0)
    uniform = at_most("share of runs that leave it on uniform inputs", 0.05, only=("full",))

    def work(self, lab: Lab) -> list[Result]:
        learner = Learner(MLP(self.width), init="rademacher", optimiser=SGD(self.rate), batch=self.batch)
        protocol = Protocol(self.steps, eval_every=25, eval_size=4096, threshold=0.6)
        every = [*self.p, 0.5] if self.size == "full" else self.p
        problems = [Problem(self.n, range(self.k), f"biased:{p}") for p in every]
        return lab.sweep([Setup(problem, learner, protocol) for problem in problems], self.seeds)

    def predicted(self) -> list[BiasGap]:
        return [bias_gap(self.n, self.k, p) for p in self.p]

    def times(self, got: list[Result]) -> list[Floats]:
        """Steps of each run, for each p above 1/2."""
        return [samples(result.records, 1) for result in got[: len(self.p)]]

    def judge(self, got: list[Result]) -> Findings:
        times, gaps = self.times(got), self.predicted()
        signal = [gap.signal for gap in gaps]
        worst = min(times, key=lambda each: np.isfinite(each).mean())
        less, more = times[self.p.index(0.6)], times[self.p.index(0.7)]
        checks = [self.solved(*share(np.isfinite(worst))), self.power(*exponent(signal, times)),
                  self.faster(*estimate(ratio_of_medians, less, more, rng=np.random.default_rng(0)))]
        if self.size == "full":
            checks.append(self.uniform(*share(np.isfinite(samples(got[-1].records, 1)))))
        numbers = {f"signal of the first gradient, p = {p:g}": s for p, s in zip(self.p, signal, strict=True)}
        numbers |= {f"median steps, p = {p:g}": float(np.median(each)) for p, each in zip(self.p, times, strict=True)}
        rows = [{"p": p, "signal": gap.signal, "predicted": gap.steps(self.batch), "run": run,
                 "steps": float(value) if np.isfinite(value) else None}
                for p, gap, values in zip(self.p, gaps, times, strict=True) for run, value in enumerate(values)]
        return Findings(checks, rows, numbers)

    def draw(self, got: list[Result]) -> plots.Figure:
        times, gaps = self.times(got), self.predicted()
        signal = np.array([gap.signal for gap in gaps])
        middle = float(np.median(times[len(times) // 2]))
        noise = np.array([gap.steps(self.batch) for gap in gaps])
        laws = {"noise decides": (signal, noise * middle / noise[len(times) // 2]),
                "weights travel": (signal, middle * signal[len(times) // 2] / signal)}
        low, centre, high = (np.array([np.quantile(each, q, method="lower") for each in times])
                             for q in (0.25, 0.5, 0.75))
        measured = plots.Series(signal, centre, low, high)
        return plots.scaling_plot({"measured": measured}, "signal of the exact first gradient",
                                  "steps to 60 %", laws)
