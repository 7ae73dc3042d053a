"""Fresh samples: Figures 1-left, 3-left, 5 and 7."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from abbe2024.training import (
    DEEP,
    SHALLOW,
    accuracy_plot,
    difference,
    final,
    law,
    named,
    rows,
    trained,
)
from paritylab import Curves, plots
from paritylab.aliases import Floats
from paritylab.claims import Check, Findings, Lab, Trial, at_least, at_most, claim, size
from paritylab.claims.intervals import bootstrap, mean
from paritylab.claims.rules import Bounds

OTHERS = ("uniform-perturbed:0.1", "uniform-perturbed:1", "sparse-rademacher:0.5",
          "sparse-rademacher:0.3333333333333333", "sparse-rademacher:0.2", "discrete:-2,-1,1,2")
UNIFORM, UNIFORM_1, HALF, THIRD, FIFTH, DISCRETE = OTHERS
SIGMAS = (0.0, 0.1, 0.2, 0.5, 1.0, math.inf)
PERTURBED = tuple(map(law, SIGMAS))
JUDGED = 50_000


def by_law(laws: Sequence[str], got: list[Curves]) -> dict[str, Curves]:
    """Curves by the names of their laws."""
    return dict(zip(map(named, laws), got, strict=True))


def accuracy_at(curves: Curves, step: int) -> np.ndarray:
    """Each run's accuracy at the last point up to a step."""
    return np.nan_to_num(curves.accuracy[:, np.searchsorted(curves.steps, step, side="right") - 1])


PAIRS = ((0.0, 0.2), (0.2, 1.0))
"""Perturbations between which accuracy should fall: from signs to one that learns, and on to one that does not."""


def falls_of(rule: Bounds, accuracy: Mapping[float, Floats]) -> list[Check]:
    """A check for each of the pairs that were trained."""
    return [rule(*difference(accuracy[below], accuracy[above]), below=below, above=above)
            for below, above in PAIRS if below in accuracy and above in accuracy]


