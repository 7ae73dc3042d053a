"""Elimination over GF(2) with wrong labels: of all equations, and by a vote over subsets of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from paritylab import plots
from paritylab.aliases import Arrays
from paritylab.baselines import gf2
from paritylab.claims import Findings, Lab, Trial, at_least, claim, computation, rng, size
from paritylab.claims.intervals import share
from paritylab.claims.published import Count, fisher, table

AGREES = 0.01
"""Shares agree with published counts where Fisher's exact test, two-sided, gives at least so much."""
AT_ONCE = 500
"""Runs of one computation."""


@claim(
    "sutro.subset-vote",
    where="findings, elimination with noisy labels",
    kind="empirical",
    title="Voting over subsets makes elimination robust to label noise",
    statement="""Plain elimination over GF(2) fails with a single wrong label among 100; solving 100 random subsets of
    20 equations and taking the most frequent solution finds the parity up to 10 % wrong labels, often at 15 %, seldom
    at 20 %.""",
    published="""The vote finds the parity in 20, 20, 20, 20, 13 and 4 of 20 runs with 0, 2, 5, 10, 15 and 20 of 100
    labels wrong; plain elimination in 20 of 20 without a wrong label, and never with one""",
)
class SubsetVote(Trial):
    """100 random examples of the (20, 3) parity, a random support in each run, exactly so many labels flipped."""

    runs = size(quick=200, full=2000)
    flipped = size([0, 2, 5, 10, 15, 20], label="labels flipped")
    n, k, examples, subsets = 20, 3, 100, 100

    agrees = at_least("Fisher's p of the share solved against the published count, {flips} labels flipped", AGREES,
                      exact=True)
    refused = at_least("share of runs with a flipped label in which plain elimination finds the labels inconsistent",
                       0.99)

    def work(self, lab: Lab) -> list[Arrays]:
        return lab.compute_each(voted, [
            {"flips": flips, "first": first, "runs": min(AT_ONCE, self.runs), "n": self.n, "k": self.k,
             "examples": self.examples, "subsets": self.subsets}
            for flips in self.flipped for first in range(0, self.runs, AT_ONCE)])

    def joined(self, got: list[Arrays]) -> dict[int, dict[str, np.ndarray]]:
        """Of each number of flipped labels whether the runs are solved, and whether plain elimination refuses."""
        each = len(got) // len(self.flipped)
        blocks = [got[i : i + each] for i in range(0, len(got), each)]
        return {flips: {name: np.concatenate([part[name] for part in block]) for name in ("solved", "refused", "plain")}
                for flips, block in zip(self.flipped, blocks, strict=True)}

    def judge(self, got: list[Arrays]) -> Findings:
        found = self.joined(got)
        solved: dict[int, Count] = {flips: (int(each["solved"].sum()), self.runs) for flips, each in found.items()}
        flawed = np.concatenate([each["refused"] for flips, each in found.items() if flips])
        checks = [self.agrees(fisher(solved[flips], (published(flips), 20)), flips=flips) for flips in self.flipped]
        checks.append(self.refused(*share(flawed)))
        return Findings(checks, [_row(flips, each) for flips, each in found.items()])

    def draw(self, got: list[Arrays]) -> plots.Figure:
        rows = [_row(flips, each) for flips, each in self.joined(got).items()]
        return solved_by_noise(rows)


def _row(flips: int, found: dict[str, np.ndarray]) -> dict[str, Any]:
    value, (low, high) = share(found["solved"])
    return {"labels flipped": flips, "runs": len(found["solved"]), "solved": int(found["solved"].sum()),
            "share": value, "low": low, "high": high, "published, of 20": published(flips),
            "plain: solved": int(found["plain"].sum()), "plain: inconsistent": int(found["refused"].sum())}


def published(flips: int) -> int:
    """How many of 20 runs the vote solved.

    >>> [published(flips) for flips in (0, 2, 5, 10, 15, 20)]
    [20, 20, 20, 20, 13, 4]
    """
    rows = table(__file__, "results").rows(named=True)
    (value,) = [row["value"] for row in rows
                if (row["experiment"], row["case"]) == ("subset vote", f"{flips} of 100 labels flipped")]
    return int(value)


@computation
def voted(seed: int, flips: int, first: int, runs: int, n: int, k: int, examples: int, subsets: int) -> dict[str, Any]:
    """Whether the vote, and elimination of all equations, find the parity, and whether the latter finds none.

    As in the authors' code both try labels that contradict themselves once more with all of them negated.
    """
    found = {name: np.zeros(runs, bool) for name in ("solved", "plain", "refused")}
    for run in range(runs):
        generator = rng(seed, flips, first + run)
        support = sorted(generator.permutation(n)[:k].tolist())
        x = generator.integers(0, 2, (examples, n))
        wrong = generator.permutation(examples) < flips
        y = (x[:, support].sum(axis=1) + wrong) % 2
        found["solved"][run] = gf2.vote(x, y, generator, subsets).support == support
        plain = [gf2.solve(x, labels).support for labels in (y, 1 - y)]
        found["plain"][run] = support in plain
        found["refused"][run] = plain == [None, None]
    return found


@plots.styled
def solved_by_noise(rows: list[dict[str, Any]]) -> plots.Figure:
    """Shares of runs that the vote solves, with 95 % intervals, beside the published ones."""
    figure = plots.blank(2.2)
    axes = figure.add_subplot(xlabel="wrong labels of 100", ylabel="share of runs solved", ylim=(-0.04, 1.04))
    x, value, low, high = (np.array([row[name] for row in rows]) for name in ("labels flipped", "share", "low", "high"))
    theirs = [share(np.arange(20) < row["published, of 20"]) for row in rows]
    middle, ends = np.array([each[0] for each in theirs]), np.array([each[1] for each in theirs])
    axes.errorbar(x + 0.25, middle, np.abs(ends.T - middle), color=plots.COLOURS[1], fmt="s", markersize=3.5, capsize=2,
                  label="published, 20 runs")
    axes.errorbar(x - 0.25, value, np.array([value - low, high - value]), color=plots.COLOURS[0], fmt="o-",
                  markersize=3.5, capsize=2, label=f"vote of 100 subsets, {rows[0]['runs']} runs")
    plain = np.array([row["plain: solved"] / row["runs"] for row in rows])
    axes.plot(x, plain, color=plots.GREY, linestyle="dashed", label="plain elimination")
    plots.legend_above(figure, axes, most=1)
    return figure
