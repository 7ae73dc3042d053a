"""Without the leak, with less of it, and with more depth: Section 2 and the open questions of Section 5."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Mapping

import numpy as np

from daniely2020.common import Row, Trained, best, practical, train
from daniely2020.theory import leaky
from daniely2020.theory.leaky import Leaky
from paritylab import MLP, SGD, Learner, Parity, Protocol, Setup, plots
from paritylab.aliases import Floats
from paritylab.claims import Check, Findings, Lab, Trial, at_least, at_most, claim, holds, size
from paritylab.claims.intervals import share
from paritylab.engines.curves import Curves
from paritylab.plots import Series

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

    draws = size(2000, label="draws of w")
    networks = size(quick=[], standard=[[101, 3, 200, 5000, 5], [101, 5, 500, 2000, 5]],
                    full=[[101, 3, 200, 5000, 5], [101, 5, 500, 100_000, 5]], label="n, k, q, T, seeds")

    ratio = at_least("gradient with the leak / without, k = 3, n = 101", 500)
    chance = at_least("share of seeds with error >= 0.4, n = {n}, k = 5, T = {steps}", 0.8, only=("standard", "full"))

    n = (31, 51, 101, 201, 401, 801)

    def work(self, lab: Lab) -> list[Trained]:
        return [train(lab, [practical(n, k, q, leak=0.0)], steps, seeds) for n, k, q, steps, seeds in self.networks]

    @functools.cached_property
    def gradients(self) -> dict[tuple[int, float], list[float]]:
        """For each k, with and without the leak: the mean relevant gradients at each n."""
        return {(k, leak): [relevant_gradient(Leaky(n, k, leak), self.draws, self.rng(15, n, k)) for n in self.n]
                for k, leak in itertools.product((3, 5), (0.5, 0.0))}

    def judge(self, got: list[Trained]) -> Findings:
        numbers: dict[str, float] = {}
        data: list[Row] = []
        at_101 = {where: means[self.n.index(101)] for where, means in self.gradients.items()}
        for (k, leak), means in self.gradients.items():
            name = f"mean sqrt(n) |E x_j f sigma'|, j in A, n = 101, {described(k, leak)}"
            numbers[name] = at_101[k, leak]
            data += [{"n": n, "k": k, "leak": leak, "gradient": mean} for n, mean in zip(self.n, means, strict=True)]
        checks = [self.ratio(at_101[3, 0.5] / at_101[3, 0.0])]
        for (n, k, _, steps, _), trained in zip(self.networks, got, strict=True):
            (rows,) = trained.rows
            errors = best(rows)
            data += [{"schedule": "uniform only", **row} for row in rows]
            numbers[f"smallest error without the leak, n = {n}, k = {k}"] = float(errors.min())
            if k == 5:
                checks.append(self.chance(*share(errors >= 0.4), n=n, steps=steps))
        return Findings(checks, data, numbers)

    def draw(self, got: list[Trained]) -> plots.Figure:
        series = {described(k, leak): Series(self.n, means) for (k, leak), means in self.gradients.items()}
        uniform = {k: means for (k, leak), means in self.gradients.items() if not leak}
        laws = {"_" * i + "$n^{-(k-1)/2}$": (self.n, [means[2] * (101 / n) ** ((k - 1) / 2) for n in self.n])
                for i, (k, means) in enumerate(uniform.items())}
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
    networks = size(quick=[[61, 3, 200, 3000, 1]], standard=[[101, 3, 200, 5000, 5]],
                    full=[[101, 3, 200, 5000, 5], [101, 5, 500, 100_000, 5]], label="n, k, q, T, seeds")

    falls = holds("uniform-half error non-increasing in the leak (within 2 s.e.), n = {n}, k = {k}")
    least = at_most("mean uniform-half error at leak 0.5, n = {n}, k = {k}", 0.05)

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
            means, spreads = self.errors(trained, seeds)
            falls = np.diff(means) <= 2 * np.hypot(spreads[1:], spreads[:-1]) + 1e-12
            checks += [self.falls(bool(falls.all()), float(np.sum(~falls)), n=n, k=k),
                       self.least(float(means[-1]), n=n, k=k)]
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
    runs = size(quick=3, full=10)
    steps = size(quick=10_000, full=50_000)

    shallow = at_most("highest final accuracy, {network}, n = {n}", 0.55)
    deep = at_least("share of runs with accuracy >= 0.99, {network}, n = {n}", 0.8)

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
            accuracy = predicted(last)
            if network.startswith("depth 2, z^2"):
                checks.append(self.shallow(float(accuracy.max()), network=network, n=n))
            elif "z^2" in network:
                checks.append(self.deep(*share(accuracy >= 0.99), network=network, n=n))
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
