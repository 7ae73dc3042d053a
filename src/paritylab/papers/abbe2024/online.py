"""Fresh samples: Figures 1-left, 3-left, 5 and 7, almost-full parities, and the summary's first experiments."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np

from paritylab import Curves, alignment, plots
from paritylab.claims.lab import Lab
from paritylab.claims.registry import reproduces
from paritylab.claims.verdicts import Check, Outcome, at_least, between, holds
from paritylab.papers.abbe2024.training import (
    DEEP,
    SHALLOW,
    accuracy_plot,
    apart,
    difference,
    final,
    law,
    mean,
    named,
    online,
    reaches,
    rows,
    stays_below,
    trained,
)

OTHERS = ("uniform-perturbed:0.1", "uniform-perturbed:1", "sparse-rademacher:0.5",
          "sparse-rademacher:0.3333333333333333", "sparse-rademacher:0.2", "discrete:-2,-1,1,2")
UNIFORM, UNIFORM_1, HALF, THIRD, FIFTH, DISCRETE = OTHERS
SIGMAS = (0.0, 0.1, 0.2, 0.5, 1.0, math.inf)
JUDGED = 50_000


def accuracy_at(curves: Curves, step: int) -> np.ndarray:
    """Each run's accuracy at the last point up to a step."""
    return np.nan_to_num(curves.accuracy[:, np.searchsorted(curves.steps, step, side="right") - 1])


