"""Alignments of one neuron, exactly: Figures 2 and 6, Theorem 9."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from paritylab import alignment
from paritylab.claims.lab import Lab
from paritylab.claims.registry import reproduces
from paritylab.claims.verdicts import Outcome, at_least, at_most, between, holds
from paritylab.measures.alignment import Alignment
from paritylab.papers.abbe2024.common import Fit, decay_plot, fit
from paritylab.plots import Series
from paritylab.theory.alignment_rate import alignment_rate
from paritylab.theory.junk_flow import Floats, alignment_gap, junk_flow

RESAMPLES = 2000
TIMES = (0, 2, 5)
"""Steps of the junk flow at which it is looked at."""
NOTE = "exact values (lattice sums, integrals); the paper's estimator is drawn as points with its 95 % intervals"


def logs(found: Sequence[Alignment]) -> Floats:
    return np.array([each.log for each in found])


# --- the hinge loss -----------------------------------------------------------------------------------------------


@reproduces("abbe2024.fig2-left")
def hinge_neuron(lab: Lab) -> Outcome:
    """E_w of the squared gradient on the parity less that on random labels, at the start and after random labels."""
    dims = lab.pick("d", quick=list(range(4, 101, 2)), full=list(range(4, 101, 2)))
    flow_dims = lab.pick("d of the junk flow", quick=list(range(4, 15, 2)), full=list(range(4, 21, 2)))
    draws = lab.pick("draws", quick=1000, full=1000)
    signs = {d: alignment("rademacher", d, unit="hinge-neuron") for d in dims}
    normal = {d: alignment("gaussian", d, unit="hinge-neuron", scale="fan-in") for d in dims}
    flows = {d: flow(lab, d, draws) for d in flow_dims}

    slope = hinge_fit(signs, range(8, 31, 2), np.log)
    linear, power = hinge_fit(normal, range(8, 19, 2), np.asarray), hinge_fit(normal, range(8, 19, 2), np.log)
    checks = [
        between("log-log slope of Rademacher, even d from 8 to 30", slope.slope, -3.6, -2.4),
        at_most("log-linear slope of Gaussian, even d from 8 to 18", linear.slope, -0.6),
        at_least("its R^2", linear.r2, 0.95),
        at_least("its R^2 less that of the log-log line", linear.r2 - power.r2, 0.0),
    ]
    for t in (1, 2):
        ratios = {d: squares[t].mean() / squares[0].mean() for d, squares in flows.items()}
        worst = max(ratios, key=ratios.__getitem__)
        checks.append(at_most(f"junk flow at t = {TIMES[t]} / t = 0, Gaussian, largest over d", ratios[worst], 1.3,
                              ratio_interval(flows[worst][t], flows[worst][0], lab.rng(2, t))))
    kept = {d: sign_flow(d) / signs[d].value for d in flow_dims}
    data = [{"d": d, "weights": name, "t": 0, "method": found[d].method, "value": found[d].value, "low": None,
             "high": None} for name, found in (("rademacher", signs), ("gaussian", normal)) for d in dims]
    data += [{"d": d, "weights": "gaussian", "t": TIMES[t], "method": "monte-carlo", **estimate(squares[t])}
             for d, squares in flows.items() for t in range(3)]
    numbers = {
        "Rademacher at d = 8": signs[8].value, "Rademacher at d = 12": signs[12].value,
        "least d where Gaussian is below Rademacher": float(min(d for d in dims if normal[d].log < signs[d].log)),
        "largest factor of Gaussian per two dimensions, d from 8 to 18": falls(normal)[1],
        "smallest factor of Gaussian per two dimensions, d from 8 to 18": falls(normal)[0],
        "junk flow at t = 5 / t = 0, Rademacher (exact), largest over d": max(kept.values()),
    }
    return Outcome(checks, data, draw_hinge(signs, normal, flows), numbers,
                   f"exact at t = 0; the junk flow has exact gradients (all 2^d inputs), so that d ends at "
                   f"{max(flow_dims)}, and drawn starts; its value is averaged over all coordinates")


def flow(lab: Lab, d: int, draws: int) -> Floats:
    """Squared gaps per coordinate after 0, 2 and 5 steps on random labels, for each drawn start N(0, I/d)."""

    def make() -> dict[str, Floats]:
        start = lab.rng(1, d).standard_normal((draws, d)) / math.sqrt(d)
        second = junk_flow(start, 2)
        return {"squares": np.stack([squared(psi) for psi in (start, second, junk_flow(second, 3))])}

    return lab.kept_old("junk-flow", {"d": d, "draws": draws}, make)["squares"]


def squared(weights: Floats) -> Floats:
    return np.square(alignment_gap(weights)).mean(1)


def sign_flow(d: int) -> float:
    """The alignment after 5 steps from signs, where all starts are alike."""
    return float(squared(junk_flow(np.ones((1, d)), 5))[0])


def hinge_fit(found: Mapping[int, Alignment], dims: Sequence[int], scale: Any) -> Fit:
    return fit(scale(dims), logs([found[d] for d in dims]))


def falls(found: Mapping[int, Alignment]) -> tuple[float, float]:
    factors = np.exp(-np.diff(logs([found[d] for d in range(8, 19, 2)])))
    return float(factors.min()), float(factors.max())


def estimate(squares: Floats) -> dict[str, float]:
    mean, half = float(squares.mean()), 1.96 * float(squares.std(ddof=1)) / math.sqrt(len(squares))
    return {"value": mean, "low": mean - half, "high": mean + half}


def ratio_interval(above: Floats, below: Floats, rng: np.random.Generator) -> tuple[float, float]:
    """The 95 % percentile interval of a ratio of means of paired draws."""
    chosen = rng.integers(0, len(above), (RESAMPLES, len(above)))
    low, high = np.quantile(above[chosen].mean(1) / below[chosen].mean(1), [0.025, 0.975])
    return float(low), float(high)


def draw_hinge(
    signs: Mapping[int, Alignment], normal: Mapping[int, Alignment], flows: Mapping[int, Floats]
) -> Any:
    dims = list(signs)
    curves = {name: (dims, [found[d].value for d in dims])
              for name, found in (("Rademacher", signs), ("Gaussian", normal))}
    points = {}
    for t in (1, 2):
        values = [estimate(squares[t]) for squares in flows.values()]
        ends = ([value[end] for value in values] for end in ("value", "low", "high"))
        points[f"junk flow, t = {TIMES[t]}"] = Series([d * 1.04 ** (2 * t - 3) for d in flows], *ends)
    middle = signs[20].value * (np.array(dims) / 20.0) ** -3
    return decay_plot(curves, "squared gradient difference", {"$\\propto d^{-3}$": (dims, middle)}, points, (4, 30),
                      floor=1e-20)


# --- the correlation loss -----------------------------------------------------------------------------------------

GAUSSIAN = "Gaussian"


def gal(sigma: float | str, d: int, **sampling: Any) -> Alignment:
    """Equation (10) for a sign plus N(0, sigma^2), or for normal weights."""
    return alignment("gaussian" if sigma == GAUSSIAN else f"perturbed-rademacher:{sigma:g}", d, **sampling)


def name(sigma: float | str) -> str:
    return "Gaussian" if sigma == GAUSSIAN else "$\\sigma$ = 0 (signs)" if sigma == 0 else f"$\\sigma$ = {sigma:g}"


class Threshold:
    """GAL(sigma, d) exactly, and by the paper's estimator for the d whose 2^d inputs are enumerated."""

    def __init__(self, lab: Lab, sigmas: Sequence[float | str], dims: Sequence[int], sampled: Sequence[int],
                 draws: int) -> None:
        self.sigmas, self.dims, self.sampled = sigmas, dims, sampled
        self.exact = {(sigma, d): gal(sigma, d) for sigma in sigmas for d in dims}

        def make() -> dict[str, Floats]:
            found = [[gal(sigma, d, method="monte-carlo", draws=draws, seed=lab.seed + 1000 * i + d) for d in sampled]
                     for i, sigma in enumerate(sigmas)]
            return {"values": np.array([[(each.value, each.error) for each in row] for row in found])}

        key = {"sigmas": list(sigmas), "d": list(sampled), "draws": draws}
        values = lab.kept_old("alignment", key, make)["values"]
        self.estimates = {(sigma, d): (float(values[i, j, 0]), float(values[i, j, 1]))
                          for i, sigma in enumerate(sigmas) for j, d in enumerate(sampled)}

    def ratio(self, sigma: float | str, d: int) -> float:
        return self.exact[sigma, d].value / self.exact[0, d].value

    def slope(self, sigma: float | str, dims: Sequence[int]) -> Fit:
        """Of ln GAL on d."""
        return fit(dims, logs([self.exact[sigma, d] for d in dims]))

    @property
    def agreement(self) -> dict[str, float | None]:
        away = [abs(value - self.exact[place].value) / half
                for place, (value, half) in self.estimates.items() if half > 1e-12]
        return {"share of sampled 95 % intervals that hold the exact value": float(np.mean(np.array(away) <= 1))}

    @property
    def data(self) -> list[dict[str, Any]]:
        rows = [{"sigma": str(sigma), "d": d, "method": each.method, "value": each.value, "ln": each.log,
                 "error": each.error} for (sigma, d), each in self.exact.items()]
        return rows + [{"sigma": str(sigma), "d": d, "method": "monte-carlo", "value": value, "ln": None,
                        "error": half} for (sigma, d), (value, half) in self.estimates.items()]

    def draw(self, laws: Mapping[str, Any], paper: tuple[float, float], floor: float) -> Any:
        curves = {name(sigma): (self.dims, [self.exact[sigma, d].value for d in self.dims]) for sigma in self.sigmas}
        points = {}
        for sigma in self.sigmas:
            values, halves = np.array([self.estimates[sigma, d] for d in self.sampled]).T
            points[name(sigma)] = Series(self.sampled, values, np.maximum(values - halves, 0.02 * values),
                                         values + halves)
        return decay_plot(curves, "GAL of a threshold neuron", laws, points, paper, floor=floor)


