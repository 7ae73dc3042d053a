"""Alignments of one neuron, exactly: Figures 2 and 6, Theorem 9."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from abbe2024.common import Fit, decay_plot, fit
from abbe2024.theory.junk_flow import alignment_gap, junk_flow
from paritylab import alignment
from paritylab.aliases import Floats
from paritylab.claims import (
    Findings,
    Lab,
    Trial,
    at_least,
    at_most,
    between,
    claim,
    computation,
    holds,
    rng,
    size,
)
from paritylab.plots import Series
from paritylab.theory.alignment_rate import alignment_rate

RESAMPLES = 2000
TIMES = (0, 2, 5)
"""Steps of the junk flow at which it is looked at."""
NOTE = "exact values (lattice sums, integrals); the paper's estimator is drawn as points with its 95 % intervals"


class Exact(NamedTuple):
    """An Alignment as it is kept."""

    value: float
    log: float
    error: float
    method: str


@computation
def exact_alignments(seed: int, init: str, d: list[int], options: dict[str, Any]) -> dict[str, Any]:
    """The alignment of a law at each d; nothing is drawn."""
    found = [alignment(init, each, **options) for each in d]
    return {name: [getattr(each, name) for each in found] for name in Exact._fields}


def by_dimension(dims: Sequence[int], arrays: Mapping[str, np.ndarray]) -> dict[int, Exact]:
    columns = (arrays[name].tolist() for name in Exact._fields)
    return {d: Exact(*each) for d, *each in zip(dims, *columns, strict=True)}


def logs(found: Sequence[Exact]) -> Floats:
    return np.array([each.log for each in found])


# --- the hinge loss -----------------------------------------------------------------------------------------------


Curve = Mapping[int, Exact]
Kept = list[dict[str, np.ndarray]]
RELEASED = {8: 4.215e-2, 12: 2.865e-2}
"""What the released notebook GAL_hinge_oneneuron.ipynb computes and draws for signs, at two d."""
SMALL = 12
"""Up to here the junk flow is one part, beyond another."""


@claim(
    "abbe2024.fig2-left",
    where="Figure 2 (left); Appendix E.1",
    kind="exact",
    title="Hinge-loss alignment: polynomial for Rademacher, super-polynomial decay for Gaussian",
    statement="""For one ReLU neuron and hinge loss the squared difference between the population gradient on the full
    parity and on random labels shrinks polynomially in d for Rademacher weights but exponentially for Gaussian weights,
    and training on random labels for a few steps does not increase it.""",
    published=""""GAL_f decreases at an inverse-polynomial rate for Rademacher, but super-polynomially fast for
    Gaussian initialization"; "training on random labels does not increase the GAL_f" (Section 6). The curve of the
    figure for signs is the one that the released notebook computes: 4.215e-2 at d=8, 2.865e-2 at d=12. (Computed here:
    9.5e-5 and 2.6e-5, about d^-3; Gaussian drops by a factor 4.3 to 5.2 per two dimensions.)""",
)
class Fig2Left(Trial):
    """E_w of the squared gradient on the parity less that on random labels, at the start and after random labels."""

    d = size(list(range(4, 101, 2)))
    flow_d = size(quick=[4, 8], standard=list(range(4, 15, 2)), full=list(range(4, 19, 2)), label="d of the junk flow")
    draws = size(quick=2000, full=10_000)
    released = between("value of the released notebook / enumeration, signs, d = {d}", 0.9, 1.1,
                       part="the published values for signs", exact=True)
    polynomial = between("log-log slope of Rademacher, even d from 8 to 30", -3.6, -2.4,
                         part="inverse polynomial for signs")
    exponential = at_most("log-linear slope of Gaussian, even d from 8 to 18", -0.6,
                          part="super-polynomial for Gaussian weights")
    straight = at_least("its R^2", 0.95, part="super-polynomial for Gaussian weights")
    straighter = at_least("its R^2 less that of the log-log line", 0.0, part="super-polynomial for Gaussian weights")
    junk = at_most("junk flow at t = {t} / t = 0, Gaussian, largest upper end over d {range}", 1.05,
                   part="random labels do not increase it, d {range}")

    def work(self, lab: Lab) -> tuple[Kept, Kept]:
        laws = [{"init": init, "d": self.d, "options": {"unit": "hinge-neuron", **scale}}
                for init, scale in (("rademacher", {}), ("gaussian", {"scale": "fan-in"}))]
        return (lab.compute_each(exact_alignments, laws),
                lab.compute_each(flow, [{"d": d, "draws": self.draws} for d in self.flow_d]))

    def curves(self, got: tuple[Kept, Kept]) -> tuple[dict[int, Exact], dict[int, Exact], dict[int, Floats]]:
        """Alignments from signs and from normal weights by d, and squared gaps along the junk flow."""
        signs, normal = (by_dimension(self.d, arrays) for arrays in got[0])
        return signs, normal, {d: arrays["squares"] for d, arrays in zip(self.flow_d, got[1], strict=True)}

    def judge(self, got: tuple[Kept, Kept]) -> Findings:
        signs, normal, flows = self.curves(got)
        linear, power = (hinge_fit(normal, range(8, 19, 2), scale) for scale in (np.asarray, np.log))
        checks = [self.released(value / signs[d].value, d=d) for d, value in RELEASED.items()]
        checks += [self.polynomial(hinge_fit(signs, range(8, 31, 2), np.log).slope), self.exponential(linear.slope),
                   self.straight(linear.r2), self.straighter(linear.r2 - power.r2)]
        numbers: dict[str, float | None] = {}
        for name, dims in ((f"<= {SMALL}", [d for d in flows if d <= SMALL]),
                           (f"> {SMALL}", [d for d in flows if d > SMALL])):
            for t in (1, 2) if dims else ():
                found = {d: (float(flows[d][t].mean() / flows[d][0].mean()),
                             ratio_interval(flows[d][t], flows[d][0], self.rng(2, t, d))) for d in dims}
                worst = max(dims, key=lambda d: found[d][1][1])
                checks.append(self.junk(*found[worst], t=TIMES[t], range=name))
                numbers |= {f"junk flow at t = {TIMES[t]} / t = 0, d = {d}": found[d][0] for d in dims}
        rows = [{"d": d, "weights": name, "t": 0, "method": found[d].method, "value": found[d].value, "low": None,
                 "high": None} for name, found in (("rademacher", signs), ("gaussian", normal)) for d in self.d]
        rows += [{"d": d, "weights": "gaussian", "t": TIMES[t], "method": "monte-carlo", **estimate(squares[t])}
                 for d, squares in flows.items() for t in range(3)]
        numbers |= {f"Rademacher at d = {d}": signs[d].value for d in RELEASED}
        numbers |= {"smallest factor of Gaussian per two dimensions, d from 8 to 18": falls(normal)[0],
                    "largest factor of Gaussian per two dimensions, d from 8 to 18": falls(normal)[1]}
        return Findings(checks, rows, numbers, "exact at t = 0; exact gradients and drawn starts for the junk flow")

    def draw(self, got: tuple[Kept, Kept]) -> Any:
        return draw_hinge(*self.curves(got))


@computation
def flow(seed: int, d: int, draws: int) -> dict[str, Any]:
    """Squared gaps per coordinate after 0, 2 and 5 steps on random labels, for each drawn start N(0, I/d)."""
    start = rng(seed, 1, d).standard_normal((draws, d)) / math.sqrt(d)
    second = junk_flow(start, 2)
    return {"squares": np.stack([squared(psi) for psi in (start, second, junk_flow(second, 3))])}


def squared(weights: Floats) -> Floats:
    return np.square(alignment_gap(weights)).mean(1)


def hinge_fit(found: Curve, dims: Sequence[int], scale: Any) -> Fit:
    return fit(scale(dims), logs([found[d] for d in dims]))


def falls(found: Curve) -> tuple[float, float]:
    factors = np.exp(-np.diff(logs([found[d] for d in range(8, 19, 2)])))
    return float(factors.min()), float(factors.max())


def estimate(squares: Floats) -> dict[str, float]:
    mean, half = float(squares.mean()), 1.96 * float(squares.std(ddof=1)) / math.sqrt(len(squares))
    return {"value": mean, "low": mean - half, "high": mean + half}


def ratio_interval(above: Floats, below: Floats, generator: np.random.Generator) -> tuple[float, float]:
    """The 95 % percentile interval of a ratio of means of paired draws."""
    chosen = generator.integers(0, len(above), (RESAMPLES, len(above)))
    low, high = np.quantile(above[chosen].mean(1) / below[chosen].mean(1), [0.025, 0.975])
    return float(low), float(high)


def draw_hinge(signs: Curve, normal: Curve, flows: Mapping[int, Floats]) -> Any:
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


def weights(sigma: float | str) -> str:
    """A sign plus N(0, sigma^2), or normal weights."""
    return "gaussian" if sigma == GAUSSIAN else f"perturbed-rademacher:{sigma:g}"


def name(sigma: float | str) -> str:
    return "Gaussian" if sigma == GAUSSIAN else "$\\sigma$ = 0 (signs)" if sigma == 0 else f"$\\sigma$ = {sigma:g}"


class Threshold(Trial):
    """GAL(sigma, d) of equation (10), exactly, and by the paper's estimator for d whose 2^d inputs are enumerated."""

    SIGMAS: Sequence[float | str]
    d = size(list(range(5, 102, 2)))
    sampled: size[list[int]]
    draws: size[int]

    def work(self, lab: Lab) -> tuple[Kept, Kept]:
        exact = [{"init": weights(sigma), "d": self.d, "options": {}} for sigma in self.SIGMAS]
        drawn = [{"sigma": sigma, "place": place, "d": self.sampled, "draws": self.draws}
                 for place, sigma in enumerate(self.SIGMAS)]
        return lab.compute_each(exact_alignments, exact), lab.compute_each(sampled_alignments, drawn)

    def curves(self, got: tuple[Kept, Kept]) -> ThresholdCurves:
        exact = zip(self.SIGMAS, got[0], strict=True)
        drawn = zip(self.SIGMAS, got[1], strict=True)
        return ThresholdCurves(
            {sigma: by_dimension(self.d, arrays) for sigma, arrays in exact},
            {sigma: dict(zip(self.sampled, zip(arrays["values"].tolist(), arrays["errors"].tolist(), strict=True),
                             strict=True)) for sigma, arrays in drawn})


