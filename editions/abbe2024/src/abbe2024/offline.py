"""A fixed training set, until the training loss is below 0.01: Figures 1-right, 3-right and 4."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from itertools import cycle, pairwise
from typing import Any

import numpy as np

from abbe2024.online import OTHERS, UNIFORM, falls_of
from abbe2024.training import DEEP, SHALLOW, apart, difference, final, law, named, rows, trained
from paritylab import Curves, plots
from paritylab.aliases import Floats
from paritylab.claims import Findings, Lab, Rule, Trial, at_least, at_most, claim, size
from paritylab.claims.intervals import Estimate, contrast, distance, largest, mean, share, together

LOSS = 0.01
Case = tuple[str, int]
Found = Mapping[Case, Curves]


def offline(lab: Lab, cases: Sequence[Case], d: int, widths: Sequence[int], steps: int, runs: int,
            degree: int | None = None) -> list[Curves]:
    """Curves by law and size of the training set, each run up to a training loss of 0.01."""
    setups = [trained(each, d, widths, degree=degree, sample=sample) for each, sample in cases]
    return lab.curves_each(setups, steps, steps // 100, runs, stop=LOSS)


@claim(
    "abbe2024.fig1-right",
    where="Figure 1 (right)",
    kind="empirical",
    title="Offline full parity shows the same ordering",
    statement="""With a fixed training set, trained until the training loss is below 0.01, test accuracy depends on the
    initialisation exactly as in the online case.""",
    published=""""This pattern is seen in both the online setting (left plot) [...] and the offline setting (right
    plot), where the network is trained on a fixed dataset until the training loss decreases to 10^-2" (Section 6)""",
)
class Fig1Right(Trial):
    """Test accuracy against the size of the training set, for several perturbations of the Rademacher start."""

    d = size(quick=20, full=50)
    widths = size(quick=list(SHALLOW), full=list(DEEP))
    steps = size(quick=20_000, standard=50_000, full=200_000)
    samples = size(quick=[2000, 20_000], standard=[20_000, 100_000], full=[5000, 20_000, 100_000], label="N")
    sigma = size(quick=["0", "inf"], full=["0", "0.1", "0.2", "1", "inf"], standard=["0", "0.2", "1", "inf"])
    runs = size(quick=3, standard=4, full=10)
    gap = at_least("accuracy of Rademacher less that of Gaussian, N = {N:,}", 0.2, part="signs generalise")
    chance = at_most("mean accuracy, Gaussian, N = {N:,}", 0.55, part="Gaussian weights memorise")
    memorised = at_least("share of Gaussian runs, over all N, that end with a training loss below 0.01", 0.8,
                         part="Gaussian weights memorise")
    falls = at_least("accuracy at sigma = {below:g} less that at sigma = {above:g}, largest N", 0.0,
                     part="accuracy falls as sigma grows", only=("standard", "full"))
    growth = at_least("accuracy of Rademacher at N = {above:,} less that at N = {below:,}", 0.0,
                      part="signs generalise")

    @property
    def cases(self) -> list[Case]:
        return [(law(float(s)), sample) for sample in self.samples for s in self.sigma]

    def work(self, lab: Lab) -> list[Curves]:
        return offline(lab, self.cases, self.d, self.widths, self.steps, self.runs)

    def judge(self, got: list[Curves]) -> Findings:
        found = dict(zip(self.cases, got, strict=True))
        most = self.samples[-1]
        signs = {sample: final(found["rademacher", sample]) for sample in self.samples}
        gaussian = final(found["gaussian", most])
        ended = np.concatenate([train_loss(found["gaussian", sample])[:, -1] for sample in self.samples])
        checks = [self.gap(*difference(signs[most], gaussian), N=most), self.chance(*mean(gaussian), N=most),
                  self.memorised(*share(ended < LOSS))]
        checks += [self.growth(*difference(signs[above], signs[below]), below=below, above=above)
                   for below, above in zip(self.samples, self.samples[1:], strict=False)]
        checks += falls_of(self.falls, {float(s): final(found[law(float(s)), most]) for s in self.sigma})
        return Findings(checks, tidy(found), numbers(found))

    def draw(self, got: list[Curves]) -> plots.Figure:
        return by_size(dict(zip(self.cases, got, strict=True)))