@reproduces("abbe2024.fig2-right")
def small_noise(lab: Lab) -> Outcome:
    """GAL(sigma, d) of a threshold neuron for small sigma."""
    grid = [*range(5, 102, 2), *range(121, 302, 20)]
    dims = lab.pick("d", quick=grid, full=grid)
    sampled = lab.pick("d sampled", quick=[5, 7, 9, 11], full=[5, 7, 9, 11, 13])
    draws = lab.pick("draws", quick=1000, full=2000)
    found = Threshold(lab, [0, 0.01, 0.05, 0.1, 0.2], dims, sampled, draws)
    away = {d: abs(2 * math.pi * d * found.exact[0, d].value - 1) for d in dims if d >= 7}
    ratios = [found.ratio(0.2, d) for d in (7, 9, 11, 13, 15)]
    checks = [
        at_most("|2 pi d GAL(0, d) - 1|, largest over odd d >= 7", max(away.values()), 0.1),
        holds("GAL(0.2, d) / GAL(0, d), largest rise over d in 7, 9, ..., 15", bool(max(np.diff(ratios)) < 0), "< 0",
              float(max(np.diff(ratios)))),
        at_most("GAL(0.2, 13) / GAL(0, 13)", found.ratio(0.2, 13), 0.6),
        at_least("GAL(0.05, d) / GAL(0, d), smallest over d <= 13", min(found.ratio(0.05, d) for d in range(5, 14, 2)),
                 0.9),
    ]
    numbers = {f"GAL(0.2, {d})": found.exact[0.2, d].value for d in (7, 11, 13)}
    numbers |= {f"GAL({sigma:g}, {dims[-1]}) / GAL(0, {dims[-1]})": found.ratio(sigma, dims[-1])
                for sigma in (0.01, 0.05, 0.1, 0.2)}
    law = {"$1/(2 \\pi d)$": (dims, [1 / (2 * math.pi * d) for d in dims])}
    figure = found.draw(law, (5, 25), 1e-9)
    return Outcome(checks, found.data, figure, numbers | found.agreement, NOTE)


