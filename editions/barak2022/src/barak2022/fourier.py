"""Fourier gaps and what they reveal: Figures 11 and 12, Proposition 5."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from scipy import stats

from barak2022.common import median
from paritylab import SGD, Learner, Neuron, Parity, Setup, plots
from paritylab.aliases import Arrays, Floats
from paritylab.claims import (
    Check,
    Findings,
    Lab,
    Rule,
    Trial,
    at_least,
    at_most,
    claim,
    computation,
    rng,
    size,
)
from paritylab.claims.intervals import bootstrap, share
from paritylab.engines.curves import Curves
from paritylab.measures.fourier import majority_coefficient, population_gradient
from paritylab.measures.gap import gaps, largest_gap, recover_support, sampled_gradient
from paritylab.plots import Series
from paritylab.theory.majority import coefficient_ratio, majority_gap


@dataclass(frozen=True)
class SureShare(Rule):
    """The one-sided 95 % lower bound of a share of draws is at least this."""

    bound: float = 0.0

    def __call__(self, flags: Any, **fields: Any) -> Check:  # pyright: ignore[reportIncompatibleMethodOverride]
        value, interval = share(flags)
        low = stats.binomtest(int(np.sum(flags)), len(flags), alternative="greater").proportion_ci(0.95, "exact").low
        return super().__call__(value, passed=low >= self.bound, interval=interval, certain=interval[1] < self.bound,
                                **fields)


def surely_at_least(name: str, bound: float) -> SureShare:
    return SureShare(name, f"95 % lower bound >= {bound:g}", bound=bound)


def signs(rng: np.random.Generator, *shape: int) -> Floats:
    return rng.choice(np.array([-1.0, 1.0]), shape)


# --- random weights ---------------------------------------------------------------------------------------------

LAWS = ("uniform", "Gaussian")


def random_weights(rng: np.random.Generator, law: str, draws: int, n: int) -> Floats:
    """Weights of one law; those of the first are drawn before those of the other."""
    drawn = {"uniform": rng.uniform(-1, 1, (draws, n)), "Gaussian": rng.normal(size=(draws, n))}
    return drawn[law]


class RandomGaps(Trial):
    """Gaps of neurons with random weights, for degrees and laws of weights."""

    n = size(15)

    def cells(self, degrees: Any, got: list[Arrays]) -> Iterator[tuple[Any, str, Arrays]]:
        """A degree, a law and the answer for them."""
        for (k, law), found in zip(itertools.product(degrees, LAWS), got, strict=True):
            yield k, law, found


@claim(
    "barak2022.fig11",
    where="Figure 11; Appendix C.1",
    kind="exact",
    title="Fourier gaps of random LTFs at n=15",
    statement="""For ReLU neurons with i.i.d. uniform or Gaussian weights the gap Gamma between the largest relevant and
    the largest irrelevant population-gradient coordinate is positive and of the size of the majority gap with
    non-negligible probability.""",
    published="""'the Fourier gap is comparable to that of majority with non-negligible probability' (Appendix C.1); no
    numbers.""",
)
class Fig11(RandomGaps):
    """Gaps of ReLU neurons with random weights and no bias, beside those of neurons with sign weights."""

    k = size([2, 3, 4, 5])
    draws = size(quick=2000, full=10_000)

    zero = at_most("largest |g_i|, k = {k}, {law} weights", 1e-12)
    positive = surely_at_least("P(gap > 0), k = {k}, {law} weights", 0.5)
    large = surely_at_least("P(gap >= majority gap / 2), k = {k}, {law} weights", 0.1)

    def work(self, lab: Lab) -> list[Arrays]:
        return lab.compute_each(threshold_gaps, [{"n": self.n, "k": k, "law": law, "draws": self.draws}
                                                 for k, law in itertools.product(self.k, LAWS)])

    def judge(self, got: list[Arrays]) -> Findings:
        checks, rows = [], []
        for k, law, found in self.cells(self.k, got):
            if k % 2:
                checks.append(self.zero(float(found["largest"]), k=k, law=law))
            else:
                checks += [self.positive(found["gap"] > 0, k=k, law=law),
                           self.large(found["gap"] >= majority_gap(self.n, k) / 2, k=k, law=law)]
            rows += [{"k": k, "law": law, "draw": i, "gap": float(gap)} for i, gap in enumerate(found["gap"])]
        return Findings(checks, rows)

    def draw(self, got: list[Arrays]) -> plots.Figure:
        return gap_histograms(self.n, [cell for cell in self.cells(self.k, got) if cell[0] % 2 == 0])


@computation
def threshold_gaps(seed: int, n: int, k: int, law: str, draws: int) -> dict[str, Any]:
    """The gap of each neuron, and the largest coordinate of any gradient."""
    gradients = population_gradient(random_weights(rng(seed, 11), law, draws, n), range(k)).weights
    return {"gap": largest_gap(gradients, range(k)), "largest": np.abs(gradients).max()}


@claim(
    "barak2022.fig12-left",
    where="Figure 12 (left); Appendix C.1",
    kind="exact",
    title="Sinusoidal activations also have Fourier gaps",
    statement="""Replacing the threshold by a sinusoid keeps gaps of comparable size in the exact population gradient at
    random initialisation.""",
    published="""'In these small cases, they are comparable to the Fourier gaps of majority' (Figure 12, caption); no
    numbers.""",
)
class Fig12Left(RandomGaps):
    """The same with the derivative function sin(w.x / sqrt n), or cos where k is odd, by a product formula."""

    draws = size(10_000)
    enumerated = size(quick=100, full=10_000, label="draws enumerated")
    positive = at_least("P(gap > 0), k = {k}, {law} weights", 0.5)
    formula = at_most("product formula - enumeration, largest difference", 1e-10)
    degrees = (2, 3, 4)
    large = at_least("P(gap >= majority gap / 2), k = {k}, {law} weights", 0.1)

    def work(self, lab: Lab) -> list[Arrays]:
        return lab.compute_each(sinusoid_gaps, [
            {"n": self.n, "k": k, "law": law, "draws": self.draws, "enumerated": self.enumerated}
            for k, law in itertools.product(self.degrees, LAWS)])

    def judge(self, got: list[Arrays]) -> Findings:
        checks, large, rows, numbers = [], [], [], {}
        for k, law, found in self.cells(self.degrees, got):
            gap = found["gap"]
            if k % 2:
                numbers[f"P(gap > 0), k = {k}, {law} weights, cos"] = share(gap > 0)[0]
            else:
                checks.append(self.positive(*share(gap > 0), k=k, law=law))
                large.append(self.large(*share(gap >= 0.5 * majority_gap(self.n, k)), k=k, law=law))
            rows += [{"k": k, "function": "cos" if k % 2 else "sin", "law": law, "draw": i, "gap": float(value)}
                     for i, value in enumerate(gap)]
        checks.append(self.formula(max(float(found["deviation"]) for found in got)))
        return Findings([*checks, *large], rows, numbers)

    def draw(self, got: list[Arrays]) -> plots.Figure:
        return gap_histograms(self.n, list(self.cells(self.degrees, got)))


@computation
def sinusoid_gaps(seed: int, n: int, k: int, law: str, draws: int, enumerated: int) -> dict[str, Any]:
    """The gap of each neuron, and how far the product formula is from enumeration for the first of them."""
    wave, shift = (np.cos, 0.0) if k % 2 else (np.sin, -math.pi / 2)
    scaled = random_weights(rng(seed, 12), law, draws, n) / math.sqrt(n)
    gradients = population_gradient(scaled, range(k), shift, "sinusoid").weights
    by_sum = population_gradient(scaled[:enumerated], range(k), 0.0, wave).weights
    return {"gap": largest_gap(gradients, range(k)), "deviation": np.abs(gradients[:enumerated] - by_sum).max()}


@plots.styled
def gap_histograms(n: int, cells: Sequence[tuple[int, str, Mapping[str, Floats]]]) -> plots.Figure:
    """A panel for each k, the central 99 % of the draws; dashed: the majority's gap, which there is for even k."""
    shown = {k: {law: found["gap"] for other, law, found in cells if other == k} for k, _, _ in cells}
    figure = plots.blank(0.6 + 0.95 * len(shown))
    panels = figure.subplots(len(shown), 1, squeeze=False)[:, 0]
    for axes, (k, laws) in zip(panels, shown.items(), strict=True):
        ends = np.quantile(np.concatenate(list(laws.values())), (0.005, 0.995))
        edges = np.linspace(ends[0], ends[1], 61)
        for (law, values), colour, line in zip(laws.items(), plots.COLOURS, plots.LINES, strict=False):
            axes.stairs(np.histogram(values, edges)[0] / len(values), edges, color=colour, linestyle=line,
                        linewidth=0.9, label=f"{law} weights")
        axes.axvline(0, color=plots.GREY, linewidth=0.5)
        if k % 2 == 0:
            axes.axvline(majority_gap(n, k), color=plots.COLOURS[3], linestyle="dashed", linewidth=0.9,
                         label="majority")
        axes.annotate(f"k = {k}", (0.98, 0.85), xycoords="axes fraction", ha="right", va="top", fontsize=7)
        axes.set(ylim=(0, None))
    panels[-1].set_xlabel(f"gap of the population gradient, n = {n}")
    figure.supylabel("fraction of draws", fontsize=8)
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=3, columnspacing=1.2)
    return figure