@claim(
    "abbe2024.fig3-right",
    where="Figure 3 (right)",
    kind="empirical",
    title="Other perturbations, offline",
    statement="The ordering of Figure 3-left persists with a fixed training set.",
    published=""""We find that the mixture of continuous uniforms behaves similarly to the mixture of Gaussians"; "all
    other discrete initializations fail to enable learning" (Section 6, on both plots of Figure 3)""",
)
class Fig3Right(Trial):
    """The other laws on a training set of 10^5 examples."""

    d = size(quick=20, full=50)
    widths = size(quick=list(SHALLOW), full=list(DEEP))
    sample = size(quick=20_000, full=100_000, label="N")
    laws = size(quick=[UNIFORM, *OTHERS[1:3], OTHERS[-1]], standard=[UNIFORM, OTHERS[1], OTHERS[-1]],
                full=["rademacher", *OTHERS])
    steps = size(quick=5000, standard=50_000, full=200_000)
    runs = size(quick=3, standard=3, full=7)

    gap = at_least("accuracy of uniform 0.1 less that of {law}", 0.2)
    separate = Rule("gap of their intervals, {law}", "> 0", exact=True)

    @property
    def cases(self) -> list[Case]:
        return [(each, self.sample) for each in self.laws]

    def work(self, lab: Lab) -> list[Curves]:
        return offline(lab, self.cases, self.d, self.widths, self.steps, self.runs)

    def judge(self, got: list[Curves]) -> Findings:
        accuracy = dict(zip(self.laws, map(final, got), strict=True))
        checks = []
        for each in [each for each in self.laws if each not in ("rademacher", UNIFORM)]:
            gap, interval = difference(accuracy[UNIFORM], accuracy[each])
            apart_by = apart(accuracy[UNIFORM], accuracy[each])
            checks += [self.gap(gap, interval, law=named(each)),
                       self.separate(apart_by, passed=apart_by > 0, certain=gap <= 0, law=named(each))]
        found = dict(zip(self.cases, got, strict=True))
        return Findings(checks, tidy(found), numbers(found))

    def draw(self, got: list[Curves]) -> plots.Figure:
        return by_law(dict(zip(self.cases, got, strict=True)))


class SparseParity(Trial):
    """Test accuracy on a sparse parity against the size of the training set."""

    d = size(quick=20, full=50)
    widths = size(quick=list(SHALLOW), full=list(DEEP))
    sigma = size(quick=["0", "inf"], standard=["0", "inf"], full=["0", "0.1", "1", "inf"])
    steps = size(quick=10_000, standard=30_000, full=100_000)
    runs = size(quick=3, standard=2, full=7)

    sizes_agree = at_most("largest less smallest log10 N at accuracy 0.75", 0.4)
    laws_agree = at_most("largest distance of a law's accuracy from the mean over laws", 0.15)

    samples: size[list[int]]
    degree: int | size[int]

    @property
    def laws(self) -> list[str]:
        return [law(float(s)) for s in self.sigma]

    @property
    def cases(self) -> list[Case]:
        return [(each, sample) for sample in self.samples for each in self.laws]

    def work(self, lab: Lab) -> list[Curves]:
        return offline(lab, self.cases, self.d, self.widths, self.steps, self.runs, self.degree)

    def judge(self, got: list[Curves]) -> Findings:
        found = dict(zip(self.cases, got, strict=True))
        means = {case: mean(final(curves))[0] for case, curves in found.items()}
        needed = {each: crossing(self.samples, [means[each, sample] for sample in self.samples]) for each in self.laws}
        off = max(abs(value - np.mean([means[other, sample] for other in self.laws]))
                  for (_, sample), value in means.items())
        spread = max(needed.values()) - min(needed.values()) if all(map(math.isfinite, needed.values())) else math.nan
        values = {f"log10 N at accuracy 0.75, {named(each)}": value for each, value in needed.items()}
        return Findings([self.sizes_agree(float(spread)), self.laws_agree(float(off))], tidy(found), values)

    def draw(self, got: list[Curves]) -> plots.Figure:
        return by_size(dict(zip(self.cases, got, strict=True)))


class Agreement(SparseParity):
    """The largest differences between starts, with intervals that hold for all of them together."""

    sizes_agree = at_most("largest less smallest log10 N at accuracy 0.75", 0.1)
    laws_agree = at_most("largest distance of a law's accuracy from the mean over laws", 0.05)

    def by_size(self, accuracies: Sequence[Floats]) -> list[list[Floats]]:
        """The runs' accuracies by size and law."""
        count = len(self.laws)
        return [list(accuracies[place : place + count]) for place in range(0, len(accuracies), count)]

    def needed(self, accuracies: Sequence[Floats]) -> list[Estimate]:
        """log10 N at accuracy 0.75 by law: it falls where accuracies rise."""
        means = [[mean(runs, together(len(accuracies))) for runs in laws] for laws in self.by_size(accuracies)]
        found: list[Estimate] = []
        for column in zip(*means, strict=True):
            value, low, high = (crossing(self.samples, each) for each in (
                [value for value, _ in column], [ends[1] for _, ends in column], [ends[0] for _, ends in column]))
            found.append((value, (low, high)))
        return found

    def sizes_apart(self, accuracies: Sequence[Floats]) -> Estimate:
        needed = self.needed(accuracies)
        if not all(math.isfinite(value) for value, _ in needed):
            return math.nan, (-math.inf, math.inf)
        return largest([distance((one - other, (low - above, high - below)))
                        for (one, (low, high)), (other, (below, above)) in itertools.combinations(needed, 2)])

    def laws_apart(self, accuracies: Sequence[Floats]) -> Estimate:
        level, count = together(len(accuracies)), len(self.laws)
        return largest([distance(contrast(runs, [(place == law) - 1 / count for place in range(count)], level))
                        for runs in self.by_size(accuracies) for law in range(count)])

    def judge(self, got: list[Curves]) -> Findings:
        accuracies = [final(curves) for curves in got]
        checks = [self.sizes_agree(*self.sizes_apart(accuracies)), self.laws_agree(*self.laws_apart(accuracies))]
        needed = zip(map(named, self.laws), self.needed(accuracies), strict=True)
        return Findings(checks, tidy(dict(zip(self.cases, got, strict=True))),
                        {f"log10 N at accuracy 0.75, {name}": value for name, (value, _) in needed})


