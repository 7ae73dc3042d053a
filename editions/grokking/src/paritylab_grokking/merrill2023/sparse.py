"""Figure 2, right, and Section 3.3: how many units it takes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure
from scipy import stats

from paritylab import plots
from paritylab.aliases import Arrays, Floats
from paritylab.claims import Findings, at_least, at_most, between, claim, size
from paritylab.claims.intervals import Estimate, largest, median, proportion, together
from paritylab.claims.published import fisher
from paritylab_grokking.merrill2023.common import PRUNED, PUBLISHED, Traces, Watched, at, first, known

FEW = 100
MANY = 13
"""From so many units on sizes are drawn together."""
CLAIMED = (6, 8)
FOUND = {6: 3, 8: 2}
"""Runs of the paper by their size."""


@claim(
    "merrill2023.sparsification",
    where="Figure 2 (right); Section 3.1",
    kind="empirical",
    title="Few neurons suffice after grokking, many before",
    statement="""The number of hidden units that reproduce the network's training predictions falls by orders of
    magnitude when it starts to generalise.""",
    published="hundreds of units before, 6 to 8 at the end, the fall at the transition of the test accuracy",
)
class Sparsification(Watched):
    """Every 10 passes, the fewest units, those with the largest norms first, that are as often right on the sample."""

    before = at_least("median size at the first check from t_mem on", 200)
    after = at_most("median size at the end", 12)
    transition = between("median first check from t_mem on with a size below 100 / t_gen", 0.67, 1.5)

    def judge(self, got: list[Arrays]) -> Findings:
        traces = Traces.of(got)
        sizes, t_mem = traces.sizes[..., 0], traces.t_mem
        passes = np.arange(sizes.shape[1]) * PRUNED
        fallen = first((sizes < FEW) & (passes >= t_mem[:, None]), PRUNED)
        memorised = at(sizes, t_mem, PRUNED)
        with np.errstate(invalid="ignore"):
            ratio = fallen / traces.t_gen
        checks = [self.before(*median(memorised)), self.after(*median(sizes[:, -1])), self.transition(*median(ratio))]
        same = traces.sizes[..., 1]
        numbers = {"largest size at the end": float(sizes[:, -1].max()),
                   "median pass with a size below 100": float(np.median(fallen)),
                   "median size at that check of t_mem, by equal predictions": median(at(same, t_mem, PRUNED))[0],
                   "runs with another size by equal predictions at the end": float((sizes != same)[:, -1].sum())}
        rows = [{"run": run, "pass": int(passes[i]), "size": int(sizes[run, i]),
                 "size by equal predictions": int(same[run, i]), "t_mem": known(t_mem[run]),
                 "t_gen": known(traces.t_gen[run])} for run in range(len(traces)) for i in range(len(passes))]
        return Findings(checks, rows, numbers)

    def draw(self, got: list[Arrays]) -> Figure:
        traces = Traces.of(got)
        passes = np.arange(traces.sizes.shape[1]) * PRUNED
        return plots.bands_plot({"": (passes[1:], traces.sizes[:, 1:, 0])}, "units that suffice",
                                "passes over the sample", log="y", rising=False)


@claim(
    "merrill2023.six-or-eight",
    where="Section 3.3",
    kind="empirical",
    title="The sparse subnetwork has six or eight neurons",
    statement="""After grokking the (40,3) parity the active subnetwork always has six or eight units, the sizes of two
    disjunctive constructions, never the four of a threshold construction.""",
    published="sizes 6, 6, 6, 8, 8 of five runs",
)
class SixOrEight(Watched):
    """The sizes of final networks."""

    runs = size(quick=6, full=200)

    small = at_most("largest size", 10, only=("quick",), exact=True)
    share = at_least("Fisher's p of the share of sizes 6 and 8 against 5 of 5", 0.01, only=("standard", "full"),
                     exact=True, part="mostly six or eight")
    most = at_least("share of the more frequent of 6 and 8, less that of the most frequent other size", 0,
                    only=("standard", "full"), part="mostly six or eight")
    always = at_most("share of other sizes", 0.02, only=("standard", "full"), part="always six or eight")
    never = at_most("share of size 4", 0.02, only=("standard", "full"), part="never four")

    def judge(self, got: list[Arrays]) -> Findings:
        traces = Traces.of(got)
        sizes, runs = traces.final_sizes, len(traces)
        counts = {int(each): int((sizes == each).sum()) for each in np.unique(sizes)}
        claimed = sum(counts.get(each, 0) for each in CLAIMED)
        if self.size == "quick":
            checks = [self.small(float(sizes.max()))]
        else:
            checks = [self.share(fisher((claimed, runs), (PUBLISHED, PUBLISHED))), self.most(*lead(counts, runs)),
                      self.always(*proportion(runs - claimed, runs)), self.never(*proportion(counts.get(4, 0), runs))]
        numbers: dict[str, float | None] = {}
        for name, (count, total) in {"6 or 8": (claimed, runs), "4": (counts.get(4, 0), runs),
                                     "6 or 8, published": (PUBLISHED, PUBLISHED)}.items():
            value, (low, high) = proportion(count, total)
            numbers |= {f"share of {name}": value, f"share of {name}, lower end": low,
                        f"share of {name}, upper end": high}
        rows = [{"run": run, "size": int(sizes[run]), "size by equal predictions": int(traces.sizes[run, -1, 1]),
                 "test accuracy": float(traces.test[run, -1])} for run in range(runs)]
        return Findings(checks, rows, numbers)

    def draw(self, got: list[Arrays]) -> Figure:
        return draw_sizes(Traces.of(got).final_sizes)


def lead(counts: Mapping[int, int], runs: int) -> Estimate:
    """By how much the larger share of 6 and 8 is above that of any other size; all intervals hold together.

    >>> value, (low, high) = lead({6: 60, 5: 30, 4: 10}, 100)
    >>> round(value, 2), round(low, 2), round(high, 2)
    (0.3, 0.04, 0.53)
    """
    sizes = sorted({*counts, *CLAIMED, 4})
    shares = {each: proportion_at(counts.get(each, 0), runs, together(len(sizes))) for each in sizes}
    ours, (low, high) = largest([shares[each] for each in CLAIMED])
    other, (least, most) = largest([shares[each] for each in sizes if each not in CLAIMED])
    return ours - other, (low - most, high - least)


def proportion_at(count: int, total: int, level: float) -> Estimate:
    """A proportion and its Clopper-Pearson interval at a level."""
    interval = stats.binomtest(count, total).proportion_ci(level, method="exact")
    return count / total, (float(interval.low), float(interval.high))


@plots.styled
def draw_sizes(sizes: np.ndarray) -> Figure:
    """How often each size is found here, with 95 % intervals, and in the paper."""
    shown, many = np.arange(3, MANY + 1), np.minimum(sizes, MANY)
    figure = plots.blank(2.3)
    axes = figure.add_subplot(xlabel="units of the final subnetwork", ylabel="share of runs", ylim=(0, 1))
    here = {int(each): int((many == each).sum()) for each in shown}
    for counts, total, label, colour, hatch in ((here, len(sizes), "runs here", plots.COLOURS[0], ""),
                                                (FOUND, PUBLISHED, "published", "white", "////")):
        x = shown + (-0.2 if counts is here else 0.2)
        shares: list[Estimate] = [proportion(counts.get(int(each), 0), total) for each in shown]
        y: Floats = np.array([value for value, _ in shares])
        reach = np.abs(np.array([ends for _, ends in shares]).T - y)
        some = y > 0  # the interval of a size that was never seen says little, and hides the others
        axes.bar(x, y, 0.38, color=colour, hatch=hatch, edgecolor="black", linewidth=0.6, label=f"{total} {label}")
        axes.errorbar(x[some], y[some], reach[:, some], fmt="none", ecolor="black", elinewidth=0.8, capsize=1.5)
    axes.set_xticks(shown, [*map(str, shown[:-1]), f"{MANY} +"])
    axes.legend()
    return figure
