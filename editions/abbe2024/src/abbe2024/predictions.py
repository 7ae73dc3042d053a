"""Open questions: where learnability breaks as sigma grows, and whether the initial alignment foretells it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from abbe2024.atlas import neuron_alignment
from abbe2024.online import DISCRETE, FIFTH
from abbe2024.training import SHALLOW, final, law, named, ranks_agree, trained
from paritylab import MLP, SGD, Curves, Learner, Parity, Protocol, Setup, plots
from paritylab.aliases import Floats
from paritylab.claims import Findings, Lab, Trial, at_least, at_most, claim, computation, significant, size
from paritylab.claims.intervals import bootstrap, mean
from paritylab.engines.jax_engine import accurate_products
from paritylab.setups.inits import init
from paritylab.setups.losses import loss

LEVEL = 0.75
POWERS = {"sigma": 0.0, "sigma sqrt(d)": 0.5, "sigma d": 1.0}
Accuracy = Mapping[tuple[int, float], np.ndarray]
CONSTANT = 0.5
"""From here on a perturbation counts as constant."""


@claim(
    "abbe2024.open-threshold",
    where="summary note, open question 1 and check 1; Section 7",
    kind="empirical",
    title="Where does learnability break as a function of sigma and d?",
    statement="""Between sigma = O(1/d) (works) and constant sigma (fails) a critical sigma*(d) should be visible.""",
    published="no value: 'We leave [...] the investigation of a potential threshold to future work' (Section 1)",
)
class OpenThreshold(Trial):
    """The perturbation at which a two-layer network's accuracy falls to 0.75, against the dimension."""

    steps = size(quick=4000, full=50_000)
    d = size(quick=[14, 20, 28], full=[20, 24, 28, 34, 40, 50])
    points = size(quick=6, full=16, label="sigmas")
    runs = size(quick=3, full=10)
    falls = at_most("slope of log sigma* on log d", 0.0, part="sigma* falls with d")
    small = at_least("sigma* d, smallest over d", 1.0, part="sigma = 1/d is learned from")
    constant = at_most("largest mean accuracy over sigma >= 0.5, d = {d}", 0.55, part="constant sigma fails",
                       only=("standard", "full"))

    @property
    def sigmas(self) -> list[float]:
        return [round(float(s), 4) for s in np.geomspace(0.05, 2, self.points)]

    @property
    def cases(self) -> list[tuple[int, float]]:
        return [(d, s) for d in self.d for s in self.sigmas]

    def work(self, lab: Lab) -> tuple[list[Curves], list[dict[str, Floats]]]:
        setups = [trained(law(s), d, SHALLOW) for d, s in self.cases]
        return (lab.curves_each(setups, self.steps, self.steps // 10, self.runs),
                lab.compute_each(perturbed_alignments, [{"d": d, "sigmas": self.sigmas} for d in self.d]))

    def accuracy(self, curves: list[Curves]) -> Accuracy:
        """Final accuracies of a two-layer network by dimension and perturbation."""
        return dict(zip(self.cases, map(final, curves), strict=True))

    def variables(self, alignments: list[dict[str, Floats]]) -> dict[str, dict[tuple[int, float], float]]:
        """log10 of what accuracy may depend on."""
        logs = np.concatenate([arrays["log10"] for arrays in alignments]).tolist()
        variables = {name: {(d, s): math.log10(s * d**power) for d, s in self.cases} for name, power in POWERS.items()}
        return variables | {"exact alignment": dict(zip(self.cases, logs, strict=True))}

    def judge(self, got: tuple[list[Curves], list[dict[str, Floats]]]) -> Findings:
        accuracy = self.accuracy(got[0])
        every, last = list(accuracy.values()), self.d[-1]
        checks = [rule(found(*every), bootstrap(found, *every, rng=self.rng(place), resamples=1000))
                  for place, (rule, found) in enumerate(((self.falls, self.slope), (self.small, self.least)))]
        if self.size != "quick":
            largest = max((accuracy[last, s] for s in self.sigmas if s >= CONSTANT), key=np.mean)
            checks.append(self.constant(*mean(largest), d=last))
        critical = dict(zip(self.d, self.critical(every), strict=True))
        numbers: dict[str, float | None] = {f"sigma* at d = {d}": sigma for d, sigma in critical.items()}
        numbers |= {f"log10 alignment at sigma*, d = {d}": neuron_alignment(law(sigma), d) / math.log(10)
                    for d, sigma in critical.items() if 0 < sigma < math.inf}
        data = [{"d": d, "sigma": s, "run": run, "accuracy": float(value)}
                for (d, s), values in accuracy.items() for run, value in enumerate(values)]
        return Findings(checks, data, numbers)

    def draw(self, got: tuple[list[Curves], list[dict[str, Floats]]]) -> plots.Figure:
        return threshold_plot(self.accuracy(got[0]), self.variables(got[1]))

    def critical(self, accuracies: Sequence[Floats]) -> list[float]:
        """sigma* at each d, of accuracies by d and sigma."""
        means = np.array([np.mean(values) for values in accuracies]).reshape(len(self.d), -1).tolist()
        return [crossing(self.sigmas, each) for each in means]

    def slope(self, *accuracies: Floats) -> float:
        """Of log sigma* on log d; undefined unless it lies within the grid at every d."""
        found = self.critical(accuracies)
        within = all(0 < sigma < math.inf for sigma in found)
        return float(np.polyfit(np.log(self.d), np.log(found), 1)[0]) if within else math.nan

    def least(self, *accuracies: Floats) -> float:
        return min(sigma * d for sigma, d in zip(self.critical(accuracies), self.d, strict=True))


@computation
def perturbed_alignments(seed: int, d: int, sigmas: list[float]) -> dict[str, list[float]]:
    """The exact alignment of a neuron for each perturbation."""
    return {"log10": [neuron_alignment(law(s), d) / math.log(10) for s in sigmas]}


def crossing(sigmas: Sequence[float], accuracy: Sequence[float], level: float = LEVEL) -> float:
    """The sigma at which a line through the points (log sigma, accuracy) last falls below the level.

    Infinite if it is above the level at the largest sigma, 0 if it never is.

    >>> round(crossing([0.1, 1.0], [1.0, 0.5]), 4)
    0.3162
    """
    if accuracy[-1] >= level:
        return math.inf
    for i in range(len(sigmas) - 1, 0, -1):
        if accuracy[i] < level <= accuracy[i - 1]:
            share = (accuracy[i - 1] - level) / (accuracy[i - 1] - accuracy[i])
            return float(sigmas[i - 1] * (sigmas[i] / sigmas[i - 1]) ** share)
    return 0.0


@plots.styled
def threshold_plot(accuracy: Accuracy, variables: Mapping[str, Mapping[tuple[int, float], float]]) -> plots.Figure:
    """Final accuracy against sigma, sigma sqrt(d), sigma d and the alignment: which of them collapses the curves?"""
    names = {"sigma": r"$\sigma$", "sigma sqrt(d)": r"$\sigma\sqrt{d}$", "sigma d": r"$\sigma d$",
             "exact alignment": "alignment"}
    figure = plots.blank(3.8)
    panels = figure.subplots(2, 2, sharey=True).ravel()
    for axes, (name, x) in zip(panels, variables.items(), strict=True):
        dimensions = dict.fromkeys(d for d, _ in accuracy)
        for d, colour, line in zip(dimensions, cycle(plots.COLOURS), cycle(plots.LINES), strict=False):
            cases = sorted((case for case in accuracy if case[0] == d), key=lambda case: x[case])
            axes.plot([10 ** x[case] for case in cases], [accuracy[case].mean() for case in cases], color=colour,
                      linestyle=line, marker=".", markersize=3, label=f"d = {d}" if name == "sigma" else None)
        axes.axhline(LEVEL, color=plots.GREY, linewidth=0.6, linestyle="dotted")
        axes.set(xscale="log", xlabel=names[name], ylim=(0.45, 1.03))
    for axes in panels[::2]:
        axes.set_ylabel("accuracy")
    plots.legend_above(figure, panels[0])
    return figure


LAWS = ("rademacher", law(0.1), law(0.5), law(1), FIFTH, DISCRETE, "gaussian")
NETWORKS = {
    "2 layers, 64, tanh": MLP(64, "tanh"),
    "2 layers, 256, ReLU": MLP(256),
    "2 layers, 1024, clipped": MLP(1024, "clipped-relu:5"),
    "3 layers, 256, ReLU": MLP((256, 256)),
    "4 layers, 64, ReLU": MLP((64, 64, 64)),
}


@claim(
    "abbe2024.open-gal-predicts",
    where="summary note, open question 2 and check 2",
    kind="empirical",
    title="Does initial alignment predict learnability for other widths and depths?",
    statement="Alignment at initialisation should rank configurations by success beyond the two-layer ReLU case.",
    published="no value: an open question of the summary note",
)
class OpenGalPredicts(Trial):
    """The hinge alignment at initialisation beside the accuracy after training, over many networks and laws."""

    networks = size(quick=["2 layers, 64, tanh", "2 layers, 256, ReLU"], full=list(NETWORKS))
    steps = size(quick=3000, full=20_000)
    d = size(quick=[13], full=[15, 17])
    runs = size(quick=3, full=5)
    draws = size(quick=10, full=20)
    correlation = at_least("Spearman correlation of alignment and final accuracy", 0.6, part="all configurations")
    beyond_chance = significant("permutation p", 0.01, part="all configurations")
    within = at_least("the same over the laws of one network, mean over networks and d", 0.6, part="within a network",
                      only=("standard", "full"))

    @property
    def cases(self) -> list[tuple[int, str, str]]:
        return [(d, name, each) for d in self.d for name in self.networks for each in LAWS]

    def work(self, lab: Lab) -> tuple[list[Curves], list[dict[str, Floats]]]:
        asked = [{"d": d, "network": name, "law": each, "draws": self.draws} for d, name, each in self.cases]
        setups = [setup(d, name, each) for d, name, each in self.cases]
        return (lab.curves_each(setups, self.steps, self.steps // 10, self.runs),
                lab.compute_each(hinge_alignment, asked))

    def measured(self, got: tuple[list[Curves], list[dict[str, Floats]]]) -> tuple[Floats, Floats, Floats]:
        """For each case the alignment, that of the first layer alone, and the final accuracy."""
        curves, alignments = got
        return (np.array([arrays["parts"].sum(axis=1).mean() for arrays in alignments]),
                np.array([arrays["parts"][:, 0].mean() for arrays in alignments]),
                np.array([final(each).mean() for each in curves]))

    def judge(self, got: tuple[list[Curves], list[dict[str, Floats]]]) -> Findings:
        whole, first, reached = self.measured(got)
        generator = self.rng(1)
        shuffled = [ranks_agree(whole, generator.permutation(reached)) for _ in range(9999)]
        found = ranks_agree(whole, reached)
        checks = [self.correlation(found, rank_interval(whole, reached, self.rng(2))),
                  self.beyond_chance((1 + int(np.sum(np.array(shuffled) >= found))) / 10_000)]
        if self.size != "quick":
            groups = zip(whole.reshape(-1, len(LAWS)), reached.reshape(-1, len(LAWS)), strict=True)
            checks.append(self.within(*mean([ranks_agree(x, y) for x, y in groups if np.ptp(y) > 0])))
        numbers = {"configurations": float(len(whole)),
                   "share of them with accuracy 0.99 or more": float(np.mean(reached >= 0.99)),
                   "Spearman correlation, first layer alone": ranks_agree(first, reached)}
        return Findings(checks, self.rows(got), numbers)

    def rows(self, got: tuple[list[Curves], list[dict[str, Floats]]]) -> list[dict[str, Any]]:
        return [{"d": d, "network": name, "init": each, "alignment": whole, "first_layer": first, "accuracy": accuracy}
                for (d, name, each), whole, first, accuracy
                in zip(self.cases, *(values.tolist() for values in self.measured(got)), strict=True)]

    def draw(self, got: tuple[list[Curves], list[dict[str, Floats]]]) -> plots.Figure:
        return prediction_plot(self.rows(got))


def setup(d: int, name: str, each: str) -> Setup:
    learner = Learner(NETWORKS[name], each, "hinge", SGD(0.01), batch=64)
    return Setup(Parity(n=d, k=d), learner, Protocol(eval_size=10_000))


@computation
def hinge_alignment(seed: int, network: str, law: str, d: int, draws: int) -> dict[str, list[Floats]]:
    """|E grad L(f, chi) - E grad L(f, r)|^2 over the whole cube, layer by layer, for draws of the start weights."""
    learner, start = NETWORKS[network], init(law)
    cube = 1 - 2 * ((np.arange(2**d)[:, None] >> np.arange(d)) & 1)
    x, chi, hinge = jnp.asarray(cube, jnp.float32), jnp.asarray(cube.prod(axis=1), jnp.float32), loss("hinge")

    def excess(params: Any) -> Any:
        f = learner.apply(params, x)
        return jnp.mean(hinge(f, chi) - (hinge(f, jnp.ones_like(f)) + hinge(f, -jnp.ones_like(f))) / 2)

    @jax.jit
    def squares(key: Any) -> Any:
        layers = jax.grad(excess)(learner.init(key, d, start))
        return jnp.stack([sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(layer)) for layer in layers])

    with accurate_products():
        parts = [np.asarray(squares(key)) for key in jax.random.split(jax.random.key(seed), draws)]
    return {"parts": parts}


def rank_interval(x: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> tuple[float, float]:
    """The bootstrap interval of a rank correlation."""
    chosen = (rng.integers(0, len(x), len(x)) for _ in range(1000))
    values = [ranks_agree(x[rows], y[rows]) for rows in chosen]
    low, high = np.nanquantile(values, [0.025, 0.975])
    return float(low), float(high)


@plots.styled
def prediction_plot(data: Sequence[Mapping[str, Any]]) -> plots.Figure:
    """Final accuracy against the initial alignment; a colour for each law, a mark for each network."""
    figure = plots.blank(3.2)
    axes = figure.add_subplot(xscale="log", xlabel="hinge alignment at initialisation", ylabel="final test accuracy")
    marks = dict(zip(dict.fromkeys(row["network"] for row in data), "os^vD", strict=False))
    for each, colour in zip(LAWS, plots.COLOURS, strict=False):
        for row in [row for row in data if row["init"] == each]:
            axes.plot(row["alignment"], row["accuracy"], marks[row["network"]], markersize=3.5, fillstyle="none",
                      color=colour)
        axes.plot([], [], "o", color=colour, label=named(each))
    for name, mark in marks.items():
        axes.plot([], [], mark, color=plots.GREY, fillstyle="none", label=name)
    plots.legend_above(figure, axes)
    return figure
