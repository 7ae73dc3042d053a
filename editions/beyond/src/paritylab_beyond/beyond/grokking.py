"""Where networks grok: AdamW on finite samples of a (30, 3) parity, over weight decay and sample size."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from paritylab import MLP, AdamW, Learner, Parity, Protocol, Setup, plots
from paritylab.claims import Findings, Lab, Trial, at_least, at_most, claim, size
from paritylab.claims.intervals import proportion
from paritylab.engines.curves import Curves

LATE = 2
"""A run groks if it has all examples right at most at half the steps that it takes to have 99 % of inputs right."""


@claim(
    "beyond.grokking-map",
    where="barak2022, Section 5: grokking; Figure 4 (right)",
    kind="empirical",
    title="Where networks grok a (30, 3) parity with AdamW",
    statement="""With AdamW on m examples of a (30, 3) parity there are three regions: too few examples, where networks
    memorise and stay there at any weight decay (m = 200); enough, where nearly all generalise (m = 1600); and a band
    between, where they fit first and generalise at least twice as late. Weight decay moves the band to fewer examples:
    with 0.1 it is at m = 800, where without decay networks stay at memorising; without decay it is at m = 1200, where
    with 0.1 they generalise as soon as they fit.""",
    published="none: a study of our own",
)
class GrokkingMap(Trial):
    """Width 50, batch 32, rate 0.003; all examples right, and 99 % of inputs, at 30 points up to the last step."""

    m = size(quick=[200, 800, 1600], full=[200, 300, 400, 500, 600, 800, 1000, 1200, 1600])
    decay = size(quick=[0.0, 0.1], full=[0.0, 0.03, 0.1, 0.3, 1.0])
    seeds = size(quick=20, full=1000)
    steps = size(quick=10_000, full=30_000)
    width, rate, batch, points = 50, 0.003, 32, 30

    few = at_most("largest share of runs with m = {m} that generalise, over decays", 0.05)
    many = at_least("smallest share of runs with m = {m} that generalise, over decays up to 0.3", 0.9)
    band = at_least("share of runs that grok, m = 800, decay 0.1", 0.5)
    without = at_most("share of runs that generalise, m = 800, no decay", 0.5)
    moved = at_least("share of runs that grok, m = 1200, no decay", 0.5, only=("full",))
    soon = at_most("share of runs that grok, m = 1200, decay 0.1", 0.1, only=("full",))

    def grid(self) -> list[tuple[int, float]]:
        return [(m, decay) for m in self.m for decay in self.decay]

    def work(self, lab: Lab) -> list[Curves]:
        chosen = np.unique(np.geomspace(20, self.steps, self.points).astype(int)).tolist()
        setups = [Setup(Parity(30, 3, sample=m),
                        Learner(MLP(self.width), loss="logistic", batch=self.batch,
                                optimiser=AdamW(self.rate, weight_decay=decay)),
                        Protocol(eval_size=1024)) for m, decay in self.grid()]
        return lab.curves_each(setups, chosen, runs=self.seeds, train=True)

    def counts(self, got: list[Curves]) -> dict[str, dict[tuple[int, float], int]]:
        """How many runs of each cell, (m, decay), fit, generalise, and grok."""
        found: dict[str, dict[tuple[int, float], int]] = {"fit": {}, "generalise": {}, "grok": {}}
        for cell, curves in zip(self.grid(), got, strict=True):
            fitted, right = curves.first_train(), curves.first(0.99)
            found["fit"][cell] = int((fitted >= 0).sum())
            found["generalise"][cell] = int((right >= 0).sum())
            found["grok"][cell] = int(((right >= 0) & (fitted >= 0) & (right >= LATE * fitted)).sum())
        return found

    def judge(self, got: list[Curves]) -> Findings:
        counts, runs = self.counts(got), self.seeds
        general, grok = counts["generalise"], counts["grok"]
        few, many = self.m[0], self.m[-1]
        most = max(general[few, decay] for decay in self.decay)
        least = min(general[many, decay] for decay in self.decay if decay <= 0.3)
        checks = [self.few(*proportion(most, runs), m=few), self.many(*proportion(least, runs), m=many),
                  self.band(*proportion(grok[800, 0.1], runs)), self.without(*proportion(general[800, 0.0], runs))]
        if self.size == "full":
            checks += [self.moved(*proportion(grok[1200, 0.0], runs)), self.soon(*proportion(grok[1200, 0.1], runs))]
        rows = [{"m": m, "decay": decay, "runs": runs} | {name: each[m, decay] for name, each in counts.items()}
                for m, decay in self.grid()]
        return Findings(checks, rows)

    def draw(self, got: list[Curves]) -> Figure:
        counts = self.counts(got)
        shares = {name: np.array([counts[name][cell] for cell in self.grid()]).reshape(len(self.m), -1) / self.seeds
                  for name in ("generalise", "grok")}
        return maps(shares, self.m, self.decay)


@plots.styled
def maps(shares: dict[str, np.ndarray], m: list[int], decay: list[float]) -> Figure:
    """A map for each share, (sample sizes, decays)."""
    figure = plots.blank(1.7 * len(shares))
    every = figure.subplots(len(shares), 1, sharex=True, squeeze=False)[:, 0]
    for axes, (name, share) in zip(every, shares.items(), strict=True):
        axes.imshow(share.T, origin="lower", aspect="auto", vmin=0, vmax=1, cmap="cividis")
        axes.set_xticks(range(len(m)), [str(each) for each in m])
        axes.set_yticks(range(len(decay)), [f"{each:g}" for each in decay])
        axes.set(ylabel="weight decay", title=f"runs that {name}, in %")
        axes.spines[:].set_visible(False)
        axes.tick_params(length=0)
        for (i, j), value in np.ndenumerate(share):
            axes.text(i, j, f"{100 * value:.0f}", ha="center", va="center", fontsize=6,
                      color="white" if value < 0.5 else "black")
    every[-1].set_xlabel("examples $m$")
    return figure
