"""Without the leak, with less of it, and with more depth: Section 2 and the open questions of Section 5."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy import stats

from daniely2020.common import Row, Trained, best, practical, train
from daniely2020.first_step import all_units
from daniely2020.theory import leaky
from daniely2020.theory.leaky import Leaky
from paritylab import MLP, SGD, Learner, Parity, Protocol, Setup, plots
from paritylab.aliases import Floats
from paritylab.claims import Check, Findings, Lab, Trial, at_least, at_most, between, claim, significant, size
from paritylab.claims.intervals import mean, share
from paritylab.engines.curves import Curves
from paritylab.plots import Series

GRADIENT, TRAINING = "the first gradient", "training without the leak"


def mean_gradient(sizes: Leaky) -> float:
    """The mean over all units, by their probabilities, and j in A of |E[s_j f sigma']|.

    >>> round(mean_gradient(Leaky(101, 3)), 4)
    0.2621
    """
    units, chance = all_units(sizes)
    g, zeros = leaky.first_gradient(sizes, units), sizes.k - units.plus - units.minus
    total = zeros * np.abs(g.relevant + g.at_zero) + units.plus * np.abs(g.relevant + g.along) \
        + units.minus * np.abs(g.relevant - g.along)
    return float(chance @ total) / sizes.k


# --- without the leak -----------------------------------------------------------------------------------------------


@claim(
    "daniely2020.uniform-contrast",
    where="Section 2; barak2022 Appendix A.3",
    kind="empirical",
    title="Without the leak the same first step carries no usable signal",
    statement="""On purely uniform inputs the first-step relevant gradients are of order n^(-(k-1)/2), so the same
    network and budget stays at chance.""",
    published="""a large gradient on A with the leak (Section 4); means of sqrt(n)|E[x_j f sigma']|, j in A, n=101: 0.26
    with the leak, 1.6e-4 (k=3) and 3.3e-6 (k=5) without (computed here)""",
)
class UniformContrast(Trial):
    """Exact relevant gradients of the first step with and without the leak; then the same network trained without."""

    networks = size(quick=[], standard=[[101, 3, 200, 5000, 5], [101, 5, 500, 2000, 5]],
                    full=[[101, 3, 200, 5000, 5], [101, 5, 500, 100_000, 5]], label="n, k, q, T, seeds")
    n = (31, 51, 101, 201, 401, 801)
    large = size(quick=[10_001, 100_001], full=[10_001, 31_623, 100_001, 316_229, 1_000_001],
                 label="n of the exponent")
    ratio = at_least("gradient with the leak / without, k = 3, n = 101", 500, exact=True, part=GRADIENT)
    order = between("slope of log gradient without the leak on log n, k = {k}", "-(k-1)/2 - 0.1", "-(k-1)/2 + 0.1",
                    exact=True, part=GRADIENT)
    chance = at_least("mean best error without the leak, n = {n}, k = {k}, T = {steps}", 0.4, part=TRAINING,
                      only=("standard", "full"))

    def work(self, lab: Lab) -> list[Trained]:
        return [train(lab, [practical(n, k, q, leak=0.0)], steps, seeds) for n, k, q, steps, seeds in self.networks]

    @functools.cached_property
    def gradients(self) -> dict[tuple[int, float], list[float]]:
        """For each k, with and without the leak: the mean relevant gradients at each n."""
        return {(k, leak): [mean_gradient(Leaky(n, k, leak)) for n in self.n]
                for k, leak in itertools.product((3, 5), (0.5, 0.0))}

    def judge(self, got: list[Trained]) -> Findings:
        place = self.n.index(101)
        checks = [self.ratio(self.gradients[3, 0.5][place] / self.gradients[3, 0.0][place])]
        data: list[Row] = [
            {"n": n, "k": k, "leak": leak, "gradient": value}
            for (k, leak), means in self.gradients.items() for n, value in zip(self.n, means, strict=True)]
        for k in (3, 5):
            means = [mean_gradient(Leaky(n, k, 0.0)) for n in self.large]
            slope = float(np.polyfit(np.log(self.large), np.log(means), 1)[0])
            checks.append(self.order(slope, low=-(k - 1) / 2 - 0.1, high=-(k - 1) / 2 + 0.1, k=k))
            data += [{"n": n, "k": k, "leak": 0.0, "gradient": value}
                     for n, value in zip(self.large, means, strict=True)]
        for (n, k, _, steps, _), trained in zip(self.networks, got, strict=True):
            (rows,) = trained.rows
            checks.append(self.chance(*mean(best(rows)), n=n, k=k, steps=steps))
            data += [{"schedule": "uniform only", **row} for row in rows]
        return Findings(checks, data)

    def draw(self, got: list[Trained]) -> plots.Figure:
        n = [*self.n, *self.large]
        series = {described(k, leak): Series(n, [*means, *(mean_gradient(Leaky(each, k, leak)) for each in self.large)])
                  for (k, leak), means in self.gradients.items()}
        ends = np.array([n[0], n[-1]], float)
        laws = {"_" * i + "$n^{-(k-1)/2}$": (ends, np.asarray(series[described(k, 0.0)].y)[-1]
                                             * (ends / n[-1]) ** (-(k - 1) / 2)) for i, k in enumerate((3, 5))}
        return plots.scaling_plot(series, "input bits n", "mean $\\sqrt{n}\\,|E x_j f \\sigma'|$, j in A", laws)


def described(k: int, leak: float) -> str:
    return f"k = {k}, " + ("leaky" if leak else "uniform")


def relevant_gradient(sizes: Leaky, draws: int, rng: np.random.Generator) -> float:
    """The mean over units and j in A of |E[s_j f sigma']|.

    >>> round(relevant_gradient(Leaky(101, 3), 500, np.random.default_rng(0)), 2)
    0.26
    """
    units, _ = leaky.draw_units(sizes, draws, rng)
    g = leaky.first_gradient(sizes, units)
    zeros = sizes.k - units.plus - units.minus
    total = zeros * np.abs(g.relevant + g.at_zero) + units.plus * np.abs(g.relevant + g.along) \
        + units.minus * np.abs(g.relevant - g.along)
    return float(total.mean() / sizes.k)


# --- how small may the leak be? ---------------------------------------------------------------------------------------


@claim(
    "daniely2020.open-leak-strength",
    where="Section 5 (open questions)",
    kind="empirical",
    title="Which distribution families separate networks from linear methods?",
    statement="""The paper asks for other learnable-but-not-linear families; a one-parameter family mixes the equal-bits
    component with weight p and probes how small p can be.""",
    published="no published value",
)
class OpenLeakStrength(Trial):
    """The error on the uniform half after the practical schedule against the weight of the equal-bits half."""

    leak = size(quick=[0.1, 0.5], full=[0.0, 0.01, 0.03, 0.1, 0.3, 0.5])
    networks = size(quick=[[61, 3, 200, 3000, 3]], standard=[[101, 3, 200, 5000, 5]],
                    full=[[101, 3, 200, 5000, 5], [101, 5, 500, 100_000, 5]], label="n, k, q, T, seeds")
    falls = significant("Kendall p of the uniform half's error falling with the leak, n = {n}, k = {k}", 0.01,
                        part="k = {k}", only=("standard", "full"))
    least = at_most("mean uniform-half error at leak 0.5, n = {n}, k = {k}", 0.05, part="k = {k}")

    def work(self, lab: Lab) -> list[Trained]:
        return [train(lab, [practical(n, k, q, leak=leak) for leak in self.leak], steps, seeds)
                for n, k, q, steps, seeds in self.networks]

    def errors(self, trained: Trained, seeds: int) -> tuple[Floats, Floats]:
        """On the uniform half, for each leak: the mean over seeds, and its standard error."""
        by_leak = [best(rows, "uniform error") for rows in trained.rows]
        spreads = [errors.std(ddof=1) / math.sqrt(seeds) if seeds > 1 else 0.0 for errors in by_leak]
        return np.array([errors.mean() for errors in by_leak]), np.array(spreads)

    def judge(self, got: list[Trained]) -> Findings:
        checks: list[Check] = []
        for (n, k, _, _, seeds), trained in zip(self.networks, got, strict=True):
            by_leak = [best(rows, "uniform error") for rows in trained.rows]
            if self.size != "quick":
                test: Any = stats.kendalltau(np.repeat(self.leak, seeds), np.concatenate(by_leak), alternative="less")
                checks.append(self.falls(float(test.pvalue), n=n, k=k))
            checks.append(self.least(*mean(by_leak[-1]), n=n, k=k))
        return Findings(checks, [row for trained in got for rows in trained.rows for row in rows])

    def draw(self, got: list[Trained]) -> plots.Figure:
        series: dict[str, Series] = {}
        for (n, k, _, _, seeds), trained in zip(self.networks, got, strict=True):
            means, spreads = self.errors(trained, seeds)
            series[f"n = {n}, k = {k}"] = Series(self.leak, means, means - 2 * spreads, means + 2 * spreads)
        figure = plots.scaling_plot(series, "leak p", "error on the uniform half", log="")
        figure.axes[0].set(xlim=(-0.02, 0.52), ylim=(-0.02, 0.8))
        return figure


# --- depth ----------------------------------------------------------------------------------------------------------

DEPTHS = {"depth 2, z^2, width 10": MLP(10, "power:2"), "depth 2, z^2, width 100": MLP(100, "power:2"),
          "depth 3, z^2": MLP((10, 10), "power:2"), "depth 2, ReLU": MLP(100), "depth 3, ReLU": MLP((10, 10))}
QUADRATIC, EVERY = "among quadratic networks", "among all networks of depth two"


@claim(
    "daniely2020.open-depth",
    where="Section 5 (open questions)",
    kind="empirical",
    title="Depth-three against depth-two",
    statement="""The paper asks for distributions that are learned at depth three and not at two. A candidate is the
    parity of degree 4, which the deep quadratic networks of barak2022 C.7 learn: no network of depth two may.""",
    published="no published value; a quadratic network of depth 2 is a polynomial of degree 2 (computed here)",
)
class OpenDepth(Trial):
    """Quadratic networks with one and with two hidden layers on a parity of degree 4; ReLU networks beside them."""

    n = size(quick=[10], full=[10, 20])
    steps = size(quick=10_000, full=50_000)
    runs = size(quick=3, full=20)
    shallow = at_most("mean final accuracy, {network}, n = {n}", 0.55, part=QUADRATIC)
    deep = at_least("share of runs with accuracy >= 0.99, {network}, n = {n}", 0.8, part=QUADRATIC)
    fails = at_most("share of runs with accuracy >= 0.99, {network}, n = {n}", 0.2, part=EVERY)

    def work(self, lab: Lab) -> list[Curves]:
        setups = [Setup(Parity(n, 4), Learner(network, optimiser=SGD(0.01)), Protocol(max_steps=self.steps))
                  for n, network in itertools.product(self.n, DEPTHS.values())]
        return lab.curves_each(setups, self.steps, self.steps // 50, self.runs)

    def last(self, got: list[Curves]) -> dict[tuple[int, str], Floats]:
        """The final accuracy of each run, for each n and network; NaN where it diverged."""
        places = itertools.product(self.n, DEPTHS)
        return {place: curves.accuracy[:, -1] for place, curves in zip(places, got, strict=True)}

    def judge(self, got: list[Curves]) -> Findings:
        checks: list[Check] = []
        data: list[Row] = []
        for (n, network), last in self.last(got).items():
            accuracy, where = predicted(last), {"network": network, "n": n}
            if network.startswith("depth 2, z^2"):
                checks.append(self.shallow(*mean(accuracy), **where))
            elif network != "depth 3, ReLU":
                rule = self.fails if network == "depth 2, ReLU" else self.deep
                checks.append(rule(*share(accuracy >= 0.99), **where))
            data += [{"n": n, "network": network, "run": run, "final accuracy": float(value),
                      "diverged": bool(np.isnan(last[run]))} for run, value in enumerate(accuracy)]
        return Findings(checks, data)

    def draw(self, got: list[Curves]) -> plots.Figure:
        return draw_depths({f"{network.replace('z^2', '$z^2$')}, n = {n}": predicted(last)
                            for (n, network), last in self.last(got).items()})


def predicted(accuracy: Floats) -> Floats:
    """A network that diverged predicts nothing."""
    return np.nan_to_num(accuracy, nan=0.5)


@plots.styled
def draw_depths(shown: Mapping[str, Floats]) -> plots.Figure:
    """A circle for each run's final accuracy."""
    figure = plots.blank(0.7 + 0.19 * len(shown))
    axes = figure.add_subplot(xlabel="final accuracy", ylim=(len(shown) - 0.5, -0.5), xlim=(0.45, 1.02))
    axes.set_yticks(range(len(shown)), list(shown))
    for place, values in enumerate(shown.values()):
        axes.plot(values, np.full(len(values), place), "o", fillstyle="none", markersize=4, color=plots.COLOURS[0])
    for bound in (0.55, 0.99):
        axes.axvline(bound, color=plots.GREY, linestyle="dotted", linewidth=0.8)
    return figure