@reproduces("abbe2024.fig6")
def large_noise(lab: Lab) -> Outcome:
    """GAL(sigma, d) of a threshold neuron for larger sigma, and for normal weights."""
    dims = lab.pick("d", quick=list(range(5, 102, 2)), full=list(range(5, 102, 2)))
    sampled = lab.pick("d sampled", quick=[7, 13], full=[5, 7, 9, 11, 13])
    draws = lab.pick("draws", quick=4000, full=20_000)
    found = Threshold(lab, [0, 0.2, 0.5, 1, 2, 5, GAUSSIAN], dims, sampled, draws)
    steps = [found.exact[sigma, 13].log for sigma in (0, 0.2, 0.5, 1)]
    ends = [(value - half, value + half) for value, half in (found.estimates[s, 13] for s in (0, 0.2, 0.5, 1))]
    apart = [above[0] - below[1] for above, below in pairwise(ends)]
    gaussian = (found.exact[GAUSSIAN, 29].log - found.exact[GAUSSIAN, 61].log) / 32
    checks = [
        holds("ln GAL(sigma, 13), largest rise over sigma in 0, 0.2, 0.5, 1", bool(max(np.diff(steps)) < 0), "< 0",
              float(max(np.diff(steps)))),
        holds("sampled 95 % intervals of GAL(sigma, 13) do not overlap, same sigma", min(apart) > 0,
              "smallest distance > 0", min(apart)),
        at_most("log-linear slope, sigma = 1, odd d from 7 to 15", found.slope(1, range(7, 16, 2)).slope, -0.5),
        between("fall of ln GAL per dimension from d = 29 to 61, Gaussian", gaussian, 0.65, 0.78),
    ]
    numbers = {f"GAL({sigma}, 13)": found.exact[sigma, 13].value for sigma in (0.5, 1, 2, GAUSSIAN)}
    numbers |= {f"GAL(Gaussian, {d})": found.exact[GAUSSIAN, d].value for d in (21, 61)}
    laws = {"$2^{-d}$": (dims, [2.0**-d for d in dims])}
    return Outcome(checks, found.data, found.draw(laws, (5, 25), 1e-33), numbers | found.agreement, NOTE)