@plots.styled
def beside_majority(got: Curves, found: Floats, majority: float) -> plots.Figure:
    """The first ten runs, and the gap of majority."""
    figure = gap_paths(got.steps, found[:10], got.first()[:10])
    axes = figure.axes[0]
    axes.axhline(majority, color=plots.COLOURS[3], linestyle="dashed", linewidth=0.9, label="majority")
    axes.legend(loc="upper right")
    return figure


# --- along the path of SGD --------------------------------------------------------------------------------------


@claim(
    "barak2022.fig12-right",
    where="Figure 12 (right); Appendix C.1",
    kind="empirical",
    title="SGD amplifies the Fourier gap of a sinusoidal neuron",
    statement="""Along the SGD path of a sinusoidal neuron the gap starts positive, somewhat under the majority value,
    and grows during training.""",
    published="""'consistently positive at initialization, but somewhat smaller than that of majority'; 'it amplifies
    through the course of training' (Figure 12, caption).""",
)
class Fig12Right(Trial):
    """The exact gap of a sinusoidal neuron's population gradient, every 20 steps of SGD."""

    n = size(15)
    k = size(4)
    units = size({"sin(z)": 2 / math.pi, "sin(pi z / 2)": 1.0}, label="activation, z in units of 2/pi")
    steps = size(quick=4000, full=10_000)
    runs = size(quick=20, full=100)
    positive = at_least("share of runs with a gap > 0 at the start", 0.9, part="{unit}")
    smaller = at_most("median gap at the start / gap of majority", 1, part="{unit}")
    doubled = at_least("share of runs with a gap twice that at the start by t_c", 0.9, part="{unit}")

    def work(self, lab: Lab) -> Any:
        setups = [Setup(Parity(self.n, self.k), Learner(Neuron(self.spec(unit)), optimiser=SGD(0.03)))
                  for unit in self.units]
        return lab.curves_each(setups, self.steps, 50, self.runs, weights=True)

    def judge(self, got: Any) -> Findings:
        checks, numbers, data = [], {}, []
        for place, (unit, curves) in enumerate(zip(self.units, cast("list[Curves]", got), strict=True)):
            found, solved = self.gaps(unit, curves), curves.first()
            until = np.where(solved < 0, self.steps, solved)
            largest = np.array([gap[curves.steps <= end].max() for gap, end in zip(found, until, strict=True)])
            relative = found[:, 0] / majority_gap(self.n, self.k)
            checks += [self.positive(*share(found[:, 0] > 0), unit=unit),
                       self.smaller(median(relative), bootstrap(median, relative, rng=self.rng(place)), unit=unit),
                       self.doubled(*share(largest >= 2 * found[:, 0]), unit=unit)]
            numbers |= {f"median gap at the start, {unit}": median(found[:, 0]),
                        f"median largest gap by t_c, {unit}": median(largest),
                        f"runs solved, {unit}": float(np.sum(solved >= 0))}
            data += [{"unit": unit, "run": run, "step": int(step), "gap": float(gap),
                      "t_c": int(end) if end >= 0 else None}
                     for run, end in enumerate(solved) for step, gap in zip(curves.steps, found[run], strict=True)]
        return Findings(checks, data, numbers)

    def draw(self, got: Any) -> plots.Figure:
        return beside_majority(got[0], self.gaps(next(iter(self.units)), got[0]), majority_gap(self.n, self.k))

    def spec(self, unit: str) -> str:
        """The activation with the shift for k."""
        return f"sinusoid:{self.k},{self.units[unit]!r}"

    def gaps(self, unit: str, got: Curves) -> Floats:
        """The gap of each run at each recorded step."""
        layer = got.weights[0]
        return gaps(layer["w"][..., 0], range(self.k), layer["b"][..., 0], self.spec(unit))


