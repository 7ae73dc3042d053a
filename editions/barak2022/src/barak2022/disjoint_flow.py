"""Gradient flow of the disjoint-PolyNet: Theorem 7, Corollaries 11 and 12, Lemmas 5 and 6."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import special

from barak2022 import disjoint_figures as figures
from barak2022.common import median, ratio_of_medians
from barak2022.disjoint import gaussian_starts, positive
from barak2022.theory import disjoint, flow
from paritylab.aliases import Arrays, Floats
from paritylab.claims import Findings, Lab, Trial, at_least, at_most, between, claim, computation, rng, size
from paritylab.claims.intervals import bootstrap

FLOW_BLOCKS = [21, 51, 101, 201, 401, 1001, 2001]
SIGN_BLOCKS = [101, 201, 401, 1001, 2001, 4001]
GAUSSIAN_BLOCKS = [50, 200, 1000]
GAMMAS = [0.2, 0.1, 0.05, 0.01]
FAR = (1.5, 3.0, 10.0)
Rows = list[dict[str, Any]]


@claim(
    "barak2022.thm7-gradient-flow",
    where="Theorem 7; Section 4.2",
    kind="exact",
    title="Gradient flow spends almost all time above 49% error",
    statement="""For the disjoint-PolyNet with all-ones start, v(t) = (1-(k-2)t)^(-1/(k-2)) and T(.49)/T(0) = 1 -
    O(n'^(1-k/2)).""",
    published="""T(.49)/T(0) = 1 - O(n'^(1-k/2)) (Theorem 7); n'^(k/2-1) (1 - T(.49)/T(0)) lies between 1.5 and 12 on
    this grid (computed here).""",
)
class Thm7GradientFlow(Trial):
    """The share of the time until zero error that gradient flow spends above 49 % error, from all-ones weights."""

    slope = between("slope of log(1 - T(.49)/T(0)) on log n', k = {k}", "0.8 - k/2", "1.2 - k/2")
    bounded = at_most("max/min of n'^(k/2-1) (1 - ratio) over n' >= 101, k = {k}", 4)

    degrees = (3, 4, 5)

    def work(self, lab: Lab) -> list[Arrays]:
        return lab.compute_each(flowed_from_ones, [{"k": k, "blocks": FLOW_BLOCKS} for k in self.degrees])

    def rows(self, got: list[Arrays]) -> Rows:
        return [{"k": k, "block": block, "rest": float(rest), "scaled": float(rest * block ** (k / 2 - 1))}
                for k, found in zip(self.degrees, got, strict=True)
                for block, rest in zip(FLOW_BLOCKS, found["rest"], strict=True)]

    def judge(self, got: list[Arrays]) -> Findings:
        rows, checks = self.rows(got), []
        for k, found in zip(self.degrees, got, strict=True):
            large = [row["scaled"] for row in rows if row["k"] == k and row["block"] >= 101]
            checks += [self.slope(slope(FLOW_BLOCKS, found["rest"]), low=0.8 - k / 2, high=1.2 - k / 2, k=k),
                       self.bounded(max(large) / min(large), k=k)]
        deviation = max(float(found["deviation"]) for found in got)
        return Findings(checks, rows, {"largest relative deviation of v(t) from Runge-Kutta": deviation})

    def draw(self, got: list[Arrays]) -> Any:
        return figures.rest({f"k = {k}": [row for row in self.rows(got) if row["k"] == k] for k in self.degrees})


@computation
def flowed_from_ones(seed: int, k: int, blocks: list[int]) -> dict[str, Any]:
    """1 - T(.49)/T(0) for each block, and how far v(t) is from Runge-Kutta."""
    times = np.linspace(0.1, 0.9, 9) / (k - 2)
    simulated = [flow.runge_kutta(np.ones(k), time, 2000)[0] for time in times]
    return {"rest": [1 - flow.plateau(np.ones((k, block))).fraction for block in blocks],
            "deviation": np.max(np.abs(simulated / flow.ones_path(k, times) - 1))}