@reproduces("abbe2024.fig1-left")
def perturbation_level(lab: Lab) -> Outcome:
    """Test accuracy of a 4-layer network on the 50-bit parity, for several perturbations of the Rademacher start."""
    d = lab.pick("d", quick=20, full=50)
    widths = lab.pick("widths", quick=list(SHALLOW), full=list(DEEP))
    steps = lab.pick("steps", quick=6000, standard=JUDGED, full=200_000)
    runs = lab.pick("runs", quick=5, standard=3, full=7)
    found = online(lab, {named(law(s)): trained(law(s), d, widths) for s in SIGMAS}, steps, runs, steps // 200)
    at = min(JUDGED, steps)
    accuracy = {s: accuracy_at(found[named(law(s))], at) for s in SIGMAS}
    ordered = [apart(accuracy[above], accuracy[below]) for below, above in pairwise(SIGMAS)]
    excess, interval = mean(accuracy[0.1] - 0.5)
    checks = [
        reaches("sigma = 0", accuracy[0.0], 0.85),
        stays_below("Gaussian", accuracy[math.inf], 0.55),
        stays_below("sigma = 1", accuracy[1.0], 0.55),
        holds("accuracy does not increase with sigma, up to overlapping intervals", max(ordered) <= 0,
              "no interval above that of a smaller sigma", max(ordered)),
        Check("lower end of accuracy - 1/2, sigma = 0.1", interval[0], "> 0", interval[0] > 0,
              certain=excess <= 0),
    ]
    numbers = {f"mean accuracy after {step:,} steps, {name}": mean(accuracy_at(curves, step))[0]
               for name, curves in found.items() for step in {at, steps}}
    return Outcome(checks, rows(found), accuracy_plot(found, at if at < steps else None), numbers,
                   f"judged after {at:,} steps")


@reproduces("abbe2024.fig3-left")
def other_laws(lab: Lab) -> Outcome:
    """Uniform perturbations, sparsified signs and a four-point law in the place of Gaussian perturbations."""
    d = lab.pick("d", quick=20, full=50)
    widths = lab.pick("widths", quick=list(SHALLOW), full=list(DEEP))
    steps = lab.pick("steps", quick=5000, full=JUDGED)
    runs = lab.pick("runs", quick=5, standard=3, full=7)
    laws = ["rademacher", *OTHERS]
    found = online(lab, {named(each): trained(each, d, widths) for each in laws}, steps, runs)
    checks = [reaches(named(UNIFORM), final(found[named(UNIFORM)]), 0.8)]
    checks += [stays_below(named(each), final(found[named(each)]), 0.6) for each in OTHERS[1:]]
    return Outcome(checks, rows(found), accuracy_plot(found), {})


@reproduces("abbe2024.fig5")
def larger_dimensions(lab: Lab) -> Outcome:
    """Perturbations that worked at 50 bits, at 100, 150 and 200 bits."""
    dimensions = lab.pick("d", quick=[12, 20, 30], standard=[50, 100], full=[50, 100, 150, 200])
    sigmas = lab.pick("sigma", quick=[0.0, 0.1, 0.2, 0.3], full=[0.0, 0.05, 0.1, 0.2])
    widths = lab.pick("widths", quick=list(SHALLOW), standard=list(SHALLOW), full=list(DEEP))
    steps = lab.pick("steps", quick=5000, standard=JUDGED, full=200_000)
    runs = lab.pick("runs", quick=5, standard=5, full=7)
    cases = [(d, s) for d in dimensions for s in sigmas]
    made = lab.curves_each([trained(law(s), d, widths) for d, s in cases], steps, steps // 200, runs)
    found = dict(zip(cases, made, strict=True))
    accuracy = {case: final(curves) for case, curves in found.items()}
    last = dimensions[-1]
    drop, interval = difference(accuracy[dimensions[0], 0.1], accuracy[last, 0.1])
    checks = [
        *[Check(f"sigma = 0 above sigma = {s:g} at d = {last}: gap of the intervals",
                gap := apart(accuracy[last, 0.0], accuracy[last, s]), "> 0", gap > 0,
                certain=float(np.mean(accuracy[last, 0.0])) <= float(np.mean(accuracy[last, s])))
          for s in sigmas if s >= 0.1],
        stays_below(f"sigma = 0.2, d = {last}", accuracy[last, 0.2], 0.55),
        at_least(f"accuracy at d = {dimensions[0]} less that at d = {last}, sigma = 0.1", drop, 0.2, interval),
    ]
    data = [row for (d, s), curves in found.items() for row in rows({law(s): curves}, d=d)]
    numbers = {f"mean accuracy, d = {d}, sigma = {s:g}": mean(accuracy[d, s])[0] for d in dimensions for s in sigmas}
    return Outcome(checks, data, by_dimension(dimensions, sigmas, accuracy), numbers)


@plots.styled
def by_dimension(dimensions: list[int], sigmas: list[float], accuracy: dict[tuple[int, float], np.ndarray]) -> Any:
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


@reproduces("abbe2024.fig7-left")
def squared_loss(lab: Lab) -> Outcome:
    """A two-layer network and the squared loss: the same dependence on sigma."""
    found = squared(lab, [law(s) for s in SIGMAS])
    accuracy = {s: final(found[named(law(s))]) for s in SIGMAS}
    checks: list[Check] = [reaches("sigma = 0", accuracy[0.0], 0.8)]
    for name, s in (("sigma = 1", 1.0), ("Gaussian", math.inf)):
        gap, interval = difference(accuracy[0.0], accuracy[s])
        checks += [stays_below(name, accuracy[s], 0.55),
                   at_least(f"accuracy at sigma = 0 less that of {name}", gap, 0.25, interval)]
    return Outcome(checks, rows(found), accuracy_plot(found), {})


@reproduces("abbe2024.fig7-right")
def squared_loss_other_laws(lab: Lab) -> Outcome:
    """The same with uniform perturbations and sparsified signs."""
    laws = [UNIFORM, UNIFORM_1, THIRD]
    found = squared(lab, laws)
    checks = [reaches(named(UNIFORM), final(found[named(UNIFORM)]), 0.75)]
    checks += [stays_below(named(each), final(found[named(each)]), 0.6) for each in laws[1:]]
    return Outcome(checks, rows(found), accuracy_plot(found), {})


def squared(lab: Lab, laws: list[str]) -> dict[str, Curves]:
    d = lab.pick("d", quick=20, full=50)
    steps = lab.pick("steps", quick=6000, full=200_000)
    runs = lab.pick("runs", quick=5, full=7)
    setups = {named(each): trained(each, d, SHALLOW, loss="square") for each in laws}
    return online(lab, setups, steps, runs, steps // 200)


@reproduces("abbe2024.almost-full")
def almost_full(lab: Lab) -> Outcome:
    """Parities of all but one or two of 20 bits."""
    d, degrees = 20, lab.pick("degree", quick=[19], full=[19, 18])
    depths = lab.pick("widths", quick=[list(SHALLOW)], full=[list(SHALLOW), list(DEEP)])
    steps = lab.pick("steps", quick=6000, full=20_000)
    runs = lab.pick("runs", quick=5, full=5)
    laws = ("rademacher", "gaussian")
    cases = [(tuple(widths), degree, each) for widths in depths for degree in degrees for each in laws]
    made = lab.curves_each([trained(each, d, widths, degree=k) for widths, k, each in cases], steps, 500, runs)
    every = dict(zip(cases, made, strict=True))
    checks, data, numbers, drawn = [], [], {}, {}
    for widths in map(tuple, depths):
        times = {}
        for degree in degrees:
            found = {each: every[widths, degree, each] for each in laws}
            name = f"{len(widths) + 1} layers, degree {degree}"
            if degree == 19:
                checks += [reaches(f"Rademacher, {name}", final(found["rademacher"]), 0.9),
                           stays_below(f"Gaussian, {name}", final(found["gaussian"]), 0.55)]
            reached = found["rademacher"].first(0.75)
            times[degree] = float(np.median(np.where(reached < 0, np.inf, reached)))
            numbers[f"median steps to accuracy 0.75, Rademacher, {name}"] = times[degree]
            numbers[f"mean accuracy, Rademacher, {name}"] = mean(final(found["rademacher"]))[0]
            data += [row for each in laws for row in rows({each: found[each]}, widths=str(widths), degree=degree)]
            drawn |= {f"{named(each)}, {name}": curves for each, curves in found.items()}
        if len(degrees) > 1:
            numbers[f"ratio of these times, degree 18 to 19, {len(widths) + 1} layers"] = times[18] / times[19]
    for degree in degrees:
        share = moving_neurons(d, degree)
        numbers[f"share of neurons whose alignment is not 0, degree {degree}"] = share
    return Outcome(checks, data, accuracy_plot(drawn), numbers)


def moving_neurons(d: int, degree: int) -> float:
    """The share of the first layer's neurons for which E chi_S(x) relu(w.x + b) is not 0.

    Weights and bias are signs at one scale, so up to its sign this expectation takes two values, at b = 1 and b = -1.
    """
    values = [alignment("rademacher", d, degree=degree, unit="relu", bias=bias).value for bias in (-1, 1)]
    return float(np.mean(np.array(values) > 0))


@reproduces("abbe2024.summary-exp1")
def first_experiment(lab: Lab) -> Outcome:
    """Rademacher weights: a two-layer network learns the 20-bit parity."""
    found, runs = twenty_bits(lab, "rademacher")
    main = found["rate 0.01"]
    solved = int((main.accuracy >= 1).any(axis=1).sum())
    return Outcome([reaches("rate 0.01", final(main), 0.995),
                    at_least("share of runs that are right on all 10^4 inputs at some check", solved / runs, 0.9)],
                   rows(found), accuracy_plot(found), numbers_of(found))


@reproduces("abbe2024.summary-exp2")
def second_experiment(lab: Lab) -> Outcome:
    """Gaussian weights: the same network stays at chance."""
    found, _ = twenty_bits(lab, "gaussian")
    late = found["rate 0.01"].accuracy[:, -10:].mean(axis=1)
    checks = [between("smallest mean accuracy over the last 10 checks of a run", float(late.min()), 0.48, 0.52),
              between("largest mean accuracy over the last 10 checks of a run", float(late.max()), 0.48, 0.52)]
    return Outcome(checks, rows(found), accuracy_plot(found), numbers_of(found))


@reproduces("abbe2024.summary-exp3")
def third_experiment(lab: Lab) -> Outcome:
    """A small Gaussian perturbation still allows learning at 20 bits."""
    found, _ = twenty_bits(lab, law(0.1))
    return Outcome([reaches("sigma = 0.1, rate 0.01", final(found["rate 0.01"]), 0.9)], rows(found),
                   accuracy_plot(found), numbers_of(found))


def twenty_bits(lab: Lab, init: str) -> tuple[dict[str, Curves], int]:
    steps = lab.pick("steps", quick=6000, full=20_000)
    runs = lab.pick("runs", quick=5, full=10)
    rates = lab.pick("lr", quick=[0.01], full=[0.01, 0.05])
    setups = {f"rate {lr:g}": trained(init, 20, SHALLOW, lr=lr) for lr in rates}
    return online(lab, setups, steps, runs, 200), runs


def numbers_of(found: dict[str, Curves]) -> dict[str, float | None]:
    return {f"mean accuracy, {name}": mean(final(curves))[0] for name, curves in found.items()}