@claim(
    "abbe2024.fig1-left",
    where="Figure 1 (left); Section 6",
    kind="empirical",
    title="Online full parity: accuracy falls with the perturbation level",
    statement="""A 4-layer MLP learns the 50-bit full parity from fresh samples when started from Rademacher or mildly
    perturbed Rademacher weights, and stays at chance for large perturbations and Gaussian weights.""",
    published=""""the test accuracy after training decreases as sigma increases"; "some learning occurs for sigma in
    {0.1, 0.2}" (Section 6). The curves themselves are only in the image.""",
)
class Fig1Left(Trial):
    """Test accuracy of a 4-layer network on the 50-bit parity, for several perturbations of the Rademacher start."""

    d = size(quick=20, full=50)
    widths = size(quick=list(SHALLOW), full=list(DEEP))
    laws = PERTURBED
    steps = size(quick=6000, full=JUDGED)
    runs = size(quick=5, full=20)
    unperturbed = at_least("mean accuracy, sigma = 0", 0.85, part="signs learn")
    mildly = at_least("mean accuracy, sigma = {sigma:g}", 0.55, part="some learning at sigma = 0.1 and 0.2")
    strongly = at_most("mean accuracy, {law}", 0.55, part="chance at sigma = 1 and from Gaussian weights")
    falls = at_least("accuracy at sigma = {below:g} less that at sigma = {above:g}", 0.0,
                     part="accuracy falls as sigma grows")

    def work(self, lab: Lab) -> list[Curves]:
        setups = [trained(each, self.d, self.widths) for each in self.laws]
        return lab.curves_each(setups, self.steps, self.steps // 200, self.runs)

    @property
    def judged_at(self) -> int:
        return min(JUDGED, self.steps)

    def judge(self, got: list[Curves]) -> Findings:
        accuracy = {s: accuracy_at(curves, self.judged_at) for s, curves in zip(SIGMAS, got, strict=True)}
        checks = [
            self.unperturbed(*mean(accuracy[0.0])),
            *(self.mildly(*mean(accuracy[s]), sigma=s) for s in (0.1, 0.2)),
            self.strongly(*mean(accuracy[1.0]), law="sigma = 1"),
            self.strongly(*mean(accuracy[math.inf]), law="Gaussian"),
            *falls_of(self.falls, accuracy),
        ]
        found = by_law(self.laws, got)
        return Findings(checks, rows(found), {f"mean accuracy, {name}": mean(values)[0]
                                              for name, values in zip(found, accuracy.values(), strict=True)})

    def draw(self, got: list[Curves]) -> plots.Figure:
        return accuracy_plot(by_law(self.laws, got), self.judged_at if self.judged_at < self.steps else None)


@claim(
    "abbe2024.fig3-left",
    where="Figure 3 (left)",
    kind="empirical",
    title="Other perturbations of Rademacher, online",
    statement="""A mixture of uniforms behaves like the Gaussian perturbation (works at sigma=0.1, fails at 1), while
    sparsified Rademacher and the four-point law {-2,-1,1,2} fail.""",
    published=""""for sigma = 0.1 and input dimension d = 50, the network successfully learns, but learning is
    prevented at larger sigma"; "all other discrete initializations fail to enable learning" (Section 6)""",
)
class Fig3Left(Trial):
    """Uniform perturbations, sparsified signs and a four-point law in the place of Gaussian perturbations."""

    d = size(quick=20, full=50)
    widths = size(quick=list(SHALLOW), full=list(DEEP))
    steps = size(quick=5000, full=JUDGED)
    runs = size(quick=5, standard=3, full=7)

    learns = at_least("mean accuracy, uniform 0.1", 0.8)
    fails = at_most("mean accuracy, {law}", 0.6)

    laws = ("rademacher", *OTHERS)

    def work(self, lab: Lab) -> list[Curves]:
        return lab.curves_each([trained(each, self.d, self.widths) for each in self.laws], self.steps, 500, self.runs)

    def judge(self, got: list[Curves]) -> Findings:
        found = by_law(self.laws, got)
        checks = [self.learns(*mean(final(found[named(UNIFORM)])))]
        checks += [self.fails(*mean(final(found[named(each)])), law=named(each)) for each in OTHERS[1:]]
        return Findings(checks, rows(found))

    def draw(self, got: list[Curves]) -> plots.Figure:
        return accuracy_plot(by_law(self.laws, got))


SMALL = (0.1, 0.2)
"""The perturbations that some learning occurs with at 50 bits."""


def learned_share(perturbed: Floats, signs: Floats) -> float:
    """What a perturbed start learns over what signs learn; undefined where those learn nothing.

    >>> learned_share(np.array([0.55, 0.65]), np.array([0.7]))
    0.5
    """
    learned = float(np.mean(signs)) - 0.5
    return round((float(np.mean(perturbed)) - 0.5) / learned, 12) if learned > 0 else math.nan


def share_lost(first: Floats, first_signs: Floats, last: Floats, last_signs: Floats) -> float:
    """By how much that share is smaller at the last dimension than at the first."""
    return learned_share(first, first_signs) - learned_share(last, last_signs)


@claim(
    "abbe2024.fig5",
    where="Figure 5; Appendix E.2",
    kind="empirical",
    title="For fixed sigma learning disappears as d grows",
    statement="At d in {100,150,200} the perturbation levels that still worked at d=50 no longer do.",
    published=""""larger input dimensions, where learning does not occur for these values of sigma" (Section 6); "for
    fixed sigma, learning becomes hard as d increases" (Appendix E.2)""",
)
class Fig5(Trial):
    """Perturbations that worked at 50 bits, at 100, 150 and 200 bits."""

    widths = size(quick=list(SHALLOW), standard=list(SHALLOW), full=list(DEEP))
    steps = size(quick=5000, standard=JUDGED, full=200_000)
    d = size(quick=[12, 20, 30], standard=[50, 100], full=[50, 100, 150, 200])
    sigma = size(quick=[0.0, *SMALL], full=[0.0, *SMALL])
    runs = size(quick=[5, 5, 5], standard=[5, 5], full=[10, 10, 20, 60])
    learns = at_least("mean accuracy, sigma = 0, d = {d}", 0.5, part="signs learn at every d")
    lost = at_most("(accuracy - 1/2) at sigma = {sigma:g} over that of signs, d = {d}", 0.5,
                   part="sigma = {sigma:g} does not learn at d = {d}", only=("standard", "full"))
    harder = at_least("the same ratio at d = {first} less that at d = {last}, sigma = {sigma:g}", 0.0,
                      part="learning becomes hard as d grows")

    @property
    def cases(self) -> list[tuple[int, float]]:
        return [(d, s) for d in self.d for s in self.sigma]

    def work(self, lab: Lab) -> list[Curves]:
        asked = [lab.curves_each([trained(law(s), d, self.widths) for s in self.sigma], self.steps, self.steps // 200,
                                 runs) for d, runs in zip(self.d, self.runs, strict=True)]
        return [curves for each in asked for curves in each]

    def accuracy(self, got: list[Curves]) -> dict[tuple[int, float], np.ndarray]:
        return {case: final(curves) for case, curves in zip(self.cases, got, strict=True)}

    def judge(self, got: list[Curves]) -> Findings:
        accuracy = self.accuracy(got)
        first, last = self.d[0], self.d[-1]
        checks = [self.learns(*mean(accuracy[d, 0.0]), d=d) for d in self.d]
        shares: dict[str, float | None] = {}
        for place, s in enumerate(SMALL):
            for d in self.d:
                pair = accuracy[d, s], accuracy[d, 0.0]
                shares[f"(accuracy - 1/2) over that of signs, sigma = {s:g}, d = {d}"] = learned_share(*pair)
                if d > 50:
                    interval = bootstrap(learned_share, *pair, rng=self.rng(5, place, d))
                    checks.append(self.lost(learned_share(*pair), interval, sigma=s, d=d))
            ends = accuracy[first, s], accuracy[first, 0.0], accuracy[last, s], accuracy[last, 0.0]
            interval = bootstrap(share_lost, *ends, rng=self.rng(6, place))
            checks.append(self.harder(share_lost(*ends), interval, sigma=s, first=first, last=last))
        data = [row for (d, s), curves in zip(self.cases, got, strict=True) for row in rows({law(s): curves}, d=d)]
        return Findings(checks, data, shares | {f"mean accuracy, d = {d}, sigma = {s:g}": mean(values)[0]
                                                for (d, s), values in accuracy.items()})

    def draw(self, got: list[Curves]) -> plots.Figure:
        return by_dimension(self.d, self.sigma, self.accuracy(got))


@plots.styled
def by_dimension(
    dimensions: list[int], sigmas: list[float], accuracy: dict[tuple[int, float], np.ndarray]
) -> plots.Figure:
    """Final accuracy against d, one line for each sigma."""
    figure = plots.blank(2.4)
    axes = figure.add_subplot(xlabel="input dimension d", ylabel="final test accuracy", ylim=(0.45, 1.02))
    for sigma, colour, line in zip(sigmas, plots.COLOURS, plots.LINES, strict=False):
        ends = np.array([[centre, *interval] for centre, interval in (mean(accuracy[d, sigma]) for d in dimensions)]).T
        axes.errorbar(dimensions, ends[0], np.abs(ends[1:] - ends[0]), color=colour, linestyle=line, marker="o",
                      markersize=3, elinewidth=0.8, capsize=2, label=named(law(sigma)))
    axes.axhline(0.5, color=plots.GREY, linewidth=0.6)
    axes.set_xticks(dimensions)
    plots.legend_above(figure, axes)
    return figure


class SquaredLoss(Trial):
    """A two-layer network trained by the squared loss, from each of the laws."""

    d = size(quick=20, full=50)
    steps = size(quick=6000, full=200_000)
    runs = size(quick=5, full=7)

    laws: tuple[str, ...]

    def work(self, lab: Lab) -> list[Curves]:
        setups = [trained(each, self.d, SHALLOW, loss="square") for each in self.laws]
        return lab.curves_each(setups, self.steps, self.steps // 200, self.runs)

    def draw(self, got: list[Curves]) -> plots.Figure:
        return accuracy_plot(by_law(self.laws, got))


@claim(
    "abbe2024.fig7-left",
    where="Figure 7 (left)",
    kind="empirical",
    title="Two-layer network with squared loss, Gaussian perturbations",
    statement="""The dependence on sigma is the same for a 512-unit two-layer ReLU network trained with the squared
    loss.""",
    published=""""We observe in both plots a similar behavior as for the 4-layer MLP with the hinge loss" (Appendix
    E.2)""",
)
class Fig7Left(SquaredLoss):
    """A two-layer network and the squared loss: the same dependence on sigma."""

    learns = at_least("mean accuracy, sigma = 0", 0.8)
    chance = at_most("mean accuracy, {law}", 0.55)
    gap = at_least("accuracy at sigma = 0 less that of {law}", 0.25)

    laws = PERTURBED

    def judge(self, got: list[Curves]) -> Findings:
        accuracy = {s: final(curves) for s, curves in zip(SIGMAS, got, strict=True)}
        checks = [self.learns(*mean(accuracy[0.0]))]
        for name, s in (("sigma = 1", 1.0), ("Gaussian", math.inf)):
            checks += [self.chance(*mean(accuracy[s]), law=name),
                       self.gap(*difference(accuracy[0.0], accuracy[s]), law=name)]
        return Findings(checks, rows(by_law(self.laws, got)))


@claim(
    "abbe2024.fig7-right",
    where="Figure 7 (right)",
    kind="empirical",
    title="Two-layer network with squared loss, uniform and sparse perturbations",
    statement="Uniform mixtures and sparsified Rademacher act as in the 4-layer hinge experiments.",
    published=""""We observe in both plots a similar behavior as for the 4-layer MLP with the hinge loss" (Appendix
    E.2)""",
)
class Fig7Right(SquaredLoss):
    """The same with uniform perturbations and sparsified signs."""

    learns = at_least("mean accuracy, uniform 0.1", 0.75)
    fails = at_most("mean accuracy, {law}", 0.6)

    laws = (UNIFORM, UNIFORM_1, THIRD)

    def judge(self, got: list[Curves]) -> Findings:
        uniform, *others = by_law(self.laws, got).items()
        checks = [self.learns(*mean(final(uniform[1])))]
        checks += [self.fails(*mean(final(curves)), law=name) for name, curves in others]
        return Findings(checks, rows(by_law(self.laws, got)))