@claim(
    "barak2022.cor11",
    where="Corollary 11",
    kind="exact",
    title="Same ratio for random sign initialisation and any gamma",
    statement="For +-1 initialisation with positive product, T(1/2-gamma)/T(0) = 1 - O(n'^(1-k/2) gamma^(2/k-1)).",
    published="T(1/2 - gamma)/T(0) = 1 - O(n'^(1-k/2) gamma^(2/k-1)) (Corollary 11).",
)
class Cor11(Trial):
    """The same for random signs with a positive product, and for errors of 1/2 - gamma."""

    slope = between("slope of log(1 - ratio) on log gamma, n' = {block}, k = {k}", "2/k - 1.2", "2/k - 0.8")
    cells = tuple(itertools.product((3, 4), SIGN_BLOCKS))
    bounded = at_most("largest / smallest (1 - ratio) n'^(k/2-1) gamma^(1-2/k), k = {k}", 4)

    def work(self, lab: Lab) -> list[Arrays]:
        return lab.compute_each(flowed_from_signs, [{"k": k, "block": block, "gammas": GAMMAS}
                                                    for k, block in self.cells])

    def rows(self, got: list[Arrays]) -> Rows:
        return [{"k": k, "block": block, "gamma": gamma, "rest": float(rest),
                 "scaled": float(rest * block ** (k / 2 - 1) * gamma ** (1 - 2 / k))}
                for (k, block), found in zip(self.cells, got, strict=True)
                for gamma, rest in zip(GAMMAS, found["rest"], strict=True)]

    def judge(self, got: list[Arrays]) -> Findings:
        rows = self.rows(got)
        scaled = {k: [row["scaled"] for row in rows if row["k"] == k] for k in (3, 4)}
        checks = [self.bounded(max(each) / min(each), k=k) for k, each in scaled.items()]
        for (k, block), found in zip(self.cells, got, strict=True):
            if block == SIGN_BLOCKS[-1]:
                checks.append(self.slope(slope(GAMMAS, found["rest"]), low=2 / k - 1.2, high=2 / k - 0.8, block=block,
                                         k=k))
        return Findings(checks, rows)

    def draw(self, got: list[Arrays]) -> Any:
        return figures.gammas(self.rows(got))


@computation
def flowed_from_signs(seed: int, k: int, block: int, gammas: list[float]) -> dict[str, Any]:
    start = positive(rng(seed, 11, k, block).choice([-1.0, 1.0], (k, block)))
    return {"rest": [1 - flow.plateau(start, gamma).fraction for gamma in gammas]}


def slope_of_medians(*samples: Any) -> float:
    return slope(GAUSSIAN_BLOCKS, [median(sample) for sample in samples])


@claim(
    "barak2022.cor12",
    where="Corollary 12",
    kind="theory",
    title="Same behaviour for Gaussian initialisation",
    statement="""With N(0,1) weights and positive product the plateau fraction tends to 1 at the same polynomial rate up
    to logarithms.""",
    published="T(1/2 - gamma)/T(0) = 1 - O~(n'^(1-k/2) gamma^(2/k-1)) with probability 1 - 1/poly(n') (Corollary 12).",
)
class Cor12(Trial):
    """The same for Gaussian weights with a positive product of relevant weights."""

    slope = between("slope of log median(1 - ratio) on log n', k = {k}", "0.65 - k/2", "1.35 - k/2")
    degrees = (3, 4)
    draws = size(quick=100, full=1000)
    increases = at_least("median of 1 - T(.49)/T(0) at n' = {block} / at n' = {next}, k = {k}", 1.0)

    def work(self, lab: Lab) -> list[Arrays]:
        return lab.compute_each(flowed_from_gaussians, [{"k": k, "block": block, "draws": self.draws}
                                                        for k in self.degrees for block in GAUSSIAN_BLOCKS])

    def rests(self, got: list[Arrays]) -> dict[int, dict[int, Floats]]:
        """For each k and block, 1 - T(.49)/T(0) of the draws."""
        found = iter(got)
        return {k: {block: next(found)["rest"] for block in GAUSSIAN_BLOCKS} for k in self.degrees}

    def judge(self, got: list[Arrays]) -> Findings:
        checks, rows = [], []
        for k, rests in self.rests(got).items():
            for block, wider in itertools.pairwise(GAUSSIAN_BLOCKS):
                pair = rests[block], rests[wider]
                interval = bootstrap(ratio_of_medians, *pair, rng=self.rng(12, k, block))
                checks.append(self.increases(ratio_of_medians(*pair), interval, k=k, block=block, next=wider))
            interval = bootstrap(slope_of_medians, *rests.values(), rng=self.rng(13, k))
            checks.append(self.slope(slope_of_medians(*rests.values()), interval, low=0.65 - k / 2, high=1.35 - k / 2,
                                     k=k))
            rows += [{"k": k, "block": block, "draw": i, "rest": float(value)}
                     for block, rest in rests.items() for i, value in enumerate(rest)]
        return Findings(checks, rows)

    def draw(self, got: list[Arrays]) -> Any:
        names = ("block", "low", "rest", "high")
        return figures.rest({
            f"k = {k}": [{"k": k} | dict(zip(names, (block, *np.quantile(rest, [0.25, 0.5, 0.75])), strict=True))
                         for block, rest in rests.items()] for k, rests in self.rests(got).items()})


