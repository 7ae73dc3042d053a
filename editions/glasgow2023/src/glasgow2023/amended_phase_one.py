"""Phase 1 by amended rules: equation 4.3, Lemma 4.1 and Lemma B.13 with an interval of everything."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np

from glasgow2023.common import ratio_of_means
from glasgow2023.phase_one import Eq43Rate, Lemma41, LemmaB13, Window
from glasgow2023.theory.xor.phases import Phases
from paritylab import Curves
from paritylab.aliases import Floats
from paritylab.claims import Findings, amends, at_least, at_most, between, size
from paritylab.claims.intervals import bootstrap, mean, share


@amends(
    "glasgow2023.eq4-3-rate",
    date="2026-11-16",
    kind="power",
    where="Equation (4.3); Section 4.1",
    quote="""The building blocks above [...] suffice to show that a substantial mass of neurons will evolve according to
    Eq. 4.3, leading to exponential growth in w_sig.""",
    change="""Changes of |w_perp| and |a| are means over runs with an interval, not the largest; the opposite part,
    which equation 4.3 lets shrink at the same rate, has the signal's tolerance of 10 % instead of -0.6 to -0.25.""",
    known="""Five runs of seed 0 gave slopes of the opposite part from -0.403 to -0.415, with intervals within -0.429 to
    -0.392, and changes of 2 %.""",
)
class Eq43RateAmended(Eq43Rate):
    """The same runs; the opposite part's rate judged as closely as the signal's."""

    opposite = between("slope of log median |w_opp|, d = {d}, eta = {eta:g}", -0.44, -0.36, claimed=-0.3989)
    change = at_most("mean relative change of |{part}|, d = {d}, eta = {eta:g}", 0.15)

    def judge(self, got: tuple[list[Phases], list[dict[str, Floats]]]) -> Findings:
        checks = []
        for (d, eta), phases in zip(itertools.product(self.d, self.eta), got[0], strict=True):
            windows = [Window(phases, run, self.theta, self.share * d) for run in range(self.seeds)]
            checks += [self.signal(*mean([window.sig for window in windows]), d=d, eta=eta),
                       self.opposite(*mean([window.opp for window in windows]), d=d, eta=eta)]
            checks += [self.change(*mean([window.change(part) for window in windows]), part=part, d=d, eta=eta)
                       for part in ("perp", "a")]
        return replace(super().judge(got), checks=checks)


@amends(
    "glasgow2023.lemma4-1",
    date="2026-11-16",
    kind="power",
    where="Lemma C.1",
    quote="""Then with probability at least 1 - theta, after some T1 = Theta(log(d)/eta) steps of minibatch SGD, the
    network satisfies [...] on at least a 0.1 fraction of the neurons""",
    change="20 runs instead of 5, and an interval of their share.",
    known="All 10 runs of seed 0 met the conditions; the least share of neurons was 0.168.",
)
class Lemma41Amended(Lemma41):
    """The same conditions, over enough runs to tell 0.8 from 1."""

    seeds = size(quick=5, full=20)

    good = at_least("share of runs with all three conditions, d = {d}", 0.8, claimed=1.0)

    def judge(self, got: list[Curves]) -> Findings:
        found = super().judge(got)
        good: dict[int, list[bool]] = {d: [] for d in self.d}
        for row in found.data:
            least = min(row[f"share_{i}"] for i in (1, 2, 3, 4))
            good[row["d"]].append(least >= 0.1 and row["nonsignal_mass"] <= 4 * self.theta**2 and row["mean_aw"] <= 1)
        return replace(found, checks=[self.good(*share(flags), d=d) for d, flags in good.items()])


@amends(
    "glasgow2023.lemma-b13",
    date="2026-11-16",
    kind="power",
    where="Lemma B.13, S3 and S4",
    quote="""with a minibatch size of m > d log(d)^2 and eta < 1/4, we have for any neuron (w, a) with probability
    1 - d^(-omega(1))""",
    change="""Runs without a single violation are counted, in place of pairs of neurons and steps, which are not
    independent; 10 runs instead of 5; the ratio of drifts has an interval.""",
    known="""20 runs of seed 0 had no violation; the drifts were in ratios of 5.2 and 5.0.""",
)
class LemmaB13Amended(LemmaB13):
    """How many runs keep both inequalities at every neuron and step."""

    seeds = size(quick=5, full=10)

    growth = at_least("share of runs in which |w|^2 - a^2 never grows by more than 4 eta^2 a^2 in a step", 0.9,
                      claimed=1.0)
    ratio = at_least("share of runs with |a| <= (1 + 1e-5) |w| throughout", 0.9, claimed=1.0)

    def judge(self, got: list[dict[str, Floats]]) -> Findings:
        found = dict(zip(self.points, got, strict=True))
        kept = np.concatenate([np.asarray(each["violations"]) == 0 for each in got])
        below = np.concatenate([np.asarray(each["ratio"]) <= 1 + 1e-5 for each in got])
        checks = [self.growth(*share(kept)), self.ratio(*share(below))]
        for d in self.d:
            fast, slow = (np.asarray(found[d, eta]["drift"], float) for eta in (self.fast, self.slow))
            interval = bootstrap(ratio_of_means, fast, slow, rng=self.rng(d))
            checks.append(self.drift(ratio_of_means(fast, slow), interval, d=d))
        return Findings(checks, self.rows(got))
