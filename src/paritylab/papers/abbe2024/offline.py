"""A fixed training set, until the training loss is below 0.01: Figures 1-right, 3-right and 4."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import cycle, pairwise
from typing import Any

import numpy as np

from paritylab import Curves, plots
from paritylab.claims.intervals import mean
from paritylab.claims.lab import Lab
from paritylab.claims.registry import reproduces
from paritylab.claims.verdicts import Check, Outcome, at_least, at_most, holds
from paritylab.papers.abbe2024.online import OTHERS, SIGMAS, UNIFORM
from paritylab.papers.abbe2024.training import (
    DEEP,
    SHALLOW,
    apart,
    difference,
    final,
    law,
    named,
    rows,
    stays_below,
    trained,
)

LOSS = 0.01
Found = Mapping[tuple[str, int], Curves]


def offline(lab: Lab, laws: Sequence[str], sizes: Sequence[int], d: int, widths: Sequence[int], steps: int, runs: int,
            degree: int | None = None) -> dict[tuple[str, int], Curves]:
    """Curves by law and size of the training set, each run up to a training loss of 0.01."""
    cases = {(each, size): trained(each, d, widths, degree=degree, sample=size) for size in sizes for each in laws}
    made = lab.curves_each(list(cases.values()), steps, steps // 100, runs, stop=LOSS)
    return dict(zip(cases, made, strict=True))


@reproduces("abbe2024.fig1-right")
def perturbation_level(lab: Lab) -> Outcome:
    """Test accuracy against the size of the training set, for several perturbations of the Rademacher start."""
    d = lab.pick("d", quick=20, full=50)
    widths = lab.pick("widths", quick=list(SHALLOW), full=list(DEEP))
    sizes = lab.pick("N", quick=[2000, 20_000], standard=[100_000], full=[5000, 10_000, 20_000, 50_000, 100_000])
    sigmas = lab.pick("sigma", quick=["0", "inf"], standard=["0", "inf"], full=[f"{s:g}" for s in SIGMAS])
    steps = lab.pick("steps", quick=20_000, standard=50_000, full=200_000)
    runs = lab.pick("runs", quick=3, standard=4, full=7)
    found = offline(lab, [law(float(s)) for s in sigmas], sizes, d, widths, steps, runs)
    most = sizes[-1]
    signs, gaussian = found["rademacher", most], found["gaussian", most]
    gap, interval = difference(final(signs), final(gaussian))
    assert gaussian.train_loss is not None
    losses = gaussian.train_loss[:, -1]
    means = [mean(final(found["rademacher", size]))[0] for size in sizes]
    checks = [
        at_least(f"accuracy of Rademacher less that of Gaussian, N = {most:,}", gap, 0.2, interval),
        Check("gap of their 95 % intervals", value := apart(final(signs), final(gaussian)), "> 0", value > 0,
              certain=gap <= 0),
        stays_below(f"Gaussian, N = {most:,}", final(gaussian), 0.55),
        holds(f"no Gaussian run diverged: all ended with a training loss below 0.01 or after {steps:,} steps",
              bool(np.isfinite(losses).all())),
    ]
    if len(sizes) > 1:
        growth, interval = difference(final(found["rademacher", most]), final(found["rademacher", sizes[0]]))
        checks.append(Check("accuracy of Rademacher increases with N: last less first", growth, "> 0", growth > 0,
                            interval, certain=interval[1] < 0))
        falls = max(apart(final(found["rademacher", a]), final(found["rademacher", b])) for a, b in pairwise(sizes))
        checks.append(holds("it never falls from one N to the next by more than its interval", falls <= 0,
                            value=min(b - a for a, b in pairwise(means))))
    memorised = {f"share of Gaussian runs with training loss below 0.01, N = {most:,}": float(np.mean(losses < LOSS))}
    return Outcome(checks, tidy(found), by_size(found), memorised | numbers(found))


@reproduces("abbe2024.fig3-right")
def other_laws(lab: Lab) -> Outcome:
    """The other laws on a training set of 10^5 examples."""
    d = lab.pick("d", quick=20, full=50)
    widths = lab.pick("widths", quick=list(SHALLOW), full=list(DEEP))
    sizes = [lab.pick("N", quick=20_000, full=100_000)]
    laws = lab.pick("laws", quick=[UNIFORM, *OTHERS[1:3], OTHERS[-1]], standard=[UNIFORM, OTHERS[1], OTHERS[-1]],
                    full=["rademacher", *OTHERS])
    steps = lab.pick("steps", quick=5000, standard=50_000, full=200_000)
    runs = lab.pick("runs", quick=3, standard=3, full=7)
    found = offline(lab, laws, sizes, d, widths, steps, runs)
    best = final(found[UNIFORM, sizes[0]])
    checks = []
    for each in [each for each in laws if each not in ("rademacher", UNIFORM)]:
        other = final(found[each, sizes[0]])
        gap, interval = difference(best, other)
        checks += [at_least(f"accuracy of uniform 0.1 less that of {named(each)}", gap, 0.2, interval),
                   Check(f"gap of their intervals, {named(each)}", value := apart(best, other), "> 0", value > 0,
                         certain=gap <= 0)]
    return Outcome(checks, tidy(found), by_law(found), numbers(found))


@reproduces("abbe2024.fig4-left")
def degree_three(lab: Lab) -> Outcome:
    """A sparse parity of degree 3: test accuracy against the size of the training set."""
    sizes = lab.pick("N", quick=[500, 2000, 10_000], standard=[1000, 3000, 10_000],
                     full=[1000, 3000, 10_000, 30_000, 100_000])
    return sparse(lab, sizes, 3)


@reproduces("abbe2024.fig4-right")
def degree_five(lab: Lab) -> Outcome:
    """The same at degree 5."""
    sizes = lab.pick("N", quick=[2000, 10_000, 50_000], standard=[10_000, 100_000],
                     full=[10_000, 30_000, 100_000, 300_000, 1_000_000])
    degree = lab.pick("degree", quick=4, full=5)
    return sparse(lab, sizes, degree)


def sparse(lab: Lab, sizes: list[int], degree: int) -> Outcome:
    d = lab.pick("d", quick=20, full=50)
    widths = lab.pick("widths", quick=list(SHALLOW), full=list(DEEP))
    sigmas = lab.pick("sigma", quick=["0", "inf"], standard=["0", "inf"], full=["0", "0.1", "1", "inf"])
    steps = lab.pick("steps", quick=10_000, standard=30_000, full=100_000)
    runs = lab.pick("runs", quick=3, standard=2, full=7)
    laws = [law(float(s)) for s in sigmas]
    found = offline(lab, laws, sizes, d, widths, steps, runs, degree)
    needed = {each: crossing(sizes, [mean(final(found[each, size]))[0] for size in sizes]) for each in laws}
    off = max(abs(mean(final(found[each, size]))[0] - np.mean([mean(final(found[other, size]))[0] for other in laws]))
              for each in laws for size in sizes)
    spread = max(needed.values()) - min(needed.values()) if all(map(math.isfinite, needed.values())) else math.nan
    checks = [at_most("largest less smallest log10 N at accuracy 0.75", spread, 0.4),
              at_most("largest distance of a law's accuracy from the mean over laws", float(off), 0.15)]
    values = {f"log10 N at accuracy 0.75, {named(each)}": value for each, value in needed.items()}
    return Outcome(checks, tidy(found), by_size(found), values)


def crossing(sizes: Sequence[int], accuracy: Sequence[float], level: float = 0.75) -> float:
    """log10 of the size at which a line through the points first reaches the level; infinite if none does.

    >>> round(crossing([100, 1000], [0.5, 1.0]), 3)
    2.5
    """
    for (a, below), (b, above) in pairwise(zip(sizes, accuracy, strict=True)):
        if below < level <= above:
            return math.log10(a) + (level - below) / (above - below) * math.log10(b / a)
    return -math.inf if accuracy[0] >= level else math.inf


def tidy(found: Found) -> list[dict[str, Any]]:
    made = []
    for (each, size), curves in found.items():
        assert curves.train_loss is not None
        losses = curves.train_loss.ravel().tolist()
        made += [row | {"train_loss": loss} for row, loss in zip(rows({each: curves}, N=size), losses, strict=True)]
    return made


def numbers(found: Found) -> dict[str, float | None]:
    return {f"mean accuracy, {named(each)}, N = {size:,}": mean(final(curves))[0]
            for (each, size), curves in found.items()}


@plots.styled
def by_size(found: Found) -> Any:
    """Final test accuracy against the size of the training set, one line for each law."""
    laws = list(dict.fromkeys(each for each, _ in found))
    figure = plots.blank(2.3 + 0.08 * len(laws))
    axes = figure.add_subplot(xlabel="training examples", ylabel="test accuracy", xscale="log", ylim=(0.45, 1.02))
    for each, colour, line in zip(laws, cycle(plots.COLOURS), cycle(plots.LINES), strict=False):
        sizes = [size for other, size in found if other == each]
        ends = np.array([[m, *interval] for m, interval in (mean(final(found[each, size])) for size in sizes)]).T
        axes.errorbar(sizes, ends[0], np.minimum(np.abs(ends[1:] - ends[0]), 1), color=colour, linestyle=line,
                      marker="o", markersize=3, elinewidth=0.8, capsize=2, label=named(each))
    axes.axhline(0.5, color=plots.GREY, linewidth=0.6)
    plots.readable_log(axes)
    plots.legend_above(figure, axes)
    return figure


@plots.styled
def by_law(found: Found) -> Any:
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