@computation
def sampled_alignments(seed: int, sigma: float | str, place: int, d: list[int], draws: int) -> dict[str, Any]:
    """The paper's estimator at each d, with the half widths of its 95 % intervals."""
    found = [alignment(weights(sigma), each, method="monte-carlo", draws=draws, seed=seed + 1000 * place + each)
             for each in d]
    return {"values": [each.value for each in found], "errors": [each.error for each in found]}


class ThresholdCurves(NamedTuple):
    """By sigma and d: exact values, and estimates with the half widths of their intervals."""

    exact: Mapping[float | str, Curve]
    estimates: Mapping[float | str, Mapping[int, tuple[float, float]]]

    def ratio(self, sigma: float | str, d: int) -> float:
        return self.exact[sigma][d].value / self.exact[0][d].value

    def slope(self, sigma: float | str, dims: Sequence[int]) -> Fit:
        """Of ln GAL on d."""
        return fit(dims, logs([self.exact[sigma][d] for d in dims]))

    @property
    def agreement(self) -> dict[str, float | None]:
        away = [abs(value - self.exact[sigma][d].value) / half for sigma, points in self.estimates.items()
                for d, (value, half) in points.items() if half > 1e-12]
        return {"share of sampled 95 % intervals that hold the exact value": float(np.mean(np.array(away) <= 1))}

    @property
    def rows(self) -> list[dict[str, Any]]:
        rows = [{"sigma": str(sigma), "d": d, "method": each.method, "value": each.value, "ln": each.log,
                 "error": each.error} for sigma, points in self.exact.items() for d, each in points.items()]
        return rows + [{"sigma": str(sigma), "d": d, "method": "monte-carlo", "value": value, "ln": None,
                        "error": half} for sigma, points in self.estimates.items()
                       for d, (value, half) in points.items()]

    def draw(self, laws: Mapping[str, Any], paper: tuple[float, float], floor: float) -> Any:
        curves = {name(sigma): (list(found), [each.value for each in found.values()])
                  for sigma, found in self.exact.items()}
        points = {}
        for sigma, found in self.estimates.items():
            values, halves = np.array(list(found.values())).T
            points[name(sigma)] = Series(list(found), values, np.maximum(values - halves, 0.02 * values),
                                         values + halves)
        return decay_plot(curves, "GAL of a threshold neuron", laws, points, paper, floor=floor)