@computation
def flowed_from_gaussians(seed: int, k: int, block: int, draws: int) -> dict[str, Any]:
    starts = gaussian_starts(rng(seed, 12, k, block), draws, k, block)
    return {"rest": [1 - flow.plateau(start).fraction for start in starts]}


@claim(
    "barak2022.lemma5",
    where="Lemma 5",
    kind="exact",
    title="Bounds on blow-up times of the relevant weights",
    statement="""Relevant weights share q(t) = v_i^2 - v_i(0)^2; T_i(b) >= (va^(1-k/2) - (va + b^2 -
    v_i(0)^2)^(1-k/2))/(k-2) and T_i(inf) - T_i(b) <= (vg + b^2 - v_i(0)^2)^(1-k/2)/(k-2), with va, vg the arithmetic
    and geometric means of v_i(0)^2.""",
    published="Both inequalities (Lemma 5); equality when all |v_i(0)| are equal (computed here).",
)
class Lemma5(Trial):
    """Both bounds on the times of relevant weights, for random starts and every weight, beside Runge-Kutta."""

    draws = size(quick=100, full=1000)

    violations = at_most("violations of the two inequalities beyond 1e-9", 0)
    equality = at_most("relative deviation from equality for equal starts", 1e-8)
    conserved = at_most("change of v_i^2 - v_j^2 along Runge-Kutta", 1e-6)

    cells = tuple(itertools.product((3, 4, 6), ("gaussian", "uniform")))

    def work(self, lab: Lab) -> list[Arrays]:
        return lab.compute_each(blow_ups, [{"k": k, "law": law, "draws": self.draws} for k, law in self.cells])

    def judge(self, got: list[Arrays]) -> Findings:
        rows = [{"k": k, "law": law, "smallest T/lower": float(found["margins"][..., 0].min()),
                 "smallest upper/rest": float(found["margins"][..., 1].min()),
                 "violations": int((found["margins"] < 1 - 1e-9).sum()), "drift": float(found["drift"]),
                 "difference": float(found["difference"])} for (k, law), found in zip(self.cells, got, strict=True)]
        deviation = max(np.abs(bound_margins(np.full(k, value), far) - 1).max()
                        for k in (3, 4, 6) for value in (0.3, 1.0, 2.0) for far in FAR)
        checks = [self.violations(sum(row["violations"] for row in rows)), self.equality(float(deviation)),
                  self.conserved(max(row["drift"] for row in rows))]
        largest = max(row["difference"] for row in rows)
        return Findings(checks, rows, {"relative difference of b and Runge-Kutta's v at T(b)": largest})

    def draw(self, got: list[Arrays]) -> Any:
        shown: dict[str, list[Floats]] = {}
        for (k, _), found in zip(self.cells, got, strict=True):
            shown.setdefault(f"k = {k}", []).append(found["margins"].reshape(-1, 2))
        return figures.margins({name: np.concatenate(parts) for name, parts in shown.items()})


@computation
def blow_ups(seed: int, k: int, law: str, draws: int) -> dict[str, Any]:
    """Margins of both bounds (draws, far, weights, 2), and what Runge-Kutta says."""
    generator = rng(seed, 51, k, law == "uniform")
    raw = generator.standard_normal((draws, k)) if law == "gaussian" else generator.uniform(0.2, 2, (draws, k))
    starts = np.abs(raw)  # the signs of a positive product change nothing
    drift, difference = follow(starts)
    return {"margins": [[bound_margins(start, far) for far in FAR] for start in starts], "drift": drift,
            "difference": difference}