@plots.styled
def gap_paths(steps: Any, found: Floats, solved: Any) -> plots.Figure:
    """A line for each run; a circle where it first is right on the whole sample."""
    figure = plots.blank(2.3)
    axes = figure.add_subplot(xlabel="steps", ylabel="gap of the population gradient")
    axes.axhline(0, color=plots.GREY, linewidth=0.5)
    for number, (gap, end) in enumerate(zip(found, solved, strict=True)):
        axes.plot(steps, gap, color=plots.COLOURS[0], linewidth=0.7, alpha=0.7, label=None if number else "one run")
        place = steps == end
        axes.plot(steps[place], gap[place], "o", markersize=3.5, color=plots.COLOURS[1], fillstyle="none", zorder=3)
    axes.plot([], [], "o", markersize=3.5, color=plots.COLOURS[1], fillstyle="none", label="solved")
    axes.legend(loc="upper right")
    return figure


# --- one gradient ------------------------------------------------------------------------------------------------

PARTS = (200, 100, 50, 20, 10, 1)
"""Estimates are from B over each of these samples."""


@claim(
    "barak2022.prop5",
    where="Proposition 5; Definition 1",
    kind="theory",
    title="One sufficiently precise gradient reveals the support",
    statement="""If the derivative function has a gamma gap at S, thresholding an estimate of the population gradient
    with sup-norm error at most gamma/4 at level 3 gamma/4 returns exactly S.""",
    published="S = {i : |g_i| >= 3 gamma / 4} for every estimate within gamma / 4 (Proposition 5).",
)
class Prop5(Trial):
    """The inputs whose gradient is above 3/4 of the gap: of the exact gradient, and of estimates from B samples."""

    sampled = size(quick=[2], full=[2, 4], label="k of the estimates")
    ratio = at_most("|xi_(k+1) / xi_(k-1)|, k = {k}", 0.5, exact=True)
    exactly = at_least("S recovered from the exact gradient, k = {k}", 1.0, exact=True)
    enough = at_least("S recovered from B = {samples}, k = {k}", 0.99)
    too_few = Rule("S recovered from B/200 = {samples}, k = {k}", "< 0.5")
    degrees = (2, 4)
    n = size(21)
    draws = size(quick=100, full=400)

    def needed(self, k: int) -> float:
        """The proposition's B."""
        return 32 * math.log(2 * self.n / 0.01) / gap_of_signs(self.n, k) ** 2

    def samples(self, k: int) -> dict[int, int]:
        """For each part of B, how many samples it is."""
        return {part: math.ceil(self.needed(k) / part) for part in PARTS}

    def chunks(self, k: int, samples: int, chunk: int = 20) -> list[dict[str, int]]:
        return [{"n": self.n, "k": k, "samples": samples, "start": start, "end": min(start + chunk, self.draws)}
                for start in range(0, self.draws, chunk)]

    def work(self, lab: Lab) -> dict[tuple[int, int], list[Arrays]]:
        return {(k, part): lab.compute_each(estimated_gradients, self.some(k, part, samples))
                for k in self.sampled for part, samples in self.samples(k).items()}

    def rows(self, got: dict[tuple[int, int], list[Arrays]]) -> list[dict[str, Any]]:
        rows = []
        for k in self.degrees:
            exact = population_gradient(signs(self.rng(5, k), self.draws, self.n), range(k)).weights
            rows.append(self.row(k, None, None, exact))
            rows += [self.row(k, samples, part, np.concatenate([each["gradients"] for each in got[k, part]]))
                     for part, samples in self.samples(k).items() if k in self.sampled]
        return rows

    def row(self, k: int, samples: int | None, part: int | None, gradients: Floats) -> dict[str, Any]:
        gamma = gap_of_signs(self.n, k)
        value, (low, high) = share([recover_support(g, gamma) == [*range(k)] for g in gradients])
        return {"n": self.n, "k": k, "samples": samples, "B / samples": part, "draws": self.draws, "recovered": value,
                "low": low, "high": high}

    def judge(self, got: dict[tuple[int, int], list[Arrays]]) -> Findings:
        checks: list[Check] = []
        for row in (rows := self.rows(got)):
            k, value, interval = row["k"], row["recovered"], (row["low"], row["high"])
            if row["samples"] is None:
                checks += [self.ratio(coefficient_ratio(self.n, k), k=k), self.exactly(value, k=k)]
            elif row["B / samples"] == 1:
                checks.append(self.enough(value, interval, samples=row["samples"], k=k))
            elif row["B / samples"] == 200:
                checks.append(self.too_few(value, passed=value < 0.5, interval=interval, certain=interval[0] >= 0.5,
                                           samples=row["samples"], k=k))
        return Findings(checks, rows)

    def draw(self, got: dict[tuple[int, int], list[Arrays]]) -> plots.Figure:
        rows, series = self.rows(got), {}
        for k in self.sampled:
            shown = [row for row in rows if row["k"] == k and row["samples"]]
            columns = ([row[name] for row in shown] for name in ("recovered", "low", "high"))
            name = f"k = {k}, B = {self.needed(k):.1e}"
            series[name] = Series([1 / row["B / samples"] for row in shown], *columns)
        laws = {"asked at B": ([0.5, 1], [0.99, 0.99]), "asked at B/200": ([0.005, 0.01], [0.5, 0.5])}
        return plots.scaling_plot(series, "samples / B", "share of draws with S recovered", laws, log="x")

    def some(self, k: int, part: int, samples: int) -> list[dict[str, int]]:
        """All draws where something is asked, a quarter of them between."""
        chunks = self.chunks(k, samples)
        return chunks if part in (PARTS[0], PARTS[-1]) else chunks[: max(1, len(chunks) // 4)]


def gap_of_signs(n: int, k: int) -> float:
    """The gap of the gradient at sign weights: gamma."""
    return abs(majority_coefficient(n, k - 1)) / 2


@computation
def estimated_gradients(seed: int, n: int, k: int, samples: int, start: int, end: int) -> dict[str, Any]:
    """Estimates start .. end - 1 of the gradient, each with sign weights and samples of its own."""
    generator = rng(seed, 5, k, samples, start)
    return {"gradients": [sampled_gradient(signs(generator, n), range(k), samples, generator)
                          for _ in range(start, end)]}