@claim(
    "abbe2024.fig2-right",
    where="Figure 2 (right), Equation (10)",
    kind="exact",
    title="Correlation-loss alignment of a threshold neuron for small sigma",
    statement="""GAL(sigma,d) = E_w (E_x chi(x) 1[w.x >= 0])^2 for w = r + g deviates from the Rademacher law 1/(2 pi d)
    already at small sigma once d is large enough.""",
    published=""""For small sigma, GAL_f deviates from the Rademacher case, suggesting that it could be
    super-polynomially small for all constants sigma > 0" (Section 6). (Computed here: 2 pi d GAL tends to 1 for
    sigma=0; for sigma=0.2 GAL is 2.02e-2 at d=7, 9.13e-3 at d=11, 6.46e-3 at d=13.)""",
)
class Fig2Right(Threshold):
    """GAL(sigma, d) of a threshold neuron for small sigma."""

    SIGMAS = (0, 0.01, 0.05, 0.1, 0.2)
    d = size([*range(5, 102, 2), *range(121, 302, 20)])
    sampled = size(quick=[5, 7, 9, 11], full=[5, 7, 9, 11, 13], label="d sampled")
    draws = size(quick=1000, full=2000)

    limit = at_most("|2 pi d GAL(0, d) - 1|, largest over odd d >= 7", 0.1)
    falls = holds("GAL(0.2, d) / GAL(0, d), largest rise over d in 7, 9, ..., 15", "< 0")
    fallen = at_most("GAL(0.2, 13) / GAL(0, 13)", 0.6)
    unchanged = at_least("GAL(0.05, d) / GAL(0, d), smallest over d <= 13", 0.9)

    def judge(self, got: tuple[Kept, Kept]) -> Findings:
        found, last = self.curves(got), self.d[-1]
        away = {d: abs(2 * math.pi * d * found.exact[0][d].value - 1) for d in self.d if d >= 7}
        rise = float(max(np.diff([found.ratio(0.2, d) for d in (7, 9, 11, 13, 15)])))
        checks = [
            self.limit(max(away.values())),
            self.falls(rise < 0, rise),
            self.fallen(found.ratio(0.2, 13)),
            self.unchanged(min(found.ratio(0.05, d) for d in range(5, 14, 2))),
        ]
        numbers = {f"GAL(0.2, {d})": found.exact[0.2][d].value for d in (7, 11, 13)}
        numbers |= {f"GAL({sigma:g}, {last}) / GAL(0, {last})": found.ratio(sigma, last)
                    for sigma in (0.01, 0.05, 0.1, 0.2)}
        return Findings(checks, found.rows, numbers | found.agreement, NOTE)

    def draw(self, got: tuple[Kept, Kept]) -> Any:
        law = {"$1/(2 \\pi d)$": (self.d, [1 / (2 * math.pi * d) for d in self.d])}
        return self.curves(got).draw(law, (5, 25), 1e-9)