def needed_constant(row: dict[str, Any]) -> float:
    """The smallest c with which Lemma 6's lower bound holds for k equal blocks of signs.

    >>> round(needed_constant({"k": 3, "block": 5, "ratio": 1.0, "error": 0.5}), 2)
    -5.46
    """
    others = row["block"] - 1
    gap = max(1 - 2 * row["error"], 0.0) ** (1 / row["k"]) - float(special.erf(row["ratio"] / math.sqrt(2)))
    return gap * others**1.5


@claim(
    "barak2022.lemma6",
    where="Lemma 6",
    kind="exact",
    title="Error of a disjoint-PolyNet from its weights",
    statement="""The error equals the probability that an odd number of blocks is overruled, 1/2 - 1/2 prod_i P(|u_i.z|
    <= |v_i|) up to ties; it is sandwiched by an erf product with a Berry-Esseen correction and an exponential tail
    bound.""",
    published="""Both bounds (Lemma 6). The printed upper one is violated: n' = 50, k = 3, v = 21 has an error of
    5.7e-3, ties counted, against 7.4e-4 (computed here).""",
)
class Lemma6(Trial):
    """The exact error beside its bounds, as printed and as corrected."""

    corrected = at_most("violations of the corrected bounds in {configurations} configurations", 0,
                        part="corrected bounds")
    printed = at_most("violations of the printed upper bound in {configurations} configurations", 0,
                      part="upper bound as printed")
    constant = at_most("constant that the printed lower bound needs at n' = 200 / at n' = 20, k = {k}", 2,
                       part="lower bound as printed")

    def work(self, lab: Lab) -> None:
        return None

    @functools.cached_property
    def rows(self) -> Rows:
        rows: Rows = []
        for k, block in itertools.product((3, 4), (10, 20, 50, 100, 200)):
            generator = self.rng(61, k, block)
            laws = {"signs": generator.choice([-1.0, 1.0], (k, block)), "gaussian": generator.normal(size=(k, block))}
            for law, u in laws.items():
                sums, norms = disjoint.laws(u[:, 1:]), np.linalg.norm(u[:, 1:], axis=1)
                for ratio in np.arange(4, 33) / 8:
                    weights = np.column_stack([ratio * norms, u[:, 1:]])
                    bounds = disjoint.error_bounds(weights), disjoint.error_bounds(weights, printed=True)
                    (low, high), (printed_low, printed_high) = ((float(a), float(b)) for a, b in bounds)
                    rows.append({"k": k, "block": block, "u": law, "ratio": float(ratio), "low": low, "high": high,
                                 "error": disjoint.block_error(weights[:, 0], sums), "printed low": printed_low,
                                 "printed high": printed_high})
        return rows

    @property
    def shown(self) -> Rows:
        """One network."""
        return [row for row in self.rows if (row["k"], row["block"], row["u"]) == (3, 50, "signs")]

    def judge(self, got: None) -> Findings:
        broken = sum(not row["low"] <= row["error"] <= row["high"] for row in self.rows)
        over = sum(row["error"] > row["printed high"] for row in self.rows)
        needed = {key: max(map(needed_constant, rows)) for key, rows in itertools.groupby(
            (row for row in self.rows if row["u"] == "signs"), key=lambda row: (row["k"], row["block"]))}
        checks = [self.corrected(broken, configurations=len(self.rows)),
                  self.printed(over, configurations=len(self.rows)),
                  *(self.constant(needed[k, 200] / needed[k, 20], k=k) for k in (3, 4))]
        numbers = {f"constant that the printed lower bound needs, n' = {block}, k = {k}": value
                   for (k, block), value in needed.items()}
        return Findings(checks, self.rows, numbers)

    def draw(self, got: None) -> Any:
        return figures.bounds(self.shown)


# --- parts ------------------------------------------------------------------------------------------------------


def slope(x: Sequence[float] | Floats, y: Sequence[float] | Floats) -> float:
    """Of log y on log x by least squares."""
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


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
