"""Gradient flow of the disjoint-PolyNet: Theorem 7, Corollaries 11 and 12, Lemmas 5 and 6."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from paritylab.claims.lab import Lab
from paritylab.claims.registry import reproduces
from paritylab.claims.verdicts import Outcome, at_least, at_most, between, holds
from paritylab.papers.barak2022 import disjoint_figures as figures
from paritylab.papers.barak2022.common import Floats, bootstrap, median
from paritylab.papers.barak2022.disjoint import gaussian_starts, positive
from paritylab.theory import disjoint, flow

FLOW_BLOCKS = [21, 51, 101, 201, 401, 1001, 2001]
SIGN_BLOCKS = [101, 201, 401, 1001, 2001, 4001]
FAR = (1.5, 3.0, 10.0)


@reproduces("barak2022.thm7-gradient-flow")
def flow_from_ones(lab: Lab) -> Outcome:
    """The share of the time until zero error that gradient flow spends above 49 % error, from all-ones weights."""
    blocks = FLOW_BLOCKS
    data, checks, deviations = [], [], []
    for k in (3, 4, 5):
        rest = 1 - np.array([flow.plateau(np.ones((k, block))).fraction for block in blocks])
        scaled = rest * np.array(blocks) ** (k / 2 - 1)
        large = scaled[np.array(blocks) >= 101]
        checks += [
            between(f"slope of log(1 - T(.49)/T(0)) on log n', k = {k}", slope(blocks, rest), 0.8 - k / 2, 1.2 - k / 2),
            at_most(f"max/min of n'^(k/2-1) (1 - ratio) over n' >= 101, k = {k}", large.max() / large.min(), 4),
        ]
        data += [{"k": k, "block": b, "rest": float(r), "scaled": float(s)}
                 for b, r, s in zip(blocks, rest, scaled, strict=True)]
        times = np.linspace(0.1, 0.9, 9) / (k - 2)
        simulated = [flow.runge_kutta(np.ones(k), time, 2000)[0] for time in times]
        deviations.append(np.max(np.abs(simulated / flow.ones_path(k, times) - 1)))
    figure = figures.rest({f"k = {k}": [row for row in data if row["k"] == k] for k in (3, 4, 5)})
    numbers = {"largest relative deviation of v(t) from Runge-Kutta": float(max(deviations))}
    return Outcome(checks, data, figure, numbers)


@reproduces("barak2022.cor11")
def flow_from_signs(lab: Lab) -> Outcome:
    """The same for random signs with a positive product, and for errors of 1/2 - gamma."""
    blocks, gammas = SIGN_BLOCKS, (0.2, 0.1, 0.05, 0.01)
    data, slopes = [], []
    for k in (3, 4):
        for block in blocks:
            start = positive(lab.rng(11, k, block).choice([-1.0, 1.0], (k, block)))
            rests = [1 - flow.plateau(start, gamma).fraction for gamma in gammas]
            data += [{"k": k, "block": block, "gamma": gamma, "rest": rest,
                      "scaled": rest * block ** (k / 2 - 1) * gamma ** (1 - 2 / k)}
                     for gamma, rest in zip(gammas, rests, strict=True)]
        last = [row["rest"] for row in data if row["k"] == k and row["block"] == blocks[-1]]
        slopes.append(between(f"slope of log(1 - ratio) on log gamma, n' = {blocks[-1]}, k = {k}",
                              slope(gammas, last), 2 / k - 1.2, 2 / k - 0.8))
    largest = max(row["scaled"] for row in data)
    checks = [at_most("largest (1 - ratio) n'^(k/2-1) gamma^(1-2/k)", largest, 10), *slopes]
    return Outcome(checks, data, figures.gammas(data))


@reproduces("barak2022.cor12")
def flow_from_gaussians(lab: Lab) -> Outcome:
    """The same for Gaussian weights with a positive product of relevant weights."""
    blocks = (50, 200, 1000)
    draws = lab.pick("draws", quick=50, full=200)
    data, checks, shown = [], [], {}
    for k in (3, 4):
        rests: dict[int, Floats] = {}
        for block in blocks:
            starts = gaussian_starts(lab.rng(12, k, block), draws, k, block)
            key = {"k": k, "block": block, "draws": draws}
            rests[block] = lab.kept_old("gaussian-flow", key, partial(flowed, starts))["rest"]
        medians = [median(rest) for rest in rests.values()]
        interval = bootstrap(lambda *samples: slope(blocks, [median(sample) for sample in samples]), *rests.values(),
                             rng=lab.rng(13, k))
        checks += [
            holds(f"median T(.49)/T(0) increases with n', k = {k}", bool(np.all(np.diff(medians) < 0)),
                  " < ".join(f"{1 - rest:.3f}" for rest in medians)),
            between(f"slope of log median(1 - ratio) on log n', k = {k}", slope(blocks, medians), 0.65 - k / 2,
                    1.35 - k / 2, interval),
        ]
        shown[f"k = {k}"] = [dict(zip(("block", "low", "rest", "high"), (block, *np.quantile(rest, [0.25, 0.5, 0.75])),
                                      strict=True)) | {"k": k} for block, rest in rests.items()]
        data += [{"k": k, "block": block, "draw": i, "rest": float(value)}
                 for block, rest in rests.items() for i, value in enumerate(rest)]
    return Outcome(checks, data, figures.rest(shown))


@reproduces("barak2022.lemma5")
def blow_up_times(lab: Lab) -> Outcome:
    """Both bounds on the times of relevant weights, for random starts and every weight, beside Runge-Kutta."""
    draws = lab.pick("draws", quick=100, full=1000)
    data, shown = [], {}
    for k in (3, 4, 6):
        for law in ("gaussian", "uniform"):
            rng = lab.rng(51, k, law == "uniform")
            raw = rng.standard_normal((draws, k)) if law == "gaussian" else rng.uniform(0.2, 2, (draws, k))
            starts = np.abs(raw)  # the signs of a positive product change nothing
            margins = np.array([[bound_margins(start, far) for far in FAR] for start in starts])
            drift, difference = follow(starts)
            data.append({"k": k, "law": law, "smallest T/lower": float(margins[..., 0].min()),
                         "smallest upper/rest": float(margins[..., 1].min()),
                         "violations": int((margins < 1 - 1e-9).sum()), "drift": drift, "difference": difference})
            shown.setdefault(f"k = {k}", []).append(margins.reshape(-1, 2))
    deviation = max(np.abs(bound_margins(np.full(k, value), far) - 1).max()
                    for k in (3, 4, 6) for value in (0.3, 1.0, 2.0) for far in FAR)
    checks = [
        at_most("violations of the two inequalities beyond 1e-9", sum(row["violations"] for row in data), 0),
        at_most("relative deviation from equality for equal starts", float(deviation), 1e-8),
        at_most("change of v_i^2 - v_j^2 along Runge-Kutta", max(row["drift"] for row in data), 1e-6),
    ]
    numbers = {"relative difference of b and Runge-Kutta's v at T(b)": max(row["difference"] for row in data)}
    figure = figures.margins({name: np.concatenate(parts) for name, parts in shown.items()})
    return Outcome(checks, data, figure, numbers)


@reproduces("barak2022.lemma6")
def error_from_weights(lab: Lab) -> Outcome:
    """The exact error beside its bounds, as printed and as corrected."""
    data: list[dict[str, Any]] = []
    for k in (3, 4):
        for block in (10, 20, 50, 100, 200):
            rng = lab.rng(61, k, block)
            for law, u in (("signs", rng.choice([-1.0, 1.0], (k, block))), ("gaussian", rng.normal(size=(k, block)))):
                sums, norms = disjoint.laws(u[:, 1:]), np.linalg.norm(u[:, 1:], axis=1)
                for ratio in np.arange(4, 33) / 8:
                    weights = np.column_stack([ratio * norms, u[:, 1:]])
                    bounds = disjoint.error_bounds(weights), disjoint.error_bounds(weights, printed=True)
                    (low, high), (printed_low, printed_high) = ((float(a), float(b)) for a, b in bounds)
                    data.append({"k": k, "block": block, "u": law, "ratio": float(ratio), "low": low, "high": high,
                                 "error": disjoint.block_error(weights[:, 0], sums), "printed low": printed_low,
                                 "printed high": printed_high})
    broken = [row for row in data if not row["low"] <= row["error"] <= row["high"]]
    at_three = [row for row in data if row["ratio"] == 3]
    over = [row for row in at_three if row["error"] > row["printed high"]]
    checks = [
        at_most(f"violations of the corrected bounds in {len(data)} configurations", len(broken), 0),
        at_least(f"violations of the printed upper bound in {len(at_three)} at v/||u|| = 3", len(over), 1),
    ]
    shown = [row for row in data if (row["k"], row["block"], row["u"]) == (3, 50, "signs")]
    known = next(row for row in shown if row["ratio"] == 3)
    untied = np.column_stack([np.full(3, 21.3), np.ones((3, 49))])
    numbers = {
        "error at v = 21, ||u|| = 7 (a tie), n' = 50, k = 3": known["error"],
        "printed upper bound there": known["printed high"],
        "error at v = 21.3": float(disjoint.error(untied)),
        "printed upper bound at v = 21.3": float(disjoint.error_bounds(untied, printed=True)[1]),
        "violations of the printed lower bound": float(sum(row["error"] < row["printed low"] for row in data)),
    }
    return Outcome(checks, data, figures.bounds(shown), numbers)


# --- parts ------------------------------------------------------------------------------------------------------


def slope(x: Sequence[float] | Floats, y: Sequence[float] | Floats) -> float:
    """Of log y on log x by least squares."""
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def flowed(starts: Floats) -> dict[str, Floats]:
    return {"rest": np.array([1 - flow.plateau(start).fraction for start in starts])}


def bound_margins(start: Floats, far: float) -> Floats:
    """For each weight and b = far max|v|: T_i(b) / its lower bound, and the upper bound of what is left / that."""
    b = far * float(start.max())
    margins = np.empty((len(start), 2))
    for i, own in enumerate(start):
        rise = b**2 - float(own) ** 2
        lower, upper = flow.blow_up_bounds(start, i, b)
        left = flow.rise_time(np.sqrt(start**2 + rise), math.inf)
        margins[i] = flow.rise_time(start, rise) / lower, upper / left
    return margins


def follow(starts: Floats, stages: int = 40) -> tuple[float, float]:
    """Runge-Kutta of starts (draws, k) to b = 10 max|v|, in stages whose lengths are quadratures.

    The largest change of v_i^2 - v_j^2, and the largest relative difference from the v that the quadratures assume.
    """
    state = expected = starts
    drift = difference = 0.0
    rises = np.geomspace(0.01 * starts.min(1) ** 2, 99 * starts.max(1) ** 2, stages)
    for rise, more in zip(rises, np.diff(rises, axis=0, prepend=0), strict=True):
        times = [flow.rise_time(v, float(by)) for v, by in zip(expected, more, strict=True)]
        state, expected = flow.runge_kutta(state, np.array(times)[:, None], 100), np.sqrt(starts**2 + rise[:, None])
        drift = max(drift, float(np.ptp(state**2 - starts**2, axis=1).max()))
        difference = max(difference, float(np.abs(state / expected - 1).max()))
    return drift, difference