@claim(
    "abbe2024.fig6",
    where="Figure 6; Appendix E.2",
    kind="exact",
    title="Alignment of a threshold neuron for larger sigma",
    statement="GAL decreases as sigma increases and decays faster than any power of d for every sigma > 0.",
    published=""""the GAL_f becomes consistently smaller as sigma increases. Moreover, from the plot the decay seems
    super-polynomially small for all sigma > 0" (Appendix E.2). (Computed here: at d=13 1.76e-4 for sigma=0.5, 1.13e-5
    for 1, 7.40e-6 for 2, 7.18e-6 for Gaussian weights.)""",
)
class Fig6(Threshold):
    """GAL(sigma, d) of a threshold neuron for larger sigma, and for normal weights."""

    SIGMAS = (0, 0.2, 0.5, 1, 2, 5, GAUSSIAN)
    sampled = size(quick=[7, 13], full=[5, 7, 9, 11, 13], label="d sampled")
    draws = size(quick=4000, full=20_000)

    falls = holds("ln GAL(sigma, 13), largest rise over sigma in 0, 0.2, 0.5, 1", "< 0")
    apart = holds("sampled 95 % intervals of GAL(sigma, 13) do not overlap, same sigma", "smallest distance > 0")
    slope = at_most("log-linear slope, sigma = 1, odd d from 7 to 15", -0.5)
    normal = between("fall of ln GAL per dimension from d = 29 to 61, Gaussian", 0.65, 0.78)

    def judge(self, got: tuple[Kept, Kept]) -> Findings:
        found = self.curves(got)
        rise = float(max(np.diff([found.exact[sigma][13].log for sigma in (0, 0.2, 0.5, 1)])))
        ends = [(value - half, value + half) for value, half in (found.estimates[s][13] for s in (0, 0.2, 0.5, 1))]
        apart = min(above[0] - below[1] for above, below in pairwise(ends))
        normal = found.exact[GAUSSIAN]
        checks = [
            self.falls(rise < 0, rise),
            self.apart(apart > 0, apart),
            self.slope(found.slope(1, range(7, 16, 2)).slope),
            self.normal((normal[29].log - normal[61].log) / 32),
        ]
        numbers = {f"GAL({sigma}, 13)": found.exact[sigma][13].value for sigma in (0.5, 1, 2, GAUSSIAN)}
        numbers |= {f"GAL(Gaussian, {d})": normal[d].value for d in (21, 61)}
        return Findings(checks, found.rows, numbers | found.agreement, NOTE)

    def draw(self, got: tuple[Kept, Kept]) -> Any:
        return self.curves(got).draw({"$2^{-d}$": (self.d, [2.0**-d for d in self.d])}, (5, 25), 1e-33)