@claim(
    "abbe2024.fig4-left",
    where="Figure 4 (left)",
    kind="empirical",
    title="Sparse 3-parity: initialisation does not matter",
    statement="""For the degree-3 parity on 50 bits Rademacher, perturbed and Gaussian starts need comparable
    training-set sizes.""",
    published=""""We observe no significant difference between these initializations, unlike the full parity case"
    (Section 6, Sparse Parities)""",
)
class Fig4Left(Agreement):
    """A sparse parity of degree 3: test accuracy against the size of the training set."""

    samples = size(quick=[500, 2000, 10_000], standard=[1000, 3000, 10_000],
                   full=[1000, 3000, 10_000, 30_000, 100_000], label="N")
    degree = 3


@claim(
    "abbe2024.fig4-right",
    where="Figure 4 (right)",
    kind="empirical",
    title="Sparse 5-parity: initialisation does not matter",
    statement="""For the degree-5 parity on 50 bits Rademacher, perturbed and Gaussian starts need comparable
    training-set sizes.""",
    published=""""We observe no significant difference between these initializations, unlike the full parity case"
    (Section 6, Sparse Parities)""",
)
class Fig4Right(Agreement):
    """The same at degree 5."""

    samples = size(quick=[2000, 10_000, 50_000], standard=[10_000, 100_000],
                   full=[10_000, 30_000, 100_000, 300_000, 1_000_000], label="N")
    degree = size(quick=4, full=5)


def crossing(sizes: Sequence[int], accuracy: Sequence[float], level: float = 0.75) -> float:
    """log10 of the size at which a line through the points first reaches the level; infinite if none does.

    >>> round(crossing([100, 1000], [0.5, 1.0]), 3)
    2.5
    """
    for (a, below), (b, above) in pairwise(zip(sizes, accuracy, strict=True)):
        if below < level <= above:
            return math.log10(a) + (level - below) / (above - below) * math.log10(b / a)
    return -math.inf if accuracy[0] >= level else math.inf


def train_loss(curves: Curves) -> np.ndarray:
    assert curves.train_loss is not None
    return curves.train_loss


def tidy(found: Found) -> list[dict[str, Any]]:
    return [row | {"train_loss": loss} for (each, sample), curves in found.items()
            for row, loss in zip(rows({each: curves}, N=sample), train_loss(curves).ravel().tolist(), strict=True)]


def numbers(found: Found) -> dict[str, float | None]:
    return {f"mean accuracy, {named(each)}, N = {sample:,}": mean(final(curves))[0]
            for (each, sample), curves in found.items()}


@plots.styled
def by_size(found: Found) -> plots.Figure:
    """Final test accuracy against the size of the training set, one line for each law."""
    laws = list(dict.fromkeys(each for each, _ in found))
    figure = plots.blank(2.3 + 0.08 * len(laws))
    axes = figure.add_subplot(xlabel="training examples", ylabel="test accuracy", xscale="log", ylim=(0.45, 1.02))
    for each, colour, line in zip(laws, cycle(plots.COLOURS), cycle(plots.LINES), strict=False):
        sizes = [sample for other, sample in found if other == each]
        ends = np.array([[m, *interval] for m, interval in (mean(final(found[each, sample])) for sample in sizes)]).T
        axes.errorbar(sizes, ends[0], np.minimum(np.abs(ends[1:] - ends[0]), 1), color=colour, linestyle=line,
                      marker="o", markersize=3, elinewidth=0.8, capsize=2, label=named(each))
    axes.axhline(0.5, color=plots.GREY, linewidth=0.6)
    plots.readable_log(axes)
    plots.legend_above(figure, axes)
    return figure


@plots.styled
def by_law(found: Found) -> plots.Figure:
    """Final test accuracy of every run, one line for each law."""
    laws = [each for each, _ in found]
    figure = plots.blank(0.7 + 0.2 * max(3, len(laws)))
    axes = figure.add_subplot(xlabel="test accuracy", xlim=(0.45, 1.02), ylim=(len(laws) - 0.5, -0.5))
    axes.set_yticks(range(len(laws)), [named(each) for each in laws])
    for place, curves in enumerate(found.values()):
        shown = final(curves)
        axes.plot(shown, np.full(len(shown), place), "o", markersize=3.5, fillstyle="none", color=plots.COLOURS[0])
    axes.axvline(0.5, color=plots.GREY, linewidth=0.6)
    return figure