@reproduces("abbe2024.thm9")
def exponentially_small(lab: Lab) -> Outcome:
    """ln GAL(sigma, d) against odd d for constant sigma, beside the rate c(sigma) at which it falls in the end."""
    dims = lab.pick("d", quick=list(range(5, 102, 2)), full=list(range(5, 102, 2)))
    sampled = lab.pick("d sampled", quick=[5, 7, 9, 11], full=[5, 7, 9, 11, 13])
    draws = lab.pick("draws", quick=2000, full=20_000)
    sigmas = (1, 2, 5, 10)
    found = Threshold(lab, sigmas, dims, sampled, draws)
    lines = {sigma: found.slope(sigma, range(7, 26, 2)) for sigma in sigmas}
    checks = []
    for sigma in (2, 5):
        checks += [at_most(f"log-linear slope, sigma = {sigma}, odd d from 7 to 25", lines[sigma].slope, -0.6),
                   at_least(f"its R^2, sigma = {sigma}", lines[sigma].r2, 0.99)]
    rates = {sigma: alignment_rate(f"perturbed-rademacher:{sigma}").rate for sigma in sigmas}
    numbers = {f"slope, sigma = {sigma}, odd d from 7 to 25": lines[sigma].slope for sigma in sigmas}
    numbers |= {f"slope, sigma = {sigma}, odd d from 61 to 101": found.slope(sigma, range(61, 102, 2)).slope
                for sigma in sigmas}
    numbers |= {f"limit of the slope, sigma = {sigma}": -rate for sigma, rate in rates.items()}
    curves = {name(sigma): (dims[1:], -np.diff(logs([found.exact[sigma, d] for d in dims])) / np.diff(dims))
              for sigma in sigmas}
    laws = {f"limit, $\\sigma$ = {sigma}": ([dims[0], dims[-1]], [rates[sigma]] * 2) for sigma in (1, 2)}
    laws["bound asked for"] = ([7, 25], [0.6, 0.6])
    figure = decay_plot(curves, "fall of ln GAL per dimension", laws, log="")
    note = "exact integrals throughout; the paper's estimator agrees (share of its intervals below)"
    return Outcome(checks, found.data, figure, numbers | found.agreement, note)
