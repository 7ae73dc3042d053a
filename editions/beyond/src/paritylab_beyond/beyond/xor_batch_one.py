"""XOR with one sample a step: glasgow2023's open question, to larger sizes and beside a law."""

from __future__ import annotations

import numpy as np
from glasgow2023.common import network
from glasgow2023.theory import xor
from numpy.typing import ArrayLike

from paritylab import Protocol, plots
from paritylab.aliases import Floats
from paritylab.claims import Findings, Lab, Trial, at_least, between, claim, size
from paritylab.claims.intervals import share
from paritylab.claims.medians import exponent, samples, spread
from paritylab.running.sweeps import Result


@claim(
    "beyond.xor-batch1",
    where="glasgow2023, Section 5: SGD with a batch size of 1",
    kind="empirical",
    title="XOR with one sample a step still takes about d samples",
    statement="""With one sample a step at rate c/d, samples to 99 % grow as d times a power of ln d: as d t(d), where
    t(d) = 2 kappa ((1 + (ln(d)/2 + 1) / (4 kappa tau))^2 - 1), kappa = 1/c, tau = 1/sqrt(2 pi), is when growth under
    widening noise has won ln(d)/2 + 1.""",
    published="batches of d polylog(d) alone are proven; batch 1 is left open",
)
class XorBatch1(Trial):
    """Samples to 99 % with one sample a step, at rates 0.25/d and 1/d, against d and against the law."""

    d = size(quick=[40, 80, 160, 320], full=[20, 40, 80, 160, 320, 640, 1280, 2560])
    seeds = size(quick=10, full=20)
    rates, width, theta, large = (0.25, 1.0), 128, 0.3, 160

    solved = at_least("share of runs that reach 99 %, eta = {rate:g}/d", 0.9)
    slope = between("slope of log median samples on log d, eta = {rate:g}/d", 1.0, 1.35)
    law = between("slope of log(median samples / law) on log d, d >= 160, eta = {rate:g}/d", -0.06, 0.06,
                  only=("full",))

    def work(self, lab: Lab) -> list[list[Result]]:
        protocols = {d: Protocol(max_steps=200 * d, eval_every=d // 4, eval_size=2000, threshold=0.99) for d in self.d}
        return [lab.sweep([network(d, self.width, self.theta, rate / d, 1, protocols[d]) for d in self.d], self.seeds)
                for rate in self.rates]

    def needed(self, got: list[list[Result]]) -> dict[float, list[Floats]]:
        """Samples of each run, for each d, at each rate."""
        return {rate: [samples(result.records, 1) for result in results]
                for rate, results in zip(self.rates, got, strict=True)}

    def judge(self, got: list[list[Result]]) -> Findings:
        checks, rows, numbers = [], [], {}
        for rate, needed in self.needed(got).items():
            first = next(i for i, d in enumerate(self.d) if d >= self.large)
            large, theirs = self.d[first:], needed[first:]
            checks += [self.solved(*share(np.isfinite(np.concatenate(needed))), rate=rate),
                       self.slope(*exponent(self.d, needed), rate=rate)]
            if self.size == "full":
                checks.append(self.law(*exponent(large, theirs, predicted(large, rate)), rate=rate))
            logs = exponent(np.log(self.d).tolist(), needed, np.asarray(self.d, float))
            numbers |= {f"power of ln d in median samples / d, eta = {rate:g}/d": logs[0],
                        f"its lower end, eta = {rate:g}/d": logs[1][0],
                        f"its upper end, eta = {rate:g}/d": logs[1][1]}
            for d, values, law in zip(self.d, needed, predicted(self.d, rate), strict=True):
                numbers[f"median samples / law, d = {d}, eta = {rate:g}/d"] = float(np.median(values)) / float(law)
                rows += [{"eta": rate / d, "d": d, "run": run, "samples": float(value) if value < np.inf else None,
                          "law": float(law)} for run, value in enumerate(values)]
        return Findings(checks, rows, numbers)

    def draw(self, got: list[list[Result]]) -> plots.Figure:
        needed = self.needed(got)
        grid = np.geomspace(min(self.d), max(self.d), 50)
        laws = {"_" * i + "law": (grid, predicted(grid, rate) / grid)
                for i, rate in enumerate(self.rates)}
        series = {rf"$\eta = {rate:g}/d$": spread(self.d, [each / d for d, each in zip(self.d, values, strict=True)])
                  for rate, values in needed.items()}
        return plots.scaling_plot(series, "inputs $d$", "samples to 99 % / $d$", laws, log="x")


def predicted(d: ArrayLike, rate: float) -> Floats:
    """Samples until ln |w_sig| has grown by ln(d)/2 + 1, one sample a step, at the learning rate ``rate`` / d.

    In phase 1 it grows at the rate tau |a| / |w_perp| with |a| kept and |w_perp| widened as in
    :func:`glasgow2023.theory.xor.widening`, kappa = 1/rate; the integral 4 kappa tau (sqrt(1 + t/(2 kappa)) - 1) is
    solved for the time t = rate samples / d.

    >>> (predicted([320, 5120], 1.0) / [320, 5120]).round(1)
    array([21.6, 35. ])
    """
    sizes, kappa = np.asarray(d, np.float64), 1 / rate
    won = (np.log(sizes) / 2 + 1) / (4 * kappa * xor.RATE)
    return sizes / rate * 2 * kappa * ((1 + won) ** 2 - 1)


