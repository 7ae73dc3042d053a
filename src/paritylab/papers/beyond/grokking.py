"""Where networks grok: AdamW on finite samples of a (30, 3) parity, over weight decay and sample size."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from paritylab import MLP, AdamW, Learner, Parity, Protocol, Setup, plots
from paritylab.claims import Findings, Lab, Trial, at_least, at_most, claim, size
from paritylab.claims.intervals import share
from paritylab.engines.curves import Curves

LATE = 2
"""A run groks if it has all examples right at most at half the steps that it takes to have 99 % of inputs right."""


@claim(
    "beyond.grokking-map",
    where="barak2022, Section 5: grokking; Figure 4 (right)",
    kind="empirical",
    title="Where networks grok a (30, 3) parity with AdamW",
    statement="""With AdamW on m examples of a (30, 3) parity there are three regions: too few examples, where networks
    memorise for good at any weight decay; enough, where they generalise as soon as they fit; and a band between, where
    they fit first and generalise at least twice as late. Weight decay moves its edges: without it the band's runs
    stay at memorising.""",
    published="none: a study of our own",
)
class GrokkingMap(Trial):
    """Width 50, batch 32, rate 0.003; all examples right, and 99 % of inputs, at 30 points up to the last step."""

    m = size(quick=[200, 800, 1600], full=[200, 300, 400, 600, 800, 1200, 1600])
    decay = size(quick=[0.0, 0.3], full=[0.0, 0.1, 0.3, 1.0])
    seeds = size(quick=20, full=1000)
    steps = size(quick=5000, full=10_000)
    width, rate, batch, points = 50, 0.003, 32, 30

    few = at_most("largest share of runs with m = {m} that generalise, over decays", 0.05)
    many = at_least("smallest share of runs with m = {m} that generalise, over decays up to 0.3", 0.9)
    band = at_least("largest share of runs that grok, over m and decays", 0.5)
    without = at_most("share of runs that generalise without decay at that m", 0.5, only=("full",))

    def grid(self) -> list[tuple[int, float]]:
        return [(m, decay) for m in self.m for decay in self.decay]

    def work(self, lab: Lab) -> list[Curves]:
        chosen = np.unique(np.geomspace(20, self.steps, self.points).astype(int)).tolist()
        setups = [Setup(Parity(30, 3, sample=m),
                        Learner(MLP(self.width), loss="logistic", batch=self.batch,
                                optimiser=AdamW(self.rate, weight_decay=decay)),
                        Protocol(eval_size=1024)) for m, decay in self.grid()]
        return lab.curves_each(setups, chosen, runs=self.seeds, train=True)

    def shares(self, got: list[Curves]) -> dict[str, np.ndarray]:
        """Of each cell, (m, decay): how many runs memorise, generalise, and grok."""
        found: dict[str, list[int]] = {"fitted": [], "generalised": [], "grokked": []}
        for curves in got:
            fitted, right = curves.first_train(), curves.first(0.99)
            found["fitted"].append(int((fitted >= 0).sum()))
            found["generalised"].append(int((right >= 0).sum()))
            found["grokked"].append(int(((right >= 0) & (fitted >= 0) & (right >= LATE * fitted)).sum()))
        shape = len(self.m), len(self.decay)
        return {name: np.array(counts).reshape(shape) for name, counts in found.items()}

    def judge(self, got: list[Curves]) -> Findings:
        counts, runs = self.shares(got), self.seeds
        usual = np.array(self.decay) <= 0.3
        where = np.unravel_index(int(counts["grokked"].argmax()), counts["grokked"].shape)

        def flags(count: int) -> np.ndarray:
            return np.arange(runs) < count

        checks = [self.few(*share(flags(int(counts["generalised"][0].max()))), m=self.m[0]),
                  self.many(*share(flags(int(counts["generalised"][-1][usual].min()))), m=self.m[-1]),
                  self.band(*share(flags(int(counts["grokked"][where]))))]
        if self.size == "full":
            checks.append(self.without(*share(flags(int(counts["generalised"][where[0], 0])))))
        numbers = {"m with most grokking": self.m[where[0]], "decay with most grokking": self.decay[where[1]]}
        rows = [{"m": m, "decay": decay, "runs": runs} | {name: int(each[i, j]) for name, each in counts.items()}
                for i, m in enumerate(self.m) for j, decay in enumerate(self.decay)]
        return Findings(checks, rows, numbers)

    def draw(self, got: list[Curves]) -> Figure:
        counts = self.shares(got)
        return maps({"generalise": counts["generalised"] / self.seeds, "grok": counts["grokked"] / self.seeds},
                    self.m, self.decay)


@plots.styled
def maps(shares: dict[str, np.ndarray], m: list[int], decay: list[float]) -> Figure:
    """A map for each share, over sample sizes and decays."""
    figure = plots.blank(2.5)
    every = figure.subplots(1, len(shares), sharey=True, squeeze=False)[0]
    image = None
    for axes, (name, share_) in zip(every, shares.items(), strict=True):
        image = axes.imshow(share_.T, origin="lower", aspect="auto", vmin=0, vmax=1, cmap="cividis")
        axes.set_xticks(range(len(m)), [str(each) for each in m], rotation=45)
        axes.set_yticks(range(len(decay)), [f"{each:g}" for each in decay])
        axes.set(xlabel="examples $m$", title=f"share of runs that {name}")
        for (i, j), value in np.ndenumerate(share_):
            text = f"{value:.2f}".removeprefix("0") if value < 1 else "1"
            colour = "white" if value < 0.5 else "black"
            axes.text(i, j, text, ha="center", va="center", fontsize=5, color=colour)
    every[0].set_ylabel("weight decay")
    assert image is not None
    figure.colorbar(image, ax=list(every), shrink=0.9)
    return figure
