"""Parities with flipped labels: Figure 16."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from barak2022.common import FIXED_8192, ratio_of_medians, times
from paritylab import MLP, SGD, Learner, Parity, Setup, plots
from paritylab.aliases import Floats
from paritylab.claims import Findings, Lab, Trial, at_least, claim, size
from paritylab.claims.intervals import bootstrap, smallest, together
from paritylab.plots import Series
from paritylab.running.sweeps import Result
from paritylab.statistics import solved_fraction
from paritylab.storage.records import Records

Case = tuple[int, float]


@claim(
    "barak2022.fig16",
    where="Figure 16; Appendix C.6",
    kind="empirical",
    title="Noisy parities are learned",
    statement="""Flipping a constant fraction of labels slows learning but the width-100 ReLU MLP still reaches high
    accuracy on the clean distribution, even when 49% of the labels are flipped.""",
    published="""'The models learn the features and converge successfully [...], even with 49% of labels flipped'; 'the
    scale of t is much larger for small batches and high noise' (Figure 16, caption).""",
)
class Fig16(Trial):
    """Steps to a clean accuracy of 75 %, and runs that reach 95 %, against the fraction p of flipped labels."""

    n = size(quick=20, full=50)
    width = size(quick=30, full=100)
    runs = size(quick=8, standard=10, full=20)
    noises = size(quick=[0.0, 0.25], standard=[0.0, 0.1, 0.25, 0.4, 0.45], full=[0.0, 0.1, 0.25, 0.4, 0.45, 0.49],
                  label="p")
    batches = size(quick=[32, 256], full=[32, 128, 1024])
    short = size(quick=8000, full=100_000, label="max_steps")
    long = size(quick=8000, standard=100_000, full=1_000_000, label="max_steps for p > 0.4")
    reached = at_least("share of runs to 95 %, B={batch}, p={p:g}", 0.8, part="large batches learn")
    noisiest = at_least("share of runs to 75 %, B={batch}, p={p:g}", 0.8, part="B = 32 learns")
    growth = at_least("smallest ratio of consecutive medians to 75 %, p growing, B={batch}", 1.0,
                      part="slower with more noise")
    smaller = at_least("median to 75 % at B={small} / at B={large}, p={p:g}", 1.0, part="slower with smaller batches")

    def cases(self) -> dict[float, list[Case]]:
        cases = list(itertools.product(self.batches, self.noises))
        return {0.75: cases, 0.95: [case for case in cases if case[0] > 32]}

    def setup(self, accuracy: float, batch: int, p: float) -> Setup:
        most = self.short if p <= 0.4 else self.long
        return Setup(Parity(self.n, 3, noise=p), Learner(MLP(self.width), optimiser=SGD(0.1), batch=batch),
                     replace(FIXED_8192, eval_every=100, threshold=accuracy, max_steps=most))

    def work(self, lab: Lab) -> list[list[Result]]:
        return [lab.sweep([self.setup(accuracy, *case) for case in cases], self.runs)
                for accuracy, cases in self.cases().items()]

    def found(self, got: list[list[Result]]) -> dict[float, dict[Case, Records]]:
        return {accuracy: {case: result.records for case, result in zip(cases, results, strict=True)}
                for (accuracy, cases), results in zip(self.cases().items(), got, strict=True)}

    def judge(self, got: list[list[Result]]) -> Findings:
        found = self.found(got)
        small, large = self.batches[0], self.batches[-1]
        checks = [self.reached(*solved_fraction(records.status), batch=batch, p=p)
                  for (batch, p), records in found[0.95].items()]
        checks += [self.noisiest(*solved_fraction(found[0.75][small, p].status), batch=small, p=p)
                   for p in self.noises]
        for batch in self.batches:
            pairs = itertools.pairwise(times(found[0.75][batch, p]) for p in self.noises)
            level, rng = together(len(self.noises) - 1), self.rng(batch)
            ratios = [(ratio_of_medians(later, earlier), bootstrap(ratio_of_medians, later, earlier, rng=rng,
                                                                   resamples=10_000, level=level))
                      for earlier, later in pairs]
            checks.append(self.growth(*smallest(ratios), batch=batch))
        for place, p in enumerate(self.noises):
            pair = times(found[0.75][small, p]), times(found[0.75][large, p])
            interval = bootstrap(ratio_of_medians, *pair, rng=self.rng(16, place))
            checks.append(self.smaller(ratio_of_medians(*pair), interval, small=small, large=large, p=p))
        data = [{"batch": batch, "p": p, "accuracy": accuracy, "run": int(run), "t": int(t) if t > 0 else None}
                for accuracy, cases in found.items()
                for (batch, p), records in cases.items() for run, t in zip(records.run, records.t_c, strict=True)]
        return Findings(checks, data)

    def draw(self, got: list[list[Result]]) -> plots.Figure:
        return draw_growth(self.found(got)[0.75], self.batches, self.noises)


def smallest_growth(*samples: Floats) -> float:
    """The smallest ratio of the medians of consecutive samples; undefined where two are not reached.

    >>> smallest_growth(np.array([100.0, 200.0, 300.0]), np.array([300.0, np.inf, np.inf]))
    inf
    """
    ratios = [ratio_of_medians(later, earlier) for earlier, later in itertools.pairwise(samples)]
    return float(np.min(ratios))


def draw_growth(found: Mapping[Case, Records], batches: Sequence[int], noises: Sequence[float]) -> plots.Figure:
    """The median over runs, with bars from the fastest to the slowest of them."""
    series = {}
    for batch in batches:
        samples = np.array([times(found[batch, p]) for p in noises])
        series[f"B = {batch}"] = Series(noises, np.median(samples, axis=1), samples.min(axis=1), samples.max(axis=1))
    return plots.scaling_plot(series, "fraction of labels flipped, p", "steps to 75 % correct (range)", log="y")