@claim(
    "abbe2024.thm9",
    where="Theorem 9 / Theorem 10",
    kind="exact",
    title="Perturbed Rademacher with large constant sigma has exponentially small alignment",
    statement="There is sigma_0 such that GAL(sigma,d) <= exp(-C d) for sigma >= sigma_0.",
    published=""""for sigma >= sigma_0, it holds GAL(sigma, d) <= exp(-C d)" (Theorem 9), sigma_0 and C not given.
    (Computed here: 0.71 to 0.74 per dimension for sigma >= 1 and d from 7 to 25.)""",
)
class Thm9(Threshold):
    """ln GAL(sigma, d) against odd d for constant sigma, beside the rate c(sigma) at which it falls in the end."""

    SIGMAS = (1, 2, 5, 10)
    sampled = size(quick=[5, 7, 9, 11], full=[5, 7, 9, 11, 13], label="d sampled")
    draws = size(quick=2000, full=20_000)

    slope = at_most("log-linear slope, sigma = {sigma}, odd d from 7 to 25", -0.6)
    straight = at_least("its R^2, sigma = {sigma}", 0.99)

    @functools.cached_property
    def rates(self) -> dict[float | str, float]:
        return {sigma: alignment_rate(weights(sigma)).rate for sigma in self.SIGMAS}

    def judge(self, got: tuple[Kept, Kept]) -> Findings:
        found = self.curves(got)
        lines = {sigma: found.slope(sigma, range(7, 26, 2)) for sigma in self.SIGMAS}
        checks = []
        for sigma in (2, 5):
            checks += [self.slope(lines[sigma].slope, sigma=sigma), self.straight(lines[sigma].r2, sigma=sigma)]
        numbers = {f"slope, sigma = {sigma}, odd d from 7 to 25": line.slope for sigma, line in lines.items()}
        numbers |= {f"slope, sigma = {sigma}, odd d from 61 to 101": found.slope(sigma, range(61, 102, 2)).slope
                    for sigma in self.SIGMAS}
        numbers |= {f"limit of the slope, sigma = {sigma}": -rate for sigma, rate in self.rates.items()}
        note = "exact integrals throughout; the paper's estimator agrees (share of its intervals below)"
        return Findings(checks, found.rows, numbers | found.agreement, note)

    def draw(self, got: tuple[Kept, Kept]) -> Any:
        curves = {name(sigma): (self.d[1:], -np.diff(logs(list(found.values()))) / np.diff(self.d))
                  for sigma, found in self.curves(got).exact.items()}
        laws = {f"limit, $\\sigma$ = {sigma}": ([self.d[0], self.d[-1]], [self.rates[sigma]] * 2) for sigma in (1, 2)}
        laws["bound asked for"] = ([7, 25], [0.6, 0.6])
        return decay_plot(curves, "fall of ln GAL per dimension", laws, log="")
